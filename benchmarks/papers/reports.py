"""What a reproduction consists of: papers, their items, and reports that are kept as JSON and shown as Markdown."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from claims import MEANING, Claim, claims_table
from measurements import Measurements
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from shown import Claims, Shown, console, shown

FOLDERS = (Path(__file__).parent / "records", Path(__file__).parent / "kept")
"""A folder for each paper with a JSON file for each item: items that repeat exactly in minutes, and all others."""


@dataclass(slots=True)
class Block:
    """A part of a report.

    Attributes
    ----------
    kind
        claims: `rows` are claims; table; text: `title` alone; picture: `title` is its description, `file` its name.
    """

    kind: str
    title: str
    headers: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    file: str = ""

    @property
    def claims(self) -> list[Claim]:
        """The claims of the block."""
        return [Claim(*row) for row in self.rows] if self.kind == "claims" else []


class Report(list[Block]):
    """What an item reports, in order."""

    def claims(self, title: str, claims: Iterable[Claim]) -> None:
        """Add claims of the paper."""
        self.append(Block("claims", title, rows=[list(claim) for claim in claims]))

    def table(self, title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add a table."""
        self.append(Block("table", title, list(headers), [[str(cell) for cell in row] for row in rows]))

    def rich_table(self, table: Table) -> None:
        """Add a table that is printed as well."""
        headers = [str(column.header) for column in table.columns]
        cells = zip(*(column.cells for column in table.columns), strict=True)
        self.table(str(table.title or ""), headers, cells)

    def add(self, shown: Shown) -> None:
        """Add what a benchmark shows."""
        if isinstance(shown, Claims):
            self.claims(*shown)
        elif isinstance(shown, str):
            self.text(shown)
        else:
            self.rich_table(shown)

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self.append(Block("text", text))

    def picture(self, file: str, description: str) -> None:
        """Add a picture of docs/images/."""
        self.append(Block("picture", description, file=file))

    @property
    def verdicts(self) -> Counter[str]:
        """How many claims have each verdict."""
        return Counter(claim.verdict for block in self for claim in block.claims)

    @property
    def counted(self) -> str:
        """The same as text."""
        counts = self.verdicts
        return ", ".join(f"{counts[verdict]} {verdict}" for verdict in MEANING if counts[verdict])


def collected(run: Callable[[], object]) -> Report:
    """The report of all that a function shows; it prints nothing, because the report is printed."""
    shown.clear()
    console.quiet = True
    try:
        run()
    finally:
        console.quiet = False
    report = Report()
    for each in shown:
        report.add(each)
    return report


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where an item keeps measurements and pictures, and how much it computes."""

    measurements: Measurements
    images: Path
    seeds: int
    cases: int
    console: Console


@dataclass(frozen=True, slots=True)
class Item:
    """A figure, a table or a section of a paper.

    Attributes
    ----------
    name
        Its name on the command line, such as table-3.
    title
        What it shows.
    run
        Measures it; None if `why` states why that is not possible, or that there is nothing to measure.
    duration
        About how long it takes on two cores.
    kept
        Why another run does not give the same report in at most five minutes: it takes hours, or it measures seconds.
    """

    name: str
    title: str
    run: Callable[[Workplace], Report] | None
    duration: str = ""
    why: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and its items; `settings` are those of the command that change its items."""

    name: str
    title: str
    citation: str
    conditions: str
    items: tuple[Item, ...]
    settings: tuple[str, ...] = ()


@dataclass(slots=True)
class Record:
    """A kept report.

    Attributes
    ----------
    command
        The command that made it, with its settings.
    code
        The versions of the code that its values were measured with, that of the report last (`measurements.versions`).
    date
        The day of the report, if it does not repeat exactly.
    """

    command: str
    code: list[str]
    report: Report
    date: str = ""


class ChangedRecordError(Exception):
    """A record that no command wrote."""


def load_records(paper: Paper, folders: Sequence[Path] = FOLDERS) -> dict[str, Record]:
    """The kept reports of a paper by item, in the order of the paper.

    Raises
    ------
    ChangedRecordError
        If a record was changed after it had been written.
    """
    found = {}
    for item in paper.items:
        path = record_path(paper, item, folders)
        if path.exists():
            document = json.loads(path.read_text(encoding="utf-8"))
            if document.pop("digest", None) != _digest(document):
                raise ChangedRecordError(f"{path} was changed by hand; write it again by its command")
            report = Report(Block(**block) for block in document.pop("report"))
            found[item.name] = Record(report=report, **document)
    return found


def save_record(paper: Paper, item: Item, record: Record, folders: Sequence[Path] = FOLDERS) -> None:
    """Keep a report."""
    document: dict[str, Any] = {"command": record.command, "date": record.date, "code": record.code}
    document["report"] = [_without_defaults(block) for block in record.report]
    path = record_path(paper, item, folders)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document | {"digest": _digest(document)}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def record_path(paper: Paper, item: Item, folders: Sequence[Path] = FOLDERS) -> Path:
    """The file of an item's report."""
    return folders[bool(item.kept)] / paper.name / f"{item.name}.json"


def _digest(document: dict[str, Any]) -> str:
    """A hash of a record, by which changes by hand are noticed."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def _without_defaults(block: Block) -> dict[str, Any]:
    return {name: value for name, value in asdict(block).items() if value or name == "title"}


def printed(report: Report) -> Iterator[Table | str]:
    """The blocks of a report for the terminal."""
    for block in report:
        if block.kind == "claims":
            yield claims_table(block.title, block.claims)
        elif block.kind == "table":
            table = Table(title=block.title)
            for place, header in enumerate(block.headers):
                table.add_column(header, justify="right" if place else "left", overflow="fold")
            for row in block.rows:
                table.add_row(*map(escape, row))
            yield table
        elif block.kind == "picture":
            yield escape(f"docs/images/{block.file}: {block.title}")
        else:
            yield escape(block.title)
