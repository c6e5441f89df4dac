"""Compare solvers on problems: from names and paths to a comparison."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

from placeopt.bounding.quick import Bound, best_bound
from placeopt.errors import UsageError
from placeopt.io.files import StrPath
from placeopt.model.arrays import checked_number
from placeopt.model.problem import Problem
from placeopt.model.versions import version_of
from placeopt.orchestration.settings import make_options
from placeopt.protocol.cluster import connected
from placeopt.protocol.connection import CONNECTING
from placeopt.protocol.remote import pack
from placeopt.studies.comparison.execution import Observer, execute
from placeopt.studies.comparison.jobs import Choice, Job, read_choices, read_problems
from placeopt.studies.comparison.ledger import Ledger
from placeopt.studies.comparison.records import Key, Record
from placeopt.studies.comparison.result import Comparison
from placeopt.studies.comparison.supervisor import kill_marked

TIME_LIMIT = 30.0
"""Default time limit of a run, in seconds."""

GRACE = 10.0
"""Default time beyond the limit after which a run is killed, in seconds; it covers verification and bounds."""

MOST = 1000
"""Maximum number of parallel runs, threads and seeds."""


def compare(
    problems: Problem | StrPath | Sequence[Problem | StrPath],
    solvers: str | Sequence[Choice] = "all",
    *,
    time_limit: float | None = TIME_LIMIT,
    seeds: int | Sequence[int] = 1,
    workers: int | None = None,
    threads: int = 1,
    grace: float = GRACE,
    certify: float | None = None,
    executor: Executor | None = None,
    dask: str | None = None,
    connect_limit: float = CONNECTING,
    ledger: StrPath | None = None,
    resume: bool = False,
    observer: Observer | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Comparison:
    """Run every solver on every problem, each run in a separate process, and compare the results.

    A run that crashes, hangs, or makes a false claim affects no other run; its record states what happened. A solver
    that does not support a problem is recorded as refused.

    Parameters
    ----------
    problems
        Problems, or paths of problem files.
    solvers
        Names, with settings after a colon (`celeritas:range=100`) or as pairs of a name and settings; "all" means every
        installed solver.
    time_limit
        Seconds per run, also for heuristics that have no limit of their own. None for no limit: then nothing ends a run
        that hangs.
    seeds
        The number of seeds 0, 1, ..., or the seeds.
    workers
        Number of parallel runs; by default cores / threads.
    threads
        Threads that a solver may use. With one thread, the same seed gives the same answer, except from solvers that
        are stopped by the clock.
    grace
        Seconds after the limit at which a run is killed.
    certify
        Seconds that each run may take after its end to prove its bound, or that no schedule exists, by a certificate,
        which is checked (`placeopt.check_certificate`). None: no certificates.
    executor
        Runs the jobs instead of threads of this process; it is not shut down.
    dask
        Address of the scheduler of a Dask cluster that runs the jobs instead. If the cluster is lost, the finished runs
        are returned, and a note says why.
    connect_limit
        Seconds within which the scheduler must answer and have a worker. Later, a lost connection may come back within
        the same time.
    ledger
        A file to which a line is appended when a run ends (`placeopt.studies.comparison.ledger`).
    resume
        Continue with the ledger: run only what it has no record of, and lost runs.
    observer
        Receives the events of the comparison.
    should_stop
        Called regularly; once it returns true, running processes are killed, and the finished runs are returned.

    Raises
    ------
    DocumentError
        If a problem file is wrong.
    UsageError
        If an argument is invalid, or the ledger cannot be written.
    MissingExtraError
        If `dask` is given and Dask is not installed.
    """
    options = make_options(time_limit=time_limit, workers=checked_count("threads", threads))
    grace = checked_number("grace", grace) or 0.0
    certify = checked_number("certify", certify, positive=True)
    chosen_seeds = _seeds(seeds)
    slots = max((os.cpu_count() or 1) // threads, 1) if workers is None else checked_count("workers", workers)
    if sum(each is not None for each in (executor, dask, workers)) > 1:
        raise UsageError("workers, executor and dask exclude each other; expected at most one")
    if resume and ledger is None:
        raise UsageError(
            "--resume needs the results of the earlier comparison: add --out FILE (in Python, resume=True needs "
            "ledger=FILE)"
        )
    choices = read_choices(solvers)
    read = read_problems(problems)
    tag = uuid.uuid4().hex
    jobs = [
        Job(
            problem=problem.name,
            file=file,
            fingerprint=fingerprint,
            solver=solver,
            settings=settings,
            seed=seed,
            time_limit=options.time_limit,
            grace=grace,
            certify=certify,
            threads=options.workers,
            place=(row, number),
            tag=f"{tag}/{fingerprint}/{number}/{seed}",
            version=version_of(),
            packed=packed,
        )
        for row, (problem, file, fingerprint, packed) in enumerate(
            (problem, file, problem.fingerprint(), pack(problem)) for problem, file, _ in read
        )
        for number, (solver, settings) in enumerate(choices)
        for seed in chosen_seeds
    ]
    made = {job.fingerprint: read[job.place[0]].problem for job in jobs}

    @cache
    def floor(fingerprint: str) -> Bound | None:
        return best_bound(made[fingerprint]) if fingerprint in made else None

    with ExitStack() as stack:
        book = None if ledger is None else stack.enter_context(Ledger(ledger, resume=resume, floor=floor))
        known = {} if book is None else _finished(book.records, jobs)
        missing = [job for job in jobs if job.key not in known]
        observer = observer or Observer()
        observer.plan(len(jobs), len(known), book is not None and book.dropped > 0)
        cluster = None
        if dask is not None and missing:
            cluster = stack.enter_context(connected(dask, connect_limit, should_stop))
        lost = (lambda: None) if cluster is None else cluster.lost
        if executor is None:
            executor = stack.enter_context(ThreadPoolExecutor(slots)) if cluster is None else cluster.executor
        found = execute(
            missing,
            executor,
            in_flight=None if cluster is None else cluster.in_flight,
            on_records=None if book is None else book.append,
            observer=observer,
            should_stop=lambda: should_stop() or lost() is not None,
            stop_elsewhere=None if cluster is None else partial(cluster.kill, kill_marked),
            keep=None if cluster is None else cluster.keep,
        )
        why = lost() if len(found) < len(missing) else None
    records = known | found
    return Comparison(
        tuple(records[job.key] for job in jobs if job.key in records),
        expected=len(jobs),
        notes=(*(() if book is None else book.notes), *(() if why is None else (why,))),
        best_known={job.fingerprint: stated for job in jobs if (stated := read[job.place[0]].best_known) is not None},
    )


def checked_count(name: str, value: int) -> int:
    """Return a number of parallel runs, threads or seeds; one out of range is a UsageError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise UsageError(f"{name} is {value}; expected a whole number from 1 to {MOST:,}")
    return value


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """Return the given seeds, or the given number of seeds 0, 1, ..."""
    if isinstance(seeds, int):
        return tuple(range(checked_count("seeds", seeds)))
    found = tuple(make_options(seed=seed).seed for seed in seeds)
    if not found or len(set(found)) < len(found):
        raise UsageError(f"seeds is {list(found)}; expected at least one, without repetition")
    return found


def _finished(records: Iterable[Record], jobs: Iterable[Job]) -> dict[Key, Record]:
    """Return the records of jobs that are not run again, with their present names and places."""
    wanted = {job.key: job for job in jobs}
    found: dict[Key, Record] = {}
    for record in records:
        job = wanted.get(record.key)
        if job is not None and record.status != "lost":
            found[job.key] = replace(record, problem=job.problem, file=job.file, place=job.place)
    return found
