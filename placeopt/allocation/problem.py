"""Buffers with lifetimes, sizes, alignments and given offsets; as the engine takes them, in sections of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Int, names, whole_numbers

MOST = 2**60
"""The largest amount of a buffer."""

MOST_IN_ALL = 2**61
"""The limit of the sum of all sizes, twice the alignments, and given offsets."""


@dataclass(frozen=True, eq=False)
class Buffers:
    """Buffers to place in one memory.

    Attributes
    ----------
    names
        Names of the n buffers.
    lower, upper
        (n,) lifetimes: a buffer is live in [lower, upper).
    size
        (n,) bytes, at least 1.
    alignment
        (n,) offsets are multiples of it.
    fixed
        n given offsets in bytes; None for a buffer to place.
    """

    names: tuple[str, ...]
    lower: Int
    upper: Int
    size: Int
    alignment: Int
    fixed: tuple[int | None, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Buffers: {len(self):,} with {sum(self.size.tolist()):,} bytes in all>"

    def part(self, members: Int) -> Buffers:
        """Return the problem with some of the buffers."""
        chosen = members.tolist()
        return Buffers(
            tuple(self.names[k] for k in chosen), self.lower[members], self.upper[members], self.size[members],
            self.alignment[members], tuple(self.fixed[k] for k in chosen),
        )  # fmt: skip


def build_buffers(
    *,
    lower: object,
    upper: object,
    size: object,
    alignment: object = None,
    fixed: Sequence[int | None] | None = None,
    buffer_names: Sequence[str] | None = None,
    notes: tuple[str, ...] = (),
) -> Buffers:
    """Build a problem from arrays; see `Buffers`. The names are 0, 1, 2, ... by default, alignments 1.

    Raises
    ------
    UsageError
        If an array has a wrong shape or value, or amounts exceed 2^61 in all.
    """
    sizes = whole_numbers("size", size, None, "buffers", least=1, most=MOST)
    if sizes.ndim != 1:
        raise UsageError(f"size: has shape {sizes.shape}; expected one axis: buffers")
    n = len(sizes)
    begin = whole_numbers("lower", lower, (n,), "buffers", least=-MOST, most=MOST)
    end = whole_numbers("upper", upper, (n,), "buffers", least=-MOST, most=MOST)
    if (end <= begin).any():
        k = int(np.flatnonzero(end <= begin)[0])
        raise UsageError(f"upper[{k}] is {end[k]} and lower[{k}] is {begin[k]}; expected a lifetime of 1 or longer")
    aligned = whole_numbers("alignment", alignment, (n,), "buffers", default=1, least=1, most=MOST)
    given = _fixed(fixed, aligned)
    called = tuple(map(str, range(n))) if buffer_names is None else names("buffer_names", buffer_names, count=n)
    total = sum(sizes.tolist()) + 2 * sum(aligned.tolist()) + sum(offset or 0 for offset in given)
    if total >= MOST_IN_ALL:
        raise UsageError(f"sizes, alignments and given offsets are {total:,} in all; expected less than 2^61")
    return Buffers(called, begin, end, sizes, aligned, given, notes)


def _fixed(given: Any, alignment: Int) -> tuple[int | None, ...]:
    n = len(alignment)
    if given is None:
        return (None,) * n
    if len(given) != n:
        raise UsageError(f"fixed: {len(given)} entries; expected {n}, None for buffers to place")
    found: list[int | None] = []
    for k, offset in enumerate(given):
        if offset is not None:
            value = int(whole_numbers(f"fixed[{k}]", [offset], (1,), "an offset", most=MOST)[0])
            if value % int(alignment[k]):
                raise UsageError(f"fixed[{k}] is {value}; expected a multiple of its alignment, {alignment[k]}")
            found.append(value)
        else:
            found.append(None)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """Buffers by section; amounts in units.

    Only times matter at which a set of live buffers is included in no other. They are numbered in order; a buffer is
    live in the sections [first, last). All amounts are multiples of the unit, all offsets of `grain` units.
    """

    first: Int
    last: Int
    size: Int
    alignment: Int
    fixed: Int  # NONE for buffers to place
    unit: int
    grain: int


NONE = -1


def sections_of(problem: Buffers) -> Sections:
    """Return the sections of a problem with at least one buffer."""
    times, place = np.unique(np.concatenate([problem.lower, problem.upper]), return_inverse=True)
    n = len(problem)
    begins, ends = np.zeros((2, len(times)), dtype=np.bool_)
    begins[place[:n]], ends[place[n:]] = True, True
    # A section begins where a buffer begins after another one ended, or at the first time.
    number = np.zeros(len(times), dtype=np.int64)  # of the section of buffers that begin at a time
    current, ended = -1, True
    for at in range(len(times)):
        ended = ended or bool(ends[at])
        if begins[at]:
            current += ended
            ended = False
        number[at] = current
    after = np.concatenate([[-1], number[:-1]]) + 1  # of the section that follows those before a time
    fixed = [NONE if offset is None else offset for offset in problem.fixed]
    aligned = problem.alignment.tolist()
    unit = math.gcd(*problem.size.tolist(), *(a for a in aligned if a > 1), *(offset for offset in fixed if offset > 0))
    steps = np.array([max(a // unit, 1) for a in aligned], dtype=np.int64)
    given = np.array([offset if offset < 0 else offset // unit for offset in fixed], dtype=np.int64)
    grain = math.gcd(*steps.tolist(), *(given[given > 0].tolist()))
    return Sections(
        first=number[place[:n]], last=after[place[n:]], size=problem.size // unit, alignment=steps, fixed=given,
        unit=unit, grain=grain,
    )  # fmt: skip


def components(problem: Buffers) -> list[Int]:
    """Return sets of buffers that share no time with those of other sets, in the order of their begin."""
    if not len(problem):
        return []
    order = np.argsort(problem.lower, kind="stable")
    reached = np.maximum.accumulate(problem.upper[order])
    borders = np.flatnonzero(problem.lower[order][1:] >= reached[:-1]) + 1
    return np.split(order, borders)
