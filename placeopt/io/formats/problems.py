"""Write compiled problems as documents that `placeopt.load` compiles to the same problem.

Numbers without a unit are ticks, bytes, and bytes per tick, so that they are exact. Rates have enough digits for the
compiler to recover the same ratio. The names of groups, operations and units in the original document are lost, and
relocation is written as start-up times by task and device.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.model.objective import shared_out
from placeopt.model.pipeline import UNBOUNDED, Pipeline
from placeopt.model.problem import NANO, UNLIMITED, Problem

DIGITS = 60
"""Significant digits of numbers without an exact decimal."""


def problem_document(problem: Problem) -> dict[str, Any]:
    """The problem as a spec document for `compile_spec` or `documents.to_json`.

    Of parallel edges only the last is written.
    """
    return problem_header(problem) | {"tasks": _tasks(problem)}


def problem_header(problem: Problem) -> dict[str, Any]:
    """The problem's document without its tasks."""
    document: dict[str, Any] = {"placeopt": 1}
    for key in ("name", "description"):
        if getattr(problem, key):
            document[key] = getattr(problem, key)
    document["resolution"] = f"{decimal(problem.resolution)} s"
    document["devices"] = {name: _device(problem, d) for d, name in enumerate(problem.device_names)}
    document["links"] = {"overrides": _links(problem)}
    runs = problem.runs_before_next_change
    if problem.relocation.any() or runs != 1 or "relocation" in problem.objective.metrics:
        document["current"] = {"runs_before_next_change": number(runs)}
    stated = shared_out(problem.objective, 1 / runs)
    document["objective"] = [{term.metric: number(term.weight) for term in level} for level in stated.levels]
    if problem.consolidate:
        document["consolidate"] = number(problem.consolidate)
    if problem.pipeline is not None:
        document["pipeline"] = _pipeline(problem.pipeline)
    document["contention"] = problem.contention
    document["memory_model"] = problem.memory_model
    return document


def decimal(value: Fraction) -> str:
    """A fraction as a decimal, rounded down to DIGITS digits if it is longer."""
    context = Context(prec=DIGITS, rounding=ROUND_DOWN)
    found = context.normalize(context.divide(Decimal(value.numerator), Decimal(value.denominator)))
    return f"{found:e}" if 0 < value < 1 else f"{found:f}"


def number(value: Fraction) -> int | float:
    """A weight or a number of runs as a number for documents."""
    return value.numerator if value.denominator == 1 else float(value)


def task_entry(problem: Problem, i: int) -> dict[str, Any]:
    """Keys of a task in a document: time, memory, release, deadline, migration and forward task."""
    able = np.flatnonzero(problem.feasible[i]).tolist()
    entry: dict[str, Any] = {
        "time": {problem.device_names[d]: int(problem.duration[i, d]) for d in able},
        "memory": {key: int(getattr(problem, key)[i]) for key in ("resident", "output", "scratch")},
    }
    if problem.release[i]:
        entry["release"] = int(problem.release[i])
    if problem.deadline[i] != UNLIMITED:
        entry["deadline"] = int(problem.deadline[i])
    if problem.relocation[i].any():
        moved = np.flatnonzero(problem.relocation[i])
        entry["migration"] = {"startup": {problem.device_names[d]: int(problem.relocation[i, d]) for d in moved}}
    if problem.forward[i] != i:
        entry["backward_of"] = problem.task_names[problem.forward[i]]
    if problem.pipeline is not None:
        entry["gradient"] = int(problem.pipeline.gradient[i])
    return entry


def _device(problem: Problem, d: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": problem.device_types[d]}
    first = problem.capacity[d] if problem.tiers is None else problem.tiers.end[d, 0]
    if first != UNLIMITED:
        entry["memory"] = int(first)
    if problem.tiers is not None and (further := problem.tiers.further(d)):
        entry["tiers"] = [_tier(*tier) for tier in further]
    if problem.power_num[d]:
        watts = Fraction(int(problem.power_num[d]), int(problem.power_den[d])) / (NANO * problem.resolution)
        entry["power"] = f"{decimal(watts)} W"
    if problem.pipeline is not None:
        entry["pipeline"] = _stages(problem.pipeline, d)
    return entry


def _tier(size: int, num: int, den: int) -> dict[str, Any]:
    """One memory tier beyond the first; num ticks move den bytes."""
    limit = {} if size == UNLIMITED else {"memory": size}
    return {**limit, "bandwidth": decimal(Fraction(den, num))}


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    """What holds for the whole pipeline."""
    keys = ("multicast", "replicas", "in_flight", "microbatches", "recompute")
    return {key: getattr(pipeline, key) for key in keys}


def _stages(pipeline: Pipeline, d: int) -> dict[str, Any]:
    """What holds for one device of a pipeline."""
    entry: dict[str, Any] = {
        "overlap": bool(pipeline.overlap[d]),
        "duplex": "full" if pipeline.full_duplex[d] else "half",
        "transfers": "free" if pipeline.free_transfers[d] else "counted",
        "launch": int(pipeline.launch[d]),
    }
    if pipeline.segments[d] != UNBOUNDED:
        entry["segments"] = int(pipeline.segments[d])
    return entry


def _links(problem: Problem) -> list[dict[str, Any]]:
    """One override for each device and each distinct link from it."""
    rows = []
    for a, sender in enumerate(problem.device_names):
        kinds: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for b, receiver in enumerate(problem.device_names):
            if a != b:
                names = ("latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den")
                kinds[tuple(int(getattr(problem, name)[a, b]) for name in names)].append(receiver)
        for (latency, ticks, ticks_den, energy, energy_den), receivers in kinds.items():
            link: dict[str, Any] = {"from": [sender], "to": receivers}
            if latency:
                link["latency"] = latency
            if ticks:
                link["bandwidth"] = decimal(Fraction(ticks_den, ticks))
            if energy:
                link["energy"] = f"{decimal(Fraction(energy, energy_den))} nJ/B"
            if len(link) > 2:
                rows.append(link)
    return rows


def _tasks(problem: Problem) -> dict[str, dict[str, Any]]:
    tasks: dict[str, dict[str, Any]] = {}
    members = np.bincount(problem.group, minlength=problem.n_groups)
    for i, name in enumerate(problem.task_names):
        entry = task_entry(problem, i)
        if not any(entry["memory"].values()):
            del entry["memory"]
        if members[problem.group[i]] > 1:
            entry["colocate"] = f"group{problem.group[i]}"
        tasks[name] = entry
    for place, (i, j) in enumerate(problem.separation.tolist()):
        for task in (i, j):
            tasks[problem.task_names[task]].setdefault("separate", []).append(f"pair{place}")
    edges = (problem.edge_source, problem.edge_target, problem.payload, problem.shared)
    for source, target, payload, shared in zip(*(array.tolist() for array in edges), strict=True):
        producer = problem.task_names[source]
        tasks[problem.task_names[target]].setdefault("after", {})[producer] = None if shared else payload
        if shared:
            tasks[producer]["output"] = payload
            tasks[producer].setdefault("memory", dict.fromkeys(("resident", "output", "scratch"), 0))
    return tasks
