"""Classes of devices that may be exchanged, and the links between them, as plain integers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from placeopt.errors import CertificateError
from placeopt.model.problem import UNLIMITED, Problem

INFINITE = 1 << 200
"""Ticks that no schedule takes, and bytes that no tasks take: the value of what is impossible, or without a limit."""

Table = list[list[int]]
"""Amounts by task and class."""

Rate = tuple[int, int, int]
"""A fixed amount, and num / den for each byte."""

Rates = list[list[Rate | None]]
"""By two classes, for a device of the first and another one of the second; None if there are no two."""


def cells(of: Callable[..., Any], *tables: Any) -> list[list[Any]]:
    """The table of what a function returns for the cells of some tables."""
    return [[of(*cell) for cell in zip(*rows, strict=True)] for rows in zip(*tables, strict=True)]


def charge(rate: Rate, payload: int) -> int:
    """Amount for a transfer: fixed + ceil(payload * num / den)."""
    fixed, num, den = rate
    return fixed + -(-payload * num // den)


def cheapest(rates: Rates, payload: int, left: Sequence[bool], right: Sequence[bool]) -> int:
    """The least amount for a transfer from a device of some classes to another one of some classes."""
    found = {rate for row, a in zip(rates, left, strict=True) if a for rate, c in zip(row, right, strict=True) if c}
    return min((charge(rate, payload) for rate in found if rate is not None), default=INFINITE)


class Devices:
    """The classes of devices of a problem; each of some devices is a class alone.

    Attributes
    ----------
    class_of, named
        By device, its class: by index, and by name.
    leader, size
        By class, a device of it, by index, and the number of its devices.
    capacity
        By class, bytes of a device; INFINITE without a limit.
    parallel
        By class, whether a device runs several tasks at once.
    pairs, links
        By two classes, a device of the first and another one of the second, and the link between them.
    """

    def __init__(self, problem: Problem, alone: Collection[int] = ()) -> None:
        self.leader, self.class_of, names = list[int](), list[int](), problem.device_names
        found: dict[tuple[int, int | None], int] = {}
        for d, label in enumerate(problem.device_class.tolist()):
            c = found.setdefault((label, d if d in alone else None), len(self.leader))
            if c == len(self.leader):
                self.leader.append(d)
            elif not _alike(problem, self.leader[c], d):
                raise CertificateError(f"devices {names[self.leader[c]]} and {names[d]} are one class, but differ")
            self.class_of.append(c)
        self.size = [self.class_of.count(c) for c in range(len(self.leader))]
        self.named = dict(zip(names, self.class_of, strict=True))
        self.capacity = [INFINITE if room == UNLIMITED else room for room in problem.capacity[self.leader].tolist()]
        resources = problem.resources
        self.parallel = [resources is not None and bool(resources.parallel[d]) for d in self.leader]
        second = {c: d for d, c in enumerate(self.class_of) if d != self.leader[c]}
        leaders = list(enumerate(self.leader))
        self.pairs: list[list[tuple[int, int] | None]] = [
            [(d, e) if a != c else (d, second[c]) if c in second else None for c, e in leaders] for a, d in leaders
        ]
        self.links = self.rates(problem.latency, problem.byte_ticks_num, problem.byte_ticks_den)

    def rates(self, fixed: Any, num: Any, den: Any) -> Rates:
        """Entries of tables (m, m)."""
        return [[pair and (int(fixed[pair]), int(num[pair]), int(den[pair])) for pair in row] for row in self.pairs]


def _alike(p: Problem, a: int, b: int) -> bool:
    """Whether two devices may be exchanged."""
    swapped = np.arange(p.n_devices)
    swapped[[a, b]] = b, a
    lists: list[Any] = [p.feasible, p.duration, p.price, p.relocation, p.capacity, p.power_num, p.power_den]
    lists += [] if p.resources is None else [p.resources.need, p.resources.parallel]
    lists += [] if p.shared_links is None else [p.shared_links.member]
    lists += [] if p.tiers is None else [p.tiers.end.T, p.tiers.byte_ticks_num.T, p.tiers.byte_ticks_den.T]
    tables = p.latency, p.byte_ticks_num, p.byte_ticks_den, p.byte_energy_num, p.byte_energy_den
    return all((each[..., a] == each[..., b]).all() for each in lists) and all(
        (table[a, swapped] == table[b]).all() and (table[swapped, a] == table[:, b]).all() for table in tables
    )
