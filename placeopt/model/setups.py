"""Setup times: what a device needs between tasks of different families, such as loading a model or changing a tool.

Task j of family g starts on device d no earlier than s[d, f, g] ticks after the end of the task before it there, of
family f, and the first task no earlier than s[d, f, g] for the family f that the device is set up for at tick 0. The
setup keeps the device busy, but needs neither the data of the task nor memory. Tasks of no duration need no setup and
change nothing. Tasks without a family count as one further family, to which a change takes no time. All
modes of a device (`placeopt.model.members`) are one device here.

A change must not be faster by way of a task of another family g that lasts p ticks or more:

    s[d, f, h] <= s[d, f, g] + p + s[d, g, h]

Then the rule holds for all pairs of tasks of a device, not only for neighbours, which is how solvers state it. That is
the triangle inequality of the literature, with durations (A. Allahverdi: The third comprehensive survey on scheduling
problems with setup times/costs, European Journal of Operational Research 246, 2015, doi:10.1016/j.ejor.2015.04.004).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from placeopt.errors import UsageError, visible
from placeopt.model.arrays import LARGEST, Bool, Int, by_index, freeze, whole_numbers
from placeopt.model.members import Members
from placeopt.model.rules import Rule

OTHERS = "*"
"""Stands for all families before a task that are not named, for tasks without one, and for the state at tick 0."""

LARGEST_TABLE = 2**24
"""Maximum number of entries of `Setups.ticks`."""

Changes = Mapping[str, int | Mapping[str, int]]
"""Ticks to change to each family: from all others, or by the family before; 0 for families that are not named."""


@dataclass(frozen=True, slots=True, eq=False)
class Setups(Rule):
    """Setup times of n tasks of k families on m devices, in t different tables.

    Attributes
    ----------
    names
        The families that tasks have or devices are set up for at tick 0, sorted.
    family
        (n,) family of each task; k without one.
    initial
        (m,) family that each device is set up for at tick 0; k without one.
    kind
        (m,) table of each device.
    ticks
        (t, k + 1, k + 1) ticks from the row's family to the column's.
    station
        (m,) the device whose tasks decide with those of each device what it is set up for: itself, or that of a mode.
    """

    names: tuple[str, ...]
    family: Int
    initial: Int
    kind: Int
    ticks: Int
    station: Int

    def hashed(self, field: str) -> dict[str, Any]:
        """What the fingerprint of a problem contains of them; stations follow from the rest of the problem."""
        return {name: value for name, value in Rule.hashed(self, field).items() if name != f"{field}_station"}

    def joined(self, members: Members | None) -> Setups:
        """The same, if each device occupies `members`: a mode has the station of its device."""
        if members is None:
            return self
        station = [team[0] if len(team) == 1 else d for d, team in enumerate(members)]
        return replace(self, station=whole_numbers("station", station, (len(self.station),), "devices"))

    def between(self, d: int, i: int, j: int) -> int:
        """Ticks of the setup of device d between the end of task i and the start of task j, if both last."""
        return int(self.ticks[self.kind[d], self.family[i], self.family[j]])

    def before(self, device: Int, start: Int, ticks: Int) -> tuple[Int, Int]:
        """(n,) the task before each on its device, -1 without one, and the ticks of the setup between them.

        For a schedule of tasks that take `ticks` (n,). Only tasks that last count: others have no setup.
        """
        last, needed = np.full(len(device), -1, dtype=np.int64), np.zeros(len(device), dtype=np.int64)
        lasting = np.flatnonzero(ticks)
        station = self.station[device]
        order = lasting[np.lexsort((start[lasting], station[lasting]))]
        follows = np.flatnonzero(np.diff(station[order]) == 0) + 1
        last[order[follows]] = order[follows - 1]
        family = np.where(last < 0, self.initial[device], self.family[last])
        needed[lasting] = self.ticks[self.kind[device], family, self.family][lasting]
        return last, needed

    def first(self, device: Int | int, task: Int | int) -> Int:
        """Ticks of the setup of devices before their first tasks, elementwise."""
        return np.asarray(self.ticks[self.kind[device], self.initial[device], self.family[task]])

    def used(self) -> Bool:
        """(m,), whether changes of the device take time."""
        return np.asarray(np.any(self.ticks, axis=(1, 2))[self.kind])

    def delays(self, feasible: Bool) -> Int:
        """(n,) ticks of the longest setup before each task, on the devices (n, m) that may run it."""
        longest = self.ticks.max(axis=1)[self.kind[None, :], self.family[:, None]]
        return np.asarray(np.where(feasible, longest, 0).max(axis=1, initial=0))

    def label(self, family: int) -> str | None:
        """The name of a family; None for tasks without one."""
        return self.names[family] if family < len(self.names) else None

    def changes(self, d: int) -> dict[str, int | dict[str, int]]:
        """The setup times of a device as `build_setups` takes them, for all families; none if no change takes time."""
        table, found = self.ticks[self.kind[d]], dict[str, int | dict[str, int]]()
        if not table.any():
            return found
        for to, name in enumerate(self.names):
            others, same = int(table[-1, to]), int(table[to, to])
            differ = [f for f in range(len(self.names)) if f != to and table[f, to] != others]
            if differ or same:
                before = {self.names[f]: int(table[f, to]) for f in differ}
                found[name] = {**before, **({name: same} if same else {}), **({OTHERS: others} if others else {})}
            else:
                found[name] = others
        return found

    def divided(self, unit: int) -> Setups:
        """The same in ticks of `unit` ticks, which divides all times."""
        ticks = self.ticks // unit
        ticks.flags.writeable = False
        return replace(self, ticks=ticks)

    def times(self) -> tuple[Int, ...]:
        """Ticks of setups."""
        return (self.ticks,)

    def first_starts(self, device: Int, ticks: Int) -> Int:
        """(n,) ticks of the setup at tick 0, where tasks last."""
        return self.first(device, np.arange(len(device))) * (ticks > 0)

    def kept(self, device: Int, start: Int, end: Int) -> bool:
        """Whether there is time for each setup."""
        last, needed = self.before(device, start, end - start)
        return bool((start >= np.where(last < 0, 0, end[last]) + needed)[needed > 0].all())

    def closed(self, device: Int, start: Int, end: Int) -> tuple[str, Int, Int, Int]:
        """The setups, each right before its task."""
        _, needed = self.before(device, start, end - start)
        tasks = np.flatnonzero(needed)
        return "setup", device[tasks], start[tasks] - needed[tasks], start[tasks]

    def task_keys(self, i: int) -> dict[str, Any]:
        """The family of a task."""
        return {} if (name := self.label(int(self.family[i]))) is None else {"family": name}

    def device_keys(self, d: int) -> dict[str, Any]:
        """The setup times of a device."""
        if not (changes := self.changes(d)):
            return {}
        loaded = self.label(int(self.initial[d]))
        return {"setup": changes} | ({} if loaded is None else {"initial_family": loaded})

    def counts(self) -> dict[str, int]:
        """The numbers of tasks and devices."""
        return {"tasks": len(self.family), "devices": len(self.kind)}

    def part(self, tasks: Int, devices: Int) -> Setups | None:
        """The setups of some tasks and devices, by their indices; None if they have none."""
        family = [self.label(f) for f in self.family[tasks].tolist()]
        changes = {kind: self.changes(d) for d, kind in enumerate(self.kind.tolist())}
        of = [changes[kind] for kind in self.kind[devices].tolist()]
        return build_setups(family, of, [self.label(f) for f in self.initial[devices].tolist()])

    def columns(self, d: int) -> tuple[int, int]:
        """What a device class depends on."""
        return int(self.kind[d]), int(self.initial[d])


class Detour(NamedTuple):
    """A change of device `device` that takes `ticks`, more than by way of a task of family `via`."""

    device: int
    ticks: int
    faster: int
    text: str


def build_setups(
    family: Sequence[str | None], changes: Sequence[Changes], initial: Sequence[str | None] | None = None
) -> Setups | None:
    """Build the setups of n tasks and m devices; the arrays are read-only. None if no change takes time.

        build_setups(["llm", "vision", None], [{"llm": 200, "vision": {"llm": 30, "*": 50}}, {}])

    Parameters
    ----------
    family
        (n,) name of the family of each task; None without one.
    changes
        (m,) ticks to change to each family of which there are tasks: from all other families and the state at tick 0,
        or by the family before, with "*" for all that are not named. Between tasks of a family, 0 unless stated.
    initial
        (m,) family that each device is set up for at tick 0; by default, none.

    Raises
    ------
    UsageError
        If a time is not a whole number or negative, an array has the wrong length, a family is named "*", or the tables
        are too large.
    """
    m = len(changes)
    loaded = [None] * m if initial is None else list(initial)
    if len(loaded) != m:
        raise UsageError(f"initial: {len(loaded)} families; expected {m}, one for each device")
    loaded = [name if of else None for name, of in zip(loaded, changes, strict=True)]
    names = tuple(sorted({name for name in (*family, *loaded) if name is not None}))
    if OTHERS in names:
        raise UsageError(f'a family is named "{OTHERS}", which stands for all others; expected another name')
    place: dict[str | None, int] = {name: k for k, name in enumerate(names)}
    none = place[None] = len(names)
    kinds: dict[bytes, int] = {}
    tables, kind = list[Int](), list[int]()
    for d, of in enumerate(changes):
        table = np.zeros((none + 1, none + 1), dtype=np.int64)
        for name, stated in of.items():
            if (to := place.get(name)) is None:
                continue
            each = stated if isinstance(stated, Mapping) else {OTHERS: stated}
            what = f"changes[{d}][{name!r}]"
            ticks = whole_numbers(what, list(each.values()), (len(each),), "ticks").tolist()
            by = dict(zip(each, ticks, strict=True))
            table[:, to] = by.pop(OTHERS, 0)
            table[to, to] = 0
            for before, value in by.items():
                if before in place:
                    table[place[before], to] = value
        kind.append(kinds.setdefault(table.tobytes(), len(tables)))
        if kind[-1] == len(tables):
            tables.append(table)
            if len(tables) * table.size > LARGEST_TABLE:
                raise UsageError(f"setup times of {none} families: the tables exceed {LARGEST_TABLE} entries")
    if not any(table.any() for table in tables):
        return None
    loaded = [name if tables[k].any() else None for name, k in zip(loaded, kind, strict=True)]
    if {name for name in (*family, *loaded) if name is not None} < set(names):  # one that only idle devices had
        return build_setups(family, changes, loaded)
    arrays = [np.array([place[name] for name in each], dtype=np.int64) for each in (family, loaded)]
    arrays += [np.array(kind, dtype=np.int64), np.stack(tables), np.arange(m)]
    freeze(*arrays)
    return Setups(names, *arrays)


def detour(setups: Setups, duration: Int, feasible: Bool) -> Detour | None:
    """The first change that is faster by way of a task of another family (`placeopt.model.setups`); None if none is.

    O(t k^3) if all tables keep the triangle inequality, otherwise O(m k^3).
    """
    tables = [t for t, table in enumerate(setups.ticks) if _shorter(table, np.zeros(len(table), dtype=np.int64))]
    for d in np.unique(setups.station[np.isin(setups.kind, tables)]).tolist():
        places = np.flatnonzero(setups.station == d)
        lasting, at = np.nonzero(feasible[:, places] & (duration[:, places] > 0))
        families, own = np.unique(setups.family[lasting], return_inverse=True)
        shortest = by_index(np.minimum, own, duration[lasting, places[at]], len(families), LARGEST)
        rows = np.append(families, setups.initial[d])  # the state at tick 0 is only the first
        table = setups.ticks[setups.kind[d]]
        found = _shorter(table[np.ix_(rows, families)], shortest)
        if found is not None:
            f, g, h = (int(rows[at]) for at in found)
            ticks, faster = int(table[f, h]), int(table[f, g] + shortest[found[1]] + table[g, h])
            before = "the state at tick 0" if found[0] == len(families) and f == len(setups.names) else _text(setups, f)
            text = f"a change from {before} to {_text(setups, h)} takes {{}}, by way of {_text(setups, g)} {{}}"
            return Detour(d, ticks, faster, f"{text}; expected that no other task makes it faster")
    return None


def _shorter(table: Int, shortest: Int) -> tuple[int, int, int] | None:
    """Rows and columns f, g, h of table (k or more, k) with f -> h longer than f -> g -> h with a task of g."""
    for g, ticks in enumerate(shortest.tolist()):
        worse = np.argwhere(table > (table[:, g, None] + table[None, g]) + ticks)
        if len(worse):
            return int(worse[0, 0]), g, int(worse[0, 1])
    return None


def _text(setups: Setups, family: int) -> str:
    name = setups.label(family)
    return "tasks without a family" if name is None else visible(name)


def check_setups(setups: Setups, duration: Int, feasible: Bool, device_names: Sequence[str]) -> None:
    """Reject setup times that differ between the modes of a device, or with a change that is faster by way of another
    task.
    """
    table = np.concatenate([setups.ticks[setups.kind].reshape(len(setups.kind), -1), setups.initial[:, None]], axis=1)
    if (unlike := np.flatnonzero((table != table[setups.station]).any(axis=1))).size:
        mode, device = (visible(device_names[d]) for d in (unlike[0], setups.station[unlike[0]]))
        raise UsageError(f"setups of {mode} differ from those of {device}, of which it is a mode; expected the same")
    if (found := detour(setups, duration, feasible)) is not None:
        text = found.text.format(f"{found.ticks} ticks", f"{found.faster} ticks")
        raise UsageError(f"setups of {visible(device_names[found.device])}: {text}")
