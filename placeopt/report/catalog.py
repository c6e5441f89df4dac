"""Solvers as a person reads about them."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_solvers(console: Console, cards: list[dict[str, Any]]) -> None:
    """A line for each solver."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for header in ("solver", "what it does", "guarantee"):
        table.add_column(header, overflow="fold", no_wrap=header == "solver")
    for card in cards:
        table.add_row(card["name"], Text(card["summary"]), Text(card["guarantee"]))
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
    if card["settings"]:
        console.print("\n[bold]settings[/bold] (--set key=value)")
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for setting in card["settings"]:
            description = f"{setting['description']} Default: {_shown(setting['default'])}."
            table.add_row(setting["name"], Text(" ".join(description.split())))
        console.print(table)
    if card["citation"]:
        console.print("\n[bold]citation[/bold]")
        console.print(Text(card["citation"]))


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
