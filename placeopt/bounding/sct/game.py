"""Solve the linear program as a zero-sum game; turn strategies into feasible points and certified bounds.

**The game.** Each task divides one unit of *share* among its children (p_ij) and one among its parents (q_ij). Then
y_ij = min(p_ij, q_ij) is feasible, and every feasible y is at most such a minimum. The delay of an edge, fixed +
hidden (1 - y), is the longer of two *lanes*, fixed + hidden (1 - p) and fixed + hidden (1 - q). So the program is a
zero-sum game. One player chooses a path, and a lane at each edge, to maximise the length; the other chooses the shares
to minimise it. Its value is w. By von Neumann's theorem the first player has an optimal mixed strategy, which is a
unit flow f over the lanes:

    w = max over flows of  sum (k + fixed + hidden) f - sum over tasks of max over its children's lanes of hidden f
                                                       - sum over tasks of max over its parents' lanes of hidden f

This is the dual of the linear program. Any shares prove an upper bound of w, the longest path; any flow proves a lower
bound.

**The algorithm** is counterfactual regret minimisation (M. Zinkevich, M. Johanson, M. Bowling, C. Piccione, "Regret
minimization in games with incomplete information", NIPS 2007): regret matching independently for the choice and for the
shares at each task, O(e) per round. As in CFR+ (O. Tammelin, "Solving large imperfect information games using CFR+",
2014, arXiv:1407.5042), regrets are cut off at zero, averages are weighted by the square of the round, and the players
alternate. Regrets of the path player are discounted by t^1.25 / (t^1.25 + 1) in round t (N. Brown, T. Sandholm,
"Solving imperfect-information games via discounted regret minimization", AAAI 2019, doi:10.1609/aaai.v33i01.33011829).

The average shares are then improved: one backward pass finds the best p for given q exactly, then one forward
pass the best q for that p, and so on.

One round propagates along whole paths, one step of a gradient method along one edge.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from placeopt import engine
from placeopt.bounding.sct.core import Core, heads, with_edges
from placeopt.model.arrays import Bool, Float, Int

ALWAYS, OUT, IN = 0, 1, 2
"""Kinds of lanes: without shares, with the producer's shares, with the consumer's shares."""

WHOLE = 1 << 52
"""Units into which the flow is divided to make it integral."""


class Board(NamedTuple):
    """The arrays of a game with n tasks and a lanes, sorted by source, then kind.

    Tasks are in topological order. `start` (n + 1,) delimits the lanes out of each task, `out_start` and `out_end` (n,)
    those of them with its shares. `in_lane[in_start[i]:in_start[i + 1]]` are the lanes into task i with its shares.
    `ticks` (a,) is the longest time of a lane, `relief` (a,) the reduction by a whole share.
    """

    length: Float
    start: Int
    out_start: Int
    out_end: Int
    in_start: Int
    in_lane: Int
    target: Int
    ticks: Float
    relief: Float


class GameState(NamedTuple):
    """Regrets, strategies and averages of each lane, all (a,).

    `regret` and `choice` (current probabilities) belong to the path player, `share_regret` and `share` to the other.
    `mean_flow` and `mean_share` are the averages.
    """

    regret: Float
    choice: Float
    share_regret: Float
    share: Float
    mean_flow: Float
    mean_share: Float


@dataclass(frozen=True, slots=True, eq=False)
class Game:
    """The board of a core and the meaning of its lanes."""

    core: Core
    unit: float  # parts of a tick that count as 1 on the board
    board: Board
    # (a,) ALWAYS, OUT or IN, and the edge, of each lane
    kind: Int
    edge: Int
    lane: Int  # (3, e) the lane of each edge of these kinds; -1 for none


def game_of(core: Core) -> Game:
    """The game of a core; times are in units of a mean length."""
    n, e = core.n_tasks, core.n_edges
    always = ~core.out_rival & ~core.in_rival
    parts = [np.flatnonzero(each) for each in (always, core.out_rival, core.in_rival)]
    edge = np.concatenate(parts)
    kind = np.repeat(np.arange(3), [len(each) for each in parts])
    by_source = np.lexsort((edge, kind, core.source[edge]))
    edge, kind = edge[by_source], kind[by_source]
    source, target = core.source[edge], core.target[edge]
    unit = float((core.fixed + core.hidden).sum() + core.length.sum()) / max(n, 1) or 1.0
    weight = np.where(kind == OUT, core.out_weight[edge], core.in_weight[edge])
    relief = np.where(kind == ALWAYS, 0.0, core.hidden[edge] / weight)
    key = source * 3 + kind
    in_lane = np.flatnonzero(kind == IN)
    in_lane = in_lane[np.argsort(target[in_lane], kind="stable")]
    lane = np.full((3, e), -1, dtype=np.int64)
    lane[kind, edge] = np.arange(len(edge))
    board = Board(
        length=core.length / unit,
        start=np.searchsorted(source, np.arange(n + 1)),
        out_start=np.searchsorted(key, np.arange(n) * 3 + OUT),
        out_end=np.searchsorted(key, np.arange(n) * 3 + IN),
        in_start=np.searchsorted(target[in_lane], np.arange(n + 1)),
        in_lane=in_lane,
        target=target,
        ticks=(core.fixed + core.hidden)[edge] / unit,
        relief=relief / unit,
    )
    return Game(core, unit, board, kind, edge, lane)


def initial_state(game: Game) -> GameState:
    """The state before the first round: uniform strategies."""
    a = len(game.edge)
    play = GameState(*(np.zeros(a) for _ in GameState._fields))
    play.choice[:] = 1.0
    play.share[:] = 1.0
    _normalise(game, play)
    return play


def continued_state(game: Game, before: Game, play: GameState, became: Int) -> GameState:
    """The state of the previous game, on its remaining edges; `became` (e,) are their new indices."""
    lanes = np.full(len(game.edge), -1, dtype=np.int64)
    for new, old in zip(game.lane, before.lane, strict=True):
        edges = np.flatnonzero((became >= 0) & (old >= 0))
        edges = edges[new[became[edges]] >= 0]
        lanes[new[became[edges]]] = old[edges]
    known = lanes >= 0
    left = GameState(*(np.where(known, each[np.maximum(lanes, 0)], 0.0) for each in play))
    _normalise(game, left)
    return left


def _normalise(game: Game, play: GameState) -> None:
    """Make choices and shares sum to one again, uniform where nothing is left."""
    board = game.board
    source = np.repeat(np.arange(len(board.length)), np.diff(board.start))
    n = len(board.length)
    sharing = np.where(game.kind == OUT, source, n + board.target)
    for values, group in ((play.choice, source), (play.share, sharing), (play.mean_share, sharing)):
        total = np.bincount(group, weights=values, minlength=2 * n)
        number = np.bincount(group, minlength=2 * n)
        values[:] = np.where(total[group] > 0, values / np.where(total > 0, total, 1.0)[group], 1.0 / number[group])
    for values in (play.share, play.mean_share):
        values[game.kind == ALWAYS] = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A core seen from one end: `edge` (e,) are the edges sorted by that end; the other arrays follow its order."""

    edge: Int
    start: Int
    target: Int
    length: Float
    fixed: Float
    hidden: Float
    weight: Float
    rival: Bool

    def filled(self, limit: Float, stop: engine.Stop) -> tuple[Float, float]:
        """(e,) the y that the best shares of this side allow under limits (e,) of the other, and the longest path."""
        given = self.start, self.target, self.length, self.fixed, self.hidden, self.weight, self.rival
        own, value = engine.fill_shares(*given, limit[self.edge], stop)
        shares = np.empty(len(own))
        shares[self.edge] = own
        return shares, float(value[0])


def sides_of(core: Core) -> tuple[Side, Side]:
    """The core seen from the producers and from the consumers; the latter is the reversed core."""
    source, target = core.n_tasks - 1 - core.target, core.n_tasks - 1 - core.source
    weight, rival = core.in_weight, core.in_rival
    backwards = replace(
        core, length=core.length[::-1], source=source, target=target, out_weight=weight, out_rival=rival
    )
    return _side(core, np.arange(core.n_edges)), _side(backwards, np.lexsort((target, source)))


def _side(core: Core, edge: Int) -> Side:
    """The core seen from the producers; `edge` (e,) are the edges sorted by source, then target."""
    core = with_edges(core, edge)
    start = np.searchsorted(core.source, np.arange(core.n_tasks + 1))
    length, fixed, hidden, weight = (
        ticks.astype(np.float64) for ticks in (core.length, core.fixed, core.hidden, core.out_weight)
    )
    return Side(edge, start, core.target, length, fixed, hidden, weight, core.out_rival)


def longest(core: Core, y: Float) -> float:
    """The longest path for favourites y (e,)."""
    return float(heads(core, core.fixed + core.hidden * (1.0 - y))[-1])


def favourites(
    core: Core, sides: tuple[Side, Side], y_out: Float, y_in: Float, passes: int, stop: engine.Stop
) -> Float:
    """The best y (e,) found by filling the sides in turn from what the shares of both allow."""
    best = np.minimum(y_out, y_in)
    least = longest(core, best)
    with contextlib.suppress(engine.StoppedError):
        for turn in range(passes):
            if turn % 2 == 0:
                y_out, _ = sides[0].filled(y_in, stop)
            else:
                y_in, _ = sides[1].filled(y_out, stop)
            y = np.minimum(y_out, y_in)
            value = longest(core, y)
            if value < least:
                best, least = y, value
    return best


def one_sided(core: Core, sides: tuple[Side, Side], stop: engine.Stop) -> float:
    """A lower bound: the longest path if only children are rivals, or only parents."""
    free = np.ones(core.n_edges)
    return max(side.filled(free, stop)[1] for side in sides)


def shares_of(game: Game, share: Float) -> tuple[Float, Float]:
    """(e,) the y that shares (a,) of producers and of consumers allow; 1 for edges that are not rivals."""
    core = game.core
    if len(share) == 0:
        return np.ones(core.n_edges), np.ones(core.n_edges)
    y_out, y_in = (
        np.where(lane >= 0, share[lane] / weight, 1.0)
        for lane, weight in ((game.lane[OUT], core.out_weight), (game.lane[IN], core.in_weight))
    )
    return y_out, y_in


def flow_bound(game: Game, flow: Float) -> Fraction:
    """The exact lower bound that a flow (a,) over the lanes proves, after rounding it to an integral flow.

    It is the flow's total over the longest times of its lanes, less what the best response of shares saves.
    """
    core, board = game.core, game.board
    parts = engine.split_flow(board.start, board.target, np.maximum(flow, 0.0), WHOLE)
    edge = game.edge
    total = _exact_dot((core.fixed + core.hidden + core.length[core.target])[edge], parts) + int(core.length[0]) * WHOLE
    for kind, weight, end in ((OUT, core.out_weight, core.source), (IN, core.in_weight, core.target)):
        lanes = np.flatnonzero((game.kind == kind) & (parts > 0))
        columns = end[edge[lanes]], core.hidden[edge[lanes]], parts[lanes], weight[edge[lanes]]
        task, hidden, part, number = columns
        saved, most = hidden * (part / number), np.zeros(core.n_tasks)
        np.maximum.at(most, task, saved)
        near = saved >= most[task] * (1.0 - 1e-12)  # only these may be the most in exact numbers
        alone = near & (np.bincount(task[near], minlength=core.n_tasks)[task] == 1) & (number == 1)
        total -= _exact_dot(hidden[alone], part[alone])
        near &= ~alone
        exact: dict[int, int] = {}
        for i, ticks, units, share in zip(*(column[near].tolist() for column in columns), strict=True):
            exact[i] = max(exact.get(i, 0), -(-ticks * units // share))
        total -= sum(exact.values())
    return Fraction(total, WHOLE)


def _exact_dot(a: Int, b: Int) -> int:
    """The exact sum of the products of numbers that are not negative, by digits of 16 bits."""
    first, second = ([each >> shift & 0xFFFF for shift in (0, 16, 32, 48)] for each in (a, b))
    return sum(int(x @ y) << 16 * (i + j) for i, x in enumerate(first) for j, y in enumerate(second))
