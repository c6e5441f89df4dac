"""The relaxation as an integer programme: HiGHS in a process of its own and CP-SAT race for the bound.

Each wins on some problems: HiGHS branches on a strong linear relaxation, CP-SAT reasons about the logic. CP-SAT counts
in integers and its bound is exact. HiGHS counts in floating point: what it reports is lowered by SLACK before it is
believed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from ortools.math_opt import model_pb2
from ortools.sat.python import cp_model

from placeopt.engines import process
from placeopt.ir import Bool, Int
from placeopt.relaxation.programme import Float, Programme

Engine = Literal["highs", "cp-sat"]

UNIT = 10**6
"""Continuous columns are counted so that none exceeds this in HiGHS."""

SLACK = 1e-4
"""A bound that HiGHS reports is lowered by this share of the most that the objective can be: what a hundred whole
columns come to that are off by its tolerance of 1e-6. Tighter tolerances make it twice as slow, and it then calls its
own optimum an error now and then."""

TRUSTED = 1000
"""HiGHS does not run where the most that the objective can be is so many times what is proved of it: small numbers get
lost beside large ones."""

LARGEST = 2**30
"""Largest number that CP-SAT gets: from about 2^33 on its presolve (9.15) proves what is not true."""

TOTAL = 2**60
"""No sum in CP-SAT may reach this, or nearly."""

POLL = 0.05
"""Seconds between two looks at who is done."""


@dataclass(frozen=True, slots=True, eq=False)
class Race:
    """How a race ended.

    Attributes
    ----------
    engine
        Who found the optimum, None if the time ran out first.
    x
        (columns,) the optimum; None without one.
    """

    engine: Engine | None
    x: Float | None


def race(
    programme: Programme,
    least: int,
    in_ticks: bool,
    seconds: float,
    workers: int,
    on_bound: Callable[[int, Engine], None],
    should_stop: Callable[[], bool],
) -> Race:
    """Minimise the programme; `on_bound` gets every lower bound of its objective.

    `least` is a bound of it that is proved already; `in_ticks` says that all its continuous columns count ticks. With
    one worker HiGHS runs alone, where it can be trusted. `on_bound` is called from other threads, one call at a time.
    """
    results: list[Race] = []
    errors: list[BaseException] = []
    lock = threading.Lock()

    def tell(bound: int, engine: Engine) -> None:
        with lock:
            on_bound(bound, engine)

    def over() -> bool:
        return bool(results or errors) or should_stop()

    def run(rival: Callable[[], Race | None]) -> None:
        try:
            outcome = rival()
            if outcome is not None:
                results.append(outcome)
        except process.EngineError:
            pass  # one rival less; what it has proved so far stands
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    rivals: list[Callable[[], Race | None]] = []
    most = _most(programme)
    if most <= TRUSTED * max(least, 1):
        rivals.append(lambda: _highs(programme, most, seconds, lambda b: tell(b, "highs"), over))
    if workers > 1 or not rivals:
        handed = _handed(programme, _divisor(programme) if in_ticks else 1)
        if _magnitude(handed) <= LARGEST and most < TOTAL:
            threads_left = max(workers - len(rivals), 1)
            rivals.append(lambda: _cp_sat(handed, seconds, threads_left, lambda b: tell(b, "cp-sat"), over))
    threads = [threading.Thread(target=run, args=(rival,), daemon=True) for rival in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # short waits, so that signals get through
            thread.join(POLL)
    if errors:
        raise errors[0]
    return results[0] if results else Race(None, None)


def _most(programme: Programme) -> int:
    """The most that the objective can be within the bounds of its columns."""
    return sum(coefficient * programme.upper[column] for column, coefficient in programme.objective.items())


def _highs(
    programme: Programme, most: int, seconds: float, on_bound: Callable[[int], None], should_stop: Callable[[], bool]
) -> Race | None:
    longest = max(
        (high for high, whole in zip(programme.upper, programme.integral, strict=True) if not whole), default=1
    )
    unit = max(1.0, longest / UNIT)

    def tell(reported: float) -> None:
        value = reported * unit
        if math.isfinite(value):
            on_bound(math.ceil(value - most * SLACK))

    options = {
        "engine": "highs",
        "hint": None,
        "seconds": seconds,
        "gap": 0.0,
        "absolute_gap": 0.5 / unit,
    }
    outcome = process.run(
        _proto(programme, unit), {**options, "seed": 0, "workers": 1}, lambda _: None, tell, should_stop
    )
    if outcome["bound"] is not None and outcome["status"] in ("optimal", "limit"):
        tell(outcome["bound"])
    if outcome["status"] != "optimal" or outcome["values"] is None:
        return None
    scale = np.where(programme.integral, 1.0, unit)
    return Race("highs", np.array(outcome["values"]) * scale)


def _proto(programme: Programme, unit: float) -> model_pb2.ModelProto:
    """The programme for MathOpt, its continuous columns counted in `unit` and rows divided by their largest number."""
    scale = np.where(programme.integral, 1.0, unit)
    model = model_pb2.ModelProto()
    columns = model.variables
    columns.ids.extend(range(programme.n_columns))
    columns.lower_bounds.extend((np.array(programme.lower, dtype=np.float64) / scale).tolist())
    columns.upper_bounds.extend((np.array(programme.upper, dtype=np.float64) / scale).tolist())
    columns.integers.extend(programme.integral)
    rows, entries = model.linear_constraints, model.linear_constraint_matrix
    for place, row in enumerate(programme.rows):
        scaled = row.coefficients * scale[row.columns]
        largest = float(np.abs(scaled).max(initial=0)) or 1.0
        size = largest / min(largest, UNIT)
        rows.ids.append(place)
        rows.lower_bounds.append(row.low / size)
        rows.upper_bounds.append(row.low / size if row.equation else math.inf)
        entries.row_ids.extend([place] * len(row.columns))
        entries.column_ids.extend(row.columns.tolist())
        entries.coefficients.extend((scaled / size).tolist())
    objective = model.objective.linear_coefficients
    for column, coefficient in sorted(programme.objective.items()):
        objective.ids.append(column)
        objective.values.append(coefficient * float(scale[column]) / unit)
    return model


def _divisor(programme: Programme) -> int:
    """The largest number of ticks that divides all in the rows of continuous columns, if those count ticks.

    With the whole columns given, the least value of each of them is then a multiple of it: a sum of releases, durations
    and transfers, or the load of a device in least durations.
    """
    whole = np.array(programme.integral)
    found = 0
    for row in programme.rows:
        counted = ~whole[row.columns]
        if counted.any():
            found = math.gcd(found, row.low, *row.coefficients[~counted].tolist())
    return max(found, 1)


@dataclass(frozen=True, slots=True)
class _Handed:
    """What CP-SAT gets: the programme with its continuous columns counted in `divisor`.

    Attributes
    ----------
    upper
        Of each column.
    rows
        Columns, coefficients, right-hand side, and whether it is an equation.
    objective
        Column and coefficient of each that has one.
    """

    whole: Bool
    divisor: int
    upper: list[int]
    rows: list[tuple[list[int], list[int], int, bool]]
    objective: list[tuple[int, int]]


def _handed(programme: Programme, divisor: int) -> _Handed:
    whole = np.array(programme.integral)
    rows = []
    for row in programme.rows:
        counted = ~whole[row.columns]
        factor = divisor if counted.any() else 1
        coefficients = np.where(counted, row.coefficients, row.coefficients // factor)
        rows.append((row.columns.tolist(), coefficients.tolist(), row.low // factor, row.equation))
    return _Handed(
        whole,
        divisor,
        [high if integral else -(-high // divisor) for high, integral in zip(programme.upper, whole, strict=True)],
        rows,
        sorted((column, c * (1 if whole[column] else divisor)) for column, c in programme.objective.items()),
    )


def _magnitude(handed: _Handed) -> int:
    """The largest number: of a row or its right-hand side, of a column, or of the objective in steps of a column."""
    rows = (max(*map(abs, coefficients), abs(low)) for _, coefficients, low, _ in handed.rows)
    return max(*rows, *handed.upper, *(coefficient // handed.divisor for _, coefficient in handed.objective))


def _cp_sat(
    handed: _Handed, seconds: float, workers: int, on_bound: Callable[[int], None], should_stop: Callable[[], bool]
) -> Race | None:
    model = cp_model.CpModel()
    columns = [model.new_int_var(0, high, "") for high in handed.upper]
    for named, coefficients, low, equation in handed.rows:
        if should_stop():
            return None
        total = cp_model.LinearExpr.weighted_sum([columns[j] for j in named], coefficients)
        model.add(total == low if equation else total >= low)
    model.minimize(
        cp_model.LinearExpr.weighted_sum([columns[j] for j, _ in handed.objective], [c for _, c in handed.objective])
    )
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.max_time_in_seconds, parameters.num_workers, parameters.linearization_level = seconds, workers, 2
    # CP-SAT 9.15 proves wrong optima where one linear row includes another: google/or-tools issue 5293.
    parameters.presolve_inclusion_work_limit = 0
    parameters.catch_sigint_signal = False
    solver.best_bound_callback = lambda bound: on_bound(_rounded(bound))
    statuses: list[cp_model.CpSolverStatus] = []
    thread = threading.Thread(target=lambda: statuses.append(solver.solve(model)), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL)
        if should_stop():
            solver.stop_search()
    if not statuses:
        raise RuntimeError("CP-SAT broke; it has written why")
    if statuses[0] in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        on_bound(_rounded(solver.best_objective_bound))
    if statuses[0] != cp_model.OPTIMAL:
        return None
    found: Int = np.array([solver.value(column) for column in columns], dtype=np.int64)
    return Race("cp-sat", np.where(handed.whole, found, found * handed.divisor).astype(np.float64))


def _rounded(reported: float) -> int:
    return math.ceil(reported - max(1e-6, 4 * math.ulp(reported)))
