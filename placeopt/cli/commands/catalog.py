"""placeopt solvers, passes and schema: what there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from placeopt.cli.options import AsJson, print_json, stdout_console

Cite = Annotated[bool, typer.Option("--cite", help="Print the BibTeX of the papers.")]


def solvers(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One solver, with its settings.")] = None,
    cite: Cite = False,
    as_json: AsJson = False,
) -> None:
    """List the installed solvers, or tell about one: guarantee, complexity, settings, citation."""
    from placeopt.solver.registry import find_solver, solver_names

    names = solver_names() if name is None else [name]
    cards = [_card(find_solver(known)) for known in names]
    if as_json:
        print_json(cards if name is None else cards[0])
    elif cite:
        _print_citations(name, cards)
    else:
        from placeopt.cli.terminal.catalog import print_solver, print_solvers

        if name is None:
            print_solvers(stdout_console(), cards)
        else:
            print_solver(stdout_console(), cards[0])


def passes(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One pass, with its settings.")] = None,
    cite: Cite = False,
    as_json: AsJson = False,
) -> None:
    """List the installed passes, which make a problem smaller or easier before a solver sees it; or tell about one."""
    from placeopt.cli.terminal.passes import card
    from placeopt.passes import find_pass, pass_names

    cards = [card(find_pass(known)) for known in (pass_names() if name is None else [name])]
    if as_json:
        print_json(cards if name is None else cards[0])
    elif cite:
        _print_citations(name, cards)
    else:
        from placeopt.cli.terminal.passes import print_pass, print_passes

        if name is None:
            print_passes(stdout_console(), cards)
        else:
            print_pass(stdout_console(), cards[0])


def _print_citations(name: str | None, cards: Sequence[dict[str, Any]]) -> None:
    """The citations of all cards, each once; that there is none, for a name that has none."""
    for text in dict.fromkeys(card["citation"] for card in cards if card["citation"]):
        typer.echo(text)
    if name is not None and not cards[0]["citation"]:
        typer.echo(f"{name} implements no paper")


def _card(solver: Any) -> dict[str, Any]:
    from placeopt.cli.terminal.catalog import setting_cards

    info = solver.info
    return {
        "name": solver.name,
        "summary": info.summary,
        "family": info.family,
        "guarantee": info.guarantee,
        "complexity": info.complexity,
        "exact": info.exact,
        "anytime": info.anytime,
        "objectives": list(info.metrics),
        "combined_objectives": info.combined,
        "contention": list(info.contentions),
        "memory_models": list(info.memory_models),
        "citation": info.citation,
        "settings": setting_cards(solver.settings_type),
    }


def schema() -> None:
    """Print the JSON Schema of problem files, for editors."""
    from placeopt.io.spec import json_schema

    print_json(json_schema())
