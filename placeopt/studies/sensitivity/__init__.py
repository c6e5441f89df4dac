"""Compute what more or faster devices, more memory and faster links gain, at least and at most.

    found = po.whatif(po.load("problems/mine.yaml"), time_limit=10)
    print(found.conclusion)
    for variant in found.variants:
        print(variant.change.text, variant.gain, variant.gain_at_most)

Each change gives another problem (`changes`), which is solved and bounded. Every change is a relaxation, so the results
share their schedules and bounds (`sharing`). `findings` compares them with the unchanged problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from placeopt.model.problem import Problem, check_problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.pipeline import solve
from placeopt.orchestration.result import Result
from placeopt.protocol.registry import find_solver
from placeopt.studies.sensitivity.changes import KINDS, Amounts, Change, make_amounts, make_changes
from placeopt.studies.sensitivity.findings import Variant, WhatIf
from placeopt.studies.sensitivity.sharing import carried, share

__all__ = ["KINDS", "Amounts", "Change", "Variant", "WhatIf", "examine", "make_amounts", "make_changes", "whatif"]


def whatif(
    problem: Problem,
    changes: Sequence[str] | None = None,
    *,
    solver: str = "auto",
    time_limit: float | None = 10.0,
    more_devices: int = 1,
    speed_factor: float = 2,
    memory_factor: float = 1.2,
    bandwidth_factor: float = 2,
    latency_factor: float = 0.5,
    resource_factor: float = 1.1,
    on_change: Callable[[int, int, str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    **options: Any,
) -> WhatIf:
    """Compute new schedules and lower bounds for changes of a problem: what each gains at least, and at most.

    Parameters
    ----------
    changes
        Kinds of changes, or single ones: "devices" (one more of each type), "devices:gpu", "speed" (each device type in
        turn), "memory" (of all devices), "memory:gpu", "resources", "budgets" (each in turn), "resources:license",
        "bandwidth" (each link class in turn), "bandwidth:gpu <-> cpu", "latency" (of all links), "network" (transfers
        take no time: the limit of any faster network). None: all kinds.
    solver
        Any that supports the problem. A solver with warm start starts from the schedule of the unchanged problem.
    time_limit
        Seconds for the unchanged problem and for each change; None for no limit.
    more_devices
        Devices that `devices` adds.
    speed_factor, memory_factor, bandwidth_factor, resource_factor
        At least 1.
    latency_factor
        From 0 to 1.
    on_change
        Called before each solve with the number of finished solves, the number of all, and what is solved next.
    should_stop
        Called regularly; once it returns true, the results so far are returned.
    **options
        Of `placeopt.solve`: gap_limit, seed, workers, passes, bound_time, strict, and settings of the solver; `initial`
        is the start for the unchanged problem.

    Raises
    ------
    UsageError
        If an argument is invalid, or there is no such change, device type or link class.
    UnsupportedError
        If the solver does not support the problem.
    InternalError
        If results contradict each other.
    """
    check_problem("whatif", problem)
    amounts = make_amounts(
        more_devices=more_devices,
        speed_factor=speed_factor,
        memory_factor=memory_factor,
        bandwidth_factor=bandwidth_factor,
        latency_factor=latency_factor,
        resource_factor=resource_factor,
    )
    made, notes = make_changes(problem, changes, amounts)
    return examine(
        problem, made, notes, solver, on_change=on_change, should_stop=should_stop, time_limit=time_limit, **options
    )


def examine(
    problem: Problem,
    changes: Sequence[Change],
    notes: Sequence[str],
    solver: str,
    *,
    on_change: Callable[[int, int, str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    initial: Schedule | str | None = None,
    **options: Any,
) -> WhatIf:
    """Solve the problem and each of its changes; see `whatif`."""
    stopped = should_stop or (lambda: False)
    report = on_change or (lambda _done, _all, _text: None)
    warm = find_solver(solver).info.warm_start
    total = len(changes) + 1
    report(0, total, "the problem as it is")
    base = solve(problem, solver, initial=initial, should_stop=stopped, consolidate=0, **options)
    results: list[Result] = []
    for change in changes:
        if stopped():
            break
        report(len(results) + 1, total, change.text)
        start = carried(change.problem, base.schedule) if warm and base.feasible and base.schedule is not None else None
        results.append(solve(change.problem, solver, initial=start, should_stop=stopped, consolidate=0, **options))
    done, left_out = tuple(changes[: len(results)]), tuple(changes[len(results) :])
    base, results = share(base, done, results)
    variants = tuple(Variant(change, result, base) for change, result in zip(done, results, strict=True))
    return WhatIf(base, variants, left_out, tuple(notes))
