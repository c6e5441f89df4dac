"""Model times in a mixed-integer program: starts, precedence, disjunctions, ports."""

from __future__ import annotations

import itertools

from ..._runs.exact_run import View
from ..._runs.linear import Linear, total
from .times import Times
from .transfers import Move, Moves


class Timing:
    """Columns s[i], the start of task i; o[i, j], task i ends before task j starts; with ports t[q] and f[q, r].

    Times are in units of `Times.unit`. A row that holds if a binary is 1 has a term M (1 - binary), where M is its
    largest violation within the windows of `Times`.
    """

    def __init__(self, moves: Moves, times: Times) -> None:
        self.moves, self.placement, self.times = moves, moves.placement, times
        self.problem, self.program = moves.problem, moves.program
        self.start = [self._start(i) for i in range(self.problem.n_tasks)]
        self.end = [start + self._duration(i) for i, start in enumerate(self.start)]
        for i, latest in enumerate(times.latest):
            self.program.at_least(latest, self.end[i])
        for e in range(self.problem.n_edges):
            self._precedence(e)
        self.before: dict[tuple[int, int], Linear] = {}
        for i, j in itertools.combinations(range(self.problem.n_tasks), 2):
            self._one_at_a_time(i, j)
        self.sent: list[Linear] = []
        self.arrival: list[Linear] = []
        if self.problem.contention != "none":
            self._use_ports()

    @property
    def columns(self) -> list[Linear]:
        """Every start of a task or a transfer."""
        return [*self.start, *self.sent]

    def _start(self, i: int) -> Linear:
        times, unit = self.times, self.times.unit
        return self.program.column(
            times.earliest[i], times.latest[i] - times.least[i], lambda view: view.start[i] / unit
        )

    def _duration(self, i: int) -> Linear:
        row = self.placement.x[self.placement.group[i]]
        return total(self.times.duration[i][d] * x for d, x in row.items())

    def if_one(self, later: Linear, earlier: Linear, condition: Linear, slack: int) -> None:
        """Require later >= earlier if the condition is 1; `slack` is the largest violation if it is 0."""
        self.program.at_least(later, earlier - max(0, slack) * (1 - condition))

    def _precedence(self, e: int) -> None:
        """Require that a consumer starts after the end of its producer and the duration of the transfer."""
        u, v = int(self.problem.edge_source[e]), int(self.problem.edge_target[e])
        self.program.at_least(self.start[v], self.end[u] + self.travel(e))

    def travel(self, e: int) -> Linear:
        """Return the duration of an edge's transfer, 0 on the same device."""
        g, h = (self.placement.group[int(i)] for i in (self.problem.edge_source[e], self.problem.edge_target[e]))
        if g == h:
            return Linear()
        table = self.times.transfer[e]
        return total(table[a][b] * z for (a, b), z in self.placement.both(g, h).items())

    def _one_at_a_time(self, i: int, j: int) -> None:
        """Add o[i, j] + o[j, i] >= y: of two tasks on a device, one ends before the other starts.

        That is right for tasks without duration, too, which may be at either end of another task, not inside.
        """
        g, h = self.placement.group[i], self.placement.group[j]
        if self.times.ordered(i, j) or not (g == h or self.placement.may_share(g, h)):
            return
        for a, b in ((i, j), (j, i)):
            self.before[a, b] = self._order(a, b)
        self.program.at_least(self.before[i, j] + self.before[j, i], self.placement.together(g, h))

    def _order(self, i: int, j: int) -> Linear:
        order = self.program.binary(lambda view: view.end[i] <= view.start[j])
        self.if_one(self.start[j], self.end[i], order, self.times.latest[i] - self.times.earliest[j])
        return order

    # Ports

    def _use_ports(self) -> None:
        """Require that a move starts after its producer and ends before its consumers, one at a time on each port."""
        for move in self.moves.all:
            self._use_port(move)
        for q, r in itertools.combinations(range(len(self.moves.all)), 2):
            self._one_through_a_port(q, r)

    def _use_port(self, move: Move) -> None:
        u, times = move.producer, self.times
        sent = self.program.column(
            times.earliest[u] + times.least[u], times.horizon, lambda view: self._sent(view, move) / times.unit
        )
        arrival = sent + move.cost(times.transfer[move.edges[0]])
        self.sent.append(sent)
        self.arrival.append(arrival)
        self.program.at_least(sent, self.end[u])
        self.program.at_least(times.horizon, arrival)
        for e in move.edges:
            v = self.moves.target[e]
            self.if_one(self.start[v], arrival, self.moves.serving(v, move), times.horizon - times.earliest[v])

    def _sent(self, view: View, move: Move) -> int:
        """Return the start of a move in a schedule; its producer's end if it is not needed."""
        u, group = move.producer, self.placement.group
        for e in move.edges:
            to = view.home[group[self.moves.target[e]]]
            if to != view.home[group[u]] and move.device in (None, to):
                return view.sent[e]
        return view.end[u]

    def _one_through_a_port(self, q: int, r: int) -> None:
        """Add f[q, r] + f[r, q] >= out[q, a] + out[r, a] - 1 for every sending port, and likewise for receiving.

        Under `half_duplex`, likewise for one move out of a device and one into it.
        """
        one, other = self.moves.all[q], self.moves.all[r]
        devices = range(self.problem.n_devices)
        ports = [(one.leaves(a), other.leaves(a)) for a in devices]
        ports += [(one.reaches(b), other.reaches(b)) for b in devices]
        if self.problem.contention == "half_duplex":
            ports += [(one.leaves(a), other.reaches(a)) for a in devices]
            ports += [(one.reaches(a), other.leaves(a)) for a in devices]
        common = [(left, right) for left, right in ports if left.terms and right.terms]
        if not common or self._follows(one, other) or self._follows(other, one):
            return
        either = self._port_order(q, r) + self._port_order(r, q)
        for left, right in common:
            self.program.at_least(either, left + right - 1)

    def _port_order(self, q: int, r: int) -> Linear:
        order = self.program.binary(lambda view: self._ended(view, q, r))
        u = self.moves.all[r].producer
        slack = self.times.horizon - self.times.earliest[u] - self.times.least[u]
        self.if_one(self.sent[r], self.arrival[q], order, slack)
        return order

    def _ended(self, view: View, q: int, r: int) -> bool:
        """Return whether, in a schedule, move q ends before move r starts."""
        one, other = self.moves.all[q], self.moves.all[r]
        begun = self._sent(view, one)
        homes = [view.home[self.placement.group[self.moves.target[e]]] for e in one.edges]
        sender = view.home[self.placement.group[one.producer]]
        ways = {(sender, b) for b in homes if one.device in (None, b)}
        table = self.times.transfer[one.edges[0]]
        ticks = max((table[a][b] * self.times.unit for a, b in ways if (a, b) in one.ways), default=0)
        return begun + ticks <= self._sent(view, other)

    def _follows(self, one: Move, other: Move) -> bool:
        """Return whether the graph orders two moves: the first ends at the other's producer or before."""
        v, u = self.moves.target[one.edges[0]], other.producer
        return one.device is None and (v == u or bool(self.times.after[v] >> u & 1))
