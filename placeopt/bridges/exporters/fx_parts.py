"""Plans as parts of an fx graph, for `torch.fx.passes.split_module`."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from placeopt.bridges.exporters.exported import document_of
from placeopt.bridges.extras import require
from placeopt.bridges.importers.imported import Imported
from placeopt.bridges.pytorch.section import PlacedModel, placed_model, tensor_calls
from placeopt.errors import UsageError, counted, listing
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.model.segments import Segments, cut_segments

if TYPE_CHECKING:
    import torch
    from torch.fx import Graph, GraphModule, Node
    from torch.nn import Module


class SplitCallback:
    """The part of each node of a graph, as `split_module` calls it.

    Parts are convex segments of the plan, numbered in a topological order. See `placeopt.model.segments`.

    Attributes
    ----------
    devices
        The name of the device of each part; part k becomes the submodule `submod_k`.
    stated
        The part of each node of a task.
    """

    def __init__(self, devices: tuple[str, ...], parts: dict[str, int], calls: int | None = None) -> None:
        self.devices = devices
        self._calls = calls
        self.stated = parts
        self._known: tuple[Graph, dict[str, int]] | None = None

    def __call__(self, node: Node) -> int:
        """Return the part of a node."""
        if self._known is None or self._known[0] is not node.graph:
            self._known = node.graph, self._parts(node.graph)
        return self._known[1][node.name]

    def split(self, module: GraphModule) -> GraphModule:
        """Split a module, such as `program.module()`; each part owns its parameters, and parts run in their order.

        A parameter that several parts use belongs to each of them.

        Raises
        ------
        UsageError
            If the module is not that of the imported program.
        """
        from torch.fx import GraphModule
        from torch.fx.passes.split_module import split_module

        if not isinstance(module, GraphModule):
            raise UsageError(f"expected a GraphModule, such as program.module(), instead of {type(module).__name__}")

        whole = split_module(module, module, self)
        calls = [node for node in whole.graph.nodes if node.op == "call_module"]
        moved: dict[str, None] = {}
        for call in calls:
            moved |= _own_weights(whole, call)
        end = whole.graph.output_node()
        for call in sorted(calls, key=lambda node: int(str(node.target).rpartition("_")[2])):
            end.prepend(call)
            for item in list(call.users):
                if item is not end and item.op == "call_function":
                    end.prepend(item)
        for node in reversed(list(whole.graph.nodes)):
            if node.op == "get_attr" and not node.users:
                whole.graph.erase_node(node)
        whole.graph.set_codegen(module.graph._codegen)  # the same inputs and outputs: keywords, a tensor or a tuple
        whole.recompile()
        whole.delete_all_unused_submodules()
        for name in moved:
            if "." not in name:
                delattr(whole, name)
        return whole

    def move(self, parts: GraphModule, places: Mapping[str, str]) -> None:
        """Move the parts that `split` returns to devices of PyTorch, so that a call runs each part on its own.

        Parameters
        ----------
        places
            The device of PyTorch for each device that the plan uses: `{"cpu0": "cpu", "gpu0": "cuda:0"}`.

        Raises
        ------
        UsageError
            If a device has no place.
        """
        import torch
        from torch.utils._pytree import tree_map_only

        if missing := [name for name in dict.fromkeys(self.devices) if name not in places]:
            raise UsageError(f"places: {listing(missing)} missing; state a device of PyTorch, such as cuda:0")
        for call in [node for node in parts.graph.nodes if node.op == "call_module"]:
            part = parts.get_submodule(str(call.target))
            place = torch.device(places[self.devices[int(str(call.target).rpartition("_")[2])]])

            def fetch(_: object, values: tuple[Any, ...], place: torch.device = place) -> Any:
                return tree_map_only(torch.Tensor, lambda value: value.to(place), values)

            move_graph(part, place)
            part.register_forward_pre_hook(fetch)

    def _parts(self, graph: Graph) -> dict[str, int]:
        """The part of each node that is not a task: that of its inputs, or else of its first consumer."""
        names = {node.name for node in graph.nodes}
        missing = [name for name in self.stated if name not in names]
        if missing:
            raise UsageError(
                f"the graph has no node {listing(missing)}; split the module of the imported program: program.module()"
            )
        found = tensor_calls(graph)
        if self._calls is not None and found != self._calls:
            raise UsageError(
                f"the graph has {counted(found, 'operator')}, and the imported program {self._calls:,}; split the "
                "module of the imported program: program.module()"
            )
        parts = dict(self.stated)
        for node in graph.nodes:
            before = [parts[other.name] for other in node.all_input_nodes if other.name in parts]
            if node.name not in parts and before:
                parts[node.name] = max(before)
        for node in reversed(graph.nodes):
            after = [parts[other.name] for other in node.users if other.name in parts]
            if node.name not in parts:
                parts[node.name] = min(after, default=0)
        return parts


def split_callback(problem: Problem, schedule: Schedule, imported: Imported) -> SplitCallback:
    """Return the callback with which `torch.fx.passes.split_module.split_module` splits a program as a plan states.

    Parameters
    ----------
    imported
        The result of `from_torch` for the program, at any level, without `training`.

    Raises
    ------
    UsageError
        If the problem is not that of `imported`, or of a training step.
    MissingExtraError
        If PyTorch is not installed.
    """
    require("torch", "torch", "parts of a graph")
    return callback_of(placed_model(problem, schedule, document_of(imported)), cut_segments(problem, schedule))


def move_graph(module: Module, place: torch.device) -> None:
    """Move weights to a device, and make operators create tensors there: exported graphs name that of their export."""
    import torch
    from torch.fx import GraphModule
    from torch.utils._pytree import tree_map_only

    for graph in module.modules():
        if isinstance(graph, GraphModule):
            for node in graph.graph.nodes:
                node.args, node.kwargs = tree_map_only(torch.device, lambda _: place, (node.args, node.kwargs))
            graph.recompile()
    module.to(place)


def callback_of(model: PlacedModel, segments: Segments) -> SplitCallback:
    """Return the callback whose parts are segments of a plan.

    Raises a UsageError if the problem is that of a training step.
    """
    if model.training:
        raise UsageError("the plan is of a training step; an exported program has only its forward pass")
    problem = model.problem
    parts = {
        node: int(part)
        for task, part in zip(model.tasks.values(), segments.member.tolist(), strict=True)
        for node in task.nodes
    }
    return SplitCallback(tuple(problem.device_names[d] for d in segments.device.tolist()), parts, model.calls)


def _own_weights(whole: GraphModule, call: Node) -> dict[str, None]:
    """Move the parameters and constants that a part receives as arguments into the part; return their names."""
    import torch

    part = whole.get_submodule(str(call.target))
    arguments = [node for node in part.graph.nodes if node.op == "placeholder"]
    kept = []
    moved: dict[str, None] = {}
    for argument, value in zip(arguments, call.args, strict=True):
        if not (hasattr(value, "op") and value.op == "get_attr"):
            kept.append(value)
            continue
        moved[str(value.target)] = None
        name = str(value.target).replace(".", "_")
        weight = attrgetter(str(value.target))(whole)
        if isinstance(weight, torch.nn.Parameter):
            part.register_parameter(name, weight)
        else:
            part.register_buffer(name, weight)
        with part.graph.inserting_before(argument):
            argument.replace_all_uses_with(part.graph.get_attr(name))
        part.graph.erase_node(argument)
    call.args = tuple(kept)
    part.recompile()
    return moved
