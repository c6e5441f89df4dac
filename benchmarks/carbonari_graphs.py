"""The graphs of Carbonari, Kodirov, Golub 2017, with the elements that each task reads, as far as they are inferred.

The paper states the numbers of nodes: 24, 176 and 311. The graphs here agree with its absolute JCTs, see
`carbonari_costs`. They are those of Keras in 2017, with two differences to the graphs in problems/:

- VGG-19 has a task that flattens the result of the last pooling, and no first convolution: 24 nodes that read the
  output of another node. Equivalently, a task without predecessors reads nothing and costs nothing.
- ResNet-50 pools without padding, so that the first stage has 55 x 55 pixels, and it flattens before the dense layer.
  The task that pads the image costs nothing, because it has no predecessor.

Inception-v3 is the graph in problems/: its JCTs are not explained.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

import placeopt as po
from placeopt.generate.networks import network_document
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem

FILES = Path(__file__).parents[1] / "problems"
MODELS = {"VGG-19": "vgg19", "ResNet-50": "resnet50", "Inception-v3": "inception-v3"}


class Node(NamedTuple):
    """A task: its operation, the elements that it reads, and its producers."""

    op: str
    elements: int
    after: tuple[int, ...]


def vgg_19() -> list[Node]:
    """The 24 nodes of VGG-19 that have a producer in Keras; the first one, a convolution, is without one here."""
    nodes: list[Node] = []

    def add(op: str, elements: int) -> None:
        nodes.append(Node(op, elements, (len(nodes) - 1,) if nodes else ()))

    pixels, channels = 224, 64
    for stage, layers in enumerate((2, 2, 4, 4, 4)):
        width = min(64 << stage, 512)
        for layer in range(layers):
            if (stage, layer) != (0, 0):
                add("conv2d", pixels * pixels * channels)
            channels = width
        add("max_pool", pixels * pixels * channels)
        pixels //= 2
    add("flatten", pixels * pixels * channels)
    for elements in (pixels * pixels * channels, 4096, 4096):
        add("dense", elements)
    return nodes


def resnet_50(pooled: int = 55) -> list[Node]:
    """The 176 nodes of ResNet-50; `pooled` is the width of the image after the first pooling."""
    nodes: list[Node] = []

    def add(op: str, elements: int, *after: int) -> int:
        nodes.append(Node(op, elements, after))
        return len(nodes) - 1

    def conv(after: int, read: int, written: int, relu: bool = True) -> int:
        last = add("batch_norm", written, add("conv2d", read, after))
        return add("relu", written, last) if relu else last

    first = add("pad", 0)
    last = add("max_pool", 112 * 112 * 64, conv(first, 230 * 230 * 3, 112 * 112 * 64))
    area, channels = pooled * pooled, 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            read, begin = area * channels, last
            if block == 0 and stage > 0:
                area = (56 >> stage) ** 2
            inner = conv(conv(begin, read, area * width), area * width, area * width)
            outer = conv(inner, area * width, area * width * 4, relu=False)
            channels = width * 4
            other = conv(begin, read, area * channels, relu=False) if block == 0 else begin
            last = add("relu", area * channels, add("add", 2 * area * channels, outer, other))
    last = add("flatten", channels, add("avg_pool", area * channels, last))
    add("dense", channels, last)
    return nodes


def inception_v3() -> list[Node]:
    """The 311 nodes of Inception-v3 as in problems/; the first one reads no output of another."""
    graph = json.loads((FILES / "graphs" / "inception-v3.json").read_text(encoding="utf-8"))
    problem = po.compile(graph | network_document("small"))
    read = np.zeros(problem.n_tasks, dtype=np.int64)
    np.add.at(read, problem.edge_target, problem.payload // 4)
    index = {name: i for i, name in enumerate(graph["tasks"])}
    return [
        Node(task["op"], int(elements), tuple(index[name] for name in task.get("after", [])))
        for task, elements in zip(graph["tasks"].values(), read, strict=True)
    ]


NODES = {"VGG-19": vgg_19, "ResNet-50": resnet_50, "Inception-v3": inception_v3}


def inferred_problem(model: str, network: str, costs: dict[str, tuple[int, int]]) -> Problem:
    """A graph on a network, with costs on a core and on a GPU for each element read; transfers are free."""
    nodes = NODES[model]()
    devices = po.compile({"placeopt": 1, "tasks": {"a": {"flops": 1, "bytes": 0}}} | network_document(network))
    kind = [0 if name == "cpu" else 1 for name in devices.device_types]
    problem = build_problem(
        task_names=[f"{i}/{node.op}" for i, node in enumerate(nodes)],
        device_names=list(devices.device_names),
        edges=[(producer, i) for i, node in enumerate(nodes) for producer in node.after],
        duration=np.array([[node.elements * costs[node.op][k] for k in kind] for node in nodes], dtype=np.int64),
    )
    return replace(
        problem,
        resolution=Fraction(1, 10**6),
        capacity=np.full(problem.n_devices, UNLIMITED),
        latency=np.zeros_like(problem.latency),
        byte_ticks_num=np.zeros_like(problem.byte_ticks_num),
    )
