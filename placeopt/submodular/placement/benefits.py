"""Benefits of placing tasks, after Carbonari et al. 2017: the arrays, and what one placement is worth beside others.

Task j on device i, where the tasks of J_i stand already, has

    free = 2 - (c_ij + placed_i + fetched + swapped) / cap_i         section 2.2, freeRatio
    pf   = 1 + tasks parallel to j on other devices                  section 2.2; see `topology`

and the value of a placement grows by

    g(B_i + free pf) - g(B_i), B_i being the sum of these benefits   inside: equation 2
    (F + g(B_i + free) - g(B_i)) pf instead of the last such value   outside: equation 5, F = sum of g(B_i)

Section 5's extensions: `fetched` are the ticks of transfers from and to tasks on other devices, `swapped` those that
slower tiers of memory cost, and a gain is multiplied by what fullness leaves of it: nothing where there is no room.

Where c_ij + placed_i + ... > cap_i, which the paper rules out (section 3), pf is 1, for work that a device has no time
for does not run parallel to anything; and below zero g goes on as the identity, so that of bad placements the least bad
is known.

Data that will come from a task not placed is taken to be where its group stands, or else where the largest input of
that task comes from, and so on along largest inputs; data that goes to one, where its largest output goes. A task
brings its group along, whose transfers all count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import transfer_ticks
from placeopt.submodular.placement.topology import Graph, Topology, place

UNLIMITED_MEMORY, STEP, LINEAR = 0, 1, 2
"""What memory does to gains: nothing; none without room; they fall from the knee on to none at capacity."""

SQRT, LOG = 0, 1
"""The concave functions g: sqrt(x) and log(1 + x)."""


class Model(NamedTuple):
    """A problem and its settings as the kernels take it: n tasks, g groups, m devices, k tiers.

    Attributes
    ----------
    graph
        The task graph.
    cost
        (m, n) ticks of each task on each device, infinite where it may not run.
    cap
        (m,) i_cap, ticks.
    group, memory, member_start, member, apart_start, apart
        (n,) group of each task; (g,) bytes of each, its tasks, and the groups that it must be apart from, as CSR.
    capacity
        (m,) bytes.
    tier_end, tier_ticks
        (m, k) byte at which each tier of a device's memory ends, and ticks that each byte in it costs.
    out_payload, in_payload
        Bytes of each edge, in the order of graph.out_target and graph.in_source.
    largest_input, largest_output
        (n,) where the edge of each task's largest input stands in graph.out_target, and that of its largest output in
        graph.in_source; -1 without any.
    latency, num, den
        (m, m) of links, as in `Problem`.
    inside, parallelism, load, communication
        Whether the parallelism factor is inside the sum; and whether it, placed_i and transfers count.
    curve
        SQRT or LOG.
    fullness, knee, balance
        UNLIMITED_MEMORY, STEP or LINEAR; share of the capacity from which on LINEAR gains fall; share of the gain
        that a full device loses beside.
    """

    graph: Graph
    cost: Float
    cap: Float
    group: Int
    memory: Int
    member_start: Int
    member: Int
    apart_start: Int
    apart: Int
    capacity: Int
    tier_end: Int
    tier_ticks: Float
    out_payload: Int
    in_payload: Int
    largest_input: Int
    largest_output: Int
    latency: Int
    num: Int
    den: Int
    inside: bool
    parallelism: bool
    load: bool
    communication: bool
    curve: int
    fullness: int
    knee: float
    balance: float


class Standing(NamedTuple):
    """A placement as it grows.

    Attributes
    ----------
    topology
        Which tasks are placed where, and parallel to what.
    home
        (g,) device of each group that has one, else -1.
    benefit, placed
        (m,) B_i and placed_i.
    held, used
        (m,) tasks on each device; bytes, those reserved for groups with a home given at the start included.
    value
        (3,) F, the pf of the task placed last, and its product with F: the value f outside.
    fetched
        (m, g) ticks of the transfers that the tasks not placed of each group would need on each device.
    origin, target
        (n,) device where a task's data is thought to come from, and go to; -1 where nothing is known.
    changed, n_changed
        (g,), (1,) groups that may need less transferred to or from some device since the last placement.
    stamp, stack
        (g,), (n,) to scribble on.
    """

    topology: Topology
    home: Int
    benefit: Float
    placed: Float
    held: Int
    used: Int
    value: Float
    fetched: Int
    origin: Int
    target: Int
    changed: Int
    n_changed: Int
    stamp: Bool
    stack: Int


@kernel(allocates=False)
def concave(curve: int, x: float) -> float:
    """The function g; the identity below zero."""
    if x < 0.0:
        return x
    if curve == SQRT:
        return math.sqrt(x)
    return math.log1p(x)


@kernel(allocates=False)
def may_go(model: Model, standing: Standing, u: int, i: int) -> bool:
    """Whether task u may be placed on device i beside what stands."""
    if model.cost[i, u] == math.inf:
        return False
    k = model.group[u]
    home = standing.home[k]
    if home >= 0:
        return bool(home == i)
    if model.fullness != UNLIMITED_MEMORY and model.memory[k] > model.capacity[i] - standing.used[i]:
        return False
    for a in range(model.apart_start[k], model.apart_start[k + 1]):  # noqa: SIM110 - Numba has no all()
        if standing.home[model.apart[a]] == i:
            return False
    return True


@kernel(allocates=False)
def swapping(model: Model, i: int, begin: int, end: int) -> float:
    """Ticks that the bytes from `begin` to `end` of device i's memory cost."""
    ticks, low = 0.0, 0
    for k in range(model.tier_end.shape[1]):
        high = model.tier_end[i, k]
        overlap = min(end, high) - max(begin, low)
        if overlap > 0:
            ticks += overlap * model.tier_ticks[i, k]
        low = high
    return ticks


@kernel(swapping, allocates=False)
def ticks_of(model: Model, standing: Standing, u: int, i: int) -> float:
    """Ticks of device i that task u takes: its duration, and swapping."""
    ticks = float(model.cost[i, u])
    if model.tier_end.shape[1] > 0:
        k = model.group[u]
        if standing.home[k] < 0:
            ticks += swapping(model, i, standing.used[i], standing.used[i] + model.memory[k])
    return ticks


@kernel(ticks_of, allocates=False)
def free(model: Model, standing: Standing, u: int, i: int) -> float:
    """The paper's freeRatio: 2 and less, below 1 where the device has no time left."""
    ticks = ticks_of(model, standing, u, i)
    if model.load:
        ticks += standing.placed[i]
    if model.communication:
        ticks += standing.fetched[i, model.group[u]]
    return float(2.0 - ticks / model.cap[i])


@kernel(allocates=False)
def factor(model: Model, standing: Standing, u: int, i: int, ratio: float) -> int:
    """The parallelism factor pf of a placement with the given freeRatio."""
    if not model.parallelism or ratio < 1.0:
        return 1
    return int(1 + standing.topology.total[u] - standing.topology.parallel[i, u])


@kernel(allocates=False)
def tapers(model: Model) -> bool:
    """Whether fullness leaves less than all of a gain while there is room."""
    return bool(model.fullness == LINEAR or model.balance > 0.0)


@kernel(allocates=False)
def left_of(model: Model, standing: Standing, u: int, i: int) -> float:
    """The share of its gain that fullness leaves to a task."""
    k = model.group[u]
    bytes_ = standing.used[i]
    if standing.home[k] < 0:
        bytes_ += model.memory[k]
    if bytes_ > model.capacity[i]:
        return 1.0 - model.balance if model.fullness == UNLIMITED_MEMORY else 0.0
    share = bytes_ / model.capacity[i] if model.capacity[i] > 0 else 0.0
    left = 1.0 - model.balance * share
    if model.fullness == LINEAR and share > model.knee:
        left *= (1.0 - share) / (1.0 - model.knee)
    return float(left)


@kernel(concave, left_of, allocates=False)
def growth(model: Model, standing: Standing, u: int, i: int, benefit: float) -> float:
    """By how much F grows with a benefit on device i."""
    more = concave(model.curve, standing.benefit[i] + benefit) - concave(model.curve, standing.benefit[i])
    if more > 0.0 and (model.fullness != UNLIMITED_MEMORY or model.balance > 0.0):
        more *= left_of(model, standing, u, i)
    return float(more)


@kernel(free, factor, growth, allocates=False)
def score(model: Model, standing: Standing, u: int, i: int) -> float:
    """What standard greedy compares: the growth of the value (inside), or the value itself (outside)."""
    ratio = free(model, standing, u, i)
    pf = factor(model, standing, u, i, ratio)
    if model.inside:
        return growth(model, standing, u, i, ratio * pf)
    return float((standing.value[0] + growth(model, standing, u, i, ratio)) * pf)


@kernel(transfer_ticks, allocates=False)
def shift(model: Model, standing: Standing, k: int, payload: int, old: int, new: int, outward: bool) -> None:
    """The other end of an edge of group k is now thought to be on device `new`, no longer on `old`; -1 for nowhere.

    `outward`: the group produces what flows there.
    """
    for i in range(len(model.cap)):
        change = 0
        if new >= 0 and new != i:
            a, b = (i, new) if outward else (new, i)
            change += transfer_ticks(payload, model.latency[a, b], model.num[a, b], model.den[a, b])
        if old >= 0 and old != i:
            a, b = (i, old) if outward else (old, i)
            change -= transfer_ticks(payload, model.latency[a, b], model.num[a, b], model.den[a, b])
        standing.fetched[i, k] += change
    if old >= 0 and not standing.stamp[k]:  # else no transfer is saved
        standing.stamp[k] = True
        standing.changed[standing.n_changed[0]] = k
        standing.n_changed[0] += 1


@kernel(shift, allocates=False)
def locate(model: Model, standing: Standing, v: int, d: int) -> None:
    """Task v stands on device d, or will: what others must fetch from it, or through tasks behind it, or send there."""
    graph, device, group = model.graph, standing.topology.device, model.group
    if standing.origin[v] == d and standing.target[v] == d:
        return
    waiting = 1
    standing.stack[0] = v
    while waiting > 0:
        waiting -= 1
        w = standing.stack[waiting]
        for k in range(graph.out_start[w], graph.out_start[w + 1]):
            u = graph.out_target[k]
            if device[u] >= 0:
                continue
            if group[u] != group[w]:
                shift(model, standing, group[u], model.out_payload[k], standing.origin[w], d, False)
            if model.largest_input[u] == k and standing.home[group[u]] < 0:
                standing.stack[waiting] = u
                waiting += 1
        standing.origin[w] = d
    waiting = 1
    standing.stack[0] = v
    while waiting > 0:
        waiting -= 1
        w = standing.stack[waiting]
        for k in range(graph.in_start[w], graph.in_start[w + 1]):
            u = graph.in_source[k]
            if device[u] >= 0:
                continue
            if group[u] != group[w]:
                shift(model, standing, group[u], model.in_payload[k], standing.target[w], d, True)
            if model.largest_output[u] == k and standing.home[group[u]] < 0:
                standing.stack[waiting] = u
                waiting += 1
        standing.target[w] = d


@kernel(locate, allocates=False)
def settle(model: Model, standing: Standing, k: int, d: int) -> None:
    """All of group k will stand on device d."""
    for a in range(model.member_start[k], model.member_start[k + 1]):
        if standing.topology.device[model.member[a]] < 0:
            locate(model, standing, model.member[a], d)


@kernel(may_go, allocates=False)
def allowed(model: Model, standing: Standing, elements: Int, out: Bool) -> None:
    """Whether each of the pairs u m + i may be placed, into `out`."""
    m = len(model.cap)
    for k in range(len(elements)):
        u, i = elements[k] // m, elements[k] % m
        out[k] = standing.topology.device[u] < 0 and may_go(model, standing, u, i)


@kernel(allocates=False)
def take(model: Model, standing: Standing, u: int, i: int) -> None:
    """Task u is on device i, whatever it is worth: what `may_go` asks for."""
    standing.topology.device[u] = i
    k = model.group[u]
    if standing.home[k] < 0:
        standing.home[k] = i
        standing.used[i] += model.memory[k]


@kernel(score, allocates=False)
def gains(model: Model, standing: Standing, elements: Int, out: Float) -> None:
    """Growth of f by each of the pairs u m + i, into `out`; minus infinity for those that are not feasible."""
    m = len(model.cap)
    for k in range(len(elements)):
        u, i = elements[k] // m, elements[k] % m
        if model.cost[i, u] == math.inf:
            out[k] = -math.inf
        else:
            out[k] = score(model, standing, u, i)
            if not model.inside:
                out[k] -= standing.value[2]


@kernel(ticks_of, free, factor, growth, place, locate, settle, allocates=False)
def put(model: Model, standing: Standing, u: int, i: int) -> None:
    """Place task u on device i."""
    ratio = free(model, standing, u, i)
    pf = factor(model, standing, u, i, ratio)
    benefit = ratio * pf if model.inside else ratio
    standing.value[0] += growth(model, standing, u, i, benefit)
    standing.value[1] = pf
    standing.value[2] = standing.value[0] * pf
    standing.benefit[i] += benefit
    standing.placed[i] += ticks_of(model, standing, u, i)
    standing.held[i] += 1
    if model.parallelism:
        place(model.graph, standing.topology, u, i)
    else:
        standing.topology.device[u] = i
    if model.communication:
        for c in range(standing.n_changed[0]):
            standing.stamp[standing.changed[c]] = False
        standing.n_changed[0] = 0
        locate(model, standing, u, i)
    k = model.group[u]
    if standing.home[k] < 0:
        standing.home[k] = i
        standing.used[i] += model.memory[k]
        if model.communication:
            settle(model, standing, k, i)


@kernel(allocates=False)
def value_of(model: Model, standing: Standing) -> float:
    """The paper's f of what stands."""
    return float(standing.value[0] if model.inside else standing.value[2])
