"""Prove a bound of the makespan by refuting all shorter schedules, case by case.

A case is a model with decisions: tasks that share a device (one group), tasks that do not, tasks that run one after the
other (an edge without data). It is narrowed as follows, for schedules that end by T, until nothing changes:

- A group does not run on a class on which a task, or all of its tasks one after the other, cannot end by T.
- The tasks of an edge share a device if the transfer between any two devices leaves too little time.
- Two tasks of a group run in the only order that leaves enough time; a device runs one at a time.
- The work of tasks that only devices of one class may run fits between their heads and tails.
- If groups that are apart take all devices of a class, no group that is apart from all of them runs there.

A case is closed if a group has no class left. A tree divides cases that are not, each by a decision and its opposite:

    pair    two tasks share a device (`together`), or not (`apart`)
    order   of two tasks of a group, one ends before the other starts (`first`, `second`)
    class   a task runs on a device of a class (`on`), or not (`off`)

Once everything is decided, a case that is not closed is a schedule of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

from placeopt.errors import CertificateError, visible
from placeopt.verifier.certificates.model import INFINITE, Edge, Model, charge
from placeopt.verifier.certificates.windows import Windows, windows_of


class ClosedError(Exception):
    """No schedule of the case ends by T."""


Parts = tuple[tuple[str, Callable[[], "Case"]], tuple[str, Callable[[], "Case"]]]
"""The two parts of a decision, each with how to make its case."""


class Case:
    """A case, narrowed. Raises ClosedError if no schedule is left."""

    def __init__(self, model: Model, limit: int) -> None:
        self.model, self.limit = model, limit
        self.windows = self._narrowed()

    def decision(self, kind: str, i: int, j: int) -> Parts:
        """The parts of a decision about tasks i and j, or about task i and class j."""
        model = self.model
        if kind == "pair":
            shared, parted = united(model, [(i, j)]), replace(model, parted=(*model.parted, (i, j)))
            return ("together", self._with(shared)), ("apart", self._with(parted))
        if kind == "order":
            return (
                ("first", lambda: Case(with_edges(model, [(i, j)]), self.limit)),
                ("second", lambda: Case(with_edges(model, [(j, i)]), self.limit)),
            )
        parts = []
        for name, on in (("on", True), ("off", False)):
            feasible = [list(row) for row in model.feasible]
            feasible[i] = [may and (c == j) == on for c, may in enumerate(feasible[i])]
            parts.append((name, self._with(replace(model, feasible=feasible))))
        return parts[0], parts[1]

    def _with(self, model: Model) -> Callable[[], Case]:
        return lambda: Case(model, self.limit)

    def open_orders(self) -> list[tuple[int, int]]:
        """Pairs of tasks of one group without an edge between them, where one runs after the other."""
        model = self.model
        known = {(edge.source, edge.target) for edge in model.edges}
        known |= {(j, i) for i, j in known}
        serial = filter(self.runs_one, range(len(model.members)))
        return [pair for g in serial for pair in combinations(model.members[g], 2) if pair not in known]

    def runs_one(self, g: int) -> bool:
        """Whether all devices that a group may have run one task at a time."""
        model = self.model
        return not any(a and b for a, b in zip(model.fits[g], model.devices.parallel, strict=True))

    def _narrowed(self) -> Windows:
        while True:
            model = self.model
            if any(g == h for g, h in model.apart) or not model.possible:
                raise ClosedError
            found = windows_of(model)
            feasible = [[self._ends(found, i, c) for c in range(model.k)] for i in range(model.n)]
            for g, members in enumerate(model.members):
                for c in range(model.k):
                    if len(members) > 1 and model.fits[g][c] and self._work(found, members, c, 1) > self.limit:
                        feasible[members[0]][c] = False
            for c in range(model.k):
                mine = [i for i in range(model.n) if feasible[i][c] and sum(model.allowed[i]) == 1]
                if self._work(found, mine, c, model.devices.size[c]) > self.limit:
                    raise ClosedError
            pairs = self._shared(found) + self._confined(feasible)
            if feasible != model.feasible:
                self.model = replace(model, feasible=feasible)
            if pairs:
                self.model = united(self.model, pairs)
            elif self.model is model:
                edges = self._orders(found)
                if not edges:
                    return found
                self.model = with_edges(model, edges)

    def _ends(self, found: Windows, i: int, c: int) -> bool:
        """Whether a task may run on a class and end in time."""
        ticks = found.head[i][c] + self.model.duration[i][c] + found.tail[i][c]
        return found.allowed[i][c] and ticks <= self.limit

    def _work(self, found: Windows, tasks: list[int], c: int, places: int) -> int:
        """The least makespan of tasks on some devices of a class that share the work: by heads and by tails."""
        rows = sorted(((found.head[i][c], found.tail[i][c], self.model.busy[i][c]) for i in tasks), reverse=True)
        best = 0
        for far in {row[1] for row in rows}:
            work = 0
            for head, tail, ticks in rows:
                if tail >= far:
                    work += ticks
                    best = max(best, head - (-work // places) + far)
        return best

    def _shared(self, found: Windows) -> list[tuple[int, int]]:
        """Edges that leave no time for a transfer."""
        model, pairs = self.model, []
        for edge in model.edges:
            if model.together(edge):
                continue
            u, v = edge.source, edge.target
            least = INFINITE
            for a in range(model.k):
                for c in range(model.k):
                    if found.allowed[u][a] and found.allowed[v][c] and (rate := model.devices.links[a][c]) is not None:
                        ticks = found.head[u][a] + model.duration[u][a] + charge(rate, edge.payload)
                        least = min(least, ticks + model.duration[v][c] + found.tail[v][c])
            if least > self.limit:
                pairs.append((u, v))
        return pairs

    def _confined(self, feasible: list[list[bool]]) -> list[tuple[int, int]]:
        """Tasks that must share a device of a class whose devices are taken by groups that are apart.

        A group that is apart from all of these does not run there.
        """
        model, pairs = self.model, []
        for c in range(model.k):
            mine, others = list[int](), list[int]()
            for g, members in enumerate(model.members):
                classes = [a for a in range(model.k) if model.fits[g][a] and all(feasible[i][a] for i in members)]
                if c in classes:
                    (mine if classes == [c] else others).append(g)
            owners = list[int]()
            for g in mine:
                if all((g, h) in model.apart for h in owners):
                    owners.append(g)
            if len(owners) > model.devices.size[c]:
                raise ClosedError
            if len(owners) < model.devices.size[c]:
                continue
            for g in mine + others:
                able = [h for h in owners if (g, h) not in model.apart]
                if g in others and not able:
                    feasible[model.members[g][0]][c] = False
                elif g in mine and g not in owners and len(able) == 1:
                    pairs.append((model.members[able[0]][0], model.members[g][0]))
        return pairs

    def _orders(self, found: Windows) -> list[tuple[int, int]]:
        """Tasks of a group that can only run in one order, without an edge yet."""
        model, edges = self.model, []
        for i, j in self.open_orders():
            classes = [c for c, may in enumerate(model.fits[model.group[i]]) if may]
            first, second = (any(self._follows(found, a, b, c) for c in classes) for a, b in ((i, j), (j, i)))
            if not first and not second:
                raise ClosedError
            if first != second:
                edges.append((i, j) if first else (j, i))
        return edges

    def _follows(self, found: Windows, i: int, j: int, c: int) -> bool:
        """Whether j may run after i on a class."""
        work = self.model.duration[i][c] + self.model.duration[j][c]
        return found.allowed[i][c] and found.allowed[j][c] and found.head[i][c] + work + found.tail[j][c] <= self.limit


def united(model: Model, pairs: list[tuple[int, int]]) -> Model:
    """The model in which the tasks of each pair share a device."""
    label = list(model.group)
    for i, j in pairs:
        old, new = label[j], label[i]
        label = [new if g == old else g for g in label]
    names: dict[int, int] = {}
    return replace(model, group=[names.setdefault(g, len(names)) for g in label])


def with_edges(model: Model, pairs: list[tuple[int, int]]) -> Model:
    """The model in which the first task of each pair ends before the second one starts; ClosedError for a cycle."""
    edges = [*model.edges, *(Edge(i, j, 0, False) for i, j in pairs)]
    model = replace(model, edges=edges)
    if len(model.order) < model.n:
        raise ClosedError
    return model


PARTS = {"pair": ("together", "apart"), "order": ("first", "second"), "class": ("on", "off")}

LARGEST = 1000
"""Tasks of a model with a tree, at most."""


def refuted(model: Model, value: int, proof: object, where: str) -> None:
    """Check a tree of cases that refutes all schedules below a value."""
    if model.n > LARGEST:
        raise CertificateError(f"{where}: a tree of cases is about {model.n:,} tasks; expected at most {LARGEST}")
    if not model.possible:
        return
    names = model.named
    devices = model.devices.named
    pending: list[tuple[Callable[[], Case], Any, str]] = [(lambda: Case(model, value - 1), proof, f"{where}.proof")]
    while pending:
        make, node, at = pending.pop()
        try:
            case = make()
        except ClosedError:
            continue
        at = visible(at)
        if not isinstance(node, dict):
            raise CertificateError(f"{at}: the case is not closed, and no decision divides it")
        kind = next((key for key in PARTS if key in node), "")
        about = node.get(kind)
        if not isinstance(about, list) or len(about) != 2:
            raise CertificateError(f"{at}: expected pair, order or class, with a list of two names")
        known = names, devices if kind == "class" else names
        if not all(isinstance(name, str) and name in each for name, each in zip(about, known, strict=True)):
            raise CertificateError(f"{at}.{kind}: {about!r} are not tasks of this block, or a task and a device")
        i, j = (each[name] for name, each in zip(about, known, strict=True))
        group = case.model.group
        if kind == "order" and (i == j or group[i] != group[j] or not case.runs_one(group[i])):
            raise CertificateError(f"{at}.order: {about!r} do not share a device that runs one task at a time")
        pending += [(make, node.get(name), f"{at}.{name}") for name, make in case.decision(kind, i, j)]
