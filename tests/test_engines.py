"""HiGHS and SCIP in a process of their own: what they answer, how they end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt

from placeopt.engines import process, worker
from placeopt.engines.process import EngineError

ENGINES = ("highs", "scip")
OPTIONS: dict[str, Any] = {
    "engine": "highs",
    "hint": None,
    "seconds": None,
    "gap": 0.0,
    "absolute_gap": 0.5,
    "seed": 0,
    "workers": 1,
}


def knapsack(size: int = 4, room: int = 7) -> model_pb2.ModelProto:
    """The most value of things that weigh 2, 3, 4, ... and are worth 3, 4, 5, ...: its negative, to minimise."""
    model = mathopt.Model()
    taken = [model.add_binary_variable() for _ in range(size)]
    model.add_linear_constraint(sum((i + 2) * each for i, each in enumerate(taken)) <= room)
    model.minimize(sum(-(i + 3) * each for i, each in enumerate(taken)))
    return model.export_model()


def disjunctions(size: int) -> model_pb2.ModelProto:
    """Tasks one after the other on a device, the sum of the ends least, with big M: no proof in reasonable time."""
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
    model: model_pb2.ModelProto, seen: list[Any] | None = None, stop: Any = lambda: False, **options: Any
) -> dict[str, Any]:
    told = [] if seen is None else seen
    return process.run(model, {**OPTIONS, **options}, told.append, told.append, stop)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_optimum(engine: str) -> None:
    reply = run(knapsack(), engine=engine)
    assert reply["status"] == "optimal"
    assert reply["bound"] == pytest.approx(-9)
    assert reply["values"] == pytest.approx([1, 0, 0, 1], abs=1e-6) or reply["values"] == pytest.approx(
        [0, 1, 1, 0], abs=1e-6
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_no_solution(engine: str) -> None:
    model = knapsack()
    model.linear_constraints.lower_bounds[0] = 6.5
    model.linear_constraints.upper_bounds[0] = 6.9
    assert run(model, engine=engine)["status"] == "infeasible"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_time_limit(engine: str) -> None:
    reply = run(disjunctions(14), engine=engine, seconds=0.3)
    assert reply["status"] == "limit"
    assert reply["bound"] is not None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stop_leaves_what_there_is_and_ends_the_process(engine: str) -> None:
    seen: list[Any] = []
    process._close_all()
    reply = run(disjunctions(14), seen, lambda: len(seen) > 2, engine=engine)
    assert reply["stopped"]
    assert reply["status"] == "limit"
    assert reply["values"] in seen or reply["bound"] in seen
    assert process._idle == []


def test_a_process_that_is_done_serves_the_next() -> None:
    process._close_all()
    run(knapsack())
    (first,) = process._idle
    run(knapsack())
    (second,) = process._idle
    assert first is second
    first._process.kill()
    first._process.wait()
    assert run(knapsack())["status"] == "optimal"
    assert first not in process._idle


def test_what_an_engine_does_not_take_is_told() -> None:
    with pytest.raises(EngineError, match="highs broke: TypeError"):
        run(knapsack(), seed="no number")
    assert run(knapsack())["status"] == "optimal"


def test_a_process_that_ends_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text("import sys; sys.stdin.readline()")
    monkeypatch.setattr(process, "__file__", str(tmp_path / "process.py"))
    with pytest.raises(EngineError, match="ended before it had an answer"):
        run(knapsack(), workers=7)


def test_a_process_that_dies_of_a_signal_for_all_of_us_was_stopped(
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
    assert found["stopped"]


def test_an_error_in_a_callback_ends_the_process() -> None:
    def fail(_: float) -> None:
        raise ValueError("enough")

    before = len(process._idle)
    with pytest.raises(ValueError, match="enough"):
        process.run(disjunctions(12), OPTIONS, lambda _: None, fail, lambda: False)
    assert len(process._idle) <= before


def test_the_process_ends_when_nobody_listens() -> None:
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
