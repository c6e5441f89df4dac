"""Processes that run HiGHS and SCIP; `placeopt.bounding.engines.worker` is the script that they execute.

Starting one takes some tenths of a second, so an idle one waits for the next run. It ends with this process.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from placeopt.bounding.engines import EngineError
from placeopt.bounding.engines.signals import ended_with_us


class Worker:
    """A process that serves one request after the other; it is `idle` once the last one is answered."""

    def __init__(self, threads: int) -> None:
        self.idle = False
        self.threads = threads  # HiGHS fixes their number with its first run in a process
        self.owner = os.getpid()  # a fork of this process must not use it
        script = Path(__file__).with_name("worker.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(script), json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C reaches only the process that waits
        )
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, name="engine", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def send(self, request: dict[str, Any]) -> None:
        """Send a request; raises an EngineError if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise EngineError(f"the process of the engine does not read its input: {error}") from error

    def ended_with_us(self, should_stop: Callable[[], bool]) -> bool:
        """Whether the process, which has closed its output, died of a signal that asks this process to end, too."""
        return ended_with_us(self._process.wait(), should_stop)

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # the process has not read the whole request
                continue


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
            worker.close()


def _take(threads: int) -> Worker:
    with _lock:
        for worker in [worker for worker in _idle if (worker.threads, worker.owner) == (threads, os.getpid())]:
            _idle.remove(worker)
            if worker._process.poll() is None:
                worker.idle = False
                return worker
            worker.close()
    return Worker(threads)


@atexit.register
def _close_all() -> None:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.owner == os.getpid():
                worker.close()
