"""The section `pipeline`: how runs follow each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.scales import Scales
from placeopt.io.compiler.tasks import Parts, Tasks
from placeopt.io.spec import PipelineSpec, Spec, StageSpec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Int
from placeopt.model.pipeline import UNBOUNDED, Pipeline, build_pipeline


def pipeline_rules(parts: Parts, forward: Int, resident: Int, members: list[tuple[int, ...]] | None) -> Pipeline | None:
    """Return the rules of the pipeline; None if the objective does not contain `period`.

    With modes, `members` are the devices of the file that each device occupies.
    """
    spec, tasks, index, scales, issues = parts.spec, parts.tasks, parts.index, parts.scales, parts.issues
    wanted = any("period" in level for level in spec.objective)
    stated = spec.pipeline or PipelineSpec()
    own = {key: device.pipeline for key, device in spec.devices.items() if device.pipeline is not None}
    rows = [_device(stated, None, scales, ("pipeline",), issues)] * len(index)
    for d, device in enumerate(index.devices):
        if device.spec.pipeline is not None:
            rows[d] = _device(stated, device.spec.pipeline, scales, ("devices", device.pool, "pipeline"), issues)
    gradient = _gradient(tasks, forward, resident, scales)
    if not wanted:
        if spec.pipeline is not None and not issues.touch("objective"):
            issues.add("needs the objective period", ("pipeline",))
        elif own and not issues.touch("objective"):
            issues.add("needs the objective period", ("devices", next(iter(own)), "pipeline"))
        return None
    _check(parts, stated, rows)
    given = [row["machines"] for row in rows]
    if any(given):
        if members is not None:
            parts.issues.add("machines are not supported with modes, which have their own", ("pipeline",))
        first = 1 + max(q for each in given for q in each or ())
        members = [tuple(each) if each else (first + d,) for d, each in enumerate(given)]
    if members is not None:
        _check_with_modes(parts, stated, rows)
    if len(issues):
        return None
    columns = {
        key: [row[key] for row in rows] for key in ("overlap", "full_duplex", "free_transfers", "segments", "launch")
    }
    return build_pipeline(
        len(tasks),
        len(index),
        **columns,
        gradient=gradient,
        multicast=stated.multicast,
        replicas=stated.replicas,
        in_flight=stated.in_flight,
        microbatches=stated.microbatches,
        recompute=stated.recompute,
        machines=members,
    )


def together(spec: Spec, labels: Int, forward: Int) -> Int:
    """Return the labels of colocation, with backward tasks next to their forward tasks where stages are limited."""
    stated = spec.pipeline or PipelineSpec()
    if all(_segments(stated, device.pipeline) == UNBOUNDED for device in spec.devices.values()):
        return labels
    merged = labels.copy()
    for i in np.flatnonzero(forward != np.arange(len(forward))).tolist():
        a, b = int(merged[i]), int(merged[forward[i]])
        if a != b:
            merged[merged == max(a, b)] = min(a, b)
    return merged


def _device(stated: PipelineSpec, own: StageSpec | None, scales: Scales, path: Path, issues: Issues) -> dict[str, Any]:
    """Return the values of a device: its own, or those of the section."""

    def value(key: str, default: Any) -> Any:
        found = None if own is None else getattr(own, key)
        found = getattr(stated, key) if found is None else found
        return default if found is None else found

    layer: StageSpec = stated if own is None else own
    if layer.stages == "contiguous" and layer.segments is not None and layer.segments > 1:
        issues.add(f"contiguous means one segment; expected no more, got {layer.segments}", (*path, "segments"))
    launch = 0
    if layer.launch is not None:
        launch = scales.ticks(layer.launch, (*path, "launch"))
    elif stated.launch is not None:
        launch = scales.ticks(stated.launch, ("pipeline", "launch"))
    return {
        "overlap": value("overlap", False),
        "full_duplex": value("duplex", "half") == "full",
        "free_transfers": value("transfers", "counted") == "free",
        "segments": _segments(stated, own),
        "launch": launch,
        "machines": value("machines", None),
    }


def _segments(stated: PipelineSpec, own: StageSpec | None) -> int:
    """Return the most stages of a device: what it states itself, or what the section states."""
    for layer in (own, stated):
        if layer is None:
            continue
        if layer.stages == "contiguous":
            return 1
        if layer.segments is not None:
            return layer.segments
        if layer.stages == "free":
            return UNBOUNDED
    return UNBOUNDED


def _gradient(tasks: Tasks, forward: Int, resident: Int, scales: Scales) -> Int:
    """Return (n,) bytes that replicas synchronise."""
    found = np.zeros(len(tasks), dtype=np.int64)
    trained = forward[forward != np.arange(len(tasks))]
    found[trained] = resident[trained]
    for row, name, task in tasks.stating("gradient"):
        if task.gradient is not None:
            found[row] = scales.size(task.gradient, ("tasks", name, "gradient"))
    return found


def _check_with_modes(parts: Parts, stated: PipelineSpec, rows: list[dict[str, Any]]) -> None:
    """Report what a pipeline with modes and teams does not support."""
    if stated.replicas > 1:
        parts.issues.add("replicas are not supported with modes or machines; expected 1", ("pipeline", "replicas"))
    if stated.recompute:
        parts.issues.add("recompute is not supported with modes or machines; expected false", ("pipeline", "recompute"))
    if stated.in_flight == "1f1b":
        parts.issues.add(
            "1f1b is not supported with modes or machines; expected another rule", ("pipeline", "in_flight")
        )
    ways = {(row["overlap"], row["full_duplex"]) for row in rows}
    if len(ways) > 1:
        parts.issues.add("with modes or machines, all devices need the same overlap and duplex", ("pipeline",))
    elif (False, True) in ways:
        parts.issues.add("with modes or machines, full duplex needs overlap: true", ("pipeline",))


def _check(parts: Parts, stated: PipelineSpec, rows: list[dict[str, Any]]) -> None:
    """Report what contradicts a pipeline."""
    spec, issues = parts.spec, parts.issues
    if spec.contention != "none":
        issues.add(
            f"{spec.contention} contradicts period, which counts the ports itself; expected none", ("contention",)
        )
    if spec.memory_model != "sum":
        issues.add(f"{spec.memory_model} is not supported with period; expected sum", ("memory_model",))
    for _, name, task in parts.tasks.stating("release", "deadline"):
        for key, what in (("release", "a release time"), ("deadline", "a deadline")):
            if getattr(task, key) is not None:
                issues.add(f"{what} is not supported with period, where runs follow each other", ("tasks", name, key))
    if stated.in_flight == "1f1b":
        for d, row in enumerate(rows):
            if row["segments"] != 1:
                name = parts.index.devices[d].name
                issues.add(
                    f"1f1b counts stages; expected stages: contiguous, but {name} may have more",
                    ("pipeline", "in_flight"),
                )
                break
