"""A claim about the makespan by blocks between tasks that cut the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product

from placeopt.errors import CertificateError
from placeopt.verifier.certificates.devices import INFINITE, Devices
from placeopt.verifier.certificates.model import Cut, Model, block_of
from placeopt.verifier.certificates.said import Claim, Said, shown, whole

Arc = tuple[int, int | None, int | None]
"""A block, and the devices of its cuts; None for a missing cut."""

LARGEST = 20_000_000
"""Numbers in the tables of all arcs at most: arcs are pairs of device classes, and so are the cells of a table."""


def affordable(model: Model, blocks: int) -> bool:
    """Whether the critical paths of all arcs of a number of blocks are computed in seconds."""
    return blocks * model.k**4 <= LARGEST


class BlockPath:
    """Blocks between tasks that cut the graph.

    Every task of a block has a producer there, or its first cut is one, so that it is a descendant of this cut; and
    likewise an ancestor of the last one. So all of the block lies between the ends of the two. The makespan is at least
    the sum of these times.
    """

    def __init__(self, said: Said) -> None:
        self.said, self.model, self.cuts = said, said.model, said.tasks("cuts")
        self.blocks = [said.places("blocks", names, self.model.named) for names in said.items("blocks")]
        if not self.cuts or len(self.blocks) != len(self.cuts) + 1 or any(self.model.cuts):
            raise said.wrong("blocks", "one before each cut and one after the last, of the whole problem")
        for b, inner in enumerate(self.blocks):
            first, last = self.cuts[:b][-1:], self.cuts[b : b + 1]
            before, after = {*inner, *first}, {*inner, *last}
            fed = {edge.target for i in before for edge in self.model.outs[i]}
            feeding = {i for i in before if any(edge.target in after for edge in self.model.outs[i])}
            lost = (after - fed if first else set()) | (before - feeding if last else set())
            if lost:
                name = self.model.problem.task_names[min(lost)]
                raise said.wrong("blocks", f"tasks on paths between cuts, which {name} of block {b} is not")
        if not affordable(self.model, len(self.blocks)):
            raise said.wrong("blocks", f"at most {LARGEST // self.model.k**4:,} with {self.model.k} device classes")
        self.default, self.devices = cache(self._default), cache(partial(Devices, self.model.problem))

    def stated(self, arc: Claim, where: str) -> Arc:
        """A block and devices that the certificate states."""
        b = whole(arc.get("block"), f"{where}.block")
        if b >= len(self.blocks):
            raise CertificateError(f"{where}.block is {b}; the last one is {len(self.blocks) - 1}")
        names = self.model.problem.device_names
        for key, known in (("start", names if b else (None,)), ("end", (None,) if b == len(self.cuts) else names)):
            if arc.get(key) not in known:
                expected = "nothing" if None in known else "a device"
                raise CertificateError(f"{where}.{key} is {shown(arc.get(key))}; expected {expected}")
        start, end = (None if arc.get(key) is None else names.index(arc[key]) for key in ("start", "end"))
        return b, start, end

    def arcs(self, b: int, c: int | None, d: int | None) -> list[Arc]:
        """The arcs of a block between two classes: on one device, if they are equal, and on two; None without a cut."""
        first, last = (None if a is None else self.model.devices.leader[a] for a in (c, d))
        if c is None or d is None:
            return [(b, first, last)]
        pair = self.model.devices.pairs[c][d]
        return ([(b, first, last)] if c == d else []) + ([(b, *pair)] if pair else [])

    def key(self, b: int, start: int | None, end: int | None) -> Arc:
        """The arc that stands for those with devices of the same classes, on one device or on two like here."""
        c, d = (None if each is None else self.model.devices.class_of[each] for each in (start, end))
        return self.arcs(b, c, d)[0 if start == end else -1]

    def block(self, b: int, start: int | None, end: int | None) -> Model:
        """A block whose cuts run on these devices."""
        first: Cut = None if start is None else (self.cuts[b - 1], start)
        last: Cut = None if end is None else (self.cuts[b], end)
        devices = self.devices(frozenset(d for d in (start, end) if d is not None))
        model = block_of(self.model.problem, devices, self.blocks[b], first, last)
        return replace(model, begins=model.begins and self.model.begins)

    def _default(self, b: int, start: int | None, end: int | None) -> int:
        """The critical path of an arc."""
        model = self.block(b, start, end)
        return model.longest if model.possible else INFINITE

    def shortest(self, proved: Mapping[Arc, int]) -> int:
        """The length of a shortest path; arcs without a claim have their critical path."""
        near: dict[int | None, int] = {None: 0}
        for b in range(len(self.blocks)):
            cut = [] if b == len(self.cuts) else self.model.allowed[self.cuts[b]]
            ends = [c for c, may in enumerate(cut) if may] if cut else [None]
            reached: dict[int | None, int] = {}
            for (c, ticks), d in product(near.items(), ends):
                for arc in self.arcs(b, c, d):
                    length = proved[arc] if arc in proved else self.default(*arc)
                    reached[d] = min(reached.get(d, INFINITE), ticks + length)
            near = reached
        return min(near.values(), default=INFINITE)


def series(said: Said) -> int:
    """A shortest path over the devices of tasks that cut the graph; its arcs are claims about blocks."""
    path, proved = BlockPath(said), dict[Arc, int]()
    for i, stated in enumerate(said.items("arcs")):
        where = f"{said.where}.arcs[{i}]"
        arc = path.stated(stated if isinstance(stated, dict) else {}, where)
        key, value = path.key(*arc), said.check(path.block(*arc), "makespan", stated.get("proof"), f"{where}.proof")
        proved[key] = max(value, proved.get(key, 0))
    return path.shortest(proved)
