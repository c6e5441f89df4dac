"""Model the placement, products of two choices of devices, and transfers in a mixed-integer program."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.problem import Problem, devices_by_class

from ..._runs.exact_run import View, group_order
from ..._runs.linear import Linear, total
from .linear import Program


@dataclass(frozen=True, slots=True)
class Move:
    """A transfer that a placement may need.

    `ways` maps (a, b) to whether the transfer runs from device a to device b. For a shared output the value may be too
    large, which only adds cost.
    """

    producer: int  # the task whose data moves
    edges: tuple[int, ...]  # one that is not shared, or the shared ones of the producer that can end on `device`
    device: int | None  # the destination of a shared output
    ways: dict[Pair, Linear]

    def leaves(self, a: int) -> Linear:
        """Return whether device a sends it."""
        return total(z for (s, _), z in self.ways.items() if s == a)

    def reaches(self, b: int) -> Linear:
        """Return whether device b receives it."""
        return total(z for (_, r), z in self.ways.items() if r == b)

    def over(self, pairs: set[Pair]) -> Linear:
        """Return whether it runs between one of some pairs of devices."""
        return total(z for pair, z in self.ways.items() if pair in pairs)

    def cost(self, table: list[list[int]]) -> Linear:
        """Return the entry of a table (m rows of m) for its two devices; 0 if it is not needed."""
        return total(table[a][b] * z for (a, b), z in self.ways.items())


class Moves:
    """Every transfer that a placement may need.

    An edge (u, v) that is not shared moves from a to b as z[group u, group v, a, b] says, a != b. The shared output of
    u moves from a to b once, as w[u, a, b] >= z[group u, group v, a, b] for each consumer v.
    """

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.problem, self.program = placement.problem, placement.program
        self.target: list[int] = self.problem.edge_target.tolist()
        self.all = [move for u in range(self.problem.n_tasks) for move in self._of_task(u)]

    def serving(self, v: int, move: Move) -> Linear:
        """Return whether a move brings data to the device of task v, which waits for it unless the data is there."""
        if move.device is None:
            return Linear(constant=1)
        return self.placement.x[self.placement.group[v]][move.device]

    def _of_task(self, u: int) -> Iterator[Move]:
        problem, placement = self.problem, self.placement
        g = placement.group[u]
        shared: list[int] = []
        for e in range(int(problem.out_start[u]), int(problem.out_start[u + 1])):
            h = placement.group[self.target[e]]
            if h == g:
                continue
            if problem.shared[e]:
                shared.append(e)
                continue
            ways = {pair: z for pair, z in placement.both(g, h).items() if pair[0] != pair[1]}
            if ways:
                yield Move(u, (e,), None, ways)
        for b in range(problem.n_devices):
            edges = tuple(e for e in shared if b in placement.x[placement.group[self.target[e]]])
            ways = {(a, b): self._shared_way(g, edges, (a, b)) for a in placement.x[g] if a != b}
            if edges and ways:
                yield Move(u, edges, b, ways)

    def _shared_way(self, g: int, edges: tuple[int, ...], pair: Pair) -> Linear:
        """Return w[u, a, b], a new column if there are several groups of consumers."""
        groups = list(dict.fromkeys(self.placement.group[self.target[e]] for e in edges))
        products = [self.placement.both(g, h)[pair] for h in groups]
        if len(products) <= 1:
            return total(products)

        def value(view: View) -> bool:
            return view.home[g] == pair[0] and any(view.home[h] == pair[1] for h in groups)

        w = self.program.column(0, 1, value)
        for z in products:
            self.program.at_least(w, z)
        return w


Pair = tuple[int, int]


class Placement:
    """Columns x[g, d], group g runs on d; z[g, h, a, b], g and h run on a and b; y[g, h], they share a device.

    `allowed` (g, m) says which x exist; it is the same for all devices of a class.
    """

    def __init__(self, program: Program, problem: Problem, allowed: Bool, symmetry: bool) -> None:
        self.program, self.problem = program, problem
        self.group: list[int] = problem.group.tolist()
        self.x = [{d: self._on(g, d) for d in np.flatnonzero(allowed[g]).tolist()} for g in range(problem.n_groups)]
        for row in self.x:
            program.equal(total(row.values()), 1)
        self._apart: set[Pair] = set()
        for g, h in problem.group[problem.separation].tolist():
            if (g, h) not in self._apart:
                self._apart |= {(g, h), (h, g)}
                for d in self.x[g].keys() & self.x[h].keys():
                    # A group separated from itself gives 2 x <= 1 on every device, which is correctly infeasible.
                    program.at_least(1, self.x[g][d] + self.x[h][d])
        self._both: dict[Pair, dict[Pair, Linear]] = {}
        self._together: dict[Pair, Linear] = {}
        if symmetry:
            self._order_equal_devices()

    def _on(self, g: int, d: int) -> Linear:
        return self.program.binary(lambda view: view.home[g] == d)

    def _product(self, g: int, h: int, a: int, b: int) -> Linear:
        return self.program.column(0, 1, lambda view: view.home[g] == a and view.home[h] == b)

    def may_share(self, g: int, h: int) -> bool:
        """Return whether two groups can be on one device."""
        return (g, h) not in self._apart and bool(self.x[g].keys() & self.x[h].keys())

    def both(self, g: int, h: int) -> dict[Pair, Linear]:
        """Return z[g, h, a, b] by (a, b), for two distinct groups.

        z is the product x[g, a] x[h, b]. Rows sum_b z[a, b] = x[g, a] and sum_a z[a, b] = x[h, b] define it for
        integral x. z[a, a] is omitted if the groups are separated.
        """
        if (h, g) in self._both:
            return {(a, b): z for (b, a), z in self._both[h, g].items()}
        if (g, h) not in self._both:
            kept = not self.may_share(g, h)
            ways = {(a, b): self._product(g, h, a, b) for a in self.x[g] for b in self.x[h] if a != b or not kept}
            for a, x in self.x[g].items():
                self.program.equal(total(z for (s, _), z in ways.items() if s == a), x)
            for b, x in self.x[h].items():
                self.program.equal(total(z for (_, r), z in ways.items() if r == b), x)
            self._both[g, h] = ways
        return self._both[g, h]

    def together(self, g: int, h: int) -> Linear:
        """Return y[g, h]: 1 if two groups share a device; otherwise it may still be above 0.

        It is the sum of z[d, d] if products exist, else y >= x[g, d] + x[h, d] - 1 for each device.
        """
        if g == h:
            return Linear(constant=1)
        if not self.may_share(g, h):
            return Linear()
        key = min(g, h), max(g, h)
        if key not in self._together:
            if key in self._both or key[::-1] in self._both:
                self._together[key] = total(z for (a, b), z in self.both(*key).items() if a == b)
            else:
                y = self.program.column(0, 1, lambda view: view.home[g] == view.home[h])
                for d in self.x[g].keys() & self.x[h].keys():
                    self.program.at_least(y, self.x[g][d] + self.x[h][d] - 1)
                self._together[key] = y
        return self._together[key]

    def loads(self, amount: list[list[int]]) -> list[Linear]:
        """Return, per device, the sum of amounts (n rows of m) over the tasks on it."""
        return [
            total(amount[i][d] * self.x[g][d] for i, g in enumerate(self.group) if d in self.x[g])
            for d in range(self.problem.n_devices)
        ]

    def _order_equal_devices(self) -> None:
        """Require that the devices of a class are first used in their order; see `relabelled`."""
        sequence = group_order(self.problem)
        for devices in devices_by_class(self.problem):
            for before, d in itertools.pairwise(devices):
                earlier: list[Linear] = []
                for g in sequence:
                    if d in self.x[g]:
                        self.program.at_least(total(earlier), self.x[g][d])
                        earlier.append(self.x[g][before])
