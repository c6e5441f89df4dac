"""The devices for an imported model: a mapping, a file, devices of the catalogue, or the default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import placeopt as po
from placeopt.bridges.networks import DEFAULT_NOTE, network_of
from placeopt.errors import SpecError, UsageError

PROBLEMS = Path(__file__).parents[2] / "problems"
NETWORK = "devices: {gpu: {like: t4, count: 2}, cpu: {speed: 1 GFLOP/s}}\nlinks: {default: {like: pcie-3-x16}}\n"


def write(folder: Path, text: str, name: str = "network.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def transfers(network: dict[str, Any]) -> dict[tuple[str, str], int]:
    """Nanoseconds of 1 GB between every two devices."""
    made = po.compile({"placeopt": 1, **network, "tasks": {"t": {"time": 1}}})
    names = made.device_names
    return {(a, b): int(made.transfer(10**9, i, j)) for i, a in enumerate(names) for j, b in enumerate(names) if i != j}


class TestCatalogue:
    def test_devices_of_one_kind_have_their_peer_link(self) -> None:
        network, notes = network_of("h100-sxm:4")
        assert network == {
            "devices": {"h100-sxm": {"like": "h100-sxm", "count": 4}},
            "links": {"default": {"like": "nvlink-4"}},
        }
        assert notes == ("the links are assumed: nvlink-4 among h100-sxm",)
        assert set(transfers(network).values()) == {2_222_223}

    def test_devices_of_several_kinds_are_connected_through_the_host(self) -> None:
        network, notes = network_of(" a100-40gb:2 , xeon-core : 2,t4")
        assert network["devices"] == {
            "a100-40gb": {"like": "a100-40gb", "count": 2},
            "xeon-core": {"like": "xeon-core", "count": 2},
            "t4": {"like": "t4"},
        }
        found = transfers(network)
        assert found["a100-40gb0", "a100-40gb1"] == 3_333_334  # NVLink
        assert found["xeon-core1", "xeon-core0"] == 78_125_000  # memory
        assert found["a100-40gb0", "xeon-core1"] == found["xeon-core1", "a100-40gb0"] == 31_735_957  # PCIe 4
        assert found["a100-40gb0", "t4"] == found["t4", "xeon-core0"] == 63_492_064  # PCIe 3
        assert notes == (
            "the links are assumed: nvlink-3 among a100-40gb; shared-memory among xeon-core; pcie-4-x16 between "
            "a100-40gb and xeon-core; pcie-3-x16 between a100-40gb and t4, between xeon-core and t4",
        )

    @pytest.mark.parametrize(
        ("text", "link"),
        [
            ("m1:2", "ethernet-10g"),  # no usual link
            ("xeon-core,epyc-core", "ethernet-10g"),  # two hosts
            ("m1,t4", "ethernet-10g"),  # m1 is not a part of the host of t4
            ("jetson-nano,h100-sxm", "ethernet-1g"),  # the slower host link
            ("coral-edge-tpu,raspberry-pi-5", "ethernet-1g"),
            ("coral-edge-tpu,xeon-core", "usb-3"),
            ("coral-edge-tpu:2", "usb-3"),
        ],
    )
    def test_the_link_of_other_pairs(self, text: str, link: str) -> None:
        network, (note,) = network_of(text)
        assert network["links"] == {"default": {"like": link}}
        assert link in note

    def test_a_single_device_needs_no_link(self) -> None:
        assert network_of("t4") == ({"devices": {"t4": {"like": "t4"}}}, ())
        assert network_of("t4:1") == network_of("t4")

    def test_the_default_is_two_cores_of_the_catalogue(self) -> None:
        network, notes = network_of(None)
        assert network["devices"] == {"xeon-core": {"like": "xeon-core", "count": 2}}
        assert notes == (DEFAULT_NOTE, "the links are assumed: shared-memory among xeon-core")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("h100", r'no file and no device .* "h100"; did you mean h100-sxm or h100-pcie\?'),
            ("t4:2,l4o", r'has the name "l4o"; did you mean l4\?'),
            ("xyzzy", r'has the name "xyzzy"; `placeopt devices` lists all$'),
            ("t4:0", "t4:0 is not a number of devices; expected 1 to 4,096"),
            ("t4:5000", "t4:5000 is not a number of devices"),
            ("t4:2,t4", "t4 is given twice"),
            ("t4:x", '"t4:x" are neither a file nor devices of the catalogue; expected a file, or devices such as'),
            ("t4:-1", "neither a file nor devices"),
            ("", "neither a file nor devices"),
            ("t4,,l4", "neither a file nor devices"),
        ],
    )
    def test_mistakes(self, text: str, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            network_of(text)


class TestFiles:
    def test_a_network_file(self, tmp_path: Path) -> None:
        network, notes = network_of(str(write(tmp_path, NETWORK)))
        assert list(network) == ["devices", "links"]
        assert list(network["devices"]) == ["gpu", "cpu"]
        assert notes == ()

    def test_an_existing_file_takes_precedence_over_a_device(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write(tmp_path, "devices: {mine: {speed: 1 GFLOP/s}}\n", "t4")
        assert list(network_of("t4")[0]["devices"]) == ["mine"]
        (tmp_path / "l4").mkdir()  # a folder is not a network
        assert list(network_of("l4")[0]["devices"]) == ["l4"]

    def test_of_a_problem_file_devices_and_links_count(self, tmp_path: Path) -> None:
        tasks = "tasks: {a: {time: 3 fortnights}, a: {}}\nplacement: {a: nowhere}\n"  # not read, so not checked
        network, _ = network_of(write(tmp_path, f"placeopt: 1\nname: p\n{NETWORK}{tasks}"))
        assert list(network) == ["devices", "links"]
        network, _ = network_of(
            write(tmp_path, '{"placeopt": 1, "devices": {"d": {}}, "graph": {"file": "g"}}', "p.json")
        )
        assert network == {"devices": {"d": {}}}

    def test_a_problem_of_the_collection(self) -> None:
        network, _ = network_of(PROBLEMS / "inception.yaml")
        assert network == {key: yaml.safe_load((PROBLEMS / "inception.yaml").read_text())[key] for key in network}
        serving = PROBLEMS / "serving" / "llama-70b-24.yaml"
        assert network_of(serving)[0]["devices"] == yaml.safe_load(serving.read_text())["devices"]
        with pytest.raises(SpecError, match="depends on the units of this problem"):
            network_of(PROBLEMS / "heft-10.yaml")

    def test_amounts_without_a_unit_in_a_problem_are_errors(self, tmp_path: Path) -> None:
        text = """\
placeopt: 1
units: {memory: MiB}
devices:
  a: {speed: {fp16: 3, fp32: 1 GFLOP/s}, memory: 5, power: 3}
  b: {speed: 4, memory_bandwidth: 5 GB/s, overhead: 7}
links:
  default: {latency: 0, bandwidth: 2.5}
  overrides: [{between: [a, b], latency: 4}]
tasks: {t: {time: 1}}
"""
        path = write(tmp_path, text)
        with pytest.raises(SpecError) as caught:
            network_of(path)
        assert [str(issue).removeprefix(f"{path}:").split(" has no unit")[0] for issue in caught.value.issues] == [
            "4:14: devices.a.speed: 3",
            "4:50: devices.a.memory: 5",
            "5:14: devices.b.speed: 4",
            "5:53: devices.b.overhead: 7",
            "7:36: links.default.bandwidth: 2.5",
            "8:42: links.overrides[0].latency: 4",
        ]

    def test_a_network_file_may_count_in_the_units_of_the_problem(self, tmp_path: Path) -> None:
        network, _ = network_of(write(tmp_path, "devices: {a: {speed: 4}}\n"))
        assert network == {"devices": {"a": {"speed": 4}}}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("devices: {a: {spead: 4}}\n", "1:15: devices.a.spead: unknown key; did you mean speed?"),
            ("devices: {a: {like: t5}}\n", '1:21: devices.a.like: unknown device of the catalogue "t5"'),
            (
                "devices: {a: {like: t4}, b: }\nlinks: {default: {like: pcie4-x16}}\n",
                '2:25: links.default.like: unknown link of the catalogue "pcie4-x16"; did you mean pcie-4-x16?',
            ),
            ("devices: {a: }\nlinks: {overrides: [{between: [a, b], latency: 1 s}]}\n", 'unknown device "b"'),
            ("devices: {}\n", "1:10: devices: expected at least 1 entry"),
            ("placeopt: 1\ntasks: {a: {time: 1}}\n", "devices is missing"),
            ("devices: [", "is not valid YAML"),
        ],
    )
    def test_mistakes_have_their_place(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(SpecError) as caught:
            network_of(write(tmp_path, text))
        assert message in str(caught.value)
        with pytest.raises(SpecError, match=r"missing\.yaml: no such file"):
            network_of(tmp_path / "missing.yaml")

    def test_a_mapping(self) -> None:
        devices = {"a": {"speed": 4}}
        assert network_of({"devices": devices}) == ({"devices": devices}, ())
        with pytest.raises(UsageError, match="has the keys devices, tasks; expected devices and links"):
            network_of({"devices": devices, "tasks": {}})

    def test_a_plan_is_not_a_network(self, tmp_path: Path) -> None:
        message = "placeopt is missing: this looks like a plan file, expected a network file"
        with pytest.raises(SpecError, match=message):
            network_of(write(tmp_path, "placeopt_plan: 1\ntasks: {a: {device: b, start: 0}}\n"))

    def test_json(self, tmp_path: Path) -> None:
        path = write(tmp_path, json.dumps({"devices": {"a": {}}}), "n.json")
        assert network_of(path)[0] == {"devices": {"a": {}}}
