"""The exceptions of placeopt: all mean that the caller has something to mend.

    PlaceoptError
    ├── DocumentError       a file cannot be read or is no YAML or JSON (carries located issues)
    │   ├── SpecError       a spec, or what it compiles to, is wrong
    │   └── PlanError       a plan does not fit its problem
    ├── UsageError          an option or argument is wrong
    ├── UnsupportedError    a solver cannot handle this problem; names solvers that can
    ├── MissingExtraError   an optional dependency is not installed; names the command that installs it
    └── InternalError       placeopt contradicts itself: a bug, never the caller's fault

Limits and infeasibility are no exceptions: they are answers (see `placeopt.solving.result`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

_PLAIN_NAME = re.compile(r"[^\s.\[\]\":]+")


class PlaceoptError(Exception):
    """Base class of every exception that placeopt raises on purpose."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong with a document, and where.

    `line` and `column` count from 1; they are None for documents made in code, and the column for CSV files.
    `path` leads to the place in the document: ("tasks", "conv2", "memory").
    """

    message: str
    path: tuple[str | int, ...] = ()
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}" if self.column is None else f":{self.line}:{self.column}"
        parts = [part for part in (place, path_text(self.path), self.message) if part]
        return ": ".join(parts)


class DocumentError(PlaceoptError):
    """A document is wrong; `issues` lists everything that is, in file order."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        self.issues = tuple(issues)
        super().__init__("\n".join(str(issue) for issue in self.issues))


class SpecError(DocumentError):
    """A spec, or what it compiles to, is wrong."""


class PlanError(DocumentError):
    """A plan file cannot be read as a schedule of its problem."""


class UsageError(PlaceoptError):
    """An option or argument has a value that makes no sense."""


class UnsupportedError(PlaceoptError):
    """The solver cannot handle a property of this problem."""


class MissingExtraError(PlaceoptError):
    """An optional dependency is needed and not installed."""


class InternalError(PlaceoptError):
    """Two parts of placeopt disagree; please report it.

    `dump` is a problem document that reproduces it where there is one: its key `x-disagreement` tells of the run.
    """

    def __init__(self, message: str, dump: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.dump = dump


def path_text(path: Iterable[str | int]) -> str:
    """A path as people write it: tasks.conv2.after[0]; names that would be hard to tell apart stand in quotes."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = visible(part)
            name = name if _PLAIN_NAME.fullmatch(name) else f'"{name}"'
            text += f".{name}" if text else name
    return text


def visible(text: str, limit: int = 100) -> str:
    """A text on one line and not too long, for a message."""
    if len(text) > limit:
        text = f"{text[: limit - 20]}...{text[-10:]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def near_misses(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that the name may be a slip for: those that differ in case alone, else the closest one."""
    return _near_misses(name, tuple(known))


@lru_cache(maxsize=4096)
def _near_misses(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    folded = name.casefold()
    return tuple(other for other in known if other.casefold() == folded) or tuple(
        get_close_matches(name, known, n=1, cutoff=0.6)
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """The near miss as a clause ready to append, or an empty string."""
    return meaning(near_misses(name, known))


def meaning(names: Sequence[str]) -> str:
    """Names that may have been meant, as a clause ready to append; an empty string for none."""
    return f"; did you mean {' or '.join(map(visible, names))}?" if names else ""


class Search:
    """Finds near misses among many names for many slips, until that takes too long."""

    def __init__(self, names: int = 200_000) -> None:
        self._left = names
        self._found: dict[tuple[str, str], tuple[str, ...]] = {}

    def near_misses(self, kind: str, name: str, known: Sequence[str]) -> tuple[str, ...]:
        """What a name of some kind may be a slip for; nothing once `names` names have been looked at in all."""
        key = (kind, name)
        if key not in self._found:
            self._left -= len(known)
            self._found[key] = near_misses(name, known) if self._left >= 0 else ()
        return self._found[key]


def listing(names: Sequence[str], limit: int = 8, separator: str = ", ") -> str:
    """Names for a message, the tail of a long list counted instead of printed."""
    if not names:
        return "none"
    shown = separator.join(map(visible, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def counted(number: int, noun: str) -> str:
    """1 task, 1,200 tasks."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def unwritable(path: object, error: Exception) -> str:
    """The message for a file that cannot be written, with the system's reason where there is one."""
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    return f"cannot write {visible(str(path), 1000)}: {reason}"


def in_file_order(issues: Iterable[Issue]) -> list[Issue]:
    """Issues sorted by file, in the order of the files' first issues, then by place.

    What stands at several paths by way of an alias is one mistake, and comes once.
    """
    first: dict[object, Issue] = {}
    files: dict[str | None, int] = {}
    for issue in issues:
        place = issue.path if issue.line is None else (issue.line, issue.column)
        first.setdefault((issue.file, place, issue.message), issue)
        files.setdefault(issue.file, len(files))
    return sorted(first.values(), key=lambda issue: (files[issue.file], issue.line or 0, issue.column or 0))
