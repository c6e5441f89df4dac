"""One run of HiGHS, SCIP or GLOP through OR-Tools' MathOpt that can be watched and stopped.

GLOP runs in a thread of this process, the others in one of their own, `placeopt.bounding.engines`: MathOpt (9.15)
cannot interrupt HiGHS, which writes to the standard output whatever it is told, as SCIP does to the standard error
where it is watched.
"""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from ortools.util.python import solve_interrupter

from placeopt.bounding.engines import process
from placeopt.bounding.engines.watching import watched
from placeopt.bounding.engines.worker import status_name

Engine = Literal["highs", "scip"]
Status = Literal["optimal", "infeasible", "limit", "failed"]

ENOUGH = 0.8
"""An engine may stop when value and bound differ by less than this: with `SLACK` that is less than 1, and a whole
objective is then proved."""

SLACK = 0.1
"""What is taken off a reported bound before it is rounded up to a whole number; see `proved`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop, and how to run: seconds and relative gap are None for no limit."""

    seconds: float | None
    gap: float | None
    seed: int
    workers: int
    should_stop: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    status
        "optimal" also means that the wanted gap was reached.
    bound
        A lower bound of the objective as the engine reports it, None if it has none.
    values
        Of every column in the best solution.
    duals
        Of every row, after a linear programme.
    stopped
        Whether it was told to stop.
    """

    status: Status
    bound: float | None = None
    values: list[float] | None = None
    duals: list[float] | None = None
    nodes: int = 0
    stopped: bool = False
    message: str = ""


def proved(reported: float) -> int:
    """The bound of a whole objective that an engine reports as a float, rounded up, but never too high.

    The engine's bound is the least of linear programmes that are nearly right in rows and reduced costs. A tenth is
    taken off for that; nothing proves that it is enough.
    """
    return math.ceil(reported - SLACK)


def minimised(
    model: model_pb2.ModelProto,
    engine: Engine,
    hint: list[float] | None,
    limits: Limits,
    on_values: Callable[[list[float]], None],
    on_bound: Callable[[float], None],
) -> Outcome:
    """Solve a mixed-integer programme.

    An engine that breaks gets a second chance with another seed: HiGHS now and then calls its own optimum an error.
    The callbacks get the values of all columns in each better solution, and each better bound, from this thread.

    Raises
    ------
    EngineError
        If the engine, or the process that it runs in, broke twice.
    """
    begun = time.monotonic()
    options = {
        "engine": engine,
        "hint": hint,
        "seconds": limits.seconds,
        "gap": limits.gap or 0.0,
        "absolute_gap": ENOUGH,
        "seed": limits.seed,
        "workers": limits.workers,
    }
    try:
        return Outcome(**process.run(model, options, on_values, on_bound, limits.should_stop))
    except process.EngineError:
        options["seed"] = limits.seed + 1
        if limits.seconds is not None:
            options["seconds"] = max(limits.seconds - (time.monotonic() - begun), 0.0)
        return Outcome(**process.run(model, options, on_values, on_bound, limits.should_stop))


def relaxed(model: model_pb2.ModelProto, limits: Limits) -> Outcome:
    """Solve a linear programme with GLOP; this thread waits, so that signals reach it."""
    programme = mathopt.Model.from_model_proto(model)
    limit = None if limits.seconds is None else datetime.timedelta(seconds=limits.seconds)
    parameters = mathopt.SolveParameters(time_limit=limit)
    interrupter = solve_interrupter.SolveInterrupter()
    result, stopped = watched(
        lambda: mathopt.solve(programme, mathopt.SolverType.GLOP, params=parameters, interrupter=interrupter),
        interrupter.interrupt,
        limits.should_stop,
        name="glop",
    )
    status = status_name(result)
    if status != "optimal":
        return Outcome(status, stopped=stopped)
    duals = result.dual_values()
    rows = sorted(duals, key=lambda row: int(row.id))
    return Outcome(status, bound=result.objective_value(), duals=[float(duals[row]) for row in rows])
