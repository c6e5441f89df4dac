"""Run the jobs of a comparison on an executor; every job ends in a record, even if its worker dies."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from placeopt.studies.comparison.isolation import TICK, Point, StoppedError, lost_record, run_job
from placeopt.studies.comparison.jobs import Job
from placeopt.studies.comparison.records import Key, Record
from placeopt.studies.comparison.supervisor import kill_marked

ATTEMPTS = 3
"""Maximum number of times that a run is submitted when its worker dies."""

LARGE = 32 * 1024
"""Bytes from which a packed problem is sent to the workers once instead of with each of its runs."""


class Observer:
    """Base class of observers of a comparison; this one ignores all events. Methods are called from several threads."""

    def plan(self, total: int, known: int, torn: bool) -> None:
        """Report the totals: all runs, and those already in the ledger; `torn`: its last line was incomplete."""

    def begin(self, job: Job) -> None:
        """Report the start of a run."""

    def progress(self, job: Job, point: Point) -> None:
        """Report the progress of a run."""

    def end(self, job: Job) -> None:
        """Report that a run ended or was stopped."""

    def tick(self, done: int) -> None:
        """Report the number of runs that have ended; called ten times per second."""


@dataclass(slots=True)
class _Attempt:
    """A submitted job."""

    job: Job
    key: Key
    number: int
    born: float
    begun: bool = False


class _Parcels:
    """The packed problems of jobs; a large one is sent to the workers once, and stays there until its last job ends."""

    def __init__(self, jobs: Sequence[Job], keep: Callable[..., Any] | None) -> None:
        self._keep = keep
        self._left = Counter(job.fingerprint for job in jobs)
        self._kept: dict[str, Any] = {}

    def submitted(self, executor: Executor, job: Job) -> Future[Record]:
        """Submit a job, without the problem if that is kept."""
        if self._keep is None or len(job.packed) < LARGE:
            return executor.submit(run_job, job)
        if job.fingerprint not in self._kept:
            self._kept[job.fingerprint] = self._keep(bytes, job.packed)
        return executor.submit(run_with, replace(job, packed=b""), self._kept[job.fingerprint])

    def end(self, job: Job) -> None:
        """Release the problem after its last job."""
        self._left[job.fingerprint] -= 1
        if not self._left[job.fingerprint]:
            self._kept.pop(job.fingerprint, None)


def execute(
    jobs: Sequence[Job],
    executor: Executor,
    *,
    in_flight: Callable[[], int] | None,
    on_records: Callable[..., None] | None,
    observer: Observer,
    should_stop: Callable[[], bool],
    stop_elsewhere: Callable[[str], None] | None = None,
    keep: Callable[..., Any] | None = None,
) -> dict[Key, Record]:
    """Return the records of all jobs, or once `should_stop` is true, of those that have ended.

    Parameters
    ----------
    in_flight
        Returns the maximum number of submitted jobs; None submits all at once.
    on_records
        Called with the records of runs that have ended, in this thread and in that order.
    stop_elsewhere
        Kills the processes with a tag on other machines.
    keep
        Keeps a value on other machines for several jobs (`placeopt.protocol.cluster.Cluster.keep`).
    """
    found: dict[Key, Record] = {}
    waiting = deque((job, job.key, 1) for job in jobs)
    running: dict[Future[Record], _Attempt] = {}
    ended: SimpleQueue[Future[Record]] = SimpleQueue()
    parcels = _Parcels(jobs, keep)
    local = isinstance(executor, ThreadPoolExecutor)
    over = False
    watched = partial(_watched_run, observer=observer, should_stop=lambda: over or should_stop())

    try:
        while waiting or running:
            if should_stop():
                break
            records: dict[Key, Record] = {}
            room = len(jobs) if in_flight is None else in_flight()
            while waiting and len(running) < room:
                job, key, number = waiting.popleft()
                try:
                    future = executor.submit(watched, job) if local else parcels.submitted(executor, job)
                except Exception as error:  # noqa: BLE001 - such as BrokenExecutor, or of a client that was closed
                    records[key] = lost_record(job, f"no worker accepts it: {error}")
                else:
                    running[future] = _Attempt(job, key, number, time.monotonic())
                    future.add_done_callback(ended.put)
            if not local:
                _report_beginnings(running, observer)
            for future in sorted(_taken(ended), key=lambda future: running[future].born):
                attempt = running.pop(future)
                if attempt.begun:
                    observer.end(attempt.job)
                try:
                    records[attempt.key] = future.result()
                except StoppedError:
                    continue
                except (Exception, CancelledError) as error:  # noqa: BLE001  of the worker; errors of a run are in its record
                    if attempt.number < ATTEMPTS:
                        waiting.appendleft((attempt.job, attempt.key, attempt.number + 1))
                        continue
                    why = f"its worker failed {attempt.number} times: {type(error).__name__}: {error}"
                    records[attempt.key] = lost_record(attempt.job, why, time.monotonic() - attempt.born)
                parcels.end(attempt.job)
            found |= records
            if records and on_records is not None:
                on_records(*records.values())
            observer.tick(len(found))
    finally:
        over = True
        for future in running:
            future.cancel()
        for tag in sorted({attempt.job.tag.partition("/")[0] for attempt in running.values()}):
            kill_marked(tag)
            if stop_elsewhere is not None:
                stop_elsewhere(tag)
        if local:
            wait(running)
    return found


def run_with(job: Job, packed: bytes) -> Record:
    """Run a job on a packed problem, as `run_job`."""
    return run_job(replace(job, packed=packed))


def _taken(ended: SimpleQueue[Future[Record]]) -> list[Future[Record]]:
    """Return the jobs that have ended; wait a short time for the first one."""
    taken: list[Future[Record]] = []
    with suppress(Empty):
        taken.append(ended.get(timeout=TICK))
        while True:
            taken.append(ended.get_nowait())
    return taken


def _watched_run(job: Job, observer: Observer, should_stop: Callable[[], bool]) -> Record:
    """Run the job, report its events to the observer, and return its record."""
    if should_stop():
        raise StoppedError
    observer.begin(job)
    try:
        return run_job(job, lambda point: observer.progress(job, point), should_stop)
    finally:
        observer.end(job)


def _report_beginnings(running: dict[Future[Record], _Attempt], observer: Observer) -> None:
    """Report runs that have started in other processes, as far as the executor knows: Dask does not."""
    for future, attempt in running.items():
        if not attempt.begun and future.running():
            attempt.begun = True
            observer.begin(attempt.job)
