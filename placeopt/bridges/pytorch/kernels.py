"""Kernels of a model and the tensors that they exchange; contraction of kernels to coarser ones.

Kernels are grouped by a key, such as their module, so that the groups form no cycle (`convex_groups`).

Contracting all nodes of a key can make a cycle: a residual block whose module adds before and after a submodule both
feeds the submodule and reads from it. Therefore a key may have several groups. The nodes come in a topological order:

1. A run of consecutive nodes with one key is a group. Runs in a topological order form no cycle.
2. In order, each group joins the last earlier group of its key, unless a path between them visits a third group.

The second step keeps an order of the groups in which every edge leads forward. It moves as few groups as possible, like
the incremental topological order of Pearce and Kelly, Journal of Experimental Algorithmics 11 (2007), Article 1.7,
DOI 10.1145/1187436.1210590.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field


def convex_groups(keys: Sequence[Hashable], predecessors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return groups of nodes with equal keys whose contracted graph is acyclic, in a topological order of this graph.

    Parameters
    ----------
    keys
        The key of each node. The nodes are in a topological order.
    predecessors
        The predecessors of each node, all of them earlier.

    Returns
    -------
    The nodes of each group in ascending order. Takes O(n + e), and time for all groups between two compared ones.
    """
    group, members = _runs(keys)
    count = len(members)
    successors: list[dict[int, None]] = [{} for _ in range(count)]
    sources: list[dict[int, None]] = [{} for _ in range(count)]
    for node, earlier in enumerate(predecessors):
        for other in earlier:
            if group[other] != group[node]:
                successors[group[other]][group[node]] = None
                sources[group[node]][group[other]] = None
    order = list(range(count))
    place = list(range(count))
    last: dict[Hashable, int] = {}
    for k in range(count):
        key = keys[members[k][0]]
        into = last.get(key)
        if into is None or not _join(into, k, order, place, successors, sources):
            last[key] = k
            continue
        members[into] += members[k]
        members[k] = []
    return [sorted(members[k]) for k in order if members[k]]


def _runs(keys: Sequence[Hashable]) -> tuple[list[int], list[list[int]]]:
    """The run of each node, and the nodes of each run."""
    group: list[int] = []
    members: list[list[int]] = []
    for node, key in enumerate(keys):
        if not node or key != keys[node - 1]:
            members.append([])
        members[-1].append(node)
        group.append(len(members) - 1)
    return group, members


def _join(
    into: int,
    group: int,
    order: list[int],
    place: list[int],
    successors: list[dict[int, None]],
    sources: list[dict[int, None]],
) -> bool:
    """Contract `group` into the earlier group `into`; False, and no change, if that made a cycle."""
    first, end = place[into], place[group]
    reached = {into}
    for k in order[first + 1 : end]:
        if any(other in reached for other in sources[k]):
            reached.add(k)
    reached.discard(into)
    if any(other in reached for other in sources[group]):
        return False
    window = order[first + 1 : end]
    moved = [k for k in window if k not in reached] + [into, group] + [k for k in window if k in reached]
    for k, other in enumerate(moved, first):
        order[k] = other
        place[other] = k
    for other in sources[group]:
        del successors[other][group]
        if other != into:
            successors[other][into] = None
            sources[into][other] = None
    for other in successors[group]:
        del sources[other][group]
        sources[other][into] = None
        successors[into][other] = None
    sources[group] = {}
    successors[group] = {}
    return True


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
    in_place: list[int] = field(default_factory=list)
    """Tensors whose memory the only tensor that it writes may take."""
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
    return (KernelGraph(kernels, tensors, graph.outputs, graph.weights, graph.names, graph.gradients, together), groups)


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
