"""Keep the best schedule and the best bound of a portfolio, the results of its members, and what a run knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from placeopt.bounding.quick import Bound, best_bound
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Clock, Options, Progress, Termination
from placeopt.proving.bound_prover import BoundProver
from placeopt.proving.portfolio import bounds

from .._runs.solve_run import Incumbent, SolveRun


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

    @property
    def standing(self) -> tuple[Value | None, Value | None]:
        """The best value of the first level, also of a running member, and its bound."""
        return self._best_value(), self.bound

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


class PortfolioRun(SolveRun):
    """One solve by members that take turns, with or without a prover that proves bounds in parallel."""

    best: Standings

    def __init__(self, problem: Problem, options: Options, prover: BoundProver | None, planned: float) -> None:
        """Begin a run; without a time limit, it plans for `planned` seconds."""
        super().__init__(problem, options)
        self.best = Standings(problem, options, self.clock)
        self.prover = prover
        self.span = planned if options.planned_seconds is None else options.planned_seconds
        if options.workers > 1:
            self.varies_by = "threads"
        self.least = best_bound(problem)
        self.proved: Termination | None = None
        self.turns, self.worked = 0, 0.0  # turns of searches, and planned seconds of the members that are counted

    @property
    def threads(self) -> int:
        """Threads that the prover does not use."""
        beside = self.prover.workers if self.prover is not None and self.prover.busy else 0
        return max(self.options.workers - beside, 1)

    def stop_reason(self) -> Termination | None:
        """Return why to stop now; None to continue."""
        return self.proved or self.first_level_reached(self.best.bound) or super().stop_reason()

    def offer(self, schedule: Schedule, name: str) -> None:
        """Keep a schedule of a member if it is better."""
        if self.best.offer(schedule, name) and self.best.bound is None:
            # Only now: bounds of an infeasible problem mean nothing.
            self.best.raise_bound(self.least.value, self.least.name)

    def note_end(self, answer: Answer) -> None:
        """Note what the end of a member proves, and whether its schedule depends on the clock."""
        cut = "clock" if answer.termination is Termination.TIME_LIMIT else ""
        self.varies_by = self.varies_by or answer.varies_by or cut
        if answer.termination is Termination.INFEASIBLE:
            self.proved = Termination.INFEASIBLE

    def prove(self, seconds: float, known: Value, on_bound: Callable[[Bound], None] | None = None) -> None:
        """Prove slow bounds within some seconds, and keep them, or pass them to `on_bound`.

        `known` is the best value of the first level.
        """
        with self.best.turn("bounds"):
            bounds(
                self.problem,
                time_limit=seconds,
                workers=1,
                known=known,
                on_bound=on_bound or (lambda bound: self.best.raise_bound(bound.value, bound.name)),
                should_stop=self.stopped,
                blocks=False,
            )

    def concluded(self) -> Answer:
        """Return the best schedule and bound of all members, and why the run ended."""
        why = self.stop_reason() or (Termination.COMPLETED if self.best.schedule is not None else Termination.FAILED)
        self.stats = {"found by": self.best.found_by, "members": self.best.table()}
        if why is Termination.FAILED and not self.message:
            self.message = "no member found a feasible schedule or proved that there is none"
        return self.ended(why)


def _plain(value: Value | None) -> int | float | None:
    return value if value is None or isinstance(value, int) else float(value)
