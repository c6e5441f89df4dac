"""Resources: what tasks share besides devices, such as licences, power, the cores of a device, or a budget.

A renewable resource limits what tasks use at the same time; a budget limits what they use in all. What a task uses may
depend on its device. Memory that several devices share is a budget, and the cores of a device, which runs several tasks
at once, are a renewable resource. A task of no duration uses no renewable resource.

Amounts are integers: multiples of the unit of their resource, the largest with which all stated amounts are whole.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from placeopt.errors import UsageError, counted, suggestion, visible
from placeopt.model.arrays import Bool, Int, flags, freeze, names, whole_numbers
from placeopt.model.rules import Rule
from placeopt.model.units import exact, exact_size, is_number

CORES, POOL = "cores of ", "memory of "
"""How the names of resources that are cores of a device, or memory that devices share, begin."""


@dataclass(frozen=True, slots=True, eq=False)
class Resources(Rule):
    """r resources, and what each of n tasks uses of them on each of m devices.

    Attributes
    ----------
    names
        The resources.
    renewable
        (r,), whether the capacity limits what is in use at one time; it limits a budget over the whole run.
    capacity
        (r,) units.
    unit
        Size of each resource's unit, as 1/100 of a budget with amounts such as 0.02.
    need
        (n, m) the entry that states what the task uses on the device; 0 for nothing, and where not feasible.
    row, resource, amount
        Entry k uses amount[row[k]..row[k + 1]] of resource[row[k]..row[k + 1]], ascending; no amount is 0.
    parallel
        (m,), whether the device runs several tasks at once, as far as resources allow.
    """

    names: tuple[str, ...]
    renewable: Bool
    capacity: Int
    unit: tuple[Fraction, ...]
    need: Int
    row: Int
    resource: Int
    amount: Int
    parallel: Bool

    @property
    def n_entries(self) -> int:
        """Number of different entries, the empty one included."""
        return len(self.row) - 1

    @property
    def budgets(self) -> Int:
        """The resources that are budgets."""
        return np.flatnonzero(~self.renewable)

    def uses(self, entry: int) -> list[tuple[int, int]]:
        """The resources and amounts of an entry."""
        where = slice(self.row[entry], self.row[entry + 1])
        return list(zip(self.resource[where].tolist(), self.amount[where].tolist(), strict=True))

    def used(self, i: int, d: int) -> list[tuple[int, int]]:
        """The resources and amounts that task i uses on device d."""
        return self.uses(int(self.need[i, d]))

    def amounts(self, r: int) -> Int:
        """(n, m) what tasks use of resource r on devices."""
        return self._of_entries(r)[self.need]

    def exclusive(self, devices: Int, feasible: Bool) -> bool:
        """Whether these devices together run one task at a time: one device by itself, modes by a resource."""
        if len(devices) == 1:
            return not self.parallel[devices[0]]
        allowed = feasible[:, devices]
        rooms = zip(self.renewable.tolist(), self.capacity.tolist(), strict=True)
        return any(
            renewable and bool(((self.amounts(r)[:, devices] > room // 2) | ~allowed).all())
            for r, (renewable, room) in enumerate(rooms)
        )

    def placed(self, r: int, device: Int) -> Int:
        """(n,) what each task uses of resource r on its device."""
        return self._of_entries(r)[self.need[np.arange(len(device)), device]]

    def _of_entries(self, r: int) -> Int:
        """What each entry uses of resource r."""
        each = np.zeros(self.n_entries, dtype=np.int64)
        entry = np.repeat(np.arange(self.n_entries), np.diff(self.row))
        of = self.resource == r
        each[entry[of]] = self.amount[of]
        return each

    def cores_of(self, device: str) -> int | None:
        """The resource that is the cores of a device, by the name of the device; None if it has none."""
        found = [r for r, name in enumerate(self.names) if self.renewable[r] and name.rstrip("'") == CORES + device]
        return found[-1] if found else None

    def occupying(self, device: str) -> int | None:
        """The resource that is a device itself, which modes and teams occupy, by its name; None if there is none."""
        named = [r for r, name in enumerate(self.names) if self.renewable[r] and device in (name, name.rstrip("'"))]
        return named[-1] if named and self.cores_of(device) is None else None

    def is_memory(self, r: int) -> bool:
        """Whether a resource is memory that devices share, in bytes."""
        return not self.renewable[r] and self.names[r].startswith(POOL)

    def stated(self, r: int, amount: int) -> int | float:
        """An amount of a resource as a problem file states it."""
        value = amount * self.unit[r]
        return value.numerator if value.denominator == 1 else float(value)

    def text(self, r: int, amount: int) -> str:
        """An amount of a resource for messages."""
        return exact_size(amount) if self.is_memory(r) else f"{self.stated(r, amount):.10g}"

    def kinds(self, field: str) -> tuple[str, ...]:
        """Renewable resources, budgets, and devices that run several tasks at once."""
        found = {"resources": self.renewable, "budgets": ~self.renewable, "parallel": self.parallel}
        return tuple(name for name, some in found.items() if some.any())

    def counts(self) -> dict[str, int]:
        """The numbers of tasks and devices."""
        return dict(zip(("tasks", "devices"), self.need.shape, strict=True))

    def divided(self, unit: int) -> Resources:
        """The same: it contains no times."""
        return self

    def kept(self, device: Int, start: Int, end: Int) -> bool:
        """Whether tasks use no more of any resource than there is."""
        lasting = np.flatnonzero(end > start)
        ticks = np.concatenate((end[lasting], start[lasting]))
        order = np.argsort(ticks, kind="stable")  # what ends at a tick does so before others start
        for r in np.flatnonzero(self.renewable).tolist():
            amount = self.amounts(r)[lasting, device[lasting]]
            if (np.cumsum(np.concatenate((-amount, amount))[order]) > self.capacity[r]).any():
                return False
        return self.within_budgets(device)

    def device_keys(self, d: int) -> dict[str, Any]:
        """Whether a device runs several tasks at once."""
        return {"parallel": True} if self.parallel[d] else {}

    def part(self, tasks: Int, devices: Int) -> Resources:
        """The same for some tasks and devices, by their indices; all resources stay."""
        return self.changed(need=self.need[np.ix_(tasks, devices)], parallel=self.parallel[devices])

    def merged(self, sequence: Int, first: Int) -> Resources:
        """The same for clusters of tasks: those of `sequence` from each entry of `first` on, one after another.

        A cluster uses the most that one of its tasks uses of a renewable resource, and the sum of a budget.
        """
        how = [np.maximum if each else np.add for each in self.renewable]
        parts = [each.reduceat(self.amounts(r)[sequence], first, axis=0) for r, each in enumerate(how)]
        return self.changed(**_encoded(parts, (len(first), len(self.parallel))))

    def changed(self, **arrays: Any) -> Resources:
        """The same with some arrays replaced."""
        return read_only(**{**self.parts(), **arrays})

    def shares(self) -> list[Share]:
        """Each resource and its amounts."""
        parts = zip(self.names, self.renewable.tolist(), self.capacity.tolist(), self.unit, strict=True)
        return [Share(name, kind, limit, self.amounts(r), unit) for r, (name, kind, limit, unit) in enumerate(parts)]

    def fits(self, duration: Int) -> Bool:
        """(n, m), whether each task alone is within the capacities, if it takes `duration` (n, m) ticks on devices."""
        over = self.amount > self.capacity[self.resource]
        lasting = self.renewable[self.resource]
        entry = np.repeat(np.arange(self.n_entries), np.diff(self.row))
        never, running = np.zeros((2, self.n_entries), dtype=np.bool_)
        never[entry[over & ~lasting]] = running[entry[over & lasting]] = True
        return np.asarray(~never[self.need] & ~(running[self.need] & (duration > 0)))

    def within_budgets(self, device: Int) -> bool:
        """Whether a placement (n,) keeps all budgets."""
        return all(int(self.placed(r, device).sum()) <= self.capacity[r] for r in self.budgets)

    def columns(self, d: int) -> tuple[Any, ...]:
        """What a device class depends on besides the column of `need`."""
        return (bool(self.parallel[d]),)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or with primes, one that is not taken."""
    while name in taken:
        name += "'"
    return name


def read_only(**parts: Any) -> Resources:
    """Resources of these fields; the arrays become read-only."""
    freeze(*parts.values())
    return Resources(**parts)


class Share(NamedTuple):
    """One resource, and what n tasks use of it on m devices, in its unit."""

    name: str
    renewable: bool
    capacity: int
    amount: Int
    unit: Fraction = Fraction(1)

    @property
    def is_memory(self) -> bool:
        """Whether the resource is memory that devices share, in bytes."""
        return not self.renewable and self.name.startswith(POOL)

    def text(self, amount: int) -> str:
        """An amount of the resource for messages."""
        return exact_size(amount) if self.is_memory else f"{float(amount * self.unit):.10g}"


def assembled(shares: Sequence[Share], parallel: Bool, n: int) -> Resources:
    """The resources of n tasks: renewable ones first."""
    shares = sorted(shares, key=lambda share: not share.renewable)
    arrays = {
        "renewable": np.array([each.renewable for each in shares], dtype=np.bool_),
        "capacity": np.array([each.capacity for each in shares], dtype=np.int64),
        "parallel": parallel,
        **_encoded([each.amount for each in shares], (n, len(parallel))),
    }
    return read_only(names=tuple(each.name for each in shares), unit=tuple(each.unit for each in shares), **arrays)


def _encoded(amounts: Sequence[Int], shape: tuple[int, int]) -> dict[str, Int]:
    """`need`, `row`, `resource` and `amount` of the amounts (n, m) of each resource."""
    table = np.zeros((1 + math.prod(shape), len(amounts)), dtype=np.int64)  # the first entry is empty
    for r, each in enumerate(amounts):
        table[1:, r] = each.ravel()
    kinds, need = np.unique(table, axis=0, return_inverse=True)
    entry, resource = np.nonzero(kinds)
    row = np.searchsorted(entry, np.arange(len(kinds) + 1))
    return {
        "need": need.ravel()[1:].reshape(shape).astype(np.int64),
        "row": row.astype(np.int64),
        "resource": resource.astype(np.int64),
        "amount": kinds[entry, resource],
    }


Amount = Fraction | float | int
Uses = Mapping[str, Amount | Sequence[Amount]]
"""Amounts by resource: one for all devices, or one for each of m devices."""


def build_resources(
    n: int,
    m: int,
    *,
    renewable: Mapping[str, Amount] | None = None,
    budgets: Mapping[str, Amount] | None = None,
    uses: Mapping[int, Uses] | None = None,
    parallel: Any = None,
    feasible: Any = None,
) -> Resources | None:
    """Build the resources of n tasks and m devices.

        build_resources(2, 1, renewable={"license": 1}, budgets={"error": 0.1}, uses={0: {"license": 1, "error": 0.02}})

    Parameters
    ----------
    renewable, budgets
        Capacities by name.
    uses
        By task, what it uses. A float has its decimal value.
    parallel
        (m,), whether devices run several tasks at once; by default, none does.
    feasible
        (n, m), where uses count; by default, everywhere.

    Returns
    -------
    Resources, or None if there are neither resources nor parallel devices.

    Raises
    ------
    UsageError
        If a name is unknown or there twice, an amount is not a number or is negative, or an array has the wrong shape.
    """
    limits = [*(renewable or {}).items(), *(budgets or {}).items()]
    known = names("resources", [name for name, _ in limits], unique=True)
    place = {name: r for r, name in enumerate(known)}
    several = flags("parallel", parallel, (m,), "devices", default=False)
    counts = flags("feasible", feasible, (n, m), "tasks x devices", default=True)
    if not known and not several.any():
        return None
    capacity = [_amount(f"the capacity of {visible(name)}", value) for name, value in limits]
    table: dict[tuple[int, int], list[Fraction]] = {}
    for i, stated in (uses or {}).items():
        if not 0 <= i < n:
            raise UsageError(f"uses[{i}]: there is no such task; expected 0 to {n - 1}")
        for name, value in stated.items():
            if name not in place:
                raise UsageError(f"uses[{i}]: unknown resource {visible(name)}{suggestion(name, known)}")
            what = f"uses[{i}][{name!r}]"
            each = [value] * m if is_number(value) else list(value)  # type: ignore[arg-type]
            if len(each) != m:
                raise UsageError(f"{what}: has {counted(len(each), 'amount')}; expected {m}, one for each device")
            table[i, place[name]] = [_amount(what, number) for number in each]
    scale = [value.denominator for value in capacity]
    for i, r in table:
        table[i, r] = [
            value if use else Fraction(0) for value, use in zip(table[i, r], counts[i].tolist(), strict=True)
        ]
        scale[r] = math.lcm(scale[r], *(value.denominator for value in table[i, r]))
    found = []
    for r, (name, by, value) in enumerate(zip(known, scale, capacity, strict=True)):
        rows = {i: values for (i, of), values in table.items() if of == r}
        if max([value, *map(max, rows.values())]) * by >= 2**63:
            raise UsageError(f"amounts of {visible(name)} exceed 64 bits; expected fewer digits")
        used = np.zeros((n, m), dtype=np.int64)
        for i, values in rows.items():
            used[i] = [int(each * by) for each in values]
        found.append(Share(name, r < len(renewable or {}), int(value * by), used, Fraction(1, by)))
    return assembled(found, several, n)


def _amount(what: str, value: Any) -> Fraction:
    if not is_number(value) or value < 0:
        raise UsageError(f"{what} is {value!r}; expected a number that is not negative")
    return exact(value)


def only_feasible(resources: Resources, feasible: Bool) -> Resources:
    """The resources without uses where tasks are not `feasible` (n, m)."""
    need = whole_numbers("need", resources.need, feasible.shape, "tasks x devices", most=resources.n_entries - 1)
    return resources.changed(need=np.where(feasible, need, 0)) if need[~feasible].any() else resources
