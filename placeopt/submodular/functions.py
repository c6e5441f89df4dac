"""Set functions: the interface that the maximisers use, and facility location as an example.

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

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

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


AnySetFunction = SetFunction[Any]


class FacilityLocation:
    """f(S) = sum over clients of max(benefit[e, client] for e in S), with f(∅) = 0.

    Parameters
    ----------
    benefit
        (n, clients) Benefits, 0 or more.
    """

    submodular = monotone = path_free = True

    def __init__(self, benefit: Sequence[Sequence[float]] | Float) -> None:
        self._benefit = np.ascontiguousarray(benefit, dtype=np.float64)
        if self._benefit.ndim != 2:
            raise ValueError(f"benefit {self._benefit.shape}: expected (elements, clients)")
        wrong = self._benefit[~(np.isfinite(self._benefit) & (self._benefit >= 0))]
        if len(wrong):
            raise ValueError(f"benefit {wrong[0]}: expected finite numbers of 0 or more")
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
