"""Check the arguments of `solve`, all of them before anything is solved, and keep them for reports of disagreements."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.bounding.quick import Bound
from placeopt.bounding.quick.earlier import earlier_bound
from placeopt.errors import InternalError, SolverError, UnsupportedError, UsageError, addressed, listing
from placeopt.io.plan import plan_document
from placeopt.model.arrays import checked_call, checked_number, checked_share
from placeopt.model.documents import problem_document
from placeopt.model.problem import Problem, check_problem
from placeopt.model.ranges import check_ranges
from placeopt.model.schedule import Schedule, check_schedule
from placeopt.model.versions import version_of
from placeopt.orchestration.result import Result
from placeopt.orchestration.settings import make_options, read_settings
from placeopt.passes import EXACT_PASSES, Pass, pass_text
from placeopt.passes.chain import Chain, found_passes
from placeopt.protocol import Announcer, Options, Progress, Settings, Solver
from placeopt.protocol.registry import check_supported, default_solver, find_solver, origin_of, solvers_for

CONSOLIDATING = 0.1
"""Share of the time limit that the solver leaves for consolidation."""

_ARGUMENTS = {
    "time_limit": "timeout max_time max_runtime seconds",
    "gap_limit": "gap mip_gap rel_gap",
    "seed": "random_state",
    "workers": "threads num_threads num_workers n_jobs",
    "initial": "warm_start warmstart initial_solution hint",
    "on_progress": "callback log_callback on_solution",
    "should_stop": "stop cancel",
    "passes": "presolve",
    "bound_time": "",
    "strict": "",
    "consolidate": "",
    "dask": "cluster",
    "connect_limit": "",
}
KEYWORDS = {name: meant for meant, others in _ARGUMENTS.items() for name in (meant, *others.split())}
"""Arguments of `solve` by the names that an unknown setting may have: their own, and those of other libraries."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The checked arguments of one call of `solve`."""

    problem: Problem
    solver: Solver
    settings: Settings
    options: Options
    passes: tuple[Pass, ...]
    bound_time: float | None
    consolidate: Fraction
    initial_solver: str | None
    """The solver that makes the initial schedule first."""
    progress: list[Progress]
    """Every report of the solver so far, without schedules."""
    announcer: Announcer
    """Receives the reports of the solver, and keeps its best schedule."""
    chains: list[Chain]
    """The passes that were applied, once they are: one chain."""
    since: float
    """The time of `time.monotonic` from which the time limit counts."""
    versions: Mapping[str, str]
    dask: str | None
    connect_limit: float
    earlier: Bound | None
    """The bound of the result to start from, as far as it holds for this problem."""
    reserve: float = 0.0
    """Seconds of the time limit after those of the solver, for consolidation."""

    @property
    def time_limit(self) -> float | None:
        """Seconds of the solver and of consolidation; None for no limit."""
        return None if self.options.time_limit is None else self.options.time_limit + self.reserve

    @property
    def consolidates(self) -> bool:
        """Whether the schedule of the solver is consolidated."""
        return self.consolidate > 0 and self.problem.pipeline is None and self.problem.alignment is None

    def disagreement(self, claim: str, schedule: Schedule | None = None, *, of_solver: bool = True) -> InternalError:
        """The error to raise, with a dump that reproduces the run; `schedule` refutes the claim.

        With `of_solver`, the claim is that of the solver: if it is not one of placeopt's, the error names its package.
        """
        problem, options = self.problem, self.options
        fingerprint = problem.fingerprint()
        origin = origin_of(self.solver) if of_solver else None
        message = (
            f"{claim} (problem {problem.name or 'without a name'}, fingerprint {fingerprint}, solver "
            f"{self.solver.name}, seed {options.seed}); please report this{addressed(origin)} with the problem"
        )
        run: dict[str, Any] = {
            "message": message,
            "fingerprint": fingerprint,
            "reproduce": f"placeopt solve THIS_FILE {self.arguments()}",
            "solver": self.solver.name,
            "settings": self.settings.model_dump(mode="json"),
            "seed": options.seed,
            "time_limit": self.time_limit,
            "gap_limit": options.gap_limit,
            "workers": options.workers,
            "strict": options.strict,
            "consolidate": float(self.consolidate),
            "bound_time": self.bound_time,
            "passes": list(map(pass_text, self.passes)),
            "versions": dict(self.versions),
            "plan": None if schedule is None else _plan_of_any(problem, schedule),
            "initial": None if options.initial is None else plan_document(problem, options.initial),
        }
        dump = {**problem_document(problem), "x-disagreement": run}
        return InternalError(message, dump) if origin is None else SolverError(message, dump, origin)

    def arguments(self) -> str:
        """The options of the command line for the same run, except an initial plan."""
        options = self.options
        words = ["--solver", self.solver.name, "--seed", str(options.seed), "--workers", str(options.workers)]
        words += ["--time-limit", "none" if self.time_limit is None else f"{self.time_limit:g}"]
        if options.gap_limit is not None:
            words += ["--gap", f"{options.gap_limit:g}"]
        if self.bound_time is not None:
            words += ["--bound-time", f"{self.bound_time:g}"]
        if options.strict:
            words.append("--strict")
        if self.consolidate != self.problem.consolidate:
            words += ["--consolidate", f"{float(self.consolidate):g}"]
        for key, value in self.settings.model_dump(mode="json", exclude_defaults=True).items():
            words += ["--set", f"{key}={value}"]
        for each in self.passes:
            words += ["--pass", pass_text(each)]
        return shlex.join(words if self.passes else [*words, "--no-passes"])


def prepare(
    problem: Problem,
    solver: str | Solver | None,
    *,
    initial: Schedule | Result | str | None,
    on_progress: Callable[[Progress], None] | None,
    should_stop: Callable[[], bool] | None,
    passes: Sequence[str | Pass] | None,
    bound_time: float | None,
    consolidate: float | None,
    time_limit: float | None,
    dask: str | None,
    connect_limit: float,
    settings: Mapping[str, Any],
    **options: Any,
) -> Run:
    """Check every argument of `placeopt.solve`, which documents them.

    Raises a UsageError if an argument is wrong, and an UnsupportedError if the solver does not support a property of
    the problem.
    """
    since = time.monotonic()
    check_problem("solve", problem)
    check_ranges("solve", problem)
    checked_call("on_progress", on_progress)
    checked_call("should_stop", should_stop)
    found = find_solver(default_solver(problem) if solver is None else solver)
    chosen = read_settings(found, settings, KEYWORDS)
    progress: list[Progress] = []

    def hear(report: Progress) -> None:
        report = replace(report, schedule=None)
        progress.append(report)
        if on_progress is not None:
            on_progress(report)

    announcer = Announcer(hear)
    run = Run(
        problem=problem,
        solver=found,
        settings=chosen,
        options=make_options(
            time_limit=time_limit,
            nominal_limit=time_limit,
            initial=None if isinstance(initial, str) else _initial(problem, initial),
            on_progress=announcer,
            should_stop=should_stop or (lambda: False),
            **options,
        ),
        passes=_passes(problem, found, passes),
        bound_time=checked_number("bound_time", bound_time, positive=True),
        consolidate=problem.consolidate if consolidate is None else checked_share("consolidate", consolidate),
        initial_solver=find_solver(initial).name if isinstance(initial, str) else None,
        progress=progress,
        announcer=announcer,
        chains=[],
        since=since,
        versions=_versions(),
        dask=dask,
        connect_limit=connect_limit,
        earlier=_earlier(problem, initial),
    )
    if run.consolidates and run.options.time_limit is not None:
        reserve = CONSOLIDATING * run.options.time_limit
        rest = run.options.time_limit - reserve
        run = replace(run, reserve=reserve, options=replace(run.options, time_limit=rest, nominal_limit=rest))
    if dask is not None and not found.info.distributed:
        able = listing([name for name in solvers_for(problem) if find_solver(name).info.distributed])
        raise UsageError(f"--dask: {found.name} runs on this machine only; solvers that use a cluster: {able}")
    check_supported(found, problem)
    return run


def _passes(problem: Problem, solver: Solver, passes: Sequence[str | Pass] | None) -> tuple[Pass, ...]:
    """The passes of a run; without a choice, all exact ones for an exact solver."""
    if problem.pipeline is not None:
        if passes:
            raise UnsupportedError("passes do not support the objective period: stages and replicas would get lost")
        return ()
    return found_passes((EXACT_PASSES if solver.info.exact else ()) if passes is None else passes)


def _initial(problem: Problem, initial: Schedule | Result | None) -> Schedule | None:
    """The initial schedule, checked as by `check_schedule`."""
    if isinstance(initial, Result):
        initial = schedule_for(problem, initial.problem, initial.schedule)
    if initial is None:
        return None
    if not isinstance(initial, Schedule):
        raise UsageError(
            f"initial is a {type(initial).__name__}; expected a Schedule, a Result, or the name of a solver; plans "
            "have a schedule as their `schedule`"
        )
    try:
        check_schedule("solve", problem, initial)
    except UsageError as error:
        raise UsageError(f"the initial schedule does not fit the problem: {error}") from None
    without = problem.alignment is None and initial.offsets is not None
    return replace(initial, offsets=None) if without else initial


def schedule_for(problem: Problem, before: Problem, schedule: Schedule | None) -> Schedule | None:
    """A schedule of a problem before it was changed, without transfers if these are over other edges."""
    same = all(np.array_equal(getattr(before, name), getattr(problem, name)) for name in ("edge_source", "edge_target"))
    return schedule if same or schedule is None else replace(schedule, transfers=None)


def _earlier(problem: Problem, initial: object) -> Bound | None:
    """The lower bound that follows from that of an earlier result, if any does."""
    if not isinstance(initial, Result) or initial.bound is None:
        return None
    return earlier_bound(initial.problem, initial.bound, initial.bound_source or initial.solver, problem)


def _plan_of_any(problem: Problem, schedule: Schedule) -> dict[str, Any] | None:
    """A plan of a solver's schedule; None if it names devices or edges that do not exist."""
    try:
        return plan_document(problem, schedule)
    except UsageError:
        return None


def _versions() -> dict[str, str]:
    known = {package: text for package in ("placeopt", "numpy", "ortools") if (text := version_of(package))}
    return {"python": platform.python_version(), **known}
