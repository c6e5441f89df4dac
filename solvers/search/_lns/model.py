"""A stretch of a schedule as a problem of its own, solved anew by CP-SAT.

The tasks of the stretch [first, last) of the sequence are all in the model. Those of the neighbourhood may change
device and place; the others keep their device and their order among themselves. What is before and behind the stretch
is in the numbers: for task i on device d

    head[i, d]   the tick at which d and the data from before are there, and the release time
    tail[i, d]   ticks from its end to the makespan, by what follows behind the stretch on d or needs its data
    late[i, d]   the tick by which it must have ended for all deadlines behind the stretch

so that max(end_i + tail[i, d]), with what passes the stretch by, is the true makespan. O(stretch) work, and its edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.building import build_problem
from placeopt.model.memory import peak_memory
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers
from placeopt.simulation import retime
from placeopt.solver import ALL_METRICS

from ..._runs.exact_run import TooLargeError
from ...exact._cp_sat.limits import Limits
from .state import State, decoded

FAST: dict[str, object] = {
    "cp_model_presolve": False,
    "linearization_level": 0,
    "symmetry_level": 0,
    "use_precedences_in_disjunctive_constraint": False,
}
"""What small models of schedules want of CP-SAT, measured: 24 parts in 2.4 instead of 3.5 s, as good. A linear
relaxation made it four times slower. Presolve has its own limits (see `placeopt.bounding.engines.cp_sat`), and no worth
here."""


IDLE = 3
"""Idle devices, alike in every way, that a part is offered: each costs a literal per task."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Positions [first, last) of a sequence and, in that order, which of their tasks are free to move."""

    first: int
    last: int
    free: Bool


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The problem of a stretch, in ticks from `origin` on and without the `rest` at the end of every schedule.

    Attributes
    ----------
    tasks
        (k,) tasks of the whole problem, in sequence.
    problem
        Theirs, with what is left of the memory, without ports, and with the makespan as objective.
    free
        (k,) whether a task may change its place in the order and, if its whole group is free, its device.
    allowed
        (g, m) devices of the part's groups.
    head, tail, late
        (k, m) ticks, see above; `late` is UNLIMITED where no deadline asks for more.
    span
        The makespan that the part has now.
    """

    tasks: Int
    problem: Problem
    free: Bool
    allowed: Bool
    head: Int
    tail: Int
    late: Int
    origin: int
    rest: int
    span: int


def part_of(state: State, stretch: Stretch) -> Part:
    """The problem of a stretch of a schedule."""
    problem, m = state.problem, state.problem.n_devices
    tasks = state.sequence[stretch.first : stretch.last]
    position = state.position
    around = state.around(stretch.first, stretch.last)
    devices = np.arange(m)[None, :]
    head = np.maximum(around.free[None, :], problem.release[tasks][:, None])
    tail = np.repeat(around.tail[None, :], len(tasks), axis=0)
    late = np.minimum(around.latest[None, :], problem.deadline[tasks][:, None])

    owner, at = _rows(problem.in_start, tasks)
    edge = problem.in_edge[at]
    outside = position[problem.edge_source[edge]] < stretch.first
    owner, edge = owner[outside], edge[outside]
    producer = problem.edge_source[edge]
    ticks = problem.transfer(problem.payload[edge][:, None], state.device[producer][:, None], devices)
    np.maximum.at(head, owner, state.end[producer][:, None] + ticks)

    owner, edge = _rows(problem.out_start, tasks)
    consumer = problem.edge_target[edge]
    outside = position[consumer] >= stretch.last
    inner = edge[~outside]
    pairs = np.stack((owner[~outside], position[consumer[~outside]] - stretch.first), axis=1)
    owner, edge, consumer = owner[outside], edge[outside], consumer[outside]
    ticks = problem.transfer(problem.payload[edge][:, None], devices, state.device[consumer][:, None])
    np.maximum.at(tail, owner, ticks + state.tail[consumer][:, None])
    due = state.latest[consumer] != UNLIMITED
    np.minimum.at(late, owner[due], state.latest[consumer[due]][:, None] - ticks[due])

    group, size = problem.group[tasks], _group_sizes(problem)
    freed = np.bincount(group[stretch.free], minlength=problem.n_groups)
    movable = freed[group] == size[group]
    small = _bare(problem, state, tasks, pairs, inner, movable)
    allowed = small.group_feasible()
    fixed = np.flatnonzero(~movable)
    allowed[small.group[fixed]] = False
    allowed[small.group[fixed], state.device[tasks[fixed]]] = True
    spare = _spare(problem, small, state.device[tasks], head, tail, late)
    allowed[np.ix_(np.unique(small.group[movable]), np.array(spare, dtype=np.int64))] = False
    _keep_apart(problem, state, tasks, movable, small.group, allowed)
    origin, rest = int(head.min()), int(tail.min())
    late = np.where(late == UNLIMITED, UNLIMITED, late - origin)
    return Part(
        tasks, small, stretch.free, allowed, head - origin, tail - rest, late, origin, rest, state.span - origin - rest
    )


def _bare(problem: Problem, state: State, tasks: Int, pairs: Int, edge: Int, movable: Bool) -> Problem:
    """The tasks with the edges between them and the memory that is left to them."""
    limited = (problem.capacity != UNLIMITED).any()
    both = np.empty((0, 2), dtype=np.int64)
    if len(problem.separation):
        place = np.full(problem.n_tasks, -1, dtype=np.int64)
        place[tasks[movable]] = np.flatnonzero(movable)
        both = place[problem.separation]
        both = both[(both >= 0).all(axis=1)]
    small = build_problem(
        task_names=[problem.task_names[i] for i in tasks],
        device_names=problem.device_names,
        duration=problem.duration[tasks],
        feasible=problem.feasible[tasks],
        edges=pairs,
        payload=problem.payload[edge],
        latency=problem.latency,
        byte_ticks_num=problem.byte_ticks_num,
        byte_ticks_den=problem.byte_ticks_den,
        group=problem.group[tasks],
        separation=both,
        resident=problem.memory[tasks] if limited else None,
        capacity=_room(problem, state, tasks) if limited else None,
    )
    # What is left of the memory tells devices apart, but not in any way that the model asks classes for.
    return replace(small, device_class=problem.device_class)


def _room(problem: Problem, state: State, tasks: Int) -> Int:
    """(m,) bytes that the tasks may take. Under `peak`, all that the others do not need at their worst time.

    That looks neither at when the worst time is nor at how times change, so it is only checked afterwards; what
    the tasks take now is always granted.
    """
    taken = np.zeros(problem.n_devices, dtype=np.int64)
    np.add.at(taken, state.device[tasks], problem.memory[tasks])
    if problem.memory_model == "sum":
        others = state.used - taken
    else:
        bare = {name: getattr(problem, name).copy() for name in ("resident", "output", "scratch")}
        for amounts in bare.values():
            amounts[tasks] = 0
        others = peak_memory(replace(problem, **bare), state.schedule)
    room = np.where(problem.capacity == UNLIMITED, UNLIMITED, problem.capacity - others)
    return room if problem.memory_model == "sum" else np.maximum(room, taken)


def _keep_apart(problem: Problem, state: State, tasks: Int, movable: Bool, group: Int, allowed: Bool) -> None:
    """Forbid movable groups the devices of those that stay where they are and must be apart from them."""
    if not len(problem.separation):
        return
    place = np.full(problem.n_tasks, -1, dtype=np.int64)
    place[tasks[movable]] = np.flatnonzero(movable)
    for one, other in ((0, 1), (1, 0)):
        left, right = place[problem.separation[:, one]], problem.separation[:, other]
        asked = (left >= 0) & (place[right] < 0)
        allowed[group[left[asked]], state.device[right[asked]]] = False


def _spare(problem: Problem, small: Problem, now: Int, head: Int, tail: Int, late: Int) -> list[int]:
    """Devices that run nothing of the part and are like IDLE others: what goes there can as well go to one of those."""
    seen: dict[object, int] = {}
    spare = []
    for d in np.setdiff1d(np.arange(problem.n_devices), now).tolist():
        columns = head[:, d].tobytes(), tail[:, d].tobytes(), late[:, d].tobytes()
        key = int(problem.device_class[d]), int(small.capacity[d]), *columns
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > IDLE:
            spare.append(d)
    return spare


def _group_sizes(problem: Problem) -> Int:
    return np.bincount(problem.group, minlength=problem.n_groups)


def _rows(start: Int, tasks: Int) -> tuple[Int, Int]:
    """The entries of CSR rows one after another: the place of the row among `tasks`, and the entry."""
    lengths = start[tasks + 1] - start[tasks]
    owner = np.repeat(np.arange(len(tasks)), lengths)
    before = np.cumsum(lengths) - lengths
    return owner, np.arange(len(owner)) - before[owner] + start[tasks][owner]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What became of a part.

    Attributes
    ----------
    device, start
        (k,) of its tasks, in its own ticks; None where nothing at most as long as wanted was found.
    proved
        Whether nothing shorter exists.
    work
        Deterministic time that CP-SAT took.
    size
        Variables of the model.
    """

    device: Int | None
    start: Int | None
    proved: bool
    work: float
    size: int


def solved(part: Part, state: State, limit: float, seed: int, stopped: Callable[[], bool]) -> Found:
    """The part with the least makespan found within a deterministic time, at most as long as now."""
    from placeopt.bounding.engines import cp_sat

    from ...exact._cp_sat.model import Model

    problem, horizon = part.problem, part.span
    limits = Limits(
        horizon=horizon,
        allowed=part.allowed,
        head=part.head,
        tail=part.tail,
        largest=dict.fromkeys(ALL_METRICS, horizon),
    )
    try:
        model = Model(problem, limits, False, lambda: False)
    except TooLargeError:
        return Found(None, None, False, 0.0, 0)
    cp, timing = model.base.cp, model.timing
    assert timing is not None
    now = state.device[part.tasks]
    for d in range(problem.n_devices):
        for i, j in pairwise(np.flatnonzero(~part.free & (now == d)).tolist()):
            cp.add(timing.starts[j] >= timing.ends[i])
    for i in np.flatnonzero((part.late <= horizon).any(axis=1)).tolist():
        for d, x in model.placement.at[int(problem.group[i])].items():
            if part.late[i, d] <= horizon:
                cp.add(timing.ends[i] <= int(part.late[i, d])).only_enforce_if(x)
    cp.minimize(model.levels[0].expression)
    model.base.hint(Schedule(now, state.start[part.tasks] - part.origin))
    last: list[Schedule] = []

    def keep(read: Callable[..., int]) -> None:
        last[:] = [model.schedule(read)]

    outcome = cp_sat.run(
        cp,
        largest=model.magnitude,
        seconds=None,
        seed=seed % 2**31,
        workers=1,
        should_stop=stopped,
        on_solution=keep,
        parameters={**FAST, "max_deterministic_time": limit},
    )
    proved = outcome.status in ("OPTIMAL", "INFEASIBLE")
    found = last[0] if last else None
    return Found(
        None if found is None else found.device,
        None if found is None else found.start,
        proved,
        outcome.work,
        model.base.size,
    )


def changed(state: State, part: Part, stretch: Stretch, found: Found) -> Schedule:
    """The whole schedule with a part as it was found, timed anew; other stretches may have changed since."""
    assert found.device is not None
    assert found.start is not None
    problem, device = state.problem, state.device.copy()
    device[part.tasks] = found.device
    end = found.start + problem.duration[part.tasks, found.device]
    if problem.contention == "port":
        return _booked(state, part, stretch, device, found.start + part.origin, end + part.origin)
    sequence = state.sequence.copy()
    place = np.empty(len(part.tasks), dtype=np.int64)
    place[part.problem.order] = np.arange(len(place))
    sequence[stretch.first : stretch.last] = part.tasks[np.lexsort((place, end, found.start))]
    return decoded(problem, sequence, device)


def _booked(state: State, part: Part, stretch: Stretch, device: Int, start: Int, end: Int) -> Schedule:
    """A part put back among transfers that keep their order on the ports; those of its tasks leave when data is there.

    What is behind the stretch is put off until the devices are free, so that orders stay as they are.
    """
    problem, position = state.problem, state.position
    starts, ends = state.start.copy(), state.end.copy()
    starts[part.tasks], ends[part.tasks] = start, end
    last = np.zeros(problem.n_devices, dtype=np.int64)
    np.maximum.at(last, device[part.tasks], end)
    behind = position >= stretch.last
    late = int((last[device[behind]] - starts[behind]).max(initial=0))
    starts[behind] += late
    ends[behind] += late
    leaves = ends[problem.edge_source]
    given = state.schedule.transfers
    if given is not None:
        before = np.full(problem.n_edges, -1, dtype=np.int64)
        before[given.edge] = given.start
        carrier = edge_transfers(problem, state.device)
        before = np.where(carrier >= 0, before[carrier], -1)
        inside = ~behind & (position >= stretch.first)
        stays = (before >= 0) & ~inside[problem.edge_source] & ~inside[problem.edge_target]
        leaves[stays] = before[stays] + late * behind[problem.edge_source[stays]]
    moved = np.flatnonzero(edge_transfers(problem, device) == np.arange(problem.n_edges))
    return retime(problem, Schedule(device, starts, Transfers(moved, leaves[moved])))
