"""Pipelines between tools: imports with the objective `period`, and exports of plans with stages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run
from language_models import LLAMA_8B, configuration, dense, write_gguf

import placeopt as po
from placeopt.bridges.exporters.exported import ExportRequest
from placeopt.bridges.exporters.registry import EXPORTERS
from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.model.schedule import Stages
from placeopt.model.segments import cut_segments
from placeopt.simulation.pipelines import periodic_schedule, stage_numbers

DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "dnn-throughput"
PUBLISHED = {"bert24_inference": 17.7899, "bert24_training": 41.7458} | {
    "resnet50_inference": 33.7747,
    "resnet50_training": 78.6318,
}
"""Least maximum load in ms with contiguous stages: Tarnawski et al. 2020, table 1."""

GPUS = {
    "devices": {"gpu": {"count": 3, "memory": "24 GiB", "speed": "80 TFLOP/s", "memory_bandwidth": "900 GB/s"}},
    "links": {"default": {"bandwidth": "16 GB/s"}},
}


def node(number: int, colour: int | None = None, backward: Any = None) -> dict[str, Any]:
    found = {"id": number, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 10, "size": 8}
    found |= {"colorClass": colour} if colour is not None else {}
    return found | ({"isBackwardNode": backward} if backward is not None else {})


def graph(nodes: list[Any], edges: list[tuple[int, int]], **more: Any) -> dict[str, Any]:
    costs = [{"sourceId": a, "destId": b, "cost": 1} for a, b in edges]
    return {"maxSizePerFPGA": 99, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": costs, **more}


def read(folder: Path, data: Any, **options: Any) -> dict[str, Any]:
    path = folder / "graph.json"
    path.write_text(json.dumps(data))
    return po.read_dnn_partitioning(path, objective="period", **options)


class TestLayerGraphs:
    @pytest.mark.parametrize("name", PUBLISHED)
    def test_the_published_optima_are_reached_and_proved(self, name: str) -> None:
        path = DATA / f"{name}.json"
        if not path.exists():
            pytest.skip(f"{path.name} is missing; PLACEOPT_DATA names the folder that contains dnn-throughput")
        problem = po.compile(po.read_dnn_partitioning(path, objective="period"))
        result = po.solve(problem, "ideals", workers=1)
        assert result.termination is po.Termination.OPTIMAL
        assert result.feasible
        assert result.gap == 0
        # A tick is a nanosecond, and each time is rounded up to one.
        assert float(result.objective or 0) / 1e6 == pytest.approx(PUBLISHED[name], abs=2e-4)

    def test_the_rules_of_the_paper(self, tmp_path: Path) -> None:
        problem = po.compile(read(tmp_path, graph([node(1), node(2), node(3)], [(1, 2), (1, 3)])))
        assert problem.pipeline is not None
        assert problem.pipeline.contiguous
        assert problem.pipeline.multicast
        assert problem.pipeline.free_transfers.tolist() == [False, False, True]
        # Sent once, 10 + 1; received once by both tasks of the other accelerator, 1 + 20.
        assert po.evaluate(problem, placed(problem, [0, 1, 1])) == (21_000_000,)
        # The CPU computes only; the accelerator receives.
        assert po.evaluate(problem, placed(problem, [2, 1, 1])) == (50_000_000,)

    def test_backward_nodes_name_the_forward_node_of_their_class(self, tmp_path: Path) -> None:
        nodes = [node(1, 5, 0), node(2, 5, False), node(3, 5, 1), node(4, 5, True), node(5, 6, 1), node(6, None, 1)]
        tasks = read(tmp_path, graph(nodes, [(1, 3)]))["tasks"]
        assert [task.get("backward_of") for task in tasks.values()] == [None, None, "1", "1", None, None]
        assert po.compile(read(tmp_path, graph(nodes, []))).forward.tolist() == [0, 1, 0, 0, 4, 5]

    def test_one_kind_of_device_alone(self, tmp_path: Path) -> None:
        for kind in ("maxFPGAs", "maxCPUs"):
            problem = po.compile(read(tmp_path, graph([node(1), node(2)], [(1, 2)], **{kind: 0})))
            assert set(problem.device_types) == {"cpu" if kind == "maxFPGAs" else "accelerator"}

    def test_mistakes(self, tmp_path: Path) -> None:
        with pytest.raises(po.DocumentError, match=r"nodes\[0\]\.isBackwardNode: 7 is neither true nor false"):
            read(tmp_path, graph([node(1, 1, 7)], []))
        with pytest.raises(po.UsageError, match="perod is not an objective of an import; did you mean period"):
            po.read_dnn_partitioning(tmp_path / "graph.json", objective="perod")


def placed(problem: po.Problem, device: list[int], **keys: list[int]) -> po.Schedule:
    """A periodic schedule of a placement, with replicas or recomputation as stated."""
    m = problem.n_devices
    number = stage_numbers(problem, np.array(device))
    assert number is not None
    leader, recompute = keys.get("leader", list(range(m))), keys.get("recompute", [0] * m)
    stages = Stages(number, np.array(leader), np.array(recompute), np.zeros(m, dtype=np.int64))
    return periodic_schedule(problem, np.array(device), stages)


def language_model(folder: Path, **options: Any) -> Imported:
    path = folder / "config.json"
    path.write_text(json.dumps(LLAMA_8B))
    return import_file(path, options=ImportOptions(**{"network": GPUS, "objective": "period", **options}))


class TestLanguageModels:
    def test_a_model_is_solved_as_a_pipeline(self, tmp_path: Path) -> None:
        imported = language_model(tmp_path)
        document = imported.document
        assert (document["objective"], document["memory_model"]) == ("period", "sum")
        assert document["pipeline"] == {"stages": "contiguous", "in_flight": "inference"}
        result = po.solve(po.compile(document), "ideals", workers=1)
        assert result.feasible
        assert result.gap == 0

    def test_each_run_has_its_own_cache(self, tmp_path: Path) -> None:
        caches = []
        for objective in ("makespan", "period"):
            imported = language_model(tmp_path, objective=objective, context=4096, batch=2)
            caches.append(imported.document["tasks"]["layers.0"]["memory"]["resident"])
        # Keys and values of 8 heads with 128 elements of 2 bytes, for 4096 tokens of 2 sequences, in 2 more runs.
        assert caches[1] - caches[0] == 2 * (2 * 8 * 128 * 2 * 4096 * 2)
        assert "the KV cache is that of 3 runs with 2 sequences each: one run for each device" in imported.notes
        assert any(note.startswith("a result of the pipeline is the next token") for note in imported.notes)

    def test_gguf(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", dense())
        imported = import_file(path, options=ImportOptions(network=GPUS, objective="period"))
        assert po.compile(imported.document).pipeline is not None

    def test_the_command(self, tmp_path: Path) -> None:
        source, out = tmp_path / "config.json", tmp_path / "p.yaml"
        source.write_text(json.dumps(LLAMA_8B))
        done = run("import", source, "--objective", "period", "--devices", "a10:2,rtx-4090", "--out", out)
        assert done.code == 0, done.err
        assert po.load(out).pipeline is not None
        done = run("import", source, "--objective", "energy")
        assert (done.code, done.err) == (
            2, "placeopt: energy is not an objective of an import; known are makespan, period\n",
        )  # fmt: skip
        (tmp_path / "g.dot").write_text("digraph {a -> b}")
        done = run("import", tmp_path / "g.dot", "--objective", "period")
        assert done.code == 2
        assert "the format dot takes no --objective; formats with it are gguf, hf-config, onnx, torch" in done.err


def test_onnx_models() -> None:
    onnx = pytest.importorskip("onnx", reason="ONNX models need onnx: pip install 'placeopt[onnx]'")
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"
    imported = po.from_onnx(light, devices=GPUS, objective="period")
    problem = po.compile(imported.document)
    assert problem.pipeline is not None
    assert (problem.memory_model, problem.pipeline.in_flight) == ("sum", "inference")
    assert po.from_onnx(light, devices=GPUS).document["memory_model"] == "peak"


class TestTorchModels:
    @pytest.fixture(autouse=True)
    def torch(self) -> Any:
        return pytest.importorskip("torch", reason="PyTorch models need torch: pip install 'placeopt[torch]'")

    @pytest.mark.parametrize("level", ["op", "module"])
    def test_training_has_stages_gradients_and_runs_under_way(self, torch: Any, level: str) -> None:
        from torch_models import small_llama

        model = small_llama()
        frozen = next(model.head.parameters()).requires_grad_(False)
        ids = torch.zeros(2, 8, dtype=torch.long)
        network = {
            "devices": {"gpu": {"count": 2, "speed": "1 GFLOP/s", "memory_bandwidth": "1 GB/s"}},
            "links": {"default": {"bandwidth": "1 GB/s"}},
        }
        imported = po.from_torch(
            model, (ids,), devices=network, training=True, level=level, objective="period",
            optimizer_bytes_per_parameter=8,
        )  # fmt: skip
        problem = po.compile(imported.document)
        assert problem.pipeline is not None
        assert problem.pipeline.in_flight == "1f1b"
        trained = sum(each.numel() for each in model.parameters()) - frozen.numel()
        assert problem.pipeline.gradient.sum() == 4 * trained
        behind = problem.forward != np.arange(problem.n_tasks)
        assert not (behind[problem.edge_source] & ~behind[problem.edge_target]).any()
        result = po.solve(problem, "ideals", workers=1, sets=1000)
        assert result.feasible
        assert result.schedule is not None
        assert len(set(result.schedule.device.tolist())) == 2

    def test_parts_and_stages_are_the_stages_of_the_plan(self, torch: Any) -> None:
        class Branches(torch.nn.Module):
            """Two layers that read the input; the device changes on one of their paths only."""

            def __init__(self) -> None:
                super().__init__()
                self.a, self.b, self.c = (torch.nn.Linear(8, 8) for _ in range(3))

            def forward(self, x: Any) -> Any:
                return self.c(self.a(x)) + self.b(x)

        model, x = Branches(), torch.zeros(2, 8)
        network = {"devices": {"gpu": {"count": 2, "speed": "1 GFLOP/s", "memory_bandwidth": "1 GB/s"}}}
        imported = po.from_torch(model, (x,), devices=network, level="module", objective="period")
        problem = po.compile(imported.document)
        schedule = placed(problem, [int(name != "a") for name in problem.task_names])
        assert po.verify(problem, schedule).feasible
        stages = po.split_spec(problem, schedule, imported)
        assert [stage["device"] for stage in stages["stages"]] == ["gpu0", "gpu1"]
        assert len(stages["split_spec"]) == 1
        callback = po.split_callback(problem, schedule, imported)
        assert callback.devices == ("gpu0", "gpu1")
        parts = callback.split(torch.export.export(model, (x,)).module())
        assert torch.equal(parts(x), model(x))
        without = po.Schedule(schedule.device, schedule.start, schedule.transfers)
        assert len(cut_segments(problem, schedule)) == 2 < len(cut_segments(problem, without))

    def test_notes_state_replicas(self, torch: Any) -> None:
        from torch_models import Mlp

        network = {"devices": {"gpu": {"count": 3, "speed": "1 GFLOP/s", "memory_bandwidth": "1 GB/s"}}}
        imported = po.from_torch(Mlp(4, 4, 4), (torch.zeros(1, 4),), devices=network, objective="period", level=2)
        document = imported.document | {"pipeline": {"replicas": 2}}
        problem = po.compile(document)
        schedule = placed(problem, [int(name != "layers.0") for name in problem.task_names], leader=[0, 1, 1])
        assert po.verify(problem, schedule).feasible
        for format, runtime in (("split-spec", "torch.distributed.pipelining"), ("device-map", "accelerate")):
            export = EXPORTERS[format].text
            assert export is not None
            assert export(ExportRequest(problem, schedule, document=document)).notes[-1] == (
                f"{runtime} has no replicas of single stages, so gpu2 would do nothing, and the period of the plan is "
                "not reached"
            )


SMALL = configuration("llama", 64, 96, 8, 4, 2, 160, 128)


class TestLayers:
    def exported(self, folder: Path, device: list[int], format: str, **keys: Any) -> Any:
        path = folder / "config.json"
        path.write_text(json.dumps(SMALL))
        document = import_file(path, options=ImportOptions(network=GPUS, objective="period")).document
        problem = po.compile(document | {"pipeline": keys.pop("rules", document["pipeline"])})
        schedule = placed(problem, device, **keys)
        assert po.verify(problem, schedule).feasible
        export = EXPORTERS[format].text
        assert export is not None
        return export(ExportRequest(problem, schedule))

    def test_stages_follow_each_other_in_their_order(self, tmp_path: Path) -> None:
        result = self.exported(tmp_path, [2, 2, 2, 2, 0, 0, 0, 0, 1, 1], "vllm")
        assert result.text.splitlines()[-1] == (
            "CUDA_VISIBLE_DEVICES=2,0,1 VLLM_PP_LAYER_PARTITION=3,4,1 vllm serve MODEL --pipeline-parallel-size 3"
        )
        assert result.notes == ()

    def test_stages_that_return_to_a_device_are_a_usage_error(self, tmp_path: Path) -> None:
        with pytest.raises(po.UsageError, match="layer 5 is on gpu0, which has an earlier stage"):
            self.exported(tmp_path, [0, 0, 0, 0, 1, 1, 0, 0, 0, 0], "vllm", rules={"segments": 2})

    @pytest.mark.parametrize(("format", "runtime"), [("vllm", "vLLM"), ("llama.cpp", "llama.cpp")])
    def test_notes_state_replicas(self, tmp_path: Path, format: str, runtime: str) -> None:
        rules = {"stages": "contiguous", "replicas": 2}
        result = self.exported(tmp_path, [0] * 5 + [1] * 5, format, rules=rules, leader=[0, 1, 1])
        assert any(
            note.startswith(f"{runtime} has no replicas of single stages, so gpu2 would") for note in result.notes
        )
