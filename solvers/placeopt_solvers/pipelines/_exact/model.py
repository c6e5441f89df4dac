"""The model of a pipeline: where units run, what each slot computes, sends and receives, its team and its memory.

Indices: units g, h; slots a, b (devices, or classes of devices at positions of the line); items i; teams of r devices.

    sum_a x[g, a] = 1                                      x binary, for each slot on which the unit may run
    x[g, a] + x[h, a] <= 1                                 g and h contain a separated pair
    sum_r t[a, r] >= x[g, a]                               t binary, at most one r: the team of a slot
    sum_(a of a class, r) r t[a, r] <= devices of the class

An item whose ticks are the same everywhere, and that goes to one unit or is sent once, counts

    out[i, a] >= x[g, a] - x[h, a]                         g sends it, for each consumer h
    in[i, b] >= x[h, b] - x[g, b]

Others count the products z[g, h, a, b] = x[g, a] x[h, b], with sum_b z = x[g, a] and sum_a z = x[h, b]: their maximum
over the consumers, and over the receiving devices of an item that is sent once.

Each track of a slot takes the sum of what uses it (`placeopt.model.period`), and P is the period:

    track[a] + ring[a, r] <= r P                           where t[a, r] = 1
    sum_(a of a class) track[a] <= devices of the class P
    sum of one track of each class <= P                    for each position, without teams

If devices occupy machines, the sum of one track over the devices of a machine is at most P, and

    sum_r t[a, r] + sum_r t[b, r] <= 1                     neither a nor b occupies all machines of the other

ring[a, r] is the time in which r devices synchronise the gradients of their tasks, with the two roundings of
`placeopt.model.period.ring_ticks` as whole columns. Where outputs may be computed again, c[a] is binary, and each row
of loads and memory exists twice, under c[a] = 0 and c[a] = 1. `stages` models the stages and the runs kept.

Each variable other than x, t, c and those of stages occurs only on the side where less is better. So rows bound these
on one side only, and the value of a solution is recomputed.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED
from placeopt.model.stages import rules

from ..._runs.linear import Linear, total
from .data import Data, Slot
from .system import Condition, System

NOTHING = Linear()


@dataclass(frozen=True, slots=True)
class Kept:
    """A number of runs for which a slot keeps outputs, and the conditions under which it does."""

    runs: int
    when: tuple[Condition, ...] = ()


class Model:
    """Columns of a placement, and of the time that its devices take."""

    def __init__(self, data: Data, system: System, *, symmetry: bool) -> None:
        self.data, self.system, self.rules = data, system, rules(data.problem)
        self.slots, self.units = data.slots, range(data.count)
        self.x = [
            {a: system.binary() for a, slot in enumerate(data.slots) if data.allowed[g, slot.label]} for g in self.units
        ]
        for row in self.x:
            system.equal(total(row.values()), 1)
        unit = data.unit.tolist()
        for i, j in data.problem.separation.tolist():
            for a in range(len(self.slots)):
                system.at_least(1, self.on(unit[i], a) + self.on(unit[j], a))
        self.teams = [self._team(a, slot) for a, slot in enumerate(self.slots)]
        for c, members in enumerate(data.devices):
            sizes = [self.size(a) for a, slot in enumerate(self.slots) if slot.label == c]
            system.at_least(len(members), total(sizes))
        if symmetry and not data.line:
            self._order_equal_devices()
        for a, b in self.rules.conflicts.tolist():
            system.at_least(1, self.used(a) + self.used(b))
        for amounts, capacity in data.budgets:
            system.at_least(capacity, total(self.held(amounts, a) for a in range(len(self.slots))))
        able = self.rules.recompute and self.rules.runs_kept != 1
        able = able and bool(data.again.any() or data.source.any() or data.kept.any())
        self.again = [system.binary() if able else None for _ in self.slots]
        self._products: dict[tuple[int, int], dict[tuple[int, int], Linear]] = {}
        self.launching = [NOTHING for _ in self.slots]  # in units of time, from the model of stages

    def on(self, g: int, a: int) -> Linear:
        """Return x[g, a]; 0 if the unit may not run there."""
        return self.x[g].get(a, NOTHING)

    def size(self, a: int) -> Linear:
        """Return the number of devices of a slot's team."""
        return total(r * column for r, column in self.teams[a].items())

    def used(self, a: int) -> Linear:
        """Return a literal that is 1 if a slot has units."""
        return total(self.teams[a].values())

    def held(self, amounts: Int, a: int) -> Linear:
        """Return the sum of amounts (u,) or (u, c) over the units of a slot."""
        column = amounts if amounts.ndim == 1 else amounts[:, self.slots[a].label]
        return total(int(amount) * self.on(g, a) for g, amount in enumerate(column.tolist()))

    def _team(self, a: int, slot: Slot) -> dict[int, Linear]:
        """Return t[a, r] by r."""
        team = {r: self.system.binary() for r in range(1, self.data.team[slot.label] + 1)}
        used = total(team.values())
        if len(team) > 1:
            self.system.at_least(1, used)
        for g in self.units:
            self.system.at_least(used, self.on(g, a))
        self.system.at_least(total(self.on(g, a) for g in self.units), used)
        return team

    def _order_equal_devices(self) -> None:
        """Require that the devices of a class are first used in their order."""
        unit = self.data.unit[self.data.problem.order].tolist()
        sequence = list(dict.fromkeys(unit))
        for devices in self.data.devices:
            for before, d in itertools.pairwise(devices):
                earlier: list[Linear] = []
                for g in sequence:
                    self.system.at_least(total(earlier), self.on(g, d))
                    earlier.append(self.on(g, before))

    # Transfers

    def _product(self, g: int, h: int) -> dict[tuple[int, int], Linear]:
        """Return z[g, h, a, b] by (a, b)."""
        if (g, h) not in self._products:
            found = {(a, b): self.system.binary(implied=True) for a in self.x[g] for b in self.x[h]}
            for a, x in self.x[g].items():
                self.system.equal(total(found[a, b] for b in self.x[h]), x)
            for b, x in self.x[h].items():
                self.system.equal(total(found[a, b] for a in self.x[g]), x)
            self._products[g, h] = found
        return self._products[g, h]

    def transfers(self) -> tuple[list[Linear], list[Linear]]:
        """Return the time in which each slot sends, and in which it receives."""
        count = range(len(self.slots))
        free = [bool(self.rules.free_transfers[slot.device]) for slot in self.slots]
        sent: list[list[Linear]] = [[] for _ in count]
        received: list[list[Linear]] = [[] for _ in count]
        for item in self.data.items:
            g = item.producer
            if item.flat is not None and (item.once or len(item.consumers) == 1):
                if item.flat == 0:
                    continue
                for a in count:
                    here = [self.on(h, a) for h in item.consumers]
                    if not free[a]:
                        leaving = (
                            self.system.any_of(self.on(g, a) - x for x in here) if self.on(g, a).terms else NOTHING
                        )
                        sent[a].append(item.flat * leaving)
                        received[a].append(item.flat * self.system.any_of(x - self.on(g, a) for x in here if x.terms))
                continue
            ways = [self._product(g, h) for h in item.consumers]
            longest = [
                self.system.column(0, max(item.ticks[a]), implied=True) if item.once and not free[a] else None
                for a in count
            ]
            for a, b in sorted({pair for way in ways for pair in way}):
                ticks = item.ticks[a][b]
                if a == b or ticks == 0 or (free[a] and free[b]):
                    continue
                used = [way[a, b] for way in ways if (a, b) in way]
                moving = used[0] if len(used) == 1 else self.system.any_of(used)
                if not free[b]:
                    received[b].append(ticks * moving)
                slowest = longest[a]
                if slowest is not None:
                    self.system.at_least(slowest, ticks * moving)
                elif not free[a]:
                    sent[a].append(ticks * moving)
            for a, slowest in enumerate(longest):
                if slowest is not None:
                    sent[a].append(slowest)
        return [total(each) for each in sent], [total(each) for each in received]

    # Loads

    def rings(self, a: int) -> dict[int, Linear]:
        """Return the time in which a team of each size synchronises gradients."""
        slot, problem = self.slots[a], self.data.problem
        amount = self.held(self.data.gradient, a)
        if len(self.teams[a]) == 1 or not amount.terms or self.rules.free_transfers[slot.device]:
            return dict.fromkeys(self.teams[a], NOTHING)
        first, second = self.data.devices[slot.label][:2]
        latency, num, den = (
            int(table[first, second]) for table in (problem.latency, problem.byte_ticks_num, problem.byte_ticks_den)
        )
        some = self.system.any_of(self.on(g, a) for g in self.units if self.data.gradient[g])
        found = {1: NOTHING}
        for r in list(self.teams[a])[1:]:
            most = -(-2 * (r - 1) * self.system.most(amount) // r)
            moved = self.system.column(0, most)
            self.system.at_least(r * moved, 2 * (r - 1) * amount)
            ticks = self.system.column(0, -(-most * num // den))
            self.system.at_least(den * ticks, num * moved)
            found[r] = ticks + latency * some
        return found

    def tracks(self, a: int, sent: Linear, received: Linear, more: Linear, ring: Linear) -> list[Linear]:
        """Return the time of each track of a slot; `more` is computed, too."""
        d = self.slots[a].device
        busy = total((self.held(self.data.computing, a), self.launching[a], more))
        moving = [sent, received] if self.rules.full_duplex[d] else [sent + received]
        if self.rules.overlap[d]:
            return [busy, *(each + ring for each in moving)]
        return [total((busy, each, ring)) for each in moving]

    def require_period(self, least: int, most: int | None) -> Linear:
        """Add the period, in units of time, and the rows of all loads.

        `least` is a lower bound of the period, and `most` the largest that is wanted, both in ticks.
        """
        data, system = self.data, self.system
        sent, received = self.transfers()
        plain = [self.tracks(a, sent[a], received[a], NOTHING, NOTHING) for a in range(len(self.slots))]
        rings = [self.rings(a) for a in range(len(self.slots))]
        redone = [NOTHING if c is None else self.held(data.again, a) for a, c in enumerate(self.again)]
        loads = {
            (a, r, c): self.tracks(a, sent[a], received[a], redone[a] if c else NOTHING, rings[a][r])
            for a in range(len(self.slots))
            for r in self.teams[a]
            for c in ((0, 1) if self.again[a] is not None else (0,))
        }
        occupied = [] if self.rules.machines is None else [np.flatnonzero(on).tolist() for on in self.rules.occupied.T]
        shared = [total(parts) for slots in occupied for parts in zip(*(plain[a] for a in slots), strict=True)]
        single = (each for tracks in loads.values() for each in tracks)
        highest = max((system.most(each) for each in (*single, *shared)), default=0)
        if most is not None:
            highest = min(highest, most // data.time)
            # A column with more than that cannot be 1, so that less shows the same, in smaller numbers.
            limit = max(data.team) * highest + 1
            plain = [[clipped(each, limit) for each in tracks] for tracks in plain]
            loads = {key: [clipped(each, limit) for each in tracks] for key, tracks in loads.items()}
            shared = [clipped(each, limit) for each in shared]
        period = system.column(-(-least // data.time), highest, implied=True)
        for (a, r, c), tracks in loads.items():
            again = self.again[a]
            when: list[Condition] = [(self.teams[a][r], 1)] if len(self.teams[a]) > 1 else []
            if again is not None and c:
                when.append((again, 1))
            for each in tracks:
                system.at_least(r * period, each, when)
        by_place: dict[tuple[int, int], list[list[Linear]]] = defaultdict(list)
        for a, slot in enumerate(self.slots):
            for each in plain[a]:
                system.at_least(self.data.team[slot.label] * period, each)
            alone = max(data.team) == 1
            by_place[slot.position if alone else -1, -1 if data.line and alone else slot.label].append(plain[a])
        for each in shared:
            system.at_least(period, each)
        if data.line or max(data.team) > 1:
            for (position, label), tracked in by_place.items():
                several = 1 if position >= 0 else len(data.devices[label])
                for k in range(max(map(len, tracked))):
                    system.at_least(several * period, total(each[min(k, len(each) - 1)] for each in tracked))
        return period

    # Memory

    def require_memory(self, kept: list[list[Kept]]) -> None:
        """Add the rows of memory; `kept` holds, for each slot, the runs that it may have to keep."""
        data, system = self.data, self.system
        for a, slot in enumerate(self.slots):
            capacity = int(data.problem.capacity[slot.device])
            if capacity == UNLIMITED:
                continue
            fixed, outputs, sources = (self.held(each, a) for each in (data.fixed, data.kept, data.source))
            again = self.again[a]
            entering = NOTHING if again is None else self._entering(a)
            system.at_least(capacity, fixed)
            for each in kept[a]:
                plain = each.when if again is None else (*each.when, (again, 0))
                system.at_least(capacity, fixed + (each.runs - 1) * outputs, plain)
                if again is not None:
                    stored = total((fixed, each.runs * entering, (each.runs - 1) * sources))
                    system.at_least(capacity, stored, (*each.when, (again, 1)))

    def _entering(self, a: int) -> Linear:
        """Return the bytes that a slot receives for its forward tasks of training."""
        parts = []
        for item in self.data.items:
            here = [self.on(h, a) for h in item.entering if self.on(h, a).terms]
            if here and item.payload:
                parts.append(item.payload * self.system.any_of(x - self.on(item.producer, a) for x in here))
        return total(parts)

    def overflows(self, a: int) -> bool:
        """Return whether the runs kept may matter on a slot."""
        slot, data = self.slots[a], self.data
        able = data.allowed[:, slot.label]
        most = int(data.fixed[able].sum()) + len(self.slots) * int(data.kept[able].sum())
        entering = sum(item.payload for item in data.items) if self.again[a] is not None else 0
        return most + len(self.slots) * entering > int(data.problem.capacity[slot.device])


def clipped(track: Linear, most: int) -> Linear:
    """Return an expression whose coefficients are at most a value."""
    return Linear({c: min(a, most) for c, a in track.terms.items()}, track.constant)


def chosen(values: list[int], expression: Linear) -> int:
    """Return the value of an expression in a solution."""
    return expression.constant + sum(a * values[c] for c, a in expression.terms.items())


def leaders(model: Model, values: list[int], home: list[int]) -> tuple[Int, Int, Int]:
    """Return the device of each slot's team that leads it, and (m,) leaders and recomputation.

    `home` (u,) is the slot of each unit. In a line, teams take the devices of their class in the order of positions.
    """
    data = model.data
    m = data.problem.n_devices
    used = sorted(set(home))
    leads = np.full(len(model.slots), -1, dtype=np.int64)
    leader, again = np.arange(m), np.zeros(m, dtype=np.int64)
    idle = [list(members) for members in data.devices]
    for a in used:
        slot = model.slots[a]
        leads[a] = idle[slot.label][0] if data.line else slot.device
        idle[slot.label].remove(int(leads[a]))
    for a in used:
        slot, column = model.slots[a], model.again[a]
        for _ in range(chosen(values, model.size(a)) - 1):
            leader[idle[slot.label].pop(0)] = leads[a]
        again[leads[a]] = 0 if column is None else chosen(values, column)
    return leads, leader, again
