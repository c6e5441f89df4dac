"""Cut an exported program into the segments of a schedule, and write what `torch_worker.py` needs to run them.

A worker cuts the graph of the program again, and reads only the weights of its segments. A graph itself is not written:
PyTorch traces a pickled graph when it reads it, and thereby computes what depends on no input, such as random numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from placeopt.bridges.costs.aten_rules import mutates, tensor_bytes, tensors_in
from placeopt.bridges.cut_models import CutModel
from placeopt.bridges.exporters.fx_parts import SplitCallback, callback_of, move_graph
from placeopt.bridges.onnx_models.view import Tensor
from placeopt.bridges.pytorch.archives import read_program
from placeopt.bridges.pytorch.section import PlacedModel
from placeopt.bridges.pytorch.sizes import Sizes
from placeopt.model.segments import Segments

_LONG = {"float32": "float", "float64": "double"}
"""Types of elements whose names differ in ONNX."""


@dataclass(frozen=True, slots=True)
class TorchPart:
    """The part of a program that is a segment."""

    tasks: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    graph: GraphModule | None


class TorchSplit(CutModel):
    """A program that is cut into the segments of a plan.

    Attributes
    ----------
    inputs
        The value of each input: a tensor on the meta device, or a Python scalar.
    outputs
        The name of each output in the order of the program; those that no node computes are not results.
    """

    submodels: tuple[TorchPart, ...]

    def __init__(self, program: ExportedProgram, model: PlacedModel, segments: Segments, sizes: Sizes) -> None:
        self.segments = segments
        callback = callback_of(model, segments)
        module = module_of(program)
        self._nodes, self._sizes = {node.name: node for node in module.graph.nodes}, sizes
        called = _names(module, callback)
        root = callback.split(module)
        names = {node: node.name for node in root.graph.nodes if node.op == "placeholder"}
        self.inputs = {name: self._value(name) for name in names.values()}
        parts: dict[int, TorchPart] = {}
        tasks = model.problem.task_names
        for call in _calls(root.graph, "call_module"):
            k, graph = _part(root, call)
            own = dict(zip(_calls(graph.graph), called[k], strict=True))
            (returned,) = graph.graph.output_node().args
            outputs = tuple(own[each] for each in _flat(returned))
            if isinstance(returned, (tuple, list)):
                names |= {item: outputs[item.args[1]] for item in call.users if item.target is operator.getitem}
            elif outputs:
                names[call] = outputs[0]
            inside = tuple(tasks[i] for i in segments.tasks(k).tolist())
            parts[k] = TorchPart(inside, tuple(names[each] for each in call.args), outputs, graph)
        self.submodels = tuple(parts[k] for k in range(len(segments)))
        (returned,) = root.graph.output_node().args
        computed = {name for part in self.submodels for name in part.outputs}
        found: list[str] = []
        for k, each in enumerate(_flat(returned)):
            name = names.get(each, f"output {k}") if isinstance(each, Node) else f"output {k}"
            found.append(f"{name} (output {k})" if name in found else name)
        self.outputs = tuple(found)
        self._results = frozenset(name for name in found if name in computed)

    @property
    def results(self) -> frozenset[str]:
        """The outputs of the program that a node computes, by name."""
        return self._results

    def size(self, tensor: str) -> int:
        """Return the bytes of a tensor; 8 for a size."""
        return sum(map(tensor_bytes, tensors_in(self._value(tensor)))) or 8

    def _value(self, name: str) -> Any:
        """The value of a node: tensors on the meta device, Python scalars."""
        node = self._nodes[name]
        return self._sizes.concrete(node.meta.get("val"), node)

    def drop_weights(self) -> None:
        """Free the graphs, which hold the weights."""
        self.submodels = tuple(replace(part, graph=None) for part in self.submodels)

    def tensors(self) -> dict[str, Tensor]:
        """Return the inputs that are tensors, with types that NumPy has."""
        found = {}
        for name, value in self.inputs.items():
            if isinstance(value, torch.Tensor):
                element = element_of(value.dtype)
                short = value.dtype.is_floating_point and element not in ("float", "double", "float16")
                found[name] = Tensor(name, "float" if short else element, tuple(value.shape), tensor_bytes(value))
        return found


def element_of(dtype: torch.dtype) -> str:
    """Return the name of a type of elements, as in ONNX."""
    name = str(dtype).removeprefix("torch.")
    return _LONG.get(name, name)


def elements_of(program: ExportedProgram) -> set[str]:
    """Return the types of the tensors that a program computes."""
    made = [node.meta.get("val") for node in program.graph.nodes if node.op == "call_function"]
    return {element_of(tensor.dtype) for value in made for tensor in tensors_in(value)}


def write_split(split: TorchSplit, source: Path, placed: PlacedModel, folder: Path) -> list[str]:
    """Write a file for each device, so that its segments share their weights; return the file of each segment."""
    callback = callback_of(placed, split.segments)
    devices = split.segments.device.tolist()
    for device in dict.fromkeys(devices):
        own = split.segments.on_device(device).tolist()
        weights = {k: {name: value.detach() for name, value in _weights(split.submodels[k].graph).items()} for k in own}
        found = {"program": str(source.resolve()), "parts": callback.stated, "calls": placed.calls, "weights": weights}
        torch.save(found, folder / f"device-{device}.pt")
    return [f"device-{device}.pt/segment-{k:03}" for k, device in enumerate(devices)]


def read_segments(file: Path, place: torch.device) -> tuple[dict[int, tuple[GraphModule, dict[Node, str]]], bool]:
    """Read the segments of a device by number, with the names of their calls, and whether operators write in place.

    Weights and constants are moved to `place`; segments that share them still do.
    """
    found = torch.load(file, map_location=place)
    program = read_program(found["program"])
    module, callback = module_of(program), SplitCallback((), found["parts"], found["calls"])
    called = _names(module, callback)
    root = callback.split(module)
    parts = {}
    for call in _calls(root.graph, "call_module"):
        k, graph = _part(root, call)
        if k in found["weights"]:
            for name in _weights(graph):
                graph._parameters.pop(name, None)
                graph._buffers.pop(name, None)
                graph.register_buffer(name, found["weights"][k][name])
            move_graph(graph, place)
            parts[k] = graph, dict(zip(_calls(graph.graph), called[k], strict=True))
    return parts, changes(program)


def changes(program: ExportedProgram) -> bool:
    """Return whether an operator of a program overwrites an argument."""
    return any(mutates(node.target) for node in _calls(program.graph, "call_function"))


def write_values(values: Mapping[str, Any], folder: Path, prefix: str = "input") -> dict[str, str]:
    """Write inputs; return the file of each."""
    files = {name: f"{prefix}-{k}.pt" for k, name in enumerate(values)}
    for name, value in values.items():
        torch.save(torch.from_numpy(value) if isinstance(value, np.ndarray) else value, folder / files[name])
    return files


def _names(module: GraphModule, callback: SplitCallback) -> dict[int, list[str]]:
    """The names of the calls of each part in their order; the nodes of the part have other names."""
    found: dict[int, list[str]] = {}
    for node in _calls(module.graph):
        found.setdefault(callback(node), []).append(node.name)
    return found


def module_of(program: ExportedProgram) -> GraphModule:
    """Return the module of a program, without the check of its inputs."""
    module = program.module()
    assert isinstance(module, GraphModule)
    for node in list(module.graph.nodes):
        if node.op == "call_module" and node.target == "_guards_fn":
            module.graph.erase_node(node)
    module.recompile()
    return module


def _calls(graph: Graph, op: str = "call_") -> list[Node]:
    return [node for node in graph.nodes if node.op.startswith(op)]


def _part(root: GraphModule, call: Node) -> tuple[int, GraphModule]:
    """The number and the graph of a part."""
    graph = root.get_submodule(str(call.target))
    assert isinstance(graph, GraphModule)
    return int(str(call.target).rpartition("_")[2]), graph


def _weights(graph: GraphModule) -> dict[str, torch.Tensor]:
    """The parameters, buffers and constants of a part by name; not the graphs of control flow."""
    names = [str(node.target) for node in graph.graph.nodes if node.op == "get_attr"]
    found = {name: operator.attrgetter(name)(graph) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}


def _flat(returned: Any) -> Sequence[Any]:
    return list(returned) if isinstance(returned, (tuple, list)) else [] if returned is None else [returned]
