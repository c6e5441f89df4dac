"""Run CP-SAT of OR-Tools, with all workarounds that its version needs for correct results.

    presolve    CP-SAT 9.15 proves wrong optima where one linear row includes another (google/or-tools issue 5293), so
                `presolve_inclusion_work_limit` is 0. With numbers from about 2^33 on, its presolve cuts off optima and
                calls feasible models infeasible, so it is off where numbers exceed PRESOLVED.
    detection   With such numbers, constraints of the kind "greater than at least one of" that CP-SAT detects do the
                same from about 2^31 on, with and without presolve. Their detection is off there, too.
    ends        Where optional intervals of a no-overlap constraint have a variable for their end in common, and what
                follows this end is in the constraint, too, CP-SAT 9.15 calls feasible models infeasible, also small
                ones. So no interval of a no-overlap constraint shares such a variable with another interval, or with
                rows: its end is its start plus a constant, or a variable of its own.
    cumulative  Where some intervals of a cumulative constraint exclude each other, and tasks have alternative ones,
                what CP-SAT adds for these calls feasible models infeasible (1 of 700 small problems with modes). It is
                off (`use_disjunctive_constraint_in_cumulative`), which made no difference to the speed.
    relaxation  The linear relaxation of a cumulative constraint adds up demands times ticks. From 2^63 on, the sums
                overflow, and it calls feasible models infeasible or cuts off optima. Only searches without it run then.
    memory      With such numbers and without a linear relaxation, CP-SAT may step through domains value by value until
                the memory is used up (1 of 20,000 small models). It starts again with a relaxation.
    symmetry    The search for symmetries in its presolve ends with an IndexError for 1 of 20,000 small models. CP-SAT
                then starts again without it.
    precedences With `use_dynamic_precedence_in_disjunctive`, CP-SAT may abort the process. Nothing sets it.
    signals     CP-SAT handles SIGINT itself unless `catch_sigint_signal` is off. It runs in a separate thread
                (`placeopt.bounding.engines.watching`), so that Ctrl-C and `should_stop` reach the caller.
    callbacks   An exception must not unwind C++ frames. It is stored, ends the run, and is raised to the caller.
    bounds      CP-SAT reports the bound as a float. The integer behind it is used, or the float is rounded with care. A
                run that ends before its search begins reports a bound of 0 that is not proved; it is discarded.

All of placeopt runs CP-SAT through `run`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ortools.sat.python import cp_model

from placeopt.bounding.engines.watching import watched

PRESOLVED = 2**30
"""The largest number in a model for which presolve and detection are trusted."""

RELAXED = 2**62
"""The largest sum of demands times ticks in a cumulative constraint for which its linear relaxation is trusted."""

LEAST_SECONDS = 1.0
"""Time limit of a second run, if the first one took longer than its own."""

WITHOUT_RELAXATION: dict[str, object] = {
    "linearization_level": 0,
    "subsolvers": ["no_lp", "core", "quick_restart_no_lp", "probing_no_lp", "objective_lb_search_no_lp"],
}
"""Parameters with which no search of the whole model uses a linear relaxation."""

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN", "MODEL_INVALID"]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How a run ended."""

    status: Status  # as CP-SAT reports it: OPTIMAL also means that the gap limit was reached
    bound: int | None  # a proved lower bound of the objective; None without one
    stopped: bool  # whether `should_stop` returned true
    branches: int
    conflicts: int
    work: float  # deterministic time used
    solver: cp_model.CpSolver  # holds the values of the best solution, and the assumptions of an infeasible model

    @property
    def solved(self) -> bool:
        """Whether there is a solution."""
        return self.status in ("OPTIMAL", "FEASIBLE")


def run(
    model: cp_model.CpModel,
    *,
    largest: int | None,
    area: int = 0,
    seconds: float | None,
    seed: int,
    workers: int,
    should_stop: Callable[[], bool],
    on_solution: Callable[[Callable[[Any], int]], None] | None = None,
    on_bound: Callable[[int], None] | None = None,
    parameters: Mapping[str, object] | None = None,
) -> Outcome:
    """Minimise the model's objective, or search for any solution where it has none.

    Parameters
    ----------
    largest
        The largest number in the model: no bound of a variable, coefficient or sum exceeds it. None turns presolve and
        detection off; the core of the assumptions requires a model without presolve.
    area
        The largest sum of demands times ticks in a cumulative constraint; 0 without one whose demands are not 1.
    seconds
        Time limit; None for no limit.
    seed, workers
        With one worker, the same seed gives the same outcome unless the time limit ends the run.
    should_stop
        Called regularly from the caller's thread.
    on_solution
        Called with a function that returns the value of a variable in the new solution.
    on_bound
        Called with every better bound. Both callbacks are called from CP-SAT's threads, one call at a time. What they
        raise ends the run and is raised here.
    parameters
        Further parameters of CP-SAT.
    """
    minimises = model.has_objective()  # called first: reading the proto's objective creates one
    assert not minimises or model.proto.objective.scaling_factor >= 0, "expected an objective to minimise"
    solver = cp_model.CpSolver()
    chosen: dict[str, object] = {"random_seed": seed, "num_workers": workers, **(parameters or {})}
    if seconds is not None:
        chosen["max_time_in_seconds"] = seconds
    if largest is None or largest > PRESOLVED:
        chosen |= {"cp_model_presolve": False, "auto_detect_greater_than_at_least_one_of": False}
    if area > RELAXED:
        chosen |= WITHOUT_RELAXATION
    chosen |= {"presolve_inclusion_work_limit": 0, "use_disjunctive_constraint_in_cumulative": False}
    for parameter, value in {**chosen, "catch_sigint_signal": False}.items():
        if isinstance(value, list):
            getattr(solver.parameters, parameter).extend(value)
        else:
            setattr(solver.parameters, parameter, value)
    errors: list[BaseException] = []
    bounds: list[int] = []
    lock = threading.Lock()

    def guarded(action: Callable[[], None]) -> None:
        with lock:
            try:
                if not errors:
                    action()
            except BaseException as error:  # noqa: BLE001 - it must not unwind C++ frames; raised again below
                errors.append(error)

    def note(reported: float, inner: int | None = None) -> None:
        bound = lower_bound(reported, inner)
        if bound is not None and (not bounds or bound > bounds[-1]):
            bounds.append(bound)
            if on_bound is not None:
                on_bound(bound)

    class Watcher(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            if on_solution is not None:
                guarded(lambda: on_solution(self.value))

    if minimises:
        solver.best_bound_callback = lambda reported: guarded(lambda: note(reported))
    begun = time.monotonic()
    try:
        status, stopped = watched(
            lambda: solver.solve(model, Watcher()),
            solver.stop_search,
            lambda: bool(errors) or should_stop(),
            name="cp-sat",
        )
    except (IndexError, MemoryError) as error:
        if isinstance(error, IndexError):
            hopeless, weaker = chosen.get("symmetry_level") == 0, {"symmetry_level": 0}
        else:
            relaxed = chosen.get("linearization_level") != 0 or area > RELAXED
            hopeless = relaxed or (largest is not None and largest <= PRESOLVED)
            weaker = {"linearization_level": 1}
        if hopeless:
            raise
        return run(
            model,
            largest=largest,
            area=area,
            seconds=None if seconds is None else max(seconds - (time.monotonic() - begun), LEAST_SECONDS),
            seed=seed,
            workers=workers,
            should_stop=should_stop,
            on_solution=on_solution,
            on_bound=on_bound,
            parameters={**(parameters or {}), **weaker},
        )
    if errors:
        raise errors[0]
    name = cast("Status", solver.status_name(status))
    if name in ("OPTIMAL", "FEASIBLE") and minimises:
        note(solver.best_objective_bound, _inner_bound(model, solver))
    return Outcome(
        status=name,
        bound=bounds[-1] if bounds and name not in ("INFEASIBLE", "MODEL_INVALID") else None,
        stopped=stopped,
        branches=solver.num_branches,
        conflicts=solver.num_conflicts,
        work=solver.response_proto.deterministic_time,
        solver=solver,
    )


def _inner_bound(model: cp_model.CpModel, solver: cp_model.CpSolver) -> int | None:
    """The bound that CP-SAT keeps as an integer; None where the objective's constant is not exact as a float."""
    constant = model.proto.objective.offset
    return int(solver.response_proto.inner_objective_lower_bound) + int(constant) if abs(constant) < 2**53 else None


def lower_bound(reported: float, inner: int | None = None) -> int | None:
    """Round the bound of an integer objective that CP-SAT reports as a float; None if it has none.

    The result is never too large. A whole number up to 2^53 is exact as a float. Beyond that, and against errors of
    scaling, some ulps are subtracted before rounding up. `inner` is the integer behind the float, if CP-SAT has set it;
    it is used only where it is close to the float.
    """
    if not math.isfinite(reported):
        return None
    rounded = math.ceil(reported - max(1e-6, 4 * math.ulp(reported)))
    if inner is not None and abs(inner - rounded) <= max(1.0, 8 * math.ulp(reported)):
        return max(inner, rounded)
    return rounded
