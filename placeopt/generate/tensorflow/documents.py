"""Tasks of a graph of TensorFlow 1.x, and the models by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from placeopt.generate import convnets, layers
from placeopt.generate.layers import ModelOptions
from placeopt.generate.tensorflow import operations as tf
from placeopt.generate.tensorflow.graph import Graph, Node, Tensor
from placeopt.generate.tensorflow.lowering import Lowering
from placeopt.generate.tensorflow.recurrent import lstm_nmt
from placeopt.generate.tensorflow.transformer import summaries, transformer
from placeopt.generate.tensorflow.variables import Outputs, minimize, variable


def classifier(graph: Graph, kernels: layers.Graph) -> Outputs:
    """Add an image classifier of slim; its loss is the cross-entropy of the main logits."""
    training = kernels.options.training
    lowering = Lowering(graph, training, slim=True)
    lowering.lower(kernels)
    results = (lowering.probabilities("predictions"),)
    return Outputs(results, lowering.loss("predictions") if training else None)


def holography(graph: Graph, kernels: layers.Graph) -> Outputs:
    """Add Tensor Holography.

    The last layer gives amplitudes and phases of three colours. The loss is that of the hologram (Shi et al. 2021,
    methods): the mean difference of the complex fields, after the mean difference of the phases is removed.
    """
    training = kernels.options.training
    lowering = Lowering(graph, training, slim=False)
    lowering.lower(kernels)
    *_, last = lowering.found.values()
    half = (last.shape[0], last.shape[1] // 2, *last.shape[2:])
    amplitude = tf.pointwise("Mul", tf.strided_slice(last, half, bounds=4), math.sqrt(0.5), name="mul")
    amplitude = tf.pointwise("Add", amplitude, math.sqrt(0.5), name="output_field_amp")
    phase = tf.pointwise("Mul", tf.strided_slice(last, half, bounds=4), 0.5, name="mul")
    phase = tf.pointwise("Add", phase, 0.5, name="output_field_phs")
    if not training:
        return Outputs((amplitude, phase))
    true_amplitude, true_phase = (tf.placeholder(graph, half, "float", name) for name in ("amp", "phs"))
    angles = (_radians(true_phase), _radians(phase))
    # The released code states the difference twice.
    sine, cosine = (tf.pointwise(op, tf.pointwise("Sub", *angles, name="sub")) for op in ("Sin", "Cos"))
    angle = tf.pointwise("Atan2", sine, cosine)
    angle = tf.pointwise("Sub", angle, tf.reduce("Mean", angle, (2, 3), keep=True), name="sub")
    real = tf.pointwise("Mul", true_amplitude, tf.pointwise("Cos", angle), name="mul")
    imaginary = tf.pointwise("Mul", true_amplitude, tf.pointwise("Sin", angle), name="mul")
    parts = (tf.pointwise("Sub", real, amplitude, name="sub"), imaginary)
    means = [tf.reduce("Mean", tf.pointwise("Abs", part), None) for part in parts]
    return Outputs((amplitude, phase), tf.pointwise("Add", *means, name="add"))


def _radians(phase: Tensor) -> Tensor:
    """Phases in [0, 1] as angles."""
    doubled = tf.pointwise("Mul", tf.pointwise("Sub", phase, 0.5, name="sub"), 2, name="mul")
    return tf.pointwise("Mul", doubled, math.pi, name="mul")


METADATA_TIME = "1 us"
"""Time of an operation that only handles sizes, constants or the order of operations. Baechi takes 1 us for operations
of which the profile has no time (`placer_lib.py`, `duration = 1`)."""

METADATA = frozenset(
    ("Const", "VariableV2", "Placeholder", "Identity", "Reshape", "ExpandDims", "Squeeze", "NoOp", "StopGradient",
     "PreventGradient", "Shape", "ShapeN", "Rank", "Size")
)  # fmt: skip
"""Operations that compute nothing and move nothing. Others without a kernel on the GPU are those of integers: their
tensors are in the memory of the host."""

ALIASES = frozenset(("Identity", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "PreventGradient"))
"""Operations whose output is the buffer of their input."""

UPDATES = frozenset(
    ("Assign", "AssignAdd", "AssignSub", "ApplyAdam", "ApplyGradientDescent", "ApplyMomentum", "ScatterAdd",
     "ScatterSub", "SparseApplyMomentum")
)  # fmt: skip
"""Operations whose output is a variable."""


def tensorflow_graph(name: str, options: ModelOptions) -> tuple[Graph, tuple[Node, ...]]:
    """Return the graph of a model, and the operations that a step executes: the results, or the loss and the update."""
    graph = Graph(options.bytes_per_element)
    outputs = BUILDERS[name](graph, options)
    if outputs.loss is None:
        return graph, tuple(tensor.node for tensor in outputs.results)
    step = outputs.step or variable(graph, (), "zeros", "global_step", trainable=False, type="int")
    update = minimize(graph, outputs.loss, options.optimiser, step, outputs.rate)
    if outputs.rate is not None:
        summaries([outputs.rate, outputs.loss, step.read])
    return graph, (outputs.loss.node, update)


def tensorflow_tasks(name: str, options: ModelOptions) -> dict[str, dict[str, Any]]:
    """Return the tasks of a spec, with sizes in bytes, as plain data."""
    graph, targets = tensorflow_graph(name, options)
    needed = graph.needed(*targets)
    groups = graph.groups()
    size = [0] * len(groups)
    whole = options.style == "tensorflow"
    for node in graph.nodes:
        if whole or needed[node.number]:
            size[groups[node.number]] += 1
    return {node.name: _task(node, needed, groups, size) for node in graph.nodes if whole or needed[node.number]}


def _task(node: Node, needed: list[bool], groups: list[int], size: list[int]) -> dict[str, Any]:
    graph, outputs = node.graph, node.outputs
    runs = needed[node.number]
    output = sum([tensor.bytes for tensor in outputs])
    task: dict[str, Any] = {"op": node.op}
    if not runs:
        task["time"] = 0
    elif node.op in METADATA or all(tensor.type == "int" for tensor in outputs):
        task["time"] = METADATA_TIME
    else:
        task["flops"] = node.flops
        task["bytes"] = output + sum([tensor.bytes for tensor in node.inputs])
    task["output"] = output
    memory: dict[str, int] = {}
    if node.resident or (node.op == "Const" and runs):
        memory["resident"] = node.resident or output
    if output and (not runs or memory or node.op in ALIASES or node.op in UPDATES):
        memory["output"] = 0
    if memory:
        task["memory"] = memory
    if node.inputs or node.controls:
        task["after"] = _after(node, runs)
    if node.forward is not None:
        task["backward_of"] = node.forward.name
    group = groups[node.number]
    if size[group] > 1:
        task["colocate"] = graph.nodes[group].name
    return task


def _after(node: Node, runs: bool) -> list[str] | dict[str, int | None]:
    """Return the payloads of edges, the tensors that are read: 0 for order alone, and if the reader never runs."""
    read: dict[str, dict[int, int]] = {}
    outputs: dict[str, int] = {}
    for tensor in node.inputs:
        name = tensor.node.name
        outputs[name] = len(tensor.node.outputs)
        read.setdefault(name, {})[tensor.index] = tensor.bytes
    payloads: dict[str, int | None] = {
        name: 0 if not runs else None if len(parts) == outputs[name] else sum(parts.values())
        for name, parts in read.items()
    }
    for other in node.controls:
        payloads.setdefault(other.name, 0)
    return payloads if any(payload is not None for payload in payloads.values()) else list(payloads)


def _image(
    kernels: Callable[[Any], layers.Graph], build: Callable[[Graph, layers.Graph], Outputs]
) -> Callable[[Graph, Any], Outputs]:
    return lambda graph, options: build(graph, kernels(options))


BUILDERS: dict[str, Callable[[Graph, Any], Outputs]] = {
    "vgg19": _image(convnets.vgg19, classifier),
    "resnet50": _image(convnets.resnet50, classifier),
    "inception_v3": _image(convnets.inception_v3, classifier),
    "transformer": transformer,
    "lstm_nmt": lstm_nmt,
    "tensor_holography": _image(convnets.tensor_holography, holography),
}
"""Functions that add the operations of a model, by its name."""
