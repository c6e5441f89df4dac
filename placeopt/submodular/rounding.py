"""Swap rounding: from a mixture of bases to one base that is as good.

C. Chekuri, J. Vondrák, R. Zenklusen: Dependent randomized rounding via exchange properties of combinatorial structures,
FOCS 2010, doi:10.1109/FOCS.2010.60. A point x of a matroid's base polytope, given as a mixture of bases, becomes a
random base S such that each element e is in S with probability x(e), and E f(S) >= F(x) for every submodular f with
multilinear extension F. It asks the matroid for exchanges only, so that any matroid will do. Merging two bases of r
elements takes r exchanges and O(r^3) additions, in a partition matroid O(r^2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.model.arrays import Int
from placeopt.submodular.independence import AnyIndependence, grown, is_independent


def swap_rounding(bases: Sequence[Int], weights: Sequence[float], matroid: AnyIndependence, seed: int = 0) -> Int:
    """(r,) A random base, in rising order; its elements' probabilities are the mixture's.

    Parameters
    ----------
    bases
        Maximal independent sets of the matroid.
    weights
        The share of each, positive.
    matroid
        Any one.
    seed
        Of the random choices.

    Raises
    ------
    ValueError
        If nothing is given, a weight is not positive, the bases are not of one size, or an exchange is missing that
        every matroid has: then it is none.
    """
    if not bases or len(bases) != len(weights):
        raise ValueError(f"{len(bases)} bases, {len(weights)} weights: expected as many, one at least")
    if min(weights) <= 0:
        raise ValueError(f"weight {min(weights)}: expected more than 0")
    if len({len(base) for base in bases}) > 1:
        raise ValueError(f"bases of {sorted({len(base) for base in bases})} elements: expected as many in each")
    rng = np.random.default_rng(seed)
    merged, total = set(bases[0].tolist()), float(weights[0])
    for base, weight in zip(bases[1:], weights[1:], strict=True):
        merged = _merge(total, merged, weight, set(base.tolist()), matroid, rng)
        total += weight
    return np.array(sorted(merged), dtype=np.int64)


def _merge(
    share: float, one: set[int], other_share: float, other: set[int], matroid: AnyIndependence, rng: np.random.Generator
) -> set[int]:
    """Either base moves towards the other, an element at a time, until they are the same."""
    while one != other:
        i = min(one - other)
        j = _partner(i, one, other, matroid)
        if rng.random() < share / (share + other_share):
            other = other - {j} | {i}
        else:
            one = one - {i} | {j}
    return one


def _partner(i: int, one: set[int], other: set[int], matroid: AnyIndependence) -> int:
    """An element j of the other base alone such that `one` - i + j and `other` - j + i are bases too."""
    candidates = np.array(sorted(other - one), dtype=np.int64)
    free = matroid.open(grown(matroid, sorted(one - {i})), candidates)
    for j in candidates[free].tolist():
        if is_independent(matroid, [*sorted(other - {j}), i]):
            return int(j)
    raise ValueError(f"element {i} has no partner to be exchanged for: these are not bases of a matroid")
