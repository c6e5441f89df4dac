"""`placeopt export --to llama.cpp`: rules against the names of tensors, and the options that place KV caches."""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run
from language_models import LLAMA_8B, MIXTRAL, dense, sparse, write_gguf

from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.bridges.exporters.llama_cpp import buffer_types, export, number_options
from placeopt.bridges.hardware import Device
from placeopt.bridges.importers.imported import ImportOptions
from placeopt.bridges.importers.language_models.gguf_files import place_of, read_gguf
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import UsageError
from placeopt.io.compiler import compile_spec
from placeopt.model.problem import Problem
from placeopt.simulation import simulate

NETWORK = {
    "devices": {
        "cpu": {"speed": "1 TFLOP/s", "memory_bandwidth": "50 GB/s"},
        "gpu": {"count": 2, "type": "gpu", "speed": "80 TFLOP/s", "memory_bandwidth": "900 GB/s"},
    }
}
CPU, GPU0, GPU1 = 0, 1, 2
MOE = {"expert_count": 8, "expert_used_count": 2}


def problem(path: Path, level: str, network: Any = NETWORK) -> Problem:
    return compile_spec(import_file(path, options=ImportOptions(level=level, network=network)).document)


def exported(given: Problem, devices: dict[str, int] | list[int], model: Path | None = None) -> Exported:
    """The export of a placement: devices by task, or by the longest beginning of its name."""
    if isinstance(devices, dict):
        keys = sorted(devices, key=len)
        placed = [[devices[key] for key in keys if name.startswith(key)][-1] for name in given.task_names]
    else:
        placed = devices
    return export(ExportRequest(given, simulate(given, placed), model))


def number_pattern(numbers: Iterable[int]) -> str:
    return "|".join(number_options(numbers))


def rules(result: Exported) -> list[tuple[str, str]]:
    """Patterns with buffer types, read as llama.cpp does: split at each comma, then at the first equals sign."""
    words = shlex.split(result.text)
    given = words[words.index("-ot") + 1].split(",")
    return [(rule[: rule.index("=")], rule[rule.index("=") + 1 :]) for rule in given]


def buffers(result: Exported, names: list[str]) -> dict[str, str]:
    """The buffer type of each tensor, which exactly one rule gives."""
    found = {}
    for name in names:
        (found[name],) = (buffer for pattern, buffer in rules(result) if re.search(pattern, name))
    return found


def cache_devices(result: Exported, layers: int) -> list[str]:
    """The devices of the KV caches of all layers and of the output by the rule of llama.cpp (`load_tensors`)."""
    words = shlex.split(result.text)
    offloaded = int(words[words.index("-ngl") + 1])
    split = [float(part) for part in words[words.index("-ts") + 1].split(",")] if "-ts" in words else [1.0]
    order = words[words.index("--device") + 1].split(",") if "--device" in words else ["CUDA0", "CUDA1"]
    start = max(layers + 1 - offloaded, 0)
    active = min(offloaded, layers + 1)
    bounds = np.cumsum(split) / sum(split)
    found = []
    for layer in range(layers + 1):
        if layer < start:
            found.append("CPU")
        else:
            found.append(order[int(np.searchsorted(bounds, (layer - start) / active, side="right"))])
    return found


class TestNumberPatterns:
    def test_every_range_up_to_200(self) -> None:
        for first in range(0, 201, 3):
            for last in range(first, 201, 2):
                pattern = re.compile(number_pattern(range(first, last + 1)))
                assert [n for n in range(220) if pattern.fullmatch(str(n))] == list(range(first, last + 1))

    def test_random_sets(self) -> None:
        draw = random.Random(7)
        for _ in range(500):
            chosen = sorted(draw.sample(range(200), draw.randint(1, 80)))
            pattern = re.compile(number_pattern(chosen))
            assert [n for n in range(1200) if pattern.fullmatch(str(n))] == chosen

    @pytest.mark.parametrize(
        ("numbers", "pattern"),
        [
            (range(10), r"\d"),
            (range(16), r"\d|1[0-5]"),
            (range(20), r"1?\d"),
            (range(40), r"[1-3]?\d"),
            (range(16, 32), r"1[6-9]|2\d|3[01]"),
            (range(100), r"[1-9]?\d"),
            ([7], "7"),
            ([0, 1, 2], "[0-2]"),
            ([3, 13, 23], "[12]?3"),
        ],
    )
    def test_are_short(self, numbers: Any, pattern: str) -> None:
        assert number_pattern(numbers) == pattern

    def test_use_no_comma_and_no_equals_sign(self) -> None:
        assert not set(",={}") & set("".join(number_pattern(range(a, 150)) for a in range(150)))


class TestRules:
    @pytest.mark.parametrize(
        ("model", "level"),
        [
            *((model, level) for model in ("dense", "sparse", "tied") for level in ("layer", "part", "tensor")),
            ("sparse", "expert"),
        ],
    )
    def test_each_tensor_matches_one_rule_for_random_placements(self, tmp_path: Path, model: str, level: str) -> None:
        tensors = {"dense": dense(13), "sparse": sparse(13), "tied": dense(13, tied=True)}[model]
        path = write_gguf(tmp_path / "tiny.gguf", tensors, keys=MOE if model == "sparse" else {})
        given = problem(path, level)
        draw = random.Random(f"{model} {level}")
        names = [tensor.name for tensor in read_gguf(path).tensors]
        for _ in range(3):
            devices = {}
            for name in given.task_names:
                key = re.sub(r"(experts)\.\d+$", r"\1", name)  # experts of a layer are in one tensor
                key = "embedding" if model == "tied" and name == "head" else key
                devices[name] = devices.setdefault(key, draw.randrange(3))
            placed = [devices[name] for name in given.task_names]
            result = exported(given, placed, path)
            found = buffers(result, names)
            kinds = ("CPU", "CUDA0", "CUDA1")
            for name in names:
                block, part = place_of(name)
                tasks = [name, f"layers.{block}", f"layers.{block}.{part}", f"layers.{block}.{part}.0", part]
                task = next(task for task in tasks if task in devices)
                assert found[name] == kinds[devices[task]], name
            assert f"each of the {len(names)} tensors of tiny.gguf matches exactly one rule" in result.notes

    def test_layers_on_two_gpus(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", dense(32))
        given = problem(path, "layer")
        placed = [CPU] + [GPU0] * 16 + [GPU1] * 16 + [GPU1]
        result = exported(given, placed, path)
        assert shlex.split(result.text) == [
            "-ngl", "33", "--split-mode", "layer", "-ts", "16,17", "-ot",
            r"^(token|position|per_layer)_=CPU,"
            r"^(rope_|blk\.(\d|1[0-5])\.)=CUDA0,"
            r"^((?!blk|rope_|(token|position|per_layer)_)|blk\.(1[6-9]|2\d|3[01])\.)=CUDA1",
        ]  # fmt: skip
        assert any("-ngl 33 --split-mode layer -ts 16,17 alone gives the same placement" in n for n in result.notes)

    def test_experts_on_the_cpu(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", sparse(4), keys=MOE)
        given = problem(path, "part")
        placed = [CPU if "experts" in name or name == "embedding" else GPU0 for name in given.task_names]
        result = exported(given, placed, path)
        assert rules(result) == [
            (r"^((token|position|per_layer)_|blk\.[1-3]\.ffn_\w+(_exps|\.\d))", "CPU"),
            (
                r"^((?!blk|rope_|(token|position|per_layer)_)|rope_|blk\.0\.|blk\.[1-3]\.(?!ffn_\w+(_exps|\.\d)))",
                "CUDA0",
            ),
        ]
        assert cache_devices(result, 4) == ["CUDA0"] * 5

    def test_shared_experts_are_not_routed_ones(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", sparse(2), keys=MOE)
        given = problem(path, "part")
        result = exported(given, {"": GPU0, "embedding": CPU, "layers.1.experts": CPU}, path)
        found = buffers(result, ["blk.1.ffn_up_exps.weight", "blk.1.ffn_up_shexp.weight", "blk.1.ffn_gate_inp.weight"])
        assert list(found.values()) == ["CPU", "CUDA0", "CUDA0"]

    def test_a_problem_of_a_configuration(self, tmp_path: Path) -> None:
        import json

        path = tmp_path / "config.json"
        path.write_text(json.dumps(LLAMA_8B))
        given = problem(path, "part")
        result = exported(given, {"": GPU0, "embedding": CPU, "layers.3.ffn": GPU1})
        found = buffers(result, ["blk.3.attn_q.weight", "blk.3.ffn_up.weight", "blk.30.ffn_up.weight", "output.weight"])
        assert list(found.values()) == ["CUDA0", "CUDA1", "CUDA0", "CUDA0"]


class TestCaches:
    @pytest.mark.parametrize("seed", range(20))
    def test_consecutive_layers_have_their_caches_as_planned(self, tmp_path: Path, seed: int) -> None:
        draw = random.Random(seed)
        layers = 12
        path = write_gguf(tmp_path / "tiny.gguf", dense(layers))
        given = problem(path, "layer")
        placed = sorted(draw.choices([CPU, GPU0, GPU1], k=layers + 1))
        if seed % 2:  # the GPUs in the other order, with `--device`
            placed = [(CPU, GPU1, GPU0)[device] for device in placed]
        if placed[-1] == CPU:
            placed = [CPU] * (layers + 1)
        result = exported(given, [CPU, *placed])
        assert cache_devices(result, layers) == [("CPU", "CUDA0", "CUDA1")[device] for device in placed]
        assert any("alone gives the same placement" in note for note in result.notes)
        assert not any("moves no KV cache" in note for note in result.notes)

    def test_other_orders_keep_most_caches(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", dense(10))
        given = problem(path, "layer")
        placed = [GPU1, GPU0, GPU0, GPU0, GPU1, CPU, GPU1, GPU1, GPU1, GPU1, GPU0]
        result = exported(given, [CPU, *placed])
        assert cache_devices(result, 10) == ["CUDA0"] * 4 + ["CUDA1"] * 7
        assert not any("alone gives the same placement" in note for note in result.notes)
        (note,) = (note for note in result.notes if "moves no KV cache" in note)
        assert "that of layers.0, layers.5 is not on the device of its attention" in note
        assert note.endswith("consecutive layers to each device")  # no memory is limited

    def test_what_caches_elsewhere_leave_of_a_memory(self, tmp_path: Path) -> None:
        devices = {
            name: {"speed": "1 TFLOP/s", "memory_bandwidth": "1 GB/s", "memory": "1 GiB"} for name in ("cpu", "gpu")
        }
        given = problem(write_gguf(tmp_path / "tiny.gguf", dense(4)), "layer", {"devices": devices})
        result = exported(given, [0, 1, 0, 1, 1, 1])
        (note,) = (note for note in result.notes if "moves no KV cache" in note)
        assert "; gpu holds 1 cache more than in the plan, which leaves 10" in note
        assert note.endswith("MiB: more may exceed its memory")

    @pytest.mark.parametrize("seed", range(10))
    def test_the_most_caches_by_brute_force(self, tmp_path: Path, seed: int) -> None:
        draw = random.Random(seed)
        path = write_gguf(tmp_path / "tiny.gguf", dense(5))
        given = problem(path, "layer")
        placed = draw.choices([CPU, GPU0, GPU1], k=6)
        wanted = [("CPU", "CUDA0", "CUDA1")[device] for device in placed]
        given_devices = cache_devices(exported(given, [CPU, *placed]), 5)
        best = 0
        for first in range(7):
            for second in range(first, 7):
                split = ["CPU"] * first + ["CUDA0"] * (second - first) + ["CUDA1"] * (6 - second)
                best = max(best, sum(a == b for a, b in zip(split[:5], wanted, strict=False)))
        assert sum(a == b for a, b in zip(given_devices[:5], wanted, strict=False)) >= best


class TestDevices:
    def test_back_ends_by_type_or_name(self) -> None:
        types = ["cpu", "gpu", "vulkan", "h100", "Vulkan", "edge", "xeon-core", "mi300x"]
        names = ["host", "gpu0", "a", "b", "c", "metal0", "d", "e"]
        devices = [Device(*each) for each in zip(names, types, strict=True)]
        assert buffer_types(devices) == ["CPU", "CUDA0", "Vulkan0", "CUDA1", "Vulkan1", "MTL0", "CPU", "ROCm0"]

    def test_several_cpus_are_one(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", dense(2))
        given = problem(
            path, "layer", {"devices": {"cpu": {"count": 2, "speed": "1 TFLOP/s", "memory_bandwidth": "50 GB/s"}}}
        )
        result = exported(given, [0, 1, 0, 1], path)
        assert (
            result.text
            == "-ngl 0 -ot "
            + shlex.quote(
                r"^((token|position|per_layer)_|(?!blk|rope_|(token|position|per_layer)_)|rope_|blk\.[01]\.)=CPU"
            )
            + "\n"
        )
        assert "llama.cpp has one CPU device, which stands for cpu0, cpu1" in result.notes

    def test_an_embedding_on_a_gpu_is_noted(self, tmp_path: Path) -> None:
        given = problem(write_gguf(tmp_path / "tiny.gguf", dense(2)), "layer")
        assert any("the embedding is on gpu0" in note for note in exported(given, [GPU0] * 4).notes)
        assert not any("the embedding is on gpu0" in note for note in exported(given, [CPU] + [GPU0] * 3).notes)


class TestMistakes:
    def test_another_model(self, tmp_path: Path) -> None:
        given = problem(write_gguf(tmp_path / "tiny.gguf", dense(2)), "layer")
        larger = write_gguf(tmp_path / "larger.gguf", dense(4))
        smaller = write_gguf(tmp_path / "smaller.gguf", dense(1))
        with pytest.raises(
            UsageError, match=r"larger.gguf is not the model of the problem, which has 2 layers: no task"
        ):
            exported(given, [CPU] * 4, larger)
        with pytest.raises(UsageError, match=r"smaller.gguf is not the model of the problem.*: it has 1 block$"):
            exported(given, [CPU] * 4, smaller)

    def test_experts_on_several_devices(self, tmp_path: Path) -> None:
        import json

        path = tmp_path / "config.json"
        path.write_text(json.dumps(MIXTRAL))
        given = problem(path, "expert")
        with pytest.raises(UsageError, match="experts of layer 3 are on gpu0 and gpu1"):
            exported(given, {"": GPU0, "layers.3.experts.5": GPU1})

    def test_a_problem_without_layers(self) -> None:
        given = compile_spec({"placeopt": 1, "devices": {"cpu": {}}, "tasks": {"a": {"time": 1}}})
        with pytest.raises(UsageError, match=r"--to llama\.cpp needs a problem with the tasks embedding, layers.0"):
            exported(given, [0])


def test_the_command_line(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", sparse(3), keys=MOE)
    spec, plan, out = tmp_path / "p.yaml", tmp_path / "plan.json", tmp_path / "arguments.txt"
    assert run("import", path, "--level", "part", "--out", spec).code == 0
    assert run("solve", spec, "--solver", "heft", "--out", plan).code == 0
    done = run("export", spec, plan, "--to", "llama.cpp", "--model", path)
    assert done.code == 0, done.err
    assert done.out.startswith("-ngl 0 -ot ")
    assert "matches exactly one rule" in done.err
    assert run("export", spec, plan, "--to", "llama.cpp", "--out", out).code == 0  # the model is optional
    assert out.read_text() == done.out
