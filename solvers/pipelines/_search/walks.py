"""Run the local search of a pipeline: its coolings, its penalty, and its number of moves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.kernels import prepared, runs_compiled

from .moves import COST, KNOWN, OVER, WEIGHT, anneal, assess, rebuild
from .placements import Point, View, new_state, state_point


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters of the search."""

    move: float = 0.6e-6  # seconds of a move, apart from its items
    device: float = 12e-9  # seconds of a move for each device
    item: float = 8e-9  # seconds of a move for each item that a unit touches, and each device
    plain: float = 100.0  # factor of plain Python
    chunk: float = 0.05  # seconds between two checks whether to stop
    hot: tuple[float, ...] = (0.3, 1.0, 0.1, 1.0)  # first temperatures of the coolings, times the number of units
    cold: float = 1e-3  # last temperature, divided by the first
    rise: float = 1.3  # factor of the penalty after a chunk that ends above the capacities
    fall: float = 0.9


TUNING = Tuning()


def moves_in(view: View, seconds: float, *, plain: bool = False) -> int:
    """Estimate the moves that a core tries in a few seconds."""
    units = view.units
    m = len(units.label)
    degree = len(units.touched) / max(len(units.fixed), 1)
    each = TUNING.move + m * (TUNING.device + TUNING.item * degree)
    return int(seconds / (each * (TUNING.plain if plain else 1.0)))


class Walk:
    """A local search from a placement; `point` is the best placement so far."""

    def __init__(self, view: View, start: Point, seed: int) -> None:
        self.view, self.point = view, start
        self.state = new_state(view, start, seed)
        self.tried = 0

    def _assess(self) -> None:
        self.state.real[COST] = assess(self.view.units, self.state)

    def _return(self) -> None:
        """Continue from the best state."""
        state = self.state
        if state.number[KNOWN]:
            state.place[:], state.home[:] = state.best_place, state.best_home
            state.leader[:], state.again[:] = state.best_leader, state.best_again
            rebuild.select(len(state.place) * len(state.leader))(self.view.units, state)
        self._assess()

    def cool(self, moves: int, hot: float, stopped: Callable[[], bool]) -> bool:
        """Cool once from the best state; return whether it ended."""
        state, units = self.state, self.view.units
        self._return()
        step = anneal.select(moves * 40, chunked=True)
        given, held = prepared(step, units), prepared(step, state)
        size, done = max(moves_in(self.view, TUNING.chunk), 1), 0
        cold = hot * TUNING.cold
        while done < moves:
            if stopped():
                return False
            end = min(done + size, moves)
            part = done
            while part < end:
                until = end
                if not runs_compiled(step):
                    until = min(end, part + max(moves_in(self.view, TUNING.chunk, plain=True), 1))
                step(given, held, part, until, moves, hot, cold)
                part = until
                if stopped():
                    return False
            self.tried += end - done
            done = end
            factor = TUNING.rise if state.number[OVER] > 0 else TUNING.fall
            state.real[WEIGHT] = float(np.clip(state.real[WEIGHT] * factor, 1e-3, 1e3))
            self._assess()
        return True

    def news(self) -> Point | None:
        """Return the best placement if it is better than all before."""
        if not self.state.number[KNOWN]:
            return None
        found = state_point(self.view, self.state)
        if found is None or found.period >= self.point.period:
            return None
        self.point = found
        return found


def coolings(view: View, moves: int) -> Iterator[tuple[int, float]]:
    """Yield moves and first temperatures of coolings, each longer than the last."""
    share = np.array([1.0, 2.0, 4.0, 8.0])
    for part, hot in zip(share / share.sum(), TUNING.hot, strict=True):
        yield max(math.ceil(moves * part), 1), hot / max(len(view.units.fixed), 8)
