"""Whole ticks and bytes: what rounding does to a document's numbers, and who is told of it."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from commandline import run
from texts import compiled, complaints, data_complaints

import placeopt as po
from placeopt.model.building import with_changes
from placeopt.model.problem import Problem, Rounding, rounding_text

GRAPH_ANSWER = (
    "tasks.t0.time: 0.0006 counts ticks, as it has no unit, and would be rounded up to 1; write a unit (0.0006 s), "
    "or state one for all such numbers (units: {time: s})"
)


def seconds() -> nx.DiGraph[str]:
    """40 tasks one after the other, times in seconds."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for k in range(40):
        graph.add_node(f"t{k}", time=0.0006 + k * 1e-5)
    nx.add_path(graph, list(graph))
    return graph


class TestNumbersWithoutAUnit:
    HEAD = "placeopt: 1\ndevices: {a: {speed: 1, memory: 9 GiB}, b: {speed: 1}}\n"

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("tasks: {t: {time: 0.0006}}", "3:19: tasks.t.time: 0.0006 counts ticks, as it has no unit, and would be "
             r"rounded up to 1; write a unit \(0.0006 s\), or state one for all such numbers \(units: {time: s}\)$"),
            ("tasks: {t: {time: '1.5'}}", '3:19: tasks.t.time: "1.5" counts ticks, .* unit \\(1.5 s\\), or'),
            ("tasks: {t: {time: {a: 1.00, b: 1.06}}}", "3:32: tasks.t.time.b: 1.06 counts ticks, .*rounded up to 2"),
            ("operations: {c: {a: 0.5}}\ntasks: {t: {op: c}}", "3:21: operations.c.a: 0.5 counts ticks"),
            ("tasks: {t: {time: 1, release: 2.5}}", "3:31: tasks.t.release: 2.5 counts ticks, .*up to 3"),
            ("tasks: {t: {time: 1, deadline: 2.5}}", "3:32: tasks.t.deadline: 2.5 counts ticks, .*rounded down to 2"),
            ("links: {default: {latency: 0.5}}\ntasks: {t: {time: 1}}", "3:28: links.default.latency: 0.5 counts"),
            ("current: {migration: {startup: 0.5}}\ntasks: {t: {time: 1}}", "3:32: current.migration.startup: 0.5 co"),
            ("tasks: {t: {time: 1, output: 0.25}}", "3:30: tasks.t.output: 0.25 counts bytes, as it has no unit, and "
             r"would be rounded up to 1; write a unit \(0.25 MiB\), or state one for all .*units: \{memory: MiB\}"),
            ("tasks: {t: {time: 1, memory: 1.5}}", "3:30: tasks.t.memory: 1.5 counts bytes"),
            ("tasks: {t: {time: 1}, u: {time: 1, after: {t: 0.5}}}", "3:47: tasks.u.after.t: 0.5 counts bytes"),
            ("tasks: {t: {time: 1, migration: 0.5}}", "3:33: tasks.t.migration: 0.5 counts bytes"),
            ("tasks: {t: {flops: 0.5}}", r"3:20: tasks.t.flops: 0.5 counts FLOP, .*units: \{work: GFLOP\}"),
            ("tasks: {t: {time: 20.5}}", None),  # 2.4 %
            ("tasks: {t: {time: 0}}", None),
            ("tasks: {t: {time: 0.0}}", None),
            ("tasks: {t: {time: 2.0}}", None),
            ("tasks: {t: {time: 0.0006}}\nunits: {time: s}", None),
            ("tasks: {t: {time: 0.5 ns}}", None),  # with a unit it is a fact, not an error
            ("tasks: {t: {time: 1}}\nlinks: {default: {bandwidth: 0.5, energy: 0.5}}", None),  # ratios stay exact
        ],
    )  # fmt: skip
    def test_are_refused_where_rounding_changes_them_much(self, text: str, answer: str | None) -> None:
        found = complaints(self.HEAD + text + "\n")
        assert len(found) == (answer is not None)
        if answer is not None:
            place, path, message = answer.split(": ", 2)
            assert re.match(rf"{place}: {re.escape(path)}: {message}", found[0])

    def test_of_a_capacity(self) -> None:
        text = "placeopt: 1\ndevices: {a: {memory: 1.5}, b: {memory: 15.9}}\ntasks: {}\n"
        assert complaints(text) == [
            "2:23: devices.a.memory: 1.5 counts bytes, as it has no unit, and would be rounded down to 1; write a unit "
            "(1.5 MiB), or state one for all such numbers (units: {memory: MiB})",
            "2:41: devices.b.memory: 15.9 counts bytes, as it has no unit, and would be rounded down to 15; write a "
            "unit (15.9 MiB), or state one for all such numbers (units: {memory: MiB})",
        ]

    def test_of_graphs_and_dicts(self) -> None:
        devices = {"cpu": {"count": 2}, "gpu": {}}
        with pytest.raises(po.SpecError) as raised:
            po.from_networkx(seconds(), devices)
        assert str(raised.value.issues[0]) == GRAPH_ANSWER
        assert len(raised.value.issues) == 40
        assert po.from_networkx(seconds(), devices, units={"time": "s"}).duration[0].tolist() == [600_000] * 3
        for number in (np.float32(0.5), Fraction(1, 2), "0.5"):
            document = {"placeopt": 1, "devices": {"a": {}}, "tasks": {"t": {"time": number}}}
            (found,) = data_complaints(document)
            assert found.startswith("tasks.t.time: ")
            assert "would be rounded up to 1; write a unit (" in found

    def test_of_specs_made_in_code(self) -> None:
        spec = po.Spec.model_validate({"placeopt": 1, "devices": {"a": {}}, "tasks": {"t": {"time": 0.5}}})
        with pytest.raises(po.SpecError, match=r"^tasks\.t\.time\.\*: it counts ticks, .* write a unit \(0\.5 s\)"):
            po.compile(spec)

    def test_are_not_blamed_for_a_mistake_in_the_units(self) -> None:
        text = "placeopt: 1\nunits: {time: sec0nds}\ndevices: {a: }\ntasks: {t: {time: 0.5}}\n"
        assert [line.split(": ")[1] for line in complaints(text)] == ["units.time"]


def problem(text: str, head: str = "resolution: 1 ms") -> Problem:
    return compiled(f"placeopt: 1\n{head}\ndevices: {{cpu: , gpu: {{speed: 1 GFLOP/s, overhead: 1 us}}}}\n{text}\n")


class TestTimesWithAUnit:
    @pytest.mark.parametrize(
        ("text", "share", "where"),
        [
            ("tasks: {t: {time: 3 ms}}", None, None),
            ("tasks: {t: {time: 0 ms}}", None, None),
            ("tasks: {t: {time: 3}}", None, None),
            ("tasks: {t: {time: 10.5 ms}, u: {time: 2.5 ms}, v: {time: 9.9 ms}}", Fraction(1, 5), "tasks.u.time"),
            ("tasks: {t: {time: {cpu: 2 ms, gpu: 1 us}}}", 999, "tasks.t.time.gpu"),
            ("operations: {c: {cpu: 0.8 ms, npu: 1 us}}\ntasks: {t: {op: c}}", Fraction(1, 4), "operations.c.cpu"),
            ("operations: {c: 0.8 ms, d: 0.1 ms}\ntasks: {t: {op: c}}", Fraction(1, 4), "operations.c"),
            ("tasks: {t: {time: 1 ms, release: 0.5 ms}}", 1, "tasks.t.release"),
            ("tasks: {t: {time: 1 ms, deadline: 2.5 ms}}", Fraction(1, 5), "tasks.t.deadline"),
            ("links: {default: {latency: 10 us}}\ntasks: {t: {time: 1 ms}}", 99, "links.default.latency"),
            ("current: {migration: {startup: {npu: 1 us, cpu: 500 us}}}\ntasks: {t: {time: 1 ms}}",
             1, "current.migration.startup.cpu"),
            # 0.299 ms of work and 0.001 ms of overhead count 2 ticks, each a tick.
            ("tasks: {t: {flops: 299000, devices: gpu}}", Fraction(17, 3), "tasks.t.flops"),
            ("tasks: {t: {flops: 30400000, devices: gpu}}", Fraction(32000, 30401) - 1, "tasks.t.flops"),
            ("tasks: {t: {time: 1e-300 s}}", 1e297, "tasks.t.time"),
            ("tasks: {t: {time: 1e-400 s}}", 1e300, "tasks.t.time"),
        ],
    )  # fmt: skip
    def test_are_rounded_and_the_worst_is_kept(self, text: str, share: Any, where: str | None) -> None:
        found = problem(text).rounding
        if share is None or where is None:
            assert found is None
        else:
            assert found is not None
            assert (found.share, found.where) == (pytest.approx(float(share)), where)

    def test_in_a_graph_file(self, tmp_path: Path) -> None:
        (tmp_path / "g.json").write_text('{"tasks": {"my task": {"time": {"cpu": "0.5 ms"}}}}', encoding="utf-8")
        text = "placeopt: 1\nresolution: 1 ms\ngraph: {file: g.json}\ndevices: {cpu: }\n"
        (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
        assert po.load(tmp_path / "p.yaml").rounding == Rounding(1.0, 'tasks."my task".time.cpu')

    def test_a_deadline_that_only_rounding_breaks_is_told_so(self) -> None:
        text = "placeopt: 1\nresolution: 1 ms\ndevices: {a: }\ntasks: {t: {time: 0.4 ms, deadline: 0.9 ms}}\n"
        late = (
            '4:37: tasks.t.deadline: "0.9 ms" cannot be met: the task takes 1 ms at its fastest (on a), 1 ms too long'
        )
        assert complaints(text) == [f"{late}; times are rounded to the 1 ms tick, a finer resolution may help"]
        assert complaints(text.replace("resolution: 1 ms", "resolution: 0.1 ms")) == []

    def test_times_out_of_range_are_reported_as_such(self) -> None:
        head = "placeopt: 1\ndevices: {a: {speed: 1, overhead: 1e400 ns, memory: 1.5}}\n"
        found = complaints(
            f"{head}links: {{default: {{latency: 1e400 ns}}}}\ntasks: {{t: {{flops: 1, release: 1e400}}}}\n"
        )
        assert [line.split(": ", 2)[1] for line in found] == [
            "devices.a.overhead", "devices.a.memory", "links.default.latency", "tasks.t.release"
        ]  # fmt: skip

    def test_the_fact_is_no_part_of_the_fingerprint_and_outlives_changes(self) -> None:
        rounded, whole = problem("tasks: {t: {time: 0.5 ms}}"), problem("tasks: {t: {time: 1 ms}}")
        assert rounded.fingerprint() == whole.fingerprint()
        assert rounded.rounding == Rounding(1.0, "tasks.t.time")
        assert with_changes(rounded, contention="port").rounding == rounded.rounding
        assert po.solve(rounded, "brute-force").problem.rounding == rounded.rounding

    @pytest.mark.parametrize(
        ("time", "text"),
        [
            ("0.7 ms", "times are rounded to the 1 ms tick, by up to 43% (tasks.t.time); a finer resolution avoids it"),
            ("10 us", "times are rounded to the 1 ms tick, by up to 9,900% (tasks.t.time); a finer resolution avoids "
             "it"),
            ("1e-90 s", "times are rounded to the 1 ms tick, by up to more than 1,000,000% (tasks.t.time); a finer "
             "resolution avoids it"),
            ("19.05 ms", None),
            ("20 ms", None),
        ],
    )  # fmt: skip
    def test_is_told_beyond_five_per_cent(self, time: str, text: str | None) -> None:
        found = problem(f"tasks: {{t: {{time: {time}}}}}")
        assert rounding_text(found) == text
        result = po.solve(found)
        assert ("rounding" in result.summary()) == (text is not None)
        assert ("rounding" in found._repr_html_()) == (text is not None)

    def test_inspect_and_solve_tell_of_it(self, tmp_path: Path) -> None:
        file = tmp_path / "p.yaml"
        file.write_text("placeopt: 1\nresolution: 1 ms\ndevices: {a: }\ntasks: {t: {time: 0.7 ms}}\n", encoding="utf-8")
        told = "times are rounded to the 1 ms tick, by up to 43% (tasks.t.time)"
        for command in ("inspect", "solve"):
            assert told in " ".join(run(command, file).out.split())
            data = json.loads(run(command, file, "--json").out)
            assert data["rounding"] == {"share": pytest.approx(3 / 7), "where": "tasks.t.time"}


class TestNotes:
    """Amounts that are valid and probably meant otherwise."""

    HEAD = "placeopt: 1\nlinks: {default: {bandwidth: 8 Gb/s, latency: 1 us}}\n"

    @pytest.mark.parametrize(
        ("text", "notes"),
        [
            ("devices: {a: {memory: 8 Gb}}\ntasks: {t: {time: 1 s}}",
             ['3:23: devices.a.memory: "8 Gb" is 953.7 MiB, as b means bits; GB and GiB are bytes']),
            ("devices: {a: {memory: 8 GB}}\ntasks: {t: {time: 1 s, output: 8 Mib}, u: {time: 1 s, after: {t: 8 kb}}}",
             ['4:32: tasks.t.output: "8 Mib" is 1 MiB, as b means bits; GB and GiB are bytes (1 more like this)']),
            ("devices: {a: {memory: 8 Gbit}}\ntasks: {t: {time: 1 s, output: 8 bits}}", []),
            ("devices: {a: }\ntasks: {t: {time: 2 ms}, u: {time: 1}}",
             ["4:36: tasks.u.time: 1 has no unit and means 1 tick, 1 ns; 2 times have one"]),
            ("devices: {a: }\ntasks: {t: {time: {a: 3}, deadline: 2 ms}, u: {time: 4 ms}, v: {time: 0, release: 7}}",
             ["4:23: tasks.t.time.a: 3 has no unit and means 3 ticks, 3 ns; 3 times have one (1 more like this)"]),
            ("devices: {a: }\ntasks: {t: {time: 3}}", [
             "4:19: tasks.t.time: 3 has no unit and means 3 ticks, 3 ns; another time has one"]),
            ("devices: {a: }\ntasks: {t: {time: 3}, u: {time: 4}}", []),  # the document counts in ticks
            ("devices: {a: }\ntasks: {t: {time: 3}}\nunits: {time: ms}", []),
            ("devices: {a: }\ntasks: {t: {time: 0}}", []),
            ("devices: {a: {memory: 16}, b: {memory: 8 GB}}\ntasks: {t: {time: 1 s}}",
             ["3:23: devices.a.memory: 16 has no unit and means 16 B; other amounts of memory have one"]),
            ("devices: {a: {memory: 16}, b: {memory: 8}}\ntasks: {t: {time: 1 s}}", []),
        ],
    )  # fmt: skip
    def test_are_few_and_name_the_first(self, text: str, notes: list[str], tmp_path: Path) -> None:
        file = tmp_path / "p.yaml"
        file.write_text(f"{self.HEAD}{text}\n", encoding="utf-8")
        made = po.load(file)
        assert list(made.notes) == [f"{file}:{note}" for note in notes]

    def test_of_a_time_among_rates(self) -> None:
        link, task = {"bandwidth": "8 GB/s", "latency": 5}, {"flops": "1 GFLOP"}
        network = {"devices": {"a": {"speed": "1 TFLOP/s"}, "b": {"speed": "1 TFLOP/s"}}, "links": {"default": link}}
        (note,) = po.compile({"placeopt": 1, **network, "tasks": {"t": task}}).notes
        assert note == "links.default.latency: 5 has no unit and means 5 ticks, 5 ns; speeds or bandwidths have one"

    def test_inspect_and_solve_print_them(self, tmp_path: Path) -> None:
        file = tmp_path / "p.yaml"
        file.write_text("placeopt: 1\ndevices: {a: {memory: 8 Gb}}\ntasks: {t: {time: 2 ms}, u: {time: 1}}\n")
        made = po.load(file)
        assert made.fingerprint() == with_changes(made, notes=()).fingerprint()
        for command in ("inspect", "solve"):
            printed = " ".join(run(command, file).out.split())
            assert all(note in printed for note in made.notes)
            assert json.loads(run(command, file, "--json").out)["notes"] == list(made.notes)
        assert all(note in made._repr_html_().replace("&quot;", '"') for note in made.notes)

    def test_of_documents_made_in_code_have_no_lines(self) -> None:
        tasks = {"t": {"time": "2 ms"}, "u": {"time": 1}}
        (note,) = po.compile({"placeopt": 1, "devices": {"a": None}, "tasks": tasks}).notes
        assert note == "tasks.u.time: 1 has no unit and means 1 tick, 1 ns; another time has one"


class TestSumsOfRoundedParts:
    """What the page on the problem file says of the order in which parts are rounded and added."""

    def test_latency_and_bytes_are_rounded_each(self) -> None:
        links = "links: {default: {latency: 0.5 ns, bandwidth: 3 GB/s}}\n"
        tasks = "tasks: {t: {time: 1, output: 1, pin: cpu}, u: {time: 1, after: t, pin: gpu}}"
        found = problem(links + tasks, "")
        assert int(found.transfer(1, 0, 1)) == 2
        assert po.solve(found, "brute-force").makespan == 4

    def test_overhead_and_work_are_rounded_each(self) -> None:
        devices = "devices: {d: {speed: 3 GFLOP/s, memory_bandwidth: 3 GB/s, overhead: 0.5 ns}}\n"
        found = compiled(f"placeopt: 1\n{devices}tasks: {{t: {{flops: 1, bytes: 2}}}}\n")
        assert found.duration.tolist() == [[2]]  # 2/3 and 1/2 of a tick, 1 tick each


PORTS = """\
placeopt: 1
contention: port
objective: total_cost
devices: {a: , b: }
links: {default: {latency: 3}}
tasks:
  s: {time: 1, pin: a}
  t: {time: 1, pin: a}
  x: {time: 1, pin: b, after: {s: 0}}
  y: {time: 1, pin: b, after: {t: 0}}
"""


class TestWhatThePageSays:
    """Sentences of the page on the problem file, each held by a schedule that the verifier judges."""

    def test_transfers_of_no_bytes_take_the_latency_and_hold_the_ports(self) -> None:
        found = compiled(PORTS)
        device = np.array([0, 0, 1, 1])
        for second, feasible in ((4, True), (3, False)):  # the first is sent in [1, 4)
            transfers = po.Transfers(np.array([0, 1]), np.array([1, second]))
            start = np.array([0, 1, 4, second + 3])
            report = po.verify(found, po.Schedule(device, start, transfers))
            assert report.feasible == feasible
            assert feasible or {violation.rule.value for violation in report.violations} == {"port"}
            assert not feasible or report.objective == (4 + 3 + 3,)
        early = po.Schedule(device, np.array([0, 1, 3, 7]), po.Transfers(np.array([0, 1]), np.array([1, 4])))
        assert [violation.rule.value for violation in po.verify(found, early).violations] == ["precedence"]

    def test_without_latency_they_still_wait_for_the_ports(self) -> None:
        text = PORTS.replace("{latency: 3}", "{bandwidth: 1}").replace("{s: 0}", "{s: 5}")
        found = compiled(text)
        device, start = np.array([0, 0, 1, 1]), np.array([0, 1, 6, 7])
        inside = po.Schedule(device, start, po.Transfers(np.array([0, 1]), np.array([1, 2])))
        assert {violation.rule.value for violation in po.verify(found, inside).violations} == {"port"}
        after = po.Schedule(device, start, po.Transfers(np.array([0, 1]), np.array([1, 6])))
        assert po.verify(found, after).feasible

    @pytest.mark.parametrize(
        ("tasks", "used"),
        [
            ("t: {time: 0, memory: {scratch: 9}}", 0),
            ("t: {time: 0, output: 9}", 0),
            ("t: {time: 1, memory: {scratch: 9}}", 9),
            ("t: {time: 0, output: 9}, u: {time: 0, after: t}", 0),  # the consumer has it at the tick of the start
            ("t: {time: 0, output: 9}, u: {time: 2, after: t}", 9),
            ("t: {time: 1, memory: {scratch: 9}}, u: {time: 1, after: t, memory: {scratch: 9}}", 9),  # frees first
        ],
    )
    def test_memory_of_tasks_that_take_no_time(self, tasks: str, used: int) -> None:
        head = "placeopt: 1\nmemory_model: peak\nobjective: [memory_balance, makespan]\ndevices: {a: {memory: 1000}}\n"
        result = po.solve(compiled(f"{head}tasks: {{{tasks}}}\n"), "cp-sat")
        assert (result.objective, result.devices[0].memory) == (used * 1000, used)

    @pytest.mark.parametrize(
        ("devices", "value"),
        [
            ("a: {memory: 3}", 333334),  # 1/3, rounded up
            ("a: {memory: 3}, b: {memory: 7}", 142858),  # the task goes to b; a is empty
            ("a: {memory: 3}, b: ", 0),  # a device without a limit does not count
            ("a: , b: ", 0),
        ],
    )
    def test_memory_balance(self, devices: str, value: int) -> None:
        text = f"placeopt: 1\nobjective: memory_balance\ndevices: {{{devices}}}\ntasks: {{t: {{time: 1, memory: 1}}}}\n"
        assert po.solve(compiled(text), "cp-sat").objective == value

    def test_energy_is_rounded_for_each_task_and_each_transfer(self) -> None:
        # 0.4 W for 1 ns are 0.4 nJ, and a byte costs 0.4 nJ; the device b states no power.
        text = (
            "placeopt: 1\nobjective: energy\ndevices: {a: {power: 0.4 W}, b: }\n"
            "links: {default: {energy: 0.4 nJ/B}}\ntasks:\n"
            "  s: {time: 1, pin: a}\n  t: {time: 1, pin: a}\n"
            "  x: {time: 1, pin: b, after: {s: 1}}\n  y: {time: 1, pin: b, after: {t: 1}}\n"
        )
        assert po.solve(compiled(text), "cp-sat").objective == 4
        bare = text.replace("{power: 0.4 W}", "").replace("{energy: 0.4 nJ/B}", "")
        assert complaints(bare) == [
            "2:12: objective: energy needs the power of devices or the energy of links; neither is stated"
        ]
