"""HEFT: heterogeneous earliest finish time, list scheduling with insertion.

H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE TPDS 2002, doi:10.1109/71.993206, section 4.1 (upward rank: equations 8 and 9).
Tasks come by decreasing upward rank, the length of the longest path to an exit in mean times. Each goes to the device
where it ends first, in a gap between other tasks if it fits there.

Departures from the paper:

- Mean transfer times are means of times. The paper takes the time at the mean bandwidth, which is the same on identical
  links (`placeopt.model.levels`).
- Tasks of equal rank go by index, unless one precedes the other.
- A task of no duration may start in a gap or at the end of a predecessor on its own device. Other points at which two
  tasks touch are not tried.
- If the schedule misses a deadline, a second one is made by upward ranks against deadlines: by the latest start that
  meets all later deadlines in mean times, where tasks without a deadline are due at the end of the first schedule. The
  schedule with less lateness is returned, then the shorter one. It may still miss deadlines.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol import Options, Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Construction, Constructive, heuristic_info
from .._constructive.sequences import heft


class Heft(Constructive):
    name = "heft"
    info = heuristic_info(
        summary="list scheduling by upward rank, each task where it ends first (Topcuoglu et al. 2002)",
        family="list scheduling",
        complexity="O((n + e) m) and the gaps searched",
        citation=bibtex("topcuoglu2002heft"),
    )

    def construct(self, problem: Problem, options: Options, settings: Settings) -> Construction:
        return heft(problem)
