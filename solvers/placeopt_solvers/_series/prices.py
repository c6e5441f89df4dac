"""Prices of memory: Lagrangian bounds of paths, where much of a model must leave its best devices.

**Priced blocks.** A class c of k(c) identical devices with memory M(c) each has a price p(c) >= 0, in ticks per byte.
The price is zero if the class can hold all tasks. The priced block problem of an arc minimises its makespan plus
charges: each task i is charged for the class of its device the whole ticks floor(p(c) m(i)) of its bytes m(i). The
first cut is not charged, since it belongs to the block before. Let V be a lower bound of it. The block with free ends
is the priced block problem without devices for its cuts; a lower bound of it is one for all arcs of the block.

**Claim.** For all prices, the least sum of V over the arcs of a path, minus the sum of p(c) k(c) M(c), is a lower bound
of the makespan. Proof. Take a feasible schedule and the arcs of its blocks. The part of the schedule in a block is a
schedule of its block problem (`blocks`), so its length plus its charges are at least V. The lengths add up to the
makespan. Each task is charged in at most one block; a cut is charged in the block that it ends. So the charges of c
are at most p(c) times its bytes, hence at most p(c) k(c) M(c). ∎ Loose tasks are left out. Other constraints do not
matter: they only make V larger.

**Between prices.** The least makespan plus p * bytes of an arc is a concave function of p, a minimum of linear ones,
and it does not decrease. So bounds V(q) and V(r) prove t V(q) + (1 - t) V(r) for all p >= t q + (1 - t) r with t in
[0, 1]. Blocks whose best schedule is the same at two prices are not solved for the prices between.

**Choice of prices.** Known schedules of arcs give an upper bound U(p) of what the claim can prove with p. Prices that
maximise U are the next ones to solve blocks with; these give further schedules of arcs. This is column generation, or
Kelley's method with one model per arc (M. L. Fisher: The Lagrangian relaxation method for solving integer programming
problems, Management Science 27, 1981, doi:10.1287/mnsc.27.1.1). What remains is the duality gap, which is small if the
bytes of each block are a small part of the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from placeopt.model.arrays import Bool, Float, Int, by_index
from placeopt.model.problem import Problem, devices_by_class

from .arcs import NEVER, Arc, Arcs, BlockProblem, EqualByProblem

CHARGE = 1 << 40
"""Largest charge of a task in ticks. A lower charge leaves the bound valid."""

HALVINGS, SWEEPS = 30, 3
"""Halvings of the range of one price, and rounds over all prices."""

Charges = tuple[int, ...]
"""A price for each class that cannot hold all tasks, in ticks for 2**`Prices.shift` bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class PricedPath:
    """A path at some prices: the lower bound that it proves, in ticks, and its arc in each block."""

    bound: int
    arcs: tuple[Arc, ...]


class Prices:
    """Prices of the classes of devices that cannot hold all tasks, for all blocks."""

    def __init__(self, problem: Problem, bounded: Bool, blocks: list[Arcs], known: EqualByProblem) -> None:
        self.blocks, self.known = blocks, known
        members = [each for each in devices_by_class(problem) if bounded[each[0]] and not holds_all(problem, each)]
        self.label = np.full(problem.n_devices, -1, dtype=np.int64)
        for c, each in enumerate(members):
            self.label[each] = c
        self.room = [len(each) * int(problem.capacity[each[0]]) for each in members]
        # A price is rounded by less than a tick for all bytes.
        self.shift = int(problem.memory.sum()).bit_length()
        self.none: Charges = (0,) * len(members)
        ticks = sum(problem.duration.max(axis=1).tolist())
        self.largest: float = 100.0 * ticks / max(int(problem.memory.sum()), 1)

    def charge(self, arcs: Arcs, prices: Charges) -> Int:
        """Return the ticks (n, m) that each task of a block is charged on each device."""
        per_class = [[min(p * held >> self.shift, CHARGE) for p in prices] for held in arcs.memory.tolist()]
        charges = np.array([[*each, 0] for each in per_class], dtype=np.int64).reshape(len(per_class), -1)
        return np.asarray(charges[:, self.label])

    def build(self, k: int, arc: Arc, prices: Charges) -> BlockProblem:
        """Return the block problem of an arc of block k with prices that are not all zero."""
        return self.blocks[k].price(arc, prices, self.charge(self.blocks[k], prices), self.known)

    def memory_ticks(self, prices: Charges) -> int:
        """Return the ticks that all memory costs at these prices, rounded up."""
        return -(-sum(p * room for p, room in zip(prices, self.room, strict=True)) >> self.shift)

    def bound(self, k: int, arc: Arc, prices: Charges) -> int:
        """Return a lower bound in ticks of the makespan and the exact prices of an arc of block k.

        It follows from bounds at all prices, of the arc and of the block with free ends.
        """
        if arc.exact:
            (known,) = arc.known
            return arc.lower + self._cost(known.held, prices)
        if arc.length >= NEVER:
            return NEVER
        return max(self._proved(arc, prices), self._proved(self.blocks[k].free, prices))

    def _proved(self, arc: Arc, prices: Charges) -> int:
        """Return the bound that follows from the block problems of an arc at all prices."""
        points = {self.none: arc.length} | {at: found.lower for at, found in arc.priced.items()}
        pairs = combinations_with_replacement(points.items(), 2)
        return min(max(_between(prices, *a, *b) for a, b in pairs), NEVER)

    def _cost(self, held: Int, prices: Charges) -> int:
        """Return the price of bytes by device, in ticks, rounded down."""
        return int(sum(p * b for p, b in zip(prices, self._held(held).tolist(), strict=True)) >> self.shift)

    def unsolved(self, k: int, arc: Arc, prices: Charges) -> Arc:
        """Return the arc to solve next for an arc of block k: the free one until it had an attempt, then in turns."""
        mine, free = arc.priced.get(prices), self.blocks[k].free
        shared = free.priced.get(prices)
        if shared is None or (not shared.solved and (shared.attempts < 2 or self._less(shared, mine))):
            return free
        return arc

    @staticmethod
    def _less(a: BlockProblem, b: BlockProblem | None) -> bool:
        """Return whether a had less effort than b."""
        return b is not None and a.attempts < b.attempts

    def settled(self, k: int, arc: Arc, prices: Charges) -> bool:
        """Return whether a known schedule of an arc is optimal at these prices, up to the rounding of charges."""
        if arc.exact or (prices in arc.priced and arc.priced[prices].solved):
            return True
        best = min((known.ticks + self._cost(known.held, prices) for known in arc.known), default=NEVER)
        return best - self.bound(k, arc, prices) <= len(self.blocks[k].memory)

    def rates(self, prices: Charges) -> Float:
        """Return prices in ticks per byte."""
        return np.array([p / 2**self.shift for p in prices], dtype=np.float64)

    def _held(self, held: Int) -> Int:
        """Return the bytes of each class."""
        amounts = by_index(np.add, self.label, held, len(self.room) + 1)
        return amounts[:-1]

    def distances(self, prices: Charges) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
        """Return the least bounds of arcs from the start to every class of every cut, and from there to the end."""
        lengths = [[(arc, self.bound(k, arc, prices)) for arc in arcs.arcs] for k, arcs in enumerate(self.blocks)]
        before: list[dict[int, int]] = [{0: 0}]
        for each in lengths:
            reached: dict[int, int] = {}
            for arc, ticks in each:
                if ticks < NEVER and arc.start in before[-1]:
                    reached[arc.end] = min(reached.get(arc.end, NEVER), before[-1][arc.start] + ticks)
            before.append(reached)
        after: list[dict[int, int]] = [{0: 0}]
        for each in reversed(lengths):
            reached = {}
            for arc, ticks in each:
                if ticks < NEVER and arc.end in after[-1]:
                    reached[arc.start] = min(reached.get(arc.start, NEVER), after[-1][arc.end] + ticks)
            after.append(reached)
        return before, after[::-1]

    def path(self, prices: Charges) -> PricedPath | None:
        """Return the path with the least bounds at these prices; None if there is none."""
        after = self.distances(prices)[1]
        if 0 not in after[0]:
            return None
        at, found = 0, []
        for k, arcs in enumerate(self.blocks):
            able = [arc for arc in arcs.arcs if arc.start == at and arc.end in after[k + 1]]
            through = [self.bound(k, arc, prices) + after[k + 1][arc.end] for arc in able]
            arc = able[through.index(min(through))]
            found.append(arc)
            at = arc.end
        return PricedPath(after[0][0] - self.memory_ticks(prices), tuple(found))

    def best(self) -> tuple[Charges, float]:
        """Return prices that maximise what known schedules let the claim prove, each in turn, and this number of ticks.

        It is infinite if no path of known schedules fits into the memory of all devices of each class.
        """
        model = [[(arc, _Columns.of(arc, self)) for arc in arcs.arcs if arc.known] for arcs in self.blocks]
        rates = np.zeros(len(self.room))
        for _ in range(SWEEPS if len(rates) > 1 else 1):
            before = rates.copy()
            for c in range(len(rates)):
                rates[c] = self._best_rate(model, rates, c)
            if (before == rates).all():
                break
        prices = tuple(round(rate * 2**self.shift) for rate in rates.tolist())
        return prices, self._value(model, self.rates(prices))[0]

    def value(self, prices: Charges) -> float:
        """Return the ticks that known schedules let the claim prove at most with these prices."""
        model = [[(arc, _Columns.of(arc, self)) for arc in arcs.arcs if arc.known] for arcs in self.blocks]
        ticks, _ = self._value(model, self.rates(prices))
        return ticks

    def _best_rate(self, model: list[list[tuple[Arc, _Columns]]], rates: Float, c: int) -> float:
        """Return the rate of class c that is best with the other rates, by bisection of the slope's sign."""
        rates = rates.copy()

        def slope(rate: float) -> float:
            rates[c] = rate
            excess: float = self._value(model, rates)[1][c]
            return excess

        if slope(0.0) <= 0:
            return 0.0
        low, high = 0.0, self.largest
        if slope(high) > 0:
            return high
        while slope(high / 8) <= 0 and high > self.largest * 1e-12:
            high /= 8
        low = high / 8
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        return high

    def _value(self, model: list[list[tuple[Arc, _Columns]]], rates: Float) -> tuple[float, Float]:
        """Return the priced ticks of a shortest path of known schedules less `memory_ticks`, and the excess bytes."""
        room = np.array(self.room, dtype=np.float64)
        near: dict[int, tuple[float, Float]] = {0: (0.0, -room)}
        for options in model:
            reached: dict[int, tuple[float, Float]] = {}
            for arc, columns in options:
                if arc.start in near:
                    cost = columns.ticks + columns.held @ rates
                    at = int(cost.argmin())
                    ticks, held = near[arc.start]
                    if arc.end not in reached or ticks + cost[at] < reached[arc.end][0]:
                        reached[arc.end] = ticks + float(cost[at]), held + columns.held[at]
            near = reached
        if 0 not in near:
            return float(NEVER), np.zeros(len(room))
        return near[0][0] - float(room @ rates), near[0][1]


def holds_all(problem: Problem, members: list[int]) -> bool:
    """Return whether the devices of a class have enough memory in total for all tasks that they may run.

    The price of such a class is zero.
    """
    total = sum(problem.memory[problem.feasible[:, members[0]]].tolist())
    return bool(total <= len(members) * int(problem.capacity[members[0]]))


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Ticks (k,) and bytes by class (k, classes) of the known schedules of an arc."""

    ticks: Float
    held: Float

    @classmethod
    def of(cls, arc: Arc, prices: Prices) -> _Columns:
        ticks = np.array([known.ticks for known in arc.known], dtype=np.float64)
        return cls(ticks, np.array([prices._held(known.held) for known in arc.known], dtype=np.float64))


def _between(prices: Charges, q: Charges, at_q: int, r: Charges, at_r: int) -> int:
    """Return the bound at some prices that follows from those at q and r, rounded down; 0 if none follows."""
    low, high = (0, 1), (1, 1)  # of t, as fractions
    for p, a, b in zip(prices, q, r, strict=True):  # t a + (1 - t) b <= p
        room, step = p - b, a - b
        if step > 0 and room * high[1] < high[0] * step:
            high = room, step
        elif step < 0 and -room * low[1] > low[0] * -step:
            low = -room, -step
        elif step == 0 and room < 0:
            return 0
    if high[0] < 0 or low[0] * high[1] > high[0] * low[1]:
        return 0
    num, den = high if at_q >= at_r else low
    return (num * min(at_q, NEVER) + (den - num) * min(at_r, NEVER)) // den
