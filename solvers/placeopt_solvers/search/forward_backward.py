"""forward-backward: passes of list scheduling in both directions improve one window of a schedule after the other.

K. Y. Li, R. J. Willis: An iterative scheduling technique for resource-constrained project scheduling, EJOR 56, 1992,
doi:10.1016/0377-2217(92)90320-9; P. Tormos, A. Lova: A competitive heuristic solution technique for
resource-constrained project scheduling, Annals of Operations Research 102, 2001, doi:10.1023/A:1010997814183.

A pass places the tasks of a window again, each on the device with the least sum of its end and of the ticks that follow
it there in the last schedule; the next pass does so from the other end (`_intervals.passes`). Windows have exact heads
and tails, so a shorter window shortens the schedule (`_intervals.sweep`). Sizes of windows, noise and aims that gained
most recently are used most.

The first seconds gain most, on graphs of some thousand tasks and more: a window takes milliseconds, regardless of the
size of the graph. Without ports, `windows` ends lower; `annealing` is better on small graphs.

Departures from the papers: tasks choose devices, with transfers between them; windows; noise and aims. Memory under
`sum`, feasible devices, colocation and separation are exact in windows. Under `peak` a window may use the capacity less
the peak of the other tasks. Under port contention, windows ignore ports, and transfers are then booked around the
others. Deadlines do not influence the passes. A schedule that violates a rule is discarded.

With one worker, seconds are converted to work, so the same seed gives the same schedule.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options
from placeopt.protocol.citations import bibtex

from ._intervals.anytime import SweepSettings, improved_by
from ._intervals.sweep import Sweep


class ForwardBackward:
    """Improves a schedule anytime; the result is never longer than the start."""

    name: ClassVar[str] = "forward-backward"
    info: ClassVar[Info] = Info(
        summary="list scheduling in both directions, window by window (Li, Willis 1992; Tormos, Lova 2001)",
        family="search",
        guarantee="none",
        complexity="anytime; O(n + e) and passes of O((k + l) m) over k tasks and l edges per step",
        citation=bibtex("tormos2001competitive"),
        anytime=True,
        warm_start=True,
    )
    settings_type: ClassVar[type[SweepSettings]] = SweepSettings

    def solve(self, problem: Problem, options: Options, settings: SweepSettings) -> Answer:
        """Return the best schedule found within the limits."""
        return improved_by(problem, options, settings, Sweep)
