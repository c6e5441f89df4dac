"""Traces and reports: as options of solve and compare, and of saved plans."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.options import PlanPath, ProblemFile, print_json, stderr_console
from placeopt.cli.targets import check_targets, local_file
from placeopt.errors import UsageError

if TYPE_CHECKING:
    from placeopt.solving.result import Result

TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace", metavar="FILE.json", parser=local_file, help="Write the schedule as a trace for ui.perfetto.dev."
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE.html", parser=local_file, help="Write a report: one web page that needs no network."
    ),
]


def export(problem: ProblemFile, plan: PlanPath, trace: TraceFile = None, report: ReportFile = None) -> None:
    """A saved plan as a trace or a report, as solve makes them."""
    from placeopt.io.compiler import load
    from placeopt.io.plan import read_plan
    from placeopt.verifier import verify
    from placeopt.views.page import plan_page, write_page
    from placeopt.views.traces import write_trace

    if trace is None and report is None:
        raise UsageError("nothing to export: expected --trace FILE.json, --report FILE.html, or both")
    check_targets(("--trace", trace), ("--report", report))
    compiled = load(problem)
    read = read_plan(plan, compiled)
    found = verify(compiled, read.schedule, read.claim)
    if not found.feasible:
        count = len(found.violations)
        console = stderr_console()
        console.print(f"note: the plan breaks {count} rule{'s'[: count != 1]}; `placeopt verify` tells which")
    done = written(trace, lambda path: write_trace(path, compiled, read.schedule))
    done &= written(report, lambda path: write_page(path, plan_page(compiled, read.schedule, found)))
    raise typer.Exit(0 if done else 2)


def save_plan(path: Path, result: Result) -> str | None:
    """Write the plan; what went wrong, None if nothing did."""
    from placeopt.io.plan import plan_document, write_plan

    if result.schedule is None:
        return f"there is no schedule to write to {path}"
    try:
        plan = plan_document(result.problem, result.schedule, solver=result.solver, objective=result.values)
        write_plan(path, plan)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        return f"cannot write {path}: {reason}"
    return None


def print_instead(unsaved: str, result: Result, as_json: bool) -> None:
    """Say why the plan is in no file, and print it unless the JSON has it already."""
    if result.schedule is None:
        print(f"placeopt: {unsaved}", file=sys.stderr)
        return
    where = "the JSON above has it" if as_json else "the plan is printed instead"
    print(f"placeopt: {unsaved}; {where}", file=sys.stderr)
    if not as_json:
        from placeopt.io.plan import plan_document

        print_json(plan_document(result.problem, result.schedule, solver=result.solver, objective=result.values))


def save_exports(trace: Path | None, report: Path | None, result: Result) -> bool:
    """Write what was asked for; whether all of it was, else why not is said on stderr."""
    from placeopt.views.page import result_page, write_page
    from placeopt.views.traces import write_trace

    schedule = result.schedule
    done = True
    if trace is not None and schedule is None:
        print(f"placeopt: there is no schedule to write to {trace}", file=sys.stderr)
        done = False
    elif schedule is not None:
        done = written(trace, lambda path: write_trace(path, result.problem, schedule))
    return written(report, lambda path: write_page(path, result_page(result))) and done


def written(path: Path | None, write: Callable[[Path], None]) -> bool:
    """Whether nothing was to be written, or it was; else why not is said on stderr."""
    if path is None:
        return True
    try:
        write(path)
    except OSError as error:
        print(f"placeopt: cannot write {path}: {error.strerror or error}", file=sys.stderr)
        return False
    return True
