"""Runs the command line in this process, as a test wants it."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from unittest import mock

from placeopt.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command came to."""

    code: int
    out: str
    err: str


def run(*arguments: object) -> Outcome:
    """The outcome of `placeopt ARGUMENTS`; an exception that escapes fails the test."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["placeopt", *map(str, arguments)]
    code: object = 0
    with (
        mock.patch.object(sys, "argv", argv),
        mock.patch.dict("os.environ", {"COLUMNS": "140"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    return Outcome(code if isinstance(code, int) else 0 if code is None else 1, out.getvalue(), err.getvalue())
