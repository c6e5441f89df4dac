"""HiGHS and SCIP in a separate process, CP-SAT in a thread: results and endings."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from ortools.sat.python import cp_model

import placeopt as po
from placeopt.bounding.engines import EngineError, cp_sat, process, worker
from placeopt.bounding.engines import mathopt as engines
from placeopt.bounding.engines.mathopt import Engine, Outcome, run_mathopt
from placeopt.bounding.engines.watching import watched
from placeopt.bounding.relaxation import relaxed_bounds

PROBLEMS = Path(__file__).parents[2] / "problems"

ENGINES: tuple[Engine, ...] = ("highs", "scip")


def knapsack(size: int = 4, room: int = 7) -> model_pb2.ModelProto:
    """A knapsack of items with weights 2, 3, 4, ... and values 3, 4, 5, ..., as a minimisation."""
    model = mathopt.Model()
    taken = [model.add_binary_variable() for _ in range(size)]
    model.add_linear_constraint(sum((i + 2) * each for i, each in enumerate(taken)) <= room)
    model.minimize(sum(-(i + 3) * each for i, each in enumerate(taken)))
    return model.export_model()


def disjunctions(size: int) -> model_pb2.ModelProto:
    """Minimise the sum of the ends of tasks on one device, with big M: too hard to prove in reasonable time."""
    model = mathopt.Model()
    ticks = [3 + 7 * i % 11 for i in range(size)]
    start = [model.add_variable(lb=0, ub=sum(ticks)) for _ in ticks]
    for i in range(size):
        for j in range(i):
            first = model.add_binary_variable()
            model.add_linear_constraint(start[i] >= start[j] + ticks[j] - sum(ticks) * first)
            model.add_linear_constraint(start[j] >= start[i] + ticks[i] - sum(ticks) * (1 - first))
    model.minimize(sum(start))
    return model.export_model()


def run(
    model: model_pb2.ModelProto,
    seen: list[Any] | None = None,
    stop: Any = lambda: False,
    engine: Engine = "highs",
    **options: Any,
) -> Outcome:
    seen = [] if seen is None else seen
    callbacks = {"on_values": seen.append, "on_bound": seen.append, "should_stop": stop}
    return run_mathopt(model, engine, **{"absolute_gap": 0.5, **callbacks, **options})


@pytest.mark.parametrize("engine", ENGINES)
def test_an_optimum(engine: Engine) -> None:
    reply = run(knapsack(), engine=engine)
    assert reply.status == "optimal"
    assert reply.bound == pytest.approx(-9)
    assert reply.values == pytest.approx([1, 0, 0, 1], abs=1e-6) or reply.values == pytest.approx(
        [0, 1, 1, 0], abs=1e-6
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_no_solution(engine: Engine) -> None:
    model = knapsack()
    model.linear_constraints.lower_bounds[0] = 6.5
    model.linear_constraints.upper_bounds[0] = 6.9
    assert run(model, engine=engine).status == "infeasible"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_time_limit(engine: Engine) -> None:
    reply = run(disjunctions(14), engine=engine, seconds=0.3)
    assert reply.status == "limit"
    assert reply.bound is not None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stop_keeps_the_best_and_ends_the_process(engine: Engine) -> None:
    seen: list[Any] = []
    process._close_all()
    reply = run(disjunctions(14), seen, lambda: len(seen) > 2, engine=engine)
    assert reply.stopped
    assert reply.status == "limit"
    assert reply.values in seen or reply.bound in seen
    assert process._idle == []


def test_an_idle_process_serves_the_next_run() -> None:
    process._close_all()
    run(knapsack())
    (first,) = process._idle
    run(knapsack())
    (second,) = process._idle
    assert first is second
    first.child.process.kill()
    first.child.process.wait()
    assert run(knapsack()).status == "optimal"
    assert first not in process._idle


def test_a_parameter_that_an_engine_rejects_is_reported() -> None:
    with pytest.raises(EngineError, match="highs failed: TypeError"):
        run(knapsack(), seed="no number")
    assert run(knapsack()).status == "optimal"


def test_a_process_that_ends_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text("import sys; sys.stdin.readline()")
    monkeypatch.setattr(process, "__file__", str(tmp_path / "process.py"))
    with pytest.raises(EngineError, match="ended without an answer"):
        run(knapsack(), workers=7)


def test_a_process_that_dies_of_a_signal_to_the_job_was_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Slurm and systemd signal all processes of a job: the engine may die before `should_stop` is true."""
    script = tmp_path / "worker.py"
    script.write_text("import os, signal, sys; sys.stdin.readline(); os.kill(os.getpid(), signal.SIGTERM)")
    monkeypatch.setattr(process, "__file__", str(tmp_path / "process.py"))
    asked: list[float] = []

    def stop() -> bool:
        asked.append(time.monotonic())
        return asked[-1] > asked[0] + 0.3

    found = run(knapsack(), stop=stop, workers=7)
    assert found.stopped


def test_an_error_in_a_callback_ends_the_process() -> None:
    def fail(_: float) -> None:
        raise ValueError("enough")

    before = len(process._idle)
    with pytest.raises(ValueError, match="enough"):
        run(disjunctions(12), on_bound=fail)
    assert len(process._idle) <= before


def test_the_process_ends_when_its_input_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-I", worker.__file__, json.dumps(sys.path)],
        input="",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("line", "bound"),
    [
        (
            " J       0       0         0   0.00%   -inf            141                Large        0      0      0",
            None,
        ),
        (
            " R       0       0         0   0.00%   19              50                62.00%        0      0      0",
            "19",
        ),
        (
            "      2023     199       258   1.36%   19.25           46.999999         59.57%     1205     28   1430",
            "19.25",
        ),
        (
            " T     198k     21        42  63.07%   1.5e+07         2e+07             25.00%      536     24    153",
            "1.5e+07",
        ),
        (
            "         0       0         0   0.00%   -3.5            inf                  inf        0      0      0",
            "-3.5",
        ),
        ("  Gap               59.57% (tolerance: 0.01%)", None),
    ],
)
def test_the_bound_in_a_line_of_the_log(line: str, bound: str | None) -> None:
    found = worker.BOUND.match(line)
    assert (found and found[1]) == bound


def test_solutions_in_a_file_that_is_being_written() -> None:
    whole = "Objective 9\n# Columns -2\n 1 0\n 2.5 3\nObjective 7\n# Columns -1\n 1 2\n"
    solutions = [[1.0, 0.0, 0.0, 2.5], [0.0, 0.0, 1.0, 0.0]]
    assert list(worker.improving(whole, 4)) == solutions
    for end in range(len(whole)):
        found = list(worker.improving(whole[:end], 4))
        assert found == solutions[: len(found)]


class TestWatched:
    def test_the_result_and_whether_it_was_stopped(self) -> None:
        assert watched(lambda: 7, lambda: None, lambda: False) == (7, False)

    def test_stop_is_called_until_the_work_ends(self) -> None:
        calls: list[int] = []
        enough = threading.Event()

        def stop() -> None:
            calls.append(1)
            if len(calls) == 3:  # the first calls come before the search begins and have no effect
                enough.set()

        assert watched(lambda: enough.wait(60), stop, lambda: True) == (True, True)
        assert len(calls) >= 3

    def test_errors_of_the_work_are_raised(self) -> None:
        def work() -> None:
            raise OSError("no more memory")

        with pytest.raises(OSError, match="no more memory"):
            watched(work, lambda: None, lambda: False)

    def test_the_work_has_ended_when_should_stop_raises(self) -> None:
        halt, ended = threading.Event(), threading.Event()

        def work() -> None:
            halt.wait(60)
            ended.set()

        def should_stop() -> bool:
            raise RuntimeError("the caller broke")

        with pytest.raises(RuntimeError, match="the caller broke"):
            watched(work, halt.set, should_stop)
        assert ended.is_set()


def unfinished(size: int = 40) -> cp_model.CpModel:
    """Minimise the sum of the ends of ordered tasks on one device: too hard to prove in reasonable time."""
    model = cp_model.CpModel()
    ticks = [3 + 7 * i % 11 for i in range(size)]
    ends = [model.new_int_var(0, sum(ticks), "") for _ in ticks]
    parts = [model.new_interval_var(end - each, each, end, "") for end, each in zip(ends, ticks, strict=True)]
    model.add_no_overlap(parts)
    for i in range(size // 2):
        model.add(ends[i] >= ends[(5 * i + 3) % size] + 9)
    model.minimize(sum((i * i % 17 + 1) * end for i, end in enumerate(ends)))
    return model


def run_cp_sat(model: cp_model.CpModel, **options: Any) -> cp_sat.Outcome:
    given: dict[str, Any] = {"largest": 0, "seconds": 60, "seed": 0, "workers": 1, "should_stop": lambda: False}
    return cp_sat.run(model, **given | options)


class TestCpSat:
    def test_an_optimum(self) -> None:
        model = cp_model.CpModel()
        x = model.new_int_var(3, 9, "")
        model.minimize(2 * x + 1)
        outcome = run_cp_sat(model)
        assert (outcome.status, outcome.bound, outcome.stopped) == ("OPTIMAL", 7, False)
        assert outcome.solver.value(x) == 3

    def test_a_model_without_an_objective_has_no_bound(self) -> None:
        model = cp_model.CpModel()
        model.new_int_var(3, 9, "")
        assert (run_cp_sat(model).status, run_cp_sat(model).bound) == ("OPTIMAL", None)

    def test_an_infeasible_model_has_no_bound(self) -> None:
        model = cp_model.CpModel()
        x = model.new_int_var(3, 9, "")
        model.add(x >= 10)
        model.minimize(x)
        assert (run_cp_sat(model).status, run_cp_sat(model).bound) == ("INFEASIBLE", None)

    def test_a_run_that_never_began_has_no_bound(self) -> None:
        # CP-SAT reports 0 then, and here the optimum is negative.
        model = cp_model.CpModel()
        x = [model.new_int_var(-10, 10, "") for _ in range(5)]
        model.add(sum(x) >= -20)
        model.minimize(sum(x))
        outcome = run_cp_sat(model, seconds=0.0)
        assert (outcome.status, outcome.bound) == ("UNKNOWN", None)

    def test_it_stops_when_asked(self) -> None:
        bounds: list[int] = []
        values: list[int] = []
        model = unfinished()
        first = model.get_int_var_from_proto_index(0)
        outcome = run_cp_sat(
            model,
            seconds=None,
            should_stop=lambda: len(values) > 0,
            on_bound=bounds.append,
            on_solution=lambda read: values.append(read(first)),
        )
        assert outcome.stopped
        assert outcome.status == "FEASIBLE"
        assert outcome.bound == bounds[-1] == max(bounds)
        assert len(set(bounds)) == len(bounds)

    @pytest.mark.parametrize("callback", ["on_solution", "on_bound", "should_stop"])
    def test_an_error_of_the_caller_ends_the_run(self, callback: str) -> None:
        def fail(*_: Any) -> bool:
            raise RuntimeError("no more, please")

        with pytest.raises(RuntimeError, match="no more, please"):
            run_cp_sat(unfinished(), **{"seconds": None, callback: fail})

    @pytest.mark.parametrize("inner", [None, 2**60 + 37, 0])
    def test_a_bound_is_never_rounded_up_beyond_what_is_proved(self, inner: int | None) -> None:
        proved = 2**60 + 37
        bound = cp_sat.lower_bound(float(proved), inner)  # the float is below, or above
        assert bound is not None
        assert proved - 2048 <= bound <= proved
        above = cp_sat.lower_bound(float(2**60 + 200), None)  # 2^60 + 256 as a float
        assert above is not None
        assert above <= 2**60 + 200


@pytest.fixture
def parameters(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The parameters of every run of CP-SAT."""
    seen: list[Any] = []
    solve = cp_model.CpSolver.solve

    def spy(self: cp_model.CpSolver, *rest: Any) -> Any:
        seen.append((self.parameters.presolve_inclusion_work_limit, self.parameters.catch_sigint_signal))
        return solve(self, *rest)

    monkeypatch.setattr(cp_model.CpSolver, "solve", spy)
    return seen


def relax(problem: po.Problem) -> None:
    relaxed_bounds(problem, workers=2, time_limit=20)


USERS: dict[str, Callable[[po.Problem], Any]] = {
    "cp-sat": lambda problem: po.solve(problem, "cp-sat", workers=1, time_limit=20),
    "lns": lambda problem: po.solve(problem, "lns", workers=1, time_limit=2),
    "sct-lp": lambda problem: po.solve(problem, "sct-lp", integral=True),
    "relaxation": relax,
    "explain": lambda _: po.explain({
        "placeopt": 1,
        "devices": {"d": {"count": 2, "memory": "3 B"}},
        "tasks": {name: {"time": 1, "memory": "2 B"} for name in "abc"},
    }),
}  # fmt: skip


@pytest.mark.parametrize("user", list(USERS))
def test_every_user_runs_cp_sat_with_its_workarounds(user: str, parameters: list[Any]) -> None:
    USERS[user](po.load(PROBLEMS / "sensor-fusion.yaml"))
    assert set(parameters) == {(0, False)}


def test_an_engine_that_fails_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, int]] = []

    def failing(_: object, engine: str, *, seed: int, **__: object) -> Outcome:
        tried.append((engine, seed))
        if engine != "scip" or len(tried) > 3:
            raise EngineError(f"{engine} failed")
        return Outcome("optimal", bound=7.0)

    monkeypatch.setattr(engines, "run_mathopt", failing)
    assert engines.run_retried(model_pb2.ModelProto(), "highs", seconds=9.0, seed=4).bound == 7.0
    assert tried == [("highs", 4), ("highs", 5), ("scip", 4)]
    with pytest.raises(EngineError, match="scip failed"):
        engines.run_retried(model_pb2.ModelProto(), "scip", seconds=None, seed=4)


def test_cp_sat_starts_again_where_it_runs_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only models with large numbers and without a linear relaxation; others have no way out."""
    levels: list[int] = []
    solve = cp_model.CpSolver.solve

    def scarce(self: cp_model.CpSolver, *given: Any) -> Any:
        levels.append(self.parameters.linearization_level)
        if len(levels) == 1:
            raise MemoryError("std::bad_alloc")
        return solve(self, *given)

    monkeypatch.setattr(cp_model.CpSolver, "solve", scarce)

    def outcome(largest: int) -> cp_sat.Outcome:
        levels.clear()
        model = cp_model.CpModel()
        model.minimize(model.new_int_var(3, largest, "x"))
        return cp_sat.run(
            model,
            largest=largest,
            seconds=20.0,
            seed=0,
            workers=1,
            should_stop=lambda: False,
            parameters={"linearization_level": 0},
        )

    found = outcome(1 << 40)
    assert (found.status, found.bound, levels) == ("OPTIMAL", 3, [0, 1])
    with pytest.raises(MemoryError):
        outcome(1 << 20)


def test_cp_sat_starts_again_where_its_search_for_symmetries_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[int] = []
    solve = cp_model.CpSolver.solve

    def failing(self: cp_model.CpSolver, *given: Any) -> Any:
        levels.append(self.parameters.symmetry_level)
        if self.parameters.symmetry_level or always:
            raise IndexError("absl::container_internal::raw_hash_map<>::at")
        return solve(self, *given)

    monkeypatch.setattr(cp_model.CpSolver, "solve", failing)
    model = cp_model.CpModel()
    model.minimize(model.new_int_var(3, 9, "x"))
    given: dict[str, Any] = {"largest": 9, "seconds": 20.0, "seed": 0, "workers": 1, "should_stop": lambda: False}
    always = False
    found = cp_sat.run(model, **given)
    assert (found.status, found.bound, levels[1:]) == ("OPTIMAL", 3, [0])
    always = True
    with pytest.raises(IndexError):
        cp_sat.run(model, **given)
