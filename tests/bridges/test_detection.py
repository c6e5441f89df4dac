"""Devices of this machine: measured cores, and what a fake nvidia-smi reports. Nothing is timed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commandline import run

import placeopt as po
from placeopt.bridges import detection
from placeopt.bridges.detection import Gpu, Rates, detect_devices, known_device, query_gpus
from placeopt.bridges.networks import network_of
from placeopt.io.catalogue import catalogue_devices

LAPTOP = "NVIDIA GeForce RTX 4070 Laptop GPU, 8188, 4, 8"
UNKNOWN = "NVIDIA GeForce GTX 1080, 8192, 3, 16"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Four idle cores with 16 GiB and without GPUs."""
    monkeypatch.setattr(detection, "measure_rates", lambda cores: Rates(cores * 50e9, cores * 24.9999e9, 2e10))
    monkeypatch.setattr(detection, "_cores", lambda: 4)
    monkeypatch.setattr(detection.psutil, "virtual_memory", lambda: type("Memory", (), {"total": 2**34}))
    monkeypatch.setattr(os, "getloadavg", lambda: (1.9, 0.0, 0.0))
    monkeypatch.setenv("PATH", str(tmp_path))


def install(folder: Path, *lines: str, code: int = 0) -> None:
    """Put an nvidia-smi on PATH that prints these lines."""
    script = folder / "nvidia-smi"
    echo = "".join(f"echo '{line}'\n" for line in lines)
    script.write_text(f'#!/bin/sh\n[ "$1" = --query-gpu={",".join(detection.QUERY)} ] || exit 1\n{echo}exit {code}\n')
    script.chmod(0o755)


def solved(document: dict[str, Any]) -> po.Result:
    tasks = {"t": {"flops": "1 TFLOP", "bytes": "1 GB"}, "u": {"flops": "1 TFLOP", "after": {"t": "1 MB"}}}
    return po.solve(po.compile({**document, "tasks": tasks}), "heft")


class TestDevices:
    def test_cores_share_what_was_measured(self) -> None:
        document, notes = detect_devices()
        assert document["devices"] == {
            "cpu": {
                "count": 4,
                "memory": "4096 MiB",
                "speed": {"fp64": "25 GFLOP/s", "fp32": "50 GFLOP/s"},
                "memory_bandwidth": "5 GB/s",
            }
        }
        assert document["links"] == {"default": {"like": "shared-memory"}}
        assert notes == ("cpu: 4 cores with 4 GiB each, a share of the main memory",)
        assert solved(document).problem.duration[0].tolist() == [20 * 10**9] * 4  # measured rates count in full

    def test_a_busy_machine_is_noted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "getloadavg", lambda: (2.1, 0.0, 0.0))
        assert detect_devices()[1][1].startswith("other programs use the cores (load 2.1)")

    def test_gpus_have_the_figures_of_the_catalogue(self, tmp_path: Path) -> None:
        install(tmp_path, LAPTOP, LAPTOP)
        document, notes = detect_devices()
        assert document["devices"]["gpu"] == {
            "type": "gpu", "like": "rtx-4070-laptop", "count": 2, "memory": "8188 MiB",
        }  # fmt: skip
        assert document["links"]["overrides"] == [
            {"between": ["cpu", "gpu"], "like": "pcie-4-x8"},
            {"between": ["gpu", "gpu"], "like": "pcie-4-x8"},
        ]
        told = "gpu: NVIDIA GeForce RTX 4070 Laptop GPU is rtx-4070-laptop; its link to the host is pcie-4-x8"
        assert notes[1:] == (told,)
        assert solved(document).feasible

    def test_unknown_gpus_are_noted(self, tmp_path: Path) -> None:
        install(tmp_path, UNKNOWN, LAPTOP, "NVIDIA H100 80GB HBM3, 81559, 9, 16", "NVIDIA H100 80GB HBM3, 81559, 9, 16")
        document, notes = detect_devices()
        assert list(document["devices"]) == ["cpu", "gpu-a", "gpu-b", "gpu-c"]
        assert document["devices"]["gpu-a"] == {"type": "gpu", "memory": "8192 MiB"}
        assert "gpu-a: NVIDIA GeForce GTX 1080 is not in the catalogue; state its speed and memory_band" in notes[1]
        links = {tuple(each["between"]): each["like"] for each in document["links"]["overrides"]}
        assert links["cpu", "gpu-c"] == "pcie-5-x16"  # of the catalogue, as the reported one does not exist
        assert links["gpu-c", "gpu-c"] == "nvlink-4"
        assert links["gpu-b", "gpu-c"] == "pcie-4-x8"  # the slower one
        with pytest.raises(po.SpecError, match=r"devices\.gpu-a: has no speed"):
            solved(document)

    @pytest.mark.parametrize(
        ("lines", "code", "told"),
        [
            (("NVIDIA-SMI has failed",), 9, "nvidia-smi reports no GPU: NVIDIA-SMI has failed"),
            (("NVIDIA A10, [N/A], 4, 16",), 0, "nvidia-smi reports no GPU: NVIDIA A10, [N/A], 4, 16"),
            ((), 3, "nvidia-smi reports no GPU: exit code 3"),
        ],
    )
    def test_a_driver_that_fails_is_noted(self, lines: tuple[str, ...], code: int, told: str, tmp_path: Path) -> None:
        install(tmp_path, *lines, code=code)
        document, notes = detect_devices()
        assert list(document["devices"]) == ["cpu"]
        assert notes[1:] == (told,)

    def test_a_machine_without_gpus(self, tmp_path: Path) -> None:
        assert query_gpus() == ([], None)
        install(tmp_path)
        assert query_gpus() == ([], None)
        (tmp_path / "nvidia-smi").write_bytes(b"\x7fELF")
        gpus, note = query_gpus()
        assert gpus == []
        assert note is not None
        assert note.startswith("nvidia-smi gives no answer: ")


class TestNames:
    @pytest.mark.parametrize(
        ("name", "memory", "like"),
        [
            ("NVIDIA GeForce RTX 3060", 12288, "rtx-3060"),
            ("NVIDIA GeForce RTX 3060", 8192, None),  # another one of this name
            ("NVIDIA GeForce RTX 3080", 10240, "rtx-3080"),
            ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
            ("NVIDIA A100-SXM4-80GB", 81920, "a100-80gb"),
            ("NVIDIA A100 80GB PCIe", 81920, "a100-80gb-pcie"),
            ("NVIDIA A100-PCIE-40GB", 40960, "a100-40gb-pcie"),
            ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm"),
            ("NVIDIA H100 PCIe", 81559, "h100-pcie"),
            ("NVIDIA H200", 143771, "h200"),
            ("Tesla V100-SXM2-16GB", 16384, "v100-16gb"),
            ("Tesla T4", 15360, "t4"),
            ("NVIDIA L40S", 46068, "l40s"),
            ("NVIDIA RTX A6000", 49140, None),
        ],
    )
    def test_names_of_the_driver(self, name: str, memory: int, like: str | None) -> None:
        assert known_device(Gpu(name, memory, None)) == like

    def test_every_geforce_is_found_by_its_title(self) -> None:
        for key, device in catalogue_devices().items():
            if "GeForce" in device.title:
                memory = po.device_info(key).memory
                assert memory is not None
                assert known_device(Gpu(device.title.partition(",")[0], memory // 2**20, None)) == key


def test_rates_follow_from_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(detection, "TRAFFIC", 2**16)
    monkeypatch.setattr(detection, "ORDERS", (2, 4, 8))
    taken = iter([0.01, 0.5, 0.25, 2.0])
    done: list[object] = []

    def seconds(work: Any) -> float:
        done.append(work())
        return next(taken)

    monkeypatch.setattr(detection, "_median_seconds", seconds)
    assert detection.measure_rates(2) == Rates(2 * 4**3 / 0.5, 2 * 2**3 / 0.25, 2**16 / 2.0)
    assert len(done) == 4


class TestCommand:
    def test_it_writes_a_file_for_import(self, tmp_path: Path) -> None:
        install(tmp_path, LAPTOP)
        out = tmp_path / "devices.yaml"
        done = run("devices", "--detect", "--out", out)
        assert (done.code, done.out) == (0, "")
        assert "note: gpu: NVIDIA GeForce RTX 4070 Laptop GPU is rtx-4070-laptop" in done.err
        network, _ = network_of(str(out))
        assert list(network["devices"]) == ["cpu", "gpu"]
        assert network == {key: detect_devices()[0][key] for key in ("devices", "links")}

    def test_it_prints_yaml_or_json(self) -> None:
        assert run("devices", "--detect").out.startswith("placeopt: 1\nname: this machine\n")
        assert json.loads(run("devices", "--detect", "--json").out) == detect_devices()[0]

    def test_wrong_usage(self, tmp_path: Path) -> None:
        assert run("devices", "t4", "--detect").err == (
            "placeopt: --detect and t4 exclude each other: --detect writes the devices found\n"
        )
        assert run("devices", "--out", tmp_path / "x.yaml").err == "placeopt: --out needs --detect\n"
        assert "there is no folder" in run("devices", "--detect", "--out", tmp_path / "no" / "x.yaml").err
