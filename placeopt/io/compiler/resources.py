"""Resources: licences, power, budgets, the cores of devices, and memory that devices share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.io.compiler.checks import TaskMemory
from placeopt.io.compiler.tasks import Parts
from placeopt.io.scalars import Use
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool
from placeopt.model.resources import CORES, POOL, Resources, build_resources, free_name

Amounts = dict[str, Any]


def shared_resources(parts: Parts, memory: TaskMemory, feasible: Bool) -> Resources | None:
    """Return the resources of a spec, None if it has none; `feasible` (n, m) becomes false where a task exceeds one.

    The cores of a device become a renewable resource, and the memory that devices share a budget.
    """
    spec, tasks, index, issues = parts.spec, parts.tasks, parts.index, parts.issues
    renewable, budgets = dict[str, Fraction](spec.resources), dict[str, Fraction](spec.budgets)
    for name in spec.budgets.keys() & spec.resources.keys():
        issues.add("is a resource and a budget; expected one of them", ("budgets", name), at_key=True)
    uses: dict[int, Amounts] = {}
    for row, name, task in tasks.stating("uses"):
        for resource, amounts in task.uses.items():
            path = ("tasks", name, "uses", resource)
            known = [*spec.resources, *spec.budgets]
            if resource not in known:
                if not (issues.touch("resources") or issues.touch("budgets")):
                    issues.unknown("resource", resource, known, path, at_key=True)
                continue
            uses.setdefault(row, {})[resource] = _by_device(parts, amounts, path)
    _cores(parts, renewable, uses)
    _pools(parts, budgets, uses, memory)
    several = [device.spec.parallel or device.spec.cores is not None for device in index.devices]
    stated = next((key for key in ("resources", "budgets", "pools") if getattr(spec, key)), "devices")
    if (renewable or budgets or any(several)) and any("period" in level for level in spec.objective):
        issues.add("resources are not supported with the objective period", (stated,))
    if len(issues):
        return None
    try:
        found = build_resources(
            len(tasks),
            len(index),
            renewable=renewable,
            budgets=budgets,
            uses=uses,
            parallel=several,
            feasible=feasible,
        )
    except UsageError as error:
        issues.add(str(error), (stated,))
        return None
    if found is not None:
        _check_capacities(parts, found, feasible)
    return found


def _by_device(parts: Parts, amounts: dict[str, Use], path: Path) -> list[Fraction]:
    """Return (m,) amounts; the most specific reference wins, as for durations."""
    found = [(parts.index.levels(word, (*path, word), at_key=True), amount) for word, amount in amounts.items()]
    values = [Fraction(0)] * len(parts.index)
    for level in range(4):
        for levels, amount in found:
            for d in levels[level]:
                values[d] = amount
    return values


def _cores(parts: Parts, renewable: dict[str, Fraction], uses: dict[int, Amounts]) -> None:
    """Add the cores of devices as renewable resources."""
    devices, stated = parts.index.devices, {*parts.spec.resources, *parts.spec.budgets}
    places = [d for d, device in enumerate(devices) if device.spec.cores is not None]
    names = {d: free_name(CORES + devices[d].name, stated) for d in places}
    renewable.update({name: Fraction(devices[d].spec.cores or 0) for d, name in names.items()})
    for row, (name, task) in enumerate(parts.tasks.items()):
        if task.cores is not None and not places:
            message = "no device has cores; state the cores of devices, or leave this out"
            parts.issues.add(message, ("tasks", name, "cores"))
        for d in places:
            on_device = [0] * len(devices)
            on_device[d] = task.cores or 1
            uses.setdefault(row, {})[names[d]] = on_device


def _pools(parts: Parts, budgets: dict[str, Fraction], uses: dict[int, Amounts], memory: TaskMemory) -> None:
    """Add the memory that devices share as budgets in bytes."""
    stated = {*parts.spec.resources, *parts.spec.budgets}
    for name, pool in parts.spec.pools.items():
        path = ("pools", name)
        if parts.spec.memory_model != "sum":
            parts.issues.add(f"{parts.spec.memory_model} is not supported with pools; expected sum", ("memory_model",))
        members = {d for k, word in enumerate(pool.devices) for d in parts.index.find(word, (*path, "devices", k))}
        budget = free_name(POOL + name, stated)
        budgets[budget] = Fraction(parts.scales.capacity(pool.memory, (*path, "memory")))
        for row, held in enumerate(memory.total.tolist()):
            if held:
                uses.setdefault(row, {})[budget] = [held if d in members else 0 for d in range(len(parts.index))]


def _check_capacities(parts: Parts, resources: Resources, feasible: Bool) -> None:
    """Mark devices on which a task exceeds a capacity as not feasible; report tasks without another one."""
    able = np.array(feasible)
    for r, capacity in enumerate(resources.capacity.tolist()):
        amounts = resources.amounts(r)
        feasible &= amounts <= capacity
        for row in np.flatnonzero(able.any(axis=1) & ~feasible.any(axis=1)).tolist():
            name = list(parts.tasks)[row]
            least = resources.text(r, int(amounts[row][able[row]].min()))
            limit = f"{resources.names[r]} has {resources.text(r, capacity)}"
            parts.issues.add(f"the task uses at least {least}, and {limit}", ("tasks", name))
        able[~feasible.any(axis=1)] = False
