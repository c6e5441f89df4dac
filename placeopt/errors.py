"""The exceptions of placeopt: all mean that the caller has something to mend.

    PlaceoptError
    ├── DocumentError       a file cannot be read or is no YAML or JSON (carries located issues)
    │   ├── SpecError       a spec, or what it compiles to, is wrong
    │   └── PlanError       a plan does not fit its problem
    ├── UsageError          an option or argument is wrong
    ├── UnsupportedError    a solver cannot handle this problem; names solvers that can
    ├── MissingExtraError   an optional dependency is not installed; names the command that installs it
    └── InternalError       placeopt contradicts itself: a bug, never the caller's fault

Limits and infeasibility are no exceptions: they are answers (see `placeopt.result`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches


class PlaceoptError(Exception):
    """Base class of every exception that placeopt raises on purpose."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong with a document, and where.

    `line` and `column` count from 1; they are None for documents made in code.
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
            place += f":{self.line}:{self.column}"
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
    """Two parts of placeopt disagree about the same schedule; please report it."""


def path_text(path: Iterable[str | int]) -> str:
    """A path as people write it: tasks.conv2.after[0]."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def suggestion(name: str, known: Iterable[str]) -> str:
    """The near miss as a clause ready to append, or an empty string."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def listing(names: Sequence[str], limit: int = 8) -> str:
    """Names for a message, the tail of a long list counted instead of printed."""
    if not names:
        return "none"
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
