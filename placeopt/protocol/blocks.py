"""What a solver that cuts a graph into blocks has proved about them, for certificates."""

from __future__ import annotations

from dataclasses import dataclass

from placeopt.model.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class BlockBound:
    """A lower bound of the time between the ends of two cuts.

    Attributes
    ----------
    block
        The number of the block.
    start, end
        Devices of its first and its last cut, -1 for a missing one.
    problem
        The block as a problem: the first cut takes no time, and both run on these devices only.
    ticks
        The bound of its makespan; None if it has no schedule.
    """

    block: int
    start: int
    end: int
    problem: Problem
    ticks: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks between cuts, by tasks, and bounds that are better than their critical paths."""

    cuts: tuple[int, ...]
    inner: tuple[tuple[int, ...], ...]
    bounds: tuple[BlockBound, ...]
