"""Prove lower bounds in a separate thread while a solver searches.

Solvers that search are rarely the ones that prove the best bounds. The prover receives every incumbent, computes the
bounds of `placeopt.proving.portfolio`, reports them, and stops the solver once the proved gap is small enough. It
starts after a delay, so easy problems are solved without it.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from types import TracebackType

from placeopt.bounding.quick import Bound
from placeopt.errors import InternalError
from placeopt.model.problem import Problem
from placeopt.protocol import Announcer, Answer, Clock, Options, Progress, Termination
from placeopt.proving.portfolio import bounds

DELAY = 2.0
"""Seconds before the prover starts."""

LEAST = 1e-3
"""Least time limit in seconds for a prover that has started."""


class BoundProver:
    """A context manager that proves bounds while it is active; pass `options` to the solver.

    It starts after `delay` seconds (default DELAY) and uses `workers` threads (default: all requested ones except one).
    `exact` is whether it also runs exact solvers of blocks and of pipelines; a solver that runs them itself omits it.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        *,
        delay: float | None = None,
        workers: int | None = None,
        exact: bool = False,
    ) -> None:
        self._problem, self._requested, self._exact = problem, options, exact
        self._delay = DELAY if delay is None else delay
        self.workers = max(options.workers - 1, 1) if workers is None else workers
        self._clock = Clock(options.time_limit)
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bound-prover", daemon=True)
        self._error: BaseException | None = None
        self._fatal = False
        self._announce = Announcer(options.on_progress)
        self.best: Bound | None = None
        self.options = replace(
            options,
            on_progress=lambda progress: self._announce(replace(progress, elapsed=self._clock.elapsed)),
            should_stop=self._should_stop,
        )

    def __enter__(self) -> BoundProver:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave.set()
        self._thread.join()

    @property
    def busy(self) -> bool:
        """Whether the prover is running or about to start."""
        return self._thread.is_alive()

    def with_bound(self, answer: Answer) -> Answer:
        """The solver's answer with the proved bound, if that is better.

        An interrupted answer becomes `optimal` if the bound equals the incumbent's value. A failure of the prover does
        not discard the answer: its message names the error.

        Raises
        ------
        InternalError
            If bounds contradict each other.
        BaseException
            Any exception that `on_progress` raised for a bound.
        """
        if self._error is not None and self._fatal:
            raise self._error
        best = self.best
        if self._error is not None:
            failure = f"proving better bounds failed: {type(self._error).__name__}: {self._error}"
            answer = replace(answer, message=f"{answer.message}; {failure}" if answer.message else failure)
        if best is None or answer.termination is Termination.INFEASIBLE:
            return answer
        if answer.bound is None or best.value > answer.bound:
            answer = replace(answer, bound=best.value, bound_source=best.name)
        if answer.termination is Termination.INTERRUPTED and self._gap_closed() and not self._requested.should_stop():
            optimal = self._announce.latest.objective == best.value
            answer = replace(answer, termination=Termination.OPTIMAL if optimal else Termination.COMPLETED)
        return answer

    def _run(self) -> None:
        if self._leave.wait(self._delay) or self._clock.over:
            return
        try:
            bounds(
                self._problem,
                time_limit=1e9 if self._clock.remaining is None else max(self._clock.remaining, LEAST),
                known=self._announce.latest.objective,
                workers=self.workers,
                on_bound=self._prove,
                should_stop=lambda: self._leave.is_set() or self._requested.should_stop(),
                blocks=self._exact,
            )
        except BaseException as error:  # noqa: BLE001 - stated in the answer's message, or raised by `with_bound`
            self._fatal = self._fatal or isinstance(error, InternalError)
            self._error = error

    def _prove(self, bound: Bound) -> None:
        if self.best is not None and self.best.value >= bound.value:
            return
        self.best = bound
        try:
            self._announce(Progress(self._clock.elapsed, None, bound.value))
        except BaseException:
            self._fatal = True
            raise

    def _should_stop(self) -> bool:
        return self._requested.should_stop() or self._fatal or self._gap_closed()

    def _gap_closed(self) -> bool:
        """Whether the proved gap of the incumbent is small enough."""
        best, objective = self.best, self._announce.latest.objective
        if best is None or objective is None or len(self._problem.objective.levels) > 1:
            return False
        return objective - best.value <= (self._requested.gap_limit or 0) * objective
