"""placeopt inspect, bounds and explain: describe a problem, prove lower bounds, find lines that conflict."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.arguments import checked_options, limit_seconds, seconds
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson, ConnectLimit, Dask, ProblemFile, Seed, Workers, limit_option, solver_option
from placeopt.cli.output import print_json, print_notes, stderr_console, stdout_console
from placeopt.cli.progress import status_line, watched

if TYPE_CHECKING:
    from placeopt.bounding.quick import Bound

_CODES = {"feasible": 0, "infeasible": 1, "undecided": 3}
"""Exit codes of `placeopt explain`."""


def inspect(problem: ProblemFile, as_json: AsJson = False) -> None:
    """Describe a problem: sizes, shape, memory, device classes, effect of exact passes, lower bounds."""
    from placeopt.cli.terminal.inspection import inspection, print_inspection
    from placeopt.io.compiler import load

    compiled = load(problem)
    found = inspection(compiled)
    if as_json:
        print_json(found)
    else:
        print_inspection(stdout_console(), compiled, found)


def bounds(
    problem: ProblemFile,
    time_limit: Annotated[str, limit_option("Time limit of the slow bounds, such as 30s or 5min, or `none`.")] = "30s",
    workers: Workers = None,
    dask: Dask = None,
    connect_limit: ConnectLimit = "10s",
    as_json: AsJson = False,
) -> None:
    """Prove lower bounds of the objective: no schedule is better than the largest bound."""
    from rich.text import Text

    from placeopt.bounding.quick import prove_infeasible
    from placeopt.bounding.relaxation import refusal
    from placeopt.cli.terminal.console import print_problem, print_wrapped
    from placeopt.cli.terminal.inspection import bounds_data, bounds_table
    from placeopt.io.compiler import load
    from placeopt.model.arrays import LONGEST
    from placeopt.orchestration.result import number
    from placeopt.protocol import Clock, Progress
    from placeopt.proving.portfolio import bounds as prove

    limit, connecting = limit_seconds(time_limit), seconds(connect_limit, "--connect-limit")
    assert connecting is not None
    options = checked_options(time_limit=limit, workers=workers)
    compiled = load(problem)
    data: dict[str, Any] = {
        "problem": compiled.name,
        "fingerprint": compiled.fingerprint(),
        "objective": str(compiled.objective),
        "resolution": float(compiled.resolution),
    }
    if not as_json:
        print_problem(stdout_console(), compiled)
    proof = prove_infeasible(compiled)
    if proof is not None:
        if as_json:
            print_json(data | {"infeasible": proof.reason, "bound": None, "bounds": []})
        else:
            print_wrapped(stdout_console(), Text.assemble(("infeasible", "red"), f": {proof.reason}"))
        raise typer.Exit(1)
    clock, proved = Clock(limit), [Fraction(0)]

    def report(bound: Bound, on_progress: Callable[[Progress], None]) -> None:
        proved.append(max(proved[-1], Fraction(bound.value)))
        on_progress(Progress(clock.elapsed, bound=proved[-1]))

    with on_interrupt() as stop:
        found = watched(
            lambda on_progress: prove(
                compiled, time_limit=options.time_limit or LONGEST, workers=options.workers, dask=dask,
                connect_limit=connecting, should_stop=stop.is_set, on_bound=lambda bound: report(bound, on_progress),
            ),
            compiled, stderr_console(), limit,
        )  # fmt: skip
        if as_json:
            print_json(data | {"infeasible": None, "bound": number(found[0].value), "bounds": bounds_data(found)})
        else:
            stdout_console().print(bounds_table(compiled, bounds_data(found)))
        relaxed = compiled.pipeline is not None or any(bound.name.startswith("relaxation") for bound in found)
        if not relaxed and not stop.is_set():
            print_notes(f"no relaxation-lp or relaxation-mip: {refusal(compiled) or '--time-limit is too short'}")
    raise typer.Exit(stop.code if stop.is_set() else 0)


def explain(
    problem: ProblemFile,
    time_limit: Annotated[str, limit_option("Stop after this time and print the lines found so far.")] = "60s",
    solver: Annotated[str, solver_option("The exact solver that decides feasibility.")] = "cp-sat",
    seed: Seed = 0,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Find lines of an infeasible problem that conflict, and a fix for each of them."""
    from placeopt.cli.terminal.console import print_problem
    from placeopt.cli.terminal.studies import print_explanation
    from placeopt.studies.explanation import explain as explain_problem

    limit = seconds(time_limit, "--time-limit") or 0.0
    checked_options(time_limit=limit, seed=seed, workers=workers)
    with on_interrupt() as stop:
        with status_line(stderr_console(), "reading") as show:
            found = explain_problem(
                problem, time_limit=limit, solver=solver, seed=seed, workers=workers,
                on_progress=show, should_stop=stop.is_set,
            )  # fmt: skip
        if as_json:
            print_json(found.to_dict())
        else:
            print_problem(stdout_console(), found.problem)
            print_explanation(stdout_console(), found)
    raise typer.Exit(stop.code if stop.is_set() else _CODES[found.status])
