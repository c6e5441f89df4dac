"""Define options and output functions that commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.streams import is_unicode
from placeopt.cli.targets import local_file
from placeopt.errors import UsageError, counted, unwritable
from placeopt.io.files import STDIN, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from placeopt.solver import Options


def input_path(text: str) -> Path:
    """Return the path of a file to read; `-` is standard input. A path that the system rejects is a UsageError."""
    path = Path(STDIN) if text == "-" else local_file(text)
    try:
        path.exists()
    except OSError as error:
        raise UsageError(f"{text}: cannot be read: {error.strerror or error}") from None
    return path


DEFAULT_LIMIT = 60.0
"""Default time limit, in seconds, of solvers that run until they are stopped."""

NOTES = 20
"""Maximum number of notes that are printed."""

ProblemFile = Annotated[
    Path,
    typer.Argument(
        metavar="PROBLEM", parser=input_path, help="A problem file (YAML or JSON), or - for standard input."
    ),
]
PlanPath = Annotated[
    Path, typer.Argument(metavar="PLAN", parser=input_path, help="A plan file, as `solve --out` writes it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for other programs.")]
Gap = Annotated[
    float | None, typer.Option("--gap", help="Stop as soon as this gap is proved, such as 0.05 for 5 percent.")
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed: with one worker, the same seed gives the same answer.")]
Workers = Annotated[int | None, typer.Option("--workers", "-w", help="Number of threads; all cores by default.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", parser=local_file, help="Also write the plan to this file."),
]
DocumentFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        parser=local_file,
        help="Write to this file: JSON if it ends in .json, else YAML.",
    ),
]

_NAMES = {"time_limit": "--time-limit", "gap_limit": "--gap", "seed": "--seed", "workers": "--workers"}
"""Options that correspond to arguments of the library."""


def assignments(pairs: Sequence[str] | None) -> dict[str, str]:
    """Parse `--set key=value` options; a missing `=`, or a repeated key, is a UsageError."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise UsageError(f'--set "{pair}": expected key=value')
        if key in found:
            raise UsageError(f'--set "{pair}": {key} is set twice')
        found[key] = value.strip()
    return found


def checked_options(
    *, time_limit: float | None = None, gap: float | None = None, seed: int = 0, workers: int | None = None
) -> Options:
    """Check numbers that many commands share, before a large file is read; an invalid one is a UsageError."""
    from placeopt.solving.settings import make_options

    return make_options(time_limit=time_limit, gap_limit=gap, seed=seed, workers=workers, names=_NAMES)


def seconds(text: str | None, option: str) -> float | None:
    """Convert a time such as 30, 30s or 5min to seconds; anything else is a UsageError."""
    if text is None:
        return None
    from placeopt.model import units
    from placeopt.model.arrays import LONGEST

    try:
        quantity = units.parse(text, units.TIME)
    except units.QuantityError as error:
        raise UsageError(f"{option}: {error}") from None
    if quantity.value == 0:
        raise UsageError(f'{option}: "{text}" is zero; expected a positive time, such as 30s')
    if quantity.value > LONGEST:
        raise UsageError(f'{option}: "{text}" is too long; expected at most {LONGEST:,} s (thirty years)')
    return float(quantity.value)


def limit_seconds(text: str | None, default: float | None = None) -> float | None:
    """Convert a `--time-limit` to seconds: a time, `none`, or without one the default."""
    return default if text is None else None if text == "none" else seconds(text, "--time-limit")


def print_json(data: Any) -> None:
    """Print data on stdout as JSON."""
    json.dump(data, sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def write_document(document: dict[str, Any], out: Path | None) -> None:
    """Print a problem document as YAML, or write it to a file; a file that cannot be written is a UsageError."""
    if out is None:
        from placeopt.io.formats.documents import to_yaml

        sys.stdout.write(to_yaml(document, ascii_only=not is_unicode(sys.stdout)))
        return
    try:
        write_whole(out, document_text(document, out))
    except OSError as error:
        raise UsageError(unwritable(out, error)) from None


def document_text(document: dict[str, Any], path: Path) -> str:
    """Return a problem document as JSON if the name of the file ends in .json, else as YAML."""
    from placeopt.io.formats.documents import to_json, to_yaml

    return to_json(document) if path.suffix.lower() == ".json" else to_yaml(document)


def print_notes(*notes: str) -> None:
    """Print notes on stderr, one line each."""
    console = stderr_console()
    for note in notes[:NOTES]:
        console.print(f"note: {note}", soft_wrap=True, markup=False)
    if len(notes) > NOTES:
        console.print(f"note: {len(notes) - NOTES:,} more lines are left out")


def note_violations(violations: Sequence[object], effect: str = "") -> None:
    """Print a note if a plan breaks rules."""
    if violations:
        print_notes(f"the plan breaks {counted(len(violations), 'rule')}; `placeopt verify` lists them{effect}")


def stdout_console() -> Console:
    """Return the console for results."""
    from rich.console import Console

    return Console(highlight=False)


def stderr_console() -> Console:
    """Return the console for progress and messages."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
