"""placeopt solve: a problem file in, a verified result out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands.export import ReportFile, TraceFile, print_instead, save_exports, save_plan
from placeopt.cli.commands.plot import picture_targets, save_pictures, wanted_pictures
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    Out,
    ProblemFile,
    Sets,
    assignments,
    checked_options,
    input_path,
    print_json,
    seconds,
    stderr_console,
    stdout_console,
)
from placeopt.cli.targets import check_targets
from placeopt.cli.watching import watched
from placeopt.errors import UsageError, suggestion

if TYPE_CHECKING:
    from rich.console import Console

    from placeopt.solving.result import Result

DEFAULT_LIMIT = 60.0
"""Seconds after which the command line stops a solver that would go on until it is stopped."""


def solve(
    problem: ProblemFile,
    solver: Annotated[str, typer.Option("--solver", "-s", help="The solver; `placeopt solvers` lists them.")] = "heft",
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--time-limit",
            "-t",
            metavar="TIME",
            help="Stop after this time (30s, 5min; bare numbers are seconds). Exact and anytime "
            "solvers stop after 60s unless told otherwise; `none` lets them run.",
        ),
    ] = None,
    gap: Annotated[float | None, typer.Option("--gap", help="Stop once a gap of at most this is proved: 0.05.")] = None,
    require_gap: Annotated[
        float | None, typer.Option("--require-gap", help="Exit with 1 unless the gap is proved to be at most this.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Same seed with one worker, same answer.")] = 0,
    workers: Annotated[int | None, typer.Option("--workers", "-w", help="Threads; all cores by default.")] = None,
    initial: Annotated[
        str | None,
        typer.Option("--initial", metavar="PLAN|SOLVER", help="A plan file, or a solver's schedule, to start from."),
    ] = None,
    passes: Annotated[
        list[str] | None,
        typer.Option(
            "--pass",
            metavar="NAME[:KEY=VALUE,...]",
            help="A pass that makes the problem smaller first, with its settings; may be given several times. "
            "`placeopt passes` lists them; exact solvers use the exact ones unless told otherwise.",
        ),
    ] = None,
    no_passes: Annotated[
        bool, typer.Option("--no-passes", help="The problem as it is, also for exact solvers.")
    ] = False,
    bound_time: Annotated[
        str | None,
        typer.Option("--bound-time", metavar="TIME", help="Spend this time on better lower bounds after the solver."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="No best effort: fail rather than return a schedule that overfills a device."),
    ] = False,
    sets: Sets = None,
    out: Out = None,
    plots: Annotated[
        list[str] | None,
        typer.Option(
            "--plot",
            metavar="[KIND:]FILE",
            help="Draw the schedule into a .png, .svg or .pdf; may be given several times. Kinds: gantt (unless told "
            "otherwise), memory, graph, convergence.",
        ),
    ] = None,
    trace: TraceFile = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Solve a problem: place and schedule its tasks, verify the schedule, bound the gap."""
    from placeopt.io.compiler import compile_document
    from placeopt.io.document import read_document
    from placeopt.io.plan import read_plan
    from placeopt.passes import find_pass
    from placeopt.solver.registry import find_solver, solver_names
    from placeopt.solving.pipeline import solve as solve_problem
    from placeopt.solving.settings import read_settings
    from placeopt.views.plots import SCHEDULE_KINDS

    settings = assignments(sets)
    if require_gap is not None and not require_gap >= 0:
        raise UsageError(f"--require-gap is {require_gap}; expected a number that is not negative, such as 0.05")
    if no_passes and passes:
        raise UsageError("--pass and --no-passes do not go together")
    names = () if no_passes else tuple(passes) if passes else None
    found = find_solver(solver)
    info = found.info
    limit = None if time_limit == "none" else seconds(time_limit, "--time-limit")
    by_default = time_limit is None and (info.exact or info.anytime)
    if by_default:
        limit = DEFAULT_LIMIT
    bounding = seconds(bound_time, "--bound-time")
    # Mistakes in options are told before a large file is read.
    given = (
        None if initial is None or input_path(initial).exists() else initial
    )  # a file goes before a solver of its name
    if given is not None and given not in solver_names():
        hint = suggestion(given, solver_names())
        raise UsageError(f'--initial "{given}": no such file, and no solver of that name{hint}')
    read_settings(found, settings)
    checked_options(time_limit=limit, gap=gap, seed=seed, workers=workers)
    for name in names or ():
        find_pass(name)
    pictures = wanted_pictures(plots, (*SCHEDULE_KINDS, "convergence"))
    check_targets(("--out", out), ("--trace", trace), ("--report", report), *picture_targets(pictures))
    begun = time.monotonic()
    document = read_document(problem)
    read = time.monotonic()
    compiled = compile_document(document)
    built = time.monotonic()
    start = given or (None if initial is None else read_plan(input_path(initial), compiled).schedule)

    messages = stderr_console()
    if start is not None and not info.warm_start:
        messages.print(f"note: {solver} starts from scratch, --initial makes no difference to it", soft_wrap=True)
    with on_interrupt() as stop:
        if not as_json:
            from placeopt.cli.terminal.console import print_problem

            print_problem(stdout_console(), compiled)
        result = watched(
            lambda tell: solve_problem(
                compiled, solver, time_limit=limit, gap_limit=gap, seed=seed, workers=workers, initial=start,
                passes=names, bound_time=bounding, strict=strict, on_progress=tell, should_stop=stop.is_set, **settings,
            ),
            compiled, messages, None if limit is None else limit + (bounding or 0),
        )  # fmt: skip
        result = replace(result, wall_time=replace(result.wall_time, load=read - begun, build=built - read))
        unsaved = (
            None if out is None else save_plan(out, result)
        )  # before anything is printed: nothing can come between
        if as_json:
            print_json(result.to_dict())
        else:
            from placeopt.cli.terminal.console import print_result

            print_result(stdout_console(), result)
            idle = [
                name for name in names or () if result.passes is None or find_pass(name).name not in result.passes.names
            ]
            if idle:
                messages.print(
                    f"note: nothing to do for {'the pass' if len(idle) == 1 else 'the passes'} {', '.join(idle)}"
                )
            if by_default and result.termination.value == "time_limit":
                messages.print(f"stopped after the default limit of {DEFAULT_LIMIT:g} s; --time-limit sets another")
        if unsaved is not None:
            print_instead(unsaved, result, as_json)
    code = stop.code if stop.is_set() else _exit_code(result, require_gap, messages)
    exported = save_exports(trace, report, result)
    drawn = save_pictures(pictures, result.plot)
    if code == 0 and (unsaved is not None or not drawn or not exported):
        code = 2
    raise typer.Exit(code)


def _exit_code(result: Result, require_gap: float | None, messages: Console) -> int:
    if result.schedule is None:
        return 3 if result.termination.value == "time_limit" else 1
    if not result.feasible:
        return 1
    if require_gap is not None and (result.gap is None or result.gap > require_gap):
        proved = "none is proved" if result.gap is None else f"it is {result.gap:.2%}"
        messages.print(f"the gap is not at most {require_gap:.2%}: {proved}")
        return 1
    return 0
