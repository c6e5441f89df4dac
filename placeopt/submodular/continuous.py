"""The continuous greedy algorithm: 1 - 1/e for a matroid, but for sampling.

G. Călinescu, C. Chekuri, M. Pál, J. Vondrák: Maximizing a monotone submodular function subject to a matroid constraint,
SIAM Journal on Computing 40, 2011, doi:10.1137/080733991. It climbs the multilinear extension F(x) = E f(R(x)), where
R(x) has each element e with probability x(e) independently, in T steps; each moves x by 1/T towards a base of the
matroid that is heavy in ω(e) = E [f(R(x) + e) - f(R(x))]. So x is a mixture of T bases, and swap rounding makes it one.

Departure. The paper takes the heaviest base for ω at the start of a step, for which T must be in the order of 9 r^2 for
r = rank. Here ω is taken anew, at x as it is, for every element of the base, as in A. Badanidiyuru, J. Vondrák: Fast
algorithms for maximizing submodular functions, SODA 2014, doi:10.1137/1.9781611973402.110 (without their thresholds).
F is linear along each element, so the step to x' gains (1/T) sum ω(b_i) at least, and with the bijection b_i -> o_i to
the best set in which o_i was open when b_i was taken, and ω falling along the way,

    F(x') - F(x) >= (1/T) sum ω(o_i) >= (1/T) (OPT - F(x')),    hence    F(end) >= (1 - (1 + 1/T)^-T) OPT :

0.614 for T = 10, 0.623 for T = 20, 0.632 = 1 - 1/e in the limit.

What sampling costs. Each ω is a mean of m fresh samples between 0 and M, the largest gain of one element, M <= OPT. By
Hoeffding's inequality all T r n of them are within α M of the truth but for a probability p when
α = sqrt(ln(2 T r n / p) / (2 m)). The choices then lose 2 α M each at most, and OPT above becomes OPT (1 - 2 r α): it
takes m >> 2 r^2 ln(2 T r n / p) samples for a proof that is worth something, thousands already for r = 10. In practice
tens do. The guarantee that is returned is the one for the settings used, or that of greedy, which the result never
falls behind, where this is better.

O(T r m) batches of n gains and O(T r^2 m) additions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.guarantees import Guarantee, greedy_guarantee, objections, void
from placeopt.submodular.independence import AnyIndependence, grown
from placeopt.submodular.results import Growth, Maximised
from placeopt.submodular.rounding import swap_rounding
from placeopt.submodular.standard import greedy

FAILURE = 0.01
"""p: with that probability the sampled ω may be off by more than is taken into account."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """A point of the matroid's base polytope, as a mixture of bases in equal shares.

    Attributes
    ----------
    bases
        T arrays (r,).
    point
        (n,) The share of the bases that hold each element: x.
    evaluations
        Gains asked for.
    """

    bases: tuple[Int, ...]
    point: Float
    evaluations: int

    def rounded(self, matroid: AnyIndependence, seed: int = 0) -> Int:
        """(r,) A random base with E f >= F(point)."""
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
    """The best of several roundings of the point that `climb` reaches, and of what `greedy` returns.

    Parameters
    ----------
    steps, samples
        T and m.
    roundings
        How many bases to draw from the point; the ratio holds for the mean of each.
    seed
        Of samples and roundings.
    function, matroid, fill, certify
        As for `greedy`.

    Raises
    ------
    ValueError
        If there is no matroid, the value depends on the order of the elements, or a number is less than 1.
    """
    if roundings < 1:
        raise ValueError(f"roundings {roundings}: expected 1 or more")
    mixture = climb(function, matroid, steps=steps, samples=samples, seed=seed)
    start = greedy(function, matroid, fill=fill, certify=certify)
    best, value = start.elements, start.value
    for i in range(roundings):
        base = mixture.rounded(matroid, seed + i)
        reached = function.value(grown(function, base.tolist()))
        if reached > value:
            best, value = base, reached
    growth = Growth(function, matroid, certify=certify)
    growth.extend(best.tolist())
    rank = len(mixture.bases[0])
    return growth.outcome(
        _guarantee(function, matroid, steps, samples, rank), start.bound, start.evaluations + mixture.evaluations
    )


def climb(
    function: AnySetFunction, matroid: AnyIndependence, *, steps: int = 20, samples: int = 30, seed: int = 0
) -> Mixture:
    """The point that the continuous greedy algorithm reaches; see `continuous_greedy`."""
    if not matroid.matroid:
        raise ValueError(f"{type(matroid).__name__} is not claimed to be a matroid; use greedy or local_search")
    if not function.path_free:
        raise ValueError("the value depends on the order of the elements: a mixture of sets means nothing; use greedy")
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
                state = grown(function, np.flatnonzero(inside).tolist())
                total[outside] += function.gains(state, left[outside])
                evaluations += int(outside.sum())
            best = int(left[np.argmax(total)])
            matroid.add(independent, best)
            base.append(best)
            point[best] += 1 / steps
            left = left[left != best]
        bases.append(np.array(base, dtype=np.int64))
    return Mixture(tuple(bases), point, evaluations)


def _guarantee(function: AnySetFunction, matroid: AnyIndependence, steps: int, samples: int, rank: int) -> Guarantee:
    said = objections(function)
    if said:
        return void(said)
    exact = 1 - (1 + 1 / steps) ** -steps
    alpha = sqrt(log(2 * steps * max(rank, 1) * max(function.size, 1) / FAILURE) / (2 * samples))
    proved = exact * max(0.0, 1 - 2 * rank * alpha)
    known = greedy_guarantee(function, matroid)
    about = f"{exact:.3f} of the best in expectation if {samples} samples were exact"
    if known.ratio is not None and known.ratio >= proved:
        return Guarantee(known.ratio, f"{known.text}, as greedy; {about}, {proved:.3f} is proved with their error")
    text = f"{proved:.3f} of the best in expectation: monotone, submodular, a matroid; {about}"
    return Guarantee(proved, text, expected=True, failure=FAILURE)
