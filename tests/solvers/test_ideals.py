"""ideals on graphs whose forward tasks wait for backward tasks."""

from __future__ import annotations

import pytest
from pipelines import PERIOD

import placeopt as po


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
