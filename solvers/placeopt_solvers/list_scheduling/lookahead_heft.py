"""Lookahead HEFT: each task on the device that lets the last of its consumers end first.

L. F. Bittencourt, R. Sakellariou, E. R. M. Madeira, Euromicro PDP 2010, doi:10.1109/PDP.2010.56: the variant with the
order of HEFT and the maximum over the children.

Tasks come in the order of HEFT, by decreasing upward rank. Each is tried on every device, at its earliest end there,
with insertion. Then each of its consumers (children) is tried on the device where it would end first, given those of
its producers that are placed. The task goes to the device with the least latest end among the children. A task without
children goes to the device where it ends first itself.

The paper runs HEFT for every child on every device for every device of the task, and recomputes all arrivals each time.
Here arrivals from producers placed before are stored, and a device is discarded once one child ends later than on the
best device so far: O(n log n + e m²) and the gaps searched.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- The children of a task are tried one by one, not placed one after the other: they do not occupy each other's gaps.
- Ties, which the paper leaves open, go to the device where the task itself ends first, then to the lowest index.
- Upward ranks and their ties are those of `heft`.
- A child whose group has a home is tried there only. A child that no device can take is ignored.
- Port contention is considered for the task, but not for its children.
"""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Info, Settings

from .._constructive.construction import Build, Constructive, PartialSchedule, run_loop
from .._constructive.groups import Groups
from .._constructive.placement_ops import can_host, compute_ready_times, earliest_start, link_ticks, occupy, ready_time
from .._constructive.priorities import priority_list, upward_ranks
from .._constructive.timeline import DONE, NEVER, Instance, Timeline, work_steps


class LookaheadHeft(Constructive):
    name = "lookahead-heft"
    info = Info(
        summary="HEFT, each task on the device that lets its consumers end first (Bittencourt et al. 2010)",
        family="list scheduling",
        tiers=True,
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

    def builder(self, problem: Problem, settings: Settings) -> Build:
        sequence = priority_list(problem, upward_ranks(problem))
        steps = work_steps(problem) * max(problem.n_devices, 1)

        def build(groups: Groups) -> PartialSchedule:
            arrived = np.repeat(problem.release[:, None], problem.n_devices, axis=1)
            return run_loop(problem, groups, look_ahead, sequence, arrived, steps=steps)

        return build


@kernel(link_ticks, can_host, earliest_start, allocates=False)
def first_end(instance: Instance, line: Timeline, i: int, e: int, a: int, end: int, arrived: Int, enough: int) -> int:
    """Return the earliest end of the consumer of edge e if its producer i ends on device a at `end`.

    NEVER if no device can take it. The search stops at any end up to `enough`, which need not be the earliest.
    """
    j = instance.out_target[e]
    g = instance.group[j]
    home = a if g == instance.group[i] else line.home[g]
    first = NEVER
    for d in range(len(line.room)):
        if d != home if home >= 0 else not can_host(instance, line, g, d):
            continue
        there = end
        if d != a:
            there += link_ticks(instance, instance.out_payload[e], a, instance.kind[a, d])
        ready = max(there, arrived[j, d])
        if ready + instance.duration[j, d] >= first:
            continue
        start, _ = earliest_start(instance, line, j, d, ready)
        if start + instance.duration[j, d] < first:
            first = start + instance.duration[j, d]
            if first <= enough:
                break
    return first


@kernel(link_ticks, compute_ready_times, ready_time, can_host, earliest_start, occupy, first_end, allocates=False)
def look_ahead(instance: Instance, line: Timeline, sequence: Int, arrived: Int) -> int:
    """Place the tasks in turn; return DONE or the task that no device can take.

    `arrived` (n, m), the release times at first: the tick at which the data of all placed producers is on each device.
    """
    m = len(line.room)
    for position in range(len(sequence)):
        i = sequence[position]
        g = instance.group[i]
        best, best_start, best_gap = line.home[g], 0, 0
        if best >= 0:
            best_start, best_gap = earliest_start(instance, line, i, best, ready_time(instance, line, i, best))
        else:
            compute_ready_times(instance, line, i)
            best_last, best_end = NEVER, NEVER
            for d in range(m):
                if not can_host(instance, line, g, d):
                    continue
                start, gap = earliest_start(instance, line, i, d, line.ready[d])
                end = start + instance.duration[i, d]
                last = end
                for e in range(instance.out_start[i], instance.out_start[i + 1]):
                    if last > best_last:
                        break
                    first = first_end(instance, line, i, e, d, end, arrived, last)
                    if last < first < NEVER:
                        last = first
                if last < best_last or (last == best_last and end < best_end):
                    best, best_last, best_end, best_start, best_gap = d, last, end, start, gap
            if best < 0:
                return int(i)
        occupy(instance, line, i, best, best_start, best_gap)
        end = line.end[i]
        for e in range(instance.out_start[i], instance.out_start[i + 1]):
            j = instance.out_target[e]
            for d in range(m):
                there = end
                if d != best:
                    there += link_ticks(instance, instance.out_payload[e], best, instance.kind[best, d])
                if there > arrived[j, d]:
                    arrived[j, d] = there
    return DONE
