"""BIL: best imaginary level, list scheduling by how early everything that follows a task could end.

H. Oh, S. Ha: A static scheduling heuristic for heterogeneous processors. Euro-Par 1996, LNCS 1124, pages 573-577,
doi:10.1007/BFb0024750. The paper's symbols: E(i, p) the duration of node i on processor p; BIL(i, p) its best imaginary
level, what is left to do from its start on p if every node has its best processor to itself; BIM the makespan that
follows; k nodes are ready, P processors.

    BIL(i, p)  = E(i, p) + max over consumers j of min over q of (BIL(j, q) + transfer from p to q, 0 if p = q)
    BIM(i, p)  = earliest start of i on p, after all that runs there + BIL(i, p)
    BIM*(i, p) = BIM(i, p) + E(i, p) max(k / P - 1, 0)

The priority of a node is its k-th smallest BIM, as others may take the best k - 1 processors, or its largest if it has
less than k. The node of highest priority goes to the processor of least BIM*. On a chain of tasks the schedule is
optimal, as the paper proves: BIM is then the makespan (not so with release times, or limits on where tasks go).

The paper's transfers do not depend on the processors; with their own the proof still holds. Where k >= P, the priority
of a ready task is the maximum over p of max(data there, p free) + BIL(i, p). Of that only the ticks from which devices
are free change, so a heap for each device by BIL, and one by the maximum of data there + BIL, give the largest of all
priorities: its head, or that of a device's heap and the tick from which that is free.

The paper itself was not at hand: this follows what later papers and open implementations tell of it.

Departures from the paper:

- Ties go by index, those of devices too. The paper compares the (k-1)-th smallest BIM, and so on, and of devices takes
  that where the other ready nodes have most to lose.
- Durations of devices that may not run a node are infinite, and so is BIM there.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times count like the arrival of data; deadlines do not count, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, transfer_ticks
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.construction import Built, answered
from .._constructive.groups import Groups
from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.placement_ops import open_to
from .._constructive.readiness import DONE, Ready, admit_sources, make_ready, place_ready, ready_built
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps


class Bil:
    """The schedule of BIL; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "bil"
    info: ClassVar[Info] = Info(
        summary="list scheduling by best imaginary levels (Oh and Ha 1996)",
        family="list scheduling",
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
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """BIL's schedule, or FAILED where it finds no placement that fits into memory."""

        def build(groups: Groups) -> Built:
            case, line = make_case(problem, groups), make_timeline(problem, groups)
            level = imaginary_levels(problem, case)
            heaps = make_heaps(problem.n_tasks, problem.n_devices + 1)
            row = np.empty(problem.n_devices, dtype=np.int64)
            # Every pair goes through heaps: some 32 elementary steps each.
            run = longest_imaginary_first.select(32 * work_steps(problem))
            return ready_built(problem, line, run(case, line, make_ready(problem), level, heaps, row))

        return answered(problem, build)


def imaginary_levels(problem: Problem, case: Case) -> Int:
    """(n, m) ticks, BIL."""
    level = np.zeros((problem.n_tasks, problem.n_devices), dtype=np.int64)
    lowest = np.empty((problem.n_devices, max(case.latency.shape[1], 1)), dtype=np.int64)
    fill_levels.select(work_steps(problem))(case, problem.order[::-1].copy(), level, lowest)
    return level


@kernel(transfer_ticks, allocates=False)
def fill_levels(case: Case, backwards: Int, level: Int, lowest: Int) -> None:
    """Fill `level` (n, m), zero at first, consumers before producers; `lowest` (m, k) to scribble on."""
    m = level.shape[1]
    for j in backwards:
        for p in range(m):
            level[j, p] += case.duration[j, p]
        if case.in_start[j] == case.in_start[j + 1]:
            continue
        g = case.group[j]
        # From each device the least level of j over the devices behind each kind of link.
        lowest[:, :] = NEVER
        least = NEVER
        for q in range(m):
            if case.feasible[g, q]:
                lowest[q, 0] = level[j, q]
                least = min(least, level[j, q])
        if least == NEVER:
            continue
        for p in range(m):
            if case.kinds[p] == 2:
                lowest[p, 1] = least
            else:
                for q in range(m):
                    c = case.kind[p, q]
                    if case.feasible[g, q] and level[j, q] < lowest[p, c]:
                        lowest[p, c] = level[j, q]
        for e in range(case.in_start[j], case.in_start[j + 1]):
            i = case.in_source[e]
            for p in range(m):
                ahead = lowest[p, 0]
                for c in range(1, case.kinds[p]):
                    move = transfer_ticks(case.in_payload[e], case.latency[p, c], case.num[p, c], case.den[p, c])
                    ahead = min(ahead, lowest[p, c] + move)
                if ahead > level[i, p]:
                    level[i, p] = ahead


@kernel(allocates=False)
def kth_smallest(row: Int, count: int, k: int) -> int:
    """The k-th smallest, from 1, of the first `count` entries of `row`, which are reordered (Hoare's selection)."""
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
    answer: int = row[k - 1]
    return answer


@kernel(open_to, kth_smallest, allocates=False)
def priority(case: Case, line: Timeline, ready: Ready, level: Int, row: Int, i: int, k: int) -> int:
    """The k-th smallest BIM of a ready task, or its largest; -1 if no device can take it."""
    count = 0
    for p in range(len(row)):
        if open_to(case, line, i, p):
            row[count] = max(ready.data[i, p], line.free[p]) + level[i, p]
            count += 1
    return kth_smallest(row, count, min(k, count)) if count else -1


@kernel(open_to, push, allocates=False)
def queue_up(case: Case, line: Timeline, ready: Ready, level: Int, heaps: Heaps, i: int) -> None:
    """Add a ready task to the heaps."""
    m = len(line.room)
    latest = -1
    for p in range(m):
        if open_to(case, line, i, p):
            push(heaps, p, -level[i, p], i)
            latest = max(latest, ready.data[i, p] + level[i, p])
    if latest >= 0:
        push(heaps, m, -latest, i)


@kernel(open_to, push, pop, allocates=False)
def largest_of_all(case: Case, line: Timeline, ready: Ready, level: Int, heaps: Heaps) -> int:
    """The ready task with the largest BIM, the lowest index of equals; -1 if no device can take any."""
    m = len(line.room)
    best, most = -1, -1
    for p in range(m):
        while heaps.size[p] > 0:
            i = heaps.item[0, p]
            # A pair that has become impossible never becomes possible again.
            if line.device[i] < 0 and open_to(case, line, i, p):
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
                if open_to(case, line, i, p):
                    latest = max(latest, ready.data[i, p] + level[i, p])
        if latest == -heaps.key[0, m]:
            if latest > most or (latest == most and i < best):
                best = i
            break
        # The device that counted can take it no more: the others count.
        pop(heaps, m)
        if latest >= 0:
            push(heaps, m, -latest, i)
    return best


@kernel(priority, allocates=False)
def largest_kth(case: Case, line: Timeline, ready: Ready, level: Int, row: Int) -> int:
    """The ready task with the largest k-th smallest BIM, the lowest index of equals; -1 if no device can take any."""
    k = ready.span[1] - ready.span[0]
    best, most = -1, -1
    for position in range(ready.span[0], ready.span[1]):
        i = ready.task[position]
        bim = priority(case, line, ready, level, row, i, k)
        if bim > most or (bim == most and i < best):
            best, most = i, bim
    return best


@kernel(admit_sources, place_ready, open_to, queue_up, largest_of_all, largest_kth, allocates=False)
def longest_imaginary_first(case: Case, line: Timeline, ready: Ready, level: Int, heaps: Heaps, row: Int) -> int:
    """Place all tasks by BIM; DONE, or a task that no device can take."""
    m = len(row)
    admit_sources(case, line, ready)
    queued = 0
    while ready.span[0] < ready.span[1]:
        for position in range(queued, ready.span[1]):
            queue_up(case, line, ready, level, heaps, ready.task[position])
        queued = ready.span[1]
        k = ready.span[1] - ready.span[0]
        i = largest_kth(case, line, ready, level, row) if k < m else largest_of_all(case, line, ready, level, heaps)
        if i < 0:
            stuck: int = ready.task[ready.span[0]]
            return stuck
        best, least = -1, NEVER
        for p in range(m):
            if open_to(case, line, i, p):
                bim = max(ready.data[i, p], line.free[p]) + level[i, p]
                revised = bim * m + case.duration[i, p] * max(k - m, 0)
                if best < 0 or revised < least:
                    best, least = p, revised
        place_ready(case, line, ready, ready.position[i], best)
    return DONE
