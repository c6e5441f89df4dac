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
from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel, runs_compiled
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.simulation.loops import pop, push

from ..._constructive.groups import Groups, grouped, with_homes
from ..._constructive.placement_ops import can_host, compute_ready_times, earliest_start, occupy
from ..._constructive.timeline import (
    NEVER,
    Instance,
    Links,
    Timeline,
    links_of,
    make_instance,
    make_timeline,
    work_steps,
)
from .subproblem import Subproblem

MODULUS = 2**31 - 1
"""Modulus of Park and Miller's generator."""

WHOLE = 1000
"""Shares in a kernel are thousandths."""

RESTART = 6
"""Passes without gain after which the search returns to the best schedule."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """A solution of a subproblem in its own ticks: devices (k,), starts (k,), and the makespan."""

    device: Int
    start: Int
    value: int


class Side(NamedTuple):
    """A direction of passes over k tasks."""

    instance: Instance
    line: Timeline
    before: Int
    """(k, m) ticks from which a device is free and data from outside is there."""
    behind: Int
    """(k, m) ticks that follow outside."""


FORTH, BACK = 0, 1
"""Values of `Chain.number` at LAST and KEPT."""

LAST, KEPT, VALUE, SINCE, SEED, MADE = range(6)
"""Indices of `Chain.number`: direction of the last pass and of the best one, makespan of the best arrangement, passes
since then, state of the random numbers, passes."""


class Chain(NamedTuple):
    """The state of a chain of passes over k tasks in g groups."""

    home: Int
    room: Int
    """(g,) homes at the beginning of each pass, -1 without one; (m,) bytes that they leave."""
    order: Int
    """(k,) the tasks in a topological order."""
    rank: Int
    sequence: Int
    key: Int
    """(k,) scratch: keys and codes of a heap, and the sequence of a pass."""
    kept_device: Int
    kept_end: Int
    """(k,) the best schedule in the direction of its pass."""
    device: Int
    start: Int
    """(k,) the best arrangement."""
    number: Int
    """At the indices LAST, ..."""


class Passes:
    """Passes over one subproblem, each with the schedule of the pass before as its knowledge of what follows.

    Memory (under `peak` as in the subproblem), colocation, separation and feasible devices are respected; ports and
    deadlines are ignored. `best` is the best arrangement so far if it is shorter than the schedule at the start.

    Parameters
    ----------
    device, tail
        (k,) the devices of a schedule, and the ticks from the start of each task to the end.
    links
        The links of the subproblem's devices and of the reversed graph, see `both_links`.
    most
        The number of passes that may follow, which decides whether code is compiled.
    """

    def __init__(
        self, sub: Subproblem, device: Int, tail: Int, links: tuple[Links, Links], seed: int, most: int
    ) -> None:
        problem = sub.problem
        self.groups = groups = _groups(sub)
        forth, back = (make_instance(problem, groups, True, each) for each in links)
        back = back._replace(
            in_start=forth.out_start,
            in_source=forth.out_target,
            in_payload=forth.out_payload,
            out_start=forth.in_start,
            out_target=forth.in_source,
            out_payload=forth.in_payload,
        )
        self.forth = Side(forth, make_timeline(problem, groups), sub.head, sub.tail)
        self.back = Side(back, make_timeline(problem, groups), sub.tail, sub.head)
        self.back.line.device[:], self.back.line.end[:] = device, tail
        scratch = ("rank", "sequence", "key", "device", "start")
        self.chain = Chain(
            home=groups.home,
            room=groups.room,
            order=problem.order,
            kept_device=device.copy(),
            kept_end=tail.copy(),
            number=np.array([BACK, BACK, sub.span, 0, seed % (MODULUS - 1) + 1, 0]),
            **{name: np.empty(problem.n_tasks, dtype=np.int64) for name in scratch},
        )
        self.span = sub.span
        self.steps = work_steps(problem)
        self._run = run_passes.select(self.steps * most, chunked=True)

    @property
    def compiled(self) -> bool:
        """Whether passes run in compiled code."""
        return runs_compiled(self._run)

    @property
    def best(self) -> Arrangement | None:
        """The best arrangement."""
        value = int(self.chain.number[VALUE])
        return Arrangement(self.chain.device, self.chain.start, value) if value < self.span else None

    def run(self, passes: int, noise: int = 0, aim: int = 0) -> None:
        """Make passes in alternating directions.

        Parameters
        ----------
        noise
            Random ticks are added to each duration when devices are compared, up to this many thousandths of it.
        aim
            Devices with which a task keeps a makespan of this many thousandths of the best one count as equal.
        """
        self._run(self.forth, self.back, self.chain, passes, noise, aim)


def both_links(problem: Problem) -> tuple[Links, Links]:
    """Return the links of a problem's devices, and those of the reversed graph."""
    turned = replace(
        problem,
        latency=problem.latency.T.copy(),
        byte_ticks_num=problem.byte_ticks_num.T.copy(),
        byte_ticks_den=problem.byte_ticks_den.T.copy(),
    )
    return links_of(problem), links_of(turned)


def _groups(sub: Subproblem) -> Groups:
    """Return the groups of a subproblem; those with a single allowed device have their home there."""
    groups = grouped(sub.problem)
    feasible = groups.feasible & sub.allowed
    home = np.where((feasible.sum(axis=1) == 1) & (groups.home < 0), feasible.argmax(axis=1), groups.home)
    return with_homes(replace(groups, feasible=feasible), home)


@kernel(compute_ready_times, can_host, earliest_start, occupy, allocates=False)
def place_again(here: Side, there: Side, chain: Chain, aim: int, noise: int) -> int:
    """Place the tasks of `chain.sequence` in turn; return the makespan, or NEVER if a task finds no device.

    `there` is the reversed graph with its last schedule: the tick from which a task could start there is the number of
    ticks that follow it here.
    """
    instance, line, number = here.instance, here.line, chain.number
    m = len(line.room)
    span = 0
    for i in chain.sequence:
        g = instance.group[i]
        home = line.home[g]
        compute_ready_times(instance, line, i)
        compute_ready_times(there.instance, there.line, i)
        best, best_worth, best_end, best_start, best_gap = -1, NEVER, NEVER, 0, 0
        for d in range(m):
            if home >= 0 and d != home:
                continue
            ticks = instance.duration[i, d]
            ready = max(line.ready[d], here.before[i, d])
            after = max(there.line.ready[d], here.behind[i, d])
            end = ready + ticks
            worth = max(end + after, aim)
            if worth > best_worth or (worth == best_worth and end >= best_end):
                continue
            if home < 0 and not can_host(instance, line, g, d):
                continue
            start, gap = earliest_start(instance, line, i, d, ready)
            end = start + ticks
            if noise > 0:
                number[SEED] = number[SEED] * 48271 % MODULUS
                after += ticks * noise * (number[SEED] % WHOLE) // (WHOLE * WHOLE)
            worth = max(end + after, aim)
            if worth < best_worth or (worth == best_worth and end < best_end):
                best, best_worth, best_end, best_start, best_gap = d, worth, end, start, gap
        if best < 0:
            return NEVER
        occupy(instance, line, i, best, best_start, best_gap)
        span = max(span, best_end + here.behind[i, best])
    return span


@kernel(push, pop, allocates=False)
def prepare(here: Side, there: Side, chain: Chain, way: int) -> None:
    """Empty the timeline of a pass, and fill `chain.sequence`: the tasks by the last schedule of the other direction.

    They come by decreasing end, ties by the topological order or against it.
    """
    line, k = here.line, len(chain.order)
    for g in range(len(line.home)):
        line.home[g] = chain.home[g]
    for d in range(len(line.room)):
        line.room[d], line.free[d], line.first[d], line.longest[d] = chain.room[d], 0, NEVER, 0
        line.gaps[d], line.gap_start[d, 0], line.gap_end[d, 0] = 1, 0, NEVER
    for at in range(k):
        i = chain.order[at]
        push(chain.key, chain.rank, at, -there.line.end[i], at if way == FORTH else k - 1 - at)
    for at in range(k):
        first = chain.rank[0]
        chain.sequence[at] = chain.order[first if way == FORTH else k - 1 - first]
        pop(chain.key, chain.rank, k - 1 - at)


@kernel(prepare, place_again, allocates=False)
def run_passes(forth: Side, back: Side, chain: Chain, passes: int, noise: int, aim: int) -> None:
    """Make passes in alternating directions; after RESTART passes without gain, continue from the best schedule."""
    number = chain.number
    k = len(chain.order)
    for _ in range(passes):
        way = FORTH if number[LAST] == BACK else BACK
        number[SEED] = number[SEED] * 48271 % MODULUS
        level = noise * (number[SEED] % WHOLE) // WHOLE if number[MADE] > 1 else 0
        number[MADE] += 1
        if way == FORTH:
            prepare(forth, back, chain, way)
            value = place_again(forth, back, chain, aim * number[VALUE] // WHOLE, level)
            line = forth.line
        else:
            prepare(back, forth, chain, way)
            value = place_again(back, forth, chain, aim * number[VALUE] // WHOLE, level)
            line = back.line
        number[LAST] = way
        number[SINCE] += 1
        if value < number[VALUE]:
            number[VALUE], number[KEPT], number[SINCE] = value, way, 0
            for i in range(k):
                chain.kept_device[i], chain.kept_end[i] = line.device[i], line.end[i]
                chain.device[i] = line.device[i]
                chain.start[i] = line.start[i] if way == FORTH else value - line.end[i]
        elif value == NEVER or number[SINCE] % RESTART == 0:
            number[LAST] = number[KEPT]
            kept = forth.line if number[KEPT] == FORTH else back.line
            for i in range(k):
                kept.device[i], kept.end[i] = chain.kept_device[i], chain.kept_end[i]
