"""The critical path of a schedule: the chain of tasks, transfers and waits that decides when it ends.

Walked backwards from the task that ends last: what ended when this step began is what it had to wait for. That is data
(a producer on the same device, or a transfer), the device (the task that ran on it just before), a port (the transfer
that occupied the sender's or the receiver's just before), or the task's release time. Where nothing did, the step could
have begun earlier: the chain then goes on with what ended last, after a wait. So the steps follow each other without
gaps or overlaps from tick 0 to the makespan, and their lengths add up to it; to shorten the schedule, at least one of
them must change.

This is the path of one schedule, over its placement and orders; the longest path through a task graph, which knows of
neither, is the business of `placeopt.model.levels` and of the bound `critical-path`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations, edge_transfers, transfer_times

StepKind = Literal["task", "transfer", "release", "wait"]
Cause = Literal["start", "data", "device", "port", "release", "nothing"]


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of the critical path, in [start, end) ticks.

    Attributes
    ----------
    kind
        task: it runs. transfer: its output moves. release: its release time is awaited. wait: nothing hinders it.
    task
        The task that runs, whose output moves, or which waits.
    edge
        Of a transfer, the edge in whose name it runs; else None.
    cause
        Why the step did not begin earlier. start: it begins at tick 0. data: the step before provides its input.
        device, port: the step before occupies its device, or a port that it needs. release: the task is released
        then. nothing: it could have.
    """

    kind: StepKind
    task: int
    edge: int | None
    start: int
    end: int
    cause: Cause

    @property
    def ticks(self) -> int:
        """Length of the step."""
        return self.end - self.start


def critical_path(problem: Problem, schedule: Schedule) -> tuple[Step, ...]:
    """The steps from tick 0 to the makespan, in order of time; none without tasks.

    Of several things that end at the same tick, data comes before device and port, and the lower edge before the
    higher; of several tasks that end last, the lowest is the end. Where a schedule breaks rules (a task that starts
    before its data is there), the broken ones count for nothing. O(e + n log n).
    """
    if problem.n_tasks == 0:
        return ()
    walk = _Walk(problem, schedule)
    steps: list[Step] = []
    event = int(walk.end[: problem.n_tasks].argmax())
    while True:
        begin = int(walk.start[event])
        before, cause = walk.before(event)
        free = 0 if before is None else int(walk.end[before])
        released = walk.released(event)
        if released > free:
            before, cause, free = None, "release", released
        if begin > free:
            steps.append(walk.step(event, "nothing"))
            steps.append(Step("wait", walk.task(event), None, free, begin, cause))
        else:
            steps.append(walk.step(event, cause))
        if before is None:
            if cause == "release":
                steps.append(Step("release", walk.task(event), None, 0, free, "start"))
            return tuple(reversed(steps))
        event = before


def critical_ticks(path: Sequence[Step]) -> dict[StepKind, int]:
    """Ticks of each kind of step; together they are the makespan."""
    ticks: dict[StepKind, int] = {"task": 0, "transfer": 0, "release": 0, "wait": 0}
    for step in path:
        ticks[step.kind] += step.ticks
    return ticks


class _Walk:
    """A schedule's tasks (0..n-1) and transfers (n + edge) as events, and what each had to wait for.

    What hinders an event comes before it in the order (start, end, topological position of the task or producer, tasks
    before transfers), so that a walk over events without length ends too.
    """

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._problem = problem
        n = problem.n_tasks
        device = schedule.device
        self._carrier = edge_transfers(problem, device)
        edges, sent, arrived = transfer_times(problem, schedule)
        self.start: Int = np.concatenate((schedule.start, np.zeros(problem.n_edges, dtype=np.int64)))
        self.end: Int = np.concatenate((schedule.start + durations(problem, device), self.start[n:]))
        self.start[n + edges], self.end[n + edges] = sent, arrived
        position = np.empty(n, dtype=np.int64)
        position[problem.order] = np.arange(n)
        self._position = np.concatenate((position, position[problem.edge_source]))
        booked = edges[: 0 if schedule.transfers is None else len(edges)]
        ports = n + booked
        self._earlier: tuple[tuple[Cause, dict[int, int]], ...] = (
            ("device", self._predecessors(np.arange(n), device)),
            ("port", self._predecessors(ports, device[problem.edge_source[booked]])),
            ("port", self._predecessors(ports, device[problem.edge_target[booked]])),
        )

    def task(self, event: int) -> int:
        """The task, or the producer of the transfer."""
        n = self._problem.n_tasks
        return event if event < n else int(self._problem.edge_source[event - n])

    def step(self, event: int, cause: Cause) -> Step:
        """The event as a step of the path."""
        n, start, end = self._problem.n_tasks, int(self.start[event]), int(self.end[event])
        if event < n:
            return Step("task", event, None, start, end, cause)
        return Step("transfer", self.task(event), event - n, start, end, cause)

    def released(self, event: int) -> int:
        """The tick at which the task is released, 0 for a transfer; nothing if the task does not keep to it."""
        release = int(self._problem.release[event]) if event < self._problem.n_tasks else 0
        return release if release <= self.start[event] else 0

    def before(self, event: int) -> tuple[int | None, Cause]:
        """The event that ended last of those that this one had to wait for, and what it held."""
        start = self.start[event]
        kept = [found for found in self._candidates(event) if self.end[found[0]] <= start]
        return max(kept, key=lambda found: int(self.end[found[0]])) if kept else (None, "start")

    def _candidates(self, event: int) -> list[tuple[int, Cause]]:
        """What the event had to wait for, data first."""
        problem, n = self._problem, self._problem.n_tasks
        found: list[tuple[int, Cause]] = []
        if event < n:
            edges = problem.in_edge[problem.in_start[event] : problem.in_start[event + 1]].tolist()
            for edge in edges:
                carrier = int(self._carrier[edge])
                found.append((int(problem.edge_source[edge]) if carrier < 0 else n + carrier, "data"))
        else:
            found.append((self.task(event), "data"))
        for cause, earlier in self._earlier:
            if event in earlier:
                found.append((earlier[event], cause))
        return found

    def _predecessors(self, events: Int, resource: Int) -> dict[int, int]:
        """The event just before each on its resource."""
        order = np.lexsort((events, self._position[events], self.end[events], self.start[events], resource))
        events, resource = events[order], resource[order]
        same = resource[1:] == resource[:-1]
        return dict(zip(events[1:][same].tolist(), events[:-1][same].tolist(), strict=True))
