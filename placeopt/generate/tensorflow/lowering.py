"""Layers of image models as operations of TensorFlow 1.12.

The layers are those of `tf.contrib.slim` (VGG-19, ResNet-50, Inception-v3) or, as in the code of Tensor Holography,
`tf.nn` with variables of its own and `tf.layers.batch_normalization`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from placeopt.errors import InternalError
from placeopt.generate import layers
from placeopt.generate.tensorflow import operations as tf
from placeopt.generate.tensorflow.graph import Graph, Tensor
from placeopt.generate.tensorflow.variables import batch_norm, free_variable, variable

ACTIVATIONS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softmax": "Softmax"}


@dataclass(slots=True)
class Lowering:
    """The operations of the layers of an image model."""

    graph: Graph
    training: bool
    slim: bool
    found: dict[str, Tensor] = field(default_factory=dict)
    """Output of each layer; of a classifier, the logits."""

    def lower(self, kernels: layers.Graph) -> None:
        """Add the operations of all layers."""
        image = next(tensor for each in kernels.operations.values() for tensor in each.inputs if tensor.task is None)
        self.found[""] = tf.placeholder(self.graph, image.shape, "float")
        for name, operation in kernels.operations.items():
            inputs = [self._view(tensor) for tensor in operation.inputs]
            self.found[name] = self._layer(name, operation, inputs)

    def loss(self, name: str) -> Tensor:
        """The mean cross-entropy of the logits of a layer, without the regularisers, which only collections hold."""
        logits = self.found[name]
        labels = tf.placeholder(self.graph, logits.shape[:1], name="labels")
        return tf.reduce("Mean", tf.sparse_softmax_cross_entropy(logits, labels), None)

    def _view(self, tensor: layers.Tensor) -> Tensor:
        x = self.found[tensor.task or ""]
        return x if x.shape == tensor.shape else tf.reshape_to(x, tensor.shape, name="flatten/Reshape")

    def _layer(self, name: str, operation: layers.Operation, inputs: list[Tensor]) -> Tensor:
        graph, x, op = self.graph, inputs[0], operation.op
        if op == "conv2d":
            return self._convolution(name, operation, x)
        if op == "batch_norm":
            return batch_norm(x, name, training=self.training, slim=self.slim)
        if op in ACTIVATIONS:
            return tf.pointwise(ACTIVATIONS[op], x, name=name)
        if op == "add":
            return tf.pointwise("Add", x, inputs[1], name=name)
        if op == "shift":
            return tf.pointwise("Sub", x, 0.5, name=name)
        if op == "concat":
            return tf.concat(inputs, 1, name=name)
        if op in ("max_pool", "avg_pool"):
            kind = "MaxPool" if op == "max_pool" else "AvgPool"
            return graph.tensor(kind, (x,), operation.shape, name=name, flops=operation.flops)
        if op == "pad":
            paddings = tf.constant(graph, (4, 2), None, "int", f"{name}/paddings")
            return graph.tensor("Pad", (x, paddings), operation.shape, name=name)
        if op == "global_avg_pool":
            return tf.squeeze(tf.reduce("Mean", x, (2, 3), keep=True, name=name), (2, 3), f"{name}/SpatialSqueeze")
        if op == "dense":
            relu = operation.keeps == "both" and operation.flops - 2 * operation.macs == 2 * prod(operation.shape)
            return self._classify(name, x, operation.shape[-1], relu)
        if op == "classifier":
            return self._classifier(name, x, operation.shape[-1])
        raise InternalError(f"{name}: {op} has no operations of TensorFlow")

    def _convolution(self, name: str, operation: layers.Operation, x: Tensor) -> Tensor:
        graph, channels = self.graph, operation.shape[1]
        kernel_shape = (*operation.window, x.shape[1], channels)
        assert operation.weights is not None
        bias = operation.weights.parameters > prod(kernel_shape)
        if self.slim:
            kernel = self._regularised(name, kernel_shape)
            offset = variable(graph, (channels,), "zeros", f"{name}/biases") if bias else None
            tf.ints(graph, 1, 1, name=f"{name}/dilation_rate")
        else:
            kernel = free_variable(graph, kernel_shape, "uniform").read
            offset = free_variable(graph, (channels,), "normal") if bias else None
        flops = 2 * operation.macs
        y = graph.tensor("Conv2D", (x, kernel), operation.shape, name=f"{name}/Conv2D", flops=flops)
        if offset is not None:
            y = tf.bias_add(y, offset.read, f"{name}/BiasAdd")
        relu = operation.keeps == "both"
        return tf.pointwise("Relu", y, name=f"{name}/Relu") if relu else y

    def _regularised(self, name: str, sizes: tuple[int, ...]) -> Tensor:
        """The weights of a layer of slim, with the L2 regulariser that its argument scopes add."""
        graph = self.graph
        weights = variable(graph, sizes, "normal", f"{name}/weights")
        title = f"{name}/kernel/Regularizer/l2_regularizer"
        with graph.colocate_with(weights.reference.node):
            factor = tf.constant(graph, name=f"{title}/scale")
            norm = graph.tensor("L2Loss", (weights.read,), (), name=f"{title}/L2Loss", flops=2 * weights.read.elements)
            tf.pointwise("Mul", factor, norm, name=title)
        return weights.read

    def _classify(self, name: str, x: Tensor, width: int, relu: bool) -> Tensor:
        """`slim.conv2d` of a 1x1 map without normalisation: with ReLU, or logits and their probabilities."""
        graph = self.graph
        shaped = x if x.rank == 4 else tf.reshape_to(x, (*x.shape, 1, 1), name=f"{name}/Reshape")
        kernel = self._regularised(name, (1, 1, x.shape[1], width))
        bias = variable(graph, (width,), "zeros", f"{name}/biases")
        tf.ints(graph, 1, 1, name=f"{name}/dilation_rate")
        sizes = (x.shape[0], width, 1, 1)
        flops = 2 * x.shape[0] * x.shape[1] * width
        y = graph.tensor("Conv2D", (shaped, kernel), sizes, name=f"{name}/Conv2D", flops=flops)
        y = tf.bias_add(y, bias.read, f"{name}/BiasAdd")
        if relu:
            return tf.squeeze(tf.pointwise("Relu", y, name=f"{name}/Relu"), (2, 3), f"{name}/squeezed")
        return tf.squeeze(y, (2, 3), f"{name}/SpatialSqueeze")

    def _classifier(self, name: str, x: Tensor, classes: int) -> Tensor:
        """The logits of an Inception network: global average pool and dropout before a 1x1 convolution."""
        graph = self.graph
        if prod(x.shape[2:]) > 1:
            sizes = (*x.shape[:2], 1, 1)
            x = graph.tensor("AvgPool", (x,), sizes, name=f"{name}/AvgPool", flops=x.elements)
            if self.training:
                x = tf.dropout(x, f"{name}/dropout")
        return self._classify(name, x, classes, False)

    def probabilities(self, name: str) -> Tensor:
        """Add the probabilities of the logits of a layer (`slim.softmax`)."""
        logits = self.found[name]
        with self.graph.scope(f"{name}/Predictions"):
            rows = tf.reshape_to(logits, logits.shape)
            return tf.reshape(tf.pointwise("Softmax", rows), tf.shape(logits), logits.shape, name="Reshape_1")
