"""Parallel devices and resources in pictures, reports, traces and on the terminal."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import NoBrowserError, chromium
from commandline import run
from pages import embedded

import placeopt as po
from placeopt.model.resource_use import channel_use, use_over_time
from placeopt.model.schedule import durations
from placeopt.model.stage_use import stage_uses
from placeopt.orchestration.result import device_grid
from placeopt.simulation.pipelines import periodic_schedule
from placeopt.views.facts import problem_line, task_traffic
from placeopt.views.frames import result_frame
from placeopt.views.page import plan_page
from placeopt.views.plots.gantt import DETAILED, RESOURCES, draw_gantt, make_rows
from placeopt.views.plots.memory import draw_memory
from placeopt.views.traces import trace_text

PROBLEMS = Path(__file__).parents[2] / "problems"


def planned(name: str) -> tuple[po.Problem, po.Schedule]:
    problem = po.load(PROBLEMS / f"{name}.yaml")
    return problem, po.read_plan(PROBLEMS / "plans" / f"{name}.json", problem).schedule


def crowd(n: int) -> tuple[po.Problem, po.Schedule]:
    """Tasks on a workstation with four cores, and on a GPU."""
    tasks = {f"t{i}": {"time": 1 + i % 7, "cores": 1 + i % 3, "uses": {"r": i % 2, "s": 1}} for i in range(n)}
    devices = {"ws": {"cores": 4}, "gpu": {}}
    more = {"resources": {"r": 2, "s": 9, "unused": 3, "t": 5}, "budgets": {"b": 1}}
    tasks["t0"]["uses"]["t"] = 1
    problem = po.compile({"placeopt": 1, "name": "crowd", "devices": devices, "tasks": tasks, **more})
    return problem, po.simulate(problem, [int(i % 5 == 4) for i in range(n)])


@pytest.mark.parametrize("n", [20, 400])
def test_bars_never_overlap(n: int) -> None:
    problem, schedule = crowd(n)
    rows = make_rows(problem, schedule, detailed=True)
    end = schedule.start + durations(problem, schedule.device)
    for i in range(n):
        together = (schedule.start < end[i]) & (end > schedule.start[i])
        below = (rows.low < rows.high[i] - 1e-9) & (rows.high > rows.low[i] + 1e-9)
        assert np.flatnonzero(together & below).tolist() == [i]
        d = schedule.device[i]
        assert rows.middle[d] - rows.half[d] <= rows.low[i] + 1e-9
        assert rows.high[i] <= rows.middle[d] + rows.half[d] + 1e-9
    assert rows.lanes.tolist() == [3, 1]
    assert rows.low[schedule.device == 1].min() > rows.high[schedule.device == 0].max()


def test_rows_without_lanes_are_one_apart() -> None:
    problem, schedule = planned("five-node")
    rows = make_rows(problem, schedule, detailed=True)
    assert rows.middle.tolist() == list(range(problem.n_devices))
    assert np.allclose(rows.high - rows.low, 0.72)
    many, schedule = crowd(30)
    assert make_rows(many, schedule, detailed=False).middle.tolist() == [0, 1]


def team() -> tuple[po.Problem, po.Schedule]:
    """Two GPUs, which run the second task together and the third in a mode, and a CPU."""
    modes = {"one": {}, "both": {"team": {"gpu": 2}}}
    tasks = {name: {"time": 4, "modes": modes} for name in "bc"} | {"a": {"time": 2}}
    devices = {"cpu": {}, "gpu": {"count": 2, "memory": 9}}
    problem = po.compile({"placeopt": 1, "devices": devices, "tasks": tasks})
    places = {"a": "cpu", "b": "gpu0+gpu1: both", "c": "gpu1: one"}
    return problem, po.simulate(problem, [problem.device_names.index(places[name]) for name in problem.task_names])


def test_a_team_has_a_bar_in_the_row_of_each_member() -> None:
    problem, schedule = team()
    rows = make_rows(problem, schedule, detailed=True)
    assert rows.task.tolist() == [0, 0, 1, 2]
    assert rows.device.tolist() == [1, 2, 2, 0]
    assert rows.bar.tolist() == [0, 2, 3]
    assert rows.devices == [0, 1, 2]
    text = draw_gantt(problem, schedule)
    assert "more devices" not in text.axes[0].get_title()
    result = po.solve(problem, "heft")
    assert [row[0] for row in device_grid(result).rows] == ["cpu", "gpu0", "gpu1"]
    assert "3 devices, 4 modes and teams" in str(result)


def test_reports_name_the_devices_of_the_file_and_the_modes() -> None:
    problem, schedule = team()
    data, arrays = embedded(plan_page(problem, schedule, po.verify(problem, schedule)))
    shown = data["schedule"]
    assert [device["name"] for device in shown["devices"]] == ["cpu", "gpu0", "gpu1"]
    assert [each["label"] for each in shown["legend"]] == ["cpu", "gpu0", "gpu1"]
    assert shown["names"] == ["a", "b (both)", "b (both)", "c (one)"]
    assert arrays["offset"].tolist() == [0, 1, 2, 4]
    assert shown["resources"] == []
    assert "rows" not in shown
    trace = json.loads(trace_text(problem, schedule))["traceEvents"]
    threads = {event["tid"]: event["args"]["name"] for event in trace if event["name"] == "thread_name"}
    bars = [(threads[event["tid"]], event["name"]) for event in trace if event["ph"] == "X"]
    assert sorted(bars) == [("cpu", "a"), ("gpu0", "b (both)"), ("gpu1", "b (both)"), ("gpu1", "c (one)")]
    assert {event["name"] for event in trace if event["ph"] == "C"} == {
        "cpu (capacity unlimited)", "gpu0 (capacity 9 bytes)", "gpu1 (capacity 9 bytes)"
    }  # fmt: skip
    picture = draw_gantt(problem, schedule)
    assert {"b (both)", "c (one)", "a"} <= {text.get_text() for text in picture.axes[0].texts}
    names = [axes.get_title(loc="left") for axes in draw_memory(problem, schedule).axes]
    assert names == ["cpu: 0 B, no limit", "gpu0: 0 B of 9 B (0.0%)", "gpu1: 0 B of 9 B (0.0%)"]


def test_data_frames_and_json_name_the_devices_of_the_file() -> None:
    pytest.importorskip("pandas")
    problem, _ = team()
    result = po.solve(problem, "cp-sat")
    tasks, devices = result.to_frame(), result.to_frame("devices")
    assert list(tasks.columns[:3]) == ["task", "device", "mode"]
    assert set("+".join(tasks.device).split("+")) <= set(devices.device)
    data = result.to_dict()
    assert [use["name"] for use in data["devices"]] == list(devices.device) == ["cpu", "gpu0", "gpu1"]
    assert data["resources"] == []
    assert all(name in problem.device_names for name in data["placement"].values())


def test_nothing_moves_between_modes_of_a_device() -> None:
    pytest.importorskip("pandas")
    task = {"time": 4, "output": 8, "modes": {"one": {}, "two": {"time": 5}}}
    tasks = {"a": task, "b": task | {"after": "a"}, "c": task | {"after": "b"}}
    problem = po.compile({"placeopt": 1, "devices": {"gpu": {"count": 2}}, "tasks": tasks})
    places = ("gpu0: one", "gpu0: two", "gpu1: one")
    schedule = po.simulate(problem, [problem.device_names.index(name) for name in places])
    assert [amounts.tolist() for amounts in task_traffic(problem, schedule.device)] == [[0, 8, 0], [0, 0, 8]]
    frame = result_frame(problem, "x", schedule, po.device_uses(problem, schedule), "transfers", "tick")
    assert frame[["producer", "sender", "receiver"]].to_numpy().tolist() == [["b", "gpu0", "gpu1"]]


def test_the_memory_and_the_time_of_a_device_are_those_of_all_its_modes_and_teams() -> None:
    modes = {"one": {"memory": 4}, "both": {"team": {"gpu": 2}, "memory": 3}, "small": {"memory": 1, "time": 5}}
    tasks = {name: {"time": 4, "memory": 6, "modes": modes} for name in "bc"} | {"a": {"time": 2, "memory": 2}}
    devices = {"cpu": {"memory": 5}, "gpu": {"count": 2, "memory": 9}}
    document = {"placeopt": 1, "devices": devices, "tasks": tasks}
    places = {"a": "gpu1", "b": "gpu0+gpu1: both", "c": "gpu1: small"}
    for objective in ("makespan", "period"):
        problem = po.compile({**document, "objective": objective})
        device = [problem.device_names.index(places[name]) for name in problem.task_names]
        schedule = po.simulate(problem, device) if objective == "makespan" else periodic_schedule(problem, device)
        uses = po.device_uses(problem, schedule)
        assert [(use.name, use.tasks, use.busy, use.memory, use.capacity) for use in uses] == [
            ("cpu", 0, 0, 0, 5), ("gpu0", 1, 4, 3, 9), ("gpu1", 3, 11, 6, 9),
        ]  # fmt: skip
        assert "memory 14 B of 23 B" in problem_line(problem)
    assert {use.devices[0]: (use.memory, use.capacity) for use in stage_uses(problem, schedule)} == {
        "gpu1": (2, 9), "gpu0+gpu1: both": (3, 9), "gpu1: small": (1, 9)
    }  # fmt: skip


@pytest.mark.parametrize("n", [12, DETAILED + 1])
def test_resources_have_charts_below(n: int, tmp_path: Path) -> None:
    problem, schedule = crowd(n)
    picture = draw_gantt(problem, schedule)
    names = [axes.get_ylabel() for axes in picture.axes if axes.get_ylabel() not in ("", "transfers\nin progress")]
    assert names == ["r", "s", "cores of ws"]  # not t, of which less is used, and not those that are not used
    assert len(names) == RESOURCES
    assert any("1 other resource of which less is used" in text.get_text() for text in picture.texts)
    picture.write(tmp_path / "gantt.png")
    assert (tmp_path / "gantt.png").stat().st_size > 10_000


def test_a_report_has_a_row_for_each_lane() -> None:
    problem, schedule = crowd(40)
    data, arrays = embedded(plan_page(problem, schedule, po.verify(problem, schedule)))
    found = data["schedule"]
    assert [row["label"] or row["name"] for row in found["rows"]] == ["ws", "ws 2", "ws 3", "gpu"]
    row = np.repeat(np.arange(4), np.diff(arrays["offset"]))
    for k in range(4):
        mine = row == k
        assert (arrays["start"][mine][1:] >= arrays["end"][mine][:-1]).all()
    assert Counter(found["names"]) == Counter(problem.task_names)
    names = [each["name"] for each in found["resources"]]
    assert names == ["r", "s", "unused", "t", "cores of ws"]
    for r, name in enumerate(names):
        ticks, used = use_over_time(problem, schedule, problem.resources.names.index(name))
        part = slice(arrays["resource_offset"][r], arrays["resource_offset"][r + 1])
        assert np.array_equal(arrays["resource_ticks"][part], ticks)
        assert np.array_equal(arrays["resource_amounts"][part], used)
    facts = {term: (said, small) for term, said, small in data["summary"]["facts"]}
    assert facts["r"] == ("100.0%", "at most 2 of 2 at one time")
    alone, plan = planned("five-node")
    data, _ = embedded(plan_page(alone, plan, po.verify(alone, plan)))
    assert "rows" not in data["schedule"]
    assert data["schedule"]["resources"] == []


def test_a_report_shows_lanes_and_resources_in_a_browser(tmp_path: Path) -> None:
    problem, schedule = planned("workstation")
    page = tmp_path / "page.html"
    page.write_text(plan_page(problem, schedule, po.verify(problem, schedule)), encoding="utf-8")
    try:
        with chromium() as browser:
            tab, complaints = browser.new_page(), list[str]()
            tab.on("pageerror", lambda error: complaints.append(str(error)))
            tab.goto(page.as_uri())
            tab.wait_for_selector("[data-ready]", state="attached")
            assert complaints == []
            assert tab.locator("#resources").is_visible()
            place = problem.task_names.index("call0")
            tick, lane = int(schedule.start[place]) + 1, "[report.gantt.xOf({0}), report.gantt.middleOf({1})]"
            hits = [
                tab.evaluate(f"report.schedule.names[report.gantt.taskAt(...{lane.format(tick, row)})]")
                for row in range(4)
            ]
            assert "call0" in hits
            tab.hover("#resources", position={"x": 500, "y": 50})
            assert "in use" in tab.locator("#tip").inner_text()
    except NoBrowserError as error:
        pytest.skip(f"reports are NOT tested in a browser: {error}")


def test_traces_have_lanes_and_counters() -> None:
    problem, schedule = crowd(40)
    events = json.loads(trace_text(problem, schedule))["traceEvents"]
    threads = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert list(threads.values()) == ["ws", "ws 2", "ws 3", "gpu"]
    slices: dict[int, list[dict[str, Any]]] = {}
    for each in events:
        if each["ph"] == "X":
            slices.setdefault(each["tid"], []).append(each)
    for mine in slices.values():
        for before, after in pairwise(mine):
            assert round(before["ts"] + before["dur"], 6) <= after["ts"]
    counted = {each["name"]: 0 for each in events if each["ph"] == "C" and "used" in each["args"]}
    for each in events:
        if each["name"] in counted:
            counted[each["name"]] = max(counted[each["name"]], each["args"]["used"])
    uses = {use.name: use for use in po.resource_uses(problem, schedule) if use.renewable}
    assert counted == {f"{name} (capacity {use.capacity})": use.used for name, use in uses.items()}


def test_inspect_describes_the_devices_of_the_file(tmp_path: Path) -> None:
    modes = {"one": {}, "both": {"team": {"gpu": 2}}, "big": {"memory": "8 GiB"}}
    gpu = {"count": 2, "memory": "4 GiB", "unavailable": [{"from": "1 s", "to": "2 s"}]}
    tasks = {name: {"time": "4 s", "devices": "gpu", "modes": modes} for name in "bc"} | {"a": {"time": {"cpu": "2 s"}}}
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"placeopt": 1, "devices": {"cpu": {}, "gpu": gpu}, "tasks": tasks}))
    lines = [" ".join(line.split()) for line in run("inspect", path).out.splitlines()]
    assert lines[0].startswith("problem: 3 tasks, 0 edges, 3 devices, 5 modes and teams")
    assert [line for line in lines if line.startswith("unavailable")] == [
        "unavailable gpu0: 1 s to 2 s", "unavailable gpu1: 1 s to 2 s",
    ]  # fmt: skip
    assert "cpu cpu unlimited 1 of 3 tasks" in lines
    assert "gpu0 gpu 4 GiB 2 of 3 tasks one, both" in lines
    assert not any(line.startswith("resources") for line in lines)
    data = json.loads(run("inspect", path, "--json").out)
    assert data["devices"] == 3
    assert data["resources"] == []
    assert [(group["devices"], group["capacity"], group["modes"]) for group in data["device_classes"]] == [
        (["cpu"], None, []), (["gpu0"], 2**32, ["one", "both"]), (["gpu1"], 2**32, ["one", "both"]),
    ]  # fmt: skip
    rows = po.load(path)._repr_html_()
    assert "gpu1" in rows
    assert "gpu1: one" not in rows


def test_the_command_line_describes_resources() -> None:
    lines = [" ".join(line.split()) for line in run("inspect", PROBLEMS / "camera-box.yaml").out.splitlines()]
    assert "resources decoder: 1 at one time; 2 tasks use it, up to 1 each" in lines
    assert "accuracy: 0.1 in all; 4 tasks use 0 to 0.16" in lines
    assert "memory of board: 3 GiB in all; 6 tasks use 0 B to 4.163 GiB" in lines
    data = json.loads(run("inspect", PROBLEMS / "workstation.yaml", "--json").out)
    assert data["resources"][0] == {
        "name": "disk", "renewable": True, "memory": False, "tasks": 8, "capacity": 2, "largest_task": 1, "least": 8,
        "most": 8,
    }  # fmt: skip
    host, gpu = data["device_classes"]
    assert (host["cores"], host["parallel"], gpu["cores"], gpu["parallel"]) == (16, True, None, False)
    assert "16 cores" in run("inspect", PROBLEMS / "workstation.yaml").out


def test_shared_links_are_lanes_of_traces_and_rows_of_reports() -> None:
    problem, schedule = planned("pcie-roots")
    events = json.loads(trace_text(problem, schedule))["traceEvents"]
    threads = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    channels = ["root0 out", "root0 in", "root1 out", "root1 in"]
    assert list(threads.values())[-4:] == channels
    carried = Counter(threads[each["tid"]] for each in events if each["ph"] == "X" and threads[each["tid"]] in channels)
    data, _ = embedded(plan_page(problem, schedule, po.verify(problem, schedule)))
    rows = data["schedule"]["resources"]
    assert [(row["name"], row["used"]) for row in rows] == [(name, 1) for name in channels]
    found = {name: int((np.diff(used) == 1).sum()) for name, _, used in channel_use(problem, schedule)}
    assert sum(carried.values()) >= sum(found.values()) >= 10  # transfers that touch are one rise
    lines = [" ".join(line.split()) for line in run("inspect", PROBLEMS / "pcie-roots.yaml").out.splitlines()]
    assert "shared links root0: uplink of gpu0, gpu1" in lines
    assert "root1: uplink of gpu2, gpu3" in lines
