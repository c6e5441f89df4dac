"""What units of tasks take of devices, and what moves between units: what all solvers of pipelines count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.model.arrays import Bool, Int, by_index, csr
from placeopt.model.problem import Problem
from placeopt.model.stages import backward, forward_in_training, rules


@dataclass(frozen=True, slots=True, eq=False)
class Amounts:
    """What k units take of c devices, or classes of devices."""

    computing: Int
    again: Int
    """(k, c) ticks of a unit on a device, and of its forward tasks that have backward tasks."""
    allowed: Bool
    """(k, c), whether the device may run the unit."""
    fixed: Int
    kept: Int
    source: Int
    gradient: Int
    """(k,) bytes: held once, outputs of forward tasks, those that are kept even if outputs are computed again, and
    gradients."""
    tasks: Int
    """(k, 2) forward tasks, and backward tasks."""

    @property
    def count(self) -> int:
        """Number of units."""
        return len(self.fixed)

    @property
    def ahead(self) -> Bool:
        """(k,), whether the unit has forward tasks."""
        return np.asarray(self.tasks[:, 0] > 0)

    @property
    def behind(self) -> Bool:
        """(k,), whether the unit has backward tasks."""
        return np.asarray(self.tasks[:, 1] > 0)


def amounts_of(problem: Problem, unit: Int, devices: Int) -> dict[str, Any]:
    """Return the fields of `Amounts` for the unit of each task, unit (n,), on some devices."""
    k = int(unit.max(initial=-1)) + 1
    behind, trained = backward(problem), forward_in_training(problem)

    def sums(amounts: Int) -> Int:
        return by_index(np.add, unit, amounts, k)

    allowed = np.ones((k, len(devices)), dtype=np.bool_)
    np.logical_and.at(allowed, unit, problem.feasible[:, devices])
    one, other = unit[problem.separation].T
    allowed[one[one == other]] = False
    stored = ~behind & (~trained | (np.diff(problem.in_start) == 0))
    duration = problem.duration[:, devices]
    return {
        "computing": sums(duration), "again": sums(duration * trained[:, None]), "allowed": allowed,
        "fixed": sums(problem.memory), "kept": sums(problem.output * ~behind),
        "source": sums(problem.output * stored), "gradient": sums(rules(problem).gradient),
        "tasks": sums(np.stack((~behind, behind), axis=1)),
    }  # fmt: skip


def terms_of(problem: Problem, devices: Int) -> dict[str, Any]:
    """Return what the engine reads of devices (c,) and of the pipeline, by the names of its fields."""
    pipeline = rules(problem)
    ring = np.zeros((3, len(devices)), dtype=np.int64)  # between two devices of a class: 0, 0 / 1 for one
    ring[2] = 1
    for c, d in enumerate(devices.tolist()):
        others = np.flatnonzero(problem.device_class == problem.device_class[d])
        for o in others[others != d][:1].tolist():
            ring[:, c] = problem.latency[d, o], problem.byte_ticks_num[d, o], problem.byte_ticks_den[d, o]
    return {
        "capacity": problem.capacity[devices], "mode": 2 * pipeline.overlap[devices] + pipeline.full_duplex[devices],
        "free": pipeline.free_transfers[devices], "launch": pipeline.launch[devices],
        "ring_latency": ring[0].copy(), "ring_num": ring[1].copy(), "ring_den": ring[2].copy(),
        "replicas": pipeline.replicas, "in_flight": pipeline.runs_kept, "recompute": pipeline.recompute,
    }  # fmt: skip


def moved(problem: Problem, unit: Int) -> tuple[Int, Int, Bool]:
    """Return the items that may move between units: one output, or the payload of one edge.

    Returns
    -------
    edge
        (x,) an edge of each item.
    consumers
        (q, 2) pairs of an item and a unit that consumes it, sorted.
    entering
        (q,) whether the unit does so with a forward task of training.
    """
    source, target = problem.edge_source, problem.edge_target
    between = np.flatnonzero(unit[source] != unit[target])
    key = np.where(problem.shared, source, problem.n_tasks + np.arange(problem.n_edges))[between]
    _, first, item = np.unique(key, return_index=True, return_inverse=True)
    consumers, place = np.unique(np.stack((item, unit[target[between]]), axis=1), axis=0, return_inverse=True)
    entering = np.zeros(len(consumers), dtype=np.bool_)
    entering[place.reshape(-1)[forward_in_training(problem)[target[between]]]] = True
    return between[first], consumers, entering


def touching(k: int, producer: Int, consumers: Int) -> tuple[Int, Int]:
    """Return the items that each of k units produces or consumes."""
    sent = np.stack((producer, np.arange(len(producer))), axis=1)
    return csr(k, np.concatenate((sent, consumers[:, ::-1])))


def separated(problem: Problem, unit: Int, k: int) -> tuple[Int, Int]:
    """Return the units that each of k units is separated from."""
    pairs = unit[problem.separation]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return csr(k, np.concatenate((pairs, pairs[:, ::-1])))
