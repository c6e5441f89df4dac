"""Cut graphs that are nearly chains, and too large for one device, into segments with a device each.

A topological order of the tasks is cut into segments. Each runs on one device with enough memory; a device with memory
for all tasks may have several segments, any other only one. The serial time is minimised: durations plus, at each cut,
the longest transfer across it. On a chain that is the makespan, and the cuts are optimal. The less a graph resembles a
chain, the less accurate this is.

Dynamic programming, as for cutting layers into the stages of a pipeline (D. Narayanan et al.: PipeDream, SOSP 2019,
doi:10.1145/3341301.3359646, section 3.1), here for the sum instead of the longest stage and with memory. With

    F[p, s, c]   least time of the first p tasks, the last of them on class c, where s is the number of used devices of
                 each class with too little memory for all tasks,
    W[p, c]      durations of the first p tasks on class c,
    C[q, a, c]   the longest transfer from class a to class c of an edge across the cut before task q,

F[p, s, c] = W[p, c] + min over q, a of (F[q, s', a] + C[q, a, c] - W[q, c]), where tasks q..p-1 fit on a device of
class c and s' is s with one device of c less. O(n s k (k + n')) for k classes and n' tasks on a device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from placeopt.model.arrays import Float, Int, inverse
from placeopt.model.levels import dfs_topo
from placeopt.model.problem import Problem, devices_by_class
from placeopt.model.schedule import Schedule

from .._constructive.sequences import heft_on_homes

MOST_STATES = 256
"""Largest number of states s; networks with more have no segments."""

MOST_STEPS, MOST_LOOPS = 200_000_000, 1_000_000
"""Largest numbers of NumPy additions, and of rounds of Python loops: about a second each."""


def segmented(problem: Problem) -> Iterator[Schedule]:
    """Yield schedules of consecutive segments, of the breadth-first order and of the depth-first one.

    There are none if no memory is tight, if groups of several tasks must share a device, or if no segments fit. They
    respect feasibility and memory under the `sum` model, but ignore separation.
    """
    if problem.n_groups < problem.n_tasks or problem.n_tasks == 0 or problem.n_devices == 0:
        return
    for order in (problem.order, dfs_topo(problem)):
        home = _cut(problem, order)
        if home is not None:
            yield heft_on_homes(problem, home[np.unique(problem.group, return_index=True)[1]])


def _cut(problem: Problem, order: Int) -> Int | None:
    """Return the device (n,) of each task; None if there is nothing to cut, no solution, or too much work."""
    n, devices = problem.n_tasks, devices_by_class(problem)
    k = len(devices)
    leader = [members[0] for members in devices]
    held = np.concatenate(([0], np.cumsum(problem.memory[order])))
    tight = [bool(problem.capacity[d] < held[-1]) for d in leader]
    # A state is a mixed-radix number: the used devices of each tight class.
    radix = [len(members) + 1 if scarce else 1 for members, scarce in zip(devices, tight, strict=True)]
    states = math.prod(radix)
    if not any(tight) or states > MOST_STATES or k * k * problem.n_edges > MOST_LOOPS:
        return None
    weight = [math.prod(radix[:c]) for c in range(k)]
    work = np.concatenate((np.zeros((1, k)), np.cumsum(problem.duration[order][:, leader], axis=0)))
    first = np.stack([_first_tasks(problem, order, held, d) for d in leader])
    if int((np.arange(1, n + 1) - first[:, 1:]).sum()) * states > MOST_STEPS:
        return None
    crossing = _crossing(problem, order, devices, tight)
    best = np.full((n + 1, states, k), np.inf)
    open_segment = np.full((n + 1, states, k), np.inf)  # min over a of F[q, s, a] + C[q, a, c] - W[q, c]
    before = np.zeros((n + 1, states, k), dtype=np.int64)  # the a of that minimum
    begin = np.zeros((n + 1, states, k), dtype=np.int64)  # the q of the minimum in F[p, s, c]
    open_segment[0, 0] = 0.0
    taken = np.arange(states)
    for p in range(1, n + 1):
        for c in range(k):
            q = int(first[c, p])
            if q == p:
                continue
            found = open_segment[q:p, :, c]
            least = found.argmin(axis=0)
            value = found[least, taken] + work[p, c]
            if tight[c]:
                room = (taken // weight[c]) % radix[c] < radix[c] - 1
                best[p, taken[room] + weight[c], c] = value[room]
                begin[p, taken[room] + weight[c], c] = q + least[room]
            else:
                best[p, :, c], begin[p, :, c] = value, q + least
        if p < n:
            entered = best[p, :, :, None] + crossing[p]
            before[p] = entered.argmin(axis=1)
            open_segment[p] = entered.min(axis=1) - work[p]
    s, c = divmod(int(best[n].argmin()), k)
    if not np.isfinite(best[n, s, c]):
        return None
    home = np.empty(n, dtype=np.int64)
    p = n
    while p > 0:
        q = int(begin[p, s, c])
        number = (s // weight[c]) % radix[c] - 1 if tight[c] else 0
        home[order[q:p]] = devices[c][number]
        s -= weight[c] if tight[c] else 0
        p, c = q, int(before[q, s, c])
    return home


def _first_tasks(problem: Problem, order: Int, held: Int, device: int) -> Int:
    """Return, for each p (n + 1,), the least q such that tasks q..p-1 of the order may run on the device and fit."""
    n = len(order)
    tight = problem.capacity[device] < held[-1]
    q = np.searchsorted(held, held - problem.capacity[device]) if tight else np.zeros(n + 1)
    barred = np.where(problem.feasible[order, device], 0, np.arange(1, n + 1))
    return np.maximum(q, np.concatenate(([0], np.maximum.accumulate(barred)))).astype(np.int64)


def _crossing(problem: Problem, order: Int, devices: list[list[int]], tight: list[bool]) -> Float:
    """Return the longest transfer (n, k, k) between devices of two classes, over the edges across each cut."""
    n, k = len(order), len(devices)
    position = inverse(order)
    low, high = position[problem.edge_source] + 1, position[problem.edge_target]
    longest = np.zeros((n, k, k))
    for a in range(k):
        for c in range(k):
            if a == c and not tight[c]:
                continue  # all segments of the class are on one device
            ticks = problem.transfer(problem.payload, devices[a][0], devices[c][-1])
            for e in np.argsort(ticks, kind="stable").tolist():
                longest[low[e] : high[e] + 1, a, c] = ticks[e]
    return longest
