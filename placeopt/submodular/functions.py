"""Set functions: the interface that the maximisers use, and four common families.

    ConcaveOverModular   sum over parts of g(total weight chosen in the part), g concave (Carbonari et al. 2017)
    WeightedCoverage     total weight of the items that the chosen elements cover
    FacilityLocation     sum over clients of the best benefit among the chosen elements
    Sum                  weighted sum of functions

The ground set is {0, 1, ..., size - 1}. A function is evaluated along a growing set: `start` returns the state of the
empty set, `add` adds one element to a state, and `gains` computes many marginal gains at once. States are mutable and
belong to the caller; the function itself never changes.

A function *claims* properties. The claims decide which maximisers apply and which guarantees they state.
`check_submodular` searches for counterexamples.

    submodular      f(S + e) - f(S) >= f(T + e) - f(T) for all S ⊆ T and e not in T
    monotone        f(S + e) - f(S) >= 0 for all S and e
    path_free       f(S) does not depend on the order in which the elements of S were added

A function of *sequences* (path_free = False) has the same interface. Submodularity is then required for all sequences
T that continue S.

The gain of an element must be the same float regardless of the other elements in the call: `greedy` evaluates all
elements at once and `lazy_greedy` a few at a time, and both must see equal numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from placeopt.model.arrays import Float, Int

State = TypeVar("State")
Seen = TypeVar("Seen", contravariant=True)


@runtime_checkable
class SetFunction(Protocol[State]):
    """A function of subsets of {0, ..., size - 1} with f(∅) >= 0."""

    size: int
    submodular: bool
    monotone: bool
    path_free: bool

    def start(self) -> State:
        """The state of the empty set."""

    def copy(self, state: State) -> State:
        """An independent copy of a state."""

    def value(self, state: State) -> float:
        """f(S) for the set S of the state."""

    def gains(self, state: State, elements: Int) -> Float:
        """(k,) f(S + e) - f(S) for each e in `elements` (k,), k >= 0, none of them in S."""

    def add(self, state: State, element: int) -> None:
        """Add an element outside S to the state."""


@runtime_checkable
class Refreshing(Protocol[Seen]):
    """A function that reports which gains may have increased, so that lazy evaluation stays exact."""

    def raised(self, state: Seen, element: int) -> Int:
        """(k,) The elements whose gain may have increased when `element`, the last one, was added."""


@runtime_checkable
class Local(Protocol[Seen]):
    """A function that reports which gains may have changed, so that lazy evaluation can reuse the others."""

    def changed(self, state: Seen, element: int) -> Int:
        """(k,) The elements whose gain may have changed when `element`, the last one, was added."""


AnySetFunction = SetFunction[Any]


class Shape(Protocol):
    """A function g of one number with g(0) = 0."""

    concave: bool
    rising: bool

    def __call__(self, load: Float) -> Float:
        """g of each load, for an array of any shape."""


@dataclass(slots=True)
class _Concave:
    """An increasing concave function."""

    function: Callable[[Float], Float]
    concave: bool = True
    rising: bool = True

    def __call__(self, load: Float) -> Float:
        return self.function(load)


SHAPES: dict[Literal["sqrt", "log1p"], Shape] = {"sqrt": _Concave(np.sqrt), "log1p": _Concave(np.log1p)}


class PiecewiseLinear:
    """A piecewise linear g with g(0) = 0.

    The slope is `slopes[i]` from `breakpoints[i]` to the next breakpoint. The first slope also holds below 0, and the
    last one after the last breakpoint. A last slope of 0 models a capacity: additional load has no gain.

    Parameters
    ----------
    breakpoints, slopes
        (k,), (k,) finite, k >= 1. Breakpoints start at 0 and increase.
    """

    def __init__(self, breakpoints: Sequence[float] | Float, slopes: Sequence[float] | Float) -> None:
        at = np.asarray(breakpoints, dtype=np.float64)
        slope = np.asarray(slopes, dtype=np.float64)
        if at.ndim != 1 or len(at) == 0 or at.shape != slope.shape:
            raise ValueError(f"breakpoints {at.shape} and slopes {slope.shape}: expected equal lengths of at least 1")
        if at[0] != 0 or (np.diff(at) <= 0).any() or not (np.isfinite(at).all() and np.isfinite(slope).all()):
            raise ValueError(f"breakpoints {at.tolist()}, slopes {slope.tolist()}: expected finite ones, rising from 0")
        self._at, self._slope = at, slope
        self._height = np.concatenate(([0.0], np.cumsum(np.diff(at) * slope[:-1])))
        self.concave = bool((np.diff(slope) <= 0).all())
        self.rising = bool((slope >= 0).all())
        self.linear = bool((slope == slope[0]).all())

    def __call__(self, load: Float) -> Float:
        i = np.maximum(np.searchsorted(self._at, load, side="right") - 1, 0)
        return np.asarray(self._height[i] + self._slope[i] * (load - self._at[i]))


class ConcaveOverModular:
    """f(S) = sum over parts i of g(sum of weight[e] over e in S with part[e] = i).

    Claims: submodular if g is concave and no weight is negative, or if g is linear. Monotone if g is also increasing
    and no weight is negative.

    Parameters
    ----------
    part
        (n,) The part 0, 1, ... of each element.
    weight
        (n,) Weights. Negative ones require a g that is defined below 0, such as `PiecewiseLinear`.
    shape
        g: `sqrt`, `log1p`, a `PiecewiseLinear`, or any other `Shape`.
    """

    path_free = True

    def __init__(
        self,
        part: Sequence[int] | Int,
        weight: Sequence[float] | Float,
        shape: Literal["sqrt", "log1p"] | Shape = "sqrt",
    ) -> None:
        self._part = np.asarray(part, dtype=np.int64)
        self._weight = _finite("weight", weight)
        if self._part.ndim != 1 or self._part.shape != self._weight.shape:
            raise ValueError(
                f"part {self._part.shape} and weight {self._weight.shape}: expected one of each an element"
            )
        if (self._part < 0).any():
            raise ValueError(f"part {self._part.min()}: expected 0 or more")
        least = self._weight.min(initial=0.0)
        if isinstance(shape, str):
            if shape not in SHAPES:
                raise ValueError(f"shape {shape!r}: expected one of {', '.join(SHAPES)}, or a Shape")
            if least < 0:
                raise ValueError(f"weight {least}: {shape} requires 0 or more")
        self._shape = SHAPES[shape] if isinstance(shape, str) else shape
        self.size = len(self._part)
        self.submodular = bool((self._shape.concave and least >= 0) or getattr(self._shape, "linear", False))
        self.monotone = bool(self._shape.rising and least >= 0)
        self._parts = int(self._part.max(initial=-1)) + 1
        self._members = np.argsort(self._part, kind="stable")
        self._first = np.searchsorted(self._part[self._members], np.arange(self._parts + 1))

    def start(self) -> Float:
        return np.zeros(self._parts)

    def copy(self, state: Float) -> Float:
        return state.copy()

    def value(self, state: Float) -> float:
        return float(self._shape(state).sum())

    def gains(self, state: Float, elements: Int) -> Float:
        load = state[self._part[elements]]
        return self._shape(load + self._weight[elements]) - self._shape(load)

    def add(self, state: Float, element: int) -> None:
        state[self._part[element]] += self._weight[element]

    def changed(self, state: Float, element: int) -> Int:  # noqa: ARG002 - the protocol's
        i = self._part[element]
        return self._members[self._first[i] : self._first[i + 1]]


@dataclass(slots=True)
class _Uncovered:
    weight: Float
    value: float


class WeightedCoverage:
    """f(S) = total weight of the items that at least one element of S covers.

    Parameters
    ----------
    covers
        For each element, the items 0, 1, ... that it covers.
    weight
        (items,) Weights, 0 or more; None: 1 for all.
    """

    submodular = monotone = path_free = True

    def __init__(self, covers: Sequence[Sequence[int] | Int], weight: Sequence[float] | Float | None = None) -> None:
        rows = [np.unique(np.asarray(row, dtype=np.int64)) for row in covers]
        self._start = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64)))
        self._item = np.concatenate([np.empty(0, dtype=np.int64), *rows])
        items = int(self._item.max(initial=-1)) + 1
        self._weight = np.ones(items) if weight is None else _finite("weight", weight, least=0.0)
        if len(self._weight) < items or self._item.min(initial=0) < 0:
            raise ValueError(f"items {self._item.min()} to {items - 1}: expected 0 to {len(self._weight) - 1}")
        self.size = len(rows)

    def start(self) -> _Uncovered:
        return _Uncovered(self._weight.copy(), 0.0)

    def copy(self, state: _Uncovered) -> _Uncovered:
        return _Uncovered(state.weight.copy(), state.value)

    def value(self, state: _Uncovered) -> float:
        return state.value

    def gains(self, state: _Uncovered, elements: Int) -> Float:
        count = self._start[elements + 1] - self._start[elements]
        row = np.repeat(np.arange(len(elements)), count)
        within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        item = self._item[np.repeat(self._start[elements], count) + within]
        # bincount adds the items of an element in their order, so the float does not depend on the other elements.
        return np.bincount(row, weights=state.weight[item], minlength=len(elements)).astype(np.float64, copy=False)

    def add(self, state: _Uncovered, element: int) -> None:
        items = self._item[self._start[element] : self._start[element + 1]]
        state.value += float(state.weight[items].sum())
        state.weight[items] = 0.0


class FacilityLocation:
    """f(S) = sum over clients of max(benefit[e, client] for e in S), with f(∅) = 0.

    Parameters
    ----------
    benefit
        (n, clients) Benefits, 0 or more.
    """

    submodular = monotone = path_free = True

    def __init__(self, benefit: Sequence[Sequence[float]] | Float) -> None:
        self._benefit = np.ascontiguousarray(_finite("benefit", benefit, least=0.0))
        if self._benefit.ndim != 2:
            raise ValueError(f"benefit {self._benefit.shape}: expected (elements, clients)")
        self.size = len(self._benefit)

    def start(self) -> Float:
        return np.zeros(self._benefit.shape[1])

    def copy(self, state: Float) -> Float:
        return state.copy()

    def value(self, state: Float) -> float:
        return float(state.sum())

    def gains(self, state: Float, elements: Int) -> Float:
        return np.asarray(np.maximum(self._benefit[elements] - state, 0.0).sum(axis=1))

    def add(self, state: Float, element: int) -> None:
        np.maximum(state, self._benefit[element], out=state)


class Composite:
    """A function or family whose state is the list of the states of its members."""

    members: Sequence[Any]

    def start(self) -> list[Any]:
        return [member.start() for member in self.members]

    def copy(self, state: list[Any]) -> list[Any]:
        return [member.copy(one) for member, one in zip(self.members, state, strict=True)]

    def add(self, state: list[Any], element: int) -> None:
        for member, one in zip(self.members, state, strict=True):
            member.add(one, element)


class Sum(Composite):
    """f(S) = sum of weights[i] functions[i](S), with weights >= 0; claims what all of the functions claim."""

    def __init__(self, functions: Sequence[AnySetFunction], weights: Sequence[float] | None = None) -> None:
        self.members = tuple(functions)
        factors = _finite("weight", [1.0] * len(self.members) if weights is None else weights, least=0.0)
        if not self.members or len(factors) != len(self.members):
            raise ValueError(
                f"{len(self.members)} functions, {len(factors)} weights: expected equal numbers of at least 1"
            )
        sizes = [function.size for function in self.members]
        if len(set(sizes)) > 1:
            raise ValueError(f"functions of {sizes} elements: expected equal sizes")
        self._weights = factors.tolist()
        self.size = sizes[0]
        self.submodular = all(function.submodular for function in self.members)
        self.monotone = all(function.monotone for function in self.members)
        self.path_free = all(function.path_free for function in self.members)

    def value(self, state: list[Any]) -> float:
        terms = zip(self.members, self._weights, state, strict=True)
        return float(sum(weight * function.value(one) for function, weight, one in terms))

    def gains(self, state: list[Any], elements: Int) -> Float:
        total = np.zeros(len(elements))
        for function, weight, one in zip(self.members, self._weights, state, strict=True):
            total += weight * function.gains(one, elements)
        return total


def _finite(name: str, numbers: Sequence[Any] | Float, least: float = -np.inf) -> Float:
    """The numbers as an array, or a ValueError if one is not finite or less than `least`."""
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} {array[~np.isfinite(array)][0]}: expected finite numbers")
    if array.min(initial=0.0) < least:
        raise ValueError(f"{name} {array.min()}: expected 0 or more")
    return array
