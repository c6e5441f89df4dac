"""PyTorch is optional: without it, messages state the command that installs it."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

import placeopt as po
from placeopt.bridges.importers import torch_export
from placeopt.bridges.importers.imported import Sample
from placeopt.bridges.importers.registry import import_file


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that looks like a saved program, in a process without PyTorch."""
    monkeypatch.setitem(sys.modules, "torch", None)
    path = tmp_path / "model"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data/weights/weight_0", bytes(2**17))
        archive.writestr("model/archive_format", "pt2")
    return path


def test_a_saved_program_is_recognised_by_its_content(saved: Path) -> None:
    assert torch_export.recognises(Sample(saved))
    other = saved.with_name("other.zip")
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("readme", "text")
    assert not torch_export.recognises(Sample(other))


def test_imports_state_the_command_that_installs_pytorch(saved: Path) -> None:
    with pytest.raises(po.MissingExtraError, match=r"PyTorch models need torch: pip install 'placeopt\[torch\]'"):
        import_file(saved)
    with pytest.raises(po.MissingExtraError, match=r"pip install 'placeopt\[torch\]'"):
        po.from_torch(object(), ())  # type: ignore[arg-type]


def test_parts_and_runs_state_the_command_that_installs_pytorch(saved: Path) -> None:
    problem = po.compile({"placeopt": 1, "devices": {"cpu": {}}, "tasks": {"a": {"time": 1}}})
    imported = po.Imported({})
    with pytest.raises(po.MissingExtraError, match=r"parts of a graph need torch: pip install"):
        po.split_callback(problem, po.simulate(problem, [0]), imported)
    with pytest.raises(po.MissingExtraError, match=r"runs of PyTorch models need torch: pip install"):
        po.run_torch(problem, po.simulate(problem, [0]), imported, saved)
    assert saved.exists()
