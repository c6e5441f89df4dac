"""BIL: best imaginary level, list scheduling by the shortest time from a task to the end of the schedule.

H. Oh, S. Ha, Euro-Par 1996, doi:10.1007/BFb0024750. The paper's symbols: E(i, p) the duration of node i on processor p;
BIL(i, p) its best imaginary level, the time from its start on p to the end if every node has its best processor to
itself; BIM the makespan that results; k nodes are ready, P processors.

    BIL(i, p)  = E(i, p) + max over consumers j of min over q of (BIL(j, q) + transfer from p to q, 0 if p = q)
    BIM(i, p)  = earliest start of i on p, after all tasks there + BIL(i, p)
    BIM*(i, p) = BIM(i, p) + E(i, p) max(k / P - 1, 0)

The priority of a node is its k-th smallest BIM, because others may take the best k - 1 processors, or its largest if
there are fewer than k. The node with the highest priority goes to the processor with the least BIM*. On a chain of
tasks the schedule is optimal, as the paper proves: BIM is then the makespan. Release times, and limits on the devices
of a task, break the proof.

The paper's transfers do not depend on the processors; the proof also holds if they do. If k >= P, the priority of a
ready task is the maximum over p of max(arrival of data on p, p free) + BIL(i, p), where only the time at which p is
free changes. So a heap for each device by BIL, and one by the maximum of arrival + BIL, give the largest priority: it
belongs to the head of one of them.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- Ties go by index. The paper compares the (k-1)-th smallest BIM next, and of devices it prefers the one where the other
  ready nodes lose most.
- On devices that may not run a node its duration and BIM are infinite.
"""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Info, Settings

from .._constructive.construction import Build, Constructive, PartialSchedule, run_loop
from .._constructive.groups import Groups
from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.placement_ops import can_run, link_ticks
from .._constructive.ready_list import Ready, admit_sources, make_ready, place_ready
from .._constructive.timeline import DONE, NEVER, Instance, Timeline, make_instance, work_steps


class Bil(Constructive):
    name = "bil"
    info = Info(
        summary="list scheduling by best imaginary levels (Oh and Ha 1996)",
        family="list scheduling",
        tiers=True,
        guarantee="optimal on a chain of tasks without release times, groups, separation and limits on memory",
        complexity="O(n m² + e m k + n m log n) for k kinds of links",
        citation="""@inproceedings{oh1996bil,
  author    = {Hyunok Oh and Soonhoi Ha},
  title     = {A static scheduling heuristic for heterogeneous processors},
  booktitle = {Euro-Par},
  series    = {Lecture Notes in Computer Science},
  volume    = {1124},
  pages     = {573--577},
  year      = {1996},
  doi       = {10.1007/BFb0024750}
}""",
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        def build(groups: Groups) -> PartialSchedule:
            level = imaginary_levels(problem, make_instance(problem, groups))
            heaps = make_heaps(problem.n_tasks, problem.n_devices + 1)
            row = np.empty(problem.n_devices, dtype=np.int64)
            # Every pair goes through heaps: some 32 elementary steps each.
            steps = 32 * work_steps(problem)
            return run_loop(
                problem, groups, longest_imaginary_first, make_ready(problem), level, heaps, row, steps=steps
            )

        return build


def imaginary_levels(problem: Problem, instance: Instance) -> Int:
    """Return BIL (n, m) in ticks."""
    level = np.zeros((problem.n_tasks, problem.n_devices), dtype=np.int64)
    lowest = np.empty((problem.n_devices, max(instance.latency.shape[1], 1)), dtype=np.int64)
    fill_levels.select(work_steps(problem))(instance, problem.order[::-1].copy(), level, lowest)
    return level


@kernel(link_ticks, allocates=False)
def fill_levels(instance: Instance, backwards: Int, level: Int, lowest: Int) -> None:
    """Fill `level` (n, m), zero at first, from consumers to producers; `lowest` (m, k) is scratch."""
    m = level.shape[1]
    for j in backwards:
        for p in range(m):
            level[j, p] += instance.duration[j, p]
        if instance.in_start[j] == instance.in_start[j + 1]:
            continue
        g = instance.group[j]
        # For each device and kind of link: the least level of j over the devices that the links lead to.
        lowest[:, :] = NEVER
        least = NEVER
        for q in range(m):
            if instance.feasible[g, q]:
                lowest[q, 0] = level[j, q]
                least = min(least, level[j, q])
        if least == NEVER:
            continue
        for p in range(m):
            if instance.kinds[p] == 2:
                lowest[p, 1] = least
            else:
                for q in range(m):
                    c = instance.kind[p, q]
                    if instance.feasible[g, q] and level[j, q] < lowest[p, c]:
                        lowest[p, c] = level[j, q]
        for e in range(instance.in_start[j], instance.in_start[j + 1]):
            i = instance.in_source[e]
            for p in range(m):
                ahead = lowest[p, 0]
                for c in range(1, instance.kinds[p]):
                    ahead = min(ahead, lowest[p, c] + link_ticks(instance, instance.in_payload[e], p, c))
                if ahead > level[i, p]:
                    level[i, p] = ahead


@kernel(allocates=False)
def kth_smallest(row: Int, count: int, k: int) -> int:
    """Return the k-th smallest, from 1, of the first `count` entries of `row` and reorder them (Hoare's selection)."""
    low, high = 0, count - 1
    while low < high:
        pivot = row[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while row[i] < pivot:
                i += 1
            while row[j] > pivot:
                j -= 1
            if i <= j:
                row[i], row[j] = row[j], row[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return int(row[k - 1])


@kernel(can_run, kth_smallest, allocates=False)
def priority(instance: Instance, line: Timeline, ready: Ready, level: Int, row: Int, i: int, k: int) -> int:
    """Return the k-th smallest BIM of a ready task, or its largest; -1 if no device can take it."""
    count = 0
    for p in range(len(row)):
        if can_run(instance, line, i, p):
            row[count] = max(ready.data[i, p], line.free[p]) + level[i, p]
            count += 1
    return kth_smallest(row, count, min(k, count)) if count else -1


@kernel(can_run, push, allocates=False)
def queue_up(instance: Instance, line: Timeline, ready: Ready, level: Int, heaps: Heaps, i: int) -> None:
    """Add a ready task to the heaps."""
    m = len(line.room)
    latest = -1
    for p in range(m):
        if can_run(instance, line, i, p):
            push(heaps, p, -level[i, p], i)
            latest = max(latest, ready.data[i, p] + level[i, p])
    if latest >= 0:
        push(heaps, m, -latest, i)


@kernel(can_run, push, pop, allocates=False)
def largest_of_all(instance: Instance, line: Timeline, ready: Ready, level: Int, heaps: Heaps) -> int:
    """Return the ready task with the largest BIM; -1 if no device can take any."""
    m = len(line.room)
    best, most = -1, -1
    for p in range(m):
        while heaps.size[p] > 0:
            i = heaps.item[0, p]
            # A pair that became impossible stays impossible.
            if line.device[i] < 0 and can_run(instance, line, i, p):
                bim = line.free[p] - heaps.key[0, p]
                if bim > most or (bim == most and i < best):
                    best, most = i, bim
                break
            pop(heaps, p)
    while heaps.size[m] > 0:
        i = heaps.item[0, m]
        latest = -1
        if line.device[i] < 0:
            for p in range(m):
                if can_run(instance, line, i, p):
                    latest = max(latest, ready.data[i, p] + level[i, p])
        if latest == -heaps.key[0, m]:
            if latest > most or (latest == most and i < best):
                best = i
            break
        # The device with the maximum cannot take the task any more: queue it with the maximum of the others.
        pop(heaps, m)
        if latest >= 0:
            push(heaps, m, -latest, i)
    return best


@kernel(priority, allocates=False)
def largest_kth(instance: Instance, line: Timeline, ready: Ready, level: Int, row: Int) -> int:
    """Return the ready task with the largest k-th smallest BIM; -1 if no device can take any."""
    k = ready.span[1] - ready.span[0]
    best, most = -1, -1
    for position in range(ready.span[0], ready.span[1]):
        i = ready.task[position]
        bim = priority(instance, line, ready, level, row, i, k)
        if bim > most or (bim == most and i < best):
            best, most = i, bim
    return best


@kernel(admit_sources, place_ready, can_run, queue_up, largest_of_all, largest_kth, allocates=False)
def longest_imaginary_first(
    instance: Instance, line: Timeline, ready: Ready, level: Int, heaps: Heaps, row: Int
) -> int:
    """Place all tasks by BIM; return DONE or the task that no device can take."""
    m = len(row)
    admit_sources(instance, line, ready)
    queued = 0
    while ready.span[0] < ready.span[1]:
        for position in range(queued, ready.span[1]):
            queue_up(instance, line, ready, level, heaps, ready.task[position])
        queued = ready.span[1]
        k = ready.span[1] - ready.span[0]
        i = (
            largest_kth(instance, line, ready, level, row)
            if k < m
            else largest_of_all(instance, line, ready, level, heaps)
        )
        if i < 0:
            return int(ready.task[ready.span[0]])
        best, least = -1, NEVER
        for p in range(m):
            if can_run(instance, line, i, p):
                bim = max(ready.data[i, p], line.free[p]) + level[i, p]
                revised = bim * m + instance.duration[i, p] * max(k - m, 0)
                if best < 0 or revised < least:
                    best, least = p, revised
        place_ready(instance, line, ready, ready.position[i], best)
    return DONE
