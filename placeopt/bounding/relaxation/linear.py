"""The linear relaxation, re-solved incrementally as cuts are added, by GLOP through OR-Tools' MathOpt.

GLOP uses floating point. Reported bounds are computed in integers from its dual values
(`LinearProgram.safe_dual_bound`).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.math_opt.python import mathopt
from ortools.util.python import solve_interrupter

from placeopt.bounding.engines.linear_program import CHECK_EVERY, LinearProgram
from placeopt.bounding.engines.watching import watched
from placeopt.engine import StoppedError
from placeopt.model.arrays import Float


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """An optimal point (columns,) of the linear program, its value, and the dual values (rows,)."""

    value: float
    x: Float
    multipliers: Float


class IncrementalLP:
    """The linear relaxation of a program, kept in GLOP between solves.

    For good scaling, continuous columns are counted in units of a typical coefficient, and rows are divided by their
    largest coefficient.
    """

    def __init__(self, program: LinearProgram) -> None:
        self._program = program
        unit = _typical(program)
        self._column_unit = np.where(program.integral, 1.0, unit)
        self._objective_unit = max((c * self._column_unit[j] for j, c in program.objective.items()), default=1.0) or 1.0
        self._model = mathopt.Model()
        lower = np.array([float(low) for low in program.lower]) / self._column_unit
        upper = np.array([float(high) for high in program.upper]) / self._column_unit
        self._variables: list[mathopt.Variable] = []
        for place, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
            self._check_stop(place)
            self._variables.append(self._model.add_variable(lb=low, ub=high))
        self._rows: list[mathopt.LinearConstraint] = []
        self._row_unit: list[float] = []
        self._model.minimize_linear_objective(
            mathopt.LinearSum(
                self._variables[j] * (c * float(self._column_unit[j]) / self._objective_unit)
                for j, c in program.objective.items()
            )
        )
        self._add_new_rows()
        self._engine = self._started()

    def solve(self, time_limit: float | None, should_stop: Callable[[], bool]) -> Optimum | None:
        """The optimum with all current rows of the program; None if it is not found."""
        self._add_new_rows()
        limit = None if time_limit is None else datetime.timedelta(seconds=time_limit)
        parameters = mathopt.SolveParameters(time_limit=limit, lp_algorithm=mathopt.LPAlgorithm.DUAL_SIMPLEX)
        interrupter = solve_interrupter.SolveInterrupter()

        def solved() -> mathopt.SolveResult | None:
            for _ in range(2):
                try:
                    return self._engine.solve(params=parameters, interrupter=interrupter)
                except Exception:  # noqa: BLE001 - MathOpt raises a bare exception if GLOP fails from the last basis
                    self._engine.close()
                    self._engine = self._started()
            return None  # also failed from scratch

        result, _ = watched(solved, interrupter.interrupt, should_stop, name="glop")
        if result is None or result.termination.reason is not mathopt.TerminationReason.OPTIMAL:
            return None
        x = np.array(result.variable_values(self._variables)) * self._column_unit
        duals = np.array(result.dual_values(self._rows)) / np.array(self._row_unit) * self._objective_unit
        return Optimum(result.objective_value() * self._objective_unit, x, duals)

    def _started(self) -> mathopt.IncrementalSolver:
        return mathopt.IncrementalSolver(self._model, mathopt.SolverType.GLOP)

    def _add_new_rows(self) -> None:
        for place, row in enumerate(self._program.rows[len(self._rows) :]):
            self._check_stop(place)
            scaled = row.coefficients * self._column_unit[row.columns]
            unit = float(np.abs(scaled).max(initial=0)) or 1.0
            low = row.low / unit
            constraint = self._model.add_linear_constraint(lb=low, ub=low if row.equation else np.inf)
            for column, coefficient in zip(row.columns.tolist(), (scaled / unit).tolist(), strict=True):
                constraint.set_coefficient(self._variables[column], coefficient)
            self._rows.append(constraint)
            self._row_unit.append(unit)

    def _check_stop(self, place: int) -> None:
        if place % CHECK_EVERY == CHECK_EVERY - 1 and self._program.should_stop():
            raise StoppedError


def _typical(program: LinearProgram) -> float:
    """A scale for continuous columns: a high quantile of the coefficients of integral columns in their rows."""
    whole = np.array(program.integral)
    found = []
    for row in program.rows:
        inside = whole[row.columns]
        if not inside.all():
            found.append(np.abs(row.coefficients[inside]) / np.abs(row.coefficients[~inside]).max())
    sizes = np.concatenate([np.ones(1), *found])
    return float(max(np.quantile(sizes, 0.9), 1.0))
