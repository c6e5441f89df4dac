"""Model times in a mixed-integer program: units and windows, starts, precedence, disjunctions, ports."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.objective import Value
from placeopt.model.ports import channels
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.setups import Setups

from ..._runs.exact_run import View, counted
from ..._runs.linear import Linear, total
from .placement import Move, Moves


@dataclass(frozen=True, slots=True)
class Times:
    """Times in units of `unit` ticks.

    Every duration, transfer and release time is a multiple of the unit. So is every start of a schedule in which
    nothing can start earlier by itself; deadlines may be rounded down to a multiple. By the horizon, some optimal
    schedule ends, and every one at least as good as the incumbent if the first level contains the makespan.
    """

    unit: int
    horizon: int
    duration: list[list[int]]  # of each task on each device
    transfer: list[list[list[int]]]  # of each edge, between sender and receiver; 0 between a device and itself
    earliest: list[int]  # lower bound of each task's start
    latest: list[int]  # upper bound of each task's end
    least: list[int]  # shortest duration of each task
    after: list[int]  # direct and indirect successors of each task, as the bits of a number

    def ordered(self, i: int, j: int) -> bool:
        """Return whether a path leads from one of two tasks to the other."""
        return bool(self.after[i] >> j & 1 or self.after[j] >> i & 1)


def successors(problem: Problem) -> list[int]:
    """Return the direct and indirect successors of each task, as the bits of a number. O(n e)."""
    after = [0] * problem.n_tasks
    target, first = problem.edge_target.tolist(), problem.out_start.tolist()
    for i in reversed(problem.order.tolist()):
        for j in target[first[i] : first[i + 1]]:
            after[i] |= after[j] | 1 << j
    return after


def times_of(problem: Problem, allowed: Bool, after: list[int], incumbent: Value | None) -> Times:
    """Return units, horizon and windows for schedules no worse than the incumbent. O(e m^2).

    `after` are the successors of each task.

    The horizon. Take an optimal schedule and remove each tick after the last release time at which nothing runs, moves
    or is set up. It stays valid, and no metric grows (`_cp_sat.limits` gives the argument). So it ends by that time
    plus the sum of all durations, setups and transfers, each with its maximum over the devices. If the makespan has
    weight w > 0 in the first level of value V, every schedule no worse ends by V / w.

    The windows follow paths. The start of a task follows from its release time and the earliest ends of its producers,
    with least durations and without transfers; its end from its deadline, the horizon and its consumers.
    """
    devices = np.arange(problem.n_devices)
    moving = np.asarray(problem.transfer(problem.payload[:, None, None], devices[:, None], devices[None, :]))
    may_run = allowed[problem.group]
    durations = problem.duration[may_run].tolist()
    ruled = [tick for rule in problem.stated.values() for each in rule.times() for tick in each.ravel().tolist()]
    due = problem.due[problem.due != UNLIMITED].tolist() if "tardiness" in counted(problem) else []
    unit = math.gcd(*durations, *ruled, *moving.ravel().tolist(), *problem.release.tolist(), *due) or 1

    longest = np.where(may_run, problem.duration, 0).max(axis=1, initial=0)
    ticks = (
        problem.latest_opening
        + sum(problem.delays(may_run).tolist())
        + sum(longest.tolist())
        + sum(moving.max(axis=(1, 2), initial=0).tolist())
    )
    weight = next((term.weight for term in problem.objective.levels[0] if term.metric == "makespan"), 0)
    if incumbent is not None and weight > 0:
        ticks = min(ticks, int(incumbent / weight))
    horizon = ticks // unit

    least = (np.where(may_run, problem.duration, UNLIMITED).min(axis=1, initial=UNLIMITED) // unit).tolist()
    earliest = (problem.release // unit).tolist()
    latest = np.minimum(problem.deadline // unit, horizon).tolist()
    target, first = problem.edge_target.tolist(), problem.out_start.tolist()
    for i in problem.order.tolist():
        for j in target[first[i] : first[i + 1]]:
            earliest[j] = max(earliest[j], earliest[i] + least[i])
    for i in reversed(problem.order.tolist()):
        for j in target[first[i] : first[i + 1]]:
            latest[i] = min(latest[i], latest[j] - least[j])
    return Times(
        unit=unit,
        horizon=horizon,
        duration=(problem.duration // unit).tolist(),
        transfer=(moving // unit).tolist(),
        earliest=earliest,
        latest=latest,
        least=least,
        after=after,
    )


class Timing:
    """Columns s[i], the start of task i; o[i, j], task i ends before task j starts; with ports t[q] and f[q, r].

    Times are in units of `Times.unit`. A row that holds if a binary is 1 has a term M (1 - binary), where M is its
    largest violation within the windows of `Times`.
    """

    def __init__(self, moves: Moves, times: Times) -> None:
        self.moves, self.placement, self.times = moves, moves.placement, times
        self.problem, self.program = moves.problem, moves.program
        self._parallel = self.problem.parallel
        self.start = [self._start(i) for i in range(self.problem.n_tasks)]
        self.end = [start + self._duration(i) for i, start in enumerate(self.start)]
        for i, latest in enumerate(times.latest):
            self.program.at_least(latest, self.end[i])
        for e in range(self.problem.n_edges):
            self._precedence(e)
        self.before: dict[tuple[int, int], Linear] = {}
        self._later: dict[tuple[int, int], Linear] = {}
        for i, j in itertools.combinations(range(self.problem.n_tasks), 2):
            self._one_at_a_time(i, j)
        if self.problem.setups is not None:
            self._set_up(self.problem.setups)
        for d in range(self.problem.n_devices):
            self._leave_windows(d)
        self.sent: list[Linear] = []
        self.arrival: list[Linear] = []
        if self.problem.contends:
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

        That is right for tasks without duration, too, which may be at either end of another task, not inside. If some
        devices are parallel, a row for each of the others replaces y.
        """
        g, h, placement = self.placement.group[i], self.placement.group[j], self.placement
        if self.times.ordered(i, j) or not (g == h or placement.may_share(g, h)):
            return
        if not self._parallel.any():
            self.program.at_least(self.order(i, j) + self.order(j, i), placement.together(g, h))
            return
        for d in placement.x[g].keys() & placement.x[h].keys():
            if not self._parallel[d]:
                both = placement.x[g][d] + placement.x[h][d] - 1
                self.program.at_least(self.order(i, j) + self.order(j, i), both)

    def _set_up(self, setups: Setups) -> None:
        """Add s[j] >= e[i] + p (x[i] + x[j] - 1) for a setup of p on a device between tasks i and j, if o[i, j] = 1.

        There x[i] is whether the task is on the device in any mode. With modes, o[i, j] + o[j, i] >= x[i] + x[j] - 1.
        Tasks that the graph orders have no o. For the setup at tick 0, add s[j] >= p x[j].
        """
        times, unit = self.times, self.times.unit
        rows: list[dict[int, Linear]] = []
        modes = np.bincount(setups.station, minlength=len(setups.station))
        for i, g in enumerate(self.placement.group):
            row = {d: x for d, x in self.placement.x[g].items() if times.duration[i][d]}
            first = {d: int(setups.first(d, i)) // unit for d in row}
            self.program.at_least(self.start[i], total(ticks * row[d] for d, ticks in first.items() if ticks))
            stations = np.unique(setups.station[list(row)]).tolist()
            rows.append({e: total(x for d, x in row.items() if setups.station[d] == e) for e in stations})
        for i, j in itertools.permutations(range(len(rows)), 2):
            for d in sorted(rows[i].keys() & rows[j].keys()) if not times.after[j] >> i & 1 else ():
                if ticks := setups.between(d, i, j) // unit:
                    ready = self.end[i] + ticks * (rows[i][d] + rows[j][d] - 1)
                    if times.ordered(i, j):
                        self.program.at_least(self.start[j], ready)
                        continue
                    slack = times.latest[i] - times.earliest[j] + ticks
                    self.if_one(self.start[j], ready, self.order(i, j), slack)
                    if modes[d] > 1:
                        self.program.at_least(self.order(i, j) + self.order(j, i), rows[i][d] + rows[j][d] - 1)

    def order(self, i: int, j: int) -> Linear:
        """Return o[i, j]: task i ends before task j starts."""
        if (i, j) not in self.before:
            order = self.program.binary(lambda view: view.end[i] <= view.start[j])
            self.if_one(self.start[j], self.end[i], order, self.times.latest[i] - self.times.earliest[j])
            self.before[i, j] = order
        return self.before[i, j]

    def later(self, i: int, j: int) -> Linear:
        """Return A[i, j]: task i starts later than task j."""
        if (i, j) not in self._later:
            unit, times = self.times.unit, self.times
            later = self.program.binary(lambda view: view.start[i] >= view.start[j] + unit)
            self.if_one(
                self.start[i], self.start[j] + 1, later, times.latest[j] - times.least[j] + 1 - times.earliest[i]
            )
            self._later[i, j] = later
        return self._later[i, j]

    def _leave_windows(self, d: int) -> None:
        """Add b + c >= x for each task on a device and each window in which it is unavailable.

        The task ends before the window if the binary b is 1, and starts after it if c is 1.
        """
        windows = [] if self.problem.unavailable is None else self.problem.unavailable.of(d)
        for (begin, end), (i, g) in itertools.product(windows, enumerate(self.placement.group)):
            x = self.placement.x[g].get(d)
            if x is not None:
                self.program.at_least(self._ends_by(i, begin) + self._starts_from(i, end), x)

    def _ends_by(self, i: int, tick: int) -> Linear:
        last = tick // self.times.unit
        early = self.program.binary(lambda view: view.end[i] <= tick)
        self.if_one(Linear(constant=last), self.end[i], early, self.times.latest[i] - last)
        return early

    def _starts_from(self, i: int, tick: int) -> Linear:
        first = tick // self.times.unit
        late = self.program.binary(lambda view: view.start[i] >= tick)
        self.if_one(self.start[i], Linear(constant=first), late, first - self.times.earliest[i])
        return late

    # Ports

    def _use_ports(self) -> None:
        """Require that a move starts after its producer and ends before its consumers, one at a time on each port."""
        for move in self.moves.all:
            self._use_port(move)
        pairs = list(itertools.permutations(range(self.problem.n_devices), 2))
        ways = [ways for _, ways in channels(self.problem)]
        self._channels = [{(a, b) for a, b in pairs if any(of[a] and to[b] for of, to in each)} for each in ways]
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

        Under `half_duplex`, likewise for one move out of a device and one into it; and for two moves over a channel.
        """
        one, other = self.moves.all[q], self.moves.all[r]
        devices = range(0 if self.problem.contention == "none" else self.problem.n_devices)
        ports = [(one.over(pairs), other.over(pairs)) for pairs in self._channels]
        ports += [(one.leaves(a), other.leaves(a)) for a in devices]
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
