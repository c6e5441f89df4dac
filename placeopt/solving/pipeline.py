"""From a problem to a verified result: check, reduce by passes, solve, restore, re-time, verify, bound."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from placeopt.bounding.quick import Bound, best_bound, prove_infeasible
from placeopt.errors import InternalError, UnsupportedError, UsageError, listing
from placeopt.kernels import compilation, hurried
from placeopt.model.metrics import device_uses
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.passes import EXACT_PASSES, Chain, Pass, apply_passes, find_pass, pass_text
from placeopt.solver import Announcer, Answer, Options, Progress, Solver, Termination, unsupported
from placeopt.solver.registry import find_solver, solvers_for
from placeopt.solving.crosscheck import Judgement, Run, check_infeasible, check_values, restored
from placeopt.solving.result import Result, WallTime
from placeopt.solving.settings import checked, checked_initial
from placeopt.solving.settings import make_options as make_options
from placeopt.solving.settings import read_settings as read_settings

LEAST = 1e-3
"""Seconds that a solver is given at least, however long the passes took."""


def solve(
    problem: Problem,
    solver: str = "heft",
    *,
    time_limit: float | None = None,
    gap_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    initial: Schedule | str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    passes: Sequence[str | Pass] | None = None,
    bound_time: float | None = None,
    strict: bool = False,
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
        A schedule to start from, or the name of a solver that makes one first, in at most half of the time limit.
    on_progress
        Called with every new incumbent or bound, perhaps from another thread, one call at a time. Times and bounds
        never fall and objectives never rise from call to call. What it raises ends the run.
    should_stop
        Asked now and then; once true, the solver stops with the best it holds.
    passes
        Passes that make the problem smaller for the solver, in order: names, as `placeopt.passes` lists them, with
        settings after a colon (`celeritas-fusion:range=100`), or objects. None: the exact ones for an exact solver,
        none for others.
    bound_time
        Seconds for better lower bounds once the solver is done. Whatever searches within a time limit, with two workers
        or more, has them proved beside it in any case, by a thread of their own (`placeopt.bounding.bound_prover`).
    strict
        A heuristic that overfills devices for want of anything better (`celeritas`, `order-place`) fails instead.
    **settings
        Settings of the solver's own.

    Raises
    ------
    UsageError
        If an argument makes no sense, the solver has no such setting, or there is no such pass.
    UnsupportedError
        If the solver cannot handle a property of this problem; names solvers that can.
    InternalError
        If a claim contradicts a verified schedule (`placeopt.solving.crosscheck`); carries a dump that reproduces it.
    """
    if not isinstance(problem, Problem):
        raise UsageError(f"solve takes a Problem, got {type(problem).__name__}; placeopt.load makes one from a file")
    begun = reducing = time.monotonic()
    found = find_solver(solver)
    chosen = read_settings(found, settings)
    chosen_passes = _passes((EXACT_PASSES if found.info.exact else ()) if passes is None else passes)
    names = tuple(map(pass_text, chosen_passes))
    seconds = checked("bound_time", bound_time, positive=True)
    heard: list[Progress] = []

    def hear(progress: Progress) -> None:
        heard.append(progress)
        if on_progress is not None:
            on_progress(progress)

    options = make_options(
        time_limit=time_limit,
        nominal_limit=time_limit,
        gap_limit=gap_limit,
        seed=seed,
        workers=workers,
        initial=None if isinstance(initial, str) else checked_initial(problem, initial),
        strict=strict,
        on_progress=Announcer(hear),
        should_stop=should_stop or (lambda: False),
    )
    missing = unsupported(found.info, problem)
    if missing is not None:
        able = listing(solvers_for(problem), 20)
        raise UnsupportedError(f"{solver} does not support {missing}; solvers that support this problem: {able}")
    if isinstance(initial, str):  # only now: a refusal must not cost the time of a solver
        options = _started(problem, initial, options)
        reducing = time.monotonic()

    compiling = compilation.seconds()
    run = Run(problem, solver, chosen, options, names, seconds, _versions())
    with _hurried(options):
        proof = prove_infeasible(problem)
        chain = apply_passes(problem, chosen_passes) if proof is None else Chain(problem)
        if proof is None and chain.steps and chain.exact:
            proof = prove_infeasible(chain.problem)
        if proof is None:
            answer = _answer(run, found, chain, time.monotonic() - reducing)
        else:
            answer = Answer(Termination.INFEASIBLE, message=proof.reason)
    solved = time.monotonic()
    compiling = compilation.seconds() - compiling
    ended_by_clock = answer.termination in (Termination.TIME_LIMIT, Termination.INTERRUPTED)
    if not answer.varies_by and (ended_by_clock or (compiling > 0 and found.info.anytime)):
        answer = replace(answer, varies_by="clock")
    judgement: Judgement = (None, None) if answer.schedule is None else restored(run, chain, answer.schedule)
    verified = time.monotonic()
    schedule, report = judgement
    answer = _for_the_original(answer, chain)
    if answer.termination is Termination.INFEASIBLE:
        check_infeasible(run, "a quick proof" if proof is not None else solver, schedule)
    values = None if report is None else report.objective
    known = values[0] if values is not None and report is not None and report.feasible else None
    judged = time.monotonic()
    with _hurried(options):
        best = _best_of(run, answer, chain, known)
    bounded = time.monotonic() - judged
    bound, source = (None, None) if best is None else (best.value, best.name)
    check_values(run, answer, bound, source, judgement)
    return Result(
        problem=problem,
        solver=solver,
        termination=answer.termination,
        schedule=schedule,
        feasible=None if report is None else report.feasible,
        violations=() if report is None else report.violations,
        values=values,
        bound=bound,
        bound_source=source,
        makespan=None if report is None else report.makespan,
        seed=seed,
        settings=chosen.model_dump(mode="json"),
        message=answer.message,
        stats=answer.stats,
        wall_time=WallTime(solve=solved - begun, compiling=compiling, verify=verified - solved, bound=bounded),
        versions=run.versions,
        devices=() if schedule is None or values is None else device_uses(problem, schedule),
        passes=chain.applied,
        progress=tuple(heard) if chain.exact else (),
        varies_by=answer.varies_by,
    )


def _hurried(options: Options) -> AbstractContextManager[None]:
    """Quick bounds wait for no kernel where there is a time limit, else until the solve is to stop."""
    return hurried(lambda: options.time_limit is not None or options.should_stop())


def _started(problem: Problem, solver: str, options: Options) -> Options:
    """The options with the schedule of a solver to start from, and the time that it leaves.

    A problem that is proved infeasible has no schedule to start from.

    Raises
    ------
    UsageError
        If the solver finds none.
    """
    begun, limit = time.monotonic(), options.time_limit
    found = solve(
        problem,
        solver,
        time_limit=None if limit is None else limit / 2,
        seed=options.seed,
        workers=options.workers,
        should_stop=options.should_stop,
    )
    if found.schedule is None and found.termination is not Termination.INFEASIBLE:
        why = f": {found.message}" if found.message else ""
        raise UsageError(f"initial: {solver} found no schedule to start from{why}; expected another solver, or a plan")
    left = None if limit is None else max(limit - (time.monotonic() - begun), LEAST)
    return replace(options, initial=found.schedule, time_limit=left, nominal_limit=None if limit is None else limit / 2)


def _passes(wanted: Sequence[str | Pass] | str | Pass) -> tuple[Pass, ...]:
    """The passes asked for, all of which exist; one of them may come without a list."""
    if isinstance(wanted, (str, Pass)):
        return (find_pass(wanted),)
    if not isinstance(wanted, Iterable):
        raise UsageError(f"passes is {wanted!r}; expected a list of passes or of their names")
    return tuple(map(find_pass, wanted))


def _answer(run: Run, solver: Solver, chain: Chain, spent: float) -> Answer:
    """The solver's answer to the reduced problem, with the best bound proved beside it.

    What the passes took, `spent` seconds, is part of the time limit.
    """
    options = run.options
    if chain.steps:
        initial = None if options.initial is None else chain.project(options.initial)
        limit = None if options.time_limit is None else max(options.time_limit - spent, LEAST)
        options = replace(options, initial=initial, time_limit=limit)
    # A prover stops the solver at some moment of the clock: not where the same answer is wanted every time.
    repeatable = options.workers == 1 or getattr(run.settings, "deterministic", False)
    try:
        if not solver.info.anytime or solver.info.bounding or repeatable or not chain.exact:
            return solver.solve(chain.problem, options, run.settings)
        from placeopt.bounding.bound_prover import BoundProver

        with BoundProver(chain.problem, options) as prover:
            answer = solver.solve(chain.problem, prover.options, run.settings)
        return prover.with_bound(answer)
    except InternalError as error:
        raise run.disagreement(str(error)) from error


def _for_the_original(answer: Answer, chain: Chain) -> Answer:
    """What the answer proves of the original problem: behind passes that may lose the optimum, nothing."""
    if chain.exact:
        return answer
    lost = f"{listing(chain.inexact)} may lose the optimum: what was proved of the reduced problem does not count"
    message = f"{answer.message}; {lost}" if answer.message else lost
    terminations = {Termination.OPTIMAL: Termination.COMPLETED, Termination.INFEASIBLE: Termination.FAILED}
    termination = terminations.get(answer.termination, answer.termination)
    if answer.bound is None and termination is answer.termination:
        return answer
    return replace(answer, termination=termination, bound=None, message=message)


def _best_of(run: Run, answer: Answer, chain: Chain, known: Value | None) -> Bound | None:
    """The best proven bound, named by who proved it; an infeasible problem has none.

    `known` is the value of a feasible schedule.
    """
    if answer.termination is Termination.INFEASIBLE:
        return None
    options, problem = run.options, chain.problem if chain.exact else run.problem
    found = [best_bound(run.problem)]
    if answer.bound is not None:
        found.append(Bound(answer.bound_source or run.solver, answer.bound, ""))
    if run.bound_time is not None and (known is None or max(bound.value for bound in found) < known):
        from placeopt.bounding.portfolio import bounds

        found += bounds(
            problem,
            time_limit=run.bound_time,
            workers=options.workers,
            known=known,
            should_stop=options.should_stop,
        )
    return max(found, key=lambda bound: bound.value)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("placeopt", "numpy", "ortools"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
