"""Inputs of a model, random or from a file, and differences between outputs."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.bridges.onnx_models.view import Tensor
from placeopt.errors import DocumentError, Issue, UsageError, listing, suggestion
from placeopt.io.files import StrPath

TYPES: Mapping[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "bool": np.bool_,
    "string": np.object_,
    "complex64": np.complex64,
    "complex128": np.complex128,
} | {f"{sign}int{bits}": np.dtype(f"{sign}int{bits}").type for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""Types of elements that NumPy has, so that processes can exchange them."""


UNPACKING = (
    OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""Exceptions of broken zip archives; an encrypted one is a RuntimeError."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much an output differs from that of the unsplit model.

    The relative difference of an element x from its reference r is |x - r| / max(1, |r|): absolute for small values,
    whose rounding errors come from larger intermediate ones, and relative for large values. Integers, such as indices,
    are not rounded: their relative difference is the absolute one.
    """

    output: str
    absolute: float
    """Largest |x - r|; infinite if shapes, types, NaNs or texts differ."""
    relative: float
    """Largest |x - r| / max(1, |r|); for integers, largest |x - r|."""


def model_inputs(
    inputs: Mapping[str, Any] | StrPath | None, expected: Mapping[str, Tensor], seed: int
) -> dict[str, Any]:
    """Return the inputs of a model: as given, from a file, or random."""
    if inputs is None:
        return random_inputs(expected, seed)
    return checked_inputs(inputs, expected) if isinstance(inputs, Mapping) else read_inputs(Path(inputs), expected)


def random_inputs(expected: Mapping[str, Tensor], seed: int) -> dict[str, Any]:
    """Return inputs: floats are uniform in [0, 1), integers 0, booleans true, strings empty.

    The valid range of an integer, such as an index, is unknown; 0 is valid in most models.

    Raises a UsageError if the type or shape of an input is unknown, or NumPy has no such type.
    """
    random = np.random.default_rng(seed)
    made: dict[str, Any] = {}
    for name, tensor in expected.items():
        if tensor.shape is None or tensor.element not in TYPES:
            raise UsageError(
                f"no random values for the input {name} of type {tensor.element or 'unknown'}; state --inputs"
            )
        kind = np.dtype(TYPES[tensor.element])
        if kind.kind in "fc":
            made[name] = random.random(tensor.shape).astype(kind)
        else:
            value: Any = "" if kind.kind == "O" else kind.type(kind.kind == "b")
            made[name] = np.full(tensor.shape, value, dtype=kind)
    return made


def read_inputs(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Any]:
    """Read the inputs of a model from an .npz file, which has an array for each input by name.

    Raises a DocumentError if the file cannot be read, or its arrays are not the inputs; it lists every issue.
    """
    try:
        if path.exists() and not path.is_file():  # opening a named pipe waits for a writer
            raise ValueError("it is not a file")
        with path.open("rb") as file, zipfile.ZipFile(file):  # else NumPy also reads a single array
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise DocumentError([Issue("no such file", (), str(path))]) from None
    except UNPACKING as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DocumentError([Issue(f"is not an .npz file of arrays: {reason}", (), str(path))]) from None
    return checked_inputs(found, expected, str(path))


def checked_inputs(given: Mapping[str, Any], expected: Mapping[str, Tensor], file: str | None = None) -> dict[str, Any]:
    """Return the inputs of a model as arrays.

    Raises a DocumentError if an input is missing, unknown, or has another type or shape; it lists every issue.
    """
    issues = [
        Issue(f"the model has no such input{suggestion(name, expected)}", (name,), file)
        for name in given
        if name not in expected
    ]
    checked = {}
    for name, tensor in expected.items():
        if name not in given:
            issues.append(Issue(f"the input is missing; the file has {listing(list(given))}", (name,), file))
            continue
        array = np.asarray(given[name])
        array = array.astype(object) if array.dtype.kind == "U" else array
        wrong = _mismatch(array, tensor)
        if wrong:
            issues.append(Issue(wrong, (name,), file))
        checked[name] = array
    if issues:
        raise DocumentError(issues)
    return checked


def _mismatch(array: Any, tensor: Tensor) -> str:
    kind = TYPES.get(tensor.element)
    if kind is None or array.dtype != kind:
        return f"has elements of type {array.dtype}; expected {tensor.element}"
    if tensor.shape is not None and array.shape != tensor.shape:
        return f"has the shape {list(array.shape)}; expected {list(tensor.shape)}"
    return ""


def difference(output: str, found: Any, reference: Any) -> Difference:
    """Compare an output with its reference; two NaNs at the same place are equal, as are equal infinities."""
    x, r = np.asarray(found), np.asarray(reference)
    if x.shape != r.shape or x.dtype != r.dtype:
        return Difference(output, float("inf"), float("inf"))
    if x.dtype.kind not in "biufc":
        equal = bool((x == r).all())
        return Difference(output, 0.0 if equal else float("inf"), 0.0 if equal else float("inf"))
    whole, wide = x.dtype.kind in "biu", np.complex128 if x.dtype.kind == "c" else np.float64
    x, r = np.atleast_1d(x), np.atleast_1d(r)
    same = x == r if whole else (x == r) | (np.isnan(x) & np.isnan(r))
    x, r = x.astype(wide), r.astype(wide)
    with np.errstate(invalid="ignore"):
        off = np.maximum(np.abs(x - r), 1.0) if whole else np.abs(x - r)
        relative = off if whole else off / np.maximum(1.0, np.abs(r))
    odd = ~same & ~np.isfinite(off)
    for amount in (off, relative):
        amount[same], amount[odd] = 0.0, float("inf")
    return Difference(output, float(off.max(initial=0.0)), float(relative.max(initial=0.0)))
