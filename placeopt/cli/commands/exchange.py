"""placeopt import: convert files of other tools to problem files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.options import DocumentFile, input_path, write_document
from placeopt.cli.targets import check_targets
from placeopt.errors import UsageError


def import_file(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", parser=input_path, help="The file to convert; without it, list the formats."),
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", "-f", help="Format of the file; by default detected from its content.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the problem; by default taken from the file.")
    ] = None,
    resolution: Annotated[
        str, typer.Option("--resolution", metavar="TIME", help="Length of a tick, such as `10 ns`.")
    ] = "1 ns",
    out: DocumentFile = None,
) -> None:
    """Convert a graph in the format of another tool to a problem file."""
    from placeopt.io.formats.importers import IMPORTERS, import_document
    from placeopt.model import units

    if file is None:
        for known, importer in IMPORTERS.items():
            typer.echo(f"{known:<18} {importer.description}")
        return
    try:
        tick = units.parse(resolution, units.TIME)
    except units.QuantityError as error:
        raise UsageError(f"--resolution: {error}") from None
    if tick.bare or not tick.value:
        raise UsageError(
            f"--resolution: {units.shown(resolution)} is not a length of a tick; expected one such as 10 ns"
        )
    check_targets(("--out", out))
    write_document(import_document(file, format, name=name, resolution=resolution), out)
