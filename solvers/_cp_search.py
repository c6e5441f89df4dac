"""One run of CP-SAT that can be watched and stopped."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from ortools.sat.python import cp_model

from ._cp_base import Literal

POLL = 0.05
"""Seconds between two looks at whether to stop."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    status
        CP-SAT's own: OPTIMAL also means that the gap limit was reached.
    bound
        A proven lower bound of the objective.
    stopped
        Whether it was told to stop.
    work
        Deterministic time that it took.
    """

    status: str
    bound: int
    stopped: bool
    branches: int
    conflicts: int
    work: float


def minimised(
    model: cp_model.CpModel,
    parameters: dict[str, object],
    on_solution: Callable[[Callable[[Literal], int]], None],
    on_bound: Callable[[int], None],
    should_stop: Callable[[], bool],
) -> Outcome:
    """Minimise the model's objective.

    CP-SAT runs in a thread of its own and this one waits: it asks `should_stop`, and signals such as Ctrl-C
    reach it. The two callbacks are called from CP-SAT's threads, one at a time; what they raise ends the
    run and is raised here.
    """
    solver = cp_model.CpSolver()
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    errors: list[BaseException] = []
    lock = threading.Lock()

    def guarded(action: Callable[[], None]) -> None:
        with lock:
            try:
                if not errors:
                    action()
            except BaseException as error:  # noqa: BLE001 - it must not unwind C++ frames; raised again below
                errors.append(error)

    class Watcher(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            guarded(lambda: on_solution(self.value))

    solver.best_bound_callback = lambda bound: guarded(lambda: on_bound(lower_bound(bound)))
    statuses: list[cp_model.CpSolverStatus] = []

    def run() -> None:
        try:
            statuses.append(solver.solve(model, Watcher()))
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=run, name="cp-sat", daemon=True)
    stopped = False
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            stopped = stopped or should_stop()
            if stopped or errors:
                # Again and again: a call before the search has begun is lost.
                solver.stop_search()
    finally:
        while thread.is_alive():
            solver.stop_search()
            thread.join(POLL)
    if errors:
        raise errors[0]
    return Outcome(
        status=solver.status_name(statuses[0]),
        bound=_exact_bound(model, solver),
        stopped=stopped,
        branches=solver.num_branches,
        conflicts=solver.num_conflicts,
        work=solver.response_proto.deterministic_time,
    )


def _exact_bound(model: cp_model.CpModel, solver: cp_model.CpSolver) -> int:
    """The bound in integers: CP-SAT keeps it as one, less the objective's constant."""
    if not math.isfinite(solver.best_objective_bound):
        return -(2**62)
    reported, constant = lower_bound(solver.best_objective_bound), model.proto.objective.offset
    inner = int(solver.response_proto.inner_objective_lower_bound) + int(constant)
    # The constant is a float, and a run may end before the integer is set: then they are far apart.
    exact = abs(constant) < 2**53 and abs(inner - reported) <= max(1.0, 8 * math.ulp(float(reported)))
    return max(inner, reported) if exact else reported


def lower_bound(reported: float) -> int:
    """The bound of an integer objective that CP-SAT reports as a float; never too large.

    A whole number up to 2^53 is exact in a float. Beyond that, and against the noise of scaling, some
    ulps are given away before rounding up.
    """
    if not math.isfinite(reported):
        return -(2**62)
    return math.ceil(reported - max(1e-6, 4 * math.ulp(reported)))
