"""Divide a chain into stages whose loads are at most a given period, from its end.

A state is the vector of used devices by class and the cut at which the next stage must end. D. Narayanan et al.:
PipeDream, SOSP 2019, section 3.1, fill a table over cuts and numbers of equal devices. Here the period is given, so
that a table over vectors keeps only some cuts.

Dominance
    Let all links be alike. Cut i dominates a later cut j if every stage [a, i) has at most the load and the memory of
    [a, j) on every class with every team. All sums over nodes are monotone; only what crosses the cut may be more. If
    devices compute or transfer, its excess (d(i) - d(j))+ + (u(i) - u(j))+ must be at most the ticks of [i, j) on
    every class, because both sums and maxima of sent and received ticks grow by at most that; if they overlap, it must
    be 0. If i dominates all cuts of (i, j], state (v, j) is not needed beside (v, i): take stages that complete (v, j).
    One of them, [a, b), has a < i <= b <= j. It becomes [a, i), and all stages in [i, j) are left out. The stages
    before then have fewer devices behind them, hence at most the runs under way. `Chain.reach[i]` is the first cut that
    i does not dominate. With several links, the next class matters too, and no cut is left out.

Prices
    Give each device of class c a price >= 0. `cost[0, j]` is the least price of the devices of stages that divide
    [0, j), regardless of the number of devices of each class. So a state whose nodes left cost more than all devices
    left is useless, and no division has the period if all nodes cost more than all devices. This is the Lagrangian
    bound of the linear program of paths from cut 0 to n with a limit for each class. If memory limits the runs under
    way of 1f1b, `cost[k, j]` counts at least k devices behind [0, j). Dominated cuts cost no less, so they are left out
    here, too. If links differ, each stage has its best links.

Next candidate
    Every comparison of a load with the period is also true for all periods below the least load that was above. So if
    the search fails for a period without leaving states out for lack of space, that load bounds the period.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .._shared.ideals import INFINITE, ring, stage_load
from .chain import Chain

Narrow = NDArray[np.int32]

FAILED, LISTS_FULL, FRONTS_FULL = -1, -2, -3
"""Results of a search without a division: none, or too little space for lists of cuts or fronts."""

NEXT, LISTS, FRONTS, STAMP, DROPPED = range(5)
"""Places in the state of a search: next candidate, used entries of lists and fronts, last mark, whether states were
left out."""


class Lists(NamedTuple):
    """Cuts at which stages may begin, by class, team, runs under way, and end; filled on first use."""

    first: Int  # (c, most + 1) first row of a class and team
    start: Narrow
    length: Narrow  # -1 if not filled
    cut: Narrow
    price: Int  # (c,) of a device
    cost: Int  # (k, n + 1) least price of stages of the nodes before a cut; k = 1 unless memory limits 1f1b
    choice: Int  # (k, n + 1) their last stage: (class * (m + 1) + team) * (n + 1) + its begin


class Fronts(NamedTuple):
    """The cuts kept for each vector of used devices and context.

    There is one context if all links are alike. Else context q * l + a has next class q and link a to it.
    """

    stride: Int  # (c,)
    start: Int
    length: Narrow
    cut: Narrow
    mark: Int  # (n + 1,)
    found: Int  # (n + 1,)


class Beam(NamedTuple):
    """The best states for each number of used devices: m + 1 layers of b states."""

    used: NDArray[np.int16]  # (m + 1, b, c)
    cut: Int  # (m + 1, b)
    context: Int  # next class * l + link to it
    left: Int  # price of the devices left
    key: Int
    parent: Int
    move: Int  # class * (m + 1) + team
    filled: Int  # (m + 1,)
    heap: Int  # (b,) states of the layer, least score first
    place: Int  # (b,) place of each state in the heap
    bucket: Int  # (h,) first state with this key
    follower: Int  # (b,) next state in the bucket
    factor: Int  # (c,) factors of the key


@kernel(stage_load, ring, allocates=False)
def least_load(chain: Chain, c: int, r: int, runs: int, i: int, j: int, a: int, b: int) -> int:
    """The least load of stage [i, j) on r devices of class c, links a and b at its ends; INFINITE if none fits."""
    fixed = chain.fixed[j] - chain.fixed[i]
    least = INFINITE
    if fixed > chain.capacity[c] or i < chain.nearest[c, j]:
        return least
    sent = chain.down[b, j] + chain.up[a, i]
    received = chain.down[a, i] + chain.up[b, j]
    kinds = int(chain.ahead[j] > chain.ahead[i]) + int(chain.behind[j] > chain.behind[i])
    busy = chain.computing[c, j] - chain.computing[c, i] + kinds * chain.launch[c]
    gradient = chain.gradient[j] - chain.gradient[i]
    if fixed + (runs - 1) * (chain.kept[j] - chain.kept[i]) <= chain.capacity[c]:
        least = stage_load(chain, c, r, busy, sent, received, gradient)
    elif chain.recompute:
        entering = chain.entering_down[i] + chain.entering_up[j]
        if fixed + runs * entering + (runs - 1) * (chain.source[j] - chain.source[i]) <= chain.capacity[c]:
            busy += chain.again[c, j] - chain.again[c, i]
            least = stage_load(chain, c, r, busy, sent, received, gradient)
    return least


@kernel(least_load, allocates=False)
def begins(
    chain: Chain, lists: Lists, c: int, r: int, runs: int, j: int, a: int, b: int, period: int, state: Int
) -> int:
    """The row of the cuts at which a stage that ends at cut j may begin; LISTS_FULL if there is no space."""
    n, links = len(chain.nearest[0]) - 1, len(chain.down)
    level = 0
    if chain.in_flight:
        runs = chain.in_flight
    elif chain.binding[c]:
        level = runs - 1
    row: int = (((lists.first[c, r] + level) * (n + 1) + j) * links + a) * links + b
    if lists.length[row] >= 0:
        return row
    low, high, nearest = 0, j, chain.nearest[c, j]
    low = nearest
    while low < high:  # computing and memory are monotone
        i = (low + high) // 2
        need = chain.fixed[j] - chain.fixed[i]
        if chain.recompute:
            need += (runs - 1) * (chain.source[j] - chain.source[i])
        else:
            need += (runs - 1) * (chain.kept[j] - chain.kept[i])
        if need <= chain.capacity[c] and chain.computing[c, j] - chain.computing[c, i] <= r * period:
            high = i
        else:
            low = i + 1
    if low > nearest:
        busy = chain.computing[c, j] - chain.computing[c, low - 1]
        if busy > r * period:
            state[NEXT] = min(state[NEXT], -(-busy // r))
    at = state[LISTS]
    lists.start[row] = at
    i = low
    while i < j:
        load = least_load(chain, c, r, runs, i, j, a, b)
        if load <= period:
            if at >= len(lists.cut):
                return LISTS_FULL
            lists.cut[at] = i
            at += 1
            i = chain.reach[i]
        else:
            state[NEXT] = min(state[NEXT], load)
            i += 1
    lists.length[row] = at - lists.start[row]
    state[LISTS] = at
    return row


@kernel(begins, least_load, allocates=False)
def find_costs(chain: Chain, lists: Lists, devices: int, period: int, state: Int) -> int:
    """Fill `lists.cost` and `lists.choice`; return LISTS_FULL if there is no space."""
    n, links, rows = len(chain.nearest[0]) - 1, len(chain.down), len(lists.cost)
    for later in range(rows - 1, -1, -1):
        lists.cost[later, 0] = 0
        for j in range(1, n + 1):
            least = INFINITE
            for c in range(len(chain.size)):
                for r in range(1, min(chain.replicas, chain.size[c]) + 1):
                    price = r * lists.price[c]
                    if later + r > devices or price >= least:
                        break
                    there = later + r if rows > 1 else 0
                    for a in range(links):
                        for b in range(links):
                            row = begins(chain, lists, c, r, -(-(later + r) // r), j, a, b, period, state)
                            if row < 0:
                                return row
                            for k in range(lists.start[row], lists.start[row] + lists.length[row]):
                                i = lists.cut[k]
                                if lists.cost[there, i] + price < least:
                                    least = lists.cost[there, i] + price
                                    lists.choice[later, j] = (c * (devices + 1) + r) * (n + 1) + i
            lists.cost[later, j] = least
    return 0


@kernel(begins, least_load, allocates=False)
def find_rooms(chain: Chain, lists: Lists, weight: Int, room: Int, period: int, state: Int) -> int:
    """Fill `room` (c,) with the most weight of a stage per device; return LISTS_FULL if there is no space.

    `weight` (n + 1,) holds sums over the nodes before each cut.
    """
    n, links = len(chain.nearest[0]) - 1, len(chain.down)
    for c in range(len(chain.size)):
        room[c] = 0
        for r in range(1, min(chain.replicas, chain.size[c]) + 1):
            for j in range(1, n + 1):
                for a in range(links):
                    for b in range(links):
                        row = begins(chain, lists, c, r, 1, j, a, b, period, state)
                        if row < 0:
                            return row
                        if lists.length[row] > 0:
                            i = max(lists.cut[lists.start[row]], 1)
                            room[c] = max(room[c], (weight[min(j, n - 1)] - weight[i]) // r)
    return 0


@kernel(allocates=False)
def sort_found(fronts: Fronts, count: int, least: int, stamp: int) -> None:
    """Sort the cuts found, of which `least` is the first, few by insertion, many by their marks."""
    found = fronts.found
    if count <= 16:
        for k in range(1, count):
            i = found[k]
            at = k
            while at > 0 and found[at - 1] > i:
                found[at] = found[at - 1]
                at -= 1
            found[at] = i
    else:
        count = 0
        for i in range(least, len(fronts.mark)):
            if fronts.mark[i] == stamp:
                found[count] = i
                count += 1


@kernel(allocates=False)
def store_front(
    chain: Chain, lists: Lists, fronts: Fronts, front: int, count: int, later: int, left: int, state: Int
) -> bool:
    """Store the cuts found that are not dominated and not too expensive; return False if there is no space."""
    at, bound = state[FRONTS], 0
    for k in range(count):
        i = fronts.found[k]
        if i < bound or lists.cost[later, i] > left:
            continue
        if at >= len(fronts.cut):
            return False
        fronts.cut[at] = i
        at += 1
        bound = chain.reach[i]
    fronts.length[front] = at - state[FRONTS]
    state[FRONTS] = at
    return True


@kernel(begins, least_load, sort_found, store_front, allocates=False)
def sweep(chain: Chain, lists: Lists, fronts: Fronts, begin: int, end: int, period: int, state: Int) -> int:
    """Fill the fronts of vectors [begin, end); return the first front with cut 0, else FAILED, LISTS_FULL, FRONTS_FULL.

    Fronts are numbered by vector * contexts + context.
    """
    n, links, classes = len(chain.nearest[0]) - 1, len(chain.down), len(chain.size)
    contexts = 1 if links == 1 else classes * links
    for v in range(begin, end):
        total = 0
        left = 0
        for c in range(classes):
            used = v // fronts.stride[c] % (chain.size[c] + 1)
            total += used
            left += (chain.size[c] - used) * lists.price[c]
        later = min(total, len(lists.cost) - 1)
        for context in range(contexts):
            front = v * contexts + context
            fronts.start[front] = state[FRONTS]
            fronts.length[front] = 0
            state[STAMP] += 1
            stamp = state[STAMP]
            count, least = 0, n + 1
            if v == 0:
                fronts.found[0] = n
                least = n
                count = 1
            for c in range(classes):
                if links > 1 and context // links != c:
                    continue
                used = v // fronts.stride[c] % (chain.size[c] + 1)
                for r in range(1, min(chain.replicas, used) + 1):
                    for q in range(1 if links == 1 else classes):
                        b = 0 if links == 1 else chain.link[c, q]
                        origin = (v - r * fronts.stride[c]) * contexts
                        if links > 1:
                            origin += q * links + b
                        for e in range(fronts.start[origin], fronts.start[origin] + fronts.length[origin]):
                            a = context % links
                            row = begins(chain, lists, c, r, -(-total // r), fronts.cut[e], a, b, period, state)
                            if row < 0:
                                return row
                            for k in range(lists.start[row], lists.start[row] + lists.length[row]):
                                i = lists.cut[k]
                                if fronts.mark[i] == stamp or (least < i and i < chain.reach[least]):
                                    continue
                                fronts.mark[i] = stamp
                                fronts.found[count] = i
                                count += 1
                                least = min(least, i)
            if count == 0:
                continue
            sort_found(fronts, count, least, stamp)
            if not store_front(chain, lists, fronts, front, count, later, left, state):
                return FRONTS_FULL
            if least == 0:
                return front
    return FAILED


@kernel(allocates=False)
def settle(beam: Beam, score: Int, size: int, at: int) -> None:
    """Restore the order of the heap after the score at one place has changed."""
    slot = beam.heap[at]
    while at > 0:
        above = (at - 1) // 2
        other = beam.heap[above]
        if score[other] <= score[slot]:
            break
        beam.heap[at] = other
        beam.place[other] = at
        at = above
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and score[beam.heap[below + 1]] < score[beam.heap[below]]:
            below += 1
        other = beam.heap[below]
        if score[other] >= score[slot]:
            break
        beam.heap[at] = other
        beam.place[other] = at
        at = below
    beam.heap[at] = slot
    beam.place[slot] = at


class Candidate(NamedTuple):
    """A state for a layer of the beam: stage [cut, end) of a team, where `parent` of layer `origin` has that end."""

    origin: int
    parent: int
    label: int  # the class of the team
    team: int
    cut: int
    context: int
    score: int


DOMINATED, UNKNOWN = -2, -1
"""Results of a search for a state: one at least as good exists, or none that it replaces."""


@kernel(allocates=False)
def find_state(chain: Chain, beam: Beam, layer: int, new: Candidate, key: int, bucket: int) -> int:
    """Return the place of a state that a candidate dominates, else UNKNOWN; DOMINATED if one dominates it."""
    slot: int = beam.bucket[bucket]
    while slot >= 0:
        if beam.key[layer, slot] == key and beam.context[layer, slot] == new.context:
            same = True
            for c in range(len(chain.size)):
                expected = beam.used[new.origin, new.parent, c] + (new.team if c == new.label else 0)
                same = same and beam.used[layer, slot, c] == expected
            if same:
                there = beam.cut[layer, slot]
                if there == new.cut or (there < new.cut and new.cut < chain.reach[there]):
                    return DOMINATED
                if new.cut < there and there < chain.reach[new.cut]:
                    return slot
        slot = beam.follower[slot]
    return UNKNOWN


@kernel(allocates=False)
def free_place(beam: Beam, layer: int, state: Int) -> int:
    """Return the next place of a layer, or if it is full, that of the state with the least score, which is removed."""
    size = beam.filled[layer]
    if size < len(beam.heap):
        beam.heap[size] = size
        beam.place[size] = size
        beam.filled[layer] = size + 1
        return int(size)
    state[DROPPED] = 1
    slot: int = beam.heap[0]
    bucket = (beam.key[layer, slot] + 31 * beam.context[layer, slot]) % len(beam.bucket)
    at = beam.bucket[bucket]
    if at == slot:
        beam.bucket[bucket] = beam.follower[slot]
    else:
        while beam.follower[at] != slot:
            at = beam.follower[at]
        beam.follower[at] = beam.follower[slot]
    return slot


@kernel(settle, find_state, free_place, allocates=False)
def keep(chain: Chain, lists: Lists, beam: Beam, layer: int, new: Candidate, score: Int, state: Int) -> int:
    """Add a candidate to a layer, unless a state there is better or no space is left; return its place or -1."""
    if new.cut > 0 and beam.filled[layer] == len(beam.heap) and score[beam.heap[0]] >= new.score:
        state[DROPPED] = 1
        return -1
    origin, parent = new.origin, new.parent
    key = beam.key[origin, parent] + new.team * beam.factor[new.label]
    bucket = (key + 31 * new.context) % len(beam.bucket)
    slot = find_state(chain, beam, layer, new, key, bucket)
    if slot == DOMINATED:
        return -1
    if slot == UNKNOWN:
        slot = free_place(beam, layer, state)
        beam.follower[slot] = beam.bucket[bucket]
        beam.bucket[bucket] = slot
        for c in range(len(chain.size)):
            beam.used[layer, slot, c] = beam.used[origin, parent, c]
        beam.used[layer, slot, new.label] += new.team
        beam.key[layer, slot] = key
        beam.context[layer, slot] = new.context
        beam.left[layer, slot] = beam.left[origin, parent] - new.team * lists.price[new.label]
    beam.cut[layer, slot] = new.cut
    beam.parent[layer, slot] = parent
    beam.move[layer, slot] = new.label * len(beam.filled) + new.team
    score[slot] = new.score
    settle(beam, score, beam.filled[layer], beam.place[slot])
    return slot


@kernel(keep, begins, least_load, allocates=False)
def extend(chain: Chain, lists: Lists, beam: Beam, layer: int, period: int, score: Int, state: Int) -> int:
    """Fill a layer of the beam; return a state with cut 0, else FAILED or LISTS_FULL."""
    links = len(chain.down)
    later = min(layer, len(lists.cost) - 1)
    beam.filled[layer] = 0
    for k in range(len(beam.bucket)):
        beam.bucket[k] = -1
    for r in range(1, min(chain.replicas, layer) + 1):
        origin = layer - r
        for parent in range(beam.filled[origin]):
            j = beam.cut[origin, parent]
            for c in range(len(chain.size)):
                if beam.used[origin, parent, c] + r > chain.size[c]:
                    continue
                left = beam.left[origin, parent] - r * lists.price[c]
                b = 0
                if links > 1 and origin > 0:
                    b = beam.context[origin, parent] % links
                    if chain.link[c, beam.context[origin, parent] // links] != b:
                        continue
                for a in range(links):
                    row = begins(chain, lists, c, r, -(-layer // r), j, a, b, period, state)
                    if row < 0:
                        return row
                    for k in range(lists.start[row], lists.start[row] + lists.length[row]):
                        i = lists.cut[k]
                        gain = left - lists.cost[later, i]
                        if gain < 0:
                            continue
                        context = 0 if links == 1 else c * links + a
                        new = Candidate(origin, parent, c, r, i, context, gain)
                        slot = keep(chain, lists, beam, layer, new, score, state)
                        if i == 0 and slot >= 0:
                            return slot
    return FAILED
