"""The two devices that low-cost list scheduling looks at: the one that is idle first, and a task's enabling device.

A. Radulescu, A. J. C. van Gemund: On the complexity of list scheduling algorithms for distributed-memory systems. ACM
International Conference on Supercomputing (ICS), 1999, doi:10.1145/305138.305162: on like devices a ready task starts
earliest either on its enabling processor, from which its last message comes, or on the one that becomes idle first.
"""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import transfer_ticks

from .placement_ops import may_take
from .timeline import NEVER, Case, Timeline


@kernel(transfer_ticks, allocates=False)
def last_message(case: Case, line: Timeline, i: int) -> tuple[int, int]:
    """LMT and EP of ready task i: when its last message arrives wherever it goes, and the device from which it comes.

    Where links differ, a message takes as long as on the slowest link from its device. Never before the release time;
    the device is -1 without producers. Of messages that arrive together the first producer's counts.
    """
    last, enabling = -1, -1
    for k in range(case.in_start[i], case.in_start[i + 1]):
        u = case.in_source[k]
        payload = case.in_payload[k]
        a = line.device[u]
        arrival = line.end[u]
        for c in range(1, case.kinds[a]):
            there = line.end[u] + transfer_ticks(payload, case.latency[a, c], case.num[a, c], case.den[a, c])
            if there > arrival:
                arrival = there
        if arrival > last:
            last, enabling = arrival, a
    return max(last, case.release[i]), enabling


@kernel(may_take, allocates=False)
def first_idle(case: Case, line: Timeline, detour: Int, i: int) -> int:
    """The device that becomes idle first of those that task i, whose group has no home, may go to; -1 if there is none.

    One on which the task takes longer than elsewhere counts as idle that much later: `detour` (n, m), see `_pairs`.
    """
    best, idle = -1, NEVER
    for d in range(len(line.free)):
        if line.free[d] + detour[i, d] < idle and may_take(case, line, case.group[i], d):
            best, idle = d, line.free[d] + detour[i, d]
    return best
