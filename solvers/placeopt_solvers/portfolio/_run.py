"""One run of the portfolio: the order and length of turns, and the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial

from placeopt.bounding.quick import Bound
from placeopt.engine import StoppedError, stopping
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.protocol import Answer, Options, Termination
from placeopt.proving.bound_prover import BoundProver

from .._local_search.memetic import Memetic, mostly_grouped
from .._local_search.search import Cooling, Coolings, MakeWalker, any_start, rounds_in, search_from
from .._local_search.strategies import annealer, coolings, descender, descents
from .._local_search.windows import searches_windows
from .._runs.device_classes import moves_freely
from .._runs.solve_run import sufficient
from .._runs.validity import valid
from .._series.run import SeriesRun, series_run
from ..exact._chronological import Chronological, chronological
from ..exact._cp_sat.identical_devices import pools
from ..exact._cp_sat.limits import model_size
from ..exact._cp_sat.run import CpSatSettings, solved
from ..search._intervals.moves import Moves
from ..search._intervals.multilevel import Multilevel
from ..search._intervals.sweep import Sweep, swept
from ..search._lns.search import Search as NeighbourhoodSearch
from ._members import affordable, schedules, segments
from ._restarts import Restarts
from ._standings import PortfolioRun


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters of the portfolio; shares are of the time limit. `benchmarks/portfolio.py` measures their effect."""

    planned: float = 60.0  # seconds to plan for without a time limit
    quick: float = 0.3  # share after which no further heuristic begins: of a limit
    small: int = 60  # tasks up to which CP-SAT runs before the searches: it mostly proves the optimum at once
    blocks: float = 0.4  # share of blocks, where single tasks cut the graph
    appending: float = 0.05  # share of the search that appends tasks to identical devices
    appending_again: float = 0.3  # its share after CP-SAT
    nodes: float = 2e6  # its nodes per second, over the number of devices
    exact: float = 0.15  # share of CP-SAT
    exact_first: float = 0.4  # share of CP-SAT if it runs first
    exact_sequenced: float = 0.5  # share of CP-SAT if it runs first because no transfer takes time
    silent: float = 0.2  # share of this turn after which it ends without a gain, with several threads
    silent_least: float = 5.0  # seconds of this at least
    near: float = 0.03  # largest gap with which it has another turn there
    first: float = 1.5  # seconds of CP-SAT before the heuristics, if no transfer takes time
    begin: float = 0.1  # share of the memetic search before it, at most
    begin_sequenced: float = 0.2  # the same, if no transfer takes time
    begin_least: float = 0.03  # share of this search at least, without a gain
    persisting: float = 3.0  # this search ends at this multiple of the seconds up to its last gain
    exact_longest: float = 10.0  # largest number of seconds of CP-SAT
    building: float = 2e-4  # seconds to build a literal, interval or row of CP-SAT's model
    unit: float = 2.0  # seconds of a unit of CP-SAT's deterministic time: unit + size / weight
    weight: float = 400
    early: float = 0.02  # share of bounds before the searches with one worker
    searching: float = 0.5  # share of the searches with one worker; the rest is for bounds
    turns: int = 8  # turns of the searches
    shortest: float = 0.5  # least number of seconds of a turn
    longest: float = 8.0  # largest number of seconds of a turn
    cooling: int = 300  # moves per task below which a turn makes a descent, too short to cool
    large: int = 6_000  # tasks above which only windows improve a schedule, if they apply
    alone: int = 64  # turns of windows before other searches, in graphs above this size
    windowed: int = 600  # least number of tasks for windows; below, other searches gain as much
    cells: int = 20_000_000  # largest product of tasks and devices for tables of both in searches
    starts: int = 4  # schedules that annealing starts from before it continues with the best
    evolving: int = 4  # turns of memetic search before its gains count, if most tasks are in groups
    first_turn: float = 0.5  # share of a turn for each of them


TUNING = Tuning()


@dataclass(slots=True)
class ImprovementOperator:
    """A member that improves schedules; `rate` is the gain of its last turn per second, as a share of the value.

    `turn` takes a schedule to start from, seconds and a seed, and returns the planned seconds. The rate counts only
    after `trials` turns. One that `begins` has a turn before CP-SAT if this runs first.
    """

    name: str
    turn: Callable[[Schedule, float, int], float]
    needs_schedule: bool = False
    trials: int = 1
    trial: float = 1.0  # share of a turn that its first turn takes
    begins: bool = False
    rate: float | None = None

    def learn(self, before: float | None, after: float | None, seconds: float) -> None:
        """Update the rate after a turn."""
        self.trials -= 1
        self.rate = 1.0 if before is None and after is not None else 0.0
        if before and after is not None:
            self.rate = (before - after) / abs(before) / seconds


class Run(PortfolioRun):
    """One solve."""

    def __init__(self, problem: Problem, options: Options, prover: BoundProver | None, *, series: bool = True) -> None:
        super().__init__(problem, options, prover, TUNING.planned)
        self.series = series
        self.blocks: SeriesRun | None = None
        self.chronological: Chronological | None = None
        self.length = min(max(TUNING.searching * self.span / TUNING.turns, TUNING.shortest), TUNING.longest)
        self.sweep: Sweep | None = None
        self.moves: Moves | None = None
        self.refined = 0
        self.early: Bound | None = None
        self.found: list[Schedule] = []  # of heuristics, for memetic search
        self.starts: list[tuple[tuple[Value, ...], Schedule]] = []
        self.annealed = 0
        self.memetic: Memetic | None = None
        self.neighbourhoods: NeighbourhoodSearch | None = None
        self.examined: float | None = None  # the best value after CP-SAT ran last
        self.restarts = None if options.pool is None else Restarts(problem, options.pool, options.seed)
        self.operators: list[ImprovementOperator] = []
        self.gained: ImprovementOperator | None = None  # the one that gained last
        timed = problem.objective.single == "makespan"
        roomy = problem.n_tasks * problem.n_devices <= TUNING.cells
        # Whether memetic search applies, and whether transfers are free as well, as in shops: CP-SAT is strong there.
        self.evolves = roomy and searches_windows(problem) and problem.n_tasks <= TUNING.large
        self.sequenced = self.evolves and moves_freely(problem)
        if swept(problem) and problem.n_tasks >= TUNING.windowed:
            if roomy and searches_windows(problem):
                self.operators.append(ImprovementOperator("windows", self._move, needs_schedule=True))
            if not problem.contends:
                self.operators.append(ImprovementOperator("forward-backward", self._slide, needs_schedule=True))
            if roomy:
                self.operators.append(ImprovementOperator("multilevel", self._refine, needs_schedule=True))
            for operator in self.operators[1:]:
                operator.trial = TUNING.first_turn / 2
            if problem.n_tasks > TUNING.large and self.operators[0].name == "windows":
                # For long: the others gain less, and a turn of windows at a high temperature may gain nothing.
                self.operators[0].trials = TUNING.alone
        # Passes and moves in windows ignore ports, so under contention other searches remain at any size.
        if not self.operators or problem.n_tasks <= TUNING.large or problem.contends:
            if self.evolves:
                trials = TUNING.evolving if mostly_grouped(problem) else 1  # while its first population forms
                self.operators.append(ImprovementOperator("memetic", self._evolve, True, trials, begins=True))
            if not self.sequenced:  # there, memetic search gains more
                trials = 1 if self.evolves else TUNING.starts
                self.operators.append(ImprovementOperator("annealing", self._anneal, trials=trials))
                self.operators.append(ImprovementOperator("local-search", self._descend))
            if timed and not problem.rules:
                self.operators.append(ImprovementOperator("lns", self._repair, True, begins=self.sequenced))

    def answer(self) -> Answer:
        """Return the best schedule and bound of all members, and why the run ended."""
        self._offer_initial()
        if self.sequenced and not self.stop_reason():
            self._exact(TUNING.exact_first, TUNING.first)
        if self.proved is None:
            self._run_heuristics()
        self._bound_early()
        self._append(TUNING.appending)
        self._solve_blocks()
        if self.sequenced and not self.stop_reason():
            self._begin(TUNING.begin_sequenced)
            self._exact(TUNING.exact_sequenced, math.inf)
        if not self.stop_reason():
            with self.prover or nullcontext(), self.restarts or nullcontext():
                self._continue()
                self._collect()
        self._state_early()
        return self.concluded()

    def _continue(self) -> None:
        """Run CP-SAT, the searches and, without a prover, the bounds."""
        small = self.problem.n_tasks <= TUNING.small
        first = not self.sequenced
        steps: tuple[tuple[bool, Callable[[], None]], ...] = (
            (first and small and self.evolves, lambda: self._begin(TUNING.begin)),
            (first and not small, lambda: self._search(TUNING.starts)),
            (first, lambda: self._exact(TUNING.exact_first if small else TUNING.exact)),
            (True, lambda: self._append(TUNING.appending_again)),
            (True, self._resume_blocks),
            (True, lambda: self._search(None)),
            (self.prover is None, self._bound),
        )
        for wanted, step in steps:
            if wanted and not self.stop_reason():
                step()

    def _begin(self, share: float) -> None:
        """Improve the best schedule by memetic search, and in shops by large neighbourhoods, as long as each gains."""
        for operator in [each for each in self.operators if each.begins]:
            seconds, gained = 0.0, 0.0
            while self.best.schedule is not None and seconds < share * self.span and not self.stop_reason():
                before = self._value()
                with self.best.turn(operator.name):
                    seconds += operator.turn(self.best.schedule, TUNING.begin * self.span / 20, self.options.seed)
                if self._value() != before:
                    gained = seconds
                elif seconds > max(TUNING.persisting * gained, TUNING.begin_least * self.span):
                    break
            self.worked += seconds

    def _offer_initial(self) -> None:
        initial = self.options.initial
        if initial is not None and valid(self.problem, initial):
            self.offer(initial, "initial")

    def _run_heuristics(self) -> None:
        """Offer the schedules of the heuristics."""
        for at, member in enumerate(affordable(self.problem, self.span)):
            # Heft always runs, regardless of the limit and the initial schedule.
            if at and self.stop_reason():
                return
            if at and self._late():
                self.varies_by = self.varies_by or "clock"
                return
            stop = self.stopped if at else self.options.should_stop
            with self.best.turn(member.name), stopping(stop), suppress(StoppedError):
                for schedule in schedules(member, self.problem, self.options.seed):
                    self.offer(schedule, member.name)
                    self._remember(schedule)
        with self.best.turn("segments"):
            for schedule in segments(self.problem):
                self.offer(schedule, "segments")

    def _late(self) -> bool:
        """Return whether no further heuristic begins."""
        return self.clock.limit is not None and self.clock.elapsed > TUNING.quick * self.clock.limit

    def _remember(self, schedule: Schedule) -> None:
        """Keep a schedule as a start of annealing, if it is among the best that differ in value."""
        values = evaluate(self.problem, schedule)
        if self.evolves:
            self.found.append(schedule)
        if self.problem.n_tasks <= TUNING.large and all(values != known for known, _ in self.starts):
            self.starts = sorted([*self.starts, (values, schedule)], key=lambda start: start[0])[: TUNING.starts]

    def _append(self, share: float) -> None:
        """Decide makespans by appending tasks to identical devices, if the devices are."""
        if self.best.values is None or self.stop_reason():
            return
        low, high = int(self._bound_known()), int(self.best.values[0])
        search = self.chronological or chronological(self.problem, low, high)
        if search is None:
            return
        self.chronological = search
        search.low, search.high = max(search.low, low), min(search.high, high)
        with self.best.turn("chronological"):
            search.run(
                int(share * self.span * TUNING.nodes / self.problem.n_devices),
                partial(self.offer, name="chronological"),
                partial(self.best.raise_bound, source="chronological"),
                self.stopped,
            )

    def _solve_blocks(self) -> None:
        """Solve the problem as a series of blocks, if it is one."""
        if not self.series or self.stop_reason():
            return

        self.blocks = series_run(self, solved_block, TUNING.blocks, self.span)
        if self.blocks is not None:
            self._conclude_blocks(self.blocks.answer)

    def _resume_blocks(self) -> None:
        """Continue with the blocks if their bound is the best."""
        blocks = self.blocks
        if blocks is not None and not blocks.finished and self.best.bound_by == "series":
            limit = self.span if self.clock.remaining is None else self.clock.remaining
            self._conclude_blocks(lambda: blocks.resumed(limit))

    def _conclude_blocks(self, solve: Callable[[], Answer]) -> None:
        with self.best.turn("series"):
            answer = solve()
        self.note_end(answer)

    def _exact(self, share: float, longest: float = TUNING.exact_longest) -> None:
        """Run CP-SAT if its model is not too large for its turn."""
        seconds = min(share * self.span, longest)
        most = int(seconds / TUNING.building)
        if self.problem.n_edges > most:
            return
        size = model_size(pools(self.problem, True).problem)
        if size > most:
            return
        remaining = self.clock.remaining
        alone = self.options.workers == 1
        options = replace(
            self.options,
            # With one worker, its work ends the turn, not the clock.
            time_limit=remaining if alone or (remaining is not None and remaining < seconds) else seconds,
            nominal_limit=seconds,
            workers=self.threads,
            initial=self.best.schedule,
            on_progress=self.best.progress_callback("cp-sat"),
            should_stop=self._silent(seconds, size) if self.sequenced and not alone else self.options.should_stop,
            pool=None,  # searches use it
        )
        work = seconds / (TUNING.unit + size / TUNING.weight) if alone else None
        settings = CpSatSettings(hint=self.best.schedule is None, work=work, series=False)
        with self.best.turn("cp-sat"):
            answer = solved(self.problem, options, settings)
            if answer.schedule is not None:
                self.offer(answer.schedule, "cp-sat")
            if answer.bound is not None and self.best.schedule is not None:
                self.best.raise_bound(answer.bound, "cp-sat")
        self.examined = self._value()
        if answer.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
            self.proved = answer.termination

    def _silent(self, seconds: float, size: int) -> Callable[[], bool]:
        """Return a function that stops a turn of CP-SAT on request, or after a long time without a gain."""
        most = TUNING.building * size + max(TUNING.silent * seconds, TUNING.silent_least)
        known, since = self.best.standing, self.clock.elapsed

        def stop() -> bool:
            nonlocal known, since
            if self.best.standing != known:
                known, since = self.best.standing, self.clock.elapsed
            return self.options.should_stop() or self.clock.elapsed > since + most

        return stop

    def _search(self, most: int | None) -> None:
        """Run turns of the operators, for the planned work or until the time limit, and at most `most` turns.

        Without a prover, bounds use the remaining time.
        """
        prover = self.prover
        work = TUNING.searching * self.span if prover is None else self.span
        endless = prover is not None and self.clock.limit is not None
        asked = False
        while (endless or self.worked < work) and not self.stop_reason() and (most is None or self.turns < most):
            self._collect()
            self._restart()
            self._turn()
            if prover is not None and not asked and not prover.busy and self._promises() and not self.stop_reason():
                # With more threads or a better schedule, CP-SAT may prove a bound that it did not prove before.
                self._exact(TUNING.exact)
                asked = True

    def _promises(self) -> bool:
        """Return whether CP-SAT is worth another turn; in shops, it had all threads and half of the time."""
        value = self._value()
        near = value is not None and value - self._bound_known() <= TUNING.near * value
        return not self.sequenced or (near and value != self.examined)

    def _collect(self) -> None:
        """Offer the schedules of the searches in a pool."""
        if self.restarts is not None:
            self.restarts.collect(partial(self.offer, name="restarts"))

    def _restart(self) -> None:
        """Start searches in a pool from the incumbent."""
        if self.restarts is not None and self.best.schedule is not None:
            self.varies_by = "clock"
            self.restarts.submit(self.best.schedule, self.clock.remaining)

    def _turn(self) -> None:
        """Run the operator with the highest rate, new ones first.

        Without any gain, every second turn is for the one that gained last, and the others share the rest.
        """
        start = self.best.schedule or any_start(self.problem)
        if start is None:
            self.proved = Termination.FAILED
            self.message = "no placement satisfies feasibility, groups and separations"
            return
        value = self._value()
        able = [each for each in self.operators if value is not None or not each.needs_schedule]
        able = able or [ImprovementOperator("annealing", self._anneal)]
        rates = [math.inf if each.rate is None or each.trials > 0 else each.rate for each in able]
        if any(rates):
            operator = able[rates.index(max(rates))]
        else:
            others = [each for each in able if each is not self.gained] or able
            operator = self.gained if self.gained and self.turns % 2 else others[self.turns // 2 % len(others)]
        with self.best.turn(operator.name):
            seconds = operator.turn(
                start, self.length * (operator.trial if operator.rate is None else 1), self.options.seed + self.turns
            )
        self.worked += seconds
        operator.learn(value, self._value(), seconds)
        if operator.rate and operator in self.operators:
            self.gained = operator
        self.turns += 1

    def _anneal(self, start: Schedule, seconds: float, number: int) -> float:
        """Run a turn of annealing, or of a descent if the graph is too large to cool in time.

        The first turns are short, each from another heuristic's schedule: their values do not show which is the best
        start.
        """
        at = self.annealed
        self.annealed += 1
        if at < TUNING.starts:
            seconds *= TUNING.first_turn
            start = self.starts[at][1] if at < len(self.starts) else start
        cold = rounds_in(self.problem, seconds) < TUNING.cooling * self.problem.n_tasks
        self._walk(start, seconds, number, "annealing", annealer, descent if cold else _cooled(at))
        return seconds

    def _evolve(self, start: Schedule, seconds: float, number: int) -> float:
        """Continue the memetic search; it begins with the best schedules of heuristics."""
        search = self.memetic
        if search is None:
            starts = [start, *(schedule for schedule in self.found if schedule is not start)]
            offer = partial(self.offer, name="memetic")
            self.memetic = search = Memetic(self.problem, starts, number, self.stopped, offer)
        elif search.span > makespan(self.problem, start):
            search.add(start)
        search.workers = self.threads
        search.run(seconds, sufficient(self.problem, float(self._bound_known()), self.options.gap_limit))
        return seconds

    def _descend(self, start: Schedule, seconds: float, number: int) -> float:
        """Run a turn of iterated local search."""
        self._walk(start, seconds, number, "local-search", descender, descents)
        return seconds

    def _walk(
        self, start: Schedule, seconds: float, number: int, name: str, make: MakeWalker, cooled: Coolings
    ) -> None:
        """Run a search by moves."""
        search_from(
            self.problem,
            start,
            make,
            cooled,
            self.best,
            max(rounds_in(self.problem, seconds), 1),
            self.stopped,
            enough=sufficient(self.problem, float(self._bound_known()), self.options.gap_limit),
            seed=number,
            workers=self.threads,
            message=name,
        )

    def _slide(self, start: Schedule, seconds: float, number: int) -> float:
        """Continue the passes over windows; a better schedule of another operator replaces theirs."""
        sweep = self.sweep
        if sweep is None:
            sweep = Sweep(
                self.problem, start, number, self.stopped, partial(self.offer, name="forward-backward"), self.threads
            )
            self.sweep = sweep
        elif sweep.state.span > makespan(self.problem, start):
            sweep.go_to(start)
        sweep.run(seconds, float(self._bound_known()))
        return seconds

    def _move(self, start: Schedule, seconds: float, number: int) -> float:
        """Continue the moves in windows; a better schedule of another operator replaces theirs."""
        moves = self.moves
        if moves is None:
            offer = partial(self.offer, name="windows")
            planned = TUNING.searching * self.span
            self.moves = moves = Moves(self.problem, start, number, self.stopped, offer, self.threads, planned)
        elif moves.span > makespan(self.problem, start):
            moves.go_to(start)
        moves.workers = self.threads
        moves.run(seconds, float(self._bound_known()))
        return seconds

    def _refine(self, start: Schedule, seconds: float, number: int) -> float:
        """Run a cycle of multilevel search."""
        search = Multilevel(
            self.problem, start, number, self.stopped, partial(self.offer, name="multilevel"), self.threads
        )
        search.cycles = self.refined  # the first cycle may move to other devices than those of the best schedule
        self.refined += 1
        search.cycle(seconds, float(self._bound_known()))
        return seconds

    def _repair(self, start: Schedule, seconds: float, number: int) -> float:
        """Continue large neighbourhood search; a better schedule of another operator replaces its own."""
        search = self.neighbourhoods
        if search is None:
            better = partial(self.offer, name="lns")
            search = NeighbourhoodSearch(self.problem, start, number, self.stopped, better, self.threads)
            self.neighbourhoods = search
        elif search.state.span > makespan(self.problem, start):
            search.go_to(start)
        search.workers = self.threads
        search.run(seconds * self.threads, float(self._bound_known()))
        return seconds

    def _bound_early(self) -> None:
        """Prove bounds for a short time if there is one worker.

        Searches do not know these bounds, which depend on the clock: the same seed gives the same schedule. A bound
        that equals the best value is stated at once, since no later schedule would replace the best one.
        """
        values = self.best.values
        apply = self.prover is None and self.series and self.problem.n_tasks <= TUNING.large
        if not apply or values is None or self.stop_reason():
            return
        seconds, remaining = TUNING.early * self.span, self.clock.remaining
        self.prove(seconds if remaining is None else min(seconds, remaining), values[0], self._keep_early)
        if self.early is not None and self.early.value >= values[0]:
            self._state_early()

    def _keep_early(self, bound: Bound) -> None:
        if self.early is None or bound.value > self.early.value:
            self.early = bound

    def _state_early(self) -> None:
        """State the best of the first bounds."""
        if self.early is not None and self.best.schedule is not None:
            self.best.raise_bound(self.early.value, self.early.name)

    def _bound(self) -> None:
        """Prove slow bounds in the remaining time; for a block, in that of its plan."""
        self._state_early()
        if self.stop_reason():
            return
        values, remaining = self.best.values, self.clock.remaining
        if values is None:
            return
        seconds = self.span * (1 - TUNING.searching)
        if remaining is not None:  # the time limit of a block is that of the whole problem
            seconds = remaining if self.series else min(max(seconds, self.span - self.clock.elapsed), remaining)
        self.prove(seconds, values[0])

    def _value(self) -> float | None:
        return None if self.best.values is None else float(self.best.values[0])

    def _bound_known(self) -> float:
        return float(self.best.bound if self.best.bound is not None else self.least.value)


def solved_block(problem: Problem, options: Options) -> Answer:
    """Solve a block problem."""
    return Run(problem, options, None, series=False).answer()


def _cooled(turn: int) -> Coolings:
    """Return coolings whose temperatures depend on the turn, not on the seed."""
    return lambda problem, worker, rounds: coolings(problem, turn + worker, rounds)


def descent(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:  # noqa: ARG001 - as `coolings`
    """Yield a descent: one cooling that accepts only moves that do not increase the cost."""
    yield Cooling(rounds, 0.0, 0.0)
