"""Links: latency, bandwidth and energy between every two devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.compiler.devices import DeviceIndex
from placeopt.compiler.issues import Issues, Path
from placeopt.compiler.scales import Scales
from placeopt.ir import Int
from placeopt.spec import LinkOverride, LinkSpec, LinksSpec


@dataclass(frozen=True, slots=True)
class LinkArrays:
    """The link arrays of a Problem, each (m, m) int64."""

    latency: Int
    byte_ticks_num: Int
    byte_ticks_den: Int
    byte_energy_num: Int
    byte_energy_den: Int


def link_arrays(links: LinksSpec, index: DeviceIndex, scales: Scales, issues: Issues) -> LinkArrays:
    """The arrays that a links section describes; without one, links are free."""
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
    """(senders, receivers) that an override is about."""

    def find(references: list[str], key: str) -> Int:
        found: set[int] = set()
        for reference in references:
            devices = index.find(reference)
            if devices is None:
                issues.add(index.unknown(reference), (*path, key, reference))
            found.update(devices or [])
        return np.array(sorted(found), dtype=np.int64)

    one_way = override.source is not None and override.target is not None
    if one_way == (override.between is not None) or (override.source is None) != (override.target is None):
        issues.add("expected either between, or from and to", path)
        return []
    if override.between is not None:
        sides = [find([reference], "between") for reference in override.between]
        return [(sides[0], sides[1]), (sides[1], sides[0])]
    assert override.source is not None
    assert override.target is not None
    return [(find(override.source, "from"), find(override.target, "to"))]


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
