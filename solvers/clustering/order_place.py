"""Order-Place: the clusters of Celeritas in CPD-TOPO order onto one device until it is full, then the next.

H. Xu, Y. Liao, H. Xie, P. Zhou: Celeritas: Fast optimizer for large dataflow graphs, 2022, arXiv:2208.00184, sections
5.2 and 6.2.2 (as a baseline there): operation fusion (`placeopt.passes.celeritas_fusion`), then the nodes of the coarse
graph in their own CPD-TOPO order "on one device until reaching its memory limit, then move on to the next device".
Without a limit of memory all tasks share the first device.

Departures from the paper:

- A cluster whose group has its device already goes there. One that the current device may not run (feasibility,
  separation) goes to the next that may, and the next cluster to the current one again; only where memory is what lacks
  there does the next device become the current one. After the last device comes the first.
- Where a cluster finds no room on any device, first others are moved, and tasks placed instead of clusters
  (`placeopt_solvers._constructive.construction`, `_coarse`). If that does not help either, the paper's best effort: the
  device with most memory left takes the cluster all the same. The message tells by how much devices are then
  overfilled. With the option `strict` there is no schedule instead.
- The tasks of a cluster run one after another in CPD-TOPO order; re-timing may let data leave a cluster earlier.

O(n (R + m) + e log e + n log n) for the fusion; the coarse graph adds little.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.solver import Answer, Info, Options, Settings

from ._coarse import answered_coarse, filling


class OrderPlace:
    """Fills one device after another with clusters."""

    name: ClassVar[str] = "order-place"
    info: ClassVar[Info] = Info(
        summary="clusters in CPD-TOPO order onto one device until it is full, then the next (Xu et al. 2022)",
        guarantee="none; may overfill devices, and says so",
        complexity="O(n (R + m) + e log e + n log n)",
        family="fusion",
        citation=CeleritasFusion.citation,
    )
    settings_type: ClassVar[type[Settings]] = CeleritasFusion

    def solve(self, problem: Problem, options: Options, settings: CeleritasFusion) -> Answer:
        """The schedule; FAILED where nothing fits and the options are strict."""
        return answered_coarse(problem, options, settings, filling(settings.order))
