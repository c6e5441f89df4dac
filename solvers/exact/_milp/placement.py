"""Where tasks run, and products of two such choices, in a mixed-integer programme."""

from __future__ import annotations

import itertools

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule

from .linear import Linear, Programme, total

Pair = tuple[int, int]


class Placement:
    """x[g, d], group g runs on device d; z[g, h, a, b], groups g and h run on devices a and b; y[g, h], on the same.

    `allowed` (g, m): which x there are, the same for all devices of a class.
    """

    def __init__(self, programme: Programme, problem: Problem, allowed: Bool, symmetry: bool) -> None:
        self.programme, self.problem = programme, problem
        self.group: list[int] = problem.group.tolist()
        self.x = [{d: self._on(g, d) for d in np.flatnonzero(allowed[g]).tolist()} for g in range(problem.n_groups)]
        for row in self.x:
            programme.equal(total(row.values()), 1)
        self._apart: set[Pair] = set()
        for g, h in problem.group[problem.separation].tolist():
            if (g, h) not in self._apart:
                self._apart |= {(g, h), (h, g)}
                for d in self.x[g].keys() & self.x[h].keys():
                    # A group apart from itself comes out as 2 x <= 1 on every device: infeasible, as it is.
                    programme.at_least(1, self.x[g][d] + self.x[h][d])
        self._both: dict[Pair, dict[Pair, Linear]] = {}
        self._together: dict[Pair, Linear] = {}
        if symmetry:
            self._order_equal_devices()

    def _on(self, g: int, d: int) -> Linear:
        return self.programme.binary(lambda view: view.home[g] == d)

    def _product(self, g: int, h: int, a: int, b: int) -> Linear:
        return self.programme.column(0, 1, lambda view: view.home[g] == a and view.home[h] == b)

    def may_share(self, g: int, h: int) -> bool:
        """Whether two groups can be on one device."""
        return (g, h) not in self._apart and bool(self.x[g].keys() & self.x[h].keys())

    def both(self, g: int, h: int) -> dict[Pair, Linear]:
        """(a, b) -> z[g, h, a, b] for two distinct groups.

        The product x[g, a] x[h, b], linear by the rows sum_b z[a, b] = x[g, a] and sum_a z[a, b] = x[h, b]: where x is
        whole, they leave one z, the product. z[a, a] is left out where the groups must be apart.
        """
        if (h, g) in self._both:
            return {(a, b): z for (b, a), z in self._both[h, g].items()}
        if (g, h) not in self._both:
            kept = not self.may_share(g, h)
            ways = {(a, b): self._product(g, h, a, b) for a in self.x[g] for b in self.x[h] if a != b or not kept}
            for a, x in self.x[g].items():
                self.programme.equal(total(z for (s, _), z in ways.items() if s == a), x)
            for b, x in self.x[h].items():
                self.programme.equal(total(z for (_, r), z in ways.items() if r == b), x)
            self._both[g, h] = ways
        return self._both[g, h]

    def together(self, g: int, h: int) -> Linear:
        """y[g, h]: 1 if two groups share a device; where they do not, a solver may leave it above 0.

        The sum of z[d, d] where products are there; else y >= x[g, d] + x[h, d] - 1 for each device.
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
                y = self.programme.column(0, 1, lambda view: view.home[g] == view.home[h])
                for d in self.x[g].keys() & self.x[h].keys():
                    self.programme.at_least(y, self.x[g][d] + self.x[h][d] - 1)
                self._together[key] = y
        return self._together[key]

    def loads(self, amount: list[list[int]]) -> list[Linear]:
        """Per device, the sum of amounts (n rows of m) over the tasks on it."""
        return [
            total(amount[i][d] * self.x[g][d] for i, g in enumerate(self.group) if d in self.x[g])
            for d in range(self.problem.n_devices)
        ]

    def _order_equal_devices(self) -> None:
        """A device of a class is only used if one before it is used by an earlier group.

        Any schedule obeys that once the devices of each class are numbered as they come into use; see `renumbered`.
        """
        sequence = _group_order(self.problem)
        for devices in _classes(self.problem):
            for before, d in itertools.pairwise(devices):
                earlier: list[Linear] = []
                for g in sequence:
                    if d in self.x[g]:
                        self.programme.at_least(total(earlier), self.x[g][d])
                        earlier.append(self.x[g][before])


def renumbered(problem: Problem, schedule: Schedule) -> Schedule:
    """The same schedule with the devices of each class numbered as the groups, in order, come to use them."""
    home = np.empty(problem.n_groups, dtype=np.int64)
    home[problem.group] = schedule.device
    used = list(dict.fromkeys(home[_group_order(problem)].tolist()))
    number = np.arange(problem.n_devices)
    for devices in _classes(problem):
        first = [d for d in used if d in devices]
        number[first + [d for d in devices if d not in first]] = devices
    return Schedule(number[schedule.device], schedule.start, schedule.transfers)


def _group_order(problem: Problem) -> list[int]:
    return list(dict.fromkeys(problem.group[problem.order].tolist()))


def _classes(problem: Problem) -> list[list[int]]:
    label = problem.device_class
    return [np.flatnonzero(label == c).tolist() for c in range(int(label.max(initial=-1)) + 1)]
