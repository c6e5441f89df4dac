"""Worths of groups of which the devices cannot hold enough: the configuration linear program.

For any worths v[i] of the groups and w[j] of the items that may cross borders, let u[c] be the most that

    sum of v[i] over the groups on the device
    + sum of w[j] (number of other devices that item j is sent to - 1 if it is received)

can be for one device of class c within the period T. Every placement divides all groups among the devices, and what is
sent is received, so

    sum of all v <= sum_c size[c] u[c]

and T is refuted if this is false. CP-SAT proves each u[c]: it chooses what is worth most and obeys the rules of
`placeopt.bounding.borders.shares`. Where few items wait for consumers, `placeopt.bounding.borders.frontier` takes a
hundredth of its time. Here, an item counts for its sender as often as it is sent; with `multicast`, and
with one consumer, that is once, and w[j] = 0.

The best worths solve the dual of a linear program that covers all groups by such sets (P. C. Gilmore, R. E. Gomory: A
linear programming approach to the cutting-stock problem, Operations Research 9, 1961, doi:10.1287/opre.9.6.849):

    maximise    sum_i v[i]
    subject to  the worth of each known set of class c is at most x[c]
                sum_c size[c] x[c] = number of devices

Each run adds the sets that it finds. The worths stay close to the best ones so far, at first to those that
`borders` proves, within a box that grows with success (R. E. Marsten, W. W. Hogan, J. W. Blankenship: The boxstep
method for large-scale optimization, Operations Research 23, 1975, doi:10.1287/opre.23.3.389).

If the u[c] of CP-SAT prove nearly enough, each device must hold nearly its u[c]: a device is worth at least the sum of
all v less the most of all other devices. Sets with less do not count afterwards. That is stronger than the linear
program.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.math_opt.python import mathopt
from ortools.sat.python import cp_model

from placeopt import engine
from placeopt.bounding.borders import Borders
from placeopt.bounding.borders.frontier import frontier_of
from placeopt.bounding.engines import cp_sat
from placeopt.bounding.quick.loads import best_price_bound, candidate_prices, weights
from placeopt.model.arrays import Int
from placeopt.protocol import Clock

MOST = 4_000
"""Maximum number of variables of a device."""

TOTAL = 1 << 20
"""Worths are rounded to whole numbers that add up to about this."""

PARTS = 1 << 29
"""Amounts of a device are divided by a power of two, so that they add up to at most this, and rounded down, like their
limits: amounts that add up to at most a limit still do so."""

BOX, GROWTH, DECAY, LEAST_BOX = 0.15, 1.3, 0.85, 0.02
"""Relative distance from the best worths: at first, its factors after a success and a failure, and its minimum."""

WIDEST = 4.0
"""A box from which on all worths are allowed."""

MORE = 0.5
"""Seconds of CP-SAT for a better set after one whose worth shows that worths prove less than the best ones."""

CLOSE = 1e-6
"""Relative gain that is worth another run of CP-SAT."""

Worths = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Set:
    """What a device may hold: (g + x,) whether each group is there, and the balance of each item; amounts by rule."""

    balance: Int
    amounts: tuple[int, ...]


class Configurations:
    """Refutes periods of a pipeline without replicas; the sets and worths that are found serve for further periods."""

    def __init__(self, borders: Borders, workers: int, should_stop: Callable[[], bool]) -> None:
        self._borders, self._workers, self._should_stop = borders, workers, should_stop
        self._size, self._groups = borders.plain.size.tolist(), len(borders.plain.memory)
        self._found: list[list[_Set]] = [[] for _ in self._size]  # by class, also for other periods
        self._best: Worths | None = None  # (g + x,) worths that prove the most, relative to each other
        self._box = BOX

    def refute(self, period: int, seconds: float | None) -> bool:
        """Whether worths that refute a period were found in time."""
        if not self._borders.counted:
            return False
        clock, needed = Clock(seconds), 0.0
        sets = [_Sets(self._borders, c, period, found) for c, found in enumerate(self._found)]
        worths, later, planned, program = self._first(period), self._best, False, _Program(sets, self._size)
        limits, turn = np.full(len(sets), math.inf), clock
        coarse = min(0 if each.frontier is None else each.frontier.total for each in sets)
        total_worth = coarse or TOTAL
        while worths is not None and not clock.over and not self._should_stop():
            whole = np.rint(worths * (total_worth / self._all(worths))).astype(np.int64)
            known = sum(len(each.known) for each in sets)
            begun = clock.elapsed
            most = [
                each.held(whole, turn.remaining, self._should_stop)
                if coarse
                else each.most(whole, limit, turn.remaining, self._workers, self._should_stop)
                for each, limit in zip(sets, limits, strict=True)
            ]
            total, held = int(self._all(whole)), sum(map(operator.mul, self._size, most))
            if total > held:
                self._best = worths
                return True
            proved = sum(self._size) * total / max(held, 1)
            if proved > needed * (1 + CLOSE):
                for each, own in zip(sets, most, strict=True):
                    each.require(whole, 0 if coarse else total - (held - own))
                self._box = min(self._box * GROWTH, 1.0) if needed else self._box
                self._best, needed = worths * (proved / self._all(worths)), proved
            else:
                stale = planned and sum(len(each.known) for each in sets) == known
                if stale and (not coarse or self._box >= 1.0):
                    return False
                # Without new sets, the program is exact in the box: only rounding takes away its gain.
                self._box = min(2 * self._box, 1.0) if stale else max(self._box * DECAY, LEAST_BOX)
            if later is not None:
                # No longer than the first ones took: mostly, they are worse within this period.
                worths, limits, later, turn = later, np.array(most), None, Clock(clock.elapsed - begun)
            else:
                worths, shares = self._next(program)
                limits, planned, turn = shares * (total_worth / needed), True, clock
                if coarse and self._all(self._solved(program, None)[0]) <= sum(self._size):
                    return False  # the known sets already cover all groups
        return False

    def _all(self, worths: NDArray[Any]) -> float:
        """What all groups are worth."""
        return float(worths[: self._groups].sum())

    def _first(self, period: int) -> Worths | None:
        """The worths that `borders` proves, relative to each other; None without any."""
        shares = self._borders.shares(period, 1)
        sharing = self._borders.plain if shares is None else shares.sharing
        prices = max(candidate_prices(sharing), key=lambda each: best_price_bound(sharing, [each]), default=None)
        if prices is None:
            return None
        found = np.zeros(self._borders.variables)
        found[: self._groups] = weights(sharing, prices)
        return found if found.any() else None

    def _next(self, program: _Program) -> tuple[Worths | None, Worths]:
        """The best worths for the known sets, close to the best ones so far, and the most of each class; no worths if
        none are better."""
        assert self._best is not None
        box: float | None = self._box
        while True:
            found = self._solved(program, box)
            if self._all(found[0]) > self._all(self._best) * (1 + CLOSE):
                return found
            if box is None:
                return None, found[1]
            box = 2 * box if box < WIDEST else None

    def _solved(self, program: _Program, box: float | None) -> tuple[Worths, Worths]:
        """The best worths in a box, or any, and the most of each class."""
        assert self._best is not None
        devices = sum(self._size)
        low = np.where(np.arange(len(self._best)) < self._groups, 0.0, -float(devices))
        high = np.full(len(self._best), float(devices))
        if box is not None:
            wide = box * (np.abs(self._best) + devices / self._groups)
            low, high = np.maximum(low, self._best - wide), np.minimum(high, self._best + wide)
        low[self._groups :][~self._borders.linked] = high[self._groups :][~self._borders.linked] = 0.0
        return program.solve(low, high)


class _Program:
    """The linear program over the known sets, solved again after each change."""

    def __init__(self, sets: list[_Sets], size: list[int]) -> None:
        self._sets, model = sets, mathopt.Model()
        groups, items = len(sets[0].chosen), len(sets[0].linked)
        self._worths = [model.add_variable() for _ in range(groups + items)]
        self._most = [model.add_variable(lb=0.0) for _ in sets]
        held = mathopt.LinearSum([each * most for each, most in zip(size, self._most, strict=True)])
        model.add_linear_constraint(held == sum(size))
        model.maximize(mathopt.LinearSum(self._worths[:groups]))
        self._rows: dict[int, mathopt.LinearConstraint] = {}  # by identity of the set
        self._model, self._solver = model, mathopt.IncrementalSolver(model, mathopt.SolverType.GLOP)

    def solve(self, low: Worths, high: Worths) -> tuple[Worths, Worths]:
        """The best worths between `low` and `high` (g + x,), and the most of each class; zeros if the engine fails."""
        for worth, least, most in zip(self._worths, low.tolist(), high.tolist(), strict=True):
            worth.lower_bound, worth.upper_bound = least, most
        known = {id(each): (each, most) for own, most in zip(self._sets, self._most, strict=True) for each in own.known}
        for key in [key for key in self._rows if key not in known]:
            self._model.delete_linear_constraint(self._rows.pop(key))
        for key in [key for key in known if key not in self._rows]:
            each, most = known[key]
            row = self._rows[key] = self._model.add_linear_constraint(ub=0.0)
            row.set_coefficient(most, -1.0)
            for k in np.flatnonzero(each.balance).tolist():
                row.set_coefficient(self._worths[k], float(each.balance[k]))
        result = self._solver.solve()
        if result.termination.reason != mathopt.TerminationReason.OPTIMAL:
            return np.zeros(len(low)), np.zeros(len(self._most))
        return np.clip(result.variable_values(self._worths), low, high), np.array(result.variable_values(self._most))


class _Sets:
    """What a device of class c can hold within a period, as a model of CP-SAT.

    Attributes
    ----------
    known
        Sets that were found.
    chosen
        Variable of each group.
    frontier
        The dynamic program for the same sets, if it is small enough.
    linked
        (x,) whether an item may be sent several times, so that it has a worth.
    """

    def __init__(self, borders: Borders, c: int, period: int, found: list[_Set]) -> None:
        excluded = ~borders.plain.allowed[:, c]
        self._device = borders.device(c, 1, period, excluded, 2)
        self.linked, self._others = borders.linked, int(borders.plain.size.sum()) - 1
        self._model = cp_model.CpModel()
        chosen = [self._model.new_int_var(0, int(not no), "group") for no in excluded.tolist()]
        self._balance: dict[int, Any] = dict(enumerate(chosen))  # without the items that always have 0
        for i, j in self._device.apart.tolist():
            if i < j:
                self._model.add_at_most_one(chosen[i], chosen[j])
        self._moved, self._ticks = [], []
        self._item_ticks = np.zeros(len(self.linked), dtype=np.int64)
        for item, ticks, (first, *others) in self._device.network.crossings():
            moved = (self._several if self.linked[item] else self._one)(chosen, first, others)
            self._moved += moved
            self._ticks += [ticks] * len(moved)
            self._item_ticks[item] = ticks
            if len(moved) == 2:
                self._balance[len(chosen) + item] = moved[0] - moved[1]
        self.chosen = chosen
        for rule in self._device.rules:
            total = int(rule.amount.sum()) + rule.borders * sum(self._ticks) * max(self._others, 1)
            shift = max(total.bit_length() - PARTS.bit_length() + 1, 0)
            terms: list[Any] = [cp_model.LinearExpr.weighted_sum(chosen, (rule.amount >> shift).tolist())]
            if rule.borders:
                terms.append(cp_model.LinearExpr.weighted_sum(self._moved, [each >> shift for each in self._ticks]))
            self._model.add(sum(terms) <= min(rule.limit >> shift, PARTS))
        self._found, self.known = found, [each for each in found if self._holds(each)]
        self.frontier = frontier_of(self._device, self.linked, self._others)

    def _one(self, chosen: list[cp_model.IntVar], first: int, others: list[int]) -> list[cp_model.IntVar]:
        """Whether an item crosses the border."""
        crosses = self._model.new_bool_var("crosses")
        for other in others:
            self._model.add(crosses >= chosen[first] - chosen[other])
            self._model.add(crosses >= chosen[other] - chosen[first])
        return [crosses]

    def _several(self, chosen: list[cp_model.IntVar], first: int, others: list[int]) -> list[cp_model.IntVar]:
        """How often an item is sent, and whether it is received."""
        most = min(self._others, len(others))
        sent, received = self._model.new_int_var(0, most, "sent"), self._model.new_bool_var("received")
        inside = sum(chosen[other] for other in others)
        for other in others:
            self._model.add(sent >= chosen[first] - chosen[other])
            self._model.add(received >= chosen[other] - chosen[first])
        self._model.add(sent <= most * chosen[first])
        self._model.add(sent <= len(others) - inside)
        self._model.add(received <= 1 - chosen[first])
        self._model.add(received <= inside)
        return [sent, received]

    def _holds(self, each: _Set) -> bool:
        """Whether a set, perhaps of another period, is one of these sets."""
        return all(amount <= rule.limit for amount, rule in zip(each.amounts, self._device.rules, strict=True))

    def require(self, worths: Int, least: int) -> None:
        """Leave out all sets that are worth less."""
        if least > 0:
            self._model.add(self._worth(worths) >= least)
            self.known = [each for each in self.known if int(each.balance @ worths) >= least]

    def _learn(self, balance: Int, members: Int, border: int) -> None:
        """Add a set to the known ones."""
        amounts = (int(rule.amount @ members) + rule.borders * border for rule in self._device.rules)
        if not any(np.array_equal(balance, each.balance) for each in self.known):
            self.known.append(_Set(balance, tuple(amounts)))
            self._found.append(self.known[-1])

    def held(self, worths: Int, seconds: float | None, should_stop: Callable[[], bool]) -> int:
        """Return `most`, exactly, by the frontier."""
        assert self.frontier is not None
        try:
            most, found = self.frontier.most(worths, should_stop, seconds)
        except engine.StoppedError:
            return self._all(worths)
        groups, ticks = len(self.chosen), self._item_ticks
        for balance in found:
            border = int(np.abs(balance[groups:]) @ ticks)
            balance[groups:][~self.linked] = 0
            self._learn(balance, balance[:groups], border)
        return most

    def most(
        self, worths: Int, limit: float, seconds: float | None, workers: int, should_stop: Callable[[], bool]
    ) -> int:
        """At least the most that a set is worth; once a set is worth more than `limit`, CP-SAT soon ends. The sets that
        it finds become known."""
        beyond: list[Clock] = []

        def keep(value: Callable[[Any], int]) -> None:
            members = np.array([value(chosen) for chosen in self.chosen])
            balance = np.zeros(len(worths), dtype=np.int64)
            balance[list(self._balance)] = [value(each) for each in self._balance.values()]
            border = sum(ticks * value(moved) for ticks, moved in zip(self._ticks, self._moved, strict=True))
            self._learn(balance, members, border)
            if int(balance @ worths) > limit:
                beyond.append(Clock(MORE))

        def stop() -> bool:
            return should_stop() or (len(beyond) > 0 and beyond[0].over)

        self._model.proto.clear_objective()
        self._model.minimize(-self._worth(worths))
        outcome = cp_sat.run(
            self._model,
            largest=max(PARTS, int(np.abs(worths).sum()) * max(self._others, 1)),
            seconds=seconds,
            seed=0,
            workers=workers,
            should_stop=stop,
            on_solution=keep,
            parameters={"linearization_level": 2},
        )
        if outcome.status == "INFEASIBLE":
            return 0
        if outcome.bound is not None:
            return -outcome.bound
        return self._all(worths)

    def _all(self, worths: Int) -> int:
        """At least what any set is worth."""
        groups = len(self.chosen)
        return int(worths[:groups].sum()) + max(self._others, 1) * int(np.abs(worths[groups:]).sum())

    def _worth(self, worths: Int) -> Any:
        """What a set is worth."""
        return sum(int(worths[k]) * each for k, each in self._balance.items() if worths[k])
