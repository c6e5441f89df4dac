"""Divide a chain for given periods: with a table over all vectors of used devices, or with a beam of some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, transfer_ticks

from .._shared.contraction import Nodes
from .._shared.ideals import Division, division_into
from .chain import Chain

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
    """What a search found for a period."""

    pieces: list[Piece] | None = None
    """A division with at most that period, first stage first; None if none was found."""
    least: int | None = None
    """A period below which no division exists, if none exists for the period; else None."""


class Divider:
    """Divides one chain for many periods; `stopped` is checked regularly.

    If there are at most `vectors` fronts, `complete` is true, and prices do not count the devices behind a stage: the
    table is exact without.
    """

    def __init__(self, chain: Chain, vectors: int, stopped: Callable[[], bool]) -> None:
        self.chain, self.stopped = chain, stopped
        self.devices = int(chain.size.sum())
        contexts = 1 if len(chain.down) == 1 else len(chain.down) * len(chain.size)
        self.complete = self.vectors * contexts <= vectors
        self._engine = engine.ChainDivider(chain, not self.complete)
        self._price = np.zeros(len(chain.size), dtype=np.int64)
        self._reach = 0.2
        total = np.maximum(chain.computing[:, -1], 1)
        self._set(chain.size / total / (chain.size / total).sum())
        self._weights = weights_of(chain)

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
        try:
            return None if self._allowed(period, steps) else self._engine.next
        except engine.StoppedError:
            return None

    def _allowed(self, period: int, steps: int) -> bool:
        """Whether all prices tried allow a division."""
        if not self._priced(period):
            return False
        size = self.chain.size
        best, most = self._price, self._ratio()
        for weight in self._weights:
            room = self._engine.rooms(weight, self._stop())
            if not room.any():
                continue
            self._price = room
            if not self._priced(period):
                return False
            if self._ratio() > most:
                best, most = room, self._ratio()
        self._price = best
        self._priced(period)
        share = best * size / (best @ size)
        reach = self._reach
        for _ in range(-(-steps // self._engine.rows)):
            if self.stopped():
                break
            use = self._engine.used() / size
            move = use - use @ share
            widest = np.abs(move).max()
            if widest == 0:
                break
            share = share * np.exp(reach * move / widest)
            share /= share.sum()
            self._set(share)
            if not self._priced(period):
                return False
            ratio = self._ratio()
            if ratio > most:
                best, most = self._price, ratio
                reach *= 1.1
            else:
                reach *= 0.9
                share = best * size / (best @ size)
        self._reach = max(reach, 1e-3)
        self._price = best
        return True

    def table(self, period: int) -> Outcome:
        """Search all vectors of used devices."""
        return self._searched(period, lambda: self._engine.table(self._stop()))

    def beam(self, period: int, width: int) -> Outcome:
        """Search with at most `width` vectors for each number of used devices."""
        return self._searched(period, lambda: self._engine.beam(width, self._stop()))

    def _searched(self, period: int, search: Callable[[], tuple[Int, bool]]) -> Outcome:
        try:
            if not self._priced(period):
                return Outcome(least=self._engine.next)
            stages, complete = search()
        except engine.StoppedError:
            return Outcome()
        if len(stages):
            return Outcome([Piece(*stage) for stage in stages.tolist()])
        return Outcome(least=self._engine.next if complete else None)

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

    def _stop(self) -> engine.Stop:
        return engine.Stop(self.stopped)

    def _set(self, share: NDArray[np.float64]) -> None:
        """Set the prices to shares (c,) of the price of all devices."""
        self._price = np.rint(share / self.chain.size * PRICE).astype(np.int64)

    def _priced(self, period: int) -> bool:
        """Start a search for a period; return whether the prices allow a division."""
        return self._engine.begin(period, self._price, self._stop())

    def _ratio(self) -> float:
        """The price of the cheapest stages for all nodes, as a share of the price of all devices."""
        return float(self._engine.least_cost / max(int(self._price @ self.chain.size), 1))

    def _link(self, earlier: int, later: int) -> int:
        return int(self.chain.link[earlier, later]) if len(self.chain.down) > 1 else 0

    def _load(self, piece: Piece, runs: int, a: int, b: int) -> int:
        runs = self.chain.in_flight or runs
        return self._engine.least_load(piece.label, piece.team, runs, piece.begin, piece.end, a, b)


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
            found = max(found, -(-(busy + moving + _ring(chain, c, r, int(chain.gradient[-1]))) // r))
    return found


def _ring(chain: Chain, c: int, r: int, gradient: int) -> int:
    """Ticks in which a team synchronises gradients."""
    if r < 2 or gradient == 0 or chain.free[c]:
        return 0
    moved = 2 * gradient - 2 * gradient // r  # 2 (r - 1) / r, rounded up
    return int(transfer_ticks(moved, *(int(each[c]) for each in (chain.ring_latency, chain.ring_num, chain.ring_den))))


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
    chain, parts = divider.chain, []
    later = sum(piece.team for piece in pieces)
    for begin, end, c, r in pieces:
        runs = chain.in_flight or -(-later // r)
        need = chain.fixed[end] - chain.fixed[begin] + (runs - 1) * (chain.kept[end] - chain.kept[begin])
        parts.append((order[begin:end], c, r, bool(need > chain.capacity[c])))
        later -= r
    return division_into(problem, nodes, divider.period(pieces), parts)
