"""Solve the subproblem of a neighbourhood with CP-SAT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.schedule import Schedule
from placeopt.solver import ALL_METRICS

from ..._runs.exact_run import TooLargeError
from ...exact._cp_sat.limits import Limits
from .._intervals.state import State
from .._intervals.subproblem import Subproblem

FAST: dict[str, object] = {
    "cp_model_presolve": False,
    "linearization_level": 0,
    "symmetry_level": 0,
    "use_precedences_in_disjunctive_constraint": False,
}
"""Parameters of CP-SAT for small scheduling models: 24 subproblems took 2.4 instead of 3.5 s, with equal results. A
linear relaxation was four times slower. Presolve has risks (`placeopt.bounding.engines.cp_sat`) and no benefit here."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The result for a subproblem, in its own ticks."""

    device: Int | None  # (k,); None without a schedule that is short enough
    start: Int | None  # (k,)
    proved: bool  # whether no shorter schedule exists
    work: float  # deterministic time of CP-SAT
    size: int  # variables of the model


def solved(sub: Subproblem, state: State, limit: float, seed: int, stopped: Callable[[], bool]) -> Solution:
    """Minimise the makespan of a subproblem within a deterministic time, without increasing it."""
    from ...exact._cp_sat.model import Model  # loads OR-Tools

    problem, horizon = sub.problem, sub.span
    limits = Limits(
        horizon=horizon, allowed=sub.allowed, head=sub.head, tail=sub.tail, largest=dict.fromkeys(ALL_METRICS, horizon)
    )
    try:
        model = Model(problem, limits, False, lambda: False)
    except TooLargeError:
        return Solution(None, None, False, 0.0, 0)
    cp, timing = model.base.cp, model.timing
    assert timing is not None
    now = state.device[sub.tasks]
    for d in range(problem.n_devices):
        for i, j in pairwise(np.flatnonzero(~sub.free & (now == d)).tolist()):
            cp.add(timing.starts[j] >= timing.ends[i])
    for i in np.flatnonzero((sub.late <= horizon).any(axis=1)).tolist():
        for d, x in model.placement.at[int(problem.group[i])].items():
            if sub.late[i, d] <= horizon:
                cp.add(timing.ends[i] <= int(sub.late[i, d])).only_enforce_if(x)
    found: list[Schedule] = []
    outcome = model.minimise(
        model.levels[0],
        Schedule(now, state.start[sub.tasks] - sub.origin),
        found.append,
        seconds=None,
        seed=seed % 2**31,
        workers=1,
        should_stop=stopped,
        parameters={**FAST, "max_deterministic_time": limit},
    )
    proved = outcome.status in ("OPTIMAL", "INFEASIBLE")
    device, start = (found[-1].device, found[-1].start) if found else (None, None)
    return Solution(device, start, proved, outcome.work, model.base.size)
