"""Signals that ask a process to end, as distinct from a crash."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP
"""Ctrl-C; the signal of `timeout`, Slurm, Docker and systemd; the signal of a closed terminal."""

PATIENCE = 1.0
"""Seconds that this process waits for the signal that ended a child."""


def ended_with_us(code: int | None, should_stop: Callable[[], bool]) -> bool:
    """Whether a child with exit status `code` died of a signal that asks this process to end, too.

    Slurm and systemd send SIGTERM to all processes of a job. The child may die before this process handles its own.
    """
    if code is None or -code not in ENDING:
        return False
    latest = time.monotonic() + PATIENCE
    while not should_stop():
        if time.monotonic() > latest:
            return False
        time.sleep(0.01)
    return True
