"""Print what studies found: tables and remarks, re-placements, and the lines that conflict with a fix for each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from placeopt.cli.terminal.console import new_table, print_problem, print_wrapped, spaced
from placeopt.errors import counted, listing, visible
from placeopt.model.period import period
from placeopt.model.schedule import makespan
from placeopt.model.units import size_text, time_text

if TYPE_CHECKING:
    from placeopt.studies.explanation import Explanation, Member
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


_SHOWN = 30
"""Conflicting lines that are printed at most."""


def print_explanation(console: Console, explanation: Explanation) -> None:
    """Print the verdict and, if the problem is infeasible, each conflicting line with its fix."""
    problem = explanation.problem
    if explanation.status == "feasible":
        assert explanation.schedule is not None
        piped = problem.pipeline is not None
        ticks = period(problem, explanation.schedule) if piped else makespan(problem, explanation.schedule)
        what = f"{'with a period of' if piped else 'that ends at'} {time_text(ticks, problem.resolution)}"
        console.print(Text.assemble(("feasible", "green"), f": the verifier accepts a schedule {what}"))
        if explanation.bound is not None:
            least = time_text(int(explanation.bound.value), problem.resolution)
            why = f"{explanation.bound.explanation} ({explanation.bound.name})"
            console.print(Text(f"no period is below {least}: {why}"))
        return
    if explanation.status == "undecided":
        console.print("undecided: neither a schedule nor a proof of infeasibility was found in this time")
        return
    console.print(Text.assemble(("infeasible", "red"), f": {_verdict(explanation)}"))
    for member in explanation.members[:_SHOWN]:
        _print_member(console, member)
    if len(explanation.members) > _SHOWN:
        console.print(f"\n  and {len(explanation.members) - _SHOWN} more; --json lists all of them")
    if explanation.reason:
        console.print()
        console.print(Text(f"why: {explanation.reason}"))
    if explanation.checked is not None:
        console.print(Text(f"proof: {explanation.checked}"))
    fixes = [member.repair.whole for member in explanation.members if member.repair]
    if len(explanation.members) > 1 and fixes:
        stated = "makes the problem feasible" if all(fixes) else "resolves this conflict"
        console.print(f"Each fix alone {stated}; solving confirmed it.")


def _verdict(explanation: Explanation) -> str:
    count = len(explanation.members)
    if count == 1:
        return "this line cannot be satisfied"
    if explanation.minimal:
        return f"these {count} lines conflict; without any one of them, the others can be satisfied"
    return f"these {count} lines conflict; fewer of them may conflict as well (the time limit was reached)"


def _print_member(console: Console, member: Member) -> None:
    place, change = member.place, member.repair
    console.print()
    console.print(Text(f"  {place}", style="bold"), soft_wrap=True)
    _print_indented(console, member.text)
    if change is not None:
        limited = {
            True: "",
            False: "; the file contains another conflict, which this does not resolve",
            None: "; whether the file contains another conflict was not decided within the time limit",
        }[change.whole]
        _print_indented(console, f"fix: {change.text}{limited}")
        if change.detail:
            _print_indented(console, change.detail)
    elif member.needed:
        _print_indented(console, "fix: none found within the time limit")
    else:
        _print_indented(console, "possibly not part of the conflict: the time limit was reached")


def _print_indented(console: Console, text: str) -> None:
    indent = " " * 6
    lines = textwrap.wrap(
        text, console.width, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    console.print(Text("\n".join(lines)), soft_wrap=True)
