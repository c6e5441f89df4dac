"""Exceptions of placeopt, issues with positions, and wording that messages share.

    PlaceoptError
    ├── DocumentError       a file cannot be read or is not valid (carries located issues)
    │   ├── SpecError       a spec, or what it compiles to, is wrong
    │   └── PlanError       a plan does not fit its problem
    ├── UsageError          an option or argument is wrong
    ├── UnsupportedError    a solver cannot handle this problem; names solvers that can
    ├── ExecutionError      a plan cannot be run to its end
    ├── MissingExtraError   an optional dependency is not installed; names the command that installs it
    └── InternalError       placeopt contradicts itself: a bug; please report it
        └── SolverError     a solver of another package raises an exception or makes a false claim: a bug of its own

Reached limits and infeasibility are results, not exceptions (see `placeopt.orchestration.result`).
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import takewhile
from operator import eq
from typing import Any

_PLAIN_NAME = re.compile(r"[^\s.\[\]\":]+")

SYNONYMS = {"latency": "makespan", "throughput": "period"}
"""Usual names of objectives, and the metrics that they mean."""

SHOWN = 50
"""Issues in the text of an error."""

_LONGEST_NAME, _COMPARED, _NEAREST = 100, 1000, 10
"""Near misses have at most this many characters. If a name and the number of known names have a larger product, only
the known names that share most characters with it at both ends are compared."""


class PlaceoptError(Exception):
    """Base class of all exceptions of placeopt."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One error in a document, with its position.

    `line` and `column` count from 1. Both are None for documents made in code; `column` is None for CSV files.
    `file` is None for documents made in code, and for texts.
    `path` names the place in the document: ("tasks", "conv2", "memory").
    """

    message: str
    path: tuple[str | int, ...] = ()
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = self.file or ""
        if self.file is None and self.line is not None:
            place = f"line {self.line}" + (f", column {self.column}" if self.column is not None else "")
        elif self.line is not None:
            place += f":{self.line}" if self.column is None else f":{self.line}:{self.column}"
        parts = [part for part in (place, path_text(self.path), self.message) if part]
        return ": ".join(parts)


class DocumentError(PlaceoptError):
    """A document is wrong; `issues` lists all errors in file order, the text the first 50."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        self.issues = tuple(issues)
        more = [f"and {len(self.issues) - SHOWN:,} more"] if len(self.issues) > SHOWN else []
        super().__init__("\n".join([*map(str, self.issues[:SHOWN]), *more]))

    def __reduce__(self) -> tuple[type[DocumentError], tuple[tuple[Issue, ...]]]:
        return type(self), (self.issues,)  # not the text, which is the argument of the base class


class SpecError(DocumentError):
    """A spec, or what it compiles to, is wrong."""


class PlanError(DocumentError):
    """A plan file cannot be read as a schedule of its problem."""


class UsageError(PlaceoptError):
    """An option or argument is wrong."""


class UnsupportedError(PlaceoptError):
    """The solver cannot handle a property of this problem."""


class CertificateError(PlaceoptError):
    """A certificate does not prove what it states; the message names the claim."""


class ExecutionError(PlaceoptError):
    """A plan or a job cannot be run to its end: a task, a process of the runtime or that of a job fails or ends.

    The exception of a task is its cause.
    """


class MissingExtraError(PlaceoptError):
    """An optional dependency is needed and not installed."""


class InternalError(PlaceoptError):
    """Two parts of placeopt contradict each other: a bug; please report it.

    `dump` is a problem document that reproduces the error, or None. Its key `x-disagreement` describes the run.
    """

    def __init__(self, message: str, dump: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.dump = dump


class SolverError(InternalError):
    """A solver of another package raises an exception, which is the cause of this one, or makes a false claim.

    `origin` names the package, or the class of a solver that has none. `dump` is None after an exception.
    """

    def __init__(self, message: str, dump: Mapping[str, Any] | None = None, origin: str = "") -> None:
        super().__init__(message, dump)
        self.origin = origin


def path_text(path: Iterable[str | int]) -> str:
    """A path for a message: tasks.conv2.after[0]; names with special characters are quoted."""
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
    """A text shortened and put on one line, for a message."""
    if len(text) > limit:
        text = f"{text[: limit - 20]}...{text[-10:]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def near_misses(name: object, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that the caller may have meant: a synonym, those that differ in case only, or the closest one.

    None of them for what is not text.
    """
    return _remembered(name, tuple(known)) if isinstance(name, str) else ()


def _near_misses(name: str, known: Sequence[str]) -> tuple[str, ...]:
    if len(name) > _LONGEST_NAME:
        return ()
    folded = name.casefold()
    if SYNONYMS.get(folded) in known:
        return (SYNONYMS[folded],)
    if same := tuple(other for other in known if other.casefold() == folded):
        return same
    if len(name) * len(known) > _COMPARED:
        known = heapq.nlargest(_NEAREST, known, key=lambda other: _shared_ends(name, other))
    return tuple(get_close_matches(name, known, n=1, cutoff=0.6))


_remembered = lru_cache(maxsize=1024)(_near_misses)


def _shared_ends(name: str, other: str) -> int:
    """The number of characters at the beginning and at the end that two names share."""
    backwards = map(eq, reversed(name), reversed(other))
    return sum(len(list(takewhile(bool, equal))) for equal in (map(eq, name, other), backwards))


def suggestion(name: object, known: Iterable[str]) -> str:
    """A clause with the near misses, to append to a message; empty without one."""
    return meaning(near_misses(name, known))


def alternatives(name: object, known: Iterable[str], limit: int = 8) -> str:
    """A clause with the near misses of an unknown name, or else the known names, to append to a message."""
    known = list(known)
    return suggestion(name, known) or f"; known are {listing(known, limit)}"


def meaning(names: Sequence[str]) -> str:
    """A clause that suggests names, to append to a message; empty without names."""
    return f"; did you mean {' or '.join(map(visible, names))}?" if names else ""


class Search:
    """Finds near misses of misspelt names in a document, which may have many: only of the first ones."""

    def __init__(self, searches: int = 100, names: int = 100_000) -> None:
        self._searches, self._names = searches, names
        self._found: dict[tuple[str, str, int], tuple[str, ...]] = {}

    def near_misses(self, kind: str, name: str, known: Sequence[str]) -> tuple[str, ...]:
        """The near misses of a name of some kind; none after `searches` names, or `names` known ones in all."""
        key = (kind, name, len(known))  # the known names of a kind may be fewer in some places
        if key not in self._found:
            self._searches -= 1
            self._names -= len(known)
            self._found[key] = _near_misses(name, known) if min(self._searches, self._names) >= 0 else ()
        return self._found[key]


def listing(names: Sequence[str], limit: int = 8, separator: str = ", ") -> str:
    """Names for a message; the tail of a long list is counted instead of printed."""
    if not names:
        return "none"
    shown = separator.join(map(visible, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def counted(number: int, noun: str) -> str:
    """1 task, 1,200 tasks."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def error_text(error: BaseException) -> str:
    """An exception of another package, and its place in the code: ValueError: boom (solver.py:8)."""
    import traceback

    if isinstance(error, MemoryError):
        return "out of memory"
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001  the class belongs to a third party
        text = ""
    name = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{name}: {text}{place}" if text else f"{name}{place}"


def addressed(origin: str | None) -> str:
    """A clause for "please report this": the authors of a solver that does not come with placeopt."""
    return f" to the authors of {origin}" if origin else ""


def unwritable(path: object, error: Exception) -> str:
    """The message for a file that cannot be written, with the system's reason where there is one."""
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    return f"cannot write {visible(str(path), 1000)}: {reason}"


def in_file_order(issues: Iterable[Issue]) -> list[Issue]:
    """Issues sorted by file, in the order of the files' first issues, then by position.

    An error that an alias repeats at several paths is listed once.
    """
    first: dict[object, Issue] = {}
    files: dict[str | None, int] = {}
    for issue in issues:
        place = issue.path if issue.line is None else (issue.line, issue.column)
        first.setdefault((issue.file, place, issue.message), issue)
        files.setdefault(issue.file, len(files))
    return sorted(first.values(), key=lambda issue: (files[issue.file], issue.line or 0, issue.column or 0))
