"""Build graphs of neural networks from layers, with shape inference, and convert them to tasks of a spec.

Costs of every model:

- `flops`: a multiply-accumulate (MAC) is 2 FLOP. Per element, a bias, a ReLU or a sum is 1 FLOP, a batch normalisation
  4, a layer normalisation 7, a softmax 5, a sigmoid 4, a tanh 5, and a pooling window 1 per input. Moving data
  (padding, concatenation, splitting, table lookup) is 0 FLOP, but has `bytes`.
- `bytes`: inputs and weights read plus outputs written, each once.
- `output`: the activation that the task produces. An edge to a consumer of only a part has a payload of its own.
- `resident`: weights and buffers (running mean and variance of a batch normalisation); in training also one gradient
  per weight and the state of the optimiser (`OPTIMISERS`).
- `gradient`, in training with the objective `period`: the gradients of the weights, which replicas synchronise.

Weights that several tasks read (time steps of a recurrent layer, a tied embedding) are resident with the first of these
tasks, and all of them share a `colocate` label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from placeopt.errors import InternalError

Keeps = Literal["nothing", "inputs", "output", "both"]
"""Activations that an operation's gradient needs besides the gradient of its output."""

ELEMENTWISE: dict[str, tuple[int, Keeps]] = {
    "add": (1, "nothing"),
    "multiply": (1, "inputs"),
    "scale": (1, "nothing"),
    "mask": (1, "nothing"),
    "shift": (1, "nothing"),
    "relu": (1, "output"),
    "dropout": (2, "output"),
    "sigmoid": (4, "output"),
    "tanh": (5, "output"),
    "softmax": (5, "output"),
}
"""FLOP per element, and the activations that the gradient needs."""

OPTIMISERS: dict[str, tuple[int, int]] = {"sgd": (0, 2), "momentum": (1, 4), "adam": (2, 12)}
"""State values and FLOP per parameter."""


class ModelOptions(BaseModel):
    """Options of every model."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    batch: int = Field(default=1, ge=1)
    """Samples per step."""
    bytes_per_element: int = Field(default=4, ge=1, le=16)
    """Bytes of a weight or activation: 4 is float32."""
    training: bool = False
    """Whether to add the loss, the backward operators and the updates of the weights."""
    optimiser: Literal["sgd", "momentum", "adam"] = "adam"
    """Optimiser in training, with a state of 0, 1 or 2 values per parameter."""
    objective: Literal["makespan", "period"] = "makespan"
    """Objective. `period` is the throughput of a pipeline with contiguous stages. Its runs are microbatches without
    updates of the weights, which happen once for many of them."""
    style: Literal["kernels", "tensorflow", "tensorflow_step"] = "kernels"
    """Operators of the graph. `kernels`: one for each kernel. `tensorflow`: the whole graph that TensorFlow 1.12
    builds, with constants, variables, reshapes, gradients and initial values. `tensorflow_step`: those that a step
    runs."""

    @model_validator(mode="after")
    def _pipelines_have_kernels(self) -> Self:
        if self.style != "kernels" and self.objective == "period":
            raise ValueError(f"the style {self.style} has no pipelines; use the style kernels for period")
        return self


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a layer: `parameters` trainable values, and `buffers` values without gradients."""

    name: str
    parameters: int
    buffers: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """The output of a task, or a part or reshaped view of it; `task` is None for external data.

    The first axis of the shape is the batch. Images are (batch, channels, height, width).
    """

    task: str | None
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of values."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Operation:
    """A task before conversion to a spec; all sizes in elements."""

    op: str
    producers: dict[str, int]
    """Elements read of each producer's output."""
    output: int
    flops: int = 0
    """Total FLOP, including 2 * macs."""
    macs: int = 0
    weights: Weights | None = None
    touched: int = 0
    """Parameters read: all weights, or the rows of a lookup."""
    traffic: int = 0
    """Elements read and written: inputs, weights, output."""
    scratch: int = 0
    keeps: Keeps = "nothing"
    forward: str | None = None
    """The forward operation of a backward operator or an update."""
    backward: bool = False
    """Whether it computes the gradient of `forward`."""
    shape: tuple[int, ...] = ()
    """Shape of the output."""
    inputs: tuple[Tensor, ...] = ()
    """What the operation reads besides weights."""
    window: tuple[int, int] = (1, 1)
    """Rows and columns of the window of a convolution or a pool."""


class Graph:
    """Operations in topological order; each layer method adds one and returns its output."""

    def __init__(self, options: ModelOptions) -> None:
        self.options = options
        self.operations: dict[str, Operation] = {}
        self.users: dict[Weights, list[str]] = {}
        """Operations that read each weights; the first one holds them."""

    def add(
        self,
        name: str,
        op: str,
        shape: tuple[int, ...],
        inputs: Sequence[Tensor],
        *,
        macs: int = 0,
        flops: int = 0,
        weights: Weights | None = None,
        touched: int | None = None,
        scratch: int = 0,
        keeps: Keeps = "nothing",
        reserve: int = 0,
        window: tuple[int, int] = (1, 1),
    ) -> Tensor:
        """Add an operation and return its output; `flops` does not include the MACs.

        `reserve` elements are produced in addition to the output, for the operation's own gradient.
        """
        if name in self.operations:
            raise InternalError(f"the model has two tasks named {name}")
        producers: dict[str, int] = {}
        for tensor in inputs:
            if tensor.task is not None:
                producers[tensor.task] = producers.get(tensor.task, 0) + tensor.elements
        read = 0
        if weights is not None:
            self.users.setdefault(weights, []).append(name)
            read = weights.parameters if touched is None else touched
        output = prod(shape) + reserve
        self.operations[name] = Operation(
            op=op,
            producers=producers,
            output=output,
            flops=2 * macs + flops,
            macs=macs,
            weights=weights,
            touched=read,
            traffic=sum(tensor.elements for tensor in inputs) + read + (weights.buffers if weights else 0) + output,
            scratch=scratch,
            keeps=keeps,
            shape=shape,
            inputs=tuple(inputs),
            window=window,
        )
        return Tensor(name, shape)

    def elementwise(self, name: str, op: str, *inputs: Tensor) -> Tensor:
        """Add an operation of `ELEMENTWISE` with the shape of the first input."""
        cost, keeps = ELEMENTWISE[op]
        return self.add(name, op, inputs[0].shape, inputs, flops=cost * inputs[0].elements, keeps=keeps)

    def concat(self, name: str, inputs: Sequence[Tensor], axis: int) -> Tensor:
        """Add a concatenation along an axis."""
        shape = list(inputs[0].shape)
        shape[axis] = sum(tensor.shape[axis] for tensor in inputs)
        return self.add(name, "concat", tuple(shape), inputs)

    def matmul(self, name: str, left: Tensor, right: Tensor, shape: tuple[int, ...], inner: int) -> Tensor:
        """Add a product of two activations, with `inner` MACs per element of the output."""
        return self.add(name, "matmul", shape, (left, right), macs=prod(shape) * inner, keeps="inputs")

    def dense(
        self,
        name: str,
        x: Tensor,
        width: int,
        *,
        bias: bool = True,
        activation: str | None = None,
        weights: Weights | None = None,
    ) -> Tensor:
        """Add a product of the last axis with a weight matrix, with a fused bias and activation."""
        fan_in = x.shape[-1]
        shape = (*x.shape[:-1], width)
        elements = prod(shape)
        return self.add(
            name,
            "dense",
            shape,
            (x,),
            macs=elements * fan_in,
            flops=elements * (bias + (ELEMENTWISE[activation][0] if activation else 0)),
            weights=weights or Weights(name, (fan_in + bias) * width),
            keeps="both" if activation else "inputs",
        )

    def embedding(self, name: str, tokens: tuple[int, ...], width: int, weights: Weights, scaled: bool) -> Tensor:
        """Add a table lookup for an array of token ids, multiplied by a constant if `scaled`."""
        ids = Tensor(None, tokens)
        rows = ids.elements * width
        flops = rows if scaled else 0
        return self.add(name, "embedding", (*tokens, width), (ids,), flops=flops, weights=weights, touched=rows)

    def layer_norm(self, name: str, x: Tensor) -> Tensor:
        """Add a layer normalisation with gain and bias over the last axis."""
        weights = Weights(name, 2 * x.shape[-1])
        return self.add(name, "layer_norm", x.shape, (x,), flops=7 * x.elements, weights=weights, keeps="inputs")


def add_training(graph: Graph) -> None:
    """Add to a forward graph the loss, a backward operator per operation and an update per weights.

    Every output of the graph gets a cross-entropy loss. A backward operator reads the gradients of its consumers and
    the activations that its own gradient needs, which therefore stay in memory. It costs twice the MACs of the forward
    operation (for the gradients of inputs and of weights; once for operations without producers) and once its other
    FLOP. As in TensorFlow (Baechi: Jeon et al. 2020, SoCC, section 3.2), it shares the device of its forward operation.
    Gradients of weights are accumulated in resident memory; the edge to the update still carries them. Pipelines have
    no updates, because a run is a microbatch.
    """
    used = {producer for operation in graph.operations.values() for producer in operation.producers}
    outputs = [(name, operation.output) for name, operation in graph.operations.items() if name not in used]
    losses = [
        graph.add(f"loss/{name}", "cross_entropy", (1,), (Tensor(name, (elements,)),), flops=2 * elements, keeps="both")
        for name, elements in outputs
    ]
    if len(losses) > 1:
        graph.add("loss", "add", (1,), losses, flops=len(losses), keeps="output")
    forward = dict(graph.operations)
    gradients: dict[str, dict[str, int]] = {name: {} for name in forward}
    for name, operation in reversed(forward.items()):
        gradient = f"backward/{name}"
        _add_backward(graph, name, operation, gradients[name])
        for producer, elements in operation.producers.items():
            gradients[producer][gradient] = elements
    if graph.options.objective == "period":
        return
    state, flops = OPTIMISERS[graph.options.optimiser]
    for weights, users in graph.users.items():
        graph.operations[f"update/{weights.name}"] = Operation(
            op=graph.options.optimiser,
            producers={f"backward/{user}": forward[user].touched for user in users},
            output=0,
            flops=flops * weights.parameters,
            # Reads weights, accumulated gradients and state; writes weights and state.
            traffic=(3 + 2 * state) * weights.parameters,
            forward=users[0],
        )


def _add_backward(graph: Graph, name: str, operation: Operation, gradients: dict[str, int]) -> None:
    producers = dict(gradients)
    if operation.keeps in ("inputs", "both"):
        producers.update(operation.producers)
    if operation.keeps in ("output", "both"):
        producers[name] = operation.output
    inputs = operation.producers.values()
    # The inputs of a sum share one gradient; other operations have one per input.
    output = max(inputs) if operation.op == "add" and inputs else sum(inputs)
    passes = 2 if operation.producers else 1
    # Gradients from several consumers are added up.
    accumulated = max(0, sum(gradients.values()) - operation.output)
    graph.operations[f"backward/{name}"] = Operation(
        op=f"{operation.op}_backward",
        producers=producers,
        output=output,
        macs=passes * operation.macs,
        flops=operation.flops + 2 * (passes - 1) * operation.macs + accumulated,
        traffic=sum(producers.values()) + passes * operation.touched + output,
        scratch=operation.scratch,
        forward=name,
        backward=True,
    )


def tasks(graph: Graph) -> dict[str, dict[str, Any]]:
    """Return the tasks of a spec, with sizes in bytes, as plain data."""
    found: dict[str, dict[str, Any]] = {}
    size = graph.options.bytes_per_element
    copies = 2 + OPTIMISERS[graph.options.optimiser][0] if graph.options.training else 1
    held = {users[0]: weights for weights, users in graph.users.items()}
    holds = {name: size * (copies * weights.parameters + weights.buffers) for name, weights in held.items()}
    for name, operation in graph.operations.items():
        task: dict[str, Any] = {
            "op": operation.op,
            "flops": operation.flops,
            "bytes": size * operation.traffic,
            "output": size * operation.output,
        }
        memory = {"resident": holds.get(name, 0), "scratch": size * operation.scratch}
        if any(memory.values()):
            task["memory"] = {kind: amount for kind, amount in memory.items() if amount}
        if operation.producers:
            task["after"] = _after(graph, operation)
        if operation.backward:
            task["backward_of"] = operation.forward
        elif name in held and graph.options.training and graph.options.objective == "period":
            task["gradient"] = size * held[name].parameters
        label = _label(graph, operation.forward or name)
        if label is not None:
            task["colocate"] = label
        found[name] = task
    return found


def _after(graph: Graph, operation: Operation) -> list[str] | dict[str, int | None]:
    """Return names only if every edge carries its producer's whole output, else payloads (None: the whole output)."""
    size = graph.options.bytes_per_element
    payloads = {
        producer: None if elements == graph.operations[producer].output else size * elements
        for producer, elements in operation.producers.items()
    }
    return payloads if any(payload is not None for payload in payloads.values()) else list(payloads)


def _label(graph: Graph, forward: str) -> str | None:
    weights = graph.operations[forward].weights
    if weights is not None and len(graph.users[weights]) > 1:
        return weights.name
    return forward if graph.options.training else None
