"""Names of devices in runtimes, by words in their types and names."""

from __future__ import annotations

import pytest

from placeopt.bridges.exporters.llama_cpp import BACKENDS
from placeopt.bridges.exporters.onnxruntime import PROVIDERS
from placeopt.bridges.hardware import by_word, is_cpu
from placeopt.io.catalogue import device_names


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("cpu", "host", True),
        ("edge", "core12", True),
        ("CPU", "gpu0", True),
        ("gpu", "core0", False),
        ("p-core", "a", True),
        ("ecore3", "a", True),
        ("raspberry-pi-5", "a", True),
        ("cuda-core", "a", False),
        ("igpu", "cpu0", False),
        ("accelerator", "a100-40gb1", False),
        ("tpu-v4", "worker", False),
    ],
)
def test_processor_cores(kind: str, name: str, expected: bool) -> None:
    assert is_cpu(kind, name) == expected


def test_the_longest_word_of_the_type_counts_first() -> None:
    table = {"core": "a", "coreml": "b", "t4": "c"}
    assert by_word(table, "coreml0", "core") == "b"
    assert by_word(table, "x", "core-coreml") == "a"
    assert by_word(table, "t4g", "t4-0") == "c"
    assert by_word(table, "t4g", "t40") is None


def test_every_gpu_and_processor_of_the_catalogue_has_names() -> None:
    """Accelerators that are neither, such as TPUs, have none."""
    for name in device_names():
        known = name.partition("-")[0] not in ("coral", "gaudi", "tpu")
        assert (by_word(PROVIDERS, name, name) is not None) == known, name
        assert (by_word(BACKENDS, name, name) is not None) == known, name
