"""Transfers that no placement avoids, and the devices that memory needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from placeopt.verifier.certificates.model import Model, Rate, charge


def unavoidable(model: Model, rates: list[list[Rate | None]]) -> int:
    """A lower bound of the total amount of all transfers, each charged by the link between its classes.

    An edge is *forced* if no class can hold both its groups. Groups that edges connect and that need j devices have at
    least j - 1 transfers, at least the j - 1 cheapest. For each such component, the larger of the two counts.
    """
    component = _components(model)
    count = max(component, default=-1) + 1
    cuts = [_devices_needed(model, [g for g, at in enumerate(component) if at == each]) - 1 for each in range(count)]
    forced, prices, shared = [0] * count, [list[int]() for _ in range(count)], dict[int, int]()
    known: dict[tuple[Any, ...], int] = {}

    def cheapest(payload: int, left: list[bool], right: list[bool]) -> int:
        key = payload, *left, *right
        if key not in known:
            pairs = [(a, c) for a, may in enumerate(left) for c, can in enumerate(right) if may and can]
            each = {rate for a, c in pairs if (rate := rates[a][c]) is not None}
            known[key] = min((charge(rate, payload) for rate in each), default=0)
        return known[key]

    anywhere = [True] * model.k
    for edge in model.edges:
        g, h = model.group[edge.source], model.group[edge.target]
        if g == h:
            continue
        at = component[g]
        if cuts[at] > 0:
            prices[at].append(cheapest(edge.payload, anywhere, anywhere))
        if not _may_share(model, g, h):
            ticks = cheapest(edge.payload, model.fits[g], model.fits[h])
            if edge.shared:
                shared[edge.source] = max(shared.get(edge.source, 0), ticks)
            else:
                forced[at] += ticks
    for task, ticks in shared.items():
        forced[component[model.group[task]]] += ticks
    return sum(max(forced[at], sum(sorted(prices[at])[: cuts[at]])) for at in range(count))


def _may_share(model: Model, g: int, h: int) -> bool:
    """Whether some class has a device that can hold both groups."""
    held, rooms = model.group_memory[g] + model.group_memory[h], model.devices.capacity
    both = [a and b for a, b in zip(model.fits[g], model.fits[h], strict=True)]
    fits = any(may and (room is None or held <= room) for may, room in zip(both, rooms, strict=True))
    return fits and (g, h) not in model.apart


def _components(model: Model) -> list[int]:
    """The number of the component of each group, by edges between groups."""
    near: list[set[int]] = [set() for _ in model.members]
    for edge in model.edges:
        g, h = model.group[edge.source], model.group[edge.target]
        near[g].add(h)
        near[h].add(g)
    found, count = [-1] * len(near), 0
    for start in range(len(near)):
        if found[start] < 0:
            found[start], pending = count, [start]
            while pending:
                for other in near[pending.pop()]:
                    if found[other] < 0:
                        found[other] = count
                        pending.append(other)
            count += 1
    return found


def _devices_needed(model: Model, groups: list[int]) -> int:
    """The least number of devices of some groups, by common classes and by memory."""
    usable = [c for c in range(model.k) if any(model.fits[g][c] for g in groups)]
    common = any(all(model.fits[g][c] for g in groups) for c in usable)
    held = sum(model.group_memory[g] for g in groups)
    return min(max(1 if common else 2, largest_first(model, usable, held)), len(groups))


def largest_first(model: Model, classes: Iterable[int], held: int) -> int:
    """How many devices of some classes hold these bytes, the largest first."""
    rooms = [
        (room if (room := model.devices.capacity[c]) is not None else held, model.devices.size[c]) for c in classes
    ]
    used = 0
    for room, size in sorted(rooms, reverse=True):
        if held <= 0:
            break
        need = size if room == 0 else min(size, -(-held // room))
        used, held = used + need, held - room * need
    return used
