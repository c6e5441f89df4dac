"""Print findings of studies, and re-placements."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from placeopt.cli.terminal.console import new_table, print_problem, print_wrapped, spaced
from placeopt.errors import counted, listing, visible
from placeopt.model.units import size_text, time_text
from placeopt.studies.replacement import Replacement
from placeopt.views.findings import Findings


def print_findings(console: Console, found: Findings) -> None:
    """Print the problem, the tables, remarks, and the conclusion; columns of words wrap."""
    print_problem(console, found.problem)
    for grid in found.grids():
        if grid.title:
            print_wrapped(console, grid.title)
        table = new_table(*grid.headers, left=grid.left, wrap=[grid.headers[column] for column in grid.words])
        for row in grid.rows:
            table.add_row(*map(Text, row))
        console.print(spaced(console, table))
        for text in grid.notes:
            print_wrapped(console, Text(text, style="dim"))
    for text in found.remarks():
        print_wrapped(console, f"note: {text}")
    print_wrapped(console, Text(found.conclusion, style="bold"))


_WHY = {"new": "new task", "gone": "its device is gone", "barred": "may no longer run there", "chosen": ""}


def print_network(console: Console, found: Replacement) -> None:
    """Print removed and new devices."""
    for what, names in (("gone", found.gone), ("new", found.new)):
        if names:
            console.print(Text(f"{what}: {listing(names, 20)}"), soft_wrap=True)


def print_moves(console: Console, found: Replacement) -> None:
    """Print the moves, their cost, and their benefit."""
    resolution = found.problem.resolution
    if found.result.schedule is None:
        return
    if not found.moves:
        console.print("no task moves")
    else:
        table = new_table("task", "from", "to", "data", "takes", "", left=3, wrap=[""])
        for move in found.moves:
            table.add_row(
                Text(visible(move.task, 40)), Text("-" if move.source is None else visible(move.source, 40)),
                Text(visible(move.target, 40)), size_text(move.bytes), time_text(move.ticks, resolution),
                _WHY[move.why],
            )  # fmt: skip
        console.print(table)
    console.print(Text("\n".join(_benefit(found))), soft_wrap=True)


def _benefit(found: Replacement) -> list[str]:
    resolution, runs = found.problem.resolution, found.problem.runs_before_next_change
    relocation = found.relocation or 0
    lines = []
    if found.moves:
        whole = time_text(relocation, resolution)
        each = time_text(float(relocation / runs), resolution)
        share = "" if runs == 1 else f", {each} for each of {float(runs):,.10g} runs"
        lines.append(f"{counted(len(found.moves), 'task')} to move: {whole} of relocation{share}")
    lost = sum(move.why == "gone" for move in found.moves)
    if lost:
        which = f"{counted(lost, 'task')} whose device is gone"
        lines.append(f"loading the data of {which} is not counted; `startup` can state its time")
    stay, (takes, stays) = found.stay, found.run_ticks
    forced = counted(len(stay.forced), "task")
    what = f"moving only the {forced} that cannot stay" if stay.forced else "leaving every task on its device"
    if stays is None:
        lines.append(f"{what} is not known to be feasible: {stay.reason}")
    elif takes is not None:
        ours, theirs = time_text(takes, resolution), time_text(stays, resolution)
        run = "a run takes" if found.problem.pipeline is None else "a period takes"
        lines.append(f"{run} {ours}, compared with {theirs} when {what}")
        if found.saved:
            part = float(found.saved / stay.values[0]) if stay.values and stay.values[0] else 0.0
            after = f"; the moves pay off after {counted(found.pays_after, 'run')}" if found.pays_after else ""
            lines.append(f"saved: {part:.2%} of the objective{after}")
    return lines
