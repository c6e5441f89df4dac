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
from placeopt.protocol import Answer, Info, Options, Settings, Termination, registry
from placeopt.protocol.registry import solver_info, solver_names
from placeopt.testing import CASES, Case, check_solver

BRIEF: dict[str, dict[str, Any]] = {
    "annealing": {"rounds": 150},
    "local-search": {"rounds": 150},
    "tabu": {"rounds": 150},
    "random": {"samples": 15},
    "random-task-eft": {"restarts": 3},
    "giph": {"restarts": 3},
    "forward-backward": {"patience": 10},
    "memetic": {"patience": 20, "populations": 1},
    "multilevel": {"patience": 10},
    "windows": {"patience": 10},
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


def test_solvers_that_join_tasks_state_their_clusters() -> None:
    for name in solver_names():
        info = solver_info(name)
        assert info.clusters == (info.family in ("clustering", "fusion")), name


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (None, "clusters without a schedule, or a schedule without them"),
        ([0, 1, 2], "clusters of 3 tasks of 4"),
        ([0, 1, 1, 3], r"clusters are not numbered 0, 1, \.\.\."),
        ([0, 1, 2, 3], "a colocation group is in several clusters"),
        ([0, 0, 0, 0], "a cluster is on several devices"),
    ],
)
def test_clusters_are_checked(clusters: list[int] | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Joining(Sequential):
        info: ClassVar[Info] = replace(Sequential.info, clusters=True)

        def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:
            answer = super().solve(problem, options, settings)
            assert answer.schedule is not None
            device = np.array([0, 1, 1, 0])
            stated = None if clusters is None else np.array(clusters)
            return replace(answer, schedule=Schedule(device, answer.schedule.start), clusters=stated)

    case = next(each for each in CASES if each.name == "colocation")
    monkeypatch.setattr("placeopt.orchestration.pipeline._clusters", lambda _chain, checked: checked.answer.clusters)
    with pytest.raises(AssertionError, match=message):
        check_solver(Joining(), case)
