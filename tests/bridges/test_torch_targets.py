"""Imports of PyTorch models for a runtime: every plan can be exported; errors of export name a level that works."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run

import placeopt as po

pytest.importorskip("torch", reason="PyTorch models need torch: pip install 'placeopt[torch]'")

import torch
from torch import Tensor, nn
from torch_models import ConvNet, Mlp, Twice, small_llama

NETWORK = {
    "devices": {"gpu": {"count": 3, "speed": "1 GFLOP/s", "memory_bandwidth": "1 GB/s"}},
    "links": {"default": {"bandwidth": "1 GB/s"}},
}
IDS = torch.arange(32).reshape(4, 8)
IMAGE = torch.zeros(2, 3, 32, 32)


class Tied(nn.Module):
    """An embedding whose weight is that of the head, too."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 8)
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.head = nn.Linear(8, 32, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layers(self.embedding(ids)))


class OwnWeight(nn.Module):
    """A weight of the model itself, a skip in its own code, and nested modules without code."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.ones(4))
        self.stem = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 4))
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        first = self.stem(x) + self.token
        return self.head(torch.cat((first, self.body(first).relu()))) * x.mean()


class Residual(nn.Module):
    """A module that adds the input of the model to its own result."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
        self.head = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x + self.block["b"](self.block["a"](x)))


class Attention(nn.Module):
    """A module with weights of its own beside a module, as in nn.MultiheadAttention."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.last = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(self.attention(x, x, x, need_weights=False)[0])


MODELS: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
    "mlp": (Mlp(4, 8, 8, 8, 4), (torch.zeros(2, 4),)),
    "residual": (ConvNet(8), (IMAGE,)),
    "llama": (small_llama(), (IDS,)),
    "tied": (Tied(), (IDS,)),
    "twice": (Twice(), (torch.zeros(2, 4),)),
    "input-residual": (Residual(), (torch.zeros(2, 4),)),
    "own-weight": (OwnWeight(), (torch.zeros(2, 4),)),
    "attention": (Attention(), (torch.zeros(2, 3, 8),)),
    "no-weights": (nn.Sequential(nn.ReLU(), nn.Tanh()), (torch.zeros(2, 4),)),
}
PARTS = {  # that a device map and a pipeline can place apart
    "mlp": (4, 4),
    "residual": (4, 8),
    "tied": (3, 1),
    "twice": (1, 1),
    "input-residual": (3, 3),
    "attention": (3, 3),
    "no-weights": (1, 2),
}


def imported(name: str, target: str | None, level: str | int = "auto", **options: Any) -> tuple[Any, po.Problem]:
    model, inputs = MODELS[name]
    found = po.from_torch(model, inputs, devices=NETWORK, level=level, target=target, **options)
    return found, po.compile(found.document)


def random_plan(problem: po.Problem, document: dict[str, Any], seed: int) -> Any:
    """A random device for each group of colocated tasks; pinned ones stay."""
    random = np.random.default_rng(seed)
    groups = [group if group >= 0 else -2 - i for i, group in enumerate(problem.group.tolist())]
    chosen = {
        group: problem.device_names.index(document["tasks"][name]["pin"])
        for group, name in zip(groups, problem.task_names, strict=True)
        if "pin" in document["tasks"][name]
    }
    return po.simulate(problem, [chosen.setdefault(group, int(random.integers(3))) for group in groups])


@pytest.mark.parametrize("level", ["auto", "op", 1])
@pytest.mark.parametrize("name", MODELS)
def test_every_plan_is_a_device_map(name: str, level: str | int) -> None:
    found, problem = imported(name, "device-map", level)
    for seed in range(25):
        plan = random_plan(problem, found.document, seed)
        assert po.device_map(problem, plan, found)


@pytest.mark.parametrize("level", ["auto", "op", 1])
@pytest.mark.parametrize("name", MODELS)
def test_every_pipeline_is_a_split_spec(name: str, level: str | int) -> None:
    found, problem = imported(name, "split-spec", level)
    assert found.document["objective"] == "period"
    groups = [group if group >= 0 else -2 - i for i, group in enumerate(problem.group.tolist())]
    solved = po.solve(problem, "dpl").schedule
    assert solved is not None
    assert po.split_spec(problem, solved, found)["stages"]
    # Every cut of the parts in the order of execution is a plan, and no other.
    spans = {task: entry["span"][0] for task, entry in found.document["x-torch"]["tasks"].items()}
    order = list(dict.fromkeys(groups[problem.task_names.index(task)] for task in sorted(spans, key=spans.__getitem__)))
    for seed in range(10):
        random = np.random.default_rng(seed)
        ends = sorted(random.integers(0, len(order) + 1, 2).tolist())
        stage = {group: sum(place >= end for end in ends) for place, group in enumerate(order)}
        plan = po.simulate(problem, [stage[group] for group in groups])
        assert po.split_spec(problem, plan, found)["stages"]


@pytest.mark.parametrize("name", PARTS)
def test_auto_is_the_coarsest_level_with_the_most_parts(name: str) -> None:
    for target, parts in zip(("device-map", "split-spec"), PARTS[name], strict=True):
        found, problem = imported(name, target)
        assert f"{target} can place {parts} part" in " ".join(found.notes)
        finest = imported(name, target, "op")
        assert f"{target} can place {parts} part" in " ".join(finest[0].notes)
        assert problem.n_tasks <= finest[1].n_tasks
    assert imported("mlp", "device-map")[0].document["x-torch"]["level"] == 2
    assert imported("llama", "device-map")[0].document["x-torch"]["level"] == 2  # whole layers
    assert imported("llama", "split-spec")[0].document["x-torch"]["level"] == "op"  # stages may begin inside layers


def test_auto_skips_levels_whose_tasks_do_not_fit() -> None:
    """At depth 1, all three layers are one task of 5 KiB and more."""
    model = nn.Sequential(OrderedDict(layers=nn.Sequential(*(nn.Linear(20, 20) for _ in range(3)))))
    inputs = (torch.ones(1, 20),)

    def at(size: str, level: str | int, target: str = "device-map") -> Any:
        network = {"devices": {"gpu": {"like": "a100-40gb", "count": 3, "memory": size}}}
        found = po.from_torch(model, inputs, devices=network, level=level, target=target)
        po.compile(found.document)
        return found.document["x-torch"]["level"]

    with pytest.raises(po.DocumentError, match=r"tasks\.layers\.memory: needs .* more than any device"):
        at("2 KiB", 1)
    for target in ("device-map", "split-spec"):
        assert at("2 KiB", "auto", target) == 2
        with pytest.raises(po.DocumentError, match=r"more than any device .*; no coarser level is possible"):
            at("1 KiB", "auto", target)


def test_modules_that_accelerate_keeps_whole() -> None:
    class Keeps(nn.Sequential):
        _no_split_modules = ("Mlp",)

    model = Keeps(Mlp(4, 4, 4), nn.Linear(4, 4))
    found = po.from_torch(model, (torch.zeros(2, 4),), devices=NETWORK, target="device-map")
    assert "device-map can place 2 parts" in " ".join(found.notes)
    free = nn.Sequential(*model)
    found = po.from_torch(free, (torch.zeros(2, 4),), devices=NETWORK, target="device-map")
    assert "device-map can place 3 parts" in " ".join(found.notes)


def test_code_without_inputs_and_weights_of_the_model_run_on_the_main_device() -> None:
    network = {"devices": {"cpu": {"speed": "1 GFLOP/s", "memory_bandwidth": "1 GB/s"}, **NETWORK["devices"]}}
    model, inputs = MODELS["own-weight"]
    tasks = po.from_torch(model, inputs, devices=network, target="device-map").document["tasks"]
    assert {name: task["pin"] for name, task in tasks.items() if "pin" in task} == {"add": "gpu0", "mean": "gpu0"}


def test_errors_of_export_name_a_level_that_works() -> None:
    found, problem = imported("residual", None, "op")
    modules = [found.document["x-torch"]["tasks"][name]["module"] for name in problem.task_names]
    apart = po.simulate(problem, [int("conv2" in module) for module in modules])
    with pytest.raises(po.UsageError, match="with --level 2 and each module on the device where it computes") as caught:
        po.device_map(problem, apart, found)
    assert "every plan can after an import with --for device-map" in str(caught.value)
    found, problem = imported("twice", None, "op")
    with pytest.raises(po.UsageError, match="with --level module and each module on the device"):
        po.device_map(problem, po.simulate(problem, [0, 1]), found)


def test_mistakes() -> None:
    for target, level, options, message in (
        ("vllm", "op", {}, "vllm is not a runtime of this import; known are device-map, split-spec"),
        (None, "auto", {}, "the level auto needs a runtime: --for device-map or split-spec"),
        ("split-spec", "op", {"objective": "makespan"}, "split-spec needs the objective period"),
    ):
        with pytest.raises(po.UsageError, match=message):
            imported("mlp", target, level, **options)


def test_the_commands(tmp_path: Path) -> None:
    model, inputs = MODELS["residual"]
    torch.export.save(torch.export.export(model, inputs, strict=False), tmp_path / "model.pt2")
    problem, plan = tmp_path / "model.yaml", tmp_path / "plan.json"
    for target, key in (("device-map", "stem"), ("split-spec", "split_spec")):
        options = ("--devices", "a100-40gb:2", "--level", "auto", "--for", target, "--out", problem)
        done = run("import", tmp_path / "model.pt2", *options)
        assert done.code == 0, done.err
        assert "parts of the model apart" in done.err
        assert run("solve", problem, "--out", plan).code == 0
        exported = run("export", problem, plan, "--to", target)
        assert exported.code == 0, exported.err
        assert key in json.loads(exported.out) or "" in json.loads(exported.out)
    (tmp_path / "g.dot").write_text("digraph { a -> b }")
    refused = run("import", tmp_path / "g.dot", "--for", "device-map")
    assert "the format dot takes no --for; formats with it are onnx, torch-export" in refused.err
