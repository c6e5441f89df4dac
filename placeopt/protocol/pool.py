"""A pool: slots on other machines or in other processes that solve parts of a problem; lanes keep them busy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from placeopt.errors import counted

T = TypeVar("T")

TICK = 0.1
"""Seconds between two checks whether to stop waiting for a job."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A value that jobs share; `argument` stands for it where a job is submitted, and is the value where it runs."""

    argument: Any


class Pool:
    """Slots that run jobs: calls of functions that can be pickled.

    A lost job is an expected event. It has no result, and its caller continues without one.

    Parameters
    ----------
    executor
        Runs the jobs.
    slots
        The number of jobs that run at the same time; 0 while the pool cannot be reached.
    threads
        Threads that a job may use if there are fewer jobs than slots.
    keep
        Calls a function in the pool and keeps its value there; returns what stands for the value in the arguments of
        jobs. By default, the function is called here, and each job has a copy of the value.
    """

    def __init__(
        self,
        executor: Executor,
        slots: Callable[[], int],
        threads: int = 1,
        keep: Callable[..., Any] = lambda function, *arguments: function(*arguments),
    ) -> None:
        self._executor, self._keep = executor, keep
        self.slots, self.threads = slots, threads
        self._lock = threading.Lock()
        self._lost, self._why = 0, ""

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Submit a job. If the executor rejects it, the future has the exception."""
        try:
            return self._executor.submit(function, *arguments)
        except Exception as error:  # noqa: BLE001 - such as BrokenExecutor: all workers are gone
            future: Future[T] = Future()
            future.set_exception(error)
            return future

    def share(self, function: Callable[..., Any], *arguments: Any) -> Shared:
        """Call a function once for all jobs, whose arguments its value may be.

        On a cluster, the arguments leave this machine once, and the value moves once to each worker that needs it. If
        the workers that hold it die, the call is repeated.
        """
        try:
            return Shared(self._keep(function, *arguments))
        except Exception:  # noqa: BLE001 - the scheduler is gone: its jobs are lost, too
            return Shared(function(*arguments))

    def result(self, future: Future[T], should_stop: Callable[[], bool] = lambda: False) -> T | None:
        """Wait for the result of a job; return None if it is lost, or cancelled because `should_stop` is true."""
        while not future.done():
            stopped = should_stop()
            if stopped or not self.slots():
                future.cancel()
                if not stopped:
                    self._lose("no worker can be reached")
                return None
            wait([future], timeout=TICK)
        try:
            return future.result()
        except CancelledError:
            self._lose("cancelled by the scheduler")
            return None
        except Exception as error:  # noqa: BLE001 - of the worker or of the connection
            self._lose(f"{type(error).__name__}: {error}".strip(": "))
            return None

    def note(self) -> str:
        """Return a sentence about lost jobs for users; empty if there are none."""
        if not self._lost:
            return ""
        return f"{counted(self._lost, 'job')} of the cluster {'was' if self._lost == 1 else 'were'} lost: {self._why}"

    def _lose(self, why: str) -> None:
        with self._lock:
            self._lost, self._why = self._lost + 1, why.partition("\n")[0]


PAUSE = 1.0
"""Seconds without jobs in a lane after a lost one, so that few are sent if each is lost, such as to a wrong version."""


class Lanes(Generic[T]):
    """A context manager with a lane for each slot, which runs one job at a time; new slots get lanes, too.

    Both functions are called in the thread of the lanes. In the end, jobs are cancelled.

    Parameters
    ----------
    submit
        Submits the next job of a lane by its number; None if it has none at present.
    collect
        Receives the result of a lane's job, None for a lost one. Dask repeats jobs of a dead worker, so a lost job is
        one that Dask gave up, or that ran while the scheduler could not be reached.
    """

    def __init__(
        self, pool: Pool, submit: Callable[[int], Future[T] | None], collect: Callable[[int, T | None], None]
    ) -> None:
        self._pool, self._submit, self._collect = pool, submit, collect
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name="lanes", daemon=True)

    def __enter__(self) -> Lanes[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise an error of either function."""
        if self._error is not None:
            raise self._error

    def _guarded(self) -> None:
        running: dict[int, Future[T]] = {}
        try:
            self._run(running)
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            self._error = error
        finally:
            for future in running.values():
                future.cancel()

    def _run(self, running: dict[int, Future[T]]) -> None:
        paused: dict[int, float] = {}
        while not self._over.is_set():
            slots, now = self._pool.slots(), time.monotonic()
            for lane in range(slots):
                if lane not in running and paused.get(lane, 0.0) <= now:
                    future = self._submit(lane)
                    if future is not None:
                        running[lane] = future
            if running:
                wait(running.values(), timeout=TICK, return_when=FIRST_COMPLETED)
            else:
                self._over.wait(TICK)
            for lane, future in list(running.items()):
                if future.done() or not slots:
                    del running[lane]
                    result = self._pool.result(future)
                    if result is None:
                        paused[lane] = time.monotonic() + PAUSE
                    self._collect(lane, result)
