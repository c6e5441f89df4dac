"""Whether a schedule can be trusted as a start: the solvers' own check, for a wrong one would make bounds wrong.

The verdict that counts is the verifier's, which shares nothing with this.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.memory import fits
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, arrivals, durations, edge_ticks, edge_transfers


def valid(problem: Problem, schedule: Schedule) -> bool:
    """Whether a schedule keeps every rule of its problem. O((n + e) log(n + e))."""
    device, start = schedule.device, schedule.start
    if device.shape != (problem.n_tasks,) or start.shape != device.shape:
        return False
    if ((device < 0) | (device >= problem.n_devices)).any() or (start < problem.release).any():
        return False
    home = np.full(problem.n_groups, -1, dtype=np.int64)
    home[problem.group] = device
    left, right = problem.separation[:, 0], problem.separation[:, 1]
    return bool(
        problem.feasible[np.arange(problem.n_tasks), device].all()
        and (home[problem.group] == device).all()
        and (device[left] != device[right]).all()
        and (start + durations(problem, device) <= problem.deadline).all()
        and _disjoint(device, start, start + durations(problem, device))
        and _transfers_valid(problem, schedule)
        and (start[problem.edge_target] >= arrivals(problem, schedule)).all()
        and fits(problem, schedule)
    )


def _transfers_valid(problem: Problem, schedule: Schedule) -> bool:
    """Under port contention: each needed transfer once, after its producer, one at a time on each port."""
    transfers, device = schedule.transfers, schedule.device
    if problem.contention == "none":
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
    return bool(
        (sent >= (schedule.start + durations(problem, device))[producer]).all()
        and _disjoint(device[producer], sent, end)
        and _disjoint(device[consumer], sent, end)
    )


def _disjoint(resource: Int, start: Int, end: Int) -> bool:
    """Whether no interval starts on its resource before an earlier one has ended."""
    order = np.lexsort((end, start, resource))
    same = np.diff(resource[order]) == 0
    # In order of (start, end), if no neighbours overlap no others do.
    return bool((start[order][1:] >= end[order][:-1])[same].all())
