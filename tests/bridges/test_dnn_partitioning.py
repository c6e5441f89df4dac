"""`placeopt import --format dnn-partitioning`: what a file means, worked out by hand, and mistakes."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt.bridges.importers.graphs.dnn_partitioning import read_dnn_partitioning
from placeopt.bridges.importers.registry import IMPORTERS, import_file
from placeopt.errors import DocumentError, UsageError
from placeopt.io.compiler import compile_spec, load
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import simulate
from placeopt.verifier import verify

DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "dnn"
REAL = sorted(DATA.glob("*.json"))


def node(number: int, cpu: float = 5, fpga: float = 1, size: float = 10, **more: Any) -> dict[str, Any]:
    return {"id": number, "supportedOnFpga": 1, "cpuLatency": cpu, "fpgaLatency": fpga, "size": size, **more}


def edge(source: int, target: int, cost: float) -> dict[str, Any]:
    return {"sourceId": source, "destId": target, "cost": cost}


def graph(nodes: list[Any], edges: list[Any], **more: Any) -> dict[str, Any]:
    return {"maxSizePerFPGA": 25.0, "maxFPGAs": 2, "maxCPUs": 2, "nodes": nodes, "edges": edges, **more}


SMALL = graph(
    [
        node(7, cpu=6.959999999999999, fpga=0.696, name="a"),
        node(3, size=12.5, colorClass=4, name="b"),
        node(5, supportedOnFpga=False, fpgaLatency=-1, name="c", colorClass=9),
        node(1, colorClass=4, name="d"),
    ],
    [edge(7, 3, 2.0), edge(7, 5, 2.0), edge(3, 1, 1.862645149230957e-06)],
)


def written(folder: Path, data: Any) -> Path:
    path = folder / "graph.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return path


def imported(folder: Path, data: Any, **options: Any) -> Problem:
    return compile_spec(read_dnn_partitioning(written(folder, data), **options))


def complaints(folder: Path, data: Any) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        read_dnn_partitioning(written(folder, data))
    return [str(issue).removeprefix(f"{folder / 'graph.json'}:") for issue in caught.value.issues]


class TestModel:
    def test_tasks_devices_and_times(self, tmp_path: Path) -> None:
        problem = imported(tmp_path, SMALL)
        assert problem.name == "graph"
        assert problem.task_names == ("a", "b", "c", "d")
        assert problem.device_names == ("accelerator0", "accelerator1", "cpu0", "cpu1")
        assert problem.capacity.tolist() == [25, 25, UNLIMITED, UNLIMITED]
        # Without the noise of the sixteenth digit: 6.96 ms, not a nanosecond more.
        assert problem.duration.tolist() == [
            [696_000] * 2 + [6_960_000] * 2, [10**6] * 2 + [5 * 10**6] * 2,
            [0, 0, 5 * 10**6, 5 * 10**6], [10**6] * 2 + [5 * 10**6] * 2,
        ]  # fmt: skip
        assert problem.feasible.tolist() == [[True] * 4, [True] * 4, [False, False, True, True], [True] * 4]
        assert problem.memory.tolist() == [10, 13, 10, 10]  # half a byte takes one; outputs take none
        assert problem.group.tolist() == [0, 1, 2, 1]

    def test_transfers(self, tmp_path: Path) -> None:
        problem = imported(tmp_path, SMALL)
        assert list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)) == [
            (0, 1), (0, 2), (1, 3),
        ]  # fmt: skip
        assert problem.shared.all()  # one transfer serves all consumers on a device
        ticks = [[[int(problem.transfer(b, s, t)) for t in range(4)] for s in range(4)] for b in problem.payload]
        cost = 2_000_000
        assert ticks[0] == ticks[1] == [
            [0, 2 * cost, cost, cost], [2 * cost, 0, cost, cost], [cost, cost, 0, 0], [cost, cost, 0, 0],
        ]  # fmt: skip
        # 1862.6 ps: two ticks of a nanosecond, four between accelerators.
        assert ticks[2] == [[0, 4, 2, 2], [4, 0, 2, 2], [2, 2, 0, 0], [2, 2, 0, 0]]

    def test_the_resolution_is_a_choice(self, tmp_path: Path) -> None:
        problem = imported(tmp_path, SMALL, resolution="10 us", name="coarse")
        assert problem.name == "coarse"
        assert problem.duration[0].tolist() == [70, 70, 696, 696]
        assert problem.transfer(problem.payload[0], 0, 1) == 400

    def test_costs_that_differ_move_apart(self, tmp_path: Path) -> None:
        problem = imported(tmp_path, graph([node(1), node(2), node(3)], [edge(1, 2, 3), edge(1, 3, 0)]))
        assert not problem.shared.any()
        assert problem.payload.tolist() == [3 * 10**9, 0]

    @pytest.mark.parametrize("kind", ["maxFPGAs", "maxCPUs"])
    def test_one_kind_of_device_alone(self, tmp_path: Path, kind: str) -> None:
        problem = imported(tmp_path, graph([node(1), node(2)], [edge(1, 2, 3)], **{kind: 0}))
        assert problem.n_devices == 2
        assert set(problem.device_types) == {"cpu" if kind == "maxFPGAs" else "accelerator"}
        assert problem.transfer(problem.payload[0], 0, 1) == (0 if kind == "maxFPGAs" else 6 * 10**6)

    def test_names_are_ids_where_they_are_missing_or_double(self, tmp_path: Path) -> None:
        for other in ({}, {"name": ""}, {"name": "x"}):
            problem = imported(tmp_path, graph([node(4, name="x"), node(-2, **other)], [edge(4, -2, 1)]))
            assert problem.task_names == ("4", "-2")

    def test_an_empty_graph(self, tmp_path: Path) -> None:
        assert imported(tmp_path, graph([], [])).n_tasks == 0


class TestMistakes:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"maxSizePerFPGA": None}, "1:1: maxSizePerFPGA is missing; expected bytes"),
            ({"maxSizePerFPGA": float("inf")}, "2:20: maxSizePerFPGA: Infinity is not finite; expected bytes"),
            ({"maxFPGAs": 1.5}, "3:14: maxFPGAs: 1.5 is not valid; expected the number of devices, a whole"),
            ({"maxFPGAs": True}, "3:14: maxFPGAs: true is not valid"),
            ({"maxFPGAs": 5000}, "3:14: maxFPGAs: 5000 is out of range"),
            ({"maxFPGAs": 0, "maxCPUs": 0}, "3:14: maxFPGAs: there are 0 devices; expected 1 to 4096"),
            ({"maxCPUs": -1}, "4:13: maxCPUs: -1 is negative; expected the number of devices, a whole number"),
            ({"nodes": {}}, "nodes: expected a list, got a mapping"),
            ({"edges": 3}, "edges: expected a list, got 3"),
        ],
    )
    def test_of_the_header(self, tmp_path: Path, change: dict[str, Any], said: str) -> None:
        found = complaints(tmp_path, {**graph([node(1)], []), **change})
        assert any(said.replace("Infinity", "inf") in text for text in found), found

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"id": "1"}, '7:10: nodes[0].id: "1" is not an id; expected a whole number'),
            ({"id": True}, "nodes[0].id: true is not an id; expected a whole number"),
            ({"supportedOnFpga": 2}, "8:23: nodes[0].supportedOnFpga: 2 is neither true nor false (1 nor 0)"),
            ({"cpuLatency": float("nan")}, "9:18: nodes[0].cpuLatency: nan is not finite; expected a time in ms"),
            ({"cpuLatency": -0.5}, "9:18: nodes[0].cpuLatency: -0.5 is negative; expected a time in ms"),
            ({"fpgaLatency": "3"}, 'nodes[0].fpgaLatency: "3" is not valid; expected a time in ms'),
            ({"fpgaLatency": 1e300}, "nodes[0].fpgaLatency: 1e+300 is out of range; expected a time in ms, at most"),
            ({"cpuLatency": 10**400}, "...0000000000 is out of range; expected a time in ms, at most"),
            ({"size": [3]}, "nodes[0].size: a list is not valid; expected bytes"),
            ({"colorClass": 0.5}, "nodes[0].colorClass: 0.5 is not a class; expected a whole number"),
        ],
    )
    def test_of_a_node(self, tmp_path: Path, change: dict[str, Any], said: str) -> None:
        (found,) = complaints(tmp_path, graph([{**node(1), **change}], []))
        assert said in found

    @pytest.mark.parametrize("key", ["id", "supportedOnFpga", "cpuLatency", "fpgaLatency", "size"])
    def test_what_a_node_lacks(self, tmp_path: Path, key: str) -> None:
        lacking = node(1)
        del lacking[key]
        (found,) = complaints(tmp_path, graph([lacking], []))
        assert found.startswith("6:")
        assert f"nodes[0]: {key} is missing; expected" in found

    @pytest.mark.parametrize("key", ["maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes", "edges"])
    def test_what_a_file_lacks(self, tmp_path: Path, key: str) -> None:
        data = graph([], [])
        del data[key]
        (found,) = complaints(tmp_path, data)
        assert f"{key} is missing; expected" in found

    @pytest.mark.parametrize(
        ("edges", "said"),
        [
            ([edge(1, 9, 1)], "edges[0].destId: no node has the id 9; known are 1, 2, 3"),
            ([edge(9, 1, 1)], "edges[0].sourceId: no node has the id 9"),
            ([{"sourceId": 1, "cost": 1}], "edges[0]: destId is missing; expected the id of a node"),
            ([{"sourceId": 1, "destId": 2}], "edges[0]: cost is missing; expected a time in ms"),
            ([edge(1, 2, -1)], "edges[0].cost: -1 is negative"),
            ([edge(1, 2, 1e10)], "edges[0].cost: 10000000000.0 is out of range"),
            ([edge(2, 2, 1)], "edges[0]: node 2 cannot come after itself"),
            ([edge(1, 2, 1), edge(2, 3, 1), edge(1, 2, 1)], "edges[2]: duplicate edge: edges[0] joins the same nodes"),
            ([edge(3, 1, 1), edge(1, 2, 1), edge(2, 3, 1)], "edges[0]: closes a cycle of 3 nodes: 1, 2, 3"),
            ([[1, 2, 3]], "edges[0]: expected a mapping with sourceId, destId and cost, got a list"),
        ],
    )
    def test_of_edges(self, tmp_path: Path, edges: list[Any], said: str) -> None:
        (found,) = complaints(tmp_path, graph([node(1), node(2), node(3)], edges))
        assert said in found

    def test_of_other_kinds(self, tmp_path: Path) -> None:
        found = complaints(tmp_path, graph([node(1), node(1), 5], []))
        assert "nodes[1].id: duplicate id 1: nodes[0] has it too" in found[0]
        assert "nodes[2]: expected a mapping with id, latencies and size, got 5" in found[1]
        (found,) = complaints(tmp_path, graph([node(1, supportedOnFpga=0)], [], maxCPUs=0))
        assert "nodes[0]: cannot run on an accelerator, and there are no CPUs (maxCPUs is 0)" in found
        (found,) = complaints(tmp_path, "[]")
        assert "holds a list; expected an object with maxSizePerFPGA" in found
        (found,) = complaints(tmp_path, "{")
        assert "is not valid JSON" in found
        assert any("maxCPUs: duplicate name" in text for text in complaints(tmp_path, '{"maxCPUs": 1, "maxCPUs": 1}'))

    @settings(max_examples=200, deadline=None)
    @given(data=st.data())
    def test_whatever_stands_in_a_file_is_read_or_told(self, tmp_path_factory: Any, data: st.DataObject) -> None:
        value = st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.text(max_size=2)),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner, max_size=2),
            max_leaves=3,
        )
        document = json.loads(json.dumps(SMALL))
        holder = data.draw(st.sampled_from([document, *document["nodes"], *document["edges"]]))
        holder[data.draw(st.sampled_from(sorted(holder)))] = data.draw(value)
        path = tmp_path_factory.getbasetemp() / "fuzz.json"
        path.write_text(json.dumps(document))
        with contextlib.suppress(DocumentError):
            compile_spec(read_dnn_partitioning(path))


class TestCommand:
    def test_yaml_on_stdout_and_files_load_as_the_same_problem(self, tmp_path: Path) -> None:
        source = written(tmp_path, SMALL)
        expected = imported(tmp_path, SMALL).fingerprint()
        shown = run("import", source, "--format", "dnn-partitioning", "--name", "small")
        assert shown.code == 0
        assert shown.out.startswith("placeopt: 1\nname: small\n")
        for name in ("p.yaml", "p.json"):
            outcome = run("import", source, "--out", tmp_path / name)
            assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
            assert load(tmp_path / name).fingerprint() == expected
        (tmp_path / "shown.yaml").write_text(shown.out)
        assert load(tmp_path / "shown.yaml").fingerprint() == expected

    def test_refusals(self, tmp_path: Path) -> None:
        source = written(tmp_path, SMALL)
        other = tmp_path / "other.json"
        other.write_text("{}")
        empty = tmp_path / "empty.json"
        empty.touch()
        page = tmp_path / "page.md"
        page.write_text("# A page\n\nwith an example\n\nplaceopt: 1\n")
        own = tmp_path / "own.yaml"
        own.write_text("# a comment\nplaceopt: 1\n")
        script = tmp_path / "graph.py"
        script.write_text("import dask")
        plan = tmp_path / "plan.json"
        plan.write_text('{"placeopt_plan": 1}')
        for arguments, said in (
            ((source, "--format", "dnn-partitionin"), "unknown format dnn-partitionin; did you mean dnn-partition"),
            ((source, "--out", source), "which is read; expected another file"),
            ((source, "--out", tmp_path / "no" / "p.yaml"), "cannot write"),
            ((source, "--name", ""), "the name of the problem is empty; expected a name"),
            ((source, "--resolution", "3"), '--resolution: "3" is not a length of a tick'),
            ((source, "--resolution", "3 kB"), "is an amount of memory"),
            ((other,), "looks like no known format; state --format, one of gguf, hf-config"),
            ((script,), "graph.py cannot be imported: it is a program; po.from_torch and po.from_dask import"),
            ((empty,), "empty.json: the file is empty"),
            ((page,), "page.md looks like no known format"),
            ((own,), "own.yaml is a file of placeopt already; expected a file of another tool"),
            ((plan,), "plan.json is a file of placeopt already"),
            (("--format", "dnn-partitioning"), "the file is missing; expected placeopt import FILE"),
            ((tmp_path / "none.json",), "no such file"),
            ((tmp_path / "none.json", "--format", "dnn-partitioning"), "no such file"),
            ((other, "--format", "dnn-partitioning"), "5 problems found"),
        ):
            outcome = run("import", *arguments)
            assert (outcome.code, outcome.out) == (2, "")
            assert said in outcome.err
        assert json.loads(source.read_text()) == json.loads(json.dumps(SMALL))

    def test_formats_are_listed(self) -> None:
        assert list(IMPORTERS) == [line.split()[0] for line in run("import").out.splitlines()]

    def test_a_file_of_two_formats_must_be_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(IMPORTERS, "twin", IMPORTERS["dnn-partitioning"])
        with pytest.raises(UsageError, match="looks like dnn-partitioning and twin; state --format"):
            import_file(written(tmp_path, SMALL))


# Nodes, edges, accelerators, everything on one CPU in ms (the sum of its cpuLatency), and the sum of fpgaLatency.
GOLDEN = {
    "bert24_inference": (32, 55, 5, 924.06, 92.406),
    "gnmt_inference": (96, 122, 6, 1825.63, 182.563),
    "inceptionv3_inference": (326, 363, 12, 3109.69, 310.969),
    "resnet50_inference": (177, 193, 14, 2014.50, 201.450),
}


@pytest.mark.skipif(not REAL, reason=f"no files of the format in {DATA}; PLACEOPT_DATA names the folder above dnn")
class TestRealFiles:
    @pytest.mark.parametrize("name", sorted(GOLDEN))
    def test_what_they_come_to(self, name: str) -> None:
        path = DATA / f"{name}.json"
        if not path.exists():
            pytest.skip(f"{path} is not there")
        problem = compile_spec(import_file(path).document)
        tasks, edges, accelerators, cpu, fpga = GOLDEN[name]
        assert (problem.name, problem.n_tasks, problem.n_edges) == (name, tasks, edges)
        assert problem.n_devices == accelerators + 8
        assert problem.shared.all()
        assert problem.feasible.all()
        serial = Schedule(*(np.zeros(tasks, dtype=np.int64) for _ in range(2)))
        executed = simulate(problem, np.full_like(serial.device, accelerators))
        report = verify(problem, executed)
        assert report.feasible
        assert report.makespan == round(cpu * 10**6)
        assert problem.duration[:, 0].sum() == round(fpga * 10**6)
        raw = json.loads(path.read_text())
        assert sum(item["cpuLatency"] for item in raw["nodes"]) == pytest.approx(cpu)
        costs = {(str(item["sourceId"]), str(item["destId"])): item["cost"] for item in raw["edges"]}
        ids = dict(zip(problem.task_names, (str(item["id"]) for item in raw["nodes"]), strict=True))
        for a, b, payload in zip(problem.edge_source, problem.edge_target, problem.payload, strict=True):
            cost = costs[ids[problem.task_names[a]], ids[problem.task_names[b]]] * 1e6
            assert cost - 1e-3 <= int(problem.transfer(payload, 0, accelerators)) <= cost + 1
            assert 2 * cost - 2e-3 <= int(problem.transfer(payload, 0, 1)) <= 2 * cost + 1
            assert problem.transfer(payload, accelerators, accelerators + 1) == 0
