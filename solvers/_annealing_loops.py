"""The loops of `placeopt_solvers._annealing`: evaluating a state, changing it, cooling.

n tasks, m devices, e edges, g groups, k device classes. What the kernels share:

    order (n,)              the tasks in a topological order
    home (g,), room (m,)    the device of each group, the bytes left on each device
    feasible (g, m), memory (g,), apart_start (g + 1,), apart     see `placeopt_solvers._placement.Groups`
    group, duration, release, in_start                            those of the problem
    source (e,), ticks (e, k, k)    per in-edge its producer, and what it takes between two classes
    label (m,)              the class of each device
    state (1,)              of the random numbers
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from placeopt.ir import Bool, Int
from placeopt.kernels import kernel

Float = NDArray[np.float64]

FAR = 12
"""Places that a shift in the order passes, at most."""

MODULUS = 2**31 - 1
"""Of the random numbers."""

DOUBLINGS = 5
RUN = 1 + (1 << DOUBLINGS)
"""Tasks of a run that changes its device, at most; runs of 2 to 3, to 5, to 9 and so on are as likely as each other."""


@kernel()
def draw(state: Int, below: int) -> int:
    """A pseudo-random number in 0..below - 1, where below is much less than 2^31: Park and Miller's generator."""
    state[0] = state[0] * 48271 % MODULUS
    return int(state[0]) % below


@kernel()
def run_in_order(
    order: Int,
    home: Int,
    group: Int,
    duration: Int,
    release: Int,
    in_start: Int,
    source: Int,
    ticks: Int,
    label: Int,
    bound: int,
    cut: float,
    free: Int,
    end: Int,
) -> float:
    """Fill `end` (n,) with the schedule's and return its cost; more than `cut` as soon as the makespan is.

    `source` (e,) and `ticks` (e, k, k) follow the in-edges; `free` (m,) is for the tick at which each device gets free.
    """
    free[:] = 0
    span = 0
    for i in order:
        d = home[group[i]]
        t = max(free[d], release[i])
        for k in range(in_start[i], in_start[i + 1]):
            u = source[k]
            a = home[group[u]]
            arrival = end[u]
            if a != d:
                arrival += ticks[k, label[a], label[d]]
            t = max(t, arrival)
        t += duration[i, d]
        free[d] = t
        end[i] = t
        if t > span:
            span = t
            if span > cut:
                return float(span)
    over = 0
    for d in range(len(free)):
        over += max(free[d] - bound, 0)
    return span + over / len(free)


@kernel()
def moved(
    g: int, d: int, home: Int, room: Int, feasible: Bool, memory: Int, apart_start: Int, apart: Int, undo: bool
) -> bool:
    """Move group g to device d; whether that was possible, memory aside. Going back is possible always."""
    if not undo:
        if not feasible[g, d]:
            return False
        for k in range(apart_start[g], apart_start[g + 1]):
            if home[apart[k]] == d:
                return False
    room[home[g]] += memory[g]
    home[g] = d
    room[d] -= memory[g]
    return True


@kernel(draw)
def shift(order: Int, state: Int, in_start: Int, source: Int, far: int, other: Int) -> bool:
    """Fill `other` with `order` and one task a few places earlier or later; whether its edges let it move at all."""
    n = len(order)
    at = draw(state, n)
    i = order[at]
    left = draw(state, 2) == 0
    most = 1 + draw(state, far)
    other[:] = order
    while most > 0:
        beside = at - 1 if left else at + 1
        if beside < 0 or beside >= n:
            break
        j = other[beside]
        before, after = (j, i) if left else (i, j)
        tied = False
        for k in range(in_start[after], in_start[after + 1]):
            if source[k] == before:
                tied = True
                break
        if tied:
            break
        other[at], other[beside] = j, i
        at = beside
        most -= 1
    return bool(order[at] != i)


@kernel(draw, run_in_order, moved, shift)
def anneal(
    rounds: int,
    hot: float,
    cold: float,
    bound: int,
    order: Int,
    home: Int,
    room: Int,
    feasible: Bool,
    memory: Int,
    apart_start: Int,
    apart: Int,
    group: Int,
    duration: Int,
    release: Int,
    in_start: Int,
    source: Int,
    ticks: Int,
    label: Int,
    state: Int,
    cost: Float,
    best_order: Int,
    best_home: Int,
) -> None:
    """Try so many moves at temperatures that fall from `hot` to `cold`; the next call goes on where this one ends.

    `cost` holds that of the state, infinite before the first call, and the best makespan. `room` (m,) is what the
    placement leaves of the capacities.
    """
    n, m = duration.shape
    free, end = np.zeros(m, dtype=np.int64), np.zeros(n, dtype=np.int64)
    other = order.copy()
    touched, origin = np.zeros(RUN + 1, dtype=np.int64), np.zeros(RUN + 1, dtype=np.int64)
    if cost[0] == np.inf:
        cost[0] = run_in_order(
            order,
            home,
            group,
            duration,
            release,
            in_start,
            source,
            ticks,
            label,
            bound,
            np.inf,
            free,
            end,
        )
    for at in range(rounds):
        temperature = hot + (cold - hot) * at / rounds
        kind = draw(state, 100)
        count = 0
        possible, shifted = True, False
        if kind < 75:
            p = draw(state, n)
            g = group[order[p]]
            d = home[g]
            to, step = draw(state, m), 1
            if in_start[order[p]] < in_start[order[p] + 1] and (kind < 20 or kind >= 50):
                # To where a producer is, or the producer to where this task is.
                v = order[p]
                u = source[in_start[v] + draw(state, in_start[v + 1] - in_start[v])]
                to = home[group[u]]
                if draw(state, 2) == 0:
                    while order[p] != u:
                        p -= 1
                    g, d, to, step = group[u], to, d, -1
            h = group[draw(state, n)] if 30 <= kind < 50 else g
            if h != g:
                to = home[h]
            if to == d:
                continue
            wanted = 1 if kind < 50 else 2 + draw(state, 2 << draw(state, DOUBLINGS))
            while 0 <= p < n and count < wanted:
                g = group[order[p]]
                if home[g] == d:
                    if not moved(g, to, home, room, feasible, memory, apart_start, apart, False):
                        break
                    touched[count], origin[count] = g, d
                    count += 1
                p += step
            possible = count > 0
            if possible and h != g:
                possible = moved(h, d, home, room, feasible, memory, apart_start, apart, False)
                if possible:
                    touched[count], origin[count] = h, to
                    count += 1
            for k in range(count):
                if room[home[touched[k]]] < 0:
                    possible = False
        if possible and (kind >= 40 if kind < 50 else kind >= 65):
            shifted = shift(order, state, in_start, source, FAR, other)
        limit = cost[0] - temperature * math.log(1.0 - draw(state, 1 << 24) / (1 << 24))
        value = np.inf
        if possible and (count > 0 or shifted):
            value = run_in_order(
                other if shifted else order,
                home,
                group,
                duration,
                release,
                in_start,
                source,
                ticks,
                label,
                bound,
                limit,
                free,
                end,
            )
        if value <= limit:
            cost[0] = value
            if shifted:
                order[:] = other
            span = 0
            for d in range(m):
                span = max(span, free[d])
            if span < cost[1]:
                cost[1] = span
                best_order[:] = order
                best_home[:] = home
                if span <= bound:
                    return
        else:
            for k in range(count - 1, -1, -1):
                moved(touched[k], origin[k], home, room, feasible, memory, apart_start, apart, True)
