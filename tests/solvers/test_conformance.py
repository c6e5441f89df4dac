"""Every registered solver on every case of the suite that third parties run too."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import numpy as np
import pytest

from placeopt.errors import MissingExtraError
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Answer, Info, Options, Settings, Termination, registry
from placeopt.solver.registry import solver_names
from placeopt.testing import CASES, Case, check_solver

BRIEF: dict[str, dict[str, Any]] = {
    "annealing": {"rounds": 150},
    "local-search": {"rounds": 150},
    "tabu": {"rounds": 150},
    "random": {"samples": 15},
    "random-task-eft": {"restarts": 3},
    "giph": {"restarts": 3},
}
"""Settings of those that would go on for the whole time limit otherwise."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
@pytest.mark.parametrize("solver", solver_names())
def test_solver_keeps_its_promises(solver: str, case: Case) -> None:
    try:
        result = check_solver(solver, case, **BRIEF.get(solver, {}))
    except MissingExtraError as missing:
        pytest.skip(str(missing))
    if solver == "cp-sat":  # so each optimum is proved
        assert result is not None, "cp-sat refuses the case"
        assert result.termination in (Termination.OPTIMAL, Termination.INFEASIBLE)
        assert result.objective == case.optimum


class Sequential:
    """Runs every task on one device in the order of the document, whatever the deadlines."""

    name: ClassVar[str] = "sequential"
    info: ClassVar[Info] = Info("a schedule for the suite to judge", "none", "O(n)")
    settings_type: ClassVar[type[Settings]] = Settings
    device: ClassVar[int] = 0

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        start = np.cumsum(problem.duration[:, self.device]) - problem.duration[:, self.device]
        return Answer(Termination.COMPLETED, Schedule(np.full(problem.n_tasks, self.device), start))


def two_tasks() -> Problem:
    return build_problem(
        task_names=["t0", "t1"],
        device_names=["d0", "d1"],
        duration=np.array([[2, 2], [3, 3]]),
        deadline=np.array([3, 3]),
        resident=np.array([2, 2]),
        capacity=np.array([4, 3]),
    )


def test_a_heuristic_may_miss_deadlines_and_break_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"sequential": EntryPoint("sequential", f"{__name__}:Sequential", registry.GROUP)}
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    case = Case("late", two_tasks, 3, "the two run side by side")
    result = check_solver("sequential", case)
    assert result is not None
    assert [str(found.rule) for found in result.violations] == ["deadline"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sequential, "device", 1)
        with pytest.raises(AssertionError, match=r"sequential, late .*: the verifier found .*d1 needs 4 bytes"):
            check_solver("sequential", case)
    monkeypatch.setattr(Sequential, "info", replace(Sequential.info, exact=True))
    with pytest.raises(AssertionError, match=r"the verifier found \['t1 ends at tick 5"):
        check_solver("sequential", case)
