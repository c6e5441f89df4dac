"""Read tensors from files of the format safetensors, without its library.

The format (https://huggingface.co/docs/safetensors) is: the length of the header as 8 bytes, little-endian; the header,
a JSON object; the values, row by row and little-endian. The header maps the name of each tensor to its type, its shape,
and the place of its values, which cover the rest of the file without gaps. `__metadata__` maps names to texts.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import visible

SINGLE = "F32"
"""The type of 32-bit floats."""

METADATA = "__metadata__"


class InvalidTensorsError(Exception):
    """The content of a file is not complete, or does not have the format; the message gives the reason."""


class Content(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    arrays
        The tensors of the type F32 by name.
    others
        The types of all other tensors, whose values are not read.
    texts
        The texts by name.
    """

    arrays: dict[str, NDArray[np.float32]]
    others: dict[str, str]
    texts: dict[str, str]


def read_tensors(data: bytes) -> Content:
    """Read the content of a file.

    Raises
    ------
    InvalidTensorsError
        If the content is cut off, or does not have the format.
    """
    start = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or start > len(data):
        raise InvalidTensorsError(f"it has {len(data):,} bytes, fewer than the length of the header that it states")
    try:
        header = json.loads(data[8:start].decode())
    except (ValueError, RecursionError) as error:
        raise InvalidTensorsError(f"its header is not valid JSON: {error}") from None
    if not isinstance(header, dict):
        raise InvalidTensorsError("its header is not a JSON object")
    texts = header.pop(METADATA, None) or {}
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise InvalidTensorsError(f"{METADATA} does not contain texts")
    entries = {name: _checked(name, stated) for name, stated in header.items()}
    covered = 0
    for begin, end in sorted(entry.place for entry in entries.values()):
        if begin != covered or end < begin:
            raise InvalidTensorsError(f"the values of its tensors have a gap or overlap at byte {start + covered:,}")
        covered = end
    if start + covered != len(data):
        raise InvalidTensorsError(f"its tensors have {covered:,} bytes, but {len(data) - start:,} follow the header")
    arrays = {name: _array(name, entry, data, start) for name, entry in entries.items() if entry.kind == SINGLE}
    return Content(arrays, {name: entry.kind for name, entry in entries.items() if entry.kind != SINGLE}, texts)


class _Entry(NamedTuple):
    kind: str
    shape: tuple[int, ...]
    place: tuple[int, int]  # bytes after the header


def _checked(name: str, stated: Any) -> _Entry:
    stated = stated if isinstance(stated, dict) else {}
    kind, shape, place = (stated.get(key) for key in ("dtype", "shape", "data_offsets"))
    if isinstance(kind, str) and _sizes(shape) and _sizes(place) and len(place) == 2:
        return _Entry(kind, tuple(shape), (place[0], place[1]))
    raise InvalidTensorsError(f"{visible(name)} does not have a dtype, a shape and two data_offsets")


def _sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _array(name: str, entry: _Entry, data: bytes, start: int) -> NDArray[np.float32]:
    begin, end = entry.place
    try:
        values = np.frombuffer(data[start + begin : start + end], "<f4").reshape(entry.shape)
    except (ValueError, OverflowError):
        raise InvalidTensorsError(f"the values of {visible(name)} do not fit its shape") from None
    return values.astype(np.float32)  # a copy that can be written, in the byte order of this machine
