"""Random task, earliest finish time: a random placement improved task by task, again and again.

The baseline "random task selection + EFT device selection" of GiPH: Y. Hu, C. Zhang, E. Andert, H. Singh, A.
Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH: Generalizable placement learning for adaptive
heterogeneous computing, MLSys 2023, arXiv:2305.14562, section 5. At each
step a random task goes to the device on which it finishes first under the current placement; the new placement is
simulated, first in first out, whether it is better or not, and the best one met is the answer. After `steps` steps (the
paper's 2 |V|) the search begins anew at another random placement.

The finish time is that of the paper's released code (github.com/uidmice/placement-rl, `dev_selection_eft`): the last
arrival of an input by the simulated schedule, plus the duration. It does not ask whether the device is busy then.

Departures from the paper and its code, and choices:

- Entry tasks go to the device where they take least; the code leaves them where they are or draws a device.
- A step that leaves the placement as it is needs no simulation.
- Ties go to the device with the lowest index.
- A task's colocation group comes along, its inputs from there taking no time. Devices without room for the group, or
  with a task that must be apart from it, do not count. Random placements: see `placeopt_solvers.baselines._sampling`.
- Ports count in the simulation, not in finish times. Release times count in both. The FIFO schedule may miss
  deadlines; of the placements, those that miss them by least count.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.solver import ALL_METRICS, Answer, Info, Options, Settings
from placeopt.solver.citations import GIPH

from ._sampling import sampled


class RandomTaskEftSettings(Settings):
    """How long, how often."""

    steps: int | None = Field(default=None, ge=0)
    """Steps from each random placement; by default two for each task."""
    restarts: int | None = Field(default=None, ge=1)
    """Random placements to start from; by default as many as the time limit allows, or a second."""


class RandomTaskEft:
    """The best placement met on many such searches; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "random-task-eft"
    info: ClassVar[Info] = Info(
        summary="random tasks, each to where it ends first, from random placements (baseline of GiPH, Hu et al. 2023)",
        family="baselines",
        guarantee="none",
        complexity="O(n log n + e) per step",
        citation=GIPH,
        anytime=True,
        warm_start=True,
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type: ClassVar[type[Settings]] = RandomTaskEftSettings

    def solve(self, problem: Problem, options: Options, settings: RandomTaskEftSettings) -> Answer:
        """The best schedule, or FAILED where no placement fits into memory."""
        steps = 2 * problem.n_tasks if settings.steps is None else settings.steps
        return sampled(problem, options, settings.restarts, steps)
