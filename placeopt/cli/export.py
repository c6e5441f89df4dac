"""Traces and reports: as options of solve and compare, and of saved plans."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.options import PlanPath, ProblemFile, check_folder, stderr_console
from placeopt.errors import UsageError

if TYPE_CHECKING:
    from placeopt.result import Result

TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE.json", help="Write the schedule as a trace for ui.perfetto.dev."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE.html", help="Write a report: one web page that needs no network."),
]


def export(problem: ProblemFile, plan: PlanPath, trace: TraceFile = None, report: ReportFile = None) -> None:
    """A saved plan as a trace or a report, as solve makes them."""
    from placeopt.compiler import load
    from placeopt.page import plan_page, write_page
    from placeopt.plan import read_plan
    from placeopt.traces import write_trace
    from placeopt.verifier import verify

    if trace is None and report is None:
        raise UsageError("nothing to export: expected --trace FILE.json, --report FILE.html, or both")
    check_targets(problem, plan, trace=trace, report=report)
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


def check_targets(*sources: Path, trace: Path | None = None, report: Path | None = None) -> None:
    """Told before long work: that a file would overwrite what is read, or the other one, or has no folder.

    Raises
    ------
    UsageError
        If so.
    """
    targets = [(option, path) for option, path in (("--trace", trace), ("--report", report)) if path is not None]
    for option, path in targets:
        for source in sources:
            if path.exists() and source.exists() and path.samefile(source):
                raise UsageError(f"{option} {path} is {source}, which is read; expected another file")
        check_folder(path)
    if len(targets) == 2 and targets[0][1].resolve() == targets[1][1].resolve():
        raise UsageError(f"--trace and --report are the same file, {trace}; expected two")


def save_exports(trace: Path | None, report: Path | None, result: Result) -> bool:
    """Write what was asked for; whether all of it was, else why not is said on stderr."""
    from placeopt.page import result_page, write_page
    from placeopt.traces import write_trace

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
