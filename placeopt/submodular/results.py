"""The results of the maximisers: the set, an upper bound on the best value, and the guarantee.

Let f be monotone and submodular with f(∅) >= 0, and let OPT be an independent set that maximises f. Then the set S
that a maximiser returns satisfies f(S) >= ratio · f(OPT), with these ratios:

    greedy, at most k elements            1 - 1/e       Nemhauser, Wolsey, Fisher 1978, doi:10.1007/BF01588971
    greedy, matroid                       1/2           Fisher, Nemhauser, Wolsey 1978, doi:10.1007/BFb0121195
    greedy, intersection of k matroids    1/(k + 1)     Fisher, Nemhauser, Wolsey 1978
    stochastic greedy, at most k          1 - 1/e - ε   in expectation; Mirzasoleiman et al. 2015,
                                                        doi:10.1609/aaai.v29i1.9486

`lazy_greedy` returns the same set as `greedy`. Local search and continuous greedy never return less than `greedy`;
`exchanges` and `continuous` derive what they add. Under knapsacks, nothing is proved: greedy may add one heavy element
that leaves no room for others. The theorems hold only if the claims of the function are true.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import e

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, Uniform, weight_bound_of

FAILURE = 0.01
"""Bound on the probability that sampling errors exceed those that a guarantee accounts for."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The statement f(S) >= ratio · f(OPT), or the reasons why nothing is proved."""

    ratio: float | None
    """None if nothing is proved."""
    text: str
    """The statement in one sentence."""
    void: tuple[str, ...] = ()
    """The reasons why nothing is proved; empty if `ratio` is given."""
    expected: bool = False
    """Whether the ratio holds for the expected value over the seeds only."""
    failure: float = 0.0
    """The probability, over the samples, that the ratio does not hold."""


@dataclass(frozen=True, slots=True)
class Maximised:
    """The set that a maximiser returns."""

    elements: Int
    """(k,) The elements in the order of choice."""
    value: float
    """f(elements)."""
    values: Float
    gains: Float
    """(k,) f after each element, and the gain of the element that the maximiser computed."""
    evaluations: int
    """Number of gains that the maximiser computed, without those for the bound."""
    bound: float | None
    """Upper bound on f of any independent set, up to rounding, if the claims of the function are true; None if
    unknown."""
    guarantee: Guarantee
    """The ratio proved for all instances."""

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

    The set starts with `elements`, added one after another; each must be open at its turn.

    Raises
    ------
    ValueError
        If the ground sets differ in size.
    """

    def __init__(
        self,
        function: AnySetFunction,
        independence: AnyIndependence,
        elements: Iterable[int] = (),
        *,
        certify: bool = True,
    ) -> None:
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
        for element in elements:
            self.add(element, float(function.gains(self.state, np.array([element]))[0]))

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
        return np.asarray(elements[self.independence.open(self.independent, elements)])

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


def missing_claims(function: AnySetFunction) -> list[str]:
    """Why theorems about monotone submodular set functions do not apply; empty if they do."""
    reasons = []
    if not function.submodular:
        reasons.append("the function is not claimed to be submodular")
    if not function.monotone:
        reasons.append("the function is not claimed to be monotone")
    if not function.path_free:
        reasons.append("the value depends on the order of the elements")
    return reasons


def greedy_guarantee(function: AnySetFunction, independence: AnyIndependence) -> Guarantee:
    """The guarantee of `greedy` and `lazy_greedy`."""
    reasons = missing_claims(function)
    k = independence.matroids
    if k is None:
        reasons.append("the constraint is not an intersection of matroids (a knapsack is not a matroid)")
    if reasons or k is None:
        return no_guarantee(reasons)
    if isinstance(independence, Uniform):
        return Guarantee(1 - 1 / e, "1 - 1/e of the best: monotone, submodular, a limited number of elements")
    if independence.matroid:
        return Guarantee(1 / 2, "1/2 of the best: monotone, submodular, a matroid")
    return Guarantee(1 / (k + 1), f"1/{k + 1} of the best: monotone, submodular, an intersection of {k} matroids")


def stochastic_guarantee(function: AnySetFunction, independence: AnyIndependence, epsilon: float) -> Guarantee:
    """The guarantee of `stochastic_greedy`."""
    reasons = missing_claims(function)
    if not isinstance(independence, Uniform):
        reasons.append("the theorem on samples holds for a limited number of elements only")
    if reasons:
        return no_guarantee(reasons)
    text = f"1 - 1/e - {epsilon:g} of the best in expectation: monotone, submodular, a limited number of elements"
    return Guarantee(max(1 - 1 / e - epsilon, 0.0), text, expected=True)


def stronger_guarantee(function: AnySetFunction, matroid: AnyIndependence, proved: Guarantee, note: str) -> Guarantee:
    """The guarantee `proved`, or that of greedy with a note on the other one if it is not worse."""
    if reasons := missing_claims(function):
        return no_guarantee(reasons)
    known = greedy_guarantee(function, matroid)
    if known.ratio is not None and proved.ratio is not None and known.ratio >= proved.ratio:
        return replace(known, text=f"{known.text}, as greedy{note}")
    return proved


def no_guarantee(reasons: list[str]) -> Guarantee:
    """The statement that nothing is proved."""
    return Guarantee(None, f"nothing is proved: {'; '.join(reasons)}", tuple(reasons))
