"""Lookahead HEFT: each task where the last of its consumers could end first.

L. F. Bittencourt, R. Sakellariou, E. R. M. Madeira: DAG scheduling using a lookahead variant of the heterogeneous
earliest finish time algorithm. Euromicro PDP 2010, doi:10.1109/PDP.2010.56; the variant with the order of HEFT and the
maximum over the children.

Tasks come in the order of HEFT, by falling upward rank. Each is tried on every device, at its earliest end there, gaps
included; from there each of its consumers (children) is given the device where it would end first, as far as its
producers are placed by then. The task goes to the device for which the latest end among the children is least; a task
without children goes where it ends first itself.

The paper tries every child with HEFT on every device for every device of the task, arrivals counted anew each time.
Here arrivals from producers placed before are kept, and a device is given up once one child ends later than with the
best device so far: O(n log n + e m²) and the gaps searched.

The paper itself was not at hand: this follows what later papers and open implementations tell of it.

Departures from the paper:

- The children of a task are tried one by one, not placed one after the other: they do not take each other's gaps.
- Ties, which the paper leaves open, go to the device where the task itself ends first, then by index.
- Upward ranks and their ties are those of `heft`.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count; a
  child whose group has its home is tried there alone, another that no device can take any more does not count. Release
  times count where a task could start, and ports for the task but not for its children; deadlines do not count, and the
  message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, transfer_ticks
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.construction import Built, answered, built
from .._constructive.groups import Groups
from .._constructive.heft import priority_list, upward_ranks
from .._constructive.placement_ops import arrival_on, earliest, may_take, note_arrivals, occupy
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps


class LookaheadHeft:
    """The schedule of HEFT with lookahead; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "lookahead-heft"
    info: ClassVar[Info] = Info(
        summary="HEFT where each task goes to where its consumers could end first (Bittencourt et al. 2010)",
        family="list scheduling",
        guarantee="none",
        complexity="O(n log n + e m²) and the gaps searched",
        citation="""@inproceedings{bittencourt2010lookahead,
  author    = {Luiz F. Bittencourt and Rizos Sakellariou and Edmundo R. M. Madeira},
  title     = {{DAG} scheduling using a lookahead variant of the heterogeneous earliest finish time algorithm},
  booktitle = {Euromicro Conference on Parallel, Distributed and Network-based Processing (PDP)},
  pages     = {27--34},
  year      = {2010},
  doi       = {10.1109/PDP.2010.56}
}""",
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """The schedule, or FAILED where it finds no placement that fits into memory."""
        sequence = priority_list(problem, upward_ranks(problem))
        steps = work_steps(problem) * max(problem.n_devices, 1)

        def build(groups: Groups) -> Built:
            line = make_timeline(problem, groups)
            seen = np.repeat(problem.release[:, None], problem.n_devices, axis=1)
            placed = look_for_children.select(steps)(make_case(problem, groups), line, sequence, seen)
            return built(problem, line, sequence, placed)

        return answered(problem, build)


@kernel(transfer_ticks, may_take, earliest, allocates=False)
def first_end(case: Case, line: Timeline, i: int, e: int, a: int, end: int, seen: Int, enough: int) -> int:
    """When the consumer of edge e could end, if task i before it ends on device a at `end`; NEVER if nothing takes it.

    Any answer up to `enough` is as good as another: the search stops there.
    """
    j = case.out_target[e]
    g = case.group[j]
    home = a if g == case.group[i] else line.home[g]
    first = NEVER
    for d in range(len(line.room)):
        if d != home if home >= 0 else not may_take(case, line, g, d):
            continue
        there = end
        if d != a:
            c = case.kind[a, d]
            there += transfer_ticks(case.out_payload[e], case.latency[a, c], case.num[a, c], case.den[a, c])
        ready = max(there, seen[j, d])
        if ready + case.duration[j, d] >= first:
            continue
        start, _ = earliest(case, line, j, d, ready)
        if start + case.duration[j, d] < first:
            first = start + case.duration[j, d]
            if first <= enough:
                break
    return first


@kernel(transfer_ticks, note_arrivals, arrival_on, may_take, earliest, occupy, first_end, allocates=False)
def look_for_children(case: Case, line: Timeline, sequence: Int, seen: Int) -> int:
    """Place the tasks in turn; how many were placed (fewer than n: no room for the next).

    `seen` (n, m), the release times at first, holds when the data from the producers placed is on each device.
    """
    m = len(line.room)
    for position in range(len(sequence)):
        i = sequence[position]
        g = case.group[i]
        best, best_start, best_gap = line.home[g], 0, 0
        if best >= 0:
            best_start, best_gap = earliest(case, line, i, best, arrival_on(case, line, i, best))
        else:
            note_arrivals(case, line, i)
            best_last, best_end = NEVER, NEVER
            for d in range(m):
                if not may_take(case, line, g, d):
                    continue
                start, gap = earliest(case, line, i, d, line.ready[d])
                end = start + case.duration[i, d]
                last = end
                for e in range(case.out_start[i], case.out_start[i + 1]):
                    if last > best_last:
                        break
                    first = first_end(case, line, i, e, d, end, seen, last)
                    if last < first < NEVER:
                        last = first
                if last < best_last or (last == best_last and end < best_end):
                    best, best_last, best_end, best_start, best_gap = d, last, end, start, gap
            if best < 0:
                return position
        occupy(case, line, i, best, best_start, best_gap)
        end = line.end[i]
        for e in range(case.out_start[i], case.out_start[i + 1]):
            j = case.out_target[e]
            for d in range(m):
                there = end
                if d != best:
                    c = case.kind[best, d]
                    there += transfer_ticks(
                        case.out_payload[e], case.latency[best, c], case.num[best, c], case.den[best, c]
                    )
                if there > seen[j, d]:
                    seen[j, d] = there
    return len(sequence)
