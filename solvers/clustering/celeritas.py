"""Celeritas: operation fusion, then Adjusting Placement of the clusters.

H. Xu, Y. Liao, H. Xie, P. Zhou: Celeritas: Fast optimizer for large dataflow graphs, 2022, arXiv:2208.00184, section
5.2, Algorithm 2, equations 7 to 9; the fusion, section 5.1, is `placeopt.passes.celeritas_fusion`. The nodes of the
coarse graph are taken in their own CPD-TOPO order. Each is placed on the device of the one before, d_k, unless another
can start it earlier by more than it takes to send its output back: with EST(d) the earliest start on device d, in a
slot between other tasks if it fits there (equation 7), and back_cost the longest transfer of its output (equation 8),
it goes to the device d_1 with the earliest start if EST(d_k) - EST(d_1) > back_cost (equation 9). A device without
room counts as one that never can.

Departures from the paper:

- Devices may differ: earliest ends take the place of earliest starts, which on equal devices is the same; and the
  transfer back is that from d_1 to d_k.
- The paper proves of one step that it does not lose against Order-Place; of all steps together it is not so. So the
  coarse graph is placed by Order-Place as well, and the shorter schedule of the two taken.
- The first node, which has none before it, goes to the device where it ends first; a node whose group has its device
  already goes there.
- Where a cluster finds no room on any device, first others are moved, and tasks placed instead of clusters
  (`placeopt_solvers._constructive.construction`, `_coarse`). If that does not help either, the paper's best effort: the
  device with most memory left takes the cluster all the same. (The text says "the device with the lowest memory usage";
  line 20 of Algorithm 2 contradicts it and takes the one with the least memory available.) The message tells by how
  much devices are then overfilled. With the option `strict` there is no schedule instead.
- The tasks of a cluster run one after another in CPD-TOPO order; re-timing may let data leave a cluster earlier.

O(n (R + m) + e log e + n log n) for the fusion; the coarse graph adds little.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, transfer_ticks
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.placement_ops import arrival_on, earliest, may_take, note_arrivals, occupy
from .._constructive.timeline import NEVER, Case, Timeline, work_steps
from ._coarse import Placer, answered_coarse, filling, roomiest


class Celeritas:
    """Places clusters one after another on one device, unless another is better by more than the way back."""

    name: ClassVar[str] = "celeritas"
    info: ClassVar[Info] = Info(
        summary="clusters in CPD-TOPO order onto the last one's device, unless another pays off (Xu et al. 2022)",
        guarantee="none; may overfill devices, and says so",
        complexity="O(n (R + m) + e log e + n log n)",
        family="fusion",
        citation=CeleritasFusion.citation,
    )
    settings_type: ClassVar[type[Settings]] = CeleritasFusion

    def solve(self, problem: Problem, options: Options, settings: CeleritasFusion) -> Answer:
        """The schedule; FAILED where nothing fits and the options are strict."""
        adjusting = Placer(lambda coarse: adjust_in_order.select(work_steps(coarse)), settings.order)
        return answered_coarse(problem, options, settings, adjusting, filling(settings.order))


@kernel(transfer_ticks, allocates=False)
def back_cost(case: Case, i: int, source: int, target: int) -> int:
    """Ticks of the longest transfer of task i's output from one device to another; 0 if nobody needs it."""
    cost = 0
    c = case.kind[source, target]
    for k in range(case.out_start[i], case.out_start[i + 1]):
        ticks = transfer_ticks(case.out_payload[k], case.latency[source, c], case.num[source, c], case.den[source, c])
        cost = max(cost, ticks)
    return cost


@kernel(note_arrivals, arrival_on, may_take, earliest, occupy, back_cost, roomiest, allocates=False)
def adjust_in_order(case: Case, line: Timeline, sequence: Int, overfill: bool) -> int:
    """Place the tasks in turn, each where the one before is unless that pays off; how many were placed."""
    last = -1
    for position in range(len(sequence)):
        i = sequence[position]
        g = case.group[i]
        chosen = line.home[g]
        if chosen < 0:
            note_arrivals(case, line, i)
            best, best_end, last_end = -1, NEVER, NEVER
            for d in range(len(line.room)):
                if not may_take(case, line, g, d):
                    continue
                start, _ = earliest(case, line, i, d, line.ready[d])
                end = start + case.duration[i, d]
                if end < best_end:
                    best, best_end = d, end
                if d == last:
                    last_end = end
            chosen = best
            if last_end < NEVER and last_end - best_end <= back_cost(case, i, best, last):
                chosen = last
            if chosen < 0 and overfill:
                chosen = roomiest(case, line, g)
            if chosen < 0:
                return position
        start, gap = earliest(case, line, i, chosen, arrival_on(case, line, i, chosen))
        occupy(case, line, i, chosen, start, gap)
        last = chosen
    return len(sequence)
