"""HiGHS in a process of its own: a script that reads requests and writes what happens, one JSON object a line.

A request has `model` (a MathOpt ModelProto, base64), `hint` (a value for each column, or null), `seconds`, `gap`,
`absolute_gap`, `seed`, `workers`, and `file`, where HiGHS may write improving solutions. Answers are {"bound": float},
{"values": [...]} while it runs, then {"result": {...}} or {"error": text}. The process ends when its input does, in the
midst of a run too: it never outlives who started it.

Nothing but OR-Tools and the standard library is imported, so that the script runs whatever else is installed how.
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

TOLERANCE = 1e-9
"""By which a row may fail and a whole column be off; HiGHS allows no less than 1e-10, by default it is 1e-6."""

# A line of HiGHS' log: an optional letter, nodes processed, in the queue, leaves, explored, bound, best solution.
BOUND = re.compile(r"^\s*(?:[A-Za-z]\s)?\s*\d\S*\s+\d\S*\s+\d\S*\s+[\d.]+%\s+(-?[\d.]+(?:e[+-]?\d+)?)\s")

LOG_DIGITS = 1e-9
"""Relative error of a bound in the log, which has ten digits."""


def status_name(result: Any) -> Literal["optimal", "infeasible", "limit", "failed"]:
    """What a MathOpt result means here; every column has bounds, so nothing is unbounded."""
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


def highs(request: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The result of one run."""
    from ortools.math_opt import model_pb2
    from ortools.math_opt.python import mathopt

    model = model_pb2.ModelProto.FromString(base64.b64decode(request["model"]))
    programme = mathopt.Model.from_model_proto(model)
    columns = sorted(programme.variables(), key=lambda column: int(column.id))
    parameters = mathopt.SolveParameters(
        random_seed=request["seed"],
        absolute_gap_tolerance=request["absolute_gap"],
        relative_gap_tolerance=request["gap"] or 0.0,
    )
    if request["seconds"] is not None:
        parameters.time_limit = datetime.timedelta(seconds=request["seconds"])
    options = parameters.highs
    for name in ("mip_feasibility_tolerance", "primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        options.double_options[name] = TOLERANCE
    options.string_options["parallel"] = "on" if request["workers"] > 1 else "off"
    options.int_options["threads"] = request["workers"]
    options.bool_options["mip_improving_solution_save"] = True
    options.bool_options["mip_improving_solution_report_sparse"] = True
    options.string_options["mip_improving_solution_file"] = request["file"]
    start = mathopt.ModelSolveParameters()
    if request["hint"] is not None:
        values = dict(zip(columns, request["hint"], strict=True))
        start.solution_hints.append(mathopt.SolutionHint(variable_values=values))
    seen = 0

    def log(lines: list[str]) -> None:
        nonlocal seen
        # An exception here would end the process: HiGHS does not expect one.
        with contextlib.suppress(OSError, ValueError):
            for line in lines:
                found = BOUND.match(line)
                if found:
                    bound = float(found[1])
                    tell({"bound": bound - abs(bound) * LOG_DIGITS})
            solutions = list(improving(Path(request["file"]).read_text(), len(columns)))
            if len(solutions) > seen:
                seen = len(solutions)
                tell({"values": solutions[-1]})

    found = mathopt.solve(
        programme, mathopt.SolverType.HIGHS, params=parameters, model_params=start, msg_cb=log, remove_names=True
    )
    bound = float(found.best_objective_bound())
    values = None
    if found.has_primal_feasible_solution():
        best = found.variable_values()
        values = [float(best[column]) for column in columns]
    return {
        "status": status_name(found),
        "bound": bound if math.isfinite(bound) else None,
        "values": values,
        "nodes": int(found.solve_stats.node_count),
        "message": found.termination.detail,
    }


def improving(text: str, size: int) -> Iterator[list[float]]:
    """The complete solutions in HiGHS' file: "Objective v", "# Columns -k", then k lines "value column"."""
    lines = text.splitlines()
    for position, line in enumerate(lines):
        if not line.startswith("# Columns -"):
            continue
        count = int(line.removeprefix("# Columns -"))
        body = lines[position + 1 : position + 1 + count]
        if len(body) < count or (position + 1 + count == len(lines) and not text.endswith("\n")):
            return  # still being written
        values = [0.0] * size
        for entry in body:
            value, column = entry.split()
            values[int(column)] = float(value)
        yield values


def main() -> None:
    """Answer requests until there are no more."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # HiGHS prints what it should not
    lock = threading.Lock()

    def tell(message: dict[str, Any]) -> None:
        with lock:
            channel.write(json.dumps(message) + "\n")
            channel.flush()

    requests: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)  # in the midst of a run: whoever wanted it is gone

    threading.Thread(target=read, daemon=True).start()
    while True:
        request = json.loads(requests.get())
        try:
            tell({"result": highs(request, tell)})
        except Exception as error:  # noqa: BLE001 - told to who asked
            tell({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])
    main()
