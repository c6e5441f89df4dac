"""What maximisers return, and the growing set that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.guarantees import Guarantee, missing_claims
from placeopt.submodular.independence import AnyIndependence, weight_bound_of


@dataclass(frozen=True, slots=True)
class Maximised:
    """The set that a maximiser returns.

    Attributes
    ----------
    elements
        (k,) The elements in the order of choice.
    value
        f(elements).
    values, gains
        (k,) f after each element, and the gain of the element that the maximiser computed.
    evaluations
        Number of gains that the maximiser computed, without those for the bound.
    bound
        Upper bound on f of any independent set, up to rounding, if the claims of the function are true; None if
        unknown.
    guarantee
        The ratio proved for all instances.
    """

    elements: Int
    value: float
    values: Float
    gains: Float
    evaluations: int
    bound: float | None
    guarantee: Guarantee

    @property
    def ratio(self) -> float | None:
        """A lower bound on value / f(OPT) for this instance; None if unknown."""
        if self.bound is None:
            return None
        return 1.0 if self.bound <= 0 else min(1.0, self.value / self.bound)


class GrowingSet:
    """A growing independent set S, its history, and the least upper bound on f(OPT) found on the way.

    Claim (Nemhauser, Wolsey, Fisher 1978, doi:10.1007/BF01588971): for f monotone and submodular, every set S satisfies

        f(OPT) <= f(OPT ∪ S) <= f(S) + sum of f(S + e) - f(S) over e in OPT.

    The sum is at most the weight of the heaviest independent set if each element weighs its gain. The bound is computed
    for the sets S of 0, 1, 2, 4, 8, ... elements and for the last one, hence with O(n log r) gains.

    Raises
    ------
    ValueError
        If the ground sets differ in size.
    """

    def __init__(self, function: AnySetFunction, independence: AnyIndependence, *, certify: bool = True) -> None:
        check_sizes(function, independence)
        self.function, self.independence = function, independence
        self.state, self.independent = function.start(), independence.start()
        self.inside = np.zeros(function.size, dtype=np.bool_)
        self.evaluations = 0
        self.bound: float | None = None
        self._certify = certify and not missing_claims(function)
        self.chosen: list[int] = []
        self._values: list[float] = []
        self._gains: list[float] = []
        self._update_bound()

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def value(self) -> float:
        """f(S)."""
        return self.function.value(self.state)

    def gains(self, elements: Int) -> Float:
        """(k,) f(S + e) - f(S) for each element outside S; a ValueError if one is NaN."""
        self.evaluations += len(elements)
        gains = self.function.gains(self.state, elements)
        if np.isnan(gains).any():
            element = elements[np.isnan(gains)][0]
            raise ValueError(f"the gain of element {element} over {self.chosen} is NaN: expected a number")
        return gains

    def open(self, elements: Int) -> Int:
        """Those elements outside S that can be added."""
        free: Int = elements[self.independence.open(self.independent, elements)]
        return free

    def add(self, element: int, gain: float) -> None:
        """Add an open element."""
        self.independence.add(self.independent, element)
        self.function.add(self.state, element)
        self.inside[element] = True
        self.chosen.append(element)
        self._values.append(self.value)
        self._gains.append(gain)
        if len(self) & (len(self) - 1) == 0:
            self._update_bound()

    def extend(self, elements: Sequence[int]) -> None:
        """Add elements one after another; each must be open at its turn."""
        for element in elements:
            self.add(element, float(self.function.gains(self.state, np.array([element]))[0]))

    def outcome(self, guarantee: Guarantee, bound: float | None = None, evaluations: int | None = None) -> Maximised:
        """The result; `bound` is another upper bound, and `evaluations` replaces the count of this object."""
        if len(self) & (len(self) - 1):
            self._update_bound()
        bounds = [known for known in (self.bound, bound) if known is not None]
        return Maximised(
            np.array(self.chosen, dtype=np.int64),
            self.value,
            np.array(self._values),
            np.array(self._gains),
            self.evaluations if evaluations is None else evaluations,
            min(bounds, default=None),
            guarantee,
        )

    def _update_bound(self) -> None:
        if not self._certify:
            return
        outside = np.flatnonzero(~self.inside)
        weight = np.zeros(self.function.size)
        weight[outside] = np.maximum(self.function.gains(self.state, outside), 0.0)
        heaviest = weight_bound_of(self.independence, weight)
        if heaviest is None:
            self._certify = False
        else:
            bound = self.value + heaviest
            self.bound = bound if self.bound is None else min(self.bound, bound)


def check_sizes(function: AnySetFunction, independence: AnyIndependence) -> None:
    """Raise a ValueError if the ground sets differ in size."""
    if function.size != independence.size:
        raise ValueError(
            f"the function has {function.size} elements and the independence {independence.size}: expected equal sizes"
        )


def check_matroid(function: AnySetFunction, matroid: AnyIndependence) -> None:
    """Raise a ValueError unless the family claims to be a matroid and the function is a set function."""
    if not matroid.matroid:
        raise ValueError(f"{type(matroid).__name__} is not claimed to be a matroid; use greedy or local_search")
    check_path_free(function)


def check_path_free(function: AnySetFunction) -> None:
    """Raise a ValueError if the value depends on the order of the elements."""
    if not function.path_free:
        raise ValueError("the value depends on the order of the elements: exchanges are not defined; use greedy")
