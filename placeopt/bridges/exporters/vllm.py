"""Export the stages of a pipeline to vLLM.

vLLM reads the number of layers of each stage from the environment variable VLLM_PP_LAYER_PARTITION. There are as many
numbers as stages (--pipeline-parallel-size), and their sum is the number of layers (`get_pp_indices` in
vllm/distributed/utils.py). The first stage computes the embedding, the last one the head. Stages use the GPUs in the
order of CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from placeopt.bridges.exporters.exported import Exported, ExportRequest, stage_notes
from placeopt.bridges.exporters.layers import broken_order, layer_plan
from placeopt.bridges.hardware import devices_of, is_cpu
from placeopt.errors import UsageError

NAME = "vllm"


def export(request: ExportRequest) -> Exported:
    """Return the environment and the arguments of `vllm serve`.

    Raises a UsageError if a stage would not consist of consecutive whole layers, or the plan uses CPUs and other
    devices.
    """
    plan = layer_plan(request, NAME)
    names = request.problem.device_names
    is_host = [is_cpu(device) for device in devices_of(request.problem)]
    layers: list[int] = []
    for index, parts in enumerate(plan.layers):
        first, *others = parts.items()
        other = next((each for each in others if each[1] != first[1]), None)
        if other is not None:
            raise UsageError(
                f"--to {NAME}: layer {index} is on two devices ({first[0]} on {names[first[1]]}, {other[0]} on "
                f"{names[other[1]]}), but a stage has whole layers; import the model with --level layer"
            )
        layers.append(first[1])
    wrong = broken_order(layers)
    if wrong is not None:
        raise UsageError(
            f"--to {NAME}: layer {wrong} is on {names[layers[wrong]]}, which has an earlier stage, but a device has "
            "consecutive layers; give the layers of a stage the same `colocate`, or fix devices with `placement`"
        )
    stages = [(device, len(list(run))) for device, run in groupby(layers)]
    cpus = [device for device, _ in stages if is_host[device]]
    if cpus and len(cpus) < len(stages):
        raise UsageError(
            f"--to {NAME}: a stage is on {names[cpus[0]]}, but vLLM runs all stages on devices of one kind; limit the "
            "tasks to the accelerators with `devices`"
        )
    notes = _displaced(request, plan.embedding, plan.head, layers)
    order = [device for device, _ in stages]
    accelerators = [device for device, host in enumerate(is_host) if not host]
    visible = "" if cpus else ",".join(str(accelerators.index(device)) for device in order)
    if visible == ",".join(map(str, range(len(order)))):
        visible = ""
    first_layer = 0
    lines = []
    for number, (device, count) in enumerate(stages):
        lines.append(f"# stage {number}: {names[device]}, layers {first_layer} to {first_layer + count - 1}")
        first_layer += count
    partition = ",".join(str(count) for _, count in stages)
    prefix = f"CUDA_VISIBLE_DEVICES={visible} " if visible else ""
    lines.append(f"{prefix}VLLM_PP_LAYER_PARTITION={partition} vllm serve MODEL --pipeline-parallel-size {len(stages)}")
    notes += stage_notes(request.problem, request.schedule, "vLLM")
    network = _network_link(request.document.get("links"))
    if network is not None and len(stages) > 1:
        notes.append(
            f"a link of the problem is {network}: if the stages are on several hosts, vLLM needs its multi-node set-up "
            "(Ray), and CUDA_VISIBLE_DEVICES numbers the GPUs of one host"
        )
    return Exported("\n".join(lines) + "\n", tuple(notes))


def _network_link(links: Any) -> str | None:
    """Return a link of the catalogue that connects hosts, among the links of a valid document; None without one."""
    links = links if isinstance(links, Mapping) else {}
    stated = [links.get("default"), *(links.get("overrides") or ())]
    names = [str(link.get("like")) for link in stated if isinstance(link, Mapping)]
    return next((name for name in names if name.startswith(("ethernet-", "infiniband-"))), None)


def _displaced(request: ExportRequest, embedding: int, head: int | None, layers: list[int]) -> list[str]:
    """Notes about the embedding and the head of a model with one table for both; an error for any other model."""
    names, task_names = request.problem.device_names, request.problem.task_names
    group = request.problem.group
    tied = head is not None and group[task_names.index("embedding")] == group[task_names.index("head")] >= 0
    notes = []
    for task, device, stage, layer in (
        ("embedding", embedding, "first", layers[0]),
        ("head", head, "last", layers[-1]),
    ):
        if device is None or device == layer:
            continue
        where = f"the {task} is on {names[device]}, but vLLM runs it on the {stage} stage, {names[layer]}"
        if not tied:
            raise UsageError(f"--to {NAME}: {where}; give it the same `colocate` as the {stage} layer")
        notes.append(f"{where}, with a second copy of the embedding, which the plan does not count")
    return notes
