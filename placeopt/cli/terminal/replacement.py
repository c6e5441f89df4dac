"""A re-placement in a terminal: what changed, what moves, what that costs and saves."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.errors import counted, listing, visible
from placeopt.model.units import size_text, time_text
from placeopt.studies.replacement import Replacement

_WHY = {
    "new": "has been on no device",
    "gone": "its device is gone",
    "barred": "may not run there any more",
    "chosen": "",
}


def print_network(console: Console, found: Replacement) -> None:
    """Which devices went, which came."""
    for what, names in (("gone", found.gone), ("new", found.new)):
        if names:
            console.print(Text(f"{what}: {listing([visible(name) for name in names], 20)}"), soft_wrap=True)


def print_moves(console: Console, found: Replacement) -> None:
    """What moves, what that takes, and what it is worth."""
    resolution = found.problem.resolution
    if found.result.schedule is None:
        return
    if not found.moves:
        console.print("no task moves")
    else:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        for header in ("task", "from", "to"):
            table.add_column(header, no_wrap=True)
        for header in ("data", "takes"):
            table.add_column(header, justify="right", no_wrap=True)
        table.add_column("")
        for move in found.moves:
            table.add_row(
                Text(visible(move.task, 40)), Text("-" if move.source is None else visible(move.source, 40)),
                Text(visible(move.target, 40)), size_text(move.bytes), time_text(move.ticks, resolution),
                _WHY[move.why],
            )  # fmt: skip
        console.print(table)
    console.print(Text("\n".join(_worth(found))), soft_wrap=True)


def _worth(found: Replacement) -> list[str]:
    resolution, runs = found.problem.resolution, found.problem.runs_before_next_change
    relocation = found.relocation or 0
    lines = []
    if found.moves:
        whole = time_text(relocation, resolution)
        each = time_text(float(relocation / runs), resolution)
        share = "" if runs == 1 else f", {each} for each of {float(runs):,.10g} runs"
        lines.append(f"{counted(len(found.moves), 'task')} to move: {whole} of relocation{share}")
    stay, makespan = found.stay, found.result.makespan
    forced = counted(len(stay.forced), "task")
    what = f"moving only the {forced} that cannot stay" if stay.forced else "leaving every task where it is"
    if stay.makespan is None:
        lines.append(f"{what} is not known to be feasible: {stay.reason}")
    elif makespan is not None:
        ours, theirs = time_text(makespan, resolution), time_text(stay.makespan, resolution)
        lines.append(f"a run takes {ours}; {what}, {theirs}")
        if found.saved:
            part = float(found.saved / stay.values[0]) if stay.values and stay.values[0] else 0.0
            lines.append(f"saved: {part:.2%} of the objective" + _after(found))
    return lines


def _after(found: Replacement) -> str:
    after = found.pays_after
    return "" if not after else f"; the moves pay for themselves after {counted(after, 'run')}"
