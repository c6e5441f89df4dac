"""The page docs/reproduction.md, made from the kept reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import get_args

from claims import MEANING, Verdict
from reports import RECORDS, Block, Paper, Record, load_records

PAGE = Path(__file__).parents[2] / "docs" / "reproduction.md"

VERDICTS: tuple[str, ...] = get_args(Verdict)

INTRODUCTION = """\
This page lists the tables and figures of the four papers that placeopt implements, each published cell or claim next to
our result. It is generated: do not edit it.

    python benchmarks/papers                         # the tables and figures, and which of them have a report
    python benchmarks/papers celeritas table-3       # measure one again
    python benchmarks/papers celeritas               # all of a paper; a run that is stopped goes on where it was
    python benchmarks/papers --page                  # write this page from the reports in benchmarks/papers/records

Machines, operator graphs and frameworks differ from those of the papers. Therefore seconds are stated, but ratios
within a table are compared. Each cell has a verdict:
"""


def page(papers: Iterable[Paper], folder: Path = RECORDS) -> str:
    """The page as Markdown."""
    every = [(paper, load_records(paper.name, folder)) for paper in papers]
    lines = ["# The four papers, reproduced", "", INTRODUCTION]
    for verdict, meaning in MEANING.items():
        lines += _wrapped(f"- *{verdict}*: {meaning}.", "  ")
    lines += ["", "## Summary", ""]
    rows = []
    for paper, records in every:
        counts = sum((record.report.verdicts for record in records.values()), Counter[str]())
        name = f"[{paper.title}](#{anchor(paper.title)})"
        rows.append([name, str(counts.total()), *(str(counts[verdict] or "") for verdict in VERDICTS)])
    lines += table(["paper", "cells and claims", *VERDICTS], rows)
    for paper, records in every:
        lines += ["", f"## {paper.title}", "", *_wrapped(paper.citation), "", *_wrapped(paper.conditions)]
        for item in paper.items:
            lines += ["", f"### {paper.name}, {item.name}: {item.title}", ""]
            if item.name in records:
                lines += _item(records[item.name])
            else:
                lines += _wrapped(f"*Not measured*: {item.why or 'no report yet'}.")
    return "\n".join(lines) + "\n"


def _item(record: Record) -> list[str]:
    lines = [f"    {record.command}", ""]
    if record.report.verdicts.total() > 1:
        lines += [f"{record.report.counted}.", ""]
    for block in record.report:
        lines += [*_block(block), ""]
    return lines[:-1]


def _block(block: Block) -> list[str]:
    if block.kind == "text":
        return _wrapped(block.title)
    if block.kind == "picture":
        return [f"![{block.title}](images/{block.file})"]
    if block.kind == "claims":
        headers = [block.title or "claim", "paper", "here", "verdict"]
        return table(headers, [[each.text, each.paper, each.ours, each.judged] for each in block.claims])
    title = [f"*{block.title}*", ""] if block.title else []
    return title + table(block.headers, block.rows)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [_row(headers), "|" + "---|" * len(headers), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def anchor(heading: str) -> str:
    """The anchor of a heading."""
    return "-".join("".join(c for c in heading.lower() if c.isalnum() or c in "-_ ").split())
