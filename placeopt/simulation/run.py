"""Execute one placement: check arguments and run the engine's loops; and evaluate many placements for searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placeopt import engine
from placeopt.errors import UsageError, listing, suggestion
from placeopt.model.arrays import Int, inverse
from placeopt.model.native import native
from placeopt.model.problem import Problem, check_problem
from placeopt.model.schedule import Schedule, Transfers, check_devices, check_schedule, check_types, edge_transfers

Discipline = Literal["fifo", "priority", "order"]

FIFO, PRIORITY, ORDER = range(3)
"""Disciplines of `engine.Simulation.run`."""


def make_simulation(problem: Problem) -> engine.Simulation:
    """The engine's executions of placements of a problem."""
    return engine.Simulation(native(problem), problem.memory)


class Run:
    """A placement, for repeated simulations."""

    def __init__(self, problem: Problem, device: Int) -> None:
        self.problem, self.device, self.port = problem, device, problem.contends
        self.simulation = make_simulation(problem)
        self.simulation.place(device)
        self._nodes: NDArray[np.intp] | None = None

    @property
    def unsettled(self) -> bool:
        """Whether any task, or transfer through a port, takes no time, or tasks share resources.

        Replaying a schedule may then change the order of starts, and allow earlier ones.
        """
        if self.problem.resources is not None:
            return True
        remote = self.device[self.problem.edge_source] != self.device[self.problem.edge_target]
        ticks = self.simulation
        return not ticks.task_ticks.all() or (self.port and not ticks.edge_ticks[remote].all())

    def prepare(self, discipline: str, priority: ArrayLike | None, order: ArrayLike | None) -> None:
        """Check the discipline's arguments and set the ranks of the tasks."""
        problem, known = self.problem, get_args(Discipline)
        if discipline not in known:
            raise UsageError(
                f"discipline: unknown {discipline!r}; expected {listing(known)}{suggestion(discipline, known)}"
            )
        for name, values in (("priority", priority), ("order", order)):
            if values is None and name == discipline:
                raise UsageError(f"{name}: missing; discipline {name!r} needs a number per task")
            if values is not None and name != discipline:
                raise UsageError(f"{name}: discipline {discipline!r} does not use it; leave it out")
        self.code = FIFO
        if priority is not None:
            self.code = PRIORITY
            numbers = checked_numbers("priority", priority, problem.n_tasks)
            # Sort backwards and reverse: the highest first, ties by lower index.
            by_priority = problem.n_tasks - 1 - np.argsort(numbers[::-1], kind="stable")[::-1]
            self.simulation.set_rank(inverse(by_priority))
        elif order is not None:
            self.code = ORDER
            numbers = checked_numbers("order", order, problem.n_tasks)
            self.set_sequence(np.lexsort((inverse(problem.order), numbers)))

    def follow(self, schedule: Schedule) -> None:
        """Let devices and ports serve tasks and transfers in the order of a schedule."""
        self._representative = self._transfers()
        self._nodes = self._sequence(self.retimed(schedule), self._representative)

    def set_sequence(self, tasks: NDArray[np.intp]) -> None:
        """Let every device run its tasks in the order of the list."""
        by_device = tasks[np.argsort(self.device[tasks], kind="stable")]
        counts = np.bincount(self.device, minlength=self.problem.n_devices)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        rank = np.empty(len(tasks), dtype=np.int64)
        rank[by_device] = np.arange(len(tasks)) - first
        self.simulation.set_rank(rank)

    def execute(self) -> int:
        """Makespan in ticks; `simulation` then holds the starts."""
        if self._nodes is not None:
            return self.simulation.replay(self._nodes, self._representative, engine.current_stop())
        span = self.simulation.run(self.code, engine.current_stop())
        if self.code == ORDER and self.simulation.start.min(initial=0) < 0:
            raise self._deadlock()
        return span

    def schedule(self) -> Schedule:
        """The schedule of the last execution."""
        start = self.simulation.start.copy()
        if not self.port:
            return Schedule(self.device, start)
        moves = self.simulation.moves
        edges = np.flatnonzero(moves >= 0)
        return Schedule(self.device, start, Transfers(edges, moves[edges]))

    def _deadlock(self) -> UsageError:
        """An error that names two tasks in a circular wait.

        The next task of a stuck device lacks the output of a producer. That producer is stuck too: it is the next task
        of its device or comes later there. Following these waits leads to a cycle. The graph has no cycle, so some
        producer comes after a task that waits for it.
        """
        problem, start, rank = self.problem, self.simulation.start, self.simulation.rank
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

    def retimed(self, schedule: Schedule) -> Schedule:
        """The earliest schedule with the same sequences; see `placeopt.simulation.retime`."""
        given = not self.port or schedule.transfers is not None
        current = self._replayed(schedule) if given else self._booked_in_sequence(schedule)
        while self.unsettled:
            earlier = self._replayed(current)
            if np.array_equal(_starts(earlier), _starts(current)):
                return earlier
            current = earlier
        return current

    def _transfers(self) -> Int:
        """(e,) the transfer of each edge that uses a port, -1 for others."""
        return edge_transfers(self.problem, self.device) if self.port else np.full(self.problem.n_edges, -1)

    def _booked_in_sequence(self, schedule: Schedule) -> Schedule:
        """Run the sequences of a schedule without transfers; ports serve transfers in the order of booking."""
        self.set_sequence(self._sequence(schedule, np.full(self.problem.n_edges, -1)))
        self.code = ORDER
        self.execute()
        return self.schedule()

    def _replayed(self, schedule: Schedule) -> Schedule:
        """The earliest schedule with the sequences of `schedule` on devices and ports."""
        representative = self._transfers()
        self.simulation.replay(self._sequence(schedule, representative), representative, engine.current_stop())
        return self.schedule()

    def _sequence(self, schedule: Schedule, representative: Int) -> NDArray[np.intp]:
        """Tasks and transfers (n + edge) in the order of the schedule, predecessors first."""
        problem = self.problem
        start, end = schedule.start, schedule.start + self.simulation.task_ticks
        move = end[problem.edge_source]
        if schedule.transfers is not None:
            given = representative[schedule.transfers.edge]
            move[given[given >= 0]] = schedule.transfers.start[given >= 0]
        keys = start, end, move, move + self.simulation.edge_ticks
        start, end, move, move_end = engine.raise_keys(native(problem), representative, *keys)
        moves = np.flatnonzero(representative == np.arange(problem.n_edges))
        position = inverse(problem.order)
        # The sort is stable: a task comes before its own transfers at the same tick.
        ties = np.concatenate((position, position[problem.edge_source[moves]]))
        by_key = np.lexsort((ties, np.concatenate((end, move_end[moves])), np.concatenate((start, move[moves]))))
        return np.concatenate((np.arange(problem.n_tasks), problem.n_tasks + moves))[by_key]


def _starts(schedule: Schedule) -> Int:
    """The starts of tasks and transfers."""
    return schedule.start if schedule.transfers is None else np.append(schedule.start, schedule.transfers.start)


def prepared_run(
    caller: str,
    problem: Problem,
    placed: Schedule | Sequence[int] | Int,
    discipline: str | None,
    priority: ArrayLike | None,
    order: ArrayLike | None,
) -> Run:
    """A run of a placement, or of a schedule in its own order; see `placeopt.simulation.simulate`."""
    if not isinstance(placed, Schedule) and not hasattr(placed, "schedule"):
        run = Run(problem, checked_placement(problem, placed))
        run.prepare(discipline or "fifo", priority, order)
        return run
    check_types(caller, problem, placed)
    assert isinstance(placed, Schedule)
    check_schedule(caller, problem, placed)
    if problem.pipeline is not None:
        raise UsageError(
            f"{caller}: runs of a pipeline follow each other; run_pipeline executes them, and {caller} with "
            "schedule.device one run alone"
        )
    run = Run(problem, checked_placement(problem, placed.device))
    if discipline in (None, "order") and order is None and priority is None:
        run.follow(placed)
    elif discipline == "priority" and order is None and priority is None:
        run.prepare(discipline, -placed.start, None)
    else:
        run.prepare(discipline or "order", priority, order)
    return run


def checked_placement(problem: Problem, device: Sequence[int] | Int) -> Int:
    """(n,) the placement as a new array; raises UsageError if it is invalid."""
    check_problem("simulate", problem)
    if isinstance(device, Mapping | Schedule):
        kind = type(device).__name__
        raise UsageError(f"device is a {kind}; expected the index of a device for each task, such as schedule.device")
    given = np.asarray(device)
    if given.shape != (problem.n_tasks,):
        raise UsageError(f"device: has shape {given.shape}; expected one device for each of {problem.n_tasks} tasks")
    if given.size and given.dtype.kind not in "iu":
        raise UsageError(f"device: holds {given.dtype}; expected the indices of devices, integers")
    check_devices(problem, given)
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
    """(n,) the numbers as an array; raises UsageError if they are invalid."""
    numbers = np.asarray(values)
    if numbers.shape != (length,):
        raise UsageError(f"{name}: has shape {numbers.shape}; expected a number for each of {length} tasks")
    if numbers.dtype.kind not in "iuf" or (numbers.dtype.kind == "f" and np.isnan(numbers).any()):
        raise UsageError(f"{name}: holds {numbers.dtype}, not numbers; expected integers or floats")
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class Evaluator:
    """FIFO makespans of many placements, computed one after another with shared arrays (so in one thread only)."""

    problem: Problem
    simulation: engine.Simulation

    def __call__(self, device: Sequence[int] | Int) -> int:
        """Makespan in ticks; `device` (n,) must hold feasible devices, which is not checked.

        Raises
        ------
        UsageError
            If the length is wrong or a device does not exist.
        """
        try:
            return self.simulation.makespan(np.asarray(device, dtype=np.int64), engine.current_stop())
        except UsageError:
            checked_placement(self.problem, device)  # raises a better error
            raise


def make_evaluator(problem: Problem) -> Evaluator:
    """An Evaluator for a search."""
    return Evaluator(problem, make_simulation(problem))
