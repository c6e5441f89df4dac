"""Memory tiers: slower memory after the first memory of a device, such as an SSD and a hard disk after its RAM.

Under the memory model `sum`, the bytes of a device beyond its first tier lie in the next ones in their order, the
fastest first. In each run the device moves these bytes once, before its first task:

    swap time = sum over tiers k of ceil(b[k] num[k] / den[k])

for b[k] bytes in tier k, whose bandwidth moves den[k] bytes in num[k] ticks. Until then the device starts no task.
Nothing else changes: its ports are free, other devices run, and the makespan is the end of the last task.

The idea is from A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function
maximization, 2017, section 5: "these regions can correspond to available memory in RAM, SSD, and HDD, and the variance
corresponds to swapping cost". The paper states no execution model. This one is that of data which every run reads once,
such as weights that do not fit into the RAM. It is not a model of paging: the bytes of single tasks have no place of
their own, a device does not compute while it swaps, and writing back counts only if the bandwidth includes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Int, freeze, whole_numbers
from placeopt.model.rules import Rule

ENDLESS = int(np.iinfo(np.int64).max)
"""End of a tier without a limit: the capacity of a device without one."""


@dataclass(frozen=True, slots=True, eq=False)
class Tiers(Rule):
    """The memory tiers of m devices, k at most; devices with fewer have empty ones at the end.

    Attributes
    ----------
    end
        (m, k) bytes of each tier and all tiers before it. The last is the capacity of the device.
    byte_ticks_num, byte_ticks_den
        (m, k): num ticks move den bytes of the tier; num is 0 for the first tier and for empty ones.
    """

    end: Int
    byte_ticks_num: Int
    byte_ticks_den: Int

    @property
    def capacity(self) -> Int:
        """(m,) bytes of all tiers; ENDLESS without a limit."""
        return self.end[:, -1]

    def hashed(self, field: str) -> dict[str, Any]:
        """What the fingerprint of a problem contains of them."""
        return {f"tier_{name}": value for name, value in self.parts().items()}

    def counts(self) -> dict[str, int]:
        """The number of devices."""
        return {"devices": len(self.end)}

    def kept(self, device: Int, start: Int, end: Int) -> bool:
        """True: `placeopt.model.memory.earliest_starts` counts swap times, which depend on what devices hold."""
        return True

    def part(self, tasks: Int, devices: Int) -> Tiers | None:
        """The tiers of some devices, by their indices; None if each has one only."""
        further = [self.further(d) for d in devices.tolist()]
        return build_tiers(self.end[devices, 0], further) if any(further) else None

    def further(self, d: int) -> list[tuple[int, int, int]]:
        """Bytes (ENDLESS without a limit), num and den of each tier of a device beyond its first."""
        found = []
        rates = zip(self.byte_ticks_num[d, 1:].tolist(), self.byte_ticks_den[d, 1:].tolist(), strict=True)
        for (before, end), (num, den) in zip(pairwise(self.end[d].tolist()), rates, strict=True):
            if end > before:
                found.append((ENDLESS if end == ENDLESS else end - before, num, den))
        return found

    def swap_time(self, d: int, used: int) -> int:
        """Ticks for which a device with `used` bytes swaps; those beyond its last tier do not count."""
        ticks = 0
        for k in range(1, self.end.shape[1]):
            before = self.end[d, k - 1]
            if used <= before:
                break
            inside, num, den = min(used, self.end[d, k]) - before, self.byte_ticks_num[d, k], self.byte_ticks_den[d, k]
            whole = inside // den
            ticks += whole * num - (-((inside - whole * den) * num) // den)
        return ticks

    def sizes(self, d: int) -> list[int | None]:
        """Bytes of each tier of a device; None without a limit."""
        sizes = [int(self.end[d, 0]), *(size for size, _, _ in self.further(d))]
        return [None if size == ENDLESS else size for size in sizes]

    def columns(self, d: int) -> tuple[bytes, ...]:
        """The values of one device, to compare it with others."""
        return tuple(value[d].tobytes() for value in self.parts().values())


def build_tiers(first: Any, further: Sequence[Sequence[tuple[int, int, int]]]) -> Tiers:
    """Build the tiers of m devices; the arrays are read-only.

    Parameters
    ----------
    first
        (m,) bytes of the first tier of each device.
    further
        For each device (bytes, num, den) of each further tier, the fastest first: num ticks move den bytes. The last
        tier may be ENDLESS.

    Raises
    ------
    UsageError
        If an entry is not a whole number or out of range, a tier is faster than the one before it, or a tier follows
        one without a limit.
    """
    m = len(further)
    first = whole_numbers("first", first, (m,), "devices")
    most = max(map(len, further), default=0)
    end = np.repeat(first[:, None], most + 1, axis=1)
    num, den = np.zeros_like(end), np.ones_like(end)
    for d, tiers in enumerate(further):
        for k, tier in enumerate(tiers, start=1):
            where, before = f"tiers[{d}][{k - 1}]", int(end[d, k - 1])
            size, ticks, moved = whole_numbers(where, tier, (3,), "bytes, num, den").tolist()
            if ticks < 1 or moved < 1 or ticks > (2**62 - 1) // moved:
                rate = f"{ticks} ticks move {moved} bytes"
                raise UsageError(f"{where}: {rate}; expected numbers of at least 1 with a product below 2^62")
            common = math.gcd(ticks, moved)
            num[d, k], den[d, k] = ticks // common, moved // common
            if before == ENDLESS:
                raise UsageError(f"{where} follows memory without a limit, which is never full; expected no such tier")
            if int(num[d, k]) * int(den[d, k - 1]) < int(num[d, k - 1]) * int(den[d, k]):
                raise UsageError(f"{where} is faster than the tier before it; expected the fastest first")
            if size != ENDLESS and before + size >= ENDLESS:
                raise UsageError(f"{where}: {before} and {size} bytes are 2^63 or more; expected ENDLESS, or less")
            end[d, k:] = ENDLESS if size == ENDLESS else before + size
    # An empty tier holds nothing: it counts as absent, so that equal memories have equal arrays.
    empty = np.zeros_like(end, dtype=np.bool_)
    empty[:, 1:] = end[:, 1:] == end[:, :-1]
    if empty.any():
        kept = [[tier for k, tier in enumerate(tiers, start=1) if not empty[d, k]] for d, tiers in enumerate(further)]
        if sum(map(len, kept)) < sum(map(len, further)):
            return build_tiers(first, kept)
    freeze(end, num, den)
    return Tiers(end, num, den)
