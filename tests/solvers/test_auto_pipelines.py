"""auto on pipelines: its members prove optima, and the whole objective is improved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pipelines import random_pipeline, unlike_pipeline

import placeopt as po

LEXICOGRAPHIC = po.Objective(((po.Term("period"),), (po.Term("makespan"),)))
WEIGHTED = po.Objective(((po.Term("period"), po.Term("makespan", 2)),))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("make", [random_pipeline, unlike_pipeline])
def test_tiny_pipelines_are_proved(make: type[po.Problem], seed: int) -> None:
    problem = make(seed)
    result = po.solve(problem, "auto", workers=1, time_limit=30)
    best = po.solve(problem, "brute-force")
    assert (result.termination, result.objective) == (best.termination, best.objective)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("objective", [LEXICOGRAPHIC, WEIGHTED], ids=["lexicographic", "weighted"])
def test_the_whole_objective_is_near_that_of_all_placements(objective: po.Objective, seed: int) -> None:
    problem = replace(unlike_pipeline(seed), objective=objective)
    result = po.solve(problem, "auto", workers=1, time_limit=30)
    best = po.solve(problem, "brute-force")
    assert (result.values is None) == (best.values is None)
    if result.values is None or best.values is None:
        return
    assert result.values >= best.values
    assert float(result.values[-1]) <= 1.2 * float(best.values[-1])
    if objective is LEXICOGRAPHIC:
        assert result.values[0] == best.values[0]
    assert result.bound is not None
    assert result.bound <= best.values[0]


def test_a_shorter_latency_at_the_same_period_is_found() -> None:
    """Both tasks on x take 4 + 4 ticks; one on each device takes 1 tick more for the data, but the period is 5."""
    problem = po.build_problem(
        task_names=["a", "b", "c"],
        device_names=["x", "y"],
        duration=[[4, 4], [4, 4], [8, 9]],
        edges=[(0, 1)],
        payload=[1],
        byte_ticks_num=[[1, 1], [1, 1]],
        objective=LEXICOGRAPHIC,
        pipeline={"free_transfers": [True, True]},
    )
    result = po.solve(problem, "auto", workers=1, time_limit=30)
    assert result.values == (8, 8)


def test_one_worker_repeats_its_schedule() -> None:
    problem = unlike_pipeline(3)
    one, two = (po.solve(problem, "auto", workers=1, time_limit=30, seed=4) for _ in range(2))
    assert one.schedule is not None
    assert two.schedule is not None
    assert np.array_equal(one.schedule.start, two.schedule.start)
    assert one.varies_by == two.varies_by == ""


def test_it_starts_from_a_given_schedule() -> None:
    problem = random_pipeline(0)
    best = po.solve(problem, "brute-force")
    result = po.solve(problem, "auto", workers=1, time_limit=30, initial=best.schedule)
    assert result.stats["found by"] == "initial"
    assert result.objective == best.objective


def test_an_impossible_pipeline_is_infeasible() -> None:
    problem = po.build_problem(
        task_names=["a", "b"], device_names=["x"], duration=[[1], [1]], resident=[3, 3], capacity=[5],
        objective=po.Objective(((po.Term("period"),),)), pipeline={},
    )  # fmt: skip
    assert po.solve(problem, "auto", workers=1, time_limit=30).termination is po.Termination.INFEASIBLE
