"""Forbids devices that no feasible schedule uses for a group, and unites groups that have one and the same device
left.

Exact under every objective, contention and memory model, with release times and deadlines. **Proof.** Each rule
removes a (group, device) pair that no feasible schedule has, so the feasible schedules stay the same:

- a group goes where all of its tasks may run;
- a group that needs more memory than the device has does not fit: under `sum` the memory of all its tasks, under
  `peak` the resident bytes of all and, while one that takes time runs, its output and scratch;
- nor does it beside the memory held for good by the groups that have no other device;
- a group separated from one that has no other device is elsewhere;
- task i starts no earlier than h_i, the longest path of releases and least durations before it, and has ended by
  l_i, the least over what follows it of deadlines less the least durations until then: on d it needs h_i + p_id <=
  l_i.

Groups with the same single device share it in every schedule: as one group they have the same schedules. ∎

O(g m + n m + e) for each round; rounds end when nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import earliest_starts, latest_ends, least_durations, rebuilt


class ForcedDevices:
    """Shrinks the feasible devices by memory, groups, separation and deadlines."""

    name: ClassVar[str] = "forced-devices"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "forbids devices that no schedule can use, unites groups that have one device left"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem with fewer feasible devices and fewer groups."""
        if problem.n_tasks == 0 or problem.n_devices == 0:
            return None
        allowed = _allowed(problem)
        group = _united(problem, allowed)
        feasible = allowed[problem.group]
        forbidden = int((problem.feasible & ~feasible).sum())
        fewer = problem.n_groups - len(np.unique(group))
        if not forbidden and not fewer:
            return None
        reduced, _ = rebuilt(problem, feasible=feasible, group=group)
        told = f"{forbidden} pairs of a task and a device ruled out, {fewer} groups united with others"
        return Reduction(reduced, lambda schedule: schedule, lambda schedule: schedule, told)


def _allowed(problem: Problem) -> Bool:
    """(g, m) the devices that are left for each group."""
    allowed = problem.group_feasible()
    held = np.zeros(problem.n_groups, dtype=np.int64)
    np.add.at(held, problem.group, problem.memory if problem.memory_model == "sum" else problem.resident)
    need = np.repeat(held[:, None], problem.n_devices, axis=1)
    if problem.memory_model == "peak":
        running = np.where(problem.duration > 0, (problem.output + problem.scratch)[:, None], 0)
        most = np.zeros_like(need)
        np.maximum.at(most, problem.group, running)
        need += most
    allowed &= need <= problem.capacity
    partners = _partners(problem)
    while True:
        before = allowed
        allowed = allowed & ~_late(problem, allowed)
        _part(allowed, partners)
        fixed = allowed.sum(axis=1) == 1
        taken = np.zeros(problem.n_devices, dtype=np.int64)
        np.add.at(taken, allowed.argmax(axis=1)[fixed], held[fixed])
        allowed &= fixed[:, None] | (need <= problem.capacity - taken)
        if np.array_equal(allowed, before):
            return allowed


def _late(problem: Problem, allowed: Bool) -> Bool:
    """(g, m), whether some task of the group would miss a deadline on the device."""
    late = np.zeros_like(allowed)
    if (problem.deadline == UNLIMITED).all():
        return late
    least = least_durations(problem, allowed)
    work = problem.n_tasks + problem.n_edges
    start, end = problem.release.copy(), problem.deadline.copy()
    earliest_starts.select(work)(problem.order, problem.out_start, problem.edge_target, least, start)
    latest_ends.select(work)(problem.order, problem.out_start, problem.edge_target, least, end)
    np.logical_or.at(late, problem.group, start[:, None] + problem.duration > end[:, None])
    return late


def _partners(problem: Problem) -> dict[int, list[int]]:
    """The groups that each group must be apart from."""
    partners: dict[int, list[int]] = {}
    for left, right in problem.group[problem.separation].tolist():
        partners.setdefault(left, []).append(right)
        partners.setdefault(right, []).append(left)
    return partners


def _part(allowed: Bool, partners: dict[int, list[int]]) -> None:
    """Take the device of a group that has no other from all it must be apart from, and so on."""

    def fixed(groups: Iterator[int]) -> list[int]:
        return [g for g in groups if allowed[g].sum() == 1]

    waiting = fixed(iter(partners))
    done = set(waiting)
    while waiting:
        group = waiting.pop()
        where = np.flatnonzero(allowed[group])
        for other in partners[group]:
            allowed[other, where] = False
            if other not in done and allowed[other].sum() == 1:
                done.add(other)
                waiting.append(other)


def _united(problem: Problem, allowed: Bool) -> Int:
    """(n,) group labels, one for all groups that have the same single device."""
    label = np.arange(problem.n_groups)
    fixed = np.flatnonzero(allowed.sum(axis=1) == 1)
    device = allowed[fixed].argmax(axis=1)
    _, first, inverse = np.unique(device, return_index=True, return_inverse=True)
    label[fixed] = fixed[first][inverse]
    return label[problem.group]
