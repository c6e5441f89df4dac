"""Live memory of devices along a sequence of tasks: what the memory model `peak` leaves room for.

A device that runs its tasks in a topological sequence holds the output of each from the task's position to that of its
last consumer, and scratch at the task's own position. If that fits at every position, with the resident bytes of all
its tasks, some schedule in this sequence fits: every task waits until what is to be freed before it is freed
(`live_memory`). The rule is sufficient, not necessary: an output that only another device needs is freed sooner.

The profile of a device is a segment tree over positions, in one row of an array: a leaf for each position, and in each
node what all positions below it have in common, such that the greater of two siblings is 0 and the root is the peak.
A change and a maximum of an interval take O(log n). With many devices neighbouring positions share a leaf, as if they
were one; this counts too much, never too little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

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
    position = np.empty(n, dtype=np.int64)
    position[sequence] = np.arange(n)
    last = position.copy()
    np.maximum.at(last, edge_source, position[edge_target])
    shift = 0
    while 2 * m * (1 << (max(n - 1, 0) >> shift).bit_length()) > WORDS and n >> shift > 1:
        shift += 1
    held = np.flatnonzero(output + scratch > 0)
    held = held[np.argsort(group[held], kind="stable")]
    row = np.searchsorted(group[held], np.arange(n_groups + 1)).astype(np.int64)
    leaves = 1 << (max(n - 1, 0) >> shift).bit_length()
    peak = np.zeros(n_groups, dtype=np.int64)
    live = Live(True, leaves, row, position[held] >> shift, last[held] >> shift, output[held], scratch[held], peak)
    fill_peaks.select(20 * len(held))(live, np.zeros(2 * leaves, dtype=np.int64))
    return live


def reserved(live: Live, group: Int, sequence: Int) -> Live:
    """Return what groups hold if each reserves memory from its first task in `sequence` (n,) to its last.

    `group` (n,) is that of each task. In all leaves between these tasks a group holds at least its largest output and
    its largest scratch: what its own outputs and scratch leave of this amount is added as rows.
    """
    n, g = len(sequence), len(live.peak)
    leaf = np.arange(n) * live.leaves // (1 << max(n - 1, 0).bit_length())
    first, last = np.full(g, n), np.full(g, -1)
    np.minimum.at(first, group[sequence], leaf)
    np.maximum.at(last, group[sequence], leaf)
    rows = [(np.repeat(np.arange(g), np.diff(live.row)), live.first, live.last, live.output, live.scratch)]
    for k in np.flatnonzero((last > first) & (np.diff(live.row) > 0)).tolist():
        own = slice(live.row[k], live.row[k + 1])
        begin, end, output, scratch = live.first[own], live.last[own] + 1, live.output[own], live.scratch[own]
        ends = np.unique(np.concatenate([begin, begin + 1, end, [first[k], last[k] + 1]]))
        held = np.zeros(len(ends), dtype=np.int64)
        np.add.at(held, np.searchsorted(ends, begin), output + scratch)
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
    wider = Live(True, live.leaves, start, begin, end, output, scratch, np.zeros(g, dtype=np.int64))
    fill_peaks.select(20 * len(order))(wider, np.zeros(2 * live.leaves, dtype=np.int64))
    return wider


def make_trees(live: Live, home: Int, m: int) -> Int:
    """Return the trees (m, 2 leaves) of m devices; groups with a home (g,), -1 for none, are counted there."""
    if not live.on:
        return np.zeros((0, 0), dtype=np.int64)
    trees = np.zeros((m, 2 * live.leaves), dtype=np.int64)
    if (home >= 0).any():
        count_homes.select(20 * len(live.first))(live, trees, home)
    return trees


def total_peak(live: Live) -> int:
    """Return the most bytes that all groups hold at one position, without resident ones."""
    return int(make_trees(live, np.zeros(len(live.peak), dtype=np.int64), 1)[0, 1])


@kernel(allocates=False, inline=True)
def level_pair(tree: Int, at: int) -> None:
    """Move what a node and its sibling have in common to their parent."""
    most = max(tree[at], tree[at ^ 1])
    tree[at] -= most
    tree[at ^ 1] -= most
    tree[at >> 1] += most


@kernel(level_pair, allocates=False)
def add_bytes(tree: Int, first: int, last: int, amount: int) -> None:
    """Add an amount to the leaves first..last."""
    low, high = len(tree) // 2 + first, len(tree) // 2 + last
    tree[low] += amount
    if low != high:
        tree[high] += amount
    while low >> 1 != high >> 1:
        if low & 1 == 0:
            tree[low + 1] += amount
        if high & 1 == 1:
            tree[high - 1] += amount
        level_pair(tree, low)
        level_pair(tree, high)
        low >>= 1
        high >>= 1
    while low > 1:
        level_pair(tree, low)
        low >>= 1


@kernel(allocates=False)
def most_bytes(tree: Int, first: int, last: int) -> int:
    """Return the greatest of the leaves first..last."""
    low, high = len(tree) // 2 + first, len(tree) // 2 + last
    left, right = tree[low], tree[high]
    while low >> 1 != high >> 1:
        if low & 1 == 0:
            left = max(left, tree[low + 1])
        if high & 1 == 1:
            right = max(right, tree[high - 1])
        low >>= 1
        high >>= 1
        left += tree[low]
        right += tree[high]
    most = max(left, right)
    while low > 1:
        low >>= 1
        most += tree[low]
    return int(most)


@kernel(allocates=False)
def fullest(tree: Int) -> int:
    """Return the first leaf with the greatest number."""
    leaves = len(tree) // 2
    at = 1
    while at < leaves:
        at = 2 * at if tree[2 * at] == 0 else 2 * at + 1
    return at - leaves


@kernel(add_bytes, allocates=False)
def count_group(live: Live, tree: Int, g: int, sign: int) -> None:
    """Add what group g holds to the tree of a device (sign 1), or take it away (-1)."""
    for k in range(live.row[g], live.row[g + 1]):
        if live.output[k] > 0:
            add_bytes(tree, live.first[k], live.last[k], sign * live.output[k])
        if live.scratch[k] > 0:
            add_bytes(tree, live.first[k], live.first[k], sign * live.scratch[k])


@kernel(count_group, allocates=False)
def count_homes(live: Live, trees: Int, home: Int) -> None:
    """Add all groups with a home (g,) to the trees of these devices."""
    for g in range(len(home)):
        if home[g] >= 0:
            count_group(live, trees[home[g]], g, 1)


@kernel(count_group, allocates=False)
def fill_peaks(live: Live, tree: Int) -> None:
    """Fill `live.peak`; `tree` is empty, and empty again afterwards."""
    for g in range(len(live.peak)):
        low, high = live.row[g], live.row[g + 1]
        if high == low + 1:
            live.peak[g] = live.output[low] + live.scratch[low]
        elif high > low:
            count_group(live, tree, g, 1)
            live.peak[g] = tree[1]
            count_group(live, tree, g, -1)


@kernel(count_group, most_bytes, allocates=False)
def holds(live: Live, tree: Int, g: int, room: int) -> bool:
    """Return whether a device has room for group g; `room` are its bytes beyond all resident ones, also those of g."""
    if tree[1] + live.peak[g] <= room:
        return True
    if tree[1] > room:
        return False
    low, high = live.row[g], live.row[g + 1]
    if high == low + 1:
        output, scratch = live.output[low], live.scratch[low]
        most = most_bytes(tree, live.first[low], live.last[low]) + output
        if most > room:
            return False
        return bool(
            most + scratch <= room or most_bytes(tree, live.first[low], live.first[low]) + output + scratch <= room
        )
    count_group(live, tree, g, 1)
    fits = tree[1] <= room
    count_group(live, tree, g, -1)
    return bool(fits)
