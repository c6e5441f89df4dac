"""Run the jobs of a comparison on an executor; every job ends in a record, even if its worker dies."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from functools import partial

from placeopt.studies.comparison.isolation import TICK, Point, StoppedError, lost_record, run_job
from placeopt.studies.comparison.jobs import Job
from placeopt.studies.comparison.records import Key, Record
from placeopt.studies.comparison.supervisor import kill_marked

ATTEMPTS = 3
"""Maximum number of times that a run is submitted when its worker dies."""


class Observer:
    """Base class of observers of a comparison; this one ignores all events. Methods are called from several threads."""

    def plan(self, total: int, known: int, torn: bool) -> None:
        """Report the totals: all runs, and those already in the ledger; `torn`: its last line was incomplete."""

    def compile(self, done: int, count: int) -> None:
        """Report kernels compiled before the runs: `done` of `count`; called twenty times per second."""

    def begin(self, job: Job) -> None:
        """Report the start of a run."""

    def progress(self, job: Job, point: Point) -> None:
        """Report the progress of a run."""

    def end(self, job: Job) -> None:
        """Report that a run ended or was stopped."""

    def tick(self, done: int) -> None:
        """Report the number of runs that have ended; called ten times per second."""


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
    """Return the records of all jobs, or once `should_stop` is true, of those that have ended.

    Parameters
    ----------
    in_flight
        Maximum number of submitted jobs; None submits all at once.
    on_record
        Called with every record, in this thread, in the order in which runs end.
    stop_elsewhere
        Kills the processes with a tag on other machines.
    """
    found: dict[Key, Record] = {}
    waiting = deque((job, 1) for job in jobs)
    running: dict[Future[Record], tuple[Job, int, float]] = {}
    begun: set[Key] = set()
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
                except RuntimeError as error:  # such as BrokenExecutor: all workers are gone
                    keep(job, lost_record(job, f"no worker accepts it: {error}"))
            if not local:
                _report_beginnings(running, begun, observer)
            ended, _ = wait(running, timeout=TICK, return_when=FIRST_COMPLETED)
            for future in sorted(ended, key=lambda future: running[future][2]):
                job, attempt, born = running.pop(future)
                if not local and job.key in begun:
                    observer.end(job)
                try:
                    record = future.result()
                except StoppedError:
                    continue
                except (Exception, CancelledError) as error:  # noqa: BLE001  of the worker; errors of a run are in its record
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
        for tag in sorted({job.tag.partition("/")[0] for job, _, _ in running.values()}):
            kill_marked(tag)
            if stop_elsewhere is not None:
                stop_elsewhere(tag)
        if local:
            wait(running)
    return found


def _watched_run(job: Job, observer: Observer, should_stop: Callable[[], bool]) -> Record:
    """Run the job, report its events to the observer, and return its record."""
    if should_stop():
        raise StoppedError
    observer.begin(job)
    try:
        return run_job(job, lambda point: observer.progress(job, point), should_stop)
    finally:
        observer.end(job)


def _report_beginnings(
    running: dict[Future[Record], tuple[Job, int, float]], begun: set[Key], observer: Observer
) -> None:
    """Report runs that have started on other machines."""
    for future, (job, _, _) in running.items():
        if job.key not in begun and future.running():
            begun.add(job.key)
            observer.begin(job)
