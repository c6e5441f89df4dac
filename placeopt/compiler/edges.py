"""Edges: producers looked up, payloads read, cycles named, ranges checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.compiler.issues import Issues
from placeopt.compiler.links import LinkArrays
from placeopt.compiler.scales import LARGEST, Scales
from placeopt.errors import suggestion
from placeopt.ir import Bool, Int, topological_order
from placeopt.spec import TaskSpec


@dataclass(frozen=True, slots=True)
class EdgeArrays:
    """Edges in document order: (e, 2) producer and consumer, (e,) bytes, (e,) whether it carries the output."""

    pairs: Int
    payload: Int
    shared: Bool


def edge_arrays(tasks: dict[str, TaskSpec], scales: Scales, issues: Issues) -> EdgeArrays:
    """The edges that the `after` of all tasks describe."""
    number = {name: row for row, name in enumerate(tasks)}
    outputs = [
        0 if task.output is None else scales.size(task.output, ("tasks", name, "output"))
        for name, task in tasks.items()
    ]
    pairs: list[tuple[int, int]] = []
    payloads: list[int] = []
    shared: list[bool] = []
    for row, (name, task) in enumerate(tasks.items()):
        for producer, payload in task.after.items():
            source = number.get(producer)
            if source is None:
                near = suggestion(producer, number) if len(number) < 5000 else ""
                issues.add(f'unknown task "{producer}"{near}', ("tasks", name, "after", producer), at_key=True)
                continue
            if source == row:
                issues.add("a task cannot come after itself", ("tasks", name, "after", producer), at_key=True)
                continue
            pairs.append((source, row))
            shared.append(payload is None)
            payloads.append(
                outputs[source] if payload is None else scales.size(payload, ("tasks", name, "after", producer))
            )
    arrays = EdgeArrays(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(payloads, dtype=np.int64),
        np.array(shared, dtype=np.bool_),
    )
    cycle = _cycle(arrays.pairs, len(tasks))
    if cycle:
        names = [list(tasks)[row] for row in cycle]
        text = " -> ".join([*names, names[0]]) if len(names) <= 8 else f"{' -> '.join(names[:8])} -> ... -> {names[0]}"
        issues.add(f"these tasks form a cycle: {text}", ("tasks", names[0], "after", names[-1]), at_key=True)
    return arrays


def _cycle(pairs: Int, n: int) -> list[int]:
    """The tasks of one cycle in the order of its edges, the smallest index first; empty without a cycle."""
    by_source = np.argsort(pairs[:, 0], kind="stable")
    source, target = pairs[by_source, 0], pairs[by_source, 1]
    out_start = np.searchsorted(source, np.arange(n + 1))
    order = np.empty(n, dtype=np.int64)
    in_degree = np.bincount(target, minlength=n)
    placed = topological_order.select(n + len(pairs))(out_start, target, in_degree, order)
    if placed == n:
        return []
    stuck = np.ones(n, dtype=np.bool_)
    stuck[order[:placed]] = False
    # Every stuck task has a stuck producer: walking from producer to producer must come around.
    producer = {int(b): int(a) for a, b in pairs[::-1] if stuck[a] and stuck[b]}
    walk = [int(np.flatnonzero(stuck)[0])]
    seen = {walk[0]: 0}
    while producer[walk[-1]] not in seen:
        walk.append(producer[walk[-1]])
        seen[walk[-1]] = len(walk) - 1
    around = walk[seen[producer[walk[-1]]] :][::-1]
    first = around.index(min(around))
    return around[first:] + around[:first]


def check_range(edges: EdgeArrays, links: LinkArrays, duration: Int, issues: Issues) -> None:
    """Report times so large that a schedule's end might not fit into 64 bits."""
    slowest = float((links.byte_ticks_num / links.byte_ticks_den).max(initial=0))
    transfers = float(edges.payload.astype(np.float64).sum()) * slowest
    transfers += len(edges.payload) * float(links.latency.max(initial=0))
    total = float(duration.max(axis=1, initial=0).astype(np.float64).sum()) + transfers
    if total > LARGEST:
        issues.add(
            f"all durations and transfers add up to {total:.2g} ticks, more than 2^60; use a coarser resolution",
            ("resolution",),
        )
