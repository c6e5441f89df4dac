"""Compile the memory tiers of devices."""

from __future__ import annotations

from fractions import Fraction

from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import Device, DeviceIndex
from placeopt.io.compiler.scales import Scales
from placeopt.io.spec import Spec
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED
from placeopt.model.ranges import LARGEST
from placeopt.model.tiers import Tiers, build_tiers

Rates = list[tuple[int, int, int]]
"""Bytes, num and den of each tier beyond the first: num ticks move den bytes."""


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
