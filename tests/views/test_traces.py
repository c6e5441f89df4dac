"""placeopt.views.traces: traces follow their format and match the schedule."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_format import breaches, events_of

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.memory import peak_memory
from placeopt.model.problem import Contention
from placeopt.model.schedule import durations, edge_transfers
from placeopt.views.traces import Span, lanes, trace_text, write_spans, write_trace

PROBLEMS = Path(__file__).parents[2] / "problems"


def chain(**more: Any) -> po.Problem:
    """a -> b, one byte that takes two ticks between two devices; three ticks each."""
    return po.build_problem(
        **{
            "task_names": ("a", "b"), "device_names": ("x", "y"), "duration": np.full((2, 2), 3), "edges": [(0, 1)],
            "payload": [1], "output": np.array([1, 0]), "resident": np.array([5, 6]), "scratch": np.array([7, 8]),
            "byte_ticks_num": np.full((2, 2), 2), "resolution": Fraction(1, 10**6), **more,
        }
    )  # fmt: skip


def of_phase(text: str, phase: str) -> list[dict[str, Any]]:
    return [event for event in events_of(text) if event["ph"] == phase]


@pytest.mark.parametrize("name", ["five-node", "heft-10", "inception", "sensor-fusion", "edge-perception"])
@pytest.mark.parametrize("contention", ["none", "port"])
def test_the_problems_at_hand_keep_to_the_format(name: str, contention: Contention) -> None:
    problem = replace(po.load(PROBLEMS / f"{name}.yaml"), contention=contention)
    schedule = po.solve(problem, "heft").schedule
    assert schedule is not None
    text = trace_text(problem, schedule)
    assert breaches(text) == []
    tasks = [event for event in of_phase(text, "X") if event["cat"] == "task"]
    assert sorted(event["name"] for event in tasks) == sorted(problem.task_names)
    tick = problem.resolution * 10**6
    rows = {name: row for row, name in enumerate(problem.task_names)}
    ticks = durations(problem, schedule.device)
    for event in tasks:
        row = rows[event["name"]]
        assert Fraction(event["ts"]) == schedule.start[row] * tick
        assert Fraction(event["dur"]) == ticks[row] * tick
        assert (event["args"]["start_ticks"], event["args"]["duration_ticks"]) == (schedule.start[row], ticks[row])
    carriers = edge_transfers(problem, schedule.device)
    moved, transfers = int((carriers >= 0).sum()), len(set(carriers[carriers >= 0].tolist()))
    ports = schedule.transfers is not None
    assert len(of_phase(text, "s")) == moved + (2 * transfers if ports else 0)
    assert len(of_phase(text, "X")) == problem.n_tasks + (2 * transfers if ports else 0)


def test_a_chain_by_hand() -> None:
    problem = chain()
    text = trace_text(problem, po.Schedule(np.array([0, 1]), np.array([0, 5])))
    assert breaches(text) == []
    first, second = of_phase(text, "X")
    assert first == {
        "ph": "X", "name": "a", "cat": "task", "pid": 1, "tid": 2, "ts": 0, "dur": 3,
        "args": {"start_ticks": 0, "duration_ticks": 3, "resident_bytes": 5, "output_bytes": 1, "scratch_bytes": 7,
                 "sent_bytes": 1, "received_bytes": 0},
    }  # fmt: skip
    assert (second["tid"], second["ts"], second["dur"], second["args"]["received_bytes"]) == (3, 5, 3, 1)
    (start,), (end,) = of_phase(text, "s"), of_phase(text, "f")
    assert (start["id"], start["tid"], start["ts"], end["tid"], end["ts"]) == (end["id"], 2, 0, 3, 5)
    # x holds 5 from the start, 7 more while a runs, its byte of output until that has arrived.
    counted = [(event["name"], event["ts"], event["args"]["bytes"]) for event in of_phase(text, "C")]
    x, y = "x (capacity unlimited)", "y (capacity unlimited)"
    assert counted == [(x, 0, 13), (x, 3, 6), (x, 5, 5), (y, 0, 6), (y, 5, 14), (y, 8, 6)]


def test_transfers_stand_on_the_ports_where_these_contend() -> None:
    problem = chain(contention="port")
    schedule = po.Schedule(np.array([0, 1]), np.array([0, 6]), po.Transfers(np.array([0]), np.array([4])))
    assert po.verify(problem, schedule).feasible
    text = trace_text(problem, schedule)
    assert breaches(text) == []
    names = {event["tid"]: event["args"]["name"] for event in of_phase(text, "M") if event["name"] == "thread_name"}
    assert list(names.values()) == ["x", "x sends", "x receives", "y", "y sends", "y receives"]
    _, send, receive, _ = of_phase(text, "X")
    assert [(names[each["tid"]], each["name"], each["ts"], each["dur"]) for each in (send, receive)] == [
        ("x sends", "a -> b", 4, 2), ("y receives", "a -> b", 4, 2),
    ]  # fmt: skip
    assert send["args"] == {"start_ticks": 4, "duration_ticks": 2, "payload_bytes": 1, "from": "x", "to": "y"}
    ways = [(names[event["tid"]], event["id"]) for event in events_of(text) if event["ph"] in "sf"]
    assert ways == [("x", 1), ("x sends", 1), ("x sends", 2), ("y receives", 2), ("y receives", 3), ("y", 3)]


def test_a_device_with_one_port_has_one_thread_for_transfers() -> None:
    problem = chain(contention="half_duplex")
    text = trace_text(problem, po.Schedule(np.array([0, 1]), np.array([0, 6]), po.Transfers([0], [4])))
    assert breaches(text) == []
    names = {event["tid"]: event["args"]["name"] for event in of_phase(text, "M") if event["name"] == "thread_name"}
    assert list(names.values()) == ["x", "x transfers", "y", "y transfers"]
    assert [names[each["tid"]] for each in of_phase(text, "X")] == ["x", "x transfers", "y transfers", "y"]


def test_counters_reach_the_peak() -> None:
    problem = po.load(PROBLEMS / "inception.yaml")
    schedule = po.solve(problem, "heft").schedule
    assert schedule is not None
    most: dict[str, int] = {}
    for event in of_phase(trace_text(problem, schedule), "C"):
        most[event["name"]] = max(most.get(event["name"], 0), event["args"]["bytes"])
    assert list(most.values()) == peak_memory(problem, schedule).tolist()


@pytest.mark.parametrize("resolution", [Fraction(1, 3 * 10**9), Fraction(7, 10**11), Fraction(1, 10**15)])
def test_ticks_finer_than_a_nanosecond_never_overlap(resolution: Fraction) -> None:
    problem = replace(layered_problem(200, 4, ccr=1.0), resolution=resolution)
    schedule = po.solve(problem, "heft").schedule
    assert schedule is not None
    text = trace_text(problem, schedule)
    assert breaches(text) == []
    assert json.loads(text)["otherData"]["exact"].startswith("no")
    assert len(of_phase(text, "s")) == (edge_transfers(problem, schedule.device) >= 0).sum()


def test_a_schedule_that_breaks_every_rule_still_makes_a_trace() -> None:
    problem = chain(contention="port", edges=[(0, 1)])
    schedule = po.Schedule(np.array([0, 0]), np.array([1, 0]), po.Transfers(np.array([0, 0]), np.array([4, 4])))
    assert not po.verify(problem, schedule).feasible
    text = trace_text(problem, schedule)
    assert breaches(text) == []
    assert "x, overlapping 1" in text
    backwards = po.Schedule(np.array([0, 1]), np.array([9, 0]))  # the consumer first: no arrow back in time
    assert not of_phase(trace_text(chain(), backwards), "s")
    assert breaches(trace_text(chain(), backwards)) == []


def test_hostile_names_stay_text() -> None:
    names = ('"}]}<script>', "snow ☃ \U0001f4a5 \\u0000 \x00\n" * 500)
    problem = chain(task_names=names, device_names=('"', "é"), name="\ud800")
    text = trace_text(problem, po.Schedule(np.array([0, 1]), np.array([0, 5])))
    assert breaches(text) == []
    assert tuple(event["name"] for event in of_phase(text, "X")) == names
    assert "schedule of ?" in text
    assert "\\ud83d" not in text  # Perfetto 55 rejects the whole file for the escapes of a surrogate pair


def test_no_tasks_at_all() -> None:
    problem = po.build_problem(task_names=(), device_names=("x",), duration=np.zeros((0, 1)))
    assert breaches(trace_text(problem, po.Schedule(np.zeros(0), np.zeros(0)))) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"dur":3', '"dur":-3', "negative duration"),
        ('"dur":3', '"dur":9', "overlaps"),
        ('"ts":0,"dur":3', '"ts":0.0001,"dur":3', "finer than a nanosecond"),
        ('"ph":"f","bp":"e","id":3', '"ph":"f","bp":"e","id":4', "has the phases"),
        ('"ph":"s","id":3', '"ph":"f","bp":"e","id":3', "has the phases"),
        ('"bp":"e",', "", "bp is missing"),
        ('"ph":"X"', '"ph":"Z"', "unknown phase"),
        ('"name": "thread_name"', '"name": "thread"', "no such metadata"),
        ('"tid":3', '"tid":33', "without a name"),
        ('"displayTimeUnit":"ms"', '"displayTimeUnit":"us"', "displayTimeUnit"),
    ],
)
def test_the_check_catches_what_is_wrong(old: str, new: str, told: str) -> None:
    problem = chain(
        task_names=("a", "b", "c"),
        duration=np.full((3, 2), 3),
        edges=[(0, 1)],
        output=None,
        resident=None,
        scratch=None,
    )
    text = trace_text(problem, po.Schedule(np.array([0, 1, 0]), np.array([0, 5, 4])))
    assert breaches(text) == []
    assert old in text
    assert any(told in breach for breach in breaches(text.replace(old, new, 1)))


def test_lanes() -> None:
    assert lanes([]) == []
    assert lanes([(0, 0, 3), (1, 1, 2), (0, 3, 3), (0, 3, 5), (0, 4, 6), (0, 5, 6)]) == [
        (0, 0), (1, 0), (0, 0), (0, 0), (0, 1), (0, 0),
    ]  # fmt: skip


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    problem, schedule = chain(), po.Schedule(np.array([0, 1]), np.array([0, 5]))
    file = tmp_path / "out.json"
    file.write_text("before")
    write_trace(file, problem, schedule)
    assert file.read_text() == trace_text(problem, schedule)
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert Decimal(0) == events_of(file.read_text())[-1]["args"]["bytes"] - 6


def test_spans_of_processes_one_above_the_other(tmp_path: Path) -> None:
    spans = {
        "predicted": {"a": [Span("x", 0.0, 1e-6, {"k": 1}), Span("y", 1e-6, 3e-6, {})], "b": []},
        "measured": {"a": [Span("x", 0.0, 2e-6, {}), Span("y", 1e-6, 1e-6, {})]},  # overlapping, and without duration
    }
    path = tmp_path / "trace.json"
    write_spans(path, spans, {"problem": "p"})
    assert breaches(path.read_text()) == []
    events = events_of(path.read_text())
    names = [(each["name"], each["pid"], each["args"]["name"]) for each in events if each["name"].endswith("_name")]
    assert names == [
        ("process_name", 1, "predicted"), ("process_name", 2, "measured"), ("thread_name", 1, "a"),
        ("thread_name", 1, "b"), ("thread_name", 2, "a"), ("thread_name", 2, "a, overlapping 1"),
    ]  # fmt: skip
    slices = [(each["pid"], each["tid"], each["name"], each["ts"], each["dur"]) for each in events if each["ph"] == "X"]
    assert slices == [(1, 3, "x", 0, 1), (2, 5, "x", 0, 2), (2, 6, "y", 1, 0), (1, 3, "y", 1, 2)]
