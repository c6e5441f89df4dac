"""placeopt allocate: offsets of buffers with known lifetimes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from placeopt.cli.arguments import check_count, checked_options, limit_seconds, quantity
from placeopt.cli.files import check_targets, save_plots, unsaved, wanted_plots, written
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    Seed,
    Workers,
    input_argument,
    input_option,
    limit_option,
    output_option,
    plot_option,
)
from placeopt.cli.output import note_violations, noted_plan, print_json, print_notes, stdout_console
from placeopt.errors import UsageError, visible


def allocate(
    buffers: Annotated[
        Path,
        input_argument(
            "FILE",
            "Buffers: CSV with id, lower, upper and size, as MiniMalloc reads it, or JSON; with --plan, a problem.",
        ),
    ],
    plan: Annotated[
        Path | None, input_option("--plan", help="Place the buffers of this plan, on each device of the problem.")
    ] = None,
    alignment: Annotated[
        int | None,
        Option(help="With --plan: offsets are multiples of this number of bytes; by default, as the problem states."),
    ] = None,
    capacity: Annotated[
        str | None, Option("--capacity", metavar="BYTES", help="Fit into this memory, such as 1048576 or 256KiB.")
    ] = None,
    time_limit: Annotated[str, limit_option("Time for the search, such as 10s or 5min, or `none`.")] = "10s",
    seed: Seed = 0,
    workers: Workers = None,
    out: Annotated[
        Path | None, output_option("--out", "-o", help="Write the buffers with offsets: JSON for .json, else CSV.")
    ] = None,
    plots: Annotated[list[str] | None, plot_option("Draw the memory over time; .svg, .png or .pdf.", "FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Find offsets for buffers with known lifetimes: the least height, or a fit, with a proof."""
    from placeopt.allocation.files import load_buffers, write_allocation
    from placeopt.allocation.solving import allocate as solve
    from placeopt.allocation.views import alignment_text, problem_line, result_facts
    from placeopt.model import units
    from placeopt.model.arrays import LONGEST

    room = None if capacity is None else int(quantity(capacity, "--capacity", units.MEMORY).value)
    limit = limit_seconds(time_limit)
    limit = float(LONGEST) if limit is None else limit
    checked_options(time_limit=limit, seed=seed, workers=workers)
    check_count("--alignment", alignment)
    pictures = wanted_plots(plots, ("memory",))
    check_targets(("--out", out), *(("--plot", path) for _, path in pictures))
    if plan is not None:
        for option, given in (("--capacity", capacity), ("--plot", plots)):
            if given is not None:
                raise UsageError(f"{option} does not apply to plans; capacities are those of the devices")
        _allocate_plan(buffers, plan, alignment, limit, seed, workers, out, as_json)
    if alignment is not None:
        raise UsageError("--alignment applies to plans; the file of buffers states theirs")
    if buffers.suffix in (".yaml", ".yml"):
        raise UsageError(f"{buffers} is a problem, of which a plan has buffers; expected --plan FILE, or CSV or JSON")
    problem = load_buffers(buffers)
    console = stdout_console()
    if not as_json:
        console.print(problem_line(problem), markup=False)
    print_notes(*problem.notes)
    with on_interrupt() as stop:
        found = solve(problem, capacity=room, time_limit=limit, seed=seed, workers=workers, should_stop=stop.is_set)
    lacking = "no offsets were found" if found.offset is None else None
    why = unsaved(out, lacking, lambda path: write_allocation(path, found))
    if as_json:
        print_json(found.to_dict())
    else:
        from placeopt.cli.terminal.console import facts_table

        free = alignment_text(found, time_limit=limit, seed=seed, workers=workers) if found.fits is False else ""
        console.print(facts_table(result_facts(found, free)))
    if why is not None:
        print_notes(why)
    drawn = True
    if pictures and found.offset is not None:
        drawn = save_plots(pictures, lambda _: found.plot(title=buffers.name))
    if stop.is_set():
        raise typer.Exit(stop.code)
    missed = found.offset is None
    raise typer.Exit(1 if missed else 2 if why is not None or not drawn else 0)


def _allocate_plan(
    path: Path,
    plan: Path,
    alignment: int | None,
    limit: float,
    seed: int,
    workers: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Place the buffers of each device of a plan."""
    from placeopt.allocation.plans import allocate_plan
    from placeopt.allocation.views import alignment_text, devices_grid, missing_facts
    from placeopt.cli.terminal.console import facts_table, print_grid, print_problem
    from placeopt.io.compiler import compile_document, document_of
    from placeopt.io.files import write_whole
    from placeopt.model.units import time_text
    from placeopt.verifier import verify

    problem = compile_document(document_of(path))
    read = noted_plan(plan, problem)
    note_violations(verify(problem, read.schedule).violations)
    with on_interrupt() as stop:
        found = allocate_plan(
            problem, read.schedule, alignment=alignment, time_limit=limit, seed=seed, workers=workers,
            should_stop=stop.is_set,
        )  # fmt: skip
    data = {"problem": problem.name, "devices": {problem.device_names[d]: a.to_dict() for d, a in found.items()}}
    done = written(out, lambda path: write_whole(path, json.dumps(data, indent=1) + "\n"))
    if as_json:
        print_json(data)
    else:
        print_problem(stdout_console(), problem)
        if found:
            print_grid(stdout_console(), devices_grid(problem, found))
        else:
            print_notes("the plan has no buffers: its tasks keep no bytes")
        for d, each in found.items():
            if each.fits is False and not stop.is_set():
                free = alignment_text(each, time_limit=limit / len(found), seed=seed, workers=workers)
                where = f" on {visible(problem.device_names[d])}"
                facts = missing_facts(each, free, lambda tick: time_text(tick, problem.resolution), where)
                stdout_console().print(facts_table(facts))
    if stop.is_set():
        raise typer.Exit(stop.code)
    raise typer.Exit(1 if any(each.offset is None for each in found.values()) else 0 if done else 2)
