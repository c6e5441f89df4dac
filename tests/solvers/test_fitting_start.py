"""Exact solvers and searches start where only a few orders fit into live memory, and no heuristic finds one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import placeopt as po

PROBLEM = replace(po.load(Path(__file__).parents[2] / "problems" / "microcontroller.yaml"), alignment=None)


def test_no_heuristic_finds_an_order() -> None:
    assert not po.solve(PROBLEM, "heft").feasible


@pytest.mark.parametrize("solver", ["cp-sat", "milp", "series", "auto", "lns"])
def test_solvers_start_with_one_worker(solver: str) -> None:
    result = po.solve(PROBLEM, solver, workers=1, time_limit=20)
    assert result.termination is po.Termination.OPTIMAL
    again = po.solve(PROBLEM, solver, workers=1, time_limit=20)
    assert result.schedule is not None
    assert again.schedule is not None
    assert result.schedule.start.tolist() == again.schedule.start.tolist()
