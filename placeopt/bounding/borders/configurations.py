"""Worths of groups of which the devices cannot hold enough: the configuration linear program.

For any worths v >= 0 of the groups, let u[c] be the most that the groups of one device of class c are worth within the
period T. Every placement divides all groups among the devices, so

    sum of all v <= sum_c size[c] u[c]

and T is refuted if this is false. CP-SAT proves each u[c]: it chooses the groups that are worth most and obey the rules
of `placeopt.bounding.borders.shares`, with one variable for each group, and one for each item that may cross
the border.

The best worths solve the dual of a linear program that covers all groups by such sets (P. C. Gilmore, R. E. Gomory: A
linear programming approach to the cutting-stock problem, Operations Research 9, 1961, doi:10.1287/opre.9.6.849):

    maximise    sum_i v[i]
    subject to  v(S) <= w[c]               each known set S of class c
                sum_c size[c] w[c] = number of devices

Each run of CP-SAT adds the sets that it finds. The worths stay close to the best ones so far, which at first are those
that `borders` proves, within a box that grows with success (R. E. Marsten, W. W. Hogan, J. W. Blankenship: The boxstep
method for large-scale optimization, Operations Research 23, 1975, doi:10.1287/opre.23.3.389).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.math_opt.python import mathopt
from ortools.sat.python import cp_model

from placeopt.bounding.borders import Borders
from placeopt.bounding.engines import cp_sat
from placeopt.bounding.quick.loads import best_price_bound, candidate_prices, weights
from placeopt.model.arrays import Bool, Int
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


class Configurations:
    """Refutes periods of a pipeline without replicas; the sets and worths that are found serve for further periods."""

    def __init__(self, borders: Borders, workers: int, should_stop: Callable[[], bool]) -> None:
        self._borders, self._workers, self._should_stop = borders, workers, should_stop
        self._size = borders.plain.size.tolist()
        self._found: list[list[Bool]] = [[] for _ in self._size]  # sets by class, also for other periods
        self._best: Worths | None = None  # worths of the groups that prove the most, relative to each other
        self._box = BOX

    def refute(self, period: int, seconds: float | None) -> bool:
        """Whether worths that refute a period were found in time."""
        if not self._borders.counted:
            return False
        clock, needed = Clock(seconds), 0.0
        sets = [_Sets(self._borders, c, period, found) for c, found in enumerate(self._found)]
        worths = self._first(period) if self._best is None else self._best
        shares = None
        while worths is not None and not clock.over and not self._should_stop():
            scale = TOTAL / worths.sum()
            whole = np.rint(worths * scale).astype(np.int64)
            limits = [math.inf for _ in sets] if shares is None else shares * (TOTAL / needed)
            held, known = 0, sum(len(each.known) for each in sets)
            for each, size, limit in zip(sets, self._size, limits, strict=True):
                held += size * each.most(whole, limit, clock.remaining, self._workers, self._should_stop)
            proved = sum(self._size) * int(whole.sum()) / max(held, 1)
            if int(whole.sum()) > held:
                self._best = worths
                return True
            if proved > needed * (1 + CLOSE):
                self._box = min(self._box * GROWTH, 1.0) if needed else self._box
                self._best, needed = worths * (proved / worths.sum()), proved
            else:
                self._box = max(self._box * DECAY, LEAST_BOX)
                if sum(len(each.known) for each in sets) == known:
                    return False
            worths, shares = self._next(sets)
        return False

    def _first(self, period: int) -> Worths | None:
        """The worths that `borders` proves, relative to each other; None without any."""
        shares = self._borders.shares(period, 1)
        sharing = self._borders.plain if shares is None else shares.sharing
        prices = max(candidate_prices(sharing), key=lambda each: best_price_bound(sharing, [each]), default=None)
        found = None if prices is None else weights(sharing, prices).astype(np.float64)
        return found if found is not None and found.any() else None

    def _next(self, sets: list[_Sets]) -> tuple[Worths | None, Worths]:
        """The best worths for the known sets, close to the best ones so far, and what a device of each class holds of
        them; no worths if none at all refute the period."""
        assert self._best is not None
        box: float | None = self._box
        while True:
            found = self._program(sets, box)
            if found[0].sum() > max(self._best.sum() * (1 + CLOSE), sum(self._size)):
                return found
            if box is None:
                return None, found[1]
            box = 2 * box if box < WIDEST else None

    def _program(self, sets: list[_Sets], box: float | None) -> tuple[Worths, Worths]:
        """Solve the linear program, with worths in a box, or any."""
        assert self._best is not None
        model, devices = mathopt.Model(), sum(self._size)
        wide = devices / len(self._best) * (box or 0.0)
        worths = [
            model.add_variable(lb=0.0, ub=float(devices))
            if box is None
            else model.add_variable(lb=max(0.0, each * (1 - box) - wide), ub=each * (1 + box) + wide)
            for each in self._best.tolist()
        ]
        most = [model.add_variable(lb=0.0) for _ in sets]
        held = mathopt.LinearSum([size * each for size, each in zip(self._size, most, strict=True)])
        model.add_linear_constraint(held == devices)
        for each, share in zip(sets, most, strict=True):
            for members in each.known:
                model.add_linear_constraint(mathopt.LinearSum([worths[i] for i in np.flatnonzero(members)]) <= share)
        model.maximize(mathopt.LinearSum(worths))
        result = mathopt.solve(model, mathopt.SolverType.GLOP)
        if result.termination.reason != mathopt.TerminationReason.OPTIMAL:
            return np.zeros(len(worths)), np.zeros(len(most))
        return np.maximum(result.variable_values(worths), 0.0), np.array(result.variable_values(most))


class _Sets:
    """The sets of groups that a device of class c can run within a period, as a model of CP-SAT."""

    def __init__(self, borders: Borders, c: int, period: int, found: list[Bool]) -> None:
        excluded = ~borders.plain.allowed[:, c]
        self._device = borders.device(c, 1, period, excluded, 2)
        self._found, self.known = found, [each for each in found if self._holds(each)]
        self._model = cp_model.CpModel()
        self._chosen = [self._model.new_int_var(0, int(not no), "group") for no in excluded.tolist()]
        for i, j in self._device.apart.tolist():
            if i < j:
                self._model.add_at_most_one(self._chosen[i], self._chosen[j])
        crossing = []
        for _, (first, *others) in self._device.network.crossings():
            crosses = self._model.new_bool_var("crossing")
            crossing.append(crosses)
            for other in others:
                self._model.add(crosses >= self._chosen[first] - self._chosen[other])
                self._model.add(crosses >= self._chosen[other] - self._chosen[first])
        ticks = self._device.network.ticks
        for rule in self._device.rules:
            total = int(rule.amount.sum()) + rule.borders * int(ticks.sum())
            shift = max(total.bit_length() - PARTS.bit_length() + 1, 0)
            terms: list[Any] = [cp_model.LinearExpr.weighted_sum(self._chosen, (rule.amount >> shift).tolist())]
            if rule.borders:
                terms.append(cp_model.LinearExpr.weighted_sum(crossing, (ticks >> shift).tolist()))
            self._model.add(sum(terms) <= min(rule.limit >> shift, PARTS))

    def _holds(self, members: Bool) -> bool:
        """Whether a set (g,) is one of these sets."""
        border = self._device.network.border(members)
        return all(int(rule.amount[members].sum()) + rule.borders * border <= rule.limit for rule in self._device.rules)

    def most(
        self, worths: Int, limit: float, seconds: float | None, workers: int, should_stop: Callable[[], bool]
    ) -> int:
        """At least the most that a set is worth; once a set is worth more than `limit`, CP-SAT soon ends. The sets that
        it finds become known."""
        beyond: list[Clock] = []

        def keep(value: Callable[[Any], int]) -> None:
            members = np.array([bool(value(chosen)) for chosen in self._chosen])
            if not any(np.array_equal(members, each) for each in self.known):
                self.known.append(members)
                self._found.append(members)
            if worths[members].sum() > limit:
                beyond.append(Clock(MORE))

        def stop() -> bool:
            return should_stop() or (len(beyond) > 0 and beyond[0].over)

        self._model.proto.clear_objective()
        self._model.minimize(cp_model.LinearExpr.weighted_sum(self._chosen, (-worths).tolist()))
        outcome = cp_sat.run(
            self._model,
            largest=PARTS,
            seconds=seconds,
            seed=0,
            workers=workers,
            should_stop=stop,
            on_solution=keep,
            parameters={"linearization_level": 2},
        )
        if outcome.status == "INFEASIBLE":
            return 0
        return int(worths.sum()) if outcome.bound is None else -outcome.bound
