"""placeopt whatif, pareto, losses and replace: studies that solve a problem several times, or a changed one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from placeopt.cli import completion
from placeopt.cli.arguments import (
    DEFAULT_LIMIT,
    LARGEST_COUNT,
    checked_options,
    input_path,
    limit_seconds,
    seconds,
    solver_settings,
)
from placeopt.cli.commands.serving import refuse, replace_serving_file, whatif_serving_file
from placeopt.cli.files import check_targets, print_instead, save_plan, save_plots, wanted_plots, written
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    BoundTime,
    Gap,
    Out,
    PlanPath,
    ProblemFile,
    Seed,
    Sets,
    Solver,
    Workers,
    devices_option,
    limit_option,
    output_option,
    plot_option,
    solver_option,
)
from placeopt.cli.output import explaining, print_json, print_notes, stderr_console, stdout_console
from placeopt.cli.progress import stages, watched
from placeopt.errors import UsageError, visible

if TYPE_CHECKING:
    from placeopt.protocol import Progress
    from placeopt.studies.losses import Losses
    from placeopt.studies.pareto import Pareto
    from placeopt.studies.sensitivity import WhatIf


PATIENCE = 300.0
"""Seconds that all solves may take together without a note."""


def _print(found: WhatIf | Pareto | Losses, as_json: bool) -> None:
    """Print what a study found, as JSON or as tables."""
    from placeopt.cli.terminal.studies import print_findings

    if as_json:
        print_json(found.to_dict())
    else:
        print_findings(stdout_console(), found)


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
        _print(found, as_json)
    if stop.is_set():
        raise typer.Exit(stop.code)
    if not found.base.feasible:
        raise typer.Exit(3 if found.base.termination.value == "time_limit" else 1)
    raise typer.Exit(0 if drawn else 2)


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
        if as_csv:
            from placeopt.cli.terminal.comparison import write_csv

            write_csv(sys.stdout, found.rows())
        else:
            _print(found, as_json)
            if found.termination.value == "infeasible" and not as_json:
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


def losses(
    problem: ProblemFile,
    solver: Annotated[str, solver_option("A solver that places clusters, or any solver with --pass.")] = "celeritas",
    passes: Annotated[
        list[str] | None,
        Option(
            "--pass",
            metavar="NAME[:KEY=VALUE,...]",
            help="Apply this pass, which joins tasks, before solving; may be repeated. `placeopt passes` lists passes.",
        ),
    ] = None,
    time_limit: Annotated[
        str, limit_option("Time for the solver, and for each of the three optima, such as 30s or 5min, or `none`.")
    ] = "60s",
    prover: Annotated[str, Option(help="The solver that closes in on the three optima; it should be exact.")] = "auto",
    seed: Seed = 0,
    workers: Workers = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Separate what a solver's clusters cost from what their placement costs, at least and at most."""
    from placeopt.io.compiler import load
    from placeopt.passes import find_pass
    from placeopt.protocol.registry import find_solver
    from placeopt.studies.losses import SOLVES, check_clusters
    from placeopt.studies.losses import losses as separate

    settings = solver_settings(solver, sets)
    limit = limit_seconds(time_limit)
    find_solver(prover)
    for name in passes or ():
        find_pass(name)
    check_clusters(solver, passes)
    checked_options(time_limit=limit, seed=seed, workers=workers)
    compiled = load(problem)

    def work(report: Callable[[Progress], None]) -> Losses:
        return separate(
            compiled, solver, time_limit=limit, prover=prover, passes=passes, seed=seed, workers=workers,
            on_stage=stages(report), should_stop=stop.is_set, **settings,
        )  # fmt: skip

    with on_interrupt() as stop:
        found = watched(work, compiled, stderr_console(), None if limit is None else limit * SOLVES)
        _print(found, as_json)
    if stop.is_set():
        raise typer.Exit(stop.code)
    if not found.chain:
        raise typer.Exit(3 if found.found.termination.value == "time_limit" else 1)
    raise typer.Exit(0)


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
