"""Binary heaps in preallocated arrays, for kernels that allocate nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

Rank = NDArray[np.int32]


class Heaps(NamedTuple):
    """m binary heaps, one in each column, such that only the rows in use are touched."""

    key: Int
    """(n, m) int64: entries are ordered by key, then by item."""
    item: Rank
    """(n, m) int32: a task or its rank."""
    size: Int
    """(m,) number of entries in each heap."""


def make_heaps(n: int, m: int) -> Heaps:
    """Return m empty heaps for up to n entries each."""
    return Heaps(np.empty((n, m), dtype=np.int64), np.empty((n, m), dtype=np.int32), np.zeros(m, dtype=np.int64))


@kernel(allocates=False, inline=True)
def push(heaps: Heaps, d: int, key: int, item: int) -> None:
    """Add an entry to heap d."""
    at = heaps.size[d]
    heaps.size[d] += 1
    while at > 0:
        up = (at - 1) >> 1
        above = heaps.key[up, d]
        if above < key or (above == key and heaps.item[up, d] < item):
            break
        heaps.key[at, d] = above
        heaps.item[at, d] = heaps.item[up, d]
        at = up
    heaps.key[at, d] = key
    heaps.item[at, d] = item


@kernel(allocates=False, inline=True)
def pop(heaps: Heaps, d: int) -> None:
    """Remove the head of heap d."""
    heaps.size[d] -= 1
    last = heaps.size[d]
    key, item = heaps.key[last, d], heaps.item[last, d]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= last:
            break
        least, first = heaps.key[down, d], heaps.item[down, d]
        if down + 1 < last:
            other, second = heaps.key[down + 1, d], heaps.item[down + 1, d]
            if other < least or (other == least and second < first):
                least, first = other, second
                down += 1
        if key < least or (key == least and item < first):
            break
        heaps.key[at, d] = least
        heaps.item[at, d] = first
        at = down
    heaps.key[at, d] = key
    heaps.item[at, d] = item
