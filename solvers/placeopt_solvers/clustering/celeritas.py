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
- Under the memory model `peak`, a device has room for a cluster if it has it for the live memory of its tasks, which
  includes outputs that only the cluster itself needs. Clusters are also placed as under `sum`, and the better schedule
  counts.
- The tasks of a cluster run one after another in CPD-TOPO order. Re-timing may let data leave a cluster earlier.

O(n (R + m) + e log e + n log n) for the fusion; placing the coarse graph adds little.
"""

from __future__ import annotations

from typing import Literal

from placeopt.model.problem import Problem
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.protocol import Answer, Options

from .._constructive.construction import heuristic_info
from ._coarse import solve_coarse
from ._placers import adjusting_placer, order_placer


class CeleritasSettings(CeleritasFusion):
    """Settings of the fusion, and the placer."""

    placement: Literal["adjusting", "order", "best"] = "adjusting"
    """How clusters are placed: adjusting, by Algorithm 2 as in the paper; order, by Order-Place, its baseline; best, by
    both, and the better schedule of the original graph is returned."""


class Celeritas:
    name = "celeritas"
    info = heuristic_info(
        summary="clusters in CPD-TOPO order on the last one's device, unless another pays off (Xu et al. 2022)",
        guarantee="none; may overfill devices, and reports it",
        complexity="O(n (R + m) + e log e + n log n)",
        family="fusion",
        citation=CeleritasFusion.citation,
        clusters=True,
    )
    settings_type = CeleritasSettings

    def solve(self, problem: Problem, options: Options, settings: CeleritasSettings) -> Answer:
        """Return the schedule; FAILED if no placement fits and the options are strict."""
        both = adjusting_placer(settings.order), order_placer(settings.order)
        placers = [each for each in both if settings.placement in ("best", each.name)]
        return solve_coarse(problem, options, settings, *placers)
