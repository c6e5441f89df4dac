"""Latency, bandwidth and energy of the link between every two devices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.io.compiler.devices import DeviceIndex
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.scales import Scales
from placeopt.io.spec import LinkOverride, LinkSpec, LinksSpec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Int


class LinkArrays(NamedTuple):
    """The link arrays of a Problem, each (m, m) int64."""

    latency: Int
    byte_ticks_num: Int
    byte_ticks_den: Int
    byte_energy_num: Int
    byte_energy_den: Int


def link_arrays(links: LinksSpec, index: DeviceIndex, scales: Scales, issues: Issues) -> LinkArrays:
    """The arrays of a links section; links are free by default."""
    shape = (len(index), len(index))
    arrays = LinkArrays(
        latency=np.zeros(shape, dtype=np.int64),
        byte_ticks_num=np.zeros(shape, dtype=np.int64),
        byte_ticks_den=np.ones(shape, dtype=np.int64),
        byte_energy_num=np.zeros(shape, dtype=np.int64),
        byte_energy_den=np.ones(shape, dtype=np.int64),
    )
    everything = np.arange(len(index))
    _apply(arrays, links.default, [(everything, everything)], scales, ("links", "default"))
    for place, override in enumerate(links.overrides):
        path = ("links", "overrides", place)
        _apply(arrays, override, _ends(override, index, issues, path), scales, path)
    for array in (arrays.latency, arrays.byte_ticks_num, arrays.byte_energy_num):
        np.fill_diagonal(array, 0)
    for array in (arrays.byte_ticks_den, arrays.byte_energy_den):
        np.fill_diagonal(array, 1)
    return arrays


def _ends(override: LinkOverride, index: DeviceIndex, issues: Issues, path: Path) -> list[tuple[Int, Int]]:
    """The (senders, receivers) of an override."""

    def find(key: str, references: list[str]) -> Int:
        places = [index.find(reference, (*path, key, place)) for place, reference in enumerate(references)]
        return np.array(sorted({d for found in places for d in found}), dtype=np.int64)

    source, target, between = override.source, override.target, override.between
    if between is None and source is not None and target is not None:
        return [(find("from", source), find("to", target))]
    if between is not None and source is None and target is None:
        first, second = (
            np.array(index.find(reference, (*path, "between", place)), dtype=np.int64)
            for place, reference in enumerate(between)
        )
        return [(first, second), (second, first)]
    if not issues.touch(*path):
        issues.add("expected either between, or from and to", path)
    return []


def _apply(arrays: LinkArrays, link: LinkSpec, ends: list[tuple[Int, Int]], scales: Scales, path: Path) -> None:
    for senders, receivers in ends:
        where = np.ix_(senders, receivers)
        if link.latency is not None:
            arrays.latency[where] = scales.ticks(link.latency, (*path, "latency"))
        if link.bandwidth is not None:
            rate = scales.bandwidth(link.bandwidth, (*path, "bandwidth"))
            arrays.byte_ticks_num[where], arrays.byte_ticks_den[where] = rate
        if link.energy is not None:
            rate = scales.energy(link.energy, (*path, "energy"))
            arrays.byte_energy_num[where], arrays.byte_energy_den[where] = rate
