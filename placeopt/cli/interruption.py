"""Handle Ctrl-C, SIGTERM and SIGHUP: the first signal ends a command with its result, the second one at once.

The exit code is 128 plus the number of the signal: 130, 143, 129. A signal that is ignored at the start stays ignored,
as `nohup` requires.

Python calls handlers in the main thread, between two instructions. So `Interrupted` is raised there, except during an
import: native modules turn exceptions into an ImportError, and other code drops them. A thread sees the second signal
even while the main thread is inside a native call.
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
from types import FrameType
from typing import Any, NoReturn

from placeopt.bounding.engines.signals import ENDING
from placeopt.cli.streams import LostError

REPEAT = 0.5
"""Seconds in which further signals count as repetitions: `timeout` sends its signal twice, shells forward SIGHUP."""

_accepted = float("-inf")
"""Time of the last signal that was not a repetition."""


class Interrupted(BaseException):
    """A signal arrived while there was no result to save; typer does not catch this exception."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number
        self.message = "placeopt: interrupted" + ("" if number == signal.SIGINT else f" by {self}")


class Stop(threading.Event):
    """Set by the first signal."""

    code: int = 0
    """Exit code after the signal."""


def raise_on_signals() -> None:
    """Raise `Interrupted` on the first signal, so that resources are released; end the process on the second.

    During an import, the first signal ends the process, too.
    """
    global _accepted
    _accepted = float("-inf")

    def handle(number: int, frame: FrameType | None) -> None:
        stop = Interrupted(number)
        if _imports(frame):
            _say(f"{stop.message}\n")
            leave(stop.code)
        raise stop

    _handle(handle)


def end_on_signals() -> None:
    """End the process on the first signal, once the result is saved and printed."""
    _handle(lambda number, _frame: end_at_once(number))


def end_on_second_signal() -> None:
    """Start a thread that ends the process on the second signal, also while the main thread is in a native call."""
    if sys.platform == "win32":  # pipes always block there
        return
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)  # gets the number of each signal that has a handler

    def watch() -> None:
        earliest: float | None = None  # of the second signal
        while True:
            (number,) = os.read(ours, 1)
            if number in ENDING:
                now = time.monotonic()
                earliest = earliest or now + REPEAT
                if now >= earliest:
                    end_at_once(number)

    threading.Thread(target=watch, name="signals", daemon=True).start()


@contextmanager
def on_interrupt() -> Iterator[Stop]:
    """Yield an event that the first signal sets, so that the solver stops; the second signal ends the process."""
    stop = Stop()

    def handle(number: int, _frame: FrameType | None) -> None:
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


def leave(code: int) -> NoReturn:
    """End the process with an exit code, once its exit functions have run and its output is flushed.

    Tearing down the interpreter with all its modules would only take time: up to two seconds.
    """
    atexit._run_exitfuncs()  # they remove temporary folders and end processes
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, LostError):
            stream.flush()
    os._exit(code)


def end_at_once(number: int) -> NoReturn:
    """End the process without waiting for its threads; child processes end when their input is closed."""
    if sys.stderr.isatty():
        _say("\x1b[?25h")  # a progress bar hides the cursor
    os._exit(128 + number)


def _handle(first: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Call `first` on the first signal, end the process on the second; return the previous handlers."""
    received = False

    def handle(number: int, frame: FrameType | None) -> None:
        global _accepted
        nonlocal received
        now = time.monotonic()
        if now - _accepted < REPEAT:
            return
        _accepted, again, received = now, received, True
        if again:
            end_at_once(number)
        first(number, frame)

    return {
        number: signal.signal(number, handle) for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN
    }


def _imports(frame: FrameType | None) -> bool:
    """Whether a frame, or one of its callers, imports a module."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _say(text: str) -> None:
    """Write to stderr without its buffer, which the interrupted code may be using; ignore a closed terminal."""
    with contextlib.suppress(OSError):
        try:
            os.write(sys.stderr.fileno(), text.encode())
        except ValueError:  # not a file, in tests
            sys.stderr.write(text)
