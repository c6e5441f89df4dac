"""Build parts of a problem as separate problems, and the mirror of a problem."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.model.arrays import Bool, Int
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.passes.rebuilding import LINK_FIELDS

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
        delayed = np.flatnonzero(late) if problem.contention == "none" else np.zeros(0, dtype=np.int64)
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
            contention=problem.contention,
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
