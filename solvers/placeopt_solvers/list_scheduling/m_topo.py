"""m-TOPO: topological order onto one device after the other, each up to an equal share of the memory.

B. Jeon et al. (Baechi), SoCC 2020, doi:10.1145/3419111.3421302, section 2.2. The paper's symbols: d_i the memory of
operator i, m the number of devices, Cap = sum_i d_i / m + max_i d_i.

Departures from the paper:

- Each colocation group counts as one operator with the memory of all its members, also in max_i d_i; the released code
  takes the largest operator. Cap is rounded up to bytes. A device is full at the first operator that would exceed Cap
  or the device's memory.
- If devices have less memory than Cap, the last one may be full before all operators are placed. The remaining ones go
  to the first device with room. A task that the current device cannot take goes to the next one that can.
- Under the memory model `peak`, a device is full if it holds Cap, counted as under `sum`, or has no live memory left.
- If no task has memory, Cap is 0. No task exceeds it, and all go to the first device.
- The paper names no order. Here it is `Problem.order`, breadth first, as in the released code.
"""

from __future__ import annotations

from placeopt.model.problem import Problem, group_memory
from placeopt.protocol import Options
from placeopt.protocol.citations import bibtex

from .._constructive.adjusting import AdjustSettings, construct_adjusted
from .._constructive.construction import Build, Construction, Constructive, heuristic_info
from .._constructive.sequences import fill_devices


class MTopo(Constructive):
    name = "m-topo"
    info = heuristic_info(
        summary="topological order, one device after the other up to an equal share of memory (Jeon et al. 2020)",
        family="list scheduling",
        complexity="O((n + e) m)",
        citation=bibtex("jeon2020baechi"),
    )
    settings_type = AdjustSettings

    def builder(self, problem: Problem, settings: AdjustSettings) -> Build:
        return lambda groups: fill_devices(problem, groups, problem.order, cap(problem))

    def construct(self, problem: Problem, options: Options, settings: AdjustSettings) -> Construction:
        """Run the heuristic, with repair, and adjust its placement if the settings say so."""
        return construct_adjusted(problem, lambda case: self.builder(case, settings), settings.adjust)


def cap(problem: Problem) -> int:
    """Return Cap in bytes, rounded up."""
    memory = group_memory(problem)
    return -(-int(memory.sum()) // max(problem.n_devices, 1)) + int(memory.max(initial=0))
