"""What shares and flows prove: feasible favourites from the one, certified lower bounds from the other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.bounding.sct.core import REPEATED, Core, heads
from placeopt.bounding.sct.game import IN, OUT, Game, Small
from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int

WHOLE = 1 << 52
"""Parts into which the flow is divided."""


@kernel(allocates=False)
def fill(
    start: Int,
    target: Int,
    length: Float,
    fixed: Float,
    hidden: Float,
    weight: Float,
    rival: Bool,
    limit: Float,
    own: Float,
    value: Float,
) -> None:
    """The shares of producers that make the longest path shortest, given the limits of the consumers.

    Backwards along the order, the edges out of each task get what shares they need for the least `value` (n,): its
    length and the longest path after it. That is the least T at which sum of weight (after + fixed + hidden - T) /
    hidden over the rivals above T is no more than 1: Newton's steps from below find it, a piece of the line each. What
    is left over is given to all alike. `own` (e,) are the y that the shares allow, as `limit` those of the consumers.
    """
    for i in range(len(length) - 1, -1, -1):
        a, b = start[i], start[i + 1]
        level = 0.0
        for x in range(a, b):
            level = max(level, value[target[x]] + fixed[x] + hidden[x] * (1.0 - limit[x]))
        while True:
            excess, slope = -1.0, 0.0
            for x in range(a, b):
                over = value[target[x]] + fixed[x] + hidden[x] - level
                if rival[x] and over > 0.0:
                    excess += weight[x] * over / hidden[x]
                    slope += weight[x] / hidden[x]
            if excess <= 0.0 or level + excess / slope <= level * (1.0 + 1e-15):
                break
            level += excess / slope
        used, count = 0.0, 0.0
        for x in range(a, b):
            own[x] = 1.0
            if rival[x]:
                own[x] = max(value[target[x]] + fixed[x] + hidden[x] - level, 0.0) / hidden[x]
                used += weight[x] * own[x]
                count += weight[x]
        for x in range(a, b):
            if rival[x]:
                own[x] = own[x] + (1.0 - used) / count if used < 1.0 else own[x] / used
        value[i] = length[i] + level


@kernel()
def split(start: Int, target: Small, flow: Float, whole: int, parts: Int) -> None:
    """Divide `whole` over the lanes as `flow` is, in whole numbers that are kept at every task."""
    arriving = np.zeros(len(start), dtype=np.int64)
    arriving[0] = whole
    for i in range(len(start) - 1):
        a, b = start[i], start[i + 1]
        total, widest = 0.0, a
        for x in range(a, b):
            total += flow[x]
            if flow[x] > flow[widest]:
                widest = x
        left = arriving[i]
        for x in range(a, b):
            parts[x] = int(arriving[i] * (flow[x] / total)) if total > 0.0 else 0
            parts[x] = min(parts[x], left)
            left -= parts[x]
        if b > a:
            parts[widest] += left
        for x in range(a, b):
            arriving[target[x]] += parts[x]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A core seen from one end: edges sorted by it, `edge` (e,) their numbers; arrays as `fill` wants them."""

    edge: Int
    start: Int
    target: Int
    length: Float
    fixed: Float
    hidden: Float
    weight: Float
    rival: Bool

    def filled(self, limit: Float) -> tuple[Float, float]:
        """(e,) the y that the best shares of this side allow under these limits of the other, and the longest path."""
        own, value = np.empty(len(self.edge)), np.zeros(len(self.length))
        fill.select(REPEATED * len(self.edge))(
            self.start,
            self.target,
            self.length,
            self.fixed,
            self.hidden,
            self.weight,
            self.rival,
            limit[self.edge],
            own,
            value,
        )
        shares = np.empty(len(own))
        shares[self.edge] = own
        return shares, float(value[0])


def sides_of(core: Core) -> tuple[Side, Side]:
    """The core from the producers' end and from the consumers', which is that of the reversed core."""
    last = core.n_tasks - 1
    backwards = np.lexsort((last - core.source, last - core.target))
    return (
        _side(core, np.arange(core.n_edges), core.source, core.target, core.length, core.out_weight, core.out_rival),
        _side(
            core, backwards, last - core.target, last - core.source, core.length[::-1], core.in_weight, core.in_rival
        ),
    )


def _side(core: Core, edge: Int, source: Int, target: Int, length: Int, weight: Int, rival: Bool) -> Side:
    return Side(
        edge=edge,
        start=np.searchsorted(source[edge], np.arange(core.n_tasks + 1)),
        target=target[edge],
        length=length.astype(np.float64),
        fixed=core.fixed[edge].astype(np.float64),
        hidden=core.hidden[edge].astype(np.float64),
        weight=weight[edge].astype(np.float64),
        rival=rival[edge],
    )


def longest(core: Core, y: Float) -> float:
    """The longest path where (e,) y are the favourites."""
    return float(heads(core, core.fixed + core.hidden * (1.0 - y))[-1])


def favourites(core: Core, sides: tuple[Side, Side], y_out: Float, y_in: Float, passes: int) -> tuple[Float, float]:
    """The best y (e,) that filling one side after the other finds, from what the shares of both allow; its length."""
    best = np.minimum(y_out, y_in)
    least = longest(core, best)
    for turn in range(passes):
        if turn % 2 == 0:
            y_out, _ = sides[0].filled(y_in)
        else:
            y_in, _ = sides[1].filled(y_out)
        y = np.minimum(y_out, y_in)
        value = longest(core, y)
        if value < least:
            best, least = y, value
    return best, least


def one_sided(core: Core, sides: tuple[Side, Side]) -> float:
    """A lower bound: the longest path where only the children are rivals, or only the parents."""
    free = np.ones(core.n_edges)
    return max(side.filled(free)[1] for side in sides)


def shares_of(game: Game, share: Float) -> tuple[Float, Float]:
    """(e,) the y that shares (a,) of producers and of consumers allow; 1 where they are no rivals."""
    core = game.core
    found = []
    for lane, weight in ((game.out_lane, core.out_weight), (game.in_lane, core.in_weight)):
        found.append(np.where(lane >= 0, share[lane] / weight, 1.0) if len(share) else np.ones(core.n_edges))
    return found[0], found[1]


def proved(game: Game, flow: Float) -> Fraction:
    """The lower bound that a flow (a,) over the lanes proves, exactly: it is made whole first.

    The flow counts with all that its lanes take at most, less what the best shares against it save.
    """
    core, board = game.core, game.board
    parts = np.zeros(len(flow), dtype=np.int64)
    split.select(4 * len(flow))(board.start, board.target, np.maximum(flow, 0.0), WHOLE, parts)
    exact = parts.astype(object)
    edge = game.edge
    taken = (core.fixed + core.hidden + core.length[core.target])[edge].astype(object)
    total = int((taken * exact).sum()) + int(core.length[0]) * WHOLE
    for kind, weight, end in ((OUT, core.out_weight, core.source), (IN, core.in_weight, core.target)):
        lanes = np.flatnonzero((game.kind == kind) & (parts > 0))
        if len(lanes) == 0:
            continue
        saved = -(-core.hidden[edge[lanes]].astype(object) * exact[lanes] // weight[edge[lanes]].astype(object))
        ends = end[edge[lanes]]
        by_end = np.argsort(ends, kind="stable")
        first = np.flatnonzero(np.diff(ends[by_end], prepend=-1))
        total -= int(np.maximum.reduceat(saved[by_end], first).sum())
    return Fraction(total, WHOLE)
