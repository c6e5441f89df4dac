"""Shared links: exact solvers and bounds against the oracle, heuristics against the verifier, and cases by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem, with_shared_links
from link_lanes import random_links
from placeopt_solvers._runs.validity import valid

import placeopt as po
from placeopt.bounding.quick import bounds, prove_infeasible
from placeopt.model.building import build_problem, with_changes
from placeopt.model.problem import Objective, Problem
from placeopt.model.shared_links import SharedLink, build_shared_links
from placeopt.protocol import Options, Termination, unsupported
from placeopt.protocol.registry import find_solver
from placeopt.verifier import verify

SOLVERS = ("cp-sat", "milp", "brute-force")


def drawn(seed: int) -> Problem:
    """Up to two producers and two consumers, mostly pinned, with links: few schedules avoid transfers."""
    rng = np.random.default_rng([77, seed])
    if seed % 6 == 0:
        return with_shared_links(small_problem(rng, Objective(), times=True, contention="port"), rng)
    m, n = int(rng.integers(2, 5)), 4
    home = np.concatenate((rng.permutation(m)[:2], rng.integers(0, m, 2)))
    feasible = np.eye(m, dtype=np.bool_)[home] | (rng.random((n, m)) < 0.2)
    edges = [(a, b) for a in (0, 1) for b in (2, 3) if rng.random() < 0.85]
    shared, output = rng.random(len(edges)) < 0.4, rng.integers(0, 9, n)
    own = rng.integers(0, 9, len(edges))
    contention: Any = ("none", "none", "port", "half_duplex")[seed % 4]
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(0, 4, (n, m)),
        latency=rng.integers(0, 2, (m, m)),
        edges=edges,
        payload=[int(output[a] if s else size) for (a, _), s, size in zip(edges, shared, own, strict=True)],
        shared=shared,
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
        feasible=feasible,
        output=output,
        release=rng.integers(0, 3, n),
        memory_model="peak" if seed % 5 == 0 else "sum",
        capacity=rng.integers(5, 30, m),
        contention=contention,
        shared_links=random_links(rng, m, least=1),
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_they_prove_what_the_oracle_finds(name: str) -> None:
    solver, tighter = find_solver(name), 0
    proved = infeasible = 0
    for seed in range(72):
        case = drawn(seed)
        if unsupported(solver.info, case) is not None:
            continue
        best = optimum(case)
        answer = solver.solve(case, Options(seed=seed), solver.settings_type())
        if best is None:
            assert answer.termination is Termination.INFEASIBLE, seed
            infeasible += 1
            continue
        assert answer.termination is Termination.OPTIMAL, seed
        assert answer.schedule is not None
        report = verify(case, answer.schedule)
        assert report.feasible, (seed, report.violations)
        assert (report.objective, answer.bound) == (best[0], best[0][0]), seed
        free = optimum(with_changes(case, shared_links=None))
        assert free is not None
        assert free[0] <= best[0]
        tighter += free[0] < best[0]
        proved += 1
    assert proved >= 30
    assert tighter >= 8
