"""Broken .pt2 files: located errors, never a traceback."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from broken import broken_files, check_import

import placeopt as po
from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.registry import import_file

pytest.importorskip("torch", reason="PyTorch models need torch: pip install 'placeopt[torch]'")

import sympy
import torch
from torch.utils._sympy import functions
from torch_models import Mlp

from placeopt.bridges.pytorch.archives import expressions, is_safe

COUNT = 50
GRAPH = "models/model.json"


@pytest.fixture(scope="module")
def valid() -> bytes:
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(Mlp(4, 8, 2), (torch.zeros(1, 4),), strict=False), buffer)
    return buffer.getvalue()


def members(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as found:
        return {name: found.read(name) for name in found.namelist()}


def packed(contents: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def graph_of(contents: dict[str, bytes]) -> str:
    return next(name for name in contents if name.endswith(GRAPH))


def test_broken_archives(valid: bytes, tmp_path: Path) -> None:
    failed = [
        check_import(tmp_path / f"{name}.pt2", content, "torch-export") for name, content in broken_files(valid, COUNT)
    ]
    assert sum(isinstance(each, po.DocumentError) for each in failed) > COUNT // 4


def test_broken_graphs(valid: bytes, tmp_path: Path) -> None:
    contents = members(valid)
    graph = graph_of(contents)
    failed = [
        check_import(tmp_path / f"{name}.pt2", packed(contents | {graph: content}), "torch-export")
        for name, content in broken_files(contents[graph], COUNT)
    ]
    errors = [each for each in failed if isinstance(each, po.DocumentError)]
    assert len(errors) > COUNT // 2
    assert any(GRAPH in str(each) for each in errors)


def variants(contents: dict[str, bytes]) -> Iterator[tuple[dict[str, bytes], str]]:
    graph = graph_of(contents)
    folder = graph[: -len(GRAPH)]
    mark = f"{folder}archive_format"
    weights = f"{folder}data/weights/model_weights_config.json"
    yield {name: content for name, content in contents.items() if name != mark}, "no archive_format"
    yield contents | {mark: b"other"}, 'archive_format: holds "other"; expected pt2'
    yield {name: content for name, content in contents.items() if name != graph}, "holds 0 programs"
    yield contents | {f"{folder}models/second.json": b"{}"}, "holds 2 programs"
    yield contents | {graph: b"{,}"}, r"models/model\.json\": is not JSON: JSONDecodeError: .* line 1 column 2"
    yield contents | {graph: b"[]"}, "expected a mapping"
    yield contents | {graph: b"{}"}, r"models/model\.json\": PyTorch .* cannot read the graph: TypeError"
    yield {name: content for name, content in contents.items() if name != weights}, "the archive has no"
    yield contents | {weights: b"{}"}, "has no config"
    yield contents | {weights: b'{"config": {"layers.0.weight": 3}}'}, '"layers.0.we...* has no path_name'


def test_errors_name_the_member(valid: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    for contents, message in variants(members(valid)):
        path.write_bytes(packed(contents))
        with pytest.raises(po.DocumentError, match=message):
            import_file(path, "torch-export")


def test_pickled_objects_in_a_file_are_not_loaded(valid: bytes, tmp_path: Path) -> None:
    contents = members(valid)
    inputs = next(name for name in contents if "sample_inputs" in name)
    weights = [name for name in contents if "/weights/weight_" in name]
    path = tmp_path / "model.pt2"
    path.write_bytes(packed(contents | dict.fromkeys((inputs, *weights), b"not a pickle")))
    assert import_file(path).document["tasks"]


@pytest.fixture(scope="module")
def dynamic() -> dict[str, bytes]:
    """A program with a symbolic size."""
    buffer = io.BytesIO()
    sizes = ({0: torch.export.Dim("n", min=2, max=64)},)
    torch.export.save(torch.export.export(Doubled(), (torch.zeros(4, 4),), dynamic_shapes=sizes, strict=False), buffer)
    return members(buffer.getvalue())


class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2).reshape(-1)


def import_graph(contents: dict[str, bytes], graph: str, tmp_path: Path) -> Imported:
    path = tmp_path / "model.pt2"
    path.write_bytes(packed(contents | {graph_of(contents): graph.encode()}))
    return import_file(path, None, ImportOptions(dims={"x.0": 4}))


@pytest.mark.parametrize(
    "size",
    [
        "__import__('os').mkdir('made')",
        "exit()",
        "Integer(4).__class__",
        "Symbol('__import__(\\'os\\')')",
        "open('made')",
        "9**9**9**9",
        "Pow(Integer(9), Pow(Integer(9), Integer(9)))",
        "Pow(Pow(Pow(Integer(9), Integer(64)), Integer(64)), Integer(64))",
        "[Integer(1) for _ in 's']",
        "Add(" * 5000,
    ],
)
def test_sizes_are_not_executed(
    size: str, dynamic: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = dynamic[graph_of(dynamic)].decode()
    symbol = next(each for each in expressions(json.loads(graph)) if each.startswith("Mul"))
    with pytest.raises(po.DocumentError, match="is not built from symbols and numbers"):
        import_graph(dynamic, graph.replace(json.dumps(symbol), json.dumps(size)), tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt2"]


def test_sizes_that_torch_writes_are_read(dynamic: dict[str, bytes], tmp_path: Path) -> None:
    s, t = sympy.symbols("s77 u0", positive=True, integer=True)
    sizes = [s, 4 * s, s * t - 1, s**2, sympy.sqrt(s), s / 3, sympy.Max(s, 2), sympy.Float(0.5) * s, sympy.Eq(s, t)]
    sizes += [functions.FloorDiv(s, 2), functions.Mod(s, 8), functions.CeilDiv(s + 1, 4), functions.ToFloat(s), s > 3]
    assert all(is_safe(sympy.srepr(size)) for size in sizes)
    assert import_graph(dynamic, dynamic[graph_of(dynamic)].decode(), tmp_path).document["tasks"]


def test_no_operator_of_a_file_creates_files(dynamic: dict[str, bytes], tmp_path: Path) -> None:
    data = json.loads(dynamic[graph_of(dynamic)])
    node = data["graph_module"]["graph"]["nodes"][0]
    node["target"] = "torch.ops.aten.from_file.default"
    arguments = {"filename": {"as_string": str(tmp_path / "made")}, "shared": {"as_bool": True}, "size": {"as_int": 9}}
    node["inputs"] = [{"name": name, "arg": value, "kind": 1} for name, value in arguments.items()]
    found = import_graph(dynamic, json.dumps(data), tmp_path)
    assert found.document["tasks"]
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("place", "content"),
    [(6, b"\x01"), (8, b"\x0e"), (8, b"\x0c"), (8, b"\x63")],
    ids=["encrypted", "not LZMA", "not bzip2", "unknown compression"],
)
def test_archives_that_cannot_be_unpacked(place: int, content: bytes, valid: bytes, tmp_path: Path) -> None:
    broken = bytearray(packed(members(valid)))
    at = 0
    while (at := broken.find(b"PK\x03\x04", at)) >= 0:
        broken[at + place] = content[0]
        at += 1
    at = 0
    while (at := broken.find(b"PK\x01\x02", at)) >= 0:
        broken[at + place + 2] = content[0]
        at += 1
    (tmp_path / "model.pt2").write_bytes(broken)
    with pytest.raises(po.DocumentError, match="cannot be read as a zip archive"):
        import_file(tmp_path / "model.pt2", "torch-export")


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"text"])
def test_other_files_are_not_recognised(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(po.UsageError, match="looks like no known format"):
        import_file(path)
