"""Slow lower bounds of the period, best ones last.

    load        `placeopt.bounding.borders.machines`: loads of machines that modes and teams share, seconds
    borders     `placeopt.bounding.borders`: loads with what devices must send and receive, seconds
    division    the same with whole groups, by CP-SAT, where they are few
    configurations  `placeopt.bounding.borders.configurations`: other worths of groups, and the best sets
    ideals      the solver `ideals`: the best division into contiguous stages, if the pipeline asks for them
    cp-sat      the solver `cp-sat`, for small graphs

At the end, `borders` and `division` are repeated with more branches, until the time limit.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from placeopt.bounding.borders import CLOSE, EFFORTS, Borders, Shares, configurations, division, highest_refuted
from placeopt.bounding.borders.machines import machine_load
from placeopt.bounding.quick import Bound, best_bound, narrowed_classes
from placeopt.bounding.quick.classes import group_text, least
from placeopt.model.building import simplest
from placeopt.model.objective import Value, simplified
from placeopt.model.period import period
from placeopt.model.problem import Problem
from placeopt.model.units import time_text
from placeopt.protocol import Clock, Options, Progress, unsupported
from placeopt.protocol.registry import find_solver, solver_names

MACHINES, BORDERS, IDEALS, DIVISION, EXACT, CONFIGURATIONS = 0.2, 0.05, 0.5, 0.05, 0.5, 0.9
"""Shares of the remaining time: first turn of each bound."""

SMALL = 100
"""Maximum number of groups for an exact solver."""

PART, SETS = 0.4, 0.6
"""Shares of the time of `division` and of `configurations` for one period."""


def period_bounds(
    problem: Problem,
    clock: Clock,
    workers: int,
    known: Value | None,
    add: Callable[[Bound], None],
    should_stop: Callable[[], bool],
    *,
    exact: bool,
) -> None:
    """Add the slow bounds of a pipeline whose objective begins with the period alone.

    `known` is the objective's first level in a schedule; `exact` is whether to run exact solvers.
    """
    level = problem.objective.levels[0]
    if [term.metric for term in level] != ["period"] or not level[0].weight:
        return
    _PeriodBounds(problem, clock, workers, known, add, should_stop).run(exact)


class _PeriodBounds:
    """One computation."""

    def __init__(
        self,
        problem: Problem,
        clock: Clock,
        workers: int,
        known: Value | None,
        add: Callable[[Bound], None],
        should_stop: Callable[[], bool],
    ) -> None:
        self.problem, self.clock, self.workers = problem, clock, workers
        self._weight = problem.objective.levels[0][0].weight
        self._add, self._should_stop = add, should_stop
        self.alone = simplest(problem)
        self.known = None if known is None else int(Fraction(known) / self._weight)
        self.least = int(best_bound(self.alone).value)
        self._turn = Clock(None)
        self._borders = Borders(narrowed_classes(self.alone), self._over)

    def run(self, exact: bool) -> None:
        """Compute all bounds in turns."""
        pipeline = self.problem.pipeline
        assert pipeline is not None
        if pipeline.machines is not None:
            self._begin(MACHINES)
            self._share_machines()
        self._begin(BORDERS)
        self._refute(*EFFORTS[0], whole=False)
        if exact and pipeline.contiguous:
            self._solve("ideals", IDEALS, "the least period of all divisions into one stage for each device")
        whole = pipeline.replicas == 1 and division.variables(self._borders.plain) <= division.MOST
        if whole:
            self._begin(DIVISION)
            whole = self._refute(*EFFORTS[0], whole=True)
        if exact and self.problem.n_groups <= SMALL:
            self._solve("cp-sat", EXACT, "CP-SAT on the whole problem")
        if pipeline.replicas == 1 and self._borders.variables <= configurations.MOST:
            self._begin(CONFIGURATIONS)
            self._refute_by_sets()
        self._turn = Clock(None)
        for branches, rounds in EFFORTS[1:]:
            self._refute(branches, rounds, whole=whole)

    def _begin(self, share: float) -> None:
        """Begin a turn, with a share of the remaining time."""
        remaining = self.clock.remaining
        self._turn = Clock(None if remaining is None else share * remaining)

    def _over(self) -> bool:
        proved = self.known is not None and self.least >= self.known
        return proved or self._turn.over or self.clock.over or self._should_stop()

    def _share_machines(self) -> None:
        """Raise the bound to the load of machines that devices share."""
        begun = Clock(None)
        found = machine_load(self.alone, self._turn.remaining, self._over)
        if found is not None and found.value > self.least:
            self.least = found.value
            reason = "all work, in modes and teams within all budgets, divided ideally over the devices, takes"
            self._offer("load", self.least, f"{reason} {time_text(self.least, self.problem.resolution)}", begun)

    def _refute(self, branches: int, rounds: int, *, whole: bool) -> bool:
        """Raise the bound as far as this effort refutes periods; return whether a division of whole groups did."""
        begun, divided = Clock(None), False

        def refutes(within: int) -> bool:
            nonlocal divided
            shares = self._borders.shares(within, branches, rounds)
            alone = shares is None or shares.load() > within
            if not alone and not (whole and self._indivisible(shares, within)):
                return False
            divided = divided or not alone
            self._offer("borders" if alone else "division", within + 1, self._reason(shares, within, alone), begun)
            return True

        self.least = highest_refuted(refutes, self.least, self.known, self._over, self._borders.most)
        return divided

    def _refute_by_sets(self) -> None:
        """Raise the bound as far as `configurations` refutes periods."""
        begun, sets = Clock(None), configurations.Configurations(self._borders, self.workers, self._over)

        def refutes(within: int) -> bool:
            if not sets.refute(within, self._part(SETS)):
                return False
            limit = time_text(within, self.problem.resolution)
            reason = f"within {limit}, devices hold too little of all groups together with what they send and receive"
            self._offer("configurations", within + 1, reason, begun)
            return True

        self.least = highest_refuted(refutes, self.least, self.known, self._over, self._borders.most, cautious=True)
        if self.known is not None and 0 < self.known - self.least <= CLOSE * self.least and refutes(self.known - 1):
            self.least = self.known

    def _part(self, share: float) -> float | None:
        """Seconds for one period: a share of those that remain."""
        clocks = (self._turn, self.clock)
        remaining = min((clock.remaining for clock in clocks if clock.remaining is not None), default=None)
        return None if remaining is None else share * remaining

    def _indivisible(self, shares: Shares | None, within: int) -> bool:
        """Whether the groups are proved not to fit on the devices as a whole."""
        assert shares is not None
        limit = within * shares.factor
        found = division.divides(
            shares.sharing, limit, seconds=self._part(PART), workers=self.workers, should_stop=self._over
        )
        return found is False

    def _reason(self, shares: Shares | None, within: int, alone: bool) -> str:
        """Why the period is longer than this."""
        limit = time_text(within, self.problem.resolution)
        if shares is None:
            return f"within {limit}, some task has no device that could also send and receive the data around it"
        plain, factor = self._borders.plain, shares.factor
        work = least(plain.amount, plain.allowed)
        more = least(shares.sharing.amount, shares.sharing.allowed) - work * factor
        times = [time_text(int(each), self.problem.resolution) for each in (work.sum(), more.sum() // factor)]
        how = "divided ideally over the devices" if alone else "however whole groups are divided over the devices"
        if times[1] == time_text(0, self.problem.resolution):
            return f"work of {times[0]}, {how}, takes more than {limit}"
        return (
            f"within {limit}, devices with work of {times[0]} lose at least {times[1]} to sending, receiving and gaps, "
            f"most of it around {group_text(self.problem, int(more.argmax()))}; {how}, that takes longer"
        )

    def _solve(self, name: str, share: float, explanation: str) -> None:
        """Add the bound of a solver, if it is installed and supports the problem."""
        self._begin(share)
        if name not in solver_names() or self._over():
            return
        solver, begun = find_solver(name), Clock(None)
        if unsupported(solver.info, self.alone) is not None:
            return

        def hear(progress: Progress) -> None:
            if progress.bound is not None and progress.bound > self.least:
                self.least = int(progress.bound)
                self._offer(name, self.least, explanation, begun)

        options = Options(
            time_limit=self._turn.remaining, workers=self.workers, on_progress=hear, should_stop=self._over
        )  # fmt: skip
        answer = solver.solve(self.alone, options, solver.settings_type())
        if answer.bound is not None and answer.bound >= self.least:
            self.least = int(answer.bound)
            self._offer(name, self.least, explanation, begun)
        if answer.schedule is not None:
            found = period(self.alone, answer.schedule)
            self.known = found if self.known is None else min(found, self.known)

    def _offer(self, name: str, ticks: int, explanation: str, begun: Clock) -> None:
        self._add(Bound(name, simplified(self._weight * ticks), explanation, begun.elapsed))
