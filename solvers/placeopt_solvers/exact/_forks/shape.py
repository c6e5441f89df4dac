"""Recognise forks, joins and fork-joins, and reduce them to independent tasks on machines.

A *fork-join* consists of a source, a sink and inner tasks: every edge leads from the source to an inner task, from an
inner task to the sink, or from the source to the sink. A *fork* has no sink, a *join* has no source, and independent
tasks have neither. Every inner task succeeds the source, if there is one, and precedes the sink, if there is one.

Fix the device of the source and that of the sink, and a makespan T. Without loss of generality, the source starts at
its release time r: any start from r on stays feasible for the source at r, and its data then arrives no later. Likewise
the sink ends at D, the earlier of T and its deadline. No other task can run on the source's device before the source
ends, because all follow it; the same holds for the sink. So a schedule with a makespan of at most T exists if and only
if each inner task i has a device d that runs it within

    head(i, d) = the later of its release time and the arrival of the source's data on d,
    latest(i, d) = the earlier of its deadline and the time at which its data must leave d to reach the sink at D - p,

such that tasks on one device do not overlap; p is the sink's duration. The inner tasks are independent: no edge is
left. Devices with the same durations, heads and latest ends form a *pool* of identical machines.

The conditions for this reduction are checked by `fork_of`:

- The objective is the makespan alone, with any weight, and there is no port contention.
- No device can run out of memory, no two tasks share a device by a group, and none are separated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Problem, devices_by_class

from ..._runs.exact_run import bounded_devices
from ..._runs.time_scaling import makespan_weight


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """A fork, a join, a fork-join or independent tasks; k inner tasks, m devices."""

    problem: Problem
    weight: Fraction  # of the makespan in the objective, which time scaling changes
    source: int | None
    sink: int | None
    inner: Int  # (k,) the inner tasks
    incoming: Int  # (k,) bytes that each inner task receives from the source
    outgoing: Int  # (k,) bytes that each inner task sends to the sink
    direct: int | None  # bytes from the source to the sink; None without such an edge

    @property
    def size(self) -> int:
        """Number of literals in the smallest models of all placements, at least."""
        return len(list(placements(self))) * len(self.inner) * self.problem.n_devices


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Identical machines for k inner tasks."""

    devices: list[int]
    allowed: Bool  # (k,) whether a task may run here
    duration: Int  # (k,) ticks
    head: Int  # (k,) ticks before which a task cannot start
    tail: Int  # (k,) ticks that must follow a task's end before the makespan
    due: Int  # (k,) latest end of a task, regardless of the makespan

    @property
    def key(self) -> bytes:
        """The same for identical machines."""
        return b"".join(x.tobytes() for x in (self.allowed, self.duration, self.head, self.tail, self.due))

    def latest(self, makespan: int) -> Int:
        """Return the latest end of each task (k,) in schedules of at most this makespan."""
        return np.minimum(self.due, makespan - self.tail)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A fork with fixed devices of its source and its sink."""

    fork: Fork
    source_device: int | None
    sink_device: int | None
    pools: list[Pool]
    least: int  # a lower bound of the makespan


def fork_of(problem: Problem) -> Fork | None:
    """Return the fork that a problem is; None if it is not one or does not meet the conditions. O(n m + e)."""
    weight = makespan_weight(problem.objective)
    if weight is None or problem.contends or len(problem.separation) or problem.rules:
        return None
    n, begin, end = problem.n_tasks, problem.edge_source, problem.edge_target
    if n == 0 or problem.n_groups < n or bounded_devices(problem):
        return None
    first, last = np.flatnonzero(np.diff(problem.in_start) == 0), np.flatnonzero(np.diff(problem.out_start) == 0)
    source = int(first[0]) if len(first) == 1 and n > 1 else None
    sink = int(last[0]) if len(last) == 1 and n > 1 else None
    if not np.all((begin == (-1 if source is None else source)) | (end == (-1 if sink is None else sink))):
        return None
    inner = np.array([i for i in range(n) if i not in (source, sink)], dtype=np.int64)
    if len(inner) == 0:
        return None
    received, sent = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    # Of parallel edges the largest payload counts: it arrives last.
    if source is not None:
        np.maximum.at(received, end[begin == source], problem.payload[begin == source])
    if sink is not None:
        np.maximum.at(sent, begin[end == sink], problem.payload[end == sink])
    both = (begin == source) & (end == sink) if source is not None and sink is not None else np.zeros(0, dtype=bool)
    direct = int(problem.payload[both].max()) if both.any() else None
    return Fork(problem, weight, source, sink, inner, received[inner], sent[inner], direct)


def placements(fork: Fork) -> Iterator[tuple[int | None, int | None]]:
    """Yield the pairs of devices of the source and the sink, one of all that are equal by symmetry.

    Devices of one class are interchangeable. So the source runs on the first device of its class, and the sink on the
    same device, or on the first other one of its class.
    """
    classes = devices_by_class(fork.problem)
    for a in [None] if fork.source is None else [devices[0] for devices in classes]:
        apart = [next((d for d in devices if d != a), None) for devices in classes]
        for b in [None] if fork.sink is None else sorted({d for d in (a, *apart) if d is not None}):
            yield a, b


def placed(fork: Fork, a: int | None, b: int | None) -> Placed | None:
    """Return the fork with its source on device a and its sink on device b; None if that is infeasible. O(n m)."""
    problem, inner, every = fork.problem, fork.inner, np.arange(fork.problem.n_devices)
    ticks = problem.duration[inner]
    head = np.repeat(problem.release[inner, None], len(every), axis=1)
    due = np.repeat(problem.deadline[inner, None], len(every), axis=1)
    tail = np.zeros_like(head)
    begin = least = 0
    if fork.source is not None and a is not None:
        begin = least = int(problem.release[fork.source] + problem.duration[fork.source, a])
        if not problem.feasible[fork.source, a] or begin > problem.deadline[fork.source]:
            return None
        head = np.maximum(head, begin + problem.transfer(fork.incoming[:, None], a, every))
    if fork.sink is not None and b is not None:
        last = int(problem.duration[fork.sink, b])
        arrival = begin if fork.direct is None or a is None else begin + int(problem.transfer(fork.direct, a, b))
        least = max(arrival, int(problem.release[fork.sink])) + last
        if not problem.feasible[fork.sink, b] or least > problem.deadline[fork.sink]:
            return None
        tail = last + problem.transfer(fork.outgoing[:, None], every, b)
        due = np.minimum(due, problem.deadline[fork.sink] - tail)
    allowed = problem.feasible[inner] & (head + ticks <= due)
    if not allowed.any(axis=1).all():
        return None
    through = np.where(allowed, head + ticks + tail, UNLIMITED).min(axis=1)
    columns = [Pool([d], allowed[:, d], ticks[:, d], head[:, d], tail[:, d], due[:, d]) for d in every.tolist()]
    alike: dict[bytes, Pool] = {}
    for column in columns:
        alike.setdefault(column.key, replace(column, devices=[])).devices.extend(column.devices)
    pools = list(alike.values())
    return Placed(fork, a, b, pools, max(least, int(through.max())))
