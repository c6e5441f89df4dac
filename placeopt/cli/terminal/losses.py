"""Print separated losses: what is known of each optimum, the losses, and the conclusion."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from placeopt.cli.terminal.console import new_table, print_wrapped, spaced
from placeopt.studies.losses import Losses


def print_losses(console: Console, found: Losses) -> None:
    """Print the schedules and lower bounds, the losses, notes, and the conclusion."""
    if found.chain:
        print_wrapped(console, found.headline)
        for headers, rows in (found.schedules(), found.table()):
            table = new_table(*headers, wrap=headers[3:])
            for row in rows:
                table.add_row(*map(Text, row))
            console.print(spaced(console, table))
    for text in found.notes:
        print_wrapped(console, f"note: {text}")
    print_wrapped(console, Text(found.conclusion, style="bold"))
