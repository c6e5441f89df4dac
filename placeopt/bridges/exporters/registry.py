"""Registry of the formats of runtimes that `placeopt export --to` writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from placeopt.bridges.exporters import dot, llama_cpp, model_explorer, openvino, vllm
from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.bridges.exporters.onnxruntime import export_segments, export_session
from placeopt.bridges.exporters.pytorch import DEVICE_MAP, SPLIT_SPEC, export_device_map, export_split_spec
from placeopt.errors import UsageError, alternatives


@dataclass(frozen=True, slots=True)
class Exporter:
    """An exporter of one format: exactly one of `text` and `folder` is given.

    `text` returns the content of one file. `folder` writes several files into a folder that exists and is empty. Both
    raise a UsageError if the plan cannot be expressed in the format or the model does not belong to the problem.
    """

    description: str
    text: Callable[[ExportRequest], Exported] | None = None
    folder: Callable[[ExportRequest, Path], Exported] | None = None
    needs_model: bool = False
    takes_model: bool = False
    """Whether the model is optional."""
    takes_providers: bool = False
    """Whether `ExportRequest.providers` has an effect."""
    has_segments: bool = False
    """Whether `ExportRequest.few_segments` has an effect."""


EXPORTERS: dict[str, Exporter] = {
    "onnxruntime": Exporter(
        "an ONNX model for each segment, and a manifest (extra onnx)",
        folder=export_segments,
        needs_model=True,
        takes_providers=True,
        has_segments=True,
    ),
    "onnxruntime-session": Exporter(
        "an ONNX model with annotated nodes for one session (extra onnx)",
        folder=export_session,
        needs_model=True,
        takes_providers=True,
    ),
    DEVICE_MAP: Exporter(
        "the device of each module, for accelerate and transformers, JSON", export_device_map, takes_providers=True
    ),
    SPLIT_SPEC: Exporter("the stages for torch.distributed.pipelining, JSON", export_split_spec, takes_providers=True),
    openvino.NAME: Exporter(
        "affinities of an ONNX model for HETERO of OpenVINO, JSON (extra onnx)",
        text=openvino.export,
        needs_model=True,
        takes_providers=True,
    ),
    model_explorer.NAME: Exporter(
        "node data of Model Explorer: device, start and duration, JSON", folder=model_explorer.export
    ),
    dot.NAME: Exporter("the task graph with devices as colours, for Graphviz", text=dot.export),
    llama_cpp.NAME: Exporter("arguments of llama.cpp: -ngl, -ts and -ot", llama_cpp.text, takes_model=True),
    vllm.NAME: Exporter("environment and arguments of vLLM: VLLM_PP_LAYER_PARTITION", vllm.text),
}


def exporter(format: str) -> Exporter:
    """Return the exporter of a format; an unknown format is a UsageError."""
    if format not in EXPORTERS:
        raise UsageError(f"unknown format {format}{alternatives(format, EXPORTERS, 20)}")
    return EXPORTERS[format]
