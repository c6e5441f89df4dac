"""Select one optimum of the linear program and derive the favourites from it.

The program has many optima: where no longest path passes, y is arbitrary among points with the least w. The placement
depends on this choice. The *settled* optimum is used:

    among the points with the same w (that of the solution), one with the largest sum of c_ij y_ij.

It hides the most transfer time. To break ties, c_ij is increased by a fraction of at most SPREAD that depends on the
edge index. The result then does not depend on the solution method, if w is optimal. GLOP finds it for up to SMALL
edges. For larger programs it is approximated. From the earliest starts for the solution's y, each edge keeps the y that
it needs, max(0, 1 - (s_j - s_i - k_i) / c_ij). Then y is raised as far as the constraints allow, longest transfers
first (ties: lowest edge index). All steps are deterministic: one thread, a fixed number of rounds, only sums, products,
quotients and square roots, which all machines round alike.

The paper's rounding then makes j the favourite child of i if x_ij = 1 - y_ij < 0.1. No task gets two favourites: both y
would exceed 0.9 and their sum 1. For thresholds above 1/2, larger y take precedence, then longer transfers, then lower
edge indices; the others are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt import engine
from placeopt.bounding.sct.core import core_of
from placeopt.bounding.sct.program import SctProgram
from placeopt.bounding.sct.solution import Solution
from placeopt.model.arrays import Float, Int

THRESHOLD = 0.1
"""The paper's threshold: edges with smaller x join favourites."""

SMALL = 1500
"""Maximum number of edges for which GLOP finds the settled optimum."""

SPREAD = 1e-3
"""Largest relative perturbation of transfer times for tie-breaking."""

GOLDEN = 0.6180339887498949
"""(sqrt(5) - 1) / 2: its multiples modulo 1 are evenly spread."""

ROOM = 1e-7
"""Relative tolerance above w for GLOP."""

DIGITS = 6
"""Significant decimal digits of y."""


@dataclass(frozen=True, slots=True, eq=False)
class Favourites:
    """The favourite pairs of a program of n tasks."""

    # (n,) the favourite child and parent of each task, -1 for none: child[i] = j if and only if parent[j] = i
    child: Int
    parent: Int
    y: Float  # (e,) the settled optimum that they were derived from

    @property
    def pairs(self) -> Int:
        """(p, 2) the pairs (i, j), by i."""
        first = np.flatnonzero(self.child >= 0)
        return np.stack([first, self.child[first]], axis=1)


def favourites_of(
    program: SctProgram, solution: Solution, threshold: float = THRESHOLD, *, settle: bool = True
) -> Favourites:
    """The favourites of the settled optimum, or of the solution itself without `settle`."""
    y = settled(program, solution) if settle else solution.y
    return Favourites(*rounded(program, y, threshold), y)


def settled(program: SctProgram, solution: Solution) -> Float:
    """(e,) the settled optimum, or its approximation."""
    y = _most_hidden(program, solution.value) if 0 < len(program.source) <= SMALL else None
    return _raised(program, solution) if y is None else y


def rounded(program: SctProgram, y: Float, threshold: float) -> tuple[Int, Int]:
    """(n,) favourite children and (n,) favourite parents: where 1 - y is below the threshold."""
    shown = np.round(y, DIGITS)
    chosen = np.flatnonzero((np.round(1.0 - y, DIGITS) < threshold) & (program.hidden > 0))
    chosen = chosen[np.lexsort((chosen, -program.hidden[chosen], -shown[chosen]))]
    child, parent = (np.full(len(program.length), -1, dtype=np.int64) for _ in range(2))
    for i, j in zip(program.source[chosen].tolist(), program.target[chosen].tolist(), strict=True):
        if child[i] < 0 and parent[j] < 0:
            child[i], parent[j] = j, i
    return child, parent


def _most_hidden(program: SctProgram, value: float) -> Float | None:
    """The settled optimum by GLOP; None if GLOP fails."""
    from placeopt.bounding.sct.engine import most_hidden

    core, edge = core_of(program)
    spread = 1.0 + SPREAD * (np.arange(1, len(edge) + 1) * GOLDEN % 1.0)
    weight = np.zeros(core.n_edges)
    weight[edge] = program.hidden * spread
    found = most_hidden(core, weight, value * program.parts * (1.0 + ROOM))
    return None if found is None else np.where(program.hidden > 0, found[edge], 0.0)


def _raised(program: SctProgram, solution: Solution) -> Float:
    """The approximation for large programs: what the earliest starts need, then the longest transfers first."""
    hidden = program.hidden.astype(np.float64)
    gap = (solution.start[program.target] - solution.start[program.source]) * program.parts
    missing = program.fixed + hidden + program.length[program.source] - gap
    y = np.where(hidden > 0, np.clip(missing / np.maximum(hidden, 1.0), 0.0, 1.0), 0.0)
    y = np.minimum(y, solution.y)
    order = np.argsort(-hidden, kind="stable")
    order = order[hidden[order] > 0]
    n = len(program.length)
    room = np.ones(n) - np.bincount(program.source, weights=y * program.out_rival, minlength=n)
    space = np.ones(n) - np.bincount(program.target, weights=y * program.in_rival, minlength=n)
    return engine.raise_favourites(
        order, program.source, program.target, program.out_rival, program.in_rival, room, space, y
    )
