"""Kernels of a model and the tensors that they exchange; contraction of kernels to coarser ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from placeopt.bridges.pytorch.coarsening import convex_groups


@dataclass(slots=True)
class Weight:
    """A parameter, buffer or constant of a model."""

    name: str
    bytes: int
    elements: int = 0
    parameter: bool = False
    mutated: bool = False


@dataclass(slots=True)
class Tensor:
    """One state of the memory of a tensor, between the kernel that writes it and those that read it."""

    bytes: int
    producer: int | None = None
    """The kernel that writes it; None for inputs of the model and weights."""
    weight: str | None = None
    """The weight whose memory it is."""


@dataclass(slots=True)
class Kernel:
    """One or more calls of operators that run as one."""

    name: str
    op: str
    nodes: list[str]
    """The nodes of the graph."""
    stack: tuple[str, ...] = ()
    """Paths of the modules that the call belongs to, the outermost first; `@1` marks the second call of a module."""
    flops: int = 0
    traffic: int = 0
    scratch: int = 0
    precision: str | None = None
    guessed: bool = False
    reads: dict[int, int] = field(default_factory=dict)
    """Bytes that it reads, by tensor."""
    writes: list[int] = field(default_factory=list)
    """Tensors that it writes."""
    before: dict[int, None] = field(default_factory=dict)
    """Kernels that must end before, although no tensor moves: they read memory that this kernel overwrites."""
    forward: str | None = None
    """The forward kernel whose gradient this kernel computes; None for forward kernels."""


@dataclass(slots=True)
class KernelGraph:
    """The kernels of a model in topological order."""

    kernels: list[Kernel]
    tensors: list[Tensor]
    outputs: dict[int, None]
    """Tensors that the model returns."""
    weights: dict[str, Weight]
    names: dict[str, str]
    """The weight of each parameter and buffer; tied ones have the same weight."""
    gradients: dict[str, int] = field(default_factory=dict)
    """The tensor of the gradient of each weight, in training."""
    together: list[list[int]] = field(default_factory=list)
    """Kernels that share a device, because they change the same memory."""

    def predecessors(self) -> list[list[int]]:
        """The producers of each kernel, and the kernels that must end before, ascending."""
        found = []
        for k, kernel in enumerate(self.kernels):
            earlier = dict.fromkeys(self.tensors[t].producer for t in kernel.reads) | kernel.before
            found.append(sorted(other for other in earlier if other is not None and other != k))
        return found

    def readers(self) -> list[list[int]]:
        """The kernels that read each tensor, ascending."""
        found: list[list[int]] = [[] for _ in self.tensors]
        for k, kernel in enumerate(self.kernels):
            for t in kernel.reads:
                found[t].append(k)
        return found


def contracted(graph: KernelGraph, keys: Sequence[Hashable], *, fused: bool) -> tuple[KernelGraph, list[list[int]]]:
    """Contract kernels with equal keys, without cycles; return the new graph and the old kernels of each new one.

    A new kernel has the name, module and operator of its first old one. Its FLOP are the sum. Its scratch memory is the
    largest amount of tensors at a time that only its own calls use.

    Parameters
    ----------
    fused
        Whether tensors inside a new kernel cause no memory traffic.
    """
    groups = convex_groups(keys, graph.predecessors())
    home = [0] * len(graph.kernels)
    for g, members in enumerate(groups):
        for k in members:
            home[k] = g
    readers = graph.readers()
    tensors = [
        Tensor(each.bytes, None if each.producer is None else home[each.producer], each.weight)
        for each in graph.tensors
    ]
    kernels = []
    for g, members in enumerate(groups):
        old = [graph.kernels[k] for k in members]
        written = {t for kernel in old for t in kernel.writes}
        outside = [
            t
            for kernel in old
            for t in kernel.writes
            if t in graph.outputs or any(home[k] != g for k in readers[t]) or not readers[t]
        ]
        reads: dict[int, int] = {}
        for kernel in old:
            for t, amount in kernel.reads.items():
                if t not in written:
                    reads[t] = min(reads.get(t, 0) + amount, max(graph.tensors[t].bytes, amount))
        traffic = sum(kernel.traffic for kernel in old)
        if fused and len(old) > 1:
            traffic = min(traffic, sum(reads.values()) + sum(graph.tensors[t].bytes for t in outside))
        work = Counter[str | None]()
        for kernel in old:
            work[kernel.precision] += kernel.flops
        kernels.append(
            Kernel(
                name=old[0].name,
                op=old[0].op,
                nodes=[node for kernel in old for node in kernel.nodes],
                stack=old[0].stack,
                flops=work.total(),
                traffic=traffic,
                scratch=_inner_peak(graph, members, readers, set(outside)),
                precision=work.most_common(1)[0][0],
                guessed=any(kernel.guessed for kernel in old),
                reads=reads,
                writes=outside,
                before=dict.fromkeys(home[k] for kernel in old for k in kernel.before if home[k] != g),
                forward=old[0].forward,
            )
        )
    together = [sorted({home[k] for k in each}) for each in graph.together]
    return (
        KernelGraph(kernels, tensors, graph.outputs, graph.weights, graph.names, graph.gradients, together),
        groups,
    )


def rename(graph: KernelGraph, names: Sequence[str]) -> None:
    """Give the kernels these names; the second kernel of a name gets `#2` at its end."""
    taken = Counter[str]()
    for kernel, name in zip(graph.kernels, names, strict=True):
        taken[name] += 1
        kernel.name = name if taken[name] == 1 else f"{name}#{taken[name]}"


def _inner_peak(graph: KernelGraph, members: list[int], readers: list[list[int]], outside: set[int]) -> int:
    """The largest amount of tensors at a time that only these kernels use, with their own scratch memory."""
    inside = set(members)
    live = peak = 0
    for k in members:
        kernel = graph.kernels[k]
        inner = [t for t in kernel.writes if t not in outside]
        live += sum(graph.tensors[t].bytes for t in inner)
        peak = max(peak, live + kernel.scratch)
        for t in (*kernel.reads, *inner):
            producer = graph.tensors[t].producer
            ends = readers[t][-1] if readers[t] else k
            if t not in outside and ends == k and producer in inside:
                live -= graph.tensors[t].bytes
    return peak
