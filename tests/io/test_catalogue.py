"""The catalogue: every entry compiles and has its sources; what `like`, `speed` by format and `efficiency` mean."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import ValidationError
from texts import compiled, complaints, data_complaints

import placeopt as po
from placeopt.errors import UsageError
from placeopt.io.catalogue import (
    COMPUTE_EFFICIENCY,
    MEMORY_EFFICIENCY,
    CatalogueDevice,
    CatalogueFile,
    _files,
    catalogue_devices,
    catalogue_links,
    hint,
)
from placeopt.io.compiler import compile_spec
from placeopt.io.compiler.durations import WIDER
from placeopt.io.spec import NumberFormat
from placeopt.model.building import with_changes
from placeopt.model.documents import problem_document
from placeopt.passes.rebuilding import rebuilt

DOCS = Path(__file__).parents[2] / "docs"
DEVICES, LINKS = list(catalogue_devices()), list(catalogue_links())


def problem(device: dict[str, Any], task: dict[str, Any], **sections: Any) -> po.Problem:
    """One task on one device, in ticks of 1 ps."""
    return compile_spec(
        {"placeopt": 1, "resolution": "0.001 ns", "devices": {"d": device}, "tasks": {"t": task}, **sections}
    )


def duration(device: dict[str, Any], task: dict[str, Any], **sections: Any) -> int:
    """Picoseconds of the task."""
    return int(problem(device, task, **sections).duration[0, 0])


class TestEntries:
    @pytest.mark.parametrize("name", DEVICES)
    def test_a_device_compiles_with_its_figures(self, name: str) -> None:
        info = po.device_info(name)
        for precision, speed in info.speed.items():
            exact = Fraction(10**12 * 10**12, speed) / COMPUTE_EFFICIENCY
            assert duration({"like": name}, {"flops": "1 TFLOP", "precision": precision}) == math.ceil(exact)
        if info.memory_bandwidth is not None:
            exact = Fraction(10**9 * 10**12, info.memory_bandwidth) / MEMORY_EFFICIENCY
            made = problem({"like": name}, {"bytes": "1 GB"})
            assert int(made.duration[0, 0]) == math.ceil(exact)
            assert int(made.capacity[0]) == (np.iinfo(np.int64).max if info.memory is None else info.memory)
            watts = Fraction(int(made.power_num[0]), int(made.power_den[0])) * 1000  # nJ per ps are kW
            assert watts == (info.power or 0)

    @pytest.mark.parametrize("name", LINKS)
    def test_a_link_compiles_with_its_bandwidth(self, name: str) -> None:
        made = compile_spec(
            {
                "placeopt": 1,
                "resolution": "0.001 ns",
                "devices": {"d": {"count": 2}},
                "links": {"default": {"like": name}},
                "tasks": {"t": {"time": "1 s"}},
            }
        )
        info = po.link_info(name)
        assert int(made.transfer(10**9, 0, 1)) == math.ceil(Fraction(10**9 * 10**12, info.bandwidth))
        assert made.latency[0, 1] == round((info.latency or 0) * 10**12)

    @pytest.mark.parametrize("name", DEVICES)
    def test_every_figure_of_a_device_has_its_source(self, name: str) -> None:
        info = po.device_info(name)
        stated = {key for key in ("memory", "memory_bandwidth", "power") if getattr(info, key) is not None}
        stated |= {"speed"} if info.speed else set()
        stated |= {"link"} if info.host_link or info.peer_link else set()
        assert set(info.sources) == stated
        assert all(len(source) > 20 for source in info.sources.values())
        assert {info.host_link, info.peer_link} - {None} <= set(LINKS)
        assert info.title
        assert 2010 < info.year < 2030

    @pytest.mark.parametrize("name", LINKS)
    def test_every_link_has_its_source(self, name: str) -> None:
        info = po.link_info(name)
        assert "bandwidth" in info.sources
        assert ("latency" in info.sources) == (info.latency is not None)

    def test_sources_belong_to_their_file(self) -> None:
        assert po.device_info("gaudi-3").sources["memory"].startswith("R. Kaplan, Intel Gaudi 3")
        assert po.link_info("gaudi-3-ethernet").sources["bandwidth"].startswith("Intel Gaudi Network Configuration")

    def test_every_source_is_used(self) -> None:
        for file in _files():
            used = {key for entry in (*file.devices.values(), *file.links.values()) for key in entry.source.values()}
            assert used == set(file.sources), file.title

    def test_narrower_formats_are_not_slower(self) -> None:
        for name in DEVICES:
            speed = po.device_info(name).speed
            for precision, wider in WIDER.items():
                for other in wider:
                    if precision in speed and other in speed:
                        assert speed[precision] >= speed[other], (name, precision, other)

    def test_rates_of_tensor_cores_are_dense(self) -> None:
        """Products of the tensor cores, their OP per cycle and the frequency, from the architecture papers."""
        a100, t4, v100 = (po.device_info(name).speed for name in ("a100-80gb", "t4", "v100-16gb"))
        assert a100["fp16"] == pytest.approx(432 * 512 * 1.41e9, rel=0.01)
        assert t4["fp16"] == pytest.approx(320 * 128 * 1.59e9, rel=0.01)
        assert v100["fp16"] == pytest.approx(640 * 128 * 1.53e9, rel=0.01)
        h100 = po.device_info("h100-sxm").speed
        assert h100["fp16"] == pytest.approx(528 * 1024 * 1.83e9, rel=0.01)
        assert h100["fp8"] == 2 * h100["fp16"] == pytest.approx(4 * h100["tf32"], rel=0.001)

    def test_rates_of_geforce_follow_from_cores_and_frequency(self) -> None:
        cores = {
            "rtx-4080": (9728, 2.505), "rtx-4070": (5888, 2.475), "rtx-4060": (3072, 2.46), "rtx-3080": (8704, 1.71),
            "rtx-4080-laptop": (7424, 2.28), "rtx-4070-laptop": (4608, 2.175), "rtx-4060-laptop": (3072, 2.37),
            "rtx-3060": (3584, 1.78), "rtx-3080-laptop": (6144, 1.71), "rtx-3060-laptop": (3840, 1.703),
        }  # fmt: skip
        times = {"fp32": 1, "tf32": 1, "fp16": 2, "bf16": 2, "fp8": 4, "int8": 8, "int4": 16}
        for name, (number, frequency) in cores.items():
            for precision, speed in po.device_info(name).speed.items():
                assert speed == pytest.approx(2 * number * frequency * 1e9 * times[precision], rel=0.005), name

    def test_bandwidths_of_links_follow_from_lanes_and_encoding(self) -> None:
        for generation, rate in ((3, 8), (4, 16), (5, 32)):
            for lanes in (4, 8, 16):
                exact = rate * 1e9 * lanes / 8 * 128 / 130
                assert po.link_info(f"pcie-{generation}-x{lanes}").bandwidth == pytest.approx(exact, rel=0.002)
        for generation, links, each in ((1, 4, 20), (2, 6, 25), (3, 12, 25), (4, 18, 25), (5, 18, 50)):
            assert po.link_info(f"nvlink-{generation}").bandwidth == links * each * 10**9
        for gigabits in (1, 10, 25, 100, 200, 400):
            assert po.link_info(f"ethernet-{gigabits}g").bandwidth == gigabits * 10**9 // 8

    def test_an_entry_without_a_source_is_not_valid(self) -> None:
        entry: dict[str, Any] = {"title": "x", "year": 2020, "memory": "1 GiB", "power": "1 W"}
        with pytest.raises(ValidationError, match="power: no source"):
            CatalogueDevice.model_validate({**entry, "source": {"memory": "a"}})
        with pytest.raises(ValidationError, match="d: unknown source a"):
            CatalogueFile.model_validate(
                {"title": "x", "sources": {"b": "b"}, "devices": {"d": {**entry, "source": "a"}}}
            )

    def test_unknown_names_suggest_the_nearest(self) -> None:
        with pytest.raises(UsageError, match=r'device of the catalogue "a100"; did you mean a100-80gb or .* a100-40gb'):
            po.device_info("a100")
        with pytest.raises(UsageError, match=r'link of the catalogue "nvlink4"; did you mean nvlink-4\?'):
            po.link_info("nvlink4")
        assert hint("zzz", ["a", "b"]) == "; `placeopt devices` lists all"
        laptop = hint("laptop", DEVICES)
        assert "rtx-4060-laptop or " in laptop
        assert laptop.count(" or ") == 5
        assert (
            hint("Ryzen 7", DEVICES) == "; did you mean ryzen-7-zen4-core or ryzen-7-core? `placeopt devices` lists all"
        )
        for other in ("rtx-4070-mobile", "RTX 4070 Max-Q", "NVIDIA GeForce RTX 4070 Laptop GPU"):
            assert hint(other, DEVICES) == "; did you mean rtx-4070-laptop? `placeopt devices` lists all"
        assert hint("B 1", ["a", "b-1", "xb-10"]) == "; did you mean b-1 or xb-10? `placeopt devices` lists all"

    def test_names_are_listed(self) -> None:
        assert po.device_names() == DEVICES
        assert po.link_names() == LINKS
        assert len(DEVICES) >= 60
        assert repr(po.device_info("t4")) == "<DeviceInfo t4: NVIDIA T4>"


class TestOwnFigures:
    def test_own_figures_win(self) -> None:
        made = problem({"like": "t4", "memory": "10 GiB", "power": "50 W"}, {"flops": "1 TFLOP"})
        assert made.capacity[0] == 10 * 2**30
        assert Fraction(int(made.power_num[0]), int(made.power_den[0])) * 1000 == 50
        assert made.device_types == ("d",)

    def test_an_own_speed_replaces_all_speeds_and_counts_in_full(self) -> None:
        device = {"like": "t4", "speed": {"fp16": "10 TFLOP/s"}}
        assert duration(device, {"flops": "1 TFLOP", "precision": "int8"}) == 10**11
        assert problem(device, {"flops": "1 TFLOP", "precision": "fp16"}).efficiency == ()
        found = complaints("placeopt: 1\ndevices: {d: {like: t4, speed: {fp16: 1 TFLOP/s}}}\ntasks: {t: {flops: 3}}\n")
        assert found == [
            '2:14: devices.d: has no speed for fp32 or a wider format (fp64), and task "t", with flops in fp32, may '
            "run on it; state one, change the task's precision, or restrict the task's devices"
        ]

    def test_a_single_speed_holds_for_all_formats(self) -> None:
        for precision in get_args(NumberFormat):
            assert duration({"speed": "1 TFLOP/s"}, {"flops": "1 TFLOP", "precision": precision}) == 10**12

    def test_own_values_of_a_link_win(self) -> None:
        text = """\
placeopt: 1
resolution: 1 us
devices: {d: {count: 3}}
links:
  default: {like: pcie-4-x16, latency: 5 us}
  overrides:
    - {from: d0, to: d1, like: nvlink-3}
    - {from: d0, to: d2, like: nvlink-3, bandwidth: 1 GB/s}
tasks: {t: {time: 1 s}}
"""
        made = compiled(text)
        assert made.transfer(63_020_000, 1, 0) == 2005
        assert made.transfer(300_000_000, 0, 1) == 1005  # the latency of the default stays
        assert made.transfer(1_000_000, 0, 2) == 1005

    def test_a_spec_made_in_code(self) -> None:
        document = {"placeopt": 1, "devices": {"d": {"like": "t4"}}, "tasks": {"t": {"flops": "1 TFLOP"}}}
        made = po.compile(po.Spec.model_validate(document))
        assert made.fingerprint() == po.compile(document).fingerprint()
        assert made.efficiency == po.compile(document).efficiency != ()

    def test_conflicts_are_explained_with_memory_of_the_catalogue(self) -> None:
        tasks = {name: {"flops": "1 TFLOP", "memory": "10 GiB"} for name in "ab"}
        document = {"placeopt": 1, "devices": {"d": {"like": "t4"}}, "tasks": tasks}
        alone = po.explain(document)
        assert alone.reason == "all tasks together need 20 GiB of memory, and all devices have 16 GiB"
        devices = {"d": {"like": "t4", "count": 2}}
        tasks = {name: {"flops": "1 TFLOP", "memory": "9 GiB"} for name in "abc"}
        found = po.explain({**document, "devices": devices, "tasks": tasks})
        assert found.status == "infeasible"
        assert any("have 16 GiB of memory each" in member.text for member in found.members)

    def test_energy_may_come_from_the_catalogue(self) -> None:
        made = problem({"like": "t4"}, {"flops": "1 TFLOP"}, objective="energy")
        assert made.power_num[0] > 0


class TestFormats:
    CHAINS = """
        fp64
        fp32 fp64
        tf32 fp32 fp64
        bf16 tf32 fp32 fp64
        fp16 tf32 fp32 fp64
        fp8 fp16 bf16 tf32 fp32 fp64
        fp4 fp8 fp16 bf16 tf32 fp32 fp64
        int8 fp16 bf16 tf32 fp32 fp64
        int4 int8 fp16 bf16 tf32 fp32 fp64
    """

    @pytest.mark.parametrize(
        "chain", [line.split() for line in CHAINS.strip().splitlines()], ids=lambda chain: chain[0]
    )
    def test_the_next_wider_format_applies(self, chain: list[str]) -> None:
        speeds = {other: 10**9 * (k + 2) for k, other in enumerate(get_args(NumberFormat))}
        for first, expected in enumerate(chain):
            stated = {key: f"{speed} FLOP/s" for key, speed in speeds.items() if key not in chain[:first]}
            took = duration({"speed": stated}, {"flops": "1 GFLOP", "precision": chain[0]})
            assert took == math.ceil(Fraction(10**9 * 10**12, speeds[expected]))
        narrow = {key: "1 GFLOP/s" for key in speeds if key not in chain} or None
        document = {"devices": {"d": {"speed": narrow}}, "tasks": {"t": {"flops": 3, "precision": chain[0]}}}
        (found,) = data_complaints({"placeopt": 1, **document})
        lack = f"has no speed for {chain[0]}" if narrow else "has no speed,"
        assert found.startswith(f"devices.d: {lack}")

    def test_the_page_has_the_same_table(self) -> None:
        page = (DOCS / "spec.md").read_text(encoding="utf-8").split("## Number formats")[1].split("\n## ")[0]
        rows = [re.findall(r"`(\w+)`", line) for line in page.splitlines() if line.startswith("| `")]
        assert {first: tuple(wider) for first, *wider in rows} == WIDER

    def test_a_wider_format_holds_every_value(self) -> None:
        """Exponent bits and significant bits, the implicit one included; an int of k bits needs k significant bits."""
        bits = {"fp64": (11, 53), "fp32": (8, 24), "tf32": (8, 11), "bf16": (8, 8), "fp16": (5, 11), "fp8": (4, 4)}
        bits |= {"fp4": (2, 2), "int8": (3, 8), "int4": (2, 4)}
        for precision, wider in WIDER.items():
            for other in wider:
                if not other.startswith("int"):
                    assert all(a <= b for a, b in zip(bits[precision], bits[other], strict=True)), (precision, other)

    def test_the_top_level_states_the_default(self) -> None:
        device = {"speed": {"fp32": "1 TFLOP/s", "fp16": "4 TFLOP/s"}}
        assert duration(device, {"flops": "1 TFLOP"}) == 10**12
        assert duration(device, {"flops": "1 TFLOP"}, precision="fp16") == 25 * 10**10
        assert duration(device, {"flops": "1 TFLOP", "precision": "fp32"}, precision="fp16") == 10**12

    def test_formats_do_not_mix(self) -> None:
        tasks = {f"t{k}": {"flops": "1 TFLOP", "precision": p} for k, p in enumerate(["fp16", "fp32", "fp16", "int8"])}
        speed = {"fp32": "1 TFLOP/s", "fp16": "2 TFLOP/s", "int8": "4 TFLOP/s"}
        made = compile_spec({"placeopt": 1, "devices": {"d": {"speed": speed}}, "tasks": tasks})
        assert made.duration[:, 0].tolist() == [5 * 10**8, 10**9, 5 * 10**8, 25 * 10**7]

    def test_tasks_without_flops_need_no_speed(self) -> None:
        assert duration({"like": "m4"}, {"bytes": "96 MB", "precision": "int4"}) == 10**9


class TestEfficiency:
    def test_factors_are_exact(self) -> None:
        device = {"speed": "3 TFLOP/s", "memory_bandwidth": "7 GB/s", "efficiency": {"compute": 0.1, "memory": 0.7}}
        assert duration(device, {"flops": "1 TFLOP"}) == math.ceil(Fraction(10**13, 3))
        assert duration(device, {"bytes": "49 MB"}) == 10**10
        assert problem(device, {"flops": "1 TFLOP"}).efficiency[0].compute == Fraction(1, 10)

    def test_the_roofline_is_the_larger_quotient_after_both_factors(self) -> None:
        device = {"speed": "1 TFLOP/s", "memory_bandwidth": "1 TB/s", "efficiency": {"compute": 0.5, "memory": 0.25}}
        assert duration(device, {"flops": "3 TFLOP", "bytes": "1 TB"}) == 6 * 10**12
        assert duration(device, {"flops": "1 TFLOP", "bytes": "1 TB"}) == 4 * 10**12
        assert duration({**device, "overhead": "1 s"}, {"flops": "1 TFLOP", "bytes": "1 TB"}) == 5 * 10**12

    def test_the_page_states_the_defaults(self) -> None:
        page = (DOCS / "devices.md").read_text(encoding="utf-8")
        assert f"| `speed` | {float(COMPUTE_EFFICIENCY):g} |" in page
        assert f"| `memory_bandwidth` | {float(MEMORY_EFFICIENCY):g} |" in page

    def test_rates_without_a_unit_are_scaled_too(self) -> None:
        device = {"speed": 4, "memory_bandwidth": 2, "efficiency": 0.5}
        assert duration(device, {"flops": 8, "bytes": 5}) == 5

    @pytest.mark.parametrize(
        ("device", "factors"),
        [
            ({"like": "t4"}, (0.5, 0.8)),
            ({"like": "t4", "efficiency": 0.6}, (0.6, 0.6)),
            ({"like": "t4", "efficiency": {"compute": 0.6}}, (0.6, 0.8)),
            ({"like": "t4", "efficiency": {"memory": 1}}, (0.5, 1)),
            ({"like": "t4", "speed": "1 TFLOP/s"}, (1, 0.8)),
            ({"like": "t4", "memory_bandwidth": "300 GB/s"}, (0.5, 1)),
            ({"like": "t4", "speed": "1 TFLOP/s", "memory_bandwidth": "300 GB/s"}, None),
            ({"like": "t4", "speed": "1 TFLOP/s", "efficiency": 0.25}, (0.25, 0.25)),
            ({"like": "t4", "efficiency": 1}, None),
            ({"speed": "1 TFLOP/s", "memory_bandwidth": "300 GB/s"}, None),
            ({"speed": "1 TFLOP/s", "memory_bandwidth": "300 GB/s", "efficiency": 0.5}, (0.5, 0.5)),
        ],
    )
    def test_the_factor_of_each_rate(self, device: dict[str, Any], factors: tuple[float, float] | None) -> None:
        """Stated; else 1 for an own rate, and the default of the catalogue for a rate from there."""
        tasks = {"a": {"flops": "1 TFLOP"}, "b": {"bytes": "1 GB"}, "c": {"time": "1 s"}}
        made = compile_spec({"placeopt": 1, "devices": {"d": device}, "tasks": tasks})
        own = compile_spec({"placeopt": 1, "devices": {"d": {**device, "efficiency": 1}}, "tasks": tasks})
        if factors is None:
            assert made.efficiency == ()
            assert made.fingerprint() == own.fingerprint()
            return
        (found,) = made.efficiency
        assert (float(found.compute), float(found.memory)) == factors
        assert found.devices == "d"
        assert found.like == device.get("like")
        assert found.tasks == sum(factor < 1 for factor in factors)
        for row, factor in enumerate(factors):
            assert made.duration[row, 0] == pytest.approx(own.duration[row, 0] / factor, rel=1e-6)

    def test_only_tasks_whose_duration_depends_on_it_count(self) -> None:
        device = {"speed": "1 TFLOP/s", "memory_bandwidth": "1 TB/s", "efficiency": {"compute": 0.5}}
        tasks = {
            "compute": {"flops": "2 TFLOP", "bytes": "1 TB"},
            "memory": {"flops": "1 GFLOP", "bytes": "1 TB"},
            "stated": {"time": "1 s"},
            "elsewhere": {"flops": "1 TFLOP", "devices": "other"},
            "placed": {"flops": "1 TFLOP"},
        }
        document = {"placeopt": 1, "devices": {"d": {**device, "count": 2}, "other": device}, "tasks": tasks}
        made = compile_spec({**document, "placement": {"placed": "d1"}})
        assert [(found.devices, found.tasks) for found in made.efficiency] == [("d", 2), ("other", 2)]

    def test_pools_with_equal_rates_are_told_apart(self) -> None:
        made = compile_spec(
            {
                "placeopt": 1,
                "devices": {"a": {"like": "t4"}, "b": {"like": "l4"}, "c": {"like": "t4"}},
                "tasks": {"t": {"flops": 5}, "u": {"flops": 5, "devices": ["a", "b"]}},
            }
        )
        found = [(each.devices, each.like, each.tasks) for each in made.efficiency]
        assert found == [("a", "t4", 2), ("b", "l4", 2), ("c", "t4", 1)]

    def test_changes_keep_it_and_smaller_problems_and_documents_lose_it_like_the_rounding(self) -> None:
        made = problem({"like": "t4"}, {"flops": "1 TFLOP"})
        assert with_changes(made, name="x").efficiency == made.efficiency != ()
        for other in (rebuilt(made)[0], po.compile(problem_document(made))):
            assert other.duration.tolist() == made.duration.tolist()
            assert other.fingerprint() == made.fingerprint()
            assert other.efficiency == ()
        assert made.efficiency[0].to_dict() == {
            "devices": "d", "like": "t4", "compute": 0.5, "memory": 0.8, "tasks": 1,
        }  # fmt: skip

    def test_replacement_uses_the_catalogue(self) -> None:
        document = {"placeopt": 1, "devices": {"a": {"like": "t4"}}, "tasks": {"t": {"flops": "1 TFLOP"}}}
        network = {"devices": {"a": {"like": "t4"}, "b": {"like": "l4"}}, "links": {"default": {"like": "pcie-3-x16"}}}
        found = po.replace(document, {"t": "a"}, network, solver="brute-force")
        assert [each.like for each in found.problem.efficiency] == ["t4", "l4"]
        assert found.result.placement == {"t": "b"}
