"""Text, HTML and data frames of problems and results."""

from __future__ import annotations

import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run

import placeopt as po
from placeopt.model.objective import moved_edges
from placeopt.model.problem_html import DEVICE_ROWS
from placeopt.model.units import size_text
from placeopt.views.facts import SHOWN

PROBLEMS = Path(__file__).parents[2] / "problems"
EDGE = {"a": 1, "b": 1}


def small(**keys: Any) -> po.Problem:
    """a -> b and a -> c on different devices; a tick is a millisecond and transfers one byte."""
    document: dict[str, Any] = {
        "placeopt": 1,
        "name": "small",
        "resolution": "1 ms",
        "devices": {"cpu": {"memory": 100}, "gpu": {"count": 2, "type": "accelerator"}},
        "links": {"default": {"bandwidth": 1, "latency": 2}},
        "tasks": {
            "a": {"time": 4, "output": 3, "memory": {"resident": 10, "scratch": 5}, "pin": "cpu"},
            "b": {"time": 2, "after": "a", "pin": "gpu0"},
            "c": {"time": 1, "after": "a", "pin": "gpu0", "release": 12},
        },
    }
    return po.compile(document | keys)


def impossible() -> po.Problem:
    tasks = {name: {"time": 4, "pin": "cpu", "deadline": 5} for name in "ab"}
    return small(tasks=tasks)


class Cells(HTMLParser):
    """Collects the cell texts and tags of an HTML table; fails if tags are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


class TestPlacement:
    def test_placement_by_names(self) -> None:
        assert po.solve(small()).placement == {"a": "cpu", "b": "gpu0", "c": "gpu0"}

    def test_placement_is_none_without_schedule(self) -> None:
        assert po.solve(impossible()).placement is None


class TestText:
    def test_a_problem(self) -> None:
        assert repr(small()) == "<Problem small: 3 tasks, 2 edges, 3 devices>"
        assert repr(small(name="", tasks={"a": {"time": 1}})) == "<Problem 1 task, 0 edges, 3 devices>"

    def test_a_result(self) -> None:
        result = po.solve(small())
        assert repr(result) == "<Result of heft on small: completed, makespan 13 ms, gap 0.00%, feasible>"
        assert repr(po.solve(impossible())) == "<Result of heft on small: infeasible, no schedule>"

    @pytest.mark.parametrize("problem", ["five-node", "sensor-fusion", "heft-10"])
    def test_summary_equals_the_output_of_the_command(self, problem: str) -> None:
        path = PROBLEMS / f"{problem}.yaml"
        result = po.solve(po.load(path))
        outcome = run("solve", path)

        def words(text: str) -> list[list[str]]:
            return [line.split() for line in text.splitlines() if not line.startswith("termination")]

        assert words(result.summary()) == words(outcome.out)
        assert str(result) == result.summary()

    def test_the_memory_of_the_process_for_large_problems(self, monkeypatch: pytest.MonkeyPatch) -> None:
        result = po.solve(small())
        used = result.process_memory
        assert used is not None
        assert 2**20 < used < 2**42  # Python alone takes some MiB
        assert result.to_dict()["process_memory"] == used
        line = f"memory       the process used {size_text(used)} at most"
        assert line not in result.summary()
        monkeypatch.setattr("placeopt.orchestration.result.LARGE", 9)  # three tasks on three devices
        assert line in result.summary()

    def test_columns_are_aligned(self) -> None:
        lines = po.solve(small()).summary().splitlines()
        header, *rows = lines[-5:-1]
        assert [line.split()[:3] for line in rows] == [
            ["cpu", "cpu", "1"], ["gpu0", "accelerator", "2"], ["gpu1", "accelerator", "0"],
        ]  # fmt: skip
        for row in rows:
            assert row[header.index("type")] != " "
            assert row[header.index("type") - 1] == " "

    def test_violations_are_listed(self) -> None:
        broken = po.solve(small(tasks={name: {"time": 4, "deadline": 7, "pin": "gpu0"} for name in "ab"}))
        assert broken.summary().endswith("no schedule")
        problem = po.load(PROBLEMS / "inception-tight.yaml")
        device = np.zeros(problem.n_tasks, dtype=np.int64)
        report = po.verify(problem, po.simulate(problem, device))
        many = replace(po.solve(problem), feasible=False, violations=report.violations * (SHOWN + 1))
        lines = many.summary().splitlines()
        assert f"infeasible: {len(many.violations)} violations" in lines
        assert lines[-1] == f"and {len(many.violations) - SHOWN} more"
        assert lines[-2].startswith("memory: core0 needs ")


class TestNotebook:
    def test_a_result(self) -> None:
        cells = Cells(po.solve(small())._repr_html_())
        assert set(cells.tags) == {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p"}
        assert "makespan = 13 ms (13 ticks)" in cells.texts
        assert cells.texts[-1] == "feasible: the verifier found no violation"
        assert "no schedule" in Cells(po.solve(impossible())._repr_html_()).texts

    def test_a_problem(self) -> None:
        problem = small(description="three tasks", tasks={name: {"time": {"cpu": 4}} for name in "xyz"})
        texts = Cells(problem._repr_html_()).texts
        assert texts[:4] == ["small", "three tasks", "size", "3 tasks, 0 edges, 3 devices"]
        assert texts[-8:] == ["cpu", "cpu", "100 B", "3", "gpu0 .. gpu1 (2)", "accelerator", "unlimited", "0"]

    def test_names_are_escaped(self) -> None:
        evil = "<script src='http://x'>&amp;"
        problem = po.compile(
            {"placeopt": 1, "name": evil, "description": evil, "devices": {evil: None}, "tasks": {evil: {"time": 1}}}
        )
        for html in (problem._repr_html_(), po.solve(problem)._repr_html_()):
            cells = Cells(html)
            assert "script" not in cells.tags
            assert any("<script src='http://x'>&amp;" in text for text in ("".join(cells.texts),))

    def test_number_of_omitted_devices_is_shown(self) -> None:
        devices = {f"d{k}": {"memory": 100 + k} for k in range(SHOWN + 5)}
        problem = po.compile({"placeopt": 1, "devices": devices, "tasks": {"a": {"time": 1}}})
        assert f"and {SHOWN + 5 - DEVICE_ROWS} other device classes" in Cells(problem._repr_html_()).texts
        assert "and 5 devices that are less busy" in Cells(po.solve(problem)._repr_html_()).texts

    def test_busiest_devices_are_shown_in_problem_order(self) -> None:
        devices = {f"d{k}": {"type": "x"} for k in range(SHOWN + 5)}
        tasks = {"a": {"time": 3, "pin": f"d{SHOWN + 4}"}, "b": {"time": 9, "pin": "d22"}}
        problem = po.compile({"placeopt": 1, "devices": devices, "tasks": tasks})
        texts = Cells(po.solve(problem)._repr_html_()).texts
        shown = [text for text in texts if text in devices]
        assert shown == [*(f"d{k}" for k in range(SHOWN - 2)), "d22", f"d{SHOWN + 4}"]


class TestFrame:
    @pytest.fixture(autouse=True)
    def pandas(self) -> None:
        pytest.importorskip("pandas", reason="pandas is not installed: pip install 'placeopt[frames]'")

    def test_tasks(self) -> None:
        frame = po.solve(small()).to_frame()
        assert frame.to_dict("list") == {
            "task": ["a", "b", "c"],
            "device": ["cpu", "gpu0", "gpu0"],
            "type": ["cpu", "accelerator", "accelerator"],
            "start": [0, 9, 12],
            "end": [4, 11, 13],
            "duration": [4, 2, 1],
            "ready": [0, 9, 12],
            "memory": [18, 0, 0],
            "resident": [10, 0, 0],
            "output": [3, 0, 0],
            "scratch": [5, 0, 0],
            "received": [0, 3, 3],
        }
        assert frame.attrs == {"problem": "small", "solver": "heft", "unit": "tick"}
        assert {str(frame[name].dtype) for name in ("start", "end", "memory", "received")} == {"int64"}

    def test_transfers(self) -> None:
        frame = po.solve(small()).to_frame("transfers")
        assert frame.to_dict("records") == [
            {
                "producer": "a", "consumer": "b", "sender": "cpu", "receiver": "gpu0",
                "start": 4, "end": 9, "duration": 5, "payload": 3, "serves": 2,
            }
        ]  # fmt: skip

    def test_devices(self) -> None:
        frame = po.solve(small()).to_frame("devices")
        assert frame["busy"].tolist() == [4, 3, 0]
        assert frame["memory"].tolist() == [18, 0, 0]
        assert frame["capacity"].isna().tolist() == [False, True, True]
        assert frame["capacity"][0] == 100

    @pytest.mark.parametrize("rows", ["tasks", "transfers", "devices"])
    def test_a_frame_without_a_schedule_keeps_the_name_of_the_problem(self, rows: Any) -> None:
        frame = replace(po.solve(small()), schedule=None, devices=()).to_frame(rows)
        assert (len(frame), frame.attrs["problem"]) == (0, "small")

    def test_units(self) -> None:
        result = po.solve(small())
        assert result.to_frame(unit="s")["end"].tolist() == [0.004, 0.011, 0.013]
        assert result.to_frame("transfers", unit="us")["start"].tolist() == [4000.0]
        assert result.to_frame("devices", unit="ns")["busy"].tolist() == [4e6, 3e6, 0]
        assert result.to_frame(unit="ms")["memory"].tolist() == [18, 0, 0]

    @pytest.mark.parametrize("name", ["inception", "sensor-fusion", "edge-perception", "gnmt"])
    @pytest.mark.parametrize("contention", ["none", "port"])
    def test_frames_agree_with_metrics(self, name: str, contention: Any) -> None:
        problem = replace(po.load(PROBLEMS / f"{name}.yaml"), contention=contention)
        result = po.solve(problem)
        schedule = result.schedule
        assert schedule is not None
        measured = po.measure(problem, schedule)
        tasks, moves, devices = (result.to_frame(rows) for rows in ("tasks", "transfers", "devices"))
        assert tasks["end"].max() == measured.makespan
        assert (tasks["ready"] <= tasks["start"]).all()
        assert tasks.groupby("device")["duration"].sum().to_dict() == {
            use.name: use.busy for use in result.devices if use.tasks
        }
        assert len(moves) == measured.transfers == len(moved_edges(problem, schedule.device))
        assert moves["payload"].sum() == measured.bytes_moved
        assert tasks["received"].sum() == (moves["payload"] * moves["serves"]).sum()
        assert devices["tasks"].sum() == problem.n_tasks
        if schedule.transfers is not None:
            assert sorted(moves["start"]) == sorted(schedule.transfers.start.tolist())

    @pytest.mark.parametrize("rows", ["tasks", "transfers", "devices"])
    def test_result_without_schedule_has_no_rows(self, rows: Any) -> None:
        full, empty = (po.solve(problem).to_frame(rows, unit="ms") for problem in (small(), impossible()))
        assert len(empty) == 0
        assert list(empty.columns) == list(full.columns)

    def test_invalid_arguments(self) -> None:
        result = po.solve(small())
        with pytest.raises(
            po.UsageError, match=r'^to_frame: unknown rows "task"; expected one of tasks, devices, tran'
        ):
            result.to_frame("task")  # type: ignore[arg-type]
        with pytest.raises(po.UsageError, match=r'^to_frame: unknown unit "h"; expected one of tick, ns, us, ms, s$'):
            result.to_frame(unit="h")  # type: ignore[arg-type]


def test_missing_pandas_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    result = po.solve(small())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(po.MissingExtraError, match=r"^to_frame needs pandas: pip install 'placeopt\[frames\]'$"):
        result.to_frame()
