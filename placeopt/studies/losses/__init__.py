"""Separate what clusters of tasks cost from what their placement costs, with proofs.

    found = po.losses(po.load("problems/inception.yaml"), "celeritas", time_limit=60)
    print(found.conclusion)
    print(found.fusion.at_least, found.placement.at_most)

A solver such as `celeritas`, or a pass such as `coplace`, first forms clusters of tasks and then places them. With
three optima between the best possible schedule and the one found,

    OPT <= OPT_C <= OPT_P <= found,

OPT over all schedules, OPT_C over those that keep every cluster on one device, OPT_P over those that keep the whole
placement, the losses are

    fusion      OPT_C / OPT - 1       what the clusters cost, however well they are placed
    placement   found / OPT_C - 1     what their placement costs, which is the product of
      devices   OPT_P / OPT_C - 1       the devices of the clusters, and
      order     found / OPT_P - 1       the order and the times of the tasks
    total       found / OPT - 1       (1 + fusion) (1 + placement) - 1

Tasks are ordered freely in all three problems (`chain`), on the graph as it is. So the loss of running a cluster as one
block is part of `order`, not of `fusion`: the optimum of a coarse graph is not in this chain. Such a graph sends data
only at the end of a cluster, and the schedule found, re-timed on the original graph, can be better.

Each optimum is known to lie between a proven lower bound and the best verified schedule. Every loss is therefore an
interval (`findings`), and a single number where both of its optima are proved.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from placeopt.errors import UsageError, listing
from placeopt.model.problem import Problem, check_problem
from placeopt.orchestration.pipeline import solve
from placeopt.orchestration.result import Result
from placeopt.passes import Pass, find_pass, pass_names
from placeopt.passes.chain import found_passes
from placeopt.protocol import Solver
from placeopt.protocol.registry import check_supported, find_solver, solver_names
from placeopt.studies.losses.chain import Known, chain_of, tightened
from placeopt.studies.losses.findings import TEXTS, Loss, Losses

__all__ = ["Known", "Loss", "Losses", "check_clusters", "losses", "separated"]

PROVER = "auto"
"""The solver that closes in on the three optima, unless another is named."""

SOLVES = 4
"""Solves that the time limit applies to: the solver, and the prover on three problems."""


def losses(
    problem: Problem,
    solver: str | Solver = "celeritas",
    *,
    time_limit: float | None = 60.0,
    prover: str = PROVER,
    passes: Sequence[str | Pass] | None = None,
    seed: int = 0,
    workers: int | None = None,
    on_stage: Callable[[int, int, str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    **settings: Any,
) -> Losses:
    """Solve a problem and separate the losses of clusters and of their placement, at least and at most.

    Parameters
    ----------
    solver
        A solver that places clusters, or any solver with a pass that joins tasks.
    time_limit
        Seconds for the solver, and for each of the three problems: half for schedules, half for bounds. None: no limit.
    prover
        The solver for the three problems, which starts from the best schedule known.
    passes
        Passes for the solver, as in `placeopt.solve`. The clusters are those of the passes and the solver together.
    seed, workers
        As in `placeopt.solve`, for every solve.
    on_stage
        Called before each solve with the number of finished solves, the number of all, and what is solved next.
    should_stop
        Called regularly; once it returns true, the losses are returned as far as they are known.
    **settings
        Settings of the solver.

    Raises
    ------
    UsageError
        If an argument is invalid, or neither the solver nor a pass states clusters.
    UnsupportedError
        If the solver or the prover does not support the problem.
    InternalError
        If results contradict each other.
    """
    check_problem("losses", problem)
    check_clusters(solver, passes)
    check_supported(find_solver(prover), problem)
    stopped = should_stop or (lambda: False)
    report = on_stage or (lambda _done, _all, _text: None)
    own = find_solver(solver)
    report(0, SOLVES, own.name)
    found = solve(
        problem, solver, time_limit=time_limit, passes=passes, seed=seed, workers=workers, should_stop=stopped,
        consolidate=0, **settings,
    )  # fmt: skip
    if found.clusters is None and found.passes is not None and found.passes.exact and not own.info.clusters:
        found = replace(found, clusters=problem.group)  # the passes had nothing to join
    return separated(
        found, prover=prover, time_limit=time_limit, seed=seed, workers=workers, on_stage=report, should_stop=stopped
    )


def separated(
    found: Result,
    *,
    time_limit: float | None = 60.0,
    prover: str = PROVER,
    seed: int = 0,
    workers: int | None = None,
    on_stage: Callable[[int, int, str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Losses:
    """Separate the losses of a result with clusters; see `losses`.

    Raises
    ------
    UsageError
        If the result has a feasible schedule without clusters, or an argument is invalid.
    UnsupportedError
        If the prover does not support the problem.
    InternalError
        If results contradict each other.
    """
    check_supported(find_solver(prover), found.problem)
    if not found.feasible:
        return Losses(found, prover)
    if found.clusters is None:
        raise UsageError(
            f"losses: {found.solver} and its passes state no clusters; a solver states them as `clusters` of its "
            "Answer, a pass as `leader` of its Reduction"
        )
    stopped = should_stop or (lambda: False)
    report = on_stage or (lambda _done, _all, _text: None)
    chain = chain_of(found, found.clusters)
    # Each problem starts from the best schedule of the more constrained ones.
    for done, place in enumerate(reversed(range(len(chain))), start=1):
        if stopped():
            break
        report(done, SOLVES, TEXTS[chain[place].rule])
        chain = tightened(chain, place, prover, time_limit, seed=seed, workers=workers, should_stop=stopped)
    notes = ("stopped early: more time would narrow the intervals",) if stopped() else ()
    return Losses(found, prover, tuple(chain), notes)


def check_clusters(solver: str | Solver, passes: Sequence[str | Pass] | None) -> None:
    """Check that the solver, or a pass that may lose the optimum, places clusters.

    Raises a UsageError if neither does; the message names those that do.
    """
    own = find_solver(solver)
    if own.info.clusters or any(not each.exact for each in found_passes(passes or ())):
        return
    able = []
    for name in solver_names():
        with contextlib.suppress(UsageError):  # a package that cannot be imported
            if find_solver(name).info.clusters:
                able.append(name)
    joining = []
    for name in pass_names():
        with contextlib.suppress(UsageError):
            if not find_pass(name).exact:
                joining.append(name)
    raise UsageError(
        f"losses: {own.name} places no clusters; expected a solver that does ({listing(able, 20)}), or also a pass "
        f"that joins tasks ({listing(joining, 20)})"
    )
