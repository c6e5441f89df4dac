"""Live memory of devices along a sequence of tasks: what the memory model `peak` leaves room for.

A device that runs its tasks in a topological sequence holds the output of each from the task's position to that of its
last consumer, and scratch at the task's own position. If that fits at every position, with the resident bytes of all
its tasks, some schedule in this sequence fits: every task waits until what is to be freed before it is freed
(`live_memory`). The rule is sufficient, not necessary: an output that only another device needs is freed sooner.

The engine keeps the profile of each device in a segment tree over positions (`memory.hpp`). With many devices
neighbouring positions share a leaf, as if they were one; this counts too much, never too little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Int, by_index, inverse

WORDS = 2**25
"""Maximum number of numbers in the trees of all devices: 256 MiB."""


class Live(NamedTuple):
    """What groups hold over a sequence of positions; g groups, r rows, each an output or the scratch of a task."""

    on: bool
    """Whether live memory counts. Otherwise the arrays are empty, and a group holds all its memory at once."""
    leaves: int
    """Leaves of each tree, a power of two."""
    row: Int
    """(g + 1,) the rows of group k are row[k]:row[k + 1]. With `reserved`, a row may also be a reservation."""
    first: Int
    last: Int
    output: Int
    scratch: Int
    """(r,) `output` bytes are held in the leaves first..last, `scratch` bytes in leaf `first`."""
    peak: Int
    """(g,) most bytes of the group at one position, without resident ones."""


def no_profile() -> Live:
    """Return what stands for the memory model `sum`."""
    nothing = np.zeros(0, dtype=np.int64)
    return Live(False, 0, nothing, nothing, nothing, nothing, nothing, nothing)


def make_live(
    group: Int, n_groups: int, output: Int, scratch: Int, edge_source: Int, edge_target: Int, sequence: Int, m: int
) -> Live:
    """Return what groups hold if tasks run in `sequence` (n,), a topological order, for m devices.

    `group`, `output` and `scratch` (n,) are those of the tasks.
    """
    n = len(sequence)
    position = inverse(sequence)
    last = position.copy()
    np.maximum.at(last, edge_source, position[edge_target])
    shift = 0
    while 2 * m * (1 << (max(n - 1, 0) >> shift).bit_length()) > WORDS and n >> shift > 1:
        shift += 1
    held = np.flatnonzero(output + scratch > 0)
    held = held[np.argsort(group[held], kind="stable")]
    row = np.searchsorted(group[held], np.arange(n_groups + 1)).astype(np.int64)
    leaves = 1 << (max(n - 1, 0) >> shift).bit_length()
    columns = position[held] >> shift, last[held] >> shift, output[held], scratch[held]
    return Live(True, leaves, row, *columns, _peaks(group[held], n_groups, *columns))


def reserved(live: Live, group: Int, sequence: Int) -> Live:
    """Return what groups hold if each reserves memory from its first task in `sequence` (n,) to its last.

    `group` (n,) is that of each task. In all leaves between these tasks a group holds at least its largest output and
    its largest scratch: what its own outputs and scratch leave of this amount is added as rows.
    """
    n, g = len(sequence), len(live.peak)
    leaf = np.arange(n) * live.leaves // (1 << max(n - 1, 0).bit_length())
    first = by_index(np.minimum, group[sequence], leaf, g, n)
    last = by_index(np.maximum, group[sequence], leaf, g, -1)
    rows = [(np.repeat(np.arange(g), np.diff(live.row)), live.first, live.last, live.output, live.scratch)]
    for k in np.flatnonzero((last > first) & (np.diff(live.row) > 0)).tolist():
        own = slice(live.row[k], live.row[k + 1])
        begin, end, output, scratch = live.first[own], live.last[own] + 1, live.output[own], live.scratch[own]
        ends = np.unique(np.concatenate([begin, begin + 1, end, [first[k], last[k] + 1]]))
        held = by_index(np.add, np.searchsorted(ends, begin), output + scratch, len(ends))
        np.subtract.at(held, np.searchsorted(ends, begin + 1), scratch)
        np.subtract.at(held, np.searchsorted(ends, end), output)
        missing = output.max() + scratch.max() - np.cumsum(held)
        free = np.flatnonzero((missing > 0) & (ends >= first[k]) & (ends <= last[k]))
        none = np.zeros(len(free), dtype=np.int64)
        rows.append((none + k, ends[free], ends[free + 1] - 1, missing[free], none))
    owner, *columns = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[order], np.arange(g + 1)).astype(np.int64)
    begin, end, output, scratch = (column[order] for column in columns)
    return Live(
        True, live.leaves, start, begin, end, output, scratch, _peaks(owner[order], g, begin, end, output, scratch)
    )


def total_peak(live: Live) -> int:
    """Return the most bytes that all groups hold at one position, without resident ones."""
    return int(
        _peaks(np.zeros(len(live.first), dtype=np.int64), 1, live.first, live.last, live.output, live.scratch)[0]
    )


def _peaks(owner: Int, n_groups: int, first: Int, last: Int, output: Int, scratch: Int) -> Int:
    """Return the most bytes (g,) that each group holds at one position; `owner` (r,) are the groups of the rows."""
    owner, position = np.tile(owner, 4), np.concatenate([first, last + 1, first, first + 1])
    change = np.concatenate([output, -output, scratch, -scratch])
    # What is freed at a position is freed first. After the last position of a group the sum is 0 again.
    order = np.lexsort((change, position, owner))
    return by_index(np.maximum, owner[order], np.cumsum(change[order]), n_groups)
