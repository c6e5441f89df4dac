"""Handle Ctrl-C, SIGTERM and SIGHUP: the first signal ends a command with its result, the second one at once.

The exit code is 128 plus the number of the signal: 130, 143, 129. A signal that is ignored at the start stays ignored,
as `nohup` requires.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from placeopt.bounding.engines.signals import ENDING

REPEAT = 0.5
"""Seconds in which further signals count as repetitions: `timeout` sends its signal twice, shells forward SIGHUP."""

_accepted = float("-inf")
"""Time of the last signal that was not a repetition."""


class Interrupted(BaseException):
    """A signal arrived while there was no result to save; typer does not catch this exception."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number
        self.by = "" if number == signal.SIGINT else f" by {self}"


class Stop(threading.Event):
    """Set by the first signal."""

    code: int = 0
    """Exit code after the signal."""


def raise_on_signals() -> None:
    """Raise `Interrupted` on the first signal, so that resources are released; end the process on the second."""
    global _accepted
    _accepted = float("-inf")
    atexit.register(_ignore)  # runs last

    def handle(number: int) -> None:
        raise Interrupted(number)

    _handle(handle)


def end_on_signals() -> None:
    """End the process on the first signal, once the result is saved and printed."""
    _handle(end_at_once)


@contextmanager
def on_interrupt() -> Iterator[Stop]:
    """Yield an event that the first signal sets, so that the solver stops; the second signal ends the process."""
    stop = Stop()

    def handle(number: int) -> None:
        stop.code = 128 + number
        stop.set()
        if number == signal.SIGINT:
            _say("\nplaceopt: stopping; press Ctrl-C again to discard the result\n")
        else:
            _say(f"\nplaceopt: stopping on {signal.Signals(number).name}; a second signal discards the result\n")

    before = _handle(handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_at_once(number: int) -> None:
    """End the process without waiting for its threads; child processes end when their input is closed."""
    if sys.stderr.isatty():
        _say("\x1b[?25h")  # a progress bar hides the cursor
    os._exit(128 + number)


def _handle(first: Callable[[int], None]) -> dict[int, Any]:
    """Call `first` on the first signal, end the process on the second; return the previous handlers."""
    received = False

    def handle(number: int, _frame: object) -> None:
        global _accepted
        nonlocal received
        now = time.monotonic()
        if now - _accepted < REPEAT:
            return
        _accepted, again, received = now, received, True
        if again:
            end_at_once(number)
        first(number)

    return {
        number: signal.signal(number, handle) for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN
    }


def _ignore() -> None:
    """Ignore signals during shutdown, where they would change the exit code."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _say(text: str) -> None:
    """Write to stderr without its buffer, which the interrupted code may be using; ignore a closed terminal."""
    with contextlib.suppress(OSError):
        try:
            os.write(sys.stderr.fileno(), text.encode())
        except ValueError:  # not a file, in tests
            sys.stderr.write(text)
