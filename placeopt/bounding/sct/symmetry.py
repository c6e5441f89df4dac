"""Tasks that look the same, found by colour refinement and merged; why that is exact stands in
`placeopt.bounding.sct.core`.

Colours begin with what is cheap and tells most apart (lengths, and the longest paths before and after, with and without
what is hidden), and are refined by those of the neighbours, hashed, until their number stays the same: O(e log e) a
round, few rounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placeopt.bounding.sct.core import Core, heads, ordered, tails
from placeopt.model.arrays import Bool, Int

Hash = NDArray[np.uint64]

WORTH = 0.9
"""Tasks are merged only where no more than this part of them is left."""


def merged(core: Core) -> tuple[Core, Int]:
    """The core with one task for each class, and (e,) the new number of each edge; as it is where little is gained."""
    kind = _labels(core.fixed, core.hidden, core.out_rival, core.in_rival)
    colour = _stable(core, kind)
    count = int(colour.max()) + 1
    if count > WORTH * core.n_tasks:
        return core, np.arange(core.n_edges)
    return _quotient(core, colour, count, kind) or (core, np.arange(core.n_edges))


def _stable(core: Core, kind: Int) -> Int:
    """(n,) colours that refinement leaves as they are."""
    most = core.fixed + core.hidden
    paths = (side(core, ticks) for ticks in (core.fixed, most) for side in (heads, tails))
    colour = _labels(core.length, *paths)
    count = int(colour.max()) + 1
    edge = _mixed(kind.astype(np.uint64) + np.uint64(1 << 40))
    while count < core.n_tasks:
        own = _mixed(colour.astype(np.uint64))
        mixed = _mixed(own)
        # Sums modulo 2^64 do not depend on the order of the neighbours.
        np.add.at(mixed, core.source, _mixed(own[core.target] + edge))
        np.add.at(mixed, core.target, _mixed(own[core.source] ^ edge))
        colour = _labels(mixed)
        if int(colour.max()) + 1 == count:
            break
        count = int(colour.max()) + 1
    return colour


def _quotient(core: Core, colour: Int, count: int, kind: Int) -> tuple[Core, Int] | None:
    """One task a colour and one edge for each kind between two; None if tasks of a colour differ after all."""
    _, first, size = np.unique(colour, return_index=True, return_counts=True)
    # Classes in the order of their depth: an edge leads to a deeper task.
    depth = heads(Core(np.ones_like(core.length), *_edges(core)), np.zeros(core.n_edges))
    if (core.length[first][colour] != core.length).any() or (depth[first][colour] != depth).any():
        return None
    rank = np.empty(count, dtype=np.int64)
    rank[np.lexsort((first, depth[first]))] = np.arange(count)
    task = rank[colour]
    edge = _labels(task[core.source], task[core.target], kind)
    outs, ins = (
        _each(edge, core.source, task, size[np.argsort(rank)]),
        _each(edge, core.target, task, size[np.argsort(rank)]),
    )
    if outs is None or ins is None:
        return None
    sample = np.unique(edge, return_index=True)[1]
    length = np.empty(count, dtype=np.int64)
    length[rank] = core.length[first]
    left = Core(
        length=length,
        source=task[core.source[sample]],
        target=task[core.target[sample]],
        fixed=core.fixed[sample],
        hidden=core.hidden[sample],
        out_rival=core.out_rival[sample],
        in_rival=core.in_rival[sample],
        out_weight=outs,
        in_weight=ins,
    )
    by_ends = np.lexsort((left.target, left.source))
    number = np.empty(len(by_ends), dtype=np.int64)
    number[by_ends] = np.arange(len(by_ends))
    return ordered(left, by_ends), number[edge]


def _edges(core: Core) -> tuple[Int, Int, Int, Int, Bool, Bool, Int, Int]:
    return (
        core.source,
        core.target,
        core.fixed,
        core.hidden,
        core.out_rival,
        core.in_rival,
        core.out_weight,
        core.in_weight,
    )


def _each(edge: Int, end: Int, task: Int, size: Int) -> Int | None:
    """(kinds,) how many edges of each kind every task at that end has; None where they differ in that."""
    kinds = int(edge.max()) + 1
    pairs, number = np.unique(edge * len(task) + end, return_counts=True)
    of = pairs // len(task)
    most = np.zeros(kinds, dtype=np.int64)
    np.maximum.at(most, of, number)
    members = np.bincount(of, minlength=kinds)
    sample = np.unique(edge, return_index=True)[1]
    if (number != most[of]).any() or (members != size[task[end[sample]]]).any():
        return None
    return most


def _labels(*columns: NDArray[np.generic]) -> Int:
    """Numbers 0.. that are equal where all columns are."""
    label = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        own = np.unique(column, return_inverse=True)[1]
        label = np.unique(label * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
    return label


def _mixed(value: Hash) -> Hash:
    """Well mixed bits: the finaliser of S. Vigna's SplitMix64 generator."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
