"""The state of a local search for pipelines: stages of units, devices of stages, and loads that moves update.

A *place* is a stage that may be empty. Where stages are limited, places are numbered in the order of the pipeline, and
a unit may move to any place between those of the units before and after it; so each state is a valid sequence of
stages. Else each device has one place, and units may move anywhere.

The cost of a state is the norm of the periods that the devices allow,

    (sum over devices d of (load[d] / team[d] / scale)^p)^(1 / p)

which is close to the largest of them but also counts the others, and a penalty for memory that exceeds capacities. The
greater p, the less do the others count: with p = 16, sixteen equal loads cost as much as one that is 19% larger.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int

from .units import Units, device_load, link_ticks, team_ticks

SEED, KNOWN, ACCEPTED, LONGEST, PERIOD, OVER, BEST, SQUARES = range(8)
"""Indices of `State.number`: random numbers, whether there is a feasible best state, accepted moves, most units that a
move takes along, the period of the state, its bytes above capacities, the period of the best state, and the logarithm
of the power of the norm to base 2."""

COST, SCALE, WEIGHT = range(3)
"""Indices of `State.real`: cost, ticks that count as one, and the weight of memory above capacities."""

BUSY, AGAIN, SENT, RECEIVED, ENTERING, FIXED, KEPT, SOURCE, GRADIENT, AHEAD, BEHIND = range(11)
"""Rows of `State.load`: ticks, ticks of outputs computed again, sent and received ticks, received bytes for forward
tasks of training, bytes by kind, and numbers of forward and backward tasks."""

ROWS = 11

MODULUS = 2**31 - 1


class State(NamedTuple):
    """A state of k units, l places, m devices and x items."""

    place: Int  # (k,) place of each unit
    home: Int  # (l,) device of each place
    leader: Int  # (m,) leader of the team of each device
    team: Int  # (m,) devices of its team, 0 for replicas
    again: Int  # (m,) 1 if the device computes outputs again
    consumers: Int  # (x, m) units that consume an item, by device
    entering: Int  # (x, m) those that do so with forward tasks of training; (1, 1) without recomputation
    load: Int  # (11, m)
    filled: Int  # (l, 2) forward and backward tasks of each place
    moved: Int  # (2, k) units that a move has moved, and their places before
    best_place: Int
    best_home: Int
    best_leader: Int
    best_again: Int
    number: Int
    real: Float


@kernel(allocates=False)
def draw(state: State, below: int) -> int:
    """Return a random number in 0..below - 1: Park and Miller's generator."""
    state.number[SEED] = state.number[SEED] * 48271 % MODULUS
    return int(state.number[SEED] % below)


@kernel(link_ticks, allocates=False)
def count(units: Units, state: State, x: int, a: int, only: int, sign: int) -> None:
    """Add what an item takes of all devices, if device `a` produces it, or subtract it (sign -1).

    `only` is the device of its consumer if it has one consumer, else -1.
    """
    most = total = 0
    for b in range(max(only, 0), only + 1 if only >= 0 else len(units.label)):
        if b == a or state.consumers[x, b] == 0:
            continue
        ticks = link_ticks(units, units.payload[x], a, b)
        state.load[RECEIVED, b] += sign * ticks
        total += ticks
        most = max(most, ticks)
        if units.recompute and state.entering[x, b] > 0:
            state.load[ENTERING, b] += sign * units.payload[x]
    state.load[SENT, a] += sign * (most if units.multicast else total)


@kernel(allocates=False)
def take(units: Units, state: State, v: int, p: int, sign: int) -> None:
    """Add to a place what its unit takes by itself."""
    d = state.home[p]
    state.load[BUSY, d] += sign * units.computing[v, d]
    state.load[AGAIN, d] += sign * units.again[v, d]
    state.load[FIXED, d] += sign * units.fixed[v]
    state.load[KEPT, d] += sign * units.kept[v]
    state.load[SOURCE, d] += sign * units.source[v]
    state.load[GRADIENT, d] += sign * units.gradient[v]
    for way in range(2):
        state.load[AHEAD + way, d] += sign * units.tasks[v, way]
        state.filled[p, way] += sign * units.tasks[v, way]


@kernel(count, take, link_ticks, allocates=False)
def shift(units: Units, state: State, v: int, p: int) -> None:
    """Move a unit to a place."""
    old = state.place[v]
    a, b = state.home[old], state.home[p]
    take(units, state, v, old, -1)
    state.place[v] = p
    take(units, state, v, p, 1)
    if a == b:
        return
    for e in range(units.touched_start[v], units.touched_start[v + 1]):
        x = units.touched[e]
        produces = units.producer[x] == v
        source = a if produces else state.home[state.place[units.producer[x]]]
        first = units.consumer_start[x]
        lone = units.consumer_start[x + 1] == first + 1
        only = -1
        if lone:
            only = state.home[state.place[units.consumer[first]]] if produces else a
        count(units, state, x, source, only, -1)
        if produces:
            source = b
        else:
            only = b if lone else -1
            state.consumers[x, a] -= 1
            state.consumers[x, b] += 1
            if units.recompute:
                for f in range(units.consumer_start[x], units.consumer_start[x + 1]):
                    if units.consumer[f] == v:
                        state.entering[x, a] -= units.entering[f]
                        state.entering[x, b] += units.entering[f]
                        break
        count(units, state, x, source, only, 1)


@kernel(count, take, link_ticks, allocates=False)
def rebuild(units: Units, state: State) -> None:
    """Compute all sums from places, homes and teams."""
    for d in range(len(state.team)):
        state.team[d] = 0
        for row in range(len(state.load)):
            state.load[row, d] = 0
    for p in range(len(state.home)):
        state.filled[p, 0] = state.filled[p, 1] = 0
    for x in range(len(units.producer)):
        for d in range(len(state.team)):
            state.consumers[x, d] = 0
            if units.recompute:
                state.entering[x, d] = 0
    for d in range(len(state.team)):
        state.team[state.leader[d]] += 1
    for v in range(len(state.place)):
        take(units, state, v, state.place[v], 1)
    for x in range(len(units.producer)):
        for f in range(units.consumer_start[x], units.consumer_start[x + 1]):
            d = state.home[state.place[units.consumer[f]]]
            state.consumers[x, d] += 1
            if units.recompute:
                state.entering[x, d] += units.entering[f]
        count(units, state, x, state.home[state.place[units.producer[x]]], -1, 1)


@kernel(device_load, team_ticks, allocates=False)
def assess(units: Units, state: State) -> float:
    """Return the cost of the state; set its period and its bytes above capacities."""
    norm, share, period, over = 0.0, 0.0, 0, 0
    later = 0
    places = len(state.home)
    for back in range(places):
        p = places - 1 - back
        d = state.home[p]
        # A device with several places counts once, at the last of them: only `1f1b` depends on the order, and it allows
        # one place.
        stages = int(state.filled[p, 0] > 0) + int(state.filled[p, 1] > 0)
        if places > len(units.label):
            counted = False
            for other in range(p + 1, places):
                counted = counted or state.home[other] == d
            if counted:
                continue
            for other in range(p):
                if state.home[other] == d:
                    stages += int(state.filled[other, 0] > 0) + int(state.filled[other, 1] > 0)
        r = state.team[d]
        if r == 0:
            continue
        busy = state.load[BUSY, d] + stages * units.launch[d]
        runs = units.in_flight
        if runs == 0:
            runs = 1
            if state.load[AHEAD, d] > 0:
                later += r
                runs = -(-later // r)
        need = state.load[FIXED, d]
        if state.again[d]:
            busy += state.load[AGAIN, d]
            need += runs * state.load[ENTERING, d] + (runs - 1) * state.load[SOURCE, d]
        else:
            need += (runs - 1) * state.load[KEPT, d]
        total = device_load(units, d, r, busy, state.load[SENT, d], state.load[RECEIVED, d], state.load[GRADIENT, d])
        period = max(period, -(-total // r))
        part = total / (r * state.real[SCALE])
        for _ in range(state.number[SQUARES]):
            part *= part
        norm += part
        if need > units.capacity[d]:
            over += need - units.capacity[d]
            share += (need - units.capacity[d]) / max(units.capacity[d], 1) + 1e-3
    state.number[PERIOD], state.number[OVER] = period, over
    return float(norm ** (0.5 ** state.number[SQUARES]) + state.real[WEIGHT] * share)


@kernel(allocates=False)
def allowed(units: Units, state: State, v: int, p: int) -> bool:
    """Whether a unit may be in a place with the units that are there, as far as classes and separations say."""
    d = state.home[p]
    if not units.allowed[v, d] or state.leader[d] != d:
        return False
    for e in range(units.apart_start[v], units.apart_start[v + 1]):
        if state.home[state.place[units.apart[e]]] == d:
            return False
    return True


@kernel(allocates=False)
def in_order(units: Units, state: State, v: int) -> bool:
    """Whether a unit is not before its predecessors and not after its successors."""
    for e in range(units.before_start[v], units.before_start[v + 1]):
        if state.place[units.before[e]] > state.place[v]:
            return False
    for e in range(units.after_start[v], units.after_start[v + 1]):
        if state.place[units.after[e]] < state.place[v]:
            return False
    return True


@kernel(draw, allocates=False)
def neighbour(units: Units, state: State, v: int) -> int:
    """Return a random unit that shares an item with a unit, -1 if there is none."""
    degree = units.touched_start[v + 1] - units.touched_start[v]
    if degree == 0:
        return -1
    x = units.touched[units.touched_start[v] + draw(state, degree)]
    if units.producer[x] != v:
        return int(units.producer[x])
    start = units.consumer_start[x]
    return int(units.consumer[start + draw(state, units.consumer_start[x + 1] - start)])


@kernel(draw, neighbour, allocates=False)
def target(units: Units, state: State, v: int) -> int:
    """Return a random place for a unit, often that of a neighbour."""
    if draw(state, 4):
        u = neighbour(units, state, v)
        if u >= 0 and state.place[u] != state.place[v]:
            return int(state.place[u])
    if not units.ordered:
        return draw(state, len(state.home))
    low, high = 0, len(state.home) - 1
    for e in range(units.before_start[v], units.before_start[v + 1]):
        low = max(low, state.place[units.before[e]])
    for e in range(units.after_start[v], units.after_start[v + 1]):
        high = min(high, state.place[units.after[e]])
    return low + draw(state, high - low + 1) if low <= high else int(state.place[v])


@kernel(allowed, shift, count, take, link_ticks, allocates=False)
def go(units: Units, state: State, v: int, p: int, moved: int) -> int:
    """Move a unit if it is allowed there; return the number of moved units, -1 if it is not."""
    if not allowed(units, state, v, p):
        return -1
    state.moved[0, moved], state.moved[1, moved] = v, state.place[v]
    shift(units, state, v, p)
    return moved + 1


@kernel(go, allowed, shift, count, take, link_ticks, in_order, allocates=False)
def gather(units: Units, state: State, v: int, p: int, most: int) -> tuple[int, bool]:
    """Move a unit and all that the order of places forces to come along; return their number and whether it worked."""
    old = state.place[v]
    moved, at = go(units, state, v, p, 0), 0
    if moved < 0:
        return 0, False
    while at < moved:
        w = state.moved[0, at]
        at += 1
        start, end = units.before_start[w], units.before_start[w + 1]
        if p > old:
            start, end = units.after_start[w], units.after_start[w + 1]
        for e in range(start, end):
            u = units.after[e] if p > old else units.before[e]
            there = state.place[u]
            if (p > old and there >= p) or (p < old and there <= p):
                continue
            if moved >= most:
                return moved, False
            result = go(units, state, u, p, moved)
            if result < 0:
                return moved, False
            moved = result
    return moved, True


@kernel(go, allowed, shift, count, take, link_ticks, draw, neighbour, allocates=False)
def cluster(units: Units, state: State, v: int, p: int, most: int) -> int:
    """Move a unit and some connected ones from its place; return their number, 0 if none may move."""
    old = state.place[v]
    moved, w = max(go(units, state, v, p, 0), 0), v
    for _ in range(2 * most):
        if moved == 0 or moved >= most:
            break
        u = neighbour(units, state, w)
        if u >= 0 and state.place[u] == old:
            result = go(units, state, u, p, moved)
            if result > 0:
                moved = result
                w = u
        elif draw(state, 3) == 0:
            w = state.moved[0, draw(state, moved)]
    return moved


@kernel(
    draw, neighbour, target, go, allowed, shift, count, take, link_ticks, in_order, gather, cluster, allocates=False
)
def propose(units: Units, state: State) -> tuple[int, bool]:
    """Move random units; return their number, and whether the result satisfies all but memory."""
    v = draw(state, len(state.place))
    p = target(units, state, v)
    if p == state.place[v]:
        return 0, False
    kind = draw(state, 8)
    if kind == 0:  # two units change places
        u = draw(state, len(state.place))
        w = neighbour(units, state, v)
        if w >= 0 and draw(state, 2):
            w = neighbour(units, state, w)
            u = w if w >= 0 else u
        a, b = state.place[v], state.place[u]
        if a == b:
            return 0, False
        if go(units, state, v, b, 0) < 0:
            return 0, False
        if go(units, state, u, a, 1) < 0:
            return 1, False
        return 2, not units.ordered or (in_order(units, state, u) and in_order(units, state, v))
    if units.ordered:
        if kind < 3:  # to a random place, with all that must come along
            p = max(min(state.place[v] + (1 if draw(state, 2) else -1), len(state.home) - 1), 0)
            if p == state.place[v]:
                return 0, False
            return gather(units, state, v, p, min(state.number[LONGEST], len(state.place)))
        return gather(units, state, v, p, min(4, len(state.place)))
    if kind < 3:
        most = 2  # most clusters are small, as moves of large ones take long
        while most < state.number[LONGEST] and draw(state, 2):
            most *= 2
        moved = cluster(units, state, v, p, min(most, len(state.place)))
        return moved, moved > 0
    moved = max(go(units, state, v, p, 0), 0)
    return moved, moved > 0


@kernel(allocates=False)
def keep(state: State) -> None:
    """Keep the state as the best."""
    for v in range(len(state.place)):
        state.best_place[v] = state.place[v]
    for p in range(len(state.home)):
        state.best_home[p] = state.home[p]
    for d in range(len(state.leader)):
        state.best_leader[d] = state.leader[d]
        state.best_again[d] = state.again[d]
    state.number[BEST], state.number[KNOWN] = state.number[PERIOD], 1


@kernel(rebuild, count, take, link_ticks, allocates=False)
def swap(units: Units, state: State, a: int, b: int) -> bool:
    """Let the devices of two places change their units; return whether these may be there."""
    d, other = state.home[a], state.home[b]
    for p in range(len(state.home)):
        if state.home[p] == d:
            state.home[p] = other
        elif state.home[p] == other:
            state.home[p] = d
    state.again[d], state.again[other] = state.again[other], state.again[d]
    rebuild(units, state)
    for v in range(len(state.place)):  # noqa: SIM110 (a kernel)
        if not units.allowed[v, state.home[state.place[v]]]:
            return False
    return True


@kernel(allocates=False)
def exchangeable(units: Units, state: State, d: int, other: int) -> bool:
    """Whether each of two devices may have as many stages as the other has places."""
    ours = theirs = 0
    for p in range(len(state.home)):
        ours += int(state.home[p] == d)
        theirs += int(state.home[p] == other)
    return bool(ours <= units.segments[other] and theirs <= units.segments[d])


@kernel(draw, swap, rebuild, count, take, link_ticks, exchangeable, allocates=False)
def rearrange(units: Units, state: State) -> int:
    """Change devices, teams or recomputation at random; return a code for `restore`, -1 if nothing changed."""
    m, places = len(state.team), len(state.home)
    kind = draw(state, 3)
    if kind == 0:  # two stages change devices
        a, b = draw(state, places), draw(state, places)
        d, other = state.home[a], state.home[b]
        if units.label[d] == units.label[other] or state.team[d] != 1 or state.team[other] != 1:
            return -1
        if units.ordered and not exchangeable(units, state, d, other):
            return -1
        if not swap(units, state, a, b):
            swap(units, state, a, b)
            return -1
        return 4 * (a + places * b)
    if kind == 1:
        d = draw(state, m)
        if not units.recompute or state.load[AGAIN, d] == 0:
            return -1
        state.again[d] = 1 - state.again[d]
        return 1 + 4 * d
    # A device joins the team of another, or leaves its team.
    a, b = draw(state, m), draw(state, m)
    old = state.leader[a]
    if units.replicas == 1 or units.label[a] != units.label[b] or state.leader[b] != b or old == b:
        return -1
    if old == a and (state.load[AHEAD, a] or state.load[BEHIND, a] or state.team[a] > 1):
        return -1
    if a != b and (state.team[b] >= units.replicas or state.load[AHEAD, b] + state.load[BEHIND, b] == 0):
        return -1
    state.team[old] -= 1
    state.leader[a] = b
    state.team[b] += 1
    code: int = 2 + 4 * (a + m * old)
    return code


@kernel(swap, rebuild, count, take, link_ticks, allocates=False)
def restore(units: Units, state: State, code: int) -> None:
    """Undo what `rearrange` did."""
    m, places = len(state.team), len(state.home)
    kind, rest = code % 4, code // 4
    if kind == 0:
        swap(units, state, rest % places, rest // places)
    elif kind == 1:
        state.again[rest] = 1 - state.again[rest]
    else:
        a, old = rest % m, rest // m
        state.team[state.leader[a]] -= 1
        state.leader[a] = old
        state.team[old] += 1


@kernel(assess, device_load, team_ticks, draw, keep, rearrange, exchangeable, swap, rebuild, restore, propose, target,
        neighbour, go, allowed, shift, count, take, link_ticks, in_order, gather, cluster,
        allocates=False)  # fmt: skip
def anneal(units: Units, state: State, begin: int, end: int, rounds: int, hot: float, cold: float) -> None:
    """Try the moves `begin` to `end` of a cooling of `rounds` moves, whose temperature falls from `hot` to `cold`."""
    # A swap of devices computes all sums again, so it is rare.
    rare = max(len(state.place) // 4, 20)
    least = state.number[BEST] if state.number[KNOWN] else 2**62
    for at in range(begin, end):
        code, moved, valid = -1, 0, False
        if draw(state, rare) == 0:
            code = rearrange(units, state)
            valid = code >= 0
        else:
            moved, valid = propose(units, state)
        if moved == 0 and not valid:
            continue
        limit = state.real[COST]
        if hot > 0:
            limit -= hot * (cold / hot) ** (at / rounds) * math.log(1.0 - draw(state, 1 << 24) / (1 << 24))
        value = assess(units, state) if valid else limit + 1.0
        if value > limit:
            if code >= 0:
                restore(units, state, code)
            for back in range(moved):
                step = moved - 1 - back
                shift(units, state, state.moved[0, step], state.moved[1, step])
            continue
        state.real[COST] = value
        state.number[ACCEPTED] += 1
        better = not state.number[KNOWN] or state.number[PERIOD] < state.number[BEST]
        if better and state.number[OVER] == 0 and (state.number[PERIOD] < least or at == end - 1):
            keep(state)
            # Copies of large states take longer than moves.
            least = state.number[BEST] - len(state.place) * (state.number[BEST] // 100_000_000)
    if not state.number[KNOWN] or state.number[PERIOD] < state.number[BEST]:
        assess(units, state)
        if state.number[OVER] == 0:
            keep(state)
