"""The pages that are made from the kept reports: an index, and a page for each paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import get_args

from claims import MEANING, Verdict
from measurements import FOLDERS as TREES
from reports import FOLDERS, Block, Item, Paper, Record, load_records

HERE = Path(__file__).parent

VERDICTS: tuple[str, ...] = get_args(Verdict)

DOCS = "../../../docs/"
"""The folder of the documentation, from a page of a paper."""

INTRODUCTION = """\
These pages list the tables and figures of the four papers that placeopt implements, each published cell or claim next
to our result. They are generated: do not edit them.

    python -m benchmarks.papers                         # the tables and figures, and which of them have a report
    python -m benchmarks.papers celeritas table-3       # measure one again, and write the pages
    python -m benchmarks.papers celeritas               # all of a paper; a run that is stopped goes on where it was
    python -m benchmarks.papers --short                 # all items that repeat exactly and take minutes
    python -m benchmarks.papers --page                  # write the pages from the kept reports

They overwrite the pages, the reports and their pictures in docs/images of this repository, regardless of the current
folder.

Reports of items that repeat exactly and take at most five minutes are in `records/`: delete the folder, and `--short`
writes the same pages. Other reports are in `kept/`, with their date, and with the code that they were measured with:
the Git trees of its folders, as `git rev-parse COMMIT:placeopt` prints them.

Machines, operator graphs and frameworks differ from those of the papers. Therefore seconds are stated, but ratios
within a table are compared. Each cell has a verdict:
"""


def pages(papers: Iterable[Paper], folders: Sequence[Path] = FOLDERS) -> dict[Path, str]:
    """The text of each page, by its file."""
    every = [(paper, load_records(paper, folders)) for paper in papers]
    found = {HERE / "pages" / f"{paper.name}.md": paper_page(paper, records) for paper, records in every}
    return {HERE / "README.md": index_page(every)} | found


def index_page(every: Iterable[tuple[Paper, dict[str, Record]]]) -> str:
    """The page with the meanings of verdicts and how often each paper has them."""
    lines = ["# The four papers, reproduced", "", INTRODUCTION]
    for verdict, meaning in MEANING.items():
        lines += _wrapped(f"- *{verdict}*: {meaning}.", "  ")
    rows = []
    for paper, records in every:
        counts = sum((record.report.verdicts for record in records.values()), Counter[str]())
        measured = sum(item.run is not None for item in paper.items)
        name = f"[{paper.title}](pages/{paper.name}.md)"
        cells = (str(counts[verdict] or "") for verdict in VERDICTS)
        rows.append([name, f"{len(records)} of {measured}", str(counts.total()), *cells])
    lines += ["", *table(["paper", "items measured", "cells and claims", *VERDICTS], rows)]
    return "\n".join(lines) + "\n"


def paper_page(paper: Paper, records: dict[str, Record]) -> str:
    """The page of a paper."""
    lines = [f"# {paper.title}, reproduced", "", *_wrapped(paper.citation), "", *_wrapped(_linked(paper.conditions))]
    lines += ["", *_wrapped("This page is generated. [The four papers](../README.md) explains verdicts and commands.")]
    for item in paper.items:
        lines += ["", f"## {item.name}: {item.title}", ""]
        if item.name in records:
            lines += _item(item, records[item.name])
        elif item.run is None:
            lines += _wrapped(f"*Not measured*: {item.why}.")
        else:
            lines += _wrapped(f"*Not measured yet*: takes {item.duration}.")
    return "\n".join(lines) + "\n"


def _item(item: Item, record: Record) -> list[str]:
    lines = [f"    {record.command}", ""]
    if item.kept:
        lines += [*_wrapped(f"Kept on {record.date}: {item.kept}. {_code(record.code)}."), ""]
    if record.report.verdicts.total() > 1:
        lines += [f"{record.report.counted}.", ""]
    for block in record.report:
        lines += [*_block(block), ""]
    return lines[:-1]


def _code(versions: Sequence[str]) -> str:
    """The trees of the versions, oldest first."""
    each = [", ".join(f"{folder} {tree}" for folder, tree in zip(TREES, v.split("."), strict=True)) for v in versions]
    return f"Code: {each[0]}" if len(each) == 1 else f"Measured with {'; '.join(each[:-1])}; reported with {each[-1]}"


def _block(block: Block) -> list[str]:
    if block.kind == "text":
        return _wrapped(_linked(block.title))
    if block.kind == "picture":
        return [f"![{block.title}]({DOCS}images/{block.file})"]
    if block.kind == "claims":
        headers = [block.title or "claim", "paper", "here", "verdict"]
        return table(headers, [[each.text, each.paper, each.ours, each.judged] for each in block.claims])
    title = [f"*{block.title}*", ""] if block.title else []
    return title + table(block.headers, block.rows)


def _linked(text: str) -> str:
    """A text whose links are relative to the documentation, for the page of a paper."""
    return re.sub(r"\]\((?!\w+:)", f"]({DOCS}", text)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [_row(headers), "|" + "---|" * len(headers), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def _wrapped(text: str, indent: str = "") -> list[str]:
    whole = re.sub(r"\[[^]]*\]\([^)]*\)", lambda link: link[0].replace(" ", "\0"), text)  # links stay on one line
    lines = wrap(whole, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]
