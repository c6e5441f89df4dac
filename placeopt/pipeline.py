"""From a problem to a verified result: check, solve, re-time, verify, bound."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import ValidationError

from placeopt.errors import InternalError, UnsupportedError, UsageError, listing, suggestion
from placeopt.ir import Problem
from placeopt.lowerbounds import Bound, Infeasibility, best_bound, prove_infeasible
from placeopt.objective import Value
from placeopt.registry import find_solver, solvers_for
from placeopt.result import Result, WallTime, device_uses
from placeopt.schedule import Schedule
from placeopt.simulation import retime
from placeopt.solver import Answer, Options, Progress, Settings, Solver, Termination, unsupported
from placeopt.verifier import Report, verify


def solve(
    problem: Problem,
    solver: str = "heft",
    *,
    time_limit: float | None = None,
    gap_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    initial: Schedule | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    **settings: Any,
) -> Result:
    """The verified result of one solver on one problem.

    Parameters
    ----------
    solver
        Name of an installed solver; `placeopt.solvers()` lists them.
    time_limit
        Seconds; None for no limit.
    gap_limit
        Stop once the gap is proved to be at most this.
    seed
        Same seed with one worker, same answer.
    workers
        Threads that the solver may use; all cores unless given.
    initial
        A schedule to start from.
    on_progress
        Called with every new incumbent or bound, perhaps from another thread.
    should_stop
        Asked now and then; once true, the solver stops with the best it holds.
    **settings
        Settings of the solver's own.

    Raises
    ------
    UsageError
        If an argument makes no sense or the solver has no such setting.
    UnsupportedError
        If the solver cannot handle a property of this problem; names solvers that can.
    InternalError
        If a proven bound contradicts a verified schedule.
    """
    if not isinstance(problem, Problem):
        raise UsageError(f"solve takes a Problem, got {type(problem).__name__}; placeopt.load makes one from a file")
    found = find_solver(solver)
    chosen = read_settings(found, settings)
    options = make_options(
        time_limit=time_limit,
        gap_limit=gap_limit,
        seed=seed,
        workers=workers,
        initial=_checked_initial(problem, initial),
        on_progress=on_progress,
        should_stop=should_stop or (lambda: False),
    )
    missing = unsupported(found.info, problem)
    if missing is not None:
        able = listing(solvers_for(problem), 20)
        raise UnsupportedError(f"{solver} does not support {missing}; solvers that support this problem: {able}")

    begun = time.monotonic()
    proof = prove_infeasible(problem)
    if proof is None:
        answer = found.solve(problem, options, chosen)
    else:
        answer = Answer(Termination.INFEASIBLE, message=proof.reason)
    solved = time.monotonic()
    schedule, report = _judged(problem, answer.schedule)
    verified = time.monotonic()
    feasible = None if report is None else report.feasible
    values = None if report is None else report.objective
    bound, source = _best_of(answer, solver, problem, proof)
    if feasible and values is not None and bound is not None and bound > values[0]:
        raise InternalError(
            f"{source} claims the bound {bound}, and the verifier accepts a schedule with {values[0]} "
            f"(problem {problem.name or 'without a name'}, fingerprint {problem.fingerprint()}, solver {solver}, "
            f"seed {seed}); please report this with the problem"
        )
    if feasible and values is not None and answer.termination is Termination.OPTIMAL and answer.bound != values[0]:
        raise InternalError(
            f"{solver} claims to be optimal with the bound {answer.bound}, and the verifier finds {values[0]} "
            f"(problem {problem.name or 'without a name'}, fingerprint {problem.fingerprint()}, seed {seed}); "
            "please report this with the problem"
        )
    return Result(
        problem=problem,
        solver=solver,
        termination=answer.termination,
        schedule=schedule,
        feasible=feasible,
        violations=() if report is None else report.violations,
        values=values,
        bound=bound,
        bound_source=source,
        makespan=None if report is None else report.makespan,
        seed=seed,
        settings=chosen.model_dump(mode="json"),
        message=answer.message,
        stats=answer.stats,
        wall_time=WallTime(solve=solved - begun, verify=verified - solved),
        versions=_versions(),
        devices=() if schedule is None or values is None else device_uses(problem, schedule),
    )


def make_options(
    *,
    time_limit: float | None = None,
    gap_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    **rest: Any,
) -> Options:
    """Options with their numbers checked; see `solve`.

    Raises
    ------
    UsageError
        If a number makes no sense.
    """
    return Options(
        time_limit=_checked("time_limit", time_limit, positive=True),
        gap_limit=_checked("gap_limit", gap_limit),
        seed=_whole("seed", seed, 0),
        workers=_whole("workers", workers if workers is not None else os.cpu_count() or 1, 1, most=1000),
        **rest,
    )


def read_settings(solver: Solver, values: Mapping[str, Any]) -> Settings:
    """A solver's settings, checked; values may be text, as a command line has them.

    Raises
    ------
    UsageError
        For an unknown setting or a value of the wrong kind; lists every one.
    """
    fields = solver.settings_type.model_fields
    try:
        return solver.settings_type.model_validate(dict(values))
    except ValidationError as error:
        problems = []
        for detail in error.errors(include_url=False):
            name = str(detail["loc"][0]) if detail["loc"] else ""
            if detail["type"] == "extra_forbidden":
                hint = suggestion(name, fields) or f"; it has {listing(list(fields))}"
                problems.append(f'{solver.name} has no setting "{name}"{hint}')
            else:
                problems.append(f"setting {name} = {detail['input']}: {detail['msg'].lower()}")
        raise UsageError("\n".join(problems)) from None


def _judged(problem: Problem, schedule: Schedule | None) -> tuple[Schedule | None, Report | None]:
    """The schedule re-timed to its earliest starts, and what the verifier says.

    Starting earlier can make more memory live at a time under the `peak` model; where that breaks a capacity
    or makes the objective worse, the solver's own times stand.
    """
    if schedule is None:
        return None, None
    own = verify(problem, schedule)
    if own.objective is None:  # a task without a device that may run it: nothing to re-time
        return schedule, own
    earliest = retime(problem, schedule)
    report = verify(problem, earliest)
    if own.feasible and (not report.feasible or (report.objective or ()) > own.objective):
        return schedule, own
    return earliest, report


def _best_of(
    answer: Answer, solver: str, problem: Problem, proof: Infeasibility | None
) -> tuple[Value | None, str | None]:
    """The best proven bound and who proved it; an infeasible problem has none."""
    if proof is not None or answer.termination is Termination.INFEASIBLE:
        return None, None
    general: Bound = best_bound(problem)
    if answer.bound is not None and answer.bound > general.value:
        return answer.bound, solver
    return general.value, general.name


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("placeopt", "numpy", "ortools"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _checked(name: str, value: float | None, *, positive: bool = False) -> float | None:
    if value is None:
        return None
    wanted = "positive" if positive else "not negative"
    sound = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if not sound or not (value > 0 if positive else value >= 0) or value == float("inf"):
        raise UsageError(f"{name} is {value}; expected a finite number that is {wanted}")
    return float(value)


def _whole(name: str, value: int, least: int, most: int = 2**31 - 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"{name} is {value}; expected a whole number from {least} to {most}")
    return value


def _checked_initial(problem: Problem, initial: Schedule | None) -> Schedule | None:
    if initial is None:
        return None
    if len(initial.device) != problem.n_tasks or len(initial.start) != problem.n_tasks:
        raise UsageError(f"the initial schedule has {len(initial.device)} tasks, the problem has {problem.n_tasks}")
    return initial
