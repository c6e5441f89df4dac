"""Claims about the makespan from paths of the graph: prices of memory with one path, and a flow over many."""

from __future__ import annotations

from itertools import pairwise

from placeopt.errors import CertificateError
from placeopt.verifier.certificates.devices import INFINITE, charge, cheapest
from placeopt.verifier.certificates.model import Model
from placeopt.verifier.certificates.said import Said, whole


def priced_path(said: Said) -> int:
    """A path, placed at the least time, where memory and budgets have prices: a Lagrangian relaxation."""
    model, scale, memory, shift = (
        said.model,
        said.number("scale", None, 1),
        said.prices("memory"),
        said.number("shift", 0),
    )
    tasks, classes, (used, worth) = said.path(), range(model.k), said.budgeted
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
