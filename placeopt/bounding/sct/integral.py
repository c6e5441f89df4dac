"""The programme with whole favourites, x in {0, 1}: Hanen and Munier's integer programme, by CP-SAT."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from placeopt.bounding.sct.core import core_of, heads
from placeopt.bounding.sct.programme import Programme
from placeopt.bounding.sct.solution import Solution, starts
from placeopt.solver import Clock

LARGEST = 1 << 50
"""Longest path that CP-SAT is given."""


def integral_solution(
    programme: Programme,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int = 1,
    should_stop: Callable[[], bool] = lambda: False,
) -> Solution | None:
    """The best whole favourites found, of several those that hide most, and a bound of w; None if none in time."""
    from ortools.sat.python import cp_model

    from placeopt.bounding.engines import cp_sat

    core, place = core_of(programme)
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
    # Of these, one that hides the most.
    model.add(start[-1] <= best.solver.value(start[-1]))
    settled = minimised(-sum(hidden[e] * variable for e, variable in favourite.items()))
    solver = settled.solver if settled.solved else best.solver
    y = np.ones(core.n_edges)
    for e, variable in favourite.items():
        y[e] = float(solver.value(variable))
    return Solution(
        value=float(heads(core, core.fixed + core.hidden * (1.0 - y))[-1]) / programme.parts,
        bound=Fraction(best.bound, programme.parts),
        y=np.where(programme.hidden > 0, y[place], 0.0),
        start=starts(programme, core, y),
        method="cp-sat",
        rounds=0,
        tasks=core.n_tasks - 2,
        edges=core.n_edges,
    )
