"""Reproduce tables and figures of the four papers that placeopt implements.

    python -m benchmarks.papers                          # list them, with the verdicts of the kept reports
    python -m benchmarks.papers PAPER [ITEM ...]         # measure a paper, or some of its items
    python -m benchmarks.papers --short [PAPER]          # measure all items that repeat exactly and take minutes
    python -m benchmarks.papers --page                   # only write the pages from the kept reports

Each published cell or claim is listed next to our result, with a verdict (`claims.py`). Reports are kept in
benchmarks/papers: in records if they repeat exactly and take at most five minutes, else in kept. The pages README.md
and pages/ are made from them. Pictures are in docs/images, and measured values in --folder, so that an interrupted run
goes on where it was. A change of the code makes these values invalid; --reuse accepts them. GiPH's items keep trained
policies in --folder as well and take hours.

Each report states the version of the code. Therefore the command refuses to run with changes that are not committed;
with --draft it runs, and keeps no report.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from difflib import get_close_matches
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

sys.path.insert(1, str(Path(__file__).parents[1]))
sys.path.insert(1, str(Path(__file__).parent))  # `python -m` starts in another folder

from measurements import DRAFT, Measurements, UncommittedError, code_version
from page import pages
from reports import Item, Paper, Record, Workplace, load_records, printed, save_record

from placeopt.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"

EXTRAS = {"matplotlib": "'placeopt[plots]'", "torch": "'placeopt[torch]'", "safetensors": "'placeopt[torch]'"}
"""What installs a module."""


def papers() -> dict[str, Paper]:
    """All papers by name."""
    from baechi import BAECHI
    from carbonari import CARBONARI
    from celeritas import CELERITAS
    from giph import GIPH

    return {paper.name: paper for paper in (BAECHI, CELERITAS, GIPH, CARBONARI)}


def main() -> None:
    """List, measure or write the pages."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", nargs="?", metavar="PAPER", help="baechi, celeritas, giph, carbonari")
    parser.add_argument("items", nargs="*", metavar="ITEM", help="such as table-3; all by default")
    parser.add_argument("--short", action="store_true", help="only items that repeat exactly and take minutes")
    parser.add_argument("--folder", type=Path, default=Path(".reproduction"), help="measured values; %(default)s")
    parser.add_argument("--reuse", action="store_true", help="accept values measured with other versions of the code")
    parser.add_argument("--draft", action="store_true", help="print reports and keep none")
    parser.add_argument("--seeds", type=int, default=3, help="GiPH: trainings of each policy; %(default)s")
    parser.add_argument("--cases", type=int, default=150, help="GiPH: test cases of each set; %(default)s")
    parser.add_argument("--page", action="store_true", help="only write the pages")
    arguments = parser.parse_args()
    console = Console()
    known = papers()
    chosen = chosen_items(parser, arguments, known)
    if chosen:
        try:
            version = DRAFT if arguments.draft else code_version()
        except UncommittedError as error:
            parser.error(f"{error}; commit first, or use --draft, which keeps no report")
        measured = [measure(paper, item, arguments, version, console) for paper, item in chosen]
    if arguments.page or (chosen and not arguments.draft):
        for path, text in pages(known.values()).items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            console.print(f"wrote {path.relative_to(ROOT)}", soft_wrap=True)
    elif not chosen:
        for paper in known.values():
            console.print(listing(paper))
    if chosen and not all(measured):
        sys.exit(1)


def chosen_items(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, known: dict[str, Paper]
) -> Sequence[tuple[Paper, Item]]:
    """The items to measure: those that are named, else all of the paper; with --short, all short ones of all papers."""
    if arguments.paper is None and not arguments.short:
        return []
    if arguments.paper is None:
        chosen = list(known.values())
    else:
        chosen = [known[one_of(parser, "paper", arguments.paper, list(known))]]
    items = {item.name: (paper, item) for paper in chosen for item in paper.items}
    if arguments.items:
        return [items[one_of(parser, "item", name, list(items))] for name in arguments.items]
    every = [(paper, item) for paper in chosen for item in paper.items if item.run is not None]
    return [(paper, item) for paper, item in every if not (arguments.short and item.kept)]


def one_of(parser: argparse.ArgumentParser, what: str, name: str, known: list[str]) -> str:
    """The name, if it is known."""
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f'did you mean "{near[0]}"?' if near else f"expected one of {', '.join(known)}"
        parser.error(f'unknown {what} "{name}"; {hint}')
    return name


def measure(paper: Paper, item: Item, arguments: argparse.Namespace, version: str, console: Console) -> bool:
    """Measure an item, print and keep its report; False if that needs a package that is not installed."""
    console.rule(f"{paper.name}, {item.name}: {item.title}")
    if item.run is None:
        console.print(f"not measured: {item.why}")
        return True
    values = Measurements(arguments.folder / paper.name, version=version, reuse=arguments.reuse)
    images = arguments.folder if arguments.draft else IMAGES
    try:
        report = item.run(Workplace(values, images, arguments.seeds, arguments.cases, console))
    except (MissingExtraError, ModuleNotFoundError) as missing:
        text = str(missing)
        if isinstance(missing, ModuleNotFoundError):
            text = f"{missing.name} is not installed: pip install {EXTRAS.get(missing.name or '', missing.name)}"
        console.print(f"[red]not measured: {escape(text)}[/]")
        return False
    for block in printed(report):
        console.print(block)
    if not arguments.draft:
        settings = "".join(f" --{name} {getattr(arguments, name)}" for name in paper.settings)
        command = f"python -m benchmarks.papers {paper.name} {item.name}{settings}"
        day = date.today().isoformat() if item.kept else ""
        code = [*sorted(values.used - {version}), version]
        save_record(paper, item, Record(command, code, report, day))
    return True


def listing(paper: Paper) -> Table:
    """The items of a paper and the verdicts of their reports."""
    table = Table(title=f"{paper.title}: python -m benchmarks.papers {paper.name} ITEM")
    table.add_column("item", no_wrap=True)
    for header in ("what", "takes", "verdicts"):
        table.add_column(header)
    records = load_records(paper)
    for item in paper.items:
        if item.name in records:
            verdicts = records[item.name].report.counted or "a report"
        else:
            verdicts = f"[dim]{'no report' if item.run is not None else item.why}[/]"
        table.add_row(item.name, item.title, item.duration, verdicts)
    return table


if __name__ == "__main__":
    main()
