"""Passes as a person reads about them: what there is, what they did to a problem."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.cli.terminal.catalog import print_citation, print_settings, setting_cards
from placeopt.model.problem import Problem
from placeopt.passes import EXACT_PASSES, Pass, apply_passes
from placeopt.solver import Settings
from placeopt.views.facts import change_text


def card(known: Pass) -> dict[str, Any]:
    """A pass as plain data."""
    given_up = "nothing" if known.exact else getattr(known, "gives_up", "perhaps the optimum")
    return {
        "name": known.name,
        "exact": known.exact,
        "summary": known.summary,
        "gives_up": given_up,
        "citation": known.citation,
        "settings": setting_cards(type(known)) if isinstance(known, Settings) else [],
    }


def print_passes(console: Console, cards: list[dict[str, Any]]) -> None:
    """A line for each pass."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for header in ("pass", "exact", "what it does", "gives up"):
        table.add_column(header, overflow="fold", no_wrap=header in ("pass", "exact"))
    for each in cards:
        table.add_row(each["name"], "yes" if each["exact"] else "no", Text(each["summary"]), Text(each["gives_up"]))
    console.print(table)
    console.print("exact passes keep the optimum; exact solvers run behind them unless told --no-passes")
    console.print("placeopt passes NAME tells more: settings, citation")


def print_pass(console: Console, card: dict[str, Any]) -> None:
    """Everything about one pass."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    facts.add_row(card["name"], Text(card["summary"]))
    facts.add_row("exact", "yes: keeps the optimum" if card["exact"] else "no")
    facts.add_row("gives up", Text(card["gives_up"]))
    console.print(facts)
    print_settings(console, card["settings"], f"--pass {card['name']}:key=value,key=value")
    print_citation(console, card["citation"])


def exact_passes(problem: Problem) -> dict[str, Any]:
    """What the exact passes make of a problem, as plain data."""
    chain = apply_passes(problem, EXACT_PASSES)
    steps = [{"pass": step.name, "explanation": step.reduction.explanation} for step in chain.steps]
    return chain.applied.to_dict() | {"steps": steps}


def print_exact_passes(console: Console, found: dict[str, Any]) -> None:
    """What the exact passes make of a problem, step by step."""
    console.print("\n[bold]exact passes[/bold] (exact solvers run behind them)")
    if not found["steps"]:
        console.print("  nothing to remove")
        return
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for step in found["steps"]:
        table.add_row(step["pass"], Text(step["explanation"]))
    table.add_row("together", Text(change_text(found["before"], found["after"])))
    console.print(table)
