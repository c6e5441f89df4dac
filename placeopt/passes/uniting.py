"""Unite colocation groups pairwise, where one device can still run the result.

Two groups are united only if some device may run all their tasks and has enough memory for them, and no separated pair
lies across them. Memory is counted as under the `sum` model, which is conservative under `peak`. Each group then has a
device on its own, but all groups together may not fit: passes that unite groups are not exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem, group_memory
from placeopt.model.schedule import Schedule
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import rebuilt


class Unions(NamedTuple):
    """Groups in a union-find structure; g groups, m devices, k separated pairs.

    A union is represented by its smallest group.
    """

    parent: Int  # (g,) another group of the same union; the representative's own index. `find` follows it
    feasible: Bool  # (g, m) for representatives: whether every task of the union may run on the device
    memory: Int  # (g,) for representatives: bytes of all tasks
    capacity: Int  # (m,) as in `Problem`
    # (g,), (g,), (2k,), (2k,): for representatives, the separated pairs of the union as a linked list. `other` is the
    # group at the other end; -1 ends the list
    first: Int
    last: Int
    further: Int
    other: Int


def initial_unions(problem: Problem) -> Unions:
    """The groups of a problem, each a union by itself."""
    g = problem.n_groups
    memory = group_memory(problem)
    ends = problem.group[problem.separation]
    own, other = ends.ravel(), ends[:, ::-1].ravel().copy()
    first, last = np.full(g, -1, dtype=np.int64), np.full(g, -1, dtype=np.int64)
    further = np.full(len(own), -1, dtype=np.int64)
    for k, i in enumerate(own.tolist()):
        if first[i] < 0:
            first[i] = k
        else:
            further[last[i]] = k
        last[i] = k
    return Unions(np.arange(g), problem.group_feasible(), memory, problem.capacity, first, last, further, other)


def united(problem: Problem, left: Int, right: Int) -> Unions:
    """The groups of a problem after uniting left[k] and right[k] in turn, where allowed."""
    groups = initial_unions(problem)
    run = unite_pairs.select((len(left) + problem.n_groups) * (1 + problem.n_devices))
    run(groups, left, right)
    return groups


@kernel(allocates=False)
def find(parent: Int, i: int) -> int:
    """The representative of group i."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel(find, allocates=False)
def may_unite(groups: Unions, a: int, b: int) -> bool:
    """Whether the unions with the representatives a and b may be united."""
    k = groups.first[a]
    while k >= 0:
        if find(groups.parent, groups.other[k]) == b:
            return False
        k = groups.further[k]
    memory = groups.memory[a] + groups.memory[b]
    for d in range(len(groups.capacity)):
        if groups.feasible[a, d] and groups.feasible[b, d] and memory <= groups.capacity[d]:
            return True
    return False


@kernel(allocates=False)
def unite(groups: Unions, a: int, b: int) -> None:
    """Unite the unions with the representatives a and b."""
    into, other = min(a, b), max(a, b)
    groups.parent[other] = into
    groups.memory[into] += groups.memory[other]
    for d in range(len(groups.capacity)):
        groups.feasible[into, d] = groups.feasible[into, d] and groups.feasible[other, d]
    if groups.first[other] >= 0:
        if groups.first[into] < 0:
            groups.first[into] = groups.first[other]
        else:
            groups.further[groups.last[into]] = groups.first[other]
        groups.last[into] = groups.last[other]


@kernel(find, may_unite, unite, allocates=False)
def unite_pairs(groups: Unions, left: Int, right: Int) -> None:
    """Unite each pair of groups, if allowed; `parent` ends as the representative of each group's union."""
    for k in range(len(left)):
        a, b = find(groups.parent, left[k]), find(groups.parent, right[k])
        if a != b and may_unite(groups, a, b):
            unite(groups, a, b)
    for i in range(len(groups.parent)):
        groups.parent[i] = find(groups.parent, i)


def keeps_groups(group: Int, device: Int) -> bool:
    """Whether a placement (n,) puts all tasks of each group (n,) on one device."""
    home = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    home[group] = device
    return bool((home[group] == device).all())


def regrouped(problem: Problem, groups: Unions) -> Reduction | None:
    """The problem with its groups united; None if no groups were united."""
    if (groups.parent == np.arange(problem.n_groups)).all():
        return None
    group = groups.parent[problem.group]
    reduced, _ = rebuilt(problem, group=group)

    def project(schedule: Schedule) -> Schedule | None:
        return schedule if keeps_groups(group, schedule.device) else None

    return Reduction(reduced, lambda schedule: schedule, project, f"{problem.n_groups} -> {reduced.n_groups} groups")
