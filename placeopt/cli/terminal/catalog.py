"""Print solvers and passes with their settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from placeopt.cli.terminal.console import facts_table, new_table
from placeopt.solver import Settings
from placeopt.solver.registry import settings_of

if TYPE_CHECKING:
    from placeopt.passes import Pass
    from placeopt.solver import Solver

FAMILIES = (
    "portfolio", "exact", "search", "list scheduling", "ready lists", "clustering", "fusion", "relaxations",
    "baselines",
)  # fmt: skip
"""The families of placeopt's solvers in the order in which they are shown."""


def solver_card(solver: Solver) -> dict[str, Any]:
    """Return a solver as plain data."""
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
        "memory_tiers": info.tiers,
        "citation": info.citation,
        "settings": setting_cards(solver.settings_type),
    }


def pass_card(known: Pass) -> dict[str, Any]:
    """Return a pass as plain data."""
    return {
        "name": known.name,
        "exact": known.exact,
        "summary": known.summary,
        "gives_up": "nothing" if known.exact else getattr(known, "gives_up", "perhaps the optimum"),
        "citation": known.citation,
        "settings": setting_cards(type(known)) if isinstance(known, Settings) else [],
    }


def print_solvers(console: Console, cards: list[dict[str, Any]]) -> None:
    """Print a line per solver, by family: first those in FAMILIES, then the others."""
    table = new_table("solver", "what it does", "guarantee", wrap=["what it does", "guarantee"])
    families = sorted({card["family"] for card in cards})
    for family in sorted(families, key=lambda name: FAMILIES.index(name) if name in FAMILIES else len(FAMILIES)):
        table.add_row(Text(family, style="bold"))
        for card in cards:
            if card["family"] == family:
                table.add_row(f"  {card['name']}", Text(card["summary"]), Text(card["guarantee"]))
    console.print(table)
    console.print("placeopt solvers NAME shows more: settings, complexity, supported problems")


def print_solver(console: Console, card: dict[str, Any]) -> None:
    """Print all details of one solver."""
    combined = " (and weighted sums and lists of them)" if card["combined_objectives"] else ""
    facts = [
        (card["name"], card["summary"]),
        ("guarantee", card["guarantee"]),
        ("complexity", card["complexity"]),
        ("objectives", ", ".join(card["objectives"]) + combined),
        ("contention", ", ".join(card["contention"])),
        ("memory model", ", ".join(card["memory_models"]) + (", memory tiers" if card["memory_tiers"] else "")),
    ]
    _print_card(console, facts, card, "--set key=value")


def print_passes(console: Console, cards: list[dict[str, Any]]) -> None:
    """Print a line per pass."""
    table = new_table("pass", "exact", "what it does", "may lose", left=2, wrap=["what it does", "may lose"])
    for each in cards:
        table.add_row(each["name"], "yes" if each["exact"] else "no", Text(each["summary"]), Text(each["gives_up"]))
    console.print(table)
    console.print("exact passes keep the optimum; exact solvers use them unless --no-passes is given")
    console.print("placeopt passes NAME shows more: settings, citation")


def print_pass(console: Console, card: dict[str, Any]) -> None:
    """Print all details of one pass."""
    exact = "yes: keeps the optimum" if card["exact"] else "no"
    facts = [(card["name"], card["summary"]), ("exact", exact), ("may lose", card["gives_up"])]
    _print_card(console, facts, card, f"--pass {card['name']}:key=value,key=value")


def setting_cards(kind: type[Settings]) -> list[dict[str, Any]]:
    """Return the settings of a solver or a pass as plain data."""
    return [asdict(setting) for setting in settings_of(kind)]


def _print_card(console: Console, facts: list[tuple[str, str]], card: dict[str, Any], option: str) -> None:
    """Print facts, settings and BibTeX of a solver or a pass; `option` shows how settings are given."""
    console.print(facts_table(facts))
    if card["settings"]:
        console.print(f"\n[bold]settings[/bold] ({option})")
        console.print(facts_table((setting["name"], _setting_text(setting)) for setting in card["settings"]))
    if card["citation"]:
        console.print("\n[bold]citation[/bold]")
        console.print(Text(card["citation"]))


def _setting_text(setting: dict[str, Any]) -> str:
    choices = f" One of {', '.join(setting['choices'])}." if setting["choices"] else ""
    value = setting["default"]
    default = str(value).lower() if isinstance(value, bool) or value is None else str(value)
    return " ".join(f"{setting['description']}{choices} Default: {default}.".split())
