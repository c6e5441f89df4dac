"""HTML for notebooks: small tables, every text escaped, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from placeopt.errors import visible

_LONGEST = 500
"""Characters of a text that a cell shows."""


def facts_table(facts: Sequence[tuple[str, str]]) -> str:
    """A table of labels and texts."""
    rows = "".join(f"<tr><th style='text-align:left'>{_cell(label)}</th>{_left(text)}</tr>" for label, text in facts)
    return f"<table>{rows}</table>"


def grid_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """A table with a line of headers; its first `left` columns hold words, the others numbers."""
    head = "".join(f"<th>{_cell(header)}</th>" for header in headers)
    body = "".join(
        f"<tr>{''.join(_left(text) if k < left else f'<td>{_cell(text)}</td>' for k, text in enumerate(row))}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def note(text: str) -> str:
    """A line of text."""
    return f"<p>{_cell(text)}</p>"


def framed(title: str, *parts: str) -> str:
    """Parts below a title, as one element."""
    return f"<div><strong>{_cell(title)}</strong>{''.join(parts)}</div>"


def _left(text: str) -> str:
    return f"<td style='text-align:left'>{_cell(text)}</td>"


def _cell(text: str) -> str:
    return escape(visible(text, _LONGEST))
