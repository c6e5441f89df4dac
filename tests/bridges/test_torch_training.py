"""Training steps of PyTorch models as problems."""

from __future__ import annotations

from typing import Any

import pytest

import placeopt as po

pytest.importorskip("torch", reason="PyTorch models need torch: pip install 'placeopt[torch]'")

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from torch_models import ConvNet, Llama, Mlp, small_llama

IDS = torch.zeros(2, 8, dtype=torch.long)


def step(model: nn.Module, *inputs: Tensor, **options: Any) -> dict[str, dict[str, Any]]:
    imported = po.from_torch(model, inputs, training=True, **options)
    assert po.compile(imported.document).n_tasks == len(imported.document["tasks"])
    return imported.document["tasks"]


def resident(tasks: dict[str, dict[str, Any]]) -> int:
    return sum(task.get("memory", {}).get("resident", 0) for task in tasks.values())


class Loss(nn.Module):
    """A model with its loss."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        return F.cross_entropy(self.model(ids).flatten(0, 1), ids.flatten())


@pytest.mark.parametrize("name", ["mlp", "conv", "llama"])
def test_flops_are_within_one_percent_of_the_counter_of_torch(name: str) -> None:
    with torch.device("meta"):
        model, inputs = {
            "mlp": lambda: (Mlp(512, 1024, 10), torch.zeros(16, 512)),
            "conv": lambda: (ConvNet(), torch.zeros(2, 3, 64, 64)),
            "llama": lambda: (Llama(1, 2048, 16, 16, 8192, 1000), torch.zeros(1, 32, dtype=torch.long)),
        }[name]()
        with FlopCounterMode(display=False) as counter:
            output = model(inputs)
            torch.autograd.grad(output, list(model.parameters()), torch.ones_like(output))
        tasks = step(model, inputs)
    flops = sum(task.get("flops", 0) for task in tasks.values())
    assert counter.get_total_flops() <= flops <= 1.01 * counter.get_total_flops()


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_a_grouped_convolution_take_its_work_twice(transposed: bool) -> None:
    """The counter of torch takes the gradient of the weight as that of a dense convolution."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            kind = nn.ConvTranspose2d if transposed else nn.Conv2d
            self.first = nn.Conv2d(3, 8, 1)
            self.second = kind(8, 16, 3, stride=2, padding=1, groups=4, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.second(self.first(x))

    tasks = step(Twice(), torch.zeros(5, 3, 12, 12))
    forward, backward = list(tasks.values())[1:3]
    positions = 12 * 12 if transposed else 6 * 6
    assert forward["flops"] == 2 * 5 * positions * (8 // 4) * 16 * 9
    assert backward["flops"] == 2 * forward["flops"]


def test_each_forward_task_has_a_backward_task_on_the_device_of_its_weights() -> None:
    tasks = step(Mlp(4, 8, 2), torch.zeros(3, 4))
    assert {name: (list(task.get("after", [])), task.get("backward_of")) for name, task in tasks.items()} == {
        "linear": ([], None),
        "relu": (["linear"], None),
        "linear_1": (["relu"], None),
        "linear_1.backward": (["relu", "linear_1"], "linear_1"),
        "relu.backward": (["relu", "linear_1.backward"], "relu"),
        "linear.backward": (["relu.backward"], "linear"),
    }
    for name in ("linear", "linear_1"):
        assert tasks[name]["colocate"] == tasks[f"{name}.backward"]["colocate"]
    assert tasks["linear_1.backward"]["flops"] == 2 * (2 * 3 * 8 * 2) + 3 * 2  # two products, and the sum for the bias


def test_gradients_and_the_state_of_the_optimiser_are_resident() -> None:
    weights = 4 * (4 * 8 + 8 + 8 * 2 + 2)
    assert resident(step(Mlp(4, 8, 2), torch.zeros(3, 4))) == 2 * weights
    assert resident(step(Mlp(4, 8, 2), torch.zeros(3, 4), optimizer_bytes_per_parameter=8)) == 4 * weights


def test_frozen_parameters_have_no_gradients() -> None:
    model = Mlp(4, 8, 2)
    model.layers[0].requires_grad_(False)
    tasks = step(model, torch.zeros(3, 4))
    assert "linear.backward" not in tasks
    assert resident(tasks) == 4 * ((4 * 8 + 8) + 2 * (8 * 2 + 2))


@pytest.mark.parametrize("level", ["op", "module", 2])
def test_levels_and_a_loss(level: str | int) -> None:
    tasks = step(Loss(small_llama(2)), IDS, level=level)
    backward = [name for name, task in tasks.items() if "backward_of" in task]
    assert len(backward) > len(tasks) // 3
    assert all(tasks[name]["backward_of"] in tasks for name in backward)
    assert resident(tasks) == 2 * 4 * sum(each.numel() for each in small_llama(2).parameters())


def test_modules_have_a_backward_task() -> None:
    assert list(step(small_llama(1), IDS, level=2)) == [
        "embedding", "model", "layers.0", "norm", "head",
        "head.backward", "norm.backward", "layers.0.backward", "embedding.backward",
    ]  # fmt: skip


def test_statistics_of_a_batch_norm_are_changed_in_training() -> None:
    tasks = step(ConvNet(8).train(), torch.zeros(2, 3, 16, 16))
    assert resident(tasks) > 2 * 4 * sum(each.numel() for each in ConvNet(8).parameters())
    assert all(isinstance(task["op"], str) for task in tasks.values())


def test_attention_saves_no_matrix_of_scores() -> None:
    tasks = step(small_llama(1), torch.zeros(1, 64, dtype=torch.long))
    scores = 4 * 64 * 64 * 4
    assert tasks["scaled_dot_product_attention"]["output"] < scores


def test_a_model_without_gradients_is_a_usage_error() -> None:
    with pytest.raises(po.UsageError, match="no output of the model depends on a parameter"):
        step(Mlp(2, 2).requires_grad_(False), torch.zeros(1, 2))
