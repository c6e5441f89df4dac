"""Local search: exchange single elements while the value, or a potential, increases.

Both algorithms start from the result of `greedy` and never return less. Both proofs use an exchange bijection: for two
bases A and O of a matroid, there is a bijection o: A -> O such that A - a + o(a) is a base for every a in A (R.
Brualdi, Comments on bases in dependence structures, 1969). In the proofs, f is monotone and submodular with f(∅) >= 0,
OPT is a best base, o maps A to OPT, and r is the rank.

**`local_search`** compares values of f. M. Fisher, G. Nemhauser, L. Wolsey: An analysis of approximations for
maximizing submodular set functions II, 1978, doi:10.1007/BFb0121195 (interchange heuristic).

Claim: if no exchange in a base A increases f(A) by more than ε f(A) / r, then f(A) >= f(OPT) / (2 + ε).
Proof: by submodularity, f(A - a + o(a)) - f(A) >= [f(A + o(a)) - f(A)] - [f(A) - f(A - a)]. The first terms sum to at
least f(OPT ∪ A) - f(A) >= f(OPT) - f(A), the second to at most f(A). Hence

    f(OPT) - 2 f(A) <= sum over a of f(A - a + o(a)) - f(A) <= ε f(A). ∎

In the worst case this is not better than greedy; in practice it often is. For k matroids, J. Lee, M. Sviridenko and J.
Vondrák (Mathematics of Operations Research 35, 2010) prove 1/(k + ε) for larger exchanges, which are not implemented.
Nothing is proved for knapsacks. Each step multiplies f by at least 1 + ε/r, so O(r/ε) steps follow greedy. A step
costs O(r) rebuilt sets, O(r²) additions and O(n r) gains.

**`potential_search`** is the non-oblivious local search of Y. Filmus, J. Ward: Monotone submodular maximization over a
matroid via non-oblivious local search, SIAM Journal on Computing 43, 2014, doi:10.1137/130920277. It compares gains of
a potential, in which an element counts more if its gain remains when other elements are absent:

    g(b | A - a) = E [f(B + b) - f(B)],

where p in [0, 1] has the density e^p / (e - 1), and B contains each element of A - a independently with probability p.

Claim: if g(b | A - a) <= g(a | A - a) + η for each base A - a + b, then f(OPT) <= e/(e - 1) f(A) + r η.
Proof: let A(p) contain each element of A independently with probability p, and let F(p) = E f(A(p)). Integration by
parts gives the first line, submodularity and monotonicity the second:

    sum over a of g(a | A - a)    = ∫ e^p F'(p) / (e - 1) dp <= e/(e - 1) f(A) - E F(p),
    sum over a of g(o(a) | A - a) >= E [f(OPT ∪ A(p)) - f(A(p))] >= f(OPT) - E F(p).

Their difference is at most r η. ∎ With η = ε f(A) / r, the ratio is 1 / (e/(e - 1) + ε), which tends to 1 - 1/e. The
potential is O(log r) f and increases by η per exchange, so there are O(r log r / ε) exchanges.

The expectation is exact, with p integrated by Gaussian quadrature, if the 2^(r-1) subsets are no more than `samples`.
Otherwise it is a mean of that many draws. Let t be the round of the final base, M the largest gain of one element, and
δ = `FAILURE`. By Hoeffding's inequality, with probability 1 - δ, all r n differences of gains at that base are within
M sqrt(2 ln(r n t (t + 1) / δ) / samples) of their expectations. This error is added to η. The guarantee therefore
depends on f(A) and is known only after the search. If it is worse than that of greedy, that of greedy is returned.

Departures from the paper, which starts from a greedy base of the potential and bounds the number of samples by a
polynomial: the start is the greedy base of f, and the number of samples is a parameter. A round costs r 2^(r-1) or
r · samples batches of n gains, so the algorithm suits small ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import e, log, sqrt

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, state_of
from placeopt.submodular.results import (
    FAILURE,
    GrowingSet,
    Guarantee,
    Maximised,
    check_matroid,
    check_path_free,
    greedy_guarantee,
    missing_claims,
    stronger_guarantee,
)
from placeopt.submodular.standard import greedy


def local_search(
    function: AnySetFunction,
    independence: AnyIndependence,
    *,
    epsilon: float = 0.01,
    fill: bool = False,
    certify: bool = True,
) -> Maximised:
    """Improve the result of `greedy` by additions, exchanges, and (unless f is monotone or `fill` is set) removals.

    Parameters
    ----------
    epsilon
        A move must increase f by more than epsilon f(S) / r, where r elements are chosen.
    function, independence, fill, certify
        As for `greedy`.

    Raises
    ------
    ValueError
        If the value depends on the order of the elements, epsilon is not positive, or for the reasons of `greedy`.
    """
    check_path_free(function)
    if not epsilon > 0:
        raise ValueError(f"epsilon {epsilon}: expected more than 0")
    start = greedy(function, independence, fill=fill, certify=certify)
    search = _ValueSearch(function, independence, start.elements.tolist(), epsilon)
    while search.improve(fill=fill, removals=not (function.monotone or fill)):
        pass
    growth = GrowingSet(function, independence, search.chosen, certify=certify)
    known = greedy_guarantee(function, independence)
    guarantee = known if known.void else replace(known, text=f"{known.text}; that of greedy, where the search starts")
    return growth.outcome(guarantee, start.bound, start.evaluations + search.evaluations)


class _ValueSearch:
    def __init__(
        self, function: AnySetFunction, independence: AnyIndependence, chosen: list[int], epsilon: float
    ) -> None:
        self.function, self.independence, self.chosen, self.epsilon = function, independence, chosen, epsilon
        self.value = function.value(state_of(function, chosen))
        self.evaluations = 0

    def improve(self, *, fill: bool, removals: bool) -> bool:
        """Make the first addition, exchange or removal that increases f enough; whether there is one."""
        threshold = self.value + self.epsilon * abs(self.value) / max(len(self.chosen), 1)
        rests = [self.chosen[:i] + self.chosen[i + 1 :] for i in range(len(self.chosen))]
        for rest in [self.chosen, *rests]:
            element, value = self.best_addition(rest)
            if element is not None and (value > threshold or (fill and rest is self.chosen)):
                self.chosen, self.value = [*rest, element], value
                return True
        for rest in rests if removals else ():
            value = self.function.value(state_of(self.function, rest))
            if value > threshold:
                self.chosen, self.value = rest, value
                return True
        return False

    def best_addition(self, rest: list[int]) -> tuple[int | None, float]:
        """The element outside the current set that increases f(rest) most, and f with it."""
        outside = _open_beside(self.independence, rest, self.chosen)
        if len(outside) == 0:
            return None, self.value
        state = state_of(self.function, rest)
        gains = self.function.gains(state, outside)
        self.evaluations += len(outside)
        i = int(np.argmax(gains))
        return int(outside[i]), self.function.value(state) + float(gains[i])


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
    """Return the best base that a local search by the potential visits, starting from that of `greedy`.

    Parameters
    ----------
    epsilon
        An exchange must increase the potential by more than epsilon f(A) / r.
    samples
        Number of subsets to evaluate for each element that may be removed.
    rounds
        Maximum number of exchanges. A search that reaches it has only the guarantee of greedy.
    seed
        Seed of the samples.
    function, matroid, certify
        As for `greedy`; the result is always a base.

    Raises
    ------
    ValueError
        If the family is not a matroid, the value depends on the order of the elements, or a number is out of range.
    """
    check_matroid(function, matroid)
    if not epsilon > 0 or samples < 1 or rounds < 0:
        raise ValueError(f"epsilon {epsilon}, samples {samples}, rounds {rounds}: expected > 0, >= 1, >= 0")
    start = greedy(function, matroid, fill=True, certify=certify)
    search = _PotentialSearch(function, matroid, start.elements.tolist(), epsilon, samples, np.random.default_rng(seed))
    best, value = search.base, search.value
    for _ in range(rounds):
        if not search.exchange():
            break
        if search.value > value:
            best, value = search.base, search.value
    growth = GrowingSet(function, matroid, best, certify=certify)
    bound = start.bound
    if certify and search.bound is not None and not search.failure and not missing_claims(function):
        bound = search.bound if bound is None else min(bound, search.bound)
    ratio = 0.0 if search.bound is None else 1.0 if search.bound <= 0 else value / search.bound
    text = f"{ratio:.3f} of the best: monotone, submodular, a matroid; no exchange improves the potential by much"
    note = f", where it starts; {ratio:.3f} by the exchanges"
    guarantee = stronger_guarantee(function, matroid, Guarantee(ratio, text, failure=search.failure), note)
    return growth.outcome(guarantee, bound, start.evaluations + search.evaluations)


class _PotentialSearch:
    """The current base and, once no exchange improves it, an upper bound on f(OPT) if the claims are true."""

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
        self.value = function.value(state_of(function, base))
        self.exact = 2 ** max(len(base) - 1, 0) <= samples
        self.bound: float | None = None
        self.failure = 0.0 if self.exact else FAILURE
        self.evaluations = self.round = 0

    def exchange(self) -> bool:
        """Make the first exchange that increases the potential enough; whether there is one."""
        self.round += 1
        enough = self.epsilon * abs(self.value) / max(len(self.base), 1)
        for i, element in enumerate(self.base):
            rest = self.base[:i] + self.base[i + 1 :]
            outside = _open_beside(self.matroid, rest, rest)
            gains = self.potential(rest, outside)
            best = int(np.argmax(gains))
            if gains[best] > gains[outside == element][0] + enough:
                self.base = [*rest, int(outside[best])]
                self.value = self.function.value(state_of(self.function, self.base))
                return True
        self.bound = e / (e - 1) * self.value + len(self.base) * (enough + self.error())
        return False

    def potential(self, rest: list[int], elements: Int) -> Float:
        """(k,) g(b | rest) for each element b."""
        total = np.zeros(len(elements))
        for weight, inside in self.subsets(len(rest)):
            state = state_of(self.function, [element for element, kept in zip(rest, inside, strict=True) if kept])
            total += weight * self.function.gains(state, elements)
            self.evaluations += len(elements)
        return total

    def subsets(self, size: int) -> Iterator[tuple[float, Sequence[bool]]]:
        """Subsets B of `size` elements, as masks, with their weights in the expectation."""
        if self.exact:
            # On [0, 1], exp is close to a polynomial of low degree; the other factor has degree `size`.
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
        """Bound on the error of all differences of gains in this round, with probability 1 - `failure`."""
        if self.exact:
            return 0.0
        free = self.matroid.open(self.matroid.start(), np.arange(self.function.size))
        largest = self.function.gains(self.function.start(), np.flatnonzero(free)).max(initial=0.0)
        pairs = len(self.base) * self.function.size * self.round * (self.round + 1)
        return float(largest * sqrt(2 * log(pairs / FAILURE) / self.samples))


def _open_beside(independence: AnyIndependence, rest: list[int], excluded: list[int]) -> Int:
    """(k,) The elements, except `excluded`, that can be added to `rest`."""
    outside = np.delete(np.arange(independence.size), excluded)
    return np.asarray(outside[independence.open(state_of(independence, rest), outside)])
