"""Reproduce tables and figures of the four papers that placeopt implements.

    python benchmarks/papers                             # list them, with the verdicts of the kept reports
    python benchmarks/papers PAPER [ITEM ...]            # measure a paper, or some of its items
    python benchmarks/papers --page                      # write docs/reproduction.md from the kept reports

Each published cell or claim is listed next to our result, with a verdict (`claims.py`). Reports are kept in
benchmarks/papers/records, pictures in docs/images, and measured values in --folder, so that an interrupted run goes on
where it was. A change of the code makes these values invalid; --reuse accepts them. GiPH's items keep trained policies
in --folder as well and take hours.
"""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

sys.path.insert(1, str(Path(__file__).parents[1]))

from measurements import Measurements, code_version
from page import PAGE, page
from reports import Item, Paper, Record, Workplace, load_records, printed, save_record

from placeopt.errors import MissingExtraError

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
    """List, measure or write the page."""
    parser = argparse.ArgumentParser(
        prog="python benchmarks/papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", nargs="?", metavar="PAPER", help="baechi, celeritas, giph, carbonari")
    parser.add_argument("items", nargs="*", metavar="ITEM", help="such as table-3; all by default")
    parser.add_argument("--folder", type=Path, default=Path(".reproduction"), help="measured values; %(default)s")
    parser.add_argument("--reuse", action="store_true", help="accept values measured with other versions of the code")
    parser.add_argument("--seeds", type=int, default=3, help="GiPH: trainings of each policy")
    parser.add_argument("--cases", type=int, default=150, help="GiPH: test cases of each set")
    parser.add_argument("--page", action="store_true", help="write docs/reproduction.md")
    arguments = parser.parse_args()
    console = Console()
    known = papers()
    if arguments.paper is not None:
        paper = known[one_of(parser, "paper", arguments.paper, list(known))]
        names = {item.name: item for item in paper.items}
        chosen = [names[one_of(parser, "item", name, list(names))] for name in arguments.items]
        workplace = Workplace(
            Measurements(arguments.folder / paper.name, reuse=arguments.reuse), PAGE.parent / "images",
            arguments.seeds, arguments.cases, console,
        )  # fmt: skip
        measured = [measure(paper, item, workplace) for item in chosen or paper.items if chosen or item.run is not None]
        if not all(measured):
            sys.exit(1)
    elif not arguments.page:
        for paper in known.values():
            console.print(listing(paper))
    if arguments.page:
        PAGE.write_text(page(known.values()), encoding="utf-8")
        console.print(f"wrote {PAGE}", soft_wrap=True)


def one_of(parser: argparse.ArgumentParser, what: str, name: str, known: list[str]) -> str:
    """The name, if it is known."""
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f'did you mean "{near[0]}"?' if near else f"expected one of {', '.join(known)}"
        parser.error(f'unknown {what} "{name}"; {hint}')
    return name


def measure(paper: Paper, item: Item, workplace: Workplace) -> bool:
    """Measure an item, print and keep its report; False if that needs a package that is not installed."""
    console = workplace.console
    console.rule(f"{paper.name}, {item.name}: {item.title}")
    if item.run is None:
        console.print(f"not measured: {item.why}")
        return True
    try:
        report = item.run(workplace)
    except (MissingExtraError, ModuleNotFoundError) as missing:
        text = str(missing)
        if isinstance(missing, ModuleNotFoundError):
            text = f"{missing.name} is not installed: pip install {EXTRAS.get(missing.name or '', missing.name)}"
        console.print(f"[red]not measured: {escape(text)}[/]")
        return False
    for block in printed(report):
        console.print(block)
    command = f"python benchmarks/papers {paper.name} {item.name}"
    save_record(paper, item.name, Record(code_version(), command, report))
    return True


def listing(paper: Paper) -> Table:
    """The items of a paper and the verdicts of their reports."""
    table = Table(title=f"{paper.title}: python benchmarks/papers {paper.name} ITEM")
    table.add_column("item", no_wrap=True)
    for header in ("what", "takes", "verdicts"):
        table.add_column(header)
    records = load_records(paper.name)
    for item in paper.items:
        if item.name in records:
            verdicts = records[item.name].report.counted or "a report"
        else:
            verdicts = f"[dim]{'no report' if item.run is not None else item.why}[/]"
        table.add_row(item.name, item.title, item.duration, verdicts)
    return table


if __name__ == "__main__":
    main()
