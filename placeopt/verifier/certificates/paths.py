"""Claims about the makespan from paths of the graph: prices of memory with one path, and a flow over many."""

from __future__ import annotations

from typing import Any

from placeopt.errors import CertificateError
from placeopt.verifier.certificates.model import INFINITE, Edge, Model, charge
from placeopt.verifier.certificates.scene import Prices, Said, shown, whole


def may_share(model: Model, g: int, h: int, c: int) -> bool:
    """Whether a device of a class can hold two groups."""
    room = model.devices.capacity[c]
    held = model.group_memory[g] + (model.group_memory[h] if g != h else 0)
    return model.fits[g][c] and model.fits[h][c] and (g, h) not in model.apart and (room is None or held <= room)


def priced_path(said: Said) -> int:
    """A path, placed at the least time, where memory and budgets have prices: a Lagrangian relaxation."""
    model, found, scale, prices = said.model, said.scene.windows, said.number("scale"), said.prices()
    tasks = said.path("path")
    if scale == 0 or not all(said.devices):
        raise CertificateError(f"{said.where}: expected a scale above 0, and no devices")
    used, free = [[0] * model.k for _ in range(model.n)], 0
    budgets = said.claim.get("budgets", {})
    if not isinstance(budgets, dict):
        raise CertificateError(f"{said.where}.budgets is {shown(budgets)}; expected a price for each budget")
    for name, stated in budgets.items():
        price = whole(stated, f"{said.where}.budgets.{name}")
        amounts, room = said.budget(name)
        used = [[a + price * b for a, b in zip(*rows, strict=True)] for rows in zip(used, amounts, strict=True)]
        free += price * room
    others = set(range(model.n)) - set(tasks)
    total = said.cheapest(used, sorted(others), Prices([1] * model.k, prices.memory, prices.shift)) - free
    classes, reached = range(model.k), list[int]()
    for at, i in enumerate(tasks):
        if at == 0:
            reached = [scale * head for head in found.head[i]]
        else:
            moves = _moves(said, tasks[at - 1], i)
            reached = [min(reached[a] + scale * moves[a][c] for a in classes) for c in classes]
        held = model.memory[i] >> prices.shift
        for c in classes:
            cost = scale * model.duration[i][c] + used[i][c] + prices.memory[c] * held
            reached[c] = min(reached[c] + cost, INFINITE) if found.allowed[i][c] else INFINITE
    least = min(ticks + scale * tail for ticks, tail in zip(reached, found.tail[tasks[-1]], strict=True))
    return max(-(-(least + total) // scale), 0)


def _moves(said: Said, u: int, v: int) -> list[list[int]]:
    """By two classes: the ticks between the end of a task and the start of the next one of a path."""
    model = said.model
    edges = [edge for edge in model.outs[u] if edge.target == v]
    g, h, found = model.group[u], model.group[v], list[list[int]]()
    for a, row in enumerate(model.devices.links):
        ticks = [INFINITE if g == h or rate is None else _longest(edges, rate) for rate in row]
        ticks[a] = 0 if may_share(model, g, h, a) else ticks[a]
        found.append(ticks)
    return found


def _longest(edges: list[Edge], rate: tuple[int, int, int]) -> int:
    """The longest transfer over a link, of parallel edges."""
    return max(charge(rate, edge.payload) for edge in edges)


def flow(said: Said) -> int:
    """Many paths at once, of which a task saves the delay to one consumer at most, and from one producer.

    `plain` paths pay the delay of an edge only between tasks that never share a device. In `children`, an edge competes
    with the other ones of its producer there; in `parents`, with those of its consumer.
    """
    model, found = said.model, said.scene.windows
    into, out, units, total = [0] * model.n, [0] * model.n, 0, 0
    for name in ("plain", "children", "parents"):
        lanes = dict[tuple[int, int], int]()
        for at, row in enumerate(_rows(said, name)):
            u, v = (None if each is None and name == "plain" else said.task(each) for each in row[:2])
            amount = whole(row[2], f"{said.where}.{name}[{at}]")
            if u is not None:
                out[u] += amount
            if v is not None:
                into[v] += amount
            if u is None and v is not None:
                units, total = units + amount, total + amount * found.least(found.head[v], v)
            elif v is None and u is not None:
                total += amount * found.least(found.tail[u], u)
            elif u is not None and v is not None and amount:
                lanes[u, v] = lanes.get((u, v), 0) + amount
        total += _delays(said, lanes, name)
    if units == 0 or into != out:
        raise CertificateError(f"{said.where}: expected a flow, as much into each task as out of it")
    total += sum(amount * found.least(model.duration[i], i) for i, amount in enumerate(into) if amount)
    return min(-(-total // units), INFINITE)


def _delays(said: Said, lanes: dict[tuple[int, int], int], name: str) -> int:
    """The delays on edges, times their amounts, less the most that each task saves."""
    model, total = said.model, 0
    rivals, saved = dict[int, list[tuple[int, int, int]]](), dict[int, int]()
    for (u, v), amount in lanes.items():
        edges = [edge for edge in model.outs[u] if edge.target == v]
        if not edges:
            raise CertificateError(f"{said.where}.{name}: two tasks have no edge between them")
        moves, shared = _least_move(said, u, v, edges), _shared(said, u, v)
        if not shared:
            total += amount * moves
        elif name != "plain":
            one, other = (u, v) if name == "children" else (v, u)
            least = min(model.busy[other][c] for c in shared)
            rivals.setdefault(one, []).append((least, moves, amount))
    for one, rows in rivals.items():
        smallest = sorted(each for each, _, _ in rows)[:2]
        for own, moves, amount in rows:
            # The least work of the others: the second least of all for one that has the least itself.
            if len(rows) > 1:
                saving = amount * min(moves, smallest[own == smallest[0]])
                total, saved[one] = total + saving, max(saved.get(one, 0), saving)
    return total - sum(saved.values())


def _shared(said: Said, u: int, v: int) -> list[int]:
    """The classes of which two tasks may share a device."""
    model, allowed = said.model, said.scene.windows.allowed
    g, h = model.group[u], model.group[v]
    return [c for c in range(model.k) if allowed[u][c] and allowed[v][c] and may_share(model, g, h, c)]


def _least_move(said: Said, u: int, v: int, edges: list[Edge]) -> int:
    """The least transfer between two devices that may run two tasks, the longest one of their edges."""
    model, allowed = said.model, said.scene.windows.allowed
    if model.group[u] == model.group[v]:
        return INFINITE
    rates = {
        rate
        for a, row in enumerate(model.devices.links)
        for c, rate in enumerate(row)
        if rate is not None and allowed[u][a] and allowed[v][c]
    }
    return min((_longest(edges, rate) for rate in rates), default=INFINITE)


def _rows(said: Said, name: str) -> list[Any]:
    found = said.claim.get(name, [])
    if not isinstance(found, list) or not all(isinstance(row, list) and len(row) == 3 for row in found):
        raise CertificateError(f"{said.where}.{name}: expected a list of two tasks and an amount each")
    return found
