"""Solvers and their settings as a person reads about them."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

FAMILIES = (
    "portfolio",
    "exact",
    "search",
    "list scheduling",
    "ready lists",
    "clustering",
    "fusion",
    "relaxations",
    "baselines",
)
"""The families of our solvers in the order in which they are shown."""


def print_solvers(console: Console, cards: list[dict[str, Any]]) -> None:
    """A line for each solver, family by family: ours in the order of FAMILIES, then the others."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for header in ("solver", "what it does", "guarantee"):
        table.add_column(header, overflow="fold", no_wrap=header == "solver")
    families = sorted({card["family"] for card in cards})
    for family in sorted(families, key=lambda name: FAMILIES.index(name) if name in FAMILIES else len(FAMILIES)):
        table.add_row(Text(family, style="bold"))
        for card in cards:
            if card["family"] == family:
                table.add_row(f"  {card['name']}", Text(card["summary"]), Text(card["guarantee"]))
    console.print(table)
    console.print("placeopt solvers NAME tells more: settings, complexity, what it supports")


def print_solver(console: Console, card: dict[str, Any]) -> None:
    """Everything about one solver."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    combined = " (and sums and lists of them)" if card["combined_objectives"] else ""
    for label, text in (
        (card["name"], card["summary"]),
        ("guarantee", card["guarantee"]),
        ("complexity", card["complexity"]),
        ("objectives", ", ".join(card["objectives"]) + combined),
        ("contention", ", ".join(card["contention"])),
        ("memory model", ", ".join(card["memory_models"])),
    ):
        facts.add_row(label, Text(text))
    console.print(facts)
    print_settings(console, card["settings"], "--set key=value")
    print_citation(console, card["citation"])


def setting_cards(kind: type[BaseModel]) -> list[dict[str, Any]]:
    """The settings of a solver or a pass as plain data."""
    return [
        {
            "name": key,
            "type": getattr(field.annotation, "__name__", str(field.annotation)),
            "default": field.default,
            "choices": list(get_args(field.annotation)) if get_origin(field.annotation) is Literal else [],
            "description": field.description or "",
        }
        for key, field in kind.model_fields.items()
    ]


def print_settings(console: Console, settings: list[dict[str, Any]], written: str) -> None:
    """A table of settings, if there are any; `written` is how they are given."""
    if not settings:
        return
    console.print(f"\n[bold]settings[/bold] ({written})")
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for setting in settings:
        choices = f" One of {', '.join(setting['choices'])}." if setting["choices"] else ""
        description = f"{setting['description']}{choices} Default: {_shown(setting['default'])}."
        table.add_row(setting["name"], Text(" ".join(description.split())))
    console.print(table)


def print_citation(console: Console, citation: str) -> None:
    """The BibTeX of a paper, if there is one."""
    if citation:
        console.print("\n[bold]citation[/bold]")
        console.print(Text(citation))


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
