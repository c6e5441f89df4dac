"""Devices by name, pool and type: expansion of counts, and what a reference in a spec stands for."""

from __future__ import annotations

from dataclasses import dataclass

from placeopt.errors import listing, suggestion
from placeopt.spec import ANY, DeviceSpec


@dataclass(frozen=True, slots=True)
class Device:
    """One device after the expansion of counts."""

    name: str
    pool: str
    """Its key in the document: `core` for core0 and core1."""
    type: str
    spec: DeviceSpec


class DeviceIndex:
    """All devices, and the indices that a name, a pool or a type stands for."""

    def __init__(self, specs: dict[str, DeviceSpec]) -> None:
        self.devices: list[Device] = []
        self.duplicates: list[tuple[str, str]] = []
        """(pool, name) of devices whose name was taken."""
        self._names: dict[str, list[int]] = {}
        self._pools: dict[str, list[int]] = {}
        self._types: dict[str, list[int]] = {}
        for pool, spec in specs.items():
            names = [pool] if spec.count is None else [f"{pool}{k}" for k in range(spec.count)]
            for name in names:
                if name in self._names:
                    self.duplicates.append((pool, name))
                    continue
                place = len(self.devices)
                self.devices.append(Device(name, pool, spec.type or pool, spec))
                self._names[name] = [place]
                self._pools.setdefault(pool, []).append(place)
                self._types.setdefault(spec.type or pool, []).append(place)
        self._everything = list(range(len(self.devices)))

    def __len__(self) -> int:
        return len(self.devices)

    def find(self, reference: str) -> list[int] | None:
        """Every device with that name, pool or type, in order; None if there is none."""
        found = {place for level in self.levels(reference) for place in level}
        return sorted(found) or None

    def levels(self, reference: str) -> tuple[list[int], list[int], list[int], list[int]]:
        """What a reference stands for, least specific first: everything, as a type, as a pool, as a name."""
        return (
            self._everything if reference == ANY else [],
            self._types.get(reference, []),
            self._pools.get(reference, []),
            self._names.get(reference, []),
        )

    def unknown(self, reference: str) -> str:
        """The message for a reference that stands for nothing."""
        known = list(dict.fromkeys([*self._names, *self._pools, *self._types]))
        near = suggestion(reference, known)
        return f'unknown device "{reference}"{near or "; known are " + listing(known)}'
