"""Write a plan for ONNX Runtime: a model for each segment, or one model with annotated nodes for a single session.

A session runs a model on execution providers, and has at most one instance of each provider. Therefore only models of
segments can use several devices of one provider. Both forms have been run with ONNX Runtime 1.31.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.bridges import hardware
from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.bridges.onnx_models.dims import sizes_of
from placeopt.bridges.onnx_models.submodels import Split, Writer, notes_on_sizes, split_model, whole_submodel
from placeopt.errors import UsageError, counted, listing, visible
from placeopt.model.problem import Problem
from placeopt.model.schedule import durations
from placeopt.model.units import size_text
from placeopt.model.versions import version_of

if TYPE_CHECKING:
    from onnx import ModelProto

SEGMENTS, SESSION = "onnxruntime", "onnxruntime-session"
MANIFEST = "manifest.json"
VERSION = 1
"""Version of the manifest."""

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
PROVIDERS: Mapping[str, str] = {
    **dict.fromkeys(hardware.CPU, CPU),
    **dict.fromkeys((*hardware.GPU, *hardware.NVIDIA), CUDA),
    **dict.fromkeys(hardware.AMD, "MIGraphXExecutionProvider"),
    **dict.fromkeys((*hardware.APPLE, "coreml"), "CoreMLExecutionProvider"),
    **dict.fromkeys(hardware.NPU, "QNNExecutionProvider"),
    "dml": "DmlExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
}
"""Execution providers by a word in the type or name of a device."""
_PROVIDER, _EXPECTED = re.compile(r"\w+ExecutionProvider"), f"an execution provider, such as {CUDA}"

ANNOTATION, SETTINGS = "layer_ann", "session.layer_assignment_settings"
RECORD = "session.record_ep_graph_assignment_info"
_DESIGNATORS = {CPU: "cpu", CUDA: "cuda", "DmlExecutionProvider": "dml", "QNNExecutionProvider": "npu"}
"""Designators of devices in the settings; other providers are designated by their own names."""

_ANNOTATED_IR = 10
"""The first version of ONNX's format with metadata of nodes."""


def export_segments(request: ExportRequest, folder: Path) -> Exported:
    """Write a model for each segment and a manifest.

    Raises a UsageError if the model is not that of the problem, or a tensor between segments has no known type, and a
    DocumentError if the model or its external data cannot be read.
    """
    assert request.model is not None
    hardware.check_stated(request.problem, request.providers, _PROVIDER, _EXPECTED)
    writer = Writer(request.model, *sizes_of(request.problem, request.batch, request.dims))
    split = split_model(request.problem, request.schedule, writer.model, few_segments=request.few_segments)
    files = writer.write_segments(split, folder)
    manifest = manifest_of(request, split, files)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    used = np.unique(split.segments.device)
    text = (
        f"{counted(len(files), 'segment')} on {counted(len(used), 'device')}, "
        f"{counted(len(split.crossing), 'tensor')} between segments; {MANIFEST} states order, devices and tensors"
    )
    notes = [*notes_on_sizes(request.problem, writer.model)]
    if split.duplicated_bytes:
        notes.append(
            "weights that several segments read are present in each of them: "
            f"{size_text(split.duplicated_bytes)} more than in the model"
        )
    unranked = [name for name in split.crossing if writer.lacks_rank(name)]
    if unranked:
        notes.append(
            f"the rank of {listing(unranked)} depends on data: ONNX Runtime runs these segments, but the checker of "
            "onnx rejects them"
        )
    return Exported(text, tuple(notes))


def manifest_of(request: ExportRequest, split: Split, files: list[str]) -> dict[str, Any]:
    """Return the manifest: order of execution, devices, tensors with types and shapes, predicted times in seconds."""
    assert request.model is not None
    problem, schedule, segments = request.problem, request.schedule, split.segments
    end = schedule.start + durations(problem, schedule.device)
    rank: dict[int, int] = {}
    listed = []
    for k, (submodel, file) in enumerate(zip(split.submodels, files, strict=True)):
        device, tasks = int(segments.device[k]), segments.tasks(k)
        rank[device] = rank.get(device, -1) + 1
        sources = [split.writer.get(name) for name in submodel.inputs]
        listed.append({
            "segment": k,
            "file": file,
            "device": problem.device_names[device],
            "position": rank[device],
            "after": sorted({source for source in sources if source is not None}),
            "start": _seconds(problem, int(schedule.start[tasks].min())),
            "end": _seconds(problem, int(end[tasks].max())),
            "busy": _seconds(problem, int((end - schedule.start)[tasks].sum())),
            "weight_bytes": split.weight_bytes[k],
            "inputs": [
                {**_tensor(split, name), "from": source} for name, source in zip(submodel.inputs, sources, strict=True)
            ],
            "outputs": [{**_tensor(split, name), "to": list(split.readers.get(name, ()))} for name in submodel.outputs],
            "tasks": list(submodel.tasks),
        })  # fmt: skip
    model = split.model
    return {
        "format": "placeopt-onnxruntime",
        "version": VERSION,
        "problem": {"name": problem.name, "fingerprint": problem.fingerprint()},
        "model": {"file": request.model.name, "sha256": file_hash(request.model)},
        "versions": {name: version_of(name) or None for name in ("placeopt", "onnx", "onnxruntime")},
        "duplicated_weight_bytes": split.duplicated_bytes,
        "devices": [
            {"name": each.name, "type": each.type, "provider": provider_of(each, request.providers)}
            for each in hardware.devices_of(problem)
        ],
        "inputs": [{**_tensor(split, name), "to": list(split.readers.get(name, ()))} for name in model.inputs],
        "outputs": [
            {**_tensor(split, name), "from": "input" if name in model.inputs else split.writer[name]}
            for name in model.outputs
        ],
        "segments": listed,
    }


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; external data are not included."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provider_of(device: hardware.Device, stated: Mapping[str, str]) -> str | None:
    """Return the execution provider of a device: stated for its name or type, else by its hardware."""
    return hardware.stated_name(device, stated) or hardware.by_word(PROVIDERS, device)


def export_session(request: ExportRequest, folder: Path) -> Exported:
    """Write one model whose nodes are annotated with their devices, and the options of its session.

    Raises a UsageError if the model is not that of the problem, a device has no known provider, or two devices share
    one, and a DocumentError if the model or its external data cannot be read.
    """
    assert request.model is not None
    problem, device = request.problem, request.schedule.device
    used = [d for d in range(problem.n_devices) if (device == d).any()]
    providers = _distinct_providers(problem, used, request.providers)
    writer = Writer(request.model, *sizes_of(request.problem, request.batch, request.dims))
    split = split_model(problem, request.schedule, writer.model)
    model = writer.model
    whole = whole_submodel(model)
    labels = {d: f"device{d}" for d in used}
    segment_device = split.segments.device.tolist()
    node_label: dict[int, str] = {}
    for submodel, d in zip(split.submodels, segment_device, strict=True):
        for index in submodel.nodes:  # a folded node belongs to the first segment that reads its constant
            node_label.setdefault(index, labels[d])

    def annotate(made: ModelProto) -> None:
        made.ir_version = max(made.ir_version, _ANNOTATED_IR)
        for node, index in zip(made.graph.node, whole.nodes, strict=True):
            kept = [entry for entry in node.metadata_props if entry.key != ANNOTATION]
            del node.metadata_props[:]
            node.metadata_props.extend(kept)
            node.metadata_props.add(key=ANNOTATION, value=node_label[index])

    writer.write(folder / "model.onnx", whole, annotate)
    settings = ";".join(f"{_DESIGNATORS.get(providers[d], providers[d])}(={labels[d]})" for d in used)
    order = [providers[d] for d in used if providers[d] != CPU]
    options = {
        "model": "model.onnx",
        "providers": [*order, CPU],
        "session_config_entries": {SETTINGS: settings, RECORD: "1"},
        "devices": {problem.device_names[d]: {"provider": providers[d], "annotation": labels[d]} for d in used},
    }
    (folder / "session.json").write_text(json.dumps(options, indent=1) + "\n", encoding="utf-8")
    placed = ", ".join(f"{problem.device_names[d]} on {providers[d]}" for d in used)
    text = f"model.onnx with {counted(len(model.nodes), 'annotated node')} and session.json: {placed}"
    note = "a session executes nodes in its own order, and moves a node to the CPU if its provider cannot run it"
    return Exported(text, (note,))


def _distinct_providers(problem: Problem, used: list[int], stated: Mapping[str, str]) -> dict[int, str]:
    """Return the provider of each used device, all of them different."""
    hardware.check_stated(problem, stated, _PROVIDER, _EXPECTED)
    devices = hardware.devices_of(problem)
    found: dict[int, str] = {}
    for d in used:
        name, provider = devices[d].name, provider_of(devices[d], stated)
        if provider is None:
            raise UsageError(
                f"no execution provider is known for the device {visible(name)}; state --provider "
                f"{visible(name)}=NAME, such as {visible(name)}=CUDAExecutionProvider"
            )
        found[d] = provider
    for provider in dict.fromkeys(found.values()):
        sharing = [problem.device_names[d] for d in used if found[d] == provider]
        if len(sharing) > 1:
            raise UsageError(
                f"the devices {listing(sharing)} share {provider}, and a session has one instance of a provider; "
                f"--to {SEGMENTS} writes a model for each segment instead"
            )
    return found


def _tensor(split: Split, name: str) -> dict[str, Any]:
    tensor = split.model.tensors[name]
    shape = None if tensor.shape is None or tensor.assumed else list(tensor.shape)
    return {"name": name, "type": tensor.element or None, "shape": shape, "bytes": tensor.bytes}


def _seconds(problem: Problem, ticks: int) -> float:
    return float(ticks * problem.resolution)
