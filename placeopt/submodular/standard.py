"""The greedy algorithm: add the element with the largest gain in each round.

G. Nemhauser, L. Wolsey, M. Fisher: An analysis of approximations for maximizing submodular set functions I,
Mathematical Programming 14, 1978, doi:10.1007/BF01588971 (at most k elements); M. Fisher, G. Nemhauser, L. Wolsey: part
II, Mathematical Programming Study 8, 1978, doi:10.1007/BFb0121195 (matroids). The papers leave ties open; here they go
to the lowest index. Complexity: O(n r) gains for a set of r elements, in r batches.
"""

from __future__ import annotations

import numpy as np

from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.guarantees import greedy_guarantee
from placeopt.submodular.independence import AnyIndependence
from placeopt.submodular.results import GrowingSet, Maximised


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
