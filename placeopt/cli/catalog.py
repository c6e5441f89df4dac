"""placeopt solvers, passes and schema: what there is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from placeopt.cli.options import AsJson, print_json, stdout_console


def solvers(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One solver, with its settings.")] = None,
    cite: Annotated[bool, typer.Option("--cite", help="Print the BibTeX of the papers.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the installed solvers, or tell about one: guarantee, complexity, settings, citation."""
    from placeopt.registry import find_solver, solver_names

    names = solver_names() if name is None else [name]
    cards = [_card(find_solver(known)) for known in names]
    if as_json:
        print_json(cards if name is None else cards[0])
    elif cite:
        for text in dict.fromkeys(card["citation"] for card in cards if card["citation"]):
            typer.echo(text)
        if name is not None and not cards[0]["citation"]:
            typer.echo(f"{name} implements no paper")
    else:
        from placeopt.report.catalog import print_solver, print_solvers

        if name is None:
            print_solvers(stdout_console(), cards)
        else:
            print_solver(stdout_console(), cards[0])


def passes(as_json: AsJson = False) -> None:
    """List the installed passes, which make a problem smaller or easier before a solver sees it."""
    from placeopt.passes import find_pass, pass_names
    from placeopt.report.passes import card, print_passes

    cards = [card(find_pass(name)) for name in pass_names()]
    if as_json:
        print_json(cards)
    else:
        print_passes(stdout_console(), cards)


def _card(solver: Any) -> dict[str, Any]:
    info = solver.info
    return {
        "name": solver.name,
        "summary": info.summary,
        "guarantee": info.guarantee,
        "complexity": info.complexity,
        "exact": info.exact,
        "anytime": info.anytime,
        "objectives": list(info.metrics),
        "combined_objectives": info.combined,
        "contention": list(info.contentions),
        "memory_models": list(info.memory_models),
        "citation": info.citation,
        "settings": [
            {
                "name": key,
                "type": getattr(field.annotation, "__name__", str(field.annotation)),
                "default": field.default,
                "description": field.description or "",
            }
            for key, field in solver.settings_type.model_fields.items()
        ],
    }


def schema() -> None:
    """Print the JSON Schema of problem files, for editors."""
    from placeopt.spec import json_schema

    print_json(json_schema())
