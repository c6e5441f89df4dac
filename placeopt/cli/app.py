"""Define the application with all commands."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.arguments import quantity
from placeopt.cli.commands import (
    catalog,
    compare,
    exchange,
    generate,
    plans,
    plot,
    problems,
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
    help="Place the operators of a computation graph on devices, and certify how far the schedule is from the optimum.",
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
    version: Annotated[  # noqa: ARG001  handled by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size", metavar="SIZE", help="Maximum size of input files; by default 512 MiB, and 32 MiB for YAML."
        ),
    ] = None,
) -> None:
    """Options that precede the command."""
    context.with_resource(size_limit(None if max_size is None else _bytes(max_size)))


def _bytes(text: str) -> int:
    """Convert a size such as 2GB to bytes; anything else is a UsageError."""
    from placeopt.model import units

    size = int(quantity(text, "--max-size", units.MEMORY).value)
    if not size:
        raise UsageError(f"--max-size: {units.shown(text)} is less than a byte; expected a size, such as 2 GB")
    return size


app.command("solve")(solve.solve)
app.command("replace")(replace.replace)
app.command("compare")(compare.compare)
app.command("verify")(plans.verify)
app.command("export")(exchange.export)
app.command("simulate")(plans.simulate)
app.command("plot")(plot.plot)
app.command("inspect")(problems.inspect)
app.command("bounds")(problems.bounds)
app.command("explain")(problems.explain)
app.command("check-submodular")(submodular.check_submodular)
app.command("warm")(warm.warm)
app.command("whatif")(whatif.whatif)
app.command("solvers")(catalog.solvers)
app.command("passes")(catalog.passes)
app.command("devices")(catalog.devices)
app.command("schema")(catalog.schema)
app.command("import")(exchange.import_file)
app.add_typer(generate.app, name="generate")
app.add_typer(profile.app, name="profile")
