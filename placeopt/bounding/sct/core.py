"""Exact reductions of the linear program, repeated as the proved lower bound rises.

    pruned       removes edges and tasks on no path longer than the bound, even with y = 0; then y = 0 is optimal
    freed        makes an edge without rivals at its producer and consumer a favourite: y = 1
    contracted   joins a task and its only consumer, whose only producer it is, if y is fixed on the edge between
    merged       merges equivalent tasks

Each keeps the larger of the optimum and the bound. For `pruned` this holds because a path with a removed task or edge
is at most as long as the bound for any y.

For `merged`, let the tasks be partitioned into classes, such that the tasks of a class have equal lengths and equal
numbers of edges of each kind from and to each class (an equitable partition). Average a feasible point over the tasks
of each class, and over the edges of each kind between two classes. All constraints still hold, so some optimum is
constant on classes: M. Grohe, K. Kersting, M. Mladenov, E. Selman, "Dimension reduction via colour refinement", ESA
2014, doi:10.1007/978-3-662-44777-2_42. The attention heads of a Transformer become one head: of 41,515 tasks, 1,375
remain. A merged edge represents `out_weight` edges of each producer and `in_weight` edges of each consumer:

    sum over rivals of out_weight y <= 1 at each producer, of in_weight y <= 1 at each consumer.

Colour refinement finds the partition in O(e log e) per round. Initial colours are lengths and longest paths before and
after each task, with and without the hidden delays; hashes of the neighbours' colours refine them until their number is
stable. Hashes may collide, so an exact check follows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from placeopt import engine
from placeopt.bounding.sct.program import SctProgram
from placeopt.model.arrays import Bool, Float, Int, by_index, inverse

GONE, FREE = -1, -2
"""In place of an edge index: the edge was removed with y = 0, or with y = 1."""

WORTH = 0.9
"""Tasks are merged only if at most this share of them remains."""


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """A program in solver form: all paths lead from the first task to the last; both have length 0."""

    length: Int  # (n,) in topological order
    # (e,) sorted by source, then target
    source: Int
    target: Int
    # (e,) as in `SctProgram`; hidden is 0 for edges that are not rivals
    fixed: Int
    hidden: Int
    out_rival: Bool
    in_rival: Bool
    # (e,) the number of edges that this edge represents, for each of its producers and of its consumers
    out_weight: Int
    in_weight: Int

    @property
    def n_tasks(self) -> int:
        """Number of tasks, the first and the last included."""
        return len(self.length)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.source)


def heads(core: Core, ticks: Float | Int) -> Float:
    """(n,) the longest path that ends just before each task, for these ticks (e,) of the edges."""
    steps = (ticks + core.length[core.source]).astype(np.float64)
    return engine.edge_paths(core.source, core.target, steps, core.n_tasks)


def tails(core: Core, ticks: Float | Int) -> Float:
    """(n,) the longest path that begins just after each task."""
    steps = (ticks + core.length[core.target]).astype(np.float64)
    return engine.edge_paths(core.source, core.target, steps, core.n_tasks, backwards=True)


def core_of(program: SctProgram) -> tuple[Core, Int]:
    """The core of a program, and (e,) the index of each of its edges in the core."""
    n = len(program.length)
    place = np.argsort(program.order) + 1
    hidden = np.where(program.out_rival | program.in_rival, program.hidden, 0)
    lone_out = np.bincount(program.source, minlength=n) == 0
    lone_in = np.bincount(program.target, minlength=n) == 0
    begins = np.flatnonzero(lone_in | (program.release > 0))
    ends = np.flatnonzero(lone_out | (program.tail > 0))
    counts = len(program.source), len(begins), len(ends)
    source = np.concatenate([place[program.source], np.zeros(counts[1], np.int64), place[ends]])
    target = np.concatenate([place[program.target], place[begins], np.full(counts[2], n + 1)])
    outer = np.zeros(counts[1] + counts[2], dtype=np.int64)
    length = np.zeros(n + 2, dtype=np.int64)
    length[place] = program.length
    core, number = _sorted_by_ends(
        Core(
            length=length,
            source=source,
            target=target,
            fixed=np.concatenate([program.fixed, program.release[begins], program.tail[ends]]),
            hidden=np.concatenate([hidden, outer]),
            out_rival=np.concatenate([program.out_rival & (hidden > 0), outer > 0]),
            in_rival=np.concatenate([program.in_rival & (hidden > 0), outer > 0]),
            out_weight=np.ones(sum(counts), dtype=np.int64),
            in_weight=np.ones(sum(counts), dtype=np.int64),
        )
    )
    core, became = _selected(core, _needed(core), np.ones(core.n_tasks, dtype=np.bool_))
    return core, became[number[: counts[0]]]


def _needed(core: Core) -> Bool:
    """(e,), all edges except releases and tails that other paths imply even if all hidden delays are saved."""
    last = core.n_tasks - 1
    needed = np.ones(core.n_edges, dtype=np.bool_)
    before, after = heads(core, core.fixed), tails(core, core.fixed)
    for outer, end, arrived in (
        (core.source == 0, core.target, core.fixed + (before + core.length)[core.source]),
        (core.target == last, core.source, core.fixed + (after + core.length)[core.target]),
    ):
        inner = np.zeros(core.n_tasks)
        np.maximum.at(inner, end[~outer], arrived[~outer])
        has = np.bincount(end[~outer], minlength=core.n_tasks) > 0
        needed &= ~outer | ~has[end] | (core.fixed > inner[end])
    return needed


def reduced(core: Core, bound: float) -> tuple[Core, Int]:
    """The core without what is irrelevant once `bound` is proved, and (e,) the new index of each edge."""
    core, edge = pruned(core, bound)
    for step in (freed, contracted):
        core, then = step(core)
        edge = composed(edge, then)
    return core, edge


def composed(first: Int, then: Int) -> Int:
    """The new index of each edge after two steps."""
    return np.where(first >= 0, then[np.maximum(first, 0)] if len(then) else GONE, first)


def pruned(core: Core, bound: float) -> tuple[Core, Int]:
    """Keep the edges and tasks on paths longer than the bound; the core is empty if there is no such path."""
    ticks = core.fixed + core.hidden
    before, after = heads(core, ticks), tails(core, ticks)
    through = before + core.length + after
    source, target = core.source, core.target
    kept = before[source] + core.length[source] + ticks + core.length[target] + after[target] > bound
    tasks = through > bound
    tasks[[0, -1]] = True
    return _selected(core, kept, tasks)


def _selected(core: Core, edges: Bool, tasks: Bool) -> tuple[Core, Int]:
    number = np.cumsum(tasks) - 1
    left = with_edges(core, edges)
    left = replace(left, length=core.length[tasks], source=number[left.source], target=number[left.target])
    return left, np.where(edges, np.cumsum(edges) - 1, GONE)


def freed(core: Core) -> tuple[Core, Int]:
    """Make edges without rivals favourites."""
    n = core.n_tasks
    outs = np.bincount(core.source, weights=core.out_weight * core.out_rival, minlength=n)[core.source]
    ins = np.bincount(core.target, weights=core.in_weight * core.in_rival, minlength=n)[core.target]
    out_rival, in_rival = core.out_rival & (outs > 1), core.in_rival & (ins > 1)
    free = (core.hidden > 0) & ~out_rival & ~in_rival
    left = replace(core, hidden=np.where(free, 0, core.hidden), out_rival=out_rival, in_rival=in_rival)
    return left, np.where(free, FREE, np.arange(core.n_edges))


def contracted(core: Core) -> tuple[Core, Int]:
    """Replace chains of tasks joined by edges without hidden delay by one task each."""
    n = core.n_tasks
    outs, ins = np.bincount(core.source, minlength=n), np.bincount(core.target, minlength=n)
    inner = (core.source > 0) & (core.target < n - 1) & (core.hidden == 0)
    series = inner & (outs[core.source] == 1) & (ins[core.target] == 1)
    if not series.any():
        return core, np.arange(core.n_edges)
    previous, member = core.source[series], core.target[series]
    before = np.full(n, -1, dtype=np.int64)
    before[member] = previous
    hop = np.where(before >= 0, before, np.arange(n))
    while (hop[hop] != hop).any():  # to the first task of each chain
        hop = hop[hop]
    length = by_index(np.add, hop, core.length, n)
    np.add.at(length, hop[member], core.fixed[series])
    # Edges out of a chain start at its last task. The chain takes that task's index: sources stay before targets.
    last = np.arange(n)
    np.maximum.at(last, hop, np.arange(n))
    stays = last[hop] == np.arange(n)
    whole = np.zeros(n, dtype=np.int64)
    whole[last[hop]] = length[hop]
    moved = replace(core, length=whole, target=last[hop][core.target])
    left, place = _selected(moved, ~series, stays)
    left, number = _sorted_by_ends(left)
    return left, np.where(place >= 0, number[place] if len(number) else GONE, FREE)


def _sorted_by_ends(core: Core) -> tuple[Core, Int]:
    """The core with its edges sorted by both ends, and (e,) the new index of each edge."""
    order = np.argsort(core.source * core.n_tasks + core.target, kind="stable")
    number = inverse(order)
    return with_edges(core, order), number


def with_edges(core: Core, which: Int | Bool) -> Core:
    """The core with the edges that a mask or an index array selects."""
    names = (field.name for field in fields(core) if field.name != "length")
    return replace(core, **{name: getattr(core, name)[which] for name in names})


Hash = NDArray[np.uint64]


def merged(core: Core) -> tuple[Core, Int]:
    """The core with one task per class, and (e,) the new index of each edge; unchanged if the gain is small."""
    kind = _labels(core.fixed, core.hidden, core.out_rival, core.in_rival)
    colour = _stable(core, kind)
    count = int(colour.max()) + 1
    if count > WORTH * core.n_tasks:
        return core, np.arange(core.n_edges)
    return _quotient(core, colour, count, kind) or (core, np.arange(core.n_edges))


def _stable(core: Core, kind: Int) -> Int:
    """(n,) colours that refinement does not change."""
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
    """One task per colour, one edge per kind and pair of colours; None if tasks of one colour differ after all."""
    _, first, size = np.unique(colour, return_index=True, return_counts=True)
    # Classes are ordered by depth: every edge leads to a deeper task.
    depth = heads(replace(core, length=np.ones_like(core.length)), np.zeros(core.n_edges))
    if (core.length[first][colour] != core.length).any() or (depth[first][colour] != depth).any():
        return None
    rank = np.argsort(np.lexsort((first, depth[first])))
    task = rank[colour]
    edge = _labels(task[core.source], task[core.target], kind)
    outs, ins = (_each(edge, end, task, size[np.argsort(rank)]) for end in (core.source, core.target))
    if outs is None or ins is None:
        return None
    sample = np.unique(edge, return_index=True)[1]
    length = np.empty(count, dtype=np.int64)
    length[rank] = core.length[first]
    source, target = task[core.source[sample]], task[core.target[sample]]
    left = with_edges(core, sample)
    left = replace(left, length=length, source=source, target=target, out_weight=outs, in_weight=ins)
    left, number = _sorted_by_ends(left)
    return left, number[edge]


def _each(edge: Int, end: Int, task: Int, size: Int) -> Int | None:
    """(kinds,) the number of edges of each kind at every task of that end; None if tasks differ."""
    kinds = int(edge.max()) + 1
    pairs, number = np.unique(edge * len(task) + end, return_counts=True)
    of = pairs // len(task)
    most = by_index(np.maximum, of, number, kinds)
    members = np.bincount(of, minlength=kinds)
    sample = np.unique(edge, return_index=True)[1]
    if (number != most[of]).any() or (members != size[task[end[sample]]]).any():
        return None
    return most


def _labels(*columns: NDArray[np.generic]) -> Int:
    """Labels 0.. that are equal where all columns are equal."""
    label = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        own = np.unique(column, return_inverse=True)[1]
        label = np.unique(label * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
    return label


def _mixed(value: Hash) -> Hash:
    """Well-mixed bits: the finaliser of S. Vigna's SplitMix64 generator."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
