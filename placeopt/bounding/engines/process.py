"""This side of the process that the engines run in; the other is `placeopt.bounding.engines.worker`.

Starting one takes some tenths of a second, so one that is done waits for the next run; it ends with this process.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ortools.math_opt import model_pb2

from placeopt.bounding.engines.signals import ended_with_us

POLL = 0.05
"""Seconds between two looks at whether to stop."""


class EngineError(Exception):
    """An engine, or the process that it runs in, broke; the message says how."""


class _Worker:
    """A process that runs one request after the other."""

    def __init__(self, threads: int) -> None:
        self.threads = threads  # HiGHS fixes their number with its first run in a process
        self.owner = os.getpid()  # a fork of this process has no claim on it
        script = Path(__file__).with_name("worker.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(script), json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the process that waits
        )
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, name="engine", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request.

        Raises
        ------
        EngineError
            If the process is gone.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise EngineError(f"the process of the engine does not listen: {error}") from error

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def ended_with_us(self, should_stop: Callable[[], bool]) -> bool:
        """Whether the process, which has closed its output, ended because all are asked to end."""
        return ended_with_us(self._process.wait(), should_stop)

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # part of a request that it never read
                continue


_idle: list[_Worker] = []
_lock = threading.Lock()


def _take(threads: int) -> _Worker:
    with _lock:
        for worker in [worker for worker in _idle if (worker.threads, worker.owner) == (threads, os.getpid())]:
            _idle.remove(worker)
            if worker.alive:
                return worker
            worker.close()
    return _Worker(threads)


@atexit.register
def _close_all() -> None:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.owner == os.getpid():
                worker.close()


def run(
    model: model_pb2.ModelProto,
    options: dict[str, Any],
    on_values: Callable[[list[float]], None],
    on_bound: Callable[[float], None],
    should_stop: Callable[[], bool],
) -> dict[str, Any]:
    """The result of one run: status, bound, values, nodes, message; or, if stopped, what there is by then.

    `options` are those of a request (`placeopt.bounding.engines.worker`) but `model` and `file`. The callbacks get the
    values of all columns in each better solution and each better bound, from this thread; what they raise ends the run.

    Raises
    ------
    EngineError
        If the engine or the process broke.
    """
    encoded = base64.b64encode(model.SerializeToString()).decode()
    worker = _take(options["workers"])
    done = False
    last: dict[str, Any] = {"status": "limit", "bound": None, "values": None}
    try:
        with tempfile.TemporaryDirectory(prefix="placeopt-", ignore_cleanup_errors=True) as folder:
            worker.ask({**options, "model": encoded, "file": str(Path(folder) / "improving.sol")})
            while True:
                if should_stop():
                    return {**last, "stopped": True}
                try:
                    message = worker.messages.get(timeout=POLL)
                except queue.Empty:
                    continue
                if message is None:
                    if worker.ended_with_us(should_stop):
                        return {**last, "stopped": True}
                    raise EngineError("the process of the engine ended before it had an answer")
                if "result" in message or "error" in message:
                    done = True
                if "error" in message:
                    raise EngineError(f"{options['engine']} broke: {message['error']}")
                if "result" in message:
                    return dict(message["result"])
                last.update(message)
                if "values" in message:
                    on_values(message["values"])
                else:
                    on_bound(message["bound"])
    finally:
        if done:
            with _lock:
                _idle.append(worker)
        else:
            worker.close()
