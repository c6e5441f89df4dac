"""Model the placement in CP-SAT, the transfers between devices, and their costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from ortools.sat.python import cp_model

from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.objective import transfer_energy
from placeopt.model.problem import devices_by_class

from ..._runs.device_classes import class_ends
from ..._runs.exact_run import View, group_order
from .base import Base, Expression, Literal, weighted

Pair = tuple[int, int]
Ways = dict[Pair, Literal]


@dataclass(frozen=True, slots=True)
class Move:
    """A transfer that a placement may need: of one edge, or of a shared output to one device."""

    producer: int  # the task whose data moves
    edges: tuple[int, ...]  # the edges that it serves: one, or the shared ones of the producer that can end on `device`
    device: int | None  # the destination, if the output is shared by several groups
    present: Literal  # whether the placement needs it
    options: tuple[Pair, ...]  # pairs of classes, sender's and receiver's, between which it can run
    moving: Callable[[View], int | None]  # returns one of its edges if a schedule needs it


class Moves:
    """The transfers of a placement and, if costs differ, the device classes between which they run.

    Variables: y[u, d], a shared output of task u moves to device d; z[g, h, c, k], groups g and h are on
    different devices, g in class c and h in class k; z'[u, d, c], a shared output of task u moves to device d
    from class c. z and z' are added only if costs differ by class.
    """

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.base, self.problem = placement.base, placement.problem
        self.target: list[int] = self.problem.edge_target.tolist()
        self._class_size: list[int] = np.bincount(self.problem.device_class).tolist()
        first, last = class_ends(self.problem)
        self._sender = np.repeat(first[:, None], len(first), axis=1)
        self._receiver = self._sender.T.copy()
        np.fill_diagonal(self._receiver, last)
        self._ways: dict[tuple[int, int, int | None], Ways] = {}

    def ticks(self, payload: int) -> Int:
        """Return the (k, k) ticks of a transfer between two devices of the row's and the column's class."""
        return self.problem.transfer(payload, self._sender, self._receiver)

    def energy(self, payload: int) -> Int:
        """Return the (k, k) nanojoules of a transfer between two devices of the row's and the column's class."""
        return transfer_energy(self.problem, np.asarray(payload), self._sender, self._receiver)

    def possible(self, g: int, h: int) -> bool:
        """Return whether two groups can be on different devices."""
        return g != h and self.placement.differs(g, h) is not self.base.false

    def options(self, g: int, h: int) -> tuple[Pair, ...]:
        """Return the pairs of classes that two groups on different devices can be on."""
        senders, receivers = self.placement.classes(g), self.placement.classes(h)
        return tuple((c, k) for c in senders for k in receivers if c != k or self._class_size[c] > 1)

    @cached_property
    def all(self) -> list[Move]:
        """Every transfer that a placement may need."""
        return [move for u in range(self.problem.n_tasks) for move in self._of_task(u)]

    def cost(self, move: Move, table: Int) -> Expression:
        """Return the entry of `table` (k, k) for the classes of a move; 0 if it is not needed."""
        costs = [int(table[pair]) for pair in move.options]
        if len(set(costs)) == 1:
            return costs[0] * move.present
        ways = self._ways_of(move)
        return weighted([ways[pair] for pair in move.options], costs)

    def _of_task(self, u: int) -> Iterator[Move]:
        problem, g = self.problem, self.placement.group[u]
        together: dict[int, list[int]] = {}
        for e in range(int(problem.out_start[u]), int(problem.out_start[u + 1])):
            h = self.placement.group[self.target[e]]
            if not self.possible(g, h):
                continue
            if problem.shared[e]:
                together.setdefault(h, []).append(e)
            else:
                yield self._to_group(u, h, (e,))
        if len(together) == 1:
            for h, edges in together.items():
                yield self._to_group(u, h, tuple(edges))
        else:
            for d in sorted({d for h in together for d in self.placement.at[h]}):
                if self.placement.at[g].keys() != {d}:
                    yield self._to_device(u, d, sorted(e for h in together for e in together[h]))

    def _to_group(self, u: int, h: int, edges: tuple[int, ...]) -> Move:
        g, e = self.placement.group[u], edges[0]
        present = self.placement.differs(g, h)
        return Move(
            u, edges, None, present, self.options(g, h), lambda view: e if view.home[g] != view.home[h] else None
        )

    def _to_device(self, u: int, d: int, shared: list[int]) -> Move:
        """Return the move of a shared output to one device; adds y[u, d]."""
        placement, cp = self.placement, self.base.cp
        g = placement.group[u]
        edges = tuple(e for e in shared if d in placement.at[placement.group[self.target[e]]])

        def moving(view: View) -> int | None:
            return next((e for e in edges if view.device[self.target[e]] == d != view.device[u]), None)

        present = self.base.literal(lambda view: moving(view) is not None)
        here = placement.at[g].get(d)
        consumers = [placement.at[h][d] for h in sorted({placement.group[self.target[e]] for e in edges})]
        for x in consumers:
            cp.add_bool_or(~x, present, *([] if here is None else [here]))
        cp.add_bool_or(~present, *consumers)
        if here is not None:
            cp.add_implication(present, ~here)
        senders = dict.fromkeys(placement.device_class[a] for a in placement.at[g] if a != d)
        return Move(u, edges, d, present, tuple((c, placement.device_class[d]) for c in senders), moving)

    def _ways_of(self, move: Move) -> Ways:
        """Return, for each pair of classes, the literal that the move runs between them."""
        g, h = self.placement.group[move.producer], self.placement.group[self.target[move.edges[0]]]
        key = (g, h, None) if move.device is None else (move.producer, -1, move.device)
        if key not in self._ways:
            ways = {pair: self._way(move, pair) for pair in move.options}
            self._ways[key] = ways
            # These rows leave exactly the literal of the actual pair, in the linear relaxation too.
            cp, total = self.base.cp, cp_model.LinearExpr.sum
            cp.add(total(list(ways.values())) == move.present)
            for c, x in self.placement.classes(g).items():
                cp.add(total([z for (a, _), z in ways.items() if a == c]) <= x)
            if move.device is None:
                for k, x in self.placement.classes(h).items():
                    cp.add(total([z for (_, b), z in ways.items() if b == k]) <= x)
        return self._ways[key]

    def _way(self, move: Move, pair: Pair) -> Literal:
        label, u, moving = self.placement.device_class, move.producer, move.moving

        def value(view: View) -> bool:
            e = moving(view)
            return e is not None and (label[view.device[u]], label[view.device[self.target[e]]]) == pair

        return self.base.literal(value)


ORDERED_GROUPS = 60
"""Groups that the symmetry breaking covers; each needs a row as long as the groups before it."""


def _runs_tasks(d: int, view: View) -> bool:
    return d in view.home


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
        self._within: dict[tuple[int, bytes], Literal] = {}
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

    def within(self, g: int, devices: Bool) -> Literal | None:
        """Return the literal that a group runs on one of some devices (m,); None if it cannot."""
        inside = [x for d, x in self.at[g].items() if devices[d]]
        if len(inside) == len(self.at[g]):
            return self.base.true
        if len(inside) < 2:
            return inside[0] if inside else None
        key = g, devices.tobytes()
        if key not in self._within:
            self._within[key] = self.base.literal(lambda view: bool(devices[view.home[g]]))
            self.base.cp.add(cp_model.LinearExpr.sum(inside) == self._within[key])
        return self._within[key]

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
        for devices in devices_by_class(self.problem):
            for before, d in itertools.pairwise(devices):
                earlier: list[Literal] = []
                for g in sequence:
                    if d in self.at[g]:
                        self.base.cp.add_bool_or(~self.at[g][d], *earlier)
                        earlier.append(self.at[g][before])

    def used(self) -> list[Literal]:
        """Add a literal for each device that is true if it runs a task."""
        found = []
        for d in range(self.problem.n_devices):
            on = [row[d] for row in self.at if d in row]
            if on:
                used = self.base.literal(partial(_runs_tasks, d))
                for x in on:
                    self.base.cp.add_implication(x, used)
                found.append(used)
        return found

    def loads(self, amounts: Int) -> list[Expression]:
        """Return, per device, the sum of `amounts` (n, m) over the tasks on it."""
        problem = self.problem
        totals = by_index(np.add, problem.group, amounts, problem.n_groups)
        return [
            weighted(
                [row[d] for row in self.at if d in row],
                [int(totals[g, d]) for g, row in enumerate(self.at) if d in row],
            )
            for d in range(problem.n_devices)
        ]
