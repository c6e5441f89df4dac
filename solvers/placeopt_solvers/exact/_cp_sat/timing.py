"""Model times in CP-SAT: starts, precedence, one task at a time, ports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations

import numpy as np
from ortools.sat.python import cp_model

from placeopt.model.arrays import Bool, Int
from placeopt.model.ports import Ways
from placeopt.model.ports import channels as channels_of
from placeopt.model.setups import Setups

from ..._runs.exact_run import View
from .base import Expression, Literal, weighted
from .limits import Limits
from .placement import Move, Moves

Variable = cp_model.IntVar
Interval = cp_model.IntervalVar
QUARTILES = (0.0, 0.25, 0.5, 0.75)
"""Quantiles of heads and tails that the rows for windows use."""


def _end(i: int, view: View) -> int:
    return view.end[i]


def _late(i: int, due: int, view: View) -> int:
    return max(view.end[i] - due, 0)


def _earlier(i: int, j: int, view: View) -> bool:
    return view.start[i] < view.start[j]


class Timing:
    """Starts of tasks and transfers, and their constraints.

    Variables: s[i], the start of task i, and its end, if its ticks depend on the device; under contention t[q], the
    start of transfer q, and l[q], its ticks, if they depend on the placement.
    """

    def __init__(self, moves: Moves, limits: Limits, slots: Sequence[int]) -> None:
        self.moves, self.placement, self.base, self.problem = moves, moves.placement, moves.base, moves.problem
        self.horizon, self.head, self.tail = limits.horizon, limits.head, limits.tail
        self.swaps: dict[int, Variable] = {}  # swap times of devices, at least
        self.starts: list[Variable] = []
        self.ends: list[Expression] = []
        self.uneven: set[int] = set()  # tasks whose ticks depend on the device
        for i in range(self.problem.n_tasks):
            self._add_task(i, limits.head[i])
        self.slots = slots
        self.running = [self._run(d) for d in range(self.problem.n_devices)]
        if self.problem.setups is not None:
            self._set_up(self.problem.setups)
        self.arrivals: dict[int, list[tuple[Expression, Literal | None]]] = {}
        if self.problem.contends:
            self._use_ports()
        for e, (u, v) in enumerate(zip(self.problem.edge_source, self.problem.edge_target, strict=True)):
            self.base.cp.add(self.starts[v] >= self.ends[u])
            self.after_arrival(self.starts[v], e)

    def _add_task(self, i: int, head: Int) -> None:
        row = self.placement.at[self.placement.group[i]]
        devices = list(row)
        ticks = self.problem.duration[i, devices].tolist()
        by = int(self.problem.deadline[i])
        latest = max(min(self.horizon - int(self.tail[i, d]), by) - p for d, p in zip(devices, ticks, strict=True))
        earliest = head[devices].tolist()
        if self.problem.setups is not None:
            ready = self.problem.setups.first(np.array(devices), i).tolist()
            earliest = [max(a, b) if p else a for a, b, p in zip(earliest, ready, ticks, strict=True)]
        # The range is never empty, which CP-SAT requires; the row of an impossible deadline is infeasible.
        start = self.base.integer(min(earliest), max(latest, min(earliest)), lambda view: view.start[i])
        if len(set(earliest)) > 1:
            self.base.cp.add(start >= weighted(list(row.values()), earliest))
        end: Expression = start + ticks[0]
        if len(set(ticks)) > 1:  # the sum, and rows for each device in `_run`: together faster than one of them
            first, last = min(earliest) + min(ticks), max(latest, min(earliest)) + max(ticks)
            end = self.base.integer(first, last, partial(_end, i))
            self.uneven.add(i)
            self.base.cp.add(end == start + weighted(list(row.values()), ticks))
        if by <= self.horizon:
            self.base.cp.add(end <= by)
        self.starts.append(start)
        self.ends.append(end)

    def _run(self, d: int) -> dict[int, Interval]:
        """Add an interval for each task that may run on the device, no more at a time than the device has slots.

        Each window in which a device is unavailable is an interval as well. No two intervals share a variable for their
        end (see `cp_sat.py` of the engines, "ends").
        """
        intervals = {}
        for i, g in enumerate(self.placement.group):
            x = self.placement.at[g].get(d)
            if x is not None:
                ticks = int(self.problem.duration[i, d])
                intervals[i] = self.base.cp.new_optional_fixed_size_interval_var(self.starts[i], ticks, x, "")
                if i in self.uneven:
                    self.base.cp.add(self.ends[i] == self.starts[i] + ticks).only_enforce_if(x)
        windows = [] if self.problem.unavailable is None else self.problem.unavailable.of(d)
        closed = [self.base.cp.new_fixed_size_interval_var(a, b - a, "") for a, b in windows]
        if self.slots[d] == 1:
            self.base.cp.add_no_overlap([*intervals.values(), *closed])
            return intervals
        if self.slots[d] < len(intervals):
            self.base.cp.add_cumulative(intervals.values(), [1] * len(intervals), self.slots[d])
        for interval in intervals.values() if closed else ():
            self.base.cp.add_no_overlap([interval, *closed])
        return intervals

    def _set_up(self, setups: Setups) -> None:
        """Require time for a setup between any two tasks of a device, in any mode: one order literal for each pair."""
        cp, problem = self.base.cp, self.problem
        rows: list[dict[int, Literal]] = [{} for _ in range(problem.n_tasks)]  # whether a task lasts on a device
        for i, g in enumerate(self.placement.group):
            lasting = [d for d in self.placement.at[g] if problem.duration[i, d]]
            for station in np.unique(setups.station[lasting]).tolist():
                x = self.placement.within(g, (setups.station == station) & (problem.duration[i] > 0))
                if x is not None:
                    rows[i][station] = x
        for i, j in combinations(range(problem.n_tasks), 2):
            both = sorted(rows[i].keys() & rows[j].keys())
            ticks = {d: (setups.between(d, i, j), setups.between(d, j, i)) for d in both}
            ticks = {d: pair for d, pair in ticks.items() if any(pair)}
            if not ticks:
                continue
            first = self.base.literal(partial(_earlier, i, j))
            for d, (there, back) in ticks.items():
                here = [rows[i][d], rows[j][d]]
                cp.add(self.starts[j] >= self.ends[i] + there).only_enforce_if([*here, first])
                cp.add(self.starts[i] >= self.ends[j] + back).only_enforce_if([*here, ~first])

    def whole(self, i: int, ticks: int) -> Interval:
        """Add the interval of a task that takes the same ticks on every device."""
        return self.base.cp.new_fixed_size_interval_var(self.starts[i], ticks, "")

    def after_arrival(self, moment: Variable, e: int) -> None:
        """Require that a time is at or after the arrival of an edge's data, if the data moves.

        A transfer takes at least the minimum over all pairs of classes. Each pair that takes longer has a row, enforced
        if the pair is the actual one. That is faster than element constraints and than one row per class of the sender.
        """
        table = self.moves.ticks(int(self.problem.payload[e]))
        if not self.problem.contends and not table.any():
            return  # the row of the edge is complete
        u, v = int(self.problem.edge_source[e]), int(self.problem.edge_target[e])
        g, h = self.placement.group[u], self.placement.group[v]
        if not self.moves.possible(g, h):
            return
        cp, differs = self.base.cp, self.placement.differs(g, h)
        ticks = {pair: int(table[pair]) for pair in self.moves.options(g, h)}
        least = min(ticks.values())
        cp.add(moment >= self.ends[u] + least * differs)
        for arrival, condition in self.arrivals.get(e, ()):
            row = cp.add(moment >= arrival)
            if condition is not None:
                row.only_enforce_if(condition)
        if self.problem.contends:
            return  # the rows above are complete
        senders, receivers = self.placement.classes(g), self.placement.classes(h)
        for (c, k), p in ticks.items():
            if p > least:
                there = [senders[c], receivers[k], *([differs] if c == k else [])]
                cp.add(moment >= self.ends[u] + p).only_enforce_if(there)

    # Ports

    def _use_ports(self) -> None:
        """Require that a device sends one transfer and receives one at a time; under `half_duplex`, one in all.

        Likewise for the channels of shared links. A transfer of no ticks is never strictly inside another, like a task
        of no duration.
        """
        m, contention = self.problem.n_devices, self.problem.contention
        ports: list[list[Interval]] = [[] for _ in range(m * {"none": 0, "half_duplex": 1, "port": 2}[contention])]
        channels: list[tuple[list[Interval], Ways]] = [([], ways) for _, ways in channels_of(self.problem)]
        self.sent = [self._add_transfer(move, ports, channels) for move in self.moves.all]
        for intervals in [*ports, *(intervals for intervals, _ in channels)]:
            self.base.cp.add_no_overlap(intervals)

    def _add_transfer(
        self, move: Move, ports: list[list[Interval]], channels: list[tuple[list[Interval], Ways]]
    ) -> Variable:
        """Add a transfer and return its start."""
        cp, group, m = self.base.cp, self.placement.group, self.problem.n_devices
        targets = [group[int(self.problem.edge_target[e])] for e in move.edges]
        sent, ticks, arrival = self._times(move)
        cp.add(sent >= self.ends[move.producer])

        def occupy(port: list[Interval], x: Literal) -> None:
            present = self.base.both(move.present, x)
            if isinstance(ticks, int):
                port.append(cp.new_optional_fixed_size_interval_var(sent, ticks, present, ""))
            else:
                assert isinstance(arrival, cp_model.IntVar)  # as its ticks vary
                own = self.base.alike(arrival, self.horizon)
                port.append(cp.new_optional_interval_var(sent, ticks, own, present, ""))

        for a, x in self.placement.at[group[move.producer]].items() if ports else ():
            if a != move.device:
                occupy(ports[a], x)
        if ports and move.device is not None:
            occupy(ports[move.device - m], move.present)
        elif ports:
            for b, x in self.placement.at[targets[0]].items():
                occupy(ports[b - m], x)
        for channel, ways in channels:
            for senders, receivers in ways:
                leaves = self.placement.within(group[move.producer], senders)
                reaches = self._reached(move, receivers)
                if leaves is not None and reaches is not None:
                    occupy(channel, self.base.both(leaves, reaches))
        there = sent + ticks * move.present if isinstance(ticks, int) else arrival
        for e, h in zip(move.edges, targets, strict=True):
            here = None if move.device is None else self.placement.at[h][move.device]
            self.arrivals.setdefault(e, []).append((there, here))
        return sent

    def _reached(self, move: Move, devices: Bool) -> Literal | None:
        """Return the literal that a move, if it is needed, reaches one of some devices (m,); None if it cannot."""
        if move.device is None:
            return self.placement.within(self.placement.group[self.moves.target[move.edges[0]]], devices)
        return self.base.true if devices[move.device] else None

    def _times(self, move: Move) -> tuple[Variable, int | Variable, Expression]:
        """Add start, ticks and end of a transfer; if it is not needed, its ticks are 0."""
        base, u = self.base, move.producer
        moving = move.moving
        sent = base.integer(0, self.horizon, lambda view: view.end[u] if (e := moving(view)) is None else view.sent[e])
        table = self.moves.ticks(int(self.problem.payload[move.edges[0]]))
        costs = [int(table[pair]) for pair in move.options]
        if len(set(costs)) == 1:
            return sent, costs[0], sent + costs[0]
        ticks = base.integer(
            0, max(costs), lambda view: 0 if (e := moving(view)) is None else view.arrival[e] - view.sent[e]
        )
        base.cp.add(ticks == self.moves.cost(move, table))
        arrival = base.integer(
            0, self.horizon, lambda view: view.end[u] if (e := moving(view)) is None else view.arrival[e]
        )
        base.cp.add(arrival == sent + ticks)
        return sent, ticks, arrival

    # Objective

    def makespan(self) -> Variable:
        """Add a variable that is at least the makespan.

        Besides the rows of the tasks' ends there are rows that tighten the linear relaxation: ticks that must follow a
        task, and the load of each device.
        """
        problem, placement, cp = self.problem, self.placement, self.base.cp
        span = self.base.integer(0, self.horizon, lambda view: view.metrics["makespan"])
        for i, g in enumerate(placement.group):
            row = placement.at[g]
            after = self.tail[i, list(row)].tolist()
            cp.add(span >= self.ends[i] + weighted(list(row.values()), after))
        through = np.array([self._through(i) for i in range(problem.n_tasks)], dtype=np.int64)
        for d, (load, slots) in enumerate(zip(placement.loads(problem.duration), self.slots, strict=True)):
            if slots < len(self.running[d]) or slots == 1:
                cp.add((load + self.swaps[d] if d in self.swaps else load) <= slots * span)
                self._add_windows(d, span, through)
        return span

    def tardiness(self) -> Expression:
        """Add a variable for each task with a due date, at least the ticks by which it ends after that."""
        found = []
        for i, end in enumerate(self.ends):
            due, weight = int(self.problem.due[i]), int(self.problem.due_weight[i])
            if due < self.horizon and weight:
                late = self.base.integer(0, self.horizon, partial(_late, i, due))
                self.base.cp.add(late >= end - due)
                found.append(weight * late)
        return cp_model.LinearExpr.sum(found)

    def _add_windows(self, d: int, span: Variable, through: Int) -> None:
        """Add rows for the load of a device between heads and tails. For tasks S with heads >= a and tails >= b,

        sum over i in S of p_i x_i + k (a + b) <= k makespan, where the device runs k tasks at a time.

        The tasks of S on the device run in [a, makespan - b). If there are none, the makespan is at least a + b because
        some task of S requires that on any device; rows without such a task are omitted. The a and b are quartiles.
        On equal devices, these rows make no difference.
        """
        problem, placement = self.problem, self.placement
        tasks = np.array([i for i, g in enumerate(placement.group) if d in placement.at[g]], dtype=np.int64)
        if len(tasks) < 2:
            return
        head, tail = self.head[tasks, d], self.tail[tasks, d]
        seen: set[bytes] = set()
        for a in np.quantile(head, QUARTILES, method="lower"):
            for b in np.quantile(tail, QUARTILES, method="lower"):
                inside = (head >= a) & (tail >= b)
                if inside.sum() < 2 or inside.tobytes() in seen:
                    continue
                seen.add(inside.tobytes())
                least = int(head[inside].min() + tail[inside].min())
                if 0 < least <= through[tasks[inside]].max():
                    load = [placement.at[placement.group[i]][d] for i in tasks[inside].tolist()]
                    ticks = problem.duration[tasks[inside], d].tolist()
                    self.base.cp.add(weighted(load, ticks) + self.slots[d] * least <= self.slots[d] * span)

    def _through(self, i: int) -> int:
        """Return a lower bound of the makespan from one task, for any device."""
        devices = list(self.placement.at[self.placement.group[i]])
        return int((self.head[i, devices] + self.problem.duration[i, devices] + self.tail[i, devices]).min())
