"""Random placements, the best of many: what any search has to beat.

The baseline "random placement sampling" of GiPH: Y. Hu, C. Zhang, E. Andert, H. Singh, A.
Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH: Generalizable placement learning for adaptive
heterogeneous computing, MLSys 2023, arXiv:2305.14562, section 5: each task's device is
drawn from those that may run it, each as likely as the others, and the placement is simulated, first in first out.

Departures from the paper:

- The best placement is the answer; the paper also reports the average.
- Memory, colocation groups and separation are kept, see `placeopt_solvers.baselines._sampling`: uniform where few rules
  bind. The FIFO schedule may miss deadlines; of the placements, those that miss them by least count.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.solver import ALL_METRICS, Answer, Info, Options, Settings
from placeopt.solver.citations import GIPH

from ._sampling import sampled


class RandomSettings(Settings):
    """How often."""

    samples: int | None = Field(default=None, ge=1)
    """Placements that are drawn; by default as many as the time limit allows, or a second."""


class RandomPlacement:
    """The best of many random placements; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "random"
    info: ClassVar[Info] = Info(
        summary="the best of many random placements (the baseline of GiPH, Hu et al. 2023)",
        family="baselines",
        guarantee="none",
        complexity="O(n log n + e) per placement",
        citation=GIPH,
        anytime=True,
        warm_start=True,
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type: ClassVar[type[Settings]] = RandomSettings

    def solve(self, problem: Problem, options: Options, settings: RandomSettings) -> Answer:
        """The best schedule, or FAILED where no placement fits into memory."""
        return sampled(problem, options, settings.samples, 0)
