"""Sweep through a large graph: anneal one window of the sequence after the other as a small problem.

In a graph of many thousand tasks, a move changes the times of all later tasks, and there is time only for a few moves
per task. In a window of a few hundred tasks a move is cheap (rolling horizon: S. Sethi, G. Sorger: A theory of rolling
horizon decision making, Annals of Operations Research 29, 1991, doi:10.1007/BF02283607). The problem of a window
contains two kinds of earlier tasks: one on each device until the device is free, and the producers of its tasks, on a
copy of their device that has the device's links and is idle. Later tasks do not change. The result of a window is
accepted unless the whole schedule becomes longer. Windows overlap by half, so that the end of each is revised.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, durations, makespan

from ..search._intervals.state import State, decoded, positions

SIZE = 600
"""Tasks of a window."""

ADVANCE = 300
"""Tasks from one window to the next."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A window of a schedule as a problem, whose first tasks are those of the window.

    `bound` is a lower bound of its makespan in ticks, from the total load.
    """

    tasks: Int
    problem: Problem
    schedule: Schedule
    bound: int


def windowed(problem: Problem) -> bool:
    """Return whether windows apply: tasks share only devices, links and memory, and there are enough of them."""
    return (
        problem.contention == "none"
        and problem.memory_model == "sum"
        and problem.tiers is None
        and problem.n_groups == problem.n_tasks
        and len(problem.separation) == 0
        and problem.n_tasks >= 2 * SIZE
        and bool((problem.deadline == UNLIMITED).all())
    )


def window_of(state: State, first: int, last: int) -> Window:
    """Return the window of the positions [first, last) of a schedule's sequence."""
    problem, m = state.problem, state.problem.n_devices
    tasks = state.sequence[first:last]
    place = np.full(problem.n_tasks, -1, dtype=np.int64)
    place[tasks] = np.arange(len(tasks))
    into = np.flatnonzero(place[problem.edge_target] >= 0)
    source, target = problem.edge_source[into], place[problem.edge_target[into]]
    before = np.unique(source[place[source] < 0])
    free = state.boundary(first, last).free
    origin = int(min(state.end[before].min(initial=UNLIMITED), free.min(initial=UNLIMITED), state.start[tasks].min()))
    free = np.maximum(free - origin, 0)
    place[before] = len(tasks) + np.arange(len(before))
    n = len(tasks) + len(before) + m
    device = np.concatenate((state.device[tasks], m + state.device[before], np.arange(m)))
    start = np.concatenate((state.start[tasks] - origin, state.end[before] - origin, np.zeros(m, dtype=np.int64)))
    duration, feasible = np.zeros((n, 2 * m), dtype=np.int64), np.zeros((n, 2 * m), dtype=np.bool_)
    duration[: len(tasks), :m] = problem.duration[tasks]
    feasible[: len(tasks), :m] = problem.feasible[tasks]
    feasible[np.arange(len(tasks), n), device[len(tasks) :]] = True  # earlier tasks keep their device
    duration[np.arange(n - m, n), np.arange(m)] = free
    release, deadline = np.zeros(n, dtype=np.int64), np.full(n, UNLIMITED)
    release[: len(tasks)] = np.maximum(problem.release[tasks] - origin, 0)
    release[len(tasks) : n - m] = state.end[before] - origin
    deadline[n - m :] = free
    mirror = np.arange(2 * m) % m
    resident = np.zeros(n, dtype=np.int64)
    resident[: len(tasks)] = problem.memory[tasks]
    outside = state.used.copy()
    np.subtract.at(outside, state.device[tasks], problem.memory[tasks])
    room = np.where(problem.capacity == UNLIMITED, UNLIMITED, problem.capacity - outside)
    part = build_problem(
        task_names=[str(i) for i in range(n)],
        device_names=[str(d) for d in range(2 * m)],
        duration=duration,
        feasible=feasible,
        release=release,
        deadline=deadline,
        resident=resident,
        capacity=np.concatenate((room, np.full(m, UNLIMITED))),
        edges=np.column_stack((place[source], target)),
        payload=problem.payload[into],
        latency=problem.latency[np.ix_(mirror, mirror)],
        byte_ticks_num=problem.byte_ticks_num[np.ix_(mirror, mirror)],
        byte_ticks_den=problem.byte_ticks_den[np.ix_(mirror, mirror)],
    )
    least = np.where(problem.feasible[tasks], problem.duration[tasks], UNLIMITED).min(axis=1)
    return Window(tasks, part, Schedule(device, start), int(free.sum() + least.sum()) // m)


class Sweep:
    """Improves one window after the other, and starts again at the end; `state` is the best schedule so far."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem = problem
        self.state = State(problem, schedule)
        self._round = 0

    def step(self, solve: Callable[[Window, int], Schedule | None], lanes: int) -> None:
        """Improve the next window of each lane; lanes are equal parts of the graph, solved in parallel."""
        n = self.problem.n_tasks
        lanes = max(min(lanes, n // (SIZE + ADVANCE)), 1)
        length = -(-n // lanes)
        at = self._round * ADVANCE % length
        self._round += 1
        firsts = list(range(at, n, length))
        windows = [window_of(self.state, first, min(first + SIZE, n)) for first in firsts]
        if lanes == 1:
            found = [solve(windows[0], self._round)]
        else:
            with ThreadPoolExecutor(lanes, thread_name_prefix="windows") as pool:
                found = list(pool.map(solve, windows, [self._round * lanes + k for k in range(len(windows))]))
        self._take(list(zip(firsts, windows, found, strict=True)))

    def _take(self, found: list[tuple[int, Window, Schedule | None]]) -> None:
        """Accept each result with which the whole schedule is not longer."""
        problem, span = self.problem, self.state.span
        device, sequence = self.state.device, self.state.sequence
        rank = positions(problem.order)
        best: Schedule | None = None
        for first, window, schedule in found:
            if schedule is None:
                continue
            tasks, count = window.tasks, len(window.tasks)
            end = (schedule.start + durations(window.problem, schedule.device))[:count]
            place = np.lexsort((rank[tasks], end, schedule.start[:count]))
            homes, line = device.copy(), sequence.copy()
            homes[tasks], line[first : first + count] = schedule.device[:count], tasks[place]
            changed = decoded(problem, line, homes)
            if makespan(problem, changed) <= span:
                best, span, device, sequence = changed, makespan(problem, changed), homes, line
        if best is not None:
            self.state = State(problem, best)
