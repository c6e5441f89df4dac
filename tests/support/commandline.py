"""Runs the command line in this process, as a test wants it."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from dataclasses import dataclass
from unittest import mock

from placeopt import cli
from placeopt.bounding.engines.signals import ENDING


@dataclass(frozen=True)
class Outcome:
    """What a command came to."""

    code: int
    out: str
    err: str


class _Kept(io.BytesIO):
    """Still holds what was written once the streams over it are gone."""

    def close(self) -> None:
        pass


def run(*arguments: object, encoding: str = "utf-8") -> Outcome:
    """The outcome of `placeopt ARGUMENTS`; an exception that escapes fails the test."""
    out, err = _Kept(), _Kept()
    streams = [io.TextIOWrapper(out, encoding), io.TextIOWrapper(err, encoding, line_buffering=True)]
    argv = ["placeopt", *map(str, arguments)]
    handlers = {number: signal.getsignal(number) for number in ENDING}
    code: object = 0
    with (
        mock.patch.object(sys, "argv", argv),
        mock.patch.dict("os.environ", {"COLUMNS": "140"}),
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
    ):
        try:
            code = cli.run()
        except SystemExit as stop:
            code = stop.code
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    for stream in streams:
        stream.flush()
    printed, told = out.getvalue().decode(encoding), err.getvalue().decode(encoding)
    return Outcome(code if isinstance(code, int) else 0 if code is None else 1, printed, told)
