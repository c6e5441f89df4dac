"""Model the placement in a mixed-integer program, and the products of two choices of devices."""

from __future__ import annotations

import itertools

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.problem import Problem

from ..._runs.device_classes import class_members
from ..._runs.exact_run import group_order
from ..._runs.linear import Linear, total
from .linear import Program

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
        for devices in class_members(self.problem):
            for before, d in itertools.pairwise(devices):
                earlier: list[Linear] = []
                for g in sequence:
                    if d in self.x[g]:
                        self.program.at_least(total(earlier), self.x[g][d])
                        earlier.append(self.x[g][before])
