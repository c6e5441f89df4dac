"""Which devices of the compiled problem are modes and teams of which, and what reports make of it."""

from __future__ import annotations

from typing import Any

import pytest

import placeopt as po
from placeopt.model.memory import memory_profile
from placeopt.model.modes import homes, mode_of, own_devices, task_label, tasks_by_device, team_name
from placeopt.model.resource_use import device_resources, use_facts

GIB = 2**30


def compiled(devices: dict[str, Any], tasks: dict[str, Any], **more: Any) -> po.Problem:
    return po.compile({"placeopt": 1, "devices": devices, "tasks": tasks, **more})


def names(problem: po.Problem) -> dict[str, tuple[str, str | None]]:
    """The devices and the mode of each device of the compiled problem that is not one of the document."""
    others = sorted(set(range(problem.n_devices)) - set(own_devices(problem)))
    return {problem.device_names[d]: (team_name(problem, d), mode_of(problem, d)) for d in others}


def test_modes_and_teams_have_members_and_a_name() -> None:
    task = {"time": 4, "modes": {"one": {}, "both": {"team": {"gpu": 2}}}}
    problem = compiled({"cpu": {}, "gpu": {"count": 2}}, {"a": task})
    assert problem.members == ((0,), (1,), (2,), (0,), (1,), (2,), (1, 2))
    assert names(problem)["gpu1: one"] == ("gpu1", "one")
    assert names(problem)["gpu0+gpu1: both"] == ("gpu0+gpu1", "both")
    assert homes(problem).tolist() == [0, 1, 2, 0, 1, 2, 1]
    assert task_label(problem, 0, 6) == "a (both)"
    assert {d: able.tolist() for d, able in tasks_by_device(problem).items()} == {0: [True], 1: [True], 2: [True]}
    assert po.compile(problem.to_document()).members == problem.members


@pytest.mark.parametrize("reason", ["memory", "placement"])
def test_a_mode_that_runs_no_task_is_not_a_device(reason: str) -> None:
    task: dict[str, Any] = {"time": 3, "memory": 9, "modes": {"big": {}, "small": {"memory": 1}}}
    more: dict[str, Any] = {"placement": {"a": "gpu0"}} if reason == "placement" else {}
    problem = compiled(
        {"gpu": {"count": 2, "memory": 8 if reason == "memory" else 9}}, {"a": task, "b": {"time": 2}}, **more
    )
    assert own_devices(problem) == [0, 1]
    assert names(problem)["gpu1: big"] == ("gpu1", "big")
    result = po.solve(problem, "heft")
    assert [use.name for use in result.devices] == ["gpu0", "gpu1"]


def test_devices_that_run_several_tasks_have_modes() -> None:
    tasks = {name: {"time": 3, "modes": {"fast": {}, "slow": {"time": 5}}} for name in "abc"}
    problem = compiled({"cpu": {"parallel": True}, "ws": {"cores": 2}}, tasks)
    assert own_devices(problem) == [0, 1]
    placed = [problem.device_names.index("cpu: fast")] * 3
    schedule = po.simulate(problem, placed)
    assert schedule.start.tolist() == [0, 0, 0]
    assert po.device_uses(problem, schedule)[0].tasks == 3
    assert [name for name, _, _ in use_facts(problem, schedule)] == ["cores of ws"]


def test_a_resource_or_a_device_with_a_similar_name_makes_no_mode() -> None:
    task = {"time": 3, "uses": {"mill": 1}}
    problem = compiled({"mill": {}, "cpu": {}, "mill: old": {}}, {"a": task, "b": {"time": 2}}, resources={"mill": 1})
    assert problem.members is None
    assert not problem.has_modes
    modes = {"fp16": {"uses": {"gpu": 1}}}
    problem = compiled(
        {"gpu": {}, "cpu": {}}, {"a": {"time": 3, "devices": "gpu", "modes": modes}}, resources={"gpu": 2}
    )
    assert own_devices(problem) == [0, 1]
    assert problem.resources is not None
    assert [problem.resources.names[r] for r in device_resources(problem)] == ["gpu'"]
    schedule = po.simulate(problem, [problem.device_names.index("gpu: fp16")])
    assert [name for name, _, _ in use_facts(problem, schedule)] == ["gpu"]


def test_a_note_names_modes_that_no_device_can_run() -> None:
    modes = {"big": {}, "small": {"memory": "1 GiB"}}
    task = {"time": "3 s", "memory": "9 GiB", "modes": modes}
    devices = {"gpu": {"count": 2, "memory": "8 GiB"}}
    (note,) = compiled(devices, {"a": task}).notes
    assert note == "no device can run a in mode big: it uses at least 9 GiB, and memory of gpu0 has 8 GiB"
    (note,) = compiled(devices, {"a": task, "b": task}).notes
    assert note.startswith("no device can run a in mode big, b in mode big: the first uses at least 9 GiB")
    assert not compiled({"gpu": {"memory": "9 GiB"}}, {"a": task}).notes
    assert not compiled({"gpu": {"count": 2, "memory": "9 GiB"}}, {"a": task | {"pin": "gpu0"}}).notes


def test_the_memory_of_a_device_is_that_of_its_tasks_in_all_modes() -> None:
    memory = {"resident": 2, "output": 3, "scratch": 1}
    task = {"time": 4, "memory": memory, "modes": {"one": {}, "both": {"team": {"gpu": 2}, "memory": 1, "output": 3}}}
    for limit in ({"memory": 20}, {}):
        problem = compiled({"gpu": {"count": 2, **limit}}, {"a": task, "b": task | {"after": "a"}})
        device = [problem.device_names.index(name) for name in ("gpu0+gpu1: both", "gpu0: one")]
        schedule = po.simulate(problem, device)
        ticks, live = memory_profile(problem, schedule, 0)
        assert ticks.tolist() == [0, 4, 8]
        uses = po.device_uses(problem, schedule)
        if limit:  # the team holds 4 bytes on each member, and the other mode 6
            assert live.tolist() == [6, 6, 2]
            assert [use.memory for use in uses] == [10, 4]
        else:
            assert [use.memory for use in uses] == [12, 6]
