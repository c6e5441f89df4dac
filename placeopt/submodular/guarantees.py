"""Worst-case guarantees of the maximisers, and the conditions under which they hold.

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

from dataclasses import dataclass
from math import e

from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, Uniform

FAILURE = 0.01
"""Bound on the probability that sampling errors exceed those that a guarantee accounts for."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The statement f(S) >= ratio · f(OPT), or the reasons why nothing is proved.

    Attributes
    ----------
    ratio
        None if nothing is proved.
    text
        The statement in one sentence.
    void
        The reasons why nothing is proved; empty if `ratio` is given.
    expected
        Whether the ratio holds for the expected value over the seeds only.
    failure
        The probability, over the samples, that the ratio does not hold.
    """

    ratio: float | None
    text: str
    void: tuple[str, ...] = ()
    expected: bool = False
    failure: float = 0.0


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


def no_guarantee(reasons: list[str]) -> Guarantee:
    """The statement that nothing is proved."""
    return Guarantee(None, f"nothing is proved: {'; '.join(reasons)}", tuple(reasons))
