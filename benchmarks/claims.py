"""What a paper reports next to what we measure, with a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.table import Table


class Claim(NamedTuple):
    """A claim or a cell of a paper, our result, and the verdict."""

    text: str
    paper: str
    ours: str
    verdict: str


def claims_table(title: str, claims: Iterable[Claim]) -> Table:
    """A table of claims."""
    table = Table(title=title)
    for header in ("claim of the paper", "paper", "ours", "verdict"):
        table.add_column(header)
    for claim in claims:
        table.add_row(*claim)
    return table
