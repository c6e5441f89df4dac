"""placeopt replace: an existing plan on a changed network, moved at least cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.commands.export import print_instead, save_plan, written
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    Out,
    PlanPath,
    ProblemFile,
    Sets,
    assignments,
    checked_options,
    document_text,
    input_path,
    print_json,
    seconds,
    stderr_console,
    stdout_console,
)
from placeopt.cli.targets import check_targets, local_file
from placeopt.cli.watching import watched
from placeopt.io.files import write_whole

DEFAULT_LIMIT = 60.0
"""Seconds after which a solver that would go on is stopped."""


def replace(
    problem: ProblemFile,
    plan: PlanPath,
    devices: Annotated[
        Path,
        typer.Option(
            "--devices",
            "-d",
            metavar="FILE",
            parser=input_path,
            help="The devices that there are now, and links where they changed.",
        ),
    ],
    solver: Annotated[str, typer.Option("--solver", "-s", help="The solver; it has to know relocation.")] = "auto",
    runs: Annotated[
        float | None, typer.Option("--runs", help="How many runs the new placement serves, before the next change.")
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option("--time-limit", "-t", metavar="TIME", help="Stop after this time, 60s by default; or `none`."),
    ] = None,
    gap: Annotated[float | None, typer.Option("--gap", help="Stop once a gap of at most this is proved: 0.05.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Same seed with one worker, same answer.")] = 0,
    workers: Annotated[int | None, typer.Option("--workers", "-w", help="Threads; all cores by default.")] = None,
    sets: Sets = None,
    out: Out = None,
    out_problem: Annotated[
        Path | None,
        typer.Option(
            "--out-problem",
            metavar="FILE",
            parser=local_file,
            help="Write the changed problem to this file: what the new plan is for.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Move an existing plan to a changed network at least cost: tasks stay unless moving them pays, or they must go."""
    from placeopt.io.formats.problems import problem_document
    from placeopt.model.arrays import checked_number
    from placeopt.solver.registry import find_solver
    from placeopt.solving.settings import read_settings
    from placeopt.studies.replacement import changed_problem, replaced

    settings = assignments(sets)
    limit = None if time_limit == "none" else seconds(time_limit, "--time-limit")
    if time_limit is None:
        limit = DEFAULT_LIMIT
    read_settings(find_solver(solver), settings)
    checked_options(time_limit=limit, gap=gap, seed=seed, workers=workers)
    checked_number("--runs", runs, positive=True)
    check_targets(("--out", out), ("--out-problem", out_problem))
    messages = stderr_console()
    changed = changed_problem(problem, plan, devices, runs)
    with on_interrupt() as stop:
        found = watched(
            lambda tell: replaced(
                changed, solver, time_limit=limit, gap_limit=gap, seed=seed, workers=workers, on_progress=tell,
                should_stop=stop.is_set, **settings,
            ),
            changed.problem, messages, limit,
        )  # fmt: skip
        result = found.result
        unsaved = (
            None if out is None else save_plan(out, result)
        )  # before anything is printed: nothing can come between
        document = problem_document(found.problem)
        described = written(out_problem, lambda path: write_whole(path, document_text(document, path)))
        if as_json:
            print_json(found.to_dict())
        else:
            from placeopt.cli.terminal.console import print_problem, print_result
            from placeopt.cli.terminal.replacement import print_moves, print_network

            console = stdout_console()
            print_problem(console, found.problem)
            print_network(console, found)
            print_result(console, result)
            print_moves(console, found)
        if unsaved is not None:
            print_instead(unsaved, result, as_json)
    if stop.is_set():
        raise typer.Exit(stop.code)
    if result.schedule is None:
        raise typer.Exit(3 if result.termination.value == "time_limit" else 1)
    raise typer.Exit(1 if not result.feasible else 0 if unsaved is None and described else 2)
