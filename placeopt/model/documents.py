"""Write problems as documents that `placeopt.compile` compiles to the same problem.

Numbers without a unit are ticks, bytes, and bytes per tick, so that they are exact. Rates have enough digits for the
compiler to recover the same ratio. The names of groups, operations and units in the original document are lost, and
relocation is written as start-up times by task and device.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.errors import UsageError, visible
from placeopt.model.objective import UNITS, shared_out
from placeopt.model.pipeline import UNBOUNDED, Pipeline
from placeopt.model.problem import NANO, UNLIMITED, Problem
from placeopt.model.resources import Resources
from placeopt.model.units import exact

DIGITS = 60
"""Significant digits of numbers without an exact decimal."""

_ONE = Fraction(1)
_RECOVERED, _STEEP = 2**60, 2**55
"""The compiler recovers a ratio from these digits if numerator times denominator and the ratio are smaller."""


def exact_document(problem: Problem) -> dict[str, Any]:
    """The problem as a spec document; see `Problem.to_document`."""
    found = next(_losses(problem), None)
    if found is not None:
        raise UsageError(f"a problem file cannot state this problem: {found}")
    return problem_document(problem)


def problem_document(problem: Problem) -> dict[str, Any]:
    """The problem as a spec document, also where that loses something: of parallel edges, only the last is written."""
    return problem_header(problem) | {"tasks": _tasks(problem)}


def _losses(problem: Problem) -> Iterator[str]:
    """What the document of a problem does not state exactly."""
    tasks, runs = [visible(name) for name in problem.task_names], problem.runs_before_next_change
    for key, section in problem.provenance.items():
        try:
            json.dumps(section, allow_nan=False)
        except (TypeError, ValueError) as error:
            yield f"the section {visible(key)} is not plain data ({visible(str(error))})"
    pairs = np.column_stack((problem.edge_source, problem.edge_target))
    for i, j in pairs[1:][(pairs[1:] == pairs[:-1]).all(axis=1)].tolist():
        yield f"several edges lead from {tasks[i]} to {tasks[j]}; expected one"
    if Fraction(decimal(problem.resolution)) != problem.resolution:
        yield f"the resolution of {problem.resolution} s is not a decimal number"
    if not _is_decimal(runs):
        yield f"runs_before_next_change is {runs}, which is not a decimal number"
    for level in shared_out(problem.objective, 1 / runs).levels:
        metrics = [term.metric for term in level]
        for metric, weight in zip(metrics, (term.weight for term in level), strict=True):
            if metrics.count(metric) > 1:
                yield f"a level of the objective contains {metric} twice; expected it once"
            if not _is_decimal(weight):
                yield f"the weight of {metric} is {weight}, which is not a decimal number"
    ratios = [
        ("power of", problem.power_num, problem.power_den, 1 / (NANO * problem.resolution)),
        ("bandwidth from", problem.byte_ticks_den, problem.byte_ticks_num, _ONE),
        ("energy per byte from", problem.byte_energy_num, problem.byte_energy_den, _ONE),
    ]
    if problem.tiers is not None:
        rates = problem.tiers.byte_ticks_den, problem.tiers.byte_ticks_num
        ratios.append(("bandwidth of tiers of", *rates, _ONE))
    for what, num, den, unit in ratios:
        low, high = np.minimum(num, den), np.maximum(num, den)
        for place in np.argwhere((low > 0) & ((low * high >= _RECOVERED) | (high // np.maximum(low, 1) >= _STEEP))):
            stated = Fraction(int(num[tuple(place)]), int(den[tuple(place)])) * unit
            if Fraction(decimal(stated)) != stated:
                device = visible(problem.device_names[place[0]])
                yield f"the {what} {device} is the ratio {stated}, which has more than {DIGITS} digits"
    resources = problem.resources
    for r, unit in enumerate(() if resources is None else resources.unit):
        if resources is not None and not _is_decimal(unit):
            yield f"the unit of {visible(resources.names[r])} is {unit}, which is not a decimal number"
    limited = problem.pipeline is not None and bool((problem.pipeline.segments != UNBOUNDED).any())
    for i in np.flatnonzero(problem.group != problem.group[problem.forward]).tolist() if limited else ():
        forward = tasks[problem.forward[i]]
        yield f"{tasks[i]} is not colocated with its forward task {forward}, though the stages of a device are limited"


def _is_decimal(value: Fraction) -> bool:
    """Whether `number` states the value exactly."""
    return value < 2**1000 and exact(number(value)) == value


def problem_header(problem: Problem) -> dict[str, Any]:
    """The problem's document without its tasks."""
    document: dict[str, Any] = {"placeopt": 1}
    for key in ("name", "description"):
        if getattr(problem, key):
            document[key] = getattr(problem, key)
    document |= problem.provenance
    document["resolution"] = f"{decimal(problem.resolution)} s"
    document["devices"] = {name: _device(problem, d) for d, name in enumerate(problem.device_names)}
    if (resources := problem.resources) is not None:
        for key, of in (("resources", resources.renewable), ("budgets", ~resources.renewable)):
            if of.any():
                places = np.flatnonzero(of).tolist()
                document[key] = {resources.names[r]: resources.stated(r, int(resources.capacity[r])) for r in places}
    document["links"] = {"overrides": _links(problem)}
    if problem.shared_links is not None:
        document["links"]["shared"] = problem.shared_links.documents(problem.device_names)
    runs = problem.runs_before_next_change
    if problem.relocation.any() or runs != 1 or "relocation" in problem.objective.metrics:
        document["current"] = {"runs_before_next_change": number(runs), "migration": 0}
    stated = shared_out(problem.objective, 1 / runs)
    document["objective"] = [{term.metric: number(term.weight) for term in level} for level in stated.levels]
    if problem.limits:
        limits = {metric: number(Fraction(most, UNITS.get(metric, 1))) for metric, most in problem.limits}
        document["limits"] = limits
    if problem.consolidate:
        document["consolidate"] = number(problem.consolidate)
    if problem.pipeline is not None:
        document["pipeline"] = _pipeline(problem.pipeline)
    document["contention"] = problem.contention
    document["memory_model"] = problem.memory_model
    if problem.alignment is not None:
        document["addresses"] = {"alignment": problem.alignment}
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
        "memory": {key: int(problem.buffer_bytes(key)[i]) for key in ("resident", "output", "scratch")},
    }
    for _, base, at, view in () if problem.layout is None else problem.layout.of(i):
        if view:
            entry["view"] = {"of": problem.task_names[base], "at": at}
        else:
            entry.setdefault("in_place", []).append(problem.task_names[base])
    if problem.release[i]:
        entry["release"] = int(problem.release[i])
    if problem.deadline[i] != UNLIMITED:
        entry["deadline"] = int(problem.deadline[i])
    if problem.due[i] != UNLIMITED:
        entry["due"] = {"by": int(problem.due[i]), "weight": int(problem.due_weight[i])}
    priced = np.flatnonzero(problem.price[i])
    if priced.size or (i == 0 and "price" in problem.objective.metrics):  # this objective needs a stated price
        entry["price"] = {problem.device_names[d]: decimal(Fraction(int(problem.price[i, d]), NANO)) for d in priced}
    if problem.relocation[i].any():
        moved = np.flatnonzero(problem.relocation[i])
        entry["migration"] = {"startup": {problem.device_names[d]: int(problem.relocation[i, d]) for d in moved}}
    if problem.forward[i] != i:
        entry["backward_of"] = problem.task_names[problem.forward[i]]
    for rule in problem.stated.values():
        entry |= rule.task_keys(i)
    if problem.resources is not None and (uses := _uses(problem, problem.resources, i)):
        entry["uses"] = uses
    return entry


def _uses(problem: Problem, resources: Resources, i: int) -> dict[str, Any]:
    """What a task uses of each resource, by device unless it is the same on all that may run it."""
    able = np.flatnonzero(problem.feasible[i]).tolist()
    used: dict[int, dict[int, int]] = defaultdict(dict)
    for d in able:
        for r, amount in resources.used(i, d):
            used[r][d] = amount
    found: dict[str, Any] = {}
    for r, amounts in sorted(used.items()):
        same = len(amounts) == len(able) and len(set(amounts.values())) == 1
        by_device = {problem.device_names[d]: resources.stated(r, amount) for d, amount in amounts.items()}
        found[resources.names[r]] = next(iter(by_device.values())) if same else by_device
    return found


def _device(problem: Problem, d: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": problem.device_types[d]}
    first = problem.capacity[d] if problem.tiers is None else problem.tiers.end[d, 0]
    if first != UNLIMITED:
        entry["memory"] = int(first)
    if problem.tiers is not None and (further := problem.tiers.further(d)):
        entry["tiers"] = [_tier(*tier) for tier in further]
    for rule in problem.stated.values():
        entry |= rule.device_keys(d)
    if problem.power_num[d] or "energy" in problem.objective.metrics:
        watts = Fraction(int(problem.power_num[d]), int(problem.power_den[d])) / (NANO * problem.resolution)
        entry["power"] = f"{decimal(watts)} W"
    return entry


def _tier(size: int, num: int, den: int) -> dict[str, Any]:
    """One memory tier beyond the first; num ticks move den bytes."""
    limit = {} if size == UNLIMITED else {"memory": size}
    return {**limit, "bandwidth": decimal(Fraction(den, num))}


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    """What holds for the whole pipeline."""
    keys = ("multicast", "replicas", "in_flight", "microbatches", "recompute")
    return {key: getattr(pipeline, key) for key in keys}


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
