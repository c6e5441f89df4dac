"""contention: half_duplex against brute force, where transfers in both directions meet at a device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from brute_force import optimum

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.problem import Contention, Problem

EXACT = ("brute-force", "cp-sat", "milp")


def exchange(seed: int, **rest: Any) -> Problem:
    """Up to three producers and two consumers, most of them pinned: few schedules avoid transfers each way."""
    rng = np.random.default_rng([65, seed])
    m, first = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    n = first + 2
    home = np.concatenate((rng.permutation(m)[:2], rng.integers(0, m, n - 2)))
    feasible = np.eye(m, dtype=np.bool_)[home] | (rng.random((n, m)) < 0.1)
    edges = [(a, b) for a in range(first) for b in range(first, n) if rng.random() < 0.8]
    shared = rng.random(len(edges)) < 0.4
    output = rng.integers(0, 9, n)
    own = rng.integers(0, 9, len(edges))
    values: dict[str, Any] = {
        "duration": rng.integers(0, 4, (n, m)),
        "latency": rng.integers(0, 2, (m, m)),
        "output": output,
        "release": rng.integers(0, 3, n),
    }
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        edges=edges,
        payload=[int(output[a] if s else size) for (a, _), s, size in zip(edges, shared, own, strict=True)],
        shared=shared,
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
        feasible=feasible,
        contention="half_duplex",
        **values | rest,
    )


def optimal(problem: Problem, contention: Contention) -> int | None:
    found = optimum(replace(problem, contention=contention))
    return None if found is None else int(found[0][0])


def test_exact_solvers_agree_with_brute_force() -> None:
    """One port is never faster than two, which are never faster than none; often slower."""
    tighter = 0
    for seed in range(24):
        problem = exchange(seed)
        free, two, one = (optimal(problem, each) for each in ("none", "port", "half_duplex"))
        assert free is not None
        assert two is not None
        assert one is not None
        assert free <= two <= one
        tighter += two < one
        for name in EXACT[seed % 3 :: 3]:
            result = po.solve(problem, name, workers=1, time_limit=60)
            assert (result.objective, result.bound, result.feasible) == (one, one, True)
    assert tighter >= 8
