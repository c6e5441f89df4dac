"""Improve a schedule with renewable resources: serial generation by priorities, and passes in both directions.

The placement stays. *Serial generation* takes the tasks by a priority, producers first, and starts each as early as its
device and its resources allow next to those before it; re-timing does exactly this in the order of given starts. The
priorities are latest starts, with the tails of the placement, and numbers of all successors; then latest starts with
random delays. A pair of passes takes the tasks by decreasing end, starts each as late as possible, and generates the
schedule again by these starts, which mostly shortens it (K. Y. Li, R. J. Willis, "An iterative scheduling technique for
resource-constrained project scheduling", EJOR 56 (1992), doi:10.1016/0377-2217(92)90320-9). Rules and passes are those
of R. Kolisch, S. Hartmann, "Experimental investigation of heuristics for resource-constrained project scheduling: an
update", EJOR 174 (2006), doi:10.1016/j.ejor.2005.01.065.

"As late as possible" is "as early as possible" in the mirror, the problem with edges and links reversed. It has no
release times and windows, which the next pass respects again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations, edge_ticks, lateness, makespan
from placeopt.simulation import retime

SAMPLES, WORK = 60, 200_000
"""Number of schedules from random delays, and of their tasks and edges in all, at most."""

PASSES = 4
"""Maximum number of pairs of passes for a schedule; they end when one gains nothing."""

DELAYED = 0.4
"""Largest random delay, as a share of the longest path."""

LINKS = ("latency", "byte_ticks_num", "byte_ticks_den")

Value = tuple[int, int]


def generated(problem: Problem, start: Schedule, stopped: Callable[[], bool]) -> Schedule | None:
    """Return the best schedule with the placement of a given one; None without renewable resources or with ports."""
    if "resources" not in problem.rules or problem.contends or problem.n_tasks == 0:
        return None
    mirror = mirrored(problem)
    best: tuple[Value, Schedule] | None = None
    for k, keys in enumerate(_priorities(problem, start)):
        if best is not None and stopped():
            break
        found = retime(problem, Schedule(start.device, keys))
        value = _value(problem, found)
        # Passes cost several times as much as a schedule: later ones must be promising.
        if k < 3 or best is None or value[1] <= best[0][1] * (1 + DELAYED / 4):
            value, found = _passed(problem, mirror, found, value)
        if best is None or value < best[0]:
            best = value, found
    return None if best is None else best[1]


def _priorities(problem: Problem, start: Schedule) -> Iterator[Int]:
    """Yield (n,) numbers by which tasks are taken, the smallest first."""
    yield start.start
    device = start.device
    ticks = durations(problem, device)
    tail = ticks.copy()
    moved = edge_ticks(problem, device)
    source, target, first = problem.edge_source.tolist(), problem.edge_target.tolist(), problem.out_start.tolist()
    after = [0] * problem.n_tasks
    for i in reversed(problem.order.tolist()):
        edges = range(first[i], first[i + 1])
        tail[i] = ticks[i] + max((int(moved[e] + tail[target[e]]) for e in edges), default=0)
        for e in edges:
            after[source[e]] |= after[target[e]] | 1 << target[e]
    longest = int(tail.max())
    latest = longest - tail
    yield latest
    yield np.array([problem.n_tasks - bits.bit_count() for bits in after], dtype=np.int64)
    rng = np.random.default_rng(0)
    for _ in range(min(SAMPLES, WORK // (problem.n_tasks + problem.n_edges))):
        yield latest + rng.integers(0, math.ceil(DELAYED * longest) + 1, problem.n_tasks)


def _passed(problem: Problem, mirror: Problem, schedule: Schedule, value: Value) -> tuple[Value, Schedule]:
    """Return the best schedule of pairs of passes backward and forward."""
    for _ in range(PASSES):
        ends = schedule.start + durations(problem, schedule.device)
        backward = retime(mirror, Schedule(schedule.device, ends.max() - ends))
        late = backward.start + durations(problem, schedule.device)
        again = retime(problem, Schedule(schedule.device, late.max() - late))
        gained = _value(problem, again)
        if gained >= value:
            break
        value, schedule = gained, again
    return value, schedule


def _value(problem: Problem, schedule: Schedule) -> Value:
    return lateness(problem, schedule), makespan(problem, schedule)


def mirrored(problem: Problem) -> Problem:
    """Return the problem with edges and links reversed: a schedule of it, reversed in time, keeps all resources."""
    return build_problem(
        task_names=problem.task_names,
        device_names=problem.device_names,
        duration=problem.duration,
        feasible=problem.feasible,
        edges=np.column_stack((problem.edge_target, problem.edge_source)),
        payload=problem.payload,
        **{name: getattr(problem, name).T for name in LINKS},
        resources=problem.resources,
    )
