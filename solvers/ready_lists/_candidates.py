"""The two candidate devices of low-cost list scheduling: the one that is idle first, and a task's enabling device.

A. Radulescu, A. J. C. van Gemund: On the complexity of list scheduling algorithms for distributed-memory systems. ACM
International Conference on Supercomputing (ICS), 1999, doi:10.1145/305138.305162: on identical devices a ready task
starts earliest either on its enabling processor, from which its last message comes, or on the one that becomes idle
first.
"""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .._constructive.placement_ops import can_host, link_ticks
from .._constructive.timeline import NEVER, Instance, Timeline


@kernel(link_ticks, allocates=False)
def last_message(instance: Instance, line: Timeline, i: int) -> tuple[int, int]:
    """Return LMT and EP of ready task i: the arrival of its last message on any device, and the device it comes from.

    On unlike links a message counts with the slowest link from its device. LMT is never before the release time. EP is
    -1 without producers; of messages that arrive together that of the first producer counts.
    """
    last, enabling = -1, -1
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        u = instance.in_source[k]
        a = line.device[u]
        arrival = line.end[u]
        for c in range(1, instance.kinds[a]):
            arrival = max(arrival, line.end[u] + link_ticks(instance, instance.in_payload[k], a, c))
        if arrival > last:
            last, enabling = arrival, a
    return max(last, instance.release[i]), enabling


@kernel(can_host, allocates=False)
def first_idle(instance: Instance, line: Timeline, detour: Int, i: int) -> int:
    """Return the device that becomes idle first of those that can take task i, whose group has no home; -1 for none.

    A device counts as idle later by the task's `detour` (n, m) there, see `_pairs.detours`.
    """
    best, idle = -1, NEVER
    for d in range(len(line.free)):
        if line.free[d] + detour[i, d] < idle and can_host(instance, line, instance.group[i], d):
            best, idle = d, line.free[d] + detour[i, d]
    return best
