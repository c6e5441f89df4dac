"""Devices that are unavailable for a time: a worked example through the whole toolkit, and random problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem, with_windows
from placeopt_solvers._runs.validity import valid

import placeopt as po
from placeopt.errors import UsageError
from placeopt.model.critical_path import critical_path
from placeopt.protocol.registry import solvers_for
from placeopt.proving.portfolio import bounds
from placeopt.studies.sensitivity.changes import make_changes
from placeopt.verifier import verify

SPEC: dict[str, Any] = {
    "placeopt": 1,
    "resolution": "1 s",
    "devices": {"a": {"unavailable": [{"from": 2, "to": 5}]}, "b": {"unavailable": [{"from": 0, "to": 3}]}},
    "links": {"default": {"latency": 1}},
    "tasks": {"x": {"time": 3}, "y": {"time": 2, "after": "x"}, "z": {"time": 2}},
}
"""The optimum is 8: z on a from 0 to 2; x on b from 3 to 6, then y."""

SOLVERS = ("brute-force", "cp-sat", "milp", "auto", "annealing", "tabu", "local-search", "heft", "lookahead-heft")


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_optimum_of_the_example(solver: str) -> None:
    result = po.solve(po.compile(SPEC), solver, workers=1, time_limit=2)
    assert (result.feasible, result.makespan) == (True, 8)
    assert result.schedule is not None
    assert result.schedule.start.tolist() == [3, 6, 0]


def test_every_heuristic_that_supports_it_gives_valid_times() -> None:
    problem = po.compile(SPEC)
    for name in solvers_for(problem):
        result = po.solve(problem, name, workers=1, time_limit=0.3)
        assert result.feasible, f"{name}: {result.violations}"


def test_the_verifier_names_the_window() -> None:
    problem = po.compile(SPEC)
    report = verify(problem, po.Schedule(np.array([1, 1, 0]), np.array([2, 5, 1])))
    assert [str(violation) for violation in report.violations] == [
        "unavailable: x runs from tick 2 to 5 on b, which is unavailable from tick 0 to 3: 1 tick too early",
        "unavailable: z runs from tick 1 to 3 on a, which is unavailable from tick 2 to 5: 4 ticks too early",
    ]
    assert [violation.amount for violation in report.violations] == [1, 4]


def test_a_task_of_no_duration_may_touch_a_window_and_not_lie_inside() -> None:
    problem = po.build_problem(
        task_names="ab", device_names="d", duration=[[0], [0]], unavailable=po.build_unavailability([[(2, 5)]])
    )
    for tick in range(7):
        schedule = po.Schedule(np.zeros(2, dtype=np.int64), np.array([0, tick]))
        assert verify(problem, schedule).feasible is valid(problem, schedule) is (not 2 < tick < 5)


def test_windows_that_overlap_or_touch_are_one() -> None:
    windows = po.build_unavailability([[(5, 7), (1, 3), (3, 4), (6, 9)], []])
    assert windows is not None
    assert (windows.of(0), windows.of(1)) == ([(1, 4), (5, 9)], [])
    assert po.build_unavailability([[], []]) is None


def test_windows_distinguish_devices() -> None:
    problem = po.build_problem(
        task_names="a", device_names="xyz", duration=[[1, 1, 1]],
        unavailable=po.build_unavailability([[(0, 2)], [(0, 2)], [(0, 3)]]),
    )  # fmt: skip
    assert problem.device_class.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([[(3, 3)]], "expected an end after the begin"),
        ([[(-1, 3)]], "expected 0 or more"),
        ([[(1.5, 3)]], "whole"),
        ([[(1, 2)], []], "it is for 2 devices; expected 1"),
    ],
)
def test_wrong_windows_are_named(windows: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        po.build_problem(task_names="a", device_names="x", duration=[[1]], unavailable=po.build_unavailability(windows))


def test_the_critical_path_names_the_window() -> None:
    problem = po.compile(SPEC)
    result = po.solve(problem, "brute-force")
    assert result.schedule is not None
    steps = [(step.kind, step.start, step.end, step.cause) for step in critical_path(problem, result.schedule)]
    assert steps == [("wait", 0, 3, "start"), ("task", 3, 6, "unavailable"), ("task", 6, 8, "data")]


def test_a_device_more_is_unavailable_like_those_of_its_type() -> None:
    (changed,), _ = make_changes(po.compile(SPEC), ["devices:b"])
    assert changed.problem.unavailable == po.build_unavailability([[(2, 5)], [(0, 3)], [(0, 3)]])


def test_explain_names_the_window_and_what_to_change() -> None:
    spec = {**SPEC, "tasks": {**SPEC["tasks"], "y": {"time": 2, "after": "x", "deadline": 6}}}
    explanation = po.explain(spec, time_limit=10)
    kinds = {member.kind for member in explanation.members}
    assert kinds == {"deadline", "unavailable"}
    texts = [member.text for member in explanation.members]
    assert "b is unavailable from 0 s to 3 s" in texts


def test_a_solver_without_support_names_those_with_it() -> None:
    with pytest.raises(po.UnsupportedError, match="devices that are unavailable for a time"):
        po.solve(po.compile(SPEC), "giph")


@pytest.mark.parametrize("seed", range(60))
def test_random_problems_against_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = with_windows(small_problem(rng, times=bool(seed % 2)), rng)
    found = optimum(problem)
    if found is not None:
        assert verify(problem, found[1]).feasible
        assert all(bound.value <= found[0][0] for bound in bounds(problem, time_limit=2, workers=1))
    for name in ("cp-sat", "milp", "annealing"):
        result = po.solve(problem, name, workers=1, time_limit=5, rounds=300) if name == "annealing" else None
        result = result or po.solve(problem, name, workers=1, time_limit=20)
        if name != "annealing":
            expected = po.Termination.INFEASIBLE if found is None else po.Termination.OPTIMAL
            assert result.termination is expected, name
        if result.feasible:
            assert found is not None
            assert result.values is not None
            assert result.values >= found[0]
            assert name == "annealing" or result.values == found[0]
