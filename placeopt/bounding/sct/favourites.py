"""One optimum of many, and the favourites that it makes.

The programme has many optima, and what is placed by them depends on which: any point with the least w will do, however
it shares out what no longest path needs. Here the *settled* one is taken,

    among the points with the same w (that of the solution) one with the largest sum of c_ij y_ij: with the most
    transfers hidden.

Where that has ties, c_ij is taken a little larger, by a fraction of SPREAD that follows from the edge's number. So it
does not depend on how the programme was solved, as long as w is the optimum. Up to SMALL edges it is found by the
engine. Beyond, it is approached: from the earliest starts for the solution's y, each edge keeps what it needs,
y_ij = max(0, 1 - (s_j - s_i - k_i) / c_ij), and then, the longest transfer first (ties: the first edge), y is raised as
far as the rules allow. All of it is deterministic: one thread, a fixed number of rounds, no numbers but sums, products,
quotients and square roots, which all machines round alike.

Then the paper's rounding: j is i's favourite child where x_ij = 1 - y_ij < 0.1. No task gets two favourites by that:
two of its y would be above 0.9, and their sum above 1. A threshold above 1/2 can give it two; then those with larger
y go first, then the longer transfers, then the first edges, and what has no place left is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placeopt.bounding.sct.core import core_of
from placeopt.bounding.sct.programme import Programme
from placeopt.bounding.sct.solution import Solution
from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int

THRESHOLD = 0.1
"""x below which an edge joins favourites: the paper's."""

SMALL = 1500
"""Edges up to which the settled optimum is found by the engine."""

SPREAD = 1e-3
"""By which the transfers of edges are told apart, at most."""

GOLDEN = 0.6180339887498949
"""(sqrt(5) - 1) / 2: its multiples modulo 1 are spread evenly."""

ROOM = 1e-7
"""Relative room above w for the engine's tolerances."""

DIGITS = 6
"""Decimal digits of y that count."""


@dataclass(frozen=True, slots=True, eq=False)
class Favourites:
    """The favourite pairs of a programme of n tasks.

    Attributes
    ----------
    child, parent
        (n,) the favourite child and parent of each task, -1 where it has none: child[i] = j where parent[j] = i.
    y
        (e,) the settled optimum, of which they were made.
    """

    child: Int
    parent: Int
    y: Float

    @property
    def pairs(self) -> Int:
        """(p, 2) the pairs (i, j), by i."""
        first = np.flatnonzero(self.child >= 0)
        return np.stack([first, self.child[first]], axis=1)


def favourites_of(
    programme: Programme, solution: Solution, threshold: float = THRESHOLD, *, settle: bool = True
) -> Favourites:
    """The favourites of the settled optimum, or of the solution as it is."""
    y = settled(programme, solution) if settle else solution.y
    child, parent = rounded(programme, y, threshold)
    return Favourites(child, parent, y)


def settled(programme: Programme, solution: Solution) -> Float:
    """(e,) the settled optimum."""
    y = _most_hidden(programme, solution.value) if 0 < len(programme.source) <= SMALL else None
    return _raised(programme, solution) if y is None else y


def rounded(programme: Programme, y: Float, threshold: float) -> tuple[Int, Int]:
    """(n,) favourite children and (n,) favourite parents: where 1 - y is below the threshold."""
    shown = np.round(y, DIGITS)
    chosen = np.flatnonzero((np.round(1.0 - y, DIGITS) < threshold) & (programme.hidden > 0))
    chosen = chosen[np.lexsort((chosen, -programme.hidden[chosen], -shown[chosen]))]
    child, parent = (np.full(len(programme.length), -1, dtype=np.int64) for _ in range(2))
    for i, j in zip(programme.source[chosen].tolist(), programme.target[chosen].tolist(), strict=True):
        if child[i] < 0 and parent[j] < 0:
            child[i], parent[j] = j, i
    return child, parent


def _most_hidden(programme: Programme, value: float) -> Float | None:
    """The settled optimum by the engine; None if that fails."""
    from placeopt.bounding.sct.engine import most_hidden

    core, edge = core_of(programme)
    spread = 1.0 + SPREAD * (np.arange(1, len(edge) + 1) * GOLDEN % 1.0)
    weight = np.zeros(core.n_edges)
    weight[edge] = programme.hidden * spread
    found = most_hidden(core, weight, value * programme.parts * (1.0 + ROOM))
    return None if found is None else np.where(programme.hidden > 0, found[edge], 0.0)


def _raised(programme: Programme, solution: Solution) -> Float:
    """What each edge needs for the earliest starts, then the longest transfers first."""
    hidden = programme.hidden.astype(np.float64)
    gap = (solution.start[programme.target] - solution.start[programme.source]) * programme.parts
    missing = programme.fixed + hidden + programme.length[programme.source] - gap
    y = np.where(hidden > 0, np.clip(missing / np.maximum(hidden, 1.0), 0.0, 1.0), 0.0)
    y = np.minimum(y, solution.y)
    order = np.lexsort((np.arange(len(y)), -hidden)).astype(np.int64)
    order = order[hidden[order] > 0]
    n = len(programme.length)
    room = np.ones(n) - np.bincount(programme.source, weights=y * programme.out_rival, minlength=n)
    space = np.ones(n) - np.bincount(programme.target, weights=y * programme.in_rival, minlength=n)
    raise_all.select(20 * len(order))(
        order, programme.source, programme.target, programme.out_rival, programme.in_rival, room, space, y
    )
    return y


@kernel(allocates=False)
def raise_all(
    order: Int,
    source: Int,
    target: Int,
    out_rival: NDArray[np.bool_],
    in_rival: NDArray[np.bool_],
    room: Float,
    space: Float,
    y: Float,
) -> None:
    """Raise y edge by edge as far as `room` (n,) of producers and `space` (n,) of consumers allow."""
    for e in order:
        more = 1.0 - y[e]
        if out_rival[e]:
            more = min(more, room[source[e]])
        if in_rival[e]:
            more = min(more, space[target[e]])
        if more > 0.0:
            y[e] += more
            room[source[e]] -= more if out_rival[e] else 0.0
            space[target[e]] -= more if in_rival[e] else 0.0
