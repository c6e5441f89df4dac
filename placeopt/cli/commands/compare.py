"""placeopt compare: run solvers on problems, and print tables that compare them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from placeopt.cli import completion
from placeopt.cli.arguments import limit_seconds, seconds
from placeopt.cli.files import check_targets, save_plots, wanted_plots, written
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    ConnectLimit,
    Dask,
    Report,
    input_argument,
    limit_option,
    output_option,
    plot_option,
    time_option,
)
from placeopt.cli.output import print_json, print_notes, stderr_console, stdout_console
from placeopt.errors import UsageError

if TYPE_CHECKING:
    from placeopt.studies.comparison.result import Comparison


def compare(
    problems: Annotated[list[Path], input_argument("PROBLEM", "Problem files (YAML or JSON).")],
    solvers: Annotated[
        list[str] | None,
        Option(
            "--solvers",
            "-s",
            metavar="NAME[:KEY=VALUE,...],...",
            autocompletion=completion.solvers,
            help="Solvers, with settings after a colon; may be repeated. The default, `all`, means every installed "
            "solver.",
        ),
    ] = None,
    time_limit: Annotated[str, limit_option("Time limit of each run, such as 5min, or `none`.")] = "30s",
    grace: Annotated[str, time_option("--grace", help="A run is killed this long after its time limit.")] = "10s",
    certify: Annotated[
        str | None,
        time_option(
            "--certify",
            help="After each run, prove its bound by a certificate within this time, such as 10s, and check it.",
        ),
    ] = None,
    seeds: Annotated[int, Option(help="Number of seeds 0, 1, ... for each solver and problem.")] = 1,
    workers: Annotated[
        int | None, Option("--workers", "-w", help="Number of parallel runs; by default cores / threads.")
    ] = None,
    threads: Annotated[int, Option(help="Number of threads of each solver.")] = 1,
    dask: Dask = None,
    connect_limit: ConnectLimit = "10s",
    consolidate: Annotated[str | None, typer.Option("--consolidate", hidden=True)] = None,
    out: Annotated[
        Path | None, output_option("--out", "-o", help="Append each finished run to this file as a JSON line.")
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Continue with the file of --out: execute only the missing runs.")
    ] = False,
    report: Report = None,
    plots: Annotated[
        list[str] | None,
        plot_option(
            "Draw the runs to a .png, .svg or .pdf file; may be repeated. Kinds: profile (the default), gap (against "
            "run time), convergence."
        ),
    ] = None,
    summary: Annotated[
        bool, Option("--summary", help="Print only the means over all problems, a line for each solver.")
    ] = False,
    as_csv: Annotated[bool, Option("--csv", help="Print the runs, or the summary, as CSV on stdout.")] = False,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, Option("--markdown", help="Print the tables as Markdown on stdout.")] = False,
    as_latex: Annotated[
        bool, Option("--latex", help="Print the tables as LaTeX on stdout, for the package booktabs.")
    ] = False,
) -> None:
    """Compare solvers on problems: each run is isolated, verified, and compared with the best bound."""
    from placeopt.cli.terminal.comparison import Bars
    from placeopt.protocol.registry import solver_names
    from placeopt.studies.comparison.matrix import checked_count
    from placeopt.studies.comparison.matrix import compare as compare_all
    from placeopt.views.page import write_report

    if consolidate is not None:
        raise UsageError(
            "compare compares the schedules that solvers find, so that it has no --consolidate; `placeopt solve "
            "--consolidate` simplifies a schedule afterwards"
        )
    if as_csv + as_json + as_markdown + as_latex > 1:
        raise UsageError("--csv, --json, --markdown and --latex exclude each other: each prints on stdout")
    stray = [str(path) for path in problems if str(path) in solver_names() and not path.exists()]
    if stray and solvers:
        raise UsageError(
            f"{stray[0]} is a solver, not a file of a problem; separate solvers by commas: --solvers "
            f"{','.join([*solvers, *stray])}"
        )
    chosen = "csv" if as_csv else "json" if as_json else "markdown" if as_markdown else "latex" if as_latex else "text"
    limit, grace_seconds = limit_seconds(time_limit), seconds(grace, "--grace")
    certifying, connecting = seconds(certify, "--certify"), seconds(connect_limit, "--connect-limit")
    assert grace_seconds is not None
    assert connecting is not None
    for option, number in (("--seeds", seeds), ("--workers", workers), ("--threads", threads)):
        if number is not None:
            checked_count(option, number)
    pictures = wanted_plots(plots, ("profile", "gap", "convergence"))
    check_targets(("--out", out), ("--report", report), *(("--plot", path) for _, path in pictures))
    messages = stderr_console()
    with on_interrupt() as stop:
        with Bars(messages) as bars:
            comparison = compare_all(
                problems, ["all"] if solvers is None else solvers, time_limit=limit, seeds=seeds, workers=workers,
                threads=threads, grace=grace_seconds, certify=certifying, dask=dask, connect_limit=connecting,
                ledger=out, resume=resume, observer=bars, should_stop=stop.is_set,
            )  # fmt: skip
        torn = [f"the last line of {out} was incomplete and has been dropped"] if bars.torn else []
        print_notes(*torn, *comparison.notes)
        _print(comparison, chosen, summary)
    reported = written(report, lambda path: write_report(path, comparison))
    drawn = save_plots(pictures, comparison.plot)
    missing = comparison.expected - len(comparison.records)
    if missing:
        where = "; --resume runs the others" if out is not None else ""
        messages.print(f"stopped after {len(comparison.records)} of {comparison.expected} runs{where}", soft_wrap=True)
    lost = sum(record.status == "lost" for record in comparison.records)
    if lost:
        again = "; --resume repeats them" if out is not None else ""
        messages.print(f"{lost} of {comparison.expected} runs were lost with their workers{again}", soft_wrap=True)
    failed = lost or missing or all(standing.best is None for standing in comparison.standings.values())
    raise typer.Exit(stop.code if stop.is_set() else 1 if failed else 0 if reported and drawn else 2)


def _print(comparison: Comparison, chosen: str, summary: bool) -> None:
    from placeopt.cli.terminal.comparison import print_comparison, write_csv, write_latex, write_markdown
    from placeopt.studies.comparison.grids import grids

    if chosen == "json":
        print_json(comparison.summary() if summary else comparison.to_dict())
        return
    if chosen == "csv":
        write_csv(sys.stdout, comparison.summary() if summary else comparison.rows())
        return
    tables = grids(comparison, summary=summary)
    if chosen == "text":
        print_comparison(stdout_console(), tables)
    else:
        (write_latex if chosen == "latex" else write_markdown)(sys.stdout, tables)
