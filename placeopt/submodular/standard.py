"""The greedy algorithm: always the element that gains most.

G. Nemhauser, L. Wolsey, M. Fisher: An analysis of approximations for maximizing submodular set functions I,
Mathematical Programming 14, 1978, doi:10.1007/BF01588971 (at most k elements); M. Fisher, G. Nemhauser, L. Wolsey: part
II, Mathematical Programming Study 8, 1978, doi:10.1007/BFb0121195 (matroids). Ties, which the papers leave open, go to
the least index. O(n r) gains for a set of r elements, in r batches.
"""

from __future__ import annotations

import numpy as np

from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.guarantees import greedy_guarantee
from placeopt.submodular.independence import AnyIndependence
from placeopt.submodular.results import Growth, Maximised


def greedy(
    function: AnySetFunction, independence: AnyIndependence, *, fill: bool = False, certify: bool = True
) -> Maximised:
    """The set that taking the largest gain in every round leads to.

    Parameters
    ----------
    function, independence
        What to maximise, over which sets.
    fill
        Whether to go on with gains that are not positive until nothing is open, as a placement must be complete.
    certify
        Whether to work out a bound where one follows (see `Growth`).

    Raises
    ------
    ValueError
        If the two are over different ground sets.
    """
    growth = Growth(function, independence, certify=certify)
    left = np.arange(function.size)
    while len(left := growth.open(left)):
        gains = growth.gains(left)
        best = int(np.argmax(gains))  # the first of equals, and `left` rises
        if gains[best] <= 0 and not fill:
            break
        growth.add(int(left[best]), float(gains[best]))
        left = np.delete(left, best)
    return growth.outcome(greedy_guarantee(function, independence))
