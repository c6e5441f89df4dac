"""Print what-if studies: a table of changes, notes, and the conclusion."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.cli.terminal.console import spaced
from placeopt.studies.sensitivity.findings import LEGEND, WhatIf


def print_whatif(console: Console, found: WhatIf) -> None:
    """Print the table of changes, notes, and the conclusion."""
    headers, rows = found.table()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column, header in enumerate(headers):
        table.add_column(header, justify="right" if column else "left", no_wrap=column > 0, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(spaced(console, table))
    soft = not console.is_terminal
    for text in LEGEND:
        console.print(Text(text, style="dim"), soft_wrap=soft)
    for text in found.remarks():
        console.print(Text(f"note: {text}"), soft_wrap=soft)
    console.print(Text(found.conclusion, style="bold"), soft_wrap=soft)
