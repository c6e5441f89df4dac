"""placeopt.views.page: contents of reports, and escaping of names."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commandline import run
from pages import HOSTILE, comparison, embedded, record, striped

import placeopt as po
from placeopt.model.critical_path import critical_path
from placeopt.model.memory import memory_profile
from placeopt.model.schedule import durations
from placeopt.studies.comparison.result import Comparison
from placeopt.views.page import Packing, comparison_page, plan_page, result_page
from placeopt.views.plots.palette import strokes
from placeopt.views.plots.profiles import leaders

PROBLEMS = Path(__file__).parents[2] / "problems"


@pytest.fixture(scope="module")
def result() -> po.Result:
    return po.solve(po.load(PROBLEMS / "inception.yaml"), "heft")


def test_the_arrays_are_the_schedule(result: po.Result) -> None:
    problem, schedule = result.problem, result.schedule
    assert schedule is not None
    data, arrays = embedded(result_page(result))
    rows = {name: row for row, name in enumerate(problem.task_names)}
    tasks = np.array([rows[name] for name in data["schedule"]["names"]])
    assert sorted(tasks.tolist()) == list(range(problem.n_tasks))
    device = np.repeat(np.arange(problem.n_devices), np.diff(arrays["offset"]))
    assert np.array_equal(device, schedule.device[tasks])
    assert np.array_equal(arrays["start"], schedule.start[tasks])
    assert np.array_equal(arrays["end"], (schedule.start + durations(problem, schedule.device))[tasks])
    assert np.array_equal(arrays["output"], problem.output[tasks])
    assert np.array_equal(tasks[arrays["edge_source"]], problem.edge_source)
    assert np.array_equal(tasks[arrays["edge_target"]], problem.edge_target)
    for d in range(problem.n_devices):
        ticks, live = memory_profile(problem, schedule, d)
        part = slice(arrays["memory_offset"][d], arrays["memory_offset"][d + 1])
        assert np.array_equal(arrays["memory_ticks"][part], ticks)
        assert np.array_equal(arrays["memory_bytes"][part], live)
    path = critical_path(problem, schedule)
    assert [tasks[task] for task in arrays["critical_task"].tolist()] == [step.task for step in path]
    assert data["schedule"]["makespan"] == result.makespan == arrays["critical_end"][-1]


def test_the_boxes_are_the_buffers_with_their_offsets(result: po.Result) -> None:
    problem = po.load(PROBLEMS / "microcontroller.yaml")
    schedule = po.read_plan(PROBLEMS / "plans" / "microcontroller.json", problem).schedule
    assert schedule.offsets is not None
    page = plan_page(problem, schedule, po.verify(problem, schedule))
    data, arrays = embedded(page)
    assert arrays["box_offset"].tolist() == [0, len(arrays["box_task"])]
    boxes = {
        (data["schedule"]["names"][task], kind): (begin, end, low, high)
        for task, kind, begin, end, low, high in zip(
            *(arrays[f"box_{name}"].tolist() for name in ("task", "kind", "from", "to", "low", "high")), strict=True
        )
    }
    buffers = po.plan_buffers(problem, schedule, 0)
    assert len(boxes) == len(buffers)
    for k, name in enumerate(buffers.names):
        task, _, kind = name.rpartition(":")
        low = int(getattr(schedule.offsets, kind)[problem.task_names.index(task)])
        found = boxes[task, ("resident", "output", "scratch").index(kind)]
        assert found == (buffers.lower[k], buffers.upper[k], low, low + buffers.size[k])
    assert "box_task" not in embedded(result_page(result))[1]


def test_what_stands_at_the_top(result: po.Result) -> None:
    data, _ = embedded(result_page(result))
    facts = {term: (said, small) for term, said, small in data["summary"]["facts"]}
    assert facts["makespan"] == ("4.3855 ms", "4,385,453 ticks")
    assert facts["bound"][1] == "proved by jackson"
    assert facts["gap"][0] == "25.20%"
    assert data["summary"]["status"]["kind"] == "good"
    assert data["convergence"] == []


def test_sent_and_received_bytes() -> None:
    # One output for two consumers on one device is sent once and received by both.
    problem = po.build_problem(
        task_names=("a", "b", "c"), device_names=("x", "y"), duration=np.full((3, 2), 1), edges=[(0, 1), (0, 2)],
        payload=[8, 8], shared=[True, True], output=np.array([8, 0, 0]),
    )  # fmt: skip
    schedule = po.Schedule(np.array([0, 1, 1]), np.array([0, 1, 2]))
    data, arrays = embedded(plan_page(problem, schedule, po.verify(problem, schedule)))
    assert data["schedule"]["names"] == ["a", "b", "c"]
    assert arrays["sent"].tolist() == [8, 0, 0]
    assert arrays["received"].tolist() == [0, 8, 8]


def test_transfers_under_port_contention() -> None:
    problem = replace(po.load(PROBLEMS / "five-node.yaml"), contention="port")
    found = po.solve(problem, "heft")
    assert found.schedule is not None
    assert found.schedule.transfers is not None
    data, arrays = embedded(result_page(found))
    assert data["schedule"]["ports"]
    assert arrays["transfer_start"].tolist() == found.schedule.transfers.start.tolist()


def test_the_course_of_a_solve() -> None:
    found = po.solve(po.load(PROBLEMS / "five-node.yaml"), "cp-sat", time_limit=5, workers=1)
    data, _ = embedded(result_page(found))
    (group,) = data["convergence"]
    ends = {line["label"]: line["points"][-1][1] for line in group["series"]}
    assert group["kind"] == "ticks"
    assert ends == {"best schedule": found.objective, "bound": found.bound}


def test_a_solve_without_a_schedule_has_no_charts() -> None:
    problem = po.build_problem(
        task_names=("a",), device_names=("x",), duration=np.array([[1]]), resident=np.array([2]), capacity=np.array([1])
    )
    data, arrays = embedded(result_page(po.solve(problem, "heft")))
    assert data["schedule"] is None
    assert arrays == {}
    assert data["summary"]["status"] == {"kind": "none", "text": "no schedule"}


def test_a_plan_that_breaks_rules_lists_them() -> None:
    problem, schedule = striped(6, 2)
    wrong = po.Schedule(schedule.device, np.zeros(6))
    report = po.verify(problem, wrong)
    data, _ = embedded(plan_page(problem, wrong, report))
    assert len(data["summary"]["violations"]) == len(report.violations) > 3
    assert data["summary"]["status"]["kind"] == "bad"
    assert [fact[0] for fact in data["summary"]["facts"]] == ["makespan"]  # a bound of what breaks rules says nothing


def test_a_task_where_it_may_not_run_has_no_chart() -> None:
    problem = po.build_problem(
        task_names=("a",), device_names=("x", "y"), duration=np.ones((1, 2)), feasible=np.array([[True, False]])
    )
    wrong = po.Schedule(np.array([1]), np.array([0]))
    data, _ = embedded(plan_page(problem, wrong, po.verify(problem, wrong)))
    assert data["schedule"] is None
    assert data["summary"]["violations"][0]["rule"] == "feasibility"


def test_a_comparison() -> None:
    data, _ = embedded(comparison_page(comparison()))
    table = data["comparison"]
    assert [(row["problem"], row["solver"], row["objective"]) for row in table["runs"]] == [
        ("p1", "alpha", 30), ("p1", "beta", 20), ("p1", "gamma", None),
        ("p2", "alpha", 12), ("p2", "beta", 100), ("p2", "gamma", 12),
    ]  # fmt: skip
    assert [row["wins"] for row in table["solvers"]] == [1, 1, 1]
    assert table["runs"][2]["verdict"] == "killed: ran too long"
    profile = {line["label"]: line["points"] for line in table["profile"]}
    assert profile["alpha"][:2] == [[1.0, 0.5], [1.5, 1.0]]
    assert [group["label"] for group in data["convergence"]] == ["p1", "p2"]
    # In the colours of the pictures, the best first.
    named = leaders(comparison().profile())
    assert [row["solver"] for row in table["solvers"]] == list(comparison().ranking) == list(named)
    assert tuple(profile) == named
    assert [line["color"] for line in table["profile"]] == [stroke.color for stroke in strokes(len(named))]


def test_a_comparison_tells_of_each_problem_what_all_runs_know() -> None:
    runs = [*comparison().records, record("p3", "alpha", 10), record("p4", "alpha", None)]
    data, _ = embedded(comparison_page(Comparison(tuple(runs))))
    told = ("problem", "best", "best_solver", "bound", "bound_source", "known")
    assert [tuple(row[key] for key in told) for row in data["comparison"]["problems"]] == [
        ("p1", 20, "beta", 10, "load", ""), ("p2", 12, "alpha", 10, "load", ""),
        ("p3", 10, "alpha", 10, "load", "proved optimal"), ("p4", None, None, None, None, "no feasible schedule"),
    ]  # fmt: skip
    assert data["comparison"]["problems"][0]["gap"] == 0.5


def test_a_verdict_is_not_told_twice() -> None:
    killed = record("p1", "alpha", None, message="killed after its limit of 2 s and a grace of 10 s")
    data, _ = embedded(comparison_page(Comparison((killed,))))
    assert data["comparison"]["runs"][0]["verdict"] == "killed: after its limit of 2 s and a grace of 10 s"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_can_end_its_element(name: str) -> None:
    problem, schedule = striped(4, 2, (name, *"bcd"))
    problem = replace(problem, name=name, device_names=(name, "other"), description=name)
    page = plan_page(problem, schedule, po.verify(problem, schedule))
    tags = re.findall(r"<(/?script)", page)
    assert tags == ["script", "/script"] * 3
    assert "<!--" not in page
    assert page.count("<title>") == page.count("</title>") == 1
    data, _ = embedded(page)
    assert name in data["schedule"]["names"]
    page.encode()  # may be written


def test_the_policy_allows_our_style_and_script_alone(result: po.Result) -> None:
    page = result_page(result)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    for pattern in (r"<style>(.*?)</style>", r'<script type="module">(.*?)</script>'):
        text = re.search(pattern, page, re.S)
        assert text is not None
        digest = base64.b64encode(hashlib.sha256(text[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert not re.search(r"(src|href)=\"(?!data:,)", page)
    assert "http://" not in page
    assert "https://" not in page


def test_the_same_result_makes_the_same_page(result: po.Result) -> None:
    assert result_page(result) == result_page(result)


def test_packing_takes_the_narrowest_type() -> None:
    packing = Packing()
    for name, values in (("a", [0, 255]), ("b", [256]), ("c", [-1]), ("d", [2**40]), ("e", [])):
        packing.add(name, values)
    assert [part["kind"] for part in packing.table.values()] == ["u1", "u2", "i4", "f8", "u1"]
    assert all(part["offset"] % 8 == 0 for part in packing.table.values())


def test_a_page_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "out.html"
    result = po.solve(po.load(PROBLEMS / "five-node.yaml"), "heft")
    file.write_text("first")
    po.write_report(file, result)
    assert file.read_text() == result_page(result)
    assert list(tmp_path.iterdir()) == [file]


def test_solve_and_export_write_both(tmp_path: Path) -> None:
    problem, plan = PROBLEMS / "five-node.yaml", tmp_path / "plan.json"
    trace, page = tmp_path / "trace.json", tmp_path / "page.html"
    done = run("solve", problem, "--out", plan, "--trace", trace, "--report", page)
    assert done.code == 0
    assert [embedded(page.read_text())[0]["schedule"]["makespan"]] == json.loads(plan.read_text())["objective"]
    again = tmp_path / "again.json"
    done = run("export", problem, plan, "--trace", again, "--report", tmp_path / "again.html")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert again.read_text() == trace.read_text()
    # The plan has the quick bound of a solve, and the same gap.
    solved, saved = ({fact[0]: fact for fact in embedded(file.read_text())[0]["summary"]["facts"]}
                     for file in (page, tmp_path / "again.html"))  # fmt: skip
    assert solved["bound"] == saved["bound"] == ["bound", "14 s", "proved by critical-path"]
    assert solved["gap"] == saved["gap"]


def test_export_tells_of_a_plan_that_breaks_rules(tmp_path: Path) -> None:
    problem, plan = PROBLEMS / "five-node.yaml", tmp_path / "plan.json"
    run("solve", problem, "--out", plan)
    plan.write_text(re.sub(r'"start": \d+', '"start": 0', plan.read_text()))
    done = run("export", problem, plan, "--trace", tmp_path / "trace.json")
    assert done.code == 0
    assert "note: the plan breaks" in done.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "nothing to export: expected --to FORMAT, --trace FILE.json"),
        (("--trace", "PLAN"), "which is read; expected another file"),
        (("--report", "PROBLEM"), "which is read; expected another file"),
        (("--trace", "x", "--report", "./x"), "are the same file"),
        (("--report", "none/x.html"), "cannot write none/x.html: there is no folder none"),
        (("--trace", "."), "cannot write .: it is a folder"),
    ],
)
def test_export_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], told: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("PROBLEM").write_text((PROBLEMS / "five-node.yaml").read_text())
    run("solve", "PROBLEM", "--out", "PLAN")
    before = Path("PROBLEM").read_text(), Path("PLAN").read_text()
    done = run("export", "PROBLEM", "PLAN", *options)
    assert done.code == 2
    assert told in done.err
    assert (Path("PROBLEM").read_text(), Path("PLAN").read_text()) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_solve_tells_what_it_could_not_write() -> None:
    done = run("solve", PROBLEMS / "five-node.yaml", "--trace", "/dev/full")
    assert done.code == 2
    assert "makespan" in done.out
    assert "cannot write" in done.err


def test_targets_are_checked_before_the_work(tmp_path: Path) -> None:
    done = run("solve", PROBLEMS / "five-node.yaml", "--trace", tmp_path / "none" / "x.json")
    assert done.code == 2
    assert done.out == ""
    assert "there is no folder" in done.err
    done = run("solve", PROBLEMS / "five-node.yaml", "--report", PROBLEMS / "five-node.yaml")
    assert done.code == 2
    assert "which is read" in done.err


def test_without_a_schedule_the_report_says_so_and_there_is_no_trace(tmp_path: Path) -> None:
    problem = tmp_path / "p.yaml"
    problem.write_text(
        "placeopt: 1\nresolution: 1 us\ndevices: {x: {type: cpu, count: 2, memory: 3 B}}\n"
        "tasks: {a: {time: 1 us, memory: 2 B}, b: {time: 1 us, memory: 2 B}, c: {time: 1 us, memory: 2 B}}\n"
    )
    done = run("solve", problem, "--trace", tmp_path / "t.json", "--report", tmp_path / "r.html")
    assert done.code == 1
    assert "there is no schedule to write to" in done.err
    assert not (tmp_path / "t.json").exists()
    assert embedded((tmp_path / "r.html").read_text())[0]["schedule"] is None


def test_compare_checks_its_targets_before_the_runs(tmp_path: Path) -> None:
    problem, page = PROBLEMS / "five-node.yaml", tmp_path / "page.html"
    for options, told in [
        (("--report", tmp_path / "none" / "x.html"), "there is no folder"),
        (("--report", problem), "which is read"),
        (("--report", page, "--out", page), "are the same file"),
        (("--plot", tmp_path / "none" / "x.png"), "there is no folder"),
    ]:
        done = run("compare", problem, "--solvers", "heft", *options)
        assert done.code == 2
        assert done.out == ""
        assert told in done.err
    assert not page.exists()


def test_compare_writes_a_report(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("compare", PROBLEMS / "five-node.yaml", "--solvers", "heft,single", "--report", page)
    assert done.code == 0, done.err
    assert [row["solver"] for row in embedded(page.read_text())[0]["comparison"]["solvers"]] == ["heft", "single"]


def test_the_library_writes_reports_of_results_and_comparisons(tmp_path: Path, result: po.Result) -> None:
    po.write_report(tmp_path / "result.html", result)
    assert (tmp_path / "result.html").read_text() == result_page(result)
    po.write_report(tmp_path / "comparison.html", comparison())
    assert (tmp_path / "comparison.html").read_text() == comparison_page(comparison())
