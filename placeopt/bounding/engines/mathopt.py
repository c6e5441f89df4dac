"""Run HiGHS, SCIP and GLOP through OR-Tools' MathOpt, watched and stoppable.

HiGHS and SCIP run in a separate process (`placeopt.bounding.engines.process`): MathOpt (9.15) cannot interrupt HiGHS,
which always writes to the standard output, as SCIP does to the standard error where it is watched. GLOP runs in a
thread of this process.
"""

from __future__ import annotations

import base64
import datetime
import math
import queue
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from ortools.util.python import solve_interrupter

from placeopt.bounding.engines import EngineError, process
from placeopt.bounding.engines.linear_program import LinearProgram
from placeopt.bounding.engines.watching import POLL, watched
from placeopt.bounding.engines.worker import status_name

Engine = Literal["highs", "scip"]
Status = Literal["optimal", "infeasible", "limit", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    status: Status  # "optimal" also means that the gap limit was reached
    bound: float | None = None  # a lower bound of the objective as the engine reports it; None without one
    values: list[float] | None = None  # of each column in the best solution; None without one
    duals: list[float] | None = None  # of each row, after a run of GLOP
    nodes: int = 0
    stopped: bool = False  # whether `should_stop` returned true
    message: str = ""


def mathopt_model(program: LinearProgram, unit: float = 1.0, *, relaxed: bool = False) -> model_pb2.ModelProto:
    """Return the program for MathOpt, its objective in multiples of `unit`; if `relaxed`, without integrality."""
    model = model_pb2.ModelProto()
    columns, rows, entries = model.variables, model.linear_constraints, model.linear_constraint_matrix
    columns.ids.extend(range(program.n_columns))
    columns.lower_bounds.extend(map(float, program.lower))
    columns.upper_bounds.extend(map(float, program.upper))
    columns.integers.extend(whole and not relaxed for whole in program.integral)
    rows.ids.extend(range(len(program.rows)))
    for place, row in enumerate(program.rows):
        rows.lower_bounds.append(float(row.low))
        rows.upper_bounds.append(float(row.low) if row.equation else math.inf)
        entries.row_ids.extend([place] * len(row.columns))
        entries.column_ids.extend(row.columns.tolist())
        entries.coefficients.extend(map(float, row.coefficients.tolist()))
    model.objective.offset = program.constant / unit
    objective = model.objective.linear_coefficients
    for column, coefficient in sorted(program.objective.items()):
        objective.ids.append(column)
        objective.values.append(coefficient / unit)
    return model


def run_mathopt(
    model: model_pb2.ModelProto,
    engine: Engine,
    *,
    should_stop: Callable[[], bool],
    on_values: Callable[[list[float]], None] = lambda _: None,
    on_bound: Callable[[float], None] = lambda _: None,
    hint: list[float] | None = None,
    seconds: float | None = None,
    gap: float = 0.0,
    absolute_gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
) -> Outcome:
    """Minimise a mixed-integer linear program.

    Parameters
    ----------
    should_stop
        Called every POLL seconds; once true, the best solution and bound so far are returned.
    on_values, on_bound
        Called from this thread with the values of all columns in each better solution, and with each better bound. What
        they raise ends the run and is raised here.
    hint
        Value of each column in a solution to start from.
    seconds
        Time limit; None for no limit.
    gap, absolute_gap
        Relative and absolute difference of value and bound at which the run may end.

    Raises
    ------
    EngineError
        If the engine or its process failed.
    """
    encoded = base64.b64encode(model.SerializeToString()).decode()
    request = {"engine": engine, "model": encoded, "hint": hint, "seconds": seconds}
    request |= {"gap": gap, "absolute_gap": absolute_gap, "seed": seed, "workers": workers}
    latest: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(prefix="placeopt-", ignore_cleanup_errors=True) as folder,
        process.borrowed(workers) as worker,
    ):
        worker.send({**request, "file": str(Path(folder) / "improving.sol")})
        while not should_stop():
            try:
                message = worker.messages.get(timeout=POLL)
            except queue.Empty:
                continue
            if message is None:
                if worker.ended_with_us(should_stop):
                    break
                raise EngineError("the process of the engine ended without an answer")
            worker.idle = "result" in message or "error" in message
            if "error" in message:
                raise EngineError(f"{engine} failed: {message['error']}")
            if "result" in message:
                return Outcome(**message["result"])
            latest.update(message)
            if "values" in message:
                on_values(message["values"])
            else:
                on_bound(message["bound"])
    return Outcome("limit", stopped=True, **latest)


def run_retried(
    model: model_pb2.ModelProto, engine: Engine, *, seconds: float | None, seed: int, **options: Any
) -> Outcome:
    """Run `run_mathopt`; if the engine fails, with another seed, and then SCIP.

    HiGHS sometimes calls its own optimum an error.

    Raises an EngineError if all fail.
    """
    attempts: list[tuple[Engine, int]] = [(engine, seed), (engine, seed + 1), ("scip", seed)]
    begun = time.monotonic()
    for attempt in attempts:
        left = None if seconds is None else max(seconds - (time.monotonic() - begun), 0.0)
        try:
            return run_mathopt(model, attempt[0], seconds=left, seed=attempt[1], **options)
        except EngineError:
            if attempt == attempts[-1]:
                raise
    raise AssertionError


def run_glop(model: model_pb2.ModelProto, *, seconds: float | None, should_stop: Callable[[], bool]) -> Outcome:
    """Solve a linear program; this thread waits, so that signals reach it."""
    limit = None if seconds is None else datetime.timedelta(seconds=seconds)
    parameters = mathopt.SolveParameters(time_limit=limit)
    program = mathopt.Model.from_model_proto(model)
    interrupter = solve_interrupter.SolveInterrupter()
    result, stopped = watched(
        lambda: mathopt.solve(program, mathopt.SolverType.GLOP, params=parameters, interrupter=interrupter),
        interrupter.interrupt,
        should_stop,
        name="glop",
    )
    status = status_name(result)
    if status != "optimal":
        return Outcome(status, stopped=stopped)
    duals = result.dual_values()
    rows = sorted(duals, key=lambda row: int(row.id))
    return Outcome(status, bound=result.objective_value(), duals=[float(duals[row]) for row in rows])
