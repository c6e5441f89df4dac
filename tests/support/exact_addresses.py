"""The least makespan of small problems with addresses: order, device and offset in one CP-SAT model of pairs.

It shares nothing with the solvers: of each two buffers of a device, one is live at no tick, or they are apart in time
or in memory, by literals.
"""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

import placeopt as po


def least_makespan(problem: po.Problem) -> int | None:
    """The least makespan without contention; None if there is no plan."""
    model, n, m, step = cp_model.CpModel(), problem.n_tasks, problem.n_devices, problem.alignment or 1
    horizon = int(problem.duration.max(axis=1).sum() + problem.n_edges * problem.latency.max())
    on = [[model.new_bool_var("") for _ in range(m)] for _ in range(n)]
    start = [model.new_int_var(0, horizon, "") for _ in range(n)]
    end = [start[i] + sum(int(problem.duration[i, d]) * on[i][d] for d in range(m)) for i in range(n)]
    freed = [model.new_int_var(0, 2 * horizon, "") for _ in range(n)]
    span = model.new_int_var(0, horizon, "")
    for i in range(n):
        model.add_exactly_one(on[i])
        model.add(span >= end[i])
        model.add(freed[i] >= end[i])
    for i, j in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        for a in range(m):
            for b in range(m):
                arrival = end[i] + int(problem.latency[a, b]) * (a != b)
                both = [on[i][a], on[j][b]]
                model.add(start[j] >= arrival).only_enforce_if(both)
                model.add(freed[i] >= (end[j] if a == b else arrival)).only_enforce_if(both)
    for i, j in combinations(range(n), 2):
        first = model.new_bool_var("")
        for d in range(m):
            model.add(start[j] >= end[i]).only_enforce_if([on[i][d], on[j][d], first])
            model.add(start[i] >= end[j]).only_enforce_if([on[i][d], on[j][d], ~first])
    buffers: list[tuple[int, Any, Any, Any, int, Any]] = []  # task, begin, end, offset, size, live at no tick
    for i in range(n):
        lives = (("resident", 0, 2 * horizon + 1), ("output", start[i], freed[i]), ("scratch", start[i], end[i]))
        for kind, begin, until in lives:
            if size := int(getattr(problem, kind)[i]):
                place = model.new_int_var(0, int(problem.capacity.max()) // step, "")
                never = model.new_bool_var("")
                model.add(until <= begin).only_enforce_if(never)
                buffers.append((i, begin, until, step * place, size, never))
    for d in range(m):
        for i, _, _, low, size, never in buffers:
            model.add(low + size <= int(problem.capacity[d])).only_enforce_if(on[i][d], ~never)
    for (i, b1, e1, o1, s1, never1), (j, b2, e2, o2, s2, never2) in combinations(buffers, 2):
        ways = [model.new_bool_var("") for _ in range(4)]
        for way, left, right in zip(ways, (e1, e2, o1 + s1, o2 + s2), (b2, b1, o2, o1), strict=True):
            model.add(left <= right).only_enforce_if(way)
        for d in range(m):
            model.add_bool_or([*ways, never1, never2, ~on[i][d], ~on[j][d]])
    model.minimize(span)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    return None if status == cp_model.INFEASIBLE else round(solver.objective_value)


def small_problem(seed: int) -> po.Problem:
    """Up to 5 tasks on two devices with little memory; some take no time."""
    rng = random.Random(seed)
    n = rng.randint(2, 5)

    def amounts(most: int) -> list[int]:
        return [rng.choice([0, rng.randint(1, most)]) for _ in range(n)]

    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names=["x", "y"],
        duration=[[rng.randint(0, 4), rng.randint(0, 4)] for _ in range(n)],
        edges=[(i, j) for j in range(n) for i in range(j) if rng.random() < 0.5],
        latency=np.array([[0, rng.randint(0, 2)], [rng.randint(0, 2), 0]]), output=amounts(9), scratch=amounts(5),
        resident=amounts(3), capacity=[rng.randint(6, 18), rng.randint(6, 18)], memory_model="peak",
        alignment=rng.choice([1, 2, 4]),
    )  # fmt: skip
