"""The bound `sct-lp`: a linear program of the same form that every schedule satisfies, for any transfer times.

Real schedules may run another child between task i and its colocated child j. This pays if transfers take longer than
tasks. The rule of one favourite therefore fails for the full transfer times, but it holds for reduced ones.

**Definitions.** Let c_ij be the least transfer time between two distinct devices on which i and j may run, and k_i the
least duration of i. Each edge has a *delay* c'_ij <= c_ij. Let C be a set of children of i such that

    c'_ij <= p(l) for any two j != l in C,    p(l) the least duration of l on a device that i may use too.

A child j is *early* in a schedule if s_j < end_i + c'_ij.

**Claim.** At most one j in C is early. By symmetry in time, at most one of a set P of parents of j is early for it, if
c'_ij <= p(h) for any two i != h in P, with p(h) the least duration of h on a device that j may use too.

**Proof.** Let j and l in C be early, s_l <= s_j. Both run on i's device, or they would wait for a transfer. So s_j <
end_i + c'_ij <= s_l + p(l) <= end_l, and p(l) > 0. If j takes time, j and l overlap: a contradiction. If j takes no
time, p(j) = 0, so c'_il <= 0 and l is not early: a contradiction. ∎

Set y_ij = 1 for early edges, and s to the start times of the schedule. Then all constraints hold,

    s_j >= s_i + k_i + c'_ij (1 - y_ij),    sum over C of y_ij <= 1,    sum over P of y_ij <= 1,

so the optimum w is at most the makespan. Ties, zero durations, shared outputs (each consumer waits for the transfer to
its own device) and ports (waiting only adds) need no assumption. Further:

- Tasks that never share a device (no device allows both; they or their groups are separated, or too large together)
  always pay the transfer: fixed = c_ij. They are not rivals.
- Tasks that always share a device (in one group) never pay: c_ij counts as infinite above, and only the other children
  and parents limit c'_ij.
- Heads and tails of `placeopt.bounding.quick.paths` give the release times and tails: no task starts before its head,
  and the makespan is at least its end plus its tail.

C and P may be chosen freely; an edge outside both hides its delay at no cost. For each task they hold the children
(parents) with the longest p, as many as maximise the total delay that one favourite cannot hide. If one of its two sets
reduces the delay of an edge to less than half of what the other allows, the edge stays only in the other.

The value comes from an integer flow (`placeopt.bounding.sct.game.flow_bound`) or from longest paths that double
precision counts exactly (`placeopt.bounding.sct.program.coarse_enough`): it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from placeopt import engine
from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes, device_sets
from placeopt.bounding.quick.paths import NEVER, windows
from placeopt.bounding.sct.program import SctProgram, coarse_enough, merged_edges
from placeopt.bounding.sct.solution import TOLERANCE, Solution, solution_of
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import transfer_ticks

KINDS = 64
"""Maximum number of distinct links compared one by one; with more, the least latency and the best bandwidth are
combined."""


def sct_bound(
    classes: Classes, *, tolerance: float = TOLERANCE, should_stop: Callable[[], bool] = lambda: False
) -> tuple[int, Solution]:
    """A lower bound of the makespan in ticks, and the solution that proves it."""
    solution = solution_of(certain(classes), tolerance=tolerance, should_stop=should_stop)
    return math.ceil(solution.bound), solution


def certain(classes: Classes) -> SctProgram:
    """The linear program that every schedule satisfies."""
    problem = classes.problem
    found = windows(classes)
    allowed = found.allowed
    most = LARGEST_TOTAL // max(problem.n_tasks + problem.n_edges, 1)
    length = np.where(allowed, classes.duration, NEVER).min(axis=1)
    i, j = problem.edge_source, problem.edge_target
    meeting = _meeting(classes, allowed)
    # Each of several parallel edges waits for its own transfer: the longest counts.
    source, target, longest = merged_edges(
        problem,
        _least_transfer(classes, most),
        np.asarray(meeting.any(axis=1), dtype=np.int64),
        np.where(meeting, np.minimum(classes.busy[j], most), most).min(axis=1, initial=most),
        np.where(meeting, np.minimum(classes.busy[i], most), most).min(axis=1, initial=most),
    )
    apart, meets, child, parent = longest[0], longest[1] > 0, longest[2], longest[3]
    delay = np.where(meets, apart, 0)
    levels = []
    for end, ticks in ((source, child), (target, parent)):
        order = np.lexsort((-ticks, end))
        order = order[meets[order]]
        start = np.searchsorted(end[order], np.arange(problem.n_tasks + 1))
        levels.append(engine.choose_rivals(start, order, ticks, delay))
    out_level, in_level = levels
    both = (out_level >= 0) & (in_level >= 0)
    weak_out, weak_in = both & (2 * out_level < in_level), both & (2 * in_level < out_level)
    out_rival, in_rival = (out_level >= 0) & ~weak_out, (in_level >= 0) & ~weak_in
    delay = np.where(out_rival, np.minimum(delay, out_level), delay)
    delay = np.where(in_rival, np.minimum(delay, in_level), delay)
    rival = (out_rival | in_rival) & (delay > 0)
    return coarse_enough(
        SctProgram(
            parts=1,
            order=problem.order,
            length=np.minimum(length, most),
            release=np.minimum(np.where(allowed, found.head, NEVER).min(axis=1), most),
            tail=np.minimum(np.where(allowed, found.tail, NEVER).min(axis=1), most),
            source=source,
            target=target,
            fixed=np.where(meets | (apart >= most), 0, apart),
            hidden=np.where(rival, delay, 0),
            out_rival=out_rival & rival,
            in_rival=in_rival & rival,
        )
    )


def _meeting(classes: Classes, allowed: Bool) -> Bool:
    """(e, k), whether both tasks of the edge may share a device of the class."""
    problem = classes.problem
    i, j = problem.edge_source, problem.edge_target
    left, right = problem.group[i], problem.group[j]
    held = classes.group_memory[left] + np.where(left == right, 0, classes.group_memory[right])
    both = allowed[i] & allowed[j] & (held[:, None] <= classes.capacity)
    both &= ~(classes.apart & ~classes.together)[:, None]
    # Without a feasible placement, tasks of one group still count as together.
    both[classes.together & ~both.any(axis=1)] = True
    return np.asarray(both)


def _least_transfer(classes: Classes, most: int) -> Int:
    """(e,) the least ticks between two devices that may run the groups of an edge; `most` if there are no two."""
    problem = classes.problem
    sets, row = device_sets(classes)
    left, right = row[problem.group[problem.edge_source]], row[problem.group[problem.edge_target]]
    a, b = np.nonzero(classes.linked)
    links = np.stack([each[a, b] for each in (classes.latency, classes.num, classes.den)], axis=1)
    kinds, kind = np.unique(links, axis=0, return_inverse=True)
    least = np.full(problem.n_edges, most, dtype=np.int64)
    if len(kinds) > KINDS:
        slowest = min(range(len(kinds)), key=lambda at: Fraction(int(kinds[at, 1]), int(kinds[at, 2])))
        kinds = np.array([[kinds[:, 0].min(), *kinds[slowest, 1:]]])
        kind = np.zeros(len(a), dtype=np.int64)
    for at, (latency, num, den) in enumerate(kinds.tolist()):
        pairs = np.zeros_like(classes.linked)
        pairs[a[kind.reshape(-1) == at], b[kind.reshape(-1) == at]] = True
        able = (sets.astype(np.int64) @ pairs.astype(np.int64) @ sets.T.astype(np.int64)) > 0
        usable = able[left, right] & ~classes.together
        ticks = transfer_ticks(problem.payload[usable], latency, num, den)
        least[usable] = np.minimum(least[usable], ticks)
    return least
