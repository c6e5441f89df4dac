"""What happens when a placement is executed: simulation, re-timing, and runs under noise.

Everything follows the problem's own execution model: one task at a time on a device, no
preemption, computation overlaps communication. With `contention: none` a transfer starts when its
producer ends. With `contention: port` a device sends one transfer at a time and receives one at a
time: transfers are booked when their producer ends, in the order of their edges, each at the
first tick at which both ports have served everything booked before. A transfer of zero ticks takes
its turn like any other, so that it never stands inside another's time on a port.

Three disciplines decide which task a free device starts:

    fifo       the one that became ready first (its last input arrived); ties by index
    priority   the ready one of highest priority; ties by index
    order      the next one of a given sequence, even if it must be waited for

At one tick, tasks end first, then tasks become ready, each by index, and a device takes its next;
under `priority` devices choose once all that is known. A task of zero ticks ends at its start.
FIFO is the simulator of GiPH (Hu et al. 2023, MLSys, doi:10.48550/arXiv.2305.14562, appendix B.5);
ticks are integers here, the makespan counts from tick 0, and ports are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placeopt import _simulation_kernels as loops
from placeopt._simulation_kernels import Case, Work, fifo_makespan, make_case, make_work
from placeopt.errors import UsageError, listing, suggestion
from placeopt.ir import Int, Problem
from placeopt.schedule import Schedule, Transfers, edge_transfers

__all__ = [
    "Case",
    "Discipline",
    "Evaluator",
    "NoisyRuns",
    "Work",
    "fifo_makespan",
    "make_case",
    "make_evaluator",
    "make_work",
    "retime",
    "simulate",
    "simulate_noisy",
]

Discipline = Literal["fifo", "priority", "order"]

# Elementary steps of one simulation per task and edge, measured on plain Python: without events, with them.
STEPS, EVENT_STEPS = 6, 12


def simulate(
    problem: Problem,
    device: Sequence[int] | Int,
    *,
    discipline: Discipline = "fifo",
    priority: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> Schedule:
    """The schedule that a placement gives under a discipline, with its transfers where ports contend.

    Parameters
    ----------
    device
        (n,) device of each task.
    priority
        (n,) numbers for discipline "priority", the highest goes first.
    order
        (n,) numbers for discipline "order", such as the starts of a schedule: every device runs its
        tasks from the smallest to the largest. Ties fall as in `Problem.order`, a producer before
        its consumers.

    Raises
    ------
    UsageError
        If an array has the wrong length, a device does not exist or may not run its task, the
        discipline's numbers are missing or not numbers, or the order contradicts the precedence.
        Memory, colocation and separation are not looked at.
    """
    run = _Run(problem, _placement(problem, device))
    run.prepare(discipline, priority, order, 1)
    run.execute()
    return run.schedule()


def retime(problem: Problem, schedule: Schedule) -> Schedule:
    """The earliest schedule with the same placement and sequences: never later than a valid one.

    Every device runs its tasks in the order of their starts. With ports, each serves its transfers in
    the order of the starts in `schedule.transfers`; without those, in the order in which they are
    booked. Ties: what takes zero ticks first, then as the tasks (a transfer as its producer) stand in
    `Problem.order`, then by edge.

    The starts only serve as an order and need not be valid: a task or transfer that is given an
    earlier start than one it depends on comes right after that one. Tasks and transfers of zero
    ticks that end up at one tick are put into the order of the ties, which may free others: that is
    repeated until nothing moves, so that re-timing twice changes nothing. O((n + e) log(n + e)) a
    round.

    Raises
    ------
    UsageError
        If an array has the wrong length, a device does not exist or may not run its task, or a
        transfer names an edge that does not exist.
    """
    run = _Run(problem, _placement(problem, schedule.device))
    _numbers("start", schedule.start, problem.n_tasks)
    if schedule.transfers is not None:
        edges = schedule.transfers.edge
        if len(outside := edges[(edges < 0) | (edges >= problem.n_edges)]):
            raise UsageError(f"transfers: no edge {outside[0]}; expected an index from 0 to {problem.n_edges - 1}")
    given = not run.port or schedule.transfers is not None
    current = run.replayed(schedule) if given else run.booked_in_sequence(schedule)
    while run.zero_ticks:
        earlier = run.replayed(current)
        if np.array_equal(earlier.start, current.start):
            return earlier
        current = earlier
    return current


@dataclass(frozen=True, slots=True, eq=False)
class NoisyRuns:
    """What many runs of one placement came to.

    Attributes
    ----------
    makespans
        (runs,) int64 ticks, in the order in which they were drawn.
    """

    makespans: Int

    def __post_init__(self) -> None:
        self.makespans.flags.writeable = False

    @property
    def mean(self) -> float:
        """Mean makespan in ticks."""
        return float(self.makespans.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the makespan in ticks (of the runs themselves: divided by their number)."""
        return float(self.makespans.std())

    def quantile(self, q: float) -> float:
        """Makespan in ticks that a share `q` of the runs does not exceed, interpolated between runs."""
        if not 0 <= q <= 1:
            raise UsageError(f"q: {q} is not a share; expected a number from 0 to 1")
        return float(np.quantile(self.makespans, q))


def simulate_noisy(
    problem: Problem,
    device: Sequence[int] | Int,
    *,
    noise: float,
    runs: int,
    seed: int,
    discipline: Discipline = "fifo",
    priority: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> NoisyRuns:
    """Makespans of `runs` executions whose durations and transfer times vary.

    A task or transfer of w ticks takes a time uniform in [w (1 - noise), w (1 + noise)], drawn
    independently and rounded to the nearest tick (GiPH, Hu et al. 2023, appendix B.5). The draws
    come from NumPy's default generator, run after run, tasks first, then transfers by edge, so
    that a seed means the same numbers on every machine. Other arguments as for `simulate`.

    Raises
    ------
    UsageError
        As `simulate` does, and if `noise` is not in [0, 1), `runs` is below 1 or `seed` below 0.
    """
    if not 0 <= noise < 1:
        raise UsageError(f"noise: {noise} is out of range; expected a share from 0 to less than 1")
    if runs < 1:
        raise UsageError(f"runs: {runs} is too few; expected at least 1")
    if seed < 0:
        raise UsageError(f"seed: {seed} is negative; expected an integer from 0 up")
    run = _Run(problem, _placement(problem, device))
    run.prepare(discipline, priority, order, runs)
    representative = edge_transfers(problem, run.device)
    remote = np.flatnonzero(representative >= 0)
    drawn, draw = np.unique(representative[remote], return_inverse=True)
    n = problem.n_tasks
    task_mean, edge_mean = run.work.task_ticks.copy(), run.work.edge_ticks[remote]
    generator = np.random.default_rng(seed)
    makespans = np.empty(runs, dtype=np.int64)
    for index in range(runs):
        share = noise * (2 * generator.random(n + len(drawn)) - 1)
        # Round the difference, not the sum: floats do not hold every count of ticks, integers do.
        run.work.task_ticks[:] = task_mean + np.rint(task_mean * share[:n]).astype(np.int64)
        run.work.edge_ticks[remote] = edge_mean + np.rint(edge_mean * share[n:][draw]).astype(np.int64)
        makespans[index] = run.execute()
    return NoisyRuns(makespans)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluator:
    """FIFO makespans of many placements, one after another on the same work arrays (so in one thread only).

    Inside a compiled loop call `fifo_makespan(case, device, work)` itself.
    """

    case: Case
    work: Work
    function: Callable[[Case, Int, Work], int]

    def __call__(self, device: Sequence[int] | Int) -> int:
        """Makespan in ticks; `device` (n,) is not checked and must hold feasible devices."""
        return int(self.function(self.case, np.array(device, dtype=np.int64), self.work))


def make_evaluator(problem: Problem, evaluations: int = 1) -> Evaluator:
    """An Evaluator for a search; many `evaluations` to come are worth compiled code."""
    case = make_case(problem)
    return Evaluator(case, make_work(problem), fifo_makespan.select(_steps(problem, case.port) * evaluations))


class _Run:
    """A placement with its work arrays, ready for one simulation after another."""

    def __init__(self, problem: Problem, device: Int) -> None:
        self.problem, self.device = problem, device
        self.case, self.work = make_case(problem), make_work(problem)
        self.graph, self.port = self.case.graph, self.case.port
        loops.fill_ticks.select(_steps(problem, events=False))(self.case, device, self.work)

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
        self.code, self.steps = loops.FIFO, _steps(problem, events=self.port or discipline != "fifo") * runs
        if priority is not None:
            self.code = loops.PRIORITY
            numbers = _numbers("priority", priority, problem.n_tasks)
            # Sorted backwards and reversed: the highest first, the lower index among equals.
            by_priority = problem.n_tasks - 1 - np.argsort(numbers[::-1], kind="stable")[::-1]
            self.work.rank[by_priority] = np.arange(problem.n_tasks)
        elif order is not None:
            self.code = loops.ORDER
            numbers = _numbers("order", order, problem.n_tasks)
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
        self.code, self.steps = loops.ORDER, _steps(self.problem, events=True)
        self.execute()
        return self.schedule()

    def replayed(self, schedule: Schedule) -> Schedule:
        """The earliest schedule with the sequences of `schedule` on devices and ports."""
        nowhere = np.full(self.problem.n_edges, -1, dtype=np.int64)
        representative = edge_transfers(self.problem, self.device) if self.port else nowhere
        run = loops.replay.select(_steps(self.problem, events=False))
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
        repair = loops.repair_keys.select(_steps(problem, events=False))
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


def _steps(problem: Problem, events: bool) -> int:
    """Elementary steps of one simulation, for the choice between plain and compiled code."""
    return (EVENT_STEPS if events else STEPS) * (problem.n_tasks + problem.n_edges)


def _inverse(permutation: Int) -> Int:
    """The position of each index in a permutation."""
    position = np.empty_like(permutation)
    position[permutation] = np.arange(len(permutation))
    return position


def _placement(problem: Problem, device: Sequence[int] | Int) -> Int:
    """(n,) the placement as an array of its own, or a UsageError that says what is wrong with it."""
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


def _numbers(name: str, values: ArrayLike, length: int) -> NDArray[Any]:
    """(n,) the numbers as an array, or a UsageError that says what is wrong with them."""
    numbers = np.asarray(values)
    if numbers.shape != (length,):
        raise UsageError(f"{name}: has shape {numbers.shape}; expected a number for each of {length} tasks")
    if numbers.dtype.kind not in "iuf" or (numbers.dtype.kind == "f" and np.isnan(numbers).any()):
        raise UsageError(f"{name}: holds something else than numbers ({numbers.dtype}); expected integers or floats")
    return numbers
