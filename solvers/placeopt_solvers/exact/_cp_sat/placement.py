"""Model the placement in CP-SAT."""

from __future__ import annotations

import itertools

import numpy as np
from ortools.sat.python import cp_model

from placeopt.model.arrays import Bool, Int

from ..._runs.device_classes import class_members
from ..._runs.exact_run import group_order
from .base import Base, Expression, Literal, weighted

ORDERED_GROUPS = 60
"""Groups that the symmetry breaking covers; each needs a row as long as the groups before it."""


class Placement:
    """The literals of a placement.

    Variables: x[g, d], group g runs on device d; X[g, c], it runs on a device of class c; diff[g, h],
    groups g and h are on different devices. X and diff are added on first use.

    `allowed` (g, m) says which x exist; it is the same for all devices of a class.
    """

    def __init__(self, base: Base, allowed: Bool, symmetry: bool) -> None:
        self.base = base
        problem = self.problem = base.problem
        self.group: list[int] = problem.group.tolist()
        self.device_class: list[int] = problem.device_class.tolist()
        self.at = [{d: self._at(g, d) for d in np.flatnonzero(allowed[g]).tolist()} for g in range(problem.n_groups)]
        for row in self.at:
            base.cp.add_exactly_one(row.values())
        for g, h in np.unique(problem.group[problem.separation], axis=0).tolist():
            for d in self.at[g].keys() & self.at[h].keys():
                # A group separated from itself gives 2 x <= 1 on every device, which is correctly infeasible.
                base.cp.add(self.at[g][d] + self.at[h][d] <= 1)
        self._classes: list[dict[int, Literal] | None] = [None] * problem.n_groups
        self._differs: dict[tuple[int, int], Literal] = {}
        if symmetry:
            self._break_symmetry()

    def _at(self, g: int, d: int) -> Literal:
        return self.base.literal(lambda view: view.home[g] == d)

    def classes(self, g: int) -> dict[int, Literal]:
        """Return, for each possible class, the literal that group g runs on a device of it."""
        found = self._classes[g]
        if found is None:
            members: dict[int, list[Literal]] = {}
            for d, literal in self.at[g].items():
                members.setdefault(self.device_class[d], []).append(literal)
            found = {c: self._class(g, c, literals, len(members) == 1) for c, literals in members.items()}
            self._classes[g] = found
        return found

    def _class(self, g: int, c: int, literals: list[Literal], only: bool) -> Literal:
        if only:
            return self.base.true
        if len(literals) == 1:
            return literals[0]
        literal = self.base.literal(lambda view: self.device_class[view.home[g]] == c)
        self.base.cp.add(cp_model.LinearExpr.sum(literals) == literal)
        return literal

    def differs(self, g: int, h: int) -> Literal:
        """Return the literal that two distinct groups are on different devices."""
        g, h = min(g, h), max(g, h)
        if (g, h) not in self._differs:
            self._differs[g, h] = self._differ(g, h)
        return self._differs[g, h]

    def _differ(self, g: int, h: int) -> Literal:
        base, left, right = self.base, self.at[g], self.at[h]
        common = left.keys() & right.keys()
        if not common:
            return base.true
        if len(left) == len(right) == 1:
            return base.false
        literal = base.literal(lambda view: view.home[g] != view.home[h])
        for one, other in ((left, right), (right, left)):
            for d, x in one.items():
                if d in common:
                    base.cp.add_bool_or(~x, other[d], literal)
                else:
                    base.cp.add_implication(x, literal)
        for d in left:
            if d in common:
                base.cp.add_bool_or(~left[d], ~right[d], ~literal)
        return literal

    def _break_symmetry(self) -> None:
        """Require that the devices of a class are first used in their order; see `relabelled`.

        That is valid for any subset of the groups that comes first.
        """
        sequence = group_order(self.problem)[:ORDERED_GROUPS]
        for devices in class_members(self.problem):
            for before, d in itertools.pairwise(devices):
                earlier: list[Literal] = []
                for g in sequence:
                    if d in self.at[g]:
                        self.base.cp.add_bool_or(~self.at[g][d], *earlier)
                        earlier.append(self.at[g][before])

    def loads(self, amounts: Int) -> list[Expression]:
        """Return, per device, the sum of `amounts` (n, m) over the tasks on it."""
        problem = self.problem
        totals = np.zeros((problem.n_groups, problem.n_devices), dtype=np.int64)
        np.add.at(totals, problem.group, amounts)
        return [
            weighted(
                [row[d] for row in self.at if d in row],
                [int(totals[g, d]) for g, row in enumerate(self.at) if d in row],
            )
            for d in range(problem.n_devices)
        ]
