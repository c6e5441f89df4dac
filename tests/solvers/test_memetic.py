"""Memetic search: exact times after every move, rules that hold, optima of small shops, repeatable results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from placeopt_solvers._local_search.instance import make_instance
from placeopt_solvers._local_search.memetic import TUNING, Memetic, make_member
from placeopt_solvers._starts.warm_start import best_start
from test_search import constrained

import placeopt as po
from placeopt import engine
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan, sequence
from placeopt.simulation import retime
from placeopt.verifier import verify

STOP = engine.Stop()


def loaded(problem: Problem, order: Any, device: Any, seed: int = 0) -> engine.CriticalPaths:
    state = engine.CriticalPaths(make_instance(problem), seed)
    state.load(order, device)
    return state


def started(problem: Problem) -> Schedule:
    start = best_start(problem, None, True)
    assert start is not None
    return start


def shop(seed: int, jobs: int, operations: int, machines: int) -> Problem:
    """A flexible job shop: chains of operations, each on one to three machines."""
    rng = np.random.default_rng(seed)
    tasks: dict[str, Any] = {}
    for job in range(jobs):
        for k in range(operations):
            able = rng.choice(machines, size=rng.integers(1, 4), replace=False)
            tasks[f"j{job}o{k}"] = {"time": {f"m{d}": int(rng.integers(0 if seed % 3 == 0 else 1, 20)) for d in able}}
            if k:
                tasks[f"j{job}o{k}"]["after"] = [f"j{job}o{k - 1}"]
    return po.compile({"placeopt": 1, "devices": {f"m{d}": {} for d in range(machines)}, "tasks": tasks})


@pytest.mark.parametrize("seed", range(6))
def test_times_after_every_move_equal_recomputed_ones(seed: int) -> None:
    problem = constrained(seed, n=60, m=4, tight=0.4) if seed < 3 else shop(seed, 10, 6, 5)
    start = started(problem)
    state = loaded(problem, sequence(problem, start), start.device, seed)
    moved = 0
    for _ in range(400):
        moved += state.search(1, 1 << 40, 0, STOP)
        order, position = state.order, np.argsort(state.order)
        assert (position[problem.edge_source] < position[problem.edge_target]).all()
        fresh = loaded(problem, order.copy(), state.device.copy())
        assert state.end.tolist() == fresh.end.tolist()
        assert state.after.tolist() == fresh.after.tolist()
        assert state.span == fresh.span == (fresh.end + fresh.after).max()
        best = loaded(problem, state.best_order.copy(), state.best_device.copy())
        assert best.span == state.held
    assert moved >= 400
    found = Schedule(best.device.copy(), best.end - problem.duration[np.arange(problem.n_tasks), best.device])
    assert verify(problem, found).violations == ()
    assert retime(problem, found).start.tolist() == found.start.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_small_shops_are_solved_to_the_optimum(seed: int) -> None:
    problem = shop(seed, 4, 3, 3)
    proved = po.solve(problem, "cp-sat", workers=1)
    assert proved.termination.value == "optimal"
    found = po.solve(problem, "memetic", workers=1, patience=200, populations=3)
    assert found.makespan == proved.makespan


def test_a_known_optimum() -> None:
    """The job shop FT06 of H. Fisher and G. L. Thompson (1963), whose optimum is 55."""
    machines = (
        (2, 0, 1, 3, 5, 4),
        (1, 2, 4, 5, 0, 3),
        (2, 3, 5, 0, 1, 4),
        (1, 0, 2, 3, 4, 5),
        (2, 1, 4, 5, 0, 3),
        (1, 3, 5, 0, 4, 2),
    )
    ticks = (
        (1, 3, 6, 7, 3, 6),
        (8, 5, 10, 10, 10, 4),
        (5, 4, 8, 9, 1, 7),
        (5, 5, 5, 3, 8, 9),
        (9, 3, 5, 4, 3, 1),
        (3, 3, 9, 10, 4, 1),
    )
    tasks = {
        f"j{j}o{k}": {"time": {f"m{d}": time}, "after": [f"j{j}o{k - 1}"] if k else []}
        for j in range(6)
        for k, (d, time) in enumerate(zip(machines[j], ticks[j], strict=True))
    }
    problem = po.compile({"placeopt": 1, "devices": {f"m{d}": {} for d in range(6)}, "tasks": tasks})
    search = Memetic(problem, [started(problem)], 0, lambda: False)
    search.run(0.2, 55)
    assert search.span == makespan(problem, search.schedule) == 55


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_results_respect_all_rules_and_are_never_longer(seed: int, workers: int) -> None:
    problem = constrained(seed, n=60, m=4, tight=0.4)
    start = started(problem)
    found: list[Schedule] = []
    search = Memetic(problem, [start], seed, lambda: False, found.append, workers, patience=100)
    search.run(0.05, 0)
    spans = [makespan(problem, each) for each in found]
    assert spans == sorted(spans, reverse=True)
    assert search.span == min([makespan(problem, start), *spans])
    for each in found:
        assert verify(problem, each).feasible


def test_populations_end_and_larger_ones_begin() -> None:
    problem = shop(5, 4, 3, 3)
    search = Memetic(problem, [started(problem)], 0, lambda: search.populations >= 3, patience=20)
    search.run(math.inf, 0)
    assert search.populations == 3
    assert search.size == 33  # 10, 15, 22
    assert search.evaluated > (10 + 15 + 22) * TUNING.idle * 20


def test_the_moves_of_all_workers_count() -> None:
    problem, moves = shop(1, 12, 6, 5), []
    for workers in (1, 2):
        search = Memetic(problem, [started(problem)], 0, lambda: False, workers=workers)
        search.run(0.3, 0)
        moves.append(search.evaluated)
    assert moves[1] > 1.6 * moves[0]


def test_starts_take_work_where_no_task_can_move() -> None:
    problem = po.compile({"placeopt": 1, "devices": {"x": {}}, "tasks": {"a": {"time": 1}}})
    search = Memetic(problem, [started(problem)], 0, lambda: search.populations > 0)
    search.run(0.001, 0)
    assert search.populations == 0


def test_a_population_keeps_schedules_that_differ() -> None:
    """Of two that mostly agree, the shorter one; many different ones may have the same makespan."""
    problem = shop(5, 4, 3, 3)
    search = Memetic(problem, [started(problem)], 0, lambda: False)
    order, device = sequence(problem, search.schedule), search.schedule.device
    other = np.where(np.arange(problem.n_tasks) < 4, (device + 1) % 3, device)
    near = np.where(np.arange(problem.n_tasks) == order[-1], (device + 1) % 3, device)
    for span, devices in ((50, device), (50, other), (51, device), (49, near), (52, other)):
        search.found(span, order, devices)
    assert [each.span for each in search._population] == [49, 50]
    first, second = search._population
    assert first.distance(second) >= TUNING.apart * problem.n_tasks
    assert first.distance(make_member(0, order, near)) == 0


def test_the_same_seed_gives_the_same_schedule_in_any_division_of_the_work() -> None:
    problem = shop(8, 12, 6, 5)
    start = started(problem)
    results = []
    for _ in range(2):
        search = Memetic(problem, [start], 7, lambda: False, patience=300)
        for _ in range(4):
            search.run(0.02, 0)
        results.append((search.span, search.schedule.start.tolist(), search.schedule.device.tolist(), search.evaluated))
    assert results[0] == results[1]


def test_groups_and_full_devices_stay_as_they_are() -> None:
    tasks = {name: {"time": {"a": 3, "b": 3}, "memory": 4, "colocate": "pair"} for name in ("t0", "t1")}
    tasks["t2"] = {"time": {"a": 3, "b": 3}, "memory": 4}
    document = {"placeopt": 1, "devices": {name: {"memory": 8} for name in "ab"}, "tasks": tasks}
    problem = po.compile(document)
    search = Memetic(problem, [started(problem)], 0, lambda: False, patience=50)
    search.run(0.01, 0)
    assert search.span == 6
    assert verify(problem, search.schedule).feasible


@pytest.mark.parametrize("loose", [0, 6])
def test_groups_move_as_a_whole(loose: int) -> None:
    """Two groups of three tasks on one device, where the other is idle; with six more tasks, most are in no group."""
    tasks = {f"{g}{k}": {"time": {"a": 5, "b": 5}, "colocate": g} for g in "xy" for k in range(3)}
    tasks |= {f"z{k}": {"time": {"a": 1, "b": 1}} for k in range(loose)}
    problem = po.compile({"placeopt": 1, "devices": {"a": {}, "b": {}}, "tasks": tasks})
    n = problem.n_tasks
    start = retime(problem, Schedule(np.zeros(n, np.int64), np.cumsum(problem.duration[:, 0]) - problem.duration[:, 0]))
    search = Memetic(problem, [start], 0, lambda: False, patience=50)
    search.run(0.01, 0)
    assert search.grouped == (loose == 0)
    assert search.span == 15 + loose // 2
    assert verify(problem, search.schedule).feasible


def test_a_stop_ends_the_search_and_keeps_the_best() -> None:
    problem = shop(3, 10, 6, 5)
    start = started(problem)
    search = Memetic(problem, [start], 0, lambda: True)
    search.run(math.inf, 0)
    assert search.span <= makespan(problem, start)
    assert search.evaluated < 100_000
