"""GDL: generalized dynamic level, list scheduling by levels that change as the devices fill.

G. C. Sih, E. A. Lee, IEEE TPDS 1993, doi:10.1109/71.207593. The paper's symbols: E(i, p) the duration of node i on
processor p, E*(i) its adjusted median over processors; SL(i) the static level, the longest path to an exit in E* alone;
DA and TF the arrival of data and the time at which the processor is free; D(i) the descendant to which i sends most
data.

    DL1(i, p) = SL(i) - max(DA(i, p), TF(p)) + Delta(i, p),    Delta(i, p) = E*(i) - E(i, p)
    DL2(i, p) = DL1(i, p) + DC(i, p),    DC(i, p) = E*(D(i)) - min(E(D(i), p), F(i, p))
    F(i, p)   = min over q other than p of (transfer from p to q + E(D(i), q))
    C(i)      = DL2 of its preferred processor, where it is greatest, less the greatest DL2 of the others
    GDL(i)    = DL2(i, preferred) + C(i)

The node with the greatest GDL goes to its preferred processor, after all tasks there. A level changes only when its
device takes a task. So each node's best two devices are stored, and recomputed only when one of them took a task.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- The paper schedules transfers on the links of an interconnection network. Here transfers take time, and ports if there
  is port contention.
- E* is the lower median over the devices that may run the task, such that all levels are whole ticks.
- A node that only one device can take has C = 0, an exit node DC = 0. If several descendants receive most data, D is
  the one with the lowest index.
"""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Info, Settings

from .._constructive.construction import Build, Constructive, PartialSchedule, run_loop
from .._constructive.groups import Groups
from .._constructive.placement_ops import can_run, link_ticks
from .._constructive.priorities import longest_paths_after
from .._constructive.ready_list import Ready, admit_sources, make_ready, place_ready, scan_steps
from .._constructive.timeline import DONE, NEVER, Instance, Timeline, make_instance, work_steps


class Gdl(Constructive):
    name = "gdl"
    info = Info(
        summary="list scheduling by generalized dynamic levels (Sih and Lee 1993)",
        family="ready lists",
        tiers=True,
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

    def builder(self, problem: Problem, settings: Settings) -> Build:
        median = adjusted_medians(problem)
        level = median + longest_paths_after(problem, median, np.zeros(problem.n_edges, dtype=np.int64))
        heaviest = heaviest_edges(problem)

        def build(groups: Groups) -> PartialSchedule:
            worth = np.empty((problem.n_tasks, problem.n_devices), dtype=np.int64)
            ticks = np.empty(problem.n_devices, dtype=np.int64)
            run = fixed_levels.select(work_steps(problem))
            run(make_instance(problem, groups), median, level, heaviest, ticks, worth)
            ready = make_ready(problem, notes=3)
            return run_loop(problem, groups, greatest_level_first, ready, worth, steps=scan_steps(problem))

        return build


def adjusted_medians(problem: Problem) -> Int:
    """Return E* (n,): the lower median of each task's durations over feasible devices; 0 for a task without any."""
    count = problem.feasible.sum(axis=1)
    ticks = np.sort(np.where(problem.feasible, problem.duration, NEVER), axis=1)
    middle = ticks[np.arange(problem.n_tasks), np.maximum(count - 1, 0) // 2] if problem.n_devices else count
    return np.where(count == 0, 0, middle)


def heaviest_edges(problem: Problem) -> Int:
    """Return each task's out-edge (n,) with the largest payload, the first of equals; -1 for exits."""
    heaviest = np.full(problem.n_tasks, -1, dtype=np.int64)
    # The last edge written for a task stays: edges are sorted by payload, equal ones by falling index.
    by_size = np.lexsort((-np.arange(problem.n_edges), problem.payload))
    heaviest[problem.edge_source[by_size]] = by_size
    return heaviest


@kernel(link_ticks, allocates=False)
def fixed_levels(instance: Instance, median: Int, level: Int, heaviest: Int, ticks: Int, worth: Int) -> None:
    """Fill `worth` (n, m) with the part of DL2 that never changes: SL + Delta + DC; `ticks` (m,) is scratch."""
    m = len(ticks)
    for i in range(len(level)):
        e = heaviest[i]
        for p in range(m):
            worth[i, p] = level[i] + median[i] - instance.duration[i, p]
            if e < 0:
                continue
            j = instance.out_target[e]
            for c in range(1, instance.kinds[p]):
                ticks[c] = link_ticks(instance, instance.out_payload[e], p, c)
            ticks[0] = 0
            least = NEVER
            for q in range(m):
                if instance.feasible[instance.group[j], q]:
                    least = min(least, ticks[instance.kind[p, q]] + instance.duration[j, q])
            if least < NEVER:
                worth[i, p] += median[j] - least


@kernel(can_run, allocates=False)
def note_best(instance: Instance, line: Timeline, ready: Ready, worth: Int, position: int) -> bool:
    """Note the best two devices of a ready task, -1 for none, and its GDL; return False if no device can take it."""
    i = ready.task[position]
    first, second, high, next_high = -1, -1, 0, 0
    for p in range(len(line.room)):
        level = worth[i, p] - max(ready.data[i, p], line.free[p])
        if (second < 0 or level > next_high) and can_run(instance, line, i, p):
            if first < 0 or level > high:
                first, second, high, next_high = p, first, level, high
            else:
                second, next_high = p, level
    ready.note[0, position], ready.note[1, position] = first, second
    ready.note[2, position] = high if second < 0 else 2 * high - next_high
    return first >= 0


@kernel(admit_sources, place_ready, note_best, allocates=False)
def greatest_level_first(instance: Instance, line: Timeline, ready: Ready, worth: Int) -> int:
    """Place all tasks by GDL; return DONE or the task that no device can take."""
    first, second, value = ready.note[0], ready.note[1], ready.note[2]
    admit_sources(instance, line, ready)
    changed, assigned = -1, -1
    while ready.span[0] < ready.span[1]:
        best, most = -1, 0
        for position in range(ready.span[0], ready.span[1]):
            # Notes are stale for new tasks, after a change of a noted device, and after the group got a home.
            here = first[position]
            stale = here < 0 or here == changed or second[position] == changed
            stale = stale or instance.group[ready.task[position]] == assigned
            if stale and not note_best(instance, line, ready, worth, position):
                return int(ready.task[position])
            level = value[position]
            if best < 0 or level > most or (level == most and ready.task[position] < ready.task[best]):
                best, most = position, level
        i = ready.task[best]
        changed, assigned = first[best], instance.group[i]
        place_ready(instance, line, ready, best, changed)
    return DONE
