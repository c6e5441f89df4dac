"""Compute all lower bounds of a problem: quick ones first, then those that take time.

    quick         `placeopt.bounding.quick`: integer arithmetic, well under a second
    energetic     `placeopt.bounding.energetic`: makespan only, about a second
    lagrangian    `placeopt.bounding.lagrangian`: makespan only, with scarce memory or budgets, under a second
    destructive   `placeopt.bounding.destructive`: makespan only, up to ten seconds, an eighth of the time at most
    sct-lp        `placeopt.bounding.sct.bound`: makespan only, up to a few seconds
    series        the solver `series`: makespan only, blocks between tasks that cut the graph, up to half of the time
    intervals     `placeopt.proving.intervals`: makespan only, parts of the graph, until the time limit; none with
                  devices that run several tasks at once
    relaxations   `placeopt.bounding.relaxation`: linear and integer programs, until the time limit
    pipelines     `placeopt.proving.pipelines`: the slow bounds of the period, instead of all these

The intervals and the relaxations run in parallel. With one worker, they take turns: the intervals while they improve,
the relaxations for a quarter of the time and longer if they improve the best bound, `destructive` until the time limit
if its bound is still the best, the intervals until they end, and the relaxations again if they were stopped.

Every bound holds for the original problem. The slow ones are computed after the exact passes, which keep the optimum.
The best bound certifies the gap of any schedule.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from fractions import Fraction
from functools import partial

from placeopt import engine
from placeopt.bounding import quick
from placeopt.bounding.destructive import destructive_bound
from placeopt.bounding.energetic import energetic_bound
from placeopt.bounding.lagrangian import lagrangian_bound
from placeopt.bounding.quick import Bound, narrowed_classes, prove_infeasible
from placeopt.bounding.relaxation import relaxed_bounds
from placeopt.bounding.sct.bound import sct_bound
from placeopt.model.arrays import checked_call, checked_number, checked_whole
from placeopt.model.objective import Value, simplified
from placeopt.model.problem import Problem, check_problem
from placeopt.model.ranges import check_ranges
from placeopt.passes import EXACT_PASSES, apply_passes
from placeopt.protocol import Clock, Options, Progress, unsupported
from placeopt.protocol.cluster import pool_at
from placeopt.protocol.connection import CONNECTING
from placeopt.protocol.pool import Pool
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.proving.heuristics import best_heuristic_value
from placeopt.proving.intervals import Search, available
from placeopt.proving.pipelines import period_bounds

FIRST, PATIENCE = 0.75, 0.15
"""With one worker, shares of the time after which the first turn of the intervals ends: in all, and without a gain."""

RELAXING = 0.25
"""With one worker, share of the time after which the relaxations stop if no bound of theirs is the best."""

SERIES, BLOCKS = "series", 0.5
"""The solver of blocks between tasks that cut the graph, and its share of the time."""

REFUTING = 10.0, 0.125
"""Seconds and share of the time that destructive bounds take at most, before others had a turn."""

LONGEST = 120.0
"""Seconds that count as the time for these shares, at most."""


def bounds(
    problem: Problem,
    *,
    time_limit: float | None = None,
    workers: int | None = 1,
    known: Value | None = None,
    on_bound: Callable[[Bound], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    blocks: bool = True,
    dask: str | None = None,
    connect_limit: float = CONNECTING,
) -> list[Bound]:
    """Lower bounds of the objective's first level, best first; at least one.

    They mean nothing if the problem is infeasible (`prove_infeasible`).

    Parameters
    ----------
    time_limit
        Seconds for the slow bounds; without it only the quick bounds are computed.
    workers
        Threads to use; None for all cores.
    known
        The objective's first level in a known schedule: a bound that reaches it ends the computation.
    on_bound
        Called with every bound, perhaps from another thread, one call at a time.
    should_stop
        Polled regularly; once true, the bounds proved so far are returned.
    blocks
        Whether to solve blocks between tasks that cut the graph, and pipelines, by exact solvers; solvers that do that
        themselves omit it.
    dask
        Address of the scheduler of a Dask cluster, tcp://host:8786, whose workers solve these blocks. The time limit
        does not include the time to connect.
    connect_limit
        Seconds within which the scheduler must answer and have a worker. Later, a lost connection may come back within
        the same time.

    Raises
    ------
    UsageError
        If an argument is wrong, or no cluster answers at the address.
    MissingExtraError
        If `dask` is given and Dask is not installed.
    """
    check_problem("bounds", problem)
    check_ranges("bounds", problem)
    checked_number("time_limit", time_limit, positive=True)
    workers = checked_whole("workers", os.cpu_count() or 1 if workers is None else workers, 1, 1000)
    checked_call("should_stop", should_stop)
    with pool_at(dask, connect_limit, should_stop) as pool:
        return _bounds(problem, Clock(time_limit), workers, known, on_bound, should_stop, blocks, pool)


def _bounds(
    problem: Problem,
    clock: Clock,
    workers: int,
    known: Value | None,
    on_bound: Callable[[Bound], None] | None,
    should_stop: Callable[[], bool] | None,
    blocks: bool,
    pool: Pool | None,
) -> list[Bound]:
    """Compute `bounds` with checked arguments."""
    found: dict[str, Bound] = {}
    best: Value | None = None
    lock = threading.Lock()

    def add(bound: Bound) -> None:
        nonlocal best
        with lock:
            if bound.name not in found or bound.value > found[bound.name].value:
                found[bound.name] = bound
            best = bound.value if best is None else max(best, bound.value)
            if on_bound is not None:
                on_bound(bound)

    def over() -> bool:
        return (should_stop is not None and should_stop()) or (known is not None and best is not None and best >= known)

    def stopped() -> bool:
        return over() or clock.over

    for bound in quick.bounds(problem):
        add(bound)
    searching = clock.limit is not None and not over() and prove_infeasible(problem) is None
    if searching and problem.pipeline is not None:
        period_bounds(problem, clock, workers, known, add, over, exact=blocks)
    elif searching:
        with engine.stopping(stopped), suppress(engine.StoppedError):
            reduced = apply_passes(problem, EXACT_PASSES).problem
            if reduced.n_tasks and reduced.objective.single == "makespan" and not stopped():
                add(energetic_bound(reduced, int(best or 0), stopped))
            metrics = [term.metric for term in reduced.objective.levels[0]]
            if reduced.n_tasks and metrics == ["makespan"]:
                _bound_makespan(reduced, lambda: best, known, clock, add, stopped)
            if blocks and not stopped():
                _solve_blocks(reduced, clock, workers, pool, add, over)
            if not over():
                value = best_heuristic_value(reduced) if known is None else known
                relax = partial(relaxed_bounds, reduced, known=value)
                if (
                    reduced.n_tasks
                    and metrics == ["makespan"]
                    and reduced.objective.levels[0][0].weight
                    and "parallel" not in reduced.rules
                    and available()
                ):

                    def refute() -> None:
                        if any(bound.name == "destructive" and bound.value == best for bound in found.values()):
                            add(_destructive(reduced, best, known, clock.remaining, stopped))

                    intervals = _Intervals(reduced, value, add, stopped)
                    _race(intervals, relax, refute, clock, workers, add, over, lambda: best)
                else:
                    relax(time_limit=clock.remaining, workers=workers, on_bound=add, should_stop=over)
    return sorted(found.values(), key=lambda bound: -bound.value)


def _bound_makespan(
    problem: Problem,
    best: Callable[[], Value | None],
    known: Value | None,
    clock: Clock,
    add: Callable[[Bound], None],
    should_stop: Callable[[], bool],
) -> None:
    """The bounds of a weighted makespan that are one program each."""
    weight = problem.objective.levels[0][0].weight
    most = None if known is None or not weight else int(Fraction(known) / weight)
    if not should_stop() and (found := lagrangian_bound(problem, most, should_stop)) is not None:
        add(replace(found, value=simplified(weight * found.value)))
    if not should_stop():
        seconds, share = REFUTING
        seconds = seconds if clock.remaining is None else min(seconds, share * clock.remaining)
        add(_destructive(problem, best(), known, seconds, should_stop))
    if not should_stop():
        add(_sct(problem, should_stop))


def _destructive(
    problem: Problem, best: Value | None, known: Value | None, seconds: float | None, should_stop: Callable[[], bool]
) -> Bound:
    """The bound by refuted makespans."""
    weight = problem.objective.levels[0][0].weight
    least, most = (None if value is None or not weight else int(Fraction(value) / weight) for value in (best, known))
    found = destructive_bound(problem, least or 0, known=most, seconds=seconds, should_stop=should_stop)
    return replace(found, value=simplified(weight * found.value))


def _sct(problem: Problem, should_stop: Callable[[], bool]) -> Bound:
    """The bound of the linear program of small communication times."""
    clock = Clock(None)
    ticks, solution = sct_bound(narrowed_classes(problem), should_stop=should_stop)
    explanation = (
        "of the consumers of a task, and of its producers, at most one is adjacent to it on the same device without "
        "a delay: a linear program, "
        + (f"solved to a relative gap of {solution.gap:.0e}" if solution.gap else "solved exactly")
    )
    return Bound("sct-lp", simplified(problem.objective.levels[0][0].weight * ticks), explanation, clock.elapsed)


def _solve_blocks(
    problem: Problem,
    clock: Clock,
    workers: int,
    pool: Pool | None,
    add: Callable[[Bound], None],
    should_stop: Callable[[], bool],
) -> None:
    """The bound of a series of blocks, if tasks cut the graph and the solver is installed."""
    if SERIES not in solver_names():
        return
    solver = find_solver(SERIES)
    if unsupported(solver.info, problem) is not None:
        return
    begun = Clock(None)

    def hear(progress: Progress) -> None:
        if progress.bound is not None:
            explanation = "a shortest path over the optima of blocks between tasks that cut the graph"
            add(Bound(SERIES, progress.bound, explanation, begun.elapsed))

    seconds = None if clock.remaining is None else BLOCKS * clock.remaining
    options = Options(time_limit=seconds, workers=workers, on_progress=hear, should_stop=should_stop, pool=pool)
    solver.solve(problem, options, solver.settings_type(whole=False))  # type: ignore[call-arg]


class _Intervals:
    """The search for bounds by intervals, in turns."""

    def __init__(
        self, problem: Problem, known: Value | None, on_bound: Callable[[Bound], None], should_stop: Callable[[], bool]
    ) -> None:
        self._weight = problem.objective.levels[0][0].weight
        self._on_bound, self._should_stop, self._clock = on_bound, should_stop, Clock(None)
        self._turns: tuple[Clock, Clock] | None = None
        self._search = Search(
            problem,
            known=None if known is None else int(Fraction(known) / self._weight),
            on_bound=self._prove,
            should_stop=self._over,
        )

    def run(self, workers: int, seconds: float | None = None) -> None:
        """Continue; stop early, for a part of these seconds and without a gain."""
        if seconds is None:
            self._turns = None
        else:
            counted = min(seconds, LONGEST)
            self._turns = Clock(FIRST * counted), Clock(PATIENCE * counted)
        with suppress(engine.StoppedError):
            self._search.run(workers)

    def _over(self) -> bool:
        return (self._turns is not None and any(each.over for each in self._turns)) or self._should_stop()

    def _prove(self, ticks: int) -> None:
        if self._turns is not None:
            first, patience = self._turns
            self._turns = first, Clock(patience.limit)
        explanation = "delays of small parts of the graph, which CP-SAT solves alone, add up along its paths"
        value = simplified(self._weight * ticks)
        self._on_bound(Bound("intervals", value, explanation, self._clock.elapsed))


def _race(
    intervals: _Intervals,
    relax: Callable[..., object],
    refute: Callable[[], None],
    clock: Clock,
    workers: int,
    add: Callable[[Bound], None],
    over: Callable[[], bool],
    best: Callable[[], Value | None],
) -> None:
    """Run both, in parallel or in turns."""
    whole = partial(relax, on_bound=add, should_stop=over)
    if workers > 1:
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(copy_context().run, intervals.run, workers // 2)
            whole(time_limit=clock.remaining, workers=workers - workers // 2)
            other.result()
        return
    intervals.run(1, clock.remaining)
    turn = Clock(RELAXING * min(LONGEST if clock.remaining is None else clock.remaining, LONGEST))
    known, leading, cut = best(), False, False

    def lead(bound: Bound) -> None:
        nonlocal leading
        leading = leading or known is None or bound.value > known
        add(bound)

    def late() -> bool:
        nonlocal cut
        cut = cut or (turn.over and not leading)
        return cut or over()

    relax(time_limit=clock.remaining, workers=1, on_bound=lead, should_stop=late)
    refute()
    intervals.run(1)
    if cut and not clock.over and not over():
        whole(time_limit=clock.remaining, workers=1)
