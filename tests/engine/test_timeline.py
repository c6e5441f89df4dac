"""The native timeline against a heuristic in plain Python on top of it, and against what it was before a mark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_force import with_resources
from constrained_problems import constrained
from large_amounts import large_problem
from placeopt_solvers._constructive.groups import Groups, grouped
from placeopt_solvers._constructive.live_memory import own_tasks
from placeopt_solvers._constructive.sequences import Penalties, insert_tasks, list_tasks

import placeopt as po
from placeopt import engine
from placeopt.model.building import with_changes
from placeopt.model.native import native
from placeopt.model.problem import Objective, Problem
from placeopt.model.resources import build_resources

ARRAYS = ("home", "room", "device", "start", "end", "free", "moves", "trees")
CASES = [
    (seed, contention, model)
    for seed in range(4)
    for contention in ("none", "port", "half_duplex", "links")
    for model in ("sum", "peak")
]


def state(line: engine.Timeline) -> dict[str, list[Any]]:
    return {name: getattr(line, name).tolist() for name in ARRAYS}


def groups_of(problem: Problem) -> Groups:
    """The groups of a problem, under `peak` with live memory along its own order."""
    if problem.memory_model == "sum":
        return grouped(problem)
    live = own_tasks(problem).live(problem.n_groups, problem.order)
    return replace(grouped(problem, own_tasks(problem).resident(problem.n_groups)), live=live)


def timeline(problem: Problem, **options: bool) -> engine.Timeline:
    return engine.Timeline(native(problem), groups_of(problem), **options)


def minimum_completion_time(problem: Problem, line: engine.Timeline) -> int | None:
    """MCT in Python: the task that no device can take, or None."""
    for i in problem.order.tolist():
        able = [d for d in range(problem.n_devices) if line.can_run(i, d)]
        if not able:
            return int(i)
        line.place(i, min(able, key=lambda d: (line.earliest(i, d) + int(problem.duration[i, d]), d)))
    return None


@pytest.mark.parametrize("insertion", [True, False])
@pytest.mark.parametrize(("seed", "contention", "model"), CASES)
def test_a_heuristic_in_python_gives_what_the_loop_gives(
    seed: int, contention: Any, model: Any, insertion: bool
) -> None:
    problem = constrained(seed, contention=contention, memory_model=model)
    line = timeline(problem, insertion=insertion)
    stuck = minimum_completion_time(problem, line)
    loop = list_tasks(problem, groups_of(problem), problem.order, 0, insertion=insertion)
    assert loop.stuck == (None if stuck is None else problem.group[stuck])
    assert state(line) == state(loop.line)


@pytest.mark.parametrize("seed", range(40))
def test_large_amounts(seed: int) -> None:
    problem = large_problem(seed, Objective(), bound=seed % 4 == 0)
    line = timeline(problem)
    if grouped(problem).stuck is None:
        minimum_completion_time(problem, line)
        assert state(line) == state(list_tasks(problem, groups_of(problem), problem.order, 0, insertion=True).line)


@pytest.mark.parametrize(("seed", "contention", "model"), CASES)
def test_placements_can_be_taken_back(seed: int, contention: Any, model: Any) -> None:
    problem = constrained(seed, contention=contention, memory_model=model)
    rng = np.random.default_rng(seed)
    line = timeline(problem, record=True)
    known = [state(line)]
    order, at = problem.order.tolist(), 0
    for _ in range(200):
        able = [] if at == len(order) else [d for d in range(problem.n_devices) if line.can_run(order[at], d)]
        if able and rng.random() < 0.6:
            line.place(order[at], int(rng.choice(able)))
            at += 1
            known[at:] = [state(line)]
        else:
            at = int(rng.integers(0, at + 1))
            line.resume(at)
            assert state(line) == known[at]
        assert line.placed == at


def test_what_cannot_be_placed() -> None:
    problem = constrained(0)
    line = timeline(problem)
    consumer = int(problem.edge_target[0])
    with pytest.raises(po.UsageError, match=f"task: {consumer}; expected its producer"):
        line.place(consumer, 0)
    first = int(problem.order[0])
    with pytest.raises(po.UsageError, match="task: 24; expected 0 to 23"):
        line.earliest(24, 0)
    with pytest.raises(po.UsageError, match="device: -1; expected 0 to 2"):
        line.can_run(first, -1)
    line.place(first, 0)
    with pytest.raises(po.UsageError, match=f"task: {first}; expected a task that is not placed"):
        line.place(first, 0)
    with pytest.raises(po.UsageError, match="the timeline does not record"):
        line.resume(0)
    with pytest.raises(po.UsageError, match="placed: 1; expected 0 to 0"):
        timeline(problem, record=True).resume(1)
    full = replace(problem, capacity=np.zeros(3, dtype=np.int64), feasible=np.ones((24, 3), dtype=np.bool_))
    with pytest.raises(po.UsageError, match=f"device: 0 cannot take task {first}"):
        timeline(full).place(first, 0)


def test_sums_beyond_64_bits_are_errors() -> None:
    problem = constrained(0)
    longest = replace(problem, duration=np.full((24, 3), 2**62 - 1))
    with pytest.raises(po.UsageError, match="exceeds 63 bits; use larger units"):
        insert_tasks(longest, grouped(longest), longest.order)
    slow = replace(problem, payload=np.full(problem.n_edges, 2**62), latency=np.full((3, 3), 2**62 - 1))
    with pytest.raises(po.UsageError, match="exceeds 63 bits; use larger units"):
        insert_tasks(slow, grouped(slow), slow.order)


def test_penalties_choose_the_device() -> None:
    problem = constrained(1)
    roomy = replace(problem, capacity=np.full(3, 2**62), feasible=np.ones((24, 3), dtype=np.bool_))
    far = Penalties(np.zeros(24, dtype=np.int64), np.array([[2**60, 2**60, 0]]))
    found = insert_tasks(roomy, grouped(roomy), problem.order, far)
    assert (found.line.device == 2).sum() == 22  # two pairs of tasks are apart


def counted_usage(problem: Problem, line: engine.Timeline, resource: int) -> list[tuple[int, int]]:
    """The steps of what placed tasks use of a renewable resource, counted tick by tick."""
    assert problem.resources is not None
    amounts = problem.resources.amounts(resource)
    held = np.zeros(int(line.end.max(initial=0)) + 2, dtype=np.int64)
    for i in np.flatnonzero(line.device >= 0).tolist():
        held[line.start[i] : line.end[i]] += amounts[i, line.device[i]]
    assert held.max() <= problem.resources.capacity[resource]
    changes = [0, *(np.flatnonzero(np.diff(held)) + 1).tolist()]
    return [(tick, int(held[tick])) for tick in changes]


def left_of(problem: Problem, line: engine.Timeline) -> list[int]:
    """What is left of budgets, beyond the least use of the groups without a home."""
    assert problem.resources is not None
    able, left = problem.group_feasible(), []
    for r in problem.resources.budgets.tolist():
        total = int(problem.resources.capacity[r])
        use = np.zeros((problem.n_groups, problem.n_devices), dtype=np.int64)
        np.add.at(use, problem.group, problem.resources.amounts(r))
        for k, home in enumerate(line.home.tolist()):
            total -= int(use[k, home]) if home >= 0 else int(use[k][able[k]].min())
        left.append(total)
    return left


@pytest.mark.parametrize("insertion", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_resources_are_booked_and_taken_back(seed: int, insertion: bool) -> None:
    rng = np.random.default_rng(seed)
    contention: Any = ("none", "none", "port")[seed % 3]
    problem = with_resources(constrained(seed, contention=contention), rng)
    groups = grouped(problem)
    if problem.resources is None or groups.stuck is not None:
        pytest.skip("no resources, or no placement")
    line = engine.Timeline(native(problem), groups, insertion=insertion, record=True)
    renewable = np.flatnonzero(problem.resources.renewable).tolist()

    def full_state() -> list[Any]:
        return [state(line), line.left.tolist(), [[each.tolist() for each in line.usage(r)] for r in renewable]]

    known = [full_state()]
    order, at = problem.order.tolist(), 0
    for _ in range(150):
        able = [] if at == len(order) else [d for d in range(problem.n_devices) if line.can_run(order[at], d)]
        if able and rng.random() < 0.65:
            task, device = order[at], int(rng.choice(able))
            earliest = line.earliest(task, device)
            assert line.place(task, device) == earliest
            at += 1
            known[at:] = [full_state()]
            for r in renewable:
                assert list(zip(*(each.tolist() for each in line.usage(r)), strict=True)) == counted_usage(
                    problem, line, r
                )
            assert line.left.tolist() == left_of(problem, line)
            assert line.left.min(initial=0) >= 0
        else:
            at = int(rng.integers(0, at + 1))
            line.resume(at)
            assert full_state() == known[at]


def test_usage_of_a_budget_is_an_error() -> None:
    problem = with_changes(constrained(0), resources=build_resources(24, 3, renewable={"r": 1}, budgets={"b": 1}))
    line = engine.Timeline(native(problem), grouped(problem))
    assert [each.tolist() for each in line.usage(0)] == [[0], [0]]
    with pytest.raises(po.UsageError, match="resource: 1 is not a renewable one"):
        line.usage(1)
