"""The section `x-torch` of a problem file: what each task is in the PyTorch model. The compiler ignores it.

    x-torch:
      level: op
      calls: 24
      tasks:
        embedding: {module: embedding, nodes: [embedding], span: [12, 12], inputs: true}
        linear_3: {module: layers.0.mlp.up, nodes: [linear_3], span: [17, 17]}
        linear_3.backward: {module: layers.0.mlp.up}
      weights:
        layers.0.mlp.up.weight: [linear_3, linear_3.backward]

`nodes` are the nodes of the exported graph that the task executes, and `span` the positions of the first and the last
one in the order of execution. `inputs` states that it reads inputs of the model. Tasks of a backward pass have none of
these. `weights` has the tasks that use each parameter and buffer. `calls` is the number of calls in the graph, as
`tensor_calls` counts them; the graph of another model has another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeopt.errors import UsageError, counted, listing, visible
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.model.units import is_whole

if TYPE_CHECKING:
    from torch.fx import Graph

KEY = "x-torch"


@dataclass(frozen=True, slots=True)
class TorchTask:
    """What a task of the forward pass is in the model."""

    name: str
    module: str
    """The path of its module; `@1` marks the second call of a module."""
    nodes: tuple[str, ...]
    first: int
    last: int
    device: int
    inputs: bool = False
    """Whether it reads inputs of the model."""

    @property
    def path(self) -> str:
        """The path of its module, without calls."""
        return self.module.partition("@")[0]


@dataclass(frozen=True, slots=True)
class PlacedModel:
    """The model of a problem with the devices of a plan."""

    problem: Problem
    tasks: Mapping[str, TorchTask]
    """The tasks of the forward pass, in the order of the problem."""
    weights: Mapping[str, tuple[str, ...]]
    """The tasks of the forward pass that use each parameter and buffer."""
    training: bool
    calls: int | None
    """The number of calls in the graph that return tensors; None if the section does not state it."""


def tensor_calls(graph: Graph) -> int:
    """Return the number of operators that return tensors, without copies: a module copies new values into buffers."""
    found = [getattr(node.target, "_schema", None) for node in graph.nodes if node.op == "call_function"]
    schemas = [schema for schema in found if schema is not None and schema.name != "aten::copy_"]
    return sum(any("Tensor" in str(each.type) for each in schema.returns) for schema in schemas)


def placed_model(problem: Problem, schedule: Schedule, document: Mapping[str, Any] | None) -> PlacedModel:
    """Read the section of a document together with a plan of its problem.

    Raises a UsageError if the section is missing or damaged, or does not belong to the problem.
    """
    stated, weights = stated_section(document or {})
    if list(stated) != list(problem.task_names) and set(stated) != set(problem.task_names):
        odd = sorted(set(map(str, stated)) ^ set(problem.task_names))
        raise _damaged(f"it and the problem differ in {counted(len(odd), 'task')}: {listing(odd)}")
    tasks = {}
    for name, device in zip(problem.task_names, schedule.device.tolist(), strict=True):
        entry = stated[name]
        if not isinstance(entry, Mapping) or not isinstance(entry.get("module"), str):
            raise _damaged(f"task {visible(name)} has no module")
        if "nodes" in entry:
            nodes, span = entry["nodes"], entry.get("span")
            if not (_texts(nodes) and isinstance(span, list) and len(span) == 2 and all(map(is_whole, span))):
                raise _damaged(f"task {visible(name)}: expected nodes and a span of two positions")
            inputs = entry.get("inputs") is True
            tasks[name] = TorchTask(name, entry["module"], tuple(nodes), span[0], span[1], device, inputs)
    for weight, users in weights.items():
        if not isinstance(weight, str) or not _texts(users) or not set(users) <= set(stated):
            raise _damaged(f"weight {visible(str(weight))}: expected a list of tasks")
    used = {name: tuple(task for task in users if task in tasks) for name, users in weights.items()}
    assert document is not None
    calls = document[KEY].get("calls")
    return PlacedModel(problem, tasks, used, len(tasks) < problem.n_tasks, calls if is_whole(calls) else None)


def stated_section(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the tasks and the weights in the section of a document, unchecked.

    Raises a UsageError if the section is missing, or has no tasks or weights.
    """
    section = document.get(KEY)
    if section is None:
        raise UsageError(
            f"the problem has no section {KEY}, which states the modules of its tasks; make it with placeopt import "
            "MODEL.pt2 or po.from_torch"
        )
    stated = section.get("tasks") if isinstance(section, Mapping) else None
    weights = section.get("weights") if isinstance(section, Mapping) else None
    if not isinstance(stated, Mapping) or not isinstance(weights, Mapping):
        raise _damaged("expected mappings tasks and weights")
    return stated, weights


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _damaged(reason: str) -> UsageError:
    return UsageError(f"the section {KEY} is damaged: {reason}; import the model again")
