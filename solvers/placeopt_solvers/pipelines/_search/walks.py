"""Run the local search of a pipeline: its cycles, its coolings, its penalty, and its number of moves.

A cycle merges units that the best placement keeps together (`levels`), and cools at each level, the coarsest first,
each from the best placement so far. So moves of the coarse levels take along what belongs together, and those of the
fine ones balance the loads. Cycles differ in their temperatures and in the norm that is the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.kernels import prepared, runs_compiled
from placeopt.model.arrays import Int

from .levels import coarser
from .moves import COST, KNOWN, OVER, SQUARES, WEIGHT, anneal, assess
from .placements import Point, View, new_state, state_point


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters of the search."""

    move: float = 0.4e-6  # seconds of a move, apart from its items
    device: float = 10e-9  # seconds of a move for each device
    item: float = 8e-9  # seconds of a move for each item that a unit touches, and each device
    near: int = 1_000_000  # bytes of a state that caches hold
    far: float = 3.0  # factor of larger states
    plain: float = 100.0  # factor of plain Python
    chunk: float = 0.05  # seconds between two checks whether to stop
    # First temperature of each cycle, times the units per device, and the logarithm of the power of the norm.
    cycles: tuple[tuple[float, int], ...] = (
        (0.03, 7), (0.01, 7), (0.003, 6), (0.1, 5), (0.01, 8), (0.003, 4), (0.03, 8), (0.01, 5),
    )  # fmt: skip
    again: int = 2000  # moves per unit of a cycle from which cycles are repeated
    repeats: int = 4  # most repetitions
    levels: tuple[tuple[int, int], ...] = ((400, 96), (80, 32), (30, 16))  # units per device, and least units of one
    cold: float = 1e-3  # last temperature, divided by the first
    rise: float = 1.3  # factor of the penalty after a chunk that ends above the capacities
    fall: float = 0.9


TUNING = Tuning()


def seconds_of(view: View) -> float:
    """Estimate the seconds of a core for a move."""
    units = view.units
    m = len(units.label)
    each = TUNING.move + m * (TUNING.device + TUNING.item * len(units.touched) / max(len(units.fixed), 1))
    return each * (TUNING.far if 8 * m * len(units.producer) > TUNING.near else 1.0)


def moves_in(view: View, seconds: float, *, plain: bool = False) -> int:
    """Estimate the moves that a core tries in a few seconds."""
    return int(seconds / (seconds_of(view) * (TUNING.plain if plain else 1.0)))


class Level(NamedTuple):
    """A view and its unit (k,) of each of the finest units."""

    view: View
    label: Int


def levels_of(view: View, place: Int) -> list[Level]:
    """Return the levels of a cycle, the finest one first; units are merged with others in the same place."""
    k, m = len(view.units.fixed), len(view.units.label)
    found = [Level(view, np.arange(k))]
    for most, parts in TUNING.levels:
        last, heaviest = found[-1], float(view.units.computing.mean(axis=1).sum()) / (m * parts)
        if len(last.view.units.fixed) > 1.5 * most * m:
            merged = coarser(last.view, grouped(last.label, place), most * m, heaviest)
            if merged is not None:
                found.append(Level(merged[0], merged[1][last.label]))
    return found


def grouped(label: Int, value: Int) -> Int:
    """Return the value of each merged unit, whose members have equal values."""
    found = np.zeros(int(label.max(initial=-1)) + 1, dtype=np.int64)
    found[label] = value
    return found


class Search:
    """Cycles from a placement; `tried` counts moves."""

    def __init__(self, view: View, start: Point, seed: int) -> None:
        self.view, self.best, self.seed, self.tried = view, start, seed, 0

    def run(self, seconds: float, stopped: Callable[[], bool]) -> Iterator[Point]:
        """Yield the best placement after each cycle that found a better one.

        The number of moves depends only on the problem and the planned seconds, which are about the time of a core.
        """
        moves = moves_in(self.view, seconds) / len(TUNING.cycles)
        repeats = int(np.clip(moves / (TUNING.again * len(self.best.place)), 1, TUNING.repeats))
        each = seconds / (repeats * len(TUNING.cycles))
        levels: list[Level] = []
        kept = None
        for cycle, (hot, squares) in enumerate(TUNING.cycles * repeats):
            if stopped():
                return
            if kept is not self.best:
                kept, levels = self.best, levels_of(self.view, self.best.place)
            for level in reversed(levels):
                if stopped():
                    break
                start = self.best._replace(place=grouped(level.label, self.best.place))
                walk = Walk(level.view, start, self.seed + cycle, squares)
                walk.cool(
                    max(moves_in(level.view, each / len(levels)), 1),
                    hot * len(self.view.units.label) / len(start.place),
                    stopped,
                )
                self.tried += walk.tried
                found = walk.best()
                if found is not None and found.better(self.best):
                    self.best = found._replace(place=found.place[level.label])
            if self.best is not kept:
                yield self.best


class Walk:
    """One cooling from a placement."""

    def __init__(self, view: View, start: Point, seed: int, squares: int) -> None:
        self.view = view
        self.state = new_state(view, start, seed)
        self.state.number[SQUARES] = squares
        self.tried = 0

    def cool(self, moves: int, hot: float, stopped: Callable[[], bool]) -> None:
        """Try moves at temperatures that fall from `hot` on."""
        state, units = self.state, self.view.units
        state.real[COST] = assess(units, state)
        step = anneal.select(moves * 40, chunked=True)
        given, held = prepared(step, units), prepared(step, state)
        size = max(moves_in(self.view, TUNING.chunk), 1)
        while self.tried < moves:
            end = min(self.tried + size, moves)
            part = self.tried
            while part < end:
                if stopped():
                    return
                until = end
                if not runs_compiled(step):
                    until = min(end, part + max(moves_in(self.view, TUNING.chunk, plain=True), 1))
                step(given, held, part, until, moves, hot, hot * TUNING.cold)
                part = until
            self.tried = end
            factor = TUNING.rise if state.number[OVER] > 0 else TUNING.fall
            state.real[WEIGHT] = float(np.clip(state.real[WEIGHT] * factor, 1e-3, 1e3))
            state.real[COST] = assess(units, state)

    def best(self) -> Point | None:
        """Return the best placement whose memory suffices."""
        return state_point(self.view, self.state) if self.state.number[KNOWN] else None
