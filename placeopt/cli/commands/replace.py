"""placeopt replace: move an existing plan to a changed network at minimum cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from placeopt.cli.arguments import DEFAULT_LIMIT, checked_options, input_path, limit_seconds, solver_settings
from placeopt.cli.commands.serving import refuse, replace_serving_file
from placeopt.cli.files import check_targets, print_instead, save_plan, written
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    Gap,
    Out,
    PlanPath,
    ProblemFile,
    Seed,
    Sets,
    Workers,
    devices_option,
    limit_option,
    output_option,
    solver_option,
)
from placeopt.cli.output import print_json, print_notes, stderr_console, stdout_console
from placeopt.cli.progress import watched
from placeopt.errors import UsageError


def replace(
    problem: ProblemFile,
    plan: PlanPath,
    given: Annotated[
        list[str],
        devices_option(
            "--devices",
            "-d",
            help="A file with the devices after the change, and the links if they changed; or devices of the "
            "catalogue: `h100-sxm:4`.",
        ),
    ],
    solver: Annotated[str, solver_option("The solver; it must support relocation.")] = "auto",
    runs: Annotated[float | None, Option(help="Number of runs of the new placement until the next change.")] = None,
    time_limit: Annotated[
        str | None, limit_option(f"Stop after this time, by default {DEFAULT_LIMIT:g}s; or `none`.")
    ] = None,
    gap: Gap = None,
    seed: Seed = 0,
    workers: Workers = None,
    sets: Sets = None,
    out: Out = None,
    out_problem: Annotated[
        Path | None,
        output_option("--out-problem", help="Write the changed problem, to which the new plan belongs, to this file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Move a plan to a changed network at minimum cost: tasks stay unless they must move or moving pays off."""
    from placeopt.bridges.networks import names_file, network_of
    from placeopt.io.compiler import document_of
    from placeopt.io.document import is_serving
    from placeopt.io.formats.documents import write_problem
    from placeopt.model.arrays import checked_number
    from placeopt.studies.replacement import changed_problem, replaced

    settings = solver_settings(solver, sets)
    limit = limit_seconds(time_limit, DEFAULT_LIMIT)
    checked_options(time_limit=limit, gap=gap, seed=seed, workers=workers)
    checked_number("--runs", runs, positive=True)
    check_targets(("--out", out), ("--out-problem", out_problem))
    devices = ",".join(given)  # repeated options join their devices
    document = document_of(problem)
    if is_serving(document):
        refuse({
            "--solver": solver != "auto", "--runs": runs, "--gap": gap is not None, "--set": sets,
            "--out-problem": out_problem, "--time-limit none": limit is None,
        })  # fmt: skip
        assert limit is not None
        if devices != "-" and not names_file(devices):
            what = "nodes of the same name keep their layers, so that serving problems need a file with devices"
            raise UsageError(f"--devices {devices}: {what}")
        replace_serving_file(document, plan, devices, limit=limit, seed=seed, workers=workers, out=out, as_json=as_json)
    is_file = devices == "-" or names_file(devices)
    network, notes = (input_path(devices), ()) if is_file else network_of(devices)
    messages = stderr_console()
    changed = changed_problem(document, plan, network, runs)
    print_notes(*notes)
    with on_interrupt() as stop:
        found = watched(
            lambda on_progress: replaced(
                changed, solver, time_limit=limit, gap_limit=gap, seed=seed, workers=workers, on_progress=on_progress,
                should_stop=stop.is_set, **settings,
            ),
            changed.problem, messages, limit,
        )  # fmt: skip
        result = found.result
        unsaved = save_plan(out, result)  # before printing, which may fail
        described = written(out_problem, lambda path: write_problem(found.problem, path))
        if as_json:
            print_json(found.to_dict())
        else:
            from placeopt.cli.terminal.console import print_problem, print_result
            from placeopt.cli.terminal.studies import print_moves, print_network

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
