"""Forward and backward passes over a part of a schedule: list scheduling that knows what follows each task.

A forward pass places the tasks again, in the order of their starts, each on the device with the least sum of its end
and of the ticks that follow it there, which are those of the last schedule. A backward pass does the same from the end:
it runs on the reversed graph, and what follows a task there are the ticks before it. Each pass uses the schedule of the
pass before, so a chain of passes settles on a schedule in which most tasks have the device that suits both sides.

Passes in both directions are the iterative technique of K. Y. Li, R. J. Willis (EJOR 56, 1992,
doi:10.1016/0377-2217(92)90320-9) and the forward-backward improvement of P. Tormos, A. Lova (Annals of Operations
Research 102, 2001, doi:10.1023/A:1010997814183) for project scheduling. Departures: tasks choose devices as well as
times, by the ticks that follow; a pass may add noise to durations; devices with which a task meets an `aim` count as
equal, and it takes the one on which it ends first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from ..._constructive.groups import Groups, grouped, with_homes
from ..._constructive.placement_ops import can_host, compute_ready_times, earliest_start, occupy
from ..._constructive.timeline import DONE, NEVER, Instance, Timeline, make_instance, make_timeline, work_steps
from .subproblem import Subproblem

MODULUS = 2**31 - 1
"""Modulus of Park and Miller's generator."""

WHOLE = 1000
"""Shares in a kernel are thousandths."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """A solution of a subproblem in its own ticks: devices (k,), starts (k,), and the makespan."""

    device: Int
    start: Int
    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A direction of passes over k tasks."""

    problem: Problem
    instance: Instance
    before: Int
    """(k, m) or (1, m) ticks from which a device is free and data from outside is there."""
    behind: Int
    """(k, m) or (1, m) ticks that follow outside."""
    rank: Int
    """(k,) the positions of the tasks in a topological order."""


class Passes:
    """Passes over one subproblem, each with the schedule of the pass before as its knowledge of what follows.

    Memory (under `peak` as in the subproblem), colocation, separation and feasible devices are respected; ports and
    deadlines are ignored.

    Parameters
    ----------
    device, tail
        (k,) the devices of a schedule, and the ticks from the start of each task to the end.
    most
        The number of passes that may follow, which decides whether code is compiled.
    """

    def __init__(self, sub: Subproblem, device: Int, tail: Int, seed: int, most: int) -> None:
        problem = sub.problem
        self.groups = _groups(sub)
        turned = replace(
            problem,
            latency=problem.latency.T.copy(),
            byte_ticks_num=problem.byte_ticks_num.T.copy(),
            byte_ticks_den=problem.byte_ticks_den.T.copy(),
        )
        forth, back = (make_instance(each, self.groups, insertion=True) for each in (problem, turned))
        back = back._replace(
            in_start=forth.out_start,
            in_source=forth.out_target,
            in_payload=forth.out_payload,
            out_start=forth.in_start,
            out_target=forth.in_source,
            out_payload=forth.in_payload,
        )
        rank = np.empty(problem.n_tasks, dtype=np.int64)
        rank[problem.order] = np.arange(problem.n_tasks)
        self.forth = Side(problem, forth, sub.head, sub.tail, rank)
        self.back = Side(turned, back, sub.tail, sub.head, -rank)
        self.random = np.array([seed % (MODULUS - 1) + 1])
        self.steps = work_steps(problem)
        self._place = place_again.select(self.steps * most, chunked=True)
        self.backward = True  # whether `line` is a schedule of the reversed graph
        self.line = make_timeline(turned, self.groups)
        self.line.device[:], self.line.end[:] = device, tail

    def run(self, noise: int = 0, aim: int = 0) -> Arrangement | None:
        """Make a pass against the direction of the last one; return its schedule, None if a task found no device.

        Parameters
        ----------
        noise
            Random ticks are added to each duration when devices are compared, up to this many thousandths of it.
        aim
            A makespan in ticks; devices with which a task keeps it count as equal.
        """
        side, other = (self.forth, self.back) if self.backward else (self.back, self.forth)
        sequence = np.lexsort((side.rank, -self.line.end))
        line = make_timeline(side.problem, self.groups)
        stuck = self._place(
            side.instance, line, other.instance, self.line, sequence, side.before, side.behind, aim, noise, self.random
        )
        if stuck != DONE:
            return None
        self.backward, self.line = not self.backward, line
        row = np.arange(len(sequence)) if len(side.behind) > 1 else 0
        value = int((line.end + side.behind[row, line.device]).max())
        return Arrangement(line.device, value - line.end if self.backward else line.start, value)


def _groups(sub: Subproblem) -> Groups:
    """Return the groups of a subproblem; those with a single allowed device have their home there."""
    groups = grouped(sub.problem)
    feasible = groups.feasible & sub.allowed
    home = np.where((feasible.sum(axis=1) == 1) & (groups.home < 0), feasible.argmax(axis=1), groups.home)
    return with_homes(replace(groups, feasible=feasible), home)


@kernel(compute_ready_times, can_host, earliest_start, occupy, allocates=False)
def place_again(
    instance: Instance,
    line: Timeline,
    other: Instance,
    mirror: Timeline,
    sequence: Int,
    before: Int,
    behind: Int,
    aim: int,
    noise: int,
    random: Int,
) -> int:
    """Place the tasks in turn; return DONE or the task that no device can take.

    `other` and `mirror` are the reversed graph and its last schedule: the tick from which a task could start there is
    the number of ticks that follow it here.
    """
    m = len(line.room)
    for i in sequence:
        g = instance.group[i]
        home = line.home[g]
        compute_ready_times(instance, line, i)
        compute_ready_times(other, mirror, i)
        first, last = min(i, len(before) - 1), min(i, len(behind) - 1)
        best, best_worth, best_end, best_start, best_gap = -1, NEVER, NEVER, 0, 0
        for d in range(m):
            if home >= 0 and d != home:
                continue
            ticks = instance.duration[i, d]
            ready = max(line.ready[d], before[first, d])
            after = max(mirror.ready[d], behind[last, d])
            if noise > 0:
                random[0] = random[0] * 48271 % MODULUS
                after += ticks * noise * (random[0] % WHOLE) // (WHOLE * WHOLE)
            end = ready + ticks
            worth = max(end + after, aim)
            if worth > best_worth or (worth == best_worth and end >= best_end):
                continue
            if home < 0 and not can_host(instance, line, g, d):
                continue
            start, gap = earliest_start(instance, line, i, d, ready)
            end = start + ticks
            worth = max(end + after, aim)
            if worth < best_worth or (worth == best_worth and end < best_end):
                best, best_worth, best_end, best_start, best_gap = d, worth, end, start, gap
        if best < 0:
            return int(i)
        occupy(instance, line, i, best, best_start, best_gap)
    return DONE
