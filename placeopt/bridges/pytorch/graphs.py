"""Read the kernels of an fx graph of `torch.export` or `make_fx`.

Results that share memory with an argument are views, regardless of the operator: `reshape` of a contiguous tensor is a
view, and of another one it is a copy. Operators in place write a new state of the memory of their argument.
Later readers of this memory depend on them, and they depend on earlier readers.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node

from placeopt.bridges.costs import Cost
from placeopt.bridges.costs.aten_rules import (
    Meter,
    base_name,
    is_elementwise,
    mutates,
    precision_of,
    tensor_bytes,
    tensors_in,
)
from placeopt.bridges.pytorch.kernels import Kernel, KernelGraph, Tensor, Weight
from placeopt.bridges.pytorch.sizes import Sizes


def stack_of(node: Node) -> tuple[str, ...]:
    """Paths of the modules of a node, the outermost first; the second call of a module ends in `@1`."""
    found = []
    for key, value in (node.meta.get("nn_module_stack") or {}).items():
        path = value[0] if isinstance(value, tuple) else str(value)
        call = str(key).rpartition("@")
        found.append(f"{path}@{call[2]}" if call[1] and call[2].isdigit() else path)
    return tuple(found)


class GraphReader:
    """Reads one graph; `weights` and `names` are those of the model, and grow by the constants of the graph."""

    def __init__(self, sizes: Sizes, meter: Meter, weights: dict[str, Weight], names: dict[str, str]) -> None:
        self._sizes = sizes
        self._meter = meter
        self._module: GraphModule | None = None
        self._values: dict[Node, Any] = {}
        self.result = KernelGraph([], [], {}, weights, names)
        self.held: dict[Node, tuple[int, ...]] = {}
        """The tensors of each node that is read."""
        self._items: dict[Node, list[tuple[int, ...]]] = {}
        self._orders: dict[Node, dict[int, None]] = {}
        """Kernels on which the value of a node depends that is not a tensor."""
        self._latest: dict[int, int] = {}
        """The next state of the memory of each overwritten tensor."""
        self._readers: list[list[int]] = []
        self._home: list[int] = []
        """The first state of the memory of each tensor."""
        self._sharing: dict[int, dict[int, None]] = {}
        """Kernels that write memory which a kernel reads by an older name, by its first state."""

    def read(self, module: GraphModule, placeholders: Mapping[str, str | None]) -> KernelGraph:
        """The kernels of a graph; `placeholders` has the weight of each placeholder, None for an input of the model."""
        self._module = module
        states: dict[str, int] = {}
        for node in module.graph.nodes:
            if node.op == "placeholder":
                name = placeholders[node.name]
                if name is None:
                    self.held[node] = tuple(self._tensor(tensor_bytes(t)) for t in tensors_in(self._value(node)))
                else:
                    if name not in states:
                        states[name] = self._tensor(self.result.weights[name].bytes, weight=name)
                    self.held[node] = (states[name],)
            elif node.op == "get_attr":
                self.held[node] = self._constant(node)
            elif node.op == "output":
                for each in node.all_input_nodes:
                    self.result.outputs |= dict.fromkeys(self._state(t) for t in self.held.get(each, ()))
            else:
                self._call(node)
        for kernel in self.result.kernels:
            kernel.in_place = [t for t in kernel.in_place if not self._lasts(t)]
        self.result.together = [sorted(kernels) for kernels in self._sharing.values() if len(kernels) > 1]
        return self.result

    def _lasts(self, tensor: int) -> bool:
        """Whether the model returns a tensor, or its memory has several states."""
        return tensor in self.result.outputs or tensor in self._latest or self._home[tensor] != tensor

    def _value(self, node: Node) -> Any:
        """The value of a node with concrete sizes: tensors on the meta device, and integers."""
        if node not in self._values:
            self._values[node] = self._sizes.concrete(node.meta.get("val"), node)
        return self._values[node]

    def _tensor(self, amount: int, producer: int | None = None, weight: str | None = None) -> int:
        self.result.tensors.append(Tensor(amount, producer, weight))
        self._readers.append([])
        self._home.append(len(self._home))
        return len(self._home) - 1

    def _state(self, tensor: int) -> int:
        while tensor in self._latest:
            tensor = self._latest[tensor]
        return tensor

    def _constant(self, node: Node) -> tuple[int, ...]:
        """The tensor of a constant of the graph; none for a graph, which is an argument of control flow."""
        assert self._module is not None
        value = operator.attrgetter(str(node.target))(self._module)
        if not isinstance(value, torch.Tensor):
            return ()
        weight = Weight(str(node.target), tensor_bytes(value), value.numel())
        self.result.weights[weight.name] = weight
        return (self._tensor(weight.bytes, weight=weight.name),)

    def _call(self, node: Node) -> None:
        if node.target is operator.getitem and isinstance(node.args[0], Node):
            self._getitem(node, node.args[0])
            return
        value = self._value(node)
        made = list(tensors_in(value))
        if not made:  # sizes, scalars and assertions
            self.held[node] = ()
            self._orders[node] = {k: None for other in node.all_input_nodes for k in self._kernels(other)}
            return
        args = torch.fx.node.map_arg(node.args, self._value)
        kwargs = torch.fx.node.map_arg(node.kwargs, self._value)
        given = _tensor_nodes(node)
        cost = self._cost(node, _on_meta(args), _on_meta(kwargs), made)
        if cost.view_of is not None and cost.view_of < len(given):
            self.held[node] = self.held[given[cost.view_of]]
            return
        self._kernel(node, cost, value, made, list(tensors_in((args, kwargs))))

    def _getitem(self, node: Node, source: Node) -> None:
        self.held[node] = self.held[source]
        items = self._items.get(source)
        if items is not None and isinstance(node.args[1], int) and node.args[1] < len(items):
            self.held[node] = items[node.args[1]]
        if source in self._orders:
            self._orders[node] = self._orders[source]

    def _kernels(self, node: Node) -> Iterable[int]:
        """The kernels on which a node depends."""
        if node in self._orders:
            return self._orders[node]
        producers = [self.result.tensors[self._state(t)].producer for t in self.held.get(node, ())]
        return [k for k in producers if k is not None]

    def _cost(self, node: Node, args: Any, kwargs: Any, made: list[torch.Tensor]) -> Cost:
        bodies = [
            getattr(self._module, str(each.target)) for each in node.all_input_nodes
            if each.op == "get_attr" and isinstance(getattr(self._module, str(each.target), None), GraphModule)
        ]  # fmt: skip
        if bodies:
            return self._control_flow(node, bodies, made)
        cost = self._meter.cost(node.target, args, kwargs)
        if cost is None:
            moved = sum(map(tensor_bytes, (*tensors_in((args, kwargs)), *made)))
            cost = Cost(0, moved, guessed=True)
        return cost

    def _control_flow(self, node: Node, bodies: list[GraphModule], made: list[torch.Tensor]) -> Cost:
        """The cost of control flow: the costlier branch of `cond`, all steps of `scan`, one pass of other loops."""
        name = base_name(node.target)
        costs = []
        for body in bodies:
            reader = GraphReader(self._sizes, self._meter, {}, {})
            inner = reader.read(body, {each.name: None for each in body.graph.nodes if each.op == "placeholder"})
            costs.append((sum(each.flops for each in inner.kernels), sum(each.traffic for each in inner.kernels)))
        flops, traffic = max(costs) if name == "cond" else map(sum, zip(*costs, strict=True))
        if name == "scan":
            scanned = node.args[2] if len(node.args) > 2 else ()
            sequences = [self._value(each) for each in scanned if isinstance(each, Node)]
            steps = int(sequences[0].shape[0]) if sequences else 1
            flops, traffic = flops * steps, traffic * steps
        unknown = not name.startswith(("cond", "scan", "wrap", "invoke_subgraph", "checkpoint", "autocast"))
        return Cost(flops, traffic or sum(map(tensor_bytes, made)), guessed=unknown)

    def _kernel(self, node: Node, cost: Cost, value: Any, made: list[torch.Tensor], given: list[torch.Tensor]) -> None:
        k = len(self.result.kernels)
        kernel = Kernel(
            node.name,
            base_name(node.target),
            [node.name],
            stack_of(node),
            cost.flops,
            cost.traffic,
            precision=precision_of(given or made),
            guessed=cost.guessed,
        )
        self.result.kernels.append(kernel)
        for other in node.all_input_nodes:
            if other in self._orders:
                kernel.before |= self._orders[other]
            for stale in self.held.get(other, ()):
                t = self._state(stale)
                if t != stale:
                    self._share(stale, k)
                kernel.reads[t] = max(kernel.reads.get(t, 0), self._read_bytes(other, t))
                self._readers[t].append(k)
        changed = [self._overwrite(t, k) for other in _mutated_nodes(node) for t in self.held.get(other, ())]
        if changed:
            kernel.before |= {reader: None for _, earlier in changed for reader in earlier if reader != k}
            kernel.writes += [t for t, _ in changed]
            self.held[node] = tuple(kernel.writes)
            if len(made) > len(changed) or isinstance(value, (tuple, list)):
                self._new_results(node, kernel, value, k)
        else:
            self._new_results(node, kernel, value, k)
            kernel.in_place = self._overwritable(node, made) if is_elementwise(node.target) else []

    def _overwritable(self, node: Node, made: list[torch.Tensor]) -> list[int]:
        """The tensors that an elementwise operator reads in the layout of its only result, and in no other one."""
        read: dict[int, list[bool]] = {}
        for other in dict.fromkeys(_tensor_nodes(node)):
            given = list(tensors_in(self._value(other)))
            alike = len(given) == len(made) == 1 and _layout(given[0]) == _layout(made[0])
            for t in self.held.get(other, ()):
                whole = alike and self.result.tensors[t].bytes == tensor_bytes(given[0])
                read.setdefault(t, []).append(whole)
        return [t for t, whole in read.items() if all(whole)]

    def _read_bytes(self, node: Node, tensor: int) -> int:
        found = sum(tensor_bytes(t) for t in tensors_in(self._value(node)))
        return min(found, self.result.tensors[tensor].bytes) if found else 0

    def _new_results(self, node: Node, kernel: Kernel, value: Any, k: int) -> None:
        several = isinstance(value, (tuple, list))
        items = [
            tuple(self._tensor(tensor_bytes(t), k) for t in tensors_in(each))
            for each in (value if several else [value])
        ]
        kernel.writes += [t for item in items for t in item]
        self.held[node] = tuple(t for item in items for t in item)
        if several:
            self._items[node] = items

    def _overwrite(self, tensor: int, k: int) -> tuple[int, list[int]]:
        """A new state of the memory of a tensor, and the kernels that read the state before."""
        old = self._state(tensor)
        weight = self.result.tensors[old].weight
        new = self._tensor(0 if weight else self.result.tensors[old].bytes, k, weight)
        self._home[new] = self._home[old]
        if weight:
            self.result.weights[weight].mutated = True
        self._latest[old] = new
        return new, self._readers[old]

    def _share(self, stale: int, k: int) -> None:
        """Kernel k reads memory by the name of an older state: all kernels that changed it share the device of k."""
        group = self._sharing.setdefault(self._home[stale], {})
        while stale in self._latest:
            stale = self._latest[stale]
            producer = self.result.tensors[stale].producer
            if producer is not None:
                group[producer] = None
        first = self.result.tensors[self._home[stale]].producer
        if first is not None:
            group[first] = None
        group[k] = None


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())


def _tensor_nodes(node: Node) -> list[Node]:
    """The node of each tensor argument, in the order of `tensors_in` of the arguments."""
    found: list[Node] = []

    def visit(other: Node) -> Node:
        count = len(list(tensors_in(other.meta.get("val")))) or (1 if other.op == "get_attr" else 0)
        found.extend([other] * count)
        return other

    torch.fx.node.map_arg(node.args, visit)
    torch.fx.node.map_arg(node.kwargs, visit)
    return found


def _mutated_nodes(node: Node) -> list[Node]:
    """Arguments that an operator overwrites."""
    found: list[Any] = []
    if mutates(node.target):
        for place, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
                found += value if isinstance(value, (list, tuple)) else [value]
    return [each for each in found if isinstance(each, Node)]


def _on_meta(value: Any) -> Any:
    """Arguments with every device replaced by the meta device."""
    return torch.fx.node.map_aggregate(
        value, lambda each: torch.device("meta") if isinstance(each, torch.device) else each
    )


_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def forward_kernels(program: ExportedProgram, sizes: Sizes) -> KernelGraph:
    """The kernels of a forward pass."""
    weights, names, placeholders = weights_of(program, sizes)
    graph = GraphReader(sizes, Meter(), weights, names).read(program.graph_module, placeholders)
    graph.outputs = {t: None for t in graph.outputs if graph.tensors[t].weight is None}
    return graph


def weights_of(
    program: ExportedProgram, sizes: Sizes
) -> tuple[dict[str, Weight], dict[str, str], dict[str, str | None]]:
    """The weights of a program, the weight of each parameter and buffer, and the weight of each placeholder.

    Parameters that share their memory are one weight, with the name of the first.
    """
    changed = set(program.graph_signature.buffers_to_mutate.values())
    owners: dict[Any, str] = {}
    weights: dict[str, Weight] = {}
    names: dict[str, str] = {}
    placeholders: dict[str, str | None] = {}
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    for node, spec in zip(nodes, program.graph_signature.input_specs, strict=True):
        placeholders[node.name] = None
        value = sizes.concrete(node.meta.get("val"), node)
        if spec.kind not in _WEIGHTS or spec.target is None or not isinstance(value, torch.Tensor):
            continue
        owner = owners.setdefault(_memory(program, spec.target), spec.target)
        weight = weights.setdefault(owner, Weight(owner, 0))
        weight.bytes = max(weight.bytes, value.numel() * value.element_size())
        weight.elements = max(weight.elements, value.numel())
        weight.parameter |= spec.kind == InputKind.PARAMETER
        weight.mutated |= spec.target in changed
        placeholders[node.name] = owner
        if spec.kind != InputKind.CONSTANT_TENSOR:
            names[spec.target] = owner
    return weights, names, placeholders


def _memory(program: ExportedProgram, target: str) -> Any:
    """An identity of the memory of a weight, equal for tied weights."""
    stored: Mapping[str, Any] = program.state_dict if target in program.state_dict else program.constants
    value = stored.get(target)
    if not isinstance(value, torch.Tensor):
        return target
    return value.untyped_storage()._cdata, value.storage_offset(), tuple(value.shape)
