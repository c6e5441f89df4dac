"""Print results and notes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placeopt.errors import counted

if TYPE_CHECKING:
    from rich.console import Console

NOTES = 20
"""Maximum number of notes that are printed."""


def stdout_console() -> Console:
    """Return the console for results."""
    from rich.console import Console

    return Console(highlight=False)


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


def note_violations(violations: Sequence[object], effect: str = "") -> None:
    """Print a note if a plan breaks rules."""
    if violations:
        print_notes(f"the plan breaks {counted(len(violations), 'rule')}; `placeopt verify` lists them{effect}")
