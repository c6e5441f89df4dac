"""Compile kernels in advance, for images, clusters and CI, and before a comparison.

Solvers run on small problems in plain Python, which records the kernels that they call and the types of the arguments.
These kernels are then compiled in separate processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.errors import PlaceoptError, UsageError
from placeopt.kernels import Kernel, compilation, recorded
from placeopt.kernels.structs import Signature
from placeopt.model.building import with_changes
from placeopt.model.problem import Objective, Problem, Term

Call = tuple[Kernel[Any, Any], Signature]

POLL = 0.05
"""Seconds between two reports of progress."""

TASKS = 16
"""Tasks of a small problem."""

WORK, LIMIT, BOUNDING = 0.3, 2.0, 10.0
"""CPU seconds of a search on a small problem; the limits of a search and of bounds in seconds."""


@dataclass(frozen=True, slots=True)
class Warmed:
    """The answer of `warm`.

    Attributes
    ----------
    kernels
        Number of kernels that are now compiled.
    failed
        The error of each other kernel, by name.
    seconds
        Wall time.
    """

    kernels: int
    failed: dict[str, str]
    seconds: float


def warm(
    solvers: Sequence[str] | None = None,
    *,
    around: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Warmed:
    """Compile the kernels of solvers, passes, bounds and simulation, unless they are in the cache.

    Parameters
    ----------
    solvers
        Names, or one name; None for all that are installed.
    around
        Whether to compile the kernels of passes, bounds and simulation, too.
    on_progress
        Called with the number of compiled kernels and the number of all kernels.
    should_stop
        Called every POLL seconds; once true, no further compilation is started.

    Raises
    ------
    UsageError
        If there is no such solver.
    """
    begun = time.monotonic()
    jobs = [
        compilation.requested(kernel, signature)
        for kernel, signature in dict.fromkeys(kernel_calls(solvers, around=around, should_stop=should_stop))
    ]
    while True:
        done = sum(job.done.is_set() for job in jobs)
        if on_progress is not None:
            on_progress(done, len(jobs))
        if done == len(jobs):
            break
        if should_stop():
            compilation.cancel(jobs)
        time.sleep(POLL)
    failed = {job.kernel.__name__: job.error for job in jobs if job.error is not None}
    return Warmed(len(jobs) - len(failed), failed, time.monotonic() - begun)


def kernel_calls(
    solvers: Sequence[str] | None = None, *, around: bool = True, should_stop: Callable[[], bool] = lambda: False
) -> list[Call]:
    """The kernels that solvers, passes, bounds and simulation call, with the signatures of the calls.

    Once `should_stop` is true, the kernels found so far.
    """
    from placeopt.solver.registry import find_solver, solver_names

    if not isinstance(solvers, Iterable | None):
        raise UsageError(f"solvers is {solvers!r}; expected names of solvers")
    names = solver_names() if solvers is None else (solvers,) if isinstance(solvers, str) else tuple(solvers)
    for name in names:
        find_solver(name)
    with recorded() as calls:
        for problem in small_problems():
            if around and problem.pipeline is None:
                _run_around(problem)
            for name in names:
                if should_stop():
                    return calls
                _run(problem, name)
            _play(problem, calls)
    return calls


def _run(problem: Problem, solver: str) -> None:
    """Solve a small problem if the solver supports it."""
    from placeopt.solver.registry import find_solver
    from placeopt.solving.pipeline import solve

    info = find_solver(solver).info
    limit = LIMIT if info.anytime or info.exact else None
    end = time.process_time() + WORK
    try:
        solve(problem, solver, time_limit=limit, workers=1, should_stop=lambda: time.process_time() > end)
    except PlaceoptError:  # it does not support the problem, or an extra is missing
        return


def _run_around(problem: Problem) -> None:
    """Run passes, bounds and simulation."""
    from placeopt.bounding.portfolio import bounds
    from placeopt.passes import PASSES, apply_passes, find_pass
    from placeopt.simulation import make_evaluator, simulate, simulate_noisy

    for name in PASSES:
        apply_passes(problem, [find_pass(name)])
    bounds(problem, time_limit=BOUNDING, workers=1)
    placement = problem.feasible.argmax(axis=1)
    simulate(problem, placement)
    simulate_noisy(problem, placement, noise=0.1, runs=1, seed=0)
    make_evaluator(problem)(placement)


def _play(problem: Problem, calls: Sequence[Call]) -> None:
    """Solve Baechi's linear program as for a large problem, which needs more kernels, if a solver used it."""
    from placeopt.bounding.sct import program_of, solution_of
    from placeopt.bounding.sct.core import reach

    if any(kernel is reach for kernel, _ in calls):
        solution_of(program_of(problem), rounds=1, small=0)


def small_problems() -> Iterator[Problem]:
    """Problems that together call every kernel.

    One has tasks of zero duration and little memory; one has ports, groups and deadlines; and one is a pipeline.
    """
    from placeopt.generate.layered_graphs import layered_problem

    plain = layered_problem(TASKS, 4, ccr=1.0, tightness=0.7)
    duration, resident, brief = plain.duration.copy(), plain.resident.copy(), slice(TASKS // 3, TASKS // 2)
    duration[brief], resident[brief] = 0, 0
    yield replace(plain, duration=duration, resident=resident)
    late = np.full(TASKS, 10 * int(plain.duration.max(axis=1).sum()), dtype=np.int64)
    ones = np.ones(TASKS, dtype=np.int64)
    yield replace(
        plain,
        contention="port",
        memory_model="peak",
        resident=ones,
        output=ones,
        capacity=np.full(plain.n_devices, TASKS, dtype=np.int64),
        release=ones,
        deadline=late,
        group=np.maximum(np.arange(TASKS) - 1, 0),
        separation=np.array([[2, 3]], dtype=np.int64),
    )
    period = Objective(((Term("period"),),))
    yield with_changes(plain, objective=period, pipeline={"segments": 1, "replicas": 2})
