"""Order-Place: the clusters of Celeritas in CPD-TOPO order on one device until it is full, then the next.

H. Xu, Y. Liao, H. Xie, P. Zhou (Celeritas), 2022, arXiv:2208.00184, sections 5.2 and 6.2.2 (as a baseline there):
operation fusion (`placeopt.passes.celeritas_fusion`), then the nodes of the coarse graph in their own CPD-TOPO order
"on one device until reaching its memory limit, then move on to the next device". Without a limit of memory all tasks
share the first device.

Departures from the paper:

- A cluster whose group has a home goes there. A cluster that the current device may not run (feasibility, separation)
  goes to the next device that can take it, and the next cluster to the current one again. Only if memory is short does
  the next device become the current one. After the last device comes the first.
- Clusters without room, best effort, re-timing and complexity: as in `celeritas`.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.protocol import Answer, Options

from .._constructive.construction import heuristic_info
from ._coarse import solve_coarse
from ._placers import order_placer


class OrderPlace:
    name = "order-place"
    info = heuristic_info(
        summary="clusters in CPD-TOPO order on one device until it is full, then the next (Xu et al. 2022)",
        guarantee="none; may overfill devices, and reports it",
        complexity="O(n (R + m) + e log e + n log n)",
        family="fusion",
        citation=CeleritasFusion.citation,
        clusters=True,
    )
    settings_type = CeleritasFusion

    def solve(self, problem: Problem, options: Options, settings: CeleritasFusion) -> Answer:
        """Return the schedule; FAILED if no placement fits and the options are strict."""
        return solve_coarse(problem, options, settings, order_placer(settings.order))
