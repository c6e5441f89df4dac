"""Search the largest makespan that is refuted; the rules are in `engine/native/propagation.cpp`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from placeopt import engine
from placeopt.bounding.quick import Bound, narrowed_classes
from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes
from placeopt.bounding.quick.paths import NEVER, Windows, critical_path, windows
from placeopt.model.arrays import Int
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.model.units import time_text

TABLE = 1 << 23
"""Maximum number of transfers (edges times pairs of classes) that are tabulated; beyond, all classes count as one."""

LIMITS = 1 << 20, 1 << 27, 1 << 16
"""Steps of a probe, steps of propagation without probing, and changes during a probe."""

PRECISION = 4000
"""With probing, T is searched up to this part of the bound."""

WIDE = 32
"""Without probing, the first T is this part of the bound above it. Wide steps may succeed where short ones stop."""


def destructive_bound(
    problem: Problem,
    least: int,
    *,
    known: int | None = None,
    seconds: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Bound:
    """The best bound of the makespan by refuted makespans; it improves on another bound `least` if possible.

    Parameters
    ----------
    least, known
        Ticks of a proved bound, and of a known schedule.
    seconds
        Time limit.
    """
    begun = time.perf_counter()
    stop = engine.Stop(should_stop, seconds)
    classes = narrowed_classes(problem)
    found = windows(classes)
    best = critical_path(classes, found)[0]
    why = "the longest chain of tasks and unavoidable transfers; nothing longer is proved"
    if problem.n_devices > 1 and "parallel" not in problem.rules and not should_stop():
        proved = largest(propagation(classes, found), max(best, least), known, stop)
        if proved > max(best, least):
            best = proved
            why = (
                f"a makespan below {time_text(best, problem.resolution)} leaves too little time for the transfers, or "
                "for the tasks that must then share a device"
            )
    return Bound("destructive", best, why, time.perf_counter() - begun)


def largest(
    rules: engine.Propagation,
    proved: int,
    known: int | None,
    stop: engine.Stop,
    *,
    probing: Sequence[bool] = (False, True),
) -> int:
    """The best proved bound, at least `proved`, and at most `known`: without probing, then with; weaker if stopped."""
    # Only an infeasible problem has no schedule below LARGEST_TOTAL; its bounds mean nothing.
    least, most = proved, LARGEST_TOTAL if known is None else min(known, LARGEST_TOTAL)
    with suppress(engine.StoppedError):
        for probe in probing:
            high = most
            unit = 1 + proved // PRECISION if probe else 1
            step = unit if probe else 1 + proved // WIDE
            while proved + unit <= high:
                tried = min(proved + step, high) - 1
                if rules.refutes(tried, probe, *LIMITS, stop):
                    proved, step = tried + 1, 2 * step
                elif tried < proved + unit:
                    break
                else:
                    high, step = tried, max(step // 4, unit)
    return least if proved >= LARGEST_TOTAL else proved


def propagation(classes: Classes, found: Windows) -> engine.Propagation:
    """The rules for a problem."""
    problem = classes.problem
    return engine.Propagation(native(problem), *_tables(classes, found), classes.memory, problem.separation)


def _tables(classes: Classes, found: Windows) -> tuple[Int, Int, Int, Int, Int]:
    """Heads (NEVER on closed classes), tails, durations, transfers by classes, and capacities.

    With too many classes for a table of transfers, all count as one, with the least of all times: a relaxation.
    """
    problem = classes.problem
    k = classes.n_classes
    head = np.where(found.allowed, found.head, NEVER)
    if problem.n_edges * k * k <= TABLE:
        move = np.full((problem.n_edges, k, k), NEVER, dtype=np.int64)
        for a, c in zip(*np.nonzero(classes.linked), strict=True):
            move[:, a, c] = problem.transfer(problem.payload, classes.source[a, c], classes.target[a, c])
        return head, found.tail, classes.duration, move, classes.capacity
    least = np.full(problem.n_edges, NEVER, dtype=np.int64)
    for a, c in zip(*np.nonzero(classes.linked), strict=True):
        least = np.minimum(least, problem.transfer(problem.payload, classes.source[a, c], classes.target[a, c]))
    tail, duration = (np.where(found.allowed, each, NEVER).min(axis=1) for each in (found.tail, classes.duration))
    return (
        np.ascontiguousarray(head.min(axis=1)[:, None]), tail[:, None], duration[:, None], least[:, None, None],
        classes.capacity.max(keepdims=True),
    )  # fmt: skip
