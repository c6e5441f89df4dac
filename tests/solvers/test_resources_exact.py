"""Resources, budgets and parallel devices: exact solvers and bounds against the oracle, and cases worked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem, with_resources, with_windows
from placeopt_solvers._constructive.sequences import heft
from placeopt_solvers._runs.time_scaling import coarsened
from placeopt_solvers._runs.validity import valid
from placeopt_solvers._starts.generation import generated
from placeopt_solvers.exact.cp_sat import CpSat, CpSatSettings

import placeopt as po
from placeopt.bounding.quick import bounds, prove_infeasible
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem
from placeopt.model.resources import build_resources
from placeopt.model.schedule import Schedule, makespan
from placeopt.protocol import Options, Termination, unsupported
from placeopt.protocol.registry import find_solver
from placeopt.verifier import verify

SOLVERS = ("cp-sat", "milp", "brute-force")


def drawn(seed: int) -> Problem:
    """A random problem with resources; some have other objectives, deadlines or windows."""
    rng = np.random.default_rng(seed)
    kind = seed % 5
    problem = with_resources(small_problem(rng, Objective() if kind < 3 else None, times=kind in (1, 4)), rng)
    return with_windows(problem, rng) if seed % 7 == 0 else problem


@pytest.mark.parametrize("name", SOLVERS)
def test_they_prove_what_the_oracle_finds(name: str) -> None:
    solver = find_solver(name)
    proved = infeasible = 0
    for seed in range(70):
        case = drawn(seed)
        if unsupported(solver.info, case) is not None:
            continue
        best = optimum(case)
        answer = solver.solve(case, Options(seed=seed), solver.settings_type())
        if best is None:
            assert answer.termination is Termination.INFEASIBLE, seed
            infeasible += 1
            continue
        assert answer.termination is Termination.OPTIMAL, seed
        assert answer.schedule is not None
        report = verify(case, answer.schedule)
        assert report.feasible, seed
        assert (report.objective, answer.bound) == (best[0], best[0][0]), seed
        proved += 1
    assert proved >= 25
    assert infeasible >= 10


def test_passes_keep_the_optimum() -> None:
    for seed in range(300, 340):
        case = drawn(seed)
        best = optimum(case)
        result = po.solve(case, "cp-sat", seed=seed)
        assert (result.termination is Termination.INFEASIBLE) == (best is None), seed
        if best is not None:
            assert result.values == best[0], seed


def test_no_bound_exceeds_the_optimum() -> None:
    tight = parallel = 0
    for seed in range(120):
        case = drawn(seed)
        best = optimum(case)
        if best is None:
            continue
        assert prove_infeasible(case) is None, seed
        found = bounds(case) if seed % 4 else po.bounds(case, time_limit=0.3)
        assert all(bound.value <= best[0][0] for bound in found), seed
        tight += (best[0][0], "resources") in [(bound.value, bound.name) for bound in found]
        parallel += "parallel" in case.rules
    assert tight >= 5
    assert parallel > 20


def shared(
    durations: list[int],
    uses: list[dict[str, Any]],
    *,
    edges: list[tuple[int, int]] | None = None,
    devices: int = 1,
    parallel: bool = True,
    **resources: Any,
) -> Problem:
    """A problem with the same durations on all devices, which may run several tasks at once."""
    n = len(durations)
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(devices)],
        duration=np.repeat(np.array(durations)[:, None], devices, axis=1),
        edges=edges or [],
        resources=build_resources(
            n, devices, uses=dict(enumerate(uses)), parallel=np.full(devices, parallel), **resources
        ),
    )


def solved(case: Problem, name: str = "cp-sat") -> Any:
    solver = find_solver(name)
    return solver.solve(case, Options(), solver.settings_type())


@pytest.mark.parametrize("name", SOLVERS)
def test_tasks_that_do_not_fit_together_run_one_after_another(name: str) -> None:
    case = shared([3, 4, 5], [{"r": 3}] * 3, renewable={"r": 5})
    answer = solved(case, name)
    assert (answer.termination, answer.bound) == (Termination.OPTIMAL, 12)


def test_a_bound_counts_tasks_above_half_of_a_capacity_in_full() -> None:
    best = bounds(shared([3, 4, 5], [{"r": 3}] * 3, renewable={"r": 5}))[0]
    assert (best.name, best.value) == ("resources", 12)
    assert best.explanation == "the tasks share r, and take at least 12 ns with the work before and after them"


def test_a_bound_adds_the_work_before_and_after() -> None:
    chain = [(0, i) for i in range(1, 5)] + [(i, 5) for i in range(1, 5)]
    uses: list[dict[str, Any]] = [{}, *[{"r": 1}] * 4, {}]
    best = bounds(shared([2, 3, 3, 3, 3, 1], uses, edges=chain, renewable={"r": 2}))[0]
    assert (best.name, best.value) == ("resources", 9)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_parallel_device_runs_all_tasks_at_once(name: str) -> None:
    answer = solved(shared([3, 4, 5], [{}] * 3), name)
    assert (answer.termination, answer.bound) == (Termination.OPTIMAL, 5)


def test_bounds_do_not_count_the_load_of_a_parallel_device() -> None:
    case = shared([3, 4, 5], [{}] * 3)
    assert max(bound.value for bound in po.bounds(case, time_limit=1)) == 5


@pytest.mark.parametrize("name", SOLVERS)
def test_a_device_on_which_a_task_exceeds_a_capacity_is_not_used(name: str) -> None:
    for kind in ("renewable", "budgets"):
        case = shared([2], [{"r": [3, 1]}], devices=2, parallel=False, **{kind: {"r": 2}})
        answer = solved(case, name)
        assert answer.termination is Termination.OPTIMAL
        assert answer.schedule.device.tolist() == [1]


@pytest.mark.parametrize("name", SOLVERS)
def test_tasks_of_no_duration_use_no_renewable_resource(name: str) -> None:
    case = shared([0, 0, 2], [{"r": 7}, {"r": 7}, {"r": 1}], renewable={"r": 1})
    answer = solved(case, name)
    assert (answer.termination, answer.bound) == (Termination.OPTIMAL, 2)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"renewable": {"r": 2}}, "task t0 has no feasible device"),
        ({"budgets": {"r": 5}}, "tasks use at least 6 of r, which has 5"),
    ],
)
def test_quick_proofs_name_what_does_not_suffice(limits: dict[str, Any], reason: str) -> None:
    case = shared([1, 1], [{"r": 3}, {"r": 3}], **limits)
    assert str(prove_infeasible(case)) == reason
    for name in SOLVERS:
        assert solved(case, name).termination is Termination.INFEASIBLE


def test_longer_ticks_keep_the_optimum() -> None:
    case = shared([6, 12, 18, 6], [{"r": 2}, {"r": 1}, {"r": 1}, {}], edges=[(0, 3)], renewable={"r": 2})
    assert coarsened(case).unit == 6
    answer = solved(case)
    assert (answer.termination, answer.bound) == (Termination.OPTIMAL, 24)
    assert answer.schedule is not None
    assert verify(case, answer.schedule).feasible


def test_amounts_whose_sums_over_time_exceed_64_bits() -> None:
    big = 2**40
    case = shared([2**23] * 4, [{"r": big - k} for k in range(4)], renewable={"r": 2 * big})
    answer = solved(case)
    assert (answer.termination, answer.bound) == (Termination.OPTIMAL, 2**24)


def test_passes_in_both_directions_shorten_a_schedule() -> None:
    rng = np.random.default_rng(3)
    n = 20
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.1]
    uses: list[dict[str, Any]] = [{"r": int(rng.integers(1, 4)), "s": int(rng.integers(0, 3))} for _ in range(n)]
    case = shared(rng.integers(1, 10, n).tolist(), uses, edges=edges, renewable={"r": 4, "s": 3})
    start = heft(case).schedule
    assert start is not None
    better = generated(case, start, lambda: False)
    assert better is not None
    assert verify(case, better).feasible
    assert bounds(case)[0].value <= makespan(case, better) < makespan(case, start)
    assert generated(shared([3, 4], [{}, {}]), Schedule(np.array([0, 0]), np.array([0, 0])), lambda: False) is None


def test_an_incumbent_that_breaks_a_resource_is_not_valid() -> None:
    uses: list[dict[str, Any]] = [{"r": 2}, {"r": 2}]
    together = Schedule(np.array([0, 1]), np.array([0, 0]))
    apart = Schedule(np.array([0, 1]), np.array([0, 3]))
    case = shared([3, 3], uses, devices=2, renewable={"r": 3})
    assert not valid(case, together)
    assert valid(case, apart)
    assert not valid(shared([3, 3], uses, devices=2, budgets={"r": 3}), apart)
    same = Schedule(np.array([0, 0]), np.array([0, 1]))
    assert valid(shared([3, 3], [{}, {}]), same)
    assert not valid(shared([3, 3], uses, parallel=False, renewable={"r": 9}), same)


def test_a_model_without_times_respects_budgets_and_single_uses() -> None:
    case = shared([1, 1, 1], [{"b": [1, 0], "r": [0, 1]}] * 3, devices=2, budgets={"b": 1}, renewable={"r": 1})
    answer = CpSat().solve(case, Options(), CpSatSettings())
    assert answer.bound == 2
    assert answer.schedule is not None
    assert sorted(answer.schedule.device.tolist()) == [0, 1, 1]
