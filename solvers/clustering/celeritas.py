"""Celeritas: operation fusion, then Adjusting Placement of the clusters.

H. Xu, Y. Liao, H. Xie, P. Zhou, 2022, arXiv:2208.00184, section 5.2, Algorithm 2, equations 7 to 9; the fusion, section
5.1, is `placeopt.passes.celeritas_fusion`. The nodes of the coarse graph are placed in their own CPD-TOPO order. Each
goes to the device d_k of the node before, unless another device can start it earlier by more than the time to send its
output back. With EST(d) the earliest start on device d, in a gap between other tasks if it fits (equation 7), and
back_cost the longest transfer of its output (equation 8), it goes to the device d_1 with the earliest start if
EST(d_k) - EST(d_1) > back_cost (equation 9). On a device without room, EST is infinite.

Departures from the paper:

- Devices may differ: earliest ends replace earliest starts, which is the same on identical devices. The transfer back
  is that from d_1 to d_k.
- The paper proves that one step is no worse than Order-Place, but all steps together can be worse. The setting
  `placement` therefore offers both placers: adjusting, the default, is Algorithm 2 alone; order is Order-Place; best
  runs both and returns the better schedule. Schedules are compared after re-timing on the original graph: the coarse
  graph can rank them differently, because data leaves a cluster only at its end there.
- The first node goes to the device where it ends first. A node whose group has a home goes there.
- If a cluster finds no room on any device, first groups are evicted to make room, then tasks are placed instead of
  clusters. If that does not help either, the paper's best effort is used: the device with the most memory left takes
  the cluster. (The text says "the device with the lowest memory usage"; line 20 of Algorithm 2 contradicts it and takes
  the one with the least memory available.) The message reports by how much devices are overfilled. With the
  option `strict` there is no schedule instead. With placement = best, each of these steps tries both placers before the
  next step begins, and of two best efforts the one with fewer bytes over the capacities is returned.
- The tasks of a cluster run one after another in CPD-TOPO order. Re-timing may let data leave a cluster earlier.

O(n (R + m) + e log e + n log n) for the fusion; placing the coarse graph adds little.
"""

from __future__ import annotations

from typing import Literal

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import OrderName
from placeopt.model.problem import Problem
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.solver import Answer, Info, Options

from .._constructive.placement_ops import can_host, compute_ready_times, earliest_start, link_ticks, occupy, ready_time
from .._constructive.timeline import DONE, NEVER, Instance, Timeline
from ._coarse import Placer, order_placer, roomiest, solve_coarse


class CeleritasSettings(CeleritasFusion):
    """Settings of the fusion, and the placer."""

    placement: Literal["adjusting", "order", "best"] = "adjusting"
    """How clusters are placed: adjusting, by Algorithm 2 as in the paper; order, by Order-Place, its baseline; best, by
    both, and the better schedule of the original graph is returned."""


class Celeritas:
    name = "celeritas"
    info = Info(
        summary="clusters in CPD-TOPO order on the last one's device, unless another pays off (Xu et al. 2022)",
        guarantee="none; may overfill devices, and reports it",
        complexity="O(n (R + m) + e log e + n log n)",
        family="fusion",
        citation=CeleritasFusion.citation,
    )
    settings_type = CeleritasSettings

    def solve(self, problem: Problem, options: Options, settings: CeleritasSettings) -> Answer:
        """Return the schedule; FAILED if no placement fits and the options are strict."""
        placers = [each for each in both_placers(settings.order) if settings.placement in ("best", each.name)]
        return solve_coarse(problem, options, settings, *placers)


def both_placers(order: OrderName) -> tuple[Placer, Placer]:
    """Return the placers of Adjusting Placement and of Order-Place."""
    return Placer("adjusting", adjust_in_order, order), order_placer(order)


@kernel(link_ticks, allocates=False)
def back_cost(instance: Instance, i: int, source: int, target: int) -> int:
    """Return the ticks of the longest transfer of task i's output between two devices; 0 without consumers."""
    cost = 0
    c = instance.kind[source, target]
    for k in range(instance.out_start[i], instance.out_start[i + 1]):
        cost = max(cost, link_ticks(instance, instance.out_payload[k], source, c))
    return cost


@kernel(compute_ready_times, ready_time, can_host, earliest_start, occupy, back_cost, roomiest, allocates=False)
def adjust_in_order(instance: Instance, line: Timeline, sequence: Int, overfill: bool) -> int:
    """Place the tasks in turn by the paper's rule; return DONE or the task that no device can take."""
    last = -1
    for position in range(len(sequence)):
        i = sequence[position]
        g = instance.group[i]
        chosen = line.home[g]
        if chosen < 0:
            compute_ready_times(instance, line, i)
            best, best_end, last_end = -1, NEVER, NEVER
            for d in range(len(line.room)):
                if not can_host(instance, line, g, d):
                    continue
                start, _ = earliest_start(instance, line, i, d, line.ready[d])
                end = start + instance.duration[i, d]
                if end < best_end:
                    best, best_end = d, end
                if d == last:
                    last_end = end
            chosen = best
            if last_end < NEVER and last_end - best_end <= back_cost(instance, i, best, last):
                chosen = last
            if chosen < 0 and overfill:
                chosen = roomiest(instance, line, g)
            if chosen < 0:
                return int(i)
        start, gap = earliest_start(instance, line, i, chosen, ready_time(instance, line, i, chosen))
        occupy(instance, line, i, chosen, start, gap)
        last = chosen
    return DONE
