"""The exact solver: known optima, brute force, limits, progress."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem

import placeopt as po
from placeopt.ir import Problem, build_problem
from placeopt.registry import solver_names
from placeopt.schedule import Schedule
from placeopt.solver import Progress, Termination

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("PLACEOPT_DATA", ROOT.parent / "shared" / "data"))


def identical(weights: list[int], edges: list[list[int]], processors: int) -> Problem:
    """P | prec, c_ij | Cmax: identical processors, a transfer time on each edge between different ones."""
    n, m = len(weights), processors
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"p{d}" for d in range(m)],
        duration=np.repeat(np.array(weights)[:, None], m, axis=1),
        edges=[(a, b) for a, b, _ in edges],
        payload=[c for _, _, c in edges],
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
    )


def layered(n: int, m: int, seed: int, **rest: Any) -> Problem:
    rng = np.random.default_rng(seed)
    edges = [(a, b) for b in range(n) for a in range(max(0, b - 8), b) if rng.random() < 0.25]
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(1, 20, (n, m)),
        edges=edges,
        payload=rng.integers(0, 20, len(edges)),
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
        **rest,
    )


@pytest.mark.skipif(not (DATA / "optimal" / "p2-p4.jsonl").exists(), reason=f"no graphs with proven optima in {DATA}")
def test_published_optima_are_proved() -> None:
    """Every fifth of the graphs; benchmarks/optimal_143.py does them all."""
    lines = (DATA / "optimal" / "p2-p4.jsonl").read_text().splitlines()
    for line in lines[::5]:
        graph = json.loads(line)
        problem = identical(graph["weights"], graph["edges"], graph["processors"])
        result = po.solve(problem, "cp-sat", time_limit=30, workers=2)
        assert (result.termination, result.objective) == (Termination.OPTIMAL, graph["optimum"]), graph["name"]


@pytest.mark.parametrize("seed", range(150))
def test_agrees_with_brute_force(seed: int) -> None:
    """All objectives, both memory models, both contentions, groups, separation, unlike links."""
    problem = small_problem(np.random.default_rng(1000 + seed))
    best = optimum(problem)
    result = po.solve(problem, "cp-sat", workers=1, seed=seed, time_limit=60)
    if best is None:
        assert result.termination is Termination.INFEASIBLE
    else:
        assert result.termination is Termination.OPTIMAL
        assert result.values == best[0]
        assert result.bound == best[0][0]
        assert result.feasible


@pytest.mark.parametrize("seed", range(12))
def test_no_heuristic_is_better(seed: int) -> None:
    problem = layered(10, 3, seed)
    exact = po.solve(problem, "cp-sat", workers=1, time_limit=60)
    assert exact.termination is Termination.OPTIMAL
    for name in solver_names():
        found = po.solve(problem, name, time_limit=60)
        assert found.objective is not None
        assert exact.objective is not None
        assert found.objective >= exact.objective


@pytest.mark.parametrize("seed", range(6))
def test_relabelling_tasks_and_devices_keeps_the_optimum(seed: int) -> None:
    problem = layered(9, 3, seed)
    rng = np.random.default_rng(seed)
    tasks, devices = rng.permutation(9), rng.permutation(3)
    place = np.argsort(tasks)
    other = build_problem(
        task_names=[problem.task_names[i] for i in tasks],
        device_names=[problem.device_names[d] for d in devices],
        duration=problem.duration[np.ix_(tasks, devices)],
        edges=np.stack((place[problem.edge_source], place[problem.edge_target]), axis=1),
        payload=problem.payload,
        byte_ticks_num=np.ones((3, 3), dtype=np.int64),
    )
    optima = [po.solve(each, "cp-sat", workers=1, time_limit=60).objective for each in (problem, other)]
    assert optima[0] == optima[1]


@pytest.mark.parametrize(
    "setting", [{"symmetry": False}, {"hint": False}, {"linearization_level": 2}, {"deterministic": True}]
)
def test_settings_do_not_change_the_optimum(setting: dict[str, Any]) -> None:
    problem = po.load(ROOT / "problems" / "heft-10.yaml")
    result = po.solve(problem, "cp-sat", workers=2, **setting)
    assert (result.termination, result.objective) == (Termination.OPTIMAL, 73)


def test_the_same_seed_gives_the_same_schedule() -> None:
    problem = layered(14, 3, 5)
    first, second = (po.solve(problem, "cp-sat", workers=1, seed=3) for _ in range(2))
    assert first.schedule is not None
    assert second.schedule is not None
    assert first.schedule.device.tolist() == second.schedule.device.tolist()
    assert first.schedule.start.tolist() == second.schedule.start.tolist()


def test_a_time_limit_returns_the_best_so_far_with_a_bound() -> None:
    problem = layered(120, 4, 1)
    heuristic = po.solve(problem, "heft")
    result = po.solve(problem, "cp-sat", time_limit=0.5)
    assert result.termination is Termination.TIME_LIMIT
    assert result.feasible
    assert result.objective is not None
    assert heuristic.objective is not None
    assert result.bound is not None
    assert result.bound <= result.objective <= heuristic.objective


def test_a_stop_returns_the_best_so_far() -> None:
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 3

    result = po.solve(layered(120, 4, 2), "cp-sat", should_stop=stop)
    assert result.termination is Termination.INTERRUPTED
    assert result.feasible


def test_a_gap_limit_stops_early() -> None:
    result = po.solve(layered(60, 4, 3), "cp-sat", gap_limit=0.9, time_limit=60)
    assert result.termination in (Termination.COMPLETED, Termination.OPTIMAL)
    assert result.gap is not None
    assert result.gap <= 0.9


def test_incumbents_and_bounds_are_streamed() -> None:
    seen: list[Progress] = []
    result = po.solve(layered(30, 3, 4), "cp-sat", on_progress=seen.append, time_limit=20)
    objectives = [state.objective for state in seen if state.objective is not None]
    bounds = [state.bound for state in seen if state.bound is not None]
    assert objectives == sorted(objectives, reverse=True)
    assert bounds == sorted(bounds)
    assert objectives[-1] == result.objective
    assert bounds[-1] <= objectives[-1]


def test_an_initial_schedule_is_never_lost() -> None:
    problem = layered(100, 4, 6)
    best = po.solve(problem, "cp-sat", time_limit=3)
    assert best.schedule is not None
    again = po.solve(problem, "cp-sat", time_limit=1e-3, initial=best.schedule)
    assert again.objective is not None
    assert best.objective is not None
    assert again.objective <= best.objective


def test_an_initial_schedule_without_sense_does_no_harm() -> None:
    problem = layered(12, 3, 7)
    junk = Schedule(np.zeros(12, dtype=np.int64), np.zeros(12, dtype=np.int64))
    assert po.solve(problem, "cp-sat", initial=junk).termination is Termination.OPTIMAL


def test_infeasible_by_packing_is_proved() -> None:
    """4, 3, 3 and 2 bytes on two devices of 6: only 4 + 2 and 3 + 3 would fit, and 4 must be apart from 2."""
    problem = build_problem(
        task_names=list("abcd"),
        device_names=["x", "y"],
        duration=np.ones((4, 2), dtype=np.int64),
        resident=np.array([4, 3, 3, 2]),
        capacity=np.array([6, 6]),
        separation=[(0, 3)],
    )
    assert po.solve(problem, "cp-sat").termination is Termination.INFEASIBLE


def test_a_model_too_large_is_refused_with_the_best_start() -> None:
    problem = layered(50, 3, 8)
    result = po.solve(problem, "cp-sat", max_size=100)
    assert result.termination is Termination.COMPLETED
    assert result.feasible
    assert "too large for an exact model: about" in result.message


def test_times_beyond_64_bits_are_refused_not_wrapped() -> None:
    problem = build_problem(
        task_names=["a", "b", "c"],
        device_names=["x", "y"],
        duration=np.full((3, 2), 2**58),
    )
    result = po.solve(problem, "cp-sat", time_limit=10)
    assert result.feasible
    assert result.objective == 2**59
