"""Signals as in a terminal: nohup ignores SIGHUP, and a shell makes background jobs ignore SIGINT.

Garbage collection is off while tests are collected, and later skips what was collected: it took a third of that time.
With `-n auto`, there is one more process than cores: at any time, some test waits for a clock or for another process.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import pytest


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
