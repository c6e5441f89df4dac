"""Which sets may be chosen: independence oracles.

A set that may be chosen is *independent*; every subset of one is too. As with functions, the sets are grown from the
empty one, and a state belongs to whoever asked for it. A *matroid* is a family in which of two independent sets the
larger one has an element that may be added to the smaller: all maximal sets are then equally large, and greedy
algorithms are good.

    Uniform        at most k elements                                          a matroid
    Partition      at most so many of each part                                a matroid
    Laminar        at most so many of each of several nested sets              a matroid
    Knapsacks      at most so much weight of each part                         no matroid
    Intersection   what is independent in each of several                      in general no matroid, but several
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from placeopt.ir import Bool, Int
from placeopt.levels import Float
from placeopt.submodular.functions import AnySetFunction

State = TypeVar("State")


@runtime_checkable
class Independence(Protocol[State]):
    """Which subsets of {0, ..., size - 1} are independent.

    Attributes
    ----------
    matroid
        Whether it is claimed to be a matroid.
    matroids
        The number of matroids that it is claimed to be the intersection of: 1 for a matroid; None where that is unknown
        or large, as for knapsacks.
    """

    size: int
    matroid: bool
    matroids: int | None

    def start(self) -> State:
        """The state of the empty set."""

    def copy(self, state: State) -> State:
        """A state that may go on by itself."""

    def open(self, state: State, elements: Int) -> Bool:
        """(k,) Whether the set stays independent with the element, for each of `elements` (k,), none of them in it."""

    def add(self, state: State, element: int) -> None:
        """Put an open element into the state's set."""


@runtime_checkable
class Ceiled(Protocol):
    """A family that knows quickly how heavy its sets are at most."""

    def ceiling(self, weight: Float) -> float:
        """At least the weight of any independent set, for weights (n,), none negative."""


AnyIndependence = Independence[Any]


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
        self._part, parts = _parts(part)
        self.size = len(self._part)
        self._capacity = _capacities(capacity, parts, np.int64)
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
            _capacities(capacities, len(members), np.int64), size
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


@dataclass(slots=True)
class _Weights:
    load: NDArray[Any]


class Knapsacks:
    """At most capacity[i] weight of the elements of part i: a knapsack per device.

    `part` (n,) and `weight` (n,), none negative; `capacity` (parts,) or one for all. Integers are counted exactly. What
    has weight 0 may still be added to a part that is full.
    """

    matroid = False
    matroids: int | None = None

    def __init__(
        self, part: Sequence[int] | Int, weight: Sequence[float] | NDArray[Any], capacity: Sequence[float] | Any
    ) -> None:
        self._part, parts = _parts(part)
        self.size = len(self._part)
        self._weight = np.asarray(weight)
        if self._weight.shape != self._part.shape:
            raise ValueError(
                f"part {self._part.shape} and weight {self._weight.shape}: expected one of each an element"
            )
        if self._weight.dtype.kind not in "iu":
            self._weight = self._weight.astype(np.float64)
        if not (self._weight >= 0).all():
            raise ValueError(f"weight {self._weight.min()}: expected 0 or more")
        whole = self._weight.dtype.kind in "iu" and np.asarray(capacity).dtype.kind in "iu"
        self._capacity = _capacities(capacity, parts, np.int64 if whole else np.float64)
        self._weight = self._weight.astype(np.int64 if whole else np.float64)

    def start(self) -> _Weights:
        return _Weights(np.zeros_like(self._capacity))

    def copy(self, state: _Weights) -> _Weights:
        return _Weights(state.load.copy())

    def open(self, state: _Weights, elements: Int) -> Bool:
        part = self._part[elements]
        # Not load + weight: that may leave the range of integers where capacities are next to unlimited.
        fits: Bool = self._weight[elements] <= self._capacity[part] - state.load[part]
        return fits

    def add(self, state: _Weights, element: int) -> None:
        state.load[self._part[element]] += self._weight[element]

    def ceiling(self, weight: Float) -> float:
        """Elements may be cut: the densest first, then what of the next one fits."""
        fits = self._weight <= self._capacity[self._part]
        density = np.divide(weight, self._weight, out=np.full(self.size, np.inf), where=self._weight > 0)
        order = np.lexsort((-density, self._part))
        order = order[fits[order]]
        part, need = self._part[order], self._weight[order].astype(np.float64)
        running = np.cumsum(need)
        first = np.searchsorted(part, np.arange(len(self._capacity)))
        before = np.append(0.0, running)[first][part]
        room = np.clip(self._capacity[part] - (running - need - before), 0.0, need)
        share = np.divide(room, need, out=np.ones(len(order)), where=need > 0)
        return float((weight[order] * share).sum())


class Knapsack(Knapsacks):
    """At most `capacity` weight in all."""

    def __init__(self, weight: Sequence[float] | NDArray[Any], capacity: float) -> None:
        super().__init__(np.zeros(len(weight), dtype=np.int64), weight, capacity)


class Intersection:
    """The sets that are independent in each of the `members`."""

    def __init__(self, *members: AnyIndependence) -> None:
        if not members:
            raise ValueError("an intersection of nothing: expected one family at least")
        sizes = [member.size for member in members]
        if len(set(sizes)) > 1:
            raise ValueError(f"families over {sizes} elements: expected as many in each")
        self.members = members
        self.size = sizes[0]
        self.matroid = len(members) == 1 and members[0].matroid
        counts = [member.matroids for member in members if member.matroids is not None]
        self.matroids = sum(counts) if len(counts) == len(members) else None

    def start(self) -> list[Any]:
        return [member.start() for member in self.members]

    def copy(self, state: list[Any]) -> list[Any]:
        return [member.copy(one) for member, one in zip(self.members, state, strict=True)]

    def open(self, state: list[Any], elements: Int) -> Bool:
        free = np.ones(len(elements), dtype=np.bool_)
        for member, one in zip(self.members, state, strict=True):
            free &= member.open(one, elements)
        return free

    def add(self, state: list[Any], element: int) -> None:
        for member, one in zip(self.members, state, strict=True):
            member.add(one, element)

    def ceiling(self, weight: Float) -> float:
        """The least that any member says; all of the weight where none says anything."""
        said = [ceiling_of(member, weight) for member in self.members]
        return min([float(weight.sum()), *(one for one in said if one is not None)])


def grown(oracle: AnyIndependence | AnySetFunction, elements: Iterable[int]) -> Any:
    """The state of an independent set, or of any set in the order given."""
    state = oracle.start()
    for element in elements:
        oracle.add(state, element)
    return state


def is_independent(independence: AnyIndependence, elements: Sequence[int]) -> bool:
    """Whether a set, in any order, is independent."""
    state = independence.start()
    for element in elements:
        if not independence.open(state, np.array([element]))[0]:
            return False
        independence.add(state, element)
    return True


def heaviest(independence: AnyIndependence, weight: Float, limit: int | None = None) -> Int:
    """(k,) A maximal independent set, put together from the heaviest element down, ties to the least index.

    The heaviest there is when the family is a matroid (and no weight is negative). With a `limit` it stops there.
    """
    order = np.argsort(-weight, kind="stable")
    state = independence.start()
    chosen: list[int] = []
    at, width = 0, 1
    while at < len(order) and (limit is None or len(chosen) < limit):
        free = np.flatnonzero(independence.open(state, order[at : at + width]))
        if len(free) == 0:
            # Closed once is closed for good.
            at, width = at + width, 2 * width
            continue
        element = int(order[at + free[0]])
        independence.add(state, element)
        chosen.append(element)
        at, width = at + int(free[0]) + 1, max(1, int(free[0]))
    return np.array(chosen, dtype=np.int64)


def ceiling_of(independence: AnyIndependence, weight: Float) -> float | None:
    """At least the weight of any independent set, for weights (n,), none negative; None where nothing is known."""
    if isinstance(independence, Ceiled):
        return independence.ceiling(weight)
    if independence.matroid:
        return float(weight[heaviest(independence, weight)].sum())
    return None


def _parts(part: Sequence[int] | Int) -> tuple[Int, int]:
    array = np.asarray(part, dtype=np.int64)
    if array.ndim != 1:
        raise ValueError(f"part {array.shape}: expected one number for each element")
    if array.min(initial=0) < 0:
        raise ValueError(f"part {array.min()}: expected 0 or more")
    return array, int(array.max(initial=-1)) + 1


def _capacities(capacity: Any, parts: int, dtype: type) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(capacity).astype(dtype)
    if array.ndim == 0:
        array = np.full(parts, array)
    if array.ndim != 1 or len(array) < parts:
        raise ValueError(f"{array.size} capacities for {parts} parts: expected one for each")
    if not (array >= 0).all():
        raise ValueError(f"capacity {array.min()}: expected 0 or more")
    return array
