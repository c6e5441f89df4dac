"""Read the header of GGUF files: metadata, and names, types and sizes of tensors.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Files are memory-mapped; their tensors' data is
not read, and vocabularies are skipped. The package `gguf` states the sizes of the types of tensors. Its reader is not
used: it states no byte offsets in errors, does not end on some broken files, and takes seconds for a large vocabulary.

The names of tensors state the parts of a model to which they belong. Their patterns are regular expressions in the
common subset of Python and ECMAScript, which llama.cpp uses.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from placeopt.bridges.extras import require
from placeopt.errors import DocumentError, Issue, counted, visible
from placeopt.io.document import reading
from placeopt.io.files import StrPath, check_input, checked_path, read_start

BLOCK = r"blk\.(\d{1,4})\.(.+)"
"""A tensor of a block, with its number and its name in the block."""
ROPE = "rope_"
"""Beginning of tensors of position encodings, which the attention of all blocks shares."""
EMBEDDING = "(token|position|per_layer)_"
"""Beginning of tensors of the input. All other tensors outside blocks are of the output."""
FFN = "(ffn|post_ffw|exp_probs|channel_mix|layer_output_norm)"
"""Beginning of tensors of the feed-forward network, after the block. All others are of the attention."""
EXPERTS = r"ffn_\w+(_exps|\.\d)"
"""Beginning of tensors of the routed experts."""


def place_of(name: str) -> tuple[int | None, str]:
    """Return the block of a tensor, or None, and its part: `embedding`, `attention`, `ffn`, `experts` or `head`."""
    match = re.fullmatch(BLOCK, name)
    if match is None:
        if name.startswith(ROPE):
            return 0, "attention"
        return None, "embedding" if re.match(EMBEDDING, name) else "head"
    return int(match[1]), _part_of_block(match[2])


@lru_cache(maxsize=4096)
def _part_of_block(name: str) -> str:
    """The part of a tensor by its name in the block; all blocks have the same names."""
    return "experts" if re.match(EXPERTS, name) else "ffn" if re.match(FFN, name) else "attention"


MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""`struct` formats of the types of values."""
_LONGEST_ARRAY = 4096
"""Arrays with more elements are skipped; those of numbers by layer are shorter."""
_LONGEST_TEXT = 2**16
"""Bytes of the longest key, name, and kept text."""
_MOST_DIMENSIONS = 4
_LARGEST = 2**60
_SPLIT = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a file."""

    name: str
    shape: tuple[int, ...]
    """Elements in each dimension; the first is contiguous. A matrix has inputs x outputs."""
    size: int
    """Bytes."""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The metadata and the tensors of a model, of all its files if it is split."""

    metadata: Mapping[str, Any]
    """Values by key; for an array that was skipped, its length as `Skipped`."""
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """An array that was not kept."""

    length: int


def read_gguf(path: StrPath) -> GgufFile:
    """Read the header of a GGUF file, and of the other files of a split model.

    Raises a DocumentError if a file cannot be read, or is not valid; it names the byte offset. Raises a
    MissingExtraError if the package `gguf` is not installed.
    """
    require("gguf", "gguf", "GGUF files")
    path = Path(checked_path(path))
    first = _read_one(path)
    count = first.metadata.get("split.count", 0)
    if not isinstance(count, int) or count <= 1:
        return first
    match = _SPLIT.fullmatch(path.name)
    if match is None or int(match[3]) != count:
        raise _error(path, f"is one of {count} files, but is not named like one: NAME-00001-of-{count:05}.gguf")
    paths = [path.with_name(f"{match[1]}-{number:05}-of-{match[3]}.gguf") for number in range(1, count + 1)]
    missing = [each for each in paths if not each.exists()]
    if missing:
        raise DocumentError([Issue(f"no such file; {path.name} is one of {count} files", (), str(p)) for p in missing])
    files = [_read_one(each) for each in paths]
    tensors: dict[str, Tensor] = {}
    for each, file in zip(paths, files, strict=True):
        for tensor in file.tensors:
            if tensor.name in tensors:
                raise _error(each, f"the tensor {visible(tensor.name)} is in an earlier file of the model too")
            tensors[tensor.name] = tensor
    stated = files[0].metadata.get("split.tensors.count")
    if isinstance(stated, int) and stated != len(tensors):
        raise _error(paths[0], f"split.tensors.count is {stated}, but the files have {counted(len(tensors), 'tensor')}")
    return GgufFile(files[0].metadata, tuple(tensors.values()))


def _read_one(path: Path) -> GgufFile:
    check_input(path)
    with reading(path):
        start = read_start(path, 4)
    if start != MAGIC:
        raise _error(path, f"at byte 0: {start!r} is not the start of a GGUF file; expected {MAGIC!r}")
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Header(path, data).read()
    except OSError as error:
        raise _error(path, f"cannot be read: {error.strerror or error}") from None


def _error(path: Path, message: str) -> DocumentError:
    return DocumentError([Issue(message, (), str(path))])


class _Header:
    """Reads the header of one file; every read is checked against the end of the file."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        from gguf import GGML_QUANT_SIZES

        self._types = {kind.value: (kind.name, *sizes) for kind, sizes in GGML_QUANT_SIZES.items()}
        """Name, elements of a block and its bytes, by number."""
        self._path = path
        self._data = data
        self._at = 4
        self._order = "<"
        self._place = "the header"

    def read(self) -> GgufFile:
        (version,) = struct.unpack_from("<I", self._take(4))
        if version & 0xFFFF == 0:
            self._order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in _VERSIONS:
            raise self._wrong(f"version {version} is not supported; expected {' or '.join(map(str, _VERSIONS))}", 4)
        tensor_count, key_count = self._number("Q"), self._number("Q")
        left = len(self._data) - self._at
        for count, least, what in ((tensor_count, 24, "tensors"), (key_count, 12, "keys")):
            if count * least > left:
                raise self._wrong(f"{count:,} {what} do not fit in the file, which has {len(self._data):,} bytes", 8)
        metadata: dict[str, Any] = {}
        starts: dict[str, int] = {}
        for number in range(key_count):
            self._place = f"key {number + 1} of {key_count}"
            key = self._text()
            self._place = f"the key {visible(key)}"
            if key in metadata:
                raise self._wrong("is there twice")
            starts[key] = self._at
            metadata[key] = self._value(self._number("I"))
        tensors: dict[str, Tensor] = {}
        spans = []
        for number in range(tensor_count):
            self._place = f"tensor {number + 1} of {tensor_count}"
            tensor, offset = self._tensor()
            if tensor.name in tensors:
                raise self._wrong("is there twice")
            tensors[tensor.name] = tensor
            spans.append(offset + tensor.size)
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 2**20 or alignment & (alignment - 1):
            self._place = "the key general.alignment"
            raise self._wrong(
                f"{alignment!r} is not an alignment; expected a power of two", starts["general.alignment"]
            )
        begin = -(-self._at // alignment) * alignment
        for tensor, end in zip(tensors.values(), spans, strict=True):
            if begin + end > len(self._data):
                self._place = f"the tensor {visible(tensor.name)}"
                has = f"ends at byte {begin + end}, but the file has {len(self._data)} bytes"
                raise self._wrong(f"{has}; is the download complete?", begin)
        return GgufFile(metadata, tuple(tensors.values()))

    def _tensor(self) -> tuple[Tensor, int]:
        """A tensor, and the offset of its data."""
        name = self._text()
        self._place = f"the tensor {visible(name)}"
        begin = self._at
        dimensions = self._number("I")
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise self._wrong(f"has {dimensions} dimensions; expected 1 to {_MOST_DIMENSIONS}", begin)
        shape = struct.unpack(f"{self._order}{dimensions}Q", self._take(8 * dimensions))
        elements = math.prod(shape)
        if not 0 < elements <= _LARGEST:
            raise self._wrong(f"has the shape {' x '.join(map(str, shape))}, which is out of range", begin)
        begin = self._at
        number = self._number("I")
        try:
            type, block, size = self._types[number]
        except KeyError:
            hint = "the package gguf may be too old for it"
            raise self._wrong(f"type {number} is not known; {hint}", begin) from None
        if shape[0] % block:
            raise self._wrong(f"rows of {shape[0]} elements are not whole blocks of {block} ({type})", begin)
        begin = self._at
        offset = self._number("Q")
        if offset > len(self._data):
            raise self._wrong(f"offset {offset:,} is beyond the end of the file", begin)
        return Tensor(name, shape, elements // block * size), offset

    def _value(self, type: int) -> Any:
        if type == _STRING:
            return self._text(keep=False)
        if type == _ARRAY:
            return self._array()
        if type not in _SCALARS:
            raise self._wrong(f"{type} is not a type of values", self._at - 4)
        return self._number(_SCALARS[type])

    def _array(self) -> Any:
        begin = self._at
        type, length = self._number("I"), self._number("Q")
        if type in _SCALARS:
            code = _SCALARS[type]
            size = length * struct.calcsize(code)
            if length > _LONGEST_ARRAY:
                self._skip(size)
                return Skipped(length)
            return list(struct.unpack(f"{self._order}{length}{code}", self._take(size)))
        if type != _STRING:  # arrays of arrays do not occur in models
            raise self._wrong(f"{type} is not a type of array elements", begin)
        unpack, data, end = struct.Struct(f"{self._order}Q").unpack_from, self._data, len(self._data)
        if length > (end - self._at) // 8:
            raise self._wrong(f"{length:,} texts do not fit in the file", begin)
        at = self._at
        for _ in range(length):
            if at + 8 > end:
                break
            at += 8 + unpack(data, at)[0]
        if at > end:
            raise self._wrong(f"{length:,} texts go beyond the end of the file", begin)
        self._at = at
        return Skipped(length)

    def _text(self, *, keep: bool = True) -> str:
        """A text; a value that is too long to be kept is empty."""
        begin = self._at
        length = self._number("Q")
        if length > _LONGEST_TEXT:
            if keep:
                raise self._wrong(f"a name of {length:,} bytes is too long", begin)
            self._skip(length)
            return ""
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise self._wrong("is not UTF-8 text", begin) from None

    def _number(self, code: str) -> Any:
        return struct.unpack(self._order + code, self._take(struct.calcsize(code)))[0]

    def _take(self, size: int) -> bytes:
        begin = self._at
        self._skip(size)
        return self._data[begin : self._at]

    def _skip(self, size: int) -> None:
        if self._at + size > len(self._data):
            raise self._wrong(f"needs {size:,} bytes, but the file ends at byte {len(self._data)}")
        self._at += size

    def _wrong(self, message: str, at: int | None = None) -> DocumentError:
        return _error(self._path, f"at byte {self._at if at is None else at}: {self._place}: {message}")
