"""Processes that run HiGHS and SCIP; `placeopt.bounding.engines.worker` is the script that they execute.

Starting one takes some tenths of a second, so an idle one waits for the next run. It ends with this process.
"""

from __future__ import annotations

import atexit
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from placeopt.bounding.engines import EngineError
from placeopt.bounding.engines.children import Child
from placeopt.bounding.engines.signals import ended_with_us


class Worker:
    """A process that serves one request after the other; it is `idle` once the last one is answered."""

    def __init__(self, threads: int) -> None:
        self.idle = False
        self.threads = threads  # HiGHS fixes their number with its first run in a process
        self.owner = os.getpid()  # a fork of this process must not use it
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.child = Child(Path(__file__).with_name("worker.py"), self.messages.put, stderr=subprocess.DEVNULL)

    def send(self, request: dict[str, Any]) -> None:
        """Send a request; raises an EngineError if the process has ended."""
        try:
            self.child.send(request)
        except OSError as error:
            raise EngineError(f"the process of the engine does not read its input: {error}") from error

    def ended_with_us(self, should_stop: Callable[[], bool]) -> bool:
        """Whether the process, which has closed its output, died of a signal that asks this process to end, too."""
        return ended_with_us(self.child.process.wait(), should_stop)


_idle: list[Worker] = []
_lock = threading.Lock()


@contextmanager
def borrowed(threads: int) -> Iterator[Worker]:
    """Lend a process; it is kept for the next run if it is idle at the end, and killed otherwise."""
    worker = _take(threads)
    try:
        yield worker
    finally:
        if worker.idle:
            with _lock:
                _idle.append(worker)
        else:
            worker.child.close()


def _take(threads: int) -> Worker:
    with _lock:
        for worker in [worker for worker in _idle if (worker.threads, worker.owner) == (threads, os.getpid())]:
            _idle.remove(worker)
            if worker.child.process.poll() is None:
                worker.idle = False
                return worker
            worker.child.close()
    return Worker(threads)


@atexit.register
def _close_all() -> None:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.owner == os.getpid():
                worker.child.close()
