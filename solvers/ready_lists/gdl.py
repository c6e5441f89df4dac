"""GDL: generalized dynamic level, the ready task and device with the greatest level that changes as devices fill.

G. C. Sih, E. A. Lee: A compile-time scheduling heuristic for interconnection-constrained heterogeneous processor
architectures. IEEE Transactions on Parallel and Distributed Systems 4(2):175-187, 1993, doi:10.1109/71.207593. The
paper's symbols: E(i, p) the duration of node i on processor p, E*(i) its adjusted median over processors; SL(i) the
static level, the longest way to an exit in E* alone; DA and TF when the data is there and the processor free; D(i) the
descendant to which i sends most.

    DL1(i, p) = SL(i) - max(DA(i, p), TF(p)) + Delta(i, p),    Delta(i, p) = E*(i) - E(i, p)
    DL2(i, p) = DL1(i, p) + DC(i, p),    DC(i, p) = E*(D(i)) - min(E(D(i), p), F(i, p))
    F(i, p)   = min over q other than p of (transfer from p to q + E(D(i), q))
    C(i)      = DL2 of its preferred processor, where it is greatest, less the greatest DL2 of the others
    GDL(i)    = DL2(i, preferred) + C(i)

The node of greatest GDL goes to its preferred processor, after all that runs there. A level changes only when its
device takes a task, so each node's best two devices are kept and looked for anew only when one of them did.

The paper itself was not at hand: this follows what later papers and open implementations tell of it.

Departures from the paper:

- The paper schedules transfers on the links of an interconnection network; here they take their time, and their turn at
  ports, see `_booking`.
- E* is the lower median over feasible devices, such that all levels are whole ticks.
- A node that only one device can take has C = 0, an exit node DC = 0. Of two descendants that get as much D is the one
  of the lower index.
- Ties, which the paper leaves open, go by index, those of devices too.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times count like the arrival of data; deadlines do not count, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import longest_ways
from placeopt.model.problem import Problem, transfer_ticks
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.construction import Built, answered
from .._constructive.groups import Groups
from .._constructive.placement_ops import open_to
from .._constructive.readiness import DONE, Ready, admit_sources, make_ready, place_ready, ready_built, scan_steps
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps


class Gdl:
    """The schedule of GDL; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "gdl"
    info: ClassVar[Info] = Info(
        summary="list scheduling by generalized dynamic levels (Sih and Lee 1993)",
        family="ready lists",
        guarantee="none",
        complexity="O(n m² + e m + n w) for w tasks ready at once, and the levels that change",
        citation="""@article{sih1993dynamic,
  author  = {Gilbert C. Sih and Edward A. Lee},
  title   = {A compile-time scheduling heuristic for interconnection-constrained heterogeneous processor
             architectures},
  journal = {IEEE Transactions on Parallel and Distributed Systems},
  volume  = {4},
  number  = {2},
  pages   = {175--187},
  year    = {1993},
  doi     = {10.1109/71.207593}
}""",
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """GDL's schedule, or FAILED where it finds no placement that fits into memory."""
        median = adjusted_medians(problem)
        level = median_levels(problem, median)
        heir = favoured_heirs(problem)

        def build(groups: Groups) -> Built:
            case, line = make_case(problem, groups), make_timeline(problem, groups)
            worth = np.empty((problem.n_tasks, problem.n_devices), dtype=np.int64)
            fixed_levels.select(work_steps(problem))(case, line, median, level, heir, worth)
            run = greatest_level_first.select(scan_steps(problem))
            stuck = run(case, line, make_ready(problem, notes=3), worth)
            return ready_built(problem, line, stuck)

        return answered(problem, build)


def adjusted_medians(problem: Problem) -> Int:
    """(n,) E*: the lower median of each task's durations over feasible devices; 0 for a task without any."""
    count = problem.feasible.sum(axis=1)
    ticks = np.sort(np.where(problem.feasible, problem.duration, NEVER), axis=1)
    middle = ticks[np.arange(problem.n_tasks), np.maximum(count - 1, 0) // 2] if problem.n_devices else count
    return np.where(count == 0, 0, middle)


def median_levels(problem: Problem, median: Int) -> Int:
    """(n,) SL: the longest way to an exit in medians (n,), without transfers, the task's own included."""
    behind = np.zeros(problem.n_tasks)
    run = longest_ways.select(work_steps(problem))
    backwards, producer = problem.order[::-1].copy(), problem.edge_source[problem.in_edge]
    run(backwards, problem.in_start, producer, median.astype(np.float64), np.zeros(problem.n_edges), behind)
    return np.asarray(median + behind.astype(np.int64), dtype=np.int64)


def favoured_heirs(problem: Problem) -> Int:
    """(n,) the out-edge that carries most, the first of equals; -1 for exits."""
    heir = np.full(problem.n_tasks, -1, dtype=np.int64)
    # Ascending, so that of several edges of one task the last to be written is the largest, of equals the first.
    by_size = np.lexsort((-np.arange(problem.n_edges), problem.payload))
    heir[problem.edge_source[by_size]] = by_size
    return heir


@kernel(transfer_ticks, allocates=False)
def fixed_levels(case: Case, line: Timeline, median: Int, level: Int, heir: Int, worth: Int) -> None:
    """Fill `worth` (n, m) with what of DL2 never changes: SL + Delta + DC."""
    m = len(line.room)
    for i in range(len(level)):
        e = heir[i]
        for p in range(m):
            worth[i, p] = level[i] + median[i] - case.duration[i, p]
            if e < 0:
                continue
            j = case.out_target[e]
            for c in range(1, case.kinds[p]):
                line.arrival[c] = transfer_ticks(
                    case.out_payload[e], case.latency[p, c], case.num[p, c], case.den[p, c]
                )
            line.arrival[0] = 0
            least = NEVER
            for q in range(m):
                if case.feasible[case.group[j], q]:
                    least = min(least, line.arrival[case.kind[p, q]] + case.duration[j, q])
            if least < NEVER:
                worth[i, p] += median[j] - least


@kernel(open_to, allocates=False)
def look_anew(case: Case, line: Timeline, ready: Ready, worth: Int, position: int) -> bool:
    """Note the best two devices of a ready task, -1 for none, and its GDL; False if no device can take it."""
    i = ready.task[position]
    first, second, high, next_high = -1, -1, 0, 0
    for p in range(len(line.room)):
        level = worth[i, p] - max(ready.data[i, p], line.free[p])
        if (second < 0 or level > next_high) and open_to(case, line, i, p):
            if first < 0 or level > high:
                first, second, high, next_high = p, first, level, high
            else:
                second, next_high = p, level
    ready.note[0, position], ready.note[1, position] = first, second
    ready.note[2, position] = high if second < 0 else 2 * high - next_high
    return first >= 0


@kernel(admit_sources, place_ready, look_anew, allocates=False)
def greatest_level_first(case: Case, line: Timeline, ready: Ready, worth: Int) -> int:
    """Place all tasks by GDL; DONE, or the task that no device can take."""
    first, second, value = ready.note[0], ready.note[1], ready.note[2]
    admit_sources(case, line, ready)
    changed, settled = -1, -1
    while ready.span[0] < ready.span[1]:
        best, most = -1, 0
        for position in range(ready.span[0], ready.span[1]):
            # New tasks have no device yet. One that took a task, or a home found, spoils what is known.
            here = first[position]
            stale = here < 0 or here == changed or second[position] == changed
            stale = stale or case.group[ready.task[position]] == settled
            if stale and not look_anew(case, line, ready, worth, position):
                task: int = ready.task[position]
                return task
            level = value[position]
            if best < 0 or level > most or (level == most and ready.task[position] < ready.task[best]):
                best, most = position, level
        i = ready.task[best]
        changed, settled = first[best], case.group[i]
        place_ready(case, line, ready, best, changed)
    return DONE
