"""One placement being executed: arguments checked, loops chosen, work arrays filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placeopt.errors import UsageError, listing, suggestion
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, check_problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers
from placeopt.simulation import loops
from placeopt.simulation.loops import make_case, make_work

Discipline = Literal["fifo", "priority", "order"]

# Elementary steps of one simulation per task and edge, measured on plain Python: without events, with them.
STEPS, EVENT_STEPS = 6, 12


class Run:
    """A placement with its work arrays, ready for one simulation after another."""

    def __init__(self, problem: Problem, device: Int) -> None:
        self.problem, self.device = problem, device
        self.case, self.work = make_case(problem), make_work(problem)
        self.graph, self.port = self.case.graph, self.case.port
        loops.fill_ticks.select(steps_of(problem, events=False))(self.case, device, self.work)

    @property
    def zero_ticks(self) -> bool:
        """Whether any task, or transfer through a port, takes no time at all."""
        remote = self.device[self.problem.edge_source] != self.device[self.problem.edge_target]
        return not self.work.task_ticks.all() or (self.port and not self.work.edge_ticks[remote].all())

    def prepare(self, discipline: str, priority: ArrayLike | None, order: ArrayLike | None, runs: int) -> None:
        """Check the discipline's arguments and choose the loops for `runs` executions."""
        problem, known = self.problem, get_args(Discipline)
        if discipline not in known:
            raise UsageError(f"discipline: no {discipline!r}; expected {listing(known)}{suggestion(discipline, known)}")
        for name, values in (("priority", priority), ("order", order)):
            if values is None and name == discipline:
                raise UsageError(f"{name}: missing; discipline {name!r} needs a number per task")
            if values is not None and name != discipline:
                raise UsageError(f"{name}: discipline {discipline!r} does not use it; leave it out")
        self.code, self.steps = loops.FIFO, steps_of(problem, events=self.port or discipline != "fifo") * runs
        if priority is not None:
            self.code = loops.PRIORITY
            numbers = checked_numbers("priority", priority, problem.n_tasks)
            # Sorted backwards and reversed: the highest first, the lower index among equals.
            by_priority = problem.n_tasks - 1 - np.argsort(numbers[::-1], kind="stable")[::-1]
            self.work.rank[by_priority] = np.arange(problem.n_tasks)
        elif order is not None:
            self.code = loops.ORDER
            numbers = checked_numbers("order", order, problem.n_tasks)
            self.set_sequence(np.lexsort((_inverse(problem.order), numbers)))

    def set_sequence(self, tasks: NDArray[np.intp]) -> None:
        """Let every device run its tasks in the order of the list."""
        by_device = tasks[np.argsort(self.device[tasks], kind="stable")]
        counts = np.bincount(self.device, minlength=self.problem.n_devices)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        self.work.rank[by_device] = np.arange(len(tasks)) - first

    def execute(self) -> int:
        """Makespan in ticks; the work arrays then hold the starts."""
        if self.code == loops.FIFO and not self.port:
            return loops.run_fifo.select(self.steps)(self.graph, self.device, self.work)
        span = loops.run_events.select(self.steps)(self.graph, self.device, self.code, self.port, self.work)
        if self.code == loops.ORDER and self.work.start.min(initial=0) < 0:
            raise self._deadlock()
        return span

    def schedule(self) -> Schedule:
        """What the work arrays hold."""
        if not self.port:
            return Schedule(self.device, self.work.start)
        edges = np.flatnonzero(self.work.moves >= 0)
        return Schedule(self.device, self.work.start, Transfers(edges, self.work.moves[edges]))

    def _deadlock(self) -> UsageError:
        """Who waits for whom in a sequence that cannot be run.

        The next task of a stuck device misses a producer, which is stuck as well: behind the next
        task of its own device, or as that. Following this leads round a circle, and since the
        edges alone have none, some producer on it stands behind a task that waits for it.
        """
        problem, start, rank = self.problem, self.work.start, self.work.rank
        stuck = np.flatnonzero(start < 0)
        head = {int(self.device[i]): int(i) for i in stuck[np.argsort(-rank[stuck], kind="stable")]}
        misses: dict[int, int] = {}
        task = head[min(head)]
        while task not in misses:
            inputs = problem.edge_source[problem.in_edge[problem.in_start[task] : problem.in_start[task + 1]]]
            misses[task] = int(inputs[start[inputs] < 0][0])
            task = head[int(self.device[misses[task]])]
        while misses[task] in misses:
            task = misses[task]
        device = int(self.device[misses[task]])
        early, late = problem.task_names[head[device]], problem.task_names[misses[task]]
        return UsageError(
            f"order: {problem.device_names[device]} is to run {early} before {late}, "
            f"but {early} cannot start until {late} has ended; give {late} the smaller number"
        )

    def booked_in_sequence(self, schedule: Schedule) -> Schedule:
        """The sequences of a schedule without transfers, run with ports that serve first what is booked first."""
        no_transfers = np.full(self.problem.n_edges, -1, dtype=np.int64)
        self.set_sequence(self._nodes(schedule, no_transfers))
        self.code, self.steps = loops.ORDER, steps_of(self.problem, events=True)
        self.execute()
        return self.schedule()

    def replayed(self, schedule: Schedule) -> Schedule:
        """The earliest schedule with the sequences of `schedule` on devices and ports."""
        nowhere = np.full(self.problem.n_edges, -1, dtype=np.int64)
        representative = edge_transfers(self.problem, self.device) if self.port else nowhere
        run = loops.replay.select(steps_of(self.problem, events=False))
        run(self.graph, self._nodes(schedule, representative), representative, self.device, self.work)
        return self.schedule()

    def _nodes(self, schedule: Schedule, representative: Int) -> NDArray[np.intp]:
        """Tasks and transfers (n + edge) in the order of the schedule, predecessors first."""
        problem = self.problem
        start = schedule.start.copy()
        end = start + self.work.task_ticks
        move = end[problem.edge_source]
        if schedule.transfers is not None:
            given = representative[schedule.transfers.edge]
            move[given[given >= 0]] = schedule.transfers.start[given >= 0]
        move_end = move + self.work.edge_ticks
        repair = loops.repair_keys.select(steps_of(problem, events=False))
        repair(self.graph, problem.order, representative, start, end, move, move_end)
        moves = np.flatnonzero(representative == np.arange(problem.n_edges))
        position = _inverse(problem.order)
        # Of a task and its own transfers, all at one tick, the task comes first: the sort is stable.
        by_key = np.lexsort(
            (
                np.concatenate((position, position[problem.edge_source[moves]])),
                np.concatenate((end, move_end[moves])),
                np.concatenate((start, move[moves])),
            )
        )
        return np.concatenate((np.arange(problem.n_tasks), problem.n_tasks + moves))[by_key]


def steps_of(problem: Problem, events: bool) -> int:
    """Elementary steps of one simulation, for the choice between plain and compiled code."""
    return (EVENT_STEPS if events else STEPS) * (problem.n_tasks + problem.n_edges)


def _inverse(permutation: Int) -> Int:
    """The position of each index in a permutation."""
    position = np.empty_like(permutation)
    position[permutation] = np.arange(len(permutation))
    return position


def checked_placement(problem: Problem, device: Sequence[int] | Int) -> Int:
    """(n,) the placement as an array of its own, or a UsageError that says what is wrong with it."""
    check_problem("simulate", problem)
    if isinstance(device, Mapping | Schedule):
        kind = type(device).__name__
        raise UsageError(f"device is a {kind}; expected the index of a device for each task, such as schedule.device")
    given = np.asarray(device)
    if given.shape != (problem.n_tasks,):
        raise UsageError(f"device: has shape {given.shape}; expected one device for each of {problem.n_tasks} tasks")
    if given.size and given.dtype.kind not in "iu":
        raise UsageError(f"device: holds {given.dtype}; expected the indices of devices, integers")
    outside = np.flatnonzero((given < 0) | (given >= problem.n_devices))
    if len(outside):
        i = int(outside[0])
        raise UsageError(
            f"device: task {problem.task_names[i]} is on device {given[i]}; "
            f"expected an index from 0 to {problem.n_devices - 1}"
        )
    placement: Int = np.array(given, dtype=np.int64)
    forbidden = np.flatnonzero(~problem.feasible[np.arange(problem.n_tasks), placement])
    if len(forbidden):
        i = int(forbidden[0])
        allowed = [problem.device_names[d] for d in np.flatnonzero(problem.feasible[i])]
        raise UsageError(
            f"device: task {problem.task_names[i]} may not run on {problem.device_names[placement[i]]}; "
            f"expected one of {listing(allowed)}"
        )
    return placement


def checked_numbers(name: str, values: ArrayLike, length: int) -> NDArray[Any]:
    """(n,) the numbers as an array, or a UsageError that says what is wrong with them."""
    numbers = np.asarray(values)
    if numbers.shape != (length,):
        raise UsageError(f"{name}: has shape {numbers.shape}; expected a number for each of {length} tasks")
    if numbers.dtype.kind not in "iuf" or (numbers.dtype.kind == "f" and np.isnan(numbers).any()):
        raise UsageError(f"{name}: holds something else than numbers ({numbers.dtype}); expected integers or floats")
    return numbers
