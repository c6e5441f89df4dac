"""Randomised list scheduling: PEFT with noise in its ranks and its table, where noise that helps is kept.

PEFT (`..list_scheduling.peft`) takes milliseconds per thousand tasks, and its schedule depends on ranks and optimistic
costs that are estimates. Small changes of both give other schedules, of which some are better: biased sampling of
priority rules (J. Bresina: Heuristic-biased stochastic sampling, AAAI 1996). Here the samples are not independent: each
changes the ranks and costs of the best so far, for all tasks or for a random part of them, as a (1+1) evolution
strategy does. On an irregular graph of 10,000 tasks on 60 devices, 290 samples in 6 s of one core reach 398,607 ticks;
as many independent samples reach 403,531, and PEFT 424,931.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Float
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Answer, Options

from .._constructive.construction import construct_with_repair
from .._constructive.priorities import mean_costs, optimistic_costs, ready_order
from .._constructive.sequences import Penalties, insert_tasks
from .._runs.solve_run import SolveRun
from .._runs.validity import valid

RANK, COST, PART = (-3.5, -2.0), (-2.0, -0.7), (-2.0, 0.0)
"""Exponents of 10, drawn uniformly: noise of a rank as a part of it, noise of a cost as a part of the mean duration,
and the share of tasks that a sample changes."""

MOST = 20_000_000
"""Largest number of (task, device) pairs: a sample of more takes seconds and gigabytes."""


def randomised(problem: Problem, options: Options, *, steps: tuple[int, ...] = ()) -> Answer:
    """Return the best schedule of as many samples as the time limit allows; the first sample always ends.

    `steps` are the seeds of the changes after which the search continues. They stand for ranks and costs, which would
    be megabytes. `Answer.stats` has those of the best schedule as `steps`.
    """
    run = SolveRun(problem, options)
    rng = np.random.default_rng(options.seed)
    estimates = optimistic_costs(problem)
    rank, table = mean_costs(problem, estimates), estimates.astype(np.float64)
    for step in steps:
        rank, table = _changed(problem, rank, table, step)
    run.stats["steps"] = steps
    if steps:
        schedule = _listed(problem, rank, table)
        if schedule is not None:
            run.best.offer(schedule)
    while True:
        step = int(rng.integers(2**62))
        ranks, costs = _changed(problem, rank, table, step)
        schedule = _listed(problem, ranks, costs)
        if schedule is not None and run.best.offer(schedule):
            rank, table = ranks, costs
            run.stats["steps"] += (step,)
        reason = run.stop_reason()
        if reason is not None:
            return run.ended(reason)


def _changed(problem: Problem, rank: Float, table: Float, seed: int) -> tuple[Float, Float]:
    """Return ranks (n,) and optimistic costs (n, m) with the noise of a seed."""
    rng = np.random.default_rng(seed)
    share, spread, noise = (10.0 ** rng.uniform(*each) for each in (PART, RANK, COST))
    chosen = np.flatnonzero(rng.random(problem.n_tasks) < share)
    ranks, costs = rank.copy(), table.copy()
    ranks[chosen] *= 1 + spread * rng.standard_normal(len(chosen))
    costs[chosen] += float(problem.duration.mean()) * noise * rng.standard_normal((len(chosen), problem.n_devices))
    return ranks, costs


def _listed(problem: Problem, rank: Float, table: Float) -> Schedule | None:
    """Return the schedule of PEFT with ranks (n,) and optimistic costs (n, m), if it is valid."""
    sequence = ready_order(problem, rank)
    penalties = Penalties(np.arange(problem.n_tasks), np.rint(np.maximum(table, 0)).astype(np.int64))
    found = construct_with_repair(problem, lambda groups: insert_tasks(problem, groups, sequence, penalties)).schedule
    return found if found is not None and valid(problem, found) else None
