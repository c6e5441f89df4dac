"""WBA: the workflow-based approach, the best of several randomised greedy schedules.

J. Blythe et al., CCGrid 2005, doi:10.1109/CCGRID.2005.1558639. A greedy randomised adaptive search (GRASP): it makes
schedules repeatedly and returns the best. Each is made batch by batch; a batch is all tasks whose producers are in
earlier batches. The increase I of a pair of a task and a device is the growth of the makespan if the task runs there
next. Of all pairs of the batch with an increase up to I_min + alpha (I_max - I_min) one is drawn.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- The paper continues until its time is up. Here the number of schedules is a setting, and the time limit can only stop
  it early.
- Pairs are drawn uniformly, from the seed.
- The best schedule is the one with the least lateness, then the least makespan.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pydantic import Field

from placeopt import engine
from placeopt.model.arrays import Float
from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Options, Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import (
    Build,
    Construction,
    Constructive,
    as_answer,
    best_until_stopped,
    construct_with_repair,
    filled,
    heuristic_info,
)


class WbaSettings(Settings):
    """Settings of wba."""

    alpha: float = Field(default=0.5, ge=0, le=1)
    """Pairs are drawn from those with an increase up to this share of the range above the least; 0: the least only."""
    schedules: int = Field(default=10, ge=1)
    """Number of schedules."""


class Wba(Constructive):
    name = "wba"
    info = heuristic_info(
        summary="the best of randomised greedy schedules, by increase of the makespan (Blythe et al. 2005)",
        family="ready lists",
        complexity="O(n w m + e m) for each schedule and w tasks ready at once",
        citation=bibtex("blythe2005task"),
    )
    settings_type = WbaSettings

    def solve(self, problem: Problem, options: Options, settings: WbaSettings) -> Answer:
        """Return the best schedule, or FAILED if no run finds a placement that fits into memory."""
        rng = np.random.default_rng(options.seed)
        made = 0

        def make() -> Construction:
            nonlocal made
            found = construct_with_repair(problem, drawn(problem, rng.random(problem.n_tasks), settings.alpha))
            made += 1
            return found

        best = best_until_stopped(problem, [make] * settings.schedules)
        return replace(as_answer(problem, best), stats={"schedules": made})


def drawn(problem: Problem, chance: Float, alpha: float) -> Build:
    """Return a randomised heuristic; `chance` (n,) holds the random number of each step, in [0, 1)."""
    return lambda groups: filled(problem, groups, engine.draw_pairs, chance, alpha, insertion=False)
