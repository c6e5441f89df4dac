"""Add devices of a type.

A new device is like the *model*, the first device of the largest class of interchangeable devices of the type:

- Durations, memory and power are the model's. A task may run on the new device if it may run on every device of the
  type, so a task that is pinned to one of several devices stays there. If the type has one device, a pin to it cannot
  be distinguished from a restriction to the type; the new device may then run the task.
- Links are the model's. The link between the two is the link from the model to another device of the type, of the same
  class if there is one. If the type has one device, the new link has the largest latency, time per byte and energy per
  byte of that device's links; if the problem has one device, the new link is free.
- Tasks use as much of resources on the new device as on the model, and share them with the other devices. Only the
  cores of a device are its own: the new device has as many.
- Relocating a task to the new device costs as much as to the most expensive device of the type. If the type costs
  nothing, as for a task on its only device, it costs as much as to the most expensive of all devices.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.pipeline import OF_DEVICES
from placeopt.model.problem import Problem
from placeopt.model.resources import CORES, Resources, assembled, free_name

_LINKS = ("latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den")


def more_devices(problem: Problem, members: Int, count: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments of `with_changes` for `count` more devices, and assumptions as sentences.

    `members` are the devices of the type. The new devices come last.
    """
    m = problem.n_devices
    model, peer = _model(problem, members)
    source = np.concatenate((np.arange(m), np.full(count, model)))
    new = np.arange(m, m + count)
    changed: dict[str, Any] = {
        "device_names": (*problem.device_names, *_new_names(problem, members, model, count)),
        "device_types": (*problem.device_types, *[problem.device_types[model]] * count),
        "duration": problem.duration[:, source],
        "feasible": problem.feasible[:, source],
        "capacity": problem.capacity[source],
        "power_num": problem.power_num[source],
        "power_den": problem.power_den[source],
        "price": problem.price[:, source],
        "relocation": problem.relocation[:, source],
        **{name: getattr(problem, name)[np.ix_(source, source)] for name in _LINKS},
    }
    changed |= {name: rule.part(np.arange(problem.n_tasks), source) for name, rule in problem.stated.items()}
    if problem.pipeline is not None:
        rules = problem.pipeline.parts()
        changed["pipeline"] = rules | {name: rules[name][source] for name in OF_DEVICES}
        if (machines := problem.pipeline.machines) is not None:
            size, first = len(machines[model]), 1 + max(map(max, machines))
            own = (tuple(range(at, at + size)) for at in range(first, first + count * size, size))
            changed["pipeline"]["machines"] = (*machines, *own)
    if problem.resources is not None:
        changed["resources"] = _resources(problem, problem.resources, model, source, changed["device_names"])
    changed["feasible"][:, new] = np.all(problem.feasible[:, members], axis=1, keepdims=True)
    of_type, dearest = problem.relocation[:, members].max(axis=1), problem.relocation.max(axis=1)
    changed["relocation"][:, new] = np.where(of_type == 0, dearest, of_type)[:, None]
    notes = _connect(problem, changed, model, peer, new)
    if problem.shared_links is not None and problem.shared_links.member[:, model].any():
        notes += (f"the shared links of {problem.device_names[model]} carry the transfers of further ones, too",)
    if "relocation" in problem.objective.metrics and (dearest > of_type)[of_type == 0].any():
        notes += ("a task that relocates to the type for free pays the price of its dearest device",)
    return changed, notes


def _resources(problem: Problem, given: Resources, model: int, source: Int, device_names: Sequence[str]) -> Resources:
    """Return the resources of the devices `source`, of which those after the first m are copies of the model."""
    m = problem.n_devices
    more = given.part(np.arange(problem.n_tasks), source)
    own = given.cores_of(problem.device_names[model])
    if own is None:
        return more
    shares, places = more.shares(), np.arange(len(source))
    cores = shares[own]
    for d in range(m, len(source)):
        name = free_name(CORES + device_names[d], [share.name for share in shares])
        shares.append(cores._replace(name=name, amount=np.where(places == d, cores.amount, 0)))
    shares[own] = cores._replace(amount=np.where(places < m, cores.amount, 0))
    return assembled(shares, more.parallel, problem.n_tasks)


def _model(problem: Problem, members: Int) -> tuple[int, int | None]:
    """Return the model of the new devices, and another device of its type if there is one."""
    classes = problem.device_class[members].tolist()
    largest = max(dict.fromkeys(classes), key=classes.count)
    alike = [d for d, label in zip(members.tolist(), classes, strict=True) if label == largest]
    others = [d for d in (*alike[1:], *members.tolist()) if d != alike[0]]
    return alike[0], others[0] if others else None


def _connect(problem: Problem, changed: dict[str, Any], model: int, peer: int | None, new: Int) -> tuple[str, ...]:
    """Fill in the links between the model and the new devices; return the assumption, if one is needed."""
    note: tuple[str, ...] = ()
    if peer is None:
        to_peer, note = _slowest(problem, model)
        from_peer = to_peer
    else:
        to_peer, from_peer = _link(problem, model, peer), _link(problem, peer, model)
    for name in _LINKS:
        links = changed[name]
        links[model, new], links[new, model] = to_peer[name], from_peer[name]
        links[np.ix_(new, new)] = to_peer[name]
        links[new, new] = links[model, model]
    return note


def _link(problem: Problem, a: int, b: int) -> dict[str, int]:
    return {name: int(getattr(problem, name)[a, b]) for name in _LINKS}


def _slowest(problem: Problem, device: int) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return a link with the largest latency, time per byte and energy per byte of a device's links; an assumption."""
    name = problem.device_names[device]
    others = [d for d in range(problem.n_devices) if d != device]
    links = [_link(problem, *ends) for d in others for ends in ((device, d), (d, device))]
    if not links:
        free = {key: int(key.endswith("_den")) for key in _LINKS}
        return free, (f"the problem has no links, so the one to {name} is free",)

    def largest(num: str, den: str) -> dict[str, int]:
        worst = max(links, key=lambda link: Fraction(link[num], link[den]))
        return {num: worst[num], den: worst[den]}

    slowest = {"latency": max(link["latency"] for link in links)} | largest(*_LINKS[1:3]) | largest(*_LINKS[3:])
    alike = all(link == slowest for link in links)
    return slowest, () if alike else (f"the link to {name} is as slow as the slowest of {name}",)


def _new_names(problem: Problem, members: Int, model: int, count: int) -> list[str]:
    """Return names like the model's with the next numbers: gpu2 after gpu0 and gpu1, gpu1 after gpu."""
    stem, taken = problem.device_names[model], set(problem.device_names)
    if len(members) > 1:
        stem = stem.rstrip("0123456789") or stem
    elif stem[-1:].isdigit():
        stem = f"{stem}-"
    names = (f"{stem}{number}" for number in itertools.count(len(members)))
    return list(itertools.islice((name for name in names if name not in taken), count))
