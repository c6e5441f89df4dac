"""Exported programs as kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from placeopt.bridges.costs.aten_rules import Meter
from placeopt.bridges.pytorch.graphs import GraphReader
from placeopt.bridges.pytorch.kernels import KernelGraph, Weight
from placeopt.bridges.pytorch.sizes import Sizes

_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def forward_kernels(program: ExportedProgram, sizes: Sizes) -> KernelGraph:
    """The kernels of a forward pass."""
    weights, names, placeholders = weights_of(program, sizes)
    graph = GraphReader(sizes, Meter(), weights, names).read(program.graph_module, placeholders)
    graph.outputs = {t: None for t in graph.outputs if graph.tensors[t].weight is None}
    return graph


def weights_of(
    program: ExportedProgram, sizes: Sizes
) -> tuple[dict[str, Weight], dict[str, str], dict[str, str | None]]:
    """The weights of a program, the weight of each parameter and buffer, and the weight of each placeholder.

    Parameters that share their memory are one weight, with the name of the first.
    """
    changed = set(program.graph_signature.buffers_to_mutate.values())
    owners: dict[Any, str] = {}
    weights: dict[str, Weight] = {}
    names: dict[str, str] = {}
    placeholders: dict[str, str | None] = {}
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    for node, spec in zip(nodes, program.graph_signature.input_specs, strict=True):
        placeholders[node.name] = None
        value = sizes.concrete(node.meta.get("val"), node)
        if spec.kind not in _WEIGHTS or spec.target is None or not isinstance(value, torch.Tensor):
            continue
        owner = owners.setdefault(_memory(program, spec.target), spec.target)
        weight = weights.setdefault(owner, Weight(owner, 0))
        weight.bytes = max(weight.bytes, value.numel() * value.element_size())
        weight.elements = max(weight.elements, value.numel())
        weight.parameter |= spec.kind == InputKind.PARAMETER
        weight.mutated |= spec.target in changed
        placeholders[node.name] = owner
        if spec.kind != InputKind.CONSTANT_TENSOR:
            names[spec.target] = owner
    return weights, names, placeholders


def _memory(program: ExportedProgram, target: str) -> Any:
    """An identity of the memory of a weight, equal for tied weights."""
    stored: Mapping[str, Any] = program.state_dict if target in program.state_dict else program.constants
    value = stored.get(target)
    if not isinstance(value, torch.Tensor):
        return target
    return value.untyped_storage()._cdata, value.storage_offset(), tuple(value.shape)
