"""The relaxation as an integer program: HiGHS in a separate process and CP-SAT race for the bound.

Each is faster on some problems: HiGHS branches on a strong linear relaxation, CP-SAT learns from conflicts. CP-SAT
computes in integers and its bound is exact. HiGHS uses floating point: its bounds are lowered by SLACK.

Both get numbers of at most GRID. A continuous column x is counted in units of u: x' = floor(x / u). A row whose
continuous columns have the same unit,

    sum_j a_j x_j >= sum_i c_i y_i + b     (y integral columns, stored on the left as -c_i),

implies sum_j a_j x'_j >= sum_i floor(c_i / u) y_i + floor(b / u) if the a_j are 1 and perhaps one is -1, because
floor(p) - floor(q) >= floor(p - q) >= the sum of floors. Otherwise the sum of the positive a_j is subtracted, which is
the most that rounding x down can cost. A row with numbers still too large is divided by q, with coefficients on the
left rounded up and the right-hand side rounded down; all previous x >= 0 satisfy it. Every point of the original
program thus gives a point of the coarse one, and its bounds are bounds of the original. If a unit divides all numbers
in the rows of continuous columns, nothing is lost: for fixed integral columns, the least value of each continuous
column is a multiple of the unit.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import EngineError, cp_sat, mathopt
from placeopt.bounding.engines.linear_program import LinearProgram, Row
from placeopt.model.arrays import Float, Int

Engine = Literal["highs", "cp-sat"]

SLACK = 1e-4
"""Share of the objective's upper bound that is subtracted from a bound of HiGHS: the error of a hundred integral
columns within its tolerance of 1e-6. Tighter tolerances make it twice as slow, and then it sometimes reports its own
optimum as an error.
"""

TRUSTED = 10
"""HiGHS does not run if the objective's upper bound exceeds its proved lower bound by more than this factor."""

TOTAL = 2**60
"""Upper limit of sums in CP-SAT."""

POLL = 0.05
"""Seconds between two checks for the end of the race."""

GRID = 10**6
"""The largest number in a coarse program."""


@dataclass(frozen=True, slots=True, eq=False)
class Race:
    """The result of a race."""

    engine: Engine | None  # the engine that found the optimum; None if the time ran out
    x: Float | None  # (columns,) the optimum; None without one


def race(
    program: LinearProgram,
    least: int,
    in_ticks: bool,
    seconds: float,
    workers: int,
    on_bound: Callable[[int, Engine], None],
    should_stop: Callable[[], bool],
) -> Race:
    """Minimise the program; `on_bound` gets every lower bound of its objective.

    `least` is a proved bound of the objective; `in_ticks`: all continuous columns count ticks. With one worker HiGHS
    runs alone, if it can be trusted. `on_bound` is called from other threads, one call at a time.
    """
    results: list[Race] = []
    errors: list[BaseException] = []
    lock = threading.Lock()

    def report(bound: int, engine: Engine) -> None:
        with lock:
            on_bound(bound, engine)

    def over() -> bool:
        return bool(results or errors) or should_stop()

    def run(rival: Callable[[], Race | None]) -> None:
        try:
            outcome = rival()
            if outcome is not None:
                results.append(outcome)
        except EngineError:
            pass  # the other engine continues; bounds proved so far remain valid
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    rivals: list[Callable[[], Race | None]] = []
    coarsened, most = coarse(program, in_ticks=in_ticks), _most(program)
    if most <= TRUSTED * max(least, 1):
        rivals.append(lambda: _highs(coarsened, most, seconds, lambda b: report(b, "highs"), over))
    if (workers > 1 or not rivals) and most < TOTAL:
        threads_left = max(workers - len(rivals), 1)
        rivals.append(lambda: _cp_sat(coarsened, seconds, threads_left, lambda b: report(b, "cp-sat"), over))
    threads = [threading.Thread(target=run, args=(rival,), daemon=True) for rival in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # short waits, so that signals are handled
            thread.join(POLL)
    if errors:
        raise errors[0]
    return results[0] if results else Race(None, None)


def _most(program: LinearProgram) -> int:
    """An upper bound of the objective."""
    return sum(coefficient * program.upper[column] for column, coefficient in program.objective.items())


def _highs(
    coarsened: Coarse, most: int, seconds: float, on_bound: Callable[[int], None], should_stop: Callable[[], bool]
) -> Race | None:
    steps = coarsened.program.objective.values()
    unit = float(max(steps, default=1)) or 1.0

    def report(reported: float) -> None:
        value = reported * unit
        if math.isfinite(value):
            on_bound(math.ceil(value - most * SLACK))

    outcome = mathopt.run_mathopt(
        mathopt.mathopt_model(coarsened.program, unit),
        "highs",
        should_stop=should_stop,
        on_bound=report,
        seconds=seconds,
        absolute_gap=0.5 * min(filter(None, steps), default=1) / unit,
    )
    if outcome.bound is not None and outcome.status in ("optimal", "limit"):
        report(outcome.bound)
    if outcome.status != "optimal" or outcome.values is None:
        return None
    return Race("highs", np.array(outcome.values) * coarsened.unit)


def _cp_sat(
    coarsened: Coarse, seconds: float, workers: int, on_bound: Callable[[int], None], should_stop: Callable[[], bool]
) -> Race | None:
    program = coarsened.program
    model = cp_model.CpModel()
    columns = [model.new_int_var(0, high, "") for high in program.upper]
    for row in program.rows:
        if should_stop():
            return None
        named = [columns[j] for j in row.columns.tolist()]
        total = cp_model.LinearExpr.weighted_sum(named, row.coefficients.tolist())
        model.add(total == row.low if row.equation else total >= row.low)
    # Columns fixed at 0 are left out: their coefficients may exceed 64 bits.
    terms = [(j, c) for j, c in sorted(program.objective.items()) if program.upper[j]]
    unit = math.gcd(*(c for _, c in terms)) or 1
    model.minimize(cp_model.LinearExpr.weighted_sum([columns[j] for j, _ in terms], [c // unit for _, c in terms]))
    outcome = cp_sat.run(
        model,
        largest=_largest(program, unit),
        seconds=seconds,
        seed=0,
        workers=workers,
        should_stop=should_stop,
        on_bound=lambda bound: on_bound(bound * unit),
        parameters={"linearization_level": 2},
    )
    if outcome.status != "OPTIMAL":
        return None
    values = np.array([outcome.solver.value(column) for column in columns], dtype=np.float64)
    return Race("cp-sat", values * coarsened.unit)


def _largest(program: LinearProgram, unit: int) -> int:
    """An approximate upper bound of all sums in the program, with its objective in units of `unit`."""
    upper = np.array(program.upper, dtype=np.float64)
    rows = (float(np.abs(row.coefficients).astype(np.float64) @ upper[row.columns]) for row in program.rows)
    return int(max(_most(program) // unit, upper.max(initial=0.0), max(rows, default=0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """A program in coarse units; its objective keeps the original unit."""

    program: LinearProgram  # the coarse program
    unit: Int  # (columns,) the unit of each column: times it, a point is (nearly) one of the original program


def coarse(program: LinearProgram, *, in_ticks: bool) -> Coarse:
    """The program in coarse units; `in_ticks`: all continuous columns count ticks."""
    whole = np.array(program.integral)
    unit = np.array([1 if w else max(1, -(-high // GRID)) for w, high in zip(whole, program.upper, strict=True)])
    divisor = _divisor(program, whole) if in_ticks else 1
    lossless = divisor >= int(unit.max(initial=1))
    if lossless:
        unit = np.where(whole, 1, divisor)
    units = unit.tolist()
    result = LinearProgram(
        lower=list(program.lower),
        upper=[-(-high // each) for high, each in zip(program.upper, units, strict=True)],
        integral=list(program.integral),
        rows=[row if row.equation else _smaller(_counted(row, whole, unit, lossless)) for row in program.rows],
        objective={column: c * units[column] for column, c in program.objective.items()},
    )
    return Coarse(result, unit)


def _divisor(program: LinearProgram, whole: np.ndarray) -> int:
    """The greatest common divisor of the other numbers in rows with continuous columns."""
    found = 0
    for row in program.rows:
        counted = ~whole[row.columns]
        if counted.any():
            found = math.gcd(found, row.low, *row.coefficients[~counted].tolist())
    return max(found, 1)


def _counted(row: Row, whole: np.ndarray, unit: Int, lossless: bool) -> Row:
    """A row with its continuous columns in their unit."""
    counted = ~whole[row.columns]
    if not counted.any():
        return row
    each = int(unit[row.columns[counted]].max())
    slopes = row.coefficients[counted]
    tidy = lossless or each == 1 or (sorted(slopes.tolist()) in ([1], [-1, 1]))
    rounding = 0 if tidy else int(slopes[slopes > 0].sum())
    coefficients = np.where(counted, row.coefficients, -(-row.coefficients // each))
    return Row(row.columns, coefficients, row.low // each - rounding)


def _smaller(row: Row) -> Row:
    """A row without numbers above GRID."""
    excess = -(-int(np.abs(row.coefficients).max(initial=0)) // GRID)
    if excess <= 1:
        return row
    return Row(row.columns, -(-row.coefficients // excess), row.low // excess)
