"""Uniting colocation groups, two at a time, as long as what comes of it can stand somewhere.

Two groups become one only if some device may run all of their tasks and has room for them all (counted as under the
`sum` memory model, which is cautious under `peak`), and no separation stands between them. That every group has its
device does not say that all find room together: passes that unite groups are not exact.
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
    """Groups while they are united; g of them, m devices, k separated pairs.

    Attributes
    ----------
    parent
        (g,) another group of the same union, its own index for the smallest: `find` follows it.
    feasible
        (g, m) of a union's smallest group: whether every task may run on the device.
    memory
        (g,) of a union's smallest group: bytes of all tasks.
    capacity
        (m,) as in `Problem`.
    first, last, further, other
        (g,), (g,), (2k,), (2k,): the separated pairs of a union's smallest group as a list, each with the group at its
        other end; -1 where it ends.
    """

    parent: Int
    feasible: Bool
    memory: Int
    capacity: Int
    first: Int
    last: Int
    further: Int
    other: Int


def unions(problem: Problem) -> Unions:
    """The groups of a problem, none of them united yet."""
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
    """The groups of a problem once left[k] and right[k] are united in turn, where they may be."""
    groups = unions(problem)
    run = unite_pairs.select((len(left) + problem.n_groups) * (1 + problem.n_devices))
    run(groups, left, right)
    return groups


@kernel(allocates=False)
def find(parent: Int, i: int) -> int:
    """The smallest group of the union that i is in."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel(find, allocates=False)
def may_unite(groups: Unions, a: int, b: int) -> bool:
    """Whether the unions of a and b, each the smallest of its own, may become one."""
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
    """Make one union of those of a and b, each the smallest of its own."""
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
    """Unite each pair of groups that may be; `parent` ends as the smallest of each union."""
    for k in range(len(left)):
        a, b = find(groups.parent, left[k]), find(groups.parent, right[k])
        if a != b and may_unite(groups, a, b):
            unite(groups, a, b)
    for i in range(len(groups.parent)):
        groups.parent[i] = find(groups.parent, i)


def keeps_groups(group: Int, device: Int) -> bool:
    """Whether a placement (n,) gives all tasks of each group (n,) one device."""
    home = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    home[group] = device
    return bool((home[group] == device).all())


def regrouped(problem: Problem, groups: Unions) -> Reduction | None:
    """The problem with its groups united; None if none are."""
    if (groups.parent == np.arange(problem.n_groups)).all():
        return None
    group = groups.parent[problem.group]
    reduced, _ = rebuilt(problem, group=group)

    def project(schedule: Schedule) -> Schedule | None:
        return schedule if keeps_groups(group, schedule.device) else None

    return Reduction(reduced, lambda schedule: schedule, project, f"{problem.n_groups} -> {reduced.n_groups} groups")
