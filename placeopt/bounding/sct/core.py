"""What of a programme matters: exact reductions, iterated as the proved lower bound rises.

    pruned       edges and tasks on no path longer than a proved bound, even were nothing hidden, set no limit: y = 0
    freed        an edge that is the only rival left of its producer and its consumer is a favourite at no cost: y = 1
    contracted   a task and its only consumer, of which it is the only producer, with a free edge between: one task
    merged       tasks that look the same: one task

Each leaves the larger of the optimum and the bound as it is. *Pruned*: whatever y is, a path with such a task or edge
is no longer than the bound. *Merged*: let the tasks be in classes such that all of a class have the same length, and
the same number of edges of each kind into and out of each class (an equitable partition, found by colour refinement).
Averaging a feasible point over the tasks of each class and the edges of each kind between two classes keeps every
constraint, so some optimum is the same for all of a class: M. Grohe, K. Kersting, M. Mladenov, E. Selman, "Dimension
reduction via colour refinement", ESA 2014, doi:10.1007/978-3-662-44777-2_42. The attention heads of a Transformer are
one head then: of 41,515 tasks 1,375 are left. A merged edge stands for `out_weight` edges of each producer and
`in_weight` edges of each consumer:

    sum over rivals of out_weight y <= 1 at each producer, of in_weight y <= 1 at each consumer.

That the partition is equitable is checked exactly, after hashing has found it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.bounding.sct.programme import Programme
from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int

GONE, FREE = -1, -2
"""In place of an edge's number: y = 0, and y = 1."""

REPEATED = 100
"""Times that a kernel will pass over the edges again, about: what makes compiling it worth while."""


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """A programme in the form that is solved: all paths lead from the first task to the last, which take no time.

    Attributes
    ----------
    length
        (n,) of the tasks, in a topological order.
    source, target
        (e,) sorted by source, then target.
    fixed, hidden, out_rival, in_rival
        (e,) as in `Programme`; hidden is 0 where an edge is no rival.
    out_weight, in_weight
        (e,) edges that this one stands for, for each of its producers and each of its consumers.
    """

    length: Int
    source: Int
    target: Int
    fixed: Int
    hidden: Int
    out_rival: Bool
    in_rival: Bool
    out_weight: Int
    in_weight: Int

    @property
    def n_tasks(self) -> int:
        """Tasks, with the first and the last."""
        return len(self.length)

    @property
    def n_edges(self) -> int:
        """Edges."""
        return len(self.source)


@kernel(allocates=False)
def reach(source: Int, target: Int, ticks: Float, value: Float) -> None:
    """Raise the value of each target to that of its source and the ticks between, edge by edge."""
    for e in range(len(source)):
        value[target[e]] = max(value[target[e]], value[source[e]] + ticks[e])


def heads(core: Core, ticks: Float | Int) -> Float:
    """(n,) the longest path that ends just before each task, with these ticks (e,) of the edges."""
    value = np.zeros(core.n_tasks)
    steps = (ticks + core.length[core.source]).astype(np.float64)
    reach.select(REPEATED * core.n_edges)(core.source, core.target, steps, value)
    return value


def tails(core: Core, ticks: Float | Int) -> Float:
    """(n,) the longest path that begins just after each task."""
    value = np.zeros(core.n_tasks)
    steps = (ticks + core.length[core.target]).astype(np.float64)
    back = slice(None, None, -1)
    select = reach.select(REPEATED * core.n_edges)
    # By sources in descending order: those of an edge's target come before it.
    select(core.target[back].copy(), core.source[back].copy(), steps[back].copy(), value)
    return value


def core_of(programme: Programme) -> tuple[Core, Int]:
    """The programme as a core, and (e,) the number of each of its edges there."""
    n = len(programme.length)
    place = np.empty(n, dtype=np.int64)
    place[programme.order] = np.arange(1, n + 1)
    hidden = np.where(programme.out_rival | programme.in_rival, programme.hidden, 0)
    lone_out = np.bincount(programme.source, minlength=n) == 0
    lone_in = np.bincount(programme.target, minlength=n) == 0
    begins = np.flatnonzero(lone_in | (programme.release > 0))
    ends = np.flatnonzero(lone_out | (programme.tail > 0))
    counts = len(programme.source), len(begins), len(ends)
    source = np.concatenate([place[programme.source], np.zeros(counts[1], np.int64), place[ends]])
    target = np.concatenate([place[programme.target], place[begins], np.full(counts[2], n + 1)])
    outer = np.zeros(counts[1] + counts[2], dtype=np.int64)
    by_ends = np.lexsort((target, source))
    length = np.zeros(n + 2, dtype=np.int64)
    length[place] = programme.length
    core = Core(
        length=length,
        source=source[by_ends],
        target=target[by_ends],
        fixed=np.concatenate([programme.fixed, programme.release[begins], programme.tail[ends]])[by_ends],
        hidden=np.concatenate([hidden, outer])[by_ends],
        out_rival=np.concatenate([programme.out_rival & (hidden > 0), outer > 0])[by_ends],
        in_rival=np.concatenate([programme.in_rival & (hidden > 0), outer > 0])[by_ends],
        out_weight=np.ones(sum(counts), dtype=np.int64),
        in_weight=np.ones(sum(counts), dtype=np.int64),
    )
    number = np.empty(sum(counts), dtype=np.int64)
    number[by_ends] = np.arange(sum(counts))
    core, became = _selected(core, _needed(core), np.ones(core.n_tasks, dtype=np.bool_))
    return core, became[number[: counts[0]]]


def _needed(core: Core) -> Bool:
    """(e,), all but the releases and tails that paths of other edges imply, even were all that is hidden saved."""
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
    """The core without what does not matter once `bound` is proved, and (e,) what became of each of its edges."""
    core, edge = pruned(core, bound)
    for step in (freed, contracted):
        core, then = step(core)
        edge = composed(edge, then)
    return core, edge


def composed(first: Int, then: Int) -> Int:
    """What became of edges in two steps."""
    return np.where(first >= 0, then[np.maximum(first, 0)] if len(then) else GONE, first)


def pruned(core: Core, bound: float) -> tuple[Core, Int]:
    """Without the edges and tasks on no path longer than the bound; none are left where no path is."""
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
    place = np.where(edges, np.cumsum(edges) - 1, GONE)
    return (
        Core(
            length=core.length[tasks],
            source=number[core.source[edges]],
            target=number[core.target[edges]],
            fixed=core.fixed[edges],
            hidden=core.hidden[edges],
            out_rival=core.out_rival[edges],
            in_rival=core.in_rival[edges],
            out_weight=core.out_weight[edges],
            in_weight=core.in_weight[edges],
        ),
        place,
    )


def freed(core: Core) -> tuple[Core, Int]:
    """With edges that have no rivals left as favourites."""
    n = core.n_tasks
    outs = np.bincount(core.source, weights=core.out_weight * core.out_rival, minlength=n)[core.source]
    ins = np.bincount(core.target, weights=core.in_weight * core.in_rival, minlength=n)[core.target]
    out_rival, in_rival = core.out_rival & (outs > 1), core.in_rival & (ins > 1)
    free = (core.hidden > 0) & ~out_rival & ~in_rival
    left = Core(
        length=core.length,
        source=core.source,
        target=core.target,
        fixed=core.fixed,
        hidden=np.where(free, 0, core.hidden),
        out_rival=out_rival,
        in_rival=in_rival,
        out_weight=core.out_weight,
        in_weight=core.in_weight,
    )
    return left, np.where(free, FREE, np.arange(core.n_edges))


def contracted(core: Core) -> tuple[Core, Int]:
    """With chains of tasks joined by free edges as one task each."""
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
    length = np.zeros(n, dtype=np.int64)
    np.add.at(length, hop, core.length)
    np.add.at(length, hop[member], core.fixed[series])
    # Edges out of a chain leave its last task: it takes that one's place, so that sources stand before targets.
    last = np.arange(n)
    np.maximum.at(last, hop, np.arange(n))
    stays = last[hop] == np.arange(n)
    whole = np.zeros(n, dtype=np.int64)
    whole[last[hop]] = length[hop]
    moved = Core(
        length=whole,
        source=core.source,
        target=last[hop][core.target],
        fixed=core.fixed,
        hidden=core.hidden,
        out_rival=core.out_rival,
        in_rival=core.in_rival,
        out_weight=core.out_weight,
        in_weight=core.in_weight,
    )
    left, place = _selected(moved, ~series, stays)
    by_ends = np.lexsort((left.target, left.source))
    number = np.empty(len(by_ends), dtype=np.int64)
    number[by_ends] = np.arange(len(by_ends))
    return ordered(left, by_ends), np.where(place >= 0, number[place] if len(number) else GONE, FREE)


def ordered(core: Core, order: Int) -> Core:
    """The core with its edges in another order."""
    return Core(
        length=core.length,
        source=core.source[order],
        target=core.target[order],
        fixed=core.fixed[order],
        hidden=core.hidden[order],
        out_rival=core.out_rival[order],
        in_rival=core.in_rival[order],
        out_weight=core.out_weight[order],
        in_weight=core.in_weight[order],
    )
