"""Problems as YAML and JSON texts and as NetworkX graphs, and back."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pytest
from brute_force import small_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt.errors import SpecError, UsageError
from placeopt.io.compiler import compile_document, load
from placeopt.io.document import parse_document
from placeopt.io.formats.documents import MODELINE, to_json, to_yaml
from placeopt.io.formats.graphs import from_networkx, to_networkx
from placeopt.model.problem import UNLIMITED, Problem

PROBLEMS = sorted((Path(__file__).parents[2] / "problems").glob("*.yaml"))

DOCUMENT: dict[str, Any] = {
    "placeopt": 1,
    "name": "two: words",
    "description": "A line\nand another, with 'quotes' and \"more\".",
    "resolution": "1 us",
    "best_known": {"objective": 7.5, "bound": None},
    "operations": {"conv": {"cpu": "4 us", "*": 3}, "010": 5},
    "devices": {"cpu": {"memory": "8 GiB", "features": ["a b", "no"]}, "gpu 1": {"count": 2, "type": "1.50"}},
    "links": {
        "default": {"bandwidth": "12 GB/s"},
        "overrides": [{"between": ["cpu", "1.50"], "latency": 2}, {"from": "cpu", "to": "*", "latency": "1e1 us"}],
    },
    "tasks": {"a/1": {"op": "conv", "output": 100}, "yes": {"op": "010", "after": {"a/1": None}}, "": {}},
    "placement": {"a/1": "gpu 10", "yes": "cpu"},
    "objective": ["makespan", {"communication": 0.5}],
}


class TestTexts:
    def test_yaml_has_an_entry_a_line(self) -> None:
        assert (
            to_yaml(DOCUMENT, schema="s.json")
            == MODELINE.format(schema="s.json")
            + r"""placeopt: 1
name: "two: words"
description: "A line\x0aand another, with 'quotes' and \"more\"."
resolution: 1 us
best_known: {objective: 7.5, bound: null}
operations:
  conv: {cpu: 4 us, "*": 3}
  "010": 5
devices:
  cpu: {memory: 8 GiB, features: [a b, "no"]}
  "gpu 1": {count: 2, type: "1.50"}
links:
  default: {bandwidth: 12 GB/s}
  overrides:
    - {between: [cpu, "1.50"], latency: 2}
    - {from: cpu, to: "*", latency: "1e1 us"}
tasks:
  a/1: {op: conv, output: 100}
  "yes": {op: "010", after: {a/1: null}}
  "": {}
placement:
  a/1: "gpu 10"
  "yes": cpu
objective: [makespan, {communication: 0.5}]
"""
        )

    def test_json_has_an_entry_a_line(self) -> None:
        text = to_json(DOCUMENT)
        assert text.startswith('{\n "placeopt": 1,\n "name": "two: words",\n')
        assert '\n  "conv": {"cpu": "4 us", "*": 3},\n  "010": 5\n },\n' in text
        assert text.endswith("}\n")

    def test_both_are_read_back(self) -> None:
        assert parse_document(to_yaml(DOCUMENT)).data == DOCUMENT
        assert parse_document(to_json(DOCUMENT), json_format=True).data == DOCUMENT

    @pytest.mark.parametrize(
        "document",
        [
            {}, {"tasks": {}}, {"links": {}}, {"links": {"overrides": []}}, {"links": {"default": {}, "overrides": []}},
            {"devices": {"a": {}}, "tasks": {"a": None}}, {"operations": {}, "tasks": {"n" * 2000: {"n" * 3000: 1}}},
            {"x": [1e16, 1e-7, -1.5, 10**30, math.inf, -math.inf, True, None, [], {}]}, {"n" * 1500: {"links": 1}},
        ],
    )  # fmt: skip
    def test_odd_documents_are_read_back(self, document: dict[str, Any]) -> None:
        text = to_yaml(document)
        assert (parse_document(text).data or {}) == document
        assert parse_document(to_json(document), json_format=True).data == document

    def test_what_is_not_a_number_is_read_back(self) -> None:
        assert math.isnan(parse_document(to_yaml({"a": math.nan})).data["a"])

    texts = st.text(st.characters(codec="utf-8"), max_size=12)
    odd = st.sampled_from(["yes", "010", "1e5", "1.50", "~", "<<", "1:30", ".inf", "a: b", "- a", "#", "5 us", " "])
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | odd,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    )

    @settings(deadline=None, max_examples=300)
    @given(st.sampled_from(["tasks", "devices", "links", "name", "x"]), values, values)
    def test_anything_is_read_back(self, section: str, value: Any, other: Any) -> None:
        document = {section: {"a": value, "overrides": [other]}}
        assert parse_document(to_yaml(document)).data == document

    @pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
    def test_the_problem_files_compile_to_the_same_problem(self, path: Path) -> None:
        data = parse_document(path.read_text(encoding="utf-8")).data
        fingerprint = load(path).fingerprint()
        for document in (parse_document(to_yaml(data)), parse_document(to_json(data), json_format=True)):
            assert compile_document(document, folder=path.parent).fingerprint() == fingerprint


class TestGraphs:
    def graph(self) -> nx.DiGraph[Any]:
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_node("a", time={"cpu": 3, "gpu": 1}, output=100)
        graph.add_node("b", flops=2000, memory={"resident": 7, "scratch": 2}, devices=["gpu"], colocate="g")
        graph.add_node(7, op="conv", colocate="g", separate=["s"])
        graph.add_node("d", time=np.int64(4), separate=["s"])
        graph.add_edge("a", "b")
        graph.add_edge("a", 7, payload=30)
        graph.add_edge(7, "d")
        return graph

    DEVICES: ClassVar[dict[str, Any]] = {"cpu": {"memory": 1000}, "gpu": {"count": 2, "speed": 1000}}
    HEADER: ClassVar[dict[str, Any]] = {
        "name": "g", "operations": {"conv": 5}, "objective": ["makespan", "communication"], "contention": "port",
        "memory_model": "peak", "resolution": "1 us",
    }  # fmt: skip

    def test_nodes_are_tasks_and_edges_carry_payloads(self) -> None:
        problem = from_networkx(self.graph(), self.DEVICES, links={"default": {"bandwidth": 10}}, **self.HEADER)
        assert problem.task_names == ("a", "b", "7", "d")
        assert problem.device_names == ("cpu", "gpu0", "gpu1")
        assert problem.duration.tolist() == [[3, 1, 1], [0, 2, 2], [5, 5, 5], [4, 4, 4]]
        assert problem.payload.tolist() == [100, 30, 0]
        assert problem.shared.tolist() == [True, False, True]
        assert problem.group.tolist() == [0, 1, 1, 2]
        assert problem.separation.tolist() == [[2, 3]]
        assert (problem.name, problem.resolution) == ("g", Fraction(1, 10**6))
        assert (problem.contention, problem.memory_model) == ("port", "peak")
        assert problem.transfer(100, 0, 1) == 10

    def test_there_and_back(self) -> None:
        links = {"default": {"bandwidth": 10, "latency": 2}}
        header = {key: value for key, value in self.HEADER.items() if key != "operations"}
        problem = from_networkx(self.graph(), self.DEVICES, links=links, **self.HEADER)
        graph = to_networkx(problem)
        assert (graph.graph["name"], set(graph.graph)) == ("g", {"name", "placeopt"})
        assert graph.nodes["a"] == {
            "time": {"cpu": 3, "gpu0": 1, "gpu1": 1},
            "memory": {"resident": 0, "output": 100, "scratch": 0},
            "output": 100,
        }  # fmt: skip
        assert graph.nodes["7"]["colocate"] == graph.nodes["b"]["colocate"]
        assert dict(graph.edges) == {("a", "b"): {}, ("a", "7"): {"payload": 30}, ("7", "d"): {}}
        again = from_networkx(graph, self.DEVICES, links=links, **header)
        assert again.fingerprint() == problem.fingerprint()

    @pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
    def test_the_problem_files_there_and_back(self, path: Path) -> None:
        data = parse_document(path.read_text(encoding="utf-8")).data
        problem = load(path)
        if problem.resources is not None:  # the graph states cores and pools as resources, devices would again
            return
        gone = ("placeopt", "devices", "links", "tasks", "graph", "operations", "units")
        header = {key: data[key] for key in data if key not in gone}
        if "current" in header:  # what moving costs stands in the graph
            header["current"] = {**header["current"], "placement": {}}
        # A graph's numbers are ticks and bytes; devices and links keep their units.
        again = from_networkx(to_networkx(problem), data["devices"], links=data.get("links"), **header)
        assert again.fingerprint() == problem.fingerprint()

    @pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
    def test_a_graph_has_all_of_its_problem(self, path: Path) -> None:
        problem = load(path)
        data = json.loads(json.dumps(nx.node_link_data(to_networkx(problem))))
        again = from_networkx(nx.node_link_graph(data))
        assert again.fingerprint() == problem.fingerprint()
        assert (again.name, again.description) == (problem.name, problem.description)
        assert again.device_types == problem.device_types
        assert again.forward.tolist() == problem.forward.tolist()

    def test_random_problems_there_and_back(self) -> None:
        ratios = ("byte_ticks", "power", "byte_energy")
        parts = {f"{name}{end}" for name in ratios for end in ("_num", "_den")} | {"name", "objective"}
        kept = 0
        for seed in range(300):
            problem = small_problem(np.random.default_rng(seed), times=seed % 2 == 1)
            try:
                again = from_networkx(to_networkx(problem))
            except SpecError:  # made in code, and a contradiction that the compiler sees by itself
                continue
            kept += 1
            for field in fields(problem):
                if field.name not in parts:
                    assert np.array_equal(getattr(problem, field.name), getattr(again, field.name)), (seed, field.name)
            assert str(again.objective) == str(problem.objective)
            for name in ratios:  # these need not be in lowest terms, and mean nothing on the diagonal
                one, other = (self.fractions(each, name) for each in (problem, again))
                assert one == other, (seed, name)
        assert kept > 200

    def fractions(self, problem: Problem, name: str) -> list[Fraction]:
        num, den = getattr(problem, f"{name}_num"), getattr(problem, f"{name}_den")
        places = [place for place in np.ndindex(num.shape) if len(set(place)) == len(place)]
        return [Fraction(int(num[place]), int(den[place])) for place in places]

    def test_what_is_given_takes_the_place_of_what_a_graph_has(self) -> None:
        links = {"default": {"bandwidth": 10, "latency": 2}}
        graph = to_networkx(from_networkx(self.graph(), self.DEVICES, links=links, **self.HEADER))
        changed = from_networkx(graph, links={"default": {"latency": 7}}, objective="communication", name="h")
        assert (changed.name, str(changed.objective), changed.contention) == ("h", "communication", "port")
        assert changed.transfer(100, 0, 1) == 7
        alone = from_networkx(graph, {"cpu": None, "gpu0": None, "gpu1": None})
        assert (alone.name, str(alone.objective), alone.contention) == ("", "makespan", "none")

    def test_a_graph_without_devices(self) -> None:
        for kept in ({}, {"placeopt": 1}, {"placeopt": {"links": {}}}):
            graph: nx.DiGraph[Any] = nx.DiGraph([("a", "b")], **kept)
            with pytest.raises(UsageError, match=r"^this graph has no devices, unlike"):
                from_networkx(graph)

    def test_times_there_and_back(self) -> None:
        graph = self.graph()
        graph.nodes["a"].update(release="5 us", deadline=np.int64(30))
        graph.nodes["b"].update(release=0, deadline="40.5 us")
        graph.nodes[7].update(release="6.5 us")
        problem = from_networkx(graph, self.DEVICES, placement={"a": "gpu1"}, **self.HEADER)
        assert problem.release.tolist() == [5, 0, 7, 0]
        assert problem.deadline.tolist() == [30, 40, UNLIMITED, UNLIMITED]
        back = to_networkx(problem)
        assert [(name, dict(back.nodes[name])) for name in ("a", "7")] == [
            (
                "a",
                {
                    "time": {"gpu1": 1},
                    "memory": {"resident": 0, "output": 100, "scratch": 0},
                    "release": 5,
                    "deadline": 30,
                    "output": 100,
                },
            ),
            (
                "7",
                {
                    "time": {"cpu": 5, "gpu0": 5, "gpu1": 5},
                    "memory": {"resident": 0, "output": 0, "scratch": 0},
                    "release": 7,
                    "colocate": ["group 1"],
                    "separate": ["7 and d"],
                    "output": 0,
                },
            ),
        ]
        assert "release" not in back.nodes["b"]
        header = {key: value for key, value in self.HEADER.items() if key != "operations"}
        assert from_networkx(back, self.DEVICES, **header).fingerprint() == problem.fingerprint()

    def test_graphs_that_are_none(self) -> None:
        message = r"^from_networkx takes a directed graph without parallel edges \(networkx\.DiGraph\)$"
        for kind in (nx.Graph, nx.MultiDiGraph):
            with pytest.raises(UsageError, match=message):
                from_networkx(kind([(1, 2)]), self.DEVICES)
        for other in (None, {"a": ["b"]}, "graph"):
            with pytest.raises(UsageError, match=message):
                from_networkx(other, self.DEVICES)  # type: ignore[arg-type]

    def test_names_that_clash(self) -> None:
        graph: nx.DiGraph[Any] = nx.DiGraph([(1, "1")])
        with pytest.raises(UsageError, match=r'^two nodes of the graph are called "1"$'):
            from_networkx(graph, self.DEVICES)

    def test_what_edges_and_nodes_already_say(self) -> None:
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_node("a", time=1, after="b")
        with pytest.raises(UsageError, match=r'^node "a" has the attribute after; expected edges instead$'):
            from_networkx(graph, self.DEVICES)
        edges: nx.DiGraph[Any] = nx.DiGraph()
        edges.add_edge("a", "b", paylod=3)
        with pytest.raises(UsageError, match=r'^the edge from "a" to "b" has "paylod"; did you mean payload\?$'):
            from_networkx(edges, self.DEVICES)
        with pytest.raises(
            UsageError, match=r"^from_networkx takes the tasks from the graph, not from tasks or graph$"
        ):
            from_networkx(nx.DiGraph(), self.DEVICES, tasks={})

    def test_mistakes_inside(self) -> None:
        graph = self.graph()
        graph.nodes["a"]["colour"] = "red"
        graph.edges["a", 7]["payload"] = "30 s"
        with pytest.raises(
            SpecError, match=r"^tasks\.a\.colour: unknown key; .*\ntasks\.7\.after\.a: \"30 s\" is a time"
        ):
            from_networkx(graph, self.DEVICES, **self.HEADER)

    def test_cycles(self) -> None:
        graph: nx.DiGraph[Any] = nx.DiGraph([("a", "b"), ("b", "a")])
        nx.set_node_attributes(graph, 1, "time")
        with pytest.raises(SpecError, match=r"^tasks\.a\.after\.b: these tasks form a cycle: a -> b -> a$"):
            from_networkx(graph, self.DEVICES)

    def test_no_nodes(self) -> None:
        problem = from_networkx(nx.DiGraph(), {"d": None})
        assert problem.n_tasks == 0
        assert len(to_networkx(problem)) == 0
