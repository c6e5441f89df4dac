"""What runtimes require of the tasks of a PyTorch model, so that every plan of the problem can be exported.

A device map of accelerate moves tensors only where a module of the map begins. Therefore these tasks share a device:

- the tasks that use one weight, and all tasks of a module that owns a weight or that must be kept whole;
- all tasks of a module whose own code reads several tensors, or a tensor from outside. A residual block is an example;
- code of the model itself, and the tasks whose tensors it reads. Code that reads inputs of the model, and tasks with a
  weight of the model itself, run on the main device, where accelerate has the inputs.

A stage of `torch.distributed.pipelining` begins with a module. Therefore all tasks from one such place to the next one
share a device, and so do all tasks between two colocated ones. Edges without data keep these parts in the order in
which the code runs them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from placeopt.bridges.pytorch.section import PlacedModel, TorchTask

DEVICE_MAP, SPLIT_SPEC = "device-map", "split-spec"


@dataclass(frozen=True, slots=True)
class Requirements:
    """What the tasks of the forward pass must fulfil."""

    parts: tuple[tuple[str, ...], ...]
    """The tasks that share a device, for each part that may have its own device."""
    main: tuple[str, ...] = ()
    """Tasks that run on the main device."""
    order: tuple[tuple[str, str], ...] = field(default=())
    """Pairs of tasks such that the second one is not on an earlier stage."""


def within(path: str, module: str) -> bool:
    """Whether a module is another one or inside of it."""
    return not module or path == module or path.startswith(f"{module}.")


def parents(path: str) -> Iterator[str]:
    """The modules around a module, the innermost first; the last one is the model itself."""
    while path:
        path = path.rpartition(".")[0]
        yield path


def by_position(model: PlacedModel) -> list[TorchTask]:
    """The tasks of the forward pass in the order of execution."""
    return sorted(model.tasks.values(), key=lambda task: (task.first, task.last))


def first_positions(ordered: Iterable[TorchTask]) -> dict[str, int]:
    """The position of the first task of each module."""
    first: dict[str, int] = {}
    for task in ordered:
        for path in (task.path, *parents(task.path)):
            first.setdefault(path, task.first)
    return first


def producers(model: PlacedModel) -> dict[str, list[str]]:
    """The tasks whose tensors each task reads."""
    problem = model.problem
    found: dict[str, list[str]] = {}
    for source, target, payload in zip(
        problem.edge_source.tolist(), problem.edge_target.tolist(), problem.payload.tolist(), strict=True
    ):
        if payload:
            found.setdefault(problem.task_names[target], []).append(problem.task_names[source])
    return found


def weighted_tasks(model: PlacedModel) -> frozenset[str]:
    """The tasks that use weights; all of them if the model has no weights."""
    return frozenset(name for users in model.weights.values() for name in users) or frozenset(model.tasks)


def called_once(ordered: Iterable[TorchTask], module: str) -> bool:
    """Whether all tasks of a module belong to one call."""
    return len({task.module.partition("@")[2] for task in ordered if within(task.path, module)}) <= 1


def outermost_start(first: Mapping[str, int], end: int, start: TorchTask) -> str | None:
    """The outermost module that begins after the position `end` and contains the task `start`; None without one."""
    around = [path for path in (start.path, *parents(start.path)) if path and end < first[path] <= start.first]
    return around[-1] if around else None


class _Parts:
    """Sets of tasks that grow by joining."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parent = {name: name for name in names}

    def find(self, name: str) -> str:
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def join(self, names: Sequence[str]) -> None:
        for name in names[1:]:
            self._parent[self.find(name)] = self.find(names[0])

    def all(self) -> tuple[tuple[str, ...], ...]:
        found: dict[str, list[str]] = {}
        for name in self._parent:
            found.setdefault(self.find(name), []).append(name)
        return tuple(map(tuple, found.values()))


def _for_device_map(model: PlacedModel, kept: Iterable[str]) -> Requirements:
    parts = _Parts(model.tasks)
    inside: dict[str, list[str]] = {}
    for task in model.tasks.values():
        for path in (task.path, *parents(task.path)):
            inside.setdefault(path, []).append(task.name)
    owners = dict.fromkeys(weight.rpartition(".")[0] for weight in model.weights)
    users: dict[str, list[str]] = {}
    for weight, names in model.weights.items():
        owner = weight.rpartition(".")[0]
        parts.join(names)
        for path in (owner, *parents(owner)):
            users.setdefault(path, []).extend(names)
    whole: set[str] = set()

    def keep(module: str) -> None:
        whole.add(module)
        parts.join([*inside.get(module, ()), *users.get(module, ())])

    for owner in (*filter(None, owners), *kept):
        keep(owner)
    before = producers(model)
    main = [name for weight, names in model.weights.items() if "." not in weight for name in names]
    for task in by_position(model):
        around = [path for path in (task.path, *parents(task.path)) if path]
        if any(path in whole for path in around):
            continue
        near = next((path for path in around if path in users), None)
        read = [name for name in before.get(task.name, ()) if name in model.tasks]
        if near is None:
            parts.join([task.name, *read])
            main += [] if read and not task.inputs else [task.name]
        elif (
            read
            and not task.inputs
            and all(within(model.tasks[name].path, near) for name in read)
            and len({parts.find(name) for name in read}) == 1
        ):
            parts.join([read[0], task.name])
        else:
            keep(near)
    if not any(model.weights.values()):
        parts.join(list(model.tasks))
    return Requirements(parts.all(), tuple(dict.fromkeys(main)))


def _for_split_spec(model: PlacedModel, _kept: Iterable[str]) -> Requirements:
    ordered, weighted = by_position(model), weighted_tasks(model)
    first = first_positions(ordered)
    starts: list[int] = []
    late: int | None = None
    for task in ordered:
        if task.name not in weighted:
            continue
        module = None if late is None else outermost_start(first, late, task)
        if module is not None and called_once(ordered, module):
            place = first[module]
            if not any(other.first < place <= other.last for other in ordered):
                starts.append(place)
        late = task.last if late is None else max(late, task.last)
    together: dict[int, list[int]] = {}
    for name, group in zip(model.problem.task_names, model.problem.group.tolist(), strict=True):
        if group >= 0 and name in model.tasks:
            together.setdefault(group, []).append(model.tasks[name].first)
    for places in together.values():
        starts = [start for start in starts if not min(places) < start <= max(places)]
    parts: list[list[str]] = [[] for _ in range(len(starts) + 1)]
    for task in ordered:
        parts[bisect_right(starts, task.first)].append(task.name)
    found = tuple(tuple(part) for part in parts if part)
    return Requirements(found, order=tuple((one[-1], other[0]) for one, other in pairwise(found)))


TARGETS: Mapping[str, Callable[[PlacedModel, Iterable[str]], Requirements]] = {
    DEVICE_MAP: _for_device_map,
    SPLIT_SPEC: _for_split_spec,
}
"""The requirements of each runtime for a model and the modules that must be kept whole."""


def require_parts(tasks: Mapping[str, dict[str, Any]], found: Requirements, target: str, main: str) -> None:
    """Add requirements to the tasks of a document: colocation, the main device, and edges without data."""
    for number, part in enumerate(each for each in found.parts if len(each) > 1):
        for name in part:
            stated = tasks[name].get("colocate", [])
            tasks[name]["colocate"] = [*([stated] if isinstance(stated, str) else stated), f"{target} {number}"]
    for name in found.main:
        tasks[name]["pin"] = main
    for source, name in found.order:
        after = tasks[name].get("after", {})
        tasks[name]["after"] = {source: 0} | (dict.fromkeys(after) if isinstance(after, list) else after)
