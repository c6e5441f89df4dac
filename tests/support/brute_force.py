"""The optimum of small problems by trying everything: the oracle that other tests compare with.

It reads a problem's primary arrays only and works everything out anew, in plain Python, so that it shares
no mistake with what it judges.

Every placement is tried. For one placement, the tasks (and under contention the transfers) are appended in every
order of non-decreasing starts, each as early as its release time, its producers, its device and its ports allow. That
finds an optimum under the `sum` memory model: take an optimal schedule in which nothing can start earlier while the
order on every device and port stays; appending its operations by start, producers first among equals, rebuilds it:
each starts at its release, when its device or port becomes free or available, or when its data is there, and all that
decides this was appended before it. A deadline only forbids: a schedule that keeps it keeps it still when its
operations start earlier, so the optimal schedule is among those built, and those that break one are dropped.

Under `peak` a later start may be what makes a schedule fit. But only one at which something ends or an output
is freed: if nothing does, whatever is live a tick earlier is live now as well, so the operation may
as well start that tick earlier, where that is not before its release, its data or its device allow. What ends by
then was appended before. So these ticks are tried too.

Fit for five tasks on three devices; for four tasks with ports or under `peak`. `small_problem` draws such problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from link_lanes import lanes, random_links

from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem, with_changes
from placeopt.model.problem import PARTS, UNLIMITED, Contention, MemoryModel, Metric, Objective, Problem, Term
from placeopt.model.resources import build_resources
from placeopt.model.schedule import Schedule, Transfers
from placeopt.model.setups import build_setups
from placeopt.model.unavailability import build_unavailability

Value = tuple[int | Fraction, ...]

METRICS: tuple[Metric, ...] = (
    "makespan", "total_cost", "max_load", "communication", "energy", "memory_balance", "relocation", "tardiness",
    "price", "devices",
)  # fmt: skip


def optimum(problem: Problem) -> tuple[Value, Schedule] | None:
    """The best objective value, one number a level, and a schedule that has it; None if nothing is feasible."""
    best: tuple[Value, Schedule] | None = None
    for device in placements(problem):
        best = _Search(problem, device, best).run()
    return best


def placements(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Placements that keep feasibility, groups, separations and the memory that is held for good."""
    choices = [[d for d in range(problem.n_devices) if problem.feasible[i, d]] for i in range(problem.n_tasks)]
    group, pairs = problem.group.tolist(), problem.separation.tolist()
    for device in product(*choices):
        where: dict[int, int] = {}
        if any(where.setdefault(g, d) != d for g, d in zip(group, device, strict=True)):
            continue
        if any(device[i] == device[j] for i, j in pairs):
            continue
        if within(problem, _held(problem, device)) and _within_budgets(problem, device):
            yield device


def _held(problem: Problem, device: tuple[int, ...]) -> list[int]:
    """Bytes that each device holds for good."""
    used = [0] * problem.n_devices
    for i, d in enumerate(device):
        used[d] += int(problem.resident[i])
        if problem.memory_model == "sum":
            used[d] += int(problem.output[i]) + int(problem.scratch[i])
    return used


def _swaps(problem: Problem, device: tuple[int, ...]) -> list[int]:
    """Ticks for which each device moves the bytes beyond its first memory tier, before its first task."""
    return [swap_ticks(problem, d, used) for d, used in enumerate(_held(problem, device))]


def swap_ticks(problem: Problem, d: int, used: int) -> int:
    """Ticks for which a device moves the bytes of `used` beyond its first memory tier."""
    if problem.tiers is None:
        return 0
    left, ticks = max(used - int(problem.tiers.end[d, 0]), 0), 0
    for size, num, den in problem.tiers.further(d):
        ticks += rounded_up(min(left, size), num, den)
        left = max(left - size, 0)
    return ticks


def within(problem: Problem, used: list[int]) -> bool:
    return all(have == UNLIMITED or use <= have for use, have in zip(used, problem.capacity.tolist(), strict=True))


def _uses(problem: Problem, device: tuple[int, ...]) -> list[dict[int, int]]:
    """What each task uses of each resource."""
    given = problem.resources
    if given is None:
        return [{} for _ in device]
    found = []
    for i, d in enumerate(device):
        entry = int(given.need[i, d])
        rows = range(int(given.row[entry]), int(given.row[entry + 1]))
        found.append({int(given.resource[k]): int(given.amount[k]) for k in rows})
    return found


def _within_budgets(problem: Problem, device: tuple[int, ...]) -> bool:
    given, uses = problem.resources, _uses(problem, device)
    return given is None or all(
        given.renewable[r] or sum(use.get(r, 0) for use in uses) <= int(given.capacity[r])
        for r in range(len(given.names))
    )


class _Search:
    """All schedules of one placement that might be better than the best so far."""

    def __init__(self, problem: Problem, device: tuple[int, ...], best: tuple[Value, Schedule] | None) -> None:
        self.problem, self.device, self.best = problem, device, best
        m = problem.n_devices
        own, one = problem.contention != "none", problem.contention == "half_duplex"
        ports = own or problem.shared_links is not None
        duration = [int(problem.duration[i, d]) for i, d in enumerate(device)]
        # Operations are the tasks and, with ports, the transfers after them.
        self.ticks = list(duration)
        alone = [problem.resources is None or not problem.resources.parallel[d] for d in range(m)]
        self.resources: list[tuple[int, ...]] = [(d,) if alone[d] else () for d in device]
        self.uses = _uses(problem, device)
        self.carrier: list[int] = []  # the lowest edge of each transfer
        self.before: list[list[tuple[int, int]]] = [[] for _ in device]  # operation that must end, ticks after that
        self.arrival: list[tuple[int, int, int]] = []  # producer, operation at whose end + ticks an edge's data is used
        self.cost, self.bytes, self.energy = sum(duration), 0, 0
        moves: dict[tuple[object, ...], int] = {}
        for e, (i, j) in enumerate(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)):
            a, b = device[i], device[j]
            if a == b:
                self.before[j].append((i, 0))
                self.arrival.append((i, j, 0))
                continue
            payload = int(problem.payload[e])
            way = int(problem.latency[a, b]) + rounded_up(
                payload, problem.byte_ticks_num[a, b], problem.byte_ticks_den[a, b]
            )
            key = (i, b) if problem.shared[e] else (i, b, e)
            if key not in moves:
                moves[key] = len(self.ticks)
                self.cost += way
                self.bytes += payload
                self.energy += rounded_up(payload, problem.byte_energy_num[a, b], problem.byte_energy_den[a, b])
                if ports:
                    self.ticks.append(way)
                    mine = () if not own else (m + a, m + b) if one else (m + a, 2 * m + b)
                    shared = (4 * m + lane if lane > 0 else 1000 * m - lane for lane in lanes(problem, a, b))
                    self.resources.append((*mine, *shared))
                    self.before.append([(i, 0)])
                    self.carrier.append(e)
            bringer = (moves[key], 0) if ports else (i, way)
            self.before[j].append(bringer)
            self.arrival.append((i, *bringer))
        self.load = [0] * m
        for i, d in enumerate(device):
            self.load[d] += duration[i]
            self.energy += rounded_up(duration[i], problem.power_num[d], problem.power_den[d])
        # Ticks from the start of an operation to the end of what must follow it.
        self.tail = list(self.ticks)
        for _ in self.ticks:
            for o, rows in enumerate(self.before):
                for b, lag in rows:
                    self.tail[b] = max(self.tail[b], self.ticks[b] + lag + self.tail[o])
        # Ticks before which an operation may not start; after which it would make itself or a successor late.
        swaps = _swaps(problem, device)
        self.release = [max(tick, swaps[d]) for tick, d in zip(problem.release.tolist(), device, strict=True)]
        self.release += [0] * len(self.carrier)
        self.latest = [
            UNLIMITED if end == UNLIMITED else end - ticks
            for end, ticks in zip(problem.deadline.tolist() + [UNLIMITED] * len(self.carrier), self.ticks, strict=True)
        ]
        for _ in self.ticks:
            for o, rows in enumerate(self.before):
                for b, lag in rows:
                    self.latest[b] = min(self.latest[b], self.latest[o] - lag - self.ticks[b])
        self.peak = problem.memory_model == "peak"
        self.start: list[int | None] = [None] * len(self.ticks)

    def run(self) -> tuple[Value, Schedule] | None:
        """The better of the best so far and this placement's best."""
        self._append({}, 0, 0)
        return self.best

    def _end(self, operation: int) -> int | None:
        begin = self.start[operation]
        return None if begin is None else begin + self.ticks[operation]

    def _append(self, free: dict[int, int], last: int, makespan: int) -> None:
        """Try every way to append one more operation to those that started by tick `last`."""
        waiting = [o for o, begin in enumerate(self.start) if begin is None]
        soonest = {o: max(last, self.release[o]) for o in waiting}
        if any(soonest[o] > self.latest[o] for o in waiting):
            return
        least = max([makespan, *(soonest[o] + self.tail[o] for o in waiting)])
        used = self._live() if self.peak else _held(self.problem, self.device)
        if not within(self.problem, used):
            return
        ends = [max(soonest[o], self.release[o]) if o in soonest else begin or 0 for o, begin in enumerate(self.start)]
        late = sum(
            int(self.problem.due_weight[i]) * max(ends[i] + self.ticks[i] - int(self.problem.due[i]), 0)
            for i in range(self.problem.n_tasks)
        )
        value = self._value(least, used, late)
        if value is None or (self.best is not None and value >= self.best[0]):
            return
        if not waiting:
            self.best = value, self._schedule()
            return
        for o in waiting:
            ready = [self.release[o], *(free.get(resource, 0) for resource in self.resources[o])]
            for b, lag in self.before[o]:
                end = self._end(b)
                if end is None:
                    break
                ready.append(end + lag)
            else:
                earliest = max([*ready, self._set_up(o)])
                starts = {earliest}
                if self.peak:
                    ends = [(self._end(b), lag) for _, b, lag in self.arrival]
                    ends += [(self._end(b), 0) for b in range(len(self.ticks))]
                    starts |= {end + lag for end, lag in ends if end is not None and end + lag > earliest}
                for t in sorted({self._available(o, each) for each in starts}):
                    if last <= t <= self.latest[o]:
                        self.start[o] = t
                        end = t + self.ticks[o]
                        longest = max(makespan, end) if o < self.problem.n_tasks else makespan
                        self._append({**free, **dict.fromkeys(self.resources[o], end)}, t, longest)
                        self.start[o] = None

    def _set_up(self, operation: int) -> int:
        """The tick from which its device is set up for a task, after the tasks that have been appended."""
        setups, n = self.problem.setups, self.problem.n_tasks
        if setups is None or operation >= n or self.ticks[operation] == 0:
            return 0
        d = self.device[operation]
        if not setups.ticks[setups.kind[d]].any():
            return 0
        members = self.problem.members or tuple((each,) for each in range(self.problem.n_devices))
        same = [i for i in range(n) if members[self.device[i]] == members[d]]
        there = [(begin, i) for i in same if (begin := self.start[i]) is not None]
        begun, last = max(((begin, i) for begin, i in there if self.ticks[i]), default=(0, None))
        before = setups.initial[d] if last is None else setups.family[last]
        ticks = int(setups.ticks[setups.kind[d], before, setups.family[operation]])
        return ticks + (0 if last is None else begun + self.ticks[last])

    def _available(self, operation: int, tick: int) -> int:
        """The first tick from this one on at which a task has its device and its resources as long as it runs."""
        windows, given = self.problem.unavailable, self.problem.resources
        if operation >= self.problem.n_tasks:
            return tick
        pairs: list[tuple[int, int]] = []
        if windows is not None:
            d = self.device[operation]
            mine = range(int(windows.row[d]), int(windows.row[d + 1]))
            pairs = [(int(windows.begin[w]), int(windows.end[w])) for w in mine]
        runs = [(i, self.start[i] or 0, self._end(i) or 0) for i in range(len(self.uses)) if self.start[i] is not None]
        while True:
            until = tick + self.ticks[operation]
            late = [end for begin, end in pairs if begin < until and tick < end]
            if given is not None and until > tick:
                for at in {tick, *(begin for _, begin, _ in runs if tick < begin < until)}:
                    there = [(i, end) for i, begin, end in runs if begin <= at < end]
                    for r, amount in self.uses[operation].items():
                        used = sum(self.uses[i].get(r, 0) for i, _ in there)
                        if given.renewable[r] and used + amount > int(given.capacity[r]):
                            late += [end for i, end in there if r in self.uses[i]]
            if not late:
                return tick
            tick = min(late)

    def _live(self) -> list[int]:
        """Most bytes live at one tick on each device, as far as the operations appended tell."""
        problem = self.problem
        placed = [i for i in range(problem.n_tasks) if self.start[i] is not None]
        end = {i: self._end(i) or 0 for i in placed}
        freed = dict(end)
        for i, b, lag in self.arrival:
            arrived = self._end(b)
            if i in freed and arrived is not None:
                freed[i] = max(freed[i], arrived + lag)
        held = _held(problem, self.device)
        most = list(held)
        for tick in {self.start[i] or 0 for i in placed}:
            live = list(held)
            for i in placed:
                d, begin = self.device[i], self.start[i] or 0
                live[d] += int(problem.scratch[i]) if begin <= tick < end[i] else 0
                live[d] += int(problem.output[i]) if begin <= tick < freed[i] else 0
            most = [max(pair) for pair in zip(most, live, strict=True)]
        return most

    def _value(self, makespan: int, used: list[int], late: int) -> Value | None:
        """The objective of what is known of the schedule; None if a metric is above its limit already."""
        rooms = self.problem.capacity.tolist()
        shares = [-(-use * PARTS // max(have, 1)) for use, have in zip(used, rooms, strict=True) if have != UNLIMITED]
        metrics = {
            "makespan": makespan,
            "total_cost": self.cost,
            "max_load": max(self.load, default=0),
            "communication": self.bytes,
            "energy": self.energy,
            "memory_balance": max(shares, default=0),
            "relocation": sum(int(self.problem.relocation[i, d]) for i, d in enumerate(self.device)),
            "tardiness": late,
            "price": sum(int(self.problem.price[i, d]) for i, d in enumerate(self.device)),
            "devices": len(set(self.device)),
        }
        levels = (
            sum((term.weight * metrics[term.metric] for term in level), Fraction(0))
            for level in self.problem.objective.levels
        )
        if any(metrics[metric] > most for metric, most in self.problem.limits):
            return None
        return tuple(value.numerator if value.denominator == 1 else value for value in levels)

    def _schedule(self) -> Schedule:
        n = self.problem.n_tasks
        start = np.array([begin or 0 for begin in self.start], dtype=np.int64)
        ports = self.problem.contention != "none" or self.problem.shared_links is not None
        moves = Transfers(np.array(self.carrier, dtype=np.int64), start[n:]) if ports else None
        return Schedule(np.array(self.device, dtype=np.int64), start[:n], moves)


def rounded_up(amount: int, num: Any, den: Any) -> int:
    """ceil(amount * num / den) in Python integers."""
    return -(-amount * int(num) // int(den))


def small_problem(
    rng: np.random.Generator,
    objective: Objective | None = None,
    *,
    times: bool = False,
    contention: Contention | None = None,
    memory_model: MemoryModel | None = None,
) -> Problem:
    """A random problem that `optimum` can solve, with every feature now and then; about one in six is infeasible.

    With `times` the same problem, drawn from the same numbers, with release times and deadlines besides: three in
    ten are infeasible then. `contention` and `memory_model` replace what would be drawn.
    """
    busy = rng.random()
    drawn: Contention = "half_duplex" if busy < 0.1 else "port" if busy < 0.25 else "none"
    contention = contention or drawn
    model: MemoryModel = "peak" if rng.random() < 0.3 else "sum"
    memory_model = memory_model or model
    slow = contention != "none" or memory_model == "peak"
    n, m = int(rng.integers(1, 5 if slow else 6)), int(rng.integers(1, 4))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.45][: 4 if slow else None]
    label = rng.integers(0, int(rng.integers(1, m + 1)), m)  # devices of one label are alike, if their links are
    links = np.arange(m) if rng.random() < 0.5 else label
    shared = rng.random(len(edges)) < 0.5
    output = rng.integers(0, 6, n)
    own = rng.integers(0, 6, len(edges))
    payload = [int(output[i] if whole else own[e]) for e, ((i, _), whole) in enumerate(zip(edges, shared, strict=True))]
    resident, scratch = rng.integers(0, 6, n), rng.integers(0, 4, n)
    feasible = (rng.random((n, m)) < (0.75 if rng.random() < 0.5 else 1.0))[:, label]
    if rng.random() < 0.95:
        feasible[~feasible.any(axis=1)] = True
    capacity = None
    if rng.random() < 0.7:
        total = int((resident + output + scratch).sum())
        room = rng.integers(int(resident.max()) + 1 + total // (2 * m), total + 5, m)
        capacity = np.where(rng.random(m) < 0.2, UNLIMITED, room)[label]
    aside = rng.spawn(1)[0]  # what is drawn here leaves the rest of the problem as it is
    share = rng.random()
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.15 and share < 0.3]
    problem = build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(int(rng.random() < 0.7), int(rng.choice([3, 12])), (n, m))[:, label],
        edges=edges,
        payload=payload,
        shared=shared,
        feasible=feasible,
        resident=resident,
        output=output,
        scratch=scratch,
        capacity=capacity,
        latency=rng.integers(0, 6, (m, m))[np.ix_(links, links)],
        byte_ticks_num=rng.integers(0, 4, (m, m))[np.ix_(links, links)],
        byte_ticks_den=rng.integers(1, 4, (m, m))[np.ix_(links, links)],
        power_num=rng.integers(0, 4, m)[label],
        power_den=rng.integers(1, 3, m)[label],
        byte_energy_num=rng.integers(0, 3, (m, m))[np.ix_(links, links)],
        byte_energy_den=rng.integers(1, 3, (m, m))[np.ix_(links, links)],
        group=rng.integers(0, n, n) if rng.random() < 0.3 else None,
        separation=pairs,
        objective=_objective(rng) if objective is None else objective,
        contention=contention,
        memory_model=memory_model,
        relocation=_relocation(aside, n, label) if aside.random() < 0.6 else None,
        due=np.where(aside.random(n) < 0.6, aside.integers(0, 25, n), UNLIMITED),
        due_weight=aside.integers(0, 4, n),
        price=aside.integers(0, 9, (n, m))[:, label],
    )
    return _timed(problem, rng) if times else problem


def with_windows(problem: Problem, rng: np.random.Generator, share: float = 0.7) -> Problem:
    """The problem with windows of a few ticks in which devices are unavailable; a device has any with this chance."""
    windows: list[list[tuple[int, int]]] = []
    for _ in range(problem.n_devices):
        begins = rng.integers(0, 20, int(rng.integers(1, 4)) if rng.random() < share else 0).tolist()
        windows.append([(begin, begin + int(rng.integers(1, 6))) for begin in begins])
    return with_changes(problem, unavailable=build_unavailability(windows))


def with_resources(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with up to two renewable resources, up to two budgets, and parallel devices now and then."""
    n, m = problem.n_tasks, problem.n_devices
    renewable = {f"r{k}": int(rng.integers(1, 6)) for k in range(int(rng.integers(0, 3)))}
    budgets = {f"b{k}": float(rng.integers(n, 4 * n)) / 4 for k in range(int(rng.integers(0, 3)))}
    uses: dict[int, dict[str, Any]] = {}
    for i in range(n):
        drawn: dict[str, Any] = {name: rng.integers(0, most + 1, m).tolist() for name, most in renewable.items()}
        drawn |= {name: (rng.integers(0, 5, m) / 4).tolist() for name in budgets}
        uses[i] = {name: amounts for name, amounts in drawn.items() if rng.random() < 0.7}
    resources = build_resources(
        n, m, renewable=renewable, budgets=budgets, uses=uses, parallel=rng.random(m) < 0.3, feasible=problem.feasible
    )
    return with_changes(problem, resources=resources)


def with_shared_links(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with one to three shared links; with fewer transfers than `optimum` can order otherwise."""
    return with_changes(problem, shared_links=random_links(rng, problem.n_devices, least=1))


def with_setups(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with setup times of up to three families, from any family or by the family before."""
    n, names = problem.n_tasks, ["x", "y", "z"][: int(rng.integers(1, 4))]
    family: list[str | None] = [names[k] if k < len(names) else None for k in rng.integers(0, len(names) + 1, n)]
    several = np.zeros(problem.n_devices, dtype=bool) if problem.resources is None else problem.resources.parallel
    while True:  # until no change is faster by way of another task
        changes: list[Any] = []
        for parallel in several:
            to: dict[str, Any] = {
                name: int(rng.integers(0, 6)) for name in names if rng.random() < 0.8 and not parallel
            }
            for name in list(to) if rng.random() < 0.5 else ():
                to[name] = {each: int(rng.integers(0, 6)) for each in [*names, "*"] if rng.random() < 0.7}
            changes.append(to)
        initial = [names[0] if rng.random() < 0.3 else None for _ in changes]
        try:
            return with_changes(problem, setups=build_setups(family, changes, initial))
        except UsageError:
            continue


def _relocation(rng: np.random.Generator, n: int, label: Int) -> Int:
    """(n, m) ticks of relocation: dear and alike on devices of one label, with or without a device to stay on."""
    ticks = rng.integers(0, int(rng.choice([3, 12])), (n, len(label)))[:, label]
    stays = rng.random(n) < rng.choice([0.0, 0.5, 1.0])
    ticks[stays, rng.integers(0, len(label), n)[stays]] = 0
    return np.asarray(ticks)


def _timed(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with release times and deadlines for none, some or all of its tasks, loose or tight."""
    n = problem.n_tasks
    span = int(problem.duration.max(axis=1).sum()) + 1
    late, slack = rng.choice([1, 2]), rng.choice([1, 2, 4])
    released, due = rng.random((2, n)) < rng.choice([0.0, 0.5, 1.0], (2, 1))
    release = np.where(released, rng.integers(0, late * span, n) // 2, 0)
    shortest = np.where(problem.feasible, problem.duration, problem.duration.max(axis=1, keepdims=True)).min(axis=1)
    deadline = np.where(due, release + shortest + rng.integers(0, slack * span, n) // 2, UNLIMITED)
    release.flags.writeable = deadline.flags.writeable = False
    return replace(problem, release=release, deadline=deadline)


def _objective(rng: np.random.Generator) -> Objective:
    """Mostly one metric, mostly the makespan; now and then a weighted one, a weighted sum or a list.

    Tardiness and the number of devices, which not all solvers support, are not drawn.
    """
    kind = rng.random()
    first, second = (METRICS[i] for i in rng.choice(7, 2, replace=False))
    if kind < 0.4:
        return Objective()
    if kind < 0.7:
        return Objective(((Term(first),),))
    if kind < 0.8:
        return Objective(((Term(first, Fraction(int(rng.integers(0, 5)), 3)),),))
    if kind < 0.9:
        weights = [Fraction(int(rng.integers(1, 5)), int(rng.integers(1, 4))) for _ in range(2)]
        return Objective(((Term(first, weights[0]), Term(second, weights[1])),))
    return Objective(((Term(first),), (Term(second),)))
