"""Names of devices in runtimes, by words in their types and names."""

from __future__ import annotations

from pathlib import Path

import pytest

import placeopt as po
from placeopt.bridges.exporters.llama_cpp import BACKENDS, buffer_types
from placeopt.bridges.exporters.onnxruntime import PROVIDERS
from placeopt.bridges.exporters.openvino import DEVICES
from placeopt.bridges.exporters.pytorch import torch_devices
from placeopt.bridges.hardware import Device, by_word, devices_of, is_cpu
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
    assert is_cpu(Device(name, kind)) == expected


def test_the_longest_word_of_the_type_counts_first() -> None:
    table = {"core": "a", "coreml": "b", "t4": "c"}
    assert by_word(table, Device("core", "coreml0")) == "b"
    assert by_word(table, Device("core-coreml", "x")) == "a"
    assert by_word(table, Device("t4-0", "t4g")) == "c"
    assert by_word(table, Device("t40", "t4g")) is None


def test_every_gpu_and_processor_of_the_catalogue_has_names() -> None:
    """Accelerators that are neither, such as TPUs, have none."""
    for name in device_names():
        known = name.partition("-")[0] not in ("coral", "gaudi", "tpu")
        assert (by_word(PROVIDERS, Device("a", "b", name)) is not None) == known, name
        assert (by_word(BACKENDS, Device("a", "b", name)) is not None) == known, name


PROBLEM = {
    "placeopt": 1,
    "resolution": "1 us",
    "devices": {
        "host": {"like": "xeon-core"},
        "acc": {"like": "rtx-4090"},
        "gpu": {"like": "epyc-core", "count": 2},
        "core0": {"like": "mi300x"},
        "gpu7": {},
    },
    "tasks": {"t": {"time": "1 ms"}},
}


@pytest.mark.parametrize("written", [False, True])
def test_the_catalogue_decides_before_words_of_types_and_names(written: bool, tmp_path: Path) -> None:
    """Also in a written problem, which states the figures of its devices instead of `like`."""
    problem = po.compile(PROBLEM)
    if written:
        po.write_problem(problem, tmp_path / "p.yaml")
        problem = po.load(tmp_path / "p.yaml")
    assert torch_devices(problem, None) == ["cpu", "cuda:0", "cpu", "cpu", "cuda:1", "cuda:2"]
    cpu, cuda, amd = "CPUExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider"
    assert [by_word(PROVIDERS, each) for each in devices_of(problem)] == [cpu, cuda, cpu, cpu, amd, cuda]
    assert [by_word(DEVICES, each) for each in devices_of(problem)] == ["CPU", None, "CPU", "CPU", None, "GPU"]
    assert buffer_types(devices_of(problem)) == ["CPU", "CUDA0", "CPU", "CPU", "ROCm0", "CUDA1"]


def test_the_catalogue_changes_no_fingerprint() -> None:
    written = po.compile(PROBLEM).to_document()
    without = {key: section for key, section in written.items() if key != "x-catalogue"}
    assert po.compile(without).fingerprint() == po.compile(PROBLEM).fingerprint()


def test_the_catalogue_of_devices_that_are_gone_does_not_count() -> None:
    written = po.compile(PROBLEM).to_document()
    devices = {"host": {}, "acc": {"like": "xeon-core"}}
    tasks = {"t": {"time": {"host": 1, "acc": 1}}}
    found = po.replace(written | {"tasks": tasks}, {"t": "host"}, {"devices": devices}).problem
    assert [device.like for device in devices_of(found)] == [None, "xeon-core"]


def test_words_for_software_count_for_a_device_of_the_catalogue() -> None:
    assert by_word(PROVIDERS, Device("a", "tensorrt", "rtx-4090")) == "TensorrtExecutionProvider"
    assert by_word(PROVIDERS, Device("openvino0", "a", "xeon-core")) == "OpenVINOExecutionProvider"
    assert by_word(DEVICES, Device("gpu0", "gpu", "rtx-4090")) == "GPU"
