"""Keep the best schedule and the best bound of a run."""

from __future__ import annotations

import threading

from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Clock, Options, Progress


class Incumbent:
    """The best schedule and the best bound so far; reports both, and may be called from several threads.

    `found_by` is the message that came with the best schedule, `bound_by` the source of the bound.
    """

    def __init__(self, problem: Problem, options: Options, clock: Clock) -> None:
        self.problem = problem
        self.schedule: Schedule | None = None
        self.values: tuple[Value, ...] | None = None
        self.bound: Value | None = None
        self.found_by, self.bound_by = "", ""
        self._on_progress, self._clock = options.on_progress, clock
        self._lock = threading.Lock()

    def offer(self, schedule: Schedule, message: str = "") -> bool:
        """Keep a schedule if it is better than the best; return whether it is."""
        values = evaluate(self.problem, schedule)
        with self._lock:
            if self.values is not None and values >= self.values:
                return False
            self.schedule, self.values, self.found_by = schedule, values, message
            self._report(message)
            return True

    def raise_bound(self, bound: Value, source: str = "") -> None:
        """Keep a proved lower bound of the first level if it is better than the best."""
        with self._lock:
            if self.bound is None or bound > self.bound:
                self.bound, self.bound_by = bound, source
                self._report("")

    def _report(self, message: str) -> None:
        if self._on_progress is not None:
            objective = self.values[0] if self.values else None
            self._on_progress(Progress(self._clock.elapsed, objective, self.bound, message))
