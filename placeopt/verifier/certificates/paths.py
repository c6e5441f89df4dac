"""Claims from paths of the graph: prices of memory with one path, a flow over many, and stages along a path.

The last one is about the period of a pipeline with contiguous stages. No edge leads to a stage with a lower number, and
a device has one stage of forward tasks at most. So each device runs consecutive forward tasks of a path, with their
groups. The checker tries all divisions of the path into such intervals, the last one first, by the place that is
reached and the number of devices of each class that are left.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import prod

from placeopt.errors import CertificateError
from placeopt.verifier.certificates.devices import INFINITE, charge, cheapest
from placeopt.verifier.certificates.model import Model
from placeopt.verifier.certificates.said import Said, whole

LARGEST = 10_000_000
"""Intervals of a path that are tried at most."""


def priced_path(said: Said) -> int:
    """A path, placed at the least time, where memory and budgets have prices: a Lagrangian relaxation."""
    model, scale, shift = said.model, said.number("scale", None, 1), said.number("shift", 0)
    tasks, classes, memory, (used, worth) = said.path(), range(model.k), said.prices("memory"), said.budgeted
    if not all(said.devices):
        raise said.wrong("devices", "none")
    total = said.cheapest(used, sorted({*range(model.n)} - {*tasks}), [1] * model.k) - worth
    reached = [scale * head for head in model.head[tasks[0]]]
    for u, v in pairwise([tasks[0], *tasks]):  # from the first task to itself, nothing moves
        reached = [min(reached[a] + scale * _move(model, u, v, a, c) for a in classes) for c in classes]
        held = model.memory[v] >> shift
        for c in classes:
            cost = reached[c] + scale * model.duration[v][c] + used[v][c] + memory[c] * held
            reached[c] = min(cost, INFINITE) if model.open[v][c] else INFINITE
    least = min(ticks + scale * tail for ticks, tail in zip(reached, model.tail[tasks[-1]], strict=True))
    return max(-(-(least + total) // scale), 0)


def _move(model: Model, u: int, v: int, a: int, c: int) -> int:
    """The ticks from the end of a task on a class to the start of the next one of a path on another one or the same."""
    g, h, rate = model.group[u], model.group[v], model.devices.links[a][c]
    if a == c and model.may_share(g, h, a):
        return 0
    return INFINITE if g == h or rate is None else charge(rate, model.payload[u, v])


def flow(said: Said) -> int:
    """Many paths at once, of which a task saves the delay to one consumer at most, and from one producer.

    `plain` paths pay the delay of an edge only between tasks that never share a device. In `children`, an edge competes
    with the other ones of its producer there; in `parents`, with those of its consumer.
    """
    model, total = said.model, 0
    into, out = [0] * model.n, [0] * model.n
    for name in ("plain", "children", "parents"):
        lanes = dict[tuple[int, int], int]()
        for row in said.items(name) if name in said.claim else ():
            if not isinstance(row, list) or len(row) != 3:
                raise said.wrong(name, "two tasks and an amount each")
            (u, v), amount = said.places(name, row[:2], model.named), whole(row[2], f"{said.where}.{name}")
            if (u, v) not in model.payload:
                raise CertificateError(f"{said.where}.{name}: two tasks have no edge between them")
            into[v], out[u] = into[v] + amount, out[u] + amount
            if amount:
                lanes[u, v] = lanes.get((u, v), 0) + amount
        total += _delays(model, lanes, name)
    units = sum(max(b - a, 0) for a, b in zip(into, out, strict=True))
    for i, (a, b) in enumerate(zip(into, out, strict=True)):
        parts = (max(b - a, 0), model.head), (max(a, b), model.duration), (max(a - b, 0), model.tail)
        total += sum(amount * model.least(i, table) for amount, table in parts if amount)
    return min(-(-total // units), INFINITE) if units else 0


def _delays(model: Model, lanes: dict[tuple[int, int], int], name: str) -> int:
    """The delays on edges, times their amounts, less the most that each task saves."""
    total, rivals, saved = 0, dict[int, list[tuple[int, int, int]]](), dict[int, int]()
    for (u, v), amount in lanes.items():
        g, h, both = model.group[u], model.group[v], zip(model.open[u], model.open[v], strict=True)
        shared = [c for c, (may, can) in enumerate(both) if may and can and model.may_share(g, h, c)]
        moves = INFINITE if g == h else cheapest(model.devices.links, model.payload[u, v], model.open[u], model.open[v])
        if not shared:
            total += amount * moves
        elif name != "plain":
            one, other = (u, v) if name == "children" else (v, u)
            rivals.setdefault(one, []).append((min(model.busy[other][c] for c in shared), moves, amount))
    for one, rows in rivals.items():
        smallest = sorted(each for each, _, _ in rows)[:2]
        for own, moves, amount in rows if len(rows) > 1 else ():
            # The least work of the others: the second least of all for one that has the least itself.
            saving = amount * min(moves, smallest[own == smallest[0]])
            total, saved[one] = total + saving, max(saved.get(one, 0), saving)
    return total - sum(saved.values())


def divided(said: Said) -> int:
    """No division of a path of forward tasks into an interval for each device has loads below the value."""
    model, problem, tasks, most = said.model, said.model.problem, said.path(), said.number("value") - 1
    pipeline, classes, links = problem.pipeline, range(model.k), model.devices.links
    assert pipeline is not None  # the metric is the period
    if pipeline.replicas > 1 or not pipeline.contiguous:
        return 0
    if any(problem.forward[model.tasks[i]] != model.tasks[i] for i in tasks):
        raise CertificateError(f"{said.where}.path contains a backward task")
    groups = list(dict.fromkeys(model.group[i] for i in tasks))
    if sum(model.group[i] != model.group[j] for i, j in pairwise(tasks)) != len(groups) - 1:
        raise CertificateError(f"{said.where}.path leaves a group and returns to it")
    if prod(number + 1 for number in model.devices.size) * (len(groups) * model.k) ** 2 > LARGEST:
        raise CertificateError(f"{said.where}: a path of {len(groups):,} groups has too many divisions")
    free = pipeline.multicast or bool((pipeline.overlap | pipeline.full_duplex | pipeline.free_transfers).any())
    work = [[sum(model.duration[i][c] for i in model.members[g]) for c in classes] for g in groups]
    inside = [[model.tasks[i] for i in model.members[g]] for g in groups]
    kept = [sum(int(problem.output[task]) for task in each if problem.forward[task] == task) for each in inside]

    @cache
    def moved(at: int, other: int, own: int, neighbour: int) -> int:
        """Ticks of the transfers with a neighbour for a device whose interval ends at a place, the other one there."""
        out, into = links[own][neighbour], links[neighbour][own]
        if free or out is None or into is None:
            return 0
        g, h = groups[at], groups[other]
        sent, received = _outputs(model, g, h), _outputs(model, h, g)
        return sum(charge(out, each) for each in sent) + sum(charge(into, each) for each in received)

    @cache
    def reached(end: int, left: tuple[int, ...], c: int, after: int) -> bool:
        """Whether the groups before a place can be divided, the last ones on class c, which sends to class `after`.

        Outputs of forward tasks are kept for as many runs, unless they may be computed again.
        """
        runs = pipeline.runs_kept or sum(model.devices.size) - sum(left)
        load, held = 0 if end == len(groups) else moved(end - 1, end, c, after), 0
        for start in range(end - 1, -1, -1):
            g = groups[start]
            load, held = load + work[start][c], held + model.group_memory[g]
            held += 0 if pipeline.recompute else (runs - 1) * kept[start]
            if load > most or held > model.devices.capacity[c] or not model.fits[g][c]:
                return False
            if start == 0:
                return True
            for a in classes:
                fits = left[a] and load + moved(start, start - 1, c, a) <= most
                if fits and reached(start, less(left, a), a, c):
                    return True
        return False

    divides = any(reached(len(groups), less(tuple(model.devices.size), c), c, c) for c in classes)
    return 0 if divides else most + 1


def less(left: tuple[int, ...], c: int) -> tuple[int, ...]:
    """One device of a class less."""
    return tuple(number - (a == c) for a, number in enumerate(left))


def _outputs(model: Model, g: int, h: int) -> list[int]:
    """The bytes of transfers from a group to another one: shared edges of a task need one."""
    edges = [edge for i in model.members[g] for edge in model.outs[i] if model.group[edge.target] == h]
    return list({edge.source if edge.shared else ~at: edge.payload for at, edge in enumerate(edges)}.values())
