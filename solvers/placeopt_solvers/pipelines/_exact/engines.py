"""Minimise a column of a system with CP-SAT, which enforces conditional rows, or with HiGHS or SCIP by big M."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from placeopt.bounding.engines.linear_program import LinearProgram
from placeopt.protocol import Options

from ..._runs.exact_run import TooLargeError
from ..._runs.linear import Linear, total
from .system import System, column_of

CP_SAT_LARGEST = 2**60
"""Largest sum allowed in a row of CP-SAT, whose numbers have 64 bits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, and callbacks: whether to stop, each better solution, each better bound.

    A period of a solution is a multiple of 1 / r for some r up to `parts`, before it is rounded up.
    """

    parts: int
    seconds: float | None
    should_stop: Callable[[], bool]
    on_values: Callable[[list[int]], None]
    on_bound: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an engine ended: whether there are no solutions, and a lower bound if it has one."""

    infeasible: bool
    bound: int | None
    message: str = ""


def run_cp_sat(
    system: System,
    objective: Linear,
    workers: int,
    seed: int,
    limits: Limits,
    parameters: Mapping[str, object],
    hint: Mapping[int, int],
) -> Outcome:
    """Minimise a column with CP-SAT; `hint` holds values of some columns."""
    from ortools.sat.python import cp_model

    from placeopt.bounding.engines import cp_sat

    largest = system.magnitude
    if largest > CP_SAT_LARGEST:
        raise TooLargeError("a sum exceeds 64-bit numbers; a coarser resolution would help")
    cp = cp_model.CpModel()
    columns = [cp.new_int_var(low, high, "") for low, high in zip(system.lower, system.upper, strict=True)]
    for row in system.rows:
        terms = row.expression.terms
        when = [columns[c] if value else ~columns[c] for c, value in row.when]
        if not terms:
            cp.add_bool_or([~literal for literal in when])  # the constant alone is wrong
            continue
        left = cp_model.LinearExpr.weighted_sum([columns[c] for c in terms], list(terms.values()))
        if row.equation:
            cp.add(left == -row.expression.constant)
        else:
            added = cp.add(left >= -row.expression.constant)
            if when:
                added.only_enforce_if(when)
    cp.minimize(columns[column_of(objective)])
    for c, value in hint.items():
        cp.add_hint(columns[c], value)
    outcome = cp_sat.run(
        cp,
        largest=largest,
        seconds=limits.seconds,
        seed=seed,
        workers=workers,
        should_stop=limits.should_stop,
        on_solution=lambda read: limits.on_values([read(column) for column in columns]),
        on_bound=limits.on_bound,
        parameters=parameters,
    )
    assert outcome.status != "MODEL_INVALID", cp.validate()
    return Outcome(outcome.status == "INFEASIBLE", outcome.bound)


LARGEST, LARGEST_OBJECTIVE = 10**8, 10**9
"""Largest number allowed in a row, and bound of a column, of a program; see `placeopt_solvers.exact._milp.model`."""

WIDEST = 10**5
"""Largest bound of a column with which HiGHS is trusted. Beyond, its presolve cuts off an optimum now and then: with a
bound of 2,097,154 it called a period of 20 optimal, where 10 is. Its tolerance is 1e-6."""

ROUNDING = 2e-8
"""Error of a bound that an engine reports, for each tick of the longest period. SCIP, with a tolerance of 1e-9, was
wrong by one tick at 98,566,145."""


def _slack(program: LinearProgram, parts: int) -> tuple[float, float]:
    """What is subtracted from a reported bound, and the difference of value and bound at which an engine may stop.

    Together they are less than the least distance of a value from the next lower whole number: 1, and 1 / r with teams
    of r devices, which take these shares of it. With the longest periods the first alone is more: then the last ticks
    remain unproved.
    """
    slack = 0.1 / parts + ROUNDING * max(program.upper)
    return slack, max(0.9 / parts - slack, 0.0)


def _largest(expression: Linear) -> int:
    return max((abs(a) for a in (*expression.terms.values(), expression.constant)), default=0)


def _coarse(system: System, expression: Linear) -> Linear:
    """Return a row of binary columns with smaller numbers, which all solutions of the row satisfy.

    sum a x + b >= 0 gives sum ceil(a / s) x + ceil(b / s) >= 0 for x >= 0.
    """
    largest = _largest(expression)
    if any(system.upper[c] > 1 for c in expression.terms):
        raise TooLargeError(f"a number of {largest:,} in a row, where {LARGEST:,} is safe in floating point")
    scale = -(-largest // (LARGEST - 1))
    return Linear(
        {c: -(-a // scale) for c, a in expression.terms.items() if -(-a // scale)}, -(-expression.constant // scale)
    )


def program_of(system: System, objective: Linear) -> LinearProgram:
    """Return a system as a mixed-integer program.

    Rows of memory with large numbers are rounded, so that some solutions may not satisfy them.

    Raises a TooLargeError if other numbers are not safe in floating point.
    """
    program = LinearProgram()
    program.lower, program.upper = list(system.lower), list(system.upper)
    program.integral = [not implied for implied in system.implied]
    widest = max(program.upper)
    if widest > LARGEST_OBJECTIVE:
        raise TooLargeError(f"a column up to {widest:,}, where {LARGEST_OBJECTIVE:,} is safe in floating point")
    for row in system.rows:
        expression = row.expression
        if row.when:
            missing = total((1 - Linear({c: 1})) if value else Linear({c: 1}) for c, value in row.when)
            expression = expression + max(-system.least(expression), 0) * missing
        if _largest(expression) > LARGEST:
            expression = _coarse(system, expression)
        columns, coefficients = list(expression.terms), list(expression.terms.values())
        program.add_row(columns, coefficients, -expression.constant, equation=row.equation)
    program.objective = dict(objective.terms)
    return program


def run_relaxation(system: System, objective: Linear, limits: Limits) -> Outcome:
    """Bound a column by the linear relaxation, in integers from the dual values of GLOP."""
    from placeopt.bounding.engines.mathopt import mathopt_model, run_glop

    program = program_of(system, objective)
    model = mathopt_model(program, relaxed=True)
    found = run_glop(model, seconds=limits.seconds, should_stop=limits.should_stop)
    bound = None if found.duals is None else math.ceil(program.safe_dual_bound(found.duals))
    note = "only the linear relaxation was solved: a bound, and the schedule that the run started from"
    return Outcome(infeasible=False, bound=bound, message=note)


def run_milp(
    system: System, objective: Linear, options: Options, limits: Limits, engine: Literal["highs", "scip"]
) -> Outcome:
    """Minimise a column with HiGHS or SCIP; if the engine fails twice or is not to be trusted, with SCIP."""
    from placeopt.bounding.engines.mathopt import mathopt_model, run_retried

    program = program_of(system, objective)
    slack, enough = _slack(program, limits.parts)
    if max(program.upper) > WIDEST:
        engine = "scip"
    program.upper[column_of(objective)] += round(slack)
    model = mathopt_model(program)

    def proved(reported: float) -> int | None:
        return math.ceil(reported - slack) if math.isfinite(reported) else None

    def note(reported: float) -> None:
        bound = proved(reported)
        if bound is not None:
            limits.on_bound(bound)

    found = run_retried(
        model,
        engine,
        seconds=limits.seconds,
        seed=options.seed,
        should_stop=limits.should_stop,
        on_values=lambda values: limits.on_values([round(value) for value in values]),
        on_bound=note,
        gap=options.gap_limit or 0.0,
        absolute_gap=enough,
        workers=options.workers,
    )
    if found.values is not None:
        limits.on_values([round(value) for value in found.values])
    bound = None if found.bound is None else proved(found.bound)
    message = found.message
    if slack * limits.parts >= 1 and not message:
        message = f"the last {math.ceil(slack)} ticks are not safe in floating point; cp-sat proves them"
    return Outcome(found.status == "infeasible", bound, message)
