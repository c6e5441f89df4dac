"""Keep the best schedule and the best bound of a portfolio, and the results of its members."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Clock, Options, Progress

from .._runs.solve_run import Incumbent


@dataclass(slots=True)
class Entry:
    """A member's best value of the first level, and its seconds."""

    name: str
    value: Value | None = None
    seconds: float = 0.0


class Standings(Incumbent):
    """The incumbent of a portfolio, with an entry for each member in the order of their first turns."""

    def __init__(self, problem: Problem, options: Options, clock: Clock) -> None:
        super().__init__(problem, options, clock)
        self._entries: dict[str, Entry] = {}
        self._reported: Value | None = None
        self._shown: Schedule | None = None

    def offer(self, schedule: Schedule, message: str = "") -> bool:
        """Keep a schedule of the member named by the message if it is better; return whether it is."""
        entry = self._entries.setdefault(message, Entry(message))
        value = evaluate(self.problem, schedule)[0]
        if entry.value is None or value < entry.value:
            entry.value = value
        return super().offer(schedule, message)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Measure a member's turn."""
        entry = self._entries.setdefault(name, Entry(name))
        begin = time.monotonic()
        try:
            yield
        finally:
            entry.seconds += time.monotonic() - begin

    def progress_callback(self, name: str) -> Callable[[Progress], None]:
        """Return a callback for a member that reports values and bounds while it runs, and its schedule at the end."""

        def report(progress: Progress) -> None:
            if progress.bound is not None and self.values is not None:
                self.raise_bound(progress.bound, name)
            value = progress.objective
            with self._lock:
                best = self._best_value()
                if value is not None and len(self.problem.objective.levels) == 1 and (best is None or value < best):
                    self._reported, self._shown = value, progress.schedule
                    self._report(name)

        return report

    def table(self) -> list[dict[str, Any]]:
        """Return the entries as plain data."""
        return [
            {"name": entry.name, "value": _plain(entry.value), "seconds": round(entry.seconds, 4)}
            for entry in self._entries.values()
        ]

    def _best_value(self) -> Value | None:
        known = [value for value in (self._reported, self.values[0] if self.values else None) if value is not None]
        return min(known, default=None)

    def _report(self, message: str) -> None:
        if self._on_progress is not None:
            best = self._best_value()
            schedule = self.schedule if self.values is not None and self.values[0] == best else self._shown
            self._on_progress(Progress(self._clock.elapsed, best, self.bound, message, schedule))


def _plain(value: Value | None) -> int | float | None:
    return value if value is None or isinstance(value, int) else float(value)
