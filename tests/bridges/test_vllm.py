"""`placeopt export --to vllm`: numbers of layers of the stages, and plans that vLLM cannot run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from language_models import LLAMA_8B, PUBLISHED, configuration

from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.bridges.exporters.vllm import export
from placeopt.bridges.importers.imported import ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import UsageError
from placeopt.io.compiler import compile_spec
from placeopt.model.problem import Problem
from placeopt.simulation import simulate

NETWORK = {"devices": {"gpu": {"count": 4, "speed": "80 TFLOP/s", "memory_bandwidth": "900 GB/s"}}}
SMALL = configuration("llama", 64, 96, 8, 4, 2, 160, 128)


def problem(folder: Path, config: Any = SMALL, network: Any = NETWORK, level: str = "layer") -> Problem:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return compile_spec(import_file(path, options=ImportOptions(level=level, network=network)).document)


def exported(given: Problem, devices: list[int]) -> Exported:
    return export(ExportRequest(given, simulate(given, devices)))


def stages(*counts: int) -> list[int]:
    """The embedding, layers on gpu0, gpu1, ..., and the head."""
    layers = [device for device, count in enumerate(counts) for _ in range(count)]
    return [layers[0], *layers, layers[-1]]


class TestStages:
    def test_numbers_of_layers(self, tmp_path: Path) -> None:
        result = exported(problem(tmp_path, LLAMA_8B), stages(8, 8, 10, 6))
        assert result.text.splitlines() == [
            "# stage 0: gpu0, layers 0 to 7",
            "# stage 1: gpu1, layers 8 to 15",
            "# stage 2: gpu2, layers 16 to 25",
            "# stage 3: gpu3, layers 26 to 31",
            "VLLM_PP_LAYER_PARTITION=8,8,10,6 vllm serve MODEL --pipeline-parallel-size 4",
        ]
        assert result.notes == ()

    def test_the_order_of_the_devices(self, tmp_path: Path) -> None:
        result = exported(problem(tmp_path), [3, *[3] * 2, *[1] * 6, 1])
        command = result.text.splitlines()[-1]
        assert command.startswith("CUDA_VISIBLE_DEVICES=3,1 VLLM_PP_LAYER_PARTITION=2,6 vllm serve MODEL ")

    def test_cpus_have_no_number_among_the_gpus(self, tmp_path: Path) -> None:
        network = {
            "devices": {"cpu": {"count": 2, "speed": "1 TFLOP/s", "memory_bandwidth": "50 GB/s"}, **NETWORK["devices"]}
        }
        result = exported(problem(tmp_path, network=network), [2, *[2] * 4, *[3] * 4, 3])
        assert result.text.splitlines()[-1].startswith("VLLM_PP_LAYER_PARTITION=4,4 ")

    def test_parts_of_a_layer_on_one_device(self, tmp_path: Path) -> None:
        given = problem(tmp_path, level="part")
        result = exported(given, [0, *[0] * 6, *[1] * 10, 1])
        assert "VLLM_PP_LAYER_PARTITION=3,5 " in result.text

    @pytest.mark.parametrize(("link", "notes"), [("ethernet-10g", 1), ("nvlink-4", 0)])
    def test_hosts_are_noted(self, tmp_path: Path, link: str, notes: int) -> None:
        given = problem(tmp_path)
        document = {"links": {"default": {"latency": "1 us"}, "overrides": [{"between": ["gpu", "gpu"], "like": link}]}}
        result = export(ExportRequest(given, simulate(given, stages(4, 4)), document=document))
        assert [note.partition(":")[0] for note in result.notes] == [f"a link of the problem is {link}"] * notes

    def test_one_device(self, tmp_path: Path) -> None:
        result = exported(problem(tmp_path), [0] * 10)
        assert result.text.splitlines()[-1] == "VLLM_PP_LAYER_PARTITION=8 vllm serve MODEL --pipeline-parallel-size 1"

    def test_a_tied_embedding_is_copied(self, tmp_path: Path) -> None:
        config, _ = PUBLISHED["Llama-3.2-1B"]
        result = exported(problem(tmp_path, config), [0, *[0] * 8, *[1] * 8, 0])
        assert "VLLM_PP_LAYER_PARTITION=8,8 " in result.text
        (note,) = result.notes
        assert note.startswith("the head is on gpu0, but vLLM runs it on the last stage, gpu1, with a second copy")


class TestMistakes:
    @pytest.mark.parametrize(
        ("devices", "message"),
        [
            (
                [0, 0, 0, 1, 1, 0, 1, 1, 1, 1],
                "layer 4 is on gpu0, which has an earlier stage, but a device has consecut",
            ),
            ([1, 0, 0, 0, 0, 1, 1, 1, 1, 1], "the embedding is on gpu1, but vLLM runs it on the first stage, gpu0"),
            ([0, 0, 0, 0, 0, 1, 1, 1, 1, 0], "the head is on gpu0, but vLLM runs it on the last stage, gpu1"),
        ],
    )
    def test_of_the_plan(self, tmp_path: Path, devices: list[int], message: str) -> None:
        with pytest.raises(UsageError, match=f"--to vllm: {message}"):
            exported(problem(tmp_path), devices)

    def test_a_layer_on_two_devices(self, tmp_path: Path) -> None:
        given = problem(tmp_path, level="part")
        devices = [0] * given.n_tasks
        devices[given.task_names.index("layers.5.ffn")] = 2
        with pytest.raises(UsageError, match=r"layer 5 is on two devices \(attention on gpu0, ffn on gpu2\)"):
            exported(given, devices)

    def test_a_stage_on_a_cpu(self, tmp_path: Path) -> None:
        network = {"devices": {"cpu": {"speed": "1 TFLOP/s", "memory_bandwidth": "50 GB/s"}, **NETWORK["devices"]}}
        with pytest.raises(UsageError, match="a stage is on cpu, but vLLM runs all stages on devices of one kind"):
            exported(problem(tmp_path, network=network), [0, *[0] * 4, *[1] * 4, 1])

    def test_a_problem_without_layers(self) -> None:
        given = compile_spec({"placeopt": 1, "devices": {"cpu": {}}, "tasks": {"a": {"time": 1}}})
        with pytest.raises(UsageError, match=r"--to vllm needs a problem with the tasks embedding, layers\.0"):
            exported(given, [0])


def test_the_command_line(tmp_path: Path) -> None:
    spec, plan = tmp_path / "p.yaml", tmp_path / "plan.json"
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert run("import", tmp_path / "config.json", "--devices", "a100-40gb:2", "--out", spec).code == 0
    assert run("solve", spec, "--solver", "single", "--out", plan).code == 0
    done = run("export", spec, plan, "--to", "vllm")
    assert done.code == 0, done.err
    assert done.out.endswith("VLLM_PP_LAYER_PARTITION=8 vllm serve MODEL --pipeline-parallel-size 1\n")
    refused = run("export", spec, plan, "--to", "vllm", "--model", tmp_path / "config.json")
    assert refused.code == 2
    assert refused.err.startswith("placeopt: --to vllm takes no --model; formats with it are llama.cpp, ")
