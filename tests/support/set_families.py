"""Set functions and a matroid as instances for the maximisers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.model.arrays import Bool, Float, Int
from placeopt.submodular.functions import AnySetFunction


class PiecewiseLinear:
    """g with slope `slopes[i]` from `breakpoints[i]`, the first of which is 0, to the next one."""

    def __init__(self, breakpoints: Sequence[float], slopes: Sequence[float]) -> None:
        self._at, self._slope = np.asarray(breakpoints, dtype=np.float64), np.asarray(slopes, dtype=np.float64)
        self._height = np.concatenate(([0.0], np.cumsum(np.diff(self._at) * self._slope[:-1])))
        self.concave = bool((np.diff(self._slope) <= 0).all())
        self.rising = bool((self._slope >= 0).all())

    def __call__(self, load: Float) -> Float:
        i = np.maximum(np.searchsorted(self._at, load, side="right") - 1, 0)
        return np.asarray(self._height[i] + self._slope[i] * (load - self._at[i]))


class ConcaveOverModular:
    """f(S) = sum over parts of g(total weight of S in the part), for weights of 0 or more."""

    path_free = True

    def __init__(
        self,
        part: Sequence[int] | Int,
        weight: Sequence[float] | Float,
        shape: Callable[[Float], Float] = np.sqrt,
    ) -> None:
        self._part, self._weight = np.asarray(part, dtype=np.int64), np.asarray(weight, dtype=np.float64)
        self._shape = shape
        self.size = len(self._part)
        self.submodular, self.monotone = getattr(shape, "concave", True), getattr(shape, "rising", True)

    def start(self) -> Float:
        return np.zeros(int(self._part.max(initial=-1)) + 1)

    def copy(self, state: Float) -> Float:
        return state.copy()

    def value(self, state: Float) -> float:
        return float(self._shape(state).sum())

    def gains(self, state: Float, elements: Int) -> Float:
        load = state[self._part[elements]]
        return self._shape(load + self._weight[elements]) - self._shape(load)

    def add(self, state: Float, element: int) -> None:
        state[self._part[element]] += self._weight[element]


@dataclass(slots=True)
class _Uncovered:
    weight: Float
    value: float


class WeightedCoverage:
    """f(S) = total weight of the items that at least one element of S covers."""

    submodular = monotone = path_free = True

    def __init__(self, covers: Sequence[Sequence[int] | Int], weight: Sequence[float] | Float | None = None) -> None:
        self._items = [np.unique(np.asarray(row, dtype=np.int64)) for row in covers]
        items = 1 + max((int(row.max(initial=-1)) for row in self._items), default=-1)
        self._weight = np.ones(items) if weight is None else np.asarray(weight, dtype=np.float64)
        self.size = len(self._items)

    def start(self) -> _Uncovered:
        return _Uncovered(self._weight.copy(), 0.0)

    def copy(self, state: _Uncovered) -> _Uncovered:
        return _Uncovered(state.weight.copy(), state.value)

    def value(self, state: _Uncovered) -> float:
        return state.value

    def gains(self, state: _Uncovered, elements: Int) -> Float:
        return np.array([state.weight[self._items[element]].sum() for element in elements.tolist()], dtype=np.float64)

    def add(self, state: _Uncovered, element: int) -> None:
        items = self._items[element]
        state.value += float(state.weight[items].sum())
        state.weight[items] = 0.0


class Sum:
    """f(S) = sum of weights[i] functions[i](S), with weights of 0 or more."""

    def __init__(self, functions: Sequence[AnySetFunction], weights: Sequence[float]) -> None:
        self._terms = list(zip(functions, weights, strict=True))
        self.size = functions[0].size
        self.submodular = all(function.submodular for function in functions)
        self.monotone = all(function.monotone for function in functions)
        self.path_free = all(function.path_free for function in functions)

    def start(self) -> list[Any]:
        return [function.start() for function, _ in self._terms]

    def copy(self, state: list[Any]) -> list[Any]:
        return [function.copy(one) for (function, _), one in zip(self._terms, state, strict=True)]

    def value(self, state: list[Any]) -> float:
        return sum(weight * function.value(one) for (function, weight), one in zip(self._terms, state, strict=True))

    def gains(self, state: list[Any], elements: Int) -> Float:
        total = np.zeros(len(elements))
        for (function, weight), one in zip(self._terms, state, strict=True):
            total += weight * function.gains(one, elements)
        return total

    def add(self, state: list[Any], element: int) -> None:
        for (function, _), one in zip(self._terms, state, strict=True):
            function.add(one, element)


class Laminar:
    """A matroid: at most capacities[i] elements of sets[i]; two sets are disjoint, or one contains the other."""

    matroid = True
    matroids: int | None = 1

    def __init__(self, size: int, sets: Sequence[Sequence[int] | Int], capacities: Sequence[int] | Int) -> None:
        self.size, self._capacity = size, np.asarray(capacities, dtype=np.int64)
        self._inside = np.zeros((len(sets), size), dtype=np.bool_)
        for row, members in zip(self._inside, sets, strict=True):
            row[np.asarray(members, dtype=np.int64)] = True

    def start(self) -> Int:
        return np.zeros_like(self._capacity)

    def copy(self, state: Int) -> Int:
        return state.copy()

    def open(self, state: Int, elements: Int) -> Bool:
        full = (state >= self._capacity)[:, None]
        return np.asarray(~(self._inside[:, elements] & full).any(axis=0))

    def add(self, state: Int, element: int) -> None:
        state += self._inside[:, element]
