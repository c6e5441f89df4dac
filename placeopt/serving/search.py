"""What searches for plans share: time, the best plan and its verification."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from placeopt.errors import InternalError, UsageError
from placeopt.orchestration.settings import make_options
from placeopt.serving.plan import ServingPlan, without_idle
from placeopt.serving.prefill import quick, routed
from placeopt.serving.problem import Serving, check_serving
from placeopt.serving.result import ServingResult
from placeopt.serving.sites import find_sites
from placeopt.serving.verification import verify_serving


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Seconds, the gap and the rate at which a search ends, and how it runs; see `solve_serving`."""

    limit: float
    gap: float
    seed: int
    workers: int
    should_stop: Callable[[], bool]
    enough: int | None = None


def search_options(
    caller: str,
    problem: Serving,
    time_limit: float,
    *,
    gap_limit: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    enough: int | None = None,
) -> SearchOptions:
    """Check the arguments of a function that searches for plans; raises a UsageError if one is wrong."""
    check_serving(caller, problem)
    if time_limit is None:
        raise UsageError("time_limit is None; expected a number of seconds")
    options = make_options(time_limit=time_limit, gap_limit=gap_limit, seed=seed, workers=workers)
    return SearchOptions(time_limit, gap_limit, seed, options.workers, should_stop, enough)


class Timed:
    """A search within a time limit, in seconds, which the caller may end earlier."""

    def __init__(self, limit: float, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self._begun = time.monotonic()
        self._until = self._begun + limit

    def _elapsed(self) -> float:
        return time.monotonic() - self._begun

    def _left(self) -> float:
        return max(self._until - time.monotonic(), 0.01)

    def _stopped(self) -> bool:
        return self._should_stop() or time.monotonic() > self._until


class Search(Timed):
    """The best plan so far, and a bound of the rate, within a time limit."""

    def __init__(self, problem: Serving, options: SearchOptions) -> None:
        super().__init__(options.limit, options.should_stop)
        self._asked, self.problem, self.options = problem, quick(problem.with_merged_kinds()), options
        self.sites = find_sites(problem)
        self.plan: ServingPlan | None = None
        self.rate = self.bound = 0
        self.source = "area"
        self.history: list[tuple[float, int]] = []

    @contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """Stop what runs in the `with` block after some seconds."""
        before, self._until = self._until, min(time.monotonic() + seconds, self._until)
        try:
            yield
        finally:
            self._until = before

    def _done(self) -> bool:
        enough = self.options.enough is not None and self.rate >= self.options.enough
        return enough or self._stopped() or self.bound - self.rate <= self.options.gap * self.rate

    def _keep(self, plan: ServingPlan) -> bool:
        """Keep a plan if it is the best so far."""
        if plan.rate <= self.rate or (plan := routed(self.problem, plan)).rate <= self.rate:
            return False
        self.plan, self.rate = plan, plan.rate
        self.history.append((self._elapsed(), plan.rate))
        return True

    def _result(self) -> ServingResult:
        """The verified result; raises an InternalError if the plan breaks a rule, or passes more than the bound."""
        if self.plan is not None:
            self.plan = without_idle(self.plan)
        report = None if self.plan is None else verify_serving(self._asked, self.plan)
        if report is not None:
            decided = self.problem.steps is None and (self._asked.prompts is None or self._asked.prompts.cache is None)
            largest = report.largest or not decided
            if not report.feasible or not largest or report.rate > self.bound:
                raise InternalError(f"a plan of a serving problem is not verified: {report.violations[:1]}")
        return ServingResult(
            self._asked, self.plan, report, self.bound, self.source, self._elapsed(), self.sites, self.history
        )  # fmt: skip
