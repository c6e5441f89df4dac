"""Random small problems that passes can do something with, for brute force to judge."""

from __future__ import annotations

import brute_force
import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Contention, MemoryModel, Problem


def reducible_problem(rng: np.random.Generator) -> Problem:
    """A problem that `optimum` can solve, with many zero-time tasks, groups, shared outputs and transitive edges.

    One in three is plain: a makespan without memory or groups, where only devices, payloads and times decide.
    About one in five is infeasible.
    """
    plain = rng.random() < 0.33
    busy = rng.random() + plain
    contention: Contention = "half_duplex" if busy < 0.1 else "port" if busy < 0.3 else "none"
    memory_model: MemoryModel = "peak" if rng.random() < 0.3 and not plain else "sum"
    slow = contention != "none" or memory_model == "peak"
    n, m = int(rng.integers(2, 5 if slow else 6)), int(rng.integers(1, 4))
    if plain:
        n, m = 5 - int(rng.integers(2)), 3 - int(rng.integers(2))
    density = rng.choice([0.4, 0.7])
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < density][: 5 if slow else None]
    label = np.zeros(m, dtype=np.int64) if rng.random() < 0.5 else rng.integers(0, m, m)  # devices of one are alike
    links = label if rng.random() < 0.7 else np.arange(m)

    def amounts(most: int, none: float) -> Int:
        return np.where(rng.random(n) < none, 0, rng.integers(0, most, n))

    def table(low: int, high: int) -> Int:
        if rng.random() < (0.2 if plain else 0.5):  # the triangle inequality holds
            return np.full((m, m), int(rng.integers(low, high)))
        return rng.integers(low, high, (m, m))[np.ix_(links, links)]

    shared = rng.random(len(edges)) < rng.choice([0.0, 0.5, 1.0])
    output, own = rng.integers(0, 4 + 3 * plain, n), rng.integers(0, 4 + 3 * plain, len(edges))
    payload = [int(output[i] if whole else own[e]) for e, ((i, _), whole) in enumerate(zip(edges, shared, strict=True))]
    duration = rng.integers(0, int(rng.choice([3, 9])), (n, m))[:, label]
    duration[rng.random(n) < 0.5] = 0
    resident, scratch, held = (amounts(6, none) for none in ((1.0, 1.0, 1.0) if plain else (0.5, 0.7, 0.7)))
    feasible = (rng.random((n, m)) < (0.8 if rng.random() < 0.3 else 1.0))[:, label]
    feasible[~feasible.any(axis=1)] = True
    capacity = None
    if rng.random() < 0.6:
        total = int((resident + held + scratch).sum())
        capacity = np.where(rng.random(m) < 0.2, UNLIMITED, rng.integers(total // m, total + 4, m))[label]
    groups = int(rng.integers(1, n + 1))
    apart, timed, urgent = rng.random() < 0.2, rng.random() < 0.5, rng.random() < 0.6
    relocation = None
    if rng.random() < 0.4 and not plain:
        relocation = brute_force._relocation(rng, n, label)
        relocation[rng.random(n) < rng.choice([0.2, 0.7])] = 0
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=duration,
        edges=edges,
        payload=payload,
        shared=shared,
        feasible=feasible,
        resident=resident,
        output=held,
        scratch=scratch,
        capacity=capacity,
        latency=table(0, int(rng.choice([1, 4]))),
        byte_ticks_num=table(0, 4),
        byte_ticks_den=table(1, 3),
        power_num=rng.integers(0, 4, m)[label],
        power_den=rng.integers(1, 3, m)[label],
        byte_energy_num=table(0, 3),
        byte_energy_den=table(1, 3),
        group=rng.integers(0, groups, n) if rng.random() < (0.3 if plain else 0.6) else None,
        separation=[(i, j) for i in range(n) for j in range(i + 1, n) if apart and rng.random() < 0.2],
        release=np.where(rng.random(n) < 0.5, rng.integers(0, 8, n), 0) if timed else None,
        deadline=np.where(rng.random(n) < 0.5, rng.integers(2, 20 - 6 * plain, n), UNLIMITED)
        if timed and urgent
        else None,
        objective=None if plain else brute_force._objective(rng),
        contention=contention,
        memory_model=memory_model,
        relocation=relocation,
    )
