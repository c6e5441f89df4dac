"""Broken files of graphs and workflows: an import succeeds with a valid problem, or names the file and the places."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest
from broken import broken_files, check_import

import placeopt as po
from placeopt.bridges.importers.registry import IMPORTERS
from placeopt.errors import DocumentError
from placeopt.io.compiler import load

PROBLEMS = Path(__file__).parents[2] / "problems"

STG = b"""# costs and processors
3 2
0 15 0
1 14 1
    0 12.5
2 16 2
    0 14
    1 3
"""
RCP = b"""6 2
3 1
0 0 0 3 2 3 4
4 2 0 1 5
3 2 1 1 6
5 0 1 1 6
5 1
1 1 6
0 0 0 0
"""
PSPLIB = b"""projects                      :  1
jobs (incl. supersource/sink ):  4
************************************************************************
PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      2      0       9        3        9
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        1          1           4
   3        1          1           4
   4        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     4       2    0
  3      1     3       2    1
  4      1     0       0    0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1  R 2
    3    1
************************************************************************
"""
FJSP = b"""3 2 1.5
2 2 1 4 2 5 1 2 3
1 1 1 6
2 1 2 7 2 2 3 1 2.5
"""
WFFORMAT = json.dumps(
    {
        "name": "two",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    {
                        "name": "a",
                        "id": "A",
                        "parents": [],
                        "children": ["B"],
                        "inputFiles": ["i"],
                        "outputFiles": ["f"],
                    },
                    {"name": "b", "id": "B", "parents": ["A"], "children": [], "inputFiles": ["f"], "outputFiles": []},
                ],
                "files": [{"id": "i", "sizeInBytes": 10}, {"id": "f", "sizeInBytes": 2000}],
            },
            "execution": {
                "tasks": [
                    {"id": "A", "runtimeInSeconds": 1.5, "machines": ["n1"], "coreCount": 2},
                    {"id": "B", "runtimeInSeconds": 2, "machines": ["n2"], "memoryInBytes": 4096},
                ],
                "machines": [
                    {"nodeName": "n1", "memoryInBytes": 8192, "cpu": {"coreCount": 2, "speedInMHz": 2400}},
                    {"nodeName": "n2", "cpu": {"speedInMHz": 3000}},
                ],
            },
        },
    },
    indent=1,
).encode()
DOT = rb"""digraph "g" {
  node [time=3 shape=box];
  a [label="A\nx", time=5]; "b c" -> d [cost=7];
  subgraph cluster_0 { label=<b<i>x</i>>; e; f; e -> f }
  a -> {g h} -> subgraph cluster_0 /* and */ // a port
  "q\"r":x -> i [cost="3"];
}
"""
GRAPHML = b"""<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="time" attr.type="double"><default>2</default></key>
  <key id="d1" for="edge" attr.name="size" attr.type="int" />
  <graph edgedefault="directed">
    <node id="a"><data key="d0">3.5</data></node>
    <node id="b" />
    <edge source="a" target="b"><data key="d1">4</data></edge>
  </graph>
</graphml>
"""
JSON_GRAPH = json.dumps(
    {
        "graph": {
            "label": "g",
            "nodes": {"a": {"metadata": {"time": 3, "memory": "4 MiB"}}, "b": {"metadata": {"time": "2 ms"}}, "c": {}},
            "edges": [
                {"source": "a", "target": "b", "metadata": {"bytes": 100}},
                {"source": "b", "target": "c", "label": "x"},
            ],
        }
    },
    indent=1,
).encode()


def own() -> bytes:
    graph = po.to_networkx(load(PROBLEMS / "five-node.yaml"))
    return json.dumps(nx.node_link_data(graph, edges="edges"), indent=1).encode()


DNN = json.dumps(
    {
        "maxSizePerFPGA": 25.0,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": [
            {"id": k, "supportedOnFpga": 1, "cpuLatency": 5, "fpgaLatency": 0.5, "size": 10, "name": f"n{k}"}
            for k in range(3)
        ],
        "edges": [{"sourceId": 0, "destId": k, "cost": 2.5} for k in (1, 2)],
    },
    indent=1,
).encode()

VALID = {
    "dnn-partitioning": DNN,
    "psplib, Patterson": RCP,
    "psplib": PSPLIB,
    "fjsp": FJSP,
    "stg": STG,
    "wfformat": WFFORMAT,
    "dot": DOT,
    "graphml": GRAPHML,
    "json-graph": JSON_GRAPH,
    "json-graph, our own": own(),
}


@pytest.mark.parametrize("kind", VALID)
def test_broken_files_are_read_or_explained(kind: str, tmp_path: Path) -> None:
    format = kind.partition(",")[0]
    assert not isinstance(check_import(tmp_path / "valid", VALID[kind], format), Exception)
    outcomes = [
        check_import(tmp_path / f"{name}.txt", content, format) for name, content in broken_files(VALID[kind], 100)
    ]
    failed = [outcome for outcome in outcomes if isinstance(outcome, DocumentError)]
    assert len(failed) >= 25, "the mutations break too few files"
    placed = [any(issue.line is not None for issue in error.issues) for error in failed]
    assert sum(placed) >= 0.7 * len(failed)  # the others are no text, or empty


@pytest.mark.parametrize("kind", VALID)
def test_valid_files_are_recognised(kind: str, tmp_path: Path) -> None:
    for name in ("file", "file.txt"):
        assert not isinstance(check_import(tmp_path / name, VALID[kind]), Exception)


@pytest.mark.parametrize("format", IMPORTERS)
@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 100, b"\xff\xfe\x00a", b"[" * 100_000, b"{" * 100_000, b'{"a":' * 100_000, b"<a>" * 100_000,
     b"1 " * 10**5,
     b"null", b"-1", b"NaN", b'"text"', b"<!-- ", b"\n" * 10_000, b" " * 100_000],
    ids=lambda content: f"{content[:8]!r}-{len(content)}",
)  # fmt: skip
def test_other_files_are_explained(format: str, content: bytes, tmp_path: Path) -> None:
    if format == "torch-export":
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'placeopt[torch]'")
    assert isinstance(check_import(tmp_path / "file.json", content, format), Exception)
