"""One run of the portfolio: whose turn it is, for how long, and when it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

from placeopt.bounding.bound_prover import BoundProver
from placeopt.bounding.portfolio import bounds
from placeopt.bounding.quick import best_bound
from placeopt.kernels import WaitingStoppedError, compilation, impatient
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.solver import Answer, Clock, Options, Termination

from .._local_search.cooling import COLD as FALL
from .._local_search.cooling import annealer, coolings
from .._local_search.descents import descender, descents
from .._local_search.search import LOADING, Cooling, Search, any_start, rounds_in, searched, sufficient
from .._runs.incumbent import Incumbent
from .._runs.solve_run import SolveRun
from .._runs.validity import valid
from ._members import affordable, schedules, segments
from ._standings import Standings
from ._windows import ADVANCE, Sweep, Window, windowed

PATIENCE = 60.0
"""Seconds that it plans for where there is no time limit."""

QUICK = 0.3
"""Of the time limit after which no further heuristic begins: only where kernels are not compiled yet."""

SMALL = 60
"""Tasks up to which CP-SAT has its turn before the search: mostly it proves the optimum at once."""

FIRST, FIRST_OF_SMALL, LONGEST = 0.15, 0.4, 10.0
"""Part of the time that a turn of CP-SAT gets, that it gets where it comes first, and seconds at most."""

BUILDING = 2e-4
"""Seconds that go by for each literal, interval and row of CP-SAT's model before it searches; larger models than a turn
has time for are not made."""

UNIT, WEIGHT = 2.0, 400
"""Seconds of a unit of CP-SAT's deterministic time: so many, and one for each so many literals, intervals and rows."""

SEARCHING = 0.5
"""Part of the time that one worker plans for the search; bounds have what is left."""

TURNS = 8
"""Turns that the search is cut into."""

SHORTEST, LONG = 0.5, 8.0
"""Seconds of a turn, at least and at most."""

COLD = 300
"""Moves for each task below which a turn does not heat up: there would be no time to cool."""

LARGE = 6_000
"""Tasks above which windows alone improve a schedule, where they apply."""

SWEEP, EACH = 0.6, (0.05, 1.0)
"""Part of the planned work that takes windows once through the graph; seconds of a window, at least and at most."""

KEEPING = 5e-7
"""Seconds for each task and edge that it takes to cut a window out and to fit it in again."""

WARM = 1.5
"""First temperature in a window, as a part of its value shared out over its tasks."""

STARTS, BRIEF = 4, 0.5
"""Schedules that annealing starts from before it goes on with the best, and their part of a turn."""


@dataclass(slots=True)
class Searcher:
    """A member that improves schedules: `rate` is what its last turn gained, in parts of the value a second.

    A turn takes a schedule to start from, seconds and a seed, and returns the seconds that it meant to take. Before its
    rate counts, there are `trials` to come.
    """

    name: str
    turn: Callable[[Schedule, float, int], float]
    needs_schedule: bool = False
    trials: int = 1
    rate: float | None = None

    def learn(self, before: float | None, after: float | None, seconds: float) -> None:
        """Take in what a turn gained."""
        self.trials -= 1
        self.rate = 1.0 if before is None and after is not None else 0.0
        if before and after is not None:
            self.rate = (before - after) / abs(before) / seconds


class Run(SolveRun):
    """One solve; with a prover that proves bounds beside it, or without."""

    best: Standings

    def __init__(self, problem: Problem, options: Options, prover: BoundProver | None) -> None:
        super().__init__(problem, options)
        self.best = Standings(problem, options, self.clock)
        self.prover = prover
        self.span = PATIENCE if options.planned_seconds is None else options.planned_seconds
        if options.workers > 1:
            self.varies_by = "threads"
        self.least = best_bound(problem)
        self.proved: Termination | None = None
        self.turns, self.worked = 0, 0.0
        self.length = min(max(SEARCHING * self.span / TURNS, SHORTEST), LONG)
        self.sweep: Sweep | None = None
        self.starts: list[tuple[tuple[Value, ...], Schedule]] = []
        self.annealed = 0
        self.walker: Search | None = None
        self.searchers: list[Searcher] = []
        timed = problem.objective.single == "makespan"
        if timed and windowed(problem):
            self.searchers.append(Searcher("windows", self._slide, needs_schedule=True))
        if not self.searchers or problem.n_tasks <= LARGE:
            self.searchers.append(Searcher("annealing", self._anneal, trials=STARTS))
            self.searchers.append(Searcher("local-search", self._descend))
            if timed:
                self.searchers.append(Searcher("lns", self._repair, needs_schedule=True))

    def answer(self) -> Answer:
        """The best schedule and bound of all members, and why there is no better."""
        self._tried()
        small, compiling = self.problem.n_tasks <= SMALL, self._compiling()
        steps: tuple[tuple[bool, Callable[[], None]], ...] = (
            (not small and not compiling, lambda: self._search(STARTS)),
            (True, lambda: self._exact(FIRST_OF_SMALL if small else FIRST)),
            (True, lambda: self._search(None)),
            (self.prover is None, self._bound),
        )
        for wanted, step in steps:
            if wanted and not self._over():
                step()
        return self._concluded()

    @property
    def threads(self) -> int:
        """Threads that the prover leaves."""
        beside = self.prover.workers if self.prover is not None and self.prover.busy else 0
        return max(self.options.workers - beside, 1)

    def _tried(self) -> None:
        """The initial schedule and the heuristics' turns."""
        initial = self.options.initial
        if initial is not None and valid(self.problem, initial):
            self._offer(initial, "initial")
        for at, member in enumerate(affordable(self.problem, self.span)):
            # Heft has its turn whatever the limit and the initial schedule.
            if at and (self._over() or self.clock.elapsed > QUICK * self.span):
                self.varies_by = self.varies_by or "clock"
                return
            # Heft is run in plain Python if need be: something has to be there.
            patience = impatient(lambda: self._over() is not None) if at else nullcontext()
            with self.best.turn(member.name), patience, suppress(WaitingStoppedError):
                for schedule in schedules(member, self.problem, self.options.seed):
                    self._offer(schedule, member.name)
                    self._remember(schedule)
            if at == 0:
                self._load()
        with self.best.turn("segments"):
            for schedule in segments(self.problem):
                self._offer(schedule, "segments")

    def _load(self) -> None:
        """Have the kernel of the moves loaded, or compiled, while heuristics have their turns."""
        start = self.best.schedule
        if start is not None and self.problem.n_tasks > SMALL and self.span >= 1.0:
            self.walker = annealer(self.problem, start, 0, rounds_in(self.problem, self.length), 0)
            self._compiling()

    def _compiling(self) -> bool:
        """Whether the kernel of the moves is being compiled, so that the order of turns is another than usual."""
        if self.walker is None:
            return False
        self.walker.step(0, 0, 1, 0.0, 0.0, -math.inf)
        if self.walker.compiled or not compilation.pending():
            return False
        self.varies_by = self.varies_by or "clock"
        return True

    def _remember(self, schedule: Schedule) -> None:
        """Keep a schedule for annealing to start from, if it is among the best that differ in value."""
        values = evaluate(self.problem, schedule)
        if self.problem.n_tasks <= LARGE and all(values != known for known, _ in self.starts):
            self.starts = sorted([*self.starts, (values, schedule)], key=lambda start: start[0])[:STARTS]

    def _offer(self, schedule: Schedule, name: str) -> None:
        if self.best.offer(schedule, name) and self.best.bound is None:
            # Bounds of an infeasible problem mean nothing: they count once there is a schedule.
            self.best.raise_bound(self.least.value, self.least.name)

    def _exact(self, share: float) -> None:
        """CP-SAT's turn, if its model is not too large for it."""
        from ..exact._cp_sat.identical_devices import pools
        from ..exact._cp_sat.limits import model_size

        seconds = min(share * self.span, LONGEST)
        most = int(seconds / BUILDING)
        if self.problem.n_edges > most:
            return
        size = model_size(pools(self.problem, True).problem)
        if size > most:
            return
        from ..exact._cp_sat.run import CpSatSettings, solved

        remaining = self.clock.remaining
        alone = self.options.workers == 1
        options = replace(
            self.options,
            # With one worker the work ends it, not the clock.
            time_limit=remaining if alone or (remaining is not None and remaining < seconds) else seconds,
            workers=self.threads,
            initial=self.best.schedule,
            on_progress=self.best.overhear("cp-sat"),
        )
        work = seconds / (UNIT + size / WEIGHT) if alone else None
        settings = CpSatSettings(hint=self.best.schedule is None, work=work)
        with self.best.turn("cp-sat"):
            answer = solved(self.problem, options, settings)
            if answer.schedule is not None:
                self._offer(answer.schedule, "cp-sat")
            if answer.bound is not None and self.best.schedule is not None:
                self.best.raise_bound(answer.bound, "cp-sat")
        if answer.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
            self.proved = answer.termination

    def _search(self, most: int | None) -> None:
        """Turns of the searchers: as much work as is planned, or until time is up; at most so many turns."""
        work = SEARCHING * self.span if self.options.workers == 1 else self.span
        endless = self.options.workers > 1 and self.clock.limit is not None
        prover = self.prover
        asked = False
        while (endless or self.worked < work) and not self._over() and (most is None or self.turns < most):
            self._turn()
            if prover is not None and not asked and not prover.busy and not self._over():
                # On several threads CP-SAT proves bounds that it does not find on one.
                self._exact(FIRST)
                asked = True

    def _turn(self) -> None:
        """The turn of who gained most in its last turn, new ones first; where nobody gained anything, of each."""
        start = self.best.schedule or any_start(self.problem)
        if start is None:
            self.proved = Termination.FAILED
            self.message = "no placement keeps all groups and separations on feasible devices"
            return
        able = [each for each in self.searchers if self.best.schedule is not None or not each.needs_schedule]
        if self._compiling():  # plain Python makes too few moves to gain anything
            able = [each for each in able if each.name == "lns"] or able
        able = able or [Searcher("annealing", self._anneal)]
        rates = [math.inf if each.rate is None or each.trials > 0 else each.rate for each in able]
        searcher = able[rates.index(max(rates)) if any(rates) else self.turns % len(able)]
        before = self._value()
        with self.best.turn(searcher.name):
            seconds = searcher.turn(start, self.length, self.options.seed + self.turns)
        self.worked += seconds
        searcher.learn(before, self._value(), seconds)
        self.turns += 1

    def _anneal(self, start: Schedule, seconds: float, number: int) -> float:
        """A turn of annealing, or of a descent where the graph is too large to cool in time.

        The first turns are short, each from another heuristic's schedule: from which of them annealing gets furthest
        cannot be told from their values.
        """
        at = self.annealed
        self.annealed += 1
        if at < STARTS:
            seconds *= BRIEF
            start = self.starts[at][1] if at < len(self.starts) else start
        cold = rounds_in(self.problem, seconds) < COLD * self.problem.n_tasks
        self._walk(start, seconds, number, "annealing", annealer, descent if cold else _cooled(at))
        return seconds

    def _descend(self, start: Schedule, seconds: float, number: int) -> float:
        """A turn of iterated local search."""
        self._walk(start, seconds, number, "local-search", descender, descents)
        return seconds

    def _walk(
        self,
        start: Schedule,
        seconds: float,
        number: int,
        name: str,
        make: Callable[[Problem, Schedule, int, int, int], Search],
        cooled: Callable[[Problem, int, int], Iterator[Cooling]],
    ) -> None:
        """A turn of a search by moves."""
        rounds = max(rounds_in(self.problem, seconds), 1)
        walked = searched(
            self.problem,
            start,
            make,
            lambda worker: cooled(self.problem, worker, rounds),
            self.best,
            enough=sufficient(self.problem, float(self._bound_known()), self.options.gap_limit),
            seed=number,
            workers=self.threads,
            moves=rounds,
            stopped=lambda: self._over() is not None,
            patience=seconds + LOADING,
            message=name,
        )
        if walked.cut:
            self.varies_by = self.varies_by or "clock"

    def _slide(self, start: Schedule, seconds: float, number: int) -> float:
        """Windows, on from where the last turn ended."""
        problem = self.problem
        if self.sweep is None or self.sweep.state.span > makespan(problem, start):
            self.sweep = Sweep(problem, start)
        planned = SWEEP * SEARCHING * self.span * ADVANCE / problem.n_tasks
        each = min(max(planned, EACH[0]), EACH[1])

        def solve(window: Window, at: int) -> Schedule | None:
            best = Incumbent(window.problem, Options(), Clock(None))
            best.offer(window.schedule)
            rounds = rounds_in(window.problem, each)
            hot = WARM / window.problem.n_tasks
            walked = searched(
                window.problem,
                window.schedule,
                annealer,
                lambda _: iter([Cooling(rounds, hot, hot * FALL)]),
                best,
                bound=window.bound,
                seed=number + at,
                moves=rounds * problem.n_tasks // ADVANCE,
                stopped=lambda: self._over() is not None,
                patience=each + LOADING,
            )
            if walked.cut:
                self.varies_by = self.varies_by or "clock"
            return None if best.schedule is window.schedule else best.schedule

        left = seconds
        while left > 0 and not self._over():
            self.sweep.step(solve, self.threads)
            self._offer(self.sweep.state.schedule, "windows")
            left -= each + KEEPING * (problem.n_tasks + problem.n_edges)
        return seconds

    def _repair(self, start: Schedule, seconds: float, number: int) -> float:
        """A turn of large neighbourhood search."""
        from ..search._lns.search import improve

        improve(
            self.problem,
            start,
            seconds,
            number,
            lambda: self._over() is not None,
            lambda schedule: self._offer(schedule, "lns"),
            self.threads,
        )
        return seconds

    def _bound(self) -> None:
        """Slow bounds in the time that is left; the schedule stands."""
        values, remaining = self.best.values, self.clock.remaining
        if values is None:
            return
        with self.best.turn("bounds"):
            bounds(
                self.problem,
                time_limit=self.span * (1 - SEARCHING) if remaining is None else remaining,
                workers=1,
                known=values[0],
                on_bound=lambda bound: self.best.raise_bound(bound.value, bound.name),
                should_stop=lambda: self._over() is not None,
            )

    def _value(self) -> float | None:
        return None if self.best.values is None else float(self.best.values[0])

    def _bound_known(self) -> float:
        return float(self.best.bound if self.best.bound is not None else self.least.value)

    def _over(self) -> Termination | None:
        """Why to stop now, None to go on."""
        return self.proved or self._enough() or self.stop_reason()

    def _enough(self) -> Termination | None:
        """How to end where the schedule held is as good as wanted."""
        values, bound = self.best.values, self.best.bound
        if values is None or bound is None or len(values) > 1:
            return None
        if values[0] == bound:
            return Termination.OPTIMAL
        limit = self.options.gap_limit
        return Termination.COMPLETED if limit is not None and values[0] - bound <= limit * values[0] else None

    def _concluded(self) -> Answer:
        why = self._over() or (Termination.COMPLETED if self.best.schedule is not None else Termination.FAILED)
        self.stats = {"found by": self.best.found_by, "members": self.best.table()}
        if why is Termination.FAILED and not self.message:
            self.message = "no member found a schedule that keeps every rule, and none proved that there is none"
        return replace(self.ended(why), bound_source=self.best.bound_by)


def _cooled(turn: int) -> Callable[[Problem, int, int], Iterator[Cooling]]:
    """Coolings whose temperatures go with the turns, whatever the seed."""
    return lambda problem, worker, rounds: coolings(problem, turn + worker, rounds)


def descent(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:  # noqa: ARG001 - as coolings have it
    """Moves that cost nothing, and no others."""
    yield Cooling(rounds, 0.0, 0.0)
