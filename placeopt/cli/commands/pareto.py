"""placeopt pareto: compute the Pareto front of two metrics."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from placeopt.cli import completion
from placeopt.cli.arguments import LARGEST_COUNT, checked_options, limit_seconds, solver_settings
from placeopt.cli.files import check_targets, save_plots, wanted_plots
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson, Gap, ProblemFile, Seed, Sets, Workers, limit_option, plot_option, solver_option
from placeopt.cli.output import explaining, print_json, print_notes, stderr_console, stdout_console
from placeopt.cli.progress import watched
from placeopt.errors import UsageError, visible

if TYPE_CHECKING:
    from placeopt.protocol import Progress
    from placeopt.studies.pareto import Pareto


def pareto(
    problem: ProblemFile,
    metrics: Annotated[
        str,
        Option(
            "--metrics",
            "-m",
            metavar="FIRST,SECOND",
            autocompletion=completion.metrics,
            help="Two metrics that replace the objective, such as makespan,price.",
        ),
    ] = "makespan,energy",
    points: Annotated[
        str, Option("--points", "-n", metavar="N|all", help="Number of points, or `all` for the complete front.")
    ] = "9",
    solver: Annotated[str, solver_option("A solver that supports limits of metrics.")] = "cp-sat",
    time_limit: Annotated[str, limit_option("Time limit of all solves, such as 30s or 5min, or `none`.")] = "60s",
    gap: Gap = None,
    seed: Seed = 0,
    workers: Workers = None,
    sets: Sets = None,
    plots: Annotated[list[str] | None, plot_option("Draw the front to a .png, .svg or .pdf file.", "FILE")] = None,
    as_csv: Annotated[bool, Option("--csv", help="Print the points as CSV on stdout.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compute the Pareto front of two metrics, with schedules, lower bounds, and a certified gap at each point."""
    from placeopt.io.compiler import load
    from placeopt.studies.pareto import check_metrics
    from placeopt.studies.pareto import pareto as compute

    settings = solver_settings(solver, sets)
    limit = limit_seconds(time_limit)
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other: each prints on stdout")
    chosen = check_metrics([name.strip() for name in metrics.split(",")], "--metrics")
    wanted = None if points == "all" else _count(points)
    checked_options(time_limit=limit, gap=gap, seed=seed, workers=workers)
    drawings = wanted_plots(plots, ("front",))
    check_targets(*(("--plot", path) for _, path in drawings))
    compiled = load(problem)

    def work(report: Callable[[Progress], None]) -> Pareto:
        return compute(
            compiled, chosen, points=wanted, solver=solver, time_limit=limit, seed=seed, on_step=_steps(report),
            should_stop=stop.is_set, gap_limit=gap, workers=workers, **settings,
        )  # fmt: skip

    with on_interrupt() as stop:
        found = watched(work, compiled, stderr_console(), limit)
        drawn = save_plots(drawings, lambda _kind: found.plot())
        if as_json:
            print_json(found.to_dict())
        elif as_csv:
            from placeopt.cli.terminal.comparison import write_csv

            write_csv(sys.stdout, found.rows())
        else:
            from placeopt.cli.terminal.studies import print_findings

            print_findings(stdout_console(), found)
            if found.termination.value == "infeasible":
                print_notes(explaining(problem, compiled))
    if stop.is_set():
        raise typer.Exit(stop.code)
    if not found.points:
        raise typer.Exit(3 if found.termination.value == "time_limit" else 1)
    raise typer.Exit(0 if drawn else 2)


def _count(text: str) -> int:
    """Convert `--points` to a number; anything but 2 or more is a UsageError."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_COUNT)) and int(text) >= 2):
        raise UsageError(f"--points is {visible(text)}; expected a whole number of at least 2, or all")
    return int(text)


def _steps(report: Callable[[Progress], None]) -> Callable[[str], None]:
    """Return a function that reports what is solved now."""
    from placeopt.protocol import Progress

    begun = time.monotonic()
    return lambda text: report(Progress(time.monotonic() - begun, message=text))
