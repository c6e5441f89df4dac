"""Read tensors from files of the format safetensors, without its library.

The format (https://huggingface.co/docs/safetensors) is: the length of the header as 8 bytes, little-endian; the header,
a JSON object; the values, row by row and little-endian. The header maps the name of each tensor to its type, its shape,
and the place of its values, which cover the rest of the file without gaps. `__metadata__` maps names to texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SINGLE = "F32"
"""The type of 32-bit floats."""

METADATA = "__metadata__"


class InvalidTensorsError(Exception):
    """The content of a file is not complete, or does not have the format; the message gives the reason."""


class Entry(NamedTuple):
    """A tensor in a file."""

    kind: str
    """The type of the values, such as F32."""
    shape: tuple[int, ...]
    values: bytes

    def array(self) -> NDArray[np.float32]:
        """The values of a tensor of the type F32."""
        return np.frombuffer(self.values, "<f4").reshape(self.shape).astype(np.float32)


class Content(NamedTuple):
    """The content of a file: tensors and texts by name."""

    tensors: Mapping[str, Entry]
    texts: Mapping[str, str]


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
    values = data[start:]
    tensors, places = {}, []
    for name, stated in header.items():
        kind, shape, (begin, end) = _checked(name, stated)
        tensors[name] = Entry(kind, shape, values[begin:end])
        places.append((begin, end))
        if kind == SINGLE and 4 * prod(shape) != end - begin:
            raise InvalidTensorsError(f"{name} has {end - begin:,} bytes, which does not fit its shape {shape}")
    covered = 0
    for begin, end in sorted(places):
        if begin != covered or end < begin:
            raise InvalidTensorsError(f"the values of its tensors have a gap or overlap at byte {start + covered:,}")
        covered = end
    if covered != len(values):
        raise InvalidTensorsError(f"its tensors have {covered:,} bytes, but {len(values):,} follow the header")
    return Content(tensors, texts)


def _checked(name: str, stated: Any) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    """The type, the shape and the place of a tensor."""
    stated = stated if isinstance(stated, dict) else {}
    kind, shape, place = (stated.get(key) for key in ("dtype", "shape", "data_offsets"))
    if isinstance(kind, str) and _sizes(shape) and _sizes(place) and len(place) == 2:
        return kind, tuple(shape), (place[0], place[1])
    raise InvalidTensorsError(f"{name} does not have a dtype, a shape and two data_offsets")


def _sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
