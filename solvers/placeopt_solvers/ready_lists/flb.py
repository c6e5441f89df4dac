"""FLB: fast load balancing, the choice of ETF from two candidate pairs only.

A. Radulescu, A. J. C. van Gemund, International Conference on Parallel Processing (ICPP) 1999,
doi:10.1109/ICPP.1999.797442. Symbols: EP(t) the enabling processor of a ready task, from which its last message comes;
LMT(t) the arrival of that message on other processors; EMT(t, p) the arrival of all data on p; PRT(p) the time at which
p becomes idle; EST the later of the last two.

A task with LMT(t) >= PRT(EP(t)) is of EP type: it starts nowhere earlier than there. Any other task starts earliest on
the processor that becomes idle first. So the pair that starts earliest is one of two: the EP-type task with the least
EST on its EP, or the non-EP-type task with the least LMT on the processor that is idle first. Ties go to the latter,
whose communication is hidden already.

Departures from the paper:

- The device that is idle first, and the EP-type task with the least EST, are found by a scan of all m devices, not in
  heaps, because the device must be able to take the task.
- On heterogeneous devices and links the same two pairs are compared, by their exact starts. A start counts as later by
  the ticks that the task takes longer there than on its fastest device (`_pairs.detours`). LMT is that of the slowest
  link from the device. A task that is no longer of EP type stays a candidate on its EP; on identical devices this
  changes nothing.
- Ties go by bottom level in mean times, then by index.
- A task whose group has a home waits for that device as an EP-type task waits for its EP. A task whose EP cannot take
  it is not of EP type. The device that is idle first is one that can take the task.
- LMT is never before the release time.
- Under port contention queued pairs are delayed by later transfers, see `_pairs`.
"""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import bottom_levels, comparable
from placeopt.model.problem import Problem
from placeopt.solver import Info

from .._constructive.construction import Build, Constructive, PartialSchedule, run_loop
from .._constructive.groups import Groups
from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.placement_ops import append, can_host, ready_time
from .._constructive.ready_list import first_unplaced
from .._constructive.timeline import NEVER, Instance, Timeline
from ._pairs import (
    Pairs,
    StartSettings,
    best_device,
    detours,
    enqueue_on,
    first_idle,
    last_message,
    loosen,
    make_pairs,
    refresh,
)  # fmt: skip


class Flb(Constructive):
    name = "flb"
    info = Info(
        summary="ETF's choice from two candidates: fast load balancing (Radulescu and van Gemund 1999)",
        family="ready lists",
        tiers=True,
        guarantee="as etf, under the same conditions: every task starts as early as any ready task could",
        complexity="O(n (log n + m) + e k), k kinds of links from a device",
        citation="""@inproceedings{radulescu1999flb,
  author    = {Andrei Radulescu and Arjan J. C. van Gemund},
  title     = {{FLB}: Fast load balancing for distributed-memory machines},
  booktitle = {Proceedings of the International Conference on Parallel Processing (ICPP)},
  pages     = {534--541},
  year      = {1999},
  doi       = {10.1109/ICPP.1999.797442}
}""",
    )
    settings_type = StartSettings

    def builder(self, problem: Problem, settings: StartSettings) -> Build:
        work = detours(problem, settings)
        by_level = np.argsort(-comparable(bottom_levels(problem)), kind="stable")
        return lambda groups: schedule_two_pairs(problem, groups, by_level, work)


def schedule_two_pairs(problem: Problem, groups: Groups, sequence: Int, work: Int) -> PartialSchedule:
    """Schedule the better of the two pairs until none is left; ties go by `sequence` (n,), `work` is as in `Pairs`."""
    enabled = make_heaps(problem.n_tasks, problem.n_devices)
    # A task that lost its EP type is queued again if its group then gets a home, which may be the same device.
    return run_loop(problem, groups, place_by_type, make_pairs(problem, sequence, work, times=2), enabled)


@kernel(ready_time, can_host, last_message, push, enqueue_on, loosen, allocates=False)
def sort_in(instance: Instance, line: Timeline, pairs: Pairs, enabled: Heaps, i: int) -> None:
    """Queue ready task i for its home, for its enabling device if it is of EP type, or in `loose`."""
    g = instance.group[i]
    home = line.home[g]
    if home >= 0:
        enqueue_on(instance, line, pairs, i, home, ready_time(instance, line, i, home))
        return
    last, d = last_message(instance, line, i)
    pairs.last[i] = last
    if d >= 0 and last >= line.free[d] and can_host(instance, line, g, d):
        enqueue_on(instance, line, pairs, i, d, ready_time(instance, line, i, d))
        push(enabled, d, last, pairs.rank[i])
    else:
        loosen(line, pairs, i)


@kernel(
    append, ready_time, first_idle, first_unplaced, refresh, best_device, enqueue_on, pop, loosen, sort_in,
    allocates=False,
)  # fmt: skip
def place_by_type(instance: Instance, line: Timeline, pairs: Pairs, enabled: Heaps) -> int:
    """Place the better of the two pairs until none is left; return DONE or the first ready task without a device.

    `enabled` holds the EP-type tasks of each device by LMT, to find those that lose that type as it stays busy.
    """
    loose = pairs.loose
    for i in range(len(pairs.missing)):
        if pairs.missing[i] == 0:
            sort_in(instance, line, pairs, enabled, i)
    while True:
        d = best_device(instance, line, pairs)
        i, worth = -1, NEVER
        if d >= 0:
            i, worth = pairs.head[d], pairs.worth[d]
        if loose.size[0] > 0:
            j = pairs.sequence[loose.item[0, 0]]
            idle = line.home[instance.group[j]]
            if line.device[j] < 0 and idle < 0:
                idle = first_idle(instance, line, pairs.work, j)
                if idle >= 0:
                    there = max(ready_time(instance, line, j, idle), line.free[idle]) + pairs.work[j, idle]
                    if there <= worth:
                        i, d, worth = j, idle, there
            else:
                if line.device[j] < 0:
                    enqueue_on(instance, line, pairs, j, idle, ready_time(instance, line, j, idle))
                idle = -1
            if idle < 0 or i == j:
                pop(loose, 0)
            if idle < 0:
                continue
        if d < 0:
            return first_unplaced(line, pairs.missing)
        append(instance, line, i, d, worth - pairs.work[i, d])
        refresh(instance, line, pairs, d)
        while enabled.size[d] > 0 and enabled.key[0, d] < line.free[d]:
            loosen(line, pairs, pairs.sequence[enabled.item[0, d]])
            pop(enabled, d)
        for k in range(instance.out_start[i], instance.out_start[i + 1]):
            j = instance.out_target[k]
            pairs.missing[j] -= 1
            if pairs.missing[j] == 0:
                sort_in(instance, line, pairs, enabled, j)
