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
optimal, as the paper proves: BIM is then the makespan.

The paper's transfers do not depend on the processors; with their own the proof still holds. What a device takes changes
one BIM of each ready node, and none falls: where k >= P the largest is kept up to date, O(1) for each node.

Departures from the paper:

- Ties go by index, those of devices too. The paper compares the (k-1)-th smallest BIM, and so on, and of devices takes
  that where the other ready nodes have most to lose.
- Durations of devices that may not run a node are infinite, and so is BIM there.
- Memory, colocation groups and separation, see `placeopt_solvers._placement`: the first task of a group to be placed
  decides for all, and devices without room for the whole group, or that may not run some of it, do not count. Release
  times count like the arrival of data; deadlines do not count, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.ir import Int, Problem, transfer_ticks
from placeopt.kernels import kernel
from placeopt.solver import Answer, Info, Options, Settings

from ._construction import Built, answered
from ._placement import Groups
from ._readiness import DONE, Ready, admit_sources, make_ready, open_to, place_ready, ready_built
from ._timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps


class Bil:
    """The schedule of BIL; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "bil"
    info: ClassVar[Info] = Info(
        summary="list scheduling by best imaginary levels (Oh and Ha 1996)",
        family="list scheduling",
        guarantee="optimal on a chain of tasks, with enough memory",
        complexity="O(n m² + e m k + n w) for k kinds of links and w tasks ready at once; n w m while w < m",
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
            largest = np.full((2, problem.n_tasks), -1, dtype=np.int64)
            row = np.empty(problem.n_devices, dtype=np.int64)
            run = longest_imaginary_first.select(work_steps(problem))
            return ready_built(problem, line, run(case, line, make_ready(problem), level, largest, row))

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


@kernel(open_to, allocates=False)
def keep_largest(case: Case, line: Timeline, ready: Ready, level: Int, largest: Int, i: int, changed: int) -> None:
    """Bring `largest` (2, n) up to date for a ready task after device `changed` took one: its device, -1 for none, and
    the largest BIM."""
    home = line.home[case.group[i]]
    known = largest[0, i] >= 0 and (home < 0 or home == largest[0, i])
    if known and open_to(case, line, i, changed):
        bim = max(ready.data[i, changed], line.free[changed]) + level[i, changed]
        if changed == largest[0, i] or bim > largest[1, i]:
            largest[0, i], largest[1, i] = changed, bim
        return
    if known and changed != largest[0, i]:
        return
    largest[0, i], largest[1, i] = -1, -1
    for p in range(len(line.room)):
        if open_to(case, line, i, p):
            bim = max(ready.data[i, p], line.free[p]) + level[i, p]
            if bim > largest[1, i]:
                largest[0, i], largest[1, i] = p, bim


@kernel(admit_sources, place_ready, open_to, priority, keep_largest, allocates=False)
def longest_imaginary_first(case: Case, line: Timeline, ready: Ready, level: Int, largest: Int, row: Int) -> int:
    """Place all tasks by BIM; DONE, or the task that no device can take."""
    m = len(row)
    admit_sources(case, line, ready)
    changed = 0
    while ready.span[0] < ready.span[1]:
        k = ready.span[1] - ready.span[0]
        best, most, task = -1, 0, -1
        for position in range(ready.span[0], ready.span[1]):
            i = ready.task[position]
            if k < m:
                # What is kept of the largest is not kept up to date meanwhile.
                largest[0, i] = -1
                bim = priority(case, line, ready, level, row, i, k)
            else:
                keep_largest(case, line, ready, level, largest, i, changed)
                bim = largest[1, i]
            if bim < 0:
                stuck: int = i
                return stuck
            if best < 0 or bim > most or (bim == most and i < task):
                best, most, task = position, bim, i
        changed, least = -1, NEVER
        for p in range(m):
            if open_to(case, line, task, p):
                bim = max(ready.data[task, p], line.free[p]) + level[task, p]
                revised = bim * m + case.duration[task, p] * max(k - m, 0)
                if changed < 0 or revised < least:
                    changed, least = p, revised
        place_ready(case, line, ready, best, changed)
    return DONE
