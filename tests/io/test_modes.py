"""Modes and teams: what they compile to, and that the optimum is that of trying every mode, team and order."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.model.objective import transfer_energy
from tests.support.brute_force import optimum
from tests.support.brute_force_modes import best_value, random_document, with_media, with_separations, with_setups


def document(tasks: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """Two GPUs and a CPU."""
    devices = {"cpu": {"speed": 1}, "gpu": {"count": 2, "memory": 100, "speed": 2}}
    links = {"default": {"latency": 1, "bandwidth": 2}}
    return {"placeopt": 1, "devices": devices, "links": links, "tasks": tasks, **sections}


def ticks(problem: po.Problem, task: int) -> dict[str, int]:
    """The ticks of a task on the devices that may run it."""
    able = np.flatnonzero(problem.feasible[task]).tolist()
    return {problem.device_names[d]: int(problem.duration[task, d]) for d in able}


def uses(problem: po.Problem, task: int, device: str) -> dict[str, Fraction]:
    """What a task uses on a device."""
    found = problem.resources
    assert found is not None
    d = problem.device_names.index(device)
    return {found.names[r]: found.stated(r, amount) for r, amount in found.used(task, d)}


def test_modes_inherit_what_they_do_not_state() -> None:
    modes = {"full": {}, "small": {"memory": 10, "uses": {"error": 0.25}}, "slow": {"time": {"cpu": 9}}}
    task = {"time": {"cpu": 8, "gpu": 4}, "memory": 40, "uses": {"power": 3}, "modes": modes}
    problem = po.compile(document({"a": task, "b": {"time": 2}}, budgets={"error": 1}, resources={"power": 5}))
    assert ticks(problem, 0) == {
        "cpu: full": 8, "gpu0: full": 4, "gpu1: full": 4, "cpu: small": 8, "gpu0: small": 4, "gpu1: small": 4,
        "cpu: slow": 9,
    }  # fmt: skip
    assert ticks(problem, 1) == {"cpu": 2, "gpu0": 2, "gpu1": 2}
    assert uses(problem, 0, "gpu1: full") == {"power": 3, "gpu1": 1, "memory of gpu1": 40}
    assert uses(problem, 0, "gpu0: small") == {"power": 3, "error": Fraction(1, 4), "gpu0": 1, "memory of gpu0": 10}
    assert uses(problem, 0, "cpu: slow") == {"power": 3, "cpu": 1}
    assert uses(problem, 1, "gpu0") == {"gpu0": 1}


def test_teams_are_all_choices_of_devices_and_share_work_by_speed() -> None:
    modes = {"alone": {}, "pair": {"team": {"gpu": 2}, "all_reduce": 8}, "mixed": {"team": ["cpu", "gpu1"]}}
    problem = po.compile(document({"a": {"op": "matmul", "flops": 12, "memory": 30, "modes": modes}}))
    # A pair takes 1 / (1/6 + 1/6), then two steps of 4 bytes in 1 + 4/2 ticks; cpu and gpu1 take 1 / (1/12 + 1/6).
    assert ticks(problem, 0) == {
        "cpu: alone": 12, "gpu0: alone": 6, "gpu1: alone": 6, "gpu0+gpu1: pair": 3 + 2 * 3, "cpu+gpu1: mixed": 4,
    }  # fmt: skip
    assert uses(problem, 0, "gpu0+gpu1: pair") == {
        "gpu0": 1, "memory of gpu0": 30, "gpu1": 1, "memory of gpu1": 30,
    }  # fmt: skip


def test_members_divide_shards_as_they_divide_the_work() -> None:
    modes = {"alone": {"memory": 3, "shards": 30}, "mixed": {"team": ["cpu", "gpu1"], "memory": 3, "shards": 30}}
    problem = po.compile(
        document({"a": {"flops": 12, "memory": 99, "modes": modes}}, pools={"all": {"devices": "*", "memory": 90}})
    )
    assert uses(problem, 0, "gpu0: alone") == {"gpu0": 1, "memory of gpu0": 33, "memory of all": 33}
    assert uses(problem, 0, "cpu+gpu1: mixed") == {"cpu": 1, "gpu1": 1, "memory of gpu1": 23, "memory of all": 36}
    equal = {"mixed": {"team": ["cpu", "gpu1"], "time": 4, "memory": 0, "shards": 31}}
    problem = po.compile(document({"a": {"flops": 12, "modes": equal}}))
    assert uses(problem, 0, "cpu+gpu1: mixed") == {"cpu": 1, "gpu1": 1, "memory of gpu1": 16}


def test_operations_of_a_team_follow_each_other() -> None:
    modes = {"pair": {"team": {"gpu": 2}, "all_reduce": [8, 8], "all_gather": 8}}
    problem = po.compile(document({"a": {"flops": 12, "modes": modes}}))
    assert ticks(problem, 0) == {"gpu0+gpu1: pair": 3 + 2 * 6 + 3}


def test_cores_and_memory_count_for_each_member() -> None:
    devices = {"node": {"count": 2, "cores": 4, "memory": 50}}
    modes = {"one": {"cores": 3}, "both": {"team": {"node": 2}, "cores": 2, "memory": 20}}
    tasks = {"a": {"time": 5, "memory": 30, "modes": modes}}
    problem = po.compile({"placeopt": 1, "devices": devices, "tasks": tasks})
    assert uses(problem, 0, "node1: one") == {"cores of node1": 3, "memory of node1": 30}
    assert uses(problem, 0, "node0+node1: both") == {
        "cores of node0": 2, "memory of node0": 20, "cores of node1": 2, "memory of node1": 20,
    }  # fmt: skip
    assert problem.resources is not None
    assert problem.resources.parallel.all()


def test_a_task_of_no_duration_uses_no_renewable_resource() -> None:
    task = {"time": {"cpu": 0, "gpu": 3}, "uses": {"power": 9}}
    problem = po.compile(document({"a": task, "b": {"time": 2}}, resources={"power": 5}))
    assert ticks(problem, 0) == {"cpu": 0}
    assert po.solve(problem, solver="cp-sat").makespan == 2
    with pytest.raises(po.SpecError, match="the task uses at least 9, and power has 5"):
        po.compile(document({"a": {**task, "time": 3}}, resources={"power": 5}))


def test_a_fixed_device_leaves_its_modes() -> None:
    modes = {"x": {}, "y": {"time": 3}, "z": {"team": {"gpu": 2}}}
    tasks = {"a": {"time": 4, "modes": modes}, "b": {"time": 1}}
    problem = po.compile(document(tasks, placement={"a": "gpu0", "b": "cpu"}))
    assert ticks(problem, 0) == {"gpu0: x": 4, "gpu0: y": 3, "gpu0+gpu1: z": 4}
    assert ticks(problem, 1) == {"cpu": 1}


def test_a_team_is_unavailable_whenever_a_member_is() -> None:
    devices = {"a": {"unavailable": [{"from": 2, "to": 4}]}, "b": {"unavailable": [{"from": 3, "to": 7}]}}
    tasks = {"t": {"time": 1, "modes": {"both": {"team": ["a", "b"]}}}}
    problem = po.compile({"placeopt": 1, "devices": devices, "tasks": tasks})
    assert problem.unavailable is not None
    assert [problem.unavailable.of(d) for d in range(3)] == [[(2, 4)], [(3, 7)], [(2, 7)]]


def test_tasks_inherit_the_modes_of_their_operation() -> None:
    sections = {"operations": {"norm": {"cpu": 3}}, "modes": {"norm": {"x": {}, "y": {"time": 2}}, "matmul": {"x": {}}}}
    tasks = {"a": {"op": "norm"}, "b": {"op": "matmul", "flops": 8}, "c": {"op": "norm", "modes": {"z": {}}}}
    problem = po.compile(document({**tasks, "d": {"op": "other", "time": 1}}, **sections))
    assert ticks(problem, 0) == {"cpu: x": 3, "cpu: y": 2, "gpu0: y": 2, "gpu1: y": 2}
    assert ticks(problem, 1) == {"cpu: x": 8, "gpu0: x": 4, "gpu1: x": 4}
    assert ticks(problem, 2) == {"cpu: z": 3}
    assert ticks(problem, 3) == {"cpu": 1, "gpu0": 1, "gpu1": 1}


def sent(problem: po.Problem, task: int) -> dict[str, tuple[int, int]]:
    """Ticks and nanojoules of the first edge of a task to cpu, by the device that runs the task."""
    edge, to = int(problem.out_start[task]), problem.device_names.index("cpu")
    payload = problem.payload[edge]
    return {
        problem.device_names[d]: (int(problem.transfer(payload, d, to)), int(transfer_energy(problem, payload, d, to)))
        for d in np.flatnonzero(problem.feasible[task]).tolist()
    }


def test_a_mode_sends_and_holds_its_own_output() -> None:
    modes = {"fp": {"memory": 7}, "int": {"output": 3}, "none": {"output": 0}}
    tasks = {
        "a": {"time": {"gpu0": 4}, "output": 9, "modes": modes},
        "b": {"time": {"gpu0": 4}, "output": 6, "modes": {"int": {"output": 2}, "fp": {}}},
        "c": {"time": {"gpu0": 4}, "modes": {"int": {"output": 5}, "fp": {"output": 7}}},
        "d": {"time": {"gpu0": 4}, "output": 4, "modes": {"fp": {}}},
        "e": {"time": {"cpu": 1}, "after": ["a", "b", "c", "d"]},
    }
    links = {"default": {"latency": 1, "bandwidth": 2, "energy": "3 nJ/B"}}
    problem = po.compile(document(tasks, links=links))
    assert sent(problem, 0) == {"gpu0: fp": (1 + 5, 27), "gpu0: int": (1 + 2, 9), "gpu0: none": (1, 0)}
    assert sent(problem, 1) == {"gpu0: fp": (1 + 3, 18), "gpu0: int": (1 + 1, 6)}  # a third, as for a
    assert sent(problem, 2) == {"gpu0: fp": (1 + 4, 21), "gpu0: int'": (1 + 3, 15)}
    assert sent(problem, 3) == {"gpu0: fp": (1 + 2, 12)}
    assert uses(problem, 0, "gpu0: fp") == {"gpu0": 1, "memory of gpu0": 7 + 9}
    assert uses(problem, 0, "gpu0: int") == {"gpu0": 1, "memory of gpu0": 3}
    assert problem.transfer(9, problem.device_names.index("gpu0: int"), problem.device_names.index("gpu0: fp")) == 0


def test_a_pipeline_keeps_the_outputs_of_modes() -> None:
    tasks = {"a": {"time": {"gpu0": 1}, "output": 8, "modes": {"fp": {}, "int": {"output": 2}}}}
    sections = {"objective": "period", "pipeline": {"in_flight": "gpipe", "microbatches": 5}}
    problem = po.compile(document(tasks, **sections))
    assert uses(problem, 0, "gpu0: fp") == {"memory of gpu0": 40}
    assert uses(problem, 0, "gpu0: int") == {"memory of gpu0": 10}


@pytest.mark.parametrize(("contention", "makespan"), [("none", 4), ("port", 7), ("half_duplex", 7)])
def test_modes_of_a_device_share_its_port(contention: str, makespan: int) -> None:
    tasks = {
        "a": {"time": {"gpu0": 0}, "output": 4, "modes": {"x": {}}},
        "b": {"time": {"gpu0": 0}, "output": 4, "modes": {"y": {}}},
        "c": {"time": {"cpu": 1}, "after": "a"},
        "d": {"time": {"gpu1": 1}, "after": "b"},
    }
    for solver in ("cp-sat", "milp", "brute-force", "auto"):
        assert po.solve(po.compile(document(tasks, contention=contention)), solver).makespan == makespan


def test_other_devices_may_have_setups_and_limited_memory_at_the_peak() -> None:
    devices = {"mcu": {"memory": 5, "setup": {"x": 3}}, "gpu": {}}
    tasks = {
        "a": {"time": {"mcu": 1}, "family": "x", "output": 3},
        "b": {"time": {"gpu": 9}, "after": "a", "modes": {"slow": {}, "fast": {"time": {"gpu": 2}, "memory": 90}}},
        "c": {"time": {"mcu": 1}, "memory": {"scratch": 3}},
    }
    links = {"default": {"latency": 1}}
    problem = po.compile({"placeopt": 1, "devices": devices, "links": links, "tasks": tasks, "memory_model": "peak"})
    for solver in ("cp-sat", "milp", "auto"):
        result = po.solve(problem, solver)
        assert (result.makespan, result.bound) == (7, 7)  # a from 3 to 4, data until 5, b until 7
        assert result.schedule is not None
        assert result.schedule.start[2] >= 5  # the output of a and the scratch of c do not fit at one time


def test_a_medium_carries_nothing_between_modes_of_a_device() -> None:
    tasks = {
        "p": {"time": {"cpu": 1}, "output": 4},
        "q": {"time": {"gpu0": 1}, "output": 4, "after": "p", "modes": {"x": {}}},
        "r": {"time": {"gpu0": 1}, "after": "q", "modes": {"y": {}}},
        "s": {"time": {"gpu1": 1}, "after": "p", "modes": {"x": {}}},
    }
    links = {"default": {"bandwidth": 1}, "shared": {"bus": {"between": ["cpu", "gpu"]}}}
    problem = po.compile(document(tasks, links=links))
    for solver in ("cp-sat", "milp", "brute-force", "auto"):
        result = po.solve(problem, solver)
        assert (result.makespan, result.bound) == (10, 10)  # transfers from 1 and from 5; q at 5, r at 6, s at 9
        assert result.schedule is not None
        assert po.verify(problem, result.schedule).feasible
        moves = result.schedule.transfers
        assert moves is not None
        moves = replace(moves, start=np.where(problem.edge_source[moves.edge] == 0, 1, 6))
        broken = replace(result.schedule, start=np.array([0, 5, 6, 5]), transfers=moves)
        assert {violation.rule for violation in po.verify(problem, broken).violations} == {"link"}


def test_modes_of_a_device_share_its_setups() -> None:
    devices = {"gpu": {"setup": {"x": 3, "y": {"x": 5, "*": 1}}}}
    modes = {"slow": {"time": 4}, "fast": {"time": 2, "uses": {"b": 1}}}
    tasks = {name: {"family": family, "modes": modes} for name, family in (("a", "x"), ("b", "y"), ("c", "x"))}
    problem = po.compile({"placeopt": 1, "devices": devices, "tasks": tasks, "budgets": {"b": 2}})
    for solver in ("cp-sat", "milp", "brute-force", "auto"):
        result = po.solve(problem, solver)
        assert (result.makespan, result.bound) == (12, 12)  # b from 1 to 3 or 5, then the setup for x, a and c
    slow, fast = (problem.device_names.index(f"gpu: {mode}") for mode in ("slow", "fast"))
    schedule = po.Schedule(np.array([fast, slow, fast]), np.array([3, 10, 17]))
    assert po.verify(problem, schedule).feasible
    for early in ([3, 9, 17], [2, 10, 17], [3, 10, 16]):
        broken = po.verify(problem, po.Schedule(schedule.device, np.array(early))).violations
        assert [violation.rule for violation in broken] == ["setup"]


def test_documents_state_modes_as_devices() -> None:
    modes = {"x": {"uses": {"error": 0.5}}, "y": {"team": {"gpu": 2}}}
    tasks = {"a": {"time": 4, "memory": 5, "output": 3, "modes": modes}, "b": {"time": 1, "after": "a"}}
    problem = po.compile(document(tasks, budgets={"error": 1.5}))
    assert po.compile(problem.to_document()).fingerprint() == problem.fingerprint()


@pytest.mark.parametrize(
    ("modes", "sections", "message"),
    [
        ({"x": {"team": {"gpu": 3}}}, {}, "tasks.a.modes.x: no device, or no team of devices, can run the task"),
        ({"x": {"team": {"tpu": 2}}}, {}, 'tasks.a.modes.x.team.tpu: unknown device "tpu"; did you mean gpu?'),
        ({"x": {"team": ["cpu", "cpu"]}}, {}, '"cpu" is listed twice; state how many'),
        ({"x": {"all_gather": 5}}, {}, "tasks.a.modes.x.all_gather: all_gather needs a team"),
        ({"x": {"uses": {"eror": 1}}}, {"budgets": {"error": 1}}, 'unknown resource "eror"; did you mean error?'),
        ({"x": {"time": {"tpu": 1}}}, {}, "tasks.a.modes.x.time.tpu: unknown device"),
        ({"x": {}}, {"objective": "communication"}, "modes are not supported with the objective communication"),
        (
            {"x": {}},
            {"memory_model": "peak"},
            "modes.x: gpu0 has limited memory, for which modes need memory_model: sum",
        ),
        ({"x": {}}, {"memory_model": "peak", "addresses": {}}, "modes are not supported with addresses"),
        (
            {"x": {"team": ["cpu", "d"]}},
            {"devices": {"cpu": {}, "d": {"setup": {"*": 1}}}},
            "modes.x: d has setup times, which are not supported in teams",
        ),
    ],
)
def test_messages_name_the_mode(modes: dict[str, Any], sections: dict[str, Any], message: str) -> None:
    with pytest.raises(po.SpecError) as caught:
        po.compile(document({"a": {"time": 3, "modes": modes}}, **sections))
    assert message in str(caught.value)


def drawn(rng: np.random.Generator) -> dict[str, Any]:
    """Up to four tasks with up to three modes on two or three devices."""
    n, m = int(rng.integers(1, 5)), int(rng.integers(2, 4))
    devices = {f"d{d}": {"memory": int(rng.integers(4, 12))} for d in range(m)}
    tasks: dict[str, Any] = {}
    for i in range(n):
        modes: dict[str, Any] = {}
        for k in range(int(rng.integers(1, 4))):
            able = [f"d{d}" for d in range(m) if rng.random() < 0.8] or ["d0"]
            mode: dict[str, Any] = {
                "time": {d: int(rng.integers(1, 8)) for d in able},
                "memory": int(rng.integers(0, 4)),
            }
            mode["uses"] = {"b": int(rng.integers(0, 3))}
            if rng.random() < 0.4 and len(able) > 1:
                mode["team"] = {"*": 2} if rng.random() < 0.5 else able[:2]
            modes[f"m{k}"] = mode
        after = {f"t{j}": int(rng.integers(0, 4)) for j in range(i) if rng.random() < 0.4}
        tasks[f"t{i}"] = {"modes": modes, "after": after}
    links = {"default": {"latency": int(rng.integers(0, 3)), "bandwidth": int(rng.integers(1, 3))}}
    return {
        "placeopt": 1,
        "devices": devices,
        "links": links,
        "tasks": tasks,
        "budgets": {"b": int(rng.integers(n, 2 * n + 1))},
    }


def best_makespan(given: dict[str, Any]) -> int | None:
    """The least makespan by trying every mode, every team and every order of the tasks."""
    devices, tasks, link = list(given["devices"]), given["tasks"], given["links"]["default"]
    choices = []
    for task in tasks.values():
        ways = []
        for mode in task["modes"].values():
            able, team = list(mode["time"]), mode.get("team")
            teams: list[tuple[str, ...]] = [(d,) for d in able]
            if isinstance(team, list):
                teams = [tuple(team)]
            elif team is not None:
                teams = list(itertools.combinations(able, 2))
            ways += [(mode, sorted(each, key=devices.index)) for each in teams]
        choices.append(ways)
    best = None
    orders = [
        order
        for order in itertools.permutations(tasks)
        if all(order.index(u) < order.index(v) for v, task in tasks.items() for u in task["after"])
    ]
    for chosen in itertools.product(*choices):
        way = dict(zip(tasks, chosen, strict=True))
        held = {d: sum(mode["memory"] for mode, team in chosen if d in team) for d in devices}
        if any(held[d] > given["devices"][d]["memory"] for d in devices):
            continue
        if sum(mode["uses"]["b"] for mode, _ in chosen) > given["budgets"]["b"]:
            continue
        for order in orders:
            free, end = dict.fromkeys(devices, 0), dict[str, int]()
            for task in order:
                mode, team = way[task]
                begin = max(free[d] for d in team)
                for producer, payload in tasks[task]["after"].items():
                    moved = link["latency"] - (-payload // link["bandwidth"])
                    begin = max(begin, end[producer] + (moved if way[producer][1][0] != team[0] else 0))
                end[task] = begin + max(mode["time"][d] for d in team)
                free.update(dict.fromkeys(team, end[task]))
            span = max(end.values())
            best = span if best is None else min(best, span)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_is_that_of_every_mode_team_and_order(seed: int) -> None:
    given = drawn(np.random.default_rng(seed))
    expected = best_makespan(given)
    try:
        problem = po.compile(given)
    except po.SpecError:
        assert expected is None
        return
    found = optimum(problem)
    assert (None if found is None else found[0]) == (None if expected is None else (expected,))
    if found is not None:
        assert po.verify(problem, found[1]).feasible


def check_optimum(given: Any) -> tuple[po.Problem | None, Any]:
    """Compare the optimum of a document with that of its problem; returns the problem, if any, and the value."""
    expected = best_value(given)
    try:
        problem = po.compile(given)
    except po.SpecError:
        assert expected is None
        return None, None
    assert po.compile(problem.to_document()).fingerprint() == problem.fingerprint()
    found = optimum(problem)
    assert (None if found is None else found[0]) == (None if expected is None else (expected,))
    if found is not None:
        assert po.verify(problem, found[1]).feasible
    return problem, expected


@pytest.mark.parametrize("seed", range(300))
def test_the_optimum_is_that_of_the_document(seed: int) -> None:
    check_optimum(random_document(np.random.default_rng(seed)))


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("change", [with_setups, with_separations, with_media])
def test_the_optimum_with_further_rules_is_that_of_the_document(change: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, expected = check_optimum(change(random_document(rng), rng))
    if problem is not None and seed < 12:
        for solver in ("cp-sat", "auto", *(() if problem.tiers is not None else ("milp",))):
            assert po.solve(problem, solver, workers=1).objective == expected
