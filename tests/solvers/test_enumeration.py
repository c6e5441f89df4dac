"""brute-force: the oracle's optimum on every problem that it supports, and messages where it refuses."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers.exact._enumeration import Enumeration
from placeopt_solvers.exact.brute_force import BruteForce, BruteForceSettings, combinations, magnitude

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule, makespan
from placeopt.protocol import Answer, Options, Termination
from placeopt.verifier import verify

HEFT_10 = Path(__file__).parents[2] / "problems" / "heft-10.yaml"


def problem(durations: list[list[int]], edges: list[tuple[int, int]] | None = None, **rest: Any) -> Problem:
    m = len(durations[0])
    values: dict[str, Any] = {"byte_ticks_num": np.ones((m, m), dtype=np.int64)}
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.array(durations),
        edges=edges or [],
        **values | rest,
    )


def answered(case: Problem, **options: Any) -> Answer:
    return BruteForce().solve(case, Options(**options), BruteForceSettings())


@pytest.mark.parametrize("times", [False, True])
def test_it_proves_what_the_oracle_finds(times: bool) -> None:
    proved = 0
    for seed in range(150):
        case = small_problem(np.random.default_rng(seed), Objective(), times=times)
        if case.memory_model == "peak":
            continue
        best, answer = optimum(case), answered(case)
        if best is None:
            assert answer.termination is Termination.INFEASIBLE
            continue
        assert answer.termination is Termination.OPTIMAL
        assert answer.schedule is not None
        assert verify(case, answer.schedule).feasible
        assert (makespan(case, answer.schedule), answer.bound) == (best[0][0], best[0][0])
        proved += 1
    assert proved > 50


MOVING = (
    Objective(((Term("relocation"),),)),
    Objective(((Term("makespan"), Term("relocation", Fraction(1, 3))),)),
    Objective(((Term("makespan", Fraction(2, 3)), Term("makespan"), Term("relocation", Fraction(1, 2))),)),
    Objective(((Term("makespan"),), (Term("relocation"),))),
    Objective(((Term("relocation"), Term("makespan", Fraction(0))), (Term("makespan"),))),
)


@pytest.mark.parametrize("objective", MOVING, ids=str)
def test_it_proves_what_the_oracle_finds_of_relocation_too(objective: Objective) -> None:
    proved = 0
    for seed in range(40):
        case = small_problem(np.random.default_rng(900 + seed), objective)
        if case.memory_model == "peak":
            continue
        best, answer = optimum(case), answered(case)
        assert (best is None) == (answer.termination is Termination.INFEASIBLE)
        if best is not None:
            assert answer.termination is Termination.OPTIMAL
            assert answer.schedule is not None
            assert verify(case, answer.schedule, best[0]).feasible
            assert (evaluate(case, answer.schedule), answer.bound) == (best[0], best[0][0])
            warm = answered(case, initial=best[1])
            assert (warm.termination, warm.bound) == (Termination.OPTIMAL, best[0][0])
            proved += case.relocation.any()
    assert proved > 5


def test_it_agrees_with_cp_sat_on_larger_problems() -> None:
    rng = np.random.default_rng(5)
    edges = [(a, b) for b in range(7) for a in range(b) if rng.random() < 0.3]
    case = problem(
        rng.integers(1, 9, (7, 2)).tolist(),
        edges,
        payload=rng.integers(0, 9, len(edges)),
        resident=[2] * 7,
        capacity=[8, 10],
        separation=[(0, 6)],
    )
    assert po.solve(case, "brute-force").objective == po.solve(case, "cp-sat").objective


def test_interchangeable_devices_are_tried_once() -> None:
    # Three equal tasks on three equal devices: by classes 5 placements (partitions of 3) instead of 27.
    case = problem([[1, 1, 1]] * 3)
    search = Enumeration(case, None, lambda: False, lambda _: None)
    placed = list(search._placements())
    assert placed == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]]


def test_a_known_schedule_saves_looking_for_it() -> None:
    # One placement is as good as the initial one, and none is better: no other is enumerated.
    case = problem([[2, 3], [2, 3]])
    start = Schedule(np.array([0, 1]), np.array([0, 0]))
    answer = answered(case, initial=start)
    assert answer.termination is Termination.OPTIMAL
    assert answer.schedule is not None
    assert (answer.schedule.device.tolist(), answer.bound) == ([0, 1], 3)


def test_too_many_combinations_are_refused_with_their_number() -> None:
    case = po.load(HEFT_10)
    assert round(10 ** combinations(case)) == pytest.approx(3**10 * 3_628_800)
    answer = answered(case)
    assert answer.termination is Termination.FAILED
    assert answer.message == (
        "brute-force: 10 tasks on 3 devices make 2.1e11 placements and orders, more than the limit of 1.0e8; "
        "use cp-sat, or raise the setting limit"
    )
    assert magnitude(3) == "1,000"


def test_a_refusal_keeps_the_initial_schedule() -> None:
    case = po.load(HEFT_10)
    start = po.solve(case, "heft").schedule
    answer = answered(case, initial=start)
    assert answer.termination is Termination.COMPLETED
    assert answer.schedule is not None
    assert makespan(case, answer.schedule) == 80
    assert answer.bound is None


def test_schedules_found_by_the_time_limit_are_reported() -> None:
    case = problem([[3, 4], [2, 5], [4, 4], [1, 1], [2, 2], [5, 3], [4, 2], [1, 3]])
    calls = iter([False, True])
    answer = answered(case, should_stop=lambda: next(calls, True))
    assert answer.termination is Termination.INTERRUPTED
    assert answer.schedule is not None
    assert answer.bound is None


def test_no_room_is_proved() -> None:
    case = problem([[1, 1]] * 3, resident=[5, 5, 5], capacity=[9, 9])
    answer = answered(case)
    assert answer.termination is Termination.INFEASIBLE
    assert answer.message == "no placement and order satisfies all constraints"
