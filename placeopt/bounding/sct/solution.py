"""Solving the programme to a tolerance: reductions, an engine for what is small, a game for what is large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from placeopt.bounding.sct.core import FREE, Core, composed, core_of, heads, reduced
from placeopt.bounding.sct.game import continued, fresh, game_of, played
from placeopt.bounding.sct.programme import Programme
from placeopt.bounding.sct.proof import favourites, longest, one_sided, proved, shares_of, sides_of
from placeopt.bounding.sct.symmetry import merged
from placeopt.model.arrays import Float

Method = Literal["reductions", "glop", "game", "cp-sat"]

TOLERANCE = 1e-4
"""Relative gap between both bounds of w at which the game ends."""

SMALL, LARGE = 600, 10_000
"""Edges up to which the engine solves what is left at once, and up to which it does where the game is slow. With 1,900
edges the engine takes 260 ms and the compiled game 26 ms (benchmarks/first_use.py)."""

FIRST, THEN = 100, 100
"""Rounds before the first look at the bounds, and between two."""

ROUNDS, SLOW = 20_000, 2000
"""Rounds, at most, and those after which the game counts as slow."""

PASSES = 4
"""Passes of filling at each look."""

SHRUNK = 0.95
"""The game goes on with what is left once that is no more than this part of its edges."""

SAFETY = 1e-9
"""Relative margin for bounds in floats that only decide what is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A feasible point of the programme, and a proof of how good it is.

    Attributes
    ----------
    value
        w of the point, in ticks.
    bound
        No point has a smaller w, in ticks: exact.
    y
        (e,) in [0, 1], by the programme's edges; 0 where nothing is hidden.
    start
        (n,) the earliest starts for that y, in ticks.
    method
        What solved it.
    rounds
        Rounds of the game.
    tasks, edges
        What the reductions left in the end.
    """

    value: float
    bound: Fraction
    y: Float
    start: Float
    method: Method
    rounds: int
    tasks: int
    edges: int

    @property
    def gap(self) -> float:
        """(value - bound) / value, at least; 0 where both are."""
        return max(0.0, 1.0 - float(self.bound) / self.value) if self.value > 0 else 0.0


def solution_of(
    programme: Programme,
    *,
    tolerance: float = TOLERANCE,
    rounds: int = ROUNDS,
    small: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Solution:
    """The programme solved to a relative gap of `tolerance`, or as far as `rounds` or `should_stop` allow.

    The engine solves what reductions leave if that has at most `small` edges, SMALL unless given.
    """
    return _Search(programme, tolerance, rounds, SMALL if small is None else small, should_stop).run()


class _Search:
    def __init__(
        self, programme: Programme, tolerance: float, rounds: int, small: int, should_stop: Callable[[], bool]
    ) -> None:
        self.programme, self.tolerance, self.most, self.should_stop = programme, tolerance, rounds, should_stop
        self.small = small
        self.whole, self.edge = core_of(programme)
        self.bound = Fraction(0)
        self.value = np.inf
        self.y = np.zeros(self.whole.n_edges)
        self.rounds = 0

    def run(self) -> Solution:
        """Reduce, then solve what is left."""
        core, became = self._reduced()
        method: Method = "reductions"
        self._keep(np.zeros(core.n_edges), became)
        if not self._done and core.n_edges:
            method = "glop"
            if core.n_edges > self.small or not self._exact(core, became):
                method = "game"
                core = self._play(core, became)
        return self._solution(method, core)

    def _reduced(self) -> tuple[Core, NDArray[np.int64]]:
        """What is left once simple bounds are known, again and again; and what became of the edges."""
        core = self.whole
        became = np.arange(core.n_edges)
        self.bound = Fraction(int(heads(core, core.fixed)[-1]))
        merging = True
        while True:
            core, then = reduced(core, float(self.bound))
            became = composed(became, then)
            if core.n_edges and merging:
                core, then = merged(core)
                became = composed(became, then)
                merging = False
            if core.n_edges == 0:
                return core, became
            # A float, made smaller than what it stands for.
            simple = Fraction(int(one_sided(core, sides_of(core)) * (1 - SAFETY)))
            if simple <= self.bound:
                return core, became
            self.bound = simple

    @property
    def _done(self) -> bool:
        return self.value - float(self.bound) <= self.tolerance * self.value

    def _keep(self, y: Float, became: NDArray[np.int64]) -> None:
        """Note favourites of a core, if they are the best."""
        lifted = np.where(became == FREE, 1.0, np.where(became >= 0, y[became] if len(y) else 0.0, 0.0))
        value = longest(self.whole, lifted)
        if value < self.value:
            self.value, self.y = value, lifted

    def _exact(self, core: Core, became: NDArray[np.int64]) -> bool:
        """Let the engine solve the core; whether it could."""
        from placeopt.bounding.sct.engine import optimum

        game = game_of(core)
        found = optimum(game)
        if found is None:
            return False
        y, flow = found
        self._keep(y, became)
        self.bound = max(self.bound, proved(game, flow))
        return self._done

    def _play(self, core: Core, became: NDArray[np.int64]) -> Core:
        game = game_of(core)
        play, weight, sides = fresh(game), 0.0, sides_of(core)
        while not self._done and self.rounds < self.most and not self.should_stop():
            if self.rounds == SLOW and core.n_edges <= LARGE and self._exact(core, became):
                break
            count = min(THEN if self.rounds else FIRST, self.most - self.rounds)
            run = played.select(10 * count * len(game.edge))
            weight = run(game.board, play, self.rounds + 1, self.rounds + count, weight)
            self.rounds += count
            y_out, y_in = shares_of(game, play.mean_share)
            y, _ = favourites(core, sides, y_out, y_in, PASSES)
            self._keep(y, became)
            self.bound = max(self.bound, proved(game, play.mean_flow))
            left, then = reduced(core, float(self.bound) * (1 - SAFETY))
            if 0 < left.n_edges <= SHRUNK * core.n_edges:
                core, became = left, composed(became, then)
                before, game = game, game_of(left)
                play, sides = continued(game, before, play, then), sides_of(left)
        return core

    def _solution(self, method: Method, core: Core) -> Solution:
        parts = self.programme.parts
        return Solution(
            value=self.value / parts,
            bound=self.bound / parts,
            y=np.where(self.programme.hidden > 0, self.y[self.edge], 0.0),
            start=starts(self.programme, self.whole, self.y),
            method=method,
            rounds=self.rounds,
            tasks=core.n_tasks - 2,
            edges=core.n_edges,
        )


def starts(programme: Programme, core: Core, y: Float) -> Float:
    """(n,) the earliest starts of the programme's tasks, in ticks; y (e,) by the edges of its core."""
    place = np.empty(len(programme.order), dtype=np.int64)
    place[programme.order] = np.arange(1, len(place) + 1)
    return heads(core, core.fixed + core.hidden * (1.0 - y))[place] / programme.parts
