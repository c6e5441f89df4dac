"""ideals: forward tasks that wait for backward tasks, tasks that hang, and stops."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from pipelines import PERIOD, random_pipeline, unlike_pipeline
from placeopt_solvers.pipelines._shared.contraction import contracted
from placeopt_solvers.pipelines._shared.ideals import INFINITE, costs_of, sets_of
from placeopt_solvers.pipelines.ideals import IdealsSettings, without_hanging

import placeopt as po
from placeopt import engine
from placeopt.model.building import with_changes
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver


def pipeline(edges: list[tuple[int, int]], segments: int | None = 1) -> po.Problem:
    """Forward tasks f and g, the backward task b of f, and an update u, which is not a backward task."""
    return po.build_problem(
        task_names=["f", "g", "b", "u"],
        device_names=["x", "y"],
        duration=[[4, 4], [3, 3], [2, 2], [1, 1]],
        edges=edges,
        payload=[0] * len(edges),
        forward=[0, 1, 0, 3],
        group=[0, 1, 0, 3],
        objective=PERIOD,
        pipeline={"segments": segments},
    )


def test_stages_are_numbered_again_for_updates() -> None:
    """The update cannot follow on x, whose only forward stage is before; y runs it together with g."""
    problem = pipeline([(0, 2), (2, 3)])
    result = po.solve(problem, "ideals", workers=1)
    best = po.solve(problem, "brute-force")
    assert result.feasible
    assert result.schedule is not None
    assert result.schedule.device[3] != result.schedule.device[0]
    assert result.objective == best.objective == 6


@pytest.mark.parametrize("edges", [[(0, 2), (2, 3), (3, 1)], [(0, 2), (2, 3), (1, 3)], [(0, 1), (0, 2), (2, 3)]])
def test_no_schedule_is_reported_that_the_verifier_rejects(edges: list[tuple[int, int]]) -> None:
    problem = pipeline(edges)
    best = po.solve(problem, "brute-force")
    result = po.solve(problem, "ideals", workers=1)
    assert result.schedule is None or result.feasible
    if result.bound is not None and best.objective is not None:
        assert result.bound <= best.objective
    if result.objective is not None and best.objective is not None:
        assert result.objective >= best.objective
    assert (result.termination is po.Termination.INFEASIBLE) <= (best.termination is po.Termination.INFEASIBLE)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("make", [random_pipeline, unlike_pipeline])
def test_hanging_tasks_are_left_out_and_placed_afterwards(make: Callable[[int], po.Problem], seed: int) -> None:
    """Many tasks take no time; without those that hang, the period is a lower bound."""
    problem, draw = make(seed), random.Random(seed)
    idle = [draw.random() < 0.45 for _ in range(problem.n_tasks)]
    problem = with_changes(problem, duration=np.where(np.array(idle)[:, None], 0, problem.duration))
    best, result = po.solve(problem, "brute-force", workers=1), po.solve(problem, "ideals", workers=1)
    rest = without_hanging(problem)
    if rest is not None and best.objective is not None:
        least = po.solve(rest[0], "brute-force", workers=1).objective
        assert least is not None
        assert least <= best.objective
    if result.termination in (po.Termination.OPTIMAL, po.Termination.INFEASIBLE):
        assert result.objective == best.objective
    if result.bound is not None and best.objective is not None:
        assert result.bound <= best.objective


def test_sources_without_work_make_no_sets() -> None:
    """Sixteen constants feed one task each of a chain: 2^16 sets with them, 17 without."""
    n = 16
    problem = po.build_problem(
        task_names=[f"t{i}" for i in range(2 * n)],
        device_names=["x", "y"],
        duration=[[1, 1]] * n + [[0, 0]] * n,
        edges=[*((i, i + 1) for i in range(n - 1)), *((n + i, i) for i in range(n))],
        objective=PERIOD,
        pipeline={"segments": 1},
    )
    result = po.solve(problem, "ideals", workers=1, sets=100)
    assert (result.termination, result.objective) == (po.Termination.OPTIMAL, n // 2)
    assert result.stats["sets without hanging tasks"] == n + 1


def test_it_stops_when_asked() -> None:
    problem, asked = random_pipeline(4, contiguous=True), iter(range(10**6))
    found = find_solver("ideals").solve(problem, Options(should_stop=lambda: next(asked) > 2), IdealsSettings())
    assert found.termination is po.Termination.INTERRUPTED


def test_the_loop_stops() -> None:
    """2^16 sets: no task depends on another one."""
    alone = {"task_names": [f"t{i}" for i in range(16)], "device_names": ["x", "y"], "duration": [[1, 1]] * 16}
    problem = po.build_problem(**alone, objective=PERIOD, pipeline={"segments": 1})
    nodes = contracted(problem)
    sets = sets_of(nodes, 2**16, lambda: False)
    assert sets is not None
    with pytest.raises(engine.StoppedError, match="stopped"):
        engine.divide_sets(sets, costs_of(problem, nodes), INFINITE, engine.Stop(seconds=0))
