"""Outputs that may share bytes, and reserved bytes: cp-sat against all orders and choices, and what each byte holds."""

from __future__ import annotations

from collections import Counter

import numpy as np

import placeopt as po
from placeopt.model.building import with_changes
from tests.support.sharing import corrupted, has_plan, sharing_problem


def test_that_a_plan_exists_is_decided_as_by_all_orders_and_choices() -> None:
    seen = Counter[str]()
    for seed in range(150):
        problem = sharing_problem(seed)
        exists, result = has_plan(problem), po.solve(problem, "cp-sat", workers=1)
        assert result.termination.value == ("optimal" if exists else "infeasible"), seed
        seen[result.termination.value] += 1
        seen["heft"] += po.solve(problem, "heft", workers=1, time_limit=5).feasible is True
        if result.schedule is not None:
            assert corrupted(problem, result.schedule) == []
            plain = with_changes(problem, layout=None, output=problem.buffer_bytes("output"))
            seen["only by sharing"] += not po.verify(plain, result.schedule).feasible
    assert seen["heft"] <= seen["optimal"]
    assert min(seen["optimal"], seen["infeasible"], seen["heft"], seen["only by sharing"]) > 20, seen


def test_plans_on_two_devices_read_what_was_written() -> None:
    seen = Counter[str]()
    for seed in range(60):
        problem = sharing_problem(seed, most=6, devices=2)
        exact, quick = (po.solve(problem, solver, workers=1, time_limit=10) for solver in ("cp-sat", "heft"))
        for result in (exact, quick):
            if result.schedule is not None:
                assert result.feasible
                assert corrupted(problem, result.schedule) == [], seed
                seen[result.solver] += 1
        if quick.feasible:
            assert exact.bound is not None
            assert quick.objective is not None
            assert exact.bound <= quick.objective
    assert min(seen["cp-sat"], seen["heft"]) > 20, seen


def test_a_chain_in_place_needs_one_buffer() -> None:
    n = 40
    from placeopt.model.layout import build_layout

    problem = po.build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names=["x"], duration=np.ones((n, 1)), memory_model="peak",
        edges=[(i, i + 1) for i in range(n - 1)], capacity=[64], alignment=64,
        layout=build_layout([64] * n, [(i + 1, i, 0, False) for i in range(n - 1)]),
    )  # fmt: skip
    for solver in ("heft", "cp-sat"):
        result = po.solve(problem, solver, workers=1)
        assert result.feasible
        assert result.devices[0].height == 64
