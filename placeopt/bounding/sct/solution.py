"""Solve the linear program to a tolerance (reductions, then GLOP or the game), or over whole favourites (CP-SAT)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from placeopt import engine
from placeopt.bounding.sct.core import FREE, Core, composed, core_of, heads, merged, reduced
from placeopt.bounding.sct.game import (
    GameState,
    continued_state,
    favourites,
    flow_bound,
    game_of,
    initial_state,
    longest,
    one_sided,
    shares_of,
    sides_of,
)
from placeopt.bounding.sct.program import SctProgram
from placeopt.model.arrays import Float, Int
from placeopt.protocol import Clock

Method = Literal["reductions", "glop", "game", "cp-sat"]

TOLERANCE = 1e-4
"""Relative gap between both bounds of w at which the game ends."""

SMALL, LARGE = 600, 10_000
"""Cores with at most SMALL edges go to GLOP at once, and with at most LARGE edges if the game is slow."""

FIRST, THEN = 100, 100
"""Rounds before the first check of the bounds, and between two checks."""

ROUNDS, SLOW = 20_000, 2000
"""Maximum number of rounds, and the rounds after which the game counts as slow."""

PASSES = 4
"""Filling passes per check."""

SHRUNK = 0.95
"""The game continues on the reduced core if that has at most this share of the edges."""

SAFETY = 1e-9
"""Relative margin for floating-point bounds that decide only what is pruned."""

LARGEST = 1 << 50
"""Longest path that CP-SAT accepts."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A feasible point of the program, and a proof of its quality."""

    value: float  # w of the point, in ticks
    bound: Fraction  # exact lower bound of w over all points, in ticks
    y: Float  # (e,) in [0, 1], by the program's edges; 0 where nothing is hidden
    start: Float  # (n,) the earliest starts for that y, in ticks
    method: Method  # what solved it
    rounds: int  # rounds of the game
    # The size of the core after all reductions
    tasks: int
    edges: int

    @property
    def gap(self) -> float:
        """An upper bound of (value - optimum) / value; 0 if the value is 0."""
        return max(0.0, 1.0 - float(self.bound) / self.value) if self.value > 0 else 0.0


def solution_of(
    program: SctProgram,
    *,
    tolerance: float = TOLERANCE,
    rounds: int = ROUNDS,
    should_stop: Callable[[], bool] = lambda: False,
) -> Solution:
    """Solve the program to a relative gap of `tolerance`, or as far as `rounds` and `should_stop` allow."""
    return _Search(program, tolerance, rounds, should_stop).run()


class _Search:
    def __init__(self, program: SctProgram, tolerance: float, rounds: int, should_stop: Callable[[], bool]) -> None:
        self.program, self.tolerance, self.most = program, tolerance, rounds
        self.should_stop, self.stop = should_stop, engine.Stop(should_stop)
        self.whole, self.edge = core_of(program)
        self.bound = Fraction(0)
        self.value = np.inf
        self.y = np.zeros(self.whole.n_edges)
        self.rounds = 0

    def run(self) -> Solution:
        """Reduce the program, then solve the rest."""
        core, became = self._reduced()
        method: Method = "reductions"
        self._keep(np.zeros(core.n_edges), became)
        if not self._done and core.n_edges:
            method = "glop"
            if core.n_edges > SMALL or not self._exact(core, became):
                method = "game"
                core = self._play(core, became)
        return _solution(self.program, self.whole, self.edge, self.y, self.bound, method, self.rounds, core)

    def _reduced(self) -> tuple[Core, Int]:
        """The core after repeated reductions with simple bounds, and the new index of each edge."""
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
            try:  # Rounded down: the value is a float.
                simple = Fraction(int(one_sided(core, sides_of(core), self.stop) * (1 - SAFETY)))
            except engine.StoppedError:
                return core, became
            if simple <= self.bound:
                return core, became
            self.bound = simple

    @property
    def _done(self) -> bool:
        return self.value - float(self.bound) <= self.tolerance * self.value

    def _keep(self, y: Float, became: Int) -> None:
        """Store the favourites of a core if they are the best so far."""
        lifted = np.where(became == FREE, 1.0, 0.0)
        left = became >= 0
        lifted[left] = y[became[left]]
        value = longest(self.whole, lifted)
        if value < self.value:
            self.value, self.y = value, lifted

    def _exact(self, core: Core, became: Int) -> bool:
        """Solve the core with GLOP; return whether that succeeded."""
        from placeopt.bounding.sct.engine import optimum

        game = game_of(core)
        found = optimum(game)
        if found is None:
            return False
        y, flow = found
        self._keep(y, became)
        self.bound = max(self.bound, flow_bound(game, flow))
        return self._done

    def _play(self, core: Core, became: Int) -> Core:
        game = game_of(core)
        play, sides = initial_state(game), sides_of(core)
        while not self._done and self.rounds < self.most and not self.should_stop():
            if self.rounds == SLOW and core.n_edges <= LARGE and self._exact(core, became):
                break
            count = min(THEN if self.rounds else FIRST, self.most - self.rounds)
            state, played = engine.play_rounds(game.board, play, self.rounds + 1, self.rounds + count, self.stop)
            play = GameState(*state)
            self.rounds += played
            y_out, y_in = shares_of(game, play.mean_share)
            self._keep(favourites(core, sides, y_out, y_in, PASSES, self.stop), became)
            self.bound = max(self.bound, flow_bound(game, play.mean_flow))
            left, then = reduced(core, float(self.bound) * (1 - SAFETY))
            if 0 < left.n_edges <= SHRUNK * core.n_edges:
                core, became = left, composed(became, then)
                before, game = game, game_of(left)
                play, sides = continued_state(game, before, play, then), sides_of(left)
        return core


def _solution(
    program: SctProgram, core: Core, edge: Int, y: Float, bound: Fraction, method: Method, rounds: int, left: Core
) -> Solution:
    """The solution for y (e,) by the edges of the core; `edge` are the program's edges, `left` the reduced core."""
    start = heads(core, core.fixed + core.hidden * (1.0 - y)) / program.parts
    return Solution(
        value=float(start[-1]),
        bound=bound / Fraction(program.parts),
        y=np.where(program.hidden > 0, y[edge], 0.0),
        start=start[np.argsort(program.order) + 1],
        method=method,
        rounds=rounds,
        tasks=left.n_tasks - 2,
        edges=left.n_edges,
    )


def integral_solution(
    program: SctProgram,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int = 1,
    should_stop: Callable[[], bool] = lambda: False,
) -> Solution | None:
    """The best whole favourites found (x in {0, 1}: Hanen and Munier's integer program), and a bound of w, by CP-SAT.

    Of several optima, one that hides the most. None if none is found in time.
    """
    from ortools.sat.python import cp_model

    from placeopt.bounding.engines import cp_sat

    core, place = core_of(program)
    most = int(heads(core, core.fixed + core.hidden)[-1])
    if most > LARGEST:
        return None
    model = cp_model.CpModel()
    low = heads(core, core.fixed).astype(np.int64).tolist()
    start = [model.new_int_var(first, most, "") for first in low]
    favourite = {e: model.new_bool_var("") for e in np.flatnonzero(core.hidden > 0).tolist()}
    length, fixed, hidden = core.length.tolist(), core.fixed.tolist(), core.hidden.tolist()
    for e, (i, j) in enumerate(zip(core.source.tolist(), core.target.tolist(), strict=True)):
        after = start[i] + length[i] + fixed[e]
        model.add(start[j] >= (after if e not in favourite else after + hidden[e] - hidden[e] * favourite[e]))
    for rival, end in ((core.out_rival, core.source), (core.in_rival, core.target)):
        groups: dict[int, list[cp_model.IntVar]] = {}
        for e in np.flatnonzero(rival).tolist():
            groups.setdefault(int(end[e]), []).append(favourite[e])
        for group in groups.values():
            model.add_at_most_one(group)
    clock = Clock(time_limit)

    def minimised(objective: cp_model.LinearExprT) -> cp_sat.Outcome:
        model.minimize(objective)
        return cp_sat.run(
            model,
            largest=max(most, sum(hidden)),
            seconds=clock.remaining,
            seed=seed,
            workers=workers,
            should_stop=should_stop,
        )

    best = minimised(start[-1])
    if not best.solved or best.bound is None:
        return None
    # Second level: hide the most.
    model.add(start[-1] <= best.solver.value(start[-1]))
    settled = minimised(-sum(hidden[e] * variable for e, variable in favourite.items()))
    solver = settled.solver if settled.solved else best.solver
    y = np.ones(core.n_edges)
    for e, variable in favourite.items():
        y[e] = float(solver.value(variable))
    return _solution(program, core, place, y, Fraction(best.bound), "cp-sat", 0, core)
