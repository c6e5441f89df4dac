"""The jobs of a comparison through an executor: every one ends in a record, whatever becomes of its worker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Protocol

from placeopt.studies.comparison.isolation import TICK, Point, StoppedError, lost_record, run_job
from placeopt.studies.comparison.jobs import Job
from placeopt.studies.comparison.processes import kill_marked
from placeopt.studies.comparison.records import Key, Record

ATTEMPTS = 3
"""Times that a run is handed out when its worker dies."""


class Observer(Protocol):
    """Whoever watches a comparison; called from several threads."""

    def plan(self, total: int, known: int, torn: bool) -> None:
        """So many runs make the comparison; so many are in the ledger already, whose last line was torn or not."""

    def compile(self, done: int, count: int) -> None:
        """Kernels are being compiled before the runs: `done` of `count`; called twenty times a second."""

    def begin(self, job: Job) -> None:
        """A run has begun."""

    def tell(self, job: Job, point: Point) -> None:
        """It has told of its progress."""

    def end(self, job: Job) -> None:
        """It has ended, or was stopped."""

    def tick(self, done: int) -> None:
        """So many runs have ended; comes ten times a second."""


class Silence:
    """Nobody watches."""

    def plan(self, total: int, known: int, torn: bool) -> None: ...

    def compile(self, done: int, count: int) -> None: ...

    def begin(self, job: Job) -> None: ...

    def tell(self, job: Job, point: Point) -> None: ...

    def end(self, job: Job) -> None: ...

    def tick(self, done: int) -> None: ...


def execute(
    jobs: Sequence[Job],
    executor: Executor,
    *,
    in_flight: int | None,
    on_record: Callable[[Record], None] | None,
    observer: Observer,
    should_stop: Callable[[], bool],
    stop_elsewhere: Callable[[str], None] | None = None,
) -> dict[Key, Record]:
    """The records of all jobs; of those that have ended, once `should_stop` is true.

    Parameters
    ----------
    in_flight
        Most jobs that the executor is given at a time; None for all at once.
    on_record
        Called with every record, in this thread, in the order in which runs end.
    stop_elsewhere
        Kills the processes that carry a tag, on other machines.
    """
    found: dict[Key, Record] = {}
    waiting = deque((job, 1) for job in jobs)
    running: dict[Future[Record], tuple[Job, int, float]] = {}
    told: set[Key] = set()
    local = isinstance(executor, ThreadPoolExecutor)
    over = False
    work = partial(_watched_run, observer=observer, should_stop=lambda: over or should_stop()) if local else run_job

    def keep(job: Job, record: Record) -> None:
        found[job.key] = record
        if on_record is not None:
            on_record(record)

    try:
        while waiting or running:
            if should_stop():
                break
            while waiting and (in_flight is None or len(running) < in_flight):
                job, attempt = waiting.popleft()
                try:
                    running[executor.submit(work, job)] = job, attempt, time.monotonic()
                except RuntimeError as error:  # BrokenExecutor among them: nobody is left to run anything
                    keep(job, lost_record(job, f"no worker takes it: {error}"))
            if not local:
                _tell_beginnings(running, told, observer)
            ended, _ = wait(running, timeout=TICK, return_when=FIRST_COMPLETED)
            for future in sorted(ended, key=lambda future: running[future][2]):
                job, attempt, born = running.pop(future)
                if not local and job.key in told:
                    observer.end(job)
                try:
                    record = future.result()
                except StoppedError:
                    continue
                except (Exception, CancelledError) as error:  # noqa: BLE001  its worker's; what runs raise is a record
                    if attempt < ATTEMPTS:
                        waiting.appendleft((job, attempt + 1))
                    else:
                        why = f"its worker died {attempt} times: {type(error).__name__}: {error}"
                        keep(job, lost_record(job, why, time.monotonic() - born))
                else:
                    keep(job, record)
            observer.tick(len(found))
    finally:
        over = True
        for future in running:
            future.cancel()
        tags = {job.tag.partition("/")[0] for job, _, _ in running.values()}
        _kill(tags, stop_elsewhere)
        if local:
            wait(running)
    return found


def _kill(tags: Iterable[str], stop_elsewhere: Callable[[str], None] | None) -> None:
    for tag in sorted(tags):
        kill_marked(tag)
        if stop_elsewhere is not None:
            stop_elsewhere(tag)


def _watched_run(job: Job, observer: Observer, should_stop: Callable[[], bool]) -> Record:
    """The job's record; the observer hears of it while it runs."""
    if should_stop():
        raise StoppedError
    observer.begin(job)
    try:
        return run_job(job, lambda point: observer.tell(job, point), should_stop)
    finally:
        observer.end(job)


def _tell_beginnings(running: dict[Future[Record], tuple[Job, int, float]], told: set[Key], observer: Observer) -> None:
    """Tell the observer of runs that have begun elsewhere."""
    for future, (job, _, _) in running.items():
        if job.key not in told and future.running():
            told.add(job.key)
            observer.begin(job)
