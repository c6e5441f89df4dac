"""Single: all tasks on one device, the best one; a baseline that every other placement should beat."""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol import ALL_METRICS, Answer, Options, Settings, Termination

from .._constructive.construction import heuristic_info
from .._starts.serial import best_serial


class Single:
    name = "single"
    info = heuristic_info(
        summary="all tasks on the one device that gives the best objective",
        family="baselines",
        complexity="O((n + e) m)",
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:
        """Return the best schedule on one device, or FAILED with the reason for each device."""
        schedule, message = best_serial(problem)
        return Answer(Termination.FAILED if schedule is None else Termination.COMPLETED, schedule, message=message)
