"""Cut an ONNX model into a model for each segment of a schedule.

Each live node of the model is a task of the problem, and belongs to the segment of its task. A tensor that a segment
reads and another one writes is an output of the one and an input of the other. What does not depend on the inputs of
the model, weights and the folded nodes that compute constants, is part of each segment that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.bridges.cut_models import CutModel
from placeopt.bridges.onnx_models.external_data import Store
from placeopt.bridges.onnx_models.loading import inlined, load_proto, read_by
from placeopt.bridges.onnx_models.reading import read_model
from placeopt.bridges.onnx_models.view import OnnxModel
from placeopt.errors import UsageError, counted, listing, suggestion
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.model.segments import Segments, cut_segments

if TYPE_CHECKING:
    from onnx import ModelProto, TypeProto, ValueInfoProto

IR_VERSION = 8
"""Least version of written models: before version 4, initializers are also inputs, which the checker requires."""


@dataclass(frozen=True, slots=True)
class Submodel:
    """The nodes, weights and tensors of a model that one segment needs."""

    tasks: tuple[str, ...]
    """In topological order."""
    nodes: tuple[int, ...]
    """Indices of the nodes in the model, constants first, in topological order."""
    weights: tuple[str, ...]
    """Initializers that the nodes read."""
    constants: tuple[str, ...]
    """Constants that the tasks read: initializers and results of folded nodes."""
    inputs: tuple[str, ...]
    """Inputs of the model, and tensors of other segments."""
    outputs: tuple[str, ...]
    """Tensors for other segments, and outputs of the model."""


class Split(CutModel):
    """A model that is cut into the segments of a schedule.

    Attributes
    ----------
    model
        The model without its weights.
    """

    submodels: tuple[Submodel, ...]

    def __init__(self, model: OnnxModel, segments: Segments, task_index: Mapping[str, int]) -> None:
        self.model = model
        self.segments = segments
        segment = segments.member.tolist()
        self._of_node = {node.task: segment[task_index[node.task]] for node in model.nodes}
        self.submodels = tuple(self._cut())

    @property
    def results(self) -> frozenset[str]:
        """The outputs of the model by name."""
        return self._outputs

    def size(self, tensor: str) -> int:
        """Return the bytes of a tensor."""
        return self.model.tensors[tensor].bytes

    @property
    def weight_bytes(self) -> tuple[int, ...]:
        """Bytes of the constants of each segment."""
        return tuple(self._bytes(submodel.constants) for submodel in self.submodels)

    @property
    def duplicated_bytes(self) -> int:
        """Bytes of the constants that several segments read, without the first copy of each."""
        return sum(self.weight_bytes) - self._bytes(
            dict.fromkeys(name for submodel in self.submodels for name in submodel.constants)
        )

    def _bytes(self, names: Iterable[str]) -> int:
        return sum(self.model.tensors[name].bytes for name in names)

    def _cut(self) -> Iterator[Submodel]:
        model = self.model
        inside: list[list[Any]] = [[] for _ in range(len(self.segments))]
        for node in model.nodes:
            inside[self._of_node[node.task]].append(node)
        constants = _Constants(model)
        results = [name for name in model.outputs if name in model.constants]
        for k, nodes in enumerate(inside):
            written = [name for node in nodes for name in node.writes]
            own = set(written)
            read = list(dict.fromkeys(name for node in nodes for name in node.reads if name not in own))
            # An output that is a constant belongs to no task; the first segment returns it.
            needed = dict.fromkeys([name for node in nodes for name in node.constants] + (results if k == 0 else []))
            folded, weights = constants.needed(needed)
            outputs = [name for name in written if self._leaves(name, k)]
            yield Submodel(
                tuple(node.task for node in nodes),
                (*folded, *(node.index for node in nodes)),
                weights,
                tuple(needed),
                tuple(read),
                (*outputs, *(results if k == 0 else ())),
            )

    def _leaves(self, name: str, segment: int) -> bool:
        """Whether a tensor is needed outside its segment."""
        if name in self._outputs:
            return True
        return any(self._of_node[node.task] != segment for node in self.model.readers.get(name, ()))

    @cached_property
    def _outputs(self) -> frozenset[str]:
        return frozenset(self.model.outputs)


class _Constants:
    """The folded nodes and initializers from which constants are computed."""

    def __init__(self, model: OnnxModel) -> None:
        self._nodes = model.proto.graph.node
        self._writer = {name: i for i in model.folded for name in self._nodes[i].output if name}
        self._reads = {i: tuple(dict.fromkeys(read_by(self._nodes[i]))) for i in model.folded}

    def needed(self, names: Iterable[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return the nodes that compute constants, in topological order, and the initializers."""
        nodes: dict[int, None] = {}
        weights: dict[str, None] = {}
        for name in names:
            if name not in self._writer:
                weights[name] = None
                continue
            waiting = [(self._writer[name], iter(self._reads[self._writer[name]]))]
            while waiting:
                index, reads = waiting[-1]
                if index in nodes:
                    waiting.pop()
                    continue
                for read in reads:
                    if read not in self._writer:
                        weights[read] = None
                    elif self._writer[read] not in nodes:
                        waiting.append((self._writer[read], iter(self._reads[self._writer[read]])))
                        break
                else:
                    nodes[index] = None
                    waiting.pop()
        return tuple(nodes), tuple(weights)


def whole_submodel(model: OnnxModel) -> Submodel:
    """Return the whole model as one submodel, without nodes that no output needs."""
    needed = dict.fromkeys(name for node in model.nodes for name in node.constants)
    needed |= dict.fromkeys(name for name in model.outputs if name in model.constants)
    folded, weights = _Constants(model).needed(needed)
    nodes = (*folded, *(node.index for node in model.nodes))
    outputs = tuple(name for name in model.outputs if name not in model.inputs)
    return Submodel(tuple(model.tasks), nodes, weights, tuple(needed), model.inputs, outputs)


def split_model(problem: Problem, schedule: Schedule, model: OnnxModel, *, few_segments: bool = False) -> Split:
    """Cut a model into the segments of a schedule of its problem, which keep the order of the schedule.

    Parameters
    ----------
    few_segments
        Whether a segment may wait for all its inputs and send its outputs at its end; by default, segments are cut at
        transfers.

    Raises
    ------
    UsageError
        If the tasks of the problem are not the nodes of the model, or an edge of the model is missing.
    """
    index = task_index(problem, model)
    return Split(model, cut_segments(problem, schedule, keep_order=True, at_transfers=not few_segments), index)


def task_index(problem: Problem, model: OnnxModel) -> dict[str, int]:
    """Return the index of each task by its name.

    Raises a UsageError if the tasks of the problem are not the nodes of the model.
    """
    index = {name: i for i, name in enumerate(problem.task_names)}
    unknown = [name for name in problem.task_names if name not in model.tasks]
    missing = [name for name in model.tasks if name not in index]
    if unknown or missing:
        raise UsageError(_mismatch(model, unknown, missing))
    known = set(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
    for node in model.nodes:
        for name in node.reads:
            source = model.producers.get(name)
            if source is not None and (index[source], index[node.task]) not in known:
                raise UsageError(
                    f"{model.file or 'the model'} is not the model of the problem: the problem lacks the edge {source} "
                    f"-> {node.task}, on which the model moves {name}; import the model again"
                )
    return index


def notes_on_sizes(problem: Problem, model: OnnxModel) -> tuple[str, ...]:
    """State that all tensors have other sizes than the payloads of the problem: another batch size, for example."""
    names = problem.task_names
    payload = {
        (names[source], names[target]): amount
        for source, target, amount in zip(
            problem.edge_source.tolist(), problem.edge_target.tolist(), problem.payload.tolist(), strict=True
        )
    }
    compared = []
    for node in model.nodes:
        for name in node.reads:
            source = model.producers.get(name)
            if source is not None and payload[source, node.task]:
                output = sum(model.tensors[each].bytes for each in model.tasks[source].writes)
                compared.append(payload[source, node.task] in (model.tensors[name].bytes, output))
    if any(compared) or not compared:
        return ()
    return (
        "the tensors of the model have other sizes than the payloads of the problem, for which times are predicted; "
        "state the --batch and --dim of the import",
    )


def _mismatch(model: OnnxModel, unknown: Sequence[str], missing: Sequence[str]) -> str:
    file = model.file or "the model"
    parts = []
    if unknown:
        hint = suggestion(unknown[0], missing)
        parts.append(f"it has no nodes for {counted(len(unknown), 'task')} ({listing(unknown, 4)}){hint}")
    if missing:
        parts.append(f"the problem has no tasks for {counted(len(missing), 'node')} ({listing(missing, 4)})")
    return f"{file} is not the model of the problem: {'; '.join(parts)}"


def inferred_types(model: OnnxModel) -> dict[str, TypeProto]:
    """Return the types that the model or shape inference states, for values other than tensors of known shape."""
    from onnx import shape_inference

    graph = shape_inference.infer_shapes(model.proto).graph
    return {value.name: value.type for value in (*graph.value_info, *graph.input, *graph.output)}


def value_type(model: OnnxModel, inferred: Mapping[str, TypeProto], name: str) -> TypeProto | None:
    """Return the type of a value, with which a segment can end or begin; None if it is unknown."""
    from onnx import TensorProto, helper

    tensor = model.tensors[name]
    if tensor.shape is not None and not tensor.assumed and tensor.element:
        return helper.make_tensor_type_proto(TensorProto.DataType.Value(tensor.element.upper()), tensor.shape)
    return inferred[name] if name in inferred and inferred[name].WhichOneof("value") else None


class Writer:
    """Writes submodels as separate models, with the weights that they read."""

    def __init__(self, source: Path, batch: int | None = None, dims: Mapping[str, int] | None = None) -> None:
        """Read a model: `model` is its light view, with the given sizes of its dimensions.

        Raises a DocumentError if the file is not a valid model.
        """
        self.proto: ModelProto = inlined(load_proto(source), str(source))
        self.model = read_model(source, batch=batch, dims=dims)
        self._source = source
        graph = self.proto.graph
        self._dense = {tensor.name: tensor for tensor in graph.initializer}
        self._sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self._names = {node.index: node.task for node in self.model.nodes}

    @cached_property
    def _types(self) -> dict[str, TypeProto]:
        return inferred_types(self.model)

    def value(self, name: str) -> ValueInfoProto:
        """Return name, type and shape of a tensor for the inputs or outputs of a model.

        Raises a UsageError if the type is unknown.
        """
        from onnx import helper

        kind = value_type(self.model, self._types, name)
        if kind is not None:
            return helper.make_value_info(name, kind)
        writer = self.model.producers.get(name)
        raise UsageError(
            f"the type of the tensor {name} is unknown, so a segment cannot end there; keep {writer or name} and the "
            "tasks that read it on one device, or state the type as value_info of the model"
        )

    def lacks_rank(self, name: str) -> bool:
        """Whether the rank of a tensor is unknown, which the checker of onnx rejects."""
        kind = self.value(name).type
        return kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape")

    def write(self, path: Path, submodel: Submodel, change: Callable[[ModelProto], None] | None = None) -> None:
        """Write a submodel as a model; live nodes get the names of their tasks.

        Weights in external files are copied to a separate file in the same folder, the others are inside.

        Parameters
        ----------
        change
            Changes the model before it is written.

        Raises
        ------
        UsageError
            If the type of an input or output is unknown.
        DocumentError
            If a file with weights cannot be read.
        """
        from onnx import ModelProto, helper

        graph = self.proto.graph
        made = ModelProto(ir_version=max(self.proto.ir_version, IR_VERSION), producer_name="placeopt")
        made.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in self.model.opsets.items())
        made.metadata_props.extend(self.proto.metadata_props)
        made.graph.name = graph.name or "main"
        made.graph.input.extend(self.value(name) for name in submodel.inputs)
        made.graph.output.extend(self.value(name) for name in submodel.outputs)
        made.graph.node.extend(graph.node[index] for index in submodel.nodes)
        for node, index in zip(made.graph.node, submodel.nodes, strict=True):
            node.name = self._names.get(index, node.name)
        used = {*submodel.weights, *submodel.inputs, *submodel.outputs}
        made.graph.quantization_annotation.extend(
            each for each in graph.quantization_annotation if each.tensor_name in used
        )
        for name in submodel.weights:
            if name in self._sparse:
                made.graph.sparse_initializer.add().CopyFrom(self._sparse[name])
            else:
                made.graph.initializer.add().CopyFrom(self._dense[name])
        with Store(self._source.parent, path.with_name(f"{path.name}.data")) as store:
            store.move(made.graph)
        if change is not None:
            change(made)
        path.write_bytes(made.SerializeToString(deterministic=True))

    def write_segments(self, split: Split, folder: Path) -> list[str]:
        """Write the model of each segment, and return the names of the files."""
        width = max(3, len(str(len(split.submodels) - 1)))
        files = [f"segment-{k:0{width}}.onnx" for k in range(len(split.submodels))]
        for submodel, file in zip(split.submodels, files, strict=True):
            self.write(folder / file, submodel)
        return files
