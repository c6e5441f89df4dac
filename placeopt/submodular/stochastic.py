"""The greedy algorithm that looks at a sample in every round.

B. Mirzasoleiman, A. Badanidiyuru, A. Karbasi, J. Vondrák, A. Krause: Lazier than lazy greedy, AAAI 2015,
doi:10.1609/aaai.v29i1.9486. With s = (n/k) ln(1/ε) random elements in each of k rounds some element of the best set is
among them often enough: 1 - 1/e - ε of the best in expectation for at most k elements, with n ln(1/ε) gains in all.

Departures. The paper has a limited number of elements only. Here the sample is of the elements that are open, and k is
the size of a maximal independent set: exact for a matroid, where nothing is proved all the same. What gains nothing is
left out, unless asked to fill; that changes neither f nor the proof. Ties go to the least index.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np

from placeopt.model.arrays import Int
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.guarantees import stochastic_guarantee
from placeopt.submodular.independence import AnyIndependence, heaviest
from placeopt.submodular.results import Growth, Maximised


def stochastic_greedy(
    function: AnySetFunction,
    independence: AnyIndependence,
    *,
    epsilon: float = 0.1,
    seed: int = 0,
    fill: bool = False,
    certify: bool = True,
) -> Maximised:
    """The set that the largest gain of a random sample in every round leads to.

    Parameters
    ----------
    epsilon
        How much of the ratio to give up for speed, between 0 and 1: samples have (n/k) ln(1/epsilon) elements.
    seed
        Of the samples.
    function, independence, fill, certify
        As for `greedy`.

    Raises
    ------
    ValueError
        If epsilon is not between 0 and 1, or the two are over different ground sets.
    """
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon {epsilon}: expected more than 0 and less than 1")
    growth = Growth(function, independence, certify=certify)
    k = len(heaviest(independence, np.ones(function.size)))
    wanted = ceil(function.size / max(k, 1) * log(1 / epsilon))
    pool = _Pool(growth.open(np.arange(function.size)), np.random.default_rng(seed))
    rounds = 0
    while fill or rounds < k:
        rounds += 1
        sample = pool.draw(wanted, growth)
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
    """The elements that may still be open; drawing costs nothing for those that are not drawn."""

    def __init__(self, elements: Int, rng: np.random.Generator) -> None:
        self._elements, self._count, self._rng = elements, len(elements), rng

    def draw(self, wanted: int, growth: Growth) -> Int:
        """Take out `wanted` open elements, or all there are; those drawn that are closed are gone for good."""
        found: list[Int] = []
        missing = wanted
        while missing > 0 and self._count > 0:
            drawn = growth.open(self._take(min(missing, self._count)))
            found.append(drawn)
            missing -= len(drawn)
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def put_back(self, elements: Int) -> None:
        self._elements[self._count : self._count + len(elements)] = elements
        self._count += len(elements)

    def _take(self, amount: int) -> Int:
        places = self._rng.choice(self._count, amount, replace=False)
        taken = self._elements[places]
        # Close the gaps with those at the end that were not taken.
        self._count -= amount
        stays = np.ones(amount, dtype=np.bool_)
        stays[places[places >= self._count] - self._count] = False
        self._elements[places[places < self._count]] = self._elements[self._count : self._count + amount][stays]
        return taken
