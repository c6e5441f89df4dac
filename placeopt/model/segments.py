"""Convex segments of a schedule: sets of tasks that one device runs without waiting for another device in between.

The tasks of a device are usually not one subgraph that can run at once: if a -> b -> c and only b runs on the second
device, then a subgraph {a, c} and a subgraph {b} wait for each other. Therefore each device has several segments.

The number of a task is the largest count of device changes on a path that ends at the task. A segment holds the tasks
with the same device and the same number.

The graph of segments is acyclic, and each segment is convex. Proof: Let there be an edge i -> j between two segments.
Numbers never decrease along an edge, because each path to i continues to j. If i and j have different devices, the
number of j is larger, because the edge itself is a change. If they have the same device, their numbers differ, because
otherwise they were in one segment. Hence numbers increase along each edge between segments, so these edges form no
cycle, and a path that leaves a segment never returns to it. In particular, segments with the same number on different
devices have no edge between them, and the order of numbers is a topological order of the segments.

With `keep_order`, paths also follow the order of each device, from each task to the next one. The proof holds for this
graph as well. Therefore a device can run its segments in the order of the schedule without a deadlock: segments that
wait for each other, for data or for the device, would be a cycle in this graph. Without `keep_order` there are fewer
segments, but a device runs its tasks by number, perhaps not in the order of the schedule.

A segment waits for all its inputs, and its outputs are available at its end. With `at_transfers`, segments are also cut
before each task that reads from another device and after each task that another device reads. Then a segment waits
only for the inputs of its first task and ends with the output of its last one, so that segments run at the times of
the schedule. The proof holds here, too: numbers remain, and the parts of one segment follow each other on their device.

The segments of a pipeline are its stages, unless one of these options is given. Their numbers have the property that
the proof uses: they increase along each edge between two stages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int, freeze, inverse
from placeopt.model.graph import path_lengths
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_schedule, durations


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The segments of a schedule in topological order: by number, then by device. All arrays are read-only int64."""

    member: Int
    """(n,) segment of each task."""
    device: Int
    """(s,) device of each segment."""
    number: Int
    """(s,) number of each segment."""
    order: Int
    """(n,) the tasks segment by segment; those of one segment in an order that respects the edges."""
    start: Int
    """(s + 1,) segment k holds the tasks order[start[k]:start[k + 1]]."""

    def __post_init__(self) -> None:
        freeze(self.member, self.device, self.number, self.order, self.start)

    def __len__(self) -> int:
        return len(self.device)

    def tasks(self, segment: int) -> Int:
        """Return the tasks of a segment, (k,), in an order that respects the edges."""
        return self.order[self.start[segment] : self.start[segment + 1]]

    def on_device(self, device: int) -> Int:
        """Return the segments of a device, (k,), in the order in which it runs them."""
        return np.flatnonzero(self.device == device)


def cut_segments(
    problem: Problem, schedule: Schedule, *, keep_order: bool = False, at_transfers: bool = False
) -> Segments:
    """Cut a schedule into convex segments; O((n + e) log(n + e)) for n tasks and e edges.

    The schedule may be infeasible: starts that contradict the edges are raised to those of the producers first.

    Parameters
    ----------
    keep_order
        Whether each device runs its tasks exactly in the order of the schedule, which takes more segments.
    at_transfers
        Whether segments are also cut at each transfer, which takes still more of them. Implies `keep_order`.

    Raises
    ------
    UsageError
        If an array of the schedule has the wrong length.
    """
    check_schedule("cut_segments", problem, schedule)
    n, device = problem.n_tasks, schedule.device
    sequence = _sequence(problem, schedule)
    source, target = problem.edge_source, problem.edge_target
    if keep_order or at_transfers:
        by_device = sequence[np.argsort(device[sequence], kind="stable")]
        before, after = by_device[:-1], by_device[1:]
        chained = device[before] == device[after]
        source = np.concatenate((source, before[chained]))
        target = np.concatenate((target, after[chained]))
        by_source = np.argsort(source, kind="stable")
        source, target = source[by_source], target[by_source]
    number = None if keep_order or at_transfers else _stage_numbers(problem, schedule)
    if number is None:
        number = _changes(sequence, source, target, device)
    order = sequence[np.lexsort((device[sequence], number[sequence]))]
    first = np.ones(n, dtype=np.bool_)
    first[1:] = (np.diff(number[order]) != 0) | (np.diff(device[order]) != 0)
    if at_transfers:
        crosses = device[problem.edge_source] != device[problem.edge_target]
        sends, receives = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        sends[problem.edge_source[crosses]] = True
        receives[problem.edge_target[crosses]] = True
        first[1:] |= sends[order[:-1]] | receives[order[1:]]
    start = np.flatnonzero(first)
    member = np.empty(n, dtype=np.int64)
    member[order] = np.cumsum(first) - 1
    return Segments(member, device[order[start]], number[order[start]], order, np.append(start, n))


def _stage_numbers(problem: Problem, schedule: Schedule) -> Int | None:
    """(n,) ranks of the stages of a pipeline; None without stages, or if they contradict the edges or devices."""
    if schedule.stages is None or schedule.stages.number.shape != schedule.device.shape:
        return None
    stages, first, number = np.unique(schedule.stages.number, return_index=True, return_inverse=True)
    one_device = (schedule.device == schedule.device[first][number]).all() if len(stages) else True
    forward = (number[problem.edge_source] <= number[problem.edge_target]).all()
    return number.astype(np.int64) if one_device and forward else None


def _sequence(problem: Problem, schedule: Schedule) -> Int:
    """(n,) the tasks by start, then by end, in a topological order even if starts contradict the edges.

    For a schedule whose starts respect the edges, this is `placeopt.model.schedule.sequence`.
    """
    nothing = np.zeros(problem.n_tasks, dtype=np.int64)
    earliest = [
        path_lengths(problem.order, problem.out_start, problem.edge_target, nothing, least)
        for least in (schedule.start, schedule.start + durations(problem, schedule.device))
    ]
    rank = inverse(problem.order)
    return np.lexsort((rank, earliest[1], earliest[0])).astype(np.int64)


def _changes(order: Int, source: Int, target: Int, device: Int) -> Int:
    """(n,) the largest count of device changes on a path that ends at each task; edges are sorted by source."""
    n = len(device)
    start = np.searchsorted(source, np.arange(n + 1)).astype(np.int64)
    change, none = (device[source] != device[target]).astype(np.int64), np.zeros(n, dtype=np.int64)
    return engine.raise_paths(order, start, target, none, change, none)
