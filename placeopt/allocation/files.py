"""Files of buffers: CSV as MiniMalloc reads and writes it, and JSON.

    id,lower,upper,size,alignment,fixed          {"placeopt_buffers": 1,
    a,0,4,1024,64,                                "buffers": [{"id": "a", "lower": 0, "upper": 4, "size": 1024,
    b,2,9,512,,0                                               "alignment": 64}, ...]}

`alignment` and `fixed`, a given offset, may be absent or empty. Written files also have a column or key `offset`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Annotated, Any

from pydantic import Field

from placeopt.allocation.problem import MOST, Buffers, build_buffers
from placeopt.allocation.solving import Allocation
from placeopt.errors import Issue, SpecError, UsageError, in_file_order, listing, visible
from placeopt.io.document import Document, parse_document, reading
from placeopt.io.files import StrPath, checked_path, read_text, write_whole
from placeopt.io.scalars import Name, Version, Whole
from placeopt.io.spec import Strict
from placeopt.io.validation import valid
from placeopt.model.units import excerpt

Time = Annotated[Whole, Field(ge=-MOST, le=MOST)]
Amount = Annotated[Whole, Field(ge=1, le=MOST)]

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")

REQUIRED = ("lower", "upper", "size")
OPTIONAL = ("id", "alignment", "fixed")
SYNONYMS = {"begin": "lower", "start": "lower", "end": "upper", "buffer": "id", "buffer_id": "id", "name": "id"}
"""Names of columns in other files."""


class BufferSpec(Strict):
    """A buffer."""

    id: Name | None = None
    lower: Time
    upper: Time
    size: Amount
    alignment: Amount = 1
    fixed: Annotated[Whole, Field(ge=0, le=MOST)] | None = None
    offset: Any = None
    """As written; not read."""


class BuffersFile(Strict):
    """Buffers, and the allocation if the file was written with one."""

    placeopt_buffers: Version
    buffers: list[BufferSpec]
    capacity: Any = None
    height: Any = None
    bound: Any = None
    bound_source: Any = None


def load_buffers(path: StrPath) -> Buffers:
    """Load buffers from a CSV file, or from JSON if the file begins like a JSON object or its name ends in .json.

    Raises
    ------
    DocumentError
        If the file cannot be read or is not JSON.
    SpecError
        If it does not state buffers; lists every issue with its line.
    """
    name = checked_path(path)
    with reading(path):
        text = read_text(path).removeprefix("\ufeff")
    if name.endswith(".json") or text.lstrip().startswith("{"):
        return _from_json(parse_document(text, file=name, json_format=True))
    return _from_csv(text, name)


def _from_json(document: Document) -> Buffers:
    rows, issues, seen = [], [], set[str]()
    for k, spec in enumerate(valid(document, BuffersFile).buffers):
        row: dict[str, Any] = {key: getattr(spec, key) for key in (*REQUIRED, *OPTIONAL)}
        row["id"] = str(k) if spec.id is None else spec.id
        rows.append(row)
        issues += [document.issue(message, ("buffers", k, key)) for key, message in _faults(row, seen)]
    if issues:
        raise SpecError(in_file_order(issues))
    return _built(rows, (), document.issue("", ("buffers",)))


def _faults(row: dict[str, Any], seen: set[str]) -> list[tuple[str, str]]:
    """What is wrong with a buffer whose values are in range, with the key."""
    found = []
    if row["upper"] <= row["lower"]:
        found.append(
            ("upper", f"{row['upper']} is not after lower, {row['lower']}; expected a lifetime of 1 or longer")
        )
    if row["fixed"] is not None and row["fixed"] % row["alignment"]:
        found.append(("fixed", f"{row['fixed']} is not a multiple of the alignment {row['alignment']}"))
    if row["id"] in seen:
        found.append(("id", f'a second buffer is called "{visible(row["id"])}"; expected each name once'))
    seen.add(row["id"])
    return found


def _built(rows: list[dict[str, Any]], notes: tuple[str, ...], place: Issue) -> Buffers:
    try:
        return build_buffers(
            **{key: [row[key] for row in rows] for key in (*REQUIRED, "alignment", "fixed")},
            buffer_names=[row["id"] for row in rows], notes=notes,
        )  # fmt: skip
    except UsageError as error:
        raise SpecError([Issue(str(error), place.path, place.file, place.line, place.column)]) from None


def _from_csv(text: str, file: str) -> Buffers:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        rows.extend((reader.line_num, row) for row in reader if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise SpecError([Issue(f"is not CSV: {error}", (), file, reader.line_num)]) from None
    if not rows:
        raise SpecError([Issue("is empty; expected a first line id,lower,upper,size", (), file)])
    line, header = rows[0]
    columns = [SYNONYMS.get(cell.strip().lower(), cell.strip().lower()) for cell in header]
    issues = [Issue(_missing(name, columns), (), file, line) for name in REQUIRED if name not in columns]
    issues += [
        Issue(f'the column "{visible(name)}" occurs twice', (), file, line)
        for k, name in enumerate(columns)
        if name in columns[:k] and name in (*REQUIRED, *OPTIONAL)
    ]
    if issues:
        raise SpecError(issues)
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for line, cells in rows[1:]:
        if len(cells) > len(columns):
            issues.append(Issue(f"{len(cells)} cells; expected {len(columns)}, as in the first line", (), file, line))
            continue
        given = dict(zip(columns, (cell.strip() for cell in cells), strict=False))
        row, wrong = _row(given, len(found))
        issues += [Issue(f"{key}: {message}", (), file, line) for key, message in wrong or _faults(row, seen)]
        found.append(row)
    if issues:
        raise SpecError(issues)
    ignored = [name for name in dict.fromkeys(columns) if name not in (*REQUIRED, *OPTIONAL, "offset")]
    notes = [f"ignored columns: {listing([visible(name) for name in ignored])}"] if ignored else []
    gaps = columns.index("gaps") if "gaps" in columns else len(columns)
    if any(cells[gaps].strip() for _, cells in rows[1:] if gaps < len(cells)):
        notes.append("gaps are not supported: buffers stay allocated in their gaps, and the bound holds for that")
    return _built(found, tuple(notes), Issue("", (), file, rows[0][0]))


def _missing(name: str, columns: list[str]) -> str:
    named = listing([visible(column) for column in columns])
    return f'the column "{name}" is missing; the first line names {named}; expected id, lower, upper, size'


def _row(given: dict[str, str], number: int) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The values of a line of CSV, and what is wrong with them, with the column."""
    row: dict[str, Any] = {"id": given.get("id") or str(number), "alignment": 1, "fixed": None}
    wrong = []
    for key in (*REQUIRED, "alignment", "fixed"):
        cell = given.get(key, "")
        if not cell and key not in REQUIRED:
            continue
        least = -MOST if key in ("lower", "upper") else 0 if key == "fixed" else 1
        value = int(cell) if _WHOLE.fullmatch(cell) else None
        if value is None or not least <= value <= MOST:
            what = cell if value is not None else excerpt(cell) if cell else "is empty"
            wrong.append((key, f"{what}; expected a whole number from {'-2^60' if least < 0 else least} to 2^60"))
        row[key] = value
    return row, wrong


def write_allocation(path: StrPath, found: Allocation) -> None:
    """Write buffers with their offsets: JSON if the name ends in .json, else CSV.

    Raises
    ------
    UsageError
        If there are no offsets.
    """
    write_whole(path, allocation_text(found, json_format=checked_path(path).endswith(".json")))


def allocation_text(found: Allocation, *, json_format: bool) -> str:
    """Return the content of a file with buffers and their offsets."""
    if found.offset is None:
        raise UsageError("there are no offsets to write: none were found within the capacity")
    problem = found.problem
    aligned, given = (problem.alignment > 1).any(), any(offset is not None for offset in problem.fixed)
    table: dict[str, list[Any]] = {
        "id": list(problem.names), "lower": problem.lower.tolist(), "upper": problem.upper.tolist(),
        "size": problem.size.tolist(),
    }  # fmt: skip
    if aligned:
        table["alignment"] = problem.alignment.tolist()
    if given:
        table["fixed"] = ["" if offset is None else offset for offset in problem.fixed]
    table["offset"] = found.offset.tolist()
    rows = list(zip(*table.values(), strict=True))
    if not json_format:
        content = io.StringIO()
        csv.writer(content, lineterminator="\n").writerows([list(table), *rows])
        return content.getvalue()
    buffers = [{key: cell for key, cell in zip(table, row, strict=True) if cell != ""} for row in rows]
    document = {
        "placeopt_buffers": 1, "capacity": found.capacity, "height": found.height, "bound": found.bound,
        "bound_source": found.bound_source,
    }  # fmt: skip
    head = json.dumps(document)[:-1]
    return head + ', "buffers": [\n ' + ",\n ".join(map(json.dumps, buffers)) + "\n]}\n"
