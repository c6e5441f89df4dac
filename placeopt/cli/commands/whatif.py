"""placeopt whatif: compute what more or faster devices, more memory and faster links gain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from placeopt.cli.arguments import checked_options, limit_seconds, seconds, solver_settings
from placeopt.cli.commands.serving import refuse, whatif_serving_file
from placeopt.cli.files import check_targets, save_plots, wanted_plots
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    BoundTime,
    Gap,
    ProblemFile,
    Seed,
    Sets,
    Solver,
    Workers,
    limit_option,
    plot_option,
)
from placeopt.cli.output import print_json, print_notes, stderr_console, stdout_console
from placeopt.cli.progress import stages, watched

if TYPE_CHECKING:
    from placeopt.protocol import Progress
    from placeopt.studies.sensitivity import WhatIf

PATIENCE = 300.0
"""Seconds that all solves may take together without a note."""


def whatif(
    problem: ProblemFile,
    changes: Annotated[
        list[str] | None,
        Option(
            "--change",
            "-c",
            metavar="KIND[:TARGET]",
            help="Examine only these changes; may be repeated. Kinds: devices, speed, memory, resources, budgets, "
            "bandwidth, latency, network; a target restricts a kind, such as devices:gpu. The default is all changes.",
        ),
    ] = None,
    solver: Solver = "auto",
    time_limit: Annotated[str, limit_option("Time limit of each solve, such as 30s or 5min, or `none`.")] = "10s",
    more_devices: Annotated[int, Option(help="Number of devices added of a type.")] = 1,
    speed_factor: Annotated[float, Option(help="Factor for the speed of a type.")] = 2,
    memory_factor: Annotated[float, Option(help="Factor for memory; 1.2 adds 20%.")] = 1.2,
    bandwidth_factor: Annotated[float, Option(help="Factor for bandwidths.")] = 2,
    latency_factor: Annotated[float, Option(help="Factor for latencies.")] = 0.5,
    resource_factor: Annotated[float, Option(help="Factor for the capacity of a resource or budget.")] = 1.1,
    gap: Gap = None,
    bound_time: BoundTime = None,
    seed: Seed = 0,
    workers: Workers = None,
    sets: Sets = None,
    plots: Annotated[list[str] | None, plot_option("Draw the gains to a .png, .svg or .pdf file.", "FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute how much a better network gains, at least and at most: devices, speed, memory, bandwidth, latency."""
    from placeopt.io.compiler import compile_document, document_of
    from placeopt.io.document import is_serving
    from placeopt.studies.sensitivity import examine, make_amounts, make_changes

    settings = solver_settings(solver, sets)
    limit = limit_seconds(time_limit)
    bounding = seconds(bound_time, "--bound-time")
    checked_options(time_limit=limit, gap=gap, seed=seed, workers=workers)
    amounts = make_amounts(
        more_devices=more_devices,
        speed_factor=speed_factor,
        memory_factor=memory_factor,
        bandwidth_factor=bandwidth_factor,
        latency_factor=latency_factor,
        resource_factor=resource_factor,
        option=lambda argument: f"--{argument.replace('_', '-')}",
    )
    wanted = wanted_plots(plots, ("gains",))
    check_targets(*(("--plot", path) for _, path in wanted))
    document = document_of(problem)
    if is_serving(document):
        refuse({
            "--change": changes, "--solver": solver != "auto", "--more-devices": more_devices != 1,
            "--speed-factor": speed_factor != 2, "--memory-factor": memory_factor != 1.2,
            "--bandwidth-factor": bandwidth_factor != 2, "--latency-factor": latency_factor != 0.5,
            "--resource-factor": resource_factor != 1.1, "--bound-time": bound_time, "--set": sets, "--plot": plots,
            "--time-limit none": limit is None,
        })  # fmt: skip
        assert limit is not None
        whatif_serving_file(document, limit=limit, gap=gap, seed=seed, workers=workers, as_json=as_json)
    compiled = compile_document(document)
    made, notes = make_changes(compiled, changes, amounts)

    def work(report: Callable[[Progress], None]) -> WhatIf:
        return examine(
            compiled, made, notes, solver, on_change=stages(report), should_stop=stop.is_set, time_limit=limit,
            gap_limit=gap, bound_time=bounding, seed=seed, workers=workers, **settings,
        )  # fmt: skip

    longest = None if limit is None else limit * (len(made) + 1)
    messages = stderr_console()
    if longest is not None and longest > PATIENCE:
        print_notes(f"{len(made) + 1} solves, at most {longest:.0f} s in total; --change selects fewer")
    with on_interrupt() as stop:
        found = watched(work, compiled, messages, longest)
        drawn = save_plots(wanted, lambda _kind: found.plot())
        if as_json:
            print_json(found.to_dict())
        else:
            from placeopt.cli.terminal.studies import print_findings

            print_findings(stdout_console(), found)
    if stop.is_set():
        raise typer.Exit(stop.code)
    if not found.base.feasible:
        raise typer.Exit(3 if found.base.termination.value == "time_limit" else 1)
    raise typer.Exit(0 if drawn else 2)
