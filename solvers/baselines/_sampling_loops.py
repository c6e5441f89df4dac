"""The loops of `placeopt_solvers.baselines._sampling`: random placements, and moves of random tasks to where they end
first.

n tasks, m devices, g groups.
"""

from __future__ import annotations

from typing import NamedTuple

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import transfer_ticks
from placeopt.simulation import Instance, Work, fifo_makespan

MODULUS = 2**31 - 1
"""Of the random numbers."""

TRIES = 100
"""Placements drawn without looking at memory and separation before another way is taken."""

MIXING = 4
"""Changes per group between two placements where most of those that are drawn break a rule."""


class Rules(NamedTuple):
    """What a placement of the groups must keep.

    Attributes
    ----------
    group, deadline
        (n,) as in `Problem`.
    option_start, option
        The devices of each group as CSR.
    memory, apart_start, apart
        As in `placeopt_solvers._constructive.groups.Groups`.
    capacity
        (m,) bytes.
    """

    group: Int
    deadline: Int
    option_start: Int
    option: Int
    memory: Int
    apart_start: Int
    apart: Int
    capacity: Int


class State(NamedTuple):
    """Where a search stands, changed in place.

    Attributes
    ----------
    home, trial
        (g,) the device of each group: of a placement that keeps all rules, and of one that is being drawn.
    room
        (m,) bytes that `home` leaves.
    device, best
        (n,) the device of each task, now and in the best placement so far.
    numbers
        (5,) the state of the random numbers; moves left before the next placement is drawn; lateness and makespan of
        the best placement, in ticks; 1 once there is one.
    """

    home: Int
    trial: Int
    room: Int
    device: Int
    best: Int
    numbers: Int


SEED, LEFT, LATE, SPAN, KNOWN = range(5)


@kernel(allocates=False)
def copy(source: Int, target: Int) -> None:
    """Copy an array. A slice assignment takes Numba half a second to compile."""
    for at in range(len(source)):
        target[at] = source[at]


@kernel(allocates=False)
def draw(numbers: Int, below: int) -> int:
    """A pseudo-random number in 0..below - 1, where below < 2^31: Park and Miller's generator, its upper digits."""
    numbers[SEED] = numbers[SEED] * 48271 % MODULUS
    return int(numbers[SEED] * below // MODULUS)


@kernel(allocates=False)
def rivalled(rules: Rules, home: Int, k: int, d: int, upto: int) -> bool:
    """Whether a group below `upto` that must be apart from group k is on device d."""
    for at in range(rules.apart_start[k], rules.apart_start[k + 1]):
        if rules.apart[at] < upto and home[rules.apart[at]] == d:
            return True
    return False


@kernel(copy, draw, rivalled, allocates=False)
def draw_home(rules: Rules, state: State, tries: int) -> bool:
    """Draw each group's device from its own until a placement keeps memory and separation; whether one did.

    Of the placements that keep them each is as likely as any other. Fills `home` and `room`.
    """
    g = len(rules.memory)
    for _ in range(tries):
        copy(rules.capacity, state.room)
        fine = True
        for k in range(g):
            first = rules.option_start[k]
            d = rules.option[first + draw(state.numbers, rules.option_start[k + 1] - first)]
            state.trial[k] = d
            state.room[d] -= rules.memory[k]
            if state.room[d] < 0 or rivalled(rules, state.trial, k, d, k):
                fine = False
                break
        if fine:
            copy(state.trial, state.home)
            return True
    copy(rules.capacity, state.room)
    for k in range(g):
        state.room[state.home[k]] -= rules.memory[k]
    return False


@kernel(allocates=False)
def may(rules: Rules, k: int, d: int) -> bool:
    """Whether group k may be on device d."""
    at = rules.option_start[k]
    while at < rules.option_start[k + 1] and rules.option[at] != d:
        at += 1
    return bool(at < rules.option_start[k + 1])


@kernel(draw, rivalled, may, allocates=False)
def mix_home(rules: Rules, state: State, changes: int) -> None:
    """Change `home` at random: a group goes elsewhere, or two exchange their devices, where all rules are kept.

    Each change is as likely as the one back, so that in the long run each placement that can be reached is as likely
    as any other (N. Metropolis et al. 1953, doi:10.1063/1.1699114).
    """
    home, room, memory = state.home, state.room, rules.memory
    g = len(memory)
    for _ in range(changes):
        k = draw(state.numbers, g)
        a = home[k]
        if draw(state.numbers, 2) == 0:
            first = rules.option_start[k]
            d = rules.option[first + draw(state.numbers, rules.option_start[k + 1] - first)]
            if d != a and room[d] >= memory[k] and not rivalled(rules, home, k, d, g):
                home[k] = d
                room[a] += memory[k]
                room[d] -= memory[k]
        else:
            h = draw(state.numbers, g)
            b = home[h]
            gain = memory[k] - memory[h]
            if a == b or room[b] < gain or room[a] < -gain or not may(rules, k, b) or not may(rules, h, a):
                continue
            home[k], home[h] = b, a
            if rivalled(rules, home, k, b, g) or rivalled(rules, home, h, a, g):
                home[k], home[h] = a, b
                continue
            room[a] += gain
            room[b] -= gain


@kernel(transfer_ticks, allocates=False)
def finish(case: Instance, rules: Rules, device: Int, work: Work, i: int, d: int) -> int:
    """Tick at which task i would end on device d if it could start with its last input.

    `work` holds the times of the placement `device` (n,). Members of the task's group come along.
    """
    graph = case.graph
    ready: int = graph.release[i]
    for position in range(graph.in_start[i], graph.in_start[i + 1]):
        k = graph.in_edge[position]
        u = graph.edge_source[k]
        arrival = work.start[u] + work.task_ticks[u]
        if device[u] != d and rules.group[u] != rules.group[i]:
            arrival += transfer_ticks(
                case.payload[k],
                case.latency[device[u], d],
                case.byte_ticks_num[device[u], d],
                case.byte_ticks_den[device[u], d],
            )
        ready = max(ready, arrival)
    return ready + int(case.duration[i, d])


@kernel(draw, rivalled, finish, allocates=False)
def relocate(case: Instance, rules: Rules, state: State, work: Work) -> bool:
    """Take a random task, and its group, to the device where it ends first; whether that is another than now."""
    i = draw(state.numbers, len(state.device))
    k, a = rules.group[i], state.device[i]
    chosen, least = a, finish(case, rules, state.device, work, i, a)
    for at in range(rules.option_start[k], rules.option_start[k + 1]):
        d = rules.option[at]
        if d == a or state.room[d] < rules.memory[k]:
            continue
        if rivalled(rules, state.home, k, d, len(state.home)):
            continue
        end = finish(case, rules, state.device, work, i, d)
        if end < least or (end == least and d < chosen):
            chosen, least = d, end
    if chosen == a:
        return False
    state.home[k] = chosen
    state.room[a] += rules.memory[k]
    state.room[chosen] -= rules.memory[k]
    for j in range(len(state.device)):
        state.device[j] = state.home[rules.group[j]]
    return True


@kernel(copy, draw_home, mix_home, relocate, fifo_makespan, allocates=False)
def sample(case: Instance, rules: Rules, state: State, work: Work, count: int, steps: int, tries: int) -> None:
    """Look at so many placements and keep the best: by lateness, then by makespan, first in first out.

    After each placement that is drawn come `steps` moves; a call goes on where the last one ended. Without `tries`
    placements come from changes of `home` alone.
    """
    n, numbers = len(state.device), state.numbers
    for _ in range(count):
        if numbers[LEFT] == 0:
            numbers[LEFT] = steps
            if not draw_home(rules, state, tries):
                mix_home(rules, state, MIXING * len(state.home))
            for i in range(n):
                state.device[i] = state.home[rules.group[i]]
        else:
            numbers[LEFT] -= 1
            if not relocate(case, rules, state, work):
                continue
        span = fifo_makespan(case, state.device, work)
        late = 0
        for i in range(n):
            late = max(late, work.start[i] + work.task_ticks[i] - rules.deadline[i])
        if numbers[KNOWN] == 0 or late < numbers[LATE] or (late == numbers[LATE] and span < numbers[SPAN]):
            numbers[LATE], numbers[SPAN], numbers[KNOWN] = late, span, 1
            copy(state.device, state.best)
