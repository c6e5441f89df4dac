"""placeopt devices, and what inspect and solve state about efficiencies."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from commandline import run
from rich.console import Console

import placeopt as po
from placeopt.cli.terminal.catalog import print_devices

PROBLEM = """\
placeopt: 1
precision: fp16
devices:
  gpu: {like: t4, count: 2}
  other: {like: t4}
  cpu: {speed: 100 GFLOP/s, memory_bandwidth: 10 GB/s, efficiency: {compute: 0.25}}
tasks:
  a: {flops: 1 TFLOP}
  b: {bytes: 1 GB, after: a}
  c: {time: 1 s}
"""
LINES = (
    "0.5 of the speed and 0.8 of the memory bandwidth: gpu, other",
    "0.25 of the speed: cpu",
)


class TestDevices:
    @pytest.mark.parametrize("width", [80, 140])
    def test_the_tables_fit(self, width: int) -> None:
        cards = [po.device_info(name).to_dict() for name in po.device_names()]
        links = [po.link_info(name).to_dict() for name in po.link_names()]
        console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
        print_devices(console, cards, links)
        lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert max(map(len, lines)) <= width
        assert not [line for line in lines if "…" in line]
        rows = {line.split()[0]: line for line in lines if line.startswith("  ")}
        assert set(rows) == {*po.device_names(), *po.link_names()}
        values = r"2022 +80 GiB +3\.35 TB/s +67 T +989\.5 T +700 W"
        assert re.search(values, rows["h100-sxm"])
        assert ("NVIDIA H100 SXM5 80 GB" in rows["h100-sxm"]) == (width == 140)
        assert re.search(r"- +- +- +- +2 W", rows["coral-edge-tpu"])
        assert re.search(r"1999 +125 MB/s", rows["ethernet-1g"])

    def test_the_command_prints_them(self) -> None:
        done = run("devices")
        assert done.code == 0
        assert "NVIDIA H100 SXM5 80 GB" in done.out
        assert "placeopt devices NAME shows more" in done.out

    def test_one_device_with_its_sources(self) -> None:
        done = run("devices", "gaudi-2")
        text = " ".join(done.out.split())
        assert "Intel Gaudi 2 (OAM), 2022" in text
        assert "speed bf16 432 TFLOP/s, fp8 865 TFLOP/s" in text
        assert "usual links host pcie-4-x16, peer gaudi-2-ethernet" in text
        assert "efficiency 0.5 of the speed and 0.8 of the memory bandwidth, unless a problem states" in text
        for figure, source in po.device_info("gaudi-2").sources.items():
            assert re.search(rf"{figure.replace('_', ' ')}[^:]*: {re.escape(source)}", text)

    def test_one_link(self) -> None:
        text = " ".join(run("devices", "nvlink-4").out.split())
        assert "bandwidth 450 GB/s from one device to another, in one direction" in text
        assert "sources bandwidth: NVIDIA H100 Tensor Core GPU Architecture" in text

    def test_a_device_without_published_figures(self) -> None:
        assert "speed not published" in " ".join(run("devices", "m4").out.split()).replace("  ", " ")

    def test_json(self) -> None:
        found = json.loads(run("devices", "--json").out)
        assert [device["name"] for device in found["devices"]] == po.device_names()
        assert [link["name"] for link in found["links"]] == po.link_names()
        one = json.loads(run("devices", "t4", "--json").out)
        assert one == po.device_info("t4").to_dict()
        assert one["speed"]["fp16"] == 65 * 10**12
        assert one["memory"] == 16 * 2**30
        assert json.loads(run("devices", "usb-3", "--json").out)["bandwidth"] == 500 * 10**6

    def test_near_misses(self) -> None:
        done = run("devices", "a100")
        assert done.code == 2
        names = "a100-80gb or a100-80gb-pcie or a100-40gb or a100-40gb-pcie"
        told = f"did you mean {names}? `placeopt devices` lists all"
        assert done.err == f'placeopt: unknown device or link "a100"; {told}\n'
        assert "did you mean nvlink-4?" in run("devices", "nvlnk-4").err
        assert "did you mean rtx-4090?" in run("devices", "rtx4090").err


class TestEfficiency:
    @pytest.fixture
    def problem(self, tmp_path: Path) -> Path:
        path = tmp_path / "p.yaml"
        path.write_text(PROBLEM)
        return path

    def test_inspect_states_it(self, problem: Path) -> None:
        out = run("inspect", problem).out
        assert [line.removeprefix("efficiency").strip() for line in out.splitlines() if " of the speed" in line] == [
            *LINES
        ]
        assert out.count("efficiency") == 1

    def test_solve_states_it(self, problem: Path) -> None:
        out = run("solve", problem, "--solver", "heft").out
        assert [line.removeprefix("efficiency").strip() for line in out.splitlines() if " of the speed" in line] == [
            *LINES
        ]

    @pytest.mark.parametrize("command", [("inspect",), ("solve", "--solver", "heft")])
    def test_json_lists_each_pool(self, problem: Path, command: tuple[str, ...]) -> None:
        found = json.loads(run(command[0], problem, *command[1:], "--json").out)["efficiency"]
        assert found == [
            {"devices": "gpu", "like": "t4", "compute": 0.5, "memory": 0.8, "tasks": 2},
            {"devices": "other", "like": "t4", "compute": 0.5, "memory": 0.8, "tasks": 2},
            {"devices": "cpu", "like": None, "compute": 0.25, "memory": 1.0, "tasks": 1},
        ]

    def test_a_notebook_states_it(self, problem: Path) -> None:
        html = po.load(problem)._repr_html_()
        assert all(line in html for line in LINES)
        assert LINES[0] in str(po.solve(po.load(problem), "heft"))

    def test_measured_rates_need_no_line(self, problem: Path) -> None:
        problem.write_text(
            PROBLEM.replace("like: t4", "speed: 1 TFLOP/s, memory_bandwidth: 1 GB/s").replace("0.25", "1")
        )
        assert "efficiency" not in run("inspect", problem).out
        assert json.loads(run("inspect", problem, "--json").out)["efficiency"] == []


class TestImport:
    """dnn-partitioning states its own devices, so that --devices ends before the file is converted."""

    FILE = '{"maxSizePerFPGA": 5.0, "maxFPGAs": 1, "maxCPUs": 1, "nodes": [], "edges": []}'

    def test_devices_are_checked_first(self, tmp_path: Path) -> None:
        path = tmp_path / "m.json"
        path.write_text(self.FILE)
        assert 'no device of the catalogue has the name "h100"' in run("import", path, "--devices", "h100").err
        missing = run("import", path, "--devices", tmp_path / "none.yaml")
        assert missing.code == 2
        assert "none.yaml: no such file" in missing.err
        assert "takes no --devices" in run("import", path, "--devices", "t4:2").err
