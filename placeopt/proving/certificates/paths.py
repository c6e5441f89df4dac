"""Write claims about paths: with prices (the bound `lagrangian`), a flow (`sct-lp`), and stages of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from placeopt import engine
from placeopt.bounding.borders.machines import machine_load
from placeopt.bounding.lagrangian import best_priced_path
from placeopt.bounding.quick import narrowed_classes
from placeopt.bounding.sct.bound import certain
from placeopt.bounding.sct.core import core_of
from placeopt.bounding.sct.game import IN, OUT, WHOLE, game_of
from placeopt.model.problem import Problem
from placeopt.proving.certificates.leaves import Claim, accepted
from placeopt.verifier.certificates.model import Model

LARGEST = 5000
"""Edges of a linear program that is solved for a flow."""


def path_claim(problem: Problem, ticks: int, model: Model, should_stop: Callable[[], bool]) -> Claim | None:
    """A claim that the makespan is at least these ticks, by a path with prices or by a flow; None if there is none."""
    for write in (partial(priced_path, problem, ticks, should_stop), partial(flow, problem, ticks)):
        claim = None if should_stop() else write()
        if claim is not None and accepted(model, "makespan", claim):
            return claim
    return None


def priced_path(problem: Problem, ticks: int, should_stop: Callable[[], bool]) -> Claim | None:
    """The path and the prices of the bound `lagrangian`."""
    if problem.n_tasks == 0 or problem.n_devices == 0:
        return None
    found = best_priced_path(problem, ticks, should_stop)
    if found is None or found.ticks < ticks:
        return None
    claim: Claim = {
        "claim": "path", "path": [problem.task_names[i] for i in found.tasks.tolist()], "scale": found.scale,
        "memory": {problem.device_names[d]: price for d, price in found.memory.items()}, "budgets": found.budgets,
    }  # fmt: skip
    return {**{key: each for key, each in claim.items() if each != {}}, "value": ticks}


def flow(problem: Problem, ticks: int) -> Claim | None:
    """A flow that solves the linear program of the bound `sct-lp`."""
    from placeopt.bounding.sct.engine import optimum  # loads OR-Tools

    if problem.n_tasks == 0 or problem.n_devices == 0:
        return None
    core, _ = core_of(certain(narrowed_classes(problem)))
    if not 0 < core.n_edges <= LARGEST:
        return None
    game = game_of(core)
    found = optimum(game)
    if found is None:
        return None
    board = game.board
    parts = engine.split_flow(board.start, board.target, np.maximum(found[1], 0.0), WHOLE)
    names: Sequence[str | None] = [None, *(problem.task_names[i] for i in problem.order.tolist()), None]
    lanes: dict[str, list[list[str | int | None]]] = {"plain": [], "children": [], "parents": []}
    rows = zip(core.source[game.edge].tolist(), core.target[game.edge].tolist(), strict=True)
    for (source, target), kind, part in zip(rows, game.kind.tolist(), parts.tolist(), strict=True):
        if part and None not in (names[source], names[target]):  # the others start and end the flow
            key = {OUT: "children", IN: "parents"}.get(kind, "plain")
            lanes[key].append([names[source], names[target], part])
    return {"claim": "flow", **{key: rows for key, rows in lanes.items() if rows}, "value": ticks}


def machines_claim(
    problem: Problem, ticks: int, model: Model, seconds: float | None, stop: Callable[[], bool]
) -> Claim | None:
    """A claim that machines that devices share need at least these ticks; None if there is none."""
    if problem.pipeline is None or problem.pipeline.machines is None:
        return None
    found = machine_load(problem, seconds, stop)
    if found is None:
        return None
    prices = {str(q): price for q, price in found.machines.items() if price}
    budgets = {name: price for name, price in found.budgets.items() if price}
    claim: Claim = {"claim": "machines", "machines": prices, "budgets": budgets, "value": ticks}
    return claim if accepted(model, "period", claim) else None


def stages_claim(problem: Problem, ticks: int, model: Model) -> Claim | None:
    """A claim that the period of a pipeline with contiguous stages is at least these ticks; None if there is none.

    Its path of forward tasks has the most work.
    """
    if problem.pipeline is None or problem.n_tasks == 0 or problem.n_devices == 0:
        return None
    work = 1 + np.where(problem.feasible, problem.duration, np.iinfo(np.int64).max - 1).min(axis=1)
    ahead, longest, before = problem.forward == np.arange(problem.n_tasks), work.tolist(), [-1] * problem.n_tasks
    for i in problem.order.tolist():
        for j in problem.edge_target[problem.out_start[i] : problem.out_start[i + 1]].tolist():
            if ahead[i] and ahead[j] and longest[i] + int(work[j]) > longest[j]:
                longest[j], before[j] = longest[i] + int(work[j]), i
    path = [max(np.flatnonzero(ahead).tolist(), key=lambda i: (longest[i], -i))]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    claim: Claim = {"claim": "stages", "path": [problem.task_names[i] for i in reversed(path)], "value": ticks}
    return claim if accepted(model, "period", claim) else None
