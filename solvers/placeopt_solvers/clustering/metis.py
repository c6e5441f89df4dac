"""METIS: a partition of the graph into as many parts as there are devices, with little data between them.

G. Karypis, V. Kumar, Journal of Parallel and Distributed Computing 1998, doi:10.1006/jpdc.1997.1404; through PyMetis,
an optional dependency. Celeritas compares with this approach (H. Xu et al., 2022, section 6). Edges lose their
direction, so the parts may depend on each other both ways, which the model allows.

- A vertex is a colocation group. Its weight is the quantity to be balanced: its mean duration, its memory, or the sum
  of its shares in both. The weight of an edge is its mean transfer time.
- Part d is meant for the d-th device that may run any task. Its share is in proportion to the device's speed on the
  tasks that it may run, to its memory, or to the mean of both shares. METIS uses integers: weights are scaled to 30
  bits in total, and every edge weighs at least 1.
- METIS ignores feasibility, separation and capacities, and balances to a few per cent only. Groups stay in their part
  if its device can take them, larger groups first. The others go to the device to which most of their transfers lead,
  of those that can take them; ties go to the least load, then to the lowest index.
- The tasks are ordered as those of clusters are, see `placeopt_solvers.clustering._clusters`.

Up to eight parts are cut by recursive bisection, more by the k-way scheme, as METIS's manual advises. Bisection is also
used if a group is too large, or a device's share too small, for METIS (see `parts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from placeopt import engine
from placeopt.errors import MissingExtraError
from placeopt.model.arrays import Float, Int
from placeopt.model.levels import mean_durations, mean_transfers
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.protocol import Answer, Options, Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Constructive, PartialSchedule, heuristic_info, run_heuristic
from .._constructive.groups import Groups
from ._clusters import as_placed, group_work, schedule_by_homes

TOTAL = 2**30
"""Sum of the weights of vertices, and of edges counted both ways: METIS may use 32-bit integers."""

_BISECTED = 8
"""Number of parts up to which METIS's manual advises recursive bisection instead of the k-way scheme."""

Balance = Literal["duration", "memory", "both"]


class MetisSettings(Settings):
    """Settings of metis."""

    balance: Balance = "duration"
    """The quantity that is balanced between parts: duration, memory, or the sum of both shares."""


class Metis(Constructive):
    name = "metis"
    info = heuristic_info(
        summary="k-way partition with little data between parts (Karypis and Kumar 1998); needs placeopt[metis]",
        family="clustering",
        clusters=True,
        complexity="O(n + e) for the partition, O(n m + e) in all",
        citation=bibtex("karypis1998multilevel"),
    )
    settings_type = MetisSettings

    def solve(self, problem: Problem, options: Options, settings: MetisSettings) -> Answer:
        """Return METIS's partition on the problem's devices, or FAILED if repair finds no room.

        Raises
        ------
        MissingExtraError
            If PyMetis is not installed.
        """
        graph = group_graph(problem, settings.balance)
        wanted = meant_devices(problem, graph, settings.balance, options.seed)
        work = group_work(problem)
        sequence = np.argsort(-group_sums(problem, problem.memory), kind="stable")

        def build(groups: Groups) -> PartialSchedule:
            parts = sequence, wanted, graph.starts, graph.neighbours, graph.weight, work
            return schedule_by_homes(problem, groups, lambda line, stop: engine.keep_parts(line, *parts, stop))

        answer = run_heuristic(problem, build)
        if answer.schedule is None:
            return answer
        first = np.unique(problem.group, return_index=True)[1]
        moved = int(np.count_nonzero(answer.schedule.device[first] != wanted))
        clusters = as_placed(wanted[problem.group], answer.schedule)
        return replace(answer, stats={"moved": moved}, clusters=clusters)


def group_graph(problem: Problem, balance: Balance) -> Graph:
    """Return the undirected graph of colocation groups."""
    duration = group_sums(problem, mean_durations(problem))
    memory = group_sums(problem, problem.memory.astype(np.float64))
    size = {"duration": duration, "memory": memory, "both": shares(duration) + shares(memory)}[balance]
    low, high = problem.group[problem.edge_source], problem.group[problem.edge_target]
    return make_graph(low, high, mean_transfers(problem), size)


def meant_devices(problem: Problem, graph: Graph, balance: Balance, seed: int) -> Int:
    """Return the device (g,) of each group's part."""
    share = _device_shares(problem, balance)
    devices = np.flatnonzero(problem.feasible.any(axis=0))
    if len(devices) == 0:  # no tasks, or no device that may run any
        devices = np.zeros(1, dtype=np.int64)
    return devices[parts(graph, share[devices], seed)]


def _device_shares(problem: Problem, balance: Balance) -> Float:
    """Return the share (m,) of each device in the total; 0 for a device that may run no task."""
    allowed = problem.feasible
    usable: Float = np.asarray(allowed.any(axis=0), dtype=np.float64)
    work = mean_durations(problem)[:, None] * allowed
    # Speed relative to the mean, on the tasks that the device may run.
    took = problem.duration.sum(axis=0)
    speed = np.where(took > 0, work.sum(axis=0) / np.maximum(took, 1), 1.0) * usable
    asked = float(problem.memory.sum())
    room = np.where(problem.capacity == UNLIMITED, asked, np.minimum(problem.capacity, asked)) * usable
    if not room.any():
        room = usable
    return {"duration": shares(speed), "memory": shares(room), "both": (shares(speed) + shares(room)) / 2}[balance]


def group_sums(problem: Problem, amount: NDArray[np.generic]) -> Float:
    """Return the sum (g,) of an amount over the tasks of each group."""
    return np.bincount(problem.group, weights=amount, minlength=problem.n_groups).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Graph:
    """An undirected graph: the neighbours of vertex v are neighbours[starts[v]:starts[v + 1]].

    `weight` are the weights of the edges, at least 1, `size` (vertices,) those of the vertices.
    """

    starts: Int
    neighbours: Int
    weight: Int
    size: Int


def make_graph(low: Int, high: Int, weight: Float, size: Float) -> Graph:
    """Build the graph with edges between `low` and `high`: without loops, parallel edges merged, weights scaled."""
    count = max(len(size), 1)
    apart = low != high
    keys, place = np.unique(
        np.minimum(low[apart], high[apart]) * count + np.maximum(low[apart], high[apart]), return_inverse=True
    )
    total = np.bincount(place.reshape(-1), weights=weight[apart], minlength=len(keys)).astype(np.float64)
    scaled = np.maximum(whole(total, TOTAL // 2), 1)
    source, target = np.concatenate((keys // count, keys % count)), np.concatenate((keys % count, keys // count))
    order = np.lexsort((target, source))
    starts = np.searchsorted(source[order], np.arange(len(size) + 1)).astype(np.int64)
    return Graph(starts, target[order], np.concatenate((scaled, scaled))[order], whole(size, TOTAL))


def whole(amount: Float, total: int) -> Int:
    """Return amounts scaled to integers that sum to about `total`; zeros stay zeros."""
    return np.rint(shares(amount) * total).astype(np.int64)


def shares(amount: Float) -> Float:
    """Return amounts as shares of their sum; zeros if it is zero."""
    total = float(amount.sum())
    return np.asarray(amount / total if total > 0 else np.zeros(len(amount)), dtype=np.float64)


def parts(graph: Graph, share: Float, seed: int) -> Int:
    """Return the part (vertices,) of each vertex, 0..k-1; part p gets about share[p] of all sizes.

    METIS prints to the standard output if it bisects a part without vertices, which cannot happen if it is called for
    two parts. So METIS makes the k-way cut itself only if all vertices are small compared with all parts. Otherwise the
    bisection is done here, with one call of METIS for each cut. Raises a MissingExtraError if PyMetis is not installed.
    """
    try:
        import pymetis  # noqa: F401  the error comes even if nothing is cut
    except ImportError:
        raise MissingExtraError("the solver metis needs PyMetis: pip install 'placeopt[metis]'") from None
    k = len(share)
    found = np.zeros(len(graph.size), dtype=np.int64)
    small = graph.size.max(initial=0) * 10 <= share.min() * graph.size.sum()
    if k > _BISECTED and small and share.min() * 4 * k >= 1:
        return _cut(graph, share, seed)
    _bisect(graph, np.arange(len(found)), share, 0, seed, found)
    return found


def _bisect(graph: Graph, vertices: Int, share: Float, first: int, seed: int, found: Int) -> None:
    """Assign the vertices, which are those of the graph, to the parts `first`, `first + 1`, ... with these shares."""
    if len(share) == 1 or len(vertices) == 0:
        found[vertices] = first
        return
    half = (len(share) + 1) // 2
    side = np.zeros(len(vertices), dtype=np.int64)
    if len(vertices) > 1:
        side = _cut(graph, shares(np.array([share[:half].sum(), share[half:].sum()])), seed)
    elif share[half:].max() > share[:half].max():
        side[:] = 1
    for which, ours, start in ((0, share[:half], first), (1, share[half:], first + half)):
        inside = side == which
        _bisect(_induced(graph, inside), vertices[inside], ours, start, seed, found)


def _induced(graph: Graph, inside: NDArray[np.bool_]) -> Graph:
    """Return the subgraph of the vertices with `inside` (vertices,) set."""
    source = np.repeat(np.arange(len(inside)), np.diff(graph.starts))
    kept = inside[source] & inside[graph.neighbours]
    number = np.cumsum(inside) - 1
    starts = np.searchsorted(number[source[kept]], np.arange(int(inside.sum()) + 1)).astype(np.int64)
    return Graph(starts, number[graph.neighbours[kept]], graph.weight[kept], graph.size[inside])


def _cut(graph: Graph, share: Float, seed: int) -> Int:
    """Return the parts of METIS's own cut, at least two."""
    import pymetis

    # If all sizes are 0, parts are balanced by their number of vertices.
    size = graph.size if graph.size.any() else np.ones_like(graph.size)
    found = pymetis.part_graph(
        len(share),
        pymetis.CSRAdjacency(graph.starts.tolist(), graph.neighbours.tolist()),
        vweights=size.tolist(),
        eweights=graph.weight.tolist() or None,
        tpwgts=(shares(share) if share.any() else np.full(len(share), 1 / len(share))).tolist(),
        options=pymetis.Options(seed=seed % 2**31),
        recursive=False if len(share) > _BISECTED else None,
    )
    return np.array(found.vertex_part, dtype=np.int64)
