"""What a person reads of an explanation: the lines that cannot hold together, why, and what would mend each."""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.text import Text

from placeopt.model.schedule import makespan
from placeopt.model.units import time_text
from placeopt.studies.explanation import Explanation, Member

_SHOWN = 30


def print_explanation(console: Console, explanation: Explanation) -> None:
    """The verdict and, if a problem is infeasible, each line of the set with its mend."""
    problem = explanation.problem
    if explanation.status == "feasible":
        assert explanation.schedule is not None
        ends = time_text(makespan(problem, explanation.schedule), problem.resolution)
        console.print(Text.assemble(("feasible", "green"), f": the verifier accepts a schedule that ends at {ends}"))
        return
    if explanation.status == "undecided":
        console.print("undecided: neither a schedule nor a proof that there is none was found in time")
        return
    console.print(Text.assemble(("infeasible", "red"), f": {_verdict(explanation)}"))
    for member in explanation.members[:_SHOWN]:
        _print_member(console, member)
    if len(explanation.members) > _SHOWN:
        console.print(f"\n  and {len(explanation.members) - _SHOWN} more; --json lists them all")
    if explanation.reason:
        console.print()
        console.print(Text(f"why: {explanation.reason}"))
    if len(explanation.members) > 1 and any(member.mend for member in explanation.members):
        console.print("Each change mends the problem alone, unless it says otherwise; solving confirmed it.")


def _verdict(explanation: Explanation) -> str:
    count = len(explanation.members)
    if count == 1:
        return "this line cannot hold"
    if explanation.minimal:
        return f"these {count} lines cannot hold together; without any one of them the others can"
    return f"these {count} lines cannot hold together; perhaps fewer of them cannot either (the time was over)"


def _print_member(console: Console, member: Member) -> None:
    place, change = member.place, member.mend
    console.print()
    console.print(Text(f"  {place}", style="bold"), soft_wrap=True)
    _print_indented(console, member.text)
    if change is not None:
        beside = "" if change.whole else " (for these lines; another contradiction remains in the file)"
        _print_indented(console, f"mend: {change.text}{beside}")
    elif member.needed:
        _print_indented(console, "mend: none found in time")
    else:
        _print_indented(console, "perhaps superfluous: the time was over")


def _print_indented(console: Console, text: str) -> None:
    indent = " " * 6
    lines = textwrap.wrap(
        text, console.width, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    console.print(Text("\n".join(lines)), soft_wrap=True)
