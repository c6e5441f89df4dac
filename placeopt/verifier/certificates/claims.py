"""The claims of a certificate, by metric; `docs/certificates.md` states each with its proof.

A check returns a lower bound that the claim proves. It never trusts a number of the claim: prices, sets and intervals
only choose which of many valid inequalities is evaluated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product

from placeopt.model.problem import PARTS, UNLIMITED, Metric, Term
from placeopt.verifier.certificates.blocks import series
from placeopt.verifier.certificates.devices import INFINITE, Rates, Table, cells, charge, cheapest
from placeopt.verifier.certificates.model import Model, joined, model_of
from placeopt.verifier.certificates.paths import divided, flow, priced_path
from placeopt.verifier.certificates.refutation import Limit, refute
from placeopt.verifier.certificates.said import Check, Said, levelled, over_time

# --- the makespan ---


def load(said: Said) -> int:
    """Tasks that only some devices may run, `head` ticks after the start and `tail` ticks before the end, or more."""
    near, far = said.number("head", 0), said.number("tail", 0)
    tasks = said.confined(near, far)
    return near + far + said.shared(said.model.busy, tasks) if tasks else 0


def spread(said: Said) -> int:
    """m devices begin and end with different tasks: m T >= the work + the m least heads + the m least tails.

    After J. Carlier, "Scheduling jobs with release dates and tails on identical machines to minimize the makespan",
    EJOR 29 (1987). Tasks count with their least duration: those with a tail of at least `level`, and of these the ones
    with the largest heads, as many as prove most; `backwards`, heads and tails change places.
    """
    model, level, m = said.model, said.number("level", 0), said.count
    near, far = (model.tail, model.head) if said.claim.get("backwards") else (model.head, model.tail)
    rows = [tuple(model.least(i, table) for table in (near, far, model.busy)) for i in said.confined()]
    best, work, begins, ends = 0, 0, list[int](), list[int]()
    for begin, end, ticks in sorted((row for row in rows if row[1] >= level), key=lambda row: -row[0]):
        work += ticks
        begins.append(begin)  # in descending order
        heapq.heappush(ends, -end)
        if len(begins) > m:
            heapq.heappop(ends)
        if len(begins) >= m:
            best = max(best, -(-(work + sum(begins[-m:]) - sum(ends)) // m))
    return best


def packing(said: Said, amount: Table | None = None) -> int:
    """Some device runs `each` + 1 of the `each` m + 1 groups that take longest at their fastest, without replicas."""
    model, table, pipeline = said.model, amount or said.model.busy, said.model.problem.pipeline
    if pipeline is not None and pipeline.replicas > 1:
        return 0
    rows = [(model.members[g], [c for c in range(model.k) if model.fits[g][c]]) for g in said.groups()]
    fastest = [min((sum(table[i][c] for i in members) for c in classes), default=INFINITE) for members, classes in rows]
    return _pigeonhole(fastest, said.count, said.number("each"))


def _pigeonhole(amounts: list[int], places: int, k: int) -> int:
    """Of the k places + 1 largest amounts, some place has k + 1: at least the k + 1 least of them."""
    kept = sorted(amounts, reverse=True)[: k * places + 1]
    return sum(kept[-(k + 1) :]) if len(kept) == k * places + 1 else 0


def interval(said: Said) -> int:
    """Work that must run within [start, T - end) in every schedule that ends by T = value - 1.

    On class c, task i runs there for min(p, head + p - start, tail + p - end, L) ticks or more, L the length. If the
    priced work exceeds what the devices offer in L, no schedule ends by T.
    """
    model, prices = said.model, said.prices("prices")
    near, far, value = (said.number(key) for key in ("start", "end", "value"))
    length = value - 1 - near - far

    def inside(p: int, head: int, tail: int) -> int:
        return max(min(p, head + p - near, tail + p - far, length), 0)

    work = said.cheapest(cells(inside, model.busy, model.head, model.tail), said.confined(), prices)
    return value if length >= 0 and work > said.scale(prices) * length else 0


def resource(said: Said) -> int:
    """What tasks use of a renewable resource over time, after `head` and before `tail`, fits into its capacity."""
    model, near, far = said.model, said.number("head", 0), said.number("tail", 0)
    amounts, room = model.use(said.place("resource", model.resources(True), "resources"))
    use = over_time(model, amounts, room, said.doubled_level(room))
    work = sum(model.least(i, use) for i in said.confined(near, far))
    return near + far + -(-work // room) if work and room else 0  # without work, there may be no such tasks


def unavoidable(model: Model, rates: Rates) -> int:
    """A lower bound of the total amount of all transfers, each charged by the link between its classes.

    An edge is *forced* if no class can hold both its groups. Groups that edges connect and that need j devices have at
    least j - 1 transfers, at least the j - 1 cheapest. For each such component, the larger of the two counts.
    """
    least = cache(partial(cheapest, rates))
    pairs = [(model.group[edge.source], model.group[edge.target]) for edge in model.edges]
    component, parts = joined(len(model.members), pairs), dict[int, list[int]]()
    for g, at in enumerate(component):
        parts.setdefault(at, []).append(g)
    cuts = {at: _devices_needed(model, part) - 1 for at, part in parts.items()}
    prices, forced = {at: list[int]() for at in parts}, {at: dict[int, int]() for at in parts}
    anywhere, fits = (True,) * model.k, [tuple(row) for row in model.fits]
    for number, (edge, (g, h)) in enumerate(zip(model.edges, pairs, strict=True)):
        at = component[g]
        if g != h and cuts[at] > 0:
            prices[at].append(least(edge.payload, anywhere, anywhere))
        if g != h and not any(model.may_share(g, h, c) for c in range(model.k)):
            key = edge.source if edge.shared else ~number  # shared edges of a task need one transfer
            forced[at][key] = max(forced[at].get(key, 0), least(edge.payload, fits[g], fits[h]))
    return sum(max(sum(forced[at].values()), sum(sorted(prices[at])[: cuts[at]])) for at in parts)


def _devices_needed(model: Model, groups: list[int]) -> int:
    """The least number of devices of some groups, by common classes and by memory."""
    rows = [model.fits[g] for g in groups]
    usable = [c for c in range(model.k) if any(row[c] for row in rows)]
    common = any(all(row[c] for row in rows) for c in usable)
    held = sum(model.group_memory[g] for g in groups)
    return min(max(1 if common else 2, largest_first(model, usable, held)), len(groups))


def largest_first(model: Model, classes: Iterable[int], held: int) -> int:
    """How many devices of some classes hold these bytes, the largest first."""
    used = 0
    for room, size in sorted(((model.devices.capacity[c], model.devices.size[c]) for c in classes), reverse=True):
        if held > 0:
            need = min(size, -(-held // max(room, 1)))
            used, held = used + need, held - room * need
    return used


def transfers(said: Said) -> int:
    """Transfers that cannot be avoided, over the ports or one channel of a shared link, and the tasks around them."""
    model, shared, contention = said.model, said.model.problem.shared_links, said.model.problem.contention
    rates, places, used = model.devices.links, sum(model.devices.size), 2 if contention == "half_duplex" else 1
    if shared is not None and "link" in said.claim:
        known = {name: at for at, name in enumerate(shared.channels)}
        channel, places, used = said.place("link", known, "shared links"), 1, 1
        outside = cells(lambda pair: pair and channel not in shared.of(*pair), model.devices.pairs)
        rates = cells(lambda rate, free: (0, 0, 1) if free else rate, rates, outside)
    elif contention == "none" or "link" in said.claim:
        return 0
    ticks = unavoidable(model, rates)
    if not ticks:
        return 0
    moving = [edge for edge in model.edges if model.group[edge.source] != model.group[edge.target]]
    before = min(model.least(edge.source, model.head, model.duration) for edge in moving)
    after = min(model.least(edge.target, model.tail, model.duration) for edge in moving)
    return before + -(-ticks * used // places) + after


def swapping(said: Said) -> int:
    """If all devices swap for fewer than `swap` ticks, they do not hold all bytes; a task with bytes comes after it.

    Devices swap from tick 0 on, so that a block after a cut has no such bound.
    """
    model, tiers, ticks = said.model, said.model.problem.tiers, said.number("swap")
    heavy = [i for i in range(model.n) if model.memory[i] > 0]
    if tiers is None or not heavy or ticks == 0 or not model.begins:
        return 0
    room = 0
    for d, size in zip(model.devices.leader, model.devices.size, strict=True):
        ends, nums, dens = (table[d].tolist() for table in (tiers.end, tiers.byte_ticks_num, tiers.byte_ticks_den))
        held, left = ends[0], ticks - 1
        for before, end, num, den in zip(ends, ends[1:], nums[1:], dens[1:], strict=False):
            need = -(-(end - before) * num // den)
            if need > left:
                held += left * den // num
                break
            held, left = end, left - need
        else:
            if ends[-1] == UNLIMITED:  # it holds all bytes in time, also more than this number
                return 0
        room += size * held
    return 0 if room >= sum(model.memory) else ticks + min(model.least(i, model.tail, model.duration) for i in heavy)


# --- claims about the makespan that are made of other claims ---


def refutation(said: Said) -> int:
    """A tree of cases that refutes all schedules below the value."""
    value = said.number("value")
    if 2 * value > INFINITE:
        raise said.wrong("value", "a smaller number")
    refute(said, lambda _: value - 1, value - 1)
    return value


def below(level: tuple[Term, ...], value: Fraction, check: Check) -> Limit:
    """The last tick at which a schedule of a case may end if a sum of metrics, with a makespan, is below a value."""
    ticks = sum(term.weight for term in level if term.metric == "makespan")

    def limit(case: Model) -> int:
        rest = value
        for term, kind in product(level, ("cheapest", "earliest")):
            if kind in CLAIMS[term.metric]:
                rest -= term.weight * CLAIMS[term.metric][kind](Said(case, {"claim": kind}, kind, check))
        return -(-rest // ticks) - 1

    return limit


def limit(said: Said) -> int:
    """A claim that a metric exceeds its limit; deadlines are no part of a metric."""
    model, claim = model_of(said.model.problem), said.claim.get("proof")
    for metric, most in model.problem.limits:
        if metric == said.claim.get("metric"):
            return INFINITE if said.check(model, metric, claim, f"{said.where}.proof") > most else 0
    raise said.wrong("metric", "a metric that the problem limits")


# --- the makespan of problems without a schedule, which is infinite ---


def memory(said: Said) -> int:
    """Groups that only these devices may run, and that take more bytes than these devices have.

    With `size`, groups of that many bytes count as one, and a device has room for a whole number of them. With `level`
    or `half`, bytes are rounded for the largest capacity.
    """
    model, groups, rooms = said.model, said.groups(), said.rooms
    held, most = [model.group_memory[g] for g in groups], max((room for _, room in rooms), default=0)
    if size := said.number("size", 0):
        return INFINITE if sum(each >= size for each in held) > sum(n * (room // size) for n, room in rooms) else 0
    if level := said.doubled_level(most):
        return INFINITE if sum(levelled(each, most, level) for each in held) > most * said.count else 0
    live = [min(model.need(g, c) for c, may in enumerate(model.fits[g]) if may) - model.group_memory[g] for g in groups]
    return INFINITE if sum(held) + max(live, default=0) > sum(n * room for n, room in rooms) else 0


def separation(said: Said) -> int:
    """Tasks that are pairwise on different devices, and more than the devices that may run any of them."""
    model = said.model
    tasks = said.tasks("tasks")[: sum(model.devices.size) + 1]
    groups = list({model.group[i]: None for i in tasks})
    if not all(pair in model.apart for pair in combinations(groups, 2)):
        raise said.wrong("tasks", "tasks of which no two may share a device")
    room = sum(size for c, size in enumerate(model.devices.size) if any(model.fits[g][c] for g in groups))
    return INFINITE if len(groups) > room else 0


def budget(said: Said) -> int:
    """A budget that does not suffice, although each group uses the least of it, at prices of memory."""
    amounts, room = said.model.use(said.place("resource", said.model.resources(False), "budgets"))
    return INFINITE if said.least_cost(amounts) > room else 0


# --- other metrics ---


def total_cost(said: Said) -> int:
    """All groups where they take the least time, and transfers that cannot be avoided."""
    return said.least_cost(said.model.duration) + unavoidable(said.model, said.model.devices.links)


def communication(said: Said) -> int:
    """The bytes of transfers that cannot be avoided."""
    return unavoidable(said.model, [[rate and (0, 1, 1) for rate in row] for row in said.model.devices.links])


def energy(said: Said) -> int:
    """All groups where they need the least energy, and transfers that cannot be avoided."""
    model, problem = said.model, said.model.problem
    power = [(0, int(problem.power_num[d]), int(problem.power_den[d])) for d in model.devices.leader]
    amount = cells(charge, [power] * model.n, model.duration)
    rates = model.devices.rates(0 * problem.latency, problem.byte_energy_num, problem.byte_energy_den)
    return said.least_cost(amount) + unavoidable(model, rates)


def tardiness(said: Said) -> int:
    """No task ends before its head and its duration."""
    model, problem = said.model, said.model.problem
    rows = [(int(problem.due[task]), int(problem.due_weight[task]), i) for i, task in enumerate(model.tasks)]
    late = [(weight, model.least(i, model.head, model.duration) - due) for due, weight, i in rows if due != UNLIMITED]
    return sum(weight * max(ticks, 0) for weight, ticks in late)


def fewest_devices(said: Said) -> int:
    """The devices whose memory holds all tasks, the largest first."""
    return max(min(said.model.n, 1), largest_first(said.model, range(said.model.k), sum(said.model.memory)))


def memory_balance(said: Said) -> int:
    """A group fills its device; groups that only some devices may run fill one by their average, or by some of them."""
    model, rooms, held = said.model, said.rooms, [said.model.group_memory[g] for g in said.groups()]
    capacity, most = model.devices.capacity, _pigeonhole(held, said.count, said.number("each", 0))
    parts = [(sum(held), sum(n * room for n, room in rooms)), (most, max((room for _, room in rooms), default=0))]
    rows = [[(model.need(g, c), room) for c, room in enumerate(capacity) if may[c]] for g, may in enumerate(model.fits)]
    alone = [min(_share(*cell) for cell in row) for row in rows]
    return max(*(_share(*part) for part in parts), max(alone, default=0))


def _share(held: int, room: int) -> int:
    """Parts of a room that bytes take; none of an unlimited one."""
    return 0 if room >= INFINITE else -(-held * PARTS // max(room, 1))


def machines(said: Said) -> int:
    """The least priced work of machines that devices share, with prices of budgets; a class has its least price."""
    model, pipeline = said.model, said.model.problem.pipeline
    of = () if pipeline is None or pipeline.machines is None else pipeline.machines
    prices = said.priced("machines", {str(q): q for each in of for q in each}, "machine")
    if not sum(prices.values()):
        raise said.wrong("machines", "a machine of the problem with a price")
    found = [(c, sum(prices.get(q, 0) for q in each)) for c, each in zip(model.devices.class_of, of, strict=True)]
    work, (used, worth) = [min(price for each, price in found if each == c) for c in range(model.k)], said.budgeted
    table = cells(lambda w, p, more: w * p + more, [work] * model.n, model.duration, used)
    cost = said.cheapest(table, said.confined(), [1] * model.k) - worth
    return max(-(-cost // sum(prices.values())), 0)


LOADS: dict[str, Callable[[Said], int]] = {
    "load": lambda said: said.shared(said.model.duration, said.confined()),
    "packing": lambda said: packing(said, said.model.duration),
}

CLAIMS: dict[Metric, dict[str, Callable[[Said], int]]] = {
    "makespan": {
        "critical-path": lambda said: said.model.longest, "load": load, "spread": spread, "packing": packing,
        "interval": interval, "path": priced_path, "flow": flow, "resource": resource, "transfers": transfers,
        "swapping": swapping, "refutation": refutation, "series": series, "memory": memory,
        "separation": separation, "budget": budget, "limit": limit,
    },
    "max_load": LOADS,
    "period": {**LOADS, "stages": divided, "machines": machines},
    "total_cost": {"cheapest": total_cost},
    "energy": {"cheapest": energy},
    "relocation": {"cheapest": lambda said: said.least_cost(said.model.table(said.model.problem.relocation))},
    "price": {"cheapest": lambda said: said.least_cost(said.model.table(said.model.problem.price))},
    "communication": {"cheapest": communication},
    "tardiness": {"earliest": tardiness},
    "devices": {"memory": fewest_devices},
    "memory_balance": {"memory": memory_balance},
}  # fmt: skip
"""What each kind of claim proves about a metric."""
