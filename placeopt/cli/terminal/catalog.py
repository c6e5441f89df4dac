"""Print solvers and passes with their settings, and the devices and links of the catalogue."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from inspect import getdoc
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.text import Text

from placeopt.cli.terminal.console import facts_table, new_table, print_wrapped
from placeopt.errors import listing
from placeopt.io.catalogue import COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY
from placeopt.model.units import size_text
from placeopt.protocol import RULES, Settings
from placeopt.protocol.registry import settings_of

if TYPE_CHECKING:
    from placeopt.passes import Pass
    from placeopt.protocol import Solver

FAMILIES = (
    "portfolio", "exact", "search", "list scheduling", "ready lists", "clustering", "fusion", "relaxations",
    "baselines",
)  # fmt: skip
"""The families of placeopt's solvers in the order in which they are shown."""


_DEPARTURES = re.compile(r"\bDepartures?\b[^:]*:")


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
        "rules": [RULES[rule] for rule in info.rules],
        "citation": info.citation,
        "departures": departures(solver),
        "settings": setting_cards(solver.settings_type),
    }


def departures(solver: Solver) -> list[str]:
    """Return what a solver does unlike its paper, as the docstring of its module states it: one text each."""
    text = getdoc(sys.modules[type(solver).__module__]) or ""
    heading = _DEPARTURES.search(text)
    if heading is None:
        return []
    stated = text[heading.end() :].strip().split("\n\n", 1)[0]
    return [" ".join(each.split()) for each in stated.removeprefix("- ").split("\n- ")]


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
        ("memory model", ", ".join(card["memory_models"])),
        ("other rules", ", ".join(card["rules"]) or f"none; refuses problems with {listing(list(RULES.values()), 20)}"),
    ]
    _print_card(console, facts, card, "--set key=value")
    if card["departures"]:
        console.print("\n[bold]departures from the paper[/bold]")
        console.print(facts_table(("-", text) for text in card["departures"]))


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


WIDE = 130
"""Minimum width of a terminal for the column of titles."""

Number = TypeVar("Number", int, float)

_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6))


def print_devices(console: Console, devices: list[dict[str, Any]], links: list[dict[str, Any]]) -> None:
    """Print a line per device, by family, and a line per link."""
    wide = console.width >= WIDE
    table = new_table(
        "device", *(["title"] if wide else []), "year", "memory", "bandwidth", "FLOP/s fp32", "16-bit", "power",
        left=2 if wide else 1,
    )  # fmt: skip
    family = None
    for device in devices:
        if device["family"] != family:
            family = device["family"]
            table.add_row(Text(family, style="bold"))
        speed, power = device["speed"], device["power"]
        half = max((speed[key] for key in ("fp16", "bf16") if key in speed), default=None)
        table.add_row(
            f"  {device['name']}",
            *([device["title"]] if wide else []),
            str(device["year"]),
            _or_dash(device["memory"], size_text),
            _or_dash(device["memory_bandwidth"], lambda amount: rate_text(amount, "B/s")),
            _or_dash(speed.get("fp32"), lambda amount: rate_text(amount, "")),
            _or_dash(half, lambda amount: rate_text(amount, "")),
            _or_dash(power, lambda amount: f"{amount:,.4g} W"),
        )
    console.print(table)
    console.print()
    table = new_table("link", *(["title"] if wide else []), "year", "bandwidth", left=2 if wide else 1)
    for link in links:
        title = [link["title"]] if wide else []
        table.add_row(f"  {link['name']}", *title, str(link["year"]), rate_text(link["bandwidth"], "B/s"))
    console.print(table)
    console.print()
    print_wrapped(
        console,
        "peak rates without sparsity; 16-bit is fp16 or bf16; links: from one device to another, in one direction",
    )
    print_wrapped(console, "placeopt devices NAME shows more: all number formats, usual links, sources")


def print_device(console: Console, device: Mapping[str, Any]) -> None:
    """Print all figures of a device, with their sources."""
    speed = ", ".join(f"{key} {rate_text(rate, 'FLOP/s')}" for key, rate in device["speed"].items())
    links = [f"{kind} {device[key]}" for kind, key in (("host", "host_link"), ("peer", "peer_link")) if device[key]]
    facts = [
        (device["name"], f"{device['title']}, {device['year']}"),
        ("speed", speed or "not published"),
        ("memory", _or_dash(device["memory"], size_text)),
        ("memory bandwidth", _or_dash(device["memory_bandwidth"], lambda amount: rate_text(amount, "B/s"))),
        ("power", _or_dash(device["power"], lambda amount: f"{amount:,.4g} W")),
        ("usual links", ", ".join(links) or "-"),
        ("efficiency", f"{_factors()}, unless a problem states `efficiency`"),
        ("note", device["note"]),
    ]
    console.print(facts_table((label, text) for label, text in facts if text))
    _print_sources(console, device["sources"])


def print_link(console: Console, link: Mapping[str, Any]) -> None:
    """Print all figures of a link, with their sources."""
    latency = link["latency"]
    facts = [
        (link["name"], f"{link['title']}, {link['year']}"),
        ("bandwidth", f"{rate_text(link['bandwidth'], 'B/s')} from one device to another, in one direction"),
        ("latency", "" if latency is None else f"{latency * 1e6:g} us"),
        ("note", link["note"]),
    ]
    console.print(facts_table((label, text) for label, text in facts if text))
    _print_sources(console, link["sources"])


def _print_sources(console: Console, sources: Mapping[str, str]) -> None:
    figures: dict[str, list[str]] = {}
    for figure, source in sources.items():
        figures.setdefault(source, []).append(figure.replace("_", " "))
    console.print("\n[bold]sources[/bold]")
    for source, names in figures.items():
        print_wrapped(console, Text(f"  {', '.join(names)}: {source}"))


def rate_text(rate: float, unit: str) -> str:
    """A rate as text: 3.35 TB/s."""
    prefix, size = next(((prefix, size) for prefix, size in _PREFIXES if rate >= size), ("", 1.0))
    return f"{rate / size:.4g} {prefix}{unit}".rstrip()


def _factors() -> str:
    return f"{float(COMPUTE_EFFICIENCY):g} of the speed and {float(MEMORY_EFFICIENCY):g} of the memory bandwidth"


def _or_dash(amount: Number | None, shown: Callable[[Number], str]) -> str:
    return "-" if amount is None else shown(amount)
