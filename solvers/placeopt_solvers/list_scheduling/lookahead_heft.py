"""Lookahead HEFT: each task on the device that lets the last of its consumers end first.

L. F. Bittencourt, R. Sakellariou, E. R. M. Madeira, Euromicro PDP 2010, doi:10.1109/PDP.2010.56: the variant with the
order of HEFT and the maximum over the children.

Tasks come in the order of HEFT, by decreasing upward rank. Each is tried on every device, at its earliest end there,
with insertion. Then each of its consumers (children) is tried on the device where it would end first, given those of
its producers that are placed. The task goes to the device with the least latest end among the children. A task without
children goes to the device where it ends first itself.

The paper runs HEFT for every child on every device for every device of the task, and recomputes all arrivals each time.
Here arrivals from producers placed before are stored, and a device is discarded once one child ends later than on the
best device so far: O(n log n + e m²) and the gaps searched.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- The children of a task are tried one by one, not placed one after the other: they do not occupy each other's gaps.
- Ties, which the paper leaves open, go to the device where the task itself ends first, then to the lowest index.
- Upward ranks and their ties are those of `heft`.
- A child whose group has a home is tried there only. A child that no device can take is ignored.
- Port contention is considered for the task, but not for its children.
"""

from __future__ import annotations

from placeopt import engine
from placeopt.model.problem import Problem
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, filled, heuristic_info
from .._constructive.priorities import priority_list, upward_ranks


class LookaheadHeft(Constructive):
    name = "lookahead-heft"
    info = heuristic_info(
        summary="HEFT, each task on the device that lets its consumers end first (Bittencourt et al. 2010)",
        family="list scheduling",
        complexity="O(n log n + e m²) and the gaps searched",
        citation=bibtex("bittencourt2010lookahead"),
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        sequence = priority_list(problem, upward_ranks(problem))
        return lambda groups: filled(problem, groups, engine.look_ahead, sequence)
