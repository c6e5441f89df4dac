"""Saved exported programs (`.pt2`), without their weights.

A file is a zip archive with `archive_format`, `models/NAME.json` and descriptions of weights and constants. Weights,
constants and example inputs themselves are not read: they are not needed, and pickled Python objects among them could
execute code. Neither are sizes evaluated that could do so (`expressions`), and of the functions in a graph, only
operators of PyTorch are executed, on the meta device (`placeopt.bridges.costs.aten_rules`).
"""

from __future__ import annotations

import json
import logging
import zipfile
import zlib
from collections.abc import Mapping
from lzma import LZMAError
from typing import Any

import torch
from torch._export.serde.serialize import SerializedArtifact, deserialize
from torch._export.verifier import SpecViolationError
from torch.export import ExportedProgram

from placeopt.bridges.pytorch.expressions import expressions, is_safe
from placeopt.errors import DocumentError, Issue, counted, listing
from placeopt.io.files import StrPath
from placeopt.model.units import excerpt

MARK = "archive_format"
_LARGEST = 2**30
"""Bytes of the largest graph that is read."""
_FAILURES = (
    ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, MemoryError, NameError,
    OSError, RuntimeError, SpecViolationError, SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""Exceptions of PyTorch for graphs that it cannot read."""


def read_program(path: StrPath) -> ExportedProgram:
    """Read the graph of a saved program; all weights are empty tensors on the meta device.

    Raises
    ------
    DocumentError
        If the file cannot be read or is not a valid program.
    """
    return _Archive(path).program()


class _Archive:
    def __init__(self, path: StrPath) -> None:
        self._path = str(path)
        try:
            with zipfile.ZipFile(path) as archive:
                self._read_members(archive)
        except (zipfile.BadZipFile, zlib.error, LZMAError, OSError, EOFError, RuntimeError, ValueError) as error:
            raise self._error(f"cannot be read as a zip archive: {_reason(error)}") from None

    def _read_members(self, archive: zipfile.ZipFile) -> None:
        names = archive.namelist()
        marks = [name for name in names if name.rpartition("/")[2] == MARK]
        if not marks:
            raise self._error(f"the zip archive has no {MARK}; expected a program that torch.export.save wrote")
        folder = marks[0][: -len(MARK)]
        if (found := self._member(archive, marks[0])) != b"pt2":
            raise self._error(f"holds {excerpt(found.decode(errors='replace'))}; expected pt2", marks[0])
        models = [name for name in names if name.startswith(f"{folder}models/") and name.endswith(".json")]
        if len(models) != 1:
            shown = f" ({listing(models)})" if models else ""
            raise self._error(f"the archive holds {counted(len(models), 'program')}{shown}; expected one")
        self.model = models[0]
        self.content = self._member(archive, self.model)
        name = self.model[len(f"{folder}models/") : -len(".json")]
        self.weights = self._tensors(archive, f"{folder}data/weights/{name}_weights_config.json")
        self.constants = self._tensors(archive, f"{folder}data/constants/{name}_constants_config.json")

    def _member(self, archive: zipfile.ZipFile, name: str) -> bytes:
        size = archive.getinfo(name).file_size
        if size > _LARGEST:
            raise self._error(f"has {size:,} bytes; the limit is {_LARGEST:,}", name)
        return archive.read(name)

    def _tensors(self, archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
        """An empty tensor for each weight; weights that share a file share their memory.

        All weights on the meta device have one file, so that it means nothing; tied ones have one name in the graph.
        """
        if name not in archive.namelist():
            raise self._error(f"the archive has no {name}")
        config = self._json(name, self._member(archive, name)).get("config")
        if not isinstance(config, Mapping):
            raise self._error("has no config", name)
        memory: dict[str, torch.Tensor] = {}
        found: dict[str, Any] = {}
        for weight, entry in config.items():
            if not isinstance(entry, Mapping) or not isinstance(entry.get("path_name"), str):
                raise self._error(f"{excerpt(weight)} has no path_name", name)
            meta = entry.get("tensor_meta")
            meta = meta if isinstance(meta, Mapping) else {}
            trained, device = bool(meta.get("requires_grad")), meta.get("device")
            tensor = torch.empty(0, device="meta")
            if not isinstance(device, Mapping) or device.get("type") != "meta":
                tensor = memory.setdefault(entry["path_name"], tensor)
            found[weight] = torch.nn.Parameter(tensor, requires_grad=trained) if entry.get("is_param") else tensor
        return found

    def _json(self, name: str, content: bytes) -> dict[str, Any]:
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._error(f"is not JSON: {_reason(error)}", name) from None
        if not isinstance(found, dict):
            raise self._error(f"holds {excerpt(found)}; expected a mapping", name)
        return found

    def program(self) -> ExportedProgram:
        """The program; raises a DocumentError if PyTorch cannot read its graph."""
        for each in expressions(self._json(self.model, self.content)):
            if not is_safe(each):
                raise self._error(f"the size {excerpt(each)} is not built from symbols and numbers", self.model)
        logger = logging.getLogger("torch._export.serde.serialize")
        disabled, logger.disabled = logger.disabled, True  # it prints the traceback of each failure
        try:
            return deserialize(SerializedArtifact(self.content, self.weights, self.constants, b""))
        except _FAILURES as error:
            raise self._error(
                f"PyTorch {torch.__version__} cannot read the graph: {_reason(error)}", self.model
            ) from None
        finally:
            logger.disabled = disabled

    def _error(self, message: str, member: str | None = None) -> DocumentError:
        return DocumentError([Issue(message, () if member is None else (member,), self._path)])


def _reason(error: BaseException) -> str:
    """The first line of a message of another library."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
