"""Problems and hand-made models for tests of the bridges to ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import placeopt as po


def light_model(name: str) -> Path:
    """A model of the onnx package, whose weights are computed by nodes."""
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"


def problem_of(model: Path, devices: int = 2, **dims: Any) -> po.Problem:
    """A problem with a task for each live node of a model; all tasks take 1 us."""
    from placeopt.bridges.onnx_models import read_model

    view = read_model(model, **dims)
    index = {node.task: i for i, node in enumerate(view.nodes)}
    edges = {
        (index[view.producers[name]], index[node.task]): view.tensors[name].bytes
        for node in view.nodes
        for name in node.reads
        if name in view.producers
    }
    return po.build_problem(
        name=view.name,
        task_names=list(index),
        device_names=[f"cpu{d}" for d in range(devices)],
        device_types=["cpu"] * devices,
        duration=np.full((len(index), devices), 1000),
        edges=list(edges),
        payload=list(edges.values()),
    )
