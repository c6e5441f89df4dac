"""A search from a schedule: cooling after cooling, each from the best state so far, on as many threads as wanted.

What a state is and how it changes stands in `placeopt_solvers._local_search`. Broken limits of memory and deadlines
have a price that rises while the search is among states that break them and falls while it is not (F. Glover's
strategic oscillation, Decision Sciences 8, 1977, doi:10.1111/j.1540-5915.1977.tb01074.x), so that it may pass through
them but does not stay.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from placeopt.bounding.quick import best_bound
from placeopt.kernels import runs_compiled
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import simulate

from .._constructive.groups import grouped, packings
from .._local_search import current_schedule, load, make_case, make_state
from .._runs.incumbent import Incumbent
from .._runs.validity import valid
from .case import LATE, MAKESPAN, OVERFULL
from .decoding import decode
from .moving import settle
from .proposals import KINDS
from .state import COST, GUIDE, HELD, NEWS, PENALTY
from .walk import hold, walk

PROPOSING, TIMING, BOOKING = 0.7e-6, 2e-9, 5e-9
"""Seconds that a move costs apart from timing tasks, and that a task or an edge costs, without and with ports. On a
slow core; only budgets hang on them."""

PLAIN_PROPOSING, PLAIN_TIMING = 150e-6, 2e-6
"""The same in plain Python."""

LOADING = 1.0
"""Seconds that a search may take longer than planned in plain Python: until compiled code is loaded from disk."""

OVERHEAD = 40
"""Elementary steps of plain Python that a move costs apart from timing, in the measure of `placeopt.kernels`."""

CHUNK = 0.03
"""Seconds, about, between two looks at whether to stop."""

DEARER, CHEAPER = 1.25, 0.9
"""By how much the price of broken limits rises and falls between two chunks."""

DEAREST = 1e6
"""The most that price may be, and the inverse of the least, in parts of what it is at first."""


@dataclass(frozen=True, slots=True)
class Cooling:
    """Moves to try, and the temperatures of the first and the last as parts of the best value so far.

    Infinite ones accept whatever comes. `onward` goes on from where the one before ended, not from the best state.
    """

    rounds: int
    hot: float
    cold: float
    onward: bool = False


@dataclass(frozen=True, slots=True)
class Walked:
    """What a search did: states evaluated, and whether it was cut short because it ran in plain Python."""

    evaluated: int
    cut: bool


def rounds_in(problem: Problem, seconds: float, *, plain: bool = False) -> int:
    """Moves that a core tries in so many seconds, at least about, in compiled or in plain code."""
    fixed, step = PROPOSING, BOOKING if problem.contention == "port" else TIMING
    if plain:
        fixed, step = PLAIN_PROPOSING, PLAIN_TIMING
    return int(seconds / (fixed + step * (problem.n_tasks + problem.n_edges)))


class Search:
    """One walker: its state, and the best that it has found.

    `moves` is how many are to come at least, which decides on compiled code; `bound` is a lower bound of the makespan
    (`makespan_bound`); `shares` are the percentages of the kinds of moves, as
    `placeopt_solvers._local_search.proposals` lists them.
    """

    def __init__(
        self,
        problem: Problem,
        start: Schedule,
        seed: int,
        moves: int,
        bound: int,
        shares: Sequence[int],
    ) -> None:
        self.problem = problem
        self.case = make_case(problem, bound)
        self.state = make_state(self.case, problem, seed)
        self._judge = make_state(self.case, problem, 0)
        self.shares = np.cumsum(np.array(shares, dtype=np.int64))
        assert self.shares[-1] == 100
        assert len(shares) == KINDS
        self.evaluated = 0
        self.steps = steps = moves * (OVERHEAD + problem.n_tasks + problem.n_edges)
        self._settle, self._decode = settle.select(steps, chunked=True), decode.select(steps, chunked=True)
        self._move: Callable[..., int] = walk.select(steps, chunked=True)
        self.go_to(start)
        value = abs(float(self.state.cost[COST] - self.state.cost[PENALTY])) or 1.0
        held = max(float(self.case.memory.sum()), 1.0)
        self._first = np.array([max(self.case.weight[MAKESPAN], 1.0) * 2.0, 4.0 * value / held])
        self.case.weight[[LATE, OVERFULL]] = self._first
        self.go_to(start)

    def go_to(self, schedule: Schedule) -> None:
        """Go on from a schedule."""
        load(self.problem, self.state, schedule)
        self._evaluate()

    def return_to_best(self) -> None:
        """Go on from the best state so far, if there is one."""
        if math.isfinite(self.state.cost[HELD]):
            self.state.order[:] = self.state.best_order
            self.state.home[:] = self.state.best_home
            self._evaluate()

    def _evaluate(self) -> None:
        self._settle(self.case, self.state)
        self.state.cost[COST] = self._decode(self.case, self.state, 0, math.inf)
        if self.state.cost[PENALTY] == 0:
            worth = self.state.cost[COST] - self.state.cost[GUIDE]
            if worth < self.state.cost[HELD]:
                hold(self.state, worth)

    @property
    def compiled(self) -> bool:
        """Whether moves are made by compiled code."""
        return runs_compiled(self._move)

    @property
    def value(self) -> float:
        """What temperatures are parts of: the best value so far, or that of the state."""
        held = float(self.state.cost[HELD])
        return held if math.isfinite(held) else float(self.state.cost[COST])

    def cool(self, cooling: Cooling, enough: float, stopped: Callable[[], bool], news: Callable[[], None]) -> bool:
        """Walk through one cooling; whether it came to its end. `news` is called when there is a new best."""
        rounds, scale = cooling.rounds, self.value
        hot, cold = cooling.hot * scale, cooling.cold * scale
        size = max(rounds_in(self.problem, CHUNK), 1)
        for begin in range(0, rounds, size):
            count = min(size, rounds - begin)
            first, last = (
                hot * (cold / hot) ** (done / rounds) if 0 < cold < math.inf else hot for done in (begin, begin + count)
            )
            # The penalties change between two chunks, so chunks have the same size in plain Python. It makes them in
            # parts, so that it checks often enough whether to stop.
            done = 0
            while done < count:
                if stopped() or self.state.cost[HELD] <= enough:
                    return False
                part = count if self.compiled else max(rounds_in(self.problem, CHUNK, plain=True), 1)
                end = min(done + part, count)
                self.evaluated += self.step(done, end, count, first, last, enough)
                done = end
                if self.state.number[NEWS]:
                    self.state.number[NEWS] = 0
                    news()
            self._weigh()
        return True

    def step(self, begin: int, end: int, count: int, hot: float, cold: float, enough: float) -> int:
        """Try the moves `begin` to `end` of a chunk of `count`; how many were evaluated."""
        return self._move(self.case, self.state, self.shares, begin, end, count, hot, cold, enough)

    def _weigh(self) -> None:
        """Let broken limits cost more while the state breaks one, less while it does not."""
        change = DEARER if self.state.cost[PENALTY] > 0 else CHEAPER
        weight = self.case.weight
        price = np.clip(weight[[LATE, OVERFULL]] * change, self._first / DEAREST, self._first * DEAREST)
        if (price != weight[[LATE, OVERFULL]]).any():
            weight[[LATE, OVERFULL]] = price
            last = max(self.problem.n_tasks - 1, 0)
            self.state.cost[COST] = self._decode(self.case, self.state, last, math.inf)

    def best(self) -> Schedule | None:
        """The schedule of the best state so far; None while no state has kept every rule."""
        if not math.isfinite(self.state.cost[HELD]):
            return None
        self._judge.order[:] = self.state.best_order
        self._judge.home[:] = self.state.best_home
        return current_schedule(self.problem, self.case, self._judge)


def searched(
    problem: Problem,
    start: Schedule,
    make: Callable[[Problem, Schedule, int, int, int], Search],
    coolings: Callable[[int], Iterator[Cooling]],
    best: Incumbent,
    *,
    bound: int | None = None,
    enough: float = -math.inf,
    seed: int = 0,
    workers: int = 1,
    moves: int,
    stopped: Callable[[], bool],
    patience: float = math.inf,
    message: str = "",
) -> Walked:
    """Search until the coolings end, the value is at most `enough`, or it is stopped.

    `make` makes a walker for each worker, from the problem, the start, a seed, the number of moves to come at least and
    a lower bound of the makespan; `coolings` gives those of a worker by its number. Workers begin each cooling with the
    best that any has found; what they find is offered to `best`. One worker alone finds the same for the same seed,
    unless it is stopped or cut short. Plain Python, which runs while kernels are compiled, is cut short after
    `patience` seconds: it is too slow for the moves that were planned.
    """
    least = makespan_bound(problem) if bound is None else bound
    lock = threading.Lock()
    cut = threading.Event()
    begun = time.monotonic()
    shared: list[tuple[float, Schedule]] = []

    def work(number: int) -> int:
        search = make(problem, start, seed + 7919 * number, moves, least)

        def news() -> None:
            found = search.best()
            if found is not None and valid(problem, found):
                value = float(search.state.cost[HELD])
                with lock:
                    if not shared or value < shared[0][0]:
                        shared[:] = [(value, found)]
                best.offer(found, message)

        def over() -> bool:
            if not search.compiled and time.monotonic() - begun > patience:
                cut.set()
            return cut.is_set() or stopped() or bool(shared and shared[0][0] <= enough)

        for cooling in coolings(number):
            if over():
                break
            with lock:
                ahead = shared[0] if workers > 1 and shared else None
            if ahead is not None and ahead[0] < search.state.cost[HELD]:
                search.go_to(ahead[1])
            elif not cooling.onward:
                search.return_to_best()
            if not search.cool(cooling, enough, over, news):
                break
        return search.evaluated

    if workers == 1:
        return Walked(work(0), cut.is_set())
    with ThreadPoolExecutor(workers, thread_name_prefix="search") as pool:
        return Walked(sum(pool.map(work, range(workers))), cut.is_set())


def makespan_bound(problem: Problem) -> int:
    """Ticks that every schedule takes, regardless of the objective."""
    return math.ceil(best_bound(replace(problem, objective=Objective())).value)


def sufficient(problem: Problem, bound: float, gap_limit: float | None = None) -> float:
    """The value at which nothing better is wanted; none where the objective has several levels."""
    if len(problem.objective.levels) > 1:
        return -math.inf
    return bound if gap_limit is None else bound / (1 - gap_limit) if gap_limit < 1 else math.inf


def any_start(problem: Problem) -> Schedule | None:
    """A schedule for a search to begin with where no heuristic has one: it may break limits of memory and deadlines.

    None where even without limits of memory no placement was found.
    """
    roomy = replace(problem, capacity=np.full(problem.n_devices, UNLIMITED))
    groups = grouped(roomy)
    home = None if groups.stuck is not None else next(packings(roomy, groups), None)
    return None if home is None else simulate(problem, home[problem.group])
