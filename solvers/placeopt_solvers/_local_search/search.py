"""Search from a schedule: one cooling after the other, each from the best state so far, on one or more threads.

Violations of memory, budgets and deadlines are penalised. The penalty rises while states are infeasible and falls while
they are feasible (F. Glover's strategic oscillation, Decision Sciences 8, 1977,
doi:10.1111/j.1540-5915.1977.tb01074.x), so that a search passes through infeasible states but does not remain there.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from placeopt import engine
from placeopt.bounding.quick import best_bound
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers, sequence
from placeopt.simulation import simulate

from .._constructive.groups import grouped, packings
from .._runs.solve_run import Incumbent
from .._runs.validity import valid
from .instance import MAKESPAN, Instance, make_instance


@dataclass(frozen=True, slots=True)
class Tuning:
    """Seconds, measured with `benchmarks/search_speed.py` on a slow core, which only affect budgets; and penalties."""

    move: float = 0.7e-6  # a move apart from timing
    task: float = 2e-9  # timing a task or an edge without ports
    port_task: float = 5e-9  # timing a task or an edge with ports
    booking: float = 5e-8  # booking the resources of a task
    chunk: float = 0.03  # between two changes of the penalties
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


def rounds_in(problem: Problem, seconds: float) -> int:
    """Estimate the moves that a core tries in a few seconds."""
    step = TUNING.port_task if problem.contends else TUNING.task
    booking = TUNING.booking * problem.n_tasks if "resources" in problem.rules else 0.0
    return int(seconds / (TUNING.move + step * (problem.n_tasks + problem.n_edges) + booking))


class Walker:
    """One walk through states: its state, and the best that it has found.

    `bound` is a lower bound of the makespan (`makespan_bound`); `shares` are the percentages of the kinds of moves, in
    the order of the engine's `moves.cpp`.
    """

    def __init__(self, problem: Problem, start: Schedule, seed: int, bound: int, shares: Sequence[int]) -> None:
        self.problem = problem
        self.instance = make_instance(problem, bound)
        self.state = engine.LocalSearch(self.instance, seed)
        self._judge = engine.LocalSearch(self.instance, 0)
        self.shares = np.cumsum(np.array(shares, dtype=np.int64))
        self.evaluated = 0
        self.go_to(start)
        value = abs(self.state.cost - self.state.penalty) or 1.0
        held = max(float(self.instance.memory.sum()), 1.0)
        self._first = np.array([max(self.instance.weight[MAKESPAN], 1.0) * 2.0, 4.0 * value / held])
        self._penalties = self._first
        self.state.set_penalties(*self._penalties.tolist())
        self.go_to(start)

    def go_to(self, schedule: Schedule) -> None:
        """Continue from the placement of a schedule, and its order by starts."""
        home = np.empty(self.problem.n_groups, dtype=np.int64)
        home[self.problem.group] = schedule.device
        self.state.load(sequence(self.problem, schedule), home)

    @property
    def value(self) -> float:
        """The value that temperatures relate to: the best so far, or that of the state."""
        return self.state.held if math.isfinite(self.state.held) else self.state.cost

    def cool(self, cooling: Cooling, enough: float, stopped: Callable[[], bool], on_best: Callable[[], None]) -> bool:
        """Walk through one cooling; return whether it reached its end. `on_best` is called after a new best state."""
        rounds, scale, stop = cooling.rounds, self.value, engine.Stop(stopped)
        hot, cold = cooling.hot * scale, cooling.cold * scale
        size = max(rounds_in(self.problem, TUNING.chunk), 1)
        for begin in range(0, rounds, size):
            if stopped() or self.state.held <= enough:
                return False
            count = min(size, rounds - begin)
            first, last = (
                hot * (cold / hot) ** (done / rounds) if 0 < cold < math.inf else hot for done in (begin, begin + count)
            )
            self.evaluated += self.step(count, first, last, enough, stop)
            if self.state.take_news():
                on_best()
            self._weigh()
        return True

    def step(self, count: int, hot: float, cold: float, enough: float, stop: engine.Stop) -> int:
        """Try `count` moves; return how many were evaluated."""
        return self.state.walk(self.shares, 0, count, count, hot, cold, enough, stop)

    def _weigh(self) -> None:
        """Raise the penalties while the state is infeasible, and lower them while it is feasible."""
        change = TUNING.rise if self.state.penalty > 0 else TUNING.fall
        penalties = np.clip(self._penalties * change, self._first / TUNING.range, self._first * TUNING.range)
        if (penalties != self._penalties).any():
            self._penalties = penalties
            self.state.set_penalties(*penalties.tolist())

    def best(self) -> Schedule | None:
        """Return the schedule of the best state so far; None without a feasible one."""
        if not math.isfinite(self.state.held):
            return None
        self._judge.load(self.state.best_order, self.state.best_home)
        return timed_schedule(self.problem, self.instance, self._judge)


def timed_schedule(problem: Problem, instance: Instance, state: engine.LocalSearch) -> Schedule:
    """Return the schedule of a state, with recomputed times."""
    state.time_all()
    device, transfers = state.device.copy(), None
    if problem.contends:
        edges = np.flatnonzero(edge_transfers(problem, device) == np.arange(problem.n_edges))
        at = instance.slot[edges]
        transfers = Transfers(edges, state.arrive[at] - state.delay[at])
    return Schedule(device, state.end - state.ticks, transfers)


MakeWalker = Callable[[Problem, Schedule, int, int], Walker]
"""Makes a walker from a problem, a start, a seed, and a lower bound of the makespan."""

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
    endless: bool = False,
    message: str = "",
) -> int:
    """Search until the coolings end, the value is at most `enough`, or `stopped` returns true.

    Returns the number of states evaluated.

    Each worker follows `coolings` for `rounds` moves, again and again if `endless`. Workers begin each cooling with the
    best state of all, and offer their schedules to `best`. With one worker, the same seed gives the same result, unless
    the search is stopped.
    """
    least = makespan_bound(problem) if bound is None else bound
    lock = threading.Lock()
    shared: list[tuple[float, Schedule]] = []

    def work(number: int) -> int:
        if stopped():  # before a walker is made, which reads the whole problem
            return 0
        walker = make(problem, start, seed + 7919 * number, least)

        def on_best() -> None:
            found = walker.best()
            if found is not None and valid(problem, found):
                value = walker.state.held
                with lock:
                    if not shared or value < shared[0][0]:
                        shared[:] = [(value, found)]
                best.offer(found, message)

        def over() -> bool:
            return stopped() or bool(shared and shared[0][0] <= enough)

        repeats = itertools.count() if endless else range(1)
        for cooling in itertools.chain.from_iterable(coolings(problem, number, rounds) for _ in repeats):
            if over():
                break
            with lock:
                ahead = shared[0] if workers > 1 and shared else None
            if ahead is not None and ahead[0] < walker.state.held:
                walker.go_to(ahead[1])
            elif not cooling.onward:
                walker.state.return_to_best()
            if not walker.cool(cooling, enough, over, on_best):
                break
        return walker.evaluated

    if workers == 1:
        return work(0)
    with ThreadPoolExecutor(workers, thread_name_prefix="search") as pool:
        return sum(pool.map(work, range(workers)))


def makespan_bound(problem: Problem) -> int:
    """Return a lower bound of the makespan in ticks, regardless of the objective."""
    timed = problem if problem.objective == Objective() else replace(problem, objective=Objective())
    return math.ceil(best_bound(timed).value)


def any_start(problem: Problem) -> Schedule | None:
    """Return a schedule to start a search from if no heuristic has one; it may violate memory, budgets and deadlines.

    None if no placement was found even without limits of memory and budgets.
    """
    roomy = replace(problem, capacity=np.full(problem.n_devices, UNLIMITED), resources=None)
    groups = grouped(roomy)
    home = None if groups.stuck is not None else next(packings(roomy, groups), None)
    return None if home is None else simulate(problem, home[problem.group])
