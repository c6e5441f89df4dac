"""A claim and the model that it is about: the devices, prices and numbers that it states, and the sums they choose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from placeopt.errors import CertificateError, visible
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.verifier.certificates.model import Model, Table, horizon, model_of
from placeopt.verifier.certificates.windows import Windows, windows_of

Claim = dict[str, Any]

BITS = 1000
"""Size of numbers in a certificate at most."""

ROUNDS = 4
"""Rounds in which deadlines exclude classes, at most."""


@dataclass(frozen=True)
class Scene:
    """A model with its windows, which are computed once."""

    model: Model

    @cached_property
    def windows(self) -> Windows:
        """Heads and tails."""
        return windows_of(self.model)

    @cached_property
    def longest(self) -> int:
        """No task can end and be followed by its tail before the makespan."""
        model, found = self.model, self.windows
        return max((found.least(found.through(model.duration, i), i) for i in range(model.n)), default=0)


def timely(problem: Problem) -> tuple[Scene, int]:
    """The problem with its deadlines as tails, and a tick T by which some schedule ends if any is feasible.

    So a claim that the makespan exceeds T proves that no schedule is feasible. T counts no ticks in which devices swap,
    and neither do claims (`swapping`).
    """
    model = model_of(problem)
    end = horizon(model)
    return within(replace(model, begins=False), end), end


def within(model: Model, end: int) -> Scene:
    """A model that begins at tick 0 with its deadlines as tails, for schedules that end by a tick.

    A deadline before it is met if end - deadline ticks remain at the end of the task. Classes on which a task cannot
    end in time with its tail are left out, in some rounds.
    """
    deadlines = (int(model.problem.deadline[task]) for task in model.tasks)
    late = [0 if deadline == UNLIMITED else max(end - deadline, 0) for deadline in deadlines]
    scene = Scene(replace(model, after=late))
    for _ in range(ROUNDS if any(late) else 0):
        model, found = scene.model, scene.windows
        feasible = [
            [may and ticks <= end for may, ticks in zip(row, found.through(model.duration, i), strict=True)]
            for i, row in enumerate(found.allowed)
        ]
        if feasible == model.allowed or not model.possible:
            break
        scene = Scene(replace(model, feasible=feasible))
    return scene


def whole(value: object, where: str) -> int:
    """A number of a certificate that is whole and not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value.bit_length() > BITS:
        raise CertificateError(f"{where} is {shown(value)}; expected a whole number, 0 or more, of at most {BITS} bits")
    return value


def shown(value: object) -> str:
    """A part of a certificate for a message, shortened."""
    return visible(f"{value!r}") if not isinstance(value, int) or value.bit_length() <= BITS else "too large"


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by class, for a unit of work and for 2^shift bytes."""

    work: list[int]
    memory: list[int]
    shift: int


@dataclass(frozen=True)
class Said:
    """A claim about a scene, and where it is in the certificate."""

    scene: Scene
    claim: Claim
    where: str

    @property
    def model(self) -> Model:
        """The model of the scene."""
        return self.scene.model

    def number(self, key: str, default: int | None = None) -> int:
        """A number of the claim."""
        return whole(self.claim.get(key, default), f"{self.where}.{key}")

    def task(self, name: object) -> int:
        """The task of a name."""
        found = self.model.named.get(name) if isinstance(name, str) else None
        if found is None:
            raise CertificateError(f"{self.where}: {shown(name)} is not a task of the problem or block")
        return found

    def path(self, key: str) -> list[int]:
        """Different tasks of which each has an edge to the next one."""
        names = self.claim.get(key)
        tasks = [self.task(name) for name in names] if isinstance(names, list) else []
        if not tasks or len(set(tasks)) < len(tasks):
            raise CertificateError(f"{self.where}.{key}: expected a path of different tasks")
        for u, v in pairwise(tasks):
            if not any(edge.target == v for edge in self.model.outs[u]):
                raise CertificateError(f"{self.where}.{key}: two consecutive tasks have no edge")
        return tasks

    @cached_property
    def devices(self) -> list[bool]:
        """By class, whether the claim is about it; all classes if it names none."""
        named, place = self.claim.get("devices"), self.model.devices.named
        if named is None:
            return [True] * self.model.k
        if (
            not isinstance(named, list)
            or not named
            or not all(isinstance(name, str) and name in place for name in named)
        ):
            raise CertificateError(f"{self.where}.devices is {named!r}; expected names of devices of the problem")
        classes = {place[name] for name in named}
        return [c in classes for c in range(self.model.k)]

    @property
    def places(self) -> int:
        """The number of these devices."""
        return sum(size for size, inside in zip(self.model.devices.size, self.devices, strict=True) if inside)

    def prices(self) -> Prices:
        """The prices of the claim; those of devices that it is not about are 0."""
        found = []
        for key in ("prices", "memory"):
            stated, at, row = self.claim.get(key, {}), f"{self.where}.{key}", [0] * self.model.k
            if not isinstance(stated, dict):
                raise CertificateError(f"{at} is {stated!r}; expected a price for each device")
            for name, price in stated.items():
                c = self.model.devices.named.get(name)
                if c is None:
                    raise CertificateError(f"{at}: the problem has no device {name!r}")
                row[c] = whole(price, f"{at}.{name}") if self.devices[c] else 0
            found.append(row)
        if any(price and room is None for price, room in zip(found[1], self.model.devices.capacity, strict=True)):
            raise CertificateError(f"{self.where}.memory: a device without a limit of memory has a price")
        return Prices(found[0], found[1], self.number("shift", 0))

    def groups(self) -> list[int]:
        """The groups that only these devices may run."""
        return [
            g
            for g, row in enumerate(self.model.fits)
            if all(d for d, may in zip(self.devices, row, strict=True) if may)
        ]

    def confined(self, near: int = 0, far: int = 0) -> list[int]:
        """The tasks that only these devices may run, with at least this head and tail."""
        tasks = [i for g in self.groups() for i in self.model.members[g]]
        if near == far == 0:
            return tasks
        found = self.scene.windows
        return [i for i in tasks if found.least(found.head[i], i) >= near and found.least(found.tail[i], i) >= far]

    def cheapest(self, amount: Table, tasks: Iterable[int], prices: Prices) -> int:
        """The least cost of tasks, those of one group on one class, less that of all memory; at these prices."""
        model, total = self.model, dict[int, list[int]]()
        for i in tasks:
            row = total.setdefault(model.group[i], [0] * (model.k + 1))
            for c, each in enumerate((*amount[i], model.memory[i])):
                row[c] += each
        cost = 0
        for g, row in total.items():
            held, classes = row[-1] >> prices.shift, [c for c in range(model.k) if self.devices[c] and model.fits[g][c]]
            cost += min(prices.work[c] * row[c] + prices.memory[c] * held for c in classes)
        rooms = zip(prices.memory, model.devices.size, model.devices.capacity, strict=True)
        return cost - sum(price * size * ((room or 0) >> prices.shift) for price, size, room in rooms)

    def shared(self, amount: Table, tasks: Iterable[int]) -> int:
        """The least time in which these devices do the work of tasks, divided ideally at the claim's prices."""
        prices = self.prices()
        scale = sum(price * size for price, size in zip(prices.work, self.model.devices.size, strict=True))
        if scale == 0:
            raise CertificateError(f"{self.where}.prices: no device has a price")
        return max(-(-self.cheapest(amount, tasks, prices) // scale), 0)

    def least_cost(self, amount: Table) -> int:
        """The least sum of an amount over the groups, at the claim's prices of memory."""
        scale, prices = self.number("scale", 1), self.prices()
        if scale == 0:
            raise CertificateError(f"{self.where}.scale is 0; expected 1 or more")
        prices = Prices([scale] * self.model.k, prices.memory, prices.shift)
        return max(-(-self.cheapest(amount, self.confined(), prices) // scale), 0)

    def budget(self, name: object) -> tuple[Table, int]:
        """What tasks use of a budget by class, and how much there is."""
        resources = self.model.problem.resources
        r = resources.names.index(name) if resources is not None and name in resources.names else -1
        if resources is None or r < 0 or resources.renewable[r]:
            raise CertificateError(f"{self.where}: {shown(name)} is not a budget of the problem")
        return self.model.table(resources.amounts(r)), int(resources.capacity[r])
