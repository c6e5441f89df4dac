"""Solve a problem: prepare, run, check, bound, report.

prepare   check every argument, before anything is solved (`placeopt.orchestration.run`)
run       look for a quick proof of infeasibility, apply passes, call the solver, prove lower bounds in parallel
check     map the schedule back to the problem, re-time it, verify it, cross-check the solver's claims
bound     choose the best lower bound, after `bound_time` seconds for better ones
report    return a `Result`
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from placeopt import engine
from placeopt.bounding.quick import Bound, best_bound, prove_infeasible
from placeopt.errors import InternalError, PlaceoptError, SolverError, UsageError, error_text, listing
from placeopt.model.arrays import Int, checked_call, checked_number
from placeopt.model.metrics import device_uses
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.orchestration.consolidation import consolidate
from placeopt.orchestration.crosscheck import (
    check_bound,
    check_by_heuristics,
    check_claims,
    check_infeasible,
    mapped_back,
    retimed_and_verified,
)
from placeopt.orchestration.keyboard import stopped_by_keyboard
from placeopt.orchestration.result import LARGE, Result, WallTime, relative_gap, with_schedule
from placeopt.orchestration.run import Run, prepare
from placeopt.passes import Chain, Pass, apply_passes
from placeopt.protocol import Answer, Clock, Options, Progress, Solver, Termination
from placeopt.protocol.cluster import pool_at
from placeopt.protocol.connection import CONNECTING
from placeopt.protocol.registry import default_solver, find_solver, origin_of
from placeopt.verifier import Report

GRACE = 0.05
"""Seconds after the time limit in which quick bounds are still computed."""

LEAST = 1e-3
"""Seconds that a solver gets at least, even if passes or an initial solver used up the time limit."""


def solve(
    problem: Problem,
    solver: str | Solver | None = None,
    *,
    time_limit: float | None = None,
    gap_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    initial: Schedule | Result | str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    passes: Sequence[str | Pass] | None = None,
    bound_time: float | None = None,
    strict: bool = False,
    consolidate: float | None = None,
    dask: str | None = None,
    connect_limit: float = CONNECTING,
    **settings: Any,
) -> Result:
    """Solve a problem with one solver, verify the schedule and certify the gap.

    Parameters
    ----------
    solver
        Name of an installed solver, or a solver object; `placeopt.solvers()` lists the names. None: a fast heuristic,
        `heft`, or `dpl` for pipelines.
    time_limit
        Seconds; None for no limit. If the schedule is to be consolidated, the solver has nine tenths of it.
    gap_limit
        Stop once the gap is proved to be at most this: a share between 0 and 1.
    seed
        The same seed with one worker gives the same answer.
    workers
        Threads that the solver may use; all cores unless given.
    initial
        A schedule to start from, or the name of a solver that makes one first, in at most half of the time limit. The
        result of a problem with the same tasks and devices: its schedule, and its bound as far as that still holds
        (`placeopt.bounding.quick.earlier`). If they meet, within `gap_limit`, no solver runs.
    on_progress
        Called with every new incumbent or bound, possibly from another thread, one call at a time. From call to call,
        times and bounds never fall and objectives never rise. An exception that it raises ends the run.
    should_stop
        Called regularly; once it returns True, the solver stops and returns its incumbent. None: Ctrl-C in the main
        thread does the same for a search or a consolidation, unless the program handles SIGINT itself. Another Ctrl-C
        within two seconds raises KeyboardInterrupt.
    passes
        Passes that make the problem smaller for the solver, in order: names, as `placeopt passes` lists them, with
        settings after a colon (`celeritas-fusion:range=100`), or objects. None: the exact passes for an exact solver,
        no passes for others.
    bound_time
        Seconds for better lower bounds after the solver. With two workers or more, a solver that searches within a time
        limit has lower bounds proved in parallel anyway (`placeopt.proving.bound_prover`).
    strict
        Make a heuristic fail that would otherwise overfill devices as its best effort (`celeritas`, `order-place`).
    consolidate
        Share by which the result may be worse than the solver's, to use fewer devices, segments and transfers
        (`placeopt.orchestration.consolidation`); 0 changes nothing. None: what the problem states, which models
        imported from ONNX and PyTorch do.
    dask
        Address of the scheduler of a Dask cluster, tcp://host:8786: its workers solve parts of the problem. For solvers
        whose info says `distributed`. The time limit does not include the time to connect.
    connect_limit
        Seconds within which the scheduler must answer and have a worker. Later, a lost connection may come back within
        the same time.
    **settings
        Settings of the solver; `placeopt.solver_info` lists them.

    Raises
    ------
    UsageError
        If an argument is wrong, there is no such solver, setting or pass, or no cluster answers.
    MissingExtraError
        If `dask` is given and Dask is not installed.
    UnsupportedError
        If the solver does not support a property of this problem; the message names solvers that do.
    InternalError
        If a claim contradicts a verified schedule (`placeopt.orchestration.crosscheck`); carries a dump that reproduces
        it.
    SolverError
        The same of a solver that does not come with placeopt, or an exception that it raises, which is the cause.
    """
    options: dict[str, Any] = {
        "gap_limit": gap_limit,
        "seed": seed,
        "workers": workers,
        "bound_time": bound_time,
        "strict": strict,
        "consolidate": consolidate,
        "dask": dask,
        "connect_limit": connect_limit,
        "settings": settings,
    }
    reported: dict[str, Any] = {"initial": initial, "on_progress": on_progress, "passes": passes}
    if not isinstance(problem, Problem) or problem.alignment is None:
        return _solved(problem, solver, time_limit=time_limit, should_stop=should_stop, **reported, **options)
    from placeopt.orchestration.addresses import Addressing

    checked_number("time_limit", time_limit, positive=True)
    checked_call("should_stop", should_stop)
    found = find_solver(default_solver(problem) if solver is None else solver)
    with stopped_by_keyboard() as pressed:
        addressing = Addressing(problem, partial(_solved, solver=found, **options), time_limit, should_stop or pressed)
        return addressing.result(found, gap_limit, **reported)


def _solved(
    problem: Problem,
    solver: str | Solver | None,
    *,
    should_stop: Callable[[], bool] | None,
    **arguments: Any,
) -> Result:
    """Solve a problem without addresses, or with a solver that finds them; see `solve`."""
    begun = time.monotonic()
    return solve_run(prepare(problem, solver, should_stop=should_stop, **arguments), should_stop, begun)


def solve_run(run: Run, should_stop: Callable[[], bool] | None, begun: float) -> Result:
    """Solve with checked arguments; `begun` is the time at which the call began. See `solve`."""
    with pool_at(run.dask, run.connect_limit, should_stop) as pool:
        if pool is not None:
            run = replace(run, options=replace(run.options, pool=pool), since=time.monotonic())
        elif run.dask is not None:
            return _stopped(run, begun)
        if should_stop is not None or not (run.solver.info.anytime or run.solver.info.exact or run.consolidates):
            return _solve(run, begun)
        with stopped_by_keyboard() as pressed:
            return _solve(replace(run, options=replace(run.options, should_stop=pressed)), begun)


def _stopped(run: Run, begun: float) -> Result:
    """Return the result of a call that was stopped while it connected to a cluster."""
    answer = Answer(Termination.INTERRUPTED, message="stopped while connecting to the cluster")
    return _finished(run, _Attempt(Chain(run.problem), answer, run.solver.name), begun)


def _solve(run: Run, begun: float) -> Result:
    """Solve with checked arguments; `begun` is the time at which the call began."""
    if run.initial_solver is not None:
        run = _with_initial(run, run.initial_solver)
    return _finished(run, _met(run) or _run(run), begun)


def _met(run: Run) -> _Attempt | None:
    """The initial schedule as the answer, if the bound of the result that it comes from proves it good enough."""
    initial, bound = run.options.initial, run.earlier
    if initial is None or bound is None or len(run.problem.objective.levels) > 1:
        return None
    schedule, report = retimed_and_verified(run.problem, initial)
    if not report.feasible or report.objective is None:
        return None
    gap = relative_gap(report.objective[0], bound.value)
    if gap is None or gap > (run.options.gap_limit or 0):
        return None
    optimal = report.objective == (bound.value,)
    answer = Answer(
        Termination.OPTIMAL if optimal else Termination.COMPLETED, schedule, bound.value, bound_source=bound.name,
        message=f"{run.solver.name} was not needed: {bound.explanation} proves that its schedule is good enough",
    )  # fmt: skip
    return _Attempt(Chain(run.problem), answer, bound.name)


def _finished(run: Run, attempt: _Attempt, begun: float) -> Result:
    """Check an attempt and bound its gap."""
    solved = time.monotonic()
    checked = _check(run, attempt)
    verified = time.monotonic()
    bound = _bound(run, attempt, checked)
    bounded = time.monotonic()
    check_bound(run, checked.answer, bound, checked.schedule, checked.report)
    check_by_heuristics(run, attempt.source, checked.answer, checked.report)
    left = None if run.time_limit is None else run.time_limit - (solved - run.since)
    result = _consolidated(run, _report(run, attempt.chain, checked, bound), Clock(left))
    seconds = WallTime(solve=solved - begun, verify=verified - solved, bound=bounded - verified)
    return replace(result, wall_time=seconds)


def _with_initial(run: Run, solver: str) -> Run:
    """Have another solver make the initial schedule, and take the time that it used off the limit.

    A problem that is proved infeasible stays without an initial schedule.

    Raises a UsageError if that solver finds no schedule.
    """
    options, limit = run.options, run.options.time_limit
    found = solve(
        run.problem,
        solver,
        time_limit=None if limit is None else limit / 2,
        seed=options.seed,
        workers=options.workers,
        should_stop=options.should_stop,
        consolidate=0,
    )
    if found.schedule is None and found.termination is not Termination.INFEASIBLE:
        why = f": {found.message}" if found.message else ""
        raise UsageError(f"initial: {solver} found no schedule to start from{why}; expected another solver, or a plan")
    now = time.monotonic()
    if limit is not None:
        options = replace(options, time_limit=max(limit - (now - run.since), LEAST), nominal_limit=limit / 2)
    return replace(run, options=replace(options, initial=found.schedule), since=now)


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """A solver's answer to the reduced problem, or a quick proof that there is none."""

    chain: Chain
    answer: Answer
    source: str
    """Who gave the answer."""
    least: Future[Bound] | None = None
    """The quick lower bound, if it is computed while the solver runs."""


def _run(run: Run) -> _Attempt:
    """Reduce the problem and solve it, unless it is proved infeasible at once."""
    chain, least = Chain(run.problem), None
    try:
        with engine.stopping(run.options.should_stop):
            proof = prove_infeasible(run.problem)
            if proof is None:
                chain = apply_passes(run.problem, run.passes)
                run.chains.append(chain)
                proof = prove_infeasible(chain.problem) if chain.steps and chain.exact else None
            least = _bound_beside(run) if proof is None else None
            answer = _answer(run, chain) if proof is None else Answer(Termination.INFEASIBLE, message=proof.reason)
    except engine.StoppedError:
        answer, proof = Answer(Termination.INTERRUPTED, message="stopped before the solver began"), None
    if not answer.varies_by and answer.termination in (Termination.TIME_LIMIT, Termination.INTERRUPTED):
        answer = replace(answer, varies_by="clock")
    notes = [answer.message, "" if run.options.pool is None else run.options.pool.note()]
    if run.options.initial is not None and not run.solver.info.warm_start and proof is None:
        notes.append(f"{run.solver.name} starts from scratch; the initial schedule has no effect")
    answer = replace(answer, message="; ".join(filter(None, notes)))
    return _Attempt(chain, answer, run.solver.name if proof is None else "a quick proof", least)


def _bound_beside(run: Run) -> Future[Bound] | None:
    """Start to compute the quick lower bound in a thread, for a heuristic on a large problem; None otherwise."""
    problem = run.problem
    if run.solver.info.anytime or run.options.workers == 1 or problem.n_tasks * problem.n_devices < LARGE:
        return None
    pool = ThreadPoolExecutor(1, thread_name_prefix="bound")
    with engine.stopping(_bounding_ends(run)):
        found = pool.submit(copy_context().run, best_bound, problem)
    pool.shutdown(wait=False)
    return found


def _bounding_ends(run: Run) -> Callable[[], bool]:
    """Return whether quick bounds must end: GRACE after the limit, or after this call if that is later."""
    stop, limit = run.options.should_stop, run.time_limit
    if limit is None:
        return stop
    end = max(run.since + limit, time.monotonic()) + GRACE
    return lambda: stop() or time.monotonic() >= end


def _answer(run: Run, chain: Chain) -> Answer:
    """The solver's answer to the reduced problem, with the best bound proved in parallel.

    The time that the passes took counts towards the time limit.
    """
    solver, options = run.solver, run.options
    if chain.steps:
        initial = None if options.initial is None else chain.project(options.initial)
        spent = time.monotonic() - run.since
        limit = None if options.time_limit is None else max(options.time_limit - spent, LEAST)
        options = replace(options, initial=initial, time_limit=limit)
    # The prover stops the solver at a moment that depends on the clock, which a repeatable run must not.
    repeatable = options.workers == 1 or getattr(run.settings, "deterministic", False)
    try:
        if not solver.info.anytime:
            return _heuristic_answer(run, chain.problem, options)
        if solver.info.bounding or repeatable or not chain.exact:
            return _called(run, chain.problem, options)
        from placeopt.proving.bound_prover import BoundProver  # loads all bounds, which heuristics do not need

        exact = chain.problem.pipeline is not None and not solver.info.exact
        with BoundProver(chain.problem, options, exact=exact) as prover:
            answer = _called(run, chain.problem, prover.options)
        return prover.with_bound(answer)
    except SolverError:
        raise
    except InternalError as error:
        raise run.disagreement(str(error)) from error


def _heuristic_answer(run: Run, problem: Problem, options: Options) -> Answer:
    """The answer of a solver that does not look at the time itself: its loops are stopped."""
    clock, stop = Clock(options.time_limit), options.should_stop
    limited = replace(options, should_stop=lambda: clock.over or stop())
    try:
        with engine.stopping(limited.should_stop):
            answer = _called(run, problem, limited)
    except engine.StoppedError:
        answer = Answer(Termination.INTERRUPTED, message="stopped before all tasks were placed")
    if answer.termination is Termination.INTERRUPTED and clock.over and not stop():
        return replace(answer, termination=Termination.TIME_LIMIT)
    return answer


def _called(run: Run, problem: Problem, options: Options) -> Answer:
    """The answer of the solver; an exception of a solver of another package becomes a SolverError.

    An exception of the caller's `should_stop` or `on_progress` stays as it is.
    """
    origin = origin_of(run.solver)
    if origin is None:
        return _returned(run, run.solver.solve(problem, options, run.settings))
    raised: list[Exception] = []

    def kept(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except Exception as error:
                raised.append(error)
                raise

        return called

    report = None if options.on_progress is None else kept(options.on_progress)
    options = replace(options, should_stop=kept(options.should_stop), on_progress=report)
    try:
        answer = run.solver.solve(problem, options, run.settings)
    except (PlaceoptError, MemoryError, engine.StoppedError):
        raise
    except Exception as error:
        if any(error is each for each in raised):
            raise
        raise SolverError(f"{run.solver.name}: {error_text(error)}", origin=origin) from error
    return _returned(run, answer)


def _returned(run: Run, answer: object) -> Answer:
    """The answer of a solver, checked for its type."""
    if not isinstance(answer, Answer):
        raise InternalError(f"{run.solver.name} returned {answer!r}; expected an Answer")
    if not isinstance(answer.termination, Termination):
        expected = listing([f"Termination.{each.name}" for each in Termination])
        raise InternalError(f"{run.solver.name} states the termination {answer.termination!r}; expected {expected}")
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class _Checked:
    """An answer to the original problem, with the verifier's report on its schedule."""

    answer: Answer
    schedule: Schedule | None
    report: Report | None

    @property
    def known(self) -> Value | None:
        """The value of a feasible schedule in the objective's first level."""
        report = self.report
        return report.objective[0] if report is not None and report.feasible and report.objective else None


def _check(run: Run, attempt: _Attempt) -> _Checked:
    """Map the schedule back and verify it; cross-check a claim that there is none.

    Raises an InternalError if an exact pass changes the schedule's value, a problem claimed to be infeasible has a
    feasible schedule, or the verifier rejects a schedule claimed to be optimal.
    """
    chain, answer = attempt.chain, attempt.answer
    schedule, report = (None, None) if answer.schedule is None else mapped_back(run, chain, answer.schedule)
    if not chain.exact:
        answer = _without_proofs(answer, chain)
    check_claims(run, answer, schedule, report)
    if answer.termination is Termination.INFEASIBLE:
        check_infeasible(run, attempt.source, schedule)
    return _Checked(answer, schedule, report)


def _without_proofs(answer: Answer, chain: Chain) -> Answer:
    """The answer without what it proves of a reduced problem that may have lost the optimum."""
    lost = f"{listing(chain.inexact)} may lose the optimum: bounds and proofs of the reduced problem do not count"
    message = f"{answer.message}; {lost}" if answer.message else lost
    terminations = {Termination.OPTIMAL: Termination.COMPLETED, Termination.INFEASIBLE: Termination.FAILED}
    termination = terminations.get(answer.termination, answer.termination)
    if answer.bound is None and termination is answer.termination:
        return answer
    return replace(answer, termination=termination, bound=None, message=message)


def _bound(run: Run, attempt: _Attempt, checked: _Checked) -> Bound | None:
    """The best proven lower bound, named by its source; None for an infeasible problem."""
    chain, answer, known = attempt.chain, checked.answer, checked.known
    if answer.termination is Termination.INFEASIBLE:
        return None
    # After a proof, the quick bounds of the reduced problem are enough; an exact solver has computed them.
    proved = chain.exact and known is not None and answer.bound == known
    problem = chain.problem if proved else run.problem
    with engine.stopping(_bounding_ends(run)):
        found = [best_bound(problem) if attempt.least is None else attempt.least.result()]
    if run.earlier is not None:
        found.append(run.earlier)
    if answer.bound is not None:
        found.append(Bound(answer.bound_source or run.solver.name, answer.bound, ""))
    if run.bound_time is not None and (known is None or max(bound.value for bound in found) < known):
        from placeopt.proving.portfolio import bounds

        found += bounds(
            chain.problem if chain.exact else run.problem,
            time_limit=run.bound_time,
            workers=run.options.workers,
            known=known,
            should_stop=run.options.should_stop,
        )
    return max(found, key=lambda bound: bound.value)


def _report(run: Run, chain: Chain, checked: _Checked, bound: Bound | None) -> Result:
    answer, schedule, report = checked.answer, checked.schedule, checked.report
    values = None if report is None else report.objective
    return Result(
        problem=run.problem,
        solver=run.solver.name,
        termination=answer.termination,
        schedule=schedule,
        feasible=None if report is None else report.feasible,
        violations=() if report is None else report.violations,
        values=values,
        bound=None if bound is None else bound.value,
        bound_source=None if bound is None else bound.name,
        makespan=None if report is None else report.makespan,
        seed=run.options.seed,
        settings=run.settings.model_dump(mode="json"),
        message=answer.message,
        stats=answer.stats,
        wall_time=WallTime(),
        versions=run.versions,
        devices=() if schedule is None or values is None else device_uses(run.problem, schedule),
        passes=chain.applied,
        progress=tuple(run.progress) if chain.exact else (),
        varies_by=answer.varies_by,
        clusters=_clusters(chain, checked),
        process_memory=peak_resident(),
    )


def _consolidated(run: Run, result: Result, clock: Clock) -> Result:
    """The result with a simpler schedule if the run asks for one, found before the clock ends.

    It stays optimal only if its value did not change.
    """
    if not run.consolidates or not result.feasible or result.schedule is None:
        return result
    stop = run.options.should_stop
    schedule, found = consolidate(
        run.problem, result.schedule, run.consolidate, should_stop=lambda: clock.over or stop()
    )
    varies = result.varies_by or ("clock" if found.stopped else "")
    result = replace(result, consolidation=found, varies_by=varies)
    if schedule is result.schedule:
        return result
    values = evaluate(run.problem, schedule)
    before, after = (relative_gap(value[0], result.bound) for value in (found.values, values))
    limit, lost = run.options.gap_limit, ""
    if result.termination is Termination.OPTIMAL and values != result.values:
        lost = f"the schedule of {result.solver} was optimal before it was consolidated"
        result = replace(result, termination=Termination.COMPLETED)
    elif limit is not None and before is not None and after is not None and before <= limit < after:
        lost = f"the schedule of {result.solver} was within the gap of {limit:.2%} before it was consolidated"
    message = "; ".join(filter(None, (result.message, lost)))
    return with_schedule(replace(result, message=message), schedule, values, makespan(run.problem, schedule))


def _clusters(chain: Chain, checked: _Checked) -> Int | None:
    """The clusters (n,) of the original's tasks that the solver or inexact passes placed; None if there are none."""
    stated = checked.answer.clusters
    if checked.schedule is None or (stated is None and chain.exact):
        return None
    return chain.clusters(stated)


def peak_resident() -> int | None:
    """Bytes of main memory that this process, or one that it started and that has ended, held at most so far.

    None if the system does not report it.
    """
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return getattr(psutil.Process().memory_info(), "peak_wset", None)
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return most if sys.platform == "darwin" else 1024 * most
