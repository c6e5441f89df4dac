"""Copy the weights that an ONNX model keeps in external files, without reading them into memory at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from placeopt.bridges.onnx_models.loading import bodies, tensors_of
from placeopt.bridges.onnx_models.sizes import element_name
from placeopt.bridges.onnx_models.sizes import size as size_of
from placeopt.errors import DocumentError, Issue

if TYPE_CHECKING:
    from onnx import GraphProto, TensorProto

ALIGNMENT = 65536
"""Offsets of tensors are multiples of it, so that runtimes map them into memory on all systems."""

_BLOCK = 1 << 22


class Store:
    """Copies external tensors of a model to a new file, which is made with the first one.

    Used as a context manager.
    """

    def __init__(self, source: Path, target: Path) -> None:
        self._source = source
        self._target = target
        self._file: BinaryIO | None = None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def move(self, graph: GraphProto) -> None:
        """Copy the data of all external tensors of a graph, and change its messages to refer to the copies.

        Raises a DocumentError if a file cannot be read, is too short, or is outside the folder of the model.
        """
        for tensor in tensors(graph):
            if tensor.data_location == tensor.EXTERNAL:
                self._move(tensor)

    def _move(self, tensor: TensorProto) -> None:
        stated = {entry.key: entry.value for entry in tensor.external_data}
        location = stated.get("location", "")
        path = self._source / location
        try:
            offset, length = int(stated.get("offset") or 0), stated.get("length")
            if not location or not path.resolve().is_relative_to(self._source.resolve()):
                raise ValueError("it must be in the folder of the model")
            if path.exists() and not path.is_file():  # opening a named pipe waits for a writer
                raise ValueError("it is not a file")
            with path.open("rb") as data:
                size = needed(tensor)
                if length is not None and int(length) != size:
                    raise ValueError(f"it states {int(length):,} bytes, and the weight has {size:,}")
                data.seek(offset)
                place = self.append(data, size)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"the external data of the weight {tensor.name} cannot be read: {reason}"
            raise DocumentError([Issue(message, (), str(path))]) from None
        refer(tensor, self._target.name, place, size)

    def append(self, data: BinaryIO, size: int) -> int:
        """Copy `size` bytes to the end of the file and return their offset.

        Raises a ValueError if the data are shorter.
        """
        if self._file is None:
            self._file = self._target.open("xb")
        file = self._file
        place = -(-file.tell() // ALIGNMENT) * ALIGNMENT
        file.seek(place)
        left = size
        while left:
            block = data.read(min(left, _BLOCK))
            if not block:
                raise ValueError(f"it ends {left:,} bytes early")
            file.write(block)
            left -= len(block)
        return place


def needed(tensor: TensorProto) -> int:
    """Bytes of the values of a tensor."""
    return size_of(element_name(tensor.data_type), math.prod(tensor.dims))


def refer(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    """Change a tensor so that its data are in an external file."""
    del tensor.external_data[:]
    tensor.ClearField("raw_data")
    tensor.data_location = tensor.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """All tensors of a graph: initializers and attributes of nodes, also those in the bodies of control flow."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield from tensors_of(attribute)
        for _, body in bodies(node):
            yield from tensors(body)
