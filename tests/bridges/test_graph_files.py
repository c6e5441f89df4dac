"""Graphs in DOT, GraphML and JSON: the same graph in each, meanings of attributes, parts of each language, mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from broken import check_import
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import placeopt as po
from placeopt.bridges.importers.graphs.dot import read as read_dot
from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import DocumentError
from placeopt.io.compiler import compile_spec, load
from placeopt.model.problem import Problem

PROBLEMS = Path(__file__).parents[2] / "problems"
FORMATS = ("dot", "graphml", "json-graph", "node-link")


def written(folder: Path, graph: nx.DiGraph, format: str) -> Path:
    """A NetworkX graph in a file of a format."""
    path = folder / f"graph.{ {'dot': 'gv', 'graphml': 'graphml'}.get(format, 'json') }"
    if format == "graphml":
        nx.write_graphml(graph, path)
    elif format == "node-link":
        path.write_text(json.dumps(nx.node_link_data(graph, edges="links"), indent=1))
    elif format == "json-graph":
        nodes = {str(name): {"metadata": data} for name, data in graph.nodes(data=True)}
        edges = [{"source": str(a), "target": str(b), "metadata": data} for a, b, data in graph.edges(data=True)]
        path.write_text(json.dumps({"graph": {"label": graph.name, "nodes": nodes, "edges": edges}}, indent=1))
    else:
        lines = [f"  {json.dumps(str(name))} {dot_list(data)};" for name, data in graph.nodes(data=True)]
        lines += [f"  {json.dumps(str(a))} -> {json.dumps(str(b))} {dot_list(d)}" for a, b, d in graph.edges(data=True)]
        path.write_text("\n".join([f"digraph {json.dumps(graph.name)} {{", *lines, "}"]))
    return path


def dot_list(attributes: dict[str, Any]) -> str:
    return "[" + ", ".join(f'{key}="{value}"' for key, value in attributes.items()) + "]"


def imported(folder: Path, text: str | dict[str, Any], name: str = "graph.gv", **options: Any) -> Imported:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))
    return import_file(path, None, ImportOptions(**options))


def complaints(folder: Path, text: str | dict[str, Any], name: str = "graph.gv") -> list[str]:
    with pytest.raises(DocumentError, match=r"graph\.") as caught:
        imported(folder, text, name)
    return [str(issue).removeprefix(f"{folder / name}:") for issue in caught.value.issues]


def payloads(found: Problem) -> dict[str, int]:
    names = found.task_names
    rows = zip(found.edge_source, found.edge_target, found.payload.tolist(), strict=True)
    return {f"{names[a]}>{names[b]}": payload for a, b, payload in rows}


@pytest.mark.parametrize("format", FORMATS)
class TestEveryFormat:
    def test_times_and_payloads(self, tmp_path: Path, format: str) -> None:
        graph = nx.DiGraph(name="two words")
        graph.add_node("a", Weight=3, memory="4 MiB", op="conv")
        graph.add_node("b c", Weight=2.5, colocate="g")
        graph.add_node(7, Weight=1, colocate="g")
        graph.add_edges_from([("a", "b c", {"size": 1000}), ("a", 7, {"size": 2000}), ("b c", 7, {})])
        found = import_file(written(tmp_path, graph, format))
        problem = compile_spec(found.document)
        assert problem.task_names == ("a", "b c", "7")
        assert problem.duration[:, 0].tolist() == [3 * 10**9, 2_500_000_000, 10**9]
        assert problem.resident.tolist() == [4 * 2**20, 0, 0]
        assert problem.group[1] == problem.group[2] != problem.group[0]
        assert payloads(problem) == {"a>b c": 1000, "a>7": 2000, "b c>7": 0}
        assert int(problem.transfer(1000, 0, 1)) == 1000  # 1 GB/s, and a tick is a nanosecond
        assert found.notes == (
            "the time of a task is the attribute weight of its node",
            "the payload of an edge is its attribute size",
            "1 edge without size",
            "the problem has 4 identical processors; edit `devices`, or state --devices",
            "the file states no bandwidth; devices are joined by 1 GB/s",
        )
        assert found.document["tasks"]["a"]["op"] == "conv"

    def test_communication_costs_are_times(self, tmp_path: Path, format: str) -> None:
        graph = nx.DiGraph()
        graph.add_node("a", cost=3)
        graph.add_node("b", cost=5)
        graph.add_edge("a", "b", cost=0.5)
        problem = compile_spec(import_file(written(tmp_path, graph, format)).document)
        assert problem.resolution * 1000 == 1
        assert problem.duration[:, 0].tolist() == [3000, 5000]
        assert int(problem.transfer(problem.payload[0], 0, 1)) == 500

    def test_work_and_bytes(self, tmp_path: Path, format: str) -> None:
        """As in the DOT files of SimGrid and DAGGEN."""
        graph = nx.DiGraph()
        graph.add_node("a", size=5e9, alpha=0.1)
        graph.add_node("b", size="100 GFLOP")
        graph.add_edge("a", "b", size=10**9)
        found = import_file(written(tmp_path, graph, format))
        problem = compile_spec(found.document)
        assert problem.duration[1, 0] == pytest.approx(20 * problem.duration[0, 0])
        assert found.document["devices"] == {"xeon-core": {"like": "xeon-core", "count": 2}}
        assert any("two CPU cores of the catalogue" in note for note in found.notes)
        network = {"devices": {"x": {"speed": "1 GFLOP/s"}, "y": {"speed": "2 GFLOP/s"}}}
        other = import_file(
            tmp_path / Path(written(tmp_path, graph, format)).name, None, ImportOptions(network=network)
        )
        assert compile_spec(other.document).duration[0].tolist() == [5 * 10**9, 25 * 10**8]

    def test_without_weights(self, tmp_path: Path, format: str) -> None:
        graph = nx.DiGraph([("a", "b"), ("a", "c")])
        found = import_file(written(tmp_path, graph, format), None, ImportOptions(name="n", resolution="1 ms"))
        assert any("every task takes 1 s" in note for note in found.notes)
        problem = compile_spec(found.document)
        assert (problem.name, problem.duration[:, 0].tolist()) == ("n", [1000] * 3)

    def test_wrong_values_all_at_once(self, tmp_path: Path, format: str) -> None:
        graph = nx.DiGraph()
        graph.add_node("a", time=-3, memory="7 ms")
        graph.add_node("b", time="x")
        graph.add_edge("a", "b", payload="1 GHz")
        path = written(tmp_path, graph, format)
        error = check_import(path, path.read_bytes())
        assert isinstance(error, DocumentError)
        assert [issue.message.split(";")[0] for issue in error.issues] == [
            'memory: "7 ms" is a time', MINUS[format], 'time: "x" is not a time',
            'payload: "1 GHz" has an unknown unit GHz',
        ]  # fmt: skip
        assert all(issue.line is not None for issue in error.issues)

    def test_a_cycle_is_named(self, tmp_path: Path, format: str) -> None:
        path = written(tmp_path, nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b")]), format)
        with pytest.raises(DocumentError, match="these tasks form a cycle: b -> c -> b") as caught:
            import_file(path)
        assert caught.value.issues[0].line is not None


MINUS = {
    "dot": 'time: "-3" is negative', "graphml": 'time: "-3" is negative',
    "json-graph": "time: -3 is negative", "node-link": "time: -3 is negative",
}  # fmt: skip


class TestDot:
    def test_the_language(self, tmp_path: Path) -> None:
        text = r"""/* a comment */ strict digraph "my \"g\"" {
  rankdir=LR; node [time=3 shape=box]; edge [cost="2"]; // another
# and another
  a [label="A\nx", time=5,]; "b c" ; a -> "b c" -> d [cost=7];
  subgraph cluster_0 { label=x; node [time=9]; e; f; e -> f }
  a -> {g h}; {g h} -> i:p1:n; "q:r":x -> i a -> a [cost=1][color=red]
  "multi\
line" + "two" -> -4.5 -> subgraph cluster_0; ü [label=<b<i>x</i>>, time=.5]
  a -> g [cost=4]; GRAPH [size="3,3"]
}"""
        path = tmp_path / "graph.gv"
        path.write_text(text.replace("a -> a [cost=1][color=red]", ""))
        found = compile_spec(read_dot(path, ImportOptions()).document)
        assert found.name == 'my "g"'
        times = dict(zip(found.task_names, (found.duration[:, 0] / 1000).tolist(), strict=True))
        assert times == {
            "a": 5, "b c": 3, "d": 3, "e": 9, "f": 9, "g": 3, "h": 3, "i": 3, "q:r": 3, "multilinetwo": 3, "-4.5": 3,
            "ü": 0.5,
        }  # fmt: skip
        assert {edge: cost // 1000 for edge, cost in payloads(found).items()} == {
            "a>b c": 7, "b c>d": 7, "e>f": 2, "a>g": 4, "a>h": 2, "g>i": 2, "h>i": 2, "q:r>i": 2,
            "multilinetwo>-4.5": 2, "-4.5>e": 2, "-4.5>f": 2,
        }  # fmt: skip
        assert "a task cannot come after itself" in complaints(tmp_path, text)[0]

    def test_parallel_edges_add_up_unless_strict(self, tmp_path: Path) -> None:
        for strict, expected in (("", 5), ("strict", 3)):
            found = imported(tmp_path, f"{strict} digraph {{ a -> b [bytes=2]; a -> b [bytes=3] }}")
            assert payloads(compile_spec(found.document)) == {"a>b": expected}
            assert any("parallel edge" in note for note in found.notes) == (not strict)

    def test_labels_are_costs_if_they_are_numbers(self, tmp_path: Path) -> None:
        for label, expected in (("4", 4), ("yes", 0)):
            found = imported(tmp_path, f"digraph {{ a -> b [label={label}] b -> c [label=3] }}")
            assert payloads(compile_spec(found.document))["a>b"] == expected

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("graph { a -- b }", "1:1: is an undirected graph; expected a digraph"),
            ("digraph {\n a -- b }", "2:4: -- joins nodes of undirected graphs; expected ->"),
            ("digraph {\n a -> }", "2:7: expected a name, got }"),
            ("digraph { a [time=] }", "1:19: expected a name, got ]"),
            ('digraph { a [time="3 }', "1:19: unexpected a text without its end"),
            ("digraph { a [label=<b ]", "1:20: unexpected < without its >"),
            ("digraph { a ", "1:13: expected a name, got the end of the file"),
            ("digraph { a } digraph { b }", "1:15: expected the end of the file; only files with one graph are"),
            ("digraph { a -> subgraph x }", '1:25: no subgraph has the name "x"'),
            ("digraph { ? }", "1:11: unexpected ?"),
            ("digraph " + "{" * 200, "1:109: has more than 100 levels of subgraphs"),
        ],
    )
    def test_syntax_errors(self, tmp_path: Path, text: str, said: str) -> None:
        (found,) = complaints(tmp_path, text)
        assert found.startswith(said)

    def test_a_short_file_with_too_many_edges(self, tmp_path: Path) -> None:
        many = " ".join(f"a{k}" for k in range(2100))
        (found,) = complaints(tmp_path, f"digraph {{ {{ {many} }} -> {{ {many.replace('a', 'b')} }} }}")
        assert "has more than 4,194,304 edges" in found

    @pytest.mark.parametrize("time", ["1" + "0" * 60 + ".5", "9" * 4000 + ".5", "1e70"])
    def test_times_out_of_range(self, tmp_path: Path, time: str) -> None:
        (found,) = complaints(tmp_path, f'digraph {{ a [time="{time}"] }}')
        assert "out of range" in found

    @pytest.mark.parametrize("statement", ["strict", "again"])
    def test_short_files_that_name_large_subgraphs_often(self, tmp_path: Path, statement: str) -> None:
        nodes = " ".join(f"a{k}" for k in range(1000))
        text = {
            "strict": f"strict digraph {{ subgraph s {{ {nodes} }} {'subgraph s -> subgraph s ' * 1000} }}",
            "again": f"digraph {{ subgraph s {{ {nodes} }} {'subgraph s ' * 100_000} }}",
        }
        (found,) = complaints(tmp_path, text[statement])
        assert "more than 4,194,304 edges" in found

    def test_texts_of_many_parts(self, tmp_path: Path) -> None:
        parts = "+".join(['"x"'] * 100_000)
        found = imported(tmp_path, f"digraph {{ a [op={parts}] }}")
        assert found.document["tasks"]["a"]["op"] == "x" * 100_000
        assert complaints(tmp_path, 'digraph { a [op="x"+] }') == ["1:21: expected a name, got ]"]

    @pytest.mark.filterwarnings("ignore")  # of pydot
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_equals_pydot(self, tmp_path: Path, data: st.DataObject) -> None:
        pydot = pytest.importorskip("pydot", reason="pydot is not installed: pip install pydot")
        name = st.sampled_from(["a", "b_1", '"c d"', '"e\\"f"', "4", "-.5", "0.25", '"ü;{"', "g:p", '"x:y":n'])
        statement = st.one_of(
            name, st.lists(name, min_size=2, max_size=3).map(" -> ".join),
            st.tuples(name, st.sampled_from(["[x=1]", '[x="y z",w=2]', "[x=1,w=<<b>i</b>>]"])).map(" ".join),
            st.sampled_from(["rankdir=LR", "// note\n", "/* note */", "node [shape=box]"]),
        )  # fmt: skip
        text = "digraph g {\n" + "\n".join(data.draw(st.lists(statement, max_size=6))) + "\n}"
        parsed = pydot.graph_from_dot_data(text.replace("-.5", '"-.5"'))  # pydot rejects negative numerals
        assert parsed is not None
        (theirs,) = parsed
        path = tmp_path / "graph.gv"
        path.write_text(text)
        from placeopt.bridges.importers.graphs.dot import _Parser

        ours = _Parser(text, str(path)).graph()

        def plain(end: str) -> str:
            body, _, port = end.rpartition(":")
            end = body if body and not port.endswith('"') else end
            return end.strip('"').replace('\\"', '"')

        edges = [(plain(edge.get_source()), plain(edge.get_destination())) for edge in theirs.get_edges()]
        assert sorted((edge.source, edge.target) for edge in ours.edges) == sorted(edges)
        stated = {plain(node.get_name()) for node in theirs.get_nodes()} - {"node", "edge", "graph"}
        assert set(ours.nodes) == stated | {end for edge in edges for end in edge}


GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="time" attr.type="double"><default>2</default></key>
  <key id="d1" for="edge" attr.name="cost" attr.type="int"/>
  <graph edgedefault="directed">
    <node id="a"><data key="d0">3.5</data><port name="p"/></node>
    <node id="group"><graph edgedefault="directed">
      <node id="b"><desc>words</desc></node>
    </graph></node>
    <edge source="a" target="b" sourceport="p"><data key="d1">4</data></edge>
  </graph>
</graphml>
"""


class TestGraphml:
    def test_defaults_groups_and_ports(self, tmp_path: Path) -> None:
        found = compile_spec(imported(tmp_path, GRAPHML, "graph.xml").document)
        assert found.task_names == ("a", "b")
        assert found.duration[:, 0].tolist() == [3500, 2000]
        assert payloads(found) == {"a>b": 4000}

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            (">3.5<", ">x<", '6: time: "x" is not a number (double)'),
            ('key="d1">4', 'key="d9">4', '10: no key has the id "d9"'),
            ('target="b"', 'target="z"', '10: no node has the id "z"'),
            ('target="b"', "", "10: the edge has no source or no target"),
            ('id="b"', 'id="a"', '8: node "a" is stated twice, first in line 6'),
            ('<node id="b"', "<node", "8: the id of the node is missing"),
            ('"int"', '"blob"', '4: "blob" is not a type of attributes; expected boolean, double, float, int'),
            ('target="b"', 'target="b" directed="false"', "10: is an undirected edge; expected a directed graph"),
            ("<desc>words</desc>", "<hyperedge/>", "8: is a hyperedge; expected edges between two nodes"),
            ("</graphml>", '<graph edgedefault="directed"/></graphml>', "12: is another graph; only files with"),
            ("<desc>", "<desk>", "8:33: is not valid XML: mismatched tag"),
            ('<?xml version="1.0"?>', '<?xml version="1.0" encoding="x"?>', " is not valid XML: unknown encoding"),
        ],
    )  # fmt: skip
    def test_mistakes(self, tmp_path: Path, old: str, new: str, said: str) -> None:
        assert any(text.startswith(said) for text in complaints(tmp_path, GRAPHML.replace(old, new), "graph.xml"))

    def test_entities_do_not_expand(self, tmp_path: Path) -> None:
        levels = "".join(f'<!ENTITY e{k + 1} "{f"&e{k};" * 10}">' for k in range(9))
        bomb = f'<!DOCTYPE graphml [<!ENTITY e0 "ha">{levels}]>'
        (found,) = complaints(
            tmp_path, GRAPHML.replace("<graphml", bomb + "<graphml").replace("words", "&e9;"), "graph.xml"
        )
        assert found == "2: has a document type (<!DOCTYPE ...>), which is not supported; remove it"

    def test_other_documents(self, tmp_path: Path) -> None:
        for text, said in (
            ("<x/>", '1: begins with the element "x"; expected graphml'),
            ("<graphml/>", " has no graph; expected a graph element"),
            ("<graphml>" * 200, "1: is nested too deeply, more than 100 levels"),
            ("", "1:1: is not valid XML: no element found"),
        ):
            assert complaints(tmp_path, text, "graph.graphml") == [said]


class TestJson:
    @pytest.mark.parametrize("name", ["inception.yaml", "edge-perception.yaml", "sensor-fusion.yaml"])
    @pytest.mark.parametrize("edges", ["edges", "links"])
    def test_our_own_graphs_are_the_same_problem(self, tmp_path: Path, name: str, edges: str) -> None:
        problem = load(PROBLEMS / name)
        data = nx.node_link_data(po.to_networkx(problem), edges=edges)
        again = imported(tmp_path, data, "graph.json")
        assert compile_spec(again.document).fingerprint() == problem.fingerprint()
        assert again.notes == ()

    def test_our_own_graphs_on_other_devices(self, tmp_path: Path) -> None:
        data = nx.node_link_data(po.to_networkx(load(PROBLEMS / "five-node.yaml")), edges="edges")
        wrong = {**data, "nodes": [{**data["nodes"][0], "time": -1}, *data["nodes"][1:]]}
        (found,) = complaints(tmp_path, wrong, "graph.json")
        assert ": nodes[0].time: -1 is negative" in found
        data["graph"]["placeopt"]["devices"]["gpu"]["memory"] = "3 s"
        (found,) = complaints(tmp_path, data, "graph.json")
        assert ': graph.placeopt.devices.gpu.memory: "3 s" is a time' in found
        with pytest.raises(DocumentError, match=r"tasks|time"):
            imported(tmp_path, data, "graph.json", network={"devices": {"other": {}}})

    def test_names_are_texts_of_ids(self, tmp_path: Path) -> None:
        graph = nx.DiGraph([(("x", 1), 2.5), (2.5, 3)])
        found = imported(tmp_path, nx.node_link_data(graph, edges="edges"), "graph.json")
        assert list(found.document["tasks"]) == ["('x', 1)", "2.5", "3"]

    def test_json_graph_format_versions(self, tmp_path: Path) -> None:
        nodes = [{"id": "a", "metadata": {"time": 2}}, {"id": "b", "metadata": {"time": 3}}]
        graph = {"nodes": nodes, "edges": [{"source": "a", "target": "b", "label": "7"}]}
        for data in ({"graph": graph}, {"graphs": [graph]}):
            found = compile_spec(imported(tmp_path, data, "graph.json").document)
            assert (found.duration[:, 0].tolist(), payloads(found)) == ([2, 3], {"a>b": 7})

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            ({"graph": {"edges": [], "x": {"nodes": 1}}}, "graph: nodes is missing; expected an object or a list"),
            ({"graphs": [{"nodes": {}}, {"nodes": {}}]}, "graphs: contains 2 graphs; only files with one graph"),
            ({"graph": {"nodes": {"a": 3}}}, "graph.nodes.a: expected an object, got 3"),
            ({"graph": {"nodes": [{"id": "a"}, {"id": "a"}]}}, 'graph.nodes[1]: node "a" is stated twice'),
            ({"graph": {"nodes": [{}]}}, "graph.nodes[0]: id is missing; expected a name"),
            ({"graph": {"nodes": {"a": {}}, "edges": [{"source": "a"}]}}, "graph.edges[0]: target is missing"),
            ({"graph": {"nodes": {"a": {}}, "edges": [{"source": "a", "target": "b"}]}}, 'no node has the id "b"'),
            ({"graph": {"nodes": {}, "directed": False, "edges": [{"source": "a", "target": "b"}]}}, "undirected edge"),
            ({"graph": {"nodes": {}, "hyperedges": [{}]}}, "graph.hyperedges: hyperedges are not supported"),
            ({"directed": False, "nodes": []}, "directed: directed is not true; expected a directed graph"),
            ({"directed": True, "nodes": [{"id": None}]}, "nodes[0]: id is missing; expected a name"),
            ({"directed": True, "nodes": [{"id": 1}, {"id": "1"}]}, 'nodes[1].id: node "1" is stated twice'),
            ({"directed": True, "nodes": [{"id": 1, "time": [3]}]}, "nodes[0]: time: a list is not a time"),
            ({"directed": True, "nodes": {}}, "nodes: expected a list, got a mapping"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, data: dict[str, Any], said: str) -> None:
        found = complaints(tmp_path, data, "graph.json")
        assert any(said in text for text in found), found
