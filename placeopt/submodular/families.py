"""Set functions that are common enough to have here.

    ConcaveOverModular   sum over parts of g(weight of what is chosen of the part), g concave (Carbonari et al.)
    WeightedCoverage     weight of all that the chosen elements cover
    FacilityLocation     each client is served by the best of the chosen elements
    Sum                  of any functions, with weights

What they claim (see `placeopt.submodular.functions`) is worked out from their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction


class Shape(Protocol):
    """A function of one number, g(0) = 0."""

    concave: bool
    rising: bool

    def __call__(self, load: Float) -> Float:
        """g of each of the loads, of any array shape."""


class _Root:
    concave = rising = True

    def __call__(self, load: Float) -> Float:
        return np.sqrt(load)


class _Logarithm:
    concave = rising = True

    def __call__(self, load: Float) -> Float:
        return np.log1p(load)


class PiecewiseLinear:
    """g(0) = 0, with slope `slopes[i]` from `breakpoints[i]` to the next one, and the last slope from there on.

    The breakpoints (k,) start at 0 and rise; below 0 the first slope holds. A single slope is a linear function. Where
    the last slope is 0, more brings no gain: a full device.
    """

    def __init__(self, breakpoints: Sequence[float] | Float, slopes: Sequence[float] | Float) -> None:
        at = np.asarray(breakpoints, dtype=np.float64)
        slope = np.asarray(slopes, dtype=np.float64)
        if at.ndim != 1 or len(at) == 0 or at.shape != slope.shape:
            raise ValueError(f"breakpoints {at.shape} and slopes {slope.shape}: expected as many of both, one at least")
        if at[0] != 0 or (np.diff(at) <= 0).any() or not (np.isfinite(at).all() and np.isfinite(slope).all()):
            raise ValueError(f"breakpoints {at.tolist()}, slopes {slope.tolist()}: expected finite ones, rising from 0")
        self._at, self._slope = at, slope
        self._height = np.concatenate(([0.0], np.cumsum(np.diff(at) * slope[:-1])))
        self.concave = bool((np.diff(slope) <= 0).all())
        self.rising = bool((slope >= 0).all())
        self.linear = bool((slope == slope[0]).all())

    def __call__(self, load: Float) -> Float:
        i = np.maximum(np.searchsorted(self._at, load, side="right") - 1, 0)
        height: Float = self._height[i] + self._slope[i] * (load - self._at[i])
        return height


SHAPES: dict[Literal["sqrt", "log1p"], Shape] = {"sqrt": _Root(), "log1p": _Logarithm()}


@dataclass(slots=True)
class _Loads:
    load: Float


class ConcaveOverModular:
    """f(S) = sum over the parts i of g(sum of weight[e] for e in S with part[e] = i).

    Parameters
    ----------
    part
        (n,) The part 0, 1, ... of each element.
    weight
        (n,) Weights; none negative but with a piecewise linear g.
    shape
        g: `sqrt`, `log1p`, a `PiecewiseLinear`, or any other `Shape`.

    Claims: submodular if g is concave and no weight is negative (or g is linear), monotone if moreover g does not fall.
    """

    path_free = True

    def __init__(
        self,
        part: Sequence[int] | Int,
        weight: Sequence[float] | Float,
        shape: Literal["sqrt", "log1p"] | Shape = "sqrt",
    ) -> None:
        self._part = np.asarray(part, dtype=np.int64)
        self._weight = finite("weight", weight)
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
                raise ValueError(f"weight {least}: {shape} expects no negative one")
        self._shape = SHAPES[shape] if isinstance(shape, str) else shape
        self.size = len(self._part)
        self.submodular = bool((self._shape.concave and least >= 0) or getattr(self._shape, "linear", False))
        self.monotone = bool(self._shape.rising and least >= 0)
        self._parts = int(self._part.max(initial=-1)) + 1
        self._members = np.argsort(self._part, kind="stable")
        self._first = np.searchsorted(self._part[self._members], np.arange(self._parts + 1))

    def start(self) -> _Loads:
        return _Loads(np.zeros(self._parts))

    def copy(self, state: _Loads) -> _Loads:
        return _Loads(state.load.copy())

    def value(self, state: _Loads) -> float:
        return float(self._shape(state.load).sum())

    def gains(self, state: _Loads, elements: Int) -> Float:
        load = state.load[self._part[elements]]
        return self._shape(load + self._weight[elements]) - self._shape(load)

    def add(self, state: _Loads, element: int) -> None:
        state.load[self._part[element]] += self._weight[element]

    def changed(self, state: _Loads, element: int) -> Int:  # noqa: ARG002 - the protocol's
        i = self._part[element]
        return self._members[self._first[i] : self._first[i + 1]]


@dataclass(slots=True)
class _Uncovered:
    weight: Float
    value: float


class WeightedCoverage:
    """f(S) = weight of the items that at least one element of S covers.

    `covers` has for each element the items 0, 1, ... that it covers; `weight` (items,), none negative, is 1 for all
    when it is not given.
    """

    submodular = monotone = path_free = True

    def __init__(self, covers: Sequence[Sequence[int] | Int], weight: Sequence[float] | Float | None = None) -> None:
        rows = [np.unique(np.asarray(row, dtype=np.int64)) for row in covers]
        self._start = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64)))
        self._item = np.concatenate([np.empty(0, dtype=np.int64), *rows])
        items = int(self._item.max(initial=-1)) + 1
        self._weight = np.ones(items) if weight is None else finite("weight", weight)
        if len(self._weight) < items or self._item.min(initial=0) < 0:
            raise ValueError(f"items {self._item.min()} to {items - 1}: expected 0 to {len(self._weight) - 1}")
        if self._weight.min(initial=0.0) < 0:
            raise ValueError(f"weight {self._weight.min()}: expected no negative one")
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
        # bincount adds the items of an element one after another: the same float in any company.
        return np.bincount(row, weights=state.weight[item], minlength=len(elements)).astype(np.float64, copy=False)

    def add(self, state: _Uncovered, element: int) -> None:
        items = self._item[self._start[element] : self._start[element + 1]]
        state.value += float(state.weight[items].sum())
        state.weight[items] = 0.0


@dataclass(slots=True)
class _Served:
    best: Float


class FacilityLocation:
    """f(S) = sum over clients of the greatest benefit[e, client] for e in S, 0 for the empty set.

    `benefit` (n, clients), none negative.
    """

    submodular = monotone = path_free = True

    def __init__(self, benefit: Sequence[Sequence[float]] | Float) -> None:
        self._benefit = np.ascontiguousarray(finite("benefit", benefit))
        if self._benefit.ndim != 2:
            raise ValueError(f"benefit {self._benefit.shape}: expected (elements, clients)")
        if self._benefit.min(initial=0.0) < 0:
            raise ValueError(f"benefit {self._benefit.min()}: expected no negative one")
        self.size = len(self._benefit)

    def start(self) -> _Served:
        return _Served(np.zeros(self._benefit.shape[1]))

    def copy(self, state: _Served) -> _Served:
        return _Served(state.best.copy())

    def value(self, state: _Served) -> float:
        return float(state.best.sum())

    def gains(self, state: _Served, elements: Int) -> Float:
        more: Float = np.maximum(self._benefit[elements] - state.best, 0.0).sum(axis=1)
        return more

    def add(self, state: _Served, element: int) -> None:
        np.maximum(state.best, self._benefit[element], out=state.best)


class Sum:
    """f(S) = sum of weights[i] * functions[i](S), no weight negative; claims what all of them claim."""

    def __init__(self, functions: Sequence[AnySetFunction], weights: Sequence[float] | None = None) -> None:
        self._functions = tuple(functions)
        factors = finite("weights", [1.0] * len(self._functions) if weights is None else weights)
        if not self._functions or len(factors) != len(self._functions):
            raise ValueError(
                f"{len(self._functions)} functions, {len(factors)} weights: expected as many, one at least"
            )
        if factors.min() < 0:
            raise ValueError(f"weight {factors.min()}: expected no negative one")
        sizes = [function.size for function in self._functions]
        if len(set(sizes)) > 1:
            raise ValueError(f"functions of {sizes} elements: expected as many in each")
        self._weights = factors.tolist()
        self.size = sizes[0]
        self.submodular = all(function.submodular for function in self._functions)
        self.monotone = all(function.monotone for function in self._functions)
        self.path_free = all(function.path_free for function in self._functions)

    def start(self) -> list[Any]:
        return [function.start() for function in self._functions]

    def copy(self, state: list[Any]) -> list[Any]:
        return [function.copy(one) for function, one in zip(self._functions, state, strict=True)]

    def value(self, state: list[Any]) -> float:
        terms = zip(self._functions, self._weights, state, strict=True)
        return float(sum(weight * function.value(one) for function, weight, one in terms))

    def gains(self, state: list[Any], elements: Int) -> Float:
        total = np.zeros(len(elements))
        for function, weight, one in zip(self._functions, self._weights, state, strict=True):
            total += weight * function.gains(one, elements)
        return total

    def add(self, state: list[Any], element: int) -> None:
        for function, one in zip(self._functions, state, strict=True):
            function.add(one, element)


def finite(name: str, numbers: Sequence[Any] | Float) -> Float:
    """The numbers as an array, or a ValueError."""
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} {array[~np.isfinite(array)][0]}: expected finite numbers")
    return array
