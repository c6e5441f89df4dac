"""Find schedules that exact solvers and searches start from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from placeopt.bounding.quick import best_bound
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Clock, Options, Termination

from .._constructive.sequences import heft
from .._local_search.memetic import Memetic
from .._local_search.search import any_start, rounds_in, search_from
from .._local_search.strategies import annealer, coolings
from .._local_search.windows import searches_windows
from .._runs.solve_run import Incumbent, SolveRun, sufficient
from .._runs.validity import valid_forms
from .generation import generated
from .segments import segmented
from .serial import best_serial

QUICK = 1e-4
"""Seconds of work for each task of a search before all else."""

TURNS = 20
"""Parts of a memetic search, after each of which it may end."""

FITTING = 0.2
"""Seconds of work for an order that fits into memory."""


def best_start(
    problem: Problem, initial: Schedule | None, heuristics: bool, stopped: Callable[[], bool] = lambda: False
) -> Schedule | None:
    """Return the best valid schedule among the initial one and, if wanted, those of HEFT, single devices and segments.

    With resources, that of HEFT is improved, too. Each is also tried re-timed. Infeasible schedules are discarded. Once
    a schedule is found, `stopped` ends the search for further ones.
    """
    best: tuple[tuple[Value, ...], Schedule] | None = None
    for candidate in _candidates(problem, initial, heuristics, stopped):
        for form in () if candidate is None else valid_forms(problem, candidate):
            values = evaluate(problem, form)
            if best is None or values < best[0]:
                best = values, form
        if best is not None and stopped():
            break
    if best is None and heuristics and problem.memory_model == "peak":
        return _fitting(problem, stopped)
    return None if best is None else best[1]


def _fitting(problem: Problem, stopped: Callable[[], bool]) -> Schedule | None:
    """Search by annealing for an order in which the live memory fits; None if that fails."""
    start = any_start(problem)
    enough = sufficient(problem, float(best_bound(problem).value))
    return None if start is None else _annealed(problem, start, None, FITTING, 0, stopped, enough)


def begun(run: SolveRun) -> Answer | None:
    """Offer the best start and the quick bound to the run of a search; return the answer if the run ends with them."""
    start = best_start(run.problem, run.options.initial, True, run.stopped)
    if start is None:
        return Answer(Termination.FAILED, message="no schedule to start from: pass one, or use cp-sat")
    run.best.offer(start, "start" if run.options.initial is None else "initial")
    run.best.raise_bound(best_bound(run.problem).value)
    ended = run.stop_reason()
    return None if ended is None else run.ended(ended)


def _candidates(
    problem: Problem, initial: Schedule | None, heuristics: bool, stopped: Callable[[], bool]
) -> Iterator[Schedule | None]:
    yield initial
    if heuristics:
        first = heft(problem).schedule
        yield first
        if first is not None:
            yield generated(problem, first, stopped)
        yield best_serial(problem)[0]
        yield from segmented(problem)


def improved_start(
    problem: Problem,
    start: Schedule,
    seconds: float,
    seed: int,
    stopped: Callable[[], bool],
    *,
    enough: float = -math.inf,
    workers: int = 1,
    idle: int = TURNS,
) -> Schedule | None:
    """Improve a valid schedule by memetic search or else annealing for about `seconds`; return None if that fails.

    The seconds become work, so that with one worker the same seed gives the same schedule on any machine. Memetic
    search ends after `idle` of TURNS parts of them without a gain. `enough` is that of `search_from`.
    """
    if searches_windows(problem):
        search, turn, gained = Memetic(problem, [start], seed, stopped, workers=workers), 0, 0
        while turn < TURNS and turn - gained < idle and search.span > enough and not stopped():
            before, turn = search.span, turn + 1
            search.run(seconds / TURNS, enough)
            gained = turn if search.span < before else gained
        return None if search.schedule is start else search.schedule
    return _annealed(problem, start, start, seconds, seed, stopped, enough)


def quickly_improved(
    problem: Problem, start: Schedule, seed: int, stopped: Callable[[], bool], enough: float
) -> Schedule | None:
    """Improve a valid schedule in milliseconds where memetic search applies: in many shops it then equals a bound."""
    applies = searches_windows(problem)
    return improved_start(problem, start, QUICK * problem.n_tasks, seed, stopped, enough=enough) if applies else None


def _annealed(
    problem: Problem,
    start: Schedule,
    known: Schedule | None,
    seconds: float,
    seed: int,
    stopped: Callable[[], bool],
    enough: float,
) -> Schedule | None:
    """Search by annealing; return the best valid schedule, None if none is better than the known one."""
    best = Incumbent(problem, Options(), Clock(None))
    if known is not None:
        best.offer(known)
    if rounds := rounds_in(problem, seconds):
        search_from(problem, start, annealer, coolings, best, rounds, stopped, enough=enough, seed=seed)
    return None if best.schedule is known else best.schedule
