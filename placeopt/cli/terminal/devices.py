"""Print devices and links of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

from placeopt.cli.terminal.console import facts_table, new_table, print_wrapped
from placeopt.io.catalogue import COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY
from placeopt.model.units import size_text

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
