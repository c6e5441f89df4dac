"""What maximisers return, and the record that they keep while they choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.guarantees import Guarantee, objections
from placeopt.submodular.independence import AnyIndependence, ceiling_of


@dataclass(frozen=True, slots=True)
class Maximised:
    """The set that a maximiser chose.

    Attributes
    ----------
    elements
        (k,) In the order in which they were chosen.
    value
        f of them.
    values, gains
        (k,) f after each element, and what the maximiser saw the element gain.
    evaluations
        How many gains were asked for to choose; those for the bound are not counted.
    bound
        f is at most that for any independent set, up to rounding, if the function is what it claims to be; None where
        nothing is known.
    guarantee
        What is proved beforehand.
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
        """At least so much of the best value was reached here; None where that is not known."""
        if self.bound is None:
            return None
        return 1.0 if self.bound <= 0 else min(1.0, self.value / self.bound)


class Growth:
    """A set that grows, what was seen on the way, and the least bound of f(OPT) that followed.

    For f monotone and submodular and any S (Nemhauser, Wolsey, Fisher 1978, doi:10.1007/BF01588971)

        f(OPT) <= f(OPT + S) <= f(S) + sum of the gains at S of the elements of OPT,

    which is at most the weight of the heaviest independent set where each element weighs its gain. Every S will do: the
    sets of 0, 1, 2, 4, 8, ... elements and the last one are tried, so that the bound costs O(n log r) gains.
    """

    def __init__(self, function: AnySetFunction, independence: AnyIndependence, *, certify: bool = True) -> None:
        if function.size != independence.size:
            raise ValueError(
                f"the function has {function.size} elements and the independence {independence.size}: expected as many"
            )
        self.function, self.independence = function, independence
        self.state, self.independent = function.start(), independence.start()
        self.inside = np.zeros(function.size, dtype=np.bool_)
        self.evaluations = 0
        self.bound: float | None = None
        self._certify = certify and not objections(function)
        self.chosen: list[int] = []
        self._values: list[float] = []
        self._gains: list[float] = []
        self._seen = -1
        self._look()

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def value(self) -> float:
        """f of the set."""
        return self.function.value(self.state)

    def gains(self, elements: Int) -> Float:
        """(k,) of the elements now."""
        self.evaluations += len(elements)
        gains = self.function.gains(self.state, elements)
        if np.isnan(gains).any():
            element = elements[np.isnan(gains)][0]
            raise ValueError(f"the gain of element {element} over {self.chosen} is no number: expected one")
        return gains

    def open(self, elements: Int) -> Int:
        """Those of the elements, none of them in the set, that may be added."""
        free: Int = elements[self.independence.open(self.independent, elements)]
        return free

    def add(self, element: int, gain: float) -> None:
        """Put an open element into the set."""
        self.independence.add(self.independent, element)
        self.function.add(self.state, element)
        self.inside[element] = True
        self.chosen.append(element)
        self._values.append(self.value)
        self._gains.append(gain)
        if len(self) & (len(self) - 1) == 0:
            self._look()

    def extend(self, elements: Sequence[int]) -> None:
        """Put elements into the set one after another, all open when it is their turn."""
        for element in elements:
            self.add(element, float(self.function.gains(self.state, np.array([element]))[0]))

    def outcome(self, guarantee: Guarantee, bound: float | None = None, evaluations: int | None = None) -> Maximised:
        """The set as it is now; with a bound that is known from elsewhere and a count of evaluations that is."""
        self._look()
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

    def _look(self) -> None:
        if not self._certify or self._seen == len(self):
            return
        self._seen = len(self)
        bound = bound_at(self.function, self.state, np.flatnonzero(~self.inside), self.independence)
        if bound is None:
            self._certify = False
        else:
            self.bound = bound if self.bound is None else min(self.bound, bound)


def bound_at(function: AnySetFunction, state: object, outside: Int, independence: AnyIndependence) -> float | None:
    """At least f of any independent set, from the gains of all elements `outside` of a monotone submodular one's."""
    weight = np.zeros(function.size)
    weight[outside] = np.maximum(function.gains(state, outside), 0.0)
    most = ceiling_of(independence, weight)
    return None if most is None else function.value(state) + most
