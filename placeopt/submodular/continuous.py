"""The continuous greedy algorithm with swap rounding: up to 1 - 1/e for a matroid.

G. Călinescu, C. Chekuri, M. Pál, J. Vondrák: Maximizing a monotone submodular function subject to a matroid constraint,
SIAM Journal on Computing 40, 2011, doi:10.1137/080733991.

Definitions. R(x) contains each element e independently with probability x(e). F(x) = E f(R(x)) is the multilinear
extension of f, and ω(e) = E [f(R(x) + e) - f(R(x))]. r is the rank of the matroid and OPT a best base. From x = 0, the
algorithm makes T steps. Each step builds a base b_1, ..., b_r: it chooses the open element b_i with the largest ω and
increases x(b_i) by 1/T. The final x is a mixture of T bases, which swap rounding turns into one base.

Departure from the paper, which computes ω once per step and needs T in the order of 9 r²: here ω is recomputed after
each element, as in A. Badanidiyuru, J. Vondrák: Fast algorithms for maximizing submodular functions, SODA 2014,
doi:10.1137/1.9781611973402.110, without the thresholds of that paper.

Claim: if f is monotone and submodular with f(∅) >= 0, and ω is exact, the final x satisfies

    F(x) >= (1 - (1 + 1/T)^-T) f(OPT) :    0.614 for T = 10, 0.623 for T = 20, 1 - 1/e = 0.632 in the limit.

Proof: consider one step from x to x'. By Brualdi's theorem (see `exchanges`), there is a bijection b_i -> o_i onto OPT
such that o_i was open when b_i was chosen. At that point, ω(b_i) >= ω(o_i), and F is linear in x(b_i) with a slope of
at least ω(b_i). By submodularity, no ω increases with x, so ω(o_i) may be replaced by its value at x':

    F(x') - F(x) >= (1/T) sum of ω(b_i) >= (1/T) sum of ω(o_i) >= (1/T) (f(OPT) - F(x')).

Hence f(OPT) - F(x') <= (f(OPT) - F(x)) / (1 + 1/T) in each of the T steps. ∎

Sampling. Each ω is estimated by the mean of m fresh samples in [0, M], where M <= f(OPT) is the largest gain of one
element. By Hoeffding's inequality, all T r n estimates are within α M of ω with probability 1 - δ, where
α = sqrt(ln(2 T r n / δ) / (2 m)) and δ = `FAILURE`. Each choice then loses at most 2 α M, which replaces f(OPT) by
(1 - 2 r α) f(OPT) in the claim. A useful proof needs m >> 2 r² ln(2 T r n / δ), thousands of samples for r = 10; in
practice, tens suffice. The guarantee is the better one of this bound, for the given parameters, and that of greedy.

Complexity: O(T r m) batches of n gains and O(T r² m) additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, is_independent, state_of
from placeopt.submodular.results import FAILURE, GrowingSet, Guarantee, Maximised, check_matroid, stronger_guarantee
from placeopt.submodular.standard import greedy


@dataclass(frozen=True, slots=True)
class Mixture:
    """A point of the base polytope of a matroid, as a mixture of bases with equal shares."""

    bases: tuple[Int, ...]  # T arrays (r,)
    point: Float  # (n,) x: the share of the bases that contain each element
    evaluations: int  # number of gains computed

    def rounded(self, matroid: AnyIndependence, seed: int = 0) -> Int:
        """(r,) A random base S with E f(S) >= F(point)."""
        return swap_rounding(self.bases, [1 / len(self.bases)] * len(self.bases), matroid, seed)


def continuous_greedy(
    function: AnySetFunction,
    matroid: AnyIndependence,
    *,
    steps: int = 20,
    samples: int = 30,
    roundings: int = 10,
    seed: int = 0,
    fill: bool = False,
    certify: bool = True,
) -> Maximised:
    """Return the best of several roundings of the continuous solution and of the result of `greedy`.

    Parameters
    ----------
    steps, samples
        T and m.
    roundings
        Number of bases to draw; the ratio holds for the expected value of each.
    seed
        Seed of the samples and roundings.
    function, matroid, fill, certify
        As for `greedy`.

    Raises
    ------
    ValueError
        If the family is not a matroid, the value depends on the order of the elements, or a number is less than 1.
    """
    if roundings < 1:
        raise ValueError(f"roundings {roundings}: expected 1 or more")
    mixture = greedy_mixture(function, matroid, steps=steps, samples=samples, seed=seed)
    start = greedy(function, matroid, fill=fill, certify=certify)
    best, value = start.elements, start.value
    for i in range(roundings):
        base = mixture.rounded(matroid, seed + i)
        reached = function.value(state_of(function, base.tolist()))
        if reached > value:
            best, value = base, reached
    growth = GrowingSet(function, matroid, best.tolist(), certify=certify)
    guarantee = _guarantee(function, matroid, steps, samples, len(mixture.bases[0]))
    return growth.outcome(guarantee, start.bound, start.evaluations + mixture.evaluations)


def greedy_mixture(
    function: AnySetFunction, matroid: AnyIndependence, *, steps: int = 20, samples: int = 30, seed: int = 0
) -> Mixture:
    """Return the point that the continuous greedy algorithm reaches; parameters as for `continuous_greedy`."""
    check_matroid(function, matroid)
    for name, number in (("steps", steps), ("samples", samples)):
        if number < 1:
            raise ValueError(f"{name} {number}: expected 1 or more")
    rng = np.random.default_rng(seed)
    point = np.zeros(function.size)
    bases, evaluations = [], 0
    for _ in range(steps):
        independent, base = matroid.start(), []
        left = np.arange(function.size)
        while len(left := left[matroid.open(independent, left)]):
            total = np.zeros(len(left))
            for inside in rng.random((samples, function.size)) < point:
                outside = ~inside[left]
                state = state_of(function, np.flatnonzero(inside).tolist())
                total[outside] += function.gains(state, left[outside])
                evaluations += int(outside.sum())
            best = int(left[np.argmax(total)])
            matroid.add(independent, best)
            base.append(best)
            point[best] += 1 / steps
            left = left[left != best]
        bases.append(np.array(base, dtype=np.int64))
    return Mixture(tuple(bases), point, evaluations)


def swap_rounding(bases: Sequence[Int], weights: Sequence[float], matroid: AnyIndependence, seed: int = 0) -> Int:
    """Draw one base, as a sorted array (r,), from a mixture of bases of a matroid.

    C. Chekuri, J. Vondrák, R. Zenklusen: Dependent randomized rounding via exchange properties of combinatorial
    structures, FOCS 2010, doi:10.1109/FOCS.2010.60. Let x be the mixture, a point of the base polytope. The random
    base S contains each element e with probability x(e), and E f(S) >= F(x) for every submodular f with multilinear
    extension F. Merging two bases takes r exchanges and O(r³) additions, or O(r²) in a partition matroid.

    Parameters
    ----------
    bases
        Maximal independent sets, one or more.
    weights
        The share of each base, positive.
    matroid
        The matroid.
    seed
        Seed of the random choices.

    Raises
    ------
    ValueError
        If the lengths differ or are 0, a weight is not positive, the bases differ in size, or an exchange that every
        matroid allows is not independent.
    """
    if not bases or len(bases) != len(weights):
        raise ValueError(f"{len(bases)} bases, {len(weights)} weights: expected equal numbers of at least 1")
    if min(weights) <= 0:
        raise ValueError(f"weight {min(weights)}: expected more than 0")
    if len({len(base) for base in bases}) > 1:
        raise ValueError(f"bases of {sorted({len(base) for base in bases})} elements: expected equal sizes")
    rng = np.random.default_rng(seed)
    merged, total = set(bases[0].tolist()), float(weights[0])
    for base, weight in zip(bases[1:], weights[1:], strict=True):
        merged = _merge(total, merged, weight, set(base.tolist()), matroid, rng)
        total += weight
    return np.array(sorted(merged), dtype=np.int64)


def _merge(
    share: float, one: set[int], other_share: float, other: set[int], matroid: AnyIndependence, rng: np.random.Generator
) -> set[int]:
    """Exchange single elements in one of two bases, chosen at random by their shares, until both are equal."""
    while one != other:
        i = min(one - other)
        j = _partner(i, one, other, matroid)
        if rng.random() < share / (share + other_share):
            other = other - {j} | {i}
        else:
            one = one - {i} | {j}
    return one


def _partner(i: int, one: set[int], other: set[int], matroid: AnyIndependence) -> int:
    """An element j of `other` but not `one` such that `one` - i + j and `other` - j + i are bases."""
    candidates = np.array(sorted(other - one), dtype=np.int64)
    free = matroid.open(state_of(matroid, sorted(one - {i})), candidates)
    for j in candidates[free].tolist():
        if is_independent(matroid, [*sorted(other - {j}), i]):
            return int(j)
    raise ValueError(f"element {i} cannot be exchanged for any other: these are not bases of a matroid")


def _guarantee(function: AnySetFunction, matroid: AnyIndependence, steps: int, samples: int, rank: int) -> Guarantee:
    exact = 1 - (1 + 1 / steps) ** -steps
    alpha = sqrt(log(2 * steps * max(rank, 1) * max(function.size, 1) / FAILURE) / (2 * samples))
    proved = exact * max(0.0, 1 - 2 * rank * alpha)
    exactly = f"{exact:.3f} of the best in expectation if {samples} samples were exact"
    text = f"{proved:.3f} of the best in expectation: monotone, submodular, a matroid; {exactly}"
    guarantee = Guarantee(proved, text, expected=True, failure=FAILURE)
    return stronger_guarantee(function, matroid, guarantee, f"; {exactly}, {proved:.3f} is proved for them")
