"""Build the chain of problems between the optimum and a schedule found, and bound the optimum of each.

    free        the problem itself
    clusters    the same, and all tasks of a cluster are on one device: the clusters become colocation groups
    placement   the same, and every task is on its device of the schedule found

Tasks are ordered freely in all three. Each problem admits the schedules of the next one and has the same objective, so

    OPT(free) <= OPT(clusters) <= OPT(placement) <= found.

The schedule found is feasible in all of them. A schedule of one problem is tried in every other one, and the verifier
decides; a lower bound of one problem holds for the next ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from placeopt.bounding.quick import best_bound
from placeopt.errors import InternalError
from placeopt.model.arrays import Int
from placeopt.model.building import with_changes
from placeopt.model.graph import components
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.pipeline import solve
from placeopt.orchestration.result import Result
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.protocol import Termination, unsupported
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.studies.losses.branching import NAME, branched
from placeopt.verifier import verify

Rule = Literal["free", "clusters", "placement"]
"""What a problem of the chain keeps of the schedule found."""

BLOCKS, BLOCK_SOLVER = CeleritasFusion(memory=1.0, colocation="keep"), "cp-sat"
"""Neighbours of one cluster in a topological order as one task, and the solver of this graph: clusters move whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A problem of the chain, and what is known of its optimum."""

    rule: Rule
    """What it keeps of the schedule found."""
    problem: Problem
    schedule: Schedule
    """The best known schedule, which the verifier accepts."""
    values: tuple[Value, ...]
    """Its objective, one value per level."""
    bound: Value
    """The best proven lower bound of the objective's first level."""
    bound_source: str
    """Who proved it."""

    @property
    def objective(self) -> Value:
        """The objective's first level of the best known schedule."""
        return self.values[0]

    @property
    def optimal(self) -> bool:
        """Whether the best known schedule is proved optimal in the objective's first level."""
        return self.bound == self.objective


def chain_of(found: Result, clusters: Int) -> list[Known]:
    """Return the chain of a feasible result, the least constrained problem first, with quick bounds."""
    problem, schedule, values = found.problem, found.schedule, found.values
    assert schedule is not None
    assert values is not None
    tasks = np.arange(problem.n_tasks)
    first = [np.unique(labels, return_index=True, return_inverse=True) for labels in (problem.group, clusters)]
    ends = np.concatenate([start[label] for _, start, label in first])
    together = components(problem.n_tasks, np.tile(tasks, 2), ends)[0]
    there = np.zeros_like(problem.feasible)
    there[tasks, schedule.device] = True
    problems: dict[Rule, Problem] = {
        "free": problem,
        "clusters": with_changes(problem, group=together),
        "placement": with_changes(problem, group=together, feasible=there),
    }
    chain = []
    for rule, each in problems.items():
        bound = best_bound(each)
        chain.append(Known(rule, each, schedule, values, bound.value, bound.name))
    if found.bound is not None and found.bound_source is not None and found.bound > chain[0].bound:
        chain[0] = replace(chain[0], bound=found.bound, bound_source=found.bound_source)
    return shared(chain)


def shared(chain: Iterable[Known], schedules: Iterable[Schedule] = ()) -> list[Known]:
    """Return the chain with the best schedules and bounds that follow from all of it, and from further schedules.

    Raises an InternalError if a bound contradicts a schedule.
    """
    chain = list(chain)
    candidates = [*schedules, *(each.schedule for each in chain)]
    for place, each in enumerate(chain):
        for schedule in candidates:
            report = verify(each.problem, schedule)
            if report.feasible and report.objective is not None and report.objective < each.values:
                each = replace(each, schedule=schedule, values=report.objective)
        if place and chain[place - 1].bound > each.bound:
            each = replace(each, bound=chain[place - 1].bound, bound_source=chain[place - 1].bound_source)
        if each.bound > each.objective:
            raise InternalError(
                f"{each.bound_source} claims the bound {each.bound}, and the verifier accepts a schedule with "
                f"{each.objective} (the problem keeps: {each.rule})"
            )
        chain[place] = each
    return chain


def tightened(chain: list[Known], place: int, prover: str, seconds: float | None, **options: Any) -> list[Known]:
    """Return the chain after a solver and lower bounds have worked on one of its problems.

    Half of the time is for schedules, half for bounds. Where clusters are kept, up to half of the former is for a graph
    in which neighbours of one cluster are one task, so that clusters move as a whole; and half of the latter is for
    branching on the devices of clusters.
    """
    known = chain[place]
    if known.optimal:
        return chain
    if known.rule != "clusters" or seconds is None:
        half = None if seconds is None else seconds / 2
        return _proved(chain, place, prover, half, half, **options)
    part = seconds / 4
    search = 2 * part
    if _moves_blocks(known.problem):
        blocks = solve(
            known.problem,
            BLOCK_SOLVER,
            time_limit=part,
            passes=[BLOCKS],
            initial=known.schedule,
            consolidate=0,
            **options,
        )
        search -= min(blocks.wall_time.solve or 0.0, part)
        chain = _with(chain, place, blocks)
    chain = _proved(chain, place, prover, search, part, **options)
    if chain[place].optimal:
        return chain

    def solve_leaf(leaf: Problem, limit: float) -> Result:
        return solve(leaf, prover, time_limit=limit, consolidate=0, **options)

    bound, schedules = branched(known.problem, chain[place].objective, part, solve_leaf, options["should_stop"])
    if bound > chain[place].bound:
        chain = list(chain)
        chain[place] = replace(chain[place], bound=bound, bound_source=NAME)
    return shared(chain, schedules)


def _proved(
    chain: list[Known], place: int, prover: str, search: float | None, bounding: float | None, **options: Any
) -> list[Known]:
    """Return the chain after the prover, from the best known schedule, and all bounds."""
    known = chain[place]
    if known.optimal:
        return chain
    result = solve(
        known.problem, prover, time_limit=search, bound_time=bounding, initial=known.schedule, consolidate=0, **options
    )
    return _with(chain, place, result)


def _moves_blocks(problem: Problem) -> bool:
    return BLOCK_SOLVER in solver_names() and unsupported(find_solver(BLOCK_SOLVER).info, problem) is None


def _with(chain: list[Known], place: int, result: Result) -> list[Known]:
    """Return the chain with a result for one of its problems."""
    known = chain[place]
    if result.termination is Termination.INFEASIBLE:
        raise InternalError(
            f"{result.solver} claims to be infeasible what the verifier accepts (the problem keeps: {known.rule})"
        )
    changed = list(chain)
    if result.bound is not None and result.bound_source is not None and result.bound > known.bound:
        changed[place] = replace(known, bound=result.bound, bound_source=result.bound_source)
    return shared(changed, [result.schedule] if result.schedule is not None else [])
