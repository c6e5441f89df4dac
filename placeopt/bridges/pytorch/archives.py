"""Saved exported programs (`.pt2`), without their weights.

A file is a zip archive with `archive_format`, `models/NAME.json` and descriptions of weights and constants. Weights,
constants and example inputs themselves are not read: they are not needed, and pickled Python objects among them could
execute code. Neither are sizes evaluated that could do so (see below), and of the functions in a graph, only
operators of PyTorch are executed, on the meta device (`placeopt.bridges.costs.aten_rules`).

`torch.export` writes a symbolic size as an expression of SymPy: `Mul(Integer(4), Symbol('s77', positive=True))`. To
read it, PyTorch calls `sympy.sympify`, which uses `eval`. Therefore a file could execute any code, or compute for
hours. Only calls of SymPy's classes with such calls and constants as arguments are allowed.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from lzma import LZMAError
from typing import Any

import sympy
import torch
from torch._export.serde.serialize import SerializedArtifact, deserialize
from torch._export.verifier import SpecViolationError
from torch.export import ExportedProgram
from torch.utils._sympy import functions

from placeopt.errors import DocumentError, Issue, counted, listing
from placeopt.io.files import StrPath
from placeopt.model.units import excerpt

LARGEST_POWER = 64
"""Largest exponent; powers of numbers are computed while they are read."""
LONGEST = 10_000
"""Maximum number of characters of an expression."""

_TEXT = re.compile(r"\w{1,100}|[+-]?\d{0,30}(?:\.\d{0,30})?(?:e[+-]?\d{1,3})?", re.ASCII)
_NUMBER = 2**63
_TYPES = (
    "Abs", "Add", "And", "BooleanFalse", "BooleanTrue", "Dummy", "Equality", "Float", "GreaterThan", "ITE", "Integer",
    "LessThan", "Max", "Min", "Mod", "Mul", "Not", "Or", "Piecewise", "Pow", "Rational", "StrictGreaterThan",
    "StrictLessThan", "Symbol", "Tuple", "Unequality", "Xor", "ceiling", "floor", "log", "sign", "sqrt",
)  # fmt: skip
ALLOWED = frozenset(_TYPES) | {
    name
    for name, found in vars(functions).items()
    if isinstance(found, type) and issubclass(found, sympy.Basic) and found.__module__ == functions.__name__
}
"""Names of classes of SymPy, and of the functions that PyTorch adds."""


def expressions(data: Any) -> Iterator[Any]:
    """The expressions in the graph of a saved program."""
    waiting = [data]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if "expr_str" in found:
                yield found["expr_str"]
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found


def is_safe(text: Any) -> bool:
    """Whether an expression only builds a size from symbols and numbers."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return False
    try:
        return _is_size(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return _is_constant(value)
        case ast.Name(id=name):
            return not name.startswith("_")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_size(operand)
        case ast.Tuple(elts=parts):
            return all(map(_is_size, parts))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            return _is_size(left) and _is_size(right)
        case ast.Call(func=ast.Name(id="Pow"), args=[base, exponent], keywords=[]):
            nested = any(isinstance(each, ast.Name) and each.id == "Pow" for each in ast.walk(base))
            return not nested and _is_size(base) and _is_small(exponent)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in ALLOWED - {"Pow"}:
            return all(map(_is_size, args)) and all(isinstance(each.value, ast.Constant) for each in keywords)
    return False


def _is_constant(value: object) -> bool:
    if isinstance(value, str):
        return _TEXT.fullmatch(value) is not None
    return value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < _NUMBER)


def _is_small(node: ast.expr) -> bool:
    """Whether an exponent is a small constant, such as `Integer(-1)` or `Rational(1, 2)`."""
    constants = [each for each in ast.walk(node) if isinstance(each, ast.Constant)]
    kinds = (ast.Constant, ast.UnaryOp, ast.USub, ast.Load, ast.Name, ast.Call)
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    return (
        all(isinstance(each, kinds) for each in ast.walk(node))
        and all(each.id in ("Integer", "Rational") for each in calls)
        and bool(constants)
        and all(isinstance(each.value, int) and abs(each.value) <= LARGEST_POWER for each in constants)
        and _is_size(node)
    )


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

    Raises a DocumentError if the file cannot be read or is not a valid program.
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
