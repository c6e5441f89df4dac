"""HTML tables for notebooks: all texts are escaped, no external resources."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from placeopt.errors import visible

_LONGEST = 500
"""Maximum number of characters of a text in a cell."""


def facts_table(facts: Sequence[tuple[str, str]]) -> str:
    """An HTML table of labels and texts."""
    align = "style='text-align:left'"
    rows = (f"<tr><th {align}>{_cell(label)}</th><td {align}>{_cell(text)}</td></tr>" for label, text in facts)
    return f"<table>{''.join(rows)}</table>"


def grid_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int, words: Collection[int] = ()) -> str:
    """An HTML table with headers; the first `left` columns and those in `words` are left-aligned, the others right."""
    aligned = ["left" if column < left or column in words else "right" for column in range(len(headers))]
    body = "".join(_row("td", row, aligned) for row in rows)
    return f"<table><thead>{_row('th', headers, aligned)}</thead><tbody>{body}</tbody></table>"


def note(text: str) -> str:
    """A paragraph."""
    return f"<p>{_cell(text)}</p>"


def framed(title: str, *parts: str) -> str:
    """One HTML element with a title above its parts."""
    return f"<div><strong>{_cell(title)}</strong>{''.join(parts)}</div>"


def _row(tag: str, texts: Sequence[str], aligned: Sequence[str]) -> str:
    cells = (
        f"<{tag} style='text-align:{side}'>{_cell(text)}</{tag}>" for text, side in zip(texts, aligned, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _cell(text: str) -> str:
    return escape(visible(text, _LONGEST))
