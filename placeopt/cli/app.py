"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.commands import (
    bounding,
    catalog,
    compare,
    exchange,
    explain,
    export,
    generate,
    judge,
    plot,
    profile,
    replace,
    solve,
    submodular,
    warm,
    whatif,
)
from placeopt.errors import UsageError
from placeopt.io.files import size_limit

app = typer.Typer(
    help="Place the operators of a computation graph on devices, and know how far from optimal the placement is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"placeopt {version('placeopt')}")
        except PackageNotFoundError:
            typer.echo("placeopt, a checkout that is not installed")
        raise typer.Exit


@app.callback()
def _global(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  its callback has done it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size", metavar="SIZE", help="The largest file that is read; 512 MiB, and 32 MiB of YAML, by default."
        ),
    ] = None,
) -> None:
    """Options that stand before the command."""
    context.with_resource(size_limit(None if max_size is None else _bytes(max_size)))


def _bytes(text: str) -> int:
    """A size such as 2GB in bytes.

    Raises
    ------
    UsageError
        If it is not a size of at least one byte.
    """
    from placeopt.model import units

    try:
        size = int(units.parse(text, units.MEMORY).value)
    except units.QuantityError as error:
        raise UsageError(f"--max-size: {error}") from None
    if not size:
        raise UsageError(f"--max-size: {units.shown(text)} is less than a byte; expected a size, such as 2 GB")
    return size


app.command("solve")(solve.solve)
app.command("replace")(replace.replace)
app.command("compare")(compare.compare)
app.command("verify")(judge.verify)
app.command("export")(export.export)
app.command("simulate")(judge.simulate)
app.command("plot")(plot.plot)
app.command("inspect")(judge.inspect)
app.command("bounds")(bounding.bounds)
app.command("explain")(explain.explain)
app.command("check-submodular")(submodular.check_submodular)
app.command("warm")(warm.warm)
app.command("whatif")(whatif.whatif)
app.command("solvers")(catalog.solvers)
app.command("passes")(catalog.passes)
app.command("schema")(catalog.schema)
app.command("import")(exchange.import_file)
app.add_typer(generate.app, name="generate")
app.add_typer(profile.app, name="profile")
