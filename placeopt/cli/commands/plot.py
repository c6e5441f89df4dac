"""placeopt plot: pictures of plans and of comparisons; and the option --plot of other commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.options import input_path, print_notes, stderr_console
from placeopt.cli.targets import check_targets, local_file
from placeopt.errors import UsageError

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture


def plot(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="PROBLEM|RESULTS", parser=input_path, help="A problem file, or the results of `compare --out`."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", parser=local_file, help="Where to draw: a .png, .svg or .pdf."),
    ],
    plan: Annotated[
        Path | None, typer.Argument(metavar="PLAN", parser=input_path, help="A plan of the problem.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            "-k",
            help="Of a plan: gantt (unless told otherwise), memory, graph; the graph also of a problem alone. Of "
            "results: profile (unless told otherwise), gap (against run time), convergence.",
        ),
    ] = None,
    problems: Annotated[
        list[str] | None,
        typer.Option("--problem", metavar="NAME", help="Of results, only this problem; may be given several times."),
    ] = None,
    solvers: Annotated[
        list[str] | None,
        typer.Option("--solver", "-s", metavar="NAME", help="Of results, only this solver; likewise."),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Instead of one of ours.")] = "",
) -> None:
    """Draw a plan or a comparison: who runs what when, memory over time, the graph, profiles, gaps, convergence."""
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
        raise UsageError(f"{file} holds runs; expected no PLAN beside it, got {plan}")
    if not runs and (problems or solvers):
        raise UsageError("--problem and --solver choose among results; this is a picture of a plan")
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
    broken = len(verify(problem, schedule).violations)
    if broken:
        rules = f"{broken} rule{'' if broken == 1 else 's'}"
        stderr_console().print(f"note: the plan breaks {rules} (verify tells them)", soft_wrap=True)
    return draw_schedule(problem, schedule, kind, title=title)


def _of_runs(
    file: Path, kind: str, problems: Sequence[str] | None, solvers: Sequence[str] | None, title: str
) -> Picture:
    from placeopt.studies.comparison.drawing import draw_comparison
    from placeopt.studies.comparison.result import Comparison

    comparison = Comparison.read(file)
    print_notes(stderr_console(), comparison.notes)
    return draw_comparison(comparison, kind, title=title, problems=problems, solvers=solvers)


def wanted_pictures(texts: Sequence[str] | None, known: Sequence[str]) -> list[tuple[str, Path]]:
    """The kinds and files that `--plot [KIND:]FILE` asks for; the first kind known unless it says which.

    Raises
    ------
    UsageError
        If a file's suffix is none that can be drawn.
    MissingExtraError
        If any is asked for and matplotlib is not installed.
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


def picture_targets(wanted: Sequence[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """The files of `wanted_pictures` with their option, for `check_targets`."""
    return [("--plot", path) for _, path in wanted]


def save_pictures(wanted: Sequence[tuple[str, Path]], draw: Callable[[str], Picture]) -> bool:
    """Draw them into their files; whether that worked. What did not is told on stderr."""
    fine = True
    for kind, path in wanted:
        try:
            draw(kind).write(path)
        except UsageError as error:
            print(f"placeopt: {error}", file=sys.stderr)
            fine = False
    return fine
