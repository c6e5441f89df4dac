"""Buffers with lifetimes, sizes, alignments and given offsets."""

from __future__ import annotations

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
