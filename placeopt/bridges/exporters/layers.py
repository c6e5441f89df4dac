"""Devices of the layers of a language model in a plan, for the formats of runtimes that place layers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from placeopt.bridges.exporters.exported import ExportRequest
from placeopt.errors import UsageError

_LAYER = re.compile(r"(?:layers|blk)\.(\d{1,4})(?:\.(.+))?")
WHOLE = "layer"
"""The part of a task that is a whole layer."""


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """Devices by index."""

    embedding: int
    head: int | None
    layers: tuple[dict[str, int], ...]
    """For each layer, the device of each part: `layer`, `attention`, `ffn`, `experts`, or the name of a tensor."""
    others: dict[str, int]
    """Devices of tensors outside layers that are tasks."""


def layer_plan(request: ExportRequest, format: str) -> LayerPlan:
    """Return the devices of the layers.

    Raises a UsageError if the tasks of the problem are not layers of a language model, experts of a layer are on
    several devices, or tasks have modes.
    """
    if request.problem.has_modes:
        raise UsageError(f"--to {format}: layers run in modes or in teams of devices, which the format cannot express")
    names = request.problem.task_names
    devices = dict(zip(names, request.schedule.device.tolist(), strict=True))
    found: dict[int, dict[str, int]] = {}
    others: dict[str, int] = {}
    for name, device in devices.items():
        match = _LAYER.fullmatch(name)
        if match is None:
            others[name] = device
            continue
        part = name if name.startswith("blk.") else match[2] or WHOLE
        if part.startswith("experts."):
            part = "experts"
        layer = found.setdefault(int(match[1]), {})
        if layer.setdefault(part, device) != device:
            device_names = request.problem.device_names
            raise UsageError(
                f"--to {format}: experts of layer {match[1]} are on {device_names[layer[part]]} and "
                f"{device_names[device]}, but the format places them together; expected --level part"
            )
    embedding, head = others.pop("embedding", None), others.pop("head", None)
    if embedding is None or not found or sorted(found) != list(range(len(found))):
        raise UsageError(
            f"--to {format} needs a problem with the tasks embedding, layers.0, layers.1 and so on; import a model in "
            "the format gguf or hf-config"
        )
    return LayerPlan(embedding, head, tuple(found[index] for index in range(len(found))), others)


def broken_order(devices: list[int]) -> int | None:
    """Return the first layer on a device that an earlier, not adjacent layer uses too; None without one."""
    left: set[int] = set()
    for index, (before, device) in enumerate(pairwise(devices), start=1):
        if device != before:
            left.add(before)
            if device in left:
                return index
    return None
