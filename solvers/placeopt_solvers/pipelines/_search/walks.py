"""Run the local search of a pipeline: its cycles, its coolings, its penalty, and its number of moves.

A cycle merges units that the best placement keeps together (`levels`), and cools at each level, the coarsest first,
each from the best placement so far. So moves of the coarse levels take along what belongs together, and those of the
fine ones balance the loads. Cycles differ in their temperatures and in the norm that is the cost. The states and moves
are in the engine (`stages.hpp`, `stage_moves.cpp`).

The cost of a state is the norm of the periods that the devices allow,

    (sum over devices d of (load[d] / team[d] / scale)^p)^(1 / p)

which is close to the largest of them but also counts the others, and a penalty for memory that exceeds capacities. The
greater p, the less do the others count: with p = 16, sixteen equal loads cost as much as one that is 19% larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int

from .levels import coarser
from .placements import Point, View, new_state, state_point


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters of the search."""

    move: float = 0.4e-6  # seconds of a move, apart from its items
    device: float = 10e-9  # seconds of a move for each device
    item: float = 8e-9  # seconds of a move for each item that a unit touches, and each device
    near: int = 1_000_000  # bytes of a state that caches hold
    far: float = 3.0  # factor of larger states
    chunk: float = 0.05  # seconds between two changes of the penalty
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


def moves_in(view: View, seconds: float) -> int:
    """Estimate the moves that a core tries in a few seconds."""
    return int(seconds / seconds_of(view))


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
        planned = moves_in(self.view, seconds) / len(TUNING.cycles)
        repeats = int(np.clip(planned / (TUNING.again * len(self.best.place)), 1, TUNING.repeats))
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
                moves = max(moves_in(level.view, each / len(levels)), 1)
                scaled = hot * len(self.view.units.label) / len(start.place)
                tried, found = cooled(level.view, start, self.seed + cycle, squares, moves, scaled, stopped)
                self.tried += tried
                if found is not None and found.better(self.best):
                    self.best = found._replace(place=found.place[level.label])
            if self.best is not kept:
                yield self.best


def cooled(
    view: View, start: Point, seed: int, squares: int, moves: int, hot: float, stopped: Callable[[], bool]
) -> tuple[int, Point | None]:
    """Try moves at temperatures that fall from `hot` on; return how many, and the best placement whose memory suffices.

    The cost is the norm with the power 2^squares.
    """
    stop, size, tried = engine.Stop(stopped), max(moves_in(view, TUNING.chunk), 1), 0
    state: engine.StageSearch | None = None
    with suppress(engine.StoppedError):
        state = new_state(view, start, seed, squares, stop)
        while tried < moves and not stopped():
            end = min(tried + size, moves)
            state.anneal(tried, end, moves, hot, hot * TUNING.cold, stop)
            tried = end
            factor = TUNING.rise if state.over > 0 else TUNING.fall
            state.weight = float(np.clip(state.weight * factor, 1e-3, 1e3))
    return tried, state_point(view, state) if state is not None and state.known else None
