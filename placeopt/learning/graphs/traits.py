"""Work of tasks and speed of devices: the features of GiPH that a compiled problem does not contain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Float, freeze
from placeopt.model.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Traits:
    """The work of each task and the speed of each device."""

    work: Float
    """(n,) work of each task, 0 for a task that takes no time; in its own unit."""
    speed: Float
    """(m,) work per tick of each device, positive."""

    def __post_init__(self) -> None:
        freeze(self.work, self.speed)

    def check(self, problem: Problem) -> None:
        """Raise UsageError if the sizes do not match the problem."""
        if self.work.shape != (problem.n_tasks,) or self.speed.shape != (problem.n_devices,):
            raise UsageError(
                f"traits of {len(self.work)} tasks and {len(self.speed)} devices do not match a problem with "
                f"{problem.n_tasks} tasks and {problem.n_devices} devices"
            )


def fitted_traits(problem: Problem) -> Traits:
    """Fit work and speed to the durations of a problem.

    A problem keeps durations w_ik in ticks, not the work C_i and the speed SP_k from which GiPH's features are taken
    (Y. Hu et al., MLSys 2023, appendix B.7). The fit minimises the squared error of log w_ik = log C_i - log SP_k over
    all feasible pairs, so it is exact, up to the unit and the rounding to ticks, if w_ik = C_i / SP_k (equation 2
    there). The features are scaled to [-1, 1], so the unit does not matter. Devices that have no task in common,
    directly or through others, are assumed to have equal geometric mean speeds, as durations do not compare them.
    O(n m + m^3).
    """
    positive = problem.feasible & (problem.duration > 0)
    known = positive.astype(np.float64)
    log = np.log(np.where(positive, problem.duration, 1).astype(np.float64))
    count = known.sum(axis=1)
    share = known / np.maximum(count, 1)[:, None]
    mean = (log * share).sum(axis=1)
    # Normal equations without the tasks: each is the mean over its devices of log w_ik + log SP_k.
    matrix = np.diag(known.sum(axis=0)) - known.T @ share
    right = (known * (mean[:, None] - log)).sum(axis=0)
    speed = np.linalg.lstsq(matrix, right, rcond=None)[0]
    work = np.where(count > 0, np.exp(mean + (share * speed).sum(axis=1)), 0.0)
    return Traits(work, np.exp(speed))
