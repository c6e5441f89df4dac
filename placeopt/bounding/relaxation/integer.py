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
from ortools.sat.python import cp_model

from placeopt.bounding.engines import EngineError, cp_sat, mathopt
from placeopt.bounding.engines.linear_program import LinearProgram
from placeopt.bounding.relaxation.coarse import Coarse, coarse
from placeopt.model.arrays import Float

Engine = Literal["highs", "cp-sat"]

SLACK = 1e-4
"""A bound that HiGHS reports is lowered by this share of the most that the objective can be: what a hundred whole
columns come to that are off by its tolerance of 1e-6. Tighter tolerances make it twice as slow, and it then calls its
own optimum an error now and then."""

TRUSTED = 10
"""HiGHS does not run where the most that the objective can be is so many times what is proved of it: small numbers get
lost beside large ones."""

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
    programme: LinearProgram,
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
        except EngineError:
            pass  # one rival less; what it has proved so far stands
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    rivals: list[Callable[[], Race | None]] = []
    handed, most = coarse(programme, in_ticks=in_ticks), _most(programme)
    if most <= TRUSTED * max(least, 1):
        rivals.append(lambda: _highs(handed, most, seconds, lambda b: tell(b, "highs"), over))
    if (workers > 1 or not rivals) and most < TOTAL:
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


def _most(programme: LinearProgram) -> int:
    """The most that the objective can be within the bounds of its columns."""
    return sum(coefficient * programme.upper[column] for column, coefficient in programme.objective.items())


def _highs(
    handed: Coarse, most: int, seconds: float, on_bound: Callable[[int], None], should_stop: Callable[[], bool]
) -> Race | None:
    steps = handed.programme.objective.values()
    unit = float(max(steps, default=1)) or 1.0

    def tell(reported: float) -> None:
        value = reported * unit
        if math.isfinite(value):
            on_bound(math.ceil(value - most * SLACK))

    outcome = mathopt.run_mathopt(
        mathopt.mathopt_model(handed.programme, unit),
        "highs",
        should_stop=should_stop,
        on_bound=tell,
        seconds=seconds,
        absolute_gap=0.5 * min(filter(None, steps), default=1) / unit,
    )
    if outcome.bound is not None and outcome.status in ("optimal", "limit"):
        tell(outcome.bound)
    if outcome.status != "optimal" or outcome.values is None:
        return None
    return Race("highs", handed.fine(np.array(outcome.values)))


def _cp_sat(
    handed: Coarse, seconds: float, workers: int, on_bound: Callable[[int], None], should_stop: Callable[[], bool]
) -> Race | None:
    programme = handed.programme
    model = cp_model.CpModel()
    columns = [model.new_int_var(0, high, "") for high in programme.upper]
    for row in programme.rows:
        if should_stop():
            return None
        named = [columns[j] for j in row.columns.tolist()]
        total = cp_model.LinearExpr.weighted_sum(named, row.coefficients.tolist())
        model.add(total == row.low if row.equation else total >= row.low)
    # What cannot be more than 0 may have coefficients beyond 64 bits.
    terms = [(j, c) for j, c in sorted(programme.objective.items()) if programme.upper[j]]
    unit = math.gcd(*(c for _, c in terms)) or 1
    model.minimize(cp_model.LinearExpr.weighted_sum([columns[j] for j, _ in terms], [c // unit for _, c in terms]))
    outcome = cp_sat.run(
        model,
        largest=_largest(programme, unit),
        seconds=seconds,
        seed=0,
        workers=workers,
        should_stop=should_stop,
        on_bound=lambda bound: on_bound(bound * unit),
        parameters={"linearization_level": 2},
    )
    if outcome.status != "OPTIMAL":
        return None
    values = [outcome.solver.value(column) for column in columns]
    return Race("cp-sat", handed.fine(np.array(values, dtype=np.float64)))


def _largest(programme: LinearProgram, unit: int) -> int:
    """What no sum in the programme exceeds, its objective counted in `unit`: about, as floats add up."""
    upper = np.array(programme.upper, dtype=np.float64)
    rows = (float(np.abs(row.coefficients).astype(np.float64) @ upper[row.columns]) for row in programme.rows)
    return int(max(_most(programme) // unit, upper.max(initial=0.0), max(rows, default=0.0)))
