"""Check the schedules that solvers start from or accept; a wrong one would make bounds wrong.

The check is independent of the verifier, which decides what is reported as feasible.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.model.memory import earliest_starts, fits
from placeopt.model.objective import METRICS
from placeopt.model.ports import port_uses
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, arrivals, durations, edge_ticks, edge_transfers
from placeopt.simulation import retime


def valid_forms(problem: Problem, schedule: Schedule) -> Iterator[Schedule]:
    """Yield a schedule with recomputed times, then as it is, each only if it is valid."""
    with suppress(UsageError):  # not a placement of this problem
        again = retime(problem, schedule)
        if valid(problem, again):
            yield again
    if valid(problem, schedule):
        yield schedule


def valid(problem: Problem, schedule: Schedule) -> bool:
    """Return whether a schedule is feasible. O((n + e) log(n + e))."""
    device, start = schedule.device, schedule.start
    if device.shape != (problem.n_tasks,) or start.shape != device.shape:
        return False
    if ((device < 0) | (device >= problem.n_devices)).any() or (start < earliest_starts(problem, device)).any():
        return False
    home = np.full(problem.n_groups, -1, dtype=np.int64)
    home[problem.group] = device
    left, right = problem.separation[:, 0], problem.separation[:, 1]
    end, alone = start + durations(problem, device), ~problem.parallel[device]
    return bool(
        problem.feasible[np.arange(problem.n_tasks), device].all()
        and (home[problem.group] == device).all()
        and (device[left] != device[right]).all()
        and (end <= problem.deadline).all()
        and _disjoint(device[alone], start[alone], end[alone])
        and all(rule.kept(device, start, end) for rule in problem.stated.values())
        and _transfers_valid(problem, schedule)
        and (start[problem.edge_target] >= arrivals(problem, schedule)).all()
        and fits(problem, schedule)
        and all(METRICS[metric](problem, schedule) <= most for metric, most in problem.limits)
    )


def _transfers_valid(problem: Problem, schedule: Schedule) -> bool:
    """Return whether, under contention, each needed transfer runs once, after its producer, alone on its ports."""
    transfers, device = schedule.transfers, schedule.device
    if not problem.contends:
        return transfers is None
    if transfers is None or transfers.edge.shape != transfers.start.shape:
        return False
    needed = np.flatnonzero(edge_transfers(problem, device) == np.arange(problem.n_edges))
    order = np.argsort(transfers.edge, kind="stable")
    if not np.array_equal(transfers.edge[order], needed):
        return False
    sent = transfers.start[order]
    producer, consumer = problem.edge_source[needed], problem.edge_target[needed]
    end = sent + edge_ticks(problem, device)[needed]
    used, port = port_uses(problem, device[producer], device[consumer])
    return _disjoint(port, sent[used], end[used]) and bool(
        (sent >= (schedule.start + durations(problem, device))[producer]).all()
    )


def _disjoint(resource: Int, start: Int, end: Int) -> bool:
    """Return whether intervals on the same resource do not overlap."""
    order = np.lexsort((end, start, resource))
    same = np.diff(resource[order]) == 0
    # Sorted by (start, end), intervals overlap only if neighbours do.
    return bool((start[order][1:] >= end[order][:-1])[same].all())
