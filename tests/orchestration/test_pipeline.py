"""The pipeline: arguments, the initial schedule, re-timing, verification, bounds, rejected calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import placeopt as po
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.result import relative_gap
from placeopt.protocol import Answer, Clock, Info, Options, Settings, Solver, Termination, registry

PROBLEMS = Path(__file__).parents[2] / "problems"


def ints(*values: int) -> Int:
    return np.array(values, dtype=np.int64)


def chain(**rest: Any) -> Problem:
    """t0 -> t1 on two devices, 2 ticks each, with a transfer of 3 ticks."""
    values: dict[str, Any] = {"byte_ticks_num": np.ones((2, 2), dtype=np.int64), "payload": [3]}
    return build_problem(
        name="chain",
        task_names=["t0", "t1"],
        device_names=["a", "b"],
        duration=np.full((2, 2), 2),
        edges=[(0, 1)],
        **values | rest,
    )


class FakeSettings(Settings):
    """Settings of the fake."""

    speed: int = 1
    """How fast."""


class Fake:
    """Returns the answer that a test sets."""

    name: ClassVar[str] = "fake"
    info: ClassVar[Info] = Info("a fake", "none", "O(1)", metrics=("makespan", "memory_balance"))
    settings_type: ClassVar[type[Settings]] = FakeSettings
    answer: ClassVar[Answer]
    seen: ClassVar[tuple[Options, Any]]

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        type(self).seen = (options, settings)
        return self.answer


@pytest.fixture(autouse=True)
def fake_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = dict(registry._entry_points())
    points["fake"] = EntryPoint("fake", f"{__name__}:Fake", registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: points)


def solved(answer: Answer, problem: Problem | None = None, **rest: Any) -> po.Result:
    Fake.answer = answer
    return po.solve(problem or chain(), "fake", **rest)


REFUSALS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a solver": ({"solver": "hefd"}, po.UsageError, 'unknown solver "hefd"; did you mean heft?'),
    "a bound time": ({"bound_time": -1}, po.UsageError, "bound_time is -1"),
    "a time limit": ({"time_limit": 0}, po.UsageError, "time_limit is 0"),
    "workers": ({"workers": 0}, po.UsageError, "workers is 0"),
    "a setting": ({"speed": "fast"}, po.UsageError, "fake: setting speed = fast"),
    "a pass": ({"passes": ["relay"]}, po.UsageError, 'unknown pass "relay"; did you mean relays?'),
    "passes": ({"passes": 5}, po.UsageError, "passes is 5; expected a list of passes or of their names"),
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs of heft."""
    from placeopt_solvers.list_scheduling.heft import Heft

    runs: list[str] = []
    solve = Heft.solve

    def spy(self: Heft, *rest: Any) -> Answer:
        runs.append("heft")
        return solve(self, *rest)

    monkeypatch.setattr(Heft, "solve", spy)
    return runs


@pytest.mark.parametrize("what", list(REFUSALS))
def test_arguments_are_checked_before_the_initial_solver_runs(what: str, counted: list[str]) -> None:
    wrong, kind, match = REFUSALS[what]
    with pytest.raises(kind, match=match):
        po.solve(chain(), **{"solver": "fake", "initial": "heft", **wrong})
    assert counted == []


def test_unsupported_problem_is_rejected_before_the_initial_solver_runs(counted: list[str]) -> None:
    costly = chain(objective=po.Objective(((po.Term("communication"),),)))
    with pytest.raises(po.UnsupportedError, match="fake does not support objective communication"):
        po.solve(costly, "fake", initial="single")
    with pytest.raises(po.UnsupportedError, match="fake does not support objective communication"):
        po.solve(costly, "fake", initial="heft")
    assert counted == []


def test_an_initial_schedule_is_a_schedule_or_a_solver() -> None:
    with pytest.raises(po.UsageError, match="initial is a list; expected a Schedule, a Result, or the name"):
        solved(Answer(Termination.FAILED), initial=[0, 1])


def test_third_party_solver_is_found() -> None:
    assert "fake" in po.solvers()
    assert isinstance(registry.find_solver("fake"), Solver)


def test_schedule_is_retimed_to_earliest_starts() -> None:
    result = solved(Answer(Termination.COMPLETED, Schedule(ints(0, 1), ints(10, 50))))
    assert result.schedule is not None
    assert result.schedule.start.tolist() == [0, 5]
    assert (result.objective, result.makespan, result.feasible) == (7, 7, True)
    assert result.violations == ()
    assert [(use.name, use.tasks, use.busy) for use in result.devices] == [("a", 1, 2), ("b", 1, 2)]


def test_schedule_keeps_its_times_if_retiming_is_infeasible() -> None:
    # Under `peak`, both tasks fit only if t1 waits until the output of t0 has left device a for t2.
    problem = build_problem(
        task_names=["t0", "t1", "t2"],
        device_names=["a", "b"],
        duration=np.array([[1, 1], [2, 2], [1, 1]]),
        edges=[(0, 2)],
        payload=[5],
        shared=[True],
        output=ints(5, 0, 0),
        scratch=ints(0, 5, 0),
        capacity=ints(9, 100),
        byte_ticks_num=np.ones((2, 2), dtype=np.int64),
        memory_model="peak",
    )
    schedule = Schedule(ints(0, 0, 1), ints(0, 6, 6))
    result = solved(Answer(Termination.COMPLETED, schedule), problem)
    assert result.feasible
    assert result.schedule is not None
    assert result.schedule.start.tolist() == [0, 6, 6]


def test_retiming_never_increases_the_objective() -> None:
    # The output of t0 (9 bytes) leaves device a at tick 6. At tick 1, t1 would fit, but raise the peak.
    problem = build_problem(
        task_names=["t0", "t1", "t2"],
        device_names=["a", "b"],
        duration=np.ones((3, 2), dtype=np.int64),
        edges=[(0, 2)],
        payload=[5],
        output=ints(9, 1, 0),
        capacity=ints(20, 20),
        byte_ticks_num=np.ones((2, 2), dtype=np.int64),
        memory_model="peak",
        objective=po.Objective(((po.Term("memory_balance"),),)),
    )
    result = solved(Answer(Termination.COMPLETED, Schedule(ints(0, 0, 1), ints(0, 6, 6))), problem)
    assert result.objective == 450_000
    assert result.schedule is not None
    assert result.schedule.start.tolist() == [0, 6, 6]


@pytest.mark.parametrize("device", [(0, 2), (0, -1)])
def test_invalid_schedule_is_reported_not_raised(device: tuple[int, int]) -> None:
    result = solved(Answer(Termination.COMPLETED, Schedule(ints(*device), ints(0, 2))))
    assert result.feasible is False
    assert [violation.rule.value for violation in result.violations] == ["placement"]
    assert result.objective is None
    assert result.devices == ()
    assert json.loads(json.dumps(result.to_dict(plan=False)))["feasible"] is False


def test_bound_above_a_verified_schedule_is_an_internal_error() -> None:
    with pytest.raises(po.InternalError, match="fake claims the bound 9, and the verifier accepts a schedule with 4"):
        solved(Answer(Termination.COMPLETED, Schedule(ints(0, 0), ints(0, 2)), bound=9))


def test_stronger_bound_is_reported_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = Schedule(ints(0, 1), ints(0, 5))
    weak = solved(Answer(Termination.COMPLETED, schedule, bound=1))
    assert weak.bound == 4
    assert weak.bound_source != "fake"
    monkeypatch.setattr("placeopt.orchestration.crosscheck.heuristic_schedules", lambda *_: ())  # they refute it
    strong = solved(Answer(Termination.COMPLETED, schedule, bound=5))
    assert (strong.bound, strong.bound_source) == (5, "fake")
    assert strong.gap == pytest.approx(2 / 7)


def test_options_and_settings_reach_the_solver() -> None:
    initial = Schedule(ints(0, 0), ints(0, 2))
    solved(Answer(Termination.FAILED, message="no"), time_limit=3, gap_limit=0.5, seed=4, workers=2,
           initial=initial, speed="7")  # fmt: skip
    options, settings = Fake.seen
    assert (options.time_limit, options.gap_limit, options.seed, options.workers) == (3.0, 0.5, 4, 2)
    assert options.initial is initial
    assert options.should_stop() is False
    assert settings.speed == 7


def test_initial_solver_provides_the_initial_schedule() -> None:
    problem = chain()
    solved(Answer(Termination.FAILED, message="no"), problem, time_limit=3, initial="heft")
    options, _ = Fake.seen
    assert options.initial is not None
    assert options.initial.start.tolist() == po.solve(problem, "heft").schedule.start.tolist()
    assert 2.5 < options.time_limit <= 3


def test_initial_solver_without_schedule_is_an_error() -> None:
    problem = chain(separation=[(0, 1)])
    with pytest.raises(po.UsageError, match=r"initial: single found no schedule to start from: no single device"):
        solved(Answer(Termination.FAILED, message="no"), problem, initial="single")
    with pytest.raises(po.UsageError, match="time_limit is 0"):
        solved(Answer(Termination.FAILED, message="no"), problem, initial="single", time_limit=0)


def test_result_without_schedule() -> None:
    result = solved(Answer(Termination.FAILED, message="stopped"))
    assert (result.schedule, result.feasible, result.objective, result.gap, result.makespan) == (None,) * 5
    assert result.message == "stopped"
    assert result.to_dict()["placement"] is None


def test_infeasibility_is_proved_before_the_solver_runs() -> None:
    problem = chain(resident=ints(5, 5), capacity=ints(4, 9))
    result = solved(Answer(Termination.FAILED, message="never called"), problem)
    assert result.termination is Termination.INFEASIBLE
    assert result.bound is None
    assert "never called" not in result.message
    assert result.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time_limit": 0}, "time_limit is 0; expected a finite number that is positive"),
        ({"time_limit": float("inf")}, "time_limit is inf"),
        ({"time_limit": True}, "time_limit is True"),
        ({"gap_limit": -0.1}, r"gap_limit is -0\.1; expected a finite number that is not negative"),
        ({"seed": 1.5}, r"seed is 1\.5; expected a whole number from 0"),
        ({"initial": Schedule([0, -7], [0, 0])}, "initial schedule does not fit .* on device -7"),
        ({"time_limit": "5"}, "time_limit is '5'; expected a finite number"),
        ({"workers": "2"}, "workers is '2'; expected a whole number"),
        ({"workers": 0}, "workers is 0; expected a whole number from 1"),
        ({"sped": 1}, 'fake has no setting "sped"; did you mean speed'),
        ({"speed": "fast"}, "setting speed = fast: input should be a valid integer"),
        (
            {"initial": Schedule(np.zeros(1), np.zeros(1))},
            "initial schedule does not fit .* shape .* 2 tasks",
        ),
    ],
)
def test_invalid_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(po.UsageError, match=message):
        solved(Answer(Termination.FAILED, message="no"), **arguments)


def test_path_instead_of_problem_is_rejected() -> None:
    with pytest.raises(po.UsageError, match=r"solve takes a Problem, got str; placeopt\.load makes one from a file"):
        po.solve("problems/heft-10.yaml")  # type: ignore[arg-type]


def test_unsupported_objective_names_solvers_that_support_it() -> None:
    energy = po.Objective(((po.Term("energy"),),))
    with pytest.raises(po.UnsupportedError, match=r"fake does not support objective energy; .* cp-sat"):
        solved(Answer(Termination.FAILED), chain(objective=energy))
    both = po.Objective(((po.Term("makespan"),), (po.Term("total_cost"),)))
    with pytest.raises(po.UnsupportedError, match="the combined objective makespan, then total_cost"):
        solved(Answer(Termination.FAILED), chain(objective=both))


def test_answers_of_wrong_type() -> None:
    wrong: Any
    for wrong, message in (
        (None, "fake returned None; expected an Answer"),
        (Answer("completed"), "fake states the termination 'completed'; expected Termination.OPTIMAL, "),  # type: ignore[arg-type]
    ):
        with pytest.raises(po.InternalError, match=message):
            solved(wrong)


def test_solver_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"gone": EntryPoint("gone", "no_such_package:Solver", registry.GROUP)}
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    with pytest.raises(po.UsageError, match=r'solver "gone" \(no_such_package:Solver\) cannot be loaded: No module'):
        po.solve(chain(), "gone")


def test_solver_whose_class_raises_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"odd": EntryPoint("odd", "builtins:int.from_bytes", registry.GROUP)}
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    with pytest.raises(po.UsageError, match=r'solver "odd" \(builtins:int.from_bytes\) cannot be loaded: TypeError'):
        po.solve(chain(), "odd")


def test_class_that_is_not_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"odd": EntryPoint("odd", "fractions:Fraction", registry.GROUP)}
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    with pytest.raises(po.UsageError, match=r"has no .*; a solver has name, info, settings_type, solve"):
        po.solve(chain(), "odd")


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [(10, 8, 0.2), (10, 10, 0.0), (0, 0, 0.0), (None, 3, None), (3, None, None)],
)
def test_relative_gap(objective: int | None, bound: int | None, gap: float | None) -> None:
    assert relative_gap(objective, bound) == gap


def test_clock_without_limit() -> None:
    assert Clock(None).remaining is None
    assert not Clock(None).over
    assert Clock(1e-9).over
    assert Clock(1e-9).remaining == 0.0


def test_solve_in_two_threads() -> None:
    problem = po.load(PROBLEMS / "heft-10.yaml")
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(po.solve(problem, "cp-sat", workers=1).objective))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [73, 73]


def test_results_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import json, placeopt as po\n"
        f"p = po.load({str(PROBLEMS / 'inception-tight.yaml')!r})\n"
        "r = po.solve(p, 'heft')\n"
        "print(p.fingerprint(), r.schedule.device.tolist(), r.schedule.start.tolist(), r.bound)\n"
        f"p = po.load({str(PROBLEMS / 'sensor-fusion.yaml')!r})\n"
        "r = po.solve(p, 'cp-sat', workers=1, seed=5)\n"
        "print(r.schedule.device.tolist(), r.schedule.start.tolist(), r.bound)\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_arguments_of_wrong_type() -> None:
    problem: Any = {"placeopt": 1}
    with pytest.raises(po.UsageError, match=r"load takes a path, got dict; placeopt\.compile takes documents"):
        po.load(problem)
    solver: Any = 1
    with pytest.raises(
        po.UsageError, match="a int without name, info, settings_type, solve; expected the name of a solver, or an"
    ):
        po.solve(build_problem(task_names=["t"], device_names=["d"], duration=np.array([[1]])), solver)
