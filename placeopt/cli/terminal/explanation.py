"""Print explanations: the lines that conflict, the reason, and a fix for each line."""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.text import Text

from placeopt.model.period import period
from placeopt.model.schedule import makespan
from placeopt.model.units import time_text
from placeopt.studies.explanation import Explanation, Member

_SHOWN = 30


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
        console.print("undecided: neither a schedule nor a proof of infeasibility was found within the time limit")
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
