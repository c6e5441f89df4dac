"""placeopt plot: draw plans, comparisons and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from placeopt.cli.files import check_targets
from placeopt.cli.options import input_argument, output_option
from placeopt.cli.output import note_violations, noted_plan, print_notes
from placeopt.errors import UsageError

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture


def plot(
    file: Annotated[
        Path,
        input_argument(
            "PROBLEM|RESULTS|CURVE",
            "A problem file, results of `compare --out` (.jsonl), or a learning curve of `train` (.csv).",
        ),
    ],
    out: Annotated[Path, output_option("--out", "-o", help="The .png, .svg or .pdf file to write.")],
    more: Annotated[
        list[Path] | None, input_argument("PLAN|CURVE", "A plan of the problem, or more learning curves.")
    ] = None,
    kind: Annotated[
        str | None,
        Option(
            "--kind",
            "-k",
            help="For a plan: gantt (the default), memory, graph. For a problem without a plan: graph. For results: "
            "profile (the default), gap (against run time), convergence. For learning curves: curve.",
        ),
    ] = None,
    problems: Annotated[
        list[str] | None,
        Option("--problem", metavar="NAME", help="Draw only this problem of the results; may be repeated."),
    ] = None,
    solvers: Annotated[
        list[str] | None,
        Option("--solver", "-s", metavar="NAME", help="Draw only this solver of the results; may be repeated."),
    ] = None,
    title: Annotated[str, Option(help="Title of the plot, instead of the default one.")] = "",
) -> None:
    """Draw a plan, a comparison or a training: Gantt chart, memory, task graph, profile, gaps, convergence, curves."""
    from placeopt.views.plots import RUN_KINDS, checked_file, checked_kind, need_plots

    curves, runs = file.suffix.lower() == ".csv", file.suffix.lower() in (".jsonl", ".ndjson")
    plan = more[0] if more else None
    if curves:
        _check_curves(kind, problems, solvers)
    elif more and len(more) > 1:
        raise UsageError(f"expected at most one PLAN, got {len(more)}: {', '.join(map(str, more))}")
    if kind is None:
        kind = "curve" if curves else "profile" if runs else "graph" if plan is None else "gantt"
    if checked_kind(kind) == "curve" and not curves:
        raise UsageError(f"--kind curve draws learning curves, the files curve.csv of `train`; got {file}")
    checked_file(out)
    need_plots()
    check_targets(("--out", out))
    if curves:
        from placeopt.views.plots.curves import draw_curves, read_curve

        draw_curves([read_curve(each) for each in (file, *(more or ()))], title=title).write(out)
        return
    if (kind in RUN_KINDS) != runs:
        holds, wants = ("runs", "a plan (PROBLEM PLAN)") if runs else ("a problem", "results of `compare` (.jsonl)")
        raise UsageError(f"{file} holds {holds}; --kind {kind} draws {wants}")
    if runs and plan is not None:
        raise UsageError(f"{file} holds runs; expected no PLAN with it, got {plan}")
    if not runs and (problems or solvers):
        raise UsageError("--problem and --solver select from results; they do not apply to a plan")
    picture = _of_runs(file, kind, problems, solvers, title) if runs else _of_plan(file, plan, kind, title)
    picture.write(out)


def _check_curves(kind: str | None, problems: Sequence[str] | None, solvers: Sequence[str] | None) -> None:
    if kind not in (None, "curve"):
        raise UsageError(f"--kind {kind} does not draw learning curves (.csv); expected curve")
    if problems or solvers:
        raise UsageError("--problem and --solver select from results; they do not apply to learning curves")


def _of_plan(file: Path, plan: Path | None, kind: str, title: str) -> Picture:
    from placeopt.io.compiler import load
    from placeopt.verifier import verify
    from placeopt.views.plots import draw_schedule

    problem = load(file)
    if plan is None:
        if kind != "graph":
            raise UsageError(f"--kind {kind} needs a plan: placeopt plot {file} PLAN --kind {kind}")
        return draw_schedule(problem, None, kind, title=title)
    schedule = noted_plan(plan, problem).schedule
    note_violations(verify(problem, schedule).violations)
    return draw_schedule(problem, schedule, kind, title=title)


def _of_runs(
    file: Path, kind: str, problems: Sequence[str] | None, solvers: Sequence[str] | None, title: str
) -> Picture:
    from placeopt.studies.comparison.result import Comparison

    comparison = Comparison.read(file)
    print_notes(*comparison.notes)
    return comparison.plot(kind, title=title, problems=problems, solvers=solvers)
