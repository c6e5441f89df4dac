"""Heuristics and searches on problems with resources, budgets and devices that run several tasks at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem, with_resources
from constrained_problems import constrained
from placeopt_solvers._constructive.groups import grouped, packings

from placeopt.model.building import build_problem, with_changes
from placeopt.model.objective import evaluate
from placeopt.model.problem import Objective, Problem
from placeopt.model.resources import build_resources
from placeopt.model.schedule import makespan
from placeopt.protocol import Options, Settings, Termination
from placeopt.protocol.registry import find_solver, solver_info, solver_names
from placeopt.verifier import verify

HEURISTICS = [
    name
    for name in solver_names()
    if "budgets" in solver_info(name).rules and not solver_info(name).anytime and not solver_info(name).exact
]


def problems(seed: int) -> Problem | None:
    """A problem of 24 tasks with resources; None if there are none, or no placement."""
    rng = np.random.default_rng(seed)
    contention: Any = ("none", "none", "port", "half_duplex")[seed % 4]
    model: Any = ("sum", "sum", "peak")[seed % 3]
    problem = with_resources(constrained(seed, contention=contention, memory_model=model), rng)
    return problem if problem.resources is not None else None


@pytest.mark.parametrize("name", HEURISTICS)
def test_schedules_are_accepted(name: str) -> None:
    found = failed = 0
    solver = find_solver(name)
    for seed in range(12):
        problem = problems(seed)
        if problem is None:
            continue
        answer = solver.solve(problem, Options(seed=1, strict=True), solver.settings_type())
        if answer.schedule is None:
            assert answer.termination is Termination.FAILED
            assert answer.message
            failed += 1
            continue
        found += 1
        violations = verify(problem, answer.schedule).violations
        assert [each.message for each in violations if each.rule != "deadline"] == [], f"seed {seed}"
    assert found > failed or name == "single"


def test_which_solvers_keep_budgets() -> None:
    assert {"heft", "peft", "cpop", "etf", "m-sct", "m-topo", "min-min", "gdl", "bil", "dsc", "metis"} <= {*HEURISTICS}
    for name in ("random", "random-task-eft", "submodular-g", "giph", "lns", "windows", "forward-backward"):
        assert "budgets" not in solver_info(name).rules, name


def modes(n: int, seed: int) -> Problem:
    """Independent tasks with three modes each: the faster, the more of a scarce budget and of a resource it uses."""
    rng = np.random.default_rng(seed)
    work = rng.integers(4, 12, n)
    duration = np.stack((3 * work, 2 * work, work), axis=1)
    uses: dict[int, Any] = {i: {"energy": [0, 1, 3], "power": [1, 2, 3]} for i in range(n)}
    resources = build_resources(n, 3, renewable={"power": 3}, budgets={"energy": n}, uses=uses, parallel=[1, 1, 1])
    return build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names=["slow", "medium", "fast"], duration=duration,
        resources=resources,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["heft", "etf", "met", "min-min", "dsc"])
def test_a_greedy_heuristic_leaves_enough_of_a_budget(name: str) -> None:
    """All would choose the fast mode, for which the budget suffices only a third of the time."""
    problem = modes(60, 3)
    solver = find_solver(name)
    answer = solver.solve(problem, Options(), solver.settings_type())
    assert answer.schedule is not None
    assert answer.message == ""
    assert verify(problem, answer.schedule).violations == ()
    assert problem.resources is not None
    assert int(problem.resources.amounts(1)[np.arange(60), answer.schedule.device].sum()) == 60


def test_evictions_save_what_budgets_lack() -> None:
    """Each of two budgets is the least on another device, so a greedy choice can leave too little of one."""
    repaired = failed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, m = 12, 3
        uses: dict[int, Any] = {
            i: {"a": rng.integers(0, 5, m).tolist(), "b": rng.integers(0, 5, m).tolist()} for i in range(n)
        }
        problem = build_problem(
            task_names=[f"t{i}" for i in range(n)],
            device_names=["x", "y", "z"],
            duration=rng.integers(1, 9, (n, m)),
            resources=build_resources(n, m, budgets={"a": 20, "b": 20}, uses=uses),
        )
        answer = find_solver("heft").solve(problem, Options(), Settings())
        if answer.schedule is None:
            failed += 1
            continue
        repaired += "were moved to make room" in answer.message
        assert verify(problem, answer.schedule).violations == ()
    assert repaired > 2
    assert failed < 10


def test_the_message_states_what_a_budget_lacks() -> None:
    resources = build_resources(2, 1, budgets={"error": 0.1}, uses={0: {"error": 0.08}, 1: {"error": 0.07}})
    problem = build_problem(
        task_names=["a", "b"], device_names=["cpu"], duration=np.array([[1], [1]]), resources=resources
    )
    answer = find_solver("heft").solve(problem, Options(), Settings())
    assert answer.termination is Termination.FAILED
    assert "0.05 more of error" in answer.message


@pytest.mark.parametrize("seed", range(40))
def test_packings_keep_budgets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = with_resources(constrained(seed), rng)
    groups = grouped(problem)
    for home in packings(problem, groups) if groups.stuck is None else ():
        assert problem.resources is None or problem.resources.within_budgets(home[problem.group])


def test_annealing_finds_most_optima() -> None:
    tried = best = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        problem = with_resources(small_problem(rng, objective=Objective()), rng)
        if problem.resources is None or problem.resources.parallel.any():
            continue
        expected = optimum(problem)
        solver = find_solver("annealing")
        answer = solver.solve(problem, Options(seed=seed), solver.settings_type(rounds=4000))
        if expected is None:
            assert answer.schedule is None
            continue
        tried += 1
        if answer.schedule is None:
            continue
        assert verify(problem, answer.schedule).violations == ()
        value = evaluate(problem, answer.schedule)
        assert value >= expected[0]
        best += value == expected[0]
    assert tried > 15
    assert best >= 0.9 * tried


def test_a_task_starts_before_tasks_that_precede_it_in_the_order() -> None:
    """t1 waits for the license until 9; t2, after it in the order, still starts at once."""
    resources = build_resources(
        3, 2, renewable={"license": 2}, uses={0: {"license": 1}, 1: {"license": 2}, 2: {"license": 1}}
    )
    problem = build_problem(
        task_names=["t0", "t1", "t2"],
        device_names=["x", "y"],
        duration=np.array([[9, 99], [99, 2], [3, 99]]),
        resources=resources,
    )
    solver = find_solver("annealing")
    answer = solver.solve(problem, Options(), solver.settings_type(rounds=200))
    assert answer.schedule is not None
    assert makespan(problem, answer.schedule) == 14
    problem = with_changes(problem, duration=np.array([[9, 99], [99, 2], [99, 3]]))
    answer = solver.solve(problem, Options(), solver.settings_type(rounds=200))
    assert answer.schedule is not None
    assert makespan(problem, answer.schedule) == 11
