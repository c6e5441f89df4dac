"""Exact passes that remove devices: from the choices of a group, or from the problem."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt import engine
from placeopt.errors import counted
from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.graph import path_lengths
from placeopt.model.native import native
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import least_durations, rebuilt


class ForcedDevices:
    """Forbids devices by memory, groups, separation and deadlines, and unites groups that have the same single device.

    Exact under every objective, contention and memory model, with release times and deadlines. **Proof.** Each rule
    removes a (group, device) pair that no feasible schedule uses, so the set of feasible schedules is unchanged:

    - A group runs only where all of its tasks may run.
    - A group does not fit on a device with less memory than it needs: under `sum` the memory of all its tasks; under
      `peak` the resident bytes of all, plus the largest output and scratch of a task that takes time.
    - It does not fit next to the permanent memory of the groups that have no other device.
    - A group separated from a group with a single device cannot use that device.
    - Task i starts no earlier than h_i, the longest path of release times and least durations before it. It ends by
      l_i, the minimum over itself and its successors of their deadlines less the least durations in between. Device d
      therefore requires h_i + p_id <= l_i.

    Groups with the same single device share it in every schedule. As one group they have the same schedules. ∎

    O(g m + n m + e) per round; rounds end when nothing changes.
    """

    name: ClassVar[str] = "forced-devices"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "forbids devices that no schedule can use; unites groups with the same single device"
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
        pairs, groups = counted(forbidden, "pair"), counted(fewer, "group")
        explanation = f"{pairs} of a task and a device forbidden, {groups} united with others"
        return Reduction(reduced, lambda schedule: schedule, lambda schedule: schedule, explanation)


def _allowed(problem: Problem) -> Bool:
    """(g, m), whether the rules allow the device for the group."""
    allowed = problem.group_feasible()
    memory = problem.memory if problem.memory_model == "sum" else problem.resident
    held = by_index(np.add, problem.group, memory, problem.n_groups)
    need = np.repeat(held[:, None], problem.n_devices, axis=1)
    if problem.memory_model == "peak":
        running = np.where(problem.duration > 0, (problem.output + problem.scratch)[:, None], 0)
        need += by_index(np.maximum, problem.group, running, problem.n_groups)
    allowed &= need <= problem.capacity
    partners = _partners(problem)
    while True:
        before = allowed
        allowed = allowed & ~_late(problem, allowed)
        _part(allowed, partners)
        fixed = allowed.sum(axis=1) == 1
        taken = by_index(np.add, allowed.argmax(axis=1)[fixed], held[fixed], problem.n_devices)
        allowed &= fixed[:, None] | (need <= problem.capacity - taken)
        if np.array_equal(allowed, before):
            return allowed


def _late(problem: Problem, allowed: Bool) -> Bool:
    """(g, m), whether some task of the group would miss its deadline on the device."""
    late = np.zeros_like(allowed)
    if (problem.deadline == UNLIMITED).all():
        return late
    least = least_durations(problem, allowed)
    start = path_lengths(problem.order, problem.out_start, problem.edge_target, least, problem.release)
    end = engine.latest_ends(native(problem), least, problem.deadline)
    np.logical_or.at(late, problem.group, start[:, None] + problem.duration > end[:, None])
    return late


def _partners(problem: Problem) -> dict[int, list[int]]:
    """For each group, the groups that are separated from it."""
    partners: dict[int, list[int]] = {}
    for left, right in problem.group[problem.separation].tolist():
        partners.setdefault(left, []).append(right)
        partners.setdefault(right, []).append(left)
    return partners


def _part(allowed: Bool, partners: dict[int, list[int]]) -> None:
    """Forbid the single device of a group for all groups separated from it, and repeat for groups that this fixes."""
    waiting = [group for group in partners if allowed[group].sum() == 1]
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
    """(n,) group labels, the same for all groups that have the same single device."""
    label = np.arange(problem.n_groups)
    fixed = np.flatnonzero(allowed.sum(axis=1) == 1)
    device = allowed[fixed].argmax(axis=1)
    _, first, inverse = np.unique(device, return_index=True, return_inverse=True)
    label[fixed] = fixed[first][inverse]
    return label[problem.group]


class IdleDevices:
    """Removes surplus devices of each class, and devices on which no group may run.

    Exact under every objective, contention and memory model, with release times and deadlines. **Proof.** Devices of
    one class are interchangeable: swapping them keeps feasibility and objective (`Problem.device_class`). If k groups
    may run on a class, a schedule uses at most k of its devices, and swaps make these the first k. A device without
    tasks contributes to no metric. The first min(k, size) devices of every class therefore suffice. ∎

    O(g m).
    """

    name: ClassVar[str] = "idle-devices"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "removes devices of a class beyond the number of groups that may run on it"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem with fewer devices."""
        label = problem.device_class
        rank = np.empty(problem.n_devices, dtype=np.int64)  # within the class
        for c in range(int(label.max(initial=-1)) + 1):
            members = np.flatnonzero(label == c)
            rank[members] = np.arange(len(members))
        kept = np.flatnonzero(rank < problem.group_feasible().sum(axis=0))
        if len(kept) == problem.n_devices or len(kept) == 0:  # none kept: infeasible, reported elsewhere
            return None
        reduced, _ = rebuilt(problem, devices=kept)

        def restore(schedule: Schedule) -> Schedule:
            return Schedule(kept[schedule.device], schedule.start, schedule.transfers)

        def project(schedule: Schedule) -> Schedule | None:
            device = _relabelled(schedule.device, label, kept)
            return None if device is None else Schedule(device, schedule.start, schedule.transfers)

        count = problem.n_devices - len(kept)
        return Reduction(reduced, restore, project, f"{counted(count, 'surplus device')} removed")


def _relabelled(device: Int, label: Int, kept: Int) -> Int | None:
    """The placement on the kept devices, those of a class in order of first use; None if they do not suffice."""
    place = {d: k for k, d in enumerate(kept.tolist())}
    used, first = np.unique(device, return_index=True)
    if not all(d in place for d in used.tolist()):
        free = {c: iter(kept[label[kept] == c].tolist()) for c in np.unique(label).tolist()}
        moved = {d: next(free[int(label[d])], None) for d in used[np.argsort(first)].tolist()}
        if None in moved.values():
            return None
        place = {d: place[target] for d, target in moved.items() if target is not None}
    table = np.zeros(len(label), dtype=np.int64)
    table[used] = [place[d] for d in used.tolist()]
    return table[device]
