"""Random task, earliest finish time: random placements improved task by task.

The baseline "random task selection + EFT device selection" of GiPH (Y. Hu et al., MLSys 2023, arXiv:2305.14562, section
5). At each step a random task goes to the device on which it finishes first under the current placement. The new
placement is simulated, first in first out, and kept whether it is better or not; the best one of all is the answer.
After `steps` steps (the paper's 2 |V|) the search restarts from another random placement.

The finish time is that of the paper's released code (github.com/uidmice/placement-rl, `dev_selection_eft`): the last
arrival of an input in the simulated schedule, plus the duration. It ignores whether the device is busy then.

Departures from the paper and its code, and choices:

- Entry tasks go to the device where their duration is least; the code leaves them or draws a device.
- A step that does not change the placement is not simulated.
- Ties go to the device with the lowest index.
- A task's colocation group moves with it, and its inputs from the group take no time. Devices without room for the
  group, or with a task that must be separate, are ignored. Random placements: see
  `placeopt_solvers.baselines._sampling`.
- Ports count in the simulation, not in finish times; release times count in both. The FIFO schedule may miss deadlines;
  the placement with the least lateness is the best.
"""

from __future__ import annotations

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Options, Settings

from ._sampling import sampled, sampling_info


class RandomTaskEftSettings(Settings):
    """Settings of random-task-eft."""

    steps: int | None = Field(default=None, ge=0)
    """Steps after each random placement; by default two for each task."""
    restarts: int | None = Field(default=None, ge=1)
    """Number of random placements; by default as many as fit into the time limit, or into a second without one."""


class RandomTaskEft:
    name = "random-task-eft"
    info = sampling_info(
        "random tasks, each to where it ends first, from random placements (baseline of GiPH, Hu et al. 2023)",
        "O(n log n + e) per step",
    )
    settings_type = RandomTaskEftSettings

    def solve(self, problem: Problem, options: Options, settings: RandomTaskEftSettings) -> Answer:
        """Return the best schedule, or FAILED if no placement fits into memory."""
        steps = 2 * problem.n_tasks if settings.steps is None else settings.steps
        return sampled(problem, options, settings.restarts, steps)
