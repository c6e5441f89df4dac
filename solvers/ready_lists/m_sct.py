"""m-SCT: Baechi's memory-constrained small communication times, earliest task first with favourite children.

B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta: Baechi: Fast device placement of machine
learning graphs. ACM Symposium on Cloud Computing (SoCC), 2020, doi:10.1145/3419111.3421302, section 2.4; after
C. Hanen, A. Munier: An approximation algorithm for scheduling dependent tasks on m processors with small communication
delays. Discrete Applied Mathematics 108 (2001) 239-257, doi:10.1016/S0166-218X(00)00179-7.

A linear program names for each task at most one favourite child, and for each at most one favourite parent
(`placeopt.bounding.sct`). Then tasks are placed as in ETF, the earliest start of all pairs of a ready task and a device
first, except that

- a device that has run a task waits for its favourite child f, if f is ready and no other device could start it
  sooner; of pairs with equal starts that of a favourite child on its parent's device goes first;
- a waiting device takes an *urgent* task sooner than f, one whose data could be on any device by then;
- a device without the memory for a task (for all of its colocation group) leaves its queue.

The theorem of Hanen and Munier, on m equal devices with memory enough, links alike and transfers no longer than any
task: makespan <= (sum of durations) / m + (1 - 1/m) w, w the makespan of the favourites on devices without number. The
ratios that follow stand in `placeopt.bounding.sct.ratios`; `--json` has them.

Departures from the papers:

- Baechi says a device waits for the favourite child; its published code only while the child is ready and the device
  the one to start it soonest, as here. That code takes an urgent task first where both could start at once; here the
  favourite child does, for then nothing waits.
- Ties end on the index of the task, then of the device, with waiting devices after idle ones; of several urgent tasks
  a device takes the one whose data could be everywhere first. The papers say nothing.
- A task is ready once its producers are placed; an urgent task's data could be by then on every device that may run it.
- x of the program is rounded at 0.1, as Baechi says (its published code, and Hanen and Munier: 0.5, for which alone
  the ratio is proved), and rounding is repaired where another threshold gives a task two favourites. Which of the many
  optima is taken: `placeopt.bounding.sct.favourites`.
- Devices and links need not be alike: the program has means, and a device on which a task takes longer than on
  another counts as one that starts it that much later (`_pairs.detours`).
- Memory, groups, separation, release times, deadlines, ports and dead ends as in `m_etf`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from placeopt.bounding.sct import Favourites
from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options

from .._constructive.construction import Built, answered
from .._constructive.groups import Groups
from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.pairs import (
    PATIENCE,
    Pairs,
    StartSettings,
    alive,
    detours,
    enqueue,
    make_pairs,
    postpone,
    ready_built,
    refresh,
)
from .._constructive.placement_ops import append, arrival_on, open_to
from .._constructive.sct import CITATION, SctSettings, relaxed
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps

FAVOURITE, EARLIEST, URGENT = 0, 1, 2
"""Why a device would take a task next; of equal starts the first goes first."""


class Waiting(NamedTuple):
    """Who is whose favourite, and which devices wait.

    Attributes
    ----------
    child, parent
        (n,) favourites, -1 where there is none.
    last
        (m,) the last task of each device, -1 before the first.
    awaited
        (m,) the favourite child of that task, once it is ready; -1 otherwise.
    arrival
        (m, m) in row d: from when the task that device d waits for could start on each device, NEVER where it may not.
    urgent
        The ready tasks of each device, by the tick at which their data could be everywhere.
    """

    child: Int
    parent: Int
    last: Int
    awaited: Int
    arrival: Int
    urgent: Heaps


class MSctSettings(SctSettings, StartSettings):
    """Settings of the linear program, and of the schedule."""


class MSct:
    """The schedule of m-SCT; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "m-sct"
    info: ClassVar[Info] = Info(
        summary="Baechi's memory-constrained small communication times: ETF with favourite children (Jeon et al. 2020)",
        family="ready lists",
        guarantee="(4 + 3 rho) / (2 + rho) - (2 + 2 rho) / (m (2 + rho)), rho <= 1 the longest transfer over the "
        "shortest task: on like devices and links, without limits on memory, groups, separation, release times and "
        "ports, with threshold=0.5",
        complexity="O(n m log n + e m), and O(e) for each of some hundred rounds of the linear program",
        citation=CITATION,
    )
    settings_type: ClassVar[type[MSctSettings]] = MSctSettings

    def solve(self, problem: Problem, options: Options, settings: MSctSettings) -> Answer:
        """m-SCT's schedule, or FAILED where it finds no placement that fits into memory."""
        found, work = relaxed(problem, options, settings), detours(problem, settings)
        answer = answered(problem, lambda groups: favourites_first(problem, groups, found.favourites, work))
        text = found.text(problem)
        return replace(
            answer, stats=found.stats(problem), message=f"{answer.message}; {text}" if answer.message else text
        )


def favourites_first(problem: Problem, groups: Groups, favourites: Favourites, work: Int) -> Built:
    """The schedule of finite SCT for these favourites; `work` (n, m) as in `Pairs`."""
    n, m = problem.n_tasks, problem.n_devices
    line, pairs = make_timeline(problem, groups), make_pairs(problem, np.arange(n), work)
    waiting = Waiting(
        child=favourites.child,
        parent=favourites.parent,
        last=np.full(m, -1, dtype=np.int64),
        awaited=np.full(m, -1, dtype=np.int64),
        arrival=np.full((m, m), NEVER, dtype=np.int64),
        urgent=make_heaps(n, m),
    )
    placed = place_favourites.select(4 * work_steps(problem))(make_case(problem, groups), line, pairs, waiting)
    return ready_built(problem, line, pairs.missing, placed)


@kernel(enqueue, arrival_on, open_to, push, allocates=False)
def welcome(case: Case, line: Timeline, pairs: Pairs, waiting: Waiting, i: int) -> None:
    """Queue ready task i, also as one that may be urgent, and note if its favourite parent's device waits for it."""
    enqueue(case, line, pairs, i)
    g = case.group[i]
    home = line.home[g]
    if home >= 0:
        line.ready[home] = arrival_on(case, line, i, home)
    everywhere = 0
    for d in range(len(line.room)):
        if open_to(case, line, i, d):
            everywhere = max(everywhere, line.ready[d])
    p = waiting.parent[i]
    a = -1
    if p >= 0 and line.device[p] >= 0 and waiting.last[line.device[p]] == p:
        a = line.device[p]
        waiting.awaited[a] = i
        waiting.arrival[a, :] = NEVER
    for d in range(len(line.room)):
        if open_to(case, line, i, d):
            push(waiting.urgent, d, everywhere, pairs.rank[i])
            if a >= 0:
                waiting.arrival[a, d] = line.ready[d]


@kernel(alive, allocates=False)
def awaits(case: Case, line: Timeline, pairs: Pairs, waiting: Waiting, d: int) -> bool:
    """Whether device d waits for its last task's favourite child: it is ready, and no other device is sooner."""
    j = waiting.awaited[d]
    if j < 0:
        return False
    if not alive(case, line, j, d):
        waiting.awaited[d] = -1
        return False
    own = max(line.free[d], waiting.arrival[d, d]) + pairs.work[j, d]
    for b in range(len(line.free)):
        there = max(line.free[b], waiting.arrival[d, b]) + pairs.work[j, b]
        if there < own and alive(case, line, j, b):
            return False
    return True


@kernel(alive, pop, allocates=False)
def most_urgent(case: Case, line: Timeline, pairs: Pairs, waiting: Waiting, d: int) -> int:
    """The ready task whose data can be everywhere first of those that device d may take; -1 if there is none."""
    heap = waiting.urgent
    while heap.size[d] > 0:
        i = pairs.sequence[heap.item[0, d]]
        if alive(case, line, i, d):
            return int(i)
        pop(heap, d)
    return -1


@kernel(append, refresh, welcome, allocates=False)
def place_on(case: Case, line: Timeline, pairs: Pairs, waiting: Waiting, i: int, d: int, start: int) -> None:
    """Put task i at the end of device d from `start` on, and welcome the consumers that become ready."""
    append(case, line, i, d, start)
    waiting.last[d] = i
    waiting.awaited[d] = -1
    refresh(case, line, pairs, d)
    for k in range(case.out_start[i], case.out_start[i + 1]):
        j = case.out_target[k]
        pairs.missing[j] -= 1
        if pairs.missing[j] == 0:
            welcome(case, line, pairs, waiting, j)


@kernel(alive, awaits, most_urgent, refresh, arrival_on, postpone, pop, push, place_on, welcome, allocates=False)
def place_favourites(case: Case, line: Timeline, pairs: Pairs, waiting: Waiting) -> int:
    """Place the best pair of all until none is left; how many tasks were placed, n unless there is no room for some."""
    for i in range(len(pairs.missing)):
        if pairs.missing[i] == 0:
            welcome(case, line, pairs, waiting, i)
    m = len(line.free)
    placed = held = 0
    while True:
        best, task, least, why, rank = -1, -1, NEVER, URGENT, -1
        for d in range(m):
            if awaits(case, line, pairs, waiting, d):
                i = waiting.awaited[d]
                start, kind = max(line.free[d], waiting.arrival[d, d]), FAVOURITE
                other = most_urgent(case, line, pairs, waiting, d)
                if other >= 0:
                    sooner = max(line.free[d], waiting.urgent.key[0, d])
                    if sooner < start:
                        i, start, kind = other, sooner, URGENT
                worth = start + pairs.work[i, d]
            else:
                i = pairs.head[d]
                if i >= 0 and not alive(case, line, i, d):
                    refresh(case, line, pairs, d)
                    i = pairs.head[d]
                if i < 0:
                    continue
                worth, kind = pairs.worth[d], EARLIEST
            r = pairs.rank[i]
            if worth < least or (worth == least and (kind < why or (kind == why and r < rank))):
                best, task, least, why, rank = d, i, worth, kind, r
        if best < 0:
            return placed
        least -= pairs.work[task, best]
        if case.port:
            # What was booked meanwhile may hold the data up.
            arrival = arrival_on(case, line, task, best)
            if max(arrival, line.free[best]) > least and held == PATIENCE:
                least = max(arrival, line.free[best])
            elif max(arrival, line.free[best]) > least:
                held += 1
                if why == FAVOURITE:
                    waiting.arrival[best, best] = arrival
                elif why == URGENT:
                    pop(waiting.urgent, best)
                    push(waiting.urgent, best, arrival, pairs.rank[task])
                else:
                    postpone(case, line, pairs, best, arrival)
                continue
        place_on(case, line, pairs, waiting, task, best, least)
        placed, held = placed + 1, 0
