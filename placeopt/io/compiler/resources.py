"""Resources: licences, power, budgets, the cores of devices, and memory that devices share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.errors import UsageError, listing
from placeopt.io.compiler.checks import TaskMemory
from placeopt.io.compiler.modes import Modes
from placeopt.io.compiler.tasks import Parts
from placeopt.io.scalars import Use
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED
from placeopt.model.ranges import LARGEST
from placeopt.model.resources import CORES, POOL, Resources, Share, assembled, build_resources, free_name


def shared_resources(
    parts: Parts,
    modes: Modes | None,
    memory: TaskMemory,
    of_modes: TaskMemory | None,
    capacity: Int,
    duration: Int,
    feasible: Bool,
    kept: Int,
    *,
    limited: bool,
) -> Resources | None:
    """Return the resources of a spec, None if it has none.

    The cores of a device become a renewable resource, and the memory that devices share a budget. With modes, a device
    that they occupy is a renewable resource, its memory (`capacity`, of the devices of the file) a budget, and each
    device one for separated tasks. Devices of pipelines occupy machines instead, and keep the output of each task for
    `kept` (n,) other runs.

    If they are `limited`, `feasible` (n, m) becomes false where a task exceeds one.
    """
    spec, issues, index = parts.spec, parts.issues, parts.index
    for name in spec.budgets.keys() & spec.resources.keys():
        issues.add("is a resource and a budget; expected one of them", ("budgets", name), at_key=True)
    members: list[tuple[int, ...]] = [(d,) for d in range(len(index))] if modes is None else modes.members
    uses = _stated_uses(parts, modes)
    several = [device.spec.parallel or device.spec.cores is not None for device in index.devices]
    parallel = np.array([all(several[d] for d in team) for team in members], dtype=np.bool_)
    section = next((key for key in ("resources", "budgets", "pools") if getattr(spec, key)), "devices")
    held, cores = memory.total[:, None], np.ones((len(feasible), 1), dtype=np.int64)
    for row, name, task in parts.tasks.stating("cores"):
        cores[row] = task.cores or 1
        if task.cores is not None and not any(device.spec.cores for device in index.devices):
            issues.add("no device has cores; state the cores of devices, or leave this out", ("tasks", name, "cores"))
    if modes is not None and of_modes is not None:
        held, cores = modes.memory(memory, of_modes, kept), modes.cores()
    shares = list(_shares(parts, modes, members, several, capacity, held, cores))
    stated = bool(shares or spec.resources or spec.budgets or any(several))
    if _is_pipeline(parts) and (spec.resources or spec.pools or any(several)):
        message = "resources, pools and cores are not supported with the objective period; budgets are"
        issues.add(message, ("devices" if section == "budgets" else section,))
    if len(issues) or not stated:
        return None
    try:
        found = build_resources(
            *feasible.shape, renewable=spec.resources, budgets=spec.budgets, uses=uses, feasible=feasible
        )
    except UsageError as error:
        issues.add(str(error), (section,))
        return None
    everything = [*([] if found is None else found.shares()), *shares]
    everything = [share._replace(amount=np.where(feasible, share.amount, 0)) for share in everything]
    able = feasible.copy()
    for share in everything if limited else ():
        _check_capacity(parts, share, duration, feasible)
    if modes is not None:
        modes.notes = tuple(_unused_modes(modes, everything, able, feasible))
    # Documents state only devices that remain feasible.
    everything = [share._replace(amount=np.where(feasible, share.amount, 0)) for share in everything]
    return assembled(everything, parallel, len(feasible))


def _stated_uses(parts: Parts, modes: Modes | None) -> dict[int, dict[str, Any]]:
    """Return the stated uses of each task: amounts by resource, for each device."""
    found: dict[int, dict[str, Any]] = {}
    home = np.arange(len(parts.index)) if modes is None else modes.home
    known = [*parts.spec.resources, *parts.spec.budgets]
    for row, name, task in parts.tasks.stating("uses"):
        if not task.modes:
            for resource, amounts in _uses(parts, name, task.uses, known):
                found.setdefault(row, {})[resource] = [amounts[d] for d in home]
    for key, variant in {} if modes is None else modes.variants.items():
        assert modes is not None
        for resource, amounts in _uses(parts, key, modes.tasks[key].uses, known):
            of_task = found.setdefault(variant.row, {}).setdefault(resource, [Fraction(0)] * len(home))
            for d in variant.devices:
                of_task[d] = amounts[home[d]]
    return found


def _uses(
    parts: Parts, task: str, uses: dict[str, dict[str, Use]], known: Sequence[str]
) -> Iterator[tuple[str, list[Fraction]]]:
    """Yield each resource that an entry names, and the amounts on the devices of the file."""
    spec, issues = parts.spec, parts.issues
    for resource, amounts in uses.items():
        path = ("tasks", task, "uses", resource)
        if resource in spec.resources or resource in spec.budgets:
            yield resource, by_device(parts, amounts, path)
        elif not (issues.touch("resources") or issues.touch("budgets")):
            issues.unknown("resource", resource, known, path, at_key=True)


def by_device(parts: Parts, amounts: dict[str, Use], path: Path) -> list[Fraction]:
    """Return amounts on the devices of the file; the most specific reference wins, as for durations."""
    found = [(parts.index.levels(word, (*path, word), at_key=True), amount) for word, amount in amounts.items()]
    values = [Fraction(0)] * len(parts.index)
    for level in range(4):
        for levels, amount in found:
            for d in levels[level]:
                values[d] = amount
    return values


def _shares(
    parts: Parts, modes: Modes | None, members: list[tuple[int, ...]], several: list[bool], capacity: Int, held: Int,
    cores: Int,
) -> Iterator[Share]:  # fmt: skip
    """Yield the cores and pools, and the devices that modes occupy; `held` and `cores` are (n, m) or (n, 1)."""
    devices, taken = parts.index.devices, {*parts.spec.resources, *parts.spec.budgets}

    def share(name: str, renewable: bool, capacity: int, amount: Int) -> Share:
        taken.add(free := free_name(name, taken))
        return Share(free, renewable, capacity, amount)

    def inside(places: set[int]) -> Int:
        """(m,) number of members of each device among some devices of the file."""
        return np.array([len(places.intersection(team)) for team in members], dtype=np.int64)

    def within(places: set[int]) -> Int:
        """(n, m) bytes on some devices of the file; more than LARGEST for too many, which `first_excess` reports."""
        number = inside(places)
        each: Int = np.minimum(held, 2 * LARGEST // np.maximum(number, 1))
        return each * number + (0 if modes is None else modes.shards(places))

    for d, device in enumerate(devices):
        if device.spec.cores is not None:
            yield share(CORES + device.name, True, device.spec.cores, cores * inside({d}))
    for name, pool in parts.spec.pools.items():
        path = ("pools", name)
        if parts.spec.memory_model != "sum":
            parts.issues.add(f"{parts.spec.memory_model} is not supported with pools; expected sum", ("memory_model",))
        places = {d for k, word in enumerate(pool.devices) for d in parts.index.find(word, (*path, "devices", k))}
        room = parts.scales.capacity(pool.memory, (*path, "memory"))
        yield share(POOL + name, False, room, within(places))
    for d in [] if modes is None else modes.occupied:
        if devices[d].spec.cores is None and not _is_pipeline(parts):
            most = max(len(parts.tasks), 1) if several[d] else 1  # marks modes of the device; no limit
            yield share(devices[d].name, True, most, np.ones_like(held) * inside({d}))
        if capacity[d] != UNLIMITED:
            yield share(POOL + devices[d].name, False, int(capacity[d]), within({d}))
    if modes is not None:
        labels: dict[str, list[int]] = {}
        for row, _, task in parts.tasks.stating("separate"):
            for label in dict.fromkeys(task.separate):
                labels.setdefault(label, []).append(row)
        yield from separations(labels, [device.name for device in devices], members, len(held), taken)


def separations(
    labels: Mapping[str, Sequence[int]], devices: Sequence[str], members: Sequence[tuple[int, ...]], n: int,
    taken: set[str],
) -> Iterator[Share]:  # fmt: skip
    """Yield budgets that keep tasks with a label apart: one of n tasks on each of `devices`, in any mode or team.

    `members` are the devices that each device of the problem occupies.
    """
    for label, rows in labels.items():
        for d, device in enumerate(devices):
            amount = np.zeros((n, len(members)), dtype=np.int64)
            amount[rows] = [d in team for team in members]
            taken.add(name := free_name(f"separate: {label} on {device}", taken))
            yield Share(name, False, 1, amount)


def _unused_modes(modes: Modes, shares: list[Share], able: Bool, feasible: Bool) -> Iterator[str]:
    """Yield a note about modes that no device can run, as a resource is too small for them."""
    found = []
    for key, variant in modes.variants.items():
        devices = [d for d in variant.devices if able[variant.row, d]]
        if devices and not feasible[variant.row, devices].any():
            found.append((key, variant.row, devices))
    for _, row, devices in found[:1]:
        above = ((share, [u for u in share.amount[row, devices].tolist() if u > share.capacity]) for share in shares)
        share, least = next((share, min(amounts)) for share, amounts in above if amounts)
        which = "the first" if found[1:] else "it"
        yield (
            f"no device can run {listing([key for key, _, _ in found], 4)}: {which} uses at least {share.text(least)}, "
            f"and {share.name} has {share.text(share.capacity)}"
        )


def _is_pipeline(parts: Parts) -> bool:
    return any("period" in level for level in parts.spec.objective)


def _check_capacity(parts: Parts, share: Share, duration: Int, feasible: Bool) -> None:
    """Mark devices on which a task exceeds a capacity as not feasible; report tasks without another one.

    A task of no duration uses no renewable resource.
    """
    able = np.array(feasible)
    feasible &= (share.amount <= share.capacity) | (share.renewable & (duration == 0))
    for row in np.flatnonzero(able.any(axis=1) & ~feasible.any(axis=1)).tolist():
        name, least = list(parts.tasks)[row], int(share.amount[row][able[row]].min())
        needs, has = share.text(least), share.text(share.capacity)
        parts.issues.add(f"the task uses at least {needs}, and {share.name} has {has}", ("tasks", name))
