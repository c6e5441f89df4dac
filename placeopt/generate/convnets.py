"""Build graphs of image models: VGG-19, ResNet-50, Inception-v3 and Tensor Holography.

VGG-19, ResNet-50 and Inception-v3 have 24, 176 and 311 tasks, the sizes of the three graphs of Carbonari, Kodirov and
Golub ("TensorFlow Job Placement Optimization as a Submodular Function Maximization", 2017, section 4). The paper does
not define its nodes. Here a task is a layer of the network in Keras (`keras.applications`), except the input and the
flattening, which do no work. An activation that is an argument of a layer is fused into it:

- VGG-19: 16 convolutions (with ReLU) + 5 max pools + 3 dense layers = 24 (Keras: 26 with input and flatten).
- ResNet-50: 53 convolutions + 53 batch normalisations + 49 ReLUs + 16 sums + 2 paddings + 1 max pool + 1 global
  average pool + 1 dense layer (with softmax) = 176 (Keras: 177 with the input).
- Inception-v3: 94 x (convolution, batch normalisation, ReLU) + 4 max pools + 9 average pools + 15 concatenations
  = 310 up to the last feature map, and 1 classifier = 311. The rule would give 312 (Keras: 313 with the input), with
  the global average pool and the dense layer as two tasks; to match the paper they are one. (The paper may have counted
  the 311 layers of Keras with the input but without the classifier, which leaves out the classifier's parameters.)

MACs and parameters agree with those published for torchvision's models of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

from pydantic import Field

from placeopt.errors import UsageError
from placeopt.generate.layers import Graph, Keeps, ModelOptions, Tensor, Weights

Padding = Literal["same", "valid"]
Kernel = int | tuple[int, int]


class ConvnetOptions(ModelOptions):
    """Options of VGG-19 and ResNet-50."""

    image_size: int = Field(default=224, ge=1)
    """Height and width of the image, in pixels."""
    classes: int = Field(default=1000, ge=1)
    """Number of classes."""


class InceptionOptions(ConvnetOptions):
    """Options of Inception-v3."""

    image_size: int = Field(default=299, ge=1)
    """Height and width of the image, in pixels."""
    auxiliary: bool = False
    """Whether to add the auxiliary classifier of training: 8 more tasks, a second output."""


def vgg19(options: ConvnetOptions) -> Graph:
    """VGG-19: Simonyan, Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015.

    Configuration E of the paper's table 1.
    """
    graph = Graph(options)
    x = _image(options)
    for block, (channels, depth) in enumerate(((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)), start=1):
        for layer in range(1, depth + 1):
            x = conv2d(graph, f"block{block}/conv{layer}", x, channels, 3, bias=True, relu=True)
        x = pool(graph, f"block{block}/pool", "max_pool", x, 2, stride=2)
    x = Tensor(x.task, (options.batch, prod(x.shape[1:])))
    x = graph.dense("fc1", x, 4096, activation="relu")
    x = graph.dense("fc2", x, 4096, activation="relu")
    graph.dense("predictions", x, options.classes, activation="softmax")
    return graph


def resnet50(options: ConvnetOptions) -> Graph:
    """ResNet-50: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, DOI
    10.1109/CVPR.2016.90.

    Departure from the paper's table 1: where a stage halves the image, the 3x3 convolution has stride 2 instead of
    the first 1x1, as in torchvision ("v1.5"); 4.1 GMAC instead of 3.8.
    """
    graph = Graph(options)
    x = _pad(graph, "conv1/pad", _image(options), 3)
    x = _conv_norm(graph, "conv1", x, 64, 7, stride=2, padding="valid")
    x = _pad(graph, "pool1/pad", x, 1)
    x = pool(graph, "pool1/pool", "max_pool", x, 3, stride=2)
    for stage, (channels, depth) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), start=2):
        for block in range(1, depth + 1):
            x = _bottleneck(graph, f"conv{stage}/block{block}", x, channels, stage, block)
    x = graph.add("avg_pool", "global_avg_pool", x.shape[:2], (x,), flops=x.elements)
    graph.dense("predictions", x, options.classes, activation="softmax")
    return graph


class HolographyOptions(ModelOptions):
    """Options of Tensor Holography."""

    image_size: int = Field(default=384, ge=1)
    """Height and width of the image, in pixels."""
    layers: int = Field(default=30, ge=2)
    """Convolutions."""
    filters: int = Field(default=24, ge=1)
    """Channels of every convolution but the last."""


def tensor_holography(options: HolographyOptions) -> Graph:
    """Tensor Holography: Shi, Li, Kim, Kellnhofer, Matusik, "Towards real-time photorealistic 3D holography with deep
    neural networks", Nature 591, 2021, DOI 10.1038/s41586-020-03152-0.

    The network of the released code (github.com/liangs111/tensor_holography): 3x3 convolutions with biases, each with a
    batch normalisation and a ReLU, the last one with a tanh. From the fourth convolution on, every second one reads the
    sum of the last output and the input of the convolution two before. The last one reads the image as well. The image
    has red, green, blue and depth; the output has the amplitudes and the phases of three colours.
    """
    graph = Graph(options)
    image = Tensor(None, (options.batch, 4, options.image_size, options.image_size))
    image = graph.elementwise("shift", "shift", image)
    inputs: list[Tensor] = []
    x = image
    for layer in range(options.layers):
        name = f"layer{layer + 1}"
        if layer >= 3 and layer % 2:
            x = graph.elementwise(f"{name}/skip", "add", x, inputs[layer - 2])
        inputs.append(x)
        last = layer == options.layers - 1
        if last:
            x = graph.concat(f"{name}/concat", (x, image), axis=1)
        x = conv2d(graph, f"{name}/conv", x, 6 if last else options.filters, 3, bias=True)
        x = _batch_norm(graph, f"{name}/norm", x)
        x = graph.elementwise(f"{name}/{'tanh' if last else 'relu'}", "tanh" if last else "relu", x)
    return graph


def _bottleneck(graph: Graph, name: str, x: Tensor, channels: int, stage: int, block: int) -> Tensor:
    stride = 2 if stage > 2 and block == 1 else 1
    shortcut = x
    if block == 1:
        shortcut = _conv_norm(graph, f"{name}/shortcut", x, 4 * channels, 1, stride=stride, relu=False)
    x = _conv_norm(graph, f"{name}/1", x, channels, 1)
    x = _conv_norm(graph, f"{name}/2", x, channels, 3, stride=stride)
    x = _conv_norm(graph, f"{name}/3", x, 4 * channels, 1, relu=False)
    x = graph.elementwise(f"{name}/add", "add", x, shortcut)
    return graph.elementwise(f"{name}/relu", "relu", x)


def inception_v3(options: InceptionOptions) -> Graph:
    """Inception-v3: Szegedy, Vanhoucke, Ioffe, Shlens, Wojna, "Rethinking the Inception Architecture for Computer
    Vision", CVPR 2016, DOI 10.1109/CVPR.2016.308.

    Modules are named as in Keras: mixed0-2 are figure 5 of the paper, mixed4-7 figure 6, mixed9-10 figure 7, mixed3
    and mixed8 reduce the image; the auxiliary classifier (section 4) follows mixed7.
    """
    graph = Graph(options)
    x = _image(options)
    x = _conv_norm(graph, "conv1", x, 32, 3, stride=2, padding="valid")
    x = _conv_norm(graph, "conv2", x, 32, 3, padding="valid")
    x = _conv_norm(graph, "conv3", x, 64, 3)
    x = pool(graph, "pool1", "max_pool", x, 3, stride=2)
    x = _conv_norm(graph, "conv4", x, 80, 1)
    x = _conv_norm(graph, "conv5", x, 192, 3, padding="valid")
    x = pool(graph, "pool2", "max_pool", x, 3, stride=2)
    for module, channels in enumerate((32, 64, 64)):
        x = _module_35(graph, f"mixed{module}", x, channels)
    x = _reduction_17(graph, "mixed3", x)
    for module, channels in enumerate((128, 160, 160, 192), start=4):
        x = _module_17(graph, f"mixed{module}", x, channels)
    if options.auxiliary:
        y = pool(graph, "auxiliary/pool", "avg_pool", x, 5, stride=3)
        y = _conv_norm(graph, "auxiliary/conv1", y, 128, 1)
        y = _conv_norm(graph, "auxiliary/conv2", y, 768, 5, padding="valid")
        _classifier(graph, "auxiliary/predictions", y, options.classes)
    x = _reduction_8(graph, "mixed8", x)
    for module in (9, 10):
        x = _module_8(graph, f"mixed{module}", x)
    _classifier(graph, "predictions", x, options.classes)
    return graph


def _module_35(graph: Graph, name: str, x: Tensor, channels: int) -> Tensor:
    branches = (
        _conv_norm(graph, f"{name}/branch1x1", x, 64, 1),
        _chain(graph, f"{name}/branch5x5", x, ((48, 1), (64, 5))),
        _chain(graph, f"{name}/branch3x3dbl", x, ((64, 1), (96, 3), (96, 3))),
        _pool_branch(graph, name, x, channels),
    )
    return graph.concat(f"{name}/concat", branches, axis=1)


def _reduction_17(graph: Graph, name: str, x: Tensor) -> Tensor:
    double = _chain(graph, f"{name}/branch3x3dbl", x, ((64, 1), (96, 3)))
    branches = (
        _conv_norm(graph, f"{name}/branch3x3", x, 384, 3, stride=2, padding="valid"),
        _conv_norm(graph, f"{name}/branch3x3dbl_3", double, 96, 3, stride=2, padding="valid"),
        pool(graph, f"{name}/branch_pool/pool", "max_pool", x, 3, stride=2),
    )
    return graph.concat(f"{name}/concat", branches, axis=1)


def _module_17(graph: Graph, name: str, x: Tensor, channels: int) -> Tensor:
    c = channels
    branches = (
        _conv_norm(graph, f"{name}/branch1x1", x, 192, 1),
        _chain(graph, f"{name}/branch7x7", x, ((c, 1), (c, (1, 7)), (192, (7, 1)))),
        _chain(graph, f"{name}/branch7x7dbl", x, ((c, 1), (c, (7, 1)), (c, (1, 7)), (c, (7, 1)), (192, (1, 7)))),
        _pool_branch(graph, name, x, 192),
    )
    return graph.concat(f"{name}/concat", branches, axis=1)


def _reduction_8(graph: Graph, name: str, x: Tensor) -> Tensor:
    single = _conv_norm(graph, f"{name}/branch3x3_1", x, 192, 1)
    double = _chain(graph, f"{name}/branch7x7x3", x, ((192, 1), (192, (1, 7)), (192, (7, 1))))
    branches = (
        _conv_norm(graph, f"{name}/branch3x3_2", single, 320, 3, stride=2, padding="valid"),
        _conv_norm(graph, f"{name}/branch7x7x3_4", double, 192, 3, stride=2, padding="valid"),
        pool(graph, f"{name}/branch_pool/pool", "max_pool", x, 3, stride=2),
    )
    return graph.concat(f"{name}/concat", branches, axis=1)


def _module_8(graph: Graph, name: str, x: Tensor) -> Tensor:
    def fork(branch: str, x: Tensor) -> Tensor:
        halves = (_conv_norm(graph, f"{branch}a", x, 384, (1, 3)), _conv_norm(graph, f"{branch}b", x, 384, (3, 1)))
        return graph.concat(f"{branch}/concat", halves, axis=1)

    branches = (
        _conv_norm(graph, f"{name}/branch1x1", x, 320, 1),
        fork(f"{name}/branch3x3_2", _conv_norm(graph, f"{name}/branch3x3_1", x, 384, 1)),
        fork(f"{name}/branch3x3dbl_3", _chain(graph, f"{name}/branch3x3dbl", x, ((448, 1), (384, 3)))),
        _pool_branch(graph, name, x, 192),
    )
    return graph.concat(f"{name}/concat", branches, axis=1)


def _pool_branch(graph: Graph, name: str, x: Tensor, channels: int) -> Tensor:
    pooled = pool(graph, f"{name}/branch_pool/pool", "avg_pool", x, 3, stride=1, padding="same")
    return _conv_norm(graph, f"{name}/branch_pool", pooled, channels, 1)


def _chain(graph: Graph, name: str, x: Tensor, layers: Sequence[tuple[int, Kernel]]) -> Tensor:
    """Add convolutions (channels, kernel) one after another, numbered from 1."""
    for number, (channels, kernel) in enumerate(layers, start=1):
        x = _conv_norm(graph, f"{name}_{number}", x, channels, kernel)
    return x


def _conv_norm(
    graph: Graph, name: str, x: Tensor, channels: int, kernel: Kernel, *, relu: bool = True, **windows: Any
) -> Tensor:
    """Add a convolution, with the stride and the padding in `windows`, and its normalisation."""
    x = conv2d(graph, f"{name}/conv", x, channels, kernel, **windows)
    x = _batch_norm(graph, f"{name}/norm", x)
    return graph.elementwise(f"{name}/relu", "relu", x) if relu else x


def _image(options: ConvnetOptions) -> Tensor:
    return Tensor(None, (options.batch, 3, options.image_size, options.image_size))


def conv2d(
    graph: Graph,
    name: str,
    x: Tensor,
    channels: int,
    kernel: Kernel,
    *,
    stride: int = 1,
    padding: Padding = "same",
    bias: bool = False,
    relu: bool = False,
) -> Tensor:
    """Add a convolution of an image, with a fused bias and ReLU if requested."""
    batch, depth, height, width = x.shape
    rows, columns = (kernel, kernel) if isinstance(kernel, int) else kernel
    windows = (_windows(name, height, rows, stride, padding), _windows(name, width, columns, stride, padding))
    shape = (batch, channels, *windows)
    elements, fan_in = prod(shape), depth * rows * columns
    return graph.add(
        name,
        "conv2d",
        shape,
        (x,),
        macs=elements * fan_in,
        flops=elements * (bias + relu),
        weights=Weights(name, channels * (fan_in + bias)),
        keeps="both" if relu else "inputs",
        window=(rows, columns),
    )


def pool(graph: Graph, name: str, op: str, x: Tensor, size: int, *, stride: int, padding: Padding = "valid") -> Tensor:
    """Add a `max_pool` or `avg_pool` of an image over square windows."""
    batch, channels, height, width = x.shape
    shape = (batch, channels, *(_windows(name, side, size, stride, padding) for side in (height, width)))
    keeps: Keeps = "both" if op == "max_pool" else "nothing"
    return graph.add(name, op, shape, (x,), flops=prod(shape) * size * size, keeps=keeps, window=(size, size))


def _batch_norm(graph: Graph, name: str, x: Tensor) -> Tensor:
    # Gain and bias are parameters, running mean and variance are buffers.
    weights = Weights(name, 2 * x.shape[1], buffers=2 * x.shape[1])
    return graph.add(name, "batch_norm", x.shape, (x,), flops=4 * x.elements, weights=weights, keeps="inputs")


def _pad(graph: Graph, name: str, x: Tensor, border: int) -> Tensor:
    batch, channels, height, width = x.shape
    return graph.add(name, "pad", (batch, channels, height + 2 * border, width + 2 * border), (x,))


def _classifier(graph: Graph, name: str, x: Tensor, classes: int) -> Tensor:
    """Add global average pool, dense layer and softmax as one task."""
    batch, channels = x.shape[:2]
    return graph.add(
        name,
        "classifier",
        (batch, classes),
        (x,),
        macs=batch * channels * classes,
        flops=x.elements + 6 * batch * classes,
        weights=Weights(name, (channels + 1) * classes),
        keeps="both",
    )


def _windows(name: str, side: int, size: int, stride: int, padding: Padding) -> int:
    """Return the number of windows along a side of an image."""
    if padding == "same":
        return -(-side // stride)
    if side < size:
        raise UsageError(f"{name}: a window {size} wide does not fit an image {side} wide; use a larger image_size")
    return (side - size) // stride + 1
