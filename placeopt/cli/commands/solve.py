"""placeopt solve: solve a problem file and print the verified result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from placeopt.cli.arguments import (
    DEFAULT_LIMIT,
    assignments,
    checked_options,
    input_path,
    limit_seconds,
    seconds,
    share_text,
)
from placeopt.cli.commands.serving import refuse, solve_serving_file
from placeopt.cli.files import (
    certified,
    check_targets,
    print_instead,
    save_exports,
    save_plan,
    save_plots,
    wanted_plots,
)
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    BoundTime,
    Certificate,
    CertificateTime,
    ConnectLimit,
    Dask,
    Gap,
    Out,
    ProblemFile,
    Report,
    Seed,
    Sets,
    Tasks,
    Trace,
    Workers,
    limit_option,
    plot_option,
    share_option,
    solver_option,
)
from placeopt.cli.output import explaining, noted_plan, print_json, print_notes, stderr_console, stdout_console
from placeopt.cli.progress import watched
from placeopt.errors import UsageError, suggestion

if TYPE_CHECKING:
    from rich.console import Console

    from placeopt.orchestration.result import Result


def solve(
    problem: ProblemFile,
    solver: Annotated[
        str | None, solver_option("The solver; `placeopt solvers` lists them. Default: heft, or dpl for pipelines.")
    ] = None,
    time_limit: Annotated[
        str | None,
        limit_option(
            "Stop after this time, such as 30s or 5min (plain numbers are seconds). The default is "
            f"{DEFAULT_LIMIT:g}s for exact and anytime solvers; `none` removes it."
        ),
    ] = None,
    gap: Gap = None,
    require_gap: Annotated[
        float | None,
        share_option(
            "--require-gap",
            "Exit with code 1 unless a gap of at most this value is proved; of several levels, that of the first one.",
        ),
    ] = None,
    seed: Seed = 0,
    workers: Workers = None,
    dask: Dask = None,
    connect_limit: ConnectLimit = "10s",
    initial: Annotated[
        str | None, Option(metavar="PLAN|SOLVER", help="Warm start: a plan file, or a solver that makes one.")
    ] = None,
    passes: Annotated[
        list[str] | None,
        Option(
            "--pass",
            metavar="NAME[:KEY=VALUE,...]",
            help="Apply this pass, which makes the problem smaller, before solving; may be repeated. `placeopt passes` "
            "lists passes; by default exact solvers use the exact ones.",
        ),
    ] = None,
    no_passes: Annotated[
        bool, Option("--no-passes", help="Apply no passes, not even the exact ones of exact solvers.")
    ] = False,
    bound_time: BoundTime = None,
    strict: Annotated[
        bool, Option("--strict", help="Fail instead of returning a schedule that exceeds a memory capacity.")
    ] = False,
    consolidate: Annotated[
        float | None,
        share_option(
            "--consolidate",
            "Use fewer devices, segments and transfers if the objective gets worse by at most this share; 0 changes "
            "nothing. The default is what the problem states: 1% in imported models.",
        ),
    ] = None,
    sets: Sets = None,
    out: Out = None,
    certificate: Certificate = None,
    certificate_time: CertificateTime = "10s",
    plots: Annotated[
        list[str] | None,
        plot_option(
            "Draw the schedule to a .png, .svg or .pdf file; may be repeated. Kinds: gantt (the default), memory, "
            "graph, convergence."
        ),
    ] = None,
    trace: Trace = None,
    report: Report = None,
    tasks: Tasks = False,
    as_json: AsJson = False,
) -> None:
    """Solve a problem: place and schedule its tasks, verify the schedule, and prove its gap."""
    from placeopt.io.compiler import compile_document, document_of
    from placeopt.io.document import collection_paused, is_serving
    from placeopt.orchestration.pipeline import solve as solve_problem
    from placeopt.orchestration.settings import read_settings
    from placeopt.passes import find_pass
    from placeopt.protocol.registry import default_solver, find_solver, solver_names
    from placeopt.views.plots import SCHEDULE_KINDS

    settings = assignments(sets)
    if no_passes and passes:
        raise UsageError("--pass and --no-passes exclude each other")
    names = () if no_passes else tuple(passes) if passes else None
    named = None if solver is None else find_solver(solver)
    limit = limit_seconds(time_limit)
    bounding, connecting = seconds(bound_time, "--bound-time"), seconds(connect_limit, "--connect-limit")
    assert connecting is not None
    # Wrong options are reported before a large file is read. A file has precedence over a solver of the same name.
    given = None if initial is None or input_path(initial).exists() else initial
    if given is not None and given not in solver_names():
        hint = suggestion(given, solver_names())
        raise UsageError(f'--initial "{given}": no such file, and no solver of that name{hint}')
    if named is not None:
        read_settings(named, settings)
    checked_options(time_limit=limit, gap=gap, seed=seed, workers=workers)
    for name in names or ():
        find_pass(name)
    pictures = wanted_plots(plots, (*SCHEDULE_KINDS, "convergence"))
    certifying = seconds(certificate_time, "--certificate-time")
    check_targets(
        ("--out", out),
        ("--certificate", certificate),
        ("--trace", trace),
        ("--report", report),
        *(("--plot", path) for _, path in pictures),
    )
    begun = time.monotonic()
    with collection_paused():
        document = document_of(problem)
    read = time.monotonic()
    if is_serving(document):
        refuse({
            "--solver": solver, "--dask": dask, "--initial": initial, "--pass": passes, "--no-passes": no_passes,
            "--bound-time": bound_time, "--strict": strict, "--consolidate": consolidate, "--set": sets,
            "--certificate": certificate, "--trace": trace, "--report": report, "--tasks": tasks,
            "--time-limit none": time_limit is not None and limit is None,
            **{f"--plot {kind}": kind != SCHEDULE_KINDS[0] for kind, _ in pictures},
        })  # fmt: skip
        solve_serving_file(
            document, limit=limit or DEFAULT_LIMIT, gap=gap, require_gap=require_gap, seed=seed, workers=workers,
            out=out, pictures=pictures, as_json=as_json,
        )  # fmt: skip
    with collection_paused():
        compiled = compile_document(document)
    best_known = document.data.get("best_known")
    del document  # larger than the problem
    built = time.monotonic()
    found = find_solver(default_solver(compiled)) if named is None else named
    read_settings(found, settings)
    by_default = time_limit is None and (found.info.exact or found.info.anytime)
    limit = DEFAULT_LIMIT if by_default else limit
    start = given or (None if initial is None else noted_plan(input_path(initial), compiled).schedule)

    messages = stderr_console()
    with on_interrupt() as stop:
        if not as_json:
            from placeopt.cli.terminal.console import print_problem

            print_problem(stdout_console(), compiled)
        result = watched(
            lambda on_progress: solve_problem(
                compiled, found, time_limit=limit, gap_limit=gap, seed=seed, workers=workers, initial=start,
                passes=names, bound_time=bounding, strict=strict, consolidate=consolidate, dask=dask,
                connect_limit=connecting, on_progress=on_progress, should_stop=stop.is_set, **settings,
            ),
            compiled, messages, None if limit is None else limit + (bounding or 0),
        )  # fmt: skip
        result = replace(result, wall_time=replace(result.wall_time, load=read - begun, build=built - read))
        unsaved = save_plan(out, result)  # before printing, which may fail
        if certificate is not None and as_json:
            result = certified(certificate, result, certifying, stop.is_set)
        if as_json:
            print_json(result.to_dict() | {"best_known": best_known})
        else:
            from placeopt.cli.terminal.console import print_result, print_tasks

            print_result(stdout_console(), result)
            if tasks and result.schedule is not None:
                print_tasks(stdout_console(), compiled, result.schedule)
            used = () if result.passes is None else result.passes.names
            idle = [name for name in names or () if find_pass(name).name not in used]
            if idle:
                print_notes(f"nothing to do for {'the pass' if len(idle) == 1 else 'the passes'} {', '.join(idle)}")
            if by_default and result.termination.value == "time_limit":
                messages.print(f"stopped after the default limit of {DEFAULT_LIMIT:g} s; --time-limit sets another")
            if certificate is not None:
                result = certified(certificate, result, certifying, stop.is_set)
                if result.checked is not None:
                    stdout_console().print(f"certificate: {result.checked}", soft_wrap=True)
                    if not result.checked.complete:
                        print_notes("a longer --certificate-time may find proofs of claims that are trusted")
            print_notes(*_compared(result, best_known), *_next_step(result, problem, chosen=solver is not None))
        if unsaved is not None:
            print_instead(unsaved, result, as_json)
    uncertified = certificate is not None and result.checked is None
    code = stop.code if stop.is_set() else _exit_code(result, require_gap, messages)
    exported = save_exports(trace, report, result)
    drawn = save_plots(pictures, result.plot)
    if code == 0 and (unsaved is not None or uncertified or not drawn or not exported):
        code = 2
    raise typer.Exit(code)


def _compared(result: Result, best_known: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The best known result of the problem file, unless the schedule equals it and is proved optimal."""
    from placeopt.views.facts import amount_text, best_known_text

    problem, value = result.problem, result.objective if result.feasible else None
    if best_known is None or (value is not None and result.gap == 0 and float(value) == best_known["objective"]):
        return ()
    metric, resolution = problem.objective.leading_metric, problem.resolution
    text = best_known_text(best_known, value, result.bound, lambda each: amount_text(each, metric, resolution))
    return (f"best known: {text}",)


def _next_step(result: Result, problem: Path, *, chosen: bool) -> tuple[str, ...]:
    """The command that says more: why a problem is infeasible, or whether a schedule can be improved."""
    if result.termination.value == "infeasible":
        return (explaining(problem, result.problem),)
    if result.termination.value in ("completed", "failed") and not result.feasible:
        better = "auto" if result.problem.alignment is None else "cp-sat"
        return (f"--solver {better} searches for a schedule that keeps all rules",)
    if not chosen and result.feasible and result.gap != 0:
        return (f"--solver auto searches for better schedules and bounds than {result.solver}",)
    return ()


def _exit_code(result: Result, require_gap: float | None, messages: Console) -> int:
    from placeopt.orchestration.result import relative_gap

    if result.schedule is None:
        return 3 if result.termination.value == "time_limit" else 1
    if not result.feasible:
        return 1
    if require_gap is not None and (result.gap is None or result.gap > require_gap):
        proved = "none is proved" if result.gap is None else f"it is {share_text(result.gap)}"
        changed = result.consolidation
        before = None if changed is None else relative_gap(changed.values[0], result.bound)
        hint = ""
        if before is not None and before <= require_gap:
            hint = f"; it was {before:.2%} before the schedule was consolidated, which --consolidate 0 turns off"
        messages.print(f"the gap is not at most {share_text(require_gap)}: {proved}{hint}", soft_wrap=True)
        return 1
    return 0
