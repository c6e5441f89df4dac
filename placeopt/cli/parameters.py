"""Define kinds of arguments and options: files to read, files to write, times, plots."""

from __future__ import annotations

from typing import Any

import typer

from placeopt.cli import completion
from placeopt.cli.arguments import input_path, local_file, share


def input_argument(metavar: str, help: str) -> Any:
    """Return the definition of an argument: a file to read."""
    return typer.Argument(metavar=metavar, parser=input_path, help=help)


def input_option(*names: str, help: str) -> Any:
    """Return the definition of an option: a file to read."""
    return typer.Option(*names, metavar="FILE", parser=input_path, help=help)


def output_option(*names: str, help: str, metavar: str = "FILE") -> Any:
    """Return the definition of an option: a file to write."""
    return typer.Option(*names, metavar=metavar, parser=local_file, help=help)


def solver_option(help: str) -> Any:
    """Return the definition of the option --solver."""
    return typer.Option("--solver", "-s", autocompletion=completion.solvers, help=help)


def devices_option(*names: str, help: str) -> Any:
    """Return the definition of an option: a file with devices, or devices of the catalogue."""
    return typer.Option(*names, metavar="FILE|DEVICES", autocompletion=completion.devices, help=help)


def time_option(*names: str, help: str) -> Any:
    """Return the definition of an option: a time, such as 30s."""
    return typer.Option(*names, metavar="TIME", help=help)


def share_option(name: str, help: str) -> Any:
    """Return the definition of an option: a share, such as 0.05 or 5%."""

    def parse(text: str) -> float:
        return share(text, name)

    return typer.Option(name, metavar="SHARE", parser=parse, help=help)


def limit_option(help: str) -> Any:
    """Return the definition of the option --time-limit."""
    return time_option("--time-limit", "-t", help=help)


def plot_option(help: str, metavar: str = "[KIND:]FILE") -> Any:
    """Return the definition of the option --plot."""
    return typer.Option("--plot", metavar=metavar, help=help)
