"""Kernels as operators of a problem document, at the level of operators or of modules, and the section `x-torch`."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from placeopt.bridges.operators import Operator
from placeopt.bridges.pytorch.kernels import Kernel, KernelGraph, contracted, rename
from placeopt.errors import UsageError, counted, listing
from placeopt.model.units import shown, size_text

Level = str | int
ROOT = "model"
"""The name of tasks that belong to the model itself and to none of its modules."""


def level_of(level: Any) -> Level:
    """A checked level: `op`, `module`, or a depth from 1 on; raises a UsageError if it is none of these."""
    if level in ("op", "module"):
        return str(level)
    if isinstance(level, str) and re.fullmatch("[0-9]{1,4}", level):
        level = int(level)
    if isinstance(level, int) and not isinstance(level, bool) and 1 <= level <= 1000:
        return level
    raise UsageError(f"the level is {shown(level)}; expected op, module, or a depth of modules such as 2")


def module_of(stack: Sequence[str], level: Level) -> str:
    """The path of the module of a kernel: the innermost one, or the innermost one of at most `level` names."""
    if isinstance(level, int):
        stack = [path for path in stack if path.count(".") < level or not path]
    return stack[-1] if stack else ""


def with_stacks(graph: KernelGraph) -> None:
    """Attach each kernel without modules to those of its last producer, or else of its first consumer."""
    predecessors = graph.predecessors()
    successors: list[list[int]] = [[] for _ in graph.kernels]
    for k, earlier in enumerate(predecessors):
        for other in earlier:
            successors[other].append(k)
    known = [bool(kernel.stack) for kernel in graph.kernels]
    for k, kernel in enumerate(graph.kernels):
        producers = [other for other in predecessors[k] if known[other]]
        if not known[k] and producers:
            kernel.stack, known[k] = graph.kernels[producers[-1]].stack, True
    for k in reversed(range(len(graph.kernels))):
        consumers = [other for other in successors[k] if known[other]]
        if not known[k] and consumers:
            graph.kernels[k].stack, known[k] = graph.kernels[consumers[0]].stack, True


def at_level(graph: KernelGraph, level: Level) -> KernelGraph:
    """Contract kernels to modules; the name of a second group of a module ends in `#2`."""
    if level == "op":
        return graph
    keys: list[Hashable] = [(module_of(kernel.stack, level), kernel.forward is not None) for kernel in graph.kernels]
    coarse, groups = contracted(graph, keys, fused=False)
    names = []
    home = {
        graph.kernels[k].name: kernel for kernel, members in zip(coarse.kernels, groups, strict=True) for k in members
    }
    for kernel in coarse.kernels:
        path = module_of(kernel.stack, level) or ROOT
        names.append(path if kernel.forward is None else f"{path}.backward")
        kernel.op = "module" if kernel.forward is None else "module backward"
    rename(coarse, names)
    for kernel in coarse.kernels:
        if kernel.forward is not None and kernel.forward in home:
            kernel.forward = home[kernel.forward].name
    return coarse


def operators_of(
    graph: KernelGraph, shared: str, optimizer_bytes: int = 0, *, gradients: bool = False
) -> tuple[list[Operator], tuple[str, ...]]:
    """The operators of a graph, with weights as resident memory, and notes about shared weights.

    Parameters
    ----------
    shared
        `colocate` puts the readers of a parameter on one device; `copy` gives each of them a copy.
    gradients
        Whether every backward task states a forward task, and forward tasks state the bytes of gradients that replicas
        synchronise, as pipelines need it.
    """
    operators = [_operator(graph, kernel) for kernel in graph.kernels]
    names = [kernel.name for kernel in graph.kernels]
    labels: list[list[str]] = [[] for _ in operators]
    users = _users(graph)
    colocated: list[str] = []
    copied: dict[str, int] = {}
    for name, weight in graph.weights.items():
        readers = users.get(name, [])
        gradient = graph.gradients.get(name)
        producer = None if gradient is None else graph.tensors[gradient].producer
        if producer is not None:
            operators[producer].resident += weight.bytes + optimizer_bytes * weight.elements
        if weight.mutated or gradient is not None or (weight.parameter and shared == "colocate"):
            members = sorted({*readers, *([] if producer is None else [producer])})
            for k in members if len(members) > 1 else ():
                labels[k].append(name)
            if len(readers) > 1 and gradient is None:
                colocated.append(name)
    for kernels in graph.together:
        for k in kernels if len(kernels) > 1 else ():
            labels[k].append(f"memory of {names[kernels[0]]}")
    for name, weight in graph.weights.items():
        seen: set[str] = set()  # tasks with a common label are on one device, which needs one copy
        copies = 0
        for k in users.get(name, []):
            if seen.isdisjoint(labels[k]):
                operators[k].resident += weight.bytes
                copies += 1
            seen.update(labels[k])
        if copies > 1:
            copied[name] = copies
    known = set(names)
    for operator, kernel, found in zip(operators, graph.kernels, labels, strict=True):
        if found:
            operator.keys["colocate"] = found[0] if len(found) == 1 else found
        if kernel.forward is not None and kernel.forward in known:
            operator.keys["backward_of"] = kernel.forward
    if gradients:
        _complete_backward(graph, operators)
        _state_gradients(graph, operators)
    notes = []
    if colocated:
        notes.append(
            f"{counted(len(colocated), 'weight')} with several readers ({listing(colocated)}): "
            "these tasks are colocated"
        )
    if copied:
        extra = sum(graph.weights[name].bytes * (count - 1) for name, count in copied.items())
        notes.append(
            f"{counted(len(copied), 'weight')} with several readers ({listing(list(copied))}): each reader has a copy, "
            f"together {size_text(extra)} more"
        )
    return operators, tuple(notes)


def _complete_backward(graph: KernelGraph, operators: Sequence[Operator]) -> None:
    """Give backward tasks without a forward task, such as those of views, that of a neighbour.

    Neighbours are backward tasks: consumers first, which compute the gradient of the tensor that was viewed, then
    producers.
    """
    predecessors = graph.predecessors()
    successors: list[list[int]] = [[] for _ in operators]
    for k, earlier in enumerate(predecessors):
        for other in earlier:
            successors[other].append(k)
    behind = [kernel.forward is not None for kernel in graph.kernels]
    for near, tasks in ((successors, reversed(range(len(operators)))), (predecessors, iter(range(len(operators))))):
        for k in tasks:
            keys = operators[k].keys
            found = [operators[other].keys.get("backward_of") for other in near[k] if behind[other]]
            known = next((name for name in found if name is not None), None)
            if behind[k] and "backward_of" not in keys and known is not None:
                keys["backward_of"] = known


def _state_gradients(graph: KernelGraph, operators: Sequence[Operator]) -> None:
    """Give each forward task with a backward task the gradients of the parameters that it reads first.

    Without this key, a task would synchronise all its resident memory, constants and frozen parameters included.
    """
    users = _users(graph)
    trained = dict.fromkeys(each.keys["backward_of"] for each in operators if "backward_of" in each.keys)
    bytes_of = dict.fromkeys(trained, 0)
    for name in graph.gradients:
        reader = next((operators[k].name for k in users.get(name, []) if operators[k].name in trained), None)
        if reader is not None:
            bytes_of[reader] += graph.weights[name].bytes
    for operator in operators:
        if operator.name in trained:
            operator.keys["gradient"] = bytes_of[operator.name]


def _users(graph: KernelGraph) -> dict[str, list[int]]:
    """The kernels that read or change the memory of each weight, ascending."""
    found: dict[str, dict[int, None]] = {}
    for k, kernel in enumerate(graph.kernels):
        for t in (*kernel.reads, *kernel.writes):
            name = graph.tensors[t].weight
            if name is not None:
                found.setdefault(name, {})[k] = None
    return {name: list(kernels) for name, kernels in found.items()}


def _operator(graph: KernelGraph, kernel: Kernel) -> Operator:
    operator = Operator(
        kernel.name,
        kernel.op,
        flops=kernel.flops,
        traffic=kernel.traffic,
        output=sum(graph.tensors[t].bytes for t in kernel.writes),
        scratch=kernel.scratch,
        precision=kernel.precision,
        guessed=kernel.guessed,
    )
    producers = [(graph.tensors[t].producer, t) for t in kernel.in_place]
    bases = [graph.kernels[k].name for k, t in producers if k is not None and graph.kernels[k].writes == [t]]
    if bases:
        operator.shares["in_place"] = bases
    read: dict[int, int] = {}
    for t in kernel.reads:
        producer = graph.tensors[t].producer
        if producer is not None:
            read[producer] = read.get(producer, 0) + graph.tensors[t].bytes
    for producer in sorted({*read, *kernel.before}):
        source = graph.kernels[producer]
        if producer not in read:
            operator.after[source.name] = 0
        elif read[producer] == sum(graph.tensors[t].bytes for t in source.writes):
            operator.after[source.name] = None
        else:
            operator.after[source.name] = read[producer]
    return operator


def section(graph: KernelGraph, level: Level, order: Mapping[str, int], calls: int) -> dict[str, Any]:
    """The section `x-torch`; `order` has the position of each node in the order of execution."""
    users = _users(graph)
    tasks: dict[str, dict[str, Any]] = {}
    for kernel in graph.kernels:
        tasks[kernel.name] = {"module": module_of(kernel.stack, "module" if level == "op" else level)}
        if kernel.nodes:
            places = [order[node] for node in kernel.nodes]
            tasks[kernel.name] |= {"nodes": kernel.nodes, "span": [min(places), max(places)]}
            read = [graph.tensors[t] for t in kernel.reads]
            if any(tensor.producer is None and tensor.weight is None for tensor in read):
                tasks[kernel.name]["inputs"] = True
    weights = {name: [graph.kernels[k].name for k in users.get(owner, [])] for name, owner in graph.names.items()}
    return {"level": level, "calls": calls, "tasks": tasks, "weights": weights}
