"""Model transfers between devices in a mixed-integer program, and their costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..._runs.exact_run import View
from ..._runs.linear import Linear, total
from .placement import Pair, Placement


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
