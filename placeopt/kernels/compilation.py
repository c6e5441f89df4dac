"""Compile kernels in separate processes while this process runs plain Python.

Compiling processes fill Numba's cache on disk, from which this process loads the machine code. Each kernel is compiled
once per machine. A compiling process ends when it is idle, or after its current kernel if this process ends. It reads a
line of JSON for each kernel and answers a line once the kernel is in the cache:

    {"kernel": "placeopt_solvers._local_search.walk:walk", "signature": "(...)", "fingerprint": "1f2e3d4c"}
    {"error": null}
"""

from __future__ import annotations

import ast
import atexit
import heapq
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import Any, Protocol, runtime_checkable

from placeopt.kernels.structs import Signature

IDLE = 1.0
"""Seconds without work after which a compiling process is ended."""

POLL = 0.05
"""Seconds between two calls of `should_stop` while a call waits."""

_START = "import json,sys; sys.path[:]=json.loads(sys.argv[1]); from placeopt.kernels.compilation import serve; serve()"


class WaitingStoppedError(Exception):
    """A call stopped waiting for a kernel to be compiled (`placeopt.kernels.impatient`, `hurried`)."""


@runtime_checkable
class Compilable(Protocol):
    """The part of `placeopt.kernels.Kernel` that the queue uses."""

    __module__: str
    __name__: str

    def compile_seconds(self) -> float: ...
    def fingerprint(self) -> str: ...
    def forget_disk(self) -> bool: ...
    def load(self, signature: Signature) -> Callable[..., Any]: ...
    def loaded(self, signature: Signature) -> Callable[..., Any] | None: ...
    def on_disk(self, signature: Signature) -> bool: ...


@dataclass(slots=True, eq=False)
class Job:
    """A kernel to load, and to compile first if it is not in the cache.

    `done` is set once it is loaded or has failed; `error` states why it failed. `damaged` is set if the cache could not
    be read and was emptied.
    """

    kernel: Compilable
    signature: Signature
    done: threading.Event = field(default_factory=threading.Event)
    error: str | None = None
    damaged: bool = False


class _Queue:
    """The jobs of this process, and the threads (lanes) that run them."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.loading = threading.RLock()  # held while machine code is loaded: the process must not exit then
        self.jobs: dict[tuple[int, Signature], Job] = {}
        self.waiting: list[tuple[float, int, Job]] = []  # a heap: kernels that compile fastest first
        self.numbers = count()  # break ties in the heap, so that jobs are never compared
        self.lanes = self.idle = 0
        self.most = os.cpu_count() or 1
        self.compiling = 0
        self.since = 0.0
        self.before = 0.0
        self.closed = False

    def job(self, kernel: Compilable, signature: Signature) -> tuple[Job, bool]:
        """The job of a kernel, and whether it is new."""
        with self.changed:
            key = (id(kernel), signature)
            new = key not in self.jobs
            if new:
                self.jobs[key] = Job(kernel, signature)
            return self.jobs[key], new

    def put(self, job: Job) -> None:
        """Queue the job for an idle thread or a new one, up to the number of cores."""
        with self.changed:
            heapq.heappush(self.waiting, (job.kernel.compile_seconds(), next(self.numbers), job))
            self.changed.notify()
            if self.idle < len(self.waiting) and self.lanes < self.most:
                threading.Thread(target=self._run, name="kernels", daemon=True).start()
                self.lanes += 1

    def count(self, change: int) -> None:
        """Change the number of kernels that are being compiled."""
        with self.changed:
            now = time.monotonic()
            if self.compiling:
                self.before += now - self.since
            self.compiling += change
            self.since = now

    def _next(self) -> Job | None:
        """The next job; None after `IDLE` seconds without one, which ends the lane."""
        with self.changed:
            if not self.waiting:
                self.idle += 1
                self.changed.wait(IDLE)
                self.idle -= 1
            if self.waiting:  # a job may have arrived together with the timeout
                return heapq.heappop(self.waiting)[2]
            self.lanes -= 1
            return None

    def _run(self) -> None:
        worker: subprocess.Popen[str] | None = None
        while (job := self._next()) is not None:
            if not self.load(job) and job.error is None:
                self.count(1)
                try:
                    worker = self._compiled(job, worker)
                except Exception as failure:  # noqa: BLE001  `warm` reports it; plain Python runs instead
                    job.error = _error_text(failure)
                finally:
                    self.count(-1)
                if job.error is None and not self.load(job) and job.error is None:
                    job.error = "it was compiled, and is not in Numba's cache"
            job.done.set()
        if worker is not None and worker.stdin is not None and worker.stdout is not None:
            worker.stdin.close()
            worker.wait()
            worker.stdout.close()

    def load(self, job: Job) -> bool:
        """Load a kernel from the cache; return whether it was there.

        A cache that cannot be read is emptied, so that the kernel is compiled again. A second exception becomes the
        job's error.
        """
        with self.loading:
            try:
                if self.closed or not job.kernel.on_disk(job.signature):
                    return False
                job.kernel.load(job.signature)
            except Exception as failure:  # noqa: BLE001  a cache that cannot be read; plain Python runs instead
                if job.damaged or not job.kernel.forget_disk():
                    job.error = _error_text(failure)
                job.damaged = True
                return False
            return True

    @staticmethod
    def _compiled(job: Job, worker: subprocess.Popen[str] | None) -> subprocess.Popen[str]:
        """Compile the kernel in a process, and return the process."""
        if worker is None or worker.poll() is not None:
            worker = _worker()
        assert worker.stdin is not None
        assert worker.stdout is not None
        request = {
            "kernel": f"{job.kernel.__module__}:{job.kernel.__name__}",
            "signature": repr(job.signature),
            "fingerprint": job.kernel.fingerprint(),
        }
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
        answer = worker.stdout.readline()
        job.error = json.loads(answer)["error"] if answer else "the process that compiles ended"
        return worker


def _error_text(failure: Exception) -> str:
    return f"{type(failure).__name__}: {failure}"


_queue = _Queue()
_folder: tempfile.TemporaryDirectory[str] | None = None


def obtained(
    kernel: Compilable, signature: Signature, *, wait: bool, should_stop: Callable[[], bool] | None = None
) -> Callable[..., Any] | None:
    """The compiled function if it is loaded or in the cache; else None, and another process compiles it.

    The caller's thread loads the function: next to a loop in plain Python, importing Numba takes several times as long.
    With `wait`, this returns only once the function is loaded or has failed.

    Raises
    ------
    WaitingStoppedError
        If `should_stop` becomes true while this waits.
    """
    job, new = _queue.job(kernel, signature)
    if new:
        if _queue.load(job) or job.error is not None:
            job.done.set()
        else:
            _queue.put(job)
    while wait and not job.done.wait(POLL):
        if should_stop is not None and should_stop():
            raise WaitingStoppedError
    return kernel.loaded(signature)


def requested(kernel: Compilable, signature: Signature) -> Job:
    """The job that loads a kernel, and compiles it first if it is not in the cache."""
    job, new = _queue.job(kernel, signature)
    if new:
        _queue.put(job)
    return job


def wait(timeout: float) -> bool:
    """Wait for all jobs, at most `timeout` seconds; return whether all are done."""
    end = time.monotonic() + timeout
    with _queue.changed:
        jobs = list(_queue.jobs.values())
    return all(job.done.wait(max(end - time.monotonic(), 0.0)) for job in jobs)


def cancel(jobs: Iterable[Job]) -> None:
    """Discard jobs that have not started."""
    with _queue.changed:
        discarded = {id(job) for job in jobs}
        for entry in list(_queue.waiting):
            if id(entry[2]) in discarded:
                _queue.waiting.remove(entry)
                entry[2].error = "cancelled"
                entry[2].done.set()
        heapq.heapify(_queue.waiting)


def pending() -> int:
    """Number of kernels that are being compiled for this process."""
    return _queue.compiling


def seconds() -> float:
    """Total seconds during which kernels were compiled for this process."""
    with _queue.changed:
        return _queue.before + (time.monotonic() - _queue.since if _queue.compiling else 0.0)


@contextmanager
def temporary_cache() -> Iterator[None]:
    """In the block, Numba's cache is a temporary folder, for use if no other folder is writable."""
    from numba.core import config

    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="placeopt-kernels-", ignore_cleanup_errors=True)
    before, config.CACHE_DIR = config.CACHE_DIR, _folder.name
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _worker() -> subprocess.Popen[str]:
    from numba.core import config

    folder = _folder.name if _folder is not None else config.CACHE_DIR
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _START, json.dumps(list(map(str, sys.path)))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C must reach only the solving process
        env=os.environ | ({"NUMBA_CACHE_DIR": folder} if folder else {}),
    )


def serve() -> None:
    """Compile the kernels requested on stdin; the main function of a compiling process."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            error = _compile(json.loads(line))
        except Exception as failure:  # noqa: BLE001  plain Python runs instead of the kernel
            error = _error_text(failure)
        try:
            answers.write(json.dumps({"error": error}) + "\n")
            answers.flush()
        except BrokenPipeError:  # the requesting process has ended
            return


def _compile(request: dict[str, Any]) -> str | None:
    """Compile a kernel; return an error, or None."""
    place, _, name = request["kernel"].partition(":")
    found = getattr(import_module(place), name, None)
    if not isinstance(found, Compilable) or found.fingerprint() != request["fingerprint"]:
        return f"{request['kernel']} is not the requested kernel"
    found.load(ast.literal_eval(request["signature"]))
    return None


@atexit.register
def _close() -> None:
    """Prevent threads from loading machine code while the process ends."""
    _queue.closed = True
    _queue.loading.acquire(timeout=IDLE)


def _forget() -> None:
    """Replace the queue after a fork: its threads do not exist, and its locks may stay locked."""
    global _queue
    _queue = _Queue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
