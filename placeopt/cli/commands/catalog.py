"""placeopt solvers, passes, devices, schema and warm: list what problems may use, and prepare this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.files import check_targets, write_document
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson, DocumentFile
from placeopt.cli.output import print_json, print_notes, stderr_console, stdout_console

if TYPE_CHECKING:
    from rich.console import Console

Cite = Annotated[bool, Option("--cite", help="Print the BibTeX of the implemented papers.")]


def solvers(
    name: Annotated[str | None, Argument(metavar="NAME", help="One solver, with its settings.")] = None,
    cite: Cite = False,
    as_json: AsJson = False,
) -> None:
    """List the installed solvers, or show one: guarantee, complexity, settings, citation."""
    from placeopt.cli.terminal.catalog import print_solver, print_solvers, solver_card
    from placeopt.solver.registry import find_solver, solver_names

    cards = [solver_card(find_solver(known)) for known in (solver_names() if name is None else [name])]
    _print_cards(name, cards, cite, as_json, print_solvers, print_solver)


def passes(
    name: Annotated[str | None, Argument(metavar="NAME", help="One pass, with its settings.")] = None,
    cite: Cite = False,
    as_json: AsJson = False,
) -> None:
    """List the installed passes, which make a problem smaller or easier to solve, or show one."""
    from placeopt.cli.terminal.catalog import pass_card, print_pass, print_passes
    from placeopt.passes import find_pass, pass_names

    cards = [pass_card(find_pass(known)) for known in (pass_names() if name is None else [name])]
    _print_cards(name, cards, cite, as_json, print_passes, print_pass)


def devices(
    name: Annotated[
        str | None, Argument(metavar="NAME", help="One device or link, with the sources of its figures.")
    ] = None,
    detect: Annotated[
        bool, Option("--detect", help="Write the devices of this machine instead: measured cores, GPUs by nvidia-smi.")
    ] = False,
    out: DocumentFile = None,
    as_json: AsJson = False,
) -> None:
    """List the devices and links of the catalogue, or show one: speeds by number format, usual links, sources.

    With --detect, write a file for `import --devices`.
    """
    from placeopt.cli.terminal.catalog import print_device, print_devices, print_link
    from placeopt.errors import UsageError, visible
    from placeopt.io.catalogue import device_info, device_names, hint, link_info, link_names

    if detect:
        from placeopt.bridges.detection import detect_devices

        if name is not None:
            raise UsageError(f"--detect and {visible(name)} exclude each other: --detect writes the devices found")
        check_targets(("--out", out))
        document, notes = detect_devices()
        if as_json and out is None:
            print_json(document)
        else:
            write_document(document, out)
        print_notes(*notes)
        return
    if out is not None:
        raise UsageError("--out needs --detect")
    if name is None:
        known = [device_info(each).to_dict() for each in device_names()]
        links = [link_info(each).to_dict() for each in link_names()]
        if as_json:
            print_json({"devices": known, "links": links})
        else:
            print_devices(stdout_console(), known, links)
        return
    if name not in (*device_names(), *link_names()):
        raise UsageError(f'unknown device or link "{name}"{hint(name, [*device_names(), *link_names()])}')
    device = name in device_names()
    card = device_info(name).to_dict() if device else link_info(name).to_dict()
    if as_json:
        print_json(card)
    elif device:
        print_device(stdout_console(), card)
    else:
        print_link(stdout_console(), card)


def _print_cards(
    name: str | None,
    cards: list[dict[str, Any]],
    cite: bool,
    as_json: bool,
    print_all: Callable[[Console, list[dict[str, Any]]], None],
    print_one: Callable[[Console, dict[str, Any]], None],
) -> None:
    """Print all cards, or the card of `name`: as JSON, as citations, or as text."""
    if as_json:
        print_json(cards if name is None else cards[0])
    elif cite:
        for text in dict.fromkeys(card["citation"] for card in cards if card["citation"]):
            typer.echo(text)
        if name is not None and not cards[0]["citation"]:
            typer.echo(f"{name} implements no paper")
    elif name is None:
        print_all(stdout_console(), cards)
    else:
        print_one(stdout_console(), cards[0])


def schema() -> None:
    """Print the JSON Schema of problem files, for editors."""
    from placeopt.io.spec import json_schema

    print_json(json_schema())


def warm(
    solvers: Annotated[
        list[str] | None, Argument(metavar="SOLVER", help="Compile only the kernels of these solvers; by default all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile kernels into Numba's cache, for container images, clusters and CI; cached kernels are kept."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from placeopt.solving.warming import warm as warm_kernels

    console = stderr_console()
    columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    with on_interrupt() as stop:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("searching for kernels", total=None)

            def show(done: int, count: int) -> None:
                bar.update(task, description=f"{done} of {count} kernels", completed=done, total=count)

            found = warm_kernels(solvers or None, on_progress=show, should_stop=stop.is_set)
        if as_json:
            print_json({"kernels": found.kernels, "failed": found.failed, "seconds": found.seconds})
        else:
            stdout_console().print(f"{found.kernels} kernels are compiled ({found.seconds:.1f} s)")
            for name, why in found.failed.items():
                console.print(f"{name} is not compiled: {why}", markup=False, soft_wrap=True)
    raise typer.Exit(stop.code if stop.is_set() else 1 if found.failed else 0)
