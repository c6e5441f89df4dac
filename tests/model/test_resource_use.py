"""What schedules use of resources, and the lanes of parallel devices."""

from __future__ import annotations

import json

import numpy as np
import pytest
from brute_force import small_problem, with_resources

import placeopt as po
from placeopt.model.resource_use import SHOWN, lanes, task_lanes, use_facts, use_over_time
from placeopt.model.schedule import durations

DOCUMENT = {
    "placeopt": 1,
    "name": "lab",
    "resolution": "1 ms",
    "resources": {"power": 400},
    "budgets": {"error": 0.1},
    "pools": {"board": {"memory": "3 GiB", "devices": ["gpu"]}},
    "devices": {"host": {"cores": 8}, "gpu": {}},
    "tasks": {
        "a": {"time": {"host": "5 ms"}, "cores": 4, "uses": {"power": 150}},
        "b": {"time": {"host": "3 ms"}, "cores": 2, "uses": {"power": 150, "error": 0.02}},
        "c": {"time": {"gpu": "4 ms"}, "memory": "1 GiB", "uses": {"power": {"gpu": 250}, "error": 0.05}},
        "d": {"time": {"host": "2 ms"}, "after": "b"},
        "e": {"time": 0, "uses": {"power": 400}},
    },
}


@pytest.fixture
def problem() -> po.Problem:
    return po.compile(DOCUMENT)


def test_uses(problem: po.Problem) -> None:
    schedule = po.Schedule([0, 0, 1, 0, 0], [0, 0, 3, 3, 0])
    power, cores, error, board = po.resource_uses(problem, schedule)
    assert power.to_dict() == {
        "name": "power", "renewable": True, "memory": False, "capacity": 400, "used": 400,
    }  # fmt: skip
    assert (cores.name, cores.used, cores.capacity, cores.share) == ("cores of host", 6, 8, 0.75)
    assert (error.renewable, error.used, error.text) == (False, 0.07, "0.07 of 0.1")
    assert (board.memory, board.used, board.text) == (True, 2**30, "1 GiB of 3 GiB")
    assert power.text == "at most 400 of 400 at one time"
    ticks, used = use_over_time(problem, schedule, 0)
    assert [ticks.tolist(), used.tolist()] == [[0, 3, 5, 7], [300, 400, 250, 0]]
    assert use_facts(problem, schedule)[0] == ("power", "100.0%", "at most 400 of 400 at one time")
    assert po.resource_uses(po.load("problems/five-node.yaml"), po.Schedule([0] * 5, range(5))) == ()


def test_of_many_resources_those_used_most_are_named() -> None:
    document = DOCUMENT | {"resources": {f"r{k}": 100 for k in range(20)}, "budgets": {}, "pools": {}}
    document["tasks"] = {"a": {"time": {"host": 1}, "uses": {f"r{k}": 3 * k for k in range(20)}}}
    facts = use_facts(po.compile(document), po.Schedule([0], [0]))
    assert [name for name, *_ in facts] == [*(f"r{k}" for k in range(8, 20)), "9 other resources"]
    assert facts[-1][1] == "21.0%"
    assert len(facts) == SHOWN + 1


@pytest.mark.parametrize("seed", range(60))
def test_random_schedules_use_what_the_verifier_counts(seed: int) -> None:
    """The peak of each resource, tick by tick; with one unit less, the schedule breaks exactly that rule."""
    rng = np.random.default_rng(seed)
    problem = with_resources(small_problem(rng), rng)
    if not problem.feasible.any(axis=1).all():
        return
    device = np.array([rng.choice(np.flatnonzero(row)) for row in problem.feasible])
    try:
        schedule = po.simulate(problem, device)
    except po.UsageError:  # the placement separates a group
        return
    resources, end = problem.resources, schedule.start + durations(problem, device)
    if resources is None:
        return
    for r, use in enumerate(po.resource_uses(problem, schedule)):
        amount = resources.amounts(r)[np.arange(problem.n_tasks), device]
        ticks = range(int(end.max()))
        at = [int(amount[(schedule.start <= tick) & (tick < end)].sum()) for tick in ticks]
        expected = max(at, default=0) if use.renewable else int(amount.sum())
        assert use.used == resources.stated(r, expected)
    lane = task_lanes(problem, schedule)
    for i in range(problem.n_tasks):
        for j in range(i):
            apart = end[i] <= schedule.start[j] or end[j] <= schedule.start[i]
            if device[i] == device[j] and resources.parallel[device[i]] and lane[i] == lane[j]:
                assert apart


def test_lanes_are_the_first_that_are_free() -> None:
    intervals = [(0, 0, 9), (1, 0, 2), (0, 1, 3), (0, 2, 4), (0, 3, 3), (0, 3, 5), (0, 4, 6), (1, 2, 3)]
    assert [lane for _, lane in lanes(intervals)] == [0, 0, 1, 2, 1, 1, 2, 0]


def test_results_state_the_use(problem: po.Problem) -> None:
    result = po.solve(problem, "cp-sat", time_limit=20)
    assert result.feasible
    assert "resources    power: " in str(result)
    assert [use["name"] for use in json.loads(json.dumps(result.to_dict()))["resources"]] == [
        "power", "cores of host", "error", "memory of board",
    ]  # fmt: skip
