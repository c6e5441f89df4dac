"""Plans for PyTorch: a device map of accelerate, and stages of torch.distributed.pipelining."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from placeopt.bridges import hardware
from placeopt.bridges.exporters.exported import Exported, ExportRequest, document_of, stage_notes
from placeopt.bridges.importers.imported import Imported
from placeopt.bridges.pytorch.section import PlacedModel, TorchTask, placed_model
from placeopt.bridges.pytorch.targets import (
    DEVICE_MAP,
    SPLIT_SPEC,
    by_position,
    called_once,
    first_positions,
    outermost_start,
    parents,
    producers,
    weighted_tasks,
    within,
)
from placeopt.errors import UsageError, counted, listing, visible
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule

_Made = TypeVar("_Made")
_DEVICE = re.compile(r"(?!gpu\b)[a-z]+(?::[0-9]+)?|[0-9]+")
"""The form of a device: its kind, such as `cuda`, with or without a number; or a number alone."""


def device_map(
    problem: Problem, schedule: Schedule, imported: Imported, *, devices: Mapping[str, str] | None = None
) -> dict[str, str | int]:
    """Return the device map of a plan for `accelerate.dispatch_model` and `from_pretrained(device_map=...)`.

    The map has the path of each module whose weights are all on one device, and of no module inside of it.

    Parameters
    ----------
    imported
        The result of `from_torch`.
    devices
        Names of devices in PyTorch, by the name or type of a device of the problem: `{"gpu0": "cuda:3"}`. By default,
        CPUs are `cpu`, and the others `cuda:0`, `cuda:1`, ... in the order of the problem. A number is that of a
        `cuda` device.

    Raises
    ------
    UsageError
        If accelerate cannot execute the plan: it moves tensors only where a module of the map begins.
    """
    model = placed_model(problem, schedule, document_of(imported))
    return _exported(_device_map, model, torch_devices(problem, devices), DEVICE_MAP)[0]


def split_spec(
    problem: Problem, schedule: Schedule, imported: Imported, *, devices: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the stages of a plan for `torch.distributed.pipelining`.

    Parameters
    ----------
    imported, devices
        As in `device_map`.

    Returns
    -------
    `split_spec` has the modules at which a stage begins: `{"layers.4": "BEGINNING"}`. `stages` has the device of each
    stage and its name in PyTorch.

    Raises
    ------
    UsageError
        If a device runs tasks before and after those of another one, or a stage begins inside a module.
    """
    model = placed_model(problem, schedule, document_of(imported))
    return _exported(_split_spec, model, torch_devices(problem, devices), SPLIT_SPEC)[0]


def export_device_map(request: ExportRequest) -> Exported:
    """The device map as JSON."""
    return _as_json(request, _device_map, DEVICE_MAP, "accelerate")


def export_split_spec(request: ExportRequest) -> Exported:
    """The stages as JSON."""
    return _as_json(request, _split_spec, SPLIT_SPEC, "torch.distributed.pipelining")


def _as_json(
    request: ExportRequest,
    make: Callable[[PlacedModel, list[str]], tuple[dict[str, Any], tuple[str, ...]]],
    target: str,
    runtime: str,
) -> Exported:
    model = placed_model(request.problem, request.schedule, request.document)
    found, notes = _exported(make, model, torch_devices(request.problem, request.providers, "--provider"), target)
    notes += stage_notes(request.problem, request.schedule, runtime)
    return Exported(json.dumps(found, indent=1) + "\n", notes)


def _exported(
    make: Callable[[PlacedModel, list[str]], _Made], model: PlacedModel, names: list[str], target: str
) -> _Made:
    """The export of a plan; an error names a level at which the plan can be exported, or says that there is none."""
    try:
        return make(model, names)
    except UsageError as error:
        level = next((level for level, coarse in _coarser(model) if _succeeds(make, coarse, names)), None)
        advice = "no coarser --level makes this plan executable"
        if level is not None:
            advice = f"with --level {level} and each module on the device where it computes longest, it can be exported"
        raise UsageError(f"{error}; {advice}; every plan can after an import with --for {target}") from None


def _succeeds(make: Callable[[PlacedModel, list[str]], Any], model: PlacedModel, names: list[str]) -> bool:
    try:
        make(model, names)
    except UsageError:
        return False
    return True


def _coarser(model: PlacedModel) -> Iterator[tuple[str, PlacedModel]]:
    """The plan at each level of modules, the finest first: each module is where most of its time is spent."""
    problem = model.problem
    index = {name: i for i, name in enumerate(problem.task_names)}
    deepest = max((task.path.count(".") + 1 for task in model.tasks.values()), default=1)
    for depth in (None, *range(deepest, 0, -1)):
        homes = {task.name: ".".join(task.path.split(".")[:depth]) for task in model.tasks.values()}
        spent: dict[str, dict[int, int]] = {}
        for task in model.tasks.values():
            times = spent.setdefault(homes[task.name], {})
            ticks = int(problem.duration[index[task.name], task.device])
            times[task.device] = times.get(task.device, 0) + ticks
        chosen = {home: max(times, key=lambda d: (times[d], -d)) for home, times in spent.items()}
        tasks = {name: replace(task, device=chosen[homes[name]]) for name, task in model.tasks.items()}
        yield "module" if depth is None else str(depth), replace(model, tasks=tasks)


def torch_devices(problem: Problem, stated: Mapping[str, str] | None, option: str = "devices:") -> list[str]:
    """Return the name of each device in PyTorch: as stated by device or type, else `cpu`, or `cuda:0`, `cuda:1`, ...

    Raises a UsageError if a name is stated for a device that the problem does not have, or is not a device of PyTorch.
    """
    stated = stated or {}
    hardware.check_stated(problem, stated, _DEVICE, "a device of PyTorch, such as cuda:0, xpu:0, mps or cpu", option)
    found = []
    accelerators = 0
    for device in hardware.devices_of(problem):
        chosen = hardware.stated_name(device, stated)
        if chosen is None and hardware.is_cpu(device):
            chosen = "cpu"
        elif chosen is None:
            chosen = f"cuda:{accelerators}"
            accelerators += 1
        found.append(f"cuda:{chosen}" if str(chosen).isdigit() else chosen)
    return found


def _device_map(model: PlacedModel, names: list[str]) -> tuple[dict[str, str | int], tuple[str, ...]]:
    placed = _weight_devices(model)
    used = {device for device in placed.values() if device is not None} or {
        task.device for task in model.tasks.values()
    }
    main = min(used, key=lambda device: (names[device] == "cpu", _number(names[device]), device))
    chosen = _modules(model, placed, main)
    values = {path: _accelerate_name(names[device]) for path, device in chosen.items()}
    return values, _check_moves(model, chosen, names, main)


def _number(device: str) -> int:
    """The number of a device of PyTorch: 3 of cuda:3. The main device of accelerate is the GPU with the smallest."""
    return int(device.partition(":")[2] or 0)


def _accelerate_name(device: str) -> str | int:
    """GPUs are numbers, as in the device maps of transformers."""
    kind, _, number = device.partition(":")
    return int(number) if kind == "cuda" and number.isdigit() else device


def _weight_devices(model: PlacedModel) -> dict[str, int | None]:
    """The device of each weight; None if no task uses it."""
    found: dict[str, int | None] = {}
    for weight, users in model.weights.items():
        owner = weight.rpartition(".")[0]
        tasks = [model.tasks[name] for name in users]
        own = [task for task in tasks if within(owner, task.path) or within(task.path, owner)]  # without tied weights
        devices = sorted({task.device for task in own or tasks})
        if len(devices) > 1:
            shown = listing([visible(model.problem.device_names[d]) for d in devices])
            readers = listing([task.name for task in own or tasks])
            raise UsageError(
                f"the weight {visible(weight)} is used on {shown} by the tasks {readers}; a device map has one device "
                "for it: colocate these tasks"
            )
        found[weight] = devices[0] if devices else None
    return found


def _modules(model: PlacedModel, placed: Mapping[str, int | None], main: int) -> dict[str, int]:
    """The device of each outermost module whose weights are on one device; unused weights join their neighbours."""
    children: dict[str, dict[str, None]] = {"": {}}
    direct: dict[str, list[str]] = {}
    devices: dict[str, dict[int, None]] = {"": {}}
    for weight, device in placed.items():
        owner = weight.rpartition(".")[0]
        direct.setdefault(owner, []).append(weight)
        inner = owner
        for path in (owner, *parents(owner)):
            if path != inner:
                children.setdefault(path, {})[inner] = None
                inner = path
            if device is not None:
                devices.setdefault(path, {})[device] = None
    if not devices[""]:
        devices[""] = {task.device: None for task in model.tasks.values()}
        if len(devices[""]) > 1:
            raise UsageError("the model has no weights, so that a device map cannot express its placement")
    found: dict[str, int] = {}
    waiting = [("", main)]
    while waiting:
        path, default = waiting.pop()
        here = list(devices.get(path, {}))
        if len(here) <= 1:
            found[path] = here[0] if here else default
            continue
        for weight in direct.get(path, ()):
            device = placed[weight]
            if path or device not in (None, main):
                shown = listing([visible(model.problem.device_names[d]) for d in sorted(here)])
                raise UsageError(
                    f"{visible(path) or 'the model'} has the weight {visible(weight)}, and modules on {shown}; "
                    "accelerate places such a module as a whole: colocate its tasks"
                )
            found[weight] = main
        waiting += [(child, here[0]) for child in reversed(children.get(path, {}))]
    return found


def _check_moves(model: PlacedModel, chosen: Mapping[str, int], names: list[str], main: int) -> tuple[str, ...]:
    """Check that accelerate finds all inputs of each task on one device; return notes.

    A module of the map receives its inputs on its device. Other code runs where its inputs are. Inputs of the model are
    on the main device, the first GPU. If the map has GPUs, the CPU only stores weights: modules on it run on the main
    device.
    """
    problem = model.problem
    sources = producers(model)
    running: dict[str, int] = {}
    offloaded = {path for path, device in chosen.items() if names[device] == "cpu" and names[main] != "cpu"}
    elsewhere = []
    for name, task in model.tasks.items():
        path = next((path for path in (task.path, *parents(task.path)) if path in chosen), None)
        if path is not None:
            running[name] = main if path in offloaded else chosen[path]
        else:
            read = [other for other in sources.get(name, ()) if other in running]
            at = {running[other]: visible(other) for other in reversed(read)}
            if task.inputs:
                at[main] = "the inputs of the model"
            if len({names[device] for device in at}) > 1:
                where = [f"{visible(problem.device_names[d])} (from {at[d]})" for d in sorted(at)]
                module = visible(task.path) or "the model"
                raise UsageError(
                    f"task {visible(name)} of {module} reads tensors on {listing(where)}, but accelerate moves tensors "
                    f"only to modules that are on one device as a whole; colocate the tasks of {module}"
                )
            running[name] = next(iter(at), main)
        if running[name] != task.device and path not in offloaded:
            elsewhere.append(name)
    notes = []
    if elsewhere:
        notes.append(
            f"{counted(len(elsewhere), 'task')} without weights run on another device than planned "
            f"({listing(elsewhere)}): accelerate runs them where their inputs are"
        )
    if offloaded:
        notes.append(
            f"accelerate stores the weights of {listing(sorted(offloaded))} on the CPU, but runs these modules on "
            f"{names[main]}, unlike the plan"
        )
    return tuple(notes)


def _split_spec(model: PlacedModel, names: list[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The stages, by the tasks with weights; other tasks run where the code of the model is."""
    shown = [visible(name) for name in model.problem.device_names]
    ordered = by_position(model)
    if not ordered:
        raise UsageError("the problem has no task of a forward pass")
    weighted = weighted_tasks(model)
    stages: dict[int, list[TorchTask]] = {}
    for task in ordered:
        if task.name in weighted:
            stages.setdefault(task.device, []).append(task)
    order = list(stages)
    ends = [max(tasks, key=lambda task: task.last) for tasks in stages.values()]
    for k, device in enumerate(order[1:]):
        late, early = ends[k], stages[device][0]
        if late.last > early.first:
            raise UsageError(
                f"{shown[order[k]]} runs {visible(late.name)} after {shown[device]} runs {visible(early.name)}: "
                "the devices are not stages of a pipeline. Pin tasks so that each device has consecutive ones, for "
                f"example {visible(late.name)} to {shown[device]}"
            )
    starts = {
        _stage_module(model, ordered, ends[k], stages[device][0], shown[order[k]]): device
        for k, device in enumerate(order[1:])
    }
    first = first_positions(ordered)
    bounds = [first[path] for path in starts]
    moved = [task.name for task in ordered if order[sum(place <= task.first for place in bounds)] != task.device]
    notes: tuple[str, ...] = ()
    if moved:
        notes = (
            f"{counted(len(moved), 'task')} without weights run on another device than planned ({listing(moved)}): in "
            "the stage of the code around them",
        )
    found = {
        "split_spec": dict.fromkeys(starts, "BEGINNING"),
        "stages": [{"device": model.problem.device_names[d], "torch_device": names[d]} for d in order],
    }
    return found, notes


def _stage_module(model: PlacedModel, ordered: list[TorchTask], end: TorchTask, start: TorchTask, before: str) -> str:
    """The outermost module that begins after one task and not after another one."""
    first = first_positions(ordered)
    module = outermost_start(first, end.last, start)
    if module is None:
        raise UsageError(
            f"the stage on {visible(model.problem.device_names[start.device])} begins with {visible(start.name)}, "
            f"inside {visible(start.path) or 'the model'}; a stage begins with a module. Pin {visible(start.name)} to "
            f"{before}"
        )
    if not called_once(ordered, module):
        raise UsageError(f"the module {visible(module)} is called several times, so that no stage can begin with it")
    return module
