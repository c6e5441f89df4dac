"""Lower bounds of the objective in integer arithmetic, and quick proofs of infeasibility.

Every bound holds for the whole problem, with memory, groups, feasibility, links, contention and resources. All are
computed in integers, without tolerances or solvers:

    critical-path   heads, durations and tails along the longest path         `placeopt.bounding.quick.paths`
    load            all work divided ideally over the devices                 `placeopt.bounding.quick.loads`
    jackson         work between earliest starts and tails                    `placeopt.bounding.quick.jackson`
    packing         of k m + 1 groups, some device has k + 1                  `placeopt.bounding.quick.loads.pigeonhole`
    resources       what tasks use over time, shared ideally                  `placeopt.bounding.quick.resources`
    ports           unavoidable transfers, divided over the ports             `_ports` below
    swapping        the least swap time of memory tiers that hold all bytes   `swapping_bound`
    transfers       unavoidable transfers between devices                     `placeopt.bounding.quick.transfers`
    cheapest        each group on its cheapest device, within memory limits   `placeopt.bounding.quick.loads`
    memory          the fullest device is at least as full as the average     `_memory_balance` below
                    the fewest devices whose memory holds all groups          `_devices` below
    earliest        no task ends before its head and its duration             `_tardiness` below

Heads start from release times. Deadlines exclude devices for some tasks (`placeopt.bounding.quick.deadlines`); apart
from this, bounds ignore them. `placeopt.bounding.quick.infeasibility` holds the proofs. The bounds of an infeasible
problem are finite and mean nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np

from placeopt import engine
from placeopt.bounding.quick.classes import Classes, Subset, classes_of, clipped, least, subsets
from placeopt.bounding.quick.deadlines import narrowed
from placeopt.bounding.quick.infeasibility import Infeasibility, prove_infeasible
from placeopt.bounding.quick.jackson import head_load_tail, priced_subsets
from placeopt.bounding.quick.loads import (
    Prices,
    best_price_bound,
    candidate_prices,
    pigeonhole,
    sharing_of,
)
from placeopt.bounding.quick.paths import NEVER, Windows, critical_path, windows
from placeopt.bounding.quick.resources import scarcest
from placeopt.bounding.quick.transfers import TransferCost, unavoidable_cost
from placeopt.errors import InternalError, counted
from placeopt.model.arrays import Int
from placeopt.model.memory import most_swapping
from placeopt.model.objective import EXACT, Value, is_exact, simplified, task_energy
from placeopt.model.ports import channels
from placeopt.model.problem import NANO, PARTS, UNLIMITED, Metric, Problem
from placeopt.model.tiers import Tiers
from placeopt.model.units import size_text, time_text

__all__ = ["NAMES", "Bound", "Infeasibility", "best_bound", "bounds", "prove_infeasible"]


NAMES = (
    "critical-path", "load", "jackson", "packing", "resources", "ports", "links", "swapping", "transfers", "cheapest",
    "memory", "earliest", "weighted-sum", "trivial",
)  # fmt: skip
"""Names of these bounds. Ledgers of comparisons accept a proved bound only under one of them or of a solver."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A proved lower bound of the objective's first level.

    `name` is the kind of bound. `value` is in the unit of the objective: ticks, bytes, nanojoules, parts per million,
    or their weighted sum. `explanation` states in one line why no schedule is better. `seconds` is the computing time,
    which comparisons ignore.

    Raises
    ------
    InternalError
        If the value is not an exact number: a NumPy integer may have overflowed, and a float is rounded.
    """

    name: str
    value: Value
    explanation: str
    seconds: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        if not is_exact(self.value):
            raise InternalError(f"{self.name} states the bound {self.value!r}; {EXACT}")

    def __repr__(self) -> str:
        return f"<Bound {self.name}: {self.value}>"


_known: WeakKeyDictionary[Problem, list[Bound]] = WeakKeyDictionary()


def bounds(problem: Problem) -> list[Bound]:
    """Every bound that applies to the first level of the objective, best first; at least one.

    Ties are in the order of the table in the module's docstring. A weighted sum of several metrics has one bound: the
    weighted sum of their best bounds.

    They are computed once for each problem. Once `engine.stopping` says so, some of them become weaker.
    """
    found = _known.get(problem)
    if found is None:
        found = _all_bounds(problem)
        if not engine.stopped():
            _known[problem] = found
    return list(found)


def _all_bounds(problem: Problem) -> list[Bound]:
    level = problem.objective.levels[0]
    if problem.n_tasks == 0 or problem.n_devices == 0:
        return [Bound("trivial", 0, "there is nothing to place")]
    classes = narrowed_classes(problem)
    found = [_timed_and_ranked(_BOUNDS[term.metric](classes)) for term in level]
    if len(level) == 1:
        weight = level[0].weight
        return [replace(bound, value=simplified(weight * bound.value)) for bound in found[0]]
    total = sum((term.weight * ranked[0].value for term, ranked in zip(level, found, strict=True)), Fraction(0))
    parts = [
        f"{term.metric} >= {ranked[0].value} ({ranked[0].name})" for term, ranked in zip(level, found, strict=True)
    ]
    seconds = sum(bound.seconds for ranked in found for bound in ranked)
    return [Bound("weighted-sum", simplified(total), "; ".join(parts), seconds)]


def narrowed_classes(problem: Problem) -> Classes:
    """The problem by classes and groups, without the classes that deadlines exclude."""
    classes = classes_of(problem)
    within = narrowed(classes)
    return classes if within is None else within.classes


def best_bound(problem: Problem) -> Bound:
    """The largest bound."""
    return bounds(problem)[0]


def _timed_and_ranked(found: Iterable[Bound]) -> list[Bound]:
    """The bounds with their computing times, best first."""
    timed, begun = [], time.perf_counter()
    for bound in found:
        now = time.perf_counter()
        timed.append(replace(bound, seconds=now - begun))
        begun = now
    return sorted(timed, key=lambda bound: -bound.value)


def _everything(classes: Classes) -> Subset:
    """All classes; they confine every group."""
    return Subset(np.ones(classes.n_classes, dtype=np.bool_), np.ones(len(classes.allowed), dtype=np.bool_))


def _makespan(classes: Classes) -> Iterator[Bound]:
    problem = classes.problem
    found = windows(classes)
    length, task = critical_path(classes, found)
    yield Bound(
        "critical-path",
        length,
        f"the longest chain of tasks and unavoidable transfers, through task {problem.task_names[task]}, "
        f"takes at least {_time(problem, length)}",
    )
    priced = priced_subsets(classes)
    load, packing = _loads(classes, classes.busy, priced[-1][1])
    yield load
    whole, subset, tasks = head_load_tail(classes, found, priced)
    yield Bound(
        "jackson",
        whole,
        f"{counted(tasks, 'task')} confined to {classes.names(subset.members)}, with the work before and after all of "
        f"them, take{'s' if tasks == 1 else ''} at least {_time(problem, whole)}",
    )
    yield packing
    if (use := scarcest(classes, found)) is not None:
        taken = f"take at least {_time(problem, use.ticks)} with the work before and after them"
        yield Bound("resources", use.ticks, f"the tasks share {use.name}, and {taken}")
    if problem.contends and problem.n_edges > 0:
        yield from _ports(classes, found)
        yield from _links(classes, found)
    least_end, swap = swapping_bound(classes, found)
    if swap:
        why = f"all bytes fit only if some device swaps for at least {_time(problem, swap)} before its first task"
        yield Bound("swapping", least_end, why)


def _ports(classes: Classes, found: Windows) -> Iterator[Bound]:
    """Under port contention: unavoidable transfers, divided over the ports. Nothing if no transfer is unavoidable.

    A transfer takes one of m sending ports and one of m receiving ports; under `half_duplex`, two of m ports. It begins
    after a producer, hence h or more ticks after 0, and arrives before a consumer, hence t or more ticks before the
    makespan C. So transfers of w ticks in all require w <= m (C - h - t); under `half_duplex`, 2 w <= m (C - h - t).
    """
    problem = classes.problem
    ticks = unavoidable_cost(classes, TransferCost(classes.latency, classes.num, classes.den))
    if not ticks or problem.contention == "none":
        return
    busy = 2 * ticks if problem.contention == "half_duplex" else ticks
    least = _around(classes, found) - (-busy // problem.n_devices)
    why = (
        f"unavoidable transfers, divided ideally over the ports, and the tasks around them take {_time(problem, least)}"
    )
    yield Bound("ports", least, why)


def _around(classes: Classes, found: Windows) -> int:
    """The least ticks before any transfer can begin, plus those after any has arrived."""
    problem, moving = classes.problem, ~classes.together
    first, last = (
        int(np.where(found.allowed, classes.duration + beside, NEVER).min(axis=1)[end[moving]].min(initial=NEVER))
        for beside, end in ((found.head, problem.edge_source), (found.tail, problem.edge_target))
    )
    return first + last


def _links(classes: Classes, found: Windows) -> Iterator[Bound]:
    """With shared links: the unavoidable transfers over a channel follow each other, between the h and t of `_ports`.

    Devices of one class are in the same groups, so a transfer between two classes always uses a channel or never does.
    If it never does, it counts as free.
    """
    problem, busiest = classes.problem, (0, "")
    pairs = classes.source, classes.target
    for name, ways in channels(problem):
        over = np.any([senders[pairs[0]] & receivers[pairs[1]] for senders, receivers in ways], axis=0)
        tariff = TransferCost(np.where(over, classes.latency, 0), np.where(over, classes.num, 0), classes.den)
        busiest = max(busiest, (unavoidable_cost(classes, tariff), name))
    if busiest[0]:
        least = _around(classes, found) + busiest[0]
        why = f"unavoidable transfers over {busiest[1]} and the tasks around them take {_time(problem, least)}"
        yield Bound("links", least, why)


def _max_load(classes: Classes) -> Iterator[Bound]:
    prices = candidate_prices(sharing_of(classes, _everything(classes), classes.duration, loads=True))
    yield from _loads(classes, classes.duration, prices)


def _loads(classes: Classes, ticks: Int, prices: list[Prices]) -> tuple[Bound, Bound]:
    """Bounds of the load of the busiest device from the ticks (n, k) of tasks; of the makespan from `classes.busy`."""
    problem = classes.problem
    sharing = sharing_of(classes, _everything(classes), ticks, loads=True)
    shared = math.ceil(best_price_bound(sharing, prices))
    packed = pigeonhole(least(sharing.amount, sharing.allowed), problem.n_devices)
    why = f"some device runs groups that take at least {_time(problem, packed)} at their fastest"
    return (
        Bound("load", shared, f"all work, divided ideally over the devices, takes {_time(problem, shared)}"),
        Bound("packing", packed, why),
    )


def _period(classes: Classes) -> Iterator[Bound]:
    """The period is at least the computing load of the busiest device; a team divides that of its tasks.

    The tasks of a team of r devices count as divided among them: 1 / r on each. So the ideal division of all work is no
    longer than the period.
    """
    problem = classes.problem
    assert problem.pipeline is not None
    sharing = sharing_of(classes, _everything(classes), classes.duration, loads=True)
    shared = math.ceil(best_price_bound(sharing))
    yield Bound("load", shared, f"all work, divided ideally over the devices, takes {_time(problem, shared)}")
    if problem.pipeline.machines is not None:
        on = problem.pipeline.occupied
        size = on.sum(axis=1)[classes.leader].astype(object)
        allowed = np.where(sharing.allowed, sharing.amount * size, math.inf).min(axis=1, initial=math.inf)
        shared = -(-sum(allowed.tolist()) // int(on.any(axis=0).sum()))
        why = f"all work, in the modes and teams that need the least, divided ideally, takes {_time(problem, shared)}"
        yield Bound("load", shared, why)
    fastest = least(sharing.amount, sharing.allowed)
    if problem.pipeline.replicas == 1:
        packed = pigeonhole(fastest, problem.n_devices)
        why = f"some device runs groups that take at least {_time(problem, packed)} at their fastest"
    else:
        packed = -(-int(fastest.max(initial=0)) // problem.pipeline.replicas)
        why = f"some group takes at least {_time(problem, packed)}, divided by {problem.pipeline.replicas} replicas"
    yield Bound("packing", packed, why)


def _cheapest(classes: Classes, amount: Int) -> int:
    """The least sum of amounts (n, k) over all placements of the groups within the memory of the classes."""
    return math.ceil(best_price_bound(sharing_of(classes, _everything(classes), amount, loads=False)))


def _total_cost(classes: Classes) -> list[Bound]:
    problem = classes.problem
    computing = _cheapest(classes, classes.duration)
    moving = unavoidable_cost(classes, TransferCost(classes.latency, classes.num, classes.den))
    times = _time(problem, computing), _time(problem, moving)
    why = f"every group on its fastest device takes {times[0]}, unavoidable transfers take {times[1]}"
    return [Bound("cheapest", computing + moving, why)]


def _communication(classes: Classes) -> list[Bound]:
    free = np.zeros_like(classes.latency)
    moving = unavoidable_cost(classes, TransferCost(free, free + 1, free + 1))
    why = f"at least {size_text(moving)} must move between devices" if moving else "no transfer is unavoidable"
    return [Bound("transfers", moving, why)]


def _energy(classes: Classes) -> list[Bound]:
    problem = classes.problem
    computing = _cheapest(classes, clipped(task_energy(problem)[:, classes.leader]))
    num, den = (link[classes.source, classes.target] for link in (problem.byte_energy_num, problem.byte_energy_den))
    moving = unavoidable_cost(classes, TransferCost(np.zeros_like(num), num, den))
    why = f"every group on its cheapest device takes {computing} nJ, unavoidable transfers take {moving} nJ"
    return [Bound("cheapest", computing + moving, why)]


def _relocation(classes: Classes) -> list[Bound]:
    moving = _cheapest(classes, clipped(classes.problem.relocation[:, classes.leader]))
    why = f"every group on its cheapest device takes {_time(classes.problem, moving)} of relocation"
    return [Bound("cheapest", moving, why)]


def _price(classes: Classes) -> list[Bound]:
    least_price = _cheapest(classes, clipped(classes.problem.price[:, classes.leader]))
    return [Bound("cheapest", least_price, f"every group on its cheapest device costs {least_price / NANO:,.6g}")]


def _tardiness(classes: Classes) -> list[Bound]:
    """No task ends before its head and its duration on some device."""
    problem, found = classes.problem, windows(classes)
    end = np.where(found.allowed, found.head + classes.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)
    stated = zip(end.tolist(), problem.due.tolist(), problem.due_weight.tolist(), strict=True)
    late = sum(weight * max(first - due, 0) for first, due, weight in stated if first != UNLIMITED)
    return [Bound("earliest", late, f"tasks that end as early as they can are {_time(problem, late)} late, weighted")]


def _devices(classes: Classes) -> list[Bound]:
    """The fewest devices, the largest first, whose memory holds all groups."""
    capacity = np.repeat(classes.capacity, classes.size)
    room, held, count = np.sort(capacity)[::-1].tolist(), sum(classes.group_memory.tolist()), 0
    while count < len(room) and (held > 0 or (count == 0 and classes.problem.n_tasks)):
        held -= room[count]
        count += 1
    return [Bound("memory", count, f"all tasks need the memory of {counted(count, 'device')}")]


def _memory_balance(classes: Classes) -> list[Bound]:
    """The fullest device of a subset is at least as full as their average, and as any group makes its device."""
    lone = _fullest_alone(classes)
    best, why = lone, f"some group takes at least {lone / PARTS:.2%} of any device that it may use"
    for subset in subsets(classes):
        capacity, size = classes.capacity[subset.members].tolist(), classes.size[subset.members].tolist()
        room = sum(each * devices for each, devices in zip(capacity, size, strict=True))
        if UNLIMITED in capacity or room == 0:
            continue
        held = classes.group_memory[subset.groups]
        fullest = pigeonhole(held, sum(size))
        shares = -(-int(held.sum()) * PARTS // room), -(-fullest * PARTS // max(capacity))
        if max(shares) > best:
            best = max(shares)
            why = f"the tasks that only fit on {classes.names(subset.members)} fill one of them to {best / PARTS:.2%}"
    return [Bound("memory", best, why)]


def _fullest_alone(classes: Classes) -> int:
    """The largest share of a capacity, in ppm, that some group takes on any of its devices."""
    limited = classes.capacity != UNLIMITED
    confined = ~(classes.allowed & ~limited).any(axis=1)
    share = np.where(limited, classes.need / np.maximum(classes.capacity, 1).astype(np.float64), 0.0)
    share = np.where(classes.allowed & confined[:, None], share, np.inf).min(axis=1)
    share[~confined] = -1.0
    group = int(share.argmax())
    if not confined[group]:
        return 0
    return min(
        -(-int(classes.need[group, c]) * PARTS // max(int(classes.capacity[c]), 1))
        for c in np.flatnonzero(classes.allowed[group]).tolist()
    )


def _time(problem: Problem, ticks: int) -> str:
    return time_text(ticks, problem.resolution)


_BOUNDS: dict[Metric, Callable[[Classes], Iterable[Bound]]] = {
    "makespan": _makespan,
    "total_cost": _total_cost,
    "max_load": _max_load,
    "communication": _communication,
    "energy": _energy,
    "memory_balance": _memory_balance,
    "relocation": _relocation,
    "tardiness": _tardiness,
    "price": _price,
    "devices": _devices,
    "period": _period,
}


def swapping_bound(classes: Classes, found: Windows) -> tuple[int, int]:
    """A lower bound of the makespan, and the least swap time of the device that swaps longest; 0 without tiers.

    Let c be the least duration and tail of any task with bytes. In a schedule of makespan T, each device with bytes
    runs such a task after its swap time S, so S <= T - c. It therefore holds at most h(T - c) bytes, where h(x) are the
    most bytes that it swaps in x ticks. All tasks fit, so the sum of h(T - c) over the devices is at least all bytes,
    and T - c is at least the smallest x for which that holds. It is found by binary search, as h does not decrease.
    O(k t log S) for k device classes of t tiers.
    """
    problem, tiers = classes.problem, classes.problem.tiers
    heavy = np.flatnonzero(classes.memory)
    if tiers is None or not len(heavy):
        return 0, 0
    after = np.where(found.allowed, classes.duration + found.tail, UNLIMITED).min(axis=1)[heavy]
    total = int(classes.memory.sum())
    members: list[tuple[int, int]] = list(zip(classes.leader.tolist(), classes.size.tolist(), strict=True))

    def enough(ticks: int) -> bool:
        return sum(size * most_bytes(tiers, d, ticks) for d, size in members) >= total

    low, high = 0, max(most_swapping(problem))
    while low < high:  # an infeasible problem ends at the top
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return (low + int(after.min()), low) if low else (0, 0)


def most_bytes(tiers: Tiers, d: int, ticks: int) -> int:
    """The most bytes that a device can hold if it swaps for at most these ticks."""
    held = int(tiers.end[d, 0])
    for size, num, den in tiers.further(d):
        inside = min(size, ticks * den // num)
        held += inside
        if inside < size:
            break
        ticks -= -(-size * num // den)
    return held
