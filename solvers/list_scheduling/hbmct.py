"""HBMCT: hybrid of ranks and balanced minimum completion time, groups of independent tasks balanced over the devices.

R. Sakellariou, H. Zhao: A hybrid heuristic for DAG scheduling on heterogeneous systems. Heterogeneous Computing
Workshop at IPDPS 2004, doi:10.1109/IPDPS.2004.1303065. Tasks are ranked as in HEFT, and in that order cut into groups:
a task that needs one of the group before it opens the next. The groups are scheduled one after the other, each by BMCT:

1. Each task goes to the device where it takes least time.
2. Each device runs its tasks of the group in the order in which their data is there, after all of the groups before.
3. The device that is done last gives up a task if it is done earlier without, to the device that is then done first of
   all that are done before the giver was; and so on until it has no such task.

The paper itself was not at hand: this follows what later papers and open implementations tell of it.

Departures from the paper:

- Of several devices where the task takes as little, the one where it could end first gets it, then the lower index; of
  several tasks to be given up the one whose data comes first, then the one that the device was given first (by rank,
  then as they are moved). In that order a device runs tasks whose data comes together.
- What a device does without a task, or with one more, is worked out by going through its tasks of the group.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a colocation
  group decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Only tasks alone in their colocation group are given up. Release times count like the arrival of data, and transfers
  wait their turn at ports only once the devices are chosen; deadlines do not count, and the message says if one is
  missed.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.construction import Built, answered, built
from .._constructive.groups import Groups
from .._constructive.heft import priority_list, upward_ranks
from .._constructive.placement_ops import append, arrival_on, may_take, note_arrivals
from .._constructive.readiness import scan_steps
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline


class Batch(NamedTuple):
    """A group of independent tasks on its devices.

    Attributes
    ----------
    head, tail, done
        (m,) the first and the last task of each device, -1 for none, and when the device is done with all.
    following
        (n,) the next task on the same device, -1 after the last.
    device
        (n,) of the tasks of the group.
    data
        (n, m) the tick from which each could start on each device, if nothing ran there.
    alone
        (n,) whether the task has its colocation group for itself and was not bound to a device from the start.
    """

    head: Int
    tail: Int
    done: Int
    following: Int
    device: Int
    data: Int
    alone: Int


class Hbmct:
    """The schedule of HBMCT; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "hbmct"
    info: ClassVar[Info] = Info(
        summary="groups of independent tasks by rank, balanced over the devices (Sakellariou and Zhao 2004)",
        family="list scheduling",
        guarantee="none",
        complexity="O(n log n + (n + e) m), and O(w) for each task given up or tried in a group of w",
        citation="""@inproceedings{sakellariou2004hybrid,
  author    = {Rizos Sakellariou and Henan Zhao},
  title     = {A hybrid heuristic for {DAG} scheduling on heterogeneous systems},
  booktitle = {IPDPS, Heterogeneous Computing Workshop},
  year      = {2004},
  doi       = {10.1109/IPDPS.2004.1303065}
}""",
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """HBMCT's schedule, or FAILED where it finds no placement that fits into memory."""
        sequence = priority_list(problem, upward_ranks(problem))
        bounds = independent_groups(problem, sequence)

        def build(groups: Groups) -> Built:
            line = make_timeline(problem, groups)
            size = np.bincount(problem.group, minlength=problem.n_groups)
            alone = ((size == 1) & (groups.home < 0))[problem.group].astype(np.int64)
            run = balance_groups.select(scan_steps(problem))
            placed = run(make_case(problem, groups), line, sequence, bounds, make_batch(problem, alone))
            return built(problem, line, sequence, placed)

        return answered(problem, build)


def make_batch(problem: Problem, alone: Int) -> Batch:
    """Arrays for one group after the other."""
    n, m = problem.n_tasks, problem.n_devices
    return Batch(
        np.empty(m, dtype=np.int64),
        np.empty(m, dtype=np.int64),
        np.empty(m, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty((n, m), dtype=np.int64),
        alone,
    )


def independent_groups(problem: Problem, sequence: Int) -> Int:
    """(k + 1,) where each group begins in `sequence` (n,), a topological order, and the end of the last."""
    position = np.empty(problem.n_tasks, dtype=np.int64)
    position[sequence] = np.arange(problem.n_tasks)
    last = np.full(problem.n_tasks, -1, dtype=np.int64)
    np.maximum.at(last, position[problem.edge_target], position[problem.edge_source])
    bounds = [0]
    for here, latest_producer in enumerate(last.tolist()):
        if latest_producer >= bounds[-1]:
            bounds.append(here)
    return np.array([*bounds, problem.n_tasks], dtype=np.int64)


@kernel(allocates=False)
def done_with(case: Case, line: Timeline, batch: Batch, d: int, without: int, extra: int) -> int:
    """When device d is done with its tasks, without one of them or with another more (-1 for none)."""
    now: int = line.free[d]
    i = batch.head[d]
    while i >= 0 or extra >= 0:
        if extra >= 0 and (i < 0 or batch.data[extra, d] < batch.data[i, d]):
            now = max(now, batch.data[extra, d]) + case.duration[extra, d]
            extra = -1
        else:
            if i != without:
                now = max(now, batch.data[i, d]) + case.duration[i, d]
            i = batch.following[i]
    return now


@kernel(done_with, allocates=False)
def add_task(case: Case, line: Timeline, batch: Batch, i: int, d: int) -> None:
    """Give task i to device d, where its data is there after that of the tasks before it; its room is taken."""
    g = case.group[i]
    if line.home[g] < 0:
        line.home[g] = d
        line.room[d] -= case.memory[g]
    batch.device[i] = d
    last = batch.tail[d]
    if last < 0 or batch.data[last, d] <= batch.data[i, d]:
        batch.following[i] = -1
        batch.tail[d] = i
        if last < 0:
            batch.head[d] = i
        else:
            batch.following[last] = i
        batch.done[d] = max(batch.done[d], batch.data[i, d]) + case.duration[i, d]
        return
    before, after = -1, batch.head[d]
    while batch.data[after, d] <= batch.data[i, d]:
        before, after = after, batch.following[after]
    batch.following[i] = after
    if before < 0:
        batch.head[d] = i
    else:
        batch.following[before] = i
    batch.done[d] = done_with(case, line, batch, d, -1, -1)


@kernel(done_with, allocates=False)
def remove_task(case: Case, line: Timeline, batch: Batch, i: int) -> None:
    """Take task i, alone in its colocation group, from its device, and give the room back."""
    d, g = batch.device[i], case.group[i]
    line.home[g] = -1
    line.room[d] += case.memory[g]
    before, here = -1, batch.head[d]
    while here != i:
        before, here = here, batch.following[here]
    if before < 0:
        batch.head[d] = batch.following[i]
    else:
        batch.following[before] = batch.following[i]
    if batch.tail[d] == i:
        batch.tail[d] = before
    batch.done[d] = done_with(case, line, batch, d, -1, -1)


@kernel(may_take, done_with, add_task, remove_task, allocates=False)
def give_up_one(case: Case, line: Timeline, batch: Batch) -> bool:
    """Move a task from the device that is done last; False if that has none that helps."""
    m = len(line.room)
    last = 0
    for d in range(1, m):
        if batch.done[d] > batch.done[last]:
            last = d
    latest = batch.done[last]
    i = batch.head[last]
    while i >= 0:
        if batch.alone[i] and done_with(case, line, batch, last, i, -1) < latest:
            taker, least = -1, latest
            for d in range(m):
                if d != last and may_take(case, line, case.group[i], d):
                    done = done_with(case, line, batch, d, -1, i)
                    if done < least:
                        taker, least = d, done
            if taker >= 0:
                remove_task(case, line, batch, i)
                add_task(case, line, batch, i, taker)
                return True
        i = batch.following[i]
    return False


@kernel(note_arrivals, arrival_on, may_take, append, done_with, add_task, give_up_one, allocates=False)
def balance_groups(case: Case, line: Timeline, sequence: Int, bounds: Int, batch: Batch) -> int:
    """Place the groups in turn; how many tasks found a device (fewer than n: no room for the next)."""
    m = len(line.room)
    for k in range(len(bounds) - 1):
        for d in range(m):
            batch.head[d] = batch.tail[d] = -1
            batch.done[d] = line.free[d]
        for position in range(bounds[k], bounds[k + 1]):
            i = sequence[position]
            g = case.group[i]
            note_arrivals(case, line, i)
            best, least, first = line.home[g], NEVER, NEVER
            for d in range(m):
                batch.data[i, d] = line.ready[d]
                end = max(line.ready[d], line.free[d]) + case.duration[i, d]
                less = case.duration[i, d] < least or (case.duration[i, d] == least and end < first)
                if line.home[g] < 0 and less and may_take(case, line, g, d):
                    best, least, first = d, case.duration[i, d], end
            if best < 0:
                return position
            add_task(case, line, batch, i, best)
        while give_up_one(case, line, batch):
            pass
        for d in range(m):
            i = batch.head[d]
            while i >= 0:
                append(case, line, i, d, max(arrival_on(case, line, i, d), line.free[d]))
                i = batch.following[i]
    return len(sequence)
