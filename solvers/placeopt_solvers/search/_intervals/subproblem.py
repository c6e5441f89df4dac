"""The subproblem of a part of a schedule, and the schedule with another solution of it.

The part has all tasks at the positions [first, last) of the sequence. Free ones may change device and position; the
others keep their device and their order. The rest of the schedule is in the numbers of task i on device d:

    head[i, d]   tick from which d is free, the data of earlier tasks is there, and the release time has come
    tail[i, d]   ticks from its end to the makespan, by later tasks on d or consumers of its data
    late[i, d]   tick by which it must end for all deadlines of later tasks

So max(end_i + tail[i, d]), together with the paths around the interval, is the exact makespan. The work is proportional
to the tasks and edges of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.model.arrays import Bool, Int, by_index, inverse
from placeopt.model.building import by_first_appearance
from placeopt.model.memory import peak_memory
from placeopt.model.ports import PORTLESS
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers
from placeopt.simulation import retime

from .state import State, decoded


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """Positions [first, last) of a sequence, and whether each of their tasks is free."""

    first: int
    last: int
    free: Bool


@dataclass(frozen=True, slots=True, eq=False)
class Subproblem:
    """The problem of a neighbourhood, in ticks from `origin` on, without the `rest` at the end of every schedule."""

    tasks: Int  # (k,) tasks of the whole problem, in sequence
    problem: Problem  # their problem: the remaining memory, no ports, and the makespan as objective
    free: Bool  # (k,) whether a task may change its position and, if its whole group is free, its device
    allowed: Bool  # (g, m) devices of the groups
    head: Int  # (k, m) ticks, see above
    tail: Int
    late: Int  # UNLIMITED without a deadline
    origin: int
    rest: int
    span: int  # the current makespan of the subproblem


def subproblem_of(state: State, area: Neighbourhood, idle: int | None = None) -> Subproblem:
    """Return the subproblem of a neighbourhood.

    Of identical devices without a task, tasks may use only `idle`, if given: the others make no difference.
    """
    problem, m = state.problem, state.problem.n_devices
    tasks = state.sequence[area.first : area.last]
    position = state.position
    boundary = state.boundary(area.first, area.last)
    devices = np.arange(m)[None, :]
    head = np.maximum(boundary.free[None, :], problem.release[tasks][:, None])
    tail = np.repeat(boundary.tail[None, :], len(tasks), axis=0)
    late = np.minimum(boundary.latest[None, :], problem.deadline[tasks][:, None])

    owner, at = _rows(problem.in_start, tasks)
    edge = problem.in_edge[at]
    outside = position[problem.edge_source[edge]] < area.first
    owner, edge = owner[outside], edge[outside]
    producer = problem.edge_source[edge]
    ticks = problem.transfer(problem.payload[edge][:, None], state.device[producer][:, None], devices)
    np.maximum.at(head, owner, state.end[producer][:, None] + ticks)

    owner, edge = _rows(problem.out_start, tasks)
    consumer = problem.edge_target[edge]
    outside = position[consumer] >= area.last
    inner = edge[~outside]
    pairs = np.stack((owner[~outside], position[consumer[~outside]] - area.first), axis=1)
    owner, edge, consumer = owner[outside], edge[outside], consumer[outside]
    ticks = problem.transfer(problem.payload[edge][:, None], devices, state.device[consumer][:, None])
    np.maximum.at(tail, owner, ticks + state.tail[consumer][:, None])
    due = state.latest[consumer] != UNLIMITED
    np.minimum.at(late, owner[due], state.latest[consumer[due]][:, None] - ticks[due])

    group, size = problem.group[tasks], np.bincount(problem.group, minlength=problem.n_groups)
    freed = np.bincount(group[area.free], minlength=problem.n_groups)
    movable = freed[group] == size[group]
    small = _bare(problem, state, tasks, pairs, inner, movable)
    allowed = small.group_feasible()
    fixed = np.flatnonzero(~movable)
    allowed[small.group[fixed]] = False
    allowed[small.group[fixed], state.device[tasks[fixed]]] = True
    if idle is not None:
        spare = _spare(problem, small, state.device[tasks], head, tail, late, idle)
        allowed[np.ix_(np.unique(small.group[movable]), np.array(spare, dtype=np.int64))] = False
    _keep_apart(problem, state, tasks, movable, small.group, allowed)
    origin, rest = int(head.min()), int(tail.min())
    late = np.where(late == UNLIMITED, UNLIMITED, late - origin)
    return Subproblem(
        tasks, small, area.free, allowed, head - origin, tail - rest, late, origin, rest, state.span - origin - rest
    )


def _bare(problem: Problem, state: State, tasks: Int, pairs: Int, edge: Int, movable: Bool) -> Problem:
    """Return the problem of some tasks, with the edges between them and their memory."""
    limited = (problem.capacity != UNLIMITED).any()
    both = np.empty((0, 2), dtype=np.int64)
    if len(problem.separation):
        place = np.full(problem.n_tasks, -1, dtype=np.int64)
        place[tasks[movable]] = np.flatnonzero(movable)
        both = place[problem.separation]
        both = both[(both >= 0).all(axis=1)]
    k, m = len(tasks), problem.n_devices
    by_source = np.lexsort((pairs[:, 1], pairs[:, 0]))
    source, target = pairs[by_source].T.copy()
    in_edge = np.argsort(target, kind="stable")
    nothing = np.zeros(k, dtype=np.int64)
    # All parts come from a valid problem, and the tasks are in a topological order. The remaining memory differs within
    # a class of devices, but solvers of subproblems use classes only for times and costs.
    return replace(
        problem,
        task_names=tuple(problem.task_names[i] for i in tasks),
        duration=problem.duration[tasks],
        feasible=problem.feasible[tasks],
        resident=problem.memory[tasks] if limited else nothing,
        output=nothing,
        scratch=nothing,
        release=nothing,
        deadline=np.full(k, UNLIMITED),
        capacity=_room(problem, state, tasks) if limited else np.full(m, UNLIMITED),
        edge_source=source,
        edge_target=target,
        payload=problem.payload[edge[by_source]],
        shared=np.zeros(len(edge), dtype=np.bool_),
        relocation=np.zeros((k, m), dtype=np.int64),
        group=by_first_appearance(problem.group[tasks]),
        separation=np.unique(np.sort(both, axis=1), axis=0),
        forward=np.arange(k),
        objective=Objective(),
        **PORTLESS,
        memory_model="sum",
        out_start=np.searchsorted(source, np.arange(k + 1)),
        in_start=np.searchsorted(target[in_edge], np.arange(k + 1)),
        in_edge=in_edge,
        order=np.arange(k),
    )


def _room(problem: Problem, state: State, tasks: Int) -> Int:
    """Return the bytes (m,) that the tasks may use; under `peak`, the capacity less the peak of the other tasks.

    Under `peak` that ignores when the peak occurs, so the schedule is checked afterwards; the tasks may always use as
    much as they use now.
    """
    taken = by_index(np.add, state.device[tasks], problem.memory[tasks], problem.n_devices)
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
    """Forbid movable groups the devices of fixed groups that are separated from them."""
    if not len(problem.separation):
        return
    place = np.full(problem.n_tasks, -1, dtype=np.int64)
    place[tasks[movable]] = np.flatnonzero(movable)
    for one, other in ((0, 1), (1, 0)):
        left, right = place[problem.separation[:, one]], problem.separation[:, other]
        asked = (left >= 0) & (place[right] < 0)
        allowed[group[left[asked]], state.device[right[asked]]] = False


def _spare(problem: Problem, small: Problem, now: Int, head: Int, tail: Int, late: Int, idle: int) -> list[int]:
    """Return idle devices that are identical to `idle` others, which can take their tasks as well."""
    seen: dict[object, int] = {}
    spare = []
    for d in np.setdiff1d(np.arange(problem.n_devices), now).tolist():
        columns = head[:, d].tobytes(), tail[:, d].tobytes(), late[:, d].tobytes()
        key = int(problem.device_class[d]), int(small.capacity[d]), *columns
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > idle:
            spare.append(d)
    return spare


def _rows(start: Int, tasks: Int) -> tuple[Int, Int]:
    """Return the entries of CSR rows: the index of the row in `tasks`, and the entry."""
    lengths = start[tasks + 1] - start[tasks]
    owner = np.repeat(np.arange(len(tasks)), lengths)
    before = np.cumsum(lengths) - lengths
    return owner, np.arange(len(owner)) - before[owner] + start[tasks][owner]


def changed(state: State, sub: Subproblem, area: Neighbourhood, device: Int, start: Int) -> Schedule:
    """Return the whole schedule with a solution of the subproblem: devices (k,) and starts (k,), in its own ticks.

    Times are recomputed; the state may have changed elsewhere since.
    """
    problem = state.problem
    if problem.contends:
        whole = state.device.copy()
        whole[sub.tasks] = device
        end = start + problem.duration[sub.tasks, device]
        return _booked(state, sub, area, whole, start + sub.origin, end + sub.origin)
    whole, sequence = inserted(state.device, state.sequence, sub, area, device, start)
    return decoded(problem, sequence, whole)


def inserted(
    device: Int, sequence: Int, sub: Subproblem, area: Neighbourhood, found: Int, start: Int
) -> tuple[Int, Int]:
    """Return the devices (n,) and the sequence (n,) with a solution of a subproblem: devices (k,) and starts (k,)."""
    device, sequence = device.copy(), sequence.copy()
    device[sub.tasks] = found
    end = start + sub.problem.duration[np.arange(len(found)), found]
    place = inverse(sub.problem.order)
    sequence[area.first : area.last] = sub.tasks[np.lexsort((place, end, start))]
    return device, sequence


def _booked(state: State, sub: Subproblem, area: Neighbourhood, device: Int, start: Int, end: Int) -> Schedule:
    """Insert a solution under ports: transfers outside keep their order, those of its tasks leave as early as possible.

    Later tasks are delayed until the devices are free, so that their order does not change.
    """
    problem, position = state.problem, state.position
    starts, ends = state.start.copy(), state.end.copy()
    starts[sub.tasks], ends[sub.tasks] = start, end
    last = by_index(np.maximum, device[sub.tasks], end, problem.n_devices)
    behind = position >= area.last
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
        inside = ~behind & (position >= area.first)
        stays = (before >= 0) & ~inside[problem.edge_source] & ~inside[problem.edge_target]
        leaves[stays] = before[stays] + late * behind[problem.edge_source[stays]]
    moved = np.flatnonzero(edge_transfers(problem, device) == np.arange(problem.n_edges))
    return retime(problem, Schedule(device, starts, Transfers(moved, leaves[moved])))
