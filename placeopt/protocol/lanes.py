"""Keep the slots of a pool busy with jobs, one after the other, while the caller does something else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Generic, TypeVar

from placeopt.protocol.pool import TICK, Pool

T = TypeVar("T")

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
