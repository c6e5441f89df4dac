"""m-SCT: Baechi's memory-constrained small communication times, earliest task first with favourite children.

B. Jeon et al. (Baechi), SoCC 2020, doi:10.1145/3419111.3421302, section 2.4; after C. Hanen, A. Munier, Discrete
Applied Mathematics 2001, doi:10.1016/S0166-218X(00)00179-7.

A linear program chooses at most one favourite child and at most one favourite parent for each task
(`placeopt.bounding.sct`). Then tasks are placed as in ETF, by the earliest start of all pairs of a ready task and a
device, with these exceptions:

- A device that has run a task waits for its favourite child f if f is ready and could not start sooner on another
  device. Of pairs with equal starts, that of a favourite child on its parent's device comes first.
- A waiting device takes an *urgent* task before f: a task whose data could be on any device by then. With
  `urgent_first` it does so also if f could start at the same time.
- A device without the memory for a task's colocation group leaves the task's queue.

The theorem of Hanen and Munier, on m identical devices with enough memory, identical links and transfers no longer than
any task: makespan <= (sum of durations) / m + (1 - 1/m) w, where w is the makespan of the favourites on unlimited
devices. The ratios that follow are in `placeopt.bounding.sct.ratios`; `--json` reports them.

`benchmarks/baechi_tables.py` measures these rules, the ties and the favourites.

With `released`, every decision is that of the released code (https://github.com/beomyeol/baechi) for the same
favourites, see `released_sct.cpp`, unless ports contend or memory is scarce.

Departures from the papers, and by default from the released code:

- Baechi says that a device waits for the favourite child. The code waits only while this device could start it soonest,
  as here, and once all producers of the child have ended; here once they are placed.
- In the code a task is urgent once it could start on every device, after the task that runs there. Here only its data
  counts, and only the devices that may run it.
- The papers do not define ties. Here they end on the index of the task, then of the device, with waiting devices after
  idle ones. In the code only tasks compare, breadth first (the setting `ties`), so a favourite child may go to an idle
  device that could start it at the same time. Of several urgent tasks a device takes the one that could start first
  there; in the code none is urgent before it can start.
- x of the program is rounded at 0.1, as Baechi says and its code does by default. Hanen and Munier round at 0.5, and
  the ratio is proved only for that. Rounding is repaired if another threshold gives a task two favourites. The program
  has many optima; `placeopt.bounding.sct.favourites` describes which one is used. The paper takes the one that an
  interior-point method finds.
- A full device is excluded from all further tasks in the paper, and in the proof of its theorem 1: the setting
  `closing`. By default, as in the code, it stays open to groups that still fit. `m_etf` describes the code's memory.
- On heterogeneous devices and links the program uses means. A start counts as later by the ticks that the task takes
  longer there than on its fastest device (`_pairs.detours`).
- A pair also leaves the queue if its device may not run the task or holds a task that must be separate. At a dead end
  Baechi fails; here groups are evicted to make room.
- Under port contention a device sends and receives at the same time, and a transfer occupies both ports at once. In the
  code each device has one channel for both directions (`contention: half_duplex`), and a transfer may occupy the
  receiver's later than the sender's. Queued pairs are delayed by later transfers, see `pairs.hpp`.
"""

from __future__ import annotations

from dataclasses import replace

from placeopt import engine
from placeopt.bounding.sct.favourites import Favourites
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Options
from placeopt.protocol.citations import bibtex

from .._constructive.adjusting import RoomSettings, construct_adjusted
from .._constructive.construction import Build, Constructive, PartialSchedule, as_answer, filled, heuristic_info
from .._constructive.groups import Groups
from .._constructive.sct import SctSettings, relaxed
from ._pairs import TieSettings, detours, tie_order


class MSctSettings(SctSettings, TieSettings, RoomSettings):
    """Settings of the linear program, and of the schedule."""

    urgent_first: bool = True
    """Whether a waiting device takes an urgent task also if its favourite child could start at the same time, as in
    Baechi's released code. false: only if the urgent task starts sooner."""
    released: bool = False
    """Whether every decision is that of Baechi's released code: a clock goes from event to event, and a task competes
    when its producers have ended. Ties are then topological; `detour` and `urgent_first` have no effect."""


class MSct(Constructive):
    name = "m-sct"
    info = heuristic_info(
        summary="Baechi's memory-constrained small communication times: ETF with favourite children (Jeon et al. 2020)",
        family="ready lists",
        guarantee="(4 + 3 rho) / (2 + rho) - (2 + 2 rho) / (m (2 + rho)), rho <= 1 the longest transfer over the "
        "shortest task: on identical devices and links, without limits on memory, groups, separation, release times "
        "and ports, with threshold=0.5 and released=false",
        complexity="O(n m log n + e m), and O(e) for each of a few hundred rounds of the linear program",
        citation=bibtex("jeon2020baechi", "hanen2001approximation"),
    )
    settings_type = MSctSettings

    def solve(self, problem: Problem, options: Options, settings: MSctSettings) -> Answer:
        """Return the schedule, and the statistics of the linear program."""
        # Groups are no part of the program, so the favourites are the same without colocation.
        found = relaxed(problem, options, settings)
        favourites, closing = found.favourites, settings.closing
        work, sequence = detours(problem, settings), tie_order(problem, settings)

        def build_for(case: Problem) -> Build:
            if settings.released:
                return lambda groups: filled(
                    case, groups, engine.place_by_clock, case.order, favourites.child, closing, insertion=False
                )
            return lambda groups: favourites_first(
                case, groups, favourites, sequence, work, urgent_first=settings.urgent_first, closing=closing
            )

        answer = as_answer(problem, construct_adjusted(problem, build_for, settings.adjust, settings.reserve))
        text = found.text(problem, proved=not settings.released)
        return replace(
            answer, stats=found.stats(problem), message=f"{answer.message}; {text}" if answer.message else text
        )


def favourites_first(
    problem: Problem,
    groups: Groups,
    favourites: Favourites,
    sequence: Int,
    work: Int,
    *,
    urgent_first: bool = True,
    closing: bool = False,
) -> PartialSchedule:
    """Schedule with given favourites on the devices there are; `sequence` and `work` are as in `schedule_pairs`."""
    return filled(
        problem,
        groups,
        engine.place_favourites,
        sequence,
        work,
        favourites.parent,
        urgent_first,
        closing,
        insertion=False,
    )
