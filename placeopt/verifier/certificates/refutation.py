"""Prove a bound of the makespan by refuting all shorter schedules, case by case.

A case is a model with decisions: tasks that share a device (one group), tasks that do not, tasks that run one after the
other (an edge without data). It is narrowed as follows, for schedules that end by T, until nothing changes:

- A group does not run on a class on which a task, or all of its tasks one after the other, cannot end by T.
- The tasks of an edge share a device if the transfer between any two devices leaves too little time.
- Two tasks of a group run in the only order that leaves enough time; a device runs one at a time.
- The work of tasks that only devices of one class may run fits between their heads and tails.
- If groups that are apart take all devices of a class, no group that is apart from all of them runs there.
- Tasks use no more of a budget than there is, and of a resource no more than there is between their heads and tails.

A case is closed if a group has no class left. A tree divides cases that are not, each by a decision and its opposite:

    pair    two tasks share a device (`together`), or not (`apart`)
    order   of two tasks of a group, one ends before the other starts (`first`, `second`)
    class   a task runs on a device of a class (`on`), or not (`off`)
    ends    a task ends before a tick (`before`), or at it or later (`later`)

A claim about the makespan of a case closes it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from placeopt.errors import CertificateError, visible
from placeopt.verifier.certificates.devices import cells, charge
from placeopt.verifier.certificates.model import Edge, Model, joined, within
from placeopt.verifier.certificates.said import Said, over_time, whole

PARTS = {
    "pair": ("together", "apart"), "order": ("first", "second"), "class": ("on", "off"), "ends": ("before", "later"),
}  # fmt: skip
"""Kinds of decisions, with the names of their parts."""

LARGEST, WORK = 1000, 100_000_000
"""Tasks of a model with a tree; comparisons for it, of two tasks (of one group: on each class), of two classes for an
edge, or of an edge that is followed to a tied task, at most: some minutes."""


class ClosedError(Exception):
    """No schedule of the case ends by T."""


Limit = Callable[[Model], int]
"""The tick by which schedules of a case end that are to be refuted."""


def spending(error: Exception) -> Callable[[int], None]:
    """Count comparisons for a tree; raise the error beyond WORK."""
    left = WORK

    def spend(comparisons: int) -> None:
        nonlocal left
        left -= comparisons
        if left < 0:
            raise error

    return spend


def narrowed(model: Model, limit_of: Limit, spend: Callable[[int], None]) -> Model:
    """A case, narrowed for schedules that end by its limit. Raises ClosedError if none is left.

    `spend` gets about the number of comparisons, most of them before they are made.
    """
    while True:
        together = sum(len(group) ** 2 for group in model.members)
        spend(model.n**2 + together * model.k + (len(model.edges) + 2) * model.k**2)
        if not model.possible or len(model.order) < model.n:
            raise ClosedError
        limit = limit_of(model)
        feasible = model.in_time(limit)
        spend(sum(model.followed))
        columns = cells(lambda *each: each, model.head, model.tail, model.busy)
        for (g, members), c in product(enumerate(model.members), range(model.k)):
            if len(members) > 1 and model.fits[g][c] and least_work([columns[i][c] for i in members], 1) > limit:
                feasible[members[0]][c] = False
        lone = [i for i, row in enumerate(model.allowed) if sum(row) == 1]
        for c, size in enumerate(model.devices.size):
            if least_work([columns[i][c] for i in lone if feasible[i][c]], size) > limit:
                raise ClosedError
        pairs, edges = _shared(model, limit) + _confined(model, feasible), _orders(model, limit)
        if not pairs and not edges and feasible == model.feasible:
            _check_resources(model, limit, spend)
            return model
        model = with_edges(united(replace(model, feasible=feasible), pairs), edges)


def decided(model: Model, kind: str, i: int, j: int, end: int) -> tuple[Model, Model]:
    """The parts of a decision about tasks i and j, about task i and class j, or about task i and tick j.

    All schedules of the case end by a tick `end`.
    """
    if kind == "pair":
        return united(model, [(i, j)]), replace(model, parted=(*model.parted, (i, j)))
    if kind == "order":
        return with_edges(model, [(i, j)]), with_edges(model, [(j, i)])
    if kind == "ends":
        after, release = list(model.after), list(model.release)
        after[i] = max(after[i], end - (j - 1))
        release[i] = [max(ready, j - ticks) for ready, ticks in zip(release[i], model.duration[i], strict=True)]
        return replace(model, after=after), replace(model, release=release)
    on, off = list(model.feasible), list(model.feasible)
    on[i] = [may and c == j for c, may in enumerate(on[i])]
    off[i] = [may and c != j for c, may in enumerate(off[i])]
    return replace(model, feasible=on), replace(model, feasible=off)


def united(model: Model, pairs: list[tuple[int, int]]) -> Model:
    """The model in which the tasks of each pair share a device."""
    label = joined(len(model.members), [(model.group[i], model.group[j]) for i, j in pairs])
    names: dict[int, int] = {}
    return replace(model, group=[names.setdefault(label[g], len(names)) for g in model.group])


def with_edges(model: Model, pairs: list[tuple[int, int]]) -> Model:
    """The model in which the first task of each pair ends before the second one starts."""
    return replace(model, edges=[*model.edges, *(Edge(i, j, 0, False) for i, j in pairs)])


def open_orders(model: Model) -> list[tuple[int, int]]:
    """Pairs of tasks of one group without an edge between them, where one runs after the other."""
    serial = [members for g, members in enumerate(model.members) if runs_one(model, g)]
    pairs = [pair for members in serial for pair in combinations(members, 2)]
    return [(i, j) for i, j in pairs if (i, j) not in model.payload and (j, i) not in model.payload]


def runs_one(model: Model, g: int) -> bool:
    """Whether all devices that a group may have run one task at a time."""
    return not any(a and b for a, b in zip(model.fits[g], model.devices.parallel, strict=True))


def least_work(rows: Iterable[tuple[int, int, int]], places: int) -> int:
    """The least makespan of tasks on devices that share the work: their heads, tails and ticks."""
    best, ordered = 0, sorted(rows, reverse=True)
    for far in {row[1] for row in ordered}:
        work = 0
        for head, tail, ticks in ordered:
            if tail >= far:
                work += ticks
                best = max(best, head - (-work // places) + far)
    return best


def _check_resources(model: Model, limit: int, spend: Callable[[int], None]) -> None:
    """Raise ClosedError if tasks use more of a budget than there is, or of a resource between their heads and tails."""
    tasks = range(model.n)
    ends = [(model.least(i, model.head), model.least(i, model.tail)) for i in tasks]
    budgets = [model.use(r) for r in model.resources(False).values()]
    if any(sum(model.least(i, use) for i in tasks) > room for use, room in budgets):
        raise ClosedError
    for r in model.resources(True).values():
        use, room = model.use(r)
        for level in {0, room, *(2 * a for row in use for a in row if 2 * a < room)} if room else ():
            spend(model.n * (model.n + model.k))
            work = over_time(model, use, room, level)
            if least_work([(*ends[i], model.least(i, work)) for i in tasks], room) > limit:
                raise ClosedError


def _shared(model: Model, limit: int) -> list[tuple[int, int]]:
    """Edges that leave no time for a transfer."""
    pairs = []
    for (u, v), payload in model.payload.items():
        before, after = (
            [(c, model.duration[i][c] + ticks[i][c]) for c, may in enumerate(model.open[i]) if may]
            for i, ticks in ((u, model.head), (v, model.tail))
        )
        rates = [(model.devices.links[a][c], end + rest) for a, end in before for c, rest in after]
        late = all(rate is None or charge(rate, payload) + ticks > limit for rate, ticks in rates)
        pairs += [(u, v)] if late and model.group[u] != model.group[v] else []
    return pairs


def _confined(model: Model, feasible: list[list[bool]]) -> list[tuple[int, int]]:
    """Tasks that must share a device of a class whose devices are taken by groups that are apart.

    A group that is apart from all of these does not run there.
    """
    pairs, tasks = [], model.members
    able = [
        {c for c in range(model.k) if model.fits[g][c] and all(feasible[i][c] for i in tasks[g])}
        for g in range(len(tasks))
    ]
    for c, size in enumerate(model.devices.size):
        owners = list[int]()
        for g, classes in enumerate(able):
            if classes == {c} and all((g, h) in model.apart for h in owners):
                owners.append(g)
        if len(owners) > size:
            raise ClosedError
        for g, classes in enumerate(able) if len(owners) == size else ():
            near = [h for h in owners if (g, h) not in model.apart]
            if c in classes and len(classes) > 1 and not near:
                feasible[tasks[g][0]][c] = False
            elif classes == {c} and g not in owners and len(near) == 1:
                pairs.append((tasks[near[0]][0], tasks[g][0]))
    return pairs


def _orders(model: Model, limit: int) -> list[tuple[int, int]]:
    """Tasks of a group that can only run in one order, without an edge yet."""
    edges = []
    for pair in open_orders(model):
        able = []
        for i, j in (pair, pair[::-1]):
            ticks = model.head[i], model.duration[i], model.duration[j], model.tail[j]
            rows = zip(model.open[i], model.open[j], *ticks, strict=True)
            able += [(i, j)] if any(may and can and sum(each) <= limit for may, can, *each in rows) else []
        if not able:
            raise ClosedError
        edges += able if len(able) == 1 else []
    return edges


def refute(said: Said, limit_of: Limit, end: int | None = None) -> None:
    """Check a tree of cases that refutes all schedules which end by the limit of their case.

    If `end` is the limit of all cases, deadlines count, and ticks at which tasks end may be decided.
    """
    model = said.model
    spend = spending(CertificateError(f"{said.where}: the tree of cases takes more than {WORK:,} comparisons"))
    root = model if end is None or model.cuts[0] is not None else within(model, end)
    pending: list[tuple[Model, Any, str]] = [(root, said.claim.get("proof"), "proof")]
    while pending:
        case, node, at = pending.pop()
        kind = next((key for key in ("claim", *PARTS) if isinstance(node, dict) and key in node), None)
        if kind == "claim":
            trusted, inside = node["claim"] == "engine", visible(f"{said.where}.{at}")
            if trusted or (case.possible and said.check(case, "makespan", node, inside) <= limit_of(case)):
                raise said.wrong(visible(at), "a claim that closes the case by computing")
            continue
        if model.n > LARGEST:
            raise CertificateError(f"{said.where}: a tree of cases for {model.n:,} tasks; expected at most {LARGEST}")
        try:
            case = narrowed(case, limit_of, spend)
        except ClosedError:
            continue
        if kind is None:
            raise said.wrong(visible(at), "pair, order or class: the case is not closed, and no decision divides it")
        pair = node[kind] if isinstance(node[kind], list) and len(node[kind]) == 2 else [None, None]
        known, what = model.devices.named if kind == "class" else model.named, "a task, and a task, device or tick,"
        i = said.places(visible(at), pair[:1], model.named, what)[0]
        if kind == "ends" and end is None:
            raise said.wrong(visible(at), "no tick: of a sum of metrics, the schedules of each case end by another one")
        j = whole(pair[1], visible(at)) if kind == "ends" else said.places(visible(at), pair[1:], known, what)[0]
        if kind == "order" and (i == j or case.group[i] != case.group[j] or not runs_one(case, case.group[i])):
            raise said.wrong(visible(at), "an order of two tasks that share a device that runs one task at a time")
        parts = zip(PARTS[kind], decided(case, kind, i, j, end or 0), strict=True)
        pending += [(part, node.get(name), f"{at}.{name}") for name, part in parts]
