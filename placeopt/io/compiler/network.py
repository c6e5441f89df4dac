"""The device network: devices by name, pool and type, their memory tiers and unavailable times, links, shared links."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from placeopt.errors import counted
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.scales import Scales
from placeopt.io.spec import ANY, MOST_DEVICES, DeviceSpec, LinkOverride, LinkSpec, LinksSpec, Spec, pool_names
from placeopt.io.syntax import Path
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED
from placeopt.model.ranges import LARGEST
from placeopt.model.shared_links import SharedLink, SharedLinks, build_shared_links
from placeopt.model.tiers import Tiers, build_tiers
from placeopt.model.unavailability import Unavailability, build_unavailability
from placeopt.model.units import shown

Rates = list[tuple[int, int, int]]
"""Bytes, num and den of each tier beyond the first: num ticks move den bytes."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device after counts are expanded."""

    name: str
    pool: str
    """Its key in the document: `core` for core0 and core1."""
    type: str
    spec: DeviceSpec


class DeviceIndex:
    """All devices, and the indices of each name, pool and type.

    A device's own name refers to that device only, any other reference to all devices of that pool or type. Unknown
    references are reported, unless the index is not `complete` or they are `former` ones, of devices that are gone.
    """

    def __init__(
        self,
        specs: dict[str, DeviceSpec],
        issues: Issues,
        *,
        complete: bool = True,
        former: frozenset[str] = frozenset(),
    ) -> None:
        self.devices: list[Device] = []
        self._issues = issues
        self._complete = complete
        self._former = former
        self._names: dict[str, list[int]] = {}
        self._pools: dict[str, list[int]] = {}
        self._types: dict[str, list[int]] = {}
        for pool, spec in specs.items():
            names = [pool] if spec.count is None else pool_names(pool, spec.count)
            if len(self.devices) + len(names) > MOST_DEVICES:
                issues.add(f"more than {MOST_DEVICES} devices in all", ("devices", pool), at_key=True)
                raise issues.error()
            for name in names:
                if name in self._names:
                    message = f"duplicate name {shown(name)}: two devices have it"
                    issues.add(message, ("devices", pool), at_key=True)
                    continue
                place = len(self.devices)
                self.devices.append(Device(name, pool, spec.type or pool, spec))
                self._names[name] = [place]
                self._pools.setdefault(pool, []).append(place)
                self._types.setdefault(spec.type or pool, []).append(place)
        self._everything = list(range(len(self.devices)))
        self._known: dict[bool, list[str]] = {}
        """References for messages: all of them, and those to one device."""

    def extended(self, more: Sequence[Device]) -> DeviceIndex:
        """Return the index with more devices, to which only their own names refer."""
        found = copy(self)
        found.devices = [*self.devices, *more]
        found._names = {**self._names, **{device.name: [len(self) + k] for k, device in enumerate(more)}}
        found._known = {}
        return found

    @property
    def replaced(self) -> bool:
        """Whether the devices replace those of the document, which its references are about."""
        return bool(self._former)

    @property
    def references(self) -> frozenset[str]:
        """All names, pools and types."""
        return frozenset((*self._names, *self._pools, *self._types))

    def __len__(self) -> int:
        return len(self.devices)

    def find(self, reference: str, path: Path | None, *, single: bool = False) -> list[int]:
        """Return the devices of a reference, in order; see `levels` for the path and `single`."""
        return sorted({place for level in self.levels(reference, path, single=single) for place in level})

    def levels(
        self, reference: str, path: Path | None, *, at_key: bool = False, single: bool = False
    ) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return the devices of a reference, least specific first: as everything, as a type, as a pool, as a name.

        `path` is the position for the report of an unknown reference; without it, none is made. `single` is whether
        the report suggests only references to one device.
        """
        if reference in self._names:
            return [], [], [], self._names[reference]
        everything = self._everything if reference == ANY else []
        found = everything, self._types.get(reference, []), self._pools.get(reference, []), list[int]()
        if path is not None and self._complete and not any(found) and reference not in self._former:
            if single not in self._known:
                known = dict.fromkeys([*self._names, *self._pools, *self._types])
                self._known[single] = [each for each in known if not single or len(self.find(each, None)) == 1]
            self._issues.unknown("device", reference, self._known[single], path, at_key=at_key)
        return found

    def hidden(self, reference: str) -> list[int]:
        """Return the devices of a pool or type that a reference excludes because it is also the name of a device."""
        others = {*self._pools.get(reference, []), *self._types.get(reference, [])}
        return sorted(others - set(self._names[reference])) if reference in self._names else []


class LinkArrays(NamedTuple):
    """The link arrays of a Problem, each (m, m) int64."""

    latency: Int
    byte_ticks_num: Int
    byte_ticks_den: Int
    byte_energy_num: Int
    byte_energy_den: Int


def link_arrays(links: LinksSpec, index: DeviceIndex, scales: Scales, issues: Issues) -> LinkArrays:
    """Return the arrays of a links section; links are free by default."""
    free = (0, 0, 1, 0, 1)
    arrays = LinkArrays(*(np.full((len(index), len(index)), value, dtype=np.int64) for value in free))
    everything = np.arange(len(index))
    _apply(arrays, links.default, [(everything, everything)], scales, ("links", "default"))
    for place, override in enumerate(links.overrides):
        path = ("links", "overrides", place)
        _apply(arrays, override, _ends(override, index, issues, path), scales, path)
    for array, value in zip(arrays, free, strict=True):
        np.fill_diagonal(array, value)
    return arrays


def _ends(override: LinkOverride, index: DeviceIndex, issues: Issues, path: Path) -> list[tuple[Int, Int]]:
    """Return the (senders, receivers) of an override."""

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


def shared_links(spec: Spec, index: DeviceIndex, issues: Issues) -> SharedLinks | None:
    """Return the shared links; None if there are none. Of a replaced network, those that carry nothing are left out."""
    found: dict[str, SharedLink] = {}
    for name, link in spec.links.shared.items():
        path: Path = ("links", "shared", name)
        key, references = ("between", link.between) if link.uplink_of is None else ("uplink_of", link.uplink_of)
        if references is None or (link.between is not None and link.uplink_of is not None):
            if not issues.touch(*path):
                issues.add("expected either uplink_of or between", path, at_key=True)
            continue
        if key == "between" and link.duplex == "full":
            issues.add("full is not supported with between: it carries one transfer in all", (*path, "duplex"))
        places = [index.find(reference, (*path, key, place)) for place, reference in enumerate(references)]
        group = sorted({d for each in places for d in each})
        if len(group) > (key == "between") and (key == "between" or len(group) < len(index)):
            found[name] = SharedLink(group, key == "between", link.duplex == "half")
        elif all(places) and not index.replaced:
            expected = "at least two devices" if key == "between" else "some of the devices, and not all"
            issues.add(f"joins {counted(len(group), 'device')} of {len(index)}; expected {expected}", (*path, key))
    if spec.links.shared and any("period" in level for level in spec.objective):
        issues.add("shared links are not supported with the objective period", ("links", "shared"), at_key=True)
    return None if len(issues) else build_shared_links(len(index), found)


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


def memory_tiers(spec: Spec, first: Int, index: DeviceIndex, scales: Scales, issues: Issues) -> Tiers | None:
    """Return the tiers behind the first ones (m,) in bytes; None if no device states any."""
    stated = [key for key, device in spec.devices.items() if device.tiers]
    if not stated:
        return None
    if spec.memory_model != "sum":
        issues.add(f"{spec.memory_model} is not supported with memory tiers; expected sum", ("memory_model",))
    if any("period" in level for level in spec.objective):
        issues.add("memory tiers are not supported with the objective period", ("devices", stated[0], "tiers"))
    further = [_tiers(device, int(first[d]), scales, issues) for d, device in enumerate(index.devices)]
    return None if len(issues) or not any(further) else build_tiers(first, further)


def _tiers(device: Device, first: int, scales: Scales, issues: Issues) -> Rates:
    tiers, path = device.spec.tiers, ("devices", device.pool, "tiers")
    if tiers and device.spec.memory is None and not issues.touch("devices", device.pool):
        issues.add("tiers follow the memory of the device, which has no limit; state its memory", path)
    found: Rates = []
    total, rate = 0 if first == UNLIMITED else first, Fraction(0)
    for k, tier in enumerate(tiers):
        size = UNLIMITED if tier.memory is None else scales.capacity(tier.memory, (*path, k, "memory"))
        if tier.memory is None and k + 1 < len(tiers):
            issues.add("memory is missing; only the last tier may be unlimited", (*path, k))
        where = (*path, k, "bandwidth")
        num, den = scales.bandwidth(tier.bandwidth, where)
        if Fraction(num, den) < rate and not issues.touch(*where):
            issues.add(f"{issues.written(where)} is faster than the tier before it; expected the fastest first", where)
        total, rate = total + (0 if size == UNLIMITED else size), Fraction(num, den)
        if total > LARGEST:
            issues.add(f"the memory of all tiers adds up to {total:.2g} bytes, more than 2^60; expected less", path)
            break
        found.append((size, num, den))
    return found


def unavailable_windows(spec: Spec, index: DeviceIndex, scales: Scales, issues: Issues) -> Unavailability | None:
    """Return when devices are unavailable; None if all always are available."""
    stated = [key for key, device in spec.devices.items() if device.unavailable]
    if stated and any("period" in level for level in spec.objective):
        path = ("devices", stated[0], "unavailable")
        issues.add("devices that are unavailable for a time are not supported with the objective period", path)
    windows = {key: _windows(key, spec.devices[key], scales, issues) for key in stated}
    found = [windows.get(device.pool, []) for device in index.devices]
    return None if len(issues) else build_unavailability(found)


def _windows(key: str, device: DeviceSpec, scales: Scales, issues: Issues) -> list[tuple[int, int]]:
    found = []
    for k, window in enumerate(device.unavailable):
        path = ("devices", key, "unavailable", k)
        begin = scales.ticks_rounded_down(window.begin, (*path, "from"))
        end = scales.ticks(window.end, (*path, "to"))
        if scales.sound and end <= begin and not issues.touch(*path):
            stated = issues.written((*path, "to")), issues.written((*path, "from"))
            issues.add(f"{stated[0]} is not after {stated[1]}; expected a later time", (*path, "to"))
        found.append((begin, end))
    return found
