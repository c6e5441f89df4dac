"""Solve small programs with GLOP (OR-Tools): the optimum to 1e-9, and the flow that proves it."""

from __future__ import annotations

import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt

from placeopt.bounding.sct.core import Core
from placeopt.bounding.sct.game import IN, OUT, Game
from placeopt.model.arrays import Float, Int


def optimum(game: Game) -> tuple[Float, Float] | None:
    """(e,) optimal favourites and (a,) an optimal flow over the lanes; None if GLOP finds no optimum."""
    rows = _Rows(game.core, game.unit)
    objective = np.zeros(len(rows.upper))
    objective[game.core.n_tasks - 1] = 1.0
    found = rows.solved(objective)
    if found is None:
        return None
    x, dual = found
    e, out = game.core.n_edges, rows.ends[0]
    return rows.favourites(x), _lanes(game, np.maximum(dual[:e], 0.0), dual[e : e + out[2]], out)


def most_hidden(core: Core, weight: Float, longest: float) -> Float | None:
    """(e,) favourites that maximise the sum of weight (e,) y with no path above `longest`; None if GLOP fails."""
    unit = longest / max(core.n_tasks, 1) or 1.0
    rows = _Rows(core, unit)
    rows.upper[core.n_tasks - 1] = longest / unit
    objective = np.zeros(len(rows.upper))
    objective[rows.column[rows.hidden]] = -weight[rows.hidden] / (float(weight.max()) or 1.0)
    found = rows.solved(objective)
    return None if found is None else rows.favourites(found[0])


class _Rows:
    """The rows of the linear program.

    Columns: the start of each task, in units; then y of each edge with a hidden delay.
    """

    def __init__(self, core: Core, unit: float) -> None:
        n, e = core.n_tasks, core.n_edges
        self.hidden = np.flatnonzero(core.hidden > 0)
        self.column = np.full(e, -1, dtype=np.int64)
        self.column[self.hidden] = n + np.arange(len(self.hidden))
        self.upper = np.concatenate([np.full(n, np.inf), np.ones(len(self.hidden))])
        edges = np.arange(e)
        # For each end, the rival edges, the index of the group of each, and the number of groups
        self.ends: list[tuple[Int, Int, int]] = []
        rows = [edges, edges, self.hidden]
        columns = [core.target, core.source, self.column[self.hidden]]
        values = [np.ones(e), -np.ones(e), core.hidden[self.hidden] / unit]
        low = [(core.length[core.source] + core.fixed + core.hidden) / unit]
        count = e
        for rival, end, weight in (
            (np.flatnonzero(core.out_rival), core.source, core.out_weight),
            (np.flatnonzero(core.in_rival), core.target, core.in_weight),
        ):
            tasks, row = np.unique(end[rival], return_inverse=True)
            self.ends.append((rival, row, len(tasks)))
            rows.append(count + row)
            columns.append(self.column[rival])
            values.append(-weight[rival].astype(np.float64))
            low.append(np.full(len(tasks), -1.0))
            count += len(tasks)
        self.row, self.at, self.value, self.low = (np.concatenate(each) for each in (rows, columns, values, low))

    def solved(self, objective: Float) -> tuple[Float, Float] | None:
        """Minimise over 0 <= x <= upper and rows >= low; x and the dual values of the rows, None if GLOP fails."""
        model = model_pb2.ModelProto()
        columns, rows, entries = model.variables, model.linear_constraints, model.linear_constraint_matrix
        columns.ids.extend(range(len(self.upper)))
        columns.lower_bounds.extend([0.0] * len(self.upper))
        columns.upper_bounds.extend(self.upper.tolist())
        columns.integers.extend([False] * len(self.upper))
        used = np.flatnonzero(objective)
        model.objective.linear_coefficients.ids.extend(used.tolist())
        model.objective.linear_coefficients.values.extend(objective[used].tolist())
        rows.ids.extend(range(len(self.low)))
        rows.lower_bounds.extend(self.low.tolist())
        rows.upper_bounds.extend([np.inf] * len(self.low))
        by_row = np.lexsort((self.at, self.row))
        entries.row_ids.extend(self.row[by_row].tolist())
        entries.column_ids.extend(self.at[by_row].tolist())
        entries.coefficients.extend(self.value[by_row].tolist())
        program = mathopt.Model.from_model_proto(model)
        try:
            result = mathopt.solve(program, mathopt.SolverType.GLOP)
        except Exception:  # noqa: BLE001 - MathOpt raises a bare exception if GLOP fails; the caller then uses the game
            return None
        if result.termination.reason is not mathopt.TerminationReason.OPTIMAL:
            return None
        x = result.variable_values(sorted(program.variables(), key=lambda each: int(each.id)))
        dual = result.dual_values(sorted(program.linear_constraints(), key=lambda each: int(each.id)))
        return np.array(x), np.array(dual)

    def favourites(self, x: Float) -> Float:
        """(e,) the y of a point."""
        y = np.ones(len(self.column))
        y[self.hidden] = np.clip(x[self.column[self.hidden]], 0.0, 1.0)
        return y


def _lanes(game: Game, flow: Float, price: Float, out: tuple[Int, Int, int]) -> Float:
    """The flow over lanes from a flow over edges: the producer's lane gets what its dual value covers."""
    core, (rival, row, _) = game.core, out
    covered = flow.copy()
    covered[rival] = np.maximum(price, 0.0)[row] * core.out_weight[rival] * game.unit / core.hidden[rival]
    both = core.out_rival & core.in_rival
    first = np.where(both, np.minimum(flow, covered), np.where(core.out_rival, flow, 0.0))
    own = np.where(game.kind == OUT, first[game.edge], flow[game.edge])
    return np.where(game.kind == IN, flow[game.edge] - first[game.edge], own)
