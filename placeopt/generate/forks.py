"""Generate random forks, joins, fork-joins and trees on identical devices: small problems that are hard for their size.

Exact methods for P | prec, c_ij | Cmax are compared on such graphs (M. Orr, O. Sinnen: Optimal task scheduling
benefits from a duplicate-free state-space, 2019, doi:10.48550/arXiv.1901.06899). All random numbers come from NumPy's
seeded PCG64: the same arguments give the same document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from placeopt.errors import UsageError, alternatives
from placeopt.generate.arguments import Purpose, called, device_count, number, streams, whole, whole_range
from placeopt.generate.networks import Document
from placeopt.model.units import shown

Edges = list[tuple[int, int]]


def fork_document(tasks: int = 21, devices: int = 4, **options: Any) -> Document:
    """Return the spec of a fork, a join, a fork-join or a tree; see `fork` for the options."""
    return called(fork, "fork", {"tasks": tasks, "devices": devices, **options})


def fork(
    tasks: int = 21,
    devices: int = 4,
    *,
    kind: str = "fork-join",
    ccr: float = 1.0,
    weight: tuple[int, int] = (1, 10),
    scale: int = 1,
    seed: int = 0,
) -> Document:
    """Generate a random fork, join, fork-join, out-tree or in-tree on identical devices.

    Tasks t0, t1, ... are in topological order. All links have the bandwidth 1 kB/s, so that a byte takes a tick of
    1 ms.

    Parameters
    ----------
    tasks, devices
        Number of tasks, and of devices.
    kind
        fork: a source and its successors; join: a sink and its predecessors; fork-join: a source, a sink and tasks
        between them; out-tree: each task has one random predecessor; in-tree: each task has one random successor.
    ccr
        Communication-to-computation ratio: the sum of all transfer times is this many times the sum of all durations.
        Transfer times are drawn from the same range as durations, then scaled and rounded to whole ticks.
    weight
        Range of the durations, both ends included.
    scale
        Ticks per unit of the durations. With more, transfer times are rounded less.
    seed
        Seed of the random numbers.

    Raises
    ------
    UsageError
        If a value is not valid.
    """
    n, m = whole("tasks", tasks, 3), device_count(devices)
    if kind not in list(KINDS):
        raise UsageError(f"kind: {shown(kind)} is unknown{alternatives(str(kind), KINDS)}")
    low, high = whole_range("weight", weight, 1)
    ratio, unit = number("ccr", ccr), whole("scale", scale, 1)
    shape, work, data = streams(Purpose.FORK, seed, 3)
    edges = KINDS[kind](n, shape)
    ticks = work.integers(low, high, size=n, endpoint=True) * unit
    moved = data.integers(low, high, size=len(edges), endpoint=True)
    payload = np.rint(moved * (ratio * int(ticks.sum()) / int(moved.sum()))).astype(np.int64)
    documents: Document = {f"t{i}": {"time": f"{amount} ms"} for i, amount in enumerate(ticks.tolist())}
    for (u, v), size in zip(edges, payload.tolist(), strict=True):
        documents[f"t{v}"].setdefault("after", {})[f"t{u}"] = size
    return {
        "placeopt": 1,
        "name": f"{kind}-{n}-{m}-{seed}",
        "description": f"A random {kind} of {n} tasks on {m} identical devices, CCR {ratio:g}.",
        "resolution": "1 ms",
        "devices": {f"d{d}": {"type": "device"} for d in range(m)},
        "links": {"default": {"bandwidth": "1 kB/s"}},
        "tasks": documents,
    }


def _fork(n: int, rng: Generator) -> Edges:  # noqa: ARG001 - as the trees
    return [(0, v) for v in range(1, n)]


def _join(n: int, rng: Generator) -> Edges:  # noqa: ARG001
    return [(u, n - 1) for u in range(n - 1)]


def _fork_join(n: int, rng: Generator) -> Edges:  # noqa: ARG001
    return [(0, v) for v in range(1, n - 1)] + [(u, n - 1) for u in range(1, n - 1)]


def _out_tree(n: int, rng: Generator) -> Edges:
    return [(int(rng.integers(v)), v) for v in range(1, n)]


def _in_tree(n: int, rng: Generator) -> Edges:
    return [(u, int(rng.integers(u + 1, n))) for u in range(n - 1)]


KINDS: dict[str, Callable[[int, Generator], Edges]] = {
    "fork": _fork,
    "join": _join,
    "fork-join": _fork_join,
    "out-tree": _out_tree,
    "in-tree": _in_tree,
}
