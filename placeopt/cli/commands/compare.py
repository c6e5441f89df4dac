"""placeopt compare: many solvers on many problems, and the tables that tell whom to trust."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands.export import ReportFile, written
from placeopt.cli.commands.plot import picture_targets, save_pictures, wanted_pictures
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson, input_path, print_json, print_notes, seconds, stderr_console, stdout_console
from placeopt.cli.targets import check_targets, local_file
from placeopt.errors import UsageError

if TYPE_CHECKING:
    from placeopt.studies.comparison.result import Comparison


def compare(
    problems: Annotated[
        list[Path], typer.Argument(metavar="PROBLEMS...", parser=input_path, help="Problem files (YAML or JSON).")
    ],
    solvers: Annotated[
        list[str] | None,
        typer.Option(
            "--solvers",
            "-s",
            metavar="NAME[:KEY=VALUE,...],...",
            help="The solvers, with settings after a colon; may be given several times. `all`, which is what is run "
            "unless told otherwise, stands for every installed one.",
        ),
    ] = None,
    time_limit: Annotated[
        str,
        typer.Option(
            "--time-limit",
            "-t",
            metavar="TIME",
            help="For each run, also of heuristics that know of no limit; `none` for none.",
        ),
    ] = "30s",
    grace: Annotated[
        str, typer.Option("--grace", metavar="TIME", help="A run is killed this long after its limit.")
    ] = "10s",
    seeds: Annotated[int, typer.Option("--seeds", help="Runs of each solver on each problem: seeds 0, 1, ...")] = 1,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Runs at a time; as the cores allow, unless given.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", help="Threads that a solver may use.")] = 1,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler: tcp://host:8786."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", parser=local_file, help="Write a line of JSON here for every run as it ends."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what --out holds: run only what is missing there.")
    ] = False,
    report: ReportFile = None,
    plots: Annotated[
        list[str] | None,
        typer.Option(
            "--plot",
            metavar="[KIND:]FILE",
            help="Draw the runs into a .png, .svg or .pdf; may be given several times. Kinds: profile (unless told "
            "otherwise), gap (against run time), convergence.",
        ),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the runs as CSV on stdout.")] = False,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown on stdout.")] = False,
) -> None:
    """Compare solvers on problems: each run in a process of its own, verified, and held against the best bound."""
    from placeopt.cli.terminal.watching import Bars
    from placeopt.studies.comparison.matrix import compare as compare_all
    from placeopt.studies.comparison.matrix import whole

    if as_csv + as_json + as_markdown > 1:
        raise UsageError("--csv, --json and --markdown do not go together: each prints on stdout")
    limit = None if time_limit == "none" else seconds(time_limit, "--time-limit")
    patience = seconds(grace, "--grace")
    assert patience is not None
    for option, number in (("--seeds", seeds), ("--workers", workers), ("--threads", threads)):
        if number is not None:
            whole(option, number)
    pictures = wanted_pictures(plots, ("profile", "gap", "convergence"))
    check_targets(("--out", out), ("--report", report), *picture_targets(pictures))
    messages = stderr_console()
    with on_interrupt() as stop:
        with Bars(messages) as bars:
            comparison = compare_all(
                problems, ["all"] if solvers is None else solvers, time_limit=limit, seeds=seeds, workers=workers,
                threads=threads, grace=patience, dask=dask, ledger=out, resume=resume, warm=dask is None,
                observer=bars, should_stop=stop.is_set,
            )  # fmt: skip
        if bars.torn:
            messages.print(f"note: the last line of {out} was torn and has been dropped", soft_wrap=True, markup=False)
        print_notes(messages, comparison.notes)
        _print(comparison, as_csv, as_json, as_markdown)
    reported = written(report, lambda path: _write_report(path, comparison))
    drawn = save_pictures(pictures, comparison.plot)
    missing = comparison.expected - len(comparison.records)
    if missing:
        where = "; --resume runs the others" if out is not None else ""
        messages.print(f"stopped after {len(comparison.records)} of {comparison.expected} runs{where}", soft_wrap=True)
    lost = sum(record.status == "lost" for record in comparison.records)
    if lost:
        again = "; --resume repeats them" if out is not None else ""
        messages.print(f"{lost} of {comparison.expected} runs were lost with their workers{again}", soft_wrap=True)
    failed = lost or not _any_feasible(comparison)
    raise typer.Exit(stop.code if stop.is_set() else 1 if failed else 0 if reported and drawn else 2)


def _any_feasible(comparison: Comparison) -> bool:
    return any(standing.best is not None for standing in comparison.standings.values())


def _write_report(path: Path, comparison: Comparison) -> None:
    from placeopt.views.page import comparison_page, write_page

    write_page(path, comparison_page(comparison))


def _print(comparison: Comparison, as_csv: bool, as_json: bool, as_markdown: bool) -> None:
    from placeopt.cli.terminal.comparison import print_comparison, write_csv, write_markdown

    if as_json:
        print_json(comparison.to_dict())
    elif as_csv:
        write_csv(sys.stdout, comparison)
    elif as_markdown:
        write_markdown(sys.stdout, comparison)
    elif comparison.records:
        print_comparison(stdout_console(), comparison)
