"""Registry of the formats of runtimes that `placeopt export --to` writes: for models, then for all graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from placeopt.bridges.exporters import dot, llama_cpp, model_explorer, onnxruntime, openvino, pytorch, table, vllm
from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.bridges.pytorch.targets import DEVICE_MAP, SPLIT_SPEC
from placeopt.errors import UsageError, alternatives, listing


@dataclass(frozen=True, slots=True)
class Exporter:
    """An exporter of one format: exactly one of `text` and `folder` is given.

    `text` returns the content of one file. `folder` writes several files into a folder that exists and is empty. Both
    raise a UsageError if the plan cannot be expressed in the format or the model does not belong to the problem.
    """

    description: str
    text: Callable[[ExportRequest], Exported] | None = None
    folder: Callable[[ExportRequest, Path], Exported] | None = None
    takes: frozenset[str] = frozenset()
    """The options that have an effect: `model` (with `batch` and `dims`), `providers`, `few_segments`."""
    needs_model: bool = False
    provider: str = ""
    """A name of a device in the runtime, as an example."""


EXPORTERS: dict[str, Exporter] = {
    DEVICE_MAP: Exporter(
        "the device of each module, for accelerate and transformers, JSON",
        text=pytorch.export_device_map,
        takes=frozenset({"providers"}),
        provider="cuda:0",
    ),
    llama_cpp.NAME: Exporter(
        "arguments of llama.cpp: -ngl, -ts and -ot", text=llama_cpp.export, takes=frozenset({"model"})
    ),
    onnxruntime.SEGMENTS: Exporter(
        "an ONNX model for each segment, and a manifest (extra onnx)",
        folder=onnxruntime.export_segments,
        takes=frozenset({"model", "providers", "few_segments"}),
        needs_model=True,
        provider=onnxruntime.CUDA,
    ),
    onnxruntime.SESSION: Exporter(
        "an ONNX model with annotated nodes for one session (extra onnx)",
        folder=onnxruntime.export_session,
        takes=frozenset({"model", "providers"}),
        needs_model=True,
        provider=onnxruntime.CUDA,
    ),
    openvino.NAME: Exporter(
        "affinities of an ONNX model for HETERO of OpenVINO, JSON (extra onnx)",
        text=openvino.export,
        takes=frozenset({"model", "providers"}),
        needs_model=True,
        provider="GPU.0",
    ),
    SPLIT_SPEC: Exporter(
        "the stages for torch.distributed.pipelining, JSON",
        text=pytorch.export_split_spec,
        takes=frozenset({"providers"}),
        provider="cuda:0",
    ),
    vllm.NAME: Exporter("environment and arguments of vLLM: VLLM_PP_LAYER_PARTITION", text=vllm.export),
    dot.NAME: Exporter("the task graph with devices as colours, for Graphviz", text=dot.export),
    table.NAME: Exporter("the rows of tasks, with times in seconds, CSV", text=table.export),
    model_explorer.NAME: Exporter(
        "node data of Model Explorer: device, start and duration, JSON", folder=model_explorer.export
    ),
}

OPTIONS = {"model": "--model", "providers": "--provider", "few_segments": "--few-segments"}
"""The option of the command line for each field of ExportRequest that depends on the format."""


def exporter(format: str, given: Mapping[str, object]) -> Exporter:
    """Return the exporter of a format.

    Parameters
    ----------
    given
        The values of the options that depend on the format, false if they are not given.

    Raises
    ------
    UsageError
        If the format is unknown, does not take an option, or needs a model.
    """
    if format not in EXPORTERS:
        raise UsageError(f"unknown format {format}{alternatives(format, EXPORTERS, 20)}")
    found = EXPORTERS[format]
    for key, value in given.items():
        if value and key not in found.takes:
            users = [name for name, other in EXPORTERS.items() if key in other.takes]
            raise UsageError(f"--to {format} takes no {OPTIONS[key]}; formats with it are {listing(users, 20)}")
    if found.needs_model and not given.get("model"):
        raise UsageError(f"--to {format} needs --model FILE, the model from which the problem was imported")
    return found
