"""Read measurements of operators and of transfers from CSV files; all issues are reported at once."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.bridges.profiling.measurements import Measurements, TransferTimes, fixed
from placeopt.errors import DocumentError, Issue, listing, suggestion, visible
from placeopt.io.document import reading
from placeopt.io.files import StrPath, read_file, text_of
from placeopt.model.arrays import Float

LARGEST_BATCH = 2**30


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a file: the expected content of its cells, and how to parse them.

    `read` returns the value of a cell, or None if it is not valid. Exactly one column of each non-empty `choice` is
    required; a column without a choice is required unless it is `optional`.
    """

    expected: str
    read: Callable[[str], Any]
    choice: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class _Table:
    """The requested columns of a CSV file by name, in row order."""

    columns: Mapping[str, list[Any]]
    ignored: tuple[str, ...]
    """Names of the other columns."""


def _name(text: str) -> str | None:
    """Parse a name."""
    return text or None


def _whole(text: str) -> int | None:
    """Parse a whole number of at least 1."""
    found = _amount(text)
    return int(found) if found is not None and found >= 1 and found == int(found) <= LARGEST_BATCH else None


def _amount(text: str) -> float | None:
    """Parse a number: zero, or from 1e-30 to 2^60, the largest amount in a spec."""
    try:
        found = float(text)
    except ValueError:
        return None
    # float() also accepts 1_000 and digits of other scripts.
    plain = text.isascii() and "_" not in text
    return found if plain and (found == 0 or 1e-30 <= found <= 2**60) else None


_NAME = _Column("a name", _name)
_BYTES = _Column("a number of bytes, such as 3145728", _amount)
_TIMES = {
    unit: (per_second, _Column(f"a number of {unit}, such as {example}", _amount, choice="time"))
    for unit, per_second, example in (
        ("seconds", 1, "0.0125"), ("milliseconds", 10**3, "12.5"), ("microseconds", 10**6, "134"),
        ("nanoseconds", 10**9, "5200"),
    )
}  # fmt: skip
_TIME_COLUMNS = {unit: column for unit, (_, column) in _TIMES.items()}
_OPERATOR_COLUMNS = {
    "operator": _NAME,
    "device": _Column("a device's name or type", _name, optional=True),
    "batch": _Column("a batch size: a whole number of at least 1", _whole),
    **_TIME_COLUMNS,
    "bytes": _BYTES,
    "output_bytes": _Column(_BYTES.expected, _amount, optional=True),
}
_TRANSFER_COLUMNS = {"bytes": _BYTES, **_TIME_COLUMNS}


def table_of(content: bytes, file: str) -> Measurements:
    """Read the measurements of operators in the content of a CSV file.

    Columns: `operator`, `batch`, a time (`milliseconds`, `seconds`, `microseconds` or `nanoseconds`) and `bytes`;
    optionally `device` and `output_bytes`.

    Raises a DocumentError if the content is not valid; it lists every issue with its line and column.
    """
    table = _read_table(content, file, _OPERATOR_COLUMNS)
    columns = table.columns
    operators: list[str] = columns["operator"]
    devices = columns.get("device", [None] * len(operators))
    return Measurements.of(
        list(zip(operators, devices, strict=True)),
        columns["batch"],
        _seconds(table),
        columns["bytes"],
        columns.get("output_bytes"),
        file=file,
        ignored=table.ignored,
    )


def read_transfers(path: StrPath) -> TransferTimes:
    """Read the transfers in a CSV file with the columns `bytes` and a time, named as in `table_of`.

    Raises
    ------
    DocumentError
        If the file cannot be read or is wrong; lists every issue with its line and column.
    """
    with reading(path):
        table = _read_table(read_file(path), str(path), _TRANSFER_COLUMNS)
    if "operator" in table.ignored:
        message = "column operator: this looks like a file of measurements, expected transfers, which have no operator"
        raise DocumentError([Issue(message, (), str(path), 1)])
    return TransferTimes(
        fixed(np.array(table.columns["bytes"], dtype=np.float64)), _seconds(table), str(path), table.ignored
    )


def _seconds(table: _Table) -> Float:
    unit = next(unit for unit in _TIMES if unit in table.columns)
    # Division by a whole number rounds once: 12.5 ms become the double nearest to 0.0125 s.
    return fixed(np.array(table.columns[unit], dtype=np.float64) / _TIMES[unit][0])


def _read_table(content: bytes, file: str, known: Mapping[str, _Column]) -> _Table:
    """Read the known columns of a CSV file: comma-separated, UTF-8, names in the first line, in any order.

    Spaces around cells and empty lines are ignored.
    """
    with reading(file):
        text = text_of(content).removeprefix("\ufeff")  # the byte order mark of spreadsheets
    rows = _rows(csv.reader(io.StringIO(text, newline=""), strict=True), file)  # newline as the csv module requires
    if not rows:
        names = ", ".join(name for name, column in known.items() if not column.optional)
        raise DocumentError([Issue(f"is empty; expected a line with the names of columns: {names}", (), file)])
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
    return _Table(columns, tuple(name for name in header if name not in known))


def _rows(reader: Any, file: str) -> list[tuple[int, list[str]]]:
    """Return the rows that are not empty, each with its first line."""
    rows, line = [], 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DocumentError([Issue(f"is not valid CSV: {error}", (), file, line)]) from None
    return rows


def _places(header: Sequence[str], known: Mapping[str, _Column], file: str, line: int) -> dict[str, int]:
    """Return the index of each known column."""
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
