"""Search the Pareto front of two metrics by solves with limits, the largest open region first.

Each solve minimises one metric under a limit of the other one. Another solve then minimises the other metric under the
value found, so that no point is dominated, not even weakly. All solves share their schedules, as starts, and their
lower bounds, as corners of one `Staircase`.

Once a solve has reached its limit, a heuristic first minimises a weighted sum of the metrics for each region, normal to
the line between the neighbouring points: Y. Aneja, K. Nair, Bicriteria transportation problem, Management Science 25
(1979), doi:10.1287/mnsc.25.1.73. Its schedule is a start for later solves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from placeopt.errors import InternalError, listing
from placeopt.model.objective import METRICS
from placeopt.model.problem import Metric, Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.orchestration.pipeline import solve
from placeopt.orchestration.result import Result, relative_gap
from placeopt.protocol import Clock, Solver, Termination, unsupported
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.studies.pareto.staircase import FAR, Pair, Staircase, non_dominated
from placeopt.views.facts import value_text

Step = tuple[int, int]
"""A solve: the metric that it minimises, and the limit of the other one."""

UNKNOWN_POINTS = 8
"""Points that are still to be found, for the share of the time of each solve, if all are wanted."""
LEAST = 1.0
"""Seconds that a solve gets at least, if as much time is left."""
SKETCHER = "tabu"
"""The heuristic for weighted sums."""


@dataclass(slots=True)
class Search:
    """The state of a search."""

    problems: tuple[Problem, Problem]
    """The problem with each metric as its objective."""
    metrics: tuple[Metric, Metric]
    solver: Solver
    wanted: int | None
    """Number of points at which the search only proves; None for all points."""
    clock: Clock
    stopped: Callable[[], bool]
    report: Callable[[str], None]
    initial: Schedule | str | None
    options: Mapping[str, Any]
    """Arguments of `solve` for each solve."""
    schedules: dict[Pair, Schedule] = field(default_factory=dict)
    proved: Staircase = field(default_factory=Staircase)
    results: list[Result] = field(default_factory=list)
    _tried: dict[Step, float | None] = field(default_factory=dict)
    """The time limit of each solve that reached it; None for a solve that ended by itself."""
    _halved: Counter[Pair] = field(default_factory=Counter)
    """How often a half of a region was searched: of its range of the second metric, then of the first one."""
    _sketched: set[Pair] = field(default_factory=set)
    """Regions for which the heuristic ran."""

    def run(self) -> Termination:
        """Search until the front is complete, has the wanted points, or the time is over; return why it stopped."""
        while not self.stopped():
            if self.complete:
                return Termination.OPTIMAL if self.schedules else Termination.INFEASIBLE
            if self._sketches():
                continue
            chosen = None if self.clock.over else self._next()
            if chosen is None:
                return self._ending()
            self._take(*chosen)
            if (polish := self._polishing(chosen[0])) is not None and not self.stopped() and not self.clock.over:
                self._take(polish, self._limit())
        return Termination.INTERRUPTED

    @property
    def points(self) -> list[Pair]:
        """The values of the non-dominated schedules, by increasing first value."""
        return sorted(self.schedules)

    @property
    def complete(self) -> bool:
        """Whether every schedule is proved to be weakly dominated by one that was found."""
        return all(self.proved.excludes(region) for region in self._regions())

    def gaps(self, point: Pair) -> tuple[float, float]:
        """Return for each metric the share by which a schedule may improve it that is not worse in the other one."""
        first, second = (relative_gap(point[axis], self.proved.least(axis, point[1 - axis])) for axis in (0, 1))
        return first or 0.0, second or 0.0

    def _ending(self) -> Termination:
        """Return why no further solve is useful."""
        if self.clock.over or any(limit is not None for limit in self._tried.values()):
            return Termination.TIME_LIMIT
        return Termination.COMPLETED if self.schedules else Termination.FAILED

    def _regions(self) -> list[Pair]:
        """Return the largest pairs that no point weakly dominates: the upper right corners of the open regions."""
        found = self.points
        lefts, rights = [None, *found], [*found, None]
        return [
            (FAR if right is None else right[0] - 1, FAR if left is None else left[1] - 1)
            for left, right in zip(lefts, rights, strict=True)
        ]

    def _next(self) -> tuple[Step, float | None] | None:
        """Return the next solve and its seconds: the most useful one that was not tried with half of them or more."""
        steps = list(self._steps())
        for limit in (self._limit(len(steps)), self.clock.remaining):
            for step, region in steps:
                if self._untried(step, limit):
                    if region is not None:
                        self._halved[region] += 1
                    return step, limit
        return None

    def _untried(self, step: Step, limit: float | None) -> bool:
        if step not in self._tried:
            return True
        before = self._tried[step]
        return before is not None and (limit is None or limit >= 2 * before)

    def _limit(self, steps: int = 1) -> float | None:
        """Return the seconds of the next solve: its share of the time that is left."""
        left = self.clock.remaining
        if left is None:
            return None
        missing = UNKNOWN_POINTS if self.wanted is None else self.wanted - len(self.schedules)
        return min(left, max(left / (2 * missing if missing > 0 else max(steps, 1)), LEAST))

    def _steps(self) -> Iterator[tuple[Step, Pair | None]]:
        """Yield solves by falling use, each with the region of which it searches a half."""
        if self.wanted is not None and len(self.schedules) >= self.wanted:
            gaps = {(axis, point[1 - axis]): self.gaps(point)[axis] for point in self.points for axis in (0, 1)}
            yield from (((step, None)) for step in sorted(gaps, key=lambda step: -gaps[step]) if gaps[step] > 0)
            return
        regions = self._open_regions()
        ends = [(1 if region[0] == FAR != region[1] else 0, FAR) for region in regions if FAR in region]
        yield from ((step, None) for step in ends if step not in self._tried)  # the ends of the front come first
        for region in regions:
            if FAR in region:
                yield (1 if region[0] == FAR else 0, FAR), None
            elif (axis := self._halved[region]) < (1 if self.wanted is None else 2):
                other = 1 - axis
                below = max(point[other] for point in self.points if point[other] <= region[other])
                yield (axis, (max(self.proved.least(other, region[axis]), below) + region[other]) // 2), region
            else:
                yield (0, region[1]), None

    def _open_regions(self) -> list[Pair]:
        """Return the regions that may contain a schedule, those with the largest open part within the points first."""
        most = (self.points[-1][0], self.points[0][1]) if self.schedules else (0, 0)

        def size(region: Pair) -> int:
            return self.proved.area((min(region[0], most[0]), min(region[1], most[1])))

        return sorted((each for each in self._regions() if not self.proved.excludes(each)), key=size, reverse=True)

    def _sketches(self) -> bool:
        """Run the heuristic for the largest region; return whether it ran: once for each, if solves reach limits."""
        inner = [region for region in self._open_regions() if FAR not in region]
        enough = self.wanted is not None and len(self.schedules) >= self.wanted
        if enough or not inner or inner[0] in self._sketched or self.clock.over or not any(self._tried.values()):
            return False
        self._sketched.add(inner[0])
        left = max(point for point in self.points if point[0] <= inner[0][0])
        right = min(point for point in self.points if point[0] > inner[0][0])
        weights = Fraction(1, right[0] - left[0]), Fraction(1, left[1] - right[1])
        problem = replace(self.problems[0], objective=Objective((tuple(map(Term, self.metrics, weights)),)))
        if SKETCHER not in solver_names() or unsupported(find_solver(SKETCHER).info, problem) is not None:
            return False
        self.report(f"{len(self.schedules)} found; minimising a weighted sum of {listing(self.metrics)}")
        common = {name: self.options[name] for name in ("seed", "workers") if name in self.options}
        self._keep(
            solve(
                problem, SKETCHER, initial=self.schedules[left], time_limit=self._limit(), should_stop=self.stopped,
                consolidate=0, **common,
            )
        )  # fmt: skip
        return True

    def _polishing(self, step: Step) -> Step | None:
        """Return the solve that makes the best point of a step non-dominated; None if it is, or if that was tried."""
        axis, best = step[0], self._best(step)
        if best is None or self.proved.least(1 - axis, best[axis]) >= best[1 - axis]:
            return None
        polish = 1 - axis, best[axis]
        return polish if self._untried(polish, self._limit()) else None

    def _best(self, step: Step) -> Pair | None:
        """Return the best known point within the limit of a step."""
        axis, most = step
        return min((pair for pair in self.points if pair[1 - axis] <= most), key=lambda pair: pair[axis], default=None)

    def _take(self, step: Step, limit: float | None) -> None:
        """Solve within a time limit, and keep the schedule and what is proved."""
        axis, most = step
        problem, other = self.problems[axis], self.metrics[1 - axis]
        within = ""
        if most < FAR:
            limits = dict(problem.limits)
            problem = replace(problem, limits=tuple((limits | {other: min(most, limits.get(other, most))}).items()))
            within = f" with {other} of at most {value_text(most, problem, other, ticks=False)}"
        self.report(f"{len(self.schedules)} found; minimising {self.metrics[axis]}{within}")
        best = self._best(step)
        start = self.initial if best is None else self.schedules[best]
        result = solve(
            problem, self.solver, initial=start, time_limit=limit, should_stop=self.stopped, consolidate=0,
            **self.options,
        )  # fmt: skip
        self._tried[step] = limit if result.termination is Termination.TIME_LIMIT else None
        self._keep(result)
        least = result.bound
        if result.termination is Termination.INFEASIBLE:
            least = FAR + 1
        if least is not None:
            self._exclude((math.ceil(least) - 1, most) if axis == 0 else (most, math.ceil(least) - 1))

    def _keep(self, result: Result) -> None:
        """Keep a feasible schedule if no other one weakly dominates it."""
        self.results.append(result)
        schedule = result.schedule
        if schedule is None or not result.feasible:
            return
        first, second = (METRICS[metric](self.problems[0], schedule) for metric in self.metrics)
        known = dict(self.schedules)
        known.setdefault((first, second), schedule)
        self.schedules = {pair: known[pair] for pair in non_dominated(known)}
        self._check()

    def _exclude(self, corner: Pair) -> None:
        """Keep what is proved."""
        self.proved = self.proved.adding(corner)
        self._check()

    def _check(self) -> None:
        """Raise an InternalError if a schedule contradicts a lower bound."""
        for point in self.points:
            if self.proved.excludes(point):
                raise InternalError(
                    f"{self.solver.name} claims that no schedule has {self.metrics[0]} {point[0]} and "
                    f"{self.metrics[1]} {point[1]}, but a feasible schedule has them"
                )
