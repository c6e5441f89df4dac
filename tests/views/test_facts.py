"""Texts about problems and results, and the traffic of tasks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.problem import Metric, Objective, Term
from placeopt.views.facts import (
    aligned,
    best_known_text,
    first_level,
    problem_line,
    task_traffic,
    unit_metric,
    verdict_text,
)


@pytest.mark.parametrize(
    ("levels", "leading", "single"),
    [
        (((Term("energy"),),), "energy", "energy"),
        (((Term("energy"),), (Term("makespan"),)), "energy", None),
        (((Term("energy", Fraction(2)),),), None, None),
        (((Term("energy"), Term("makespan")),), None, None),
    ],
)
def test_leading_metric(levels: tuple[tuple[Term, ...], ...], leading: Metric | None, single: Metric | None) -> None:
    objective = Objective(levels)
    assert (objective.leading_metric, objective.single) == (leading, single)
    assert first_level(str(objective)) == str(Objective(levels[:1]))


@pytest.mark.parametrize(
    ("level", "unit"),
    [
        ((Term("makespan"), Term("relocation", Fraction(1, 7))), "makespan"),
        ((Term("relocation", Fraction(2)),), "relocation"),
        ((Term("energy"),), "energy"),
        ((Term("makespan"), Term("energy")), None),
    ],
)
def test_a_sum_of_times_is_a_time(level: tuple[Term, ...], unit: Metric | None) -> None:
    assert unit_metric(Objective((level,))) == unit


def test_live_memory_is_not_resident_memory() -> None:
    tasks: dict[str, object] = {"a": {"time": 1, "output": 7}, "b": {"time": 1, "memory": 3, "after": "a"}}
    document = {"placeopt": 1, "devices": {"d": {"memory": 16}}, "tasks": tasks}
    assert problem_line(po.compile(document)).endswith("CCR 0, memory 10 B of 16 B")
    assert problem_line(po.compile(document | {"memory_model": "peak"})).endswith("CCR 0, resident memory 3 B of 16 B")


def test_verdict() -> None:
    assert verdict_text(None, 0) == "no schedule"
    assert verdict_text(True, 0) == "feasible: the verifier found no violation"
    assert verdict_text(False, 1_200) == "infeasible: 1,200 violations"


def test_traffic_counts_a_shared_transfer_once_for_the_producer() -> None:
    problem = build_problem(
        task_names=["a", "b", "c", "d"], device_names=["x", "y"], duration=np.ones((4, 2), dtype=np.int64),
        edges=[(0, 1), (0, 2), (0, 3)], payload=[5, 5, 5], shared=[True, True, True],
    )  # fmt: skip
    sent, received = task_traffic(problem, np.array([0, 1, 1, 0]))
    assert sent.tolist() == [5, 0, 0, 0]  # b and c share one transfer, d is on the device of a
    assert received.tolist() == [0, 5, 5, 0]


def test_columns_of_words_are_left_aligned() -> None:
    assert aligned([("a", "b", "c"), ("long", "100", "word")], left=1, words=[2]) == ["a       b  c", "long  100  word"]


def test_the_best_known_result() -> None:
    stated = {"objective": 43, "bound": 40}
    said = [best_known_text(stated, value, bound, str) for value, bound in ((50, 30), (42, 40), (39, 38), (None, 44))]
    assert said == [
        "43, with the bound 40",
        "43, with the bound 40; the schedule found here is better",
        "43, with the bound 40; the schedule found here contradicts its bound",
        "43, with the bound 40; the bound proved here contradicts it",
    ]
    assert best_known_text({"objective": 43, "bound": 43}, 43, 43, str) == "43, proved optimal"
    assert best_known_text({"objective": 43.5}, None, None, str) == "43.5"
    assert best_known_text(None, 43, 43, str) is None
