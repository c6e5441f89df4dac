"""placeopt import: convert files of other tools to problem files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.arguments import quantity
from placeopt.cli.files import check_targets, write_document
from placeopt.cli.options import DocumentFile
from placeopt.cli.parameters import input_argument, time_option
from placeopt.errors import UsageError


def import_file(
    file: Annotated[Path | None, input_argument("FILE", "The file to convert; without it, list the formats.")] = None,
    format: Annotated[
        str | None, typer.Option("--format", "-f", help="Format of the file; by default detected from its content.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the problem; by default taken from the file.")
    ] = None,
    resolution: Annotated[str, time_option("--resolution", help="Length of a tick, such as `10 ns`.")] = "1 ns",
    out: DocumentFile = None,
) -> None:
    """Convert a graph in the format of another tool to a problem file."""
    from placeopt.io.formats.importers import IMPORTERS, import_document
    from placeopt.model import units

    if file is None:
        for known, importer in IMPORTERS.items():
            typer.echo(f"{known:<18} {importer.description}")
        return
    tick = quantity(resolution, "--resolution", units.TIME)
    if tick.bare or not tick.value:
        text = units.shown(resolution)
        raise UsageError(f"--resolution: {text} is not a length of a tick; expected one such as 10 ns")
    check_targets(("--out", out))
    write_document(import_document(file, format, name=name, resolution=resolution), out)
