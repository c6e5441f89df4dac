"""Shorten names for plots so that they stay distinct."""

from __future__ import annotations

import re
from collections.abc import Sequence

from placeopt.errors import visible

_SEPARATORS = re.compile(r"[/._:\-\s]")
_LONG = 16
"""Maximum length of names that are never cut."""


def short(text: str, length: int) -> str:
    """Put a text on one line of at most `length` characters; the middle of a longer text is left out."""
    text = visible(text, 1000)
    if len(text) <= length:
        return text
    kept = max(length - 1, 1)
    tail = kept // 3
    return f"{text[: kept - tail]}…{text[len(text) - tail :] if tail else ''}"


def distinct(names: Sequence[str], length: int) -> list[str]:
    """Shorten names; a common start or end of all names is left out first.

    Only whole words are left out: "rack-7/node-1" and "rack-7/node-2" become "…node-1" and "…node-2".
    """
    shown = [visible(name, 1000) for name in names]
    longest = max(map(len, shown), default=0)
    if len(set(shown)) > 1 and longest > max(length, _LONG):
        first = _words(_common(min(shown), max(shown)))
        backwards = [name[first:][::-1] for name in shown]
        last = _words(_common(min(backwards), max(backwards)))
        shown = [
            f"{_gone(name[:first])}{name[first : len(name) - last]}{_gone(name[len(name) - last :])}" for name in shown
        ]
    return [short(name, length) for name in shown]


def _common(least: str, most: str) -> str:
    """Return the common start of two names, and so of all names between them."""
    differ = (i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b)
    return least[: next(differ, min(len(least), len(most)))]


def _words(common: str) -> int:
    """Return the length of the part of a common start that ends with a word."""
    ends = [match.end() for match in _SEPARATORS.finditer(common)]
    return ends[-1] if ends else 0


def _gone(part: str) -> str:
    """Replace a part that is left out by dots, unless it is as short as them."""
    return "…" if len(part) > 2 else part
