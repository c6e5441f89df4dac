"""Broken .pt2 files: located errors, never a traceback."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from broken import broken_files, check_import

import placeopt as po
from placeopt.bridges.importers.registry import import_file

pytest.importorskip("torch", reason="PyTorch models need torch: pip install 'placeopt[torch]'")

import torch
from torch_models import Mlp

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


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"text"])
def test_other_files_are_not_recognised(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(po.UsageError, match="looks like no known format"):
        import_file(path)
