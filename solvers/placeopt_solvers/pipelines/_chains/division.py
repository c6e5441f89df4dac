"""Divide a chain for given periods: with a table over all vectors of used devices, or with a beam of some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import prepared
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Stages
from placeopt.model.stages import backward

from .._shared.contraction import Nodes
from .._shared.ideals import INFINITE, Division, ring
from .bisection import (
    DROPPED,
    FAILED,
    FRONTS_FULL,
    LISTS,
    LISTS_FULL,
    NEXT,
    Beam,
    Fronts,
    Lists,
    extend,
    find_costs,
    find_rooms,
    least_load,
    sweep,
)
from .chain import Chain

CHUNK = 2**14
"""Vectors between two checks of the clock."""

PRICE = 2**44
"""Price of all devices."""


class Piece(NamedTuple):
    """Stage [begin, end) on a team of a class of devices."""

    begin: int
    end: int
    label: int
    team: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search found for a period.

    Attributes
    ----------
    pieces
        A division with at most that period, first stage first; None if none was found.
    least
        A period below which no division exists, if none exists for the period; else None.
    """

    pieces: list[Piece] | None = None
    least: int | None = None


class Divider:
    """Divides one chain for many periods; `stopped` is checked regularly.

    If there are at most `vectors` fronts, `complete` is true, and prices do not count the devices behind a stage: the
    table is exact without.
    """

    def __init__(self, chain: Chain, vectors: int, stopped: Callable[[], bool]) -> None:
        self.chain, self.stopped = chain, stopped
        self.devices = int(chain.size.sum())
        self.cuts = chain.nearest.shape[1]
        self.links = len(chain.down)
        self.contexts = 1 if self.links == 1 else self.links * len(chain.size)
        self.complete = self.vectors * self.contexts <= vectors
        self.state = np.zeros(5, dtype=np.int64)
        self.lists = self._lists()
        self._fronts: Fronts | None = None
        self.reach = 0.2
        self._period = -1
        total = np.maximum(chain.computing[:, -1], 1)
        self._set(chain.size / total / (chain.size / total).sum())
        self.weights = weights_of(chain)
        self._beams: dict[int, tuple[Beam, Int]] = {}

    @property
    def vectors(self) -> int:
        """Number of vectors of used devices."""
        found = 1
        for each in self.chain.size.tolist():
            found *= each + 1
        return found

    def tune(self, period: int, steps: int) -> int | None:
        """Search prices that prove that no division has a period; return a period below which none exists, or None.

        The first prices are those of the last period, and what a device takes at most: of the computing, of the memory
        and of both. Then prices rise for devices that the cheapest stages use too often, by less and less.
        """
        if not self._priced(period):
            return int(self.state[NEXT])
        size = self.chain.size
        best, most = self.lists.price.copy(), self._ratio()
        for weight in self.weights:
            room = np.zeros(len(size), dtype=np.int64)
            run = find_rooms.select(len(self.lists.length) * 20)
            while run(self.chain, self.lists, weight, room, period, self.state) == LISTS_FULL:
                self._widen()
            if not room.any():
                continue
            self.lists.price[:] = room
            if not self._priced(period):
                return int(self.state[NEXT])
            if self._ratio() > most:
                best, most = self.lists.price.copy(), self._ratio()
        self.lists.price[:] = best
        self._priced(period)
        share = best * size / (best @ size)
        reach = self.reach
        for _ in range(-(-steps // len(self.lists.cost))):
            if self.stopped():
                break
            use = self._used() / size
            move = use - use @ share
            widest = np.abs(move).max()
            if widest == 0:
                break
            share = share * np.exp(reach * move / widest)
            share /= share.sum()
            self._set(share)
            if not self._priced(period):
                return int(self.state[NEXT])
            ratio = self._ratio()
            if ratio > most:
                best, most = self.lists.price.copy(), ratio
                reach *= 1.1
            else:
                reach *= 0.9
                share = best * size / (best @ size)
        self.reach = max(reach, 1e-3)
        self.lists.price[:] = best
        return None

    def table(self, period: int) -> Outcome:
        """Search all vectors of used devices."""
        chain = self.chain
        if self._fronts is None:
            fronts = self.vectors * self.contexts
            self._fronts = Fronts(
                stride=np.concatenate(([1], np.cumprod(chain.size[:-1] + 1))).astype(np.int64),
                start=np.zeros(fronts, dtype=np.int64),
                length=np.zeros(fronts, dtype=np.int32),
                cut=np.zeros(max(2 * fronts, 1024), dtype=np.int32),
                mark=np.zeros(self.cuts, dtype=np.int64),
                found=np.zeros(self.cuts, dtype=np.int64),
            )
        if not self._priced(period):
            return Outcome(least=int(self.state[NEXT]))
        self.state[2] = 0
        run = sweep.select(self.vectors * self.contexts * len(chain.size) * min(chain.replicas, int(chain.size.max())))
        at = 0
        while at < self.vectors:
            if self.stopped():
                return Outcome()
            used = int(self.state[2])
            end = min(at + CHUNK, self.vectors)
            found = run(chain, self.lists, self._fronts, at, end, period, self.state)
            if found >= 0:
                return Outcome(self._traced(self._fronts, found, period))
            if found == LISTS_FULL:
                self._widen()
            elif found == FRONTS_FULL:
                longer = np.concatenate((self._fronts.cut, np.zeros_like(self._fronts.cut)))
                self._fronts = self._fronts._replace(cut=longer)
            if found == FAILED:
                at = end
            else:
                self.state[2] = used
        return Outcome(least=int(self.state[NEXT]))

    def beam(self, period: int, width: int) -> Outcome:
        """Search with at most `width` vectors for each number of used devices."""
        chain, m = self.chain, self.devices
        if width not in self._beams:
            self._beams = {width: (_beam(chain, width), np.zeros(width, dtype=np.int64))}
        beam, score = self._beams[width]
        beam.filled[:] = 0
        if not self._priced(period):
            return Outcome(least=int(self.state[NEXT]))
        beam.filled[0] = 1
        beam.cut[0, 0], beam.left[0, 0] = self.cuts - 1, int(self.lists.price @ chain.size)
        self.state[DROPPED] = 0
        run = extend.select(m * min(width, 2**20) * len(chain.size) * 4)
        ready = prepared(run, chain), prepared(run, self.lists), prepared(run, beam)
        layer = 1
        while layer <= m:
            if self.stopped():
                return Outcome()
            found = run(*ready, layer, period, score, self.state)
            if found >= 0:
                return Outcome(self._followed(beam, layer, found))
            if found == LISTS_FULL:
                self._widen()
                ready = prepared(run, chain), prepared(run, self.lists), prepared(run, beam)
            else:
                layer += 1
        return Outcome(least=None if self.state[DROPPED] else int(self.state[NEXT]))

    def period(self, pieces: list[Piece]) -> int:
        """The least period of a division."""
        loads, later = [], 0
        for at in range(len(pieces) - 1, -1, -1):
            piece = pieces[at]
            later += piece.team
            a = self._link(pieces[at - 1].label, piece.label) if at else 0
            b = self._link(piece.label, pieces[at + 1].label) if at + 1 < len(pieces) else 0
            loads.append(self._load(piece, -(-later // piece.team), a, b))
        return max(loads)

    def _lists(self) -> Lists:
        chain = self.chain
        most = min(chain.replicas, int(chain.size.max()))
        first = np.zeros((len(chain.size), most + 1), dtype=np.int64)
        rows = 0
        for c, size in enumerate(chain.size.tolist()):
            for r in range(1, min(most, size) + 1):
                first[c, r] = rows
                rows += -(-self.devices // r) if chain.binding[c] else 1
        later = self.devices + 1 if chain.binding.any() and not self.complete else 1
        rows *= self.cuts * self.links * self.links
        return Lists(
            first=first,
            start=np.zeros(rows, dtype=np.int32),
            length=np.zeros(rows, dtype=np.int32),
            cut=np.zeros(max(2 * rows, 1024), dtype=np.int32),
            price=np.zeros(len(chain.size), dtype=np.int64),
            cost=np.zeros((later, self.cuts), dtype=np.int64),
            choice=np.zeros((later, self.cuts), dtype=np.int64),
        )

    def _widen(self) -> None:
        """Double the space for lists."""
        self.lists = self.lists._replace(cut=np.concatenate((self.lists.cut, np.zeros_like(self.lists.cut))))

    def _set(self, share: NDArray[np.float64]) -> None:
        """Set the prices to shares (c,) of the price of all devices."""
        self.lists.price[:] = np.rint(share / self.chain.size * PRICE).astype(np.int64)

    def _priced(self, period: int) -> bool:
        """Start a search for a period; return whether the prices allow a division."""
        if period != self._period:
            self._period = period
            self.lists.length[:] = -1
            self.state[NEXT], self.state[LISTS] = INFINITE, 0
        run = find_costs.select(len(self.lists.length) * 20)
        while run(self.chain, self.lists, self.devices, period, self.state) == LISTS_FULL:
            self._widen()
        return bool(self.lists.cost[0, -1] <= self.lists.price @ self.chain.size)

    def _ratio(self) -> float:
        """The price of the cheapest stages for all nodes, as a share of the price of all devices."""
        return float(self.lists.cost[0, -1] / max(int(self.lists.price @ self.chain.size), 1))

    def _used(self) -> Int:
        """(c,) devices that the cheapest stages use."""
        found = np.zeros(len(self.chain.size), dtype=np.int64)
        later, cut = 0, self.cuts - 1
        while cut > 0:
            code, cut = divmod(int(self.lists.choice[later, cut]), self.cuts)
            c, r = divmod(code, self.devices + 1)
            found[c] += r
            later = later + r if len(self.lists.cost) > 1 else 0
        return found

    def _link(self, earlier: int, later: int) -> int:
        return int(self.chain.link[earlier, later]) if self.links > 1 else 0

    def _load(self, piece: Piece, runs: int, a: int, b: int) -> int:
        runs = self.chain.in_flight or runs
        return least_load(self.chain, piece.label, piece.team, runs, piece.begin, piece.end, a, b)

    def _traced(self, fronts: Fronts, front: int, period: int) -> list[Piece]:
        """The pieces that lead to cut 0 of a front."""
        pieces: list[Piece] = []
        cut = 0
        while cut < self.cuts - 1:
            piece, front = self._step(fronts, front, cut, period)
            pieces.append(piece)
            cut = piece.end
        return pieces

    def _step(self, fronts: Fronts, front: int, cut: int, period: int) -> tuple[Piece, int]:
        chain = self.chain
        vector, context = divmod(front, self.contexts)
        used = (vector // fronts.stride % (chain.size + 1)).tolist()
        total = sum(used)
        for c in range(len(used)) if self.links == 1 else [context // self.links]:
            for r in range(1, min(chain.replicas, used[c]) + 1):
                origin = (vector - r * int(fronts.stride[c])) * self.contexts
                for q in range(1 if self.links == 1 else len(used)):
                    b = self._link(c, q)
                    there = origin + (q * self.links + b if self.links > 1 else 0)
                    begin = int(fronts.start[there])
                    for end in fronts.cut[begin : begin + int(fronts.length[there])].tolist():
                        piece = Piece(cut, end, c, r)
                        if end > cut and self._load(piece, -(-total // r), context % self.links, b) <= period:
                            return piece, there
        raise AssertionError("a front holds a cut without a stage that begins there")

    def _followed(self, beam: Beam, layer: int, slot: int) -> list[Piece]:
        """The pieces that lead to a state of a beam."""
        pieces: list[Piece] = []
        while layer > 0:
            c, r = divmod(int(beam.move[layer, slot]), self.devices + 1)
            begin = int(beam.cut[layer, slot])
            slot, layer = int(beam.parent[layer, slot]), layer - r
            pieces.append(Piece(begin, int(beam.cut[layer, slot]), c, r))
        return pieces


def _beam(chain: Chain, width: int) -> Beam:
    m, classes = int(chain.size.sum()), len(chain.size)
    cut, context, left, key, parent, move = np.zeros((6, m + 1, width), dtype=np.int64)
    heap, place, follower = np.zeros((3, width), dtype=np.int64)
    return Beam(
        used=np.zeros((m + 1, width, classes), dtype=np.int16),
        cut=cut, context=context, left=left, key=key, parent=parent, move=move,
        filled=np.zeros(m + 1, dtype=np.int64), heap=heap, place=place,
        bucket=np.zeros(2 * width + 1, dtype=np.int64), follower=follower,
        factor=np.array([pow(48271, c + 1, 2**31 - 1) for c in range(classes)], dtype=np.int64),
    )  # fmt: skip


class Bisection:
    """Searches the least period of a chain.

    Attributes
    ----------
    low
        No division has a lower period.
    high
        The period of the best division; None before one is found.
    """

    def __init__(
        self, divider: Divider, offer: Callable[[list[Piece]], None], raised: Callable[[int], None] | None
    ) -> None:
        self._divider, self._offer, self._raised = divider, offer, raised
        self.low = 0
        self.high: int | None = None
        self._ceiling = ceiling(divider.chain)

    @property
    def closed(self) -> bool:
        """Whether the best division is proved optimal."""
        return self.high is not None and self.low >= self.high

    @property
    def infeasible(self) -> bool:
        """Whether it is proved that no division exists."""
        return self.high is None and self.low > self._ceiling

    def start(self) -> None:
        """Raise the bound as far as prices prove it."""
        divider = self._divider
        low = int(np.diff(divider.chain.computing, axis=1).min(axis=0).sum()) // divider.devices
        step = max(low // 256, 1)
        high = min(low, self._ceiling)
        while (proved := divider.tune(high, 0)) is not None:
            low = proved
            high = max(high, min(low, self._ceiling))
            if low > self._ceiling:
                self._raise(low)
                return
            high, step = min(high + step, self._ceiling), 2 * step
        while low < high and not self._divider.stopped():
            middle = (low + high) // 2
            proved = divider.tune(middle, 0)
            low, high = (low, middle) if proved is None else (proved, max(high, proved))
        self._raise(low)

    def prove(self, steps: int) -> None:
        """Raise the bound by better prices, in steps of at least a hundred thousandth."""
        step = least = max(self.low // 100_000, 1)
        while step >= least and not self.closed and not self.infeasible and not self._divider.stopped():
            period = min(self.low + step - 1, self._ceiling if self.high is None else self.high - 1)
            proved = self._divider.tune(period, steps)
            if proved is None:
                step //= 4
            else:
                self._raise(proved)
                step *= 2

    def search(self, divide: Callable[[int], Outcome]) -> None:
        """Close the gap as far as a search can."""
        floor, step = self.low, max(self.low // 1000, 1)
        best: list[Piece] | None = None
        while not self._divider.stopped() and floor <= (self._ceiling if self.high is None else self.high - 1):
            if self.high is None:
                period, step = min(floor + step - 1, self._ceiling), 2 * step
            else:
                period = (floor + self.high - 1) // 2
            outcome = divide(period)
            if outcome.pieces is not None:
                best, self.high = outcome.pieces, self._divider.period(outcome.pieces)
                continue
            if outcome.least is not None:
                self._raise(outcome.least)
            floor = max(period + 1, self.low)
        if best is not None:
            self._offer(best)

    def _raise(self, bound: int) -> None:
        if bound > self.low:
            self.low = bound if self.high is None else min(bound, self.high)
            if self.low <= self._ceiling and self._raised is not None:
                self._raised(self.low)


def ceiling(chain: Chain) -> int:
    """A period that no stage exceeds."""
    moving = 2 * int(chain.down.max(initial=0) + chain.up.max(initial=0))
    found = 0
    for c, size in enumerate(chain.size.tolist()):
        busy = int(chain.computing[c, -1] + chain.again[c, -1] + 2 * chain.launch[c])
        for r in range(1, min(chain.replicas, size) + 1):
            found = max(found, -(-(busy + moving + ring(chain, c, r, int(chain.gradient[-1]))) // r))
    return found


def weights_of(chain: Chain) -> list[Int]:
    """Return sums (n + 1,) of weights of nodes: their share of the computing, of the memory, and of both."""
    total = np.maximum(chain.computing[:, -1:], 1)
    shares = [(np.diff(chain.computing, axis=1) / total).min(axis=0), np.diff(chain.fixed).astype(float)]
    shares = [share / share.sum() for share in shares if share.any()]
    if len(shares) == 2:
        shares.append((shares[0] + shares[1]) / 2)
    return [np.concatenate(([0], np.cumsum(np.rint(share * PRICE).astype(np.int64)))) for share in shares]


def division_of(problem: Problem, nodes: Nodes, order: Int, divider: Divider, pieces: list[Piece]) -> Division:
    """Return the placement and the stages of pieces."""
    chain, m = divider.chain, problem.n_devices
    free = [list(members) for members in nodes.devices]
    home, number = np.zeros((2, nodes.count), dtype=np.int64)
    leader, again = np.arange(m), np.zeros(m, dtype=np.int64)
    later = sum(piece.team for piece in pieces)
    for stage, piece in enumerate(pieces):
        c, r = piece.label, piece.team
        team, free[c] = free[c][:r], free[c][r:]
        inside = order[piece.begin : piece.end]
        home[inside], number[inside] = team[0], stage
        leader[team] = team[0]
        runs = chain.in_flight or -(-later // r)
        kept = chain.kept[piece.end] - chain.kept[piece.begin]
        need = chain.fixed[piece.end] - chain.fixed[piece.begin] + (runs - 1) * kept
        again[team[0]] = need > chain.capacity[c]
        later -= r
    device = home[nodes.node]
    ahead = number[nodes.node]
    behind = 2 * len(pieces) - 1 - ahead if nodes.opposite else len(pieces) + ahead
    stages = Stages(np.where(backward(problem), behind, ahead), leader, again, np.zeros(m, dtype=np.int64))
    return Division(divider.period(pieces), device, stages)
