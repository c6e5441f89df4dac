"""What a model of a pipeline counts: units that share a device, slots that they may run on, items that they send."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from placeopt.model.arrays import Int, by_index
from placeopt.model.problem import Problem, devices_by_class
from placeopt.model.stages import backward, forward_in_training, rules

from .._shared.amounts import Amounts, amounts_of
from .._shared.contraction import Nodes


@dataclass(frozen=True, slots=True)
class Slot:
    """A device; or any device of a class, at a position of the line of stages."""

    label: int  # device class
    device: int  # itself, or the first device of its class
    position: int


@dataclass(frozen=True, slots=True)
class Item:
    """Data that one unit sends to others.

    `ticks` holds the time between any two slots, and `flat` the only one that counts, None if there are several.
    `entering` are the consumers with forward tasks of training, and `payload` is what they keep.
    """

    producer: int
    consumers: tuple[int, ...]
    entering: tuple[int, ...]
    ticks: list[list[int]]
    flat: int | None
    once: bool  # the sender sends it once, regardless of the number of receiving devices
    payload: int


@dataclass(frozen=True, slots=True, eq=False)
class Data(Amounts):
    """The numbers of a model: of units on classes, in units of time."""

    problem: Problem
    line: bool
    """Whether slots have positions: every device has one stage in each direction and is its own machine, and the order
    of backward stages follows from that of the forward stages."""
    opposite: bool
    unit: Int
    """(n,) unit of each task: its colocation group, or the tasks that share a stage in a line."""
    devices: list[list[int]]
    slots: list[Slot]
    positions: int
    time: int
    """Ticks in a unit of time, which divides all ticks."""
    team: list[int]
    """Most devices of a team of each class."""
    budgets: list[tuple[Int, int]]
    """What each unit uses of each budget on each class (u, c), and the capacity."""
    items: list[Item]


def data_of(problem: Problem, nodes: Nodes) -> Data:
    """Return the numbers of a problem; `nodes` are its contracted nodes."""
    pipeline, n = rules(problem), problem.n_tasks
    behind = backward(problem)
    crossing = bool((behind[problem.edge_source] & ~behind[problem.edge_target]).any())
    line = pipeline.contiguous and nodes.complete and not crossing and pipeline.machines is None
    unit = nodes.node if line else problem.group
    u = int(unit.max()) + 1
    devices = devices_by_class(problem)
    leaders = [members[0] for members in devices]
    positions = min(problem.n_devices, u) if line else 1
    if line:
        slots = [Slot(c, leaders[c], p) for p in range(positions) for c in range(len(devices))]
    else:
        slots = [Slot(int(problem.device_class[d]), d, 0) for d in range(problem.n_devices)]

    amounts = amounts_of(problem, unit, nodes.leaders)
    shares = [] if problem.resources is None else [each for each in problem.resources.shares() if not each.renewable]
    budgets = [(by_index(np.add, unit, share.amount[:, leaders], u), share.capacity) for share in shares]
    items = _items(problem, unit, devices, slots)
    team = [min(pipeline.replicas, len(members)) for members in devices]
    times = [amounts["computing"][amounts["allowed"]], pipeline.launch, *(np.array(item.ticks) for item in items)]
    time = math.gcd(*(int(np.gcd.reduce(each, axis=None)) for each in times)) if max(team) == 1 else 1
    time = time or 1
    amounts |= {name: amounts[name] // time for name in ("computing", "again")}
    return Data(
        **amounts,
        problem=problem,
        line=line,
        opposite=nodes.opposite,
        unit=unit,
        devices=devices,
        slots=slots,
        positions=positions,
        time=time,
        team=team,
        budgets=budgets,
        items=[_in_units(item, time) for item in items] if n else [],
    )


def ends(devices: list[list[int]], a: Slot, b: Slot) -> tuple[int, int] | None:
    """Return two devices that stand for the devices of two slots; None if these are never both used."""
    if a.device != b.device:
        return a.device, b.device
    members = devices[a.label]
    return (members[0], members[1]) if len(members) > 1 else None


def _items(problem: Problem, unit: Int, devices: list[list[int]], slots: list[Slot]) -> list[Item]:
    pipeline, trained = rules(problem), forward_in_training(problem)
    source, target = problem.edge_source, problem.edge_target
    groups: dict[tuple[bool, int], list[int]] = defaultdict(list)
    for e in np.flatnonzero(unit[source] != unit[target]).tolist():
        shared = bool(problem.shared[e])
        groups[shared, int(source[e]) if shared else e].append(e)
    pairs = [[ends(devices, a, b) if a is not b else None for b in slots] for a in slots]
    apart = np.array([[pair is not None for pair in row] for row in pairs])
    one, other = np.moveaxis(np.array([[pair or (0, 0) for pair in row] for row in pairs]), 2, 0)
    free = pipeline.free_transfers
    counted = apart & ~(free[one] & free[other])
    found: dict[tuple[int, tuple[int, ...], tuple[int, ...], bool], list[Item]] = defaultdict(list)
    for (shared, _), edges in sorted(groups.items()):
        payload = int(problem.payload[edges[0]])
        ticks = np.where(apart, problem.transfer(payload, one, other), 0)
        seen = np.unique(ticks[counted]).tolist()
        item = Item(
            producer=int(unit[source[edges[0]]]),
            consumers=tuple(sorted({int(unit[target[e]]) for e in edges})),
            entering=tuple(sorted({int(unit[target[e]]) for e in edges if trained[target[e]]})),
            ticks=ticks.tolist(),
            flat=max(seen, default=0) if len(seen) <= 1 else None,
            once=pipeline.multicast and shared,
            payload=payload,
        )
        found[item.producer, item.consumers, item.entering, item.once].append(item)
    return [item for _, alike in sorted(found.items()) for item in _bundled(alike)]


def _bundled(items: list[Item]) -> list[Item]:
    """Add up items with the same ends, unless the slowest transfer of each matters."""
    first = items[0]
    if len(items) == 1 or not (len(first.consumers) == 1 or all(item.flat is not None for item in items)):
        return items
    ticks = [[sum(way) for way in zip(*rows, strict=True)] for rows in zip(*(i.ticks for i in items), strict=True)]
    flat = [item.flat for item in items if item.flat is not None]
    return [
        replace(
            first,
            ticks=ticks,
            flat=sum(flat) if len(flat) == len(items) else None,
            payload=sum(item.payload for item in items),
        )
    ]


def _in_units(item: Item, time: int) -> Item:
    ticks = [[each // time for each in row] for row in item.ticks]
    return replace(item, ticks=ticks, flat=None if item.flat is None else item.flat // time)
