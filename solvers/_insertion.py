"""Insertion-based list scheduling: tasks in a given order, each where and when it ends first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.ir import Bool, Int, Problem, transfer_ticks
from placeopt.kernels import kernel
from placeopt.schedule import Schedule

from ._placement import Groups

NEVER = 2**62
"""End of the last gap of every device: above any tick, and safe to add a duration to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How far list scheduling came.

    Attributes
    ----------
    schedule
        Without contention; only good for the tasks placed.
    placed
        How many tasks of the sequence have been placed; fewer than n: no device has room for the next.
    room
        (m,) bytes left on each device.
    """

    schedule: Schedule
    placed: int
    room: Int


def work_steps(problem: Problem) -> int:
    """Elementary steps of list scheduling: every edge and every task meets every device."""
    return (problem.n_tasks + problem.n_edges) * problem.n_devices


def scheduled(problem: Problem, groups: Groups, sequence: Int, home: Int | None = None) -> Plan:
    """Each task of `sequence`, a topological order, on the device where it ends first; none before its release time.

    `home` (g,) fixes the device of every group instead.
    """
    n, m = problem.n_tasks, problem.n_devices
    device, start = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    first = np.unique(problem.device_class, return_index=True)[1].astype(np.int64)
    # The last device of each class: another than the first wherever there is another.
    second = (m - 1 - np.unique(problem.device_class[::-1], return_index=True)[1]).astype(np.int64)
    room = groups.room.copy()
    placed = list_schedule.select(work_steps(problem))(
        sequence,
        problem.release,
        problem.duration,
        problem.group,
        groups.feasible,
        groups.memory,
        groups.apart_start,
        groups.apart,
        problem.in_start,
        problem.in_edge,
        problem.edge_source,
        problem.payload,
        problem.latency,
        problem.byte_ticks_num,
        problem.byte_ticks_den,
        problem.device_class,
        first,
        second,
        groups.home.copy() if home is None else home.copy(),
        room,
        device,
        start,
    )
    return Plan(Schedule(device, start), placed, room)


@kernel()
def first_gap(gap_start: Int, gap_end: Int, count: int, ready: int, duration: int) -> int:
    """Index of the first of a device's gaps that has room for the duration at or after `ready`."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if gap_end[middle] >= ready + duration:
            high = middle
        else:
            low = middle + 1
    while max(gap_start[low], ready) + duration > gap_end[low]:
        low += 1
    return low


@kernel(transfer_ticks, first_gap)
def list_schedule(
    sequence: Int,
    release: Int,
    duration: Int,
    group: Int,
    feasible: Bool,
    memory: Int,
    apart_start: Int,
    apart: Int,
    in_start: Int,
    in_edge: Int,
    edge_source: Int,
    payload: Int,
    latency: Int,
    byte_ticks_num: Int,
    byte_ticks_den: Int,
    device_class: Int,
    first: Int,
    second: Int,
    home: Int,
    room: Int,
    device: Int,
    start: Int,
) -> int:
    """Place the tasks in turn where they end first; how many were placed (fewer than n: no room for the next).

    `first` and `second` are two devices of each class (equal if it has one). `home` (g,) holds the
    devices of groups already decided and -1 elsewhere, `room` (m,) the bytes left; both are
    updated, `device` and `start` (n,) filled.

    Each device keeps its gaps in order of time: those of positive length and the open end. Finding
    one is a binary search from the ready time, and a task longer than every gap goes to the open end at
    once, so that a timeline without idle time costs nothing however long it is.
    """
    m = len(room)
    width = 64
    gap_start = np.zeros((m, width), dtype=np.int64)
    gap_end = np.full((m, width), NEVER, dtype=np.int64)
    count = np.ones(m, dtype=np.int64)
    longest = np.zeros(m, dtype=np.int64)
    ready = np.zeros(m, dtype=np.int64)
    arrival = np.zeros(len(first), dtype=np.int64)
    for position in range(len(sequence)):
        i = sequence[position]
        g = group[i]
        only = home[g]

        ready[:] = release[i]
        for k in range(in_start[i], in_start[i + 1]):
            e = in_edge[k]
            u = edge_source[e]
            a = device[u]
            end = start[u] + duration[u, a]
            if only >= 0:
                if only != a:
                    end += transfer_ticks(
                        payload[e], latency[a, only], byte_ticks_num[a, only], byte_ticks_den[a, only]
                    )
                ready[only] = max(ready[only], end)
                continue
            for c in range(len(first)):
                b = second[c] if first[c] == a else first[c]
                arrival[c] = end + transfer_ticks(payload[e], latency[a, b], byte_ticks_num[a, b], byte_ticks_den[a, b])
            for b in range(m):
                there = end if b == a else arrival[device_class[b]]
                if there > ready[b]:
                    ready[b] = there

        best, best_end, best_start, best_gap = -1, NEVER, 0, -1
        for d in range(m):
            if only >= 0:
                if d != only:
                    continue
            elif not feasible[g, d] or memory[g] > room[d]:
                continue
            else:
                blocked = False
                for k in range(apart_start[g], apart_start[g + 1]):
                    if home[apart[k]] == d:
                        blocked = True
                        break
                if blocked:
                    continue
            ticks = duration[i, d]
            at, gap = ready[d], -1
            touches = at == 0
            if ticks == 0 and not touches:
                for k in range(in_start[i], in_start[i + 1]):
                    u = edge_source[in_edge[k]]
                    if device[u] == d and start[u] + duration[u, d] == at:
                        touches = True
                        break
            if ticks > 0 or not touches:
                gap = count[d] - 1
                if ticks <= longest[d]:
                    gap = first_gap(gap_start[d], gap_end[d], count[d], at, ticks)
                at = max(at, gap_start[d, gap])
            if at + ticks < best_end:
                best, best_end, best_start, best_gap = d, at + ticks, at, gap
        if best < 0:
            return position

        device[i], start[i] = best, best_start
        if only < 0:
            home[g] = best
            room[best] -= memory[g]
        if best_gap < 0:
            continue
        before = best_start - gap_start[best, best_gap]
        after = gap_end[best, best_gap] - best_end
        if before > longest[best]:
            longest[best] = before
        if best_gap < count[best] - 1 and after > longest[best]:
            longest[best] = after
        if before > 0 and after > 0:
            if count[best] == width:
                wider_start = np.zeros((m, 2 * width), dtype=np.int64)
                wider_end = np.zeros((m, 2 * width), dtype=np.int64)
                wider_start[:, :width] = gap_start
                wider_end[:, :width] = gap_end
                gap_start, gap_end, width = wider_start, wider_end, 2 * width
            for k in range(count[best], best_gap, -1):
                gap_start[best, k] = gap_start[best, k - 1]
                gap_end[best, k] = gap_end[best, k - 1]
            count[best] += 1
            gap_end[best, best_gap] = best_start
            gap_start[best, best_gap + 1] = best_end
        elif before > 0:
            gap_end[best, best_gap] = best_start
        elif after > 0:
            gap_start[best, best_gap] = best_end
        else:
            count[best] -= 1
            for k in range(best_gap, count[best]):
                gap_start[best, k] = gap_start[best, k + 1]
                gap_end[best, k] = gap_end[best, k + 1]
    return len(sequence)
