"""A training step of an exported program: its forward pass and the backward pass of autograd, as kernels.

The forward pass is interpreted on fake tensors while `make_fx` records all operators. A hook at each step of autograd
notes the node of the forward pass whose gradient it computes. The operators of a node of the forward pass are one
kernel, and so are those of its gradient. The optimiser is not part of the graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

from placeopt.bridges.costs.aten_rules import Meter, base_name
from placeopt.bridges.pytorch.graphs import GraphReader, stack_of, weights_of
from placeopt.bridges.pytorch.kernels import KernelGraph, contracted, rename
from placeopt.bridges.pytorch.sizes import Sizes
from placeopt.errors import UsageError

_FAILURES = (RuntimeError, TypeError, ValueError, AssertionError, AttributeError, KeyError)


def training_kernels(program: ExportedProgram, sizes: Sizes) -> KernelGraph:
    """The kernels of a forward and a backward pass; incoming gradients of all outputs are ones.

    Raises a UsageError if no output depends on a parameter, or autograd fails.
    """
    weights, names, placeholders = weights_of(program, sizes)
    step = _Step(program, sizes, placeholders)
    graph = GraphReader(sizes, Meter(), weights, names)
    arguments = [node for node in step.graph.graph.nodes if node.op == "placeholder"]
    owners = {node.name: placeholders[name] for node, name in zip(arguments, placeholders, strict=True)}
    kernels = graph.read(step.graph, owners)
    returned = step.graph.graph.output_node().args[0]
    outputs, gradients = returned[0], returned[1]
    kernels.outputs = {t: None for node in outputs if isinstance(node, Node) for t in graph.held.get(node, ())}
    for name, node in zip(step.trained, gradients, strict=True):
        if isinstance(node, Node) and (held := graph.held.get(node)):
            kernels.gradients[name] = held[0]
    for t in kernels.gradients.values():
        kernels.tensors[t].bytes = 0  # counted as resident memory of its kernel
    stacks = {node.name: stack_of(node) for node in program.graph.nodes}
    origins = [step.origin[kernel.name] for kernel in kernels.kernels]
    for kernel, (origin, backward) in zip(kernels.kernels, origins, strict=True):
        kernel.stack = stacks.get(origin, ())
        kernel.forward = origin if backward else None
    merged, groups = contracted(kernels, origins, fused=True)
    labels = []
    operators = {node.name: node for node in program.graph.nodes}
    for kernel, members in zip(merged.kernels, groups, strict=True):
        origin, backward = origins[members[0]]
        labels.append(f"{origin}.backward" if backward else origin)
        kernel.op = _operator(operators[origin]) + (" backward" if backward else "")
        kernel.nodes = [] if backward else [origin]
    rename(merged, labels)
    return merged


def _operator(node: Node) -> str:
    return base_name(node.target) if node.op == "call_function" else node.op


class _Step:
    """Traces a training step; `origin` is the forward node of each recorded node, and whether it is of its gradient."""

    def __init__(self, program: ExportedProgram, sizes: Sizes, placeholders: dict[str, str | None]) -> None:
        self._program = program
        self.origin: dict[str, tuple[str, bool]] = {}
        self._current: tuple[str, bool] = ("", False)
        self._last: Node | None = None
        self._steps: dict[Any, str] = {}
        self.trained: list[str] = []
        nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._trained_places: list[int] = []
        arguments: list[Any] = []
        parameters = program.graph_signature.inputs_to_parameters
        with fake:
            for place, node in enumerate(nodes):
                value = sizes.concrete(node.meta.get("val"), node)
                if isinstance(value, torch.Tensor):
                    value = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")
                    stored = program.state_dict.get(parameters.get(node.name, ""))
                    if stored is not None and stored.requires_grad:
                        value.requires_grad_()
                        self._trained_places.append(place)
                        self.trained.append(str(placeholders[node.name]))
                arguments.append(value)
            try:
                self.graph: GraphModule = make_fx(self._run)(*arguments)
            except _FAILURES as error:
                raise UsageError(
                    f"autograd cannot compute the gradients of the model, at node {self._current[0]}: {error}"
                ) from None
        self._flush()

    def _run(self, *arguments: Any) -> Any:
        mode = get_proxy_mode()
        assert mode is not None
        self._graph = mode.tracer.graph
        self._flush()
        with torch.enable_grad():
            outputs = _Forward(self, self._program.graph_module).run(*arguments, enable_io_processing=False)
            floating = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
            if not floating:
                raise UsageError("no output of the model depends on a parameter that requires a gradient")
            for each in floating:
                self.label(each.grad_fn, self._current[0])
            self.enter(self._steps[floating[-1].grad_fn], backward=True)
            gradients = torch.autograd.grad(
                floating,
                [arguments[place] for place in self._trained_places],
                [torch.ones_like(each) for each in floating],
                allow_unused=True,
            )
        return outputs, gradients

    def enter(self, node: str, backward: bool) -> None:
        """All operators recorded afterwards belong to this node of the forward pass, or to its gradient."""
        self._flush()
        self._current = (node, backward)

    def _flush(self) -> None:
        nodes = self._graph.nodes if self._last is None else None
        node = next(iter(nodes), None) if nodes is not None else self._last.next if self._last is not None else None
        while node is not None and node.op != "root":
            self.origin[node.name] = self._current
            self._last = node
            node = node.next

    def label(self, step: Any, name: str) -> None:
        """The steps of autograd that lead to this one, unless known, compute the gradient of a forward node."""
        waiting = [step]
        while waiting:
            each = waiting.pop()
            if each is None or each in self._steps:
                continue
            self._steps[each] = name
            if each.name() != "torch::autograd::AccumulateGrad":
                each.register_prehook(lambda _, name=name: self.enter(name, backward=True))
            waiting += [other for other, _ in each.next_functions]


class _Forward(Interpreter):  # type: ignore[misc]
    """Runs the forward pass; every tensor is on the CPU."""

    def __init__(self, step: _Step, module: GraphModule) -> None:
        super().__init__(module)
        self._step = step

    def run_node(self, n: Node) -> Any:
        if n.op == "call_function":
            self._step.enter(n.name, backward=False)
        result = super().run_node(n)
        if n.op == "call_function":
            for each in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(each, torch.Tensor) and each.grad_fn is not None:
                    self._step.label(each.grad_fn, n.name)
        return result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = torch.fx.node.map_aggregate(
            (args, kwargs), lambda each: torch.device("cpu") if isinstance(each, torch.device) else each
        )
        return super().call_function(target, args, kwargs)
