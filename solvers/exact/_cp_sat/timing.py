"""When tasks run and data moves, in CP-SAT: starts, precedence, one task at a time, ports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model

from placeopt.model.arrays import Int

from .base import Expression, Literal, weighted
from .limits import Limits
from .transfers import Move, Moves

Variable = cp_model.IntVar
Interval = cp_model.IntervalVar

QUARTILES = (0.0, 0.25, 0.5, 0.75)


class Timing:
    """Starts, and that what happens at one time is possible.

    Variables: s[i], start of task i; under port contention t[q], the start of transfer q, and where its ticks
    depend on the placement l[q], those.
    """

    def __init__(self, moves: Moves, limits: Limits, slots: Sequence[int]) -> None:
        self.moves, self.placement, self.base, self.problem = moves, moves.placement, moves.base, moves.problem
        self.horizon, self.head, self.tail = limits.horizon, limits.head, limits.tail
        self.starts: list[Variable] = []
        self.ends: list[Expression] = []
        for i in range(self.problem.n_tasks):
            self._add_task(i, limits.head[i])
        self.slots = slots
        self.running = [self._run(d) for d in range(self.problem.n_devices)]
        self.arrivals: dict[int, list[tuple[Expression, Literal | None]]] = {}
        if self.problem.contention == "port":
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
        # Never empty, so that CP-SAT takes it; a deadline that cannot be kept shows in its row.
        start = self.base.integer(min(earliest), max(latest, min(earliest)), lambda view: view.start[i])
        if len(set(earliest)) > 1:
            self.base.cp.add(start >= weighted(list(row.values()), earliest))
        end = start + (ticks[0] if len(set(ticks)) == 1 else weighted(list(row.values()), ticks))
        if by <= self.horizon:
            self.base.cp.add(end <= by)
        self.starts.append(start)
        self.ends.append(end)

    def _run(self, d: int) -> dict[int, Interval]:
        """Task -> its interval on the device, which counts if it runs there; no more at a time than it has slots."""
        intervals = {}
        for i, g in enumerate(self.placement.group):
            x = self.placement.at[g].get(d)
            if x is not None:
                ticks = int(self.problem.duration[i, d])
                intervals[i] = self.base.cp.new_optional_fixed_size_interval_var(self.starts[i], ticks, x, "")
        if self.slots[d] == 1:
            self.base.cp.add_no_overlap(intervals.values())
        else:
            self.base.cp.add_cumulative(intervals.values(), [1] * len(intervals), self.slots[d])
        return intervals

    def after_arrival(self, moment: Variable, e: int) -> None:
        """Let a moment be no earlier than the tick at which an edge's data reaches its consumer, if it moves.

        A transfer takes at least the least ticks of all pairs of classes; for those pairs that take more there is
        a row each, enforced where it is the true one. That beat element constraints and one row per class of the
        sender. One linear row with a literal per pair comes out even: 11 instead of 10 of 15 random graphs proved in
        6 s, but a schedule 4% worse for resnet50 after 14 s, of a model with an eighth more variables.
        """
        u, v = int(self.problem.edge_source[e]), int(self.problem.edge_target[e])
        g, h = self.placement.group[u], self.placement.group[v]
        if not self.moves.possible(g, h):
            return
        cp, differs = self.base.cp, self.placement.differs(g, h)
        table = self.moves.ticks(int(self.problem.payload[e]))
        ticks = {pair: int(table[pair]) for pair in self.moves.options(g, h)}
        least = min(ticks.values())
        cp.add(moment >= self.ends[u] + least * differs)
        for arrival, condition in self.arrivals.get(e, ()):
            row = cp.add(moment >= arrival)
            if condition is not None:
                row.only_enforce_if(condition)
        if self.problem.contention == "port":
            return  # the arrivals say it all
        senders, receivers = self.placement.classes(g), self.placement.classes(h)
        for (c, k), p in ticks.items():
            if p > least:
                there = [senders[c], receivers[k], *([differs] if c == k else [])]
                cp.add(moment >= self.ends[u] + p).only_enforce_if(there)

    # Ports

    def _use_ports(self) -> None:
        """One transfer at a time leaves a device, one at a time reaches it.

        A transfer of no ticks keeps to the same rule as a task of no duration: never strictly inside another.
        """
        sending: list[list[Interval]] = [[] for _ in range(self.problem.n_devices)]
        receiving: list[list[Interval]] = [[] for _ in range(self.problem.n_devices)]
        self.sent = [self._add_transfer(move, sending, receiving) for move in self.moves.all]
        for intervals in (*sending, *receiving):
            self.base.cp.add_no_overlap(intervals)

    def _add_transfer(self, move: Move, sending: list[list[Interval]], receiving: list[list[Interval]]) -> Variable:
        """The start of a transfer."""
        cp, group = self.base.cp, self.placement.group
        targets = [group[int(self.problem.edge_target[e])] for e in move.edges]
        sent, ticks, arrival = self._times(move)
        cp.add(sent >= self.ends[move.producer])

        def occupy(port: list[Interval], x: Literal) -> None:
            present = self.base.both(move.present, x)
            if isinstance(ticks, int):
                port.append(cp.new_optional_fixed_size_interval_var(sent, ticks, present, ""))
            else:
                port.append(cp.new_optional_interval_var(sent, ticks, arrival, present, ""))

        for a, x in self.placement.at[group[move.producer]].items():
            if a != move.device:
                occupy(sending[a], x)
        if move.device is not None:
            occupy(receiving[move.device], move.present)
        else:
            for b, x in self.placement.at[targets[0]].items():
                occupy(receiving[b], x)
        there = sent + ticks * move.present if isinstance(ticks, int) else arrival
        for e, h in zip(move.edges, targets, strict=True):
            here = None if move.device is None else self.placement.at[h][move.device]
            self.arrivals.setdefault(e, []).append((there, here))
        return sent

    def _times(self, move: Move) -> tuple[Variable, int | Variable, Expression]:
        """Start, ticks and end of a transfer; ticks and end are those of no transfer where none is needed."""
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
        """A variable that is at least the makespan.

        Besides the ends of the tasks, rows that follow from those but that the linear relaxation lacks: what
        must follow a task, and the load of each device. Together the loads say that all devices and
        the makespan have room for the total work.
        """
        problem, placement, cp = self.problem, self.placement, self.base.cp
        span = self.base.integer(0, self.horizon, lambda view: view.metrics["makespan"])
        for i, g in enumerate(placement.group):
            row = placement.at[g]
            after = self.tail[i, list(row)].tolist()
            cp.add(span >= self.ends[i] + weighted(list(row.values()), after))
        for load, slots in zip(placement.loads(problem.duration), self.slots, strict=True):
            cp.add(load <= slots * span)
        for d in range(problem.n_devices):
            self._add_windows(d, span)
        return span

    def _add_windows(self, d: int, span: Variable) -> None:
        """What runs on a device between heads and tails: for tasks S with heads from a and tails from b on,

        sum over i in S of p_i x_i + k (a + b) <= k makespan, k being the tasks that the device runs at a time.

        Those of S on the device run in [a, makespan - b). If there are none, the makespan is at least a + b because
        some task of S says so wherever it runs; rows without such a task are left out. The a and b are quartiles.
        Measured: 24 graphs of `placeopt generate random`, 12 and 15 tasks on 3 and 4 unlike devices, were proved in 18
        seconds of CPU time, without these rows in 22; on graphs of like devices they make no difference.
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
                if 0 < least <= max(self._through(i) for i in tasks[inside].tolist()):
                    load = [placement.at[placement.group[i]][d] for i in tasks[inside].tolist()]
                    ticks = problem.duration[tasks[inside], d].tolist()
                    self.base.cp.add(weighted(load, ticks) + self.slots[d] * least <= self.slots[d] * span)

    def _through(self, i: int) -> int:
        """Ticks that the makespan has at least because of one task, wherever it runs."""
        devices = list(self.placement.at[self.placement.group[i]])
        return int((self.head[i, devices] + self.problem.duration[i, devices] + self.tail[i, devices]).min())
