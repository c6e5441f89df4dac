"""Recompute exactly, from a schedule, everything that several rules need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers

Exact = NDArray[Any]
"""Integers: int64, or Python integers if a result might overflow."""


@dataclass(frozen=True, slots=True)
class View:
    """A schedule with everything that several rules need, recomputed.

    `device` is 0 for tasks that are not `placed`; times of such tasks mean nothing. An edge is `known` if both its
    tasks are placed, and `moves` if they are on different devices. `carrier` is then the edge that represents its
    transfer, else -1.
    """

    problem: Problem
    schedule: Schedule
    placed: Bool  # (n,)
    runs: Bool  # (n,) placed, on a device that may run the task
    device: Int  # (n,)
    duration: Int  # (n,) ticks
    start: Exact  # (n,) ticks
    end: Exact  # (n,) ticks
    known: Bool  # (e,)
    moves: Bool  # (e,)
    carrier: Int  # (e,)
    ticks: Exact  # (e,) of the transfer; 0 where none is needed
    booked: Bool  # (e,) the table of transfers has a row for this carrier
    sent: Exact  # (e,) tick at which the transfer starts
    arrival: Exact  # (e,) tick at which the data is on the consumer's device

    def task(self, task: int) -> str:
        return self.problem.task_names[task]

    def on(self, task: int) -> str:
        return self.problem.device_names[int(self.device[task])]

    def edge(self, edge: int) -> str:
        source, target = self.ends(edge)
        return f"edge {edge} ({self.task(source)} -> {self.task(target)})"

    def ends(self, edge: int) -> tuple[int, int]:
        return int(self.problem.edge_source[edge]), int(self.problem.edge_target[edge])


def view_of(problem: Problem, schedule: Schedule) -> View:
    n, m, e = problem.n_tasks, problem.n_devices, problem.n_edges
    source, target = problem.edge_source, problem.edge_target
    placed = (schedule.device >= 0) & (schedule.device < m)
    device = np.where(placed, schedule.device, 0)
    tasks = np.flatnonzero(placed)
    runs = placed.copy()
    runs[tasks] = problem.feasible[tasks, device[tasks]]
    duration = np.zeros(n, dtype=np.int64)
    duration[runs] = problem.duration[runs, device[runs]]

    known = placed[source] & placed[target]
    moves = known & (device[source] != device[target])
    carrier = _carriers(problem, device, moves)
    moved = np.flatnonzero(moves)
    link = device[source[moved]], device[target[moved]]
    latency = problem.latency[link]
    way = scaled_up(problem.payload[moved], problem.byte_ticks_num[link], problem.byte_ticks_den[link])
    most = largest_of(latency) + largest_of(way)
    way = exact(latency, most) + exact(way, most)

    rows, sent_at = _rows(problem, schedule, carrier)
    latest = largest_of(schedule.start) + largest_of(sent_at) + largest_of(duration) + largest_of(way)
    ticks = exact(np.zeros(e, dtype=np.int64), latest)
    ticks[moved] = exact(way, latest)
    start = exact(schedule.start, latest)
    end = start + exact(duration, latest)
    booked = np.zeros(e, dtype=np.bool_)
    booked[rows] = True
    sent = end[source]
    sent[rows] = exact(sent_at, latest)
    sent[moved] = sent[carrier[moved]]
    return View(
        problem=problem,
        schedule=schedule,
        placed=placed,
        runs=runs,
        device=device,
        duration=duration,
        start=start,
        end=end,
        known=known,
        moves=moves,
        carrier=carrier,
        ticks=ticks,
        booked=booked,
        sent=sent,
        arrival=sent + ticks,
    )


def _carriers(problem: Problem, device: Int, moves: Bool) -> Int:
    """(e,) the edge that represents the transfer of each edge's data, -1 if nothing is transferred.

    An unshared edge represents itself. Shared edges of one producer to one device are one transfer, represented by the
    lowest of them.
    """
    carrier = np.where(moves, np.arange(problem.n_edges), -1)
    together = np.flatnonzero(moves & problem.shared)
    source, target = problem.edge_source[together], device[problem.edge_target[together]]
    order = np.lexsort((together, target, source))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (np.diff(source[order]) != 0) | (np.diff(target[order]) != 0)
    position = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    carrier[together[order]] = together[order][position]
    return carrier


def _rows(problem: Problem, schedule: Schedule, carrier: Int) -> tuple[Int, Int]:
    """The carriers that have a row in the table of transfers, and the start in the first such row."""
    table = schedule.transfers
    if not books_transfers(problem) or table is None or not well_formed(table):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    edges, first = np.unique(table.edge, return_index=True)
    exists = (edges >= 0) & (edges < len(carrier))
    edges, first = edges[exists], first[exists]
    needed = carrier[edges] == edges
    return edges[needed], table.start[first[needed]]


def books_transfers(problem: Problem) -> bool:
    """Whether a table states the starts of transfers."""
    return problem.contention != "none" or problem.shared_links is not None or problem.pipeline is not None


def moved_edges(view: View) -> Int:
    """(t,) the edges that represent a transfer."""
    return np.flatnonzero(view.carrier == np.arange(view.problem.n_edges))


def used_memory(view: View) -> list[tuple[int, int]]:
    """For each device, the bytes that it needs and the first tick at which it needs them (0 under `sum`)."""
    problem = view.problem
    if problem.memory_model == "sum":
        return [(used, 0) for used in per_device(view, problem.resident, problem.output, problem.scratch)]
    freed = freed_ticks(view)
    tasks = np.flatnonzero(view.placed)
    most = total(problem.scratch[tasks]) + total(problem.output[tasks])
    scratch, output = exact(problem.scratch[tasks], most), exact(problem.output[tasks], most)
    device = np.tile(view.device[tasks], 4)
    tick = np.concatenate((view.start[tasks], view.start[tasks], view.end[tasks], freed[tasks]))
    change = np.concatenate((scratch, output, -scratch, -output))
    # At one tick, releases come before allocations: the running sum then never exceeds the live bytes before or after
    # the tick, so its maximum is the peak.
    order = np.lexsort((change, tick, device))
    bounds = np.searchsorted(device[order], np.arange(problem.n_devices + 1))
    needs = []
    for d, resident in enumerate(per_device(view, problem.resident)):
        events = order[bounds[d] : bounds[d + 1]]
        live = np.cumsum(change[events])
        most, when = 0, 0
        if len(live) and live.max() > 0:
            most, when = int(live.max()), int(tick[events[live.argmax()]])
        needs.append((resident + most, when))
    return needs


def freed_ticks(view: View) -> Exact:
    """(n,) the first tick at which no consumer needs a task's output any more."""
    freed, problem = view.end.copy(), view.problem
    held = np.where(view.moves, view.arrival, view.end[problem.edge_target])
    np.maximum.at(freed, problem.edge_source[view.known], held[view.known])
    return freed


def resource_uses(view: View, r: int) -> dict[int, int]:
    """What each task that uses resource r on its device uses of it, in units."""
    resources = view.problem.resources
    assert resources is not None
    where, amount = resources.row, resources.amount
    found = {}
    for task in np.flatnonzero(view.runs).tolist():
        entry = resources.need[task, view.device[task]]
        for k in range(where[entry], where[entry + 1]):
            if resources.resource[k] == r:
                found[task] = int(amount[k])
    return found


def swap_ticks(view: View) -> list[int]:
    """For each device, the ticks in which it moves the bytes beyond its first memory tier; 0 without tiers.

    Tiers fill up in their order. Each takes its bytes times num / den ticks, rounded up.
    """
    problem, tiers = view.problem, view.problem.tiers
    if tiers is None:
        return [0] * problem.n_devices
    ticks = []
    for d, used in enumerate(per_device(view, problem.resident, problem.output, problem.scratch)):
        columns = (tiers.end[d].tolist(), tiers.byte_ticks_num[d].tolist(), tiers.byte_ticks_den[d].tolist())
        takes, below = 0, 0
        for end, num, den in zip(*columns, strict=True):
            takes += -(-max(min(used, end) - below, 0) * num // den)
            below = end
        ticks.append(takes)
    return ticks


def overlaps(resource: Int, start: Exact, end: Exact) -> list[tuple[int, int]]:
    """The intervals that start while an earlier one on the same resource is unfinished.

    Each is paired with the first of the earlier ones that end last. In order of (start, end), an interval overlaps an
    earlier one if and only if that one ends after its start, so the latest end so far decides.
    """
    order = np.lexsort((end, start, resource))
    found: list[tuple[int, int]] = []
    for same in np.split(order, np.flatnonzero(np.diff(resource[order])) + 1):
        busy_until = np.maximum.accumulate(end[same])
        late = np.flatnonzero(start[same][1:] < busy_until[:-1]) + 1
        busy = np.searchsorted(busy_until, busy_until[late - 1])
        found.extend(zip(same[late].tolist(), same[busy].tolist(), strict=True))
    return found


def per_device(view: View, *amounts: Int) -> list[int]:
    """For each device, the total amount of its tasks."""
    most = sum(total(amount) for amount in amounts)
    sums = exact(np.zeros(view.problem.n_devices, dtype=np.int64), most)
    for amount in amounts:
        np.add.at(sums, view.device[view.placed], exact(amount[view.placed], most))
    return [int(value) for value in sums]


def well_formed(table: Transfers) -> bool:
    return table.edge.ndim == 1 and table.edge.shape == table.start.shape


def exact(values: Exact, largest: int) -> Exact:
    """A copy as int64, or as Python integers if numbers up to `largest` do not fit."""
    return values.astype(np.int64 if largest < 2**63 else object)


def largest_of(values: Exact) -> int:
    """The largest magnitude in an array."""
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0


def total(values: Exact) -> int:
    return sum(values.tolist())


def scaled_up(amount: Int, num: Int, den: Int) -> Exact:
    """ceil(amount * num / den), elementwise."""
    most = largest_of(amount) * largest_of(num)
    return -(-exact(amount, most) * exact(num, most) // exact(den, most))
