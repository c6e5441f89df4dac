"""What is proved of a maximiser, and what voids it.

For f monotone and submodular with f(empty) >= 0, and f(S) at least `ratio` times the best there is:

    greedy, at most k elements           1 - 1/e       Nemhauser, Wolsey, Fisher 1978, doi:10.1007/BF01588971
    greedy, a matroid                    1/2           Fisher, Nemhauser, Wolsey 1978, doi:10.1007/BFb0121195
    greedy, k matroids at once           1/(k + 1)     the same
    stochastic greedy, at most k         1 - 1/e - ε   in expectation; Mirzasoleiman et al. 2015,
                                                       doi:10.1609/aaai.v29i1.9486

`lazy_greedy` returns what `greedy` does and has its guarantee. Local search and the continuous greedy algorithm start
from greedy and never return less; what they add is derived in their modules (`exchanges`, `potential`, `continuous`).
Nothing is proved under knapsacks: greedy by gain may take one heavy element and leave no room. All these are theorems
about functions that *are* what they claim to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e

from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence
from placeopt.submodular.matroids import Uniform


@dataclass(frozen=True, slots=True)
class Guarantee:
    """f(S) >= ratio * f(OPT), or why not.

    Attributes
    ----------
    ratio
        None where nothing is proved.
    text
        One sentence on what is proved by whom, or that nothing is.
    void
        The reasons why nothing is proved; empty if something is.
    expected
        Whether the ratio holds for the mean over seeds only.
    failure
        The probability with which it may fail, by chance of the samples.
    """

    ratio: float | None
    text: str
    void: tuple[str, ...] = ()
    expected: bool = False
    failure: float = 0.0


def objections(function: AnySetFunction) -> list[str]:
    """Why theorems about monotone submodular functions do not apply; empty if they do."""
    said = []
    if not function.submodular:
        said.append("the function is not claimed to be submodular")
    if not function.monotone:
        said.append("the function is not claimed to be monotone")
    if not function.path_free:
        said.append("the value depends on the order of the elements")
    return said


def greedy_guarantee(function: AnySetFunction, independence: AnyIndependence) -> Guarantee:
    """Of `greedy` and `lazy_greedy`."""
    said = objections(function)
    if independence.matroids is None:
        said.append(_NO_MATROIDS)
    if said:
        return void(said)
    if isinstance(independence, Uniform):
        return Guarantee(1 - 1 / e, "1 - 1/e of the best: monotone, submodular, a limited number of elements")
    if independence.matroid:
        return Guarantee(1 / 2, "1/2 of the best: monotone, submodular, a matroid")
    k = independence.matroids or 1
    return Guarantee(1 / (k + 1), f"1/{k + 1} of the best: monotone, submodular, an intersection of {k} matroids")


def stochastic_guarantee(function: AnySetFunction, independence: AnyIndependence, epsilon: float) -> Guarantee:
    """Of `stochastic_greedy`."""
    said = objections(function)
    if not isinstance(independence, Uniform):
        said.append("samples are proved to be good under a limited number of elements only")
    if said:
        return void(said)
    ratio = 1 - 1 / e - epsilon
    text = f"1 - 1/e - {epsilon:g} of the best in expectation: monotone, submodular, a limited number of elements"
    return Guarantee(max(ratio, 0.0), text, expected=True)


def void(reasons: list[str]) -> Guarantee:
    """Nothing is proved."""
    return Guarantee(None, f"nothing is proved: {'; '.join(reasons)}", tuple(reasons))


_NO_MATROIDS = "what may be chosen is no intersection of matroids (a knapsack is none)"
