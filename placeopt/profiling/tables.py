"""Read CSV files as validated columns; all issues are reported at once with line and column name."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeopt.errors import DocumentError, Issue, listing, suggestion, visible
from placeopt.io.files import UnreadableError, read_text


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file: what its cells must be, and how to parse them.

    `read` returns the value of a cell, or None if it is not valid. Exactly one column of each non-empty `choice` is
    required; a column without a choice is required unless it is `optional`.
    """

    expected: str
    read: Callable[[str], Any]
    choice: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """The requested columns of a CSV file by name, in row order."""

    columns: Mapping[str, list[Any]]
    ignored: tuple[str, ...]
    """Names of the other columns."""


def read_table(path: str | Path, known: Mapping[str, Column]) -> Table:
    """Read the known columns of a CSV file: comma-separated, UTF-8, names in the first line, in any order.

    Spaces around cells and empty lines are ignored.

    Raises
    ------
    DocumentError
        If the file cannot be read, or a column or cell is not valid; lists every issue.
    """
    file = str(path)
    try:
        text = read_text(path).removeprefix("\ufeff")  # the byte order mark of spreadsheets
    except UnreadableError as error:
        raise DocumentError([Issue(str(error), (), file)]) from None
    rows = _rows(csv.reader(io.StringIO(text, newline=""), strict=True), file)  # newline as the csv module requires
    if not rows:
        expected = f"expected a line with the names of columns: {_asked(known)}"
        raise DocumentError([Issue(f"is empty; {expected}", (), file)])
    header = [name.strip() for name in rows[0][1]]
    places = _places(header, known, file, rows[0][0])
    columns: dict[str, list[Any]] = {name: [] for name in places}
    issues: list[Issue] = []
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            issues.append(Issue(f"has {len(cells)} cells; expected {len(header)}, as the first line", (), file, line))
            continue
        for name, place in places.items():
            text = cells[place].strip()
            value = known[name].read(text)
            if value is None:
                message = f'column {name}: "{visible(text)}"; expected {known[name].expected}'
                issues.append(Issue(message, (), file, line))
            columns[name].append(value)
    if len(rows) == 1:
        issues.append(Issue("has no measurements; expected lines below the names of the columns", (), file))
    if issues:
        raise DocumentError(issues)
    return Table(columns, tuple(name for name in header if name not in known))


def _rows(reader: Any, file: str) -> list[tuple[int, list[str]]]:
    """The rows that are not empty, each with its first line."""
    rows, line = [], 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DocumentError([Issue(f"is not valid CSV: {error}", (), file, line)]) from None
    return rows


def _places(header: Sequence[str], known: Mapping[str, Column], file: str, line: int) -> dict[str, int]:
    """The index of each known column."""
    issues = [
        Issue(f"column {name}: comes {header.count(name)} times; expected once", (), file, line)
        for name in dict.fromkeys(header)
        if name in known and header.count(name) > 1
    ]
    unknown = [name for name in header if name not in known]
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        separator = "semicolons" if ";" in header[0] else "tabs"
        raise DocumentError([Issue(f"cells are separated by {separator}; expected commas", (), file, line)])
    for name, column in known.items():
        if not column.choice and not column.optional and name not in header:
            hint = suggestion(name, unknown) or f"; the file has {listing([visible(each, 30) for each in header])}"
            issues.append(Issue(f"column {name}: is missing{hint}", (), file, line))
    for choice in dict.fromkeys(column.choice for column in known.values() if column.choice):
        names = [name for name, column in known.items() if column.choice == choice]
        found = [name for name in names if name in header]
        if len(found) != 1:
            what = f"{' and '.join(found)} are both there" if found else "is missing"
            where = f"column of {choice}: " if not found else f"columns of {choice}: "
            issues.append(Issue(f"{where}{what}; expected one of {listing(names)}", (), file, line))
    if issues:
        raise DocumentError(issues)
    return {name: header.index(name) for name in known if name in header}


def _asked(known: Mapping[str, Column]) -> str:
    return ", ".join(name for name, column in known.items() if not column.optional)


def name(text: str) -> str | None:
    """Parse a name."""
    return text or None


def whole(text: str) -> int | None:
    """Parse a whole number of at least 1."""
    found = amount(text)
    return int(found) if found is not None and found >= 1 and found == int(found) <= 2**30 else None


def amount(text: str) -> float | None:
    """Parse a number: zero, or from 1e-30 to 2^60, the largest amount in a spec."""
    try:
        found = float(text)
    except ValueError:
        return None
    # float() also accepts 1_000 and digits of other scripts.
    plain = text.isascii() and "_" not in text
    return found if plain and (found == 0 or 1e-30 <= found <= 2**60) else None
