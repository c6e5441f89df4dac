"""Solve problems in the slots of a pool."""

from __future__ import annotations

import pickle
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import fields

from placeopt.model.arrays import freeze
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.model.versions import version_of
from placeopt.protocol import Answer, Options
from placeopt.protocol.cluster import abandoned
from placeopt.protocol.pool import Pool, Shared

Solve = Callable[[Problem, Options], Answer]
"""Solves a problem. A pool needs one that can be pickled, such as a function of a module or a `partial` of it."""


class Parcel:
    """A packed problem. It is unpacked once in a process, for all jobs that share the parcel."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed
        self._lock = threading.Lock()
        self._problem: Problem | None = None

    def __reduce__(self) -> tuple[type[Parcel], tuple[bytes]]:
        return Parcel, (self.packed,)

    def __sizeof__(self) -> int:
        return len(self.packed)

    @property
    def problem(self) -> Problem:
        """The problem."""
        with self._lock:
            if self._problem is None:
                self._problem = unpack(self.packed)
            return self._problem


def shared_problem(pool: Pool, problem: Problem) -> Shared:
    """Send a problem to a pool for several jobs; see `Pool.share`."""
    return pool.share(Parcel, pack(problem))


def shared_schedule(pool: Pool, schedule: Schedule) -> Shared:
    """Send a schedule to a pool for several jobs that start from it."""
    return pool.share(_same, schedule)


def submitted(
    pool: Pool, solve: Solve, problem: Problem | Shared, options: Options, start: Shared | None = None
) -> Future[Answer]:
    """Submit a problem, which may be shared, as may the schedule to start from (else that of the options).

    Callbacks of the options stay on this machine: no progress is reported. A job on a cluster ends soon after its
    future is cancelled.
    """
    parcel = problem.argument if isinstance(problem, Shared) else Parcel(pack(problem))
    initial = options.initial if start is None else start.argument
    numbers = options.time_limit, options.nominal_limit, options.seed, options.workers, options.gap_limit
    return pool.submit(_solved, solve, parcel, numbers, initial, version_of())


class VersionError(Exception):
    """A worker has another version of placeopt, whose proofs may not hold for this one."""


def _same(schedule: Schedule) -> Schedule:
    return schedule


def _solved(
    solve: Solve,
    parcel: Parcel,
    numbers: tuple[float | None, float | None, int, int, float | None],
    initial: Schedule | None,
    version: str,
) -> Answer:
    """Solve the problem of a parcel; runs in a slot."""
    check_version(version)
    time_limit, nominal_limit, seed, workers, gap_limit = numbers
    options = Options(
        time_limit=time_limit,
        nominal_limit=nominal_limit,
        seed=seed,
        workers=workers,
        gap_limit=gap_limit,
        initial=initial,
        should_stop=abandoned(),
    )
    return solve(parcel.problem, options)


def check_version(wanted: str) -> None:
    """Raise a VersionError on a worker with another version of placeopt."""
    own = version_of()
    if own != wanted:
        raise VersionError(f"placeopt {own} on the worker, {wanted} here")


def pack(problem: Problem) -> bytes:
    """Convert a problem to bytes."""
    return zlib.compress(pickle.dumps(problem, protocol=pickle.HIGHEST_PROTOCOL), level=1)


def unpack(packed: bytes) -> Problem:
    """Return the packed problem; its arrays are read-only."""
    problem = pickle.loads(zlib.decompress(packed))
    assert isinstance(problem, Problem)
    freeze(*(getattr(problem, field.name) for field in fields(problem)))
    return problem
