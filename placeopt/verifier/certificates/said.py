"""A claim and the model that it is about: the devices, prices and numbers that it states, and the sums they choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from placeopt.errors import CertificateError, visible
from placeopt.model.problem import Metric
from placeopt.verifier.certificates.devices import INFINITE, Table, cells
from placeopt.verifier.certificates.model import Model

Claim = dict[str, Any]

Check = Callable[[Model, Metric, object, str], int]
"""What a claim about a metric proves; its place in the certificate is for messages."""

BITS = 1000
"""Size of numbers in a certificate at most."""


def shown(value: object) -> str:
    """A part of a certificate for a message, shortened."""
    try:
        return visible(f"{value!r}")
    except ValueError:  # a number of thousands of digits
        return "too large"


def whole(value: object, where: str, least: int = 0) -> int:
    """A whole number of a certificate."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or value.bit_length() > BITS:
        expected = f"a whole number, {least} or more, of at most {BITS} bits"
        raise CertificateError(f"{where} is {shown(value)}; expected {expected}")
    return value


@dataclass(frozen=True)
class Said:
    """A claim about a model, where it is in the certificate, and the check of claims within it."""

    model: Model
    claim: Claim
    where: str
    check: Check

    def __post_init__(self) -> None:
        if not isinstance(self.claim, dict) or not isinstance(self.claim.get("claim"), str):
            raise CertificateError(f"{self.where}: expected an object with the key `claim`")

    def wrong(self, key: str, expected: str) -> CertificateError:
        """The error about a key of the claim."""
        return CertificateError(f"{self.where}.{key} is {shown(self.claim.get(key))}; expected {expected}")

    def number(self, key: str, default: int | None = None, least: int = 0) -> int:
        """A number of the claim."""
        return whole(self.claim.get(key, default), f"{self.where}.{key}", least)

    def text(self, key: str, most: int, what: str) -> str:
        """A short text of one line."""
        value = self.claim.get(key)
        if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) < most:
            raise self.wrong(key, what)
        return value

    def items(self, key: str) -> list[Any]:
        """A list of the claim."""
        found = self.claim.get(key)
        if not isinstance(found, list):
            raise self.wrong(key, "a list")
        return found

    def places(self, key: str, names: object, known: Mapping[str, int], what: str = "tasks") -> list[int]:
        """What a list of names stands for."""
        if not isinstance(names, list) or not all(isinstance(name, str) and name in known for name in names):
            raise CertificateError(f"{self.where}.{key} is {shown(names)}; expected {what} of the problem or block")
        return [known[name] for name in names]

    def place(self, key: str, known: Mapping[str, int], what: str) -> int:
        """What a name stands for."""
        return self.places(key, [self.claim.get(key)], known, what)[0]

    def tasks(self, key: str) -> list[int]:
        """The tasks of a list."""
        return self.places(key, self.claim.get(key), self.model.named)

    def path(self) -> list[int]:
        """Tasks of which each has an edge to the next one."""
        tasks = self.tasks("path")
        if not tasks or not all(pair in self.model.payload for pair in pairwise(tasks)):
            raise self.wrong("path", "tasks of which each has an edge to the next one")
        return tasks

    @cached_property
    def devices(self) -> list[bool]:
        """By class, whether the claim is about it; all classes if it names none."""
        if "devices" not in self.claim:
            return [True] * self.model.k
        classes = self.places("devices", self.claim["devices"] or None, self.model.devices.named, "devices")
        return [c in classes for c in range(self.model.k)]

    @property
    def rooms(self) -> list[tuple[int, int]]:
        """By class that the claim is about: the number of its devices, and the bytes of each."""
        rows = zip(self.devices, self.model.devices.size, self.model.devices.capacity, strict=True)
        return [(size, room) for inside, size, room in rows if inside]

    @property
    def count(self) -> int:
        """The number of these devices."""
        return sum(size for size, _ in self.rooms)

    def groups(self) -> list[int]:
        """The groups that only these devices may run."""
        rows = [list(zip(self.devices, row, strict=True)) for row in self.model.fits]
        return [g for g, row in enumerate(rows) if not any(may and not inside for inside, may in row)]

    def confined(self, near: int = 0, far: int = 0) -> list[int]:
        """The tasks that only these devices may run, with at least this head and tail."""
        tasks, model = [i for g in self.groups() for i in self.model.members[g]], self.model
        if near == far == 0:
            return tasks
        return [i for i in tasks if model.least(i, model.head) >= near and model.least(i, model.tail) >= far]

    def priced(self, key: str, known: Mapping[str, int], what: str) -> dict[int, int]:
        """The prices that the claim states."""
        stated = self.claim.get(key, {})
        if not isinstance(stated, dict) or not all(name in known for name in stated):
            raise self.wrong(key, f"a price for each {what} that has one")
        return {known[name]: whole(price, f"{self.where}.{key}.{name}") for name, price in stated.items()}

    def prices(self, key: str) -> list[int]:
        """Prices by class; those of devices that the claim is not about are 0."""
        found = self.priced(key, self.model.devices.named, "device")
        return [found.get(c, 0) if inside else 0 for c, inside in enumerate(self.devices)]

    def cheapest(self, amount: Table, tasks: Iterable[int], work: list[int]) -> int:
        """The least cost of tasks, those of one group on one class, less that of all memory.

        `work` are prices of an amount by class. The claim states those of 2^shift bytes.
        """
        model, shift, memory = self.model, self.number("shift", 0), self.prices("memory")
        rooms = list(zip(memory, model.devices.size, model.devices.capacity, strict=True))
        if any(price and room == INFINITE for price, _, room in rooms):
            raise self.wrong("memory", "no price for a device without a limit of memory")
        total: dict[int, list[int]] = {}
        for i in tasks:
            before = total.get(model.group[i], [0] * (model.k + 1))
            total[model.group[i]] = [a + b for a, b in zip(before, (model.memory[i], *amount[i]), strict=True)]
        cost = -sum(price * size * (room >> shift) for price, size, room in rooms)
        for g, (held, *row) in total.items():
            costs = [w * a + price * (held >> shift) for w, a, price in zip(work, row, memory, strict=True)]
            cost += min(costs[c] for c, may in enumerate(model.fits[g]) if may and self.devices[c])
        return cost

    @cached_property
    def budgeted(self) -> tuple[Table, int]:
        """By task and class, the price of what it uses of budgets; and the price of all budgets."""
        model, worth = self.model, 0
        used = [[0] * model.k for _ in range(model.n)]
        for r, price in self.priced("budgets", model.resources(False), "budget").items():
            amounts, room = model.use(r)
            used = cells(lambda a, b, price=price: a + price * b, used, amounts)
            worth += price * room
        return used, worth

    def scale(self, work: list[int]) -> int:
        """The price of a tick of all devices."""
        return sum(price * size for price, size in zip(work, self.model.devices.size, strict=True))

    def shared(self, amount: Table, tasks: Iterable[int]) -> int:
        """The least time in which these devices do the work of tasks, divided ideally at the claim's prices."""
        work = self.prices("prices")
        if self.scale(work) == 0:
            raise self.wrong("prices", "a device with a price")
        return max(-(-self.cheapest(amount, tasks, work) // self.scale(work)), 0)

    def least_cost(self, amount: Table) -> int:
        """The least sum of an amount over the groups, at the claim's prices of memory."""
        scale = self.number("scale", 1, 1)
        return max(-(-self.cheapest(amount, self.confined(), [scale] * self.model.k) // scale), 0)

    def doubled_level(self, room: int) -> int:
        """Twice the level below which an amount counts as 0, at most the capacity."""
        level = room if self.claim.get("half") else 2 * self.number("level", 0)
        if level > room:
            raise self.wrong("level", f"at most half of the largest capacity, {room}")
        return level


def levelled(amount: int, room: int, level: int) -> int:
    """An amount rounded at a level, which is stated twice: amounts that fit together into a room still do.

    Those above room - level count as room, those below the level as 0 (S. P. Fekete and J. Schepers, Mathematical
    Programming 91, 2001).
    """
    return room if 2 * amount > 2 * room - level else 0 if 2 * amount < level else amount


def over_time(model: Model, amounts: Table, room: int, level: int) -> Table:
    """What tasks use of a resource, rounded at a level, times their durations."""
    return cells(lambda amount, p: levelled(amount, room, level) * p, amounts, model.duration)
