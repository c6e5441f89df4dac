"""Post-adjustment moves each colocation group to the device that its rule names, and keeps all other rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import small_problem
from placeopt_solvers._constructive.adjusting import Rule, adjusted
from placeopt_solvers._constructive.groups import grouped

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver
from placeopt.verifier import verify


def independent(**rest: Any) -> Problem:
    """Four tasks on two devices. Without colocation m-ETF places t0 on d0, and the others on d1."""
    given: dict[str, Any] = {
        "duration": np.array([[5, 5], [1, 1], [2, 2], [1, 1]]),
        "group": np.array([0, 0, 0, 1]),
        "resident": np.array([2, 1, 3, 1]),
        "capacity": np.array([20, 20]),
    }
    names = {"task_names": [f"t{i}" for i in range(4)], "device_names": ["d0", "d1"]}
    return build_problem(**names, edges=[], **(given | rest))


@pytest.mark.parametrize(("rule", "device"), [("compute", 0), ("memory", 1), ("majority", 1), ("no", 0)])
@pytest.mark.parametrize("name", ["m-etf", "m-sct"])
def test_the_rule_decides_for_the_group(name: str, rule: str, device: int) -> None:
    found = po.solve(independent(), name, adjust=rule)
    assert found.schedule is not None
    assert found.schedule.device.tolist() == [device] * 3 + [1]


def test_m_topo_fills_devices_without_regard_to_groups_before_it_adjusts() -> None:
    """Cap is 5 + 4 with groups, beyond which t2 and t3 go to d1, and 5 + 3 for single tasks, of which t3 goes there."""
    case = independent(resident=np.array([3, 3, 1, 3]), group=np.array([0, 1, 2, 2]))
    for rule, device in (("no", [0, 0, 1, 1]), ("majority", [0, 0, 0, 0]), ("memory", [0, 0, 1, 1])):
        found = po.solve(case, "m-topo", adjust=rule)
        assert found.schedule is not None
        assert found.schedule.device.tolist() == device, rule


def test_a_full_device_is_passed_over() -> None:
    case = independent(capacity=np.array([5, 20]))
    device = np.array([0, 1, 1, 1])
    assert adjusted(case, grouped(case), device, "compute").tolist() == [1, 1]
    roomy = independent()
    assert adjusted(roomy, grouped(roomy), device, "compute").tolist() == [0, 1]
    assert adjusted(roomy, grouped(roomy), np.array([1, 0, 0, 1]), "compute").tolist() == [1, 1]
    assert adjusted(roomy, grouped(roomy), np.array([1, 0, 0, 1]), "memory").tolist() == [0, 1]


def test_ties_go_to_the_lower_device() -> None:
    case = independent(group=np.array([0, 0, 1, 1]), duration=np.full((4, 2), 2))
    rules: tuple[Rule, ...] = ("compute", "majority")
    for rule in rules:
        assert adjusted(case, grouped(case), np.array([1, 0, 1, 1]), rule).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["m-etf", "m-sct", "m-topo"])
def test_every_rule_of_the_problem_is_kept(name: str) -> None:
    solver, found = find_solver(name), 0
    for seed in range(30):
        case = small_problem(np.random.default_rng(seed), Objective(), times=seed % 2 == 1)
        rule = ("compute", "memory", "majority")[seed % 3]
        schedule = solver.solve(case, Options(), solver.settings_type(adjust=rule)).schedule
        if schedule is not None:
            found += 1
            assert {broken.rule for broken in verify(case, schedule).violations} <= {"deadline"}
    assert found > 15


@pytest.mark.parametrize("name", ["m-etf", "m-sct", "m-topo"])
def test_separation_is_kept_where_live_memory_leaves_another_device_than_the_sum(name: str) -> None:
    """By the sum d1 has 4 B left for t4 (6 B) or t5 (7 B), so both would go to d0; at each time it has room for one."""
    case = po.compile(
        {
            "placeopt": 1,
            "memory_model": "peak",
            "devices": {"d0": {}, "d1": {"memory": 19}},
            "tasks": {
                "t0": {"time": {"d1": 4}, "colocate": "g"},
                "t1": {"time": 1, "memory": {"resident": 2, "scratch": 4}, "colocate": "g"},
                "t2": {"time": 1, "output": 2, "colocate": "g"},
                "t3": {"time": 1, "output": 2, "memory": {"resident": 4, "scratch": 1}, "colocate": "g"},
                "t4": {"time": 1, "output": 4, "memory": {"scratch": 2}, "separate": "s"},
                "t5": {"time": 2, "output": 7, "separate": "s"},
            },
        }
    )
    for rule in ("compute", "memory", "majority"):
        assert po.solve(case, name, adjust=rule).feasible, rule
    with pytest.raises(po.UsageError, match=r"^\S+ setting adjust = most: input should be 'compute', .* or 'no'$"):
        po.solve(case, name, adjust="most")
