"""HBMCT: hybrid of ranks and balanced minimum completion time, batches of independent tasks balanced over devices.

R. Sakellariou, H. Zhao, Heterogeneous Computing Workshop at IPDPS 2004, doi:10.1109/IPDPS.2004.1303065. Tasks are
ranked as in HEFT and cut into batches (the paper: groups) in that order: a task that depends on a task of the current
batch opens the next one. The batches are scheduled one after the other by BMCT:

1. Each task goes to the device where its duration is least.
2. Each device runs its tasks of the batch in the order in which their data arrives, after all earlier batches.
3. The device that finishes last gives away a task if it then finishes earlier: to the device that then finishes first
   of those that finish before the giver did. This is repeated until it has no such task.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- Ties between devices of equal duration go to the one where the task could end first. Ties between tasks to give away
  go to the task whose data arrives first, then to the task that the device received first. A device runs tasks whose
  data arrives at the same time in that order.
- The finish of a device without a task, or with one more, is computed by a pass over its tasks of the batch.
- Only tasks that are alone in their colocation group are given away.
- Transfers are booked at ports only after the devices of a batch are chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Info, Settings

from .._constructive.construction import Build, Constructive, PartialSchedule, run_loop
from .._constructive.groups import Groups
from .._constructive.placement_ops import (
    append,
    assign_group,
    can_host,
    compute_ready_times,
    ready_time,
    release_group,
)
from .._constructive.priorities import priority_list, upward_ranks
from .._constructive.ready_list import scan_steps
from .._constructive.timeline import DONE, NEVER, Instance, Timeline


class Batch(NamedTuple):
    """A batch of independent tasks on its devices."""

    head: Int
    tail: Int
    done: Int
    """(m,) the first and the last task of each device, -1 for none, and the tick at which the device finishes."""
    following: Int
    """(n,) the next task on the same device, -1 after the last."""
    device: Int
    """(n,) the device of each task of the batch."""
    data: Int
    """(n, m) the tick at which the data of each task is on each device."""
    alone: Int
    """(n,) whether the task is alone in its colocation group and had no home at the start."""


class Hbmct(Constructive):
    name = "hbmct"
    info = Info(
        summary="batches of independent tasks by rank, balanced over the devices (Sakellariou and Zhao 2004)",
        family="list scheduling",
        tiers=True,
        guarantee="none",
        complexity="O(n log n + (n + e) m), and O(w) for each task moved or tried in a batch of w",
        citation="""@inproceedings{sakellariou2004hybrid,
  author    = {Rizos Sakellariou and Henan Zhao},
  title     = {A hybrid heuristic for {DAG} scheduling on heterogeneous systems},
  booktitle = {IPDPS, Heterogeneous Computing Workshop},
  year      = {2004},
  doi       = {10.1109/IPDPS.2004.1303065}
}""",
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        sequence = priority_list(problem, upward_ranks(problem))
        bounds = independent_batches(problem, sequence)
        n, m = problem.n_tasks, problem.n_devices
        size = np.bincount(problem.group, minlength=problem.n_groups)

        def build(groups: Groups) -> PartialSchedule:
            alone = ((size == 1) & (groups.home < 0))[problem.group].astype(np.int64)
            head, tail, done, following, device, data = (
                np.empty(shape, dtype=np.int64) for shape in (m, m, m, n, n, (n, m))
            )
            batch = Batch(head, tail, done, following, device, data, alone)
            return run_loop(problem, groups, balance_batches, sequence, bounds, batch, steps=scan_steps(problem))

        return build


def independent_batches(problem: Problem, sequence: Int) -> Int:
    """Return the first position (k + 1,) of each of k batches in `sequence` (n,), a topological order, and its end."""
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
def done_with(instance: Instance, line: Timeline, batch: Batch, d: int, without: int, extra: int) -> int:
    """Return the tick at which device d finishes, without one of its tasks and with an extra one (-1 for none)."""
    now: int = line.free[d]
    i = batch.head[d]
    while i >= 0 or extra >= 0:
        if extra >= 0 and (i < 0 or batch.data[extra, d] < batch.data[i, d]):
            now = max(now, batch.data[extra, d]) + instance.duration[extra, d]
            extra = -1
        else:
            if i != without:
                now = max(now, batch.data[i, d]) + instance.duration[i, d]
            i = batch.following[i]
    return now


@kernel(assign_group, done_with, allocates=False)
def add_task(instance: Instance, line: Timeline, batch: Batch, i: int, d: int) -> None:
    """Give task i to device d, in the order of arrival of data, and reserve its memory."""
    assign_group(instance, line, instance.group[i], d)
    batch.device[i] = d
    last = batch.tail[d]
    if last < 0 or batch.data[last, d] <= batch.data[i, d]:
        batch.following[i] = -1
        batch.tail[d] = i
        if last < 0:
            batch.head[d] = i
        else:
            batch.following[last] = i
        batch.done[d] = max(batch.done[d], batch.data[i, d]) + instance.duration[i, d]
        return
    before, after = -1, batch.head[d]
    while batch.data[after, d] <= batch.data[i, d]:
        before, after = after, batch.following[after]
    batch.following[i] = after
    if before < 0:
        batch.head[d] = i
    else:
        batch.following[before] = i
    batch.done[d] = done_with(instance, line, batch, d, -1, -1)


@kernel(done_with, release_group, allocates=False)
def remove_task(instance: Instance, line: Timeline, batch: Batch, i: int) -> None:
    """Take task i, alone in its colocation group, from its device, and free its memory."""
    d, g = batch.device[i], instance.group[i]
    release_group(instance, line, g)
    before, here = -1, batch.head[d]
    while here != i:
        before, here = here, batch.following[here]
    if before < 0:
        batch.head[d] = batch.following[i]
    else:
        batch.following[before] = batch.following[i]
    if batch.tail[d] == i:
        batch.tail[d] = before
    batch.done[d] = done_with(instance, line, batch, d, -1, -1)


@kernel(can_host, done_with, add_task, remove_task, allocates=False)
def give_away_one(instance: Instance, line: Timeline, batch: Batch) -> bool:
    """Move a task from the device that finishes last; return False if no move helps."""
    m = len(line.room)
    last = 0
    for d in range(1, m):
        if batch.done[d] > batch.done[last]:
            last = d
    latest = batch.done[last]
    i = batch.head[last]
    while i >= 0:
        if batch.alone[i] and done_with(instance, line, batch, last, i, -1) < latest:
            taker, least = -1, latest
            for d in range(m):
                if d != last and can_host(instance, line, instance.group[i], d):
                    done = done_with(instance, line, batch, d, -1, i)
                    if done < least:
                        taker, least = d, done
            if taker >= 0:
                remove_task(instance, line, batch, i)
                add_task(instance, line, batch, i, taker)
                return True
        i = batch.following[i]
    return False


@kernel(compute_ready_times, ready_time, can_host, append, done_with, add_task, give_away_one, allocates=False)
def balance_batches(instance: Instance, line: Timeline, sequence: Int, bounds: Int, batch: Batch) -> int:
    """Place the batches in turn; return DONE or the task that no device can take."""
    m = len(line.room)
    for k in range(len(bounds) - 1):
        for d in range(m):
            batch.head[d] = batch.tail[d] = -1
            batch.done[d] = line.free[d]
        for position in range(bounds[k], bounds[k + 1]):
            i = sequence[position]
            g = instance.group[i]
            compute_ready_times(instance, line, i)
            best, least, first = line.home[g], NEVER, NEVER
            for d in range(m):
                batch.data[i, d] = line.ready[d]
                end = max(line.ready[d], line.free[d]) + instance.duration[i, d]
                less = instance.duration[i, d] < least or (instance.duration[i, d] == least and end < first)
                if line.home[g] < 0 and less and can_host(instance, line, g, d):
                    best, least, first = d, instance.duration[i, d], end
            if best < 0:
                return int(i)
            add_task(instance, line, batch, i, best)
        while give_away_one(instance, line, batch):
            pass
        for d in range(m):
            i = batch.head[d]
            while i >= 0:
                append(instance, line, i, d, max(ready_time(instance, line, i, d), line.free[d]))
                i = batch.following[i]
    return DONE
