"""Whether everything that gets added up fits into 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.io.compiler.edges import EdgeArrays
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.links import LinkArrays
from placeopt.io.compiler.scales import LARGEST
from placeopt.model.arrays import Int


def check_ranges(
    duration: Int,
    release: Int,
    amounts: Int,
    edges: EdgeArrays,
    links: LinkArrays,
    power: Sequence[tuple[int, int]],
    issues: Issues,
) -> None:
    """Report the first total out of range: of times, of memory, of payloads, of energy.

    `duration` (n, m) ticks, 0 where not feasible; `release` (n,) ticks; `amounts` (n,) bytes of each task; `power`
    (num, den) of each device.
    """

    def check(what: str, total: float, unit: str, hint: str, section: str) -> None:
        if total > LARGEST and not len(issues):
            issues.add(f"{what} to {total:.2g} {unit}, more than 2^60; {hint}", (section,))

    moved = _total(edges.payload)
    slowest = float((links.byte_ticks_num / links.byte_ticks_den).max(initial=0))
    transfers = moved * slowest + len(edges.payload) * float(1 + links.latency.max(initial=0))
    # One thing after another from the last release on: no schedule that never waits in vain takes longer.
    last = float(release.max(initial=0))
    times = last + _total(duration.max(axis=1, initial=0)) + transfers
    what = "the last release time, all durations and transfers" if last else "all durations and transfers"
    check(f"{what} add up", times, "ticks", "use a coarser resolution", "resolution")
    check("the memory of all tasks adds up", _total(amounts), "bytes", "expected less", "tasks")
    check("all payloads add up", moved, "bytes", "expected less", "tasks")

    hungriest = max((num / den for num, den in power), default=0)
    dearest = float((links.byte_energy_num / links.byte_energy_den).max(initial=0))
    energy = _total(duration.max(axis=1, initial=0)) * hungriest + len(duration) + moved * dearest + len(edges.payload)
    check("the energy of all tasks and transfers adds up", energy, "nJ", "expected less", "devices")


def _total(amounts: Int) -> float:
    return float(amounts.astype(np.float64).sum())
