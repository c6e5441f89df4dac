"""Execute one placement: check arguments, choose loops, fill work arrays; and evaluate many placements for searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placeopt.errors import UsageError, listing, suggestion
from placeopt.kernels import prepared
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, check_problem
from placeopt.model.schedule import Schedule, Transfers, check_schedule, edge_transfers
from placeopt.simulation import loops
from placeopt.simulation.loops import Instance, Work, fifo_makespan, make_instance, make_work

Discipline = Literal["fifo", "priority", "order"]

STEPS, EVENT_STEPS = 6, 12
"""Elementary steps of a simulation per task and edge, without and with events, measured in plain Python."""


class Run:
    """A placement with its work arrays, for repeated simulations."""

    def __init__(self, problem: Problem, device: Int) -> None:
        self.problem, self.device = problem, device
        self.instance, self.work = make_instance(problem), make_work(problem)
        self.graph, self.port = self.instance.graph, self.instance.port
        self._nodes: NDArray[np.intp] | None = None
        loops.fill_ticks.select(steps_of(problem, events=False))(self.instance, device, self.work)

    @property
    def zero_ticks(self) -> bool:
        """Whether any task, or transfer through a port, takes no time."""
        remote = self.device[self.problem.edge_source] != self.device[self.problem.edge_target]
        return not self.work.task_ticks.all() or (self.port and not self.work.edge_ticks[remote].all())

    def prepare(self, discipline: str, priority: ArrayLike | None, order: ArrayLike | None, runs: int) -> None:
        """Check the discipline's arguments and choose the loops for `runs` executions."""
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
        self.code, self.steps = loops.FIFO, steps_of(problem, events=self.port or discipline != "fifo") * runs
        if priority is not None:
            self.code = loops.PRIORITY
            numbers = checked_numbers("priority", priority, problem.n_tasks)
            # Sort backwards and reverse: the highest first, ties by lower index.
            by_priority = problem.n_tasks - 1 - np.argsort(numbers[::-1], kind="stable")[::-1]
            self.work.rank[by_priority] = np.arange(problem.n_tasks)
        elif order is not None:
            self.code = loops.ORDER
            numbers = checked_numbers("order", order, problem.n_tasks)
            self.set_sequence(np.lexsort((_inverse(problem.order), numbers)))

    def follow(self, schedule: Schedule, runs: int) -> None:
        """Let devices and ports serve tasks and transfers in the order of a schedule, for `runs` executions."""
        self._representative = self._transfers()
        self._nodes = self._sequence(self.retimed(schedule), self._representative)
        self.steps = steps_of(self.problem, events=False) * runs

    def set_sequence(self, tasks: NDArray[np.intp]) -> None:
        """Let every device run its tasks in the order of the list."""
        by_device = tasks[np.argsort(self.device[tasks], kind="stable")]
        counts = np.bincount(self.device, minlength=self.problem.n_devices)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        self.work.rank[by_device] = np.arange(len(tasks)) - first

    def execute(self) -> int:
        """Makespan in ticks; the work arrays then hold the starts."""
        if self._nodes is not None:
            replay = loops.replay.select(self.steps)
            replay(self.graph, self._nodes, self._representative, self.device, self.work)
            return int((self.work.start + self.work.task_ticks).max(initial=0))
        if self.code == loops.FIFO and not self.port:
            return loops.run_fifo.select(self.steps)(self.graph, self.device, self.work)
        span = loops.run_events.select(self.steps)(self.graph, self.device, self.code, self.port, self.work)
        if self.code == loops.ORDER and self.work.start.min(initial=0) < 0:
            raise self._deadlock()
        return span

    def schedule(self) -> Schedule:
        """The schedule in the work arrays."""
        if not self.port:
            return Schedule(self.device, self.work.start)
        edges = np.flatnonzero(self.work.moves >= 0)
        return Schedule(self.device, self.work.start, Transfers(edges, self.work.moves[edges]))

    def _deadlock(self) -> UsageError:
        """An error that names two tasks in a circular wait.

        The next task of a stuck device lacks the output of a producer. That producer is stuck too: it is the next task
        of its device or comes later there. Following these waits leads to a cycle. The graph has no cycle, so some
        producer comes after a task that waits for it.
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

    def retimed(self, schedule: Schedule) -> Schedule:
        """The earliest schedule with the same sequences; see `placeopt.simulation.retime`."""
        if schedule.transfers is not None:
            edges, last = schedule.transfers.edge, self.problem.n_edges - 1
            if edges.shape != schedule.transfers.start.shape:
                raise UsageError(f"transfers: {edges.size} edges and {schedule.transfers.start.size} starts")
            if len(outside := edges[(edges < 0) | (edges > last)]):
                raise UsageError(f"transfers: edge {outside[0]} does not exist; expected an index from 0 to {last}")
        given = not self.port or schedule.transfers is not None
        current = self._replayed(schedule) if given else self._booked_in_sequence(schedule)
        while self.zero_ticks:
            earlier = self._replayed(current)
            if np.array_equal(earlier.start, current.start):
                return earlier
            current = earlier
        return current

    def _transfers(self) -> Int:
        """(e,) the transfer of each edge that uses a port, -1 for others."""
        return edge_transfers(self.problem, self.device) if self.port else np.full(self.problem.n_edges, -1)

    def _booked_in_sequence(self, schedule: Schedule) -> Schedule:
        """Run the sequences of a schedule without transfers; ports serve transfers in the order of booking."""
        self.set_sequence(self._sequence(schedule, np.full(self.problem.n_edges, -1)))
        self.code, self.steps = loops.ORDER, steps_of(self.problem, events=True)
        self.execute()
        return self.schedule()

    def _replayed(self, schedule: Schedule) -> Schedule:
        """The earliest schedule with the sequences of `schedule` on devices and ports."""
        representative = self._transfers()
        run = loops.replay.select(steps_of(self.problem, events=False))
        run(self.graph, self._sequence(schedule, representative), representative, self.device, self.work)
        return self.schedule()

    def _sequence(self, schedule: Schedule, representative: Int) -> NDArray[np.intp]:
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
        # The sort is stable: a task comes before its own transfers at the same tick.
        ties = np.concatenate((position, position[problem.edge_source[moves]]))
        by_key = np.lexsort((ties, np.concatenate((end, move_end[moves])), np.concatenate((start, move[moves]))))
        return np.concatenate((np.arange(problem.n_tasks), problem.n_tasks + moves))[by_key]


def prepared_run(
    caller: str,
    problem: Problem,
    placed: Schedule | Sequence[int] | Int,
    discipline: str | None,
    priority: ArrayLike | None,
    order: ArrayLike | None,
    runs: int,
) -> Run:
    """A run of a placement, or of a schedule in its own order; see `placeopt.simulation.simulate`."""
    if not isinstance(placed, Schedule) and not hasattr(placed, "schedule"):
        run = Run(problem, checked_placement(problem, placed))
        run.prepare(discipline or "fifo", priority, order, runs)
        return run
    plan: Any = placed
    check_schedule(caller, problem, plan)
    if problem.pipeline is not None:
        raise UsageError(
            f"{caller}: runs of a pipeline follow each other; run_pipeline executes them, and {caller} with "
            "schedule.device one run alone"
        )
    run = Run(problem, checked_placement(problem, plan.device))
    if discipline in (None, "order") and order is None and priority is None:
        run.follow(plan, runs)
    elif discipline == "priority" and order is None and priority is None:
        run.prepare(discipline, -plan.start, None, runs)
    else:
        run.prepare(discipline or "order", priority, order, runs)
    return run


def steps_of(problem: Problem, events: bool) -> int:
    """Elementary steps of one simulation, for the choice between plain and compiled code."""
    return (EVENT_STEPS if events else STEPS) * (problem.n_tasks + problem.n_edges)


def _inverse(permutation: Int) -> Int:
    """The position of each index in a permutation."""
    position = np.empty_like(permutation)
    position[permutation] = np.arange(len(permutation))
    return position


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
    """(n,) the numbers as an array; raises UsageError if they are invalid."""
    numbers = np.asarray(values)
    if numbers.shape != (length,):
        raise UsageError(f"{name}: has shape {numbers.shape}; expected a number for each of {length} tasks")
    if numbers.dtype.kind not in "iuf" or (numbers.dtype.kind == "f" and np.isnan(numbers).any()):
        raise UsageError(f"{name}: holds {numbers.dtype}, not numbers; expected integers or floats")
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class Evaluator:
    """FIFO makespans of many placements, computed one after another with shared work arrays (so in one thread only).

    Inside a compiled loop call `fifo_makespan(instance, device, work)` directly.
    """

    problem: Problem
    instance: Instance
    work: Work
    function: Callable[[Any, Int, Any], int]
    given: tuple[Any, Any]  # instance and work as the function accepts them

    def __call__(self, device: Sequence[int] | Int) -> int:
        """Makespan in ticks; `device` (n,) must hold feasible devices, which is not checked.

        Raises
        ------
        UsageError
            If the length is wrong or a device does not exist.
        """
        given = np.asarray(device)
        inside = int(given.min(initial=0)) >= 0 and int(given.max(initial=-1)) < self.problem.n_devices
        if given.shape != (self.problem.n_tasks,) or not inside:
            checked_placement(self.problem, given)  # raises the error
        instance, work = self.given
        return int(self.function(instance, np.array(given, dtype=np.int64), work))


def make_evaluator(problem: Problem, evaluations: int = 1) -> Evaluator:
    """An Evaluator for a search of about `evaluations` placements: many justify compiled code."""
    instance = make_instance(problem)
    run = fifo_makespan.select(steps_of(problem, instance.port) * evaluations, chunked=True)
    work = make_work(problem)
    return Evaluator(problem, instance, work, run, (prepared(run, instance), prepared(run, work)))
