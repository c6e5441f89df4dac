"""Share schedules and lower bounds between the results of a problem and of its relaxations.

Each changed problem is a relaxation of the unchanged problem, the *base*; `network` is a relaxation of every change of
links.

- The base's schedule, re-timed, is a schedule of each relaxation. So no relaxation has a worse objective.
- A schedule of a relaxation may be feasible for the base or for another relaxation, and better than the schedule found
  there. So a gain does not depend on the luck of one search.
- A lower bound of a relaxation is a lower bound of the base, but not vice versa. An infeasible relaxation proves that
  the base is infeasible. So no relaxation has a larger bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placeopt.errors import InternalError
from placeopt.model.arrays import Int
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Stages, makespan
from placeopt.orchestration.result import Result, with_schedule
from placeopt.protocol import Termination
from placeopt.simulation import retime
from placeopt.studies.sensitivity.changes import Change
from placeopt.verifier import verify


def share(base: Result, changes: Sequence[Change], results: Sequence[Result]) -> tuple[Result, list[Result]]:
    """Return the results of the base and of each change, with the best schedules and bounds that follow from all.

    Raises an InternalError if results contradict each other.
    """
    base = _with_schedules(base, results, base.problem.n_devices)
    shared = list(results)
    # The limit case comes last, because it profits from the schedules of all others.
    for place in sorted(range(len(shared)), key=lambda place: changes[place].kind == "network"):
        others = [base, *shared[:place], *shared[place + 1 :]]
        shared[place] = _with_schedules(shared[place], others, base.problem.n_devices)
    limit = next((k for k, change in enumerate(changes) if change.kind == "network"), None)
    if limit is not None:
        for place, change in enumerate(changes):
            if change.kind in ("bandwidth", "latency"):
                shared[place] = _with_bound(shared[place], shared[limit], changes[limit].text)
    for change, result in zip(changes, shared, strict=True):
        base = _with_bound(base, result, change.text)
    return base, shared


def carried(problem: Problem, schedule: Schedule, better_than: tuple[Value, ...] | None = None) -> Schedule | None:
    """Return a schedule of a similar problem, re-timed for this one; None if it is not feasible or not better.

    Shorter durations and transfers keep its starts feasible, but under the `peak` memory model earlier starts may not
    be, so that the original starts are tried as well.
    """
    best, values = None, better_than
    schedule = _resized(schedule, problem.n_devices)
    for candidate in (retime(problem, schedule), *([schedule] if problem.memory_model == "peak" else [])):
        reached = evaluate(problem, candidate)
        if (values is None or reached < values) and verify(problem, candidate).feasible:
            best, values = candidate, reached
    return best


def _resized(schedule: Schedule, m: int) -> Schedule:
    """Return the schedule for the first m of its devices, or for more devices; replicas on other devices are left out.

    The times of a changed team are recomputed with the schedule.
    """
    stages = schedule.stages
    if stages is None or len(stages.leader) == m:
        return schedule

    def sized(values: Int, rest: Int) -> Int:
        return np.concatenate((values[:m], rest[len(values) :]))

    leader, none = sized(stages.leader, np.arange(m)), np.zeros(m, dtype=np.int64)
    leader = np.where(leader < m, leader, np.arange(m))
    resized = Stages(stages.number, leader, sized(stages.recompute, none), sized(stages.synchronise, none))
    return Schedule(schedule.device, schedule.start, schedule.transfers, resized)


def _with_schedules(result: Result, others: Sequence[Result], common: int) -> Result:
    """Return the result with the best of its schedule and those of others that use only the first `common` devices."""
    values = result.values if result.feasible else None
    best: Schedule | None = None
    for other in others:
        schedule = other.schedule
        if schedule is not None and other.feasible and schedule.device.max(initial=-1) < common:
            found = carried(result.problem, schedule, values)
            if found is not None:
                best, values = found, evaluate(result.problem, found)
    if best is None or values is None:
        return result
    if result.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
        raise InternalError(
            f"{result.solver} claims that {result.problem.name or 'a problem'} is {result.termination.value}, but a "
            "schedule of a similar problem is feasible for it and better"
        )
    return with_schedule(result, best, values, makespan(result.problem, best))


def _with_bound(result: Result, relaxed: Result, text: str) -> Result:
    """Return the result with the bound of a relaxation if that is better."""
    if relaxed.termination is Termination.INFEASIBLE:
        if result.feasible:
            raise InternalError(
                f"{relaxed.solver} claims that {text} is infeasible, but a schedule without it is feasible"
            )
        message = f"infeasible even with this change: {text}"
        return replace(result, termination=Termination.INFEASIBLE, bound=None, bound_source=None, message=message)
    if relaxed.bound is None or result.termination is Termination.INFEASIBLE:
        return result
    if result.bound is not None and relaxed.bound <= result.bound:
        return result
    if result.feasible and result.objective is not None and relaxed.bound > result.objective:
        raise InternalError(
            f"{relaxed.bound_source} proves a bound of {relaxed.bound} for {text}, but a schedule without it reaches "
            f"{result.objective}"
        )
    return replace(result, bound=relaxed.bound, bound_source=f"{relaxed.bound_source} ({text})")
