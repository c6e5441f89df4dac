"""The greedy algorithm, on all elements or on a random sample in each round.

**`greedy`** adds the element with the largest gain in each round. G. Nemhauser, L. Wolsey, M. Fisher: An analysis of
approximations for maximizing submodular set functions I, Mathematical Programming 14, 1978, doi:10.1007/BF01588971 (at
most k elements); M. Fisher, G. Nemhauser, L. Wolsey: part II, Mathematical Programming Study 8, 1978,
doi:10.1007/BFb0121195 (matroids). The papers leave ties open; here they go to the lowest index. Complexity: O(n r)
gains for a set of r elements, in r batches.

**`stochastic_greedy`** adds the best element of a random sample in each round. B. Mirzasoleiman, A. Badanidiyuru, A.
Karbasi, J. Vondrák, A. Krause: Lazier than lazy greedy, AAAI 2015, doi:10.1609/aaai.v29i1.9486. Each of k rounds draws
s = (n/k) ln(1/ε) elements. For f monotone and submodular, the result has at least 1 - 1/e - ε of the best value in
expectation, with n ln(1/ε) gains in total.

Departures from the paper on sampling, which has the constraint "at most k elements": samples contain open elements
only, and k is the size of a maximal independent set. In a matroid this is the rank, but the theorem does not apply.
Elements without positive gain are not added unless `fill` is set; this changes neither f nor the proof.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np

from placeopt.model.arrays import Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, heaviest
from placeopt.submodular.results import GrowingSet, Maximised, greedy_guarantee, stochastic_guarantee


def greedy(
    function: AnySetFunction, independence: AnyIndependence, *, fill: bool = False, certify: bool = True
) -> Maximised:
    """Maximise a function by the greedy algorithm.

    Parameters
    ----------
    function, independence
        The function and its independent sets.
    fill
        Whether to add elements without positive gain until the set is maximal, as complete placements require.
    certify
        Whether to compute an upper bound if the claims of the function give one (see `GrowingSet`).

    Raises
    ------
    ValueError
        If the ground sets differ in size, or a gain is NaN.
    """
    growth = GrowingSet(function, independence, certify=certify)
    left = np.arange(function.size)
    while len(left := growth.open(left)):
        gains = growth.gains(left)
        best = int(np.argmax(gains))  # the first of equal ones, and `left` is sorted
        if gains[best] <= 0 and not fill:
            break
        growth.add(int(left[best]), float(gains[best]))
        left = np.delete(left, best)
    return growth.outcome(greedy_guarantee(function, independence))


def stochastic_greedy(
    function: AnySetFunction,
    independence: AnyIndependence,
    *,
    epsilon: float = 0.1,
    seed: int = 0,
    fill: bool = False,
    certify: bool = True,
) -> Maximised:
    """Maximise a function by the greedy algorithm on random samples.

    Parameters
    ----------
    epsilon
        The part of the ratio to trade for speed, between 0 and 1: samples have (n/k) ln(1/epsilon) elements.
    seed
        Seed of the samples.
    function, independence, fill, certify
        As for `greedy`.

    Raises
    ------
    ValueError
        If epsilon is not between 0 and 1, or for the reasons of `greedy`.
    """
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon {epsilon}: expected more than 0 and less than 1")
    growth = GrowingSet(function, independence, certify=certify)
    k = len(heaviest(independence, np.ones(function.size)))
    sample_size = ceil(function.size / max(k, 1) * log(1 / epsilon))
    pool = _Pool(growth.open(np.arange(function.size)), np.random.default_rng(seed))
    rounds = 0
    while fill or rounds < k:
        rounds += 1
        sample = pool.draw(sample_size, growth)
        if len(sample) == 0:
            break
        gains = growth.gains(sample)
        most = gains.max()
        if most > 0 or fill:
            best = int(sample[gains == most].min())
            growth.add(best, float(most))
            sample = sample[sample != best]
        pool.put_back(sample)
    return growth.outcome(stochastic_guarantee(function, independence, epsilon))


class _Pool:
    """The elements outside the set; a draw costs time only for the elements drawn."""

    def __init__(self, elements: Int, rng: np.random.Generator) -> None:
        self._elements, self._count, self._rng = elements, len(elements), rng

    def draw(self, size: int, growth: GrowingSet) -> Int:
        """Remove and return `size` open elements, or all of them; closed elements drawn are discarded."""
        found = [np.empty(0, dtype=np.int64)]
        missing = size
        while missing > 0 and self._count > 0:
            drawn = growth.open(self._take(min(missing, self._count)))
            found.append(drawn)
            missing -= len(drawn)
        return np.concatenate(found)

    def put_back(self, elements: Int) -> None:
        self._elements[self._count : self._count + len(elements)] = elements
        self._count += len(elements)

    def _take(self, amount: int) -> Int:
        places = self._rng.choice(self._count, amount, replace=False)
        taken = self._elements[places]
        # Elements at the end that were not taken fill the gaps.
        self._count -= amount
        stays = np.ones(amount, dtype=np.bool_)
        stays[places[places >= self._count] - self._count] = False
        self._elements[places[places < self._count]] = self._elements[self._count : self._count + amount][stays]
        return taken
