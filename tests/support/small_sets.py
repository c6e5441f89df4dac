"""Enumeration of small ground sets, and random functions and families over them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from set_families import ConcaveOverModular, Laminar, PiecewiseLinear, Sum, WeightedCoverage

from placeopt.model.arrays import Bool, Float, Int
from placeopt.submodular import (
    FacilityLocation,
    Intersection,
    Knapsacks,
    Partition,
    Uniform,
)
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, is_independent, state_of

Subset = tuple[int, ...]


class Cut:
    """The weight of the edges between S and its complement: submodular, not monotone, written outside the toolkit."""

    submodular = path_free = True
    monotone = False

    def __init__(self, weight: Float) -> None:
        self.size = len(weight)
        self._weight = weight

    def start(self) -> set[int]:
        return set()

    def copy(self, state: set[int]) -> set[int]:
        return set(state)

    def value(self, state: set[int]) -> float:
        inside = sorted(state)
        return float(np.delete(self._weight[inside], inside, axis=1).sum())

    def gains(self, state: set[int], elements: Int) -> Float:
        return np.array([self.value(state | {i}) - self.value(state) for i in elements.tolist()])

    def add(self, state: set[int], element: int) -> None:
        state.add(element)


class Strict:
    """A function or family that fails on calls that the protocol does not define."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def start(self) -> list[Any]:
        return [self._inner.start(), set()]

    def copy(self, state: list[Any]) -> list[Any]:
        return [self._inner.copy(state[0]), set(state[1])]

    def value(self, state: list[Any]) -> float:
        return float(self._inner.value(state[0]))

    def gains(self, state: list[Any], elements: Int) -> Float:
        self._outside(state, elements)
        return np.asarray(self._inner.gains(state[0], elements))

    def open(self, state: list[Any], elements: Int) -> Bool:
        self._outside(state, elements)
        return np.asarray(self._inner.open(state[0], elements))

    def add(self, state: list[Any], element: int) -> None:
        self._outside(state, np.array([element]))
        if hasattr(self._inner, "open"):
            assert self._inner.open(state[0], np.array([element]))[0], f"{element} is not open"
        self._inner.add(state[0], element)
        state[1].add(element)

    def _outside(self, state: list[Any], elements: Int) -> None:
        assert elements.dtype == np.int64
        assert len(set(elements.tolist())) == len(elements)
        assert not state[1] & set(elements.tolist()), "called with elements of the set"


def subsets(size: int) -> Iterator[Subset]:
    for k in range(size + 1):
        yield from combinations(range(size), k)


def value_of(function: AnySetFunction, elements: Subset) -> float:
    return float(function.value(state_of(function, elements)))


def optimum(function: AnySetFunction, family: AnyIndependence) -> float:
    return max(value_of(function, one) for one in subsets(function.size) if is_independent(family, one))


def random_function(rng: np.random.Generator, size: int, kind: int) -> AnySetFunction:
    """A function of one of seven kinds, with many ties or none."""
    whole = rng.random() < 0.5
    part = rng.integers(0, 4, size)
    weight = rng.integers(0, 4, size).astype(float) if whole else rng.random(size)
    benefit = rng.integers(0, 4, (size, 6)).astype(float) if whole else rng.random((size, 6))
    covers = [rng.integers(0, 9, rng.integers(0, 5)) for _ in range(size)]
    worth = rng.integers(0, 3, 9).astype(float) if whole else rng.random(9)
    made: list[AnySetFunction] = [
        ConcaveOverModular(part, weight),
        ConcaveOverModular(part, weight, np.log1p),
        ConcaveOverModular(part, weight, PiecewiseLinear([0, 1, 2.5], [2, 0.5, 0])),
        WeightedCoverage(covers),
        WeightedCoverage(covers, worth),
        FacilityLocation(benefit),
        Sum([WeightedCoverage(covers, worth), ConcaveOverModular(part, weight)], [0.5, 1.7]),
    ]
    return made[kind % len(made)]


def random_family(rng: np.random.Generator, size: int, kind: int) -> AnyIndependence:
    """Uniform, partition, laminar, two matroids, knapsacks, a partition matroid and knapsacks."""
    half = size // 2
    partition = Partition(np.arange(size) // 2, rng.integers(0, 3, (size + 1) // 2))
    other = Partition(rng.integers(0, 3, size), rng.integers(1, 3, 3))
    knapsacks = Knapsacks(rng.integers(0, 3, size), rng.integers(0, 9, size), rng.integers(4, 15, 3))
    sets = [range(size), range(half), range(half // 2), range(half, size)]
    made: list[AnyIndependence] = [
        Uniform(size, int(rng.integers(0, size + 1))),
        partition,
        Laminar(size, sets, rng.integers(1, 5, 4)),
        Intersection(partition, other),
        knapsacks,
        Intersection(Partition(np.arange(size) // 2), knapsacks),
    ]
    return made[kind % len(made)]
