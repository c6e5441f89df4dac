"""The benefit of placing a task on a device, after Carbonari et al. 2017: arrays and kernels.

Definitions (section 2.2), for task j on device i with placed_i ticks of work:

    freeRatio = 2 - (c_ij + placed_i + fetched + swapped) / cap_i
    pf        = 1 + number of placed tasks that are parallel to j and on other devices (see `topology`)

Let B_i be the sum of the benefits on device i, and F the sum of g(B_i) over the devices. Placing j on i

    increases f by g(B_i + freeRatio · pf) - g(B_i)           inside: equation 2, f = F
    sets f to (F + g(B_i + freeRatio) - g(B_i)) · pf          outside: equation 5

Extensions of section 5: `fetched` is the time of transfers from and to tasks on other devices, `swapped` the time for
swapping to slower memory tiers, both in ticks. The gain of F is multiplied by a factor for the fill level of the
memory, which is 0 if the task does not fit.

If c_ij + placed_i + ... > cap_i, which the paper excludes (section 3), pf is 1, because the device has no time to run
the task in parallel. Below zero, g is the identity, so that bad placements can still be compared.

Unplaced tasks need an assumed device for transfers. An unplaced producer is assumed on the device of its group, or
else where its largest input comes from, recursively. An unplaced consumer is assumed where its largest output goes.
Placing a task places its group, so the transfers of the complete group count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import transfer_ticks
from placeopt.submodular.placement.topology import Graph, Topology, place

UNLIMITED_MEMORY, STEP, LINEAR = 0, 1, 2
"""Effect of memory on gains: none; 0 if the task does not fit; linear decrease from the knee to 0 at capacity."""

SQRT, LOG, LINEAR_PIECES = 0, 1, 2
"""The concave function g of a device: sqrt(x), log(1 + x), or piecewise linear."""


class Model(NamedTuple):
    """A problem and its settings as arrays for kernels: n tasks, e edges, g groups, m devices, k tiers."""

    graph: Graph
    cost: Float  # (m, n) duration of each task on each device in ticks, infinite if not feasible
    cap: Float  # (m,) time capacity i_cap in ticks
    group: Int  # (n,) group of each task
    memory: Int  # (g,) bytes of each group
    member_start: Int  # (g + 1,) tasks of each group, as CSR
    member: Int  # (n,)
    apart_start: Int  # (g + 1,) groups to separate each group from, as CSR
    apart: Int
    capacity: Int  # (m,) memory of each device in bytes
    tier_end: Int  # (m, k) end of each memory tier in bytes
    tier_ticks: Float  # (m, k) ticks for swapping one byte in each tier
    out_payload: Int  # (e,) bytes of each edge, in the order of graph.out_target
    in_payload: Int  # (e,) the same in the order of graph.in_source
    largest_input: Int  # (n,) index of each task's largest input in graph.out_target, -1 if it has none
    largest_output: Int  # (n,) index of each task's largest output in graph.in_source, -1 if it has none
    latency: Int  # (m, m) link parameters, as in `Problem`
    num: Int  # (m, m)
    den: Int  # (m, m)
    inside: bool  # whether pf is inside the sum
    parallelism: bool  # whether pf counts
    load: bool  # whether placed_i counts
    communication: bool  # whether transfers count
    curve: Int  # (m,) SQRT, LOG or LINEAR_PIECES
    piece_end: Float  # (m, p) where each linear piece of g ends, infinite for the last one
    piece_slope: Float  # (m, p) its slope
    fullness: int  # UNLIMITED_MEMORY, STEP or LINEAR
    knee: float  # fill level from which LINEAR gains decrease
    balance: float  # share of the gain that a full device loses in addition


class PlacementState(NamedTuple):
    """A growing placement."""

    topology: Topology
    home: Int  # (g,) device of each group, -1 if it has none
    benefit: Float  # (m,) B_i
    placed: Float  # (m,) placed_i in ticks
    held: Int  # (m,) number of tasks on each device
    used: Int  # (m,) bytes on each device, including those reserved for groups with a given device
    value: Float  # (3,) F, the pf of the last placed task, and their product: f of the form `outside`
    fetched: Int  # (m, g) ticks of transfers of the unplaced tasks of each group, for each device
    origin: Int  # (n,) device from which the output of each task is fetched, -1 if unknown
    target: Int  # (n,) device to which the input of each task is sent, -1 if unknown
    changed: Int  # (g,) groups whose transfers to some device may have decreased with the last placement
    n_changed: Int  # (1,) their number
    stamp: Bool  # (g,) work space: whether a group is in `changed`
    stack: Int  # (n,) work space


@kernel(allocates=False)
def concave(model: Model, i: int, x: float) -> float:
    """g(x) of device i for x >= 0, and x for x < 0."""
    if x < 0.0:
        return x
    if model.curve[i] == SQRT:
        return math.sqrt(x)
    if model.curve[i] == LOG:
        return math.log1p(x)
    height, low = 0.0, 0.0
    for k in range(model.piece_end.shape[1]):
        high = model.piece_end[i, k]
        height += (min(x, high) - low) * model.piece_slope[i, k]
        if x <= high:
            break
        low = high
    return height


@kernel(allocates=False)
def can_host(model: Model, state: PlacementState, u: int, i: int) -> bool:
    """Whether task u can be placed on device i next to the tasks placed already."""
    if model.cost[i, u] == math.inf:
        return False
    k = model.group[u]
    home = state.home[k]
    if home >= 0:
        return bool(home == i)
    if model.fullness != UNLIMITED_MEMORY and model.memory[k] > model.capacity[i] - state.used[i]:
        return False
    for a in range(model.apart_start[k], model.apart_start[k + 1]):  # noqa: SIM110 - Numba has no all()
        if state.home[model.apart[a]] == i:
            return False
    return True


@kernel(allocates=False)
def swap_ticks(model: Model, i: int, begin: int, end: int) -> float:
    """Swapping time in ticks of the bytes from `begin` to `end` of device i's memory."""
    ticks, low = 0.0, 0
    for k in range(model.tier_end.shape[1]):
        high = model.tier_end[i, k]
        overlap = min(end, high) - max(begin, low)
        if overlap > 0:
            ticks += overlap * model.tier_ticks[i, k]
        low = high
    return ticks


@kernel(swap_ticks, allocates=False)
def device_ticks(model: Model, state: PlacementState, u: int, i: int) -> float:
    """Time in ticks that task u takes on device i: its duration plus swapping."""
    ticks = float(model.cost[i, u])
    if model.tier_end.shape[1] > 0:
        k = model.group[u]
        if state.home[k] < 0:
            ticks += swap_ticks(model, i, state.used[i], state.used[i] + model.memory[k])
    return ticks


@kernel(device_ticks, allocates=False)
def free_ratio(model: Model, state: PlacementState, u: int, i: int) -> float:
    """The freeRatio of task u on device i: at most 2, less than 1 if the time capacity is exceeded."""
    ticks = device_ticks(model, state, u, i)
    if model.load:
        ticks += state.placed[i]
    if model.communication:
        ticks += state.fetched[i, model.group[u]]
    return float(2.0 - ticks / model.cap[i])


@kernel(allocates=False)
def parallelism_factor(model: Model, state: PlacementState, u: int, i: int, ratio: float) -> int:
    """The parallelism factor pf of task u on device i, given their freeRatio."""
    if not model.parallelism or ratio < 1.0:
        return 1
    return int(1 + state.topology.total[u] - state.topology.parallel[i, u])


@kernel(allocates=False)
def has_fullness_factor(model: Model) -> bool:
    """Whether the fill level reduces gains of tasks that fit."""
    return bool(model.fullness == LINEAR or model.balance > 0.0)


@kernel(allocates=False)
def fullness_factor(model: Model, state: PlacementState, u: int, i: int) -> float:
    """The factor of a gain for the fill level of device i with task u."""
    k = model.group[u]
    bytes_ = state.used[i]
    if state.home[k] < 0:
        bytes_ += model.memory[k]
    if bytes_ > model.capacity[i]:
        return 1.0 - model.balance if model.fullness == UNLIMITED_MEMORY else 0.0
    share = bytes_ / model.capacity[i] if model.capacity[i] > 0 else 0.0
    left = 1.0 - model.balance * share
    if model.fullness == LINEAR and share > model.knee:
        left *= (1.0 - share) / (1.0 - model.knee)
    return float(left)


@kernel(concave, fullness_factor, allocates=False)
def sum_gain(model: Model, state: PlacementState, u: int, i: int, benefit: float) -> float:
    """The increase of F by a benefit of task u on device i."""
    more = concave(model, i, state.benefit[i] + benefit) - concave(model, i, state.benefit[i])
    if more > 0.0 and (model.fullness != UNLIMITED_MEMORY or model.balance > 0.0):
        more *= fullness_factor(model, state, u, i)
    return float(more)


@kernel(free_ratio, parallelism_factor, sum_gain, allocates=False)
def score(model: Model, state: PlacementState, u: int, i: int) -> float:
    """The number that greedy compares: the increase of f (inside) or the new f (outside)."""
    ratio = free_ratio(model, state, u, i)
    pf = parallelism_factor(model, state, u, i, ratio)
    if model.inside:
        return sum_gain(model, state, u, i, ratio * pf)
    return float((state.value[0] + sum_gain(model, state, u, i, ratio)) * pf)


@kernel(transfer_ticks, allocates=False)
def move_endpoint(model: Model, state: PlacementState, k: int, payload: int, old: int, new: int, outward: bool) -> None:
    """Move the assumed other end of an edge of group k from device `old` to device `new`; -1: unknown.

    `outward`: the group produces the data.
    """
    for i in range(len(model.cap)):
        change = 0
        if new >= 0 and new != i:
            a, b = (i, new) if outward else (new, i)
            change += transfer_ticks(payload, model.latency[a, b], model.num[a, b], model.den[a, b])
        if old >= 0 and old != i:
            a, b = (i, old) if outward else (old, i)
            change -= transfer_ticks(payload, model.latency[a, b], model.num[a, b], model.den[a, b])
        state.fetched[i, k] += change
    if old >= 0 and not state.stamp[k]:  # otherwise no transfer is saved
        state.stamp[k] = True
        state.changed[state.n_changed[0]] = k
        state.n_changed[0] += 1


@kernel(move_endpoint, allocates=False)
def locate_along(
    model: Model,
    state: PlacementState,
    v: int,
    d: int,
    start: Int,
    end: Int,
    payload: Int,
    largest: Int,
    located: Int,
    outward: bool,
) -> None:
    """Set `located` to device d for task v and the unplaced tasks that inherit it along largest transfers."""
    device, group = state.topology.device, model.group
    waiting = 1
    state.stack[0] = v
    while waiting > 0:
        waiting -= 1
        w = state.stack[waiting]
        for k in range(start[w], start[w + 1]):
            u = end[k]
            if device[u] >= 0:
                continue
            if group[u] != group[w]:
                move_endpoint(model, state, group[u], payload[k], located[w], d, outward)
            if largest[u] == k and state.home[group[u]] < 0:
                state.stack[waiting] = u
                waiting += 1
        located[w] = d


@kernel(locate_along, allocates=False)
def locate_task(model: Model, state: PlacementState, v: int, d: int) -> None:
    """Update the transfers of other groups after task v was placed on, or is assumed on, device d."""
    if state.origin[v] == d and state.target[v] == d:
        return
    inputs, outputs, graph = model.largest_input, model.largest_output, model.graph
    locate_along(model, state, v, d, graph.out_start, graph.out_target, model.out_payload, inputs, state.origin, False)
    locate_along(model, state, v, d, graph.in_start, graph.in_source, model.in_payload, outputs, state.target, True)


@kernel(locate_task, allocates=False)
def locate_group(model: Model, state: PlacementState, k: int, d: int) -> None:
    """Assume the unplaced tasks of group k on device d."""
    for a in range(model.member_start[k], model.member_start[k + 1]):
        if state.topology.device[model.member[a]] < 0:
            locate_task(model, state, model.member[a], d)


@kernel(can_host, allocates=False)
def mark_allowed(model: Model, state: PlacementState, elements: Int, out: Bool) -> None:
    """Write to `out` whether each of the pairs u m + i can be placed."""
    m = len(model.cap)
    for k in range(len(elements)):
        u, i = elements[k] // m, elements[k] % m
        out[k] = state.topology.device[u] < 0 and can_host(model, state, u, i)


@kernel(allocates=False)
def occupy(model: Model, state: PlacementState, u: int, i: int) -> None:
    """Place task u on device i without computing benefits, as far as `can_host` requires."""
    state.topology.device[u] = i
    k = model.group[u]
    if state.home[k] < 0:
        state.home[k] = i
        state.used[i] += model.memory[k]


@kernel(score, allocates=False)
def gains(model: Model, state: PlacementState, elements: Int, out: Float) -> None:
    """Write to `out` the increase of f by each of the pairs u m + i; minus infinity if not feasible."""
    m = len(model.cap)
    for k in range(len(elements)):
        u, i = elements[k] // m, elements[k] % m
        if model.cost[i, u] == math.inf:
            out[k] = -math.inf
        else:
            out[k] = score(model, state, u, i)
            if not model.inside:
                out[k] -= state.value[2]


@kernel(device_ticks, free_ratio, parallelism_factor, sum_gain, place, locate_task, locate_group, allocates=False)
def place_task(model: Model, state: PlacementState, u: int, i: int) -> None:
    """Place task u on device i."""
    ratio = free_ratio(model, state, u, i)
    pf = parallelism_factor(model, state, u, i, ratio)
    benefit = ratio * pf if model.inside else ratio
    state.value[0] += sum_gain(model, state, u, i, benefit)
    state.value[1] = pf
    state.value[2] = state.value[0] * pf
    state.benefit[i] += benefit
    state.placed[i] += device_ticks(model, state, u, i)
    state.held[i] += 1
    if model.parallelism:
        place(model.graph, state.topology, u, i)
    else:
        state.topology.device[u] = i
    if model.communication:
        for c in range(state.n_changed[0]):
            state.stamp[state.changed[c]] = False
        state.n_changed[0] = 0
        locate_task(model, state, u, i)
    k = model.group[u]
    if state.home[k] < 0:
        state.home[k] = i
        state.used[i] += model.memory[k]
        if model.communication:
            locate_group(model, state, k, i)


@kernel(allocates=False)
def value_of(model: Model, state: PlacementState) -> float:
    """f of the placement."""
    return float(state.value[0] if model.inside else state.value[2])
