"""The side of this process of HiGHS' own: `placeopt.engines.worker`.

Starting one takes some tenths of a second, so one that is done waits for the next run. It ends with this process.
"""

from __future__ import annotations

import atexit
import base64
import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ortools.math_opt import model_pb2

POLL = 0.05
"""Seconds between two looks at whether to stop."""


class EngineError(Exception):
    """HiGHS, or the process it runs in, broke; the message says how."""


class _Worker:
    """A process that runs HiGHS, one request after the other."""

    def __init__(self, threads: int) -> None:
        self.threads = threads  # HiGHS fixes their number with its first run in a process
        script = Path(__file__).with_name("worker.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(script), json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # a Ctrl-C is for this process to handle
        )
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._listen, name="highs", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


_idle: list[_Worker] = []
_lock = threading.Lock()


def _take(threads: int) -> _Worker:
    with _lock:
        for worker in [worker for worker in _idle if worker.threads == threads]:
            _idle.remove(worker)
            if worker.alive:
                return worker
            worker.close()
    return _Worker(threads)


@atexit.register
def _close_all() -> None:
    with _lock:
        while _idle:
            _idle.pop().close()


def solve(
    model: model_pb2.ModelProto,
    options: dict[str, Any],
    hint: list[float] | None,
    on_values: Callable[[list[float]], None],
    on_bound: Callable[[float], None],
    should_stop: Callable[[], bool],
) -> dict[str, Any]:
    """The result of one run of HiGHS: status, bound, values, nodes, message, and whether it was stopped.

    Raises
    ------
    EngineError
        If it broke.
    """
    with tempfile.TemporaryDirectory(prefix="placeopt-highs-") as folder:
        file = str(Path(folder) / "improving.sol")
        worker = _take(options["workers"])
        reusable = False
        try:
            encoded = base64.b64encode(model.SerializeToString()).decode()
            worker.ask({**options, "model": encoded, "hint": hint, "file": file})
            last: dict[str, Any] = {"status": "limit", "bound": None, "values": None}
            while True:
                if should_stop():
                    return {**last, "stopped": True}
                try:
                    message = worker.messages.get(timeout=POLL)
                except queue.Empty:
                    continue
                if message is None:
                    raise EngineError("the process of HiGHS ended before it had an answer")
                if "error" in message:
                    reusable = True
                    raise EngineError(f"HiGHS broke: {message['error']}")
                if "result" in message:
                    reusable = True
                    return dict(message["result"])
                last.update(message)
                if "values" in message:
                    on_values(message["values"])
                else:
                    on_bound(message["bound"])
        finally:
            if reusable:
                with _lock:
                    _idle.append(worker)
            else:
                worker.close()
