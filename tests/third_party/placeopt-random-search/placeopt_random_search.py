"""Random search: the best of many random placements, each executed first in, first out.

Folklore; no paper. Every colocation group gets one of the devices that may run all of it, each with the same
probability. A placement that keeps separated tasks together, or overfills a device, is discarded. Among equal
schedules, the first is kept.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from placeopt import (
    ALL_METRICS,
    Answer,
    Clock,
    Info,
    Options,
    Problem,
    Progress,
    Settings,
    Termination,
    evaluate,
    fits,
    lateness,
    simulate,
)


class RandomSearchSettings(Settings):
    """Settings, given by `--set` or as keyword arguments of `placeopt.solve`."""

    samples: int = Field(default=1000, ge=1)
    """Number of placements to try."""


class RandomSearch:
    """The best schedule among those of random placements; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "random-search"
    info: ClassVar[Info] = Info(
        summary="the best of many random placements",
        family="sampling",
        guarantee="none",
        complexity="O(n log n + e) for each placement",
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type: ClassVar[type[RandomSearchSettings]] = RandomSearchSettings

    def solve(self, problem: Problem, options: Options, settings: RandomSearchSettings) -> Answer:
        """Return the best schedule found; FAILED if none of the placements is possible."""
        rng, clock = np.random.default_rng(options.seed), Clock(options.time_limit)
        choices = [np.flatnonzero(allowed) for allowed in problem.group_feasible()]
        best, schedule, tried = None, None, 0
        termination = Termination.COMPLETED
        while tried < settings.samples:
            if options.should_stop():
                termination = Termination.INTERRUPTED
                break
            if clock.over:
                termination = Termination.TIME_LIMIT
                break
            tried += 1
            of_group = np.array([rng.choice(devices) for devices in choices], dtype=np.int64)
            device = of_group[problem.group]
            if (device[problem.separation[:, 0]] == device[problem.separation[:, 1]]).any():
                continue
            candidate = simulate(problem, device)
            if not fits(problem, candidate):
                continue
            late, value = lateness(problem, candidate), evaluate(problem, candidate)
            if best is None or (late, value) < best:
                best, schedule = (late, value), candidate
                if options.on_progress is not None and late == 0:
                    options.on_progress(Progress(clock.elapsed, objective=value[0], schedule=schedule))
        if schedule is None and termination is Termination.COMPLETED:
            return Answer(Termination.FAILED, message=f"none of {tried:,} random placements is possible")
        return Answer(termination, schedule, stats={"samples": tried})
