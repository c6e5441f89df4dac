"""Group links of equal latency and bandwidth into link classes, named after their ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.errors import visible
from placeopt.model.arrays import Bool
from placeopt.model.building import by_first_appearance
from placeopt.model.problem import Problem
from placeopt.model.units import size_text, time_text

_NAMED = 2
"""Pairs of ends in the name of a class; further pairs are counted."""


@dataclass(frozen=True, slots=True)
class LinkClass:
    """Links of equal latency and bandwidth.

    The name is "gpu <-> cpu" for all links between two device types, "all links" if the problem has no others. It
    contains names of devices if the class has only some of the links between two types.
    """

    name: str
    member: Bool  # (m, m) whether the link from the row's device to the column's is one of them
    num: int  # num ticks move den bytes, in lowest terms; 0 for an infinite bandwidth
    den: int
    latency: int  # ticks


def link_classes(problem: Problem) -> tuple[LinkClass, ...]:
    """Return the link classes of a problem, in order of first appearance; no two have the same name."""
    ends = np.argwhere(~np.eye(problem.n_devices, dtype=np.bool_))
    if not len(ends):
        return ()
    source, target = ends.T
    num, den = problem.byte_ticks_num[source, target], problem.byte_ticks_den[source, target]
    common = np.gcd(num, den)
    keys = np.column_stack((problem.latency[source, target], num // common, den // common))
    label = by_first_appearance(np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1))
    found = []
    for number in range(int(label.max()) + 1):
        chosen = label == number
        member = np.zeros((problem.n_devices, problem.n_devices), dtype=np.bool_)
        member[source[chosen], target[chosen]] = True
        latency, ticks, size = keys[np.flatnonzero(chosen)[0]].tolist()
        name = "all links" if chosen.all() else _name(problem, member)
        found.append(LinkClass(name, member, ticks, size, latency))
    return tuple(_with_distinct_names(problem, found))


def _name(problem: Problem, member: Bool) -> str:
    """Return the pairs of types between which all links are of the class, then the other pairs of devices."""
    kinds = list(dict.fromkeys(problem.device_types))
    kind = np.array([kinds.index(name) for name in problem.device_types])
    size = np.bincount(kind)
    every = np.outer(size, size) - np.diag(size)
    inside = np.zeros_like(every)
    np.add.at(inside, (kind[np.nonzero(member)[0]], kind[np.nonzero(member)[1]]), 1)
    whole = (inside == every) & (every > 0)
    rest = member & ~whole[kind][:, kind]
    # A type with one device is that device.
    labels = [name if size[k] > 1 else problem.device_names[int(np.argmax(kind == k))] for k, name in enumerate(kinds)]
    pairs = [*_pairs(whole, labels), *_pairs(rest, problem.device_names)]
    shown = ", ".join(pairs[:_NAMED])
    return shown if len(pairs) <= _NAMED else f"{shown} and {len(pairs) - _NAMED} more"


def _pairs(related: Bool, names: tuple[str, ...] | list[str]) -> list[str]:
    """Return the pairs of ends in a relation as texts, with one text for both directions."""
    texts = []
    for a, b in np.argwhere(related).tolist():
        both = bool(related[b, a])
        if both and b < a:
            continue
        texts.append(f"{visible(names[a], 40)} {'<->' if both else '->'} {visible(names[b], 40)}")
    return texts


def _with_distinct_names(problem: Problem, classes: list[LinkClass]) -> list[LinkClass]:
    """Add bandwidth and latency, and a number if necessary, to names that several classes share."""
    names = [each.name for each in classes]
    for place, each in enumerate(classes):
        if names.count(each.name) > 1:
            rate = f"{size_text(int(each.den / (each.num * float(problem.resolution))))}/s" if each.num else "unlimited"
            classes[place] = replace(each, name=f"{each.name} ({rate}, {time_text(each.latency, problem.resolution)})")
    names = [each.name for each in classes]
    return [
        each
        if names.count(each.name) == 1
        else replace(each, name=f"{each.name} #{names[:place].count(each.name) + 1}")
        for place, each in enumerate(classes)
    ]
