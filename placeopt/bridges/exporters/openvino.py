"""Plans as affinities of OpenVINO: the device on which its plugin HETERO runs each operation of a model.

OpenVINO reads an affinity from the runtime information of each operation (`get_rt_info()["affinity"]`), and
`compile_model(model, "HETERO:GPU,CPU")` cuts the model where it changes. Every operation needs an affinity, also the
constants, parameters and results (tested with OpenVINO 2026.4).

A node of an ONNX model becomes one or several operations. Friendly names of operations do not identify it: a node that
writes an output of the model gets the name of this output, and a node without a name, or before a `Dropout`, gets
another one as well. Names of tensors are reliable. Therefore affinities are stated by the tensors that a node writes.
Other operations, such as the `Convolution` before the `Add` of a bias, write no tensor of the model, and all of their
results flow into the operation that does. Therefore they belong to the first operation that reads them.

OpenVINO removes `Identity` and `Dropout`: the operation before writes their tensor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from placeopt.bridges import hardware
from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.bridges.onnx_models import OnnxModel, read_model
from placeopt.bridges.onnx_models.dims import sizes_of
from placeopt.bridges.onnx_models.submodels import task_index
from placeopt.errors import UsageError, counted, listing, visible
from placeopt.model.problem import Problem

NAME = "openvino"

REMOVED = frozenset({"Identity", "Dropout"})
"""Operators that OpenVINO removes."""

DEVICES = {**dict.fromkeys(hardware.CPU, "CPU"), "gpu": "GPU", "npu": "NPU"}
"""The device of OpenVINO for a word in the type or name of a device."""
_PRIORITY = ("NPU", "GPU", "CPU")
_DEVICE = re.compile(r"[A-Z]\w*(?:\.\w+)?")


def export(request: ExportRequest) -> Exported:
    """Return a plan as JSON: the name of the device to compile for, and the affinity of each tensor of an ONNX model.

    Raises a UsageError if the model is not that of the problem, or a device of the plan is not a device of OpenVINO.
    """
    assert request.model is not None
    problem, device = request.problem, request.schedule.device.tolist()
    names, notes = _device_names(problem, sorted(set(device)), request.providers)
    batch, dims = sizes_of(problem, request.batch, request.dims)
    model = read_model(request.model, batch=batch, dims=dims)
    index = task_index(problem, model)
    affinity, moved = _affinities(model, {task: names[device[i]] for task, i in index.items()})
    if moved:
        notes.append(
            f"OpenVINO removes Identity and Dropout; {counted(len(moved), 'such task')} would run on another device "
            f"than the task before: {listing(moved)}"
        )
    used = dict.fromkeys(affinity.values())
    order = sorted(used, key=lambda name: (_PRIORITY.index(name[:3]) if name[:3] in _PRIORITY else -1, name))
    data = {"device": f"HETERO:{','.join(order)}", "affinity": affinity}
    return Exported(json.dumps(data, indent=1, ensure_ascii=False) + "\n", tuple(notes))


def _affinities(model: OnnxModel, devices: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the device of each tensor, and the removed tasks whose device is not that of the task before."""
    affinity: dict[str, str] = {}
    moved = []
    for node in model.nodes:
        device = devices[node.task]
        if node.op in REMOVED and node.proto.input[0] in affinity:
            before = affinity[node.proto.input[0]]
            if before != device:
                moved.append(node.task)
            device = before
        affinity |= dict.fromkeys(node.writes, device)
    return affinity, moved


def _device_names(problem: Problem, used: list[int], stated: Mapping[str, str]) -> tuple[dict[int, str], list[str]]:
    """Return the device of OpenVINO for each used device, and notes about devices that are the same one.

    It is the stated one for the name or the type, else CPU, GPU or NPU. Several GPUs are numbered in the order of the
    problem.
    """
    hardware.check_stated(problem, stated, _DEVICE, "a device such as CPU or GPU.0")
    names, devices = problem.device_names, hardware.devices_of(problem)
    kinds = [hardware.by_word(DEVICES, device) for device in devices]
    gpus = [d for d, kind in enumerate(kinds) if kind == "GPU"]
    found: dict[int, str] = {}
    for d in used:
        name = hardware.stated_name(devices[d], stated) or kinds[d]
        if name is None:
            raise UsageError(
                f"{visible(names[d])} is not a device of OpenVINO: neither its name nor its type contains one of the "
                f"words {', '.join(DEVICES)}; state --provider {visible(names[d])}=CPU, for example"
            )
        found[d] = f"GPU.{gpus.index(d)}" if name == "GPU" and len(gpus) > 1 and d in gpus else name
    notes = []
    for name in dict.fromkeys(found.values()):
        same = [names[d] for d in used if found[d] == name]
        if len(same) > 1:
            notes.append(f"{name} of OpenVINO stands for {counted(len(same), 'device')}: {listing(same)}")
    return found, notes


def set_affinities(model: Any, affinity: Mapping[str, str]) -> None:
    """Set the affinity of every operation of a model of OpenVINO that was read from ONNX.

    Parameters
    ----------
    model
        An `openvino.Model`.
    affinity
        The device of each tensor, as `placeopt export --to openvino` writes it.

    Raises
    ------
    UsageError
        If no operation writes one of the tensors, so that it is another model.
    """
    operations = model.get_ordered_ops()
    place = {operation.get_name(): number for number, operation in enumerate(operations)}
    devices: list[str | None] = []
    for operation in operations:
        tensors = sorted(name for output in operation.outputs() for name in output.get_names())
        devices.append(next((affinity[name] for name in tensors if name in affinity), None))
    if not any(devices):
        raise UsageError("no operation of the model writes one of the tensors; expected the exported model")

    def take(number: int, neighbours: list[Any]) -> None:
        if devices[number] is None:
            near = sorted(place[each.get_name()] for each in neighbours)
            devices[number] = next((devices[each] for each in near if devices[each] is not None), None)

    for number in reversed(range(len(operations))):
        outputs = operations[number].outputs()
        take(number, [reader.get_node() for output in outputs for reader in output.get_target_inputs()])
    for number, operation in enumerate(operations):  # operations without a reader that has an affinity
        take(number, [each.get_source_output().get_node() for each in operation.inputs()])
    other = next(device for device in devices if device is not None)
    for operation, device in zip(operations, devices, strict=True):
        operation.get_rt_info()["affinity"] = device or other  # an unused input of the model runs anywhere
