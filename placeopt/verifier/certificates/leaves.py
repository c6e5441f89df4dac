"""The claims of a certificate that are checked by computing alone; `docs/certificates.md` states each with its proof.

A check returns a lower bound that the claim proves, of the makespan or of the metric in the table at the end. It never
trusts a number of the claim: prices, sets and intervals only choose which of many valid inequalities is evaluated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import combinations

from placeopt.errors import CertificateError
from placeopt.model.problem import PARTS, UNLIMITED
from placeopt.verifier.certificates.model import INFINITE, Model, Rate, Table, charge
from placeopt.verifier.certificates.paths import flow, priced_path
from placeopt.verifier.certificates.scene import Said, shown
from placeopt.verifier.certificates.stages import divided
from placeopt.verifier.certificates.transfers import largest_first, unavoidable

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
    found, level, m = said.scene.windows, said.number("level", 0), said.places
    near, far = (found.tail, found.head) if said.claim.get("backwards") else (found.head, found.tail)
    rows = [tuple(found.least(table[i], i) for table in (near, far, said.model.busy)) for i in said.confined()]
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
    """Some device runs `each` + 1 of the `each` m + 1 groups that take longest at their fastest."""
    model = said.model
    table = model.busy if amount is None else amount
    fastest = [
        min((sum(table[i][c] for i in model.members[g]) for c in range(model.k) if model.fits[g][c]), default=INFINITE)
        for g in said.groups()
    ]
    return _pigeonhole(fastest, said.places, said.number("each"))


def _pigeonhole(amounts: list[int], places: int, k: int) -> int:
    """Of the k places + 1 largest amounts, some place has k + 1: at least the k + 1 least of them."""
    kept = sorted(amounts, reverse=True)[: k * places + 1]
    return sum(kept[-(k + 1) :]) if len(kept) == k * places + 1 else 0


def interval(said: Said, least: int) -> int:
    """Work that must run within [start, T - end) in every schedule of a makespan T.

    On class c, task i runs there for min(w, L) ticks or more, w = min(p, head + p - start, tail + p - end), L the
    length. The priced work less what the devices offer is concave in L: if it is positive for T = `least`, which
    another claim proves, and for T = value - 1, then no schedule has a makespan between them.
    """
    model, found, prices = said.model, said.scene.windows, said.prices()
    near, far, value = (said.number(key) for key in ("start", "end", "value"))
    tasks = said.confined()
    scale = sum(price * size for price, size in zip(prices.work, model.devices.size, strict=True))
    classes = range(model.k)
    inside = [
        [
            min(p, max(found.head[i][c] + p - near, 0), max(found.tail[i][c] + p - far, 0))
            if found.allowed[i][c]
            else p
            for c, p in enumerate(model.busy[i])
        ]
        for i in range(model.n)
    ]

    def excess(length: int) -> int:
        table = [[min(inside[i][c], length) for c in classes] for i in range(model.n)]
        return said.cheapest(table, tasks, prices) - scale * length

    lengths = least - near - far, value - 1 - near - far
    return value if 0 <= lengths[0] <= lengths[1] and all(excess(length) > 0 for length in lengths) else least


def resource(said: Said) -> int:
    """What tasks use of a renewable resource over time, after `head` and before `tail`, fits into its capacity K.

    Amounts above K - `level` count as K, those below `level` as 0 (S. P. Fekete and J. Schepers, Mathematical
    Programming 91, 2001); with `half`, the level is K / 2.
    """
    model, found, resources, name = (
        said.model,
        said.scene.windows,
        said.model.problem.resources,
        said.claim.get("resource"),
    )
    r = resources.names.index(name) if resources is not None and name in resources.names else -1
    if resources is None or r < 0 or not resources.renewable[r] or resources.capacity[r] == 0:
        raise CertificateError(f"{said.where}.resource is {name!r}; expected a renewable resource with a capacity")
    room, amounts = int(resources.capacity[r]), resources.amounts(r)
    level = room if said.claim.get("half") else 2 * said.number("level", 0)
    if level > room:
        raise CertificateError(f"{said.where}.level is {level // 2}; expected at most half of the capacity, {room}")
    near, far, work = said.number("head", 0), said.number("tail", 0), 0
    for i, task in enumerate(model.tasks):
        if found.least(found.head[i], i) >= near and found.least(found.tail[i], i) >= far:
            row = []
            for c, d in enumerate(model.devices.leader):
                a = 2 * int(amounts[task, d])
                row.append((room if a > 2 * room - level else 0 if a < level else a // 2) * model.duration[i][c])
            work += found.least(row, i)
    return near + far + -(-work // room) if work else 0  # without work, S may be empty


def ports(said: Said) -> int:
    """Transfers that cannot be avoided, divided over the ports, between the tasks around them."""
    model = said.model
    ticks = unavoidable(model, model.devices.links)
    if model.problem.contention == "none" or not ticks:
        return 0
    used = 2 if model.problem.contention == "half_duplex" else 1
    return _around(said) + -(-ticks * used // sum(model.devices.size))


def link(said: Said) -> int:
    """Transfers over one channel of a shared link that cannot be avoided, one after the other."""
    devices, shared, name = said.model.devices, said.model.problem.shared_links, said.claim.get("link")
    if shared is None or name not in shared.channels:
        raise CertificateError(f"{said.where}.link is {name!r}, which the problem does not have")
    channel = shared.channels.index(name)
    rates = [
        [rate if pair is None or channel in shared.of(*pair) else (0, 0, 1) for rate, pair in zip(*rows, strict=True)]
        for rows in zip(devices.links, devices.pairs, strict=True)
    ]
    ticks = unavoidable(said.model, rates)
    return _around(said) + ticks if ticks else 0


def _around(said: Said) -> int:
    """The least ticks before any transfer begins, and after any has arrived."""
    model, found = said.model, said.scene.windows
    moving = [edge for edge in model.edges if not model.together(edge)]
    before = min(found.least(found.ends(model.duration, edge.source), edge.source) for edge in moving)
    return before + min(found.least(found.rests(model.duration, edge.target), edge.target) for edge in moving)


def swapping(said: Said) -> int:
    """If all devices swap for fewer than `swap` ticks, they do not hold all bytes; a task with bytes comes after it.

    Devices swap from tick 0 on, so that a block after a cut has no such bound.
    """
    model, found, tiers, ticks = said.model, said.scene.windows, said.model.problem.tiers, said.number("swap")
    heavy = [i for i in range(model.n) if model.memory[i] > 0]
    if tiers is None or not heavy or ticks == 0 or not model.begins:
        return 0
    room = 0
    for d, size in zip(model.devices.leader, model.devices.size, strict=True):
        ends, nums, dens = (table[d].tolist() for table in (tiers.end, tiers.byte_ticks_num, tiers.byte_ticks_den))
        held, left = ends[0], ticks - 1
        for before, end, num, den in zip(ends, ends[1:], nums[1:], dens[1:], strict=False):
            inside = min(end - before, left * den // num) if num else end - before
            held += inside
            if inside < end - before:
                break
            left -= -(-(end - before) * num // den)
        room += size * held
    if room >= sum(model.memory):
        return 0
    return ticks + min(found.least(found.rests(model.duration, i), i) for i in heavy)


# --- the makespan of problems without a schedule, which is infinite ---


def memory(said: Said) -> int:
    """Groups that only these devices may run, and that take more bytes than these devices have.

    With `size`, groups of that many bytes count as one, and a device has room for a whole number of them. Otherwise
    amounts above K - `level` count as K, those below `level` as 0, K being the largest capacity; see `resource`.
    """
    model, groups = said.model, said.groups()
    rows = zip(model.devices.size, model.devices.capacity, said.devices, strict=True)
    rooms = [(size, room) for size, room, inside in rows if inside]
    if any(room is None for _, room in rooms):
        return 0
    held, most = [model.group_memory[g] for g in groups], max(room or 0 for _, room in rooms)
    size, level = said.number("size", 0), said.number("level", 0)
    if size:
        places = sum(n * ((room or 0) // size) for n, room in rooms)
        return INFINITE if sum(each >= size for each in held) > places else 0
    if 2 * level > most:
        raise CertificateError(f"{said.where}.level is {level}; expected at most half of the largest capacity, {most}")
    if level:
        held = [most if each > most - level else 0 if each < level else each for each in held]
        return INFINITE if sum(held) > most * said.places else 0
    live = [
        min((model.need(g, c) - model.group_memory[g] for c, may in enumerate(model.fits[g]) if may), default=0)
        for g in groups
    ]
    return INFINITE if sum(held) + max(live, default=0) > sum(n * (room or 0) for n, room in rooms) else 0


def separation(said: Said) -> int:
    """Tasks that are pairwise on different devices, and more than the devices that may run any of them."""
    model, named = said.model, said.claim.get("tasks")
    place = model.named
    if not isinstance(named, list) or not all(isinstance(name, str) and name in place for name in named):
        raise CertificateError(f"{said.where}.tasks is {shown(named)}; expected names of tasks of the problem")
    groups = {model.group[place[name]]: name for name in named[: sum(model.devices.size) + 1]}
    for (g, first), (h, second) in combinations(groups.items(), 2):
        if (g, h) not in model.apart:
            raise CertificateError(f"{said.where}.tasks: {first} and {second} may share a device")
    room = sum(size for c, size in enumerate(model.devices.size) if any(model.fits[g][c] for g in groups))
    return INFINITE if len(groups) > room else 0


def budget(said: Said) -> int:
    """A budget that does not suffice, although each group uses the least of it, at prices of memory."""
    amounts, room = said.budget(said.claim.get("resource"))
    return INFINITE if said.least_cost(amounts) > room else 0


# --- other metrics ---


def energy(said: Said) -> int:
    """All groups where they need the least energy, and transfers that cannot be avoided."""
    model, problem = said.model, said.model.problem
    power = [(0, int(problem.power_num[d]), int(problem.power_den[d])) for d in model.devices.leader]
    amount = [[charge(rate, p) for rate, p in zip(power, row, strict=True)] for row in model.duration]
    rates = model.devices.rates(0 * problem.latency, problem.byte_energy_num, problem.byte_energy_den)
    return said.least_cost(amount) + unavoidable(model, rates)


def communication(said: Said) -> int:
    """The bytes of transfers that cannot be avoided."""
    one: list[list[Rate | None]] = [[rate and (0, 1, 1) for rate in row] for row in said.model.devices.links]
    return unavoidable(said.model, one)


def tardiness(said: Said) -> int:
    """No task ends before its head and its duration."""
    model, found, problem = said.model, said.scene.windows, said.model.problem
    late = 0
    for i, task in enumerate(model.tasks):
        due = int(problem.due[task])
        if due != UNLIMITED:
            late += int(problem.due_weight[task]) * max(found.least(found.ends(model.duration, i), i) - due, 0)
    return late


def fewest_devices(said: Said) -> int:
    """The devices whose memory holds all tasks, the largest first."""
    model = said.model
    return max(min(model.n, 1), largest_first(model, range(model.k), sum(model.memory)))


def memory_balance(said: Said) -> int:
    """A group fills its device; groups that only some devices may run fill one by their average, or by some of them."""
    model, devices = said.model, said.model.devices
    alone = []
    for g, row in enumerate(model.fits):
        classes = [c for c, may in enumerate(row) if may]
        shares = [
            0 if (room := devices.capacity[c]) is None else -(-model.need(g, c) * PARTS // max(room, 1))
            for c in classes
        ]
        alone.append(min(shares, default=0))
    rows = zip(devices.size, devices.capacity, said.devices, strict=True)
    rooms = [(size, room) for size, room, inside in rows if inside]
    best, held = max(alone, default=0), [model.group_memory[g] for g in said.groups()]
    if all(room is not None for _, room in rooms):
        whole_room, largest = sum(size * (room or 0) for size, room in rooms), max(room or 0 for _, room in rooms)
        most = _pigeonhole(held, said.places, said.number("each", 0))
        for amount, room in ((sum(held), whole_room), (most, largest)):
            best = max(best, -(-amount * PARTS // room) if room else 0)
    return best


def _single(model: Model) -> bool:
    """Whether every stage of a pipeline runs on one device, without replicas."""
    return model.problem.pipeline is not None and model.problem.pipeline.replicas == 1


Check = Callable[[Said], int]

METRICS: dict[str, dict[str, Check]] = {
    "makespan": {
        "critical-path": lambda said: said.scene.longest,
        "load": load,
        "spread": spread,
        "path": priced_path,
        "flow": flow,
        "packing": packing,
        "resource": resource,
        "ports": ports,
        "link": link,
        "swapping": swapping,
        "memory": memory,
        "separation": separation,
        "budget": budget,
    },
    "max_load": {
        "load": lambda said: said.shared(said.model.duration, said.confined()),
        "packing": lambda said: packing(said, said.model.duration),
    },
    "total_cost": {
        "cheapest": lambda said: (
            said.least_cost(said.model.duration) + unavoidable(said.model, said.model.devices.links)
        ),
    },
    "energy": {"cheapest": energy},
    "relocation": {"cheapest": lambda said: said.least_cost(said.model.table(said.model.problem.relocation))},
    "price": {"cheapest": lambda said: said.least_cost(said.model.table(said.model.problem.price))},
    "communication": {"transfers": communication},
    "tardiness": {"earliest": tardiness},
    "devices": {"memory": fewest_devices},
    "memory_balance": {"memory": memory_balance},
    "period": {
        "load": lambda said: said.shared(said.model.duration, said.confined()),
        "packing": lambda said: packing(said, said.model.duration) if _single(said.model) else 0,
        "stages": divided,
    },
}
"""Claims about each metric."""
