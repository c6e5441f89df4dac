"""Search from a schedule: one cooling after the other, each from the best state so far, on one or more threads.

Violations of memory and deadlines are penalised. The penalty rises while states are infeasible and falls while they are
feasible (F. Glover's strategic oscillation, Decision Sciences 8, 1977, doi:10.1111/j.1540-5915.1977.tb01074.x), so that
a search passes through infeasible states but does not remain there.
"""

from __future__ import annotations

import itertools
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
from .._local_search import current_schedule, load, make_instance, make_state
from .._runs.solve_run import Incumbent
from .._runs.validity import valid
from .decoding import decode
from .instance import LATE, MAKESPAN, OVERFULL
from .moving import recompute
from .proposals import KINDS
from .state import COST, GUIDE, HELD, NEWS, PENALTY
from .walk import keep_best, walk

LOADING = 1.0
"""Seconds that a search in plain Python may take longer than planned, until compiled code is loaded from disk."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Seconds, measured with `benchmarks/search_speed.py` on a slow core, which only affect budgets; and penalties."""

    move: float = 0.7e-6  # a move apart from timing
    task: float = 2e-9  # timing a task or an edge without ports
    port_task: float = 5e-9  # timing a task or an edge with ports
    plain_move: float = 150e-6  # the same in plain Python
    plain_task: float = 2e-6
    overhead: int = 40  # elementary steps of a move apart from timing, as `placeopt.kernels` counts them
    chunk: float = 0.03  # between two checks whether to stop
    rise: float = 1.25  # factor of the penalty after a chunk with an infeasible state
    fall: float = 0.9  # factor of the penalty after a chunk with a feasible state
    range: float = 1e6  # largest penalty relative to the first one; its inverse is the smallest


TUNING = Tuning()


@dataclass(frozen=True, slots=True)
class Cooling:
    """Moves to try, and the first and the last temperature as parts of the best value so far.

    Infinite temperatures accept every move. `onward` continues from the last state instead of the best one.
    """

    rounds: int
    hot: float
    cold: float
    onward: bool = False


@dataclass(frozen=True, slots=True)
class WalkOutcome:
    """States evaluated, and whether the search was cut short because it ran in plain Python."""

    evaluated: int
    cut: bool


def rounds_in(problem: Problem, seconds: float, *, plain: bool = False) -> int:
    """Estimate the moves that a core tries in a few seconds, in compiled or in plain code."""
    fixed, step = TUNING.move, TUNING.port_task if problem.contention != "none" else TUNING.task
    if plain:
        fixed, step = TUNING.plain_move, TUNING.plain_task
    return int(seconds / (fixed + step * (problem.n_tasks + problem.n_edges)))


class Walker:
    """One walk through states: its state, and the best that it has found.

    `moves` is their least number, which decides whether code is compiled; `bound` is a lower bound of the makespan
    (`makespan_bound`); `shares` are the percentages of the kinds of moves, in the order of
    `placeopt_solvers._local_search.proposals`.
    """

    def __init__(
        self, problem: Problem, start: Schedule, seed: int, moves: int, bound: int, shares: Sequence[int]
    ) -> None:
        self.problem = problem
        self.instance = make_instance(problem, bound)
        self.state = make_state(self.instance, problem, seed)
        self._judge = make_state(self.instance, problem, 0)
        self.shares = np.cumsum(np.array(shares, dtype=np.int64))
        assert self.shares[-1] == 100
        assert len(shares) == KINDS
        self.evaluated = 0
        self.steps = steps = moves * (TUNING.overhead + problem.n_tasks + problem.n_edges)
        self._recompute, self._decode = recompute.select(steps, chunked=True), decode.select(steps, chunked=True)
        self._move: Callable[..., int] = walk.select(steps, chunked=True)
        self.go_to(start)
        value = abs(float(self.state.cost[COST] - self.state.cost[PENALTY])) or 1.0
        held = max(float(self.instance.memory.sum()), 1.0)
        self._first = np.array([max(self.instance.weight[MAKESPAN], 1.0) * 2.0, 4.0 * value / held])
        self.instance.weight[[LATE, OVERFULL]] = self._first
        self.go_to(start)

    def go_to(self, schedule: Schedule) -> None:
        """Continue from a schedule."""
        load(self.problem, self.state, schedule)
        self._evaluate()

    def return_to_best(self) -> None:
        """Continue from the best state so far, if there is one."""
        if math.isfinite(self.state.cost[HELD]):
            self.state.order[:] = self.state.best_order
            self.state.home[:] = self.state.best_home
            self._evaluate()

    def _evaluate(self) -> None:
        self._recompute(self.instance, self.state)
        self.state.cost[COST] = self._decode(self.instance, self.state, 0, math.inf)
        if self.state.cost[PENALTY] == 0:
            worth = self.state.cost[COST] - self.state.cost[GUIDE]
            if worth < self.state.cost[HELD]:
                keep_best(self.state, worth)

    @property
    def compiled(self) -> bool:
        """Whether moves run in compiled code."""
        return runs_compiled(self._move)

    @property
    def value(self) -> float:
        """The value that temperatures relate to: the best so far, or that of the state."""
        held = float(self.state.cost[HELD])
        return held if math.isfinite(held) else float(self.state.cost[COST])

    def cool(self, cooling: Cooling, enough: float, stopped: Callable[[], bool], on_best: Callable[[], None]) -> bool:
        """Walk through one cooling; return whether it reached its end. `on_best` is called after a new best state."""
        rounds, scale = cooling.rounds, self.value
        hot, cold = cooling.hot * scale, cooling.cold * scale
        size = max(rounds_in(self.problem, TUNING.chunk), 1)
        for begin in range(0, rounds, size):
            count = min(size, rounds - begin)
            first, last = (
                hot * (cold / hot) ** (done / rounds) if 0 < cold < math.inf else hot for done in (begin, begin + count)
            )
            # Penalties change between two chunks, so chunks have the same size in plain Python. There they run in
            # parts, to check regularly whether to stop.
            done = 0
            while done < count:
                if stopped() or self.state.cost[HELD] <= enough:
                    return False
                part = count if self.compiled else max(rounds_in(self.problem, TUNING.chunk, plain=True), 1)
                end = min(done + part, count)
                self.evaluated += self.step(done, end, count, first, last, enough)
                done = end
                if self.state.number[NEWS]:
                    self.state.number[NEWS] = 0
                    on_best()
            self._weigh()
        return True

    def step(self, begin: int, end: int, count: int, hot: float, cold: float, enough: float) -> int:
        """Try the moves `begin` to `end` of a chunk of `count`; return how many were evaluated."""
        return self._move(self.instance, self.state, self.shares, begin, end, count, hot, cold, enough)

    def _weigh(self) -> None:
        """Raise the penalties while the state is infeasible, and lower them while it is feasible."""
        change = TUNING.rise if self.state.cost[PENALTY] > 0 else TUNING.fall
        weight = self.instance.weight
        price = np.clip(weight[[LATE, OVERFULL]] * change, self._first / TUNING.range, self._first * TUNING.range)
        if (price != weight[[LATE, OVERFULL]]).any():
            weight[[LATE, OVERFULL]] = price
            last = max(self.problem.n_tasks - 1, 0)
            self.state.cost[COST] = self._decode(self.instance, self.state, last, math.inf)

    def best(self) -> Schedule | None:
        """Return the schedule of the best state so far; None without a feasible one."""
        if not math.isfinite(self.state.cost[HELD]):
            return None
        self._judge.order[:] = self.state.best_order
        self._judge.home[:] = self.state.best_home
        return current_schedule(self.problem, self.instance, self._judge)


MakeWalker = Callable[[Problem, Schedule, int, int, int], Walker]
"""Makes a walker from a problem, a start, a seed, the least number of moves, and a lower bound of the makespan."""

Coolings = Callable[[Problem, int, int], Iterator[Cooling]]
"""Yields coolings for a problem, a worker by its number, and a number of moves."""


def search_from(
    problem: Problem,
    start: Schedule,
    make: MakeWalker,
    coolings: Coolings,
    best: Incumbent,
    rounds: int,
    stopped: Callable[[], bool],
    *,
    bound: int | None = None,
    enough: float = -math.inf,
    seed: int = 0,
    workers: int = 1,
    moves: int | None = None,
    endless: bool = False,
    patience: float = math.inf,
    message: str = "",
) -> WalkOutcome:
    """Search until the coolings end, the value is at most `enough`, or `stopped` returns true.

    Each worker follows `coolings` for `rounds` moves, again and again if `endless`. `moves` is their least number for
    the decision on compiled code, `rounds` by default. Workers begin each cooling with the best state of all, and offer
    their schedules to `best`. With one worker, the same seed gives the same result, unless the search is stopped or cut
    short: plain Python, which runs while kernels are compiled, ends after `patience` seconds.
    """
    least = makespan_bound(problem) if bound is None else bound
    lock = threading.Lock()
    cut = threading.Event()
    shared: list[tuple[float, Schedule]] = []

    def work(number: int) -> int:
        walker = make(problem, start, seed + 7919 * number, rounds if moves is None else moves, least)
        begun = time.monotonic()  # now, because making a walker may load compiled code

        def on_best() -> None:
            found = walker.best()
            if found is not None and valid(problem, found):
                value = float(walker.state.cost[HELD])
                with lock:
                    if not shared or value < shared[0][0]:
                        shared[:] = [(value, found)]
                best.offer(found, message)

        def over() -> bool:
            if not walker.compiled and time.monotonic() - begun > patience:
                cut.set()
            return cut.is_set() or stopped() or bool(shared and shared[0][0] <= enough)

        repeats = itertools.count() if endless else range(1)
        for cooling in itertools.chain.from_iterable(coolings(problem, number, rounds) for _ in repeats):
            if over():
                break
            with lock:
                ahead = shared[0] if workers > 1 and shared else None
            if ahead is not None and ahead[0] < walker.state.cost[HELD]:
                walker.go_to(ahead[1])
            elif not cooling.onward:
                walker.return_to_best()
            if not walker.cool(cooling, enough, over, on_best):
                break
        return walker.evaluated

    if workers == 1:
        return WalkOutcome(work(0), cut.is_set())
    with ThreadPoolExecutor(workers, thread_name_prefix="search") as pool:
        return WalkOutcome(sum(pool.map(work, range(workers))), cut.is_set())


def makespan_bound(problem: Problem) -> int:
    """Return a lower bound of the makespan in ticks, regardless of the objective."""
    return math.ceil(best_bound(replace(problem, objective=Objective())).value)


def any_start(problem: Problem) -> Schedule | None:
    """Return a schedule to start a search from if no heuristic has one; it may violate memory and deadlines.

    None if no placement was found even without memory limits.
    """
    roomy = replace(problem, capacity=np.full(problem.n_devices, UNLIMITED))
    groups = grouped(roomy)
    home = None if groups.stuck is not None else next(packings(roomy, groups), None)
    return None if home is None else simulate(problem, home[problem.group])
