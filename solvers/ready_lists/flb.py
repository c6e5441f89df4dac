"""FLB: fast load balancing, the choice of ETF from two candidate pairs only.

A. Radulescu, A. J. C. van Gemund: FLB: Fast load balancing for distributed-memory machines. International Conference on
Parallel Processing (ICPP), pages 534-541, 1999, doi:10.1109/ICPP.1999.797442. Symbols: EP(t) the enabling processor of
a ready task, from which its last message comes; LMT(t) when that arrives elsewhere; EMT(t, p) when all data is on p;
PRT(p) when p becomes idle; EST the later of the last two. A task with LMT(t) >= PRT(EP(t)) is of EP type: nowhere does
it start earlier than there; any other starts earliest on the processor that becomes idle first. So of all pairs the one
that starts earliest is the EP-type task with the least EST on its EP, or the task with the least LMT among the others
on the processor idle first; of equals it is the latter, whose communication is hidden already.

Departures from the paper:

- The device that is idle first, and the EP-type task with the least EST, are found by a scan of all m devices rather
  than in heaps, for the former must be one that may take the task.
- Where devices and links are unlike, the two pairs are what is looked at all the same, with their exact starts, and a
  device on which a task takes longer than elsewhere counts as starting it that much later (`_pairs.detours`).
  LMT then is that of the slowest link from the device. A task that stopped being of EP type stays a candidate on its
  EP, which changes nothing where devices are alike.
- Ties go by bottom level (mean durations over feasible devices, mean transfers over pairs of distinct devices), then by
  index.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and the memory of the whole group is taken at once. A task whose group has its home waits for
  it as an EP-type one waits for its EP. A task whose EP may not take it, or no longer, is not of EP type; and "idle
  first" is the first of those that may take it.
- A task may not start before its release time, and its LMT is no earlier. Deadlines are not looked at; the message
  says if one is missed.
- Under port contention transfers take their turn at both ports when their consumer is placed (`_booking`), and pairs
  in the queue that this delays go back into it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import bottom_levels, comparable
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options

from .._constructive.candidate_devices import first_idle, last_message
from .._constructive.construction import Built, answered
from .._constructive.groups import Groups
from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.pairs import (
    Pairs,
    StartSettings,
    best_device,
    detours,
    enqueue_on,
    loosen,
    make_pairs,
    ready_built,
    refresh,
)
from .._constructive.placement_ops import append, arrival_on, may_take
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps


class Flb:
    """The schedule of FLB; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "flb"
    info: ClassVar[Info] = Info(
        summary="ETF's choice from two candidates: fast load balancing (Radulescu and van Gemund 1999)",
        family="ready lists",
        guarantee="as etf, under the same conditions: every task starts as early as any ready one could",
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
    settings_type: ClassVar[type[StartSettings]] = StartSettings

    def solve(self, problem: Problem, options: Options, settings: StartSettings) -> Answer:  # noqa: ARG002
        """FLB's schedule, or FAILED where it finds no placement that fits into memory."""
        work = detours(problem, settings)
        by_level = np.argsort(-comparable(bottom_levels(problem)), kind="stable")
        return answered(problem, lambda groups: two_pairs(problem, groups, by_level, work))


def two_pairs(problem: Problem, groups: Groups, sequence: Int, work: Int) -> Built:
    """The better of the two pairs placed again and again; ties by `sequence` (n,), `work` as in `Pairs`."""
    line = make_timeline(problem, groups)
    pairs = make_pairs(problem, sequence, work)
    enabled = make_heaps(problem.n_tasks, problem.n_devices)
    placed = place_by_type.select(work_steps(problem))(make_case(problem, groups), line, pairs, enabled)
    return ready_built(problem, line, pairs.missing, placed)


@kernel(arrival_on, may_take, last_message, push, enqueue_on, loosen, allocates=False)
def sort_in(case: Case, line: Timeline, pairs: Pairs, enabled: Heaps, i: int) -> None:
    """Queue ready task i for its home, or for its enabling device if it is of EP type, or among the others."""
    g = case.group[i]
    home = line.home[g]
    if home >= 0:
        enqueue_on(line, pairs, i, home, arrival_on(case, line, i, home))
        return
    last, d = last_message(case, line, i)
    pairs.last[i] = last
    if d >= 0 and last >= line.free[d] and may_take(case, line, g, d):
        enqueue_on(line, pairs, i, d, arrival_on(case, line, i, d))
        push(enabled, d, last, pairs.rank[i])
    else:
        loosen(line, pairs, i)


@kernel(append, arrival_on, first_idle, refresh, best_device, enqueue_on, pop, loosen, sort_in, allocates=False)
def place_by_type(case: Case, line: Timeline, pairs: Pairs, enabled: Heaps) -> int:
    """Place the better of the two pairs until none is left; how many tasks were placed.

    `enabled` has the tasks of EP type of each device by LMT, to find those that stop being so when it is busy longer.
    """
    loose = pairs.loose
    for i in range(len(pairs.missing)):
        if pairs.missing[i] == 0:
            sort_in(case, line, pairs, enabled, i)
    placed = 0
    while True:
        d = best_device(case, line, pairs)
        i, worth = -1, NEVER
        if d >= 0:
            i, worth = pairs.head[d], pairs.worth[d]
        if loose.size[0] > 0:
            j = pairs.sequence[loose.item[0, 0]]
            idle = line.home[case.group[j]]
            if line.device[j] < 0 and idle < 0:
                idle = first_idle(case, line, pairs.work, j)
                if idle >= 0:
                    there = max(arrival_on(case, line, j, idle), line.free[idle]) + pairs.work[j, idle]
                    if there <= worth:
                        i, d, worth = j, idle, there
            else:
                if line.device[j] < 0:
                    enqueue_on(line, pairs, j, idle, arrival_on(case, line, j, idle))
                idle = -1
            if idle < 0 or i == j:
                pop(loose, 0)
            if idle < 0:
                continue
        if d < 0:
            return placed
        append(case, line, i, d, worth - pairs.work[i, d])
        refresh(case, line, pairs, d)
        while enabled.size[d] > 0 and enabled.key[0, d] < line.free[d]:
            loosen(line, pairs, pairs.sequence[enabled.item[0, d]])
            pop(enabled, d)
        placed += 1
        for k in range(case.out_start[i], case.out_start[i + 1]):
            j = case.out_target[k]
            pairs.missing[j] -= 1
            if pairs.missing[j] == 0:
                sort_in(case, line, pairs, enabled, j)
