"""Independence families: the interface that the maximisers use, matroids, knapsacks, and intersections.

    Uniform        at most k elements                              matroid
    Partition      at most a given number of elements per part     matroid
    Knapsack       total weight at most the capacity               not a matroid
    Knapsacks      one knapsack per part, such as device memory    not a matroid
    Intersection   sets that are independent in several families

A family of *independent* sets contains the empty set and all subsets of its members. It is a *matroid* if, for
independent sets A and B with |A| < |B|, some element of B - A can be added to A. All maximal sets (*bases*) of a
matroid have the same size, its *rank*.

Independent sets grow from the empty set like those of a `SetFunction`: states are mutable and belong to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from placeopt.model.arrays import Bool, Float, Int
from placeopt.submodular.functions import AnySetFunction

State = TypeVar("State")


@runtime_checkable
class Independence(Protocol[State]):
    """A family of independent subsets of {0, ..., size - 1}."""

    size: int
    matroid: bool
    """Whether the family claims to be a matroid."""
    matroids: int | None
    """A number of matroids whose intersection the family claims to be, 1 for a matroid; None if unknown."""

    def start(self) -> State:
        """The state of the empty set."""

    def copy(self, state: State) -> State:
        """An independent copy of a state."""

    def open(self, state: State, elements: Int) -> Bool:
        """(k,) Whether S + e is independent for each e in `elements` (k,), none of them in S."""

    def add(self, state: State, element: int) -> None:
        """Add an open element to the state."""


@runtime_checkable
class WeightBounded(Protocol):
    """A family with a fast upper bound on the weight of independent sets."""

    def weight_bound(self, weight: Float) -> float:
        """An upper bound on the weight of any independent set, for weights (n,) of 0 or more."""


AnyIndependence = Independence[Any]


class _Counters:
    """A family whose state is an array with one counter per part or set."""

    _capacity: NDArray[Any]

    def start(self) -> NDArray[Any]:
        return np.zeros_like(self._capacity)

    def copy(self, state: NDArray[Any]) -> NDArray[Any]:
        return state.copy()


class Partition(_Counters):
    """At most capacity[i] elements of part i.

    Parameters
    ----------
    part
        (n,) The part 0, 1, ... of each element.
    capacity
        (parts,) or one number for all parts.
    """

    matroid = True
    matroids: int | None = 1

    def __init__(self, part: Sequence[int] | Int, capacity: Sequence[int] | Int | int = 1) -> None:
        self._part, parts = _parts(part)
        self.size = len(self._part)
        self._capacity = _capacities(capacity, parts, np.int64)
        self._first = np.searchsorted(np.sort(self._part), np.arange(parts))

    def open(self, state: Int, elements: Int) -> Bool:
        part = self._part[elements]
        return np.asarray(state[part] < self._capacity[part])

    def add(self, state: Int, element: int) -> None:
        state[self._part[element]] += 1

    def weight_bound(self, weight: Float) -> float:
        """The weight of a heaviest base."""
        order = np.lexsort((-weight, self._part))
        place = np.arange(self.size) - self._first[self._part[order]]
        return float(weight[order][place < self._capacity[self._part[order]]].sum())


class Uniform(Partition):
    """At most k of `size` elements."""

    def __init__(self, size: int, k: int) -> None:
        if size < 0:
            raise ValueError(f"size {size}: expected 0 or more")
        super().__init__(np.zeros(size, dtype=np.int64), k)


class Knapsacks(_Counters):
    """Total weight of at most capacity[i] in part i, such as one knapsack per device.

    Integer weights and capacities are compared exactly. An element of weight 0 fits a full part.

    Parameters
    ----------
    part
        (n,) The part 0, 1, ... of each element.
    weight
        (n,) Weights, 0 or more.
    capacity
        (parts,) or one number for all parts.
    """

    matroid = False
    matroids: int | None = None

    def __init__(
        self, part: Sequence[int] | Int, weight: Sequence[float] | NDArray[Any], capacity: Sequence[float] | Any
    ) -> None:
        self._part, parts = _parts(part)
        self.size = len(self._part)
        weights = np.asarray(weight)
        if weights.shape != self._part.shape:
            raise ValueError(f"part {self._part.shape} and weight {weights.shape}: expected one of each an element")
        if not (weights >= 0).all():
            raise ValueError(f"weight {weights.min()}: expected 0 or more")
        exact = weights.dtype.kind in "iu" and np.asarray(capacity).dtype.kind in "iu"
        self._weight: NDArray[Any] = weights.astype(np.int64 if exact else np.float64)
        self._capacity = _capacities(capacity, parts, np.int64 if exact else np.float64)

    def open(self, state: NDArray[Any], elements: Int) -> Bool:
        part = self._part[elements]
        # Not load + weight, which may overflow if capacities are close to the largest integer.
        return np.asarray(self._weight[elements] <= self._capacity[part] - state[part])

    def add(self, state: NDArray[Any], element: int) -> None:
        state[self._part[element]] += self._weight[element]

    def weight_bound(self, weight: Float) -> float:
        """The fractional optimum (Dantzig): the elements with the greatest ratios fill each part."""
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
    """Total weight of at most `capacity`."""

    def __init__(self, weight: Sequence[float] | NDArray[Any], capacity: float) -> None:
        super().__init__(np.zeros(len(weight), dtype=np.int64), weight, capacity)


class Intersection:
    """The sets that are independent in each of the `members`."""

    def __init__(self, *members: AnyIndependence) -> None:
        if not members:
            raise ValueError("an intersection of no families: expected at least one")
        sizes = [member.size for member in members]
        if len(set(sizes)) > 1:
            raise ValueError(f"families over {sizes} elements: expected equal sizes")
        self.members = members
        self.size = sizes[0]
        self.matroid = len(members) == 1 and members[0].matroid
        counts = [member.matroids for member in members if member.matroids is not None]
        self.matroids = sum(counts) if len(counts) == len(members) else None

    def start(self) -> list[Any]:
        return [member.start() for member in self.members]

    def copy(self, state: list[Any]) -> list[Any]:
        return [member.copy(one) for member, one in zip(self.members, state, strict=True)]

    def add(self, state: list[Any], element: int) -> None:
        for member, one in zip(self.members, state, strict=True):
            member.add(one, element)

    def open(self, state: list[Any], elements: Int) -> Bool:
        free = np.ones(len(elements), dtype=np.bool_)
        for member, one in zip(self.members, state, strict=True):
            free &= member.open(one, elements)
        return free

    def weight_bound(self, weight: Float) -> float:
        """The least upper bound of the members; the total weight if none has one."""
        bounds = [weight_bound_of(member, weight) for member in self.members]
        return min([float(weight.sum()), *(bound for bound in bounds if bound is not None)])


def state_of(oracle: AnyIndependence | AnySetFunction, elements: Iterable[int]) -> Any:
    """The state after adding the elements to the empty set in the given order."""
    state = oracle.start()
    for element in elements:
        oracle.add(state, element)
    return state


def is_independent(independence: AnyIndependence, elements: Sequence[int]) -> bool:
    """Whether a set, given in any order, is independent."""
    state = independence.start()
    for element in elements:
        if not independence.open(state, np.array([element]))[0]:
            return False
        independence.add(state, element)
    return True


def heaviest(independence: AnyIndependence, weight: Float) -> Int:
    """(r,) A maximal independent set, built from the heaviest element down; ties go to the lowest index.

    In a matroid with weights of 0 or more, no independent set is heavier.
    """
    return maximal_subset(independence, np.argsort(-weight, kind="stable"))


def maximal_subset(independence: AnyIndependence, order: Int, limit: int | None = None) -> Int:
    """(k,) The elements of `order` that can be added one after another, at most `limit` of them."""
    state = independence.start()
    chosen: list[int] = []
    at, width = 0, 1
    while at < len(order) and (limit is None or len(chosen) < limit):
        free = np.flatnonzero(independence.open(state, order[at : at + width]))
        if len(free) == 0:  # an element that is not open never opens again
            at, width = at + width, 2 * width
            continue
        element = int(order[at + free[0]])
        independence.add(state, element)
        chosen.append(element)
        at, width = at + int(free[0]) + 1, max(1, int(free[0]))
    return np.array(chosen, dtype=np.int64)


def weight_bound_of(independence: AnyIndependence, weight: Float) -> float | None:
    """An upper bound on the weight of any independent set, for weights (n,) of 0 or more; None if unknown."""
    if isinstance(independence, WeightBounded):
        return independence.weight_bound(weight)
    if independence.matroid:
        return float(weight[heaviest(independence, weight)].sum())
    return None


def _parts(part: Sequence[int] | Int) -> tuple[Int, int]:
    """The part of each element (n,) and the number of parts."""
    array = np.asarray(part, dtype=np.int64)
    if array.ndim != 1:
        raise ValueError(f"part {array.shape}: expected one number for each element")
    if array.min(initial=0) < 0:
        raise ValueError(f"part {array.min()}: expected 0 or more")
    return array, int(array.max(initial=-1)) + 1


def _capacities(capacity: Any, parts: int, dtype: type) -> NDArray[Any]:
    """(parts,) or more capacities."""
    array: NDArray[Any] = np.asarray(capacity).astype(dtype)
    if array.ndim == 0:
        array = np.full(parts, array)
    if array.ndim != 1 or len(array) < parts:
        raise ValueError(f"{array.size} capacities for {parts} parts: expected one for each")
    if not (array >= 0).all():
        raise ValueError(f"capacity {array.min()}: expected 0 or more")
    return array
