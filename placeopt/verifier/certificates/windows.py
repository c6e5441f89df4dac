"""Heads and tails: how early a task can start on a class of device, and how much must follow its end.

Let L[v][c] be a tick before which task v cannot start on class c, at first its release. If a producer u of v runs on
another device, its data arrives no earlier than

    remote(u, v) = min over classes a of L[u][a] + duration(u, a) + transfer(a, c).

Assume that v starts at t. A producer with remote(u, v) > t then runs on the device of v; it ends by t, so it starts by
t - duration(u, c), and so on for its producers. All these tasks are *tied* to v. They may share the device, fit into
it, and run one after the other: for every R, those with L >= R end R + their durations or later. If they cannot, v
starts later than t. Tails are the heads of the reversed graph. There, a task is released by what its deadline leaves
after it, if deadlines count.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from placeopt.verifier.certificates.model import INFINITE, Edge, Model, Rate, Table, charge

ROUNDS = 1000
"""Largest number of times that one start is raised."""

FOLLOWED, LEAST, BUDGET = 1 << 23, 16, 1 << 23
"""Edges that are followed if each start is raised once, for one start at least, and in all.

Fewer tied tasks prove less, and nothing wrong: beyond these, large problems count with the arrivals of their data.
"""


@dataclass(frozen=True, slots=True)
class Windows:
    """By task and class: heads and tails. `allowed` where the task may run, and both are finite."""

    head: list[list[int]]
    tail: list[list[int]]
    allowed: list[list[bool]]

    def least(self, ticks: list[int], i: int) -> int:
        """The least of some ticks by class, over the classes of a task."""
        return min((each for each, may in zip(ticks, self.allowed[i], strict=True) if may), default=INFINITE)

    def ends(self, duration: Table, i: int) -> list[int]:
        """By class: the earliest end of a task."""
        return [head + work for head, work in zip(self.head[i], duration[i], strict=True)]

    def rests(self, duration: Table, i: int) -> list[int]:
        """By class: what follows the start of a task."""
        return [tail + work for tail, work in zip(self.tail[i], duration[i], strict=True)]

    def through(self, duration: Table, i: int) -> list[int]:
        """By class: the least makespan of a schedule that runs a task there."""
        return [end + tail for end, tail in zip(self.ends(duration, i), self.tail[i], strict=True)]


def windows_of(model: Model) -> Windows:
    """Heads and tails of all tasks."""
    edges = model.edges
    back = [[model.devices.links[a][c] for a in range(model.k)] for c in range(model.k)]
    reverse = [Edge(each.target, each.source, each.payload, each.shared) for each in edges]
    head = _Heads(model, edges, model.order, model.devices.links, model.release).run()
    tail = _Heads(model, reverse, model.order[::-1], back, model.after).run()
    allowed = [
        [may and head[i][c] < INFINITE and tail[i][c] < INFINITE for c, may in enumerate(row)]
        for i, row in enumerate(model.allowed)
    ]
    return Windows(head, tail, allowed)


class _Heads:
    """Heads in a graph that is given by its edges, in a topological order."""

    def __init__(
        self, model: Model, edges: list[Edge], order: list[int], links: list[list[Rate | None]], release: list[int]
    ) -> None:
        self.model, self.order = model, order
        self.rank = [0] * model.n
        for place, i in enumerate(order):
            self.rank[i] = place
        # By task: its producers, the arrivals from other devices, and whether the two cannot share one.
        self.ins: list[list[tuple[int, list[int], bool]]] = [[] for _ in range(model.n)]
        self.never = [INFINITE] * model.k
        self.sources = [
            [(a, rate) for a in range(model.k) if (rate := links[a][c]) is not None] for c in range(model.k)
        ]
        self.most, self.left = max(FOLLOWED // max(model.n * model.k, 1), LEAST), BUDGET
        self.rates = {rate for row in self.sources for _, rate in row}
        self.edges = edges
        self.head = [[release[i] if may else INFINITE for may in row] for i, row in enumerate(model.allowed)]

    def run(self) -> list[list[int]]:
        model, head = self.model, self.head
        outs: list[list[Edge]] = [[] for _ in range(model.n)]
        for edge in self.edges:
            outs[edge.source].append(edge)
        classes = range(model.k)
        for v in self.order:
            row, ins = head[v], self.ins[v]
            late = [0] * model.k
            for u, remote, _ in ins:
                before, work = head[u], model.duration[u]
                for c in classes:
                    row[c] = max(row[c], min(remote[c], before[c] + work[c]))
                    late[c] = max(late[c], remote[c])
            for c in classes:
                if late[c] > row[c] and row[c] < INFINITE and self.left > 0:
                    row[c] = self._raised(v, c, row[c])
                row[c] = min(row[c], INFINITE)
            for edge in outs[v]:
                parted = (model.group[v], model.group[edge.target]) in model.apart
                self.ins[edge.target].append((v, self._remote(edge), parted))
        return head

    def _remote(self, edge: Edge) -> list[int]:
        """By class of the consumer: the least arrival of data from another device."""
        model, u = self.model, edge.source
        if model.together(edge):
            return self.never
        end = [start + work for start, work in zip(self.head[u], model.duration[u], strict=True)]
        ticks = {rate: charge(rate, edge.payload) for rate in self.rates}
        return [min((end[a] + ticks[rate] for a, rate in sources), default=INFINITE) for sources in self.sources]

    def _raised(self, v: int, c: int, t: int) -> int:
        """The head of v on c, by raising t as long as tied tasks leave too little time."""
        for _ in range(ROUNDS if self.left > 0 else 0):
            fits, busy, change = self._tied(v, c, t)
            if fits and busy <= t:
                return t
            t = min(busy, change) if fits else change
            if t >= INFINITE:
                return INFINITE
        return t

    def _tied(self, v: int, c: int, t: int) -> tuple[bool, int, int]:
        """Whether the tasks tied to v fit, the tick from which they leave the device, and when fewer are tied."""
        model, head, rank = self.model, self.head, self.rank
        after, pending, change, fits, loose, followed, work = {v: 0}, [(-rank[v], v)], INFINITE, True, False, 0, 0
        while pending and followed < self.most:
            u = heapq.heappop(pending)[1]
            if not pending and not loose:  # all tied tasks so far run between u's start and t
                after[u] = max(after[u], work)
            leaf, later = True, after[u]
            limit = t - later
            followed += len(self.ins[u])
            for w, remote, parted in self.ins[u]:
                arrival = remote[c]
                if arrival <= limit:
                    continue
                leaf = False
                change = min(change, arrival + later)
                fits = fits and not parted and head[w][c] < INFINITE
                behind = later + model.duration[w][c]
                if w not in after:
                    work += model.busy[w][c]
                    heapq.heappush(pending, (-rank[w], w))
                    after[w] = behind
                elif behind > after[w]:
                    after[w] = behind
            loose = loose or leaf
        self.left -= followed
        capacity = model.devices.capacity[c]
        if capacity is not None and fits:
            fits = sum(model.group_memory[g] for g in {model.group[w] for w in after}) <= capacity
        busy, total = 0, 0
        del after[v]
        for start, ticks in sorted([(head[w][c], model.busy[w][c]) for w in after], reverse=True):
            total += ticks
            busy = max(busy, start + total)
        return fits, busy, change
