"""Annealing before the exact solver: valid, never worse, the same for the same seed, compiled or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers._annealing import annealed
from placeopt_solvers._annealing_loops import anneal, run_in_order
from placeopt_solvers._heft import heft
from placeopt_solvers._validity import valid
from placeopt_solvers._warm_start import annealed_start, best_start

from placeopt.ir import Objective, Problem, build_problem
from placeopt.lowerbounds import best_bound
from placeopt.schedule import Schedule, makespan
from placeopt.simulation import retime


def never() -> bool:
    return False


def constrained(seed: int, n: int = 30, m: int = 4, **rest: Any) -> Problem:
    """A random graph with memory, groups, separation, forbidden devices, release times and unlike links."""
    rng = np.random.default_rng(seed)
    edges = [(a, b) for b in range(n) for a in range(max(0, b - 6), b) if rng.random() < 0.3]
    resident = rng.integers(1, 10, n)
    feasible = rng.random((n, m)) < 0.9
    feasible[:, 0] = True
    group = np.arange(n)
    group[[3, 9]] = 3
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(1, 20, (n, m)),
        edges=edges,
        payload=rng.integers(0, 20, len(edges)),
        latency=rng.integers(0, 5, (m, m)),
        byte_ticks_num=rng.integers(1, 3, (m, m)),
        feasible=feasible,
        resident=resident,
        capacity=np.full(m, resident.sum() // 2),
        release=np.where(rng.random(n) < 0.3, rng.integers(0, 60, n), 0),
        group=group,
        separation=[(1, 2), (5, 20)],
        **rest,
    )


def test_schedules_are_valid_and_better_than_their_starts() -> None:
    better = 0
    for seed in range(6):
        problem = constrained(seed)
        start = best_start(problem, None, True)
        assert start is not None
        found = annealed(problem, start, int(best_bound(problem).value), 150_000, seed, never)
        assert found is not None
        assert valid(problem, found)
        assert makespan(problem, found) <= makespan(problem, start)
        better += makespan(problem, found) < makespan(problem, start)
    assert better >= 4


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_better_than_the_optimum(seed: int) -> None:
    problem = small_problem(np.random.default_rng(3000 + seed), Objective())
    start, best = best_start(problem, None, True), optimum(problem)
    if start is None or best is None:
        return
    bound = int(best_bound(problem).value)
    found = annealed_start(problem, start, 4e-5, seed, never)
    if found is not None:
        assert valid(problem, found)
        assert makespan(problem, found) >= best[0][0] >= bound


def test_the_optimum_of_small_problems_is_found_nearly_always() -> None:
    hits = total = 0
    for seed in range(30):
        problem = small_problem(np.random.default_rng(4000 + seed), Objective())
        start, best = best_start(problem, None, True), optimum(problem)
        if start is None or best is None or problem.contention == "port" or problem.memory_model == "peak":
            continue
        found = annealed(problem, start, int(best_bound(problem).value), 10_000, seed, never) or start
        total += 1
        hits += makespan(problem, found) == best[0][0]
    assert total > 8
    assert hits >= total - 2


def test_the_same_seed_gives_the_same_schedule() -> None:
    problem = constrained(1)
    start = best_start(problem, None, True)
    assert start is not None
    bound = int(best_bound(problem).value)
    found = [annealed(problem, start, bound, 150_000, seed, never) for seed in (5, 5, 6)]
    starts = [None if each is None else (each.device.tolist(), each.start.tolist()) for each in found]
    assert starts[0] == starts[1] != starts[2]


def test_compiled_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = constrained(2)
    start = best_start(problem, None, True)
    assert start is not None
    plain = annealed(problem, start, 0, 40_000, 3, never)
    monkeypatch.setattr(type(anneal), "select", lambda self, _: self.compiled())
    compiled = annealed(problem, start, 0, 40_000, 3, never)
    assert plain is not None
    assert compiled is not None
    assert plain.device.tolist() == compiled.device.tolist()
    assert plain.start.tolist() == compiled.start.tolist()


def test_it_stops_at_the_bound_and_when_told() -> None:
    problem = constrained(3)
    start = best_start(problem, None, True)
    assert start is not None
    at_bound = annealed(problem, start, makespan(problem, start), 10_000_000, 0, never)
    told = annealed(problem, start, 0, 10_000_000, 0, lambda: True)
    for found in (at_bound, told):
        assert found is not None
        assert makespan(problem, found) <= makespan(problem, start)


def test_a_start_that_fits_under_peak_only_is_left_alone() -> None:
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
    assert annealed(problem, start, 0, 1000, 0, never) is None


def test_the_cost_counts_what_devices_work_past_the_bound() -> None:
    """Two tasks of 4 and 2 ticks on two devices, bound 1: makespan 4, and 3 and 1 ticks past it, 2 on average."""
    end, free = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    duration = np.array([[4, 4], [2, 2]])
    zero = np.zeros(3, dtype=np.int64)
    times = np.arange(2), duration, np.zeros(2, dtype=np.int64), zero, none, np.zeros((0, 1, 1), dtype=np.int64), zero
    assert run_in_order(np.arange(2), np.arange(2), *times, 1, np.inf, free, end) == 6.0
    assert end.tolist() == [4, 2]


def test_contention_is_kept() -> None:
    problem = constrained(4, contention="port")
    start = best_start(problem, None, True)
    assert start is not None
    found = annealed_start(problem, start, 2e-4, 0, never)
    assert found is not None
    assert valid(problem, found)
    assert heft(problem).schedule is not None
    assert retime(problem, found).transfers is not None
