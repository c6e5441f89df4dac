"""Solve problems in the slots of a pool."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from importlib import metadata

from placeopt.model.packing import pack, unpack
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Answer, Options
from placeopt.solver.cluster import abandoned
from placeopt.solver.pool import Pool

Solve = Callable[[Problem, Options], Answer]
"""Solves a problem. A pool needs one that can be pickled, such as a function of a module or a `partial` of it."""


def submitted(pool: Pool, solve: Solve, problem: Problem | bytes, options: Options) -> Future[Answer]:
    """Submit a problem, which may be packed.

    Callbacks of the options stay on this machine: no progress is reported. A job on a cluster ends soon after its
    future is cancelled.
    """
    packed = problem if isinstance(problem, bytes) else pack(problem)
    start = options.initial
    numbers = options.time_limit, options.nominal_limit, options.seed, options.workers, options.gap_limit
    return pool.submit(_solved, solve, packed, numbers, start, _version())


class VersionError(Exception):
    """A worker has another version of placeopt, whose proofs may not hold for this one."""


def _solved(
    solve: Solve,
    packed: bytes,
    numbers: tuple[float | None, float | None, int, int, float | None],
    initial: Schedule | None,
    version: str,
) -> Answer:
    """Solve a packed problem; runs in a slot."""
    if version != _version():
        raise VersionError(f"placeopt {_version()} on the worker, {version} here")
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
    return solve(unpack(packed), options)


def _version() -> str:
    """Return the version of placeopt; empty for a checkout that is not installed."""
    try:
        return metadata.version("placeopt")
    except metadata.PackageNotFoundError:
        return ""
