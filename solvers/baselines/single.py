"""All tasks on one device, the best there is: what every other placement has to beat."""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import ALL_METRICS, Answer, Info, Options, Settings, Termination

from .._starts.serial import best_serial


class Single:
    """Serial schedules on each device that may run every task; the best by the objective, then by index."""

    name: ClassVar[str] = "single"
    info: ClassVar[Info] = Info(
        summary="all tasks on the one device that gives the best objective",
        family="baselines",
        guarantee="none",
        complexity="O((n + e) m)",
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """The best schedule on one device, or FAILED with what rules out each device."""
        schedule, message = best_serial(problem)
        return Answer(Termination.FAILED if schedule is None else Termination.COMPLETED, schedule, message=message)
