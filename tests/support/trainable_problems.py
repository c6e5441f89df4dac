"""Random problems for passes that fuse and co-place: groups, separation, memory, shared outputs, backward tasks."""

from __future__ import annotations

import numpy as np

from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem


def trainable_problem(rng: np.random.Generator, most: int = 14, *, peak: bool = False) -> Problem:
    """A problem of up to `most` tasks without deadlines; edges go in no order of the indices."""
    n, m = int(rng.integers(1, most + 1)), int(rng.integers(1, 4))
    place = rng.permutation(n)
    density = rng.choice([0.1, 0.3, 0.6])
    edges = [(int(place[i]), int(place[j])) for i in range(n) for j in range(i + 1, n) if rng.random() < density]
    shared = rng.random(len(edges)) < rng.choice([0.0, 0.5, 1.0])
    output, own = rng.integers(0, 6, n), rng.integers(0, 6, len(edges))
    payload = [int(output[i] if whole else own[e]) for e, ((i, _), whole) in enumerate(zip(edges, shared, strict=True))]
    feasible = rng.random((n, m)) < rng.choice([0.8, 1.0])
    feasible[~feasible.any(axis=1)] = True
    resident, held, scratch = (rng.integers(0, 5, n) * (rng.random(n) < 0.6) for _ in range(3))
    total = int((resident + held + scratch).sum())
    forward = np.arange(n)
    if rng.random() < 0.6:
        backward = rng.random(n) < 0.4
        backward[rng.integers(n)] = False
        forward[backward] = rng.choice(np.flatnonzero(~backward), int(backward.sum()))
    few = rng.random() < 0.5
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(0, 9, (n, m)),
        edges=edges,
        payload=payload,
        shared=shared,
        feasible=feasible,
        resident=resident,
        output=held,
        scratch=scratch,
        release=rng.integers(0, 12, n) * (rng.random(n) < 0.3) if few else None,
        capacity=np.where(rng.random(m) < 0.3, UNLIMITED, rng.integers(total // m, total + 2, m)),
        latency=rng.integers(0, 4, (m, m)),
        byte_ticks_num=rng.integers(0, 3, (m, m)),
        byte_ticks_den=rng.integers(1, 3, (m, m)),
        group=rng.integers(0, int(rng.integers(1, n + 1)), n) if rng.random() < 0.5 else None,
        separation=[(i, j) for i in range(n) for j in range(i + 1, n) if few and m > 1 and rng.random() < 0.03],
        forward=forward,
        contention=(*["none"] * 7, "port", "port", "half_duplex")[int(10 * rng.random())],
        memory_model="peak" if peak else "sum",
    )
