"""placeopt plot: draw plans and comparisons; functions for the option --plot of other commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.options import input_path, note_violations, print_notes
from placeopt.cli.targets import check_targets, local_file
from placeopt.errors import UsageError

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture


def plot(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="PROBLEM|RESULTS", parser=input_path, help="A problem file, or results of `compare --out` (.jsonl)."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", parser=local_file, help="The .png, .svg or .pdf file to write."),
    ],
    plan: Annotated[
        Path | None, typer.Argument(metavar="PLAN", parser=input_path, help="A plan of the problem.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            "-k",
            help="For a plan: gantt (the default), memory, graph. For a problem without a plan: graph. For results: "
            "profile (the default), gap (against run time), convergence.",
        ),
    ] = None,
    problems: Annotated[
        list[str] | None,
        typer.Option("--problem", metavar="NAME", help="Draw only this problem of the results; may be repeated."),
    ] = None,
    solvers: Annotated[
        list[str] | None,
        typer.Option("--solver", "-s", metavar="NAME", help="Draw only this solver of the results; may be repeated."),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Title of the plot, instead of the default one.")] = "",
) -> None:
    """Draw a plan or a comparison: Gantt chart, memory, task graph, performance profile, gaps, convergence."""
    from placeopt.views.plots import RUN_KINDS, checked_file, checked_kind, need_plots

    runs = file.suffix.lower() in (".jsonl", ".ndjson")
    if kind is None:
        kind = "profile" if runs else "graph" if plan is None else "gantt"
    checked_kind(kind)
    checked_file(out)
    need_plots()
    check_targets(("--out", out))
    if (kind in RUN_KINDS) != runs:
        holds, wants = ("runs", "a plan (PROBLEM PLAN)") if runs else ("a problem", "results of `compare` (.jsonl)")
        raise UsageError(f"{file} holds {holds}; --kind {kind} draws {wants}")
    if runs and plan is not None:
        raise UsageError(f"{file} holds runs; expected no PLAN with it, got {plan}")
    if not runs and (problems or solvers):
        raise UsageError("--problem and --solver select from results; they do not apply to a plan")
    picture = _of_runs(file, kind, problems, solvers, title) if runs else _of_plan(file, plan, kind, title)
    picture.write(out)


def _of_plan(file: Path, plan: Path | None, kind: str, title: str) -> Picture:
    from placeopt.io.compiler import load
    from placeopt.io.plan import read_plan
    from placeopt.verifier import verify
    from placeopt.views.plots import draw_schedule

    problem = load(file)
    if plan is None:
        if kind != "graph":
            raise UsageError(f"--kind {kind} needs a plan: placeopt plot {file} PLAN --kind {kind}")
        return draw_schedule(problem, None, kind, title=title)
    schedule = read_plan(plan, problem).schedule
    note_violations(verify(problem, schedule).violations)
    return draw_schedule(problem, schedule, kind, title=title)


def _of_runs(
    file: Path, kind: str, problems: Sequence[str] | None, solvers: Sequence[str] | None, title: str
) -> Picture:
    from placeopt.studies.comparison.drawing import draw_comparison
    from placeopt.studies.comparison.result import Comparison

    comparison = Comparison.read(file)
    print_notes(*comparison.notes)
    return draw_comparison(comparison, kind, title=title, problems=problems, solvers=solvers)


def wanted_plots(texts: Sequence[str] | None, known: Sequence[str]) -> list[tuple[str, Path]]:
    """Parse `--plot [KIND:]FILE` options; the default is the first known kind.

    An unknown kind or suffix is a UsageError, and a missing matplotlib a MissingExtraError.
    """
    from placeopt.views.plots import checked_file, checked_kind, need_plots

    wanted = []
    for text in texts or ():
        kind, colon, name = text.partition(":")
        if not colon or not re.fullmatch("[a-z]{2,}", kind):  # C:\\chart.png has no kind
            kind, name = known[0], text
        wanted.append((checked_kind(kind, tuple(known)), checked_file(local_file(name))[0]))
    if wanted:
        need_plots()
    return wanted


def plot_targets(wanted: Sequence[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Return the files of `wanted_plots` with their option, for `check_targets`."""
    return [("--plot", path) for _, path in wanted]


def save_plots(wanted: Sequence[tuple[str, Path]], draw: Callable[[str], Picture]) -> bool:
    """Draw plots to their files and return whether all succeeded; errors are printed on stderr."""
    done = True
    for kind, path in wanted:
        try:
            draw(kind).write(path)
        except UsageError as error:
            print(f"placeopt: {error}", file=sys.stderr)
            done = False
    return done
