"""placeopt export: write traces and reports; functions that write the output files of other commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.options import PlanPath, ProblemFile, note_violations, print_json
from placeopt.cli.targets import check_targets, local_file
from placeopt.errors import UsageError, unwritable

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
        "--report", metavar="FILE.html", parser=local_file, help="Write a report as one HTML file that works offline."
    ),
]


def export(problem: ProblemFile, plan: PlanPath, trace: TraceFile = None, report: ReportFile = None) -> None:
    """Write a saved plan as a trace or a report, as `solve` does."""
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
    note_violations(found.violations)
    done = written(trace, lambda path: write_trace(path, compiled, read.schedule))
    done &= written(report, lambda path: write_page(path, plan_page(compiled, read.schedule, found)))
    raise typer.Exit(0 if done else 2)


def save_plan(path: Path, result: Result) -> str | None:
    """Write the plan; return an error message, None if it was written."""
    from placeopt.io.plan import plan_document, write_plan

    if result.schedule is None:
        return f"there is no schedule to write to {path}"
    try:
        plan = plan_document(result.problem, result.schedule, solver=result.solver, objective=result.values)
        write_plan(path, plan)
    except (OSError, ValueError) as error:
        return unwritable(path, error)
    return None


def print_instead(unsaved: str, result: Result, as_json: bool) -> None:
    """Report why the plan was not written, and print it unless the JSON output contains it."""
    if result.schedule is None:
        print(f"placeopt: {unsaved}", file=sys.stderr)
        return
    where = "the JSON output contains it" if as_json else "the plan is printed instead"
    print(f"placeopt: {unsaved}; {where}", file=sys.stderr)
    if not as_json:
        from placeopt.io.plan import plan_document

        print_json(plan_document(result.problem, result.schedule, solver=result.solver, objective=result.values))


def save_exports(trace: Path | None, report: Path | None, result: Result) -> bool:
    """Write the requested files and return whether all were written; errors are printed on stderr."""
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
    """Write a file, if there is a path, and return whether that succeeded; an error is printed on stderr."""
    if path is None:
        return True
    try:
        write(path)
    except OSError as error:
        print(f"placeopt: {unwritable(path, error)}", file=sys.stderr)
        return False
    return True
