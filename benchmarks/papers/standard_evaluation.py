"""Measure training steps of PyTorch on this machine's CPU, for Celeritas's Rough Estimation (section 4.2.1).

The paper measures each operator at small batches on a GPU and extrapolates by linear regression. `placeopt profile fit`
does the same. Costs of generated graphs are nearly linear in the batch, so they cannot test the regression. Here, the
kernels of small models are measured: forward pass, backward pass, and the bytes of each result. The models have the
operators of the paper's models, not their sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from placeopt.bridges.profiling.estimates import fit_profile, relative_deviation
from placeopt.bridges.profiling.measurements import Measurements

SMALL, LARGE = (2, 4, 8, 16), 64
DISCARD, STEPS = 5, 20
"""First steps, left out, and measured ones; 5 and 50 in the paper."""


class Recorder(TorchDispatchMode):
    """Records the seconds and the bytes of the results of each kernel, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[tuple[str, float, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        start = time.thread_time()
        result = func(*args, **(kwargs or {}))
        spent = time.thread_time() - start
        tensors = result if isinstance(result, tuple | list) else (result,)
        size = sum(each.nbytes for each in tensors if isinstance(each, torch.Tensor))
        self.kernels.append((f"{len(self.kernels)} {func.name()}", spent, size))
        return result


class Branches(nn.Module):
    """Blocks of parallel convolutions, as in Inception-v3."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(
                    nn.Conv2d(width, width // 3, size, padding=size // 2), nn.BatchNorm2d(width // 3), nn.ReLU()
                )
                for size in (1, 3, 5)
            )
            for _ in range(4)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Class scores."""
        found = self.stem(images)
        for block in self.blocks:
            found = torch.cat([branch(found) for branch in block], dim=1)
        scores: torch.Tensor = self.head(found.mean(dim=(2, 3)))
        return scores


class Translator(nn.Module):
    """Unrolled LSTM cells of an encoder and a decoder."""

    def __init__(self, width: int = 96, words: int = 400, length: int = 10) -> None:
        super().__init__()
        self.length = length
        self.embed = nn.Embedding(words, width)
        self.cells = nn.ModuleList(nn.LSTMCell(width, width) for _ in range(4))
        self.head = nn.Linear(width, words)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Scores of words."""
        states = [None] * len(self.cells)
        scores = []
        for step in range(2 * self.length):
            found = self.embed(words[:, step % words.shape[1]])
            for k, cell in enumerate(self.cells):
                states[k] = cell(found, states[k])
                found = states[k][0]
            if step >= self.length:
                scores.append(self.head(found))
        return torch.stack(scores, dim=1)


def transformer() -> nn.Module:
    """Two encoder layers."""
    layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(400, 64), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))


def holography() -> nn.Module:
    """Convolutions of 24 filters, as in Tensor Holography, 10 instead of 30."""
    layers: list[nn.Module] = [nn.Conv2d(4, 24, 3, padding=1), nn.ReLU()]
    for _ in range(8):
        layers += [nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(24, 6, 3, padding=1))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], torch.Tensor]]] = {
    "inception_v3": (Branches, lambda batch: torch.randn(batch, 3, 32, 32)),
    "lstm_nmt": (Translator, lambda batch: torch.randint(0, 400, (batch, 10))),
    "transformer": (transformer, lambda batch: torch.randint(0, 400, (batch, 24))),
    "tensor_holography": (holography, lambda batch: torch.randn(batch, 4, 24, 24)),
}


def deviations(name: str) -> dict[str, list[float]]:
    """Relative deviations of the estimated bytes and seconds of each kernel from the measured ones."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    model = make()
    measured = {batch: run(model, inputs(batch)) for batch in (*SMALL, LARGE)}
    keys, batches, seconds, sizes = [], [], [], []
    for batch in SMALL:
        for kernel, spent, size in measured[batch]:
            keys.append((kernel, None))
            batches.append(batch)
            seconds.append(spent)
            sizes.append(size)
    profile = fit_profile(Measurements.of(keys, batches, seconds, sizes), LARGE)
    actual = {kernel: (spent, size) for kernel, spent, size in measured[LARGE]}
    found: dict[str, list[float]] = {"bytes": [], "seconds": []}
    for each in profile.estimates:
        spent, size = actual[each.operator]
        assert each.estimated.bytes is not None
        for what, pair in (("seconds", (each.estimated.seconds, spent)), ("bytes", (each.estimated.bytes, size))):
            deviation = relative_deviation(*pair)
            if deviation is not None:
                found[what].append(deviation)
    return found


def run(model: nn.Module, inputs: torch.Tensor) -> list[tuple[str, float, int]]:
    """The kernels of a training step with their mean seconds and bytes."""
    steps = []
    for _ in range(DISCARD + STEPS):
        model.zero_grad(set_to_none=True)
        with Recorder() as recorder:
            model(inputs).square().mean().backward()
        steps.append(recorder.kernels)
    assert len({tuple(kernel for kernel, *_ in step) for step in steps}) == 1, "the kernels of steps differ"
    means = np.median([[spent for _, spent, _ in step] for step in steps[DISCARD:]], axis=0)
    return [(kernel, float(mean), size) for (kernel, _, size), mean in zip(steps[-1], means, strict=True)]
