"""Non-oblivious local search: 1 - 1/e for a matroid by exchanges, judged by a potential instead of f.

Y. Filmus, J. Ward: Monotone submodular maximization over a matroid via non-oblivious local search, SIAM Journal on
Computing 43, 2014, doi:10.1137/130920277. An exchange of a for b in the base A is judged by the gains

    g(b | A - a) = E [f(B + b) - f(B)],  p in [0, 1] of density e^p / (e - 1),  B each of A - a with chance p,

of a potential g: an element is worth more where it would still be good if others went. With F(p) = E f(A(p)), where
A(p) has each element of A with probability p, and a bijection a -> o from A to the best set O by which all exchanges
are independent,

    sum of g(a | A - a) = integral of e^p F'(p) / (e - 1) dp <= e/(e - 1) f(A) - E F(p),
    sum of g(o | A - a) >= E [f(O + B) - f(B)] >= f(O) - E F(p),

so a base A of r elements that no exchange improves by more than η has f(O) <= e/(e - 1) f(A) + r η. Here
η = ε f(A) / r, and each exchange raises g by η: O(r log r / ε) of them, as g is O(log r) f at most.

The expectation is exact where 2^(r-1), the number of subsets, is no more than `samples` (p by Gauss's quadrature), else
a mean of that many fresh draws. Then, for the base at which the search ends in round t, all r n compared pairs of
gains, each within [0, M] for the largest gain M of one element, are within M sqrt(2 ln(r n t (t + 1) / p) / samples)
of the truth but for a probability p (Hoeffding), which is added to η. The guarantee that is returned follows from f(A)
and that sum, hence is known only afterwards; where it is worse than greedy's, with whose base the search starts, it is
greedy's.

Departure. The paper starts from a greedy base of the potential and bounds the number of samples by a polynomial that
makes the error small; here it starts from the greedy base of f, and the number is a setting. A round costs r 2^(r-1) or
r `samples` batches of n gains: for small ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import e, log, sqrt

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.guarantees import Guarantee, greedy_guarantee, objections, void
from placeopt.submodular.independence import AnyIndependence, grown
from placeopt.submodular.results import Growth, Maximised
from placeopt.submodular.standard import greedy

FAILURE = 0.01
"""p: with that probability the samples at the last base may be off by more than is taken into account."""


def potential_search(
    function: AnySetFunction,
    matroid: AnyIndependence,
    *,
    epsilon: float = 0.01,
    samples: int = 256,
    rounds: int = 1000,
    seed: int = 0,
    certify: bool = True,
) -> Maximised:
    """The best base that a local search by the potential comes by, of those from that of `greedy` on.

    Parameters
    ----------
    epsilon
        An exchange must raise the potential by more than epsilon f(A) / r.
    samples
        Subsets to look at for each element that may go.
    rounds
        The search ends after so many exchanges, and then has no more than the guarantee of greedy.
    seed
        Of the samples.
    function, matroid, certify
        As for `greedy`; the result is a base always.

    Raises
    ------
    ValueError
        If there is no matroid, the value depends on the order of the elements, or a number makes no sense.
    """
    if not matroid.matroid:
        raise ValueError(f"{type(matroid).__name__} is not claimed to be a matroid; use greedy or local_search")
    if not function.path_free:
        raise ValueError("the value depends on the order of the elements: exchanges mean nothing; use greedy")
    if not epsilon > 0 or samples < 1 or rounds < 0:
        raise ValueError(f"epsilon {epsilon}, samples {samples}, rounds {rounds}: expected > 0, >= 1, >= 0")
    start = greedy(function, matroid, fill=True, certify=certify)
    search = _Search(function, matroid, start.elements.tolist(), epsilon, samples, np.random.default_rng(seed))
    best, value = search.base, search.value
    for _ in range(rounds):
        if not search.exchange():
            break
        if search.value > value:
            best, value = search.base, search.value
    growth = Growth(function, matroid, certify=certify)
    growth.extend(best)
    guarantee = _guarantee(function, matroid, search, value)
    bound = start.bound
    if certify and search.most is not None and not search.failure and not objections(function):
        bound = search.most if bound is None else min(bound, search.most)
    return growth.outcome(guarantee, bound, start.evaluations + search.evaluations)


class _Search:
    """A base, and, once no exchange improves it, what f is at most if the function is what it claims to be."""

    def __init__(
        self,
        function: AnySetFunction,
        matroid: AnyIndependence,
        base: list[int],
        epsilon: float,
        samples: int,
        rng: np.random.Generator,
    ) -> None:
        self.function, self.matroid, self.base = function, matroid, base
        self.epsilon, self.samples, self.rng = epsilon, samples, rng
        self.value = function.value(grown(function, base))
        self.exact = 2 ** max(len(base) - 1, 0) <= samples
        self.most: float | None = None
        self.failure = 0.0 if self.exact else FAILURE
        self.evaluations = self.round = 0

    def exchange(self) -> bool:
        """Make the first exchange that raises the potential by enough; whether there is one."""
        self.round += 1
        enough = self.epsilon * abs(self.value) / max(len(self.base), 1)
        for i, element in enumerate(self.base):
            rest = self.base[:i] + self.base[i + 1 :]
            outside = np.delete(np.arange(self.function.size), rest)
            outside = outside[self.matroid.open(grown(self.matroid, rest), outside)]
            gains = self.potential(rest, outside)
            best = int(np.argmax(gains))
            if gains[best] > gains[outside == element][0] + enough:
                self.base = [*rest, int(outside[best])]
                self.value = self.function.value(grown(self.function, self.base))
                return True
        self.most = e / (e - 1) * self.value + len(self.base) * (enough + self.error())
        return False

    def potential(self, rest: list[int], elements: Int) -> Float:
        """(k,) g(b | rest) of each of the elements."""
        total = np.zeros(len(elements))
        for weight, inside in self.subsets(len(rest)):
            state = grown(self.function, [element for element, there in zip(rest, inside, strict=True) if there])
            total += weight * self.function.gains(state, elements)
            self.evaluations += len(elements)
        return total

    def subsets(self, size: int) -> Iterator[tuple[float, Sequence[bool]]]:
        """Subsets B of `size` elements with their weights in the expectation."""
        if self.exact:
            # exp is next to a polynomial of small degree on [0, 1], and the rest is one of degree `size`.
            nodes, shares = np.polynomial.legendre.leggauss(size // 2 + 12)
            p, density = (nodes + 1) / 2, shares / 2 * np.exp((nodes + 1) / 2) / (e - 1)
            weights = [float((density * p**b * (1 - p) ** (size - b)).sum()) for b in range(size + 1)]
            for inside in product((False, True), repeat=size):
                yield weights[sum(inside)], inside
        else:
            p = np.log1p((e - 1) * self.rng.random(self.samples))
            for row in self.rng.random((self.samples, size)) < p[:, None]:
                yield 1 / self.samples, row.tolist()

    def error(self) -> float:
        """How far the compared differences of gains may be off at this round's base, but for a small probability."""
        if self.exact:
            return 0.0
        free = self.matroid.open(self.matroid.start(), np.arange(self.function.size))
        largest = self.function.gains(self.function.start(), np.flatnonzero(free)).max(initial=0.0)
        pairs = len(self.base) * self.function.size * self.round * (self.round + 1)
        return float(largest * sqrt(2 * log(pairs / FAILURE) / self.samples))


def _guarantee(function: AnySetFunction, matroid: AnyIndependence, search: _Search, value: float) -> Guarantee:
    said = objections(function)
    if said:
        return void(said)
    known = greedy_guarantee(function, matroid)
    proved = 0.0
    if search.most is not None:
        proved = 1.0 if search.most <= 0 else value / search.most
    if known.ratio is not None and known.ratio >= proved:
        return replace(known, text=f"{known.text}, as greedy, where it starts; {proved:.3f} by the exchanges")
    text = f"{proved:.3f} of the best: monotone, submodular, a matroid; no exchange improves the potential by much"
    return Guarantee(proved, text, failure=search.failure)
