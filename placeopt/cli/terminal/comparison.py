"""Comparisons for a terminal, as Markdown, and as CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from placeopt.studies.comparison.grids import grids
from placeopt.studies.comparison.result import Comparison

WIDE = 100
"""Columns of a terminal from which on tables are set with more room."""


def print_comparison(console: Console, comparison: Comparison) -> None:
    """All tables of a comparison."""
    room = 2 if console.width >= WIDE else 1
    for place, grid in enumerate(grids(comparison)):
        if place:
            console.print()
        console.print(Text(grid.title, style="bold"), soft_wrap=not console.is_terminal)
        table = Table(box=None, padding=(0, room, 0, 0), header_style="dim", pad_edge=False)
        for column, header in enumerate(grid.headers):
            words = column < grid.left or column in grid.words
            table.add_column(header, justify="left" if words else "right", overflow="fold", no_wrap=not words)
        for row in grid.rows:
            table.add_row(*map(Text, row))
        console.print(table)
        for note in grid.notes:
            if console.is_terminal:
                console.print(Padding(Text(note), (0, 0, 0, 2)))
            else:
                console.print(Text(f"  {note}"), soft_wrap=True)


def write_markdown(out: TextIO, comparison: Comparison) -> None:
    """All tables of a comparison as Markdown."""
    for place, grid in enumerate(grids(comparison)):
        lines = [f"### {_escaped(grid.title)}", "", _line(map(_escaped, grid.headers))]
        lines.append(_line(["---" if c < grid.left or c in grid.words else "---:" for c in range(len(grid.headers))]))
        lines += [_line(map(_escaped, row)) for row in grid.rows]
        if grid.notes:
            lines += ["", *(f"- {_escaped(note)}" for note in grid.notes)]
        out.write("\n" * (place > 0) + "\n".join(lines) + "\n")


def write_csv(out: TextIO, comparison: Comparison) -> None:
    """The runs of a comparison, a line each; what is absent is empty, and no text is a formula."""
    rows = comparison.rows()
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["problem"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)


def _cell(value: object) -> object:
    """A cell; a text that a spreadsheet would take for a formula gets an apostrophe before it, as OWASP advises."""
    if not isinstance(value, str):
        return value
    formula = value.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    return "'" * formula + value.replace(
        "\r", "\n"
    )  # Python before 3.13 leaves \r without quotes: it would end the line


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """The text with every sign that Markdown would take for its own, links, code and mathematics too, as itself."""
    return re.sub(r"([\\`*_~$|\[\]])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
