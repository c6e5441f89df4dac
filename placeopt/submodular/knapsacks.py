"""Knapsacks: no matroids, so that nothing is proved of greedy algorithms under them, but what memory is.

See `placeopt.submodular.independence` for what a family is to the maximisers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.model.arrays import Bool, Float, Int
from placeopt.submodular.matroids import capacities_of, parts_of


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
        self._part, parts = parts_of(part)
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
        self._capacity = capacities_of(capacity, parts, np.int64 if whole else np.float64)
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
