"""Build parts of a problem and its mirror; raise heads in topological order, each by a part that CP-SAT solves."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.bounding.quick.classes import Classes, by_group
from placeopt.model import ports
from placeopt.model.arrays import Bool, Int
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem, transfer_ticks
from placeopt.passes.rebuilding import LINK_FIELDS
from placeopt.protocol import Options, Termination, checked_settings
from placeopt.protocol.registry import find_solver

FAR = 1 << 61
"""Head of a task on a class that is closed for it."""


def mirror(problem: Problem) -> Problem:
    """The problem with time reversed: its heads are the tails of the original. It has the same device classes."""
    reversed_ = build_problem(
        task_names=problem.task_names,
        device_names=problem.device_names,
        duration=problem.duration,
        feasible=problem.feasible,
        resident=problem.resident if problem.memory_model == "peak" else problem.memory,
        capacity=problem.capacity,
        edges=np.column_stack((problem.edge_target, problem.edge_source)),
        payload=problem.payload,
        **{name: getattr(problem, name).T for name in LINK_FIELDS if "energy" not in name},
        group=problem.group,
        separation=problem.separation,
    )
    return replace(reversed_, device_class=problem.device_class)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Builds the parts of a problem. `head` (n, k) are the heads, by class; closed classes are FAR."""

    problem: Problem
    head: Int

    def nearest(self, v: int, most: int) -> Int:
        """(s,) the task and its ancestors with the largest heads, ascending: at most `most` tasks."""
        problem = self.problem
        found, seen, waiting = [v], {v}, [(0, v)]
        while waiting:
            _, w = heapq.heappop(waiting)
            if w != v:
                found.append(w)
                if len(found) == most:
                    break
            for u in producers(problem, w).tolist():
                if u not in seen:
                    seen.add(u)
                    heapq.heappush(waiting, (-int(self.head[u].min()), u))
        return np.array(sorted(found), dtype=np.int64)

    def before(self, tasks: Int, v: int, c: int | None) -> tuple[Problem, int]:
        """The part of these tasks (ascending) before v on class c, and its R. None for c: v on any of its classes.

        A release that depends on the class is modelled by a task without duration on a device of its own, whose links
        to the other devices have the differences as latencies. Tasks with all producers in the part start at their
        least release, as do all tasks under ports, because such a link would occupy them.
        """
        problem, m, n = self.problem, self.problem.n_devices, len(tasks)
        inside = np.zeros(problem.n_tasks, dtype=np.bool_)
        inside[tasks] = True
        place = np.cumsum(inside) - 1
        rows = self.head[tasks]  # a copy: another thread may close classes
        head = rows[:, problem.device_class]
        feasible = problem.feasible[tasks] & (head < FAR)
        if c is not None:
            feasible[place[v]] &= problem.device_class == c
        origin = int(rows.min())
        first = np.where(feasible, head, FAR).min(axis=1)
        kept = inside[problem.edge_source] & inside[problem.edge_target]
        entered = problem.edge_target[inside[problem.edge_target] & ~inside[problem.edge_source]]
        late = (feasible & (head > first[:, None])).any(axis=1) & np.isin(tasks, entered)
        delayed = np.flatnonzero(late) if not problem.contends else np.zeros(0, dtype=np.int64)
        x = len(delayed)
        own = np.arange(x)

        def grown(values: NDArray[Any], fill: int = 0) -> NDArray[Any]:
            result = np.full((values.shape[0] + x, values.shape[1] + x), fill, dtype=values.dtype)
            result[: values.shape[0], : values.shape[1]] = values
            return result

        def longer(values: NDArray[Any], fill: int = 0) -> NDArray[Any]:
            return np.concatenate((values, np.full(x, fill, dtype=values.dtype)))

        may, latency = grown(feasible), grown(problem.latency)
        may[n + own, m + own] = True
        latency[m:, :m] = np.where(feasible[delayed], head[delayed] - first[delayed][:, None], 0)

        edges = np.column_stack((place[problem.edge_source[kept]], place[problem.edge_target[kept]]))
        release = np.where(first < FAR, first - origin, 0)
        group = problem.group[tasks]
        part = build_problem(
            task_names=[str(i) for i in range(n + x)],
            device_names=[str(d) for d in range(m + x)],
            duration=grown(np.where(feasible, problem.duration[tasks], 0)),
            feasible=may,
            release=np.concatenate((release, release[delayed])),
            resident=longer(problem.resident[tasks]),
            output=longer(problem.output[tasks]),
            scratch=longer(problem.scratch[tasks]),
            capacity=longer(problem.capacity, UNLIMITED),
            edges=np.concatenate((edges, np.column_stack((n + own, delayed)))),
            payload=longer(problem.payload[kept]),
            shared=longer(problem.shared[kept]),
            latency=latency,
            byte_ticks_num=grown(problem.byte_ticks_num),
            byte_ticks_den=grown(problem.byte_ticks_den, 1),
            group=np.concatenate((group, problem.n_groups + own)),
            separation=place[problem.separation[inside[problem.separation].all(axis=1)]],
            **{name: getattr(problem, name) for name in ports.FIELDS},
            memory_model=problem.memory_model,
        )
        return part, origin


def producers(problem: Problem, v: int) -> Int:
    """The producers of a task, one for each in-edge."""
    return problem.edge_source[problem.in_edge[problem.in_start[v] : problem.in_start[v + 1]]]


def reachability(problem: Problem) -> Bool:
    """(n, n), whether the column's task is an ancestor of the row's, or the same."""
    before = np.eye(problem.n_tasks, dtype=np.bool_)
    for v in problem.order.tolist():
        before[v] |= before[producers(problem, v)].any(axis=0)
    return before


SOLVER = "cp-sat"

SMALLEST = 3
"""Tasks of the smallest part that may raise a head."""

WORK = 0.5
"""CP-SAT's deterministic time for a part; most parts need a hundredth of it."""


@dataclass(eq=False)
class Heads:
    """The heads of a problem, or of its mirror, whose heads are the tails of the problem.

    Attributes
    ----------
    head, tail
        (n, k) by class, shared with the other direction; FAR where the class is closed.
    raised
        Called after the heads of a task have been raised.
    known
        Lower bounds of the makespans of parts by fingerprint, None for infeasible ones: equal parts are solved once.
    """

    problem: Problem
    classes: Classes
    head: Int
    tail: Int
    raised: Callable[[int], None]
    should_stop: Callable[[], bool]
    worth: Callable[[int], bool]
    known: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parts = Parts(self.problem, self.head)
        # Those of the classes are clipped: sums must not overflow. A head below an end takes the duration of the parts.
        self.stated = self.problem.duration[:, self.classes.leader]
        self._settings = checked_settings(SOLVER, find_solver(SOLVER).settings_type, {"work": WORK, "series": False})
        members = np.bincount(self.problem.group)[self.problem.group]
        joins = [len(np.unique(producers(self.problem, v))) > 1 for v in range(self.problem.n_tasks)]
        # Another task with one producer only follows that on the same device, or after the transfer.
        self._grouped = members > 1
        self._joins = np.array(joins, dtype=np.bool_) | self._grouped

    def raise_all(self, size: int) -> Iterator[None]:
        """Raise the heads of all tasks that matter by parts of at most `size` tasks; yield after each task."""
        for v in self.problem.order.tolist():
            self.propagate(v)
            if self._joins[v] and self.worth(v):
                tasks = self.parts.nearest(v, size)
                for c in np.argsort(self.head[v] + self.classes.duration[v], kind="stable").tolist():
                    while self._useful(v, c) and not self._raise(v, c, tasks):
                        yield
            self.raised(v)
            yield

    def propagate(self, v: int) -> None:
        """Raise the heads of a task by those of its producers and by the transfers from them."""
        classes, problem = self.classes, self.problem
        open_ = self.head[v] < FAR
        for e in problem.in_edge[problem.in_start[v] : problem.in_start[v + 1]].tolist():
            u = int(problem.edge_source[e])
            end = np.minimum(self.head[u] + classes.duration[u], FAR)
            arrival = end
            if not classes.together[e]:
                ticks = transfer_ticks(problem.payload[e], classes.latency, classes.num, classes.den)
                arrival = np.where(classes.linked, end[:, None] + ticks, FAR).min(axis=0)
                if not classes.apart[e]:
                    arrival = np.minimum(arrival, end)
            self.head[v, open_] = np.minimum(np.maximum(self.head[v], arrival), FAR)[open_]

    def _useful(self, v: int, c: int) -> bool:
        """Whether a later end of the task on class c may make data arrive later on some class.

        It does not where another class sends the data earlier to all classes.
        """
        classes, problem = self.classes, self.problem
        edges = range(problem.out_start[v], problem.out_start[v + 1])
        if not edges or self._grouped[v]:
            return True
        end = self.head[v] + classes.duration[v]
        others = np.flatnonzero((self.head[v] < FAR) & (np.arange(len(end)) != c))
        for e in edges:
            ticks = transfer_ticks(problem.payload[e], classes.latency, classes.num, classes.den)
            if not classes.apart[e]:
                np.fill_diagonal(ticks, 0)
            arrival = end[:, None] + ticks
            if (arrival[others].min(axis=0, initial=FAR) > arrival[c]).any():
                return True
        return False

    def close(self, v: int, c: int) -> None:
        """Exclude a class for a task, and for all of its group."""
        group = self.problem.group == self.problem.group[v]
        self.head[group, c] = self.tail[group, c] = FAR

    def _raise(self, v: int, c: int, tasks: Int) -> bool:
        """Raise a head by the part of these tasks before v on class c; return False if the search is stopped."""
        if len(tasks) < SMALLEST or self.head[v, c] >= FAR:
            return True
        part, origin = self.parts.before(tasks, v, c)
        key = part.fingerprint()
        if key not in self.known:
            bound = self._solved(part)
            if self.should_stop():
                return False
            self.known[key] = bound
        bound = self.known[key]
        if bound is None:
            self.close(v, c)
        elif self.head[v, c] < FAR:
            end = origin + bound
            self.head[v, c] = max(int(self.head[v, c]), end - int(self.stated[v, c]))
        return True

    def _solved(self, part: Problem) -> int | None:
        """A lower bound of the makespan of a part; None if it has no schedule."""
        answer = find_solver(SOLVER).solve(part, Options(should_stop=self.should_stop), self._settings)
        if answer.termination is Termination.INFEASIBLE:
            return None
        return int(answer.bound or 0)


def narrow(classes: Classes, head: Int, tail: Int) -> None:
    """Close a class for all tasks of a group if it is closed for one."""
    closed = by_group(classes.problem, (head >= FAR) | (tail >= FAR), np.logical_or)[classes.problem.group]
    head[closed] = tail[closed] = FAR
