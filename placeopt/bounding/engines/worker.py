"""Run HiGHS and SCIP in a separate process: a script that reads requests and writes progress, one JSON object a line.

A request has `engine`, `model` (a MathOpt ModelProto, base64), `hint` (a value for each column, or null), `seconds` (or
null), `gap`, `absolute_gap`, `seed`, `workers`, and `file`, where improving solutions may be written. Answers are
{"bound": float} and {"values": [...]} while it runs, then {"result": {...}} or {"error": text}. The process ends when
its input does, also during a run, so it does not outlive the process that started it.

The script imports only OR-Tools and the standard library, so that it does not depend on how placeopt is installed.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import math
import os
import queue
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

Send = Callable[[dict[str, Any]], None]

TOLERANCE = 1e-9
"""Tolerance of SCIP for rows and whole columns, 1e-6 by default. HiGHS keeps its own 1e-6 and 1e-7: with 1e-9 it cut
off optima and called feasible programs infeasible, one in ten of those with numbers from 1e5 on; with its own, none of
558. For SCIP, the tighter value is the safer one."""

PRESOLVE = "off"
"""HiGHS' presolve: up to version 1.14 some of its reductions cut optima off without notice (ERGO-Code/HiGHS#3094,
#3274). On small models it made no difference to the time."""

# A line of HiGHS' log: an optional letter; nodes processed, queued, leaves, explored, bound, best solution.
BOUND = re.compile(r"^\s*(?:[A-Za-z]\s)?\s*\d\S*\s+\d\S*\s+\d\S*\s+[\d.]+%\s+(-?[\d.]+(?:e[+-]?\d+)?)\s")

LOG_PRECISION = 1e-9
"""Relative error of a bound in the log, which shows ten digits."""


def status_name(result: Any) -> Literal["optimal", "infeasible", "limit", "failed"]:
    """Return the status of a MathOpt result; every column has bounds, so no program is unbounded."""
    from ortools.math_opt.python import mathopt

    reason = mathopt.TerminationReason
    known: dict[Any, Literal["optimal", "infeasible", "limit"]] = {
        reason.OPTIMAL: "optimal",
        reason.INFEASIBLE: "infeasible",
        reason.INFEASIBLE_OR_UNBOUNDED: "infeasible",
        reason.FEASIBLE: "limit",
        reason.NO_SOLUTION_FOUND: "limit",
    }
    return known.get(result.termination.reason, "failed")


def solved(request: dict[str, Any], send: Send) -> dict[str, Any]:
    """Return the result of one run."""
    from ortools.math_opt import model_pb2
    from ortools.math_opt.python import mathopt

    program = mathopt.Model.from_model_proto(model_pb2.ModelProto.FromString(base64.b64decode(request["model"])))
    columns = sorted(program.variables(), key=lambda column: int(column.id))
    parameters = mathopt.SolveParameters(
        random_seed=request["seed"],
        absolute_gap_tolerance=request["absolute_gap"],
        relative_gap_tolerance=request["gap"],
    )
    if request["seconds"] is not None:
        parameters.time_limit = datetime.timedelta(seconds=request["seconds"])
    start = mathopt.ModelSolveParameters()
    if request["hint"] is not None:
        values = dict(zip(columns, request["hint"], strict=True))
        start.solution_hints.append(mathopt.SolutionHint(variable_values=values))
    engines = {"highs": (mathopt.SolverType.HIGHS, _highs), "scip": (mathopt.SolverType.GSCIP, _scip)}
    kind, prepare = engines[request["engine"]]
    watching = prepare(parameters, request, columns, send)
    found = mathopt.solve(program, kind, params=parameters, model_params=start, **watching)
    bound = float(found.best_objective_bound())
    best = found.variable_values() if found.has_primal_feasible_solution() else None
    return {
        "status": status_name(found),
        "bound": bound if math.isfinite(bound) else None,
        "values": None if best is None else [float(best[column]) for column in columns],
        "nodes": int(found.solve_stats.node_count),
        "message": found.termination.detail,
    }


def _highs(parameters: Any, request: dict[str, Any], columns: list[Any], send: Send) -> dict[str, Any]:
    """Set HiGHS' options and watch its log and its file of solutions: MathOpt passes on nothing else."""
    options = parameters.highs
    options.string_options["parallel"] = "on" if request["workers"] > 1 else "off"
    options.int_options["threads"] = request["workers"]
    options.string_options["presolve"] = PRESOLVE
    options.bool_options["mip_improving_solution_save"] = True
    options.bool_options["mip_improving_solution_report_sparse"] = True
    options.string_options["mip_improving_solution_file"] = request["file"]
    seen = 0

    def log(lines: list[str]) -> None:
        nonlocal seen
        with contextlib.suppress(OSError, ValueError):  # an exception would end the process
            for line in lines:
                found = BOUND.match(line)
                if found:
                    bound = float(found[1])
                    send({"bound": bound - abs(bound) * LOG_PRECISION})
            solutions = list(improving(Path(request["file"]).read_text(), len(columns)))
            if len(solutions) > seen:
                seen = len(solutions)
                send({"values": solutions[-1]})

    return {"msg_cb": log}


def _scip(parameters: Any, request: dict[str, Any], columns: list[Any], send: Send) -> dict[str, Any]:  # noqa: ARG001
    """Set SCIP's parameters and watch its solutions and nodes."""
    from ortools.math_opt.python import mathopt

    for name in ("numerics/feastol", "numerics/dualfeastol"):
        parameters.gscip.real_params[name] = TOLERANCE
    parameters.gscip.real_params["numerics/epsilon"] = TOLERANCE
    best = -math.inf

    def watch(data: Any) -> Any:
        nonlocal best
        with contextlib.suppress(OSError, ValueError):  # an exception would end the process
            if data.event == mathopt.Event.MIP_SOLUTION and data.solution is not None:
                send({"values": [float(data.solution[column]) for column in columns]})
            bound = float(data.mip_stats.dual_bound)
            if data.mip_stats.HasField("dual_bound") and math.isfinite(bound) and bound > best:
                best = bound
                send({"bound": bound})
        return mathopt.CallbackResult()

    events = mathopt.CallbackRegistration(
        events={mathopt.Event.MIP_SOLUTION, mathopt.Event.MIP_NODE},
        mip_node_filter=mathopt.VariableFilter(filtered_items=[]),
    )
    return {"callback_reg": events, "cb": watch}


def improving(text: str, size: int) -> Iterator[list[float]]:
    """Yield the complete solutions in HiGHS' file: "Objective v", "# Columns -k", then k lines "value column"."""
    lines = text[: text.rfind("\n") + 1].splitlines()  # the last line may still be being written
    for position, line in enumerate(lines):
        if not line.startswith("# Columns -"):
            continue
        end = position + 1 + int(line.removeprefix("# Columns -"))
        if end > len(lines):
            return
        values = [0.0] * size
        for entry in lines[position + 1 : end]:
            value, column = entry.split()
            values[int(column)] = float(value)
        yield values


def main() -> None:
    """Serve requests until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # engines print to the standard output
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with lock:
            channel.write(json.dumps(message) + "\n")
            channel.flush()

    requests: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        request = json.loads(requests.get())
        try:
            send({"result": solved(request, send)})
        except Exception as error:  # noqa: BLE001 - reported to the caller
            # MathOpt (9.15) fails while it reports an error: the original one is the context.
            send({"error": f"{type(error).__name__}: {error.__context__ or error}"})


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])
    main()
