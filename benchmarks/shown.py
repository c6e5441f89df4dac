"""What a benchmark prints, kept as well, so that it can become a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from claims import Claim, claims_table
from rich.console import Console
from rich.table import Table

console = Console(width=150)


class Claims(NamedTuple):
    """Claims of a paper under a title."""

    title: str
    claims: list[Claim]


Shown = Table | Claims | str

shown: list[Shown] = []
"""Everything shown so far."""


def show(what: Table | str) -> None:
    """Print and keep a table or a sentence."""
    console.print(what)
    shown.append(what)


def show_claims(title: str, claims: Iterable[Claim]) -> None:
    """Print and keep claims of a paper."""
    found = Claims(title, list(claims))
    console.print(claims_table(*found))
    shown.append(found)
