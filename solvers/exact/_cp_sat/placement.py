"""Where tasks run, as CP-SAT literals."""

from __future__ import annotations

import itertools

import numpy as np
from ortools.sat.python import cp_model

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule

from .base import Base, Expression, Literal, weighted

ORDERED_GROUPS = 60
"""Groups that the symmetry breaking covers; each costs a row as long as the groups before it."""


class Placement:
    """The literals of a placement.

    Variables: x[g, d], group g runs on device d; X[g, c], it runs on a device of class c; diff[g, h],
    groups g and h are on different devices. The last two are made when they are asked for.

    `allowed` (g, m): which x there are, the same for all devices of a class.
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
                # A group apart from itself comes out as 2 x <= 1 on every device: infeasible, as it is.
                base.cp.add(self.at[g][d] + self.at[h][d] <= 1)
        self._classes: list[dict[int, Literal] | None] = [None] * problem.n_groups
        self._differs: dict[tuple[int, int], Literal] = {}
        if symmetry:
            self._break_symmetry()

    def _at(self, g: int, d: int) -> Literal:
        return self.base.literal(lambda view: view.home[g] == d)

    def classes(self, g: int) -> dict[int, Literal]:
        """Class -> whether group g runs on a device of it; only the possible classes."""
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
        """Whether two distinct groups are on different devices."""
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
        """The devices of a class are first used in their order, groups in the order of their first tasks.

        Group g may be on the k-th device of a class only if an earlier group is on the (k-1)-th. Valid
        because devices of a class can be swapped without changing anything (`Problem.device_class`),
        and so for any subset of the groups that comes first. `relabelled` makes a schedule obey.
        """
        members: dict[int, list[int]] = {}
        for d, c in enumerate(self.device_class):
            members.setdefault(c, []).append(d)
        sequence = group_order(self.problem)[:ORDERED_GROUPS]
        for devices in members.values():
            for before, d in itertools.pairwise(devices):
                earlier: list[Literal] = []
                for g in sequence:
                    if d in self.at[g]:
                        self.base.cp.add_bool_or(~self.at[g][d], *earlier)
                        earlier.append(self.at[g][before])

    def loads(self, amounts: Int) -> list[Expression]:
        """Per device, the sum of `amounts` (n, m) over the tasks on it."""
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


def group_order(problem: Problem) -> list[int]:
    """The groups in the order in which their first tasks stand in `Problem.order`."""
    return list(dict.fromkeys(problem.group[problem.order].tolist()))


def relabelled(problem: Problem, schedule: Schedule) -> Schedule:
    """The same schedule with the devices of each class first used in their order."""
    home = np.empty(problem.n_groups, dtype=np.int64)
    home[problem.group] = schedule.device
    used = list(dict.fromkeys(home[group_order(problem)].tolist()))
    new = np.arange(problem.n_devices)
    for c in range(int(problem.device_class.max(initial=-1)) + 1):
        devices = np.flatnonzero(problem.device_class == c).tolist()
        first_used = [d for d in used if d in devices]
        new[first_used + [d for d in devices if d not in first_used]] = devices
    return Schedule(new[schedule.device], schedule.start, schedule.transfers)
