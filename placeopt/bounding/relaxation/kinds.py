"""Kinds: device classes merged until there are few, for a small relaxation.

The most similar classes are merged first. A merged kind combines the abilities of its devices: it has the shortest
durations, the largest capacity and the best links. Every placement of the problem is thus a placement by kinds at no
higher cost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick.classes import Classes, clipped
from placeopt.bounding.quick.paths import NEVER, windows
from placeopt.model.arrays import Bool, Int
from placeopt.model.objective import task_energy
from placeopt.model.problem import UNLIMITED, Problem, ratio_ceil

MOST = 4
"""Maximum number of kinds: a pair of groups has a variable for each pair of kinds."""


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """A problem by kinds; n tasks, g groups, k kinds."""

    classes: Classes  # the problem by device classes
    members: tuple[tuple[int, ...], ...]  # the classes of each kind
    allowed: Bool  # (g, k), whether the group may be on devices of the kind
    # (n, k) the minimum over devices of the kind: ticks, nanojoules, ticks of relocation, prices, ticks before and
    # after a task
    duration: Int
    energy: Int
    relocation: Int
    price: Int
    head: Int
    tail: Int
    size: Int  # (k,) devices
    capacity: Int  # (k,) bytes of the largest device, UNLIMITED if one has no limit
    room: Int  # (k,) bytes of all devices together, UNLIMITED if one has no limit
    # (k,), whether data moves freely between devices of the kind and memory is unlimited. Different devices of a pool
    # then cost nothing, and the relaxation treats a pool as one device.
    pool: Bool
    # (v, 2) the pairs of kinds between which data can move, source first. A kind is paired with itself if it has two
    # devices and is not a pool.
    moves: Int

    @property
    def count(self) -> int:
        """Number of kinds, k."""
        return len(self.members)

    def ticks(self, payload: Int) -> Int:
        """(e, v) the least ticks of payloads (e,) for each move."""
        classes = self.classes
        return self._least(
            lambda a, b: classes.latency[a, b] + ratio_ceil(payload, int(classes.num[a, b]), int(classes.den[a, b])),
            len(payload),
        )

    def joules(self, payload: Int) -> Int:
        """(e, v) the least nanojoules of payloads (e,) for each move."""
        classes, problem = self.classes, self.classes.problem

        def spent(a: int, b: int) -> Int:
            link = classes.source[a, b], classes.target[a, b]
            num, den = int(problem.byte_energy_num[link]), int(problem.byte_energy_den[link])
            return np.asarray(ratio_ceil(payload, num, den))

        return self._least(spent, len(payload))

    def _least(self, cost: Callable[[int, int], Int], count: int) -> Int:
        found = np.empty((count, len(self.moves)), dtype=np.int64)
        for column, (a, b) in enumerate(self.moves.tolist()):
            links = _links(self.classes, self.members[a], self.members[b])
            found[:, column] = np.min([cost(c, d) for c, d in links], axis=0)
        return found


def _links(classes: Classes, left: tuple[int, ...], right: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(c, d) for c in left for d in right if classes.linked[c, d]]


def kinds_of(classes: Classes, most: int = MOST) -> Kinds:
    """The problem by at most `most` kinds."""
    problem = classes.problem
    members = _merged(classes, most)
    found = windows(classes)

    def least(values: Int, open_: Bool) -> Int:
        table = np.where(open_, values, NEVER)
        smallest = np.stack([table[:, list(kind)].min(axis=1) for kind in members], axis=1)
        return np.asarray(np.where(smallest < NEVER, smallest, 0))

    open_ = classes.allowed[problem.group]
    possible = open_ & found.allowed
    possible[~possible.any(axis=1)] = True
    linked = [bool(_links(classes, kind, kind)) for kind in members]
    pool = np.array([inner and _free(problem, classes, kind) for kind, inner in zip(members, linked, strict=True)])
    moves = [
        (a, b) for a, b in itertools.product(range(len(members)), repeat=2) if a != b or (linked[a] and not pool[a])
    ]
    return Kinds(
        classes=classes,
        members=members,
        allowed=np.stack([classes.allowed[:, list(kind)].any(axis=1) for kind in members], axis=1),
        duration=least(classes.duration, open_),
        energy=least(clipped(task_energy(problem)[:, classes.leader]), open_),
        relocation=least(clipped(problem.relocation[:, classes.leader]), open_),
        price=least(clipped(problem.price[:, classes.leader]), open_),
        head=least(found.head, possible),
        tail=least(found.tail, possible),
        size=np.array([classes.size[list(kind)].sum() for kind in members], dtype=np.int64),
        capacity=np.array([classes.capacity[list(kind)].max() for kind in members], dtype=np.int64),
        room=np.array([_room(classes, kind) for kind in members], dtype=np.int64),
        pool=pool,
        moves=np.array(moves, dtype=np.int64).reshape(-1, 2),
    )


def _room(classes: Classes, kind: tuple[int, ...]) -> int:
    each = [(int(classes.capacity[c]), int(classes.size[c])) for c in kind]
    total = sum(capacity * size for capacity, size in each)
    return UNLIMITED if any(capacity == UNLIMITED for capacity, _ in each) or total > UNLIMITED else total


def _free(problem: Problem, classes: Classes, kind: tuple[int, ...]) -> bool:
    """Whether different devices of the kind cost nothing in the objective's first level."""
    metrics = {term.metric for term in problem.objective.levels[0]}
    if "communication" in metrics or any(classes.capacity[c] != UNLIMITED for c in kind):
        return False
    links = _links(classes, kind, kind)
    if any(classes.latency[link] or classes.num[link] for link in links):
        return False
    between = [(classes.source[link], classes.target[link]) for link in links]
    return "energy" not in metrics or not any(problem.byte_energy_num[link] for link in between)


def _merged(classes: Classes, most: int) -> tuple[tuple[int, ...], ...]:
    """Merge the two most similar kinds until at most `most` are left; in the order of their first devices.

    The distance of two classes is the mean difference of the logarithms of durations and of capacities, plus the share
    of groups that only one may run. The distance of two kinds is the largest of their members' (complete linkage).
    """
    k = classes.n_classes
    kinds: list[tuple[int, ...]] = [(c,) for c in range(k)]
    if k <= most:
        return tuple(kinds)
    pace = np.log1p(classes.duration.astype(np.float64))
    size = np.log1p(np.minimum(classes.capacity, 1 << 50).astype(np.float64))
    unlike = np.empty((k, k))
    for c in range(k):
        unlike[c] = np.abs(pace - pace[:, [c]]).mean(axis=0) + np.abs(size - size[c]) / 4
        unlike[c] += (classes.allowed != classes.allowed[:, [c]]).mean(axis=0)
    while len(kinds) > most:
        pairs = itertools.combinations(range(len(kinds)), 2)
        i, j = min(pairs, key=lambda pair: (max(unlike[c, d] for c in kinds[pair[0]] for d in kinds[pair[1]]), pair))
        kinds[i] = tuple(sorted(kinds[i] + kinds.pop(j)))
    return tuple(kinds)
