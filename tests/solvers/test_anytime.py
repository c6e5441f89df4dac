"""Searches: valid, never worse than their start, the same for the same seed, good on problems with known optima."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers._constructive.groups import with_fixed_apart
from placeopt_solvers._constructive.sequences import heft
from placeopt_solvers._local_search.search import any_start
from placeopt_solvers._runs.validity import valid
from placeopt_solvers._starts.warm_start import best_start, improved_start, quickly_improved
from test_search import OBJECTIVES, constrained

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule, makespan
from placeopt.passes.devices import ForcedDevices
from placeopt.protocol import Termination
from placeopt.verifier import verify

SEARCHES = ("annealing", "local-search", "tabu")
FEW = 1200
"""Moves of a search."""

MANY = 4000
"""Moves of a longer search."""


def never() -> bool:
    return False


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_searches_improve_valid_schedules_for_any_objective(name: str, objective: Objective) -> None:
    better = 0
    for seed in range(2):
        problem = constrained(seed, tight=0.5, contention="port" if seed else "none", objective=objective)
        start = best_start(problem, None, True)
        assert start is not None
        found = po.solve(problem, name, rounds=FEW, seed=seed, workers=1)
        assert found.feasible
        assert found.values is not None
        assert found.values <= evaluate(problem, start)
        better += found.values < evaluate(problem, start)
        assert found.stats["evaluated"] > FEW / 3
    assert better


@pytest.mark.parametrize("name", SEARCHES)
def test_the_optimum_of_small_problems_is_found_nearly_always(name: str) -> None:
    hits = total = 0
    for seed in range(25):
        problem = small_problem(np.random.default_rng(4000 + seed), OBJECTIVES[seed % 2])
        best = optimum(problem)
        found = po.solve(problem, name, rounds=FEW, workers=1)
        if best is None:
            assert found.schedule is None
            continue
        total += 1
        if found.values is not None:
            assert found.feasible
            assert found.values >= best[0]
            hits += found.values == best[0]
    assert total > 15
    assert hits >= total - 3


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_seed_gives_the_same_schedule(name: str) -> None:
    problem = constrained(1, tight=0.5)
    found = [po.solve(problem, name, rounds=FEW, seed=seed, workers=1).schedule for seed in (5, 5, 6)]
    starts = [None if each is None else (each.device.tolist(), each.start.tolist()) for each in found]
    assert starts[0] == starts[1] != starts[2]


def test_hash_seeds_make_no_difference() -> None:
    """Same seed, one worker, a time limit with room: the same schedule under different hash seeds."""
    path = Path(__file__).parents[2] / "problems" / "heft-10.yaml"
    code = (
        "import placeopt as po, sys\n"
        f"p = po.load({str(path)!r})\n"
        "for s in sys.argv[1:]:\n"
        "    r = po.solve(p, s, rounds=900, seed=3, workers=1)\n"
        "    print(s, r.schedule.device.tolist(), r.schedule.start.tolist())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, *SEARCHES],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "77")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("name", SEARCHES)
def test_workers_share_their_schedules(name: str) -> None:
    problem = constrained(2, tight=0.5)
    alone = po.solve(problem, name, rounds=FEW, workers=1)
    together = po.solve(problem, name, rounds=FEW, workers=3, time_limit=60)
    assert together.feasible
    optimal = together.termination is Termination.OPTIMAL  # which ends all workers at once
    assert optimal or together.stats["evaluated"] > 1.5 * alone.stats["evaluated"]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_ends_when_stopped_and_when_its_start_is_optimal(name: str) -> None:
    problem = constrained(3)
    told = po.solve(problem, name, rounds=MANY, workers=1, should_stop=lambda: True)
    assert told.termination is Termination.INTERRUPTED
    assert told.feasible
    chain = build_problem(
        task_names=["a", "b"], device_names=["x", "y"], duration=np.ones((2, 2), dtype=np.int64), edges=[(0, 1)]
    )
    proved = po.solve(chain, name, rounds=MANY, workers=1)
    assert (proved.termination, proved.objective, proved.stats["evaluated"]) == (Termination.OPTIMAL, 2, 0)
    close = po.solve(constrained(3), name, rounds=MANY, workers=1, gap_limit=0.9)
    assert close.termination is Termination.COMPLETED


def crowded(seed: int) -> Problem:
    """Memory so tight that packing by size alone sometimes fails."""
    rng = np.random.default_rng(seed)
    n, m = 18, 3
    sizes = rng.integers(20, 60, n)
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(1, 20, (n, m)),
        resident=sizes,
        capacity=np.full(m, int(sizes.sum() // m + 4)),
        separation=[(0, 1), (1, 2), (3, 4)],
    )


@pytest.mark.parametrize("name", ["annealing", "local-search"])
def test_feasible_schedules_are_found_from_infeasible_starts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The penalty of violated limits leads to a feasible schedule."""
    monkeypatch.setattr("placeopt_solvers.search._anytime.best_start", lambda *_: None)
    found = 0
    for seed in range(4):
        problem = crowded(seed)
        begin = any_start(problem)
        assert begin is not None
        assert not valid(problem, begin)
        result = po.solve(problem, name, rounds=3000, workers=1, seed=seed)
        found += result.feasible is True
        assert result.feasible or "memory limits" in result.message
    assert found >= 3


def test_a_missing_placement_is_reported() -> None:
    problem = build_problem(
        task_names=["a", "b", "c"],
        device_names=["x", "y"],
        duration=np.ones((3, 2), dtype=np.int64),
        separation=[(0, 1), (1, 2), (0, 2)],
    )
    found = po.solve(problem, "annealing", rounds=100)
    assert found.schedule is None


def test_starts_are_kept_where_nothing_better_is_found() -> None:
    problem = constrained(6)
    first = po.solve(problem, "annealing", rounds=FEW, workers=1).schedule
    assert first is not None
    again = po.solve(problem, "local-search", rounds=20, workers=1, initial=first)
    assert again.makespan is not None
    assert again.makespan <= makespan(problem, first)


def test_a_start_that_fits_under_peak_only_is_kept() -> None:
    problem = build_problem(
        task_names=["a", "b"],
        device_names=["x", "y"],
        duration=np.ones((2, 2), dtype=np.int64),
        scratch=np.array([3, 3]),
        capacity=np.array([4, 0]),
        memory_model="peak",
    )
    start = Schedule(np.zeros(2, dtype=np.int64), np.array([0, 1]))
    assert valid(problem, start)
    found = po.solve(problem, "annealing", initial=start, rounds=200)
    assert found.feasible
    assert found.makespan == 2


@pytest.mark.parametrize("seed", range(12))
def test_starts_for_exact_solvers_are_better_or_none(seed: int) -> None:
    problem = small_problem(np.random.default_rng(3000 + seed), Objective())
    start, best = best_start(problem, None, True), optimum(problem)
    if start is None or best is None:
        return
    found = improved_start(problem, start, 1e-3, seed, never)
    if found is not None:
        assert valid(problem, found)
        assert best[0][0] <= makespan(problem, found) < makespan(problem, start)


@pytest.mark.parametrize("seed", range(3))
def test_job_shops_are_searched_task_by_task_though_a_pass_unites_their_tasks(seed: int) -> None:
    rng, tasks = np.random.default_rng(seed), dict[str, Any]()
    for job in range(5):
        for at, machine in enumerate(rng.permutation(4).tolist()):
            after = [f"{job}-{at - 1}"] if at else []
            tasks[f"{job}-{at}"] = {"time": {f"m{machine}": int(rng.integers(1, 99))}, "after": after}
    whole = po.compile({"placeopt": 1, "devices": {f"m{d}": {} for d in range(4)}, "tasks": tasks})
    reduction = ForcedDevices().apply(whole)
    assert reduction is not None
    problem = reduction.problem
    assert (problem.n_groups, with_fixed_apart(problem).n_groups) == (4, 20)
    start = best_start(problem, None, True)
    assert start is not None
    found = quickly_improved(problem, start, seed, never, 0.0) or start
    assert valid(problem, found)
    proved = [po.solve(whole, "cp-sat", workers=workers, hint=False) for workers in (1, 2)]
    assert [each.termination for each in proved] == [Termination.OPTIMAL] * 2
    assert proved[0].makespan == proved[1].makespan <= makespan(problem, found) <= makespan(problem, start)


@pytest.mark.parametrize("seed", range(3))
def test_lexicographic_objectives_compare_level_by_level(seed: int) -> None:
    problem = constrained(seed, objective=Objective(((Term("communication"),), (Term("makespan"),))))
    start: Any = heft(problem).schedule
    found = po.solve(problem, "annealing", rounds=FEW * 2, workers=1, initial=start)
    assert found.values is not None
    assert found.values <= evaluate(problem, start)
    assert verify(problem, found.schedule).feasible
