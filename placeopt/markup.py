"""HTML for notebooks: small tables, every text escaped, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from placeopt.errors import visible

_LONGEST = 500
"""Characters of a text that a cell shows."""


def facts_table(facts: Sequence[tuple[str, str]]) -> str:
    """A table of labels and texts."""
    align = "style='text-align:left'"
    rows = (f"<tr><th {align}>{_cell(label)}</th><td {align}>{_cell(text)}</td></tr>" for label, text in facts)
    return f"<table>{''.join(rows)}</table>"


def grid_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """A table with a line of headers; its first `left` columns hold words, the others numbers."""
    head = _row("th", headers, left)
    return f"<table><thead>{head}</thead><tbody>{''.join(_row('td', row, left) for row in rows)}</tbody></table>"


def note(text: str) -> str:
    """A line of text."""
    return f"<p>{_cell(text)}</p>"


def framed(title: str, *parts: str) -> str:
    """Parts below a title, as one element."""
    return f"<div><strong>{_cell(title)}</strong>{''.join(parts)}</div>"


def _row(tag: str, texts: Sequence[str], left: int) -> str:
    cells = (
        f"<{tag} style='text-align:{'left' if k < left else 'right'}'>{_cell(text)}</{tag}>"
        for k, text in enumerate(texts)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _cell(text: str) -> str:
    return escape(visible(text, _LONGEST))
