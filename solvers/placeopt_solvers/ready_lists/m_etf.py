"""m-ETF: earliest task first with a queue of (operator, device) pairs, for devices with little memory.

B. Jeon et al. (Baechi), SoCC 2020, doi:10.1145/3419111.3421302, section 2.3: the queue Q holds pairs (i, p) in
increasing order of the earliest schedulable time of i on p. This is the later of free(p) and the arrival of all inputs
there, s_i + k_i + c_ij of each producer i on another device (equation 1). A head whose device lacks memory is removed;
any other starts there at that time. Section 3.1: the first operator of a colocation group decides for the whole group,
and a device that cannot hold the group is passed over. The setting `adjust` is what the section rejects.

With `ties=topological` and `detour=false`, the decisions are those of the released code
(https://github.com/beomyeol/baechi), unless tasks take no time, ports contend or memory is scarce.

Departures from the paper:

- The paper does not define ties. Here the lower index of the task comes first, then that of the device. The order of
  tasks in the released code, breadth first, is the setting `ties`. `etf` differs only in ties.
- On heterogeneous devices a start counts as later by the ticks that the task takes longer there than on its fastest
  device (`_pairs.detours`).
- Pairs enter the queue when their task is ready, not all at the beginning: before that they have no time.
- Section 2.4 and the proof of theorem 1 drop a full device: the setting `closing`. By default, as in section 2.3 and in
  the code, it stays open to groups that still fit.
- The code counts live memory at the start of each task. A group is placed where there is room for its persistent memory
  only, and may not fit later; in its reserve-memory mode it also reserves its largest output and its largest temporary
  memory: the setting `reserve`. Here a group that is placed always fits.
- A pair also leaves the queue if its device may not run the task or holds a task that must be separate. At a dead end
  the paper fails; here groups are evicted to make room.
- Co-placement, fusion and forward-only placement (sections 3.2 and 3.3) are passes, not part of the solver.
- Under port contention a device sends and receives at the same time. In the released code each device has one channel
  for both directions (`contention: half_duplex`). Queued pairs are delayed by later transfers, see `pairs.hpp`.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol import Options
from placeopt.protocol.citations import bibtex

from .._constructive.adjusting import RoomSettings, construct_adjusted
from .._constructive.construction import Build, Construction, Constructive, heuristic_info
from ._pairs import TieSettings, detours, schedule_pairs, tie_order


class MEtfSettings(TieSettings, RoomSettings):
    """Settings of m-etf."""


class MEtf(Constructive):
    name = "m-etf"
    info = heuristic_info(
        summary="Baechi's memory-constrained earliest task first (Jeon et al. 2020)",
        family="ready lists",
        guarantee="ratio 2 + rho - 1/m, rho the longest transfer over the shortest task: on identical devices and "
        "links, without limits on memory, groups, separation, release times and ports",
        complexity="O(n m log n + e m)",
        citation=bibtex("jeon2020baechi"),
    )
    settings_type = MEtfSettings

    def builder(self, problem: Problem, settings: MEtfSettings) -> Build:
        sequence, work = tie_order(problem, settings), detours(problem, settings)
        return lambda groups: schedule_pairs(problem, groups, sequence, work, closing=settings.closing)

    def construct(self, problem: Problem, options: Options, settings: MEtfSettings) -> Construction:
        """Run the heuristic, with repair; adjust its placement and reserve memory if the settings say so."""
        return construct_adjusted(problem, lambda case: self.builder(case, settings), settings.adjust, settings.reserve)
