"""Random: the best of many random placements, a baseline that every search should beat.

The baseline "random placement sampling" of GiPH (Y. Hu et al., MLSys 2023, arXiv:2305.14562, section 5). Each task's
device is drawn uniformly from those that may run it, and the placement is simulated, first in first out.

Departures from the paper:

- The answer is the best placement; the paper also reports the average.
- Memory, colocation groups and separation are kept, see `placeopt_solvers.baselines._sampling`; placements are uniform
  if few rules bind. The FIFO schedule may miss deadlines; the placement with the least lateness is the best.
"""

from __future__ import annotations

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Options, Settings

from ._sampling import sampled, sampling_info


class RandomSettings(Settings):
    """Settings of random."""

    samples: int | None = Field(default=None, ge=1)
    """Number of placements; by default as many as fit into the time limit, or into a second without one."""


class RandomPlacement:
    name = "random"
    info = sampling_info(
        "the best of many random placements (the baseline of GiPH, Hu et al. 2023)",
        "O(n log n + e) per placement",
    )
    settings_type = RandomSettings

    def solve(self, problem: Problem, options: Options, settings: RandomSettings) -> Answer:
        """Return the best schedule, or FAILED if no placement fits into memory."""
        return sampled(problem, options, settings.samples, 0)
