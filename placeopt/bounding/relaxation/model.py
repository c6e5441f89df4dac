"""The device-free relaxation: on which kind each group runs, which data moves, when tasks start.

Devices are distinguished only by kind (`placeopt.bounding.relaxation.kinds`), so symmetry disappears. A *pair* is two
groups that an edge joins. Variables:

    y[g,k]    group g is on a device of kind k
    t[q,k]    both groups of pair q are on the same device of kind k (or anywhere in the same pool)
    w[q,ab]   the lower-numbered group of pair q is on kind a, the other on a different device, of kind b
    s[i]      start of task i
    z[o,ab]   the output of a producer moves from kind a to kind b (for metrics that count a shared output once)
    and one variable for every metric of the objective's first level

Constraints for each pair q of groups g and h,

    sum_k y[g,k] = 1,   y[g,a] = t[q,a] + sum_b w[q,ab],   y[h,b] = t[q,b] + sum_a w[q,ab],

and for each edge i -> j of pair q (without w if both tasks are in one group)

    s[j] >= s[i] + sum_k p[i,k] y[g,k] + sum_ab c_ab w[q,ab].

Each kind has memory for its groups, and time for its tasks within the makespan. Every schedule of the problem gives a
point of this program with an objective at most as large: `Relaxation.point`. The relaxation ignores single devices, the
order of their tasks, ports and memory over time; cuts restore part of this: `placeopt.bounding.relaxation.covers`,
`cycles`, `forks`.

It is designed for graphs such as those of J. Tarnawski et al., "Efficient algorithms for device placement of DNN graph
operators", NeurIPS 2020. Their memory limits force transfers on long chains of operators, which bounds without
placement miss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.bounding.engines.linear_program import LinearProgram
from placeopt.bounding.quick.classes import by_group, clipped
from placeopt.bounding.quick.deadlines import horizon
from placeopt.bounding.relaxation.kinds import Kinds
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.objective import Value
from placeopt.model.problem import PARTS, UNLIMITED, Metric, Problem

EXACT_FLOATS = 2**50
"""Products of amounts and ticks from here on are left out: floats would round them."""

ROOM_BITS, BALANCE_BITS = 24, 20
"""Bits for amounts of memory in capacity rows, and in those of `memory_balance`, which multiply them by PARTS."""


class Relaxation:
    """The program of a problem and the meaning of its columns.

    Attributes
    ----------
    program
        The program; cuts are added to it.
    pair
        (e,) the pair of each edge, -1 for edges within a group.
    low, high
        (q,) the groups of each pair, the smaller number first.
    y, t, w, s
        Columns: (g, k), (q, k), (q, v), (n,).
    ticks
        (e, v) transfer ticks of each edge for each move, oriented from the pair's lower group.
    horizon
        A tick by which some best schedule has ended. `known`, the first level of the objective of a known schedule,
        lowers it and the upper bounds of all metrics.
    """

    def __init__(
        self, kinds: Kinds, known: Value | None = None, should_stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.kinds, self.known = kinds, known
        self.problem: Problem = kinds.classes.problem
        self.program = LinearProgram(should_stop=should_stop)
        problem = self.problem
        self.source = problem.group[problem.edge_source]
        self.target = problem.group[problem.edge_target]
        self.pair, self.low, self.high = self._pairs()
        self.forward = self.source < self.target
        self._back = np.array([kinds.moves.tolist().index([b, a]) for a, b in kinds.moves.tolist()], dtype=np.int64)
        self.ticks = self._oriented(kinds.ticks(problem.payload))
        terms = problem.objective.levels[0]
        metrics = [term.metric for term in terms]
        self.most = {term.metric: self._most(term.weight) for term in terms}
        self.timed = "makespan" in metrics
        self.horizon = horizon(kinds.classes)
        if self.timed and self.most["makespan"] is not None:
            self.horizon = min(self.horizon, self.most["makespan"])
        self.allowed = self._allowed()
        self._add_placement()
        self._outputs: tuple[Int, Int] | None = None
        self.s = self.program.add_columns([self.horizon] * (problem.n_tasks if self.timed else 0), integral=False)
        if self.timed:
            self._add_times()
        weights = [term.weight for term in terms]
        self.scale = math.lcm(*(weight.denominator for weight in weights))
        """The program's objective is the problem's objective times this."""
        self.in_ticks = not {"communication", "energy", "memory_balance", "price"}.intersection(metrics)
        """Whether all continuous columns count ticks."""
        self.metric: dict[Metric, int] = {}
        for metric, weight in zip(metrics, weights, strict=True):
            if metric not in _METRICS:  # it counts as 0
                continue
            self.metric[metric] = _METRICS[metric](self)
            self.program.objective[self.metric[metric]] = int(weight * self.scale)

    def _pairs(self) -> tuple[Int, Int, Int]:
        groups = max(self.problem.n_groups, 1)
        low, high = np.minimum(self.source, self.target), np.maximum(self.source, self.target)
        apart = low != high
        keys, inverse = np.unique(low[apart] * groups + high[apart], return_inverse=True)
        pair = np.full(len(low), -1, dtype=np.int64)
        pair[apart] = inverse
        return pair, keys // groups, keys % groups

    def _oriented(self, costs: Int) -> Int:
        """Costs (e, v) by moves from producer to consumer, as costs by moves from the lower to the higher group."""
        return np.where(self.forward[:, None], costs, costs[:, self._back])

    def _most(self, weight: Fraction) -> int | None:
        """An upper bound of a metric with that weight in schedules no worse than the known one; None if unbounded."""
        return None if self.known is None or weight == 0 else int(self.known / weight)

    def _allowed(self) -> Bool:
        """(g, k) the kinds on which every task of the group fits into the horizon with its head and tail."""
        kinds, problem = self.kinds, self.problem
        if not self.timed:
            return kinds.allowed
        short = kinds.head + kinds.duration + kinds.tail <= self.horizon
        allowed = kinds.allowed & by_group(problem, short, np.logical_and)
        return np.asarray(np.where(allowed.any(axis=1)[:, None], allowed, kinds.allowed))

    def _add_placement(self) -> None:
        kinds, add = self.kinds, self.program.add_row
        classes = kinds.classes
        count, moves = kinds.count, kinds.moves.tolist()
        memory = classes.group_memory
        self.y = self.program.add_columns(self.allowed.astype(np.int64), integral=True)
        both = self.allowed[self.low] & self.allowed[self.high]
        both &= (memory[self.low] + memory[self.high])[:, None] <= kinds.capacity
        apart = np.zeros(len(self.low), dtype=np.bool_)
        apart[self.pair[classes.apart & (self.pair >= 0)]] = True
        both &= ~apart[:, None] | kinds.pool
        self.t = self.program.add_columns(both.astype(np.int64), integral=True)
        ends = [self.allowed[self.low, a] & self.allowed[self.high, b] for a, b in moves]
        most = np.stack(ends, axis=1) if moves else np.zeros((len(self.low), 0), dtype=np.bool_)
        if self.timed:
            outer = self.pair >= 0
            np.logical_and.at(most, self.pair[outer], self.ticks[outer] <= self.horizon)
        self.w = self.program.add_columns(most.astype(np.int64), integral=True)
        for columns in self.y:
            add(columns.tolist(), [1] * count, 1, equation=True)
        for q, (g, h) in enumerate(zip(self.low.tolist(), self.high.tolist(), strict=True)):
            for k in range(count):
                leaving = [self.w[q, v] for v, (a, _) in enumerate(moves) if a == k]
                coming = [self.w[q, v] for v, (_, b) in enumerate(moves) if b == k]
                for group, moving in ((g, leaving), (h, coming)):
                    columns = [self.y[group, k], self.t[q, k], *moving]
                    add(columns, [1, *[-1] * (len(columns) - 1)], 0, equation=True)
        for k in np.flatnonzero(kinds.room < UNLIMITED).tolist():
            held, room = _coarse(memory, int(kinds.room[k]), ROOM_BITS)
            add(self.y[:, k], -held, -room)
        for uses, limit in self._alike(renewable=False):
            held, room = _coarse(by_group(self.problem, uses, np.add).reshape(-1), limit, ROOM_BITS)
            add(self.y.reshape(-1), -held, -room)
        single = np.flatnonzero(kinds.size == 1).tolist()
        problem = self.problem
        for g, h in np.unique(problem.group[problem.separation], axis=0).tolist():
            for k in single:
                add([self.y[g, k], self.y[h, k]], [-1, -1], -1)

    def _add_times(self) -> None:
        problem, kinds, add = self.problem, self.kinds, self.program.add_row
        group = problem.group
        for e, (i, j) in enumerate(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)):
            columns = [self.s[j], self.s[i], *self.y[group[i]]]
            coefficients = [1, -1, *-kinds.duration[i]]
            if self.pair[e] >= 0:
                columns += [*self.w[self.pair[e]]]
                coefficients += [*-self.ticks[e]]
            add(columns, coefficients)
        for i in np.flatnonzero(problem.release).tolist():
            add([self.s[i]], [1], int(problem.release[i]))

    def add_windows(self) -> None:
        """Add rows for the heads and tails of tasks by kind (`placeopt.bounding.quick.paths`).

        They are added after the first rounds of cuts, which find more cuts without them.
        """
        problem, kinds, add = self.problem, self.kinds, self.program.add_row
        span = self.metric["makespan"]
        for i, g in enumerate(problem.group.tolist()):
            add([self.s[i], *self.y[g]], [1, *-kinds.head[i]])
            add([span, self.s[i], *self.y[g]], [1, -1, *-(kinds.duration[i] + kinds.tail[i])])

    # Each of the following adds the variable and the rows of a metric, and returns its column.

    def _makespan(self) -> int:
        problem, kinds, add = self.problem, self.kinds, self.program.add_row
        span = self._value("makespan", self.horizon)
        last = np.flatnonzero(np.diff(problem.out_start) == 0)
        for i in last.tolist():
            add([span, self.s[i], *self.y[problem.group[i]]], [1, -1, *-kinds.duration[i]])
        self._share(span)
        self._share_resources(span)
        return span

    def _alike(self, *, renewable: bool) -> Iterator[tuple[Int, int]]:
        """What tasks (n, k) use at least of each resource, and of all with one capacity, and their capacity."""
        resources, kinds = self.problem.resources, self.kinds
        if resources is None:
            return
        chosen = np.flatnonzero(resources.renewable == renewable).tolist()
        alike = [
            [r for r in chosen if resources.capacity[r] == most] for most in {*resources.capacity[chosen].tolist()}
        ]
        for together in [*([r] for r in chosen), *(each for each in alike if len(each) > 1)]:
            room = int(resources.capacity[together].sum())
            of_class = np.sum([clipped(resources.amounts(r)[:, kinds.classes.leader]) for r in together], axis=0)
            least = np.stack([of_class[:, list(kind)].min(axis=1) for kind in kinds.members], axis=1)
            if least.any():
                yield least, room

    def _share_resources(self, span: int) -> None:
        """Limit what tasks use of renewable resources, each for its duration, to the capacity for `span` ticks."""
        for uses, room in self._alike(renewable=True):
            if int(uses.max()) * max(int(self.kinds.duration.max()), 1) * self.problem.n_tasks < EXACT_FLOATS:
                work = by_group(self.problem, uses * self.kinds.duration, np.add)
                self.program.add_row([span, *self.y.reshape(-1)], [room, *-work.reshape(-1)])

    def _max_load(self) -> int:
        busiest = self._value("max_load", horizon(self.kinds.classes))
        self._share(busiest)
        return busiest

    def _share(self, value: int) -> None:
        """Limit the work on each kind to `value` ticks per device."""
        for k in range(self.kinds.count):
            work = by_group(self.problem, self.kinds.duration[:, k], np.add)
            self.program.add_row([value, *self.y[:, k]], [int(self.kinds.size[k]), *-work])

    def _total_cost(self) -> int:
        return self._cost("total_cost", self.kinds.duration, self.kinds.ticks(self.problem.payload))

    def _energy(self) -> int:
        return self._cost("energy", self.kinds.energy, self.kinds.joules(self.problem.payload))

    def _communication(self) -> int:
        payload = np.repeat(self.problem.payload[:, None], len(self.kinds.moves), axis=1)
        return self._cost("communication", np.zeros_like(self.kinds.duration), payload)

    def _relocation(self) -> int:
        return self._charged("relocation", self.kinds.relocation)

    def _price(self) -> int:
        return self._charged("price", self.kinds.price)

    def _charged(self, metric: Metric, charge: Int) -> int:
        """A column for the total charge (n, k) of tasks."""
        total = self._value(metric, sum(charge.max(axis=1).tolist()))
        columns = self.y[self.problem.group].reshape(-1)
        self.program.add_row([total, *columns], [1, *-charge.reshape(-1)])
        return total

    def _cost(self, metric: Metric, running: Int, moving: Int) -> int:
        """A column for the total cost of running tasks (n, k) and moving data (e, v)."""
        own = np.flatnonzero(~self.problem.shared & (self.pair >= 0))
        columns = [self.y[self.problem.group].reshape(-1), self.w[self.pair[own]].reshape(-1)]
        costs = [running.reshape(-1), self._oriented(moving)[own].reshape(-1)]
        producers, z = self._shared()
        first = np.searchsorted(self.problem.edge_source, producers)
        for producer, columns_of, edge in zip(producers.tolist(), z, first.tolist(), strict=True):
            stop = int(self.problem.out_start[producer + 1])
            edge = next(e for e in range(edge, stop) if self.problem.shared[e] and self.pair[e] >= 0)
            columns.append(columns_of)
            costs.append(moving[edge])
        total = self._value(metric, sum(sum(cost.tolist()) for cost in costs))
        self.program.add_row([total, *np.concatenate(columns)], [1, *-np.concatenate(costs)])
        return total

    def _shared(self) -> tuple[Int, Int]:
        """Producers whose output moves once for all consumers on a device, and their columns z (o, v)."""
        if self._outputs is None:
            problem = self.problem
            edges = np.flatnonzero(problem.shared & (self.pair >= 0))
            producers = np.unique(problem.edge_source[edges])
            z = self.program.add_columns(np.ones((len(producers), len(self.kinds.moves)), np.int64), integral=True)
            for e in edges.tolist():
                place = int(np.searchsorted(producers, problem.edge_source[e]))
                there = self.w[self.pair[e]] if self.forward[e] else self.w[self.pair[e]][self._back]
                for one, other in zip(z[place].tolist(), there.tolist(), strict=True):
                    self.program.add_row([one, other], [1, -1])
            self._outputs = producers, z
        return self._outputs

    def _memory_balance(self) -> int:
        """The fullest device is at least as full as the average over the devices of a kind."""
        fullest = self._value("memory_balance", PARTS)
        for k in np.flatnonzero((self.kinds.room < UNLIMITED) & (self.kinds.room > 0)).tolist():
            held, room = _coarse(self.kinds.classes.group_memory, int(self.kinds.room[k]), BALANCE_BITS)
            self.program.add_row([fullest, *self.y[:, k]], [room, *-(held * PARTS)])
        return fullest

    def _value(self, metric: Metric, most: int) -> int:
        """The column of a metric with upper bound `most`."""
        known = self.most[metric]
        return int(self.program.add_columns([most if known is None else min(most, known)], integral=False)[0])

    def transfer_times(self, x: Float) -> Float:
        """(e,) transfer ticks along each edge in a point."""
        ticks = np.zeros(self.problem.n_edges)
        outer = self.pair >= 0
        ticks[outer] = (x[self.w[self.pair[outer]]] * self.ticks[outer]).sum(axis=1)
        return ticks

    def moved(self, x: Float) -> Float:
        """(q,) the fraction of each pair that is on different devices."""
        return np.asarray(x[self.w].sum(axis=1))


def _coarse(amounts: Int, room: int, bits: int) -> tuple[Int, int]:
    """Amounts (rounded down) and their limit (rounded up) in units that keep sums within that many bits."""
    total = max(sum(amounts.tolist()), room)
    shift = max(0, total.bit_length() - bits)
    return amounts >> shift, -(-room >> shift)


_METRICS: dict[Metric, Callable[[Relaxation], int]] = {
    "makespan": Relaxation._makespan,
    "max_load": Relaxation._max_load,
    "total_cost": Relaxation._total_cost,
    "communication": Relaxation._communication,
    "energy": Relaxation._energy,
    "memory_balance": Relaxation._memory_balance,
    "relocation": Relaxation._relocation,
    "price": Relaxation._price,
}


def longest_paths(
    problem: Problem, tasks: Sequence[int], starts: Sequence[int], running: Float, transfer: Float
) -> tuple[dict[int, float], dict[int, int]]:
    """The length of the longest path to each task, and its last edge, for ticks (n,) of tasks and (e,) of edges.

    Paths begin at `starts` and lead through `tasks`, which are in topological order.
    """
    length, last = dict.fromkeys(starts, 0.0), {}
    for i in tasks:
        if i in length:
            end = length[i] + running[i]
            for e in range(int(problem.out_start[i]), int(problem.out_start[i + 1])):
                j = int(problem.edge_target[e])
                if end + transfer[e] > length.get(j, -1.0):
                    length[j], last[j] = float(end + transfer[e]), e
    return length, last


@dataclass(frozen=True, slots=True, eq=False)
class GroupGraph:
    """The groups and pairs as an undirected graph, for the search for cuts."""

    # Neighbours of group g and the pairs to them: start[g]..start[g+1]
    start: Int
    neighbour: Int
    pair: Int
    appeal: Float  # (q,) below 0.001: a tie-breaker that prefers pairs with large payloads

    @staticmethod
    def of(relaxation: Relaxation) -> GroupGraph:
        """The graph of a relaxation."""
        q = np.arange(len(relaxation.low))
        here = np.concatenate([relaxation.low, relaxation.high])
        there, pair = np.concatenate([relaxation.high, relaxation.low]), np.concatenate([q, q])
        order = np.lexsort((there, here))
        payload = np.zeros(len(q))
        outer = relaxation.pair >= 0
        np.maximum.at(payload, relaxation.pair[outer], relaxation.problem.payload[outer].astype(np.float64))
        start = np.searchsorted(here[order], np.arange(relaxation.problem.n_groups + 1))
        return GroupGraph(start, there[order], pair[order], 1e-3 * payload / max(payload.max(initial=0), 1.0))
