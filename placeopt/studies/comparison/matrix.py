"""Every solver on every problem: from names and paths to a comparison."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import cache

from placeopt.bounding.quick import Bound, best_bound
from placeopt.errors import UsageError
from placeopt.io.files import StrPath
from placeopt.model.arrays import checked_number
from placeopt.model.problem import Problem
from placeopt.solver.registry import find_solver
from placeopt.solving.settings import make_options
from placeopt.studies.comparison.cluster import connected
from placeopt.studies.comparison.execution import Observer, Silence, execute
from placeopt.studies.comparison.jobs import Choice, Job, pack, read_choices, read_problems
from placeopt.studies.comparison.ledger import Ledger
from placeopt.studies.comparison.records import Key, Record
from placeopt.studies.comparison.result import Comparison

TIME_LIMIT = 30.0
"""Seconds that a run has unless told otherwise."""

GRACE = 10.0
"""Seconds that a run may take beyond its limit: to stop, and to have its schedule verified and bounded."""

LARGE = 1000
"""Tasks and edges, times devices, of problems for which kernels are compiled before the runs."""

MOST = 1000
"""Runs at a time, threads and seeds."""


def compare(
    problems: Problem | StrPath | Sequence[Problem | StrPath],
    solvers: str | Sequence[Choice] = "all",
    *,
    time_limit: float | None = TIME_LIMIT,
    seeds: int | Sequence[int] = 1,
    workers: int | None = None,
    threads: int = 1,
    grace: float = GRACE,
    executor: Executor | None = None,
    dask: str | None = None,
    ledger: StrPath | None = None,
    resume: bool = False,
    warm: bool = False,
    observer: Observer | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Comparison:
    """Run every solver on every problem, each time in a process of its own, and compare.

    A run that crashes, hangs, or claims what the verifier refutes costs nothing but itself: its record says so. A
    solver that does not support a problem is recorded as refused.

    Parameters ---------- problems Problems, or paths of problem files. solvers Names, with settings after a colon
    (`celeritas:range=100`) or as pairs of a name and settings; "all" for every installed one. time_limit Seconds for a
    run; also for a heuristic that knows of no limit. None for none: a run that hangs then hangs. seeds How many seeds,
    from 0 on, or which. workers Runs at a time; as many as there are cores for their threads, unless given. threads
    That a solver may use. With one, the same seed gives the same answer, but of solvers that a clock stops. grace
    Seconds after the limit at which a run is killed. executor Where the runs are handed out, instead of to threads of
    this process; not shut down. dask Address of the scheduler of a Dask cluster that runs them, instead. ledger A file
    that gets a line for every run as it ends (`placeopt.studies.comparison.ledger`). resume Go on with what the ledger
    holds: only runs that it has no record of are run, and those that were lost. warm Compile the kernels that the runs
    call before the first run, once on a machine (`placeopt.solving.warming`). Else the first runs use plain Python
    meanwhile. Third-party solvers and other machines are left out. observer Told of what happens. should_stop Asked now
    and then; once true, the running are killed, and the comparison has what there is.

    Raises
    ------
    DocumentError
        If a problem file is wrong.
    UsageError
        If an argument makes no sense, or the ledger cannot be written.
    MissingExtraError
        If Dask is wanted and not installed.
    """
    options = make_options(time_limit=time_limit, workers=whole("threads", threads))
    grace = checked_number("grace", grace) or 0.0
    chosen_seeds = _seeds(seeds)
    slots = max((os.cpu_count() or 1) // threads, 1) if workers is None else whole("workers", workers)
    if sum(each is not None for each in (executor, dask, workers)) > 1:
        raise UsageError("workers, executor and dask do not go together: each says where runs are handed out")
    if resume and ledger is None:
        raise UsageError(
            "--resume does not say with what to go on: add --out FILE, the file that the comparison was written to "
            "(in Python resume=True with ledger=FILE)"
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
            threads=options.workers,
            place=(row, number),
            tag=f"{tag}/{fingerprint}/{number}/{seed}",
            packed=packed,
        )
        for row, (problem, file, fingerprint, packed) in enumerate(
            (problem, file, problem.fingerprint(), pack(problem)) for problem, file in read
        )
        for number, (solver, settings) in enumerate(choices)
        for seed in chosen_seeds
    ]
    made = {job.fingerprint: read[job.place[0]][0] for job in jobs}

    @cache
    def floor(fingerprint: str) -> Bound | None:
        return best_bound(made[fingerprint]) if fingerprint in made else None

    with ExitStack() as stack:
        book = None if ledger is None else stack.enter_context(Ledger(ledger, resume=resume, floor=floor))
        known = {} if book is None else _finished(book.records, jobs)
        missing = [job for job in jobs if job.key not in known]
        observer = observer or Silence()
        observer.plan(len(jobs), len(known), book is not None and book.dropped > 0)
        if warm and missing:
            _warm([job.solver for job in missing], [problem for problem, _ in read], observer, should_stop)
        cluster = stack.enter_context(connected(dask)) if dask is not None and missing else None
        if executor is None:
            executor = stack.enter_context(ThreadPoolExecutor(slots)) if cluster is None else cluster.executor
        found = execute(
            missing,
            executor,
            in_flight=None if cluster is None else cluster.in_flight,
            on_record=None if book is None else book.append,
            observer=observer,
            should_stop=should_stop,
            stop_elsewhere=None if cluster is None else cluster.stop,
        )
    records = known | found
    return Comparison(
        tuple(records[job.key] for job in jobs if job.key in records),
        expected=len(jobs),
        notes=() if book is None else book.notes,
    )


def _warm(
    solvers: Sequence[str], problems: Sequence[Problem], observer: Observer, should_stop: Callable[[], bool]
) -> None:
    """Compile the kernels of our solvers, where a problem is so large that they call them."""
    size = max((problem.n_tasks + problem.n_edges) * problem.n_devices for problem in problems)
    ours = [
        name for name in dict.fromkeys(solvers) if type(find_solver(name)).__module__.startswith("placeopt_solvers.")
    ]
    if size >= LARGE and ours:
        from placeopt.solving.warming import warm

        warm(ours, around=False, on_progress=observer.compile, should_stop=should_stop)


def whole(name: str, value: int) -> int:
    """A number of runs at a time, threads or seeds, checked.

    Raises
    ------
    UsageError
        If it is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise UsageError(f"{name} is {value}; expected a whole number from 1 to {MOST:,}")
    return value


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds: the first few, or those given."""
    if isinstance(seeds, int):
        return tuple(range(whole("seeds", seeds)))
    found = tuple(make_options(seed=seed).seed for seed in seeds)
    if not found or len(set(found)) < len(found):
        raise UsageError(f"seeds is {list(found)}; expected at least one, each once")
    return found


def _finished(records: Iterable[Record], jobs: Iterable[Job]) -> dict[Key, Record]:
    """The records of jobs that need no repeating, named as they are named now."""
    wanted = {job.key: job for job in jobs}
    found: dict[Key, Record] = {}
    for record in records:
        job = wanted.get(record.key)
        if job is not None and record.status != "lost":
            found[job.key] = replace(record, problem=job.problem, file=job.file, place=job.place)
    return found
