"""placeopt explain: find the lines that make a problem infeasible."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.arguments import checked_options, seconds
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson, ProblemFile, Seed, Workers
from placeopt.cli.output import print_json, stderr_console, stdout_console
from placeopt.cli.parameters import limit_option
from placeopt.cli.progress import status_line

_CODES = {"feasible": 0, "infeasible": 1, "undecided": 3}


def explain(
    problem: ProblemFile,
    time_limit: Annotated[str, limit_option("Stop after this time and print the lines found so far.")] = "60s",
    solver: Annotated[
        str, typer.Option("--solver", "-s", help="The exact solver that decides feasibility.")
    ] = "cp-sat",
    seed: Seed = 0,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Find lines of an infeasible problem that conflict, and a fix for each of them."""
    from placeopt.cli.terminal.console import print_problem
    from placeopt.cli.terminal.explanation import print_explanation
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
