"""The critical path of a schedule: the chain of tasks, transfers and waits that decides its makespan.

The path is traced backwards from the task that ends last. Each step is preceded by what ended when it began: its data
(a producer on the same device, or a transfer), its device (the task before), a port (the transfer before on a port of a
device or a channel of a shared link that it uses, see `placeopt.model.ports`), a resource (a task that used it), the
release time, or the swapping of the device (`placeopt.model.tiers`). If nothing ended then, the step could have begun
earlier, and a wait leads to the constraint that ended last. The steps cover [0, makespan) without gaps or overlaps; to
shorten the schedule, at least one of them must change.

For longest paths through a task graph, regardless of a schedule, see `placeopt.model.levels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placeopt.model.arrays import Int, inverse
from placeopt.model.memory import swap_times
from placeopt.model.ports import port_uses
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations, edge_transfers, transfer_times

StepKind = Literal["task", "transfer", "release", "swap", "wait"]
Cause = Literal["start", "data", "device", "port", "release", "swap", "unavailable", "setup", "resource", "nothing"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the critical path, in [start, end) ticks."""

    kind: StepKind
    """task: the task runs. transfer: its output moves. release: it waits for its release time. swap: its device swaps.
    wait: it could start, or its device is set up."""
    task: int
    """The task that runs or waits, or whose output moves."""
    edge: int | None
    """The edge of a transfer; else None."""
    start: int
    end: int
    cause: Cause
    """Why the step did not begin earlier. start: it begins at tick 0. data: the step before provides its input. device,
    port, resource: the step before occupies its device or port, or uses a resource of it. release: the task is released
    then. swap: its device has swapped then. unavailable: its device is available from then. setup: its device is set up
    for it then. nothing: it could have begun earlier."""

    @property
    def ticks(self) -> int:
        """Length of the step."""
        return self.end - self.start


def critical_path(problem: Problem, schedule: Schedule) -> tuple[Step, ...]:
    """The steps from tick 0 to the makespan, in order of time; none without tasks.

    Ties between causes: data before device before port, then the lower edge. The path ends in the lowest task of those
    that end last. Constraints that an infeasible schedule violates are ignored. O(e + n log n).
    """
    if problem.n_tasks == 0:
        return ()
    walk = _Walk(problem, schedule)
    steps: list[Step] = []
    event = int(walk.end[: problem.n_tasks].argmax())
    while True:
        begin = int(walk.start[event])
        before, cause, until = walk.before(event)
        free = 0 if before is None else int(walk.end[before])
        opened, why = walk.opened(event)
        if opened > until:
            before, cause, free = None, why, opened
        if begin > free:
            steps.append(walk.step(event, "setup" if begin == until else walk.waited(event)))
            steps.append(Step("wait", walk.task(event), None, free, begin, cause))
        else:
            steps.append(walk.step(event, cause))
        if before is None:
            if cause in ("release", "swap"):
                steps.append(Step(cause, walk.task(event), None, 0, free, "start"))
            return tuple(reversed(steps))
        event = before


def critical_ticks(path: Sequence[Step]) -> dict[StepKind, int]:
    """Ticks of each kind of step; their sum is the makespan."""
    ticks: dict[StepKind, int] = {"task": 0, "transfer": 0, "release": 0, "swap": 0, "wait": 0}
    for step in path:
        ticks[step.kind] += step.ticks
    return ticks


class _Walk:
    """A schedule's tasks (0..n-1) and transfers (n + edge) as events, and the constraints of each.

    Each predecessor comes before its event in the order (start, end, end of the producer of a transfer or start of a
    task, topological position of the task or producer, tasks before transfers), so that the walk also ends if events
    have no length.
    """

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._problem = problem
        n = problem.n_tasks
        device = schedule.device
        self._device = device
        self._swapped = swap_times(problem, device)[device]
        self._carrier = edge_transfers(problem, device)
        edges, sent, arrived = transfer_times(problem, schedule)
        self.start: Int = np.concatenate((schedule.start, np.zeros(problem.n_edges, dtype=np.int64)))
        self.end: Int = np.concatenate((schedule.start + durations(problem, device), self.start[n:]))
        self.start[n + edges], self.end[n + edges] = sent, arrived
        position = inverse(problem.order)
        self._position = np.concatenate((position, position[problem.edge_source]))
        self._ready = np.concatenate((schedule.start, self.end[:n][problem.edge_source]))
        booked = edges[: 0 if schedule.transfers is None else len(edges)]
        sender, receiver = device[problem.edge_source[booked]], device[problem.edge_target[booked]]
        # The event before each task on its device, -1 for none; those before each transfer on its ports.
        self._earlier = np.full(n, -1, dtype=np.int64)
        alone = np.flatnonzero(~problem.parallel[device])
        self._earlier[alone] = self._predecessors(alone, device[alone])
        self._setup = np.zeros(n, dtype=np.int64)
        if problem.setups is not None:
            self._last, self._setup = problem.setups.before(device, schedule.start, durations(problem, device))
        self._through: dict[int, list[int]] = {}
        used, ports = port_uses(problem, sender, receiver)
        for event, other in zip(n + booked[used], self._predecessors(n + booked[used], ports), strict=True):
            if other >= 0:
                self._through.setdefault(int(event), []).append(int(other))

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

    def opened(self, event: int) -> tuple[int, Cause]:
        """The release time of the task or the end of its device's swapping, and which of them is later.

        0 for a transfer. Times that the schedule violates do not count.
        """
        if event >= self._problem.n_tasks:
            return 0, "release"
        start = self.start[event]
        released, swapped = (
            tick if tick <= start else 0 for tick in (int(self._problem.release[event]), int(self._swapped[event]))
        )
        return (swapped, "swap") if swapped > released else (released, "release")

    def waited(self, event: int) -> Cause:
        """Why the event did not begin when all that it waits for had ended."""
        windows = self._problem.unavailable
        if windows is None or event >= self._problem.n_tasks:
            return "nothing"
        ends = [end for _, end in windows.of(int(self._device[event]))]
        return "unavailable" if self.start[event] in ends else "nothing"

    def before(self, event: int) -> tuple[int | None, Cause, int]:
        """The constraint of this event that ended last, its kind, and the tick until which it delays the event."""
        found: list[tuple[int | None, Cause, int]]
        found = [(other, cause, int(self.end[other])) for other, cause in self._candidates(event)]
        if event < self._problem.n_tasks and (needed := int(self._setup[event])):
            other = int(self._last[event])
            found.append((None, "start", needed) if other < 0 else (other, "device", int(self.end[other]) + needed))
        kept = [each for each in found if each[2] <= self.start[event]]
        return max(kept, key=lambda each: each[2]) if kept else (None, "start", 0)

    def _candidates(self, event: int) -> list[tuple[int, Cause]]:
        """The events that this one has to wait for, data first."""
        problem, n = self._problem, self._problem.n_tasks
        found: list[tuple[int, Cause]] = []
        if event < n:
            edges = problem.in_edge[problem.in_start[event] : problem.in_start[event + 1]].tolist()
            for edge in edges:
                carrier = int(self._carrier[edge])
                found.append((int(problem.edge_source[edge]) if carrier < 0 else n + carrier, "data"))
        else:
            found.append((self.task(event), "data"))
        found += [(other, "resource") for other in self._released(event)]
        if event < n and self._earlier[event] >= 0:
            found.append((int(self._earlier[event]), "device"))
        return found + [(other, "port") for other in self._through.get(event, ())]

    def _released(self, event: int) -> list[int]:
        """The tasks that end when this one starts and use a renewable resource that it uses, too."""
        resources, n = self._problem.resources, self._problem.n_tasks
        if resources is None or event >= n or self.end[event] == self.start[event]:
            return []
        mine = {r for r, _ in resources.used(event, int(self._device[event])) if resources.renewable[r]}
        ended = np.flatnonzero((self.end[:n] == self.start[event]) & (self.start[:n] < self.end[:n])).tolist()
        used = [(i, resources.used(i, int(self._device[i]))) for i in ended] if mine else []
        return [i for i, uses in used if any(r in mine for r, _ in uses)]

    def _predecessors(self, events: Int, resource: Int) -> Int:
        """(k,) the event just before each one on its resource, -1 for the first."""
        keys = self._position, self._ready, self.end, self.start
        order = np.lexsort((events, *(key[events] for key in keys), resource))
        same = np.diff(resource[order]) == 0
        before = np.full(len(events), -1, dtype=np.int64)
        before[order[1:][same]] = events[order[:-1][same]]
        return before
