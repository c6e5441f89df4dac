"""Options and habits that commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.streams import is_unicode
from placeopt.cli.targets import local_file
from placeopt.errors import UsageError
from placeopt.io.files import STDIN, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from placeopt.solver import Options


def input_path(text: str) -> Path:
    """The path of a file to read; `-` is standard input.

    Raises
    ------
    UsageError
        If the system does not even look for such a file.
    """
    path = Path(STDIN) if text == "-" else local_file(text)
    try:
        path.exists()
    except OSError as error:
        raise UsageError(f"{text}: cannot be read: {error.strerror or error}") from None
    return path


NOTES = 20
"""Notes that are printed; the others are counted."""

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
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be given several times.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", parser=local_file, help="Write the result to this file too."),
]
DocumentFile = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", parser=local_file, help="Write YAML or, for a name in .json, JSON here."
    ),
]

_NAMES = {"time_limit": "--time-limit", "gap_limit": "--gap", "seed": "--seed", "workers": "--workers"}
"""What arguments of the library are called here."""


def assignments(pairs: Sequence[str] | None) -> dict[str, str]:
    """The `--set key=value` options as a dict of texts.

    Raises
    ------
    UsageError
        If one has no `=`, or a key comes twice.
    """
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
    *,
    time_limit: float | None = None,
    gap: float | None = None,
    seed: int = 0,
    workers: int | None = None,
) -> Options:
    """The numbers that many commands take, checked before a large file is read.

    Raises
    ------
    UsageError
        If a number makes no sense; it names the option.
    """
    from placeopt.solving.settings import make_options

    return make_options(time_limit=time_limit, gap_limit=gap, seed=seed, workers=workers, names=_NAMES)


def seconds(text: str | None, option: str) -> float | None:
    """A time such as 30, 30s, 5min as seconds.

    Raises
    ------
    UsageError
        If it is no time or not positive.
    """
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


def print_json(data: Any) -> None:
    """Data on stdout as JSON."""
    json.dump(data, sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def write_document(document: dict[str, Any], out: Path | None) -> None:
    """A problem document as YAML on stdout, or into a file: JSON if its name ends in .json, else YAML.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """
    if out is None:
        from placeopt.io.formats.documents import to_yaml

        sys.stdout.write(to_yaml(document, ascii_only=not is_unicode(sys.stdout)))
        return
    try:
        write_whole(out, document_text(document, out))
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror or error}") from None


def document_text(document: dict[str, Any], path: Path) -> str:
    """A problem document as JSON if the file's name ends in .json, else as YAML."""
    from placeopt.io.formats.documents import to_json, to_yaml

    return to_json(document) if path.suffix.lower() == ".json" else to_yaml(document)


def print_notes(console: Console, notes: Sequence[str]) -> None:
    """Notes on a ledger's lines, a line each."""
    for note in notes[:NOTES]:
        console.print(f"note: {note}", soft_wrap=True, markup=False)
    if len(notes) > NOTES:
        console.print(f"note: {len(notes) - NOTES:,} more lines are left out")


def stdout_console() -> Console:
    """Where results go."""
    from rich.console import Console

    return Console(highlight=False)


def stderr_console() -> Console:
    """Where progress and messages go."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
