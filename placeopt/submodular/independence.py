"""Which sets may be chosen: independence oracles.

A set that may be chosen is *independent*; every subset of one is too. As with functions, the sets are grown from the
empty one, and a state belongs to whoever asked for it. A *matroid* is a family in which of two independent sets the
larger one has an element that may be added to the smaller: all maximal sets are then equally large, and greedy
algorithms are good.

Families are in `placeopt.submodular.matroids` and `placeopt.submodular.knapsacks`; an `Intersection` has the sets that
are independent in each of several, in general no matroid itself, but one of so many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from placeopt.model.arrays import Bool, Float, Int
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
    return in_order(independence, np.argsort(-weight, kind="stable"), limit)


def in_order(independence: AnyIndependence, order: Int, limit: int | None = None) -> Int:
    """(k,) The elements of `order` that may be added one after the other, up to a `limit` of them."""
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
