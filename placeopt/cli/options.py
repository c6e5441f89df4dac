"""Define arguments and options that commands share, and their kinds: files, times, shares, plots."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from placeopt.cli import completion
from placeopt.cli.arguments import input_path, local_file, share, whole_number


def input_argument(metavar: str, help: str) -> Any:
    """Return the definition of an argument: a file to read."""
    return Argument(metavar=metavar, parser=input_path, help=help)


def input_option(*names: str, help: str, metavar: str = "FILE") -> Any:
    """Return the definition of an option: a file to read."""
    return Option(*names, metavar=metavar, parser=input_path, help=help)


def output_option(*names: str, help: str, metavar: str = "FILE") -> Any:
    """Return the definition of an option: a file to write."""
    return Option(*names, metavar=metavar, parser=local_file, help=help)


def solver_option(help: str) -> Any:
    """Return the definition of the option --solver."""
    return Option("--solver", "-s", autocompletion=completion.solvers, help=help)


def devices_option(*names: str, help: str) -> Any:
    """Return the definition of an option: a file with devices, or devices of the catalogue."""
    return Option(*names, metavar="FILE|DEVICES", autocompletion=completion.devices, help=help)


def time_option(*names: str, help: str) -> Any:
    """Return the definition of an option: a time, such as 30s."""
    return Option(*names, metavar="TIME", help=help)


def share_option(name: str, help: str) -> Any:
    """Return the definition of an option: a share, such as 0.05 or 5%."""

    def parse(text: object) -> float:
        return share(str(text), name)  # a default is a number

    return Option(name, metavar="SHARE", parser=parse, help=help)


def count_option(*names: str, help: str) -> Any:
    """Return the definition of an option: a whole number."""

    def parse(text: object) -> int:
        return whole_number(str(text), names[0])

    return Option(*names, metavar="INTEGER", parser=parse, help=help)


def limit_option(help: str) -> Any:
    """Return the definition of the option --time-limit."""
    return time_option("--time-limit", "-t", help=help)


def plot_option(help: str, metavar: str = "[KIND:]FILE") -> Any:
    """Return the definition of the option --plot."""
    return Option("--plot", metavar=metavar, help=help)


as_json: ContextVar[bool | None] = ContextVar("as_json", default=None)
"""Whether the command prints JSON; None if it has no option for that."""


def _keep_json(value: bool) -> bool:
    as_json.set(value)
    return value


ProblemFile = Annotated[Path, input_argument("PROBLEM", "A problem file (YAML or JSON), or - for standard input.")]
PlanPath = Annotated[Path, input_argument("PLAN", "A plan file, as `solve --out` writes it.")]
OptionalPlan = Annotated[Path | None, input_argument("PLAN", "A plan file, as `solve --out` writes it.")]
Solver = Annotated[str, solver_option("The solver; `placeopt solvers` lists them.")]
Tasks = Annotated[bool, Option("--tasks", help="Also print the device, start and end of each task.")]
AsJson = Annotated[bool, Option("--json", callback=_keep_json, help="Print JSON on stdout, for other programs.")]
Gap = Annotated[float | None, share_option("--gap", "Stop as soon as this gap is proved, such as 0.05 or 5%.")]
Seed = Annotated[int, Option("--seed", help="Random seed: with one worker, the same seed gives the same answer.")]
Workers = Annotated[int | None, Option("--workers", "-w", help="Number of threads; all cores by default.")]
Dask = Annotated[
    str | None, Option("--dask", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler: tcp://host:8786.")
]
ConnectLimit = Annotated[
    str, time_option("--connect-limit", help="Time within which the cluster of --dask must answer.")
]
BoundTime = Annotated[
    str | None, time_option("--bound-time", help="After solving, spend this time on better lower bounds.")
]
Sets = Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")]
Out = Annotated[Path | None, output_option("--out", "-o", help="Also write the plan to this file.")]
DocumentFile = Annotated[
    Path | None, output_option("--out", "-o", help="Write to this file: JSON if it ends in .json, else YAML.")
]
BatchSize = Annotated[
    int | None, count_option("--batch", "-b", help="Batch size: first dimension of the inputs, or number of sequences.")
]
Dimensions = Annotated[
    list[str] | None,
    Option(
        "--dim", metavar="NAME=SIZE", help="Size of a named dimension of a model, such as `seq=128`; may be repeated."
    ),
]
FewSegments = Annotated[
    bool, Option("--few-segments", help="Make fewer segments, which wait longer: do not cut them at transfers.")
]
Trace = Annotated[
    Path | None,
    output_option("--trace", metavar="FILE.json", help="Write the schedule as a trace for ui.perfetto.dev."),
]
Certificate = Annotated[
    Path | None,
    output_option(
        "--certificate",
        metavar="FILE.json",
        help="Write a proof of the bound, or that no schedule exists, which `verify` checks.",
    ),
]
CertificateTime = Annotated[
    str,
    time_option(
        "--certificate-time",
        help="Time for the proof: with more, less of it relies on the engine that found the bound.",
    ),
]
Report = Annotated[
    Path | None,
    output_option("--report", metavar="FILE.html", help="Write a report as one HTML file that works offline."),
]
