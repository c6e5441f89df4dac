"""Variables of TensorFlow 1.12, the layers that hold them, and the optimisers that update them.

A variable is a VariableV2 with its initial value, an Assign and an Identity that reads it, all on one device
(`variables.py`, `init_ops.py`). A session runs the initial value and the Assign once, before the first step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

from placeopt.generate.tensorflow import operations as tf
from placeopt.generate.tensorflow.derivatives import Gradient, Slices
from placeopt.generate.tensorflow.gradients import gradients
from placeopt.generate.tensorflow.graph import Graph, Node, Shape, Tensor, Unknown

Initial = Literal["uniform", "normal", "zeros", "ones"]
RANDOM: dict[str, str] = {"uniform": "random_uniform", "normal": "truncated_normal"}
"""The random initial values, and their names in TensorFlow."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable."""

    reference: Tensor
    """Output of the VariableV2, which updates refer to."""
    read: Tensor
    """Its value, which operations read."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a model gives."""

    results: tuple[Tensor, ...]
    """What an inference computes."""
    loss: Tensor | None = None
    """What a training minimises."""
    step: Variable | None = None
    """The variable that counts the steps, if the model reads it."""
    rate: Tensor | None = None
    """The learning rate, if the model computes it."""


def variable(
    graph: Graph,
    sizes: Shape,
    initial: Initial,
    name: str,
    *,
    trainable: bool = True,
    cached: bool = False,
    type: str = "float",
) -> Variable:
    """`tf.get_variable`: initial values are uniform (Glorot), truncated normal, zeros or ones.

    The read of a `cached` variable may run on another device, as in recurrent cells (`set_caching_device`).
    """
    start = len(graph.nodes)
    with graph.scope(name):
        if initial in RANDOM:
            value = _random(graph, sizes, initial, f"Initializer/{RANDOM[initial]}")
        elif type == "int":
            value = tf.constant(graph, sizes, 0, type, "Initializer/zeros")
        else:
            value = tf.zeros(graph, sizes, f"Initializer/{initial}")
    found = _held(value, name, trainable, cached)
    node = found.reference.node
    for other in graph.nodes[start : node.number]:
        other.colocated = (*other.colocated, node)
    return found


def free_variable(graph: Graph, sizes: Shape, initial: Initial) -> Variable:
    """`tf.Variable` of a random tensor, whose operations may run on any device."""
    return _held(_random(graph, sizes, initial, RANDOM[initial]), "Variable")


def _held(value: Tensor, name: str, trainable: bool = True, cached: bool = False) -> Variable:
    """A variable with this initial value."""
    graph = value.graph
    own = graph.tensor("VariableV2", (), value.shape, type=value.type, name=name)
    own.node.resident = own.bytes
    with graph.colocate_with(own.node):
        graph.add("Assign", (own, value), own.shape, type=own.type, name=f"{name}/Assign")
    with graph.anywhere() if cached else graph.colocate_with(own.node):
        read = tf.identity(own, f"{name}/read")
    if trainable:
        graph.variables.append(own)
    return Variable(own, read)


def _random(graph: Graph, sizes: Shape, initial: Initial, name: str) -> Tensor:
    to = tf.ints(graph, *sizes, name=f"{name}/shape")
    if initial == "uniform":
        return tf.random_uniform(to, sizes, name)
    mean, deviation = (tf.constant(graph, name=f"{name}/{what}") for what in ("mean", "stddev"))
    drawn = graph.tensor("TruncatedNormal", (to,), sizes, name=f"{name}/TruncatedNormal", flops=20 * prod(sizes))
    return tf.pointwise("Add", tf.pointwise("Mul", drawn, deviation, name=f"{name}/mul"), mean, name=name)


def dense(x: Tensor, width: int, name: str = "dense", bias: bool = True, activation: str | None = None) -> Tensor:
    """`tf.layers.dense`: a product of matrices, or of the last axis of a tensor (`tf.tensordot`)."""
    graph = x.graph
    kernel = variable(graph, (x.shape[-1], width), "uniform", f"{name}/kernel")
    offset = variable(graph, (width,), "zeros", f"{name}/bias") if bias else None
    with graph.scope(name):
        y = tensordot(x, kernel.read) if x.rank > 2 else tf.matmul(x, kernel.read)
        if offset is not None:
            y = tf.bias_add(y, offset.read)
        return tf.pointwise(activation, y) if activation else y


def tensordot(x: Tensor, kernel: Tensor) -> Tensor:
    """`tf.tensordot` of the last axis of x and the rows of a matrix."""
    graph, rank, width = x.graph, x.rank, kernel.shape[1]
    sizes = (*x.shape[:-1], width)
    flat = (prod(x.shape[:-1]), x.shape[-1])
    with graph.scope("Tensordot"):
        if x.static:
            left = tf.reshape_to(tf.transpose(x, range(rank)), flat)
            right = tf.reshape_to(tf.transpose(kernel, (0, 1), name="transpose_1"), kernel.shape, name="Reshape_1")
            to = tf.ints(graph, *sizes, name="Const")
            product = tf.matmul(left, right)
        else:
            axes = tf.ints(graph, rank - 1, name="axes")
            free = tf.ints(graph, *range(rank - 1), name="free")
            own = tf.shape(x)
            outer, inner = tf.gather(own, free), tf.gather(own, axes)
            counts = [tf.reduce("Prod", part, (0,), by=tf.ints(graph, 0)) for part in (outer, inner)]
            order = tf.concat([free, axes], 0)
            to = tf.pack(counts, graph)
            left = tf.reshape(tf.transpose(x, range(rank), order), to, tuple(map(Unknown, flat)))
            right = tf.reshape_to(tf.transpose(kernel, (0, 1), name="transpose_1"), kernel.shape, name="Reshape_1")
            product = tf.matmul(left, right)
            to = tf.concat([outer, tf.ints(graph, width, name="Const_2")], 0, name="concat_1")
    return tf.reshape(product, to, sizes, "Tensordot")


def layer_norm(x: Tensor) -> Tensor:
    """A layer normalisation of `tf.nn.moments`, a gain and an offset: gamma (x - mean) / (variance + epsilon)^0.5."""
    graph = x.graph
    with graph.scope("ln"):
        mean = tf.reduce("Mean", x, (-1,), keep=True, name="moments/mean")
        centre = tf.pointwise("StopGradient", mean, name="moments/StopGradient")
        squares = tf.pointwise("SquaredDifference", x, centre, name="moments/SquaredDifference")
        variance = tf.reduce("Mean", squares, (-1,), keep=True, name="moments/variance")
        beta = variable(graph, x.shape[-1:], "zeros", "beta")
        gamma = variable(graph, x.shape[-1:], "ones", "gamma")
        shifted = tf.pointwise("Sub", x, mean, name="sub")
        deviation = tf.pointwise("Pow", tf.pointwise("Add", variance, 1e-8, name="add"), 0.5, name="pow")
        normed = tf.pointwise("RealDiv", shifted, deviation, name="truediv")
        return tf.pointwise("Add", tf.pointwise("Mul", gamma.read, normed, name="mul"), beta.read, name="add_1")


def batch_norm(x: Tensor, name: str, *, training: bool, slim: bool) -> Tensor:
    """`slim.batch_norm`, without a gain, or `tf.layers.batch_normalization`, channels first.

    Both are fused, with the updates of the moving averages.
    """
    graph, channels = x.graph, (x.shape[1],)
    with graph.scope(name):
        factor = tf.constant(graph, channels) if slim else variable(graph, channels, "ones", "gamma").read
        offset = variable(graph, channels, "zeros", "beta")
        mean = variable(graph, channels, "zeros", "moving_mean", trainable=False)
        variance = variable(graph, channels, "ones", "moving_variance", trainable=False)
        averages = (tf.constant(graph, (0,)), tf.constant(graph, (0,))) if training else (mean.read, variance.read)
        normed = graph.add(
            "FusedBatchNorm",
            (x, factor, offset.read, *averages),
            x.shape,
            *[channels] * 4,
            flops=4 * x.elements,
            value=(training, not slim),
        )
        if training or not slim:
            decay = tf.constant(graph)
        if training:
            for i, average in enumerate((mean, variance)):
                _moving_average(graph, average, normed.outputs[1 + i], decay)
    return normed.outputs[0]


def _moving_average(graph: Graph, average: Variable, value: Tensor, decay: Tensor) -> None:
    with graph.colocate_with(average.reference.node), graph.scope("AssignMovingAvg"):
        step = tf.pointwise("Sub", 1, decay, name="sub")
        change = tf.pointwise("Sub", average.read, value, name="sub_1")
        amount = tf.pointwise("Mul", change, step, name="mul")
        graph.add("AssignSub", (average.reference, amount), average.reference.shape)


def minimize(
    graph: Graph,
    loss: Tensor,
    optimiser: Literal["sgd", "momentum", "adam"],
    step: Variable | None = None,
    rate: Tensor | None = None,
) -> Node:
    """`Optimizer.minimize`: the gradients of all trainable variables, and their updates."""
    references = list(graph.variables)
    pairs = [
        (reference, gradient)
        for reference, gradient in zip(references, gradients(loss, references), strict=True)
        if gradient is not None
    ]
    updater = {"sgd": _Descent, "momentum": _Momentum, "adam": _Adam}[optimiser]
    title, updates = updater.title, updater(graph, rate).updates(pairs)
    if step is None:
        with graph.after(*updates):
            return graph.add("NoOp", (), name=title)
    with graph.after(*updates):
        done = graph.add("NoOp", (), name=f"{title}/update")
    with graph.colocate_with(step.reference.node), graph.after(done):
        one = tf.ints(graph, 1, name=f"{title}/value", scalar=True)
        return graph.add("AssignAdd", (step.reference, one), (), type="int", name=title)


Pairs = Sequence[tuple[Tensor, Gradient]]


@dataclass(slots=True)
class _Optimiser:
    """Adds the updates of variables: `tf.train.Optimizer.apply_gradients`."""

    title: ClassVar[str]
    """Its name in TensorFlow."""
    graph: Graph
    rate: Tensor | None
    """The learning rate; None: a constant."""

    def updates(self, pairs: Pairs) -> list[Node]:
        """Add the updates for pairs of a variable and its gradient."""
        raise NotImplementedError

    def learning_rate(self) -> Tensor:
        """The learning rate."""
        return self.number("learning_rate") if self.rate is None else self.rate

    def number(self, name: str) -> Tensor:
        """A constant of the optimiser."""
        return tf.constant(self.graph, name=f"{self.title}/{name}")

    def slot(self, reference: Tensor, name: str) -> Variable:
        """A variable of zeros for another one, on its device (`slot_creator.py`)."""
        with self.graph.colocate_with(reference.node):
            return variable(self.graph, reference.shape, "zeros", f"{reference.node.name}/{name}", trainable=False)

    @contextmanager
    def beside(self, reference: Tensor) -> Iterator[None]:
        """Add operations that update a variable, on its device."""
        with self.graph.colocate_with(reference.node), self.graph.scope(f"{self.title}/update_{reference.node.name}"):
            yield

    def apply(self, op: str, reference: Tensor, inputs: Sequence[Tensor], flops: int) -> Node:
        """Add an operation that updates a variable."""
        with self.beside(reference):
            return self.graph.add(op, (reference, *inputs), reference.shape, flops=flops)

    def unique_rows(self, reference: Tensor, gradient: Slices) -> tuple[Tensor, Tensor]:
        """Add up the gradients of equal rows (`optimizer._deduplicate_indexed_slices`)."""
        graph, values, indices = self.graph, gradient.values, gradient.indices
        count = Unknown(indices.elements)
        with self.beside(reference):
            rows, places = graph.add("Unique", (indices,), (count,), indices.shape, type="int").outputs
            inputs = (values, places, tf.strided_slice(tf.shape(rows), ()))
            sizes = (Unknown(values.shape[0]), *values.shape[1:])
            return graph.tensor("UnsortedSegmentSum", inputs, sizes, flops=values.elements), rows


class _Descent(_Optimiser):
    title = "GradientDescent"

    def updates(self, pairs: Pairs) -> list[Node]:
        rate = self.learning_rate()
        updates = []
        for reference, gradient in pairs:
            if isinstance(gradient, Slices):
                with self.beside(reference):
                    change = tf.pointwise("Mul", gradient.values, rate, name="mul")
                inputs: tuple[Tensor, ...] = (gradient.indices, change)
                updates.append(self.apply("ScatterSub", reference, inputs, change.elements))
            else:
                inputs = (rate, gradient)
                updates.append(self.apply("ApplyGradientDescent", reference, inputs, 2 * reference.elements))
        return updates


class _Momentum(_Optimiser):
    title = "Momentum"

    def updates(self, pairs: Pairs) -> list[Node]:
        slots = [self.slot(reference, "Momentum").reference for reference, _ in pairs]
        rate, factor = self.learning_rate(), self.number("momentum")
        updates = []
        for (reference, gradient), slot in zip(pairs, slots, strict=True):
            if isinstance(gradient, Slices):
                values, indices = self.unique_rows(reference, gradient)
                inputs: tuple[Tensor, ...] = (slot, rate, values, indices, factor)
                updates.append(self.apply("SparseApplyMomentum", reference, inputs, 4 * values.elements))
            else:
                inputs = (slot, rate, gradient, factor)
                updates.append(self.apply("ApplyMomentum", reference, inputs, 4 * reference.elements))
        return updates


class _Adam(_Optimiser):
    title = "Adam"

    def updates(self, pairs: Pairs) -> list[Node]:
        graph = self.graph
        first = min((reference for reference, _ in pairs), key=lambda reference: reference.node.name)
        powers = []
        for name in ("beta1_power", "beta2_power"):
            with graph.colocate_with(first.node):
                powers.append(_held(tf.constant(graph, name=f"{name}/initial_value"), name, trainable=False))
        slots = [(self.slot(each, "Adam"), self.slot(each, "Adam_1")) for each, _ in pairs]
        numbers = (self.learning_rate(), self.number("beta1"), self.number("beta2"), self.number("epsilon"))
        reads = [power.read for power in powers]
        updates = []
        for (reference, gradient), own in zip(pairs, slots, strict=True):
            if isinstance(gradient, Slices):
                updates.append(self._rows(reference, gradient, own, reads, *numbers))
            else:
                inputs = (*(slot.reference for slot in own), *reads, *numbers, gradient)
                updates.append(self.apply("ApplyAdam", reference, inputs, 12 * reference.elements))
        with graph.after(*updates):
            products = [tf.pointwise("Mul", *pair, name="Adam/mul") for pair in zip(reads, numbers[1:3], strict=True)]
            for product, power in zip(products, powers, strict=True):
                product.node.colocated = (first.node,)
                with graph.colocate_with(power.reference.node):
                    updates.append(graph.add("Assign", (power.reference, product), (), name="Adam/Assign"))
        return updates

    def _rows(
        self,
        reference: Tensor,
        gradient: Slices,
        slots: tuple[Variable, Variable],
        powers: Sequence[Tensor],
        rate: Tensor,
        beta1: Tensor,
        beta2: Tensor,
        epsilon: Tensor,
    ) -> Node:
        """The update of rows (`AdamOptimizer._apply_sparse_shared`); the moments of all rows decay."""
        graph = self.graph
        values, indices = self.unique_rows(reference, gradient)
        with self.beside(reference):
            root = tf.pointwise("Sqrt", tf.pointwise("Sub", 1, powers[1], name="sub"))
            step = tf.pointwise("Mul", rate, root, name="mul")
            step = tf.pointwise("RealDiv", step, tf.pointwise("Sub", 1, powers[0], name="sub_1"), name="truediv")
            moments = []
            for slot, beta in zip(slots, (beta1, beta2), strict=True):
                part = tf.pointwise("Mul", values, values, name="mul_3") if beta is beta2 else values
                scaled = tf.pointwise("Mul", part, tf.pointwise("Sub", 1, beta, name="sub_2"), name="mul_1")
                decayed = tf.pointwise("Mul", slot.read, beta, name="mul_2")
                own = slot.reference
                with graph.after(graph.add("Assign", (own, decayed), own.shape)):
                    moments.append(graph.tensor("ScatterAdd", (own, indices, scaled), own.shape, flops=values.elements))
            deviation = tf.pointwise("Sqrt", moments[1], name="Sqrt_1")
            change = tf.pointwise("Mul", step, moments[0], name="mul_5")
            root = tf.pointwise("Add", deviation, epsilon, name="add")
            change = tf.pointwise("RealDiv", change, root, name="truediv_1")
            update = graph.add("AssignSub", (reference, change), reference.shape, flops=reference.elements)
            with graph.after(update, *(moment.node for moment in moments)):
                return graph.add("NoOp", (), name="group_deps")
