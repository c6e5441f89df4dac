"""Improve ranges of a schedule's sequence in parallel, on machines that share only the problem and the schedule.

A range is an interval of the sequence of tasks. In a range, one window after the other is annealed (`_windows`), while
the tasks outside keep their order and their devices. Results of disjoint ranges of one schedule are joined: each is
accepted if the whole schedule does not become longer and devices have enough memory. So all machines work on different
parts of the graph, and their gains add up, while searches with different seeds would find the same gains again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.memory import sum_memory
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations, makespan
from placeopt.solver import Answer, Options, Termination

from .._local_search.search import Cooling, rounds_in
from .._local_search.strategies import ANNEALING
from .._runs.solve_run import SolveRun
from .._starts.warm_start import annealed_start
from ..search._lns.state import State, decoded, positions
from ._windows import ADVANCE, SIZE, window_of

LEAST = SIZE + ADVANCE
"""Least number of tasks of a range: two windows."""

WARM = 1.5
"""First temperature in a window, as a part of its value divided by its tasks."""

SHORTEST, LONGEST, PASSES = 0.05, 1.0, 2
"""Least and largest number of seconds of a window, and passes over a range for which the time is planned."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The order and devices of a range's tasks in another schedule; the range begins at the position `first`."""

    first: int
    tasks: Int
    device: Int


def ranges(n: int, count: int, turn: int) -> list[tuple[int, int]]:
    """Return at most `count` ranges [first, last) of n positions, divided elsewhere in each turn."""
    count = max(min(count, n // LEAST), 1)
    shift = (0.5 + turn * 0.618034) % 1 - 0.5  # by golden sections: 0, then far from all earlier ones
    inner = [round((k + shift) * n / count) for k in range(1, count)]
    return list(zip([0, *inner], [*inner, n], strict=True))


def improved_range(problem: Problem, options: Options, *, first: int, last: int) -> Answer:
    """Return the initial schedule with an improved range, for a job of a pool; the time limit must be set."""
    assert options.initial is not None
    assert options.time_limit is not None
    run = SolveRun(problem, options)
    state = State(problem, options.initial)
    begin, turn = state.span, 0
    windows = max(-(-(last - first) // ADVANCE) - 1, 1)
    seconds = min(max(options.time_limit / (PASSES * windows), SHORTEST), LONGEST)
    while not run.stopped():
        # Every other pass begins in the middle of an advance, so that windows end elsewhere.
        for at in range(first + (turn % 2) * (ADVANCE // 2), max(last - ADVANCE, first + 1), ADVANCE):
            if run.stopped():
                break
            state = _annealed(state, at, min(at + SIZE, last), seconds, options.seed + turn, run)
        turn += 1
    if state.span < begin:
        run.best.offer(state.schedule)
    return run.ended(run.stop_reason() or Termination.COMPLETED)


def _annealed(state: State, first: int, last: int, seconds: float, seed: int, run: SolveRun) -> State:
    """Return the state after a window of it was annealed."""

    def cooled(part: Problem, number: int, rounds: int) -> Iterator[Cooling]:  # noqa: ARG001 - as `coolings`
        hot = WARM / part.n_tasks
        yield Cooling(rounds, hot, hot * ANNEALING.fall)

    window = window_of(state, first, last)
    found, _ = annealed_start(
        window.problem,
        window.schedule,
        seconds,
        seed + first,
        run.stopped,
        bound=window.bound,
        moves=rounds_in(window.problem, seconds) * state.problem.n_tasks // ADVANCE,
        cooled=cooled,
    )
    if found is None:
        return state
    count = len(window.tasks)
    end = found.start + durations(window.problem, found.device)
    return joined(state, [_change(state, first, window.tasks, found.device[:count], found.start[:count], end[:count])])


def change_of(state: State, first: int, last: int, schedule: Schedule) -> Change:
    """Return what a schedule changes in the range [first, last) of a state."""
    tasks = state.sequence[first:last]
    end = schedule.start + durations(state.problem, schedule.device)
    return _change(state, first, tasks, schedule.device[tasks], schedule.start[tasks], end[tasks])


def _change(state: State, first: int, tasks: Int, device: Int, start: Int, end: Int) -> Change:
    place = np.lexsort((positions(state.problem.order)[tasks], end, start))
    return Change(first, tasks[place], device[place])


def joined(state: State, changes: Sequence[Change]) -> State:
    """Return the state with changes of disjoint ranges that neither lengthen the schedule nor overfill a device.

    All are tried together; if that fails, the first half, and then the second half with it, so that a few changes that
    fail cost O(log) decodings each.
    """
    if not changes:
        return state
    homes, order = state.device.copy(), state.sequence.copy()
    for change in changes:
        order[change.first : change.first + len(change.tasks)] = change.tasks
        homes[change.tasks] = change.device
    found = decoded(state.problem, order, homes)
    enough = bool((sum_memory(state.problem, homes) <= state.problem.capacity).all())
    if enough and makespan(state.problem, found) <= state.span:
        return State(state.problem, found, order)
    half = len(changes) // 2
    return joined(joined(state, changes[:half]), changes[half:]) if half else state
