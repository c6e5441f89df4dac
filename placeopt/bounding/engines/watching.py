"""Run stoppable work in a separate thread: all engines inside this process use it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

POLL = 0.05
"""Seconds between two calls of `should_stop`."""


def watched(
    work: Callable[[], T], stop: Callable[[], object], should_stop: Callable[[], bool], *, name: str = "engine"
) -> tuple[T, bool]:
    """Return the result of `work`, and whether it was stopped.

    The work runs in a thread called `name`. The caller's thread waits: signals such as Ctrl-C reach it, and it calls
    `should_stop` every POLL seconds. Once that returns true, it calls `stop` until the work ends, because engines
    ignore a call before their search begins. The work must return soon after. Errors of `work` and of `should_stop` are
    raised here. The work has ended when this function returns or raises.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            future.set_exception(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    stopped = False
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            stopped = stopped or should_stop()
            if stopped:
                stop()
    finally:
        while thread.is_alive():
            stop()
            thread.join(POLL)
    return future.result(), stopped
