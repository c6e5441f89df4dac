"""List heuristics in Python on the engine's timeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from constrained_problems import constrained
from placeopt_solvers.list_scheduling.custom import ListHeuristic, Timeline, poll

import placeopt as po
from placeopt.engine import stopping
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.problem import Problem
from placeopt.testing import CASES, Case, check_solver


class EarliestEnd(ListHeuristic):
    name = "earliest-end"
    info = po.Info(
        summary="tasks in topological order, each where it ends first", guarantee="none", complexity="O(e m)"
    )

    def place_tasks(self, line: Timeline, problem: Problem, settings: Any) -> int | None:  # noqa: ARG002
        for task in problem.order.tolist():
            poll()
            able = [device for device in range(problem.n_devices) if line.can_run(task, device)]
            if not able:
                return int(task)
            ticks = problem.duration[task]
            line.place(task, min(able, key=lambda device: line.earliest(task, device) + int(ticks[device])))
        return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_conformance(case: Case) -> None:
    check_solver(EarliestEnd(), case)


@pytest.mark.parametrize("model", ["sum", "peak"])
@pytest.mark.parametrize("contention", ["none", "port", "half_duplex"])
def test_every_rule_is_kept(contention: Any, model: Any) -> None:
    for seed in range(12):
        result = po.solve(constrained(seed, contention=contention, memory_model=model), EarliestEnd())
        assert result.schedule is None or result.feasible


def test_it_is_the_loop_of_the_engine() -> None:
    problem = layered_problem(300, 4, seed=2)
    found, mct = (po.solve(problem, solver, passes=()) for solver in (EarliestEnd(), "mct"))
    assert found.schedule is not None
    assert mct.makespan is not None
    assert found.makespan is not None
    assert found.makespan <= 1.2 * mct.makespan
    assert np.array_equal(po.solve(problem, EarliestEnd(), passes=()).schedule.device, found.schedule.device)  # type: ignore[union-attr]


def test_limits_end_it() -> None:
    problem = layered_problem(2000, 8)
    calls = iter([False] * 30)
    result = po.solve(problem, EarliestEnd(), should_stop=lambda: next(calls, True))
    assert result.termination is po.Termination.INTERRUPTED
    with stopping(lambda: True), pytest.raises(Exception, match="stopped before the result was complete"):
        poll()
