"""Matroids that count.

    Uniform     at most k elements
    Partition   at most so many of each part
    Laminar     at most so many of each of several nested sets

See `placeopt.submodular.independence` for what a family is to the maximisers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.model.arrays import Bool, Float, Int


@dataclass(slots=True)
class _Counts:
    count: Int


class Partition:
    """At most capacity[i] elements of part i.

    `part` (n,) is the part 0, 1, ... of each element; `capacity` (parts,) or one number for all.
    """

    matroid = True
    matroids: int | None = 1

    def __init__(self, part: Sequence[int] | Int, capacity: Sequence[int] | Int | int = 1) -> None:
        self._part, parts = parts_of(part)
        self.size = len(self._part)
        self._capacity = capacities_of(capacity, parts, np.int64)
        self._order = np.argsort(self._part, kind="stable")
        self._first = np.searchsorted(self._part[self._order], np.arange(parts))

    def start(self) -> _Counts:
        return _Counts(np.zeros(len(self._capacity), dtype=np.int64))

    def copy(self, state: _Counts) -> _Counts:
        return _Counts(state.count.copy())

    def open(self, state: _Counts, elements: Int) -> Bool:
        part = self._part[elements]
        free: Bool = state.count[part] < self._capacity[part]
        return free

    def add(self, state: _Counts, element: int) -> None:
        state.count[self._part[element]] += 1

    def ceiling(self, weight: Float) -> float:
        order = np.lexsort((-weight, self._part))
        place = np.arange(self.size) - self._first[self._part[order]]
        return float(weight[order][place < self._capacity[self._part[order]]].sum())


class Uniform(Partition):
    """At most k of `size` elements."""

    def __init__(self, size: int, k: int) -> None:
        if size < 0:
            raise ValueError(f"size {size}: expected 0 or more")
        super().__init__(np.zeros(size, dtype=np.int64), k)


class Laminar:
    """At most capacities[i] elements of sets[i], where of any two sets one holds the other or they share nothing."""

    matroid = True
    matroids: int | None = 1

    def __init__(self, size: int, sets: Sequence[Sequence[int] | Int], capacities: Sequence[int] | Int) -> None:
        self.size = size
        members = [np.unique(np.asarray(one, dtype=np.int64)) for one in sets]
        self._capacity = np.append(
            capacities_of(capacities, len(members), np.int64), size
        )  # one more that always has room
        chains: list[list[int]] = [[] for _ in range(size)]
        innermost = np.full(size, -1)
        for i in sorted(range(len(members)), key=lambda i: (-len(members[i]), i)):
            inside = members[i]
            if len(inside) and (inside[0] < 0 or inside[-1] >= size):
                raise ValueError(f"sets[{i}] has elements {inside[0]} to {inside[-1]}: expected 0 to {size - 1}")
            # Larger sets came before: what holds one element of this set must hold all.
            around = np.unique(innermost[inside])
            if len(around) > 1:
                raise ValueError(f"sets[{i}] and sets[{around[-1]}] overlap, and neither holds the other: not laminar")
            innermost[inside] = i
            for element in inside.tolist():
                chains[element].append(i)
        depth = max(map(len, chains), default=0)
        padded = [chain + [len(members)] * (depth - len(chain)) for chain in chains]
        self._chain = np.array(padded, dtype=np.int64).reshape(size, depth)
        self._real = len(members)

    def start(self) -> _Counts:
        return _Counts(np.zeros(self._real + 1, dtype=np.int64))

    def copy(self, state: _Counts) -> _Counts:
        return _Counts(state.count.copy())

    def open(self, state: _Counts, elements: Int) -> Bool:
        chain = self._chain[elements]
        return np.asarray((state.count[chain] < self._capacity[chain]).all(axis=1))

    def add(self, state: _Counts, element: int) -> None:
        chain = self._chain[element]
        state.count[chain[chain < self._real]] += 1


def parts_of(part: Sequence[int] | Int) -> tuple[Int, int]:
    """The part of each element (n,), and how many parts there are; or a ValueError."""
    array = np.asarray(part, dtype=np.int64)
    if array.ndim != 1:
        raise ValueError(f"part {array.shape}: expected one number for each element")
    if array.min(initial=0) < 0:
        raise ValueError(f"part {array.min()}: expected 0 or more")
    return array, int(array.max(initial=-1)) + 1


def capacities_of(capacity: Any, parts: int, dtype: type) -> NDArray[Any]:
    """(parts,) or more, from one for each part or one for all; or a ValueError."""
    array: NDArray[Any] = np.asarray(capacity).astype(dtype)
    if array.ndim == 0:
        array = np.full(parts, array)
    if array.ndim != 1 or len(array) < parts:
        raise ValueError(f"{array.size} capacities for {parts} parts: expected one for each")
    if not (array >= 0).all():
        raise ValueError(f"capacity {array.min()}: expected 0 or more")
    return array
