"""m-SCT: Baechi's memory-constrained small communication times, earliest task first with favourite children.

B. Jeon et al. (Baechi), SoCC 2020, doi:10.1145/3419111.3421302, section 2.4; after C. Hanen, A. Munier, Discrete
Applied Mathematics 2001, doi:10.1016/S0166-218X(00)00179-7.

A linear program chooses at most one favourite child and at most one favourite parent for each task
(`placeopt.bounding.sct`). Then tasks are placed as in ETF, by the earliest start of all pairs of a ready task and a
device, with these exceptions:

- A device that has run a task waits for its favourite child f if f is ready and could not start sooner on another
  device. Of pairs with equal starts, that of a favourite child on its parent's device comes first.
- A waiting device takes an *urgent* task before f: a task whose data could be on any device by then. With
  `urgent_first` it does so also if f could start at the same time.
- A device without the memory for a task's colocation group leaves the task's queue.

The theorem of Hanen and Munier, on m identical devices with enough memory, identical links and transfers no longer than
any task: makespan <= (sum of durations) / m + (1 - 1/m) w, where w is the makespan of the favourites on unlimited
devices. The ratios that follow are in `placeopt.bounding.sct.ratios`; `--json` reports them.

`benchmarks/baechi_tables.py` measures these rules, the ties and the favourites.

With `released`, every decision is that of the released code (https://github.com/beomyeol/baechi) for the same
favourites, see `_clock`, unless ports contend or memory is scarce.

Departures from the papers, and by default from the released code:

- Baechi says that a device waits for the favourite child. The code waits only while this device could start it soonest,
  as here, and once all producers of the child have ended; here once they are placed.
- In the code a task is urgent once it could start on every device, after the task that runs there. Here only its data
  counts, and only the devices that may run it.
- The papers do not define ties. Here they end on the index of the task, then of the device, with waiting devices after
  idle ones. In the code only tasks compare, breadth first (the setting `ties`), so a favourite child may go to an idle
  device that could start it at the same time. Of several urgent tasks a device takes the one that could start first
  there; in the code none is urgent before it can start.
- x of the program is rounded at 0.1, as Baechi says and its code does by default. Hanen and Munier round at 0.5, and
  the ratio is proved only for that. Rounding is repaired if another threshold gives a task two favourites. The program
  has many optima; `placeopt.bounding.sct.favourites` describes which one is used. The paper takes the one that an
  interior-point method finds.
- A full device is excluded from all further tasks in the paper, and in the proof of its theorem 1: the setting
  `closing`. By default, as in the code, it stays open to groups that still fit. `m_etf` describes the code's memory.
- On heterogeneous devices and links the program uses means. A start counts as later by the ticks that the task takes
  longer there than on its fastest device (`_pairs.detours`).
- A pair also leaves the queue if its device may not run the task or holds a task that must be separate. At a dead end
  Baechi fails; here groups are evicted to make room.
- Under port contention a device sends and receives at the same time, and a transfer occupies both ports at once. In the
  code each device has one channel for both directions (`contention: half_duplex`), and a transfer may occupy the
  receiver's later than the sender's. Queued pairs are delayed by later transfers, see `_pairs`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placeopt.bounding.sct import Favourites
from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options

from .._constructive.adjusting import RoomSettings, construct_adjusted
from .._constructive.construction import Build, Constructive, PartialSchedule, as_answer, run_loop
from .._constructive.groups import Groups
from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.placement_ops import append, can_run, contends, ready_time
from .._constructive.ready_list import first_unplaced
from .._constructive.sct import CITATION, SctSettings, relaxed
from .._constructive.timeline import NEVER, Instance, Timeline, work_steps
from ._clock import schedule_by_clock
from ._pairs import PATIENCE, Pairs, TieSettings, alive, detours, enqueue, make_pairs, postpone, refresh, tie_order

FAVOURITE, EARLIEST, URGENT = 0, 1, 2
"""Reasons for a device to take a task next, in the order that breaks ties between equal starts."""


class Waiting(NamedTuple):
    """The favourites, and the devices that wait."""

    child: Int
    parent: Int
    """(n,) favourites, -1 if there is none."""
    last: Int
    """(m,) the last task of each device, -1 before the first."""
    awaited: Int
    """(m,) the favourite child of that task once it is ready; -1 otherwise."""
    arrival: Int
    """(m, m) in row d: the tick at which the data of the task that device d waits for is on each device; NEVER if the
    task may not run there."""
    urgent: Heaps
    """The ready tasks of each device, by the tick at which their data could be on every device."""
    due: Heaps
    """Those for which that tick has come when the device is free, by rank."""
    urgent_first: bool
    """As in `MSctSettings`."""


class MSctSettings(SctSettings, TieSettings, RoomSettings):
    """Settings of the linear program, and of the schedule."""

    urgent_first: bool = True
    """Whether a waiting device takes an urgent task also if its favourite child could start at the same time, as in
    Baechi's released code. false: only if the urgent task starts sooner."""
    released: bool = False
    """Whether every decision is that of Baechi's released code: a clock goes from event to event, and a task competes
    when its producers have ended. Ties are then topological; `detour` and `urgent_first` have no effect."""


class MSct(Constructive):
    name = "m-sct"
    info = Info(
        summary="Baechi's memory-constrained small communication times: ETF with favourite children (Jeon et al. 2020)",
        family="ready lists",
        tiers=True,
        guarantee="(4 + 3 rho) / (2 + rho) - (2 + 2 rho) / (m (2 + rho)), rho <= 1 the longest transfer over the "
        "shortest task: on identical devices and links, without limits on memory, groups, separation, release times "
        "and ports, with threshold=0.5 and released=false",
        complexity="O(n m log n + e m), and O(e) for each of a few hundred rounds of the linear program",
        citation=CITATION,
    )
    settings_type = MSctSettings

    def solve(self, problem: Problem, options: Options, settings: MSctSettings) -> Answer:
        """Return the schedule, and the statistics of the linear program."""
        # Groups are no part of the program, so the favourites are the same without colocation.
        found = relaxed(problem, options, settings)
        favourites, closing = found.favourites, settings.closing
        work, sequence = detours(problem, settings), tie_order(problem, settings)

        def build_for(case: Problem) -> Build:
            if settings.released:
                return lambda groups: schedule_by_clock(case, groups, favourites.child, case.order, closing)
            return lambda groups: favourites_first(
                case, groups, favourites, sequence, work, urgent_first=settings.urgent_first, closing=closing
            )

        answer = as_answer(problem, construct_adjusted(problem, build_for, settings.adjust, settings.reserve))
        text = found.text(problem, proved=not settings.released)
        return replace(
            answer, stats=found.stats(problem), message=f"{answer.message}; {text}" if answer.message else text
        )


def favourites_first(
    problem: Problem,
    groups: Groups,
    favourites: Favourites,
    sequence: Int,
    work: Int,
    *,
    urgent_first: bool = True,
    closing: bool = False,
) -> PartialSchedule:
    """Schedule with given favourites on the devices there are; `sequence` (n,) and `work` (n, m) as in `make_pairs`."""
    n, m = problem.n_tasks, problem.n_devices
    pairs = make_pairs(problem, sequence, work)
    last, awaited = np.full(m, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
    arrival = np.full((m, m), NEVER, dtype=np.int64)
    urgent, due = make_heaps(n, m), make_heaps(n, m)
    waiting = Waiting(favourites.child, favourites.parent, last, awaited, arrival, urgent, due, urgent_first)
    return run_loop(problem, groups, place_favourites, pairs, waiting, steps=4 * work_steps(problem), closing=closing)


@kernel(enqueue, ready_time, contends, push, allocates=False)
def add_ready(instance: Instance, line: Timeline, pairs: Pairs, waiting: Waiting, i: int) -> None:
    """Queue ready task i, also as a candidate for urgency, and note if its favourite parent's device waits for it."""
    enqueue(instance, line, pairs, i)
    g = instance.group[i]
    home = line.home[g]
    if home >= 0:
        line.ready[home] = ready_time(instance, line, i, home)
    everywhere = 0
    for d in range(len(line.room)):
        if contends(instance, line, i, d):
            everywhere = max(everywhere, line.ready[d])
    p = waiting.parent[i]
    a = -1
    if p >= 0 and line.device[p] >= 0 and waiting.last[line.device[p]] == p:
        a = line.device[p]
        waiting.awaited[a] = i
        waiting.arrival[a, :] = NEVER
    for d in range(len(line.room)):
        if contends(instance, line, i, d):
            push(waiting.urgent, d, everywhere, pairs.rank[i])
            if a >= 0:
                waiting.arrival[a, d] = line.ready[d]


@kernel(alive, allocates=False)
def awaits(instance: Instance, line: Timeline, pairs: Pairs, waiting: Waiting, d: int) -> bool:
    """Return whether device d waits for its last task's favourite child: it is ready and starts nowhere sooner."""
    j = waiting.awaited[d]
    if j < 0:
        return False
    if not alive(instance, line, j, d):
        waiting.awaited[d] = -1
        return False
    own = max(line.free[d], waiting.arrival[d, d]) + pairs.work[j, d]
    for b in range(len(line.free)):
        there = max(line.free[b], waiting.arrival[d, b]) + pairs.work[j, b]
        if there < own and alive(instance, line, j, b):
            return False
    return True


@kernel(alive, push, pop, allocates=False)
def most_urgent(instance: Instance, line: Timeline, pairs: Pairs, waiting: Waiting, d: int) -> tuple[int, int]:
    """Return the urgent task that device d can start first, and the tick; -1 if there is none."""
    urgent, due = waiting.urgent, waiting.due
    while urgent.size[d] > 0:
        r = urgent.item[0, d]
        if alive(instance, line, pairs.sequence[r], d):
            if urgent.key[0, d] > line.free[d]:
                break
            push(due, d, 0, r)
        pop(urgent, d)
    while due.size[d] > 0:
        i = pairs.sequence[due.item[0, d]]
        if alive(instance, line, i, d):
            return int(i), int(line.free[d])
        pop(due, d)
    if urgent.size[d] > 0:
        return int(pairs.sequence[urgent.item[0, d]]), int(urgent.key[0, d])
    return -1, NEVER


@kernel(append, refresh, add_ready, allocates=False)
def place_on(instance: Instance, line: Timeline, pairs: Pairs, waiting: Waiting, i: int, d: int, start: int) -> None:
    """Append task i to device d at `start`, and queue the consumers that become ready."""
    append(instance, line, i, d, start)
    waiting.last[d] = i
    waiting.awaited[d] = -1
    refresh(instance, line, pairs, d)
    for k in range(instance.out_start[i], instance.out_start[i + 1]):
        j = instance.out_target[k]
        pairs.missing[j] -= 1
        if pairs.missing[j] == 0:
            add_ready(instance, line, pairs, waiting, j)


@kernel(
    alive, awaits, can_run, first_unplaced, most_urgent, refresh, ready_time, postpone, pop, push, place_on, add_ready,
    allocates=False,
)  # fmt: skip
def place_favourites(instance: Instance, line: Timeline, pairs: Pairs, waiting: Waiting) -> int:
    """Place the best pair until none is left; return DONE or the first ready task that no device can take."""
    for i in range(len(pairs.missing)):
        if pairs.missing[i] == 0:
            add_ready(instance, line, pairs, waiting, i)
    m = len(line.free)
    held = 0
    while True:
        best, task, least, why, rank = -1, -1, NEVER, URGENT, -1
        for d in range(m):
            if awaits(instance, line, pairs, waiting, d):
                i = waiting.awaited[d]
                start, kind = max(line.free[d], waiting.arrival[d, d]), FAVOURITE
                other, sooner = most_urgent(instance, line, pairs, waiting, d)
                if sooner < start or (waiting.urgent_first and sooner == start and other != i):
                    i, start, kind = other, sooner, URGENT
                worth = start + pairs.work[i, d]
            else:
                i = pairs.head[d]
                if i >= 0 and not alive(instance, line, i, d):
                    refresh(instance, line, pairs, d)
                    i = pairs.head[d]
                if i < 0:
                    continue
                worth, kind = pairs.worth[d], EARLIEST
            r = pairs.rank[i]
            if worth < least or (worth == least and (kind < why or (kind == why and r < rank))):
                best, task, least, why, rank = d, i, worth, kind, r
        if best < 0:
            return first_unplaced(line, pairs.missing)
        least -= pairs.work[task, best]
        if instance.port:
            # Transfers booked since may delay the data.
            arrival = ready_time(instance, line, task, best)
            if max(arrival, line.free[best]) > least and held == PATIENCE:
                least = max(arrival, line.free[best])
            elif max(arrival, line.free[best]) > least:
                held += 1
                if why == FAVOURITE:
                    waiting.arrival[best, best] = arrival
                elif why == URGENT:
                    pop(waiting.due if waiting.due.size[best] > 0 else waiting.urgent, best)
                    push(waiting.urgent, best, arrival, pairs.rank[task])
                else:
                    postpone(instance, line, pairs, best, arrival)
                continue
        held = 0
        if instance.closing and not can_run(instance, line, task, best):
            line.closed[best] = True
        else:
            place_on(instance, line, pairs, waiting, task, best, least)
