"""Print results and notes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from shlex import quote
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from placeopt.errors import counted, visible

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from placeopt.io.plan import Plan
    from placeopt.model.problem import Problem

UNWRAPPED = 10**6
"""Width of output that is not wrapped, in columns."""

_BLANKS = re.compile(r" +(?=\n)")

NOTES = 20
"""Maximum number of notes that are printed."""


class _Trimmed:
    """A stream to which lines are written without blanks at their ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_BLANKS.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def stdout_console() -> Console:
    """Return the console for results; where stdout is not a terminal, lines are not wrapped unless COLUMNS is set."""
    from rich.console import Console

    if Console().is_terminal:
        return Console(highlight=False)
    width = None if os.environ.get("COLUMNS") else UNWRAPPED
    return Console(file=cast(IO[str], _Trimmed(sys.stdout)), width=width, highlight=False)


def stderr_console() -> Console:
    """Return the console for progress and messages."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_json(data: Any) -> None:
    """Print data on stdout as JSON."""
    json.dump(data, sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_notes(*notes: str) -> None:
    """Print notes on stderr, one line each."""
    console = stderr_console()
    for note in notes[:NOTES]:
        console.print(f"note: {note}", soft_wrap=True, markup=False)
    if len(notes) > NOTES:
        console.print(f"note: {len(notes) - NOTES:,} more lines are left out")


def explaining(path: Path, problem: Problem) -> str:
    """Name the command that explains why a problem is infeasible, or state why it does not support the problem."""
    from placeopt.studies.explanation.constraints import refusal

    return refusal(problem) or (
        f"`placeopt explain {quote(str(path))}` shows which lines conflict, and what would repair them"
    )


def noted_plan(path: Path, problem: Problem) -> Plan:
    """Read a plan; print a note if it was made for another problem."""
    from placeopt.io.plan import read_plan

    plan = read_plan(path, problem)
    if plan.fingerprint is not None and plan.fingerprint != problem.fingerprint():
        print_notes(
            f"{visible(str(path))} was made for another version of this problem (fingerprint "
            f"{visible(plan.fingerprint)}; this one has {problem.fingerprint()}): its starts and its objective may not "
            "hold here"
        )
    return plan


def note_violations(violations: Sequence[object], effect: str = "") -> None:
    """Print a note if a plan breaks rules."""
    if violations:
        print_notes(f"the plan breaks {counted(len(violations), 'rule')}; `placeopt verify` lists them{effect}")
