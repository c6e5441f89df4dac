"""Ctrl-C in a Python program: a search stops and returns its incumbent."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 2.0
"""Seconds after a Ctrl-C in which another one raises KeyboardInterrupt, so that a loop of solves can be ended."""

_latest = float("-inf")
"""Time of the last Ctrl-C that stopped a search."""


@contextmanager
def stopped_by_keyboard(then: Callable[[], object] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Yield a `should_stop` that is true after Ctrl-C, which also calls a function.

    It stays false in threads, and where the program handles SIGINT itself.
    """
    pressed = threading.Event()
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed.is_set
        return

    def handle(number: int, frame: FrameType | None) -> None:
        global _latest
        now = time.monotonic()
        if pressed.is_set() or now - _latest < AGAIN:
            signal.default_int_handler(number, frame)
        _latest = now
        pressed.set()
        then()

    signal.signal(signal.SIGINT, handle)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
