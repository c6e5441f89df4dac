"""The load of machines that several devices share, as modes and teams do: a linear program over all of them.

    minimise    T
    subject to  sum over d of x[g, d] = 1                                   for each group g
                sum over g and the devices d on q of ticks[g, d] x[g, d] <= T   for each machine q
                sum over g and d of use[g, d] x[g, d] <= capacity           for each budget, such as memory of a machine

Every placement is a solution in which x is 0 or 1 and T its period, without what devices send and receive. The engine's
dual values prove the bound in exact arithmetic (`LinearProgram.safe_dual_bound`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.engines.linear_program import BITS, LinearProgram
from placeopt.bounding.engines.mathopt import mathopt_model, run_glop
from placeopt.engine import StoppedError
from placeopt.model.arrays import Int, by_index
from placeopt.model.problem import Problem

MOST = 500_000
"""Maximum number of pairs of a group and a device."""


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """A lower bound of the period, and the prices that prove it: of a tick of machines, and of a unit of budgets."""

    value: int
    machines: dict[int, int]
    budgets: dict[str, int]


def machine_load(problem: Problem, seconds: float | None, should_stop: Callable[[], bool]) -> MachineLoad | None:
    """A lower bound of the period of a pipeline whose devices occupy machines; None if none is found in time."""
    pipeline = problem.pipeline
    assert pipeline is not None
    group, device = np.nonzero(problem.group_feasible())
    if not 0 < len(group) <= MOST:
        return None

    def by_group(amounts: Int) -> Int:
        """What the groups take of amounts (n, m), by column."""
        total = by_index(np.add, problem.group, amounts, problem.n_groups)
        return np.asarray(total[group, device])

    ticks, on, resources = by_group(problem.duration), pipeline.occupied, problem.resources
    budgets: list[int] = [] if resources is None else resources.budgets.tolist()
    program = LinearProgram(should_stop=should_stop)
    share = program.add_columns(np.ones(len(group), dtype=np.int64), integral=False)
    longest = int(program.add_columns([int(ticks.sum())], integral=False)[0])
    program.objective = {longest: 1}
    try:
        for columns in np.split(share, np.flatnonzero(np.diff(group)) + 1):
            program.add_row(columns, np.ones_like(columns), 1, equation=True)
        for mine in on[device].T:
            program.add_row([*share[mine], longest], [*-ticks[mine], 1])
        for r in budgets:
            assert resources is not None  # it has budgets
            program.add_row(share, -by_group(resources.amounts(r)), -int(resources.capacity[r]))
    except StoppedError:
        return None
    found = run_glop(mathopt_model(program, relaxed=True), seconds=seconds, should_stop=should_stop)
    if found.duals is None:
        return None
    duals = [max(dual, 0.0) if math.isfinite(dual) else 0.0 for dual in found.duals[-on.shape[1] - len(budgets) :]]
    prices = [round(dual * (1 << BITS)) for dual in duals]
    named = zip([] if resources is None else [resources.names[r] for r in budgets], prices[on.shape[1] :], strict=True)
    value = max(math.ceil(program.safe_dual_bound(found.duals)), 0)
    return MachineLoad(value, dict(enumerate(prices[: on.shape[1]])), dict(named))
