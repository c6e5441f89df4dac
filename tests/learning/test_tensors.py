"""The format safetensors: what is read is what the library reads, and broken files have clear messages."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from placeopt.learning.training.weights import Content, InvalidTensorsError, read_tensors

ENTRY = {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}
VALUES = np.array([1.5, -2.0], "<f4").tobytes()


def content(header: object, values: bytes = VALUES) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + values


def arrays(data: bytes) -> dict[str, Any] | None:
    """The tensors of a file; None if it is broken, or contains another type."""
    try:
        found = read_tensors(data)
    except InvalidTensorsError:
        return None
    return None if found.others else found.arrays


def test_values_shapes_and_texts() -> None:
    more = {"dtype": "F32", "shape": [], "data_offsets": [8, 12]}
    empty = {"dtype": "F32", "shape": [0, 3], "data_offsets": [12, 12]}
    other = {"dtype": "I64", "shape": [1], "data_offsets": [12, 20]}
    header = {"b": more, "__metadata__": {"about": "ä"}, "a": ENTRY, "c": empty, "d": other}
    data = content(header, VALUES + np.float32(7).tobytes() + np.int64(9).tobytes())
    found = read_tensors(data)
    assert found.texts == {"about": "ä"}
    assert found.arrays.keys() == {"b", "a", "c"}
    assert found.others == {"d": "I64"}
    assert found.arrays["a"].tolist() == [[1.5], [-2.0]]
    assert found.arrays["a"].dtype == np.float32
    assert found.arrays["a"].flags.writeable
    assert found.arrays["b"] == 7.0
    assert found.arrays["b"].shape == ()
    assert found.arrays["c"].shape == (0, 3)
    for nothing in ({}, {"__metadata__": None}):
        assert read_tensors(content(nothing, b"")) == Content({}, {}, {})


SHAPE = "the values of a do not fit its shape"
BROKEN = {
    "empty": (b"", "it has 0 bytes, fewer than the length"),
    "no-header": (b"\1\0\0\0\0\0\0", "it has 7 bytes, fewer"),
    "short-header": ((99).to_bytes(8, "little") + b"{}", "it has 10 bytes, fewer"),
    "huge-header": (b"\xff" * 8 + b"{}", "it has 10 bytes, fewer"),
    "not-text": (content(b"\xff"), "its header is not valid JSON"),
    "not-json": (content(b"{"), "its header is not valid JSON"),
    "deep-json": (content(b'{"a":' + b"[" * 100_000), "its header is not valid JSON"),
    "large-number": (content(b'{"a":' + b"1" * 5000 + b"}"), "its header is not valid JSON"),
    "list": (content([]), "its header is not a JSON object"),
    "number-as-text": (content({"__metadata__": {"a": 1}, "a": ENTRY}), "__metadata__ does not contain texts"),
    "texts-in-list": (content({"__metadata__": ["a"], "a": ENTRY}), "__metadata__ does not contain texts"),
    "entry-of-another-type": (content({"a": 3}), "a does not have a dtype, a shape and two data_offsets"),
    "no-dtype": (content({"a": ENTRY | {"dtype": None}}), "a does not have a dtype"),
    "float-in-shape": (content({"a": ENTRY | {"shape": [2.0, 1]}}), "a does not have a dtype, a shape"),
    "boolean-in-shape": (content({"a": ENTRY | {"shape": [2, True]}}), "a does not have a dtype, a shape"),
    "negative-shape": (content({"a": ENTRY | {"shape": [-2, -1]}}), "a does not have a dtype, a shape"),
    "three-offsets": (content({"a": ENTRY | {"data_offsets": [0, 4, 8]}}), "and two data_offsets"),
    "other-shape": (content({"a": ENTRY | {"shape": [3]}}), SHAPE),
    "huge-shape": (content({"a": ENTRY | {"shape": [2**62, 4]}}), SHAPE),
    "huger-shape": (content({"a": ENTRY | {"shape": [2**70]}}), SHAPE),
    "huge-and-empty": (content({"a": ENTRY | {"shape": [0, 2**70], "data_offsets": [0, 0]}}, b""), SHAPE),
    "many-dimensions": (content({"a": ENTRY | {"shape": [1] * 99 + [2]}}), SHAPE),
    "half-a-value": (content({"a": ENTRY | {"data_offsets": [0, 7]}}, VALUES[:7]), SHAPE),
    "cut-off": (content({"a": ENTRY}, VALUES[:-1]), "its tensors have 8 bytes, but 7 follow the header"),
    "too-long": (content({"a": ENTRY}, VALUES + b"\0"), "its tensors have 8 bytes, but 9 follow the header"),
    "gap": (content({"a": ENTRY | {"data_offsets": [4, 12]}}, VALUES + VALUES), "have a gap or overlap at byte"),
    "overlap": (content({"a": ENTRY, "b": ENTRY}), "have a gap or overlap at byte"),
    "backwards": (content({"a": {"dtype": "X", "shape": [1], "data_offsets": [0, 9]},
                           "b": {"dtype": "X", "shape": [1], "data_offsets": [9, 8]}}), "have a gap or overlap"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_content(case: str) -> None:
    data, message = BROKEN[case]
    with pytest.raises(InvalidTensorsError, match=re.escape(message)):
        read_tensors(data)


def test_the_library_reads_the_same() -> None:
    """Files that the library wrote, whole and with random changes; both accept the same ones."""
    library = pytest.importorskip("safetensors", reason="needs placeopt[torch]")
    from safetensors.numpy import load, save

    rng = np.random.default_rng(0)
    tensors = {name: rng.random(shape).astype(np.float32) for name, shape in (("a", (3, 2)), ("b", ()), ("c", (1, 0)))}
    data = save(tensors, {"key": "text"})
    assert read_tensors(data).texts == {"key": "text"}
    size = int.from_bytes(data[:8], "little")
    same = 0
    for _ in range(4000):
        broken = bytearray(data)
        for at in rng.integers(0, 8 + size, rng.integers(0, 3)):
            broken[at] = rng.choice(bytearray(b'0123456789"{}[],: \0'))
        found = arrays(bytes(broken))
        try:
            expected = load(bytes(broken))
        except (library.SafetensorError, KeyError):  # KeyError: a type that NumPy lacks
            assert found is None
            continue
        assert found is not None
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            assert found[name].shape == array.shape
            assert found[name].tobytes() == array.tobytes()
        same += 1
    assert 1000 < same < 3500
