"""placeopt solvers, passes, devices and schema: list what problems may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.files import check_targets, write_document
from placeopt.cli.options import AsJson, DocumentFile
from placeopt.cli.output import print_json, print_notes, stdout_console
from placeopt.errors import UsageError, visible

if TYPE_CHECKING:
    from rich.console import Console

Cite = Annotated[bool, Option("--cite", help="Print the BibTeX of the implemented papers.")]


def solvers(
    name: Annotated[str | None, Argument(metavar="NAME", help="One solver, with its settings.")] = None,
    cite: Cite = False,
    as_json: AsJson = False,
) -> None:
    """List the installed solvers, or show one: guarantee, complexity, settings, paper, departures from it."""
    from placeopt.cli.terminal.catalog import print_solver, print_solvers, solver_card
    from placeopt.protocol.registry import find_solver, solver_names

    cards, broken = [], []
    for known in solver_names() if name is None else [name]:
        try:
            cards.append(solver_card(find_solver(known)))
        except UsageError as error:  # of another package; the others are listed
            if name is not None:
                raise
            broken.append(str(error))
    _print_cards(name, cards, cite, as_json, print_solvers, print_solver)
    print_notes(*broken)


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


def schema(
    serving: Annotated[bool, Option("--serving", help="Print that of serving problems.")] = False,
) -> None:
    """Print the JSON Schema of problem files, for editors."""
    from placeopt.io.spec import Spec, json_schema
    from placeopt.serving.files import ServingFile

    print_json(json_schema(ServingFile if serving else Spec))
