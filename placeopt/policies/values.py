"""The value of an executed placement under an objective.

The executed times of tasks and transfers count for makespan, total_cost and max_load, so these metrics vary with noise.
The other metrics depend on the placement alone. Without noise, the value is that of `placeopt.model.objective.evaluate`
for the schedule of the execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import UsageError
from placeopt.model.arrays import Float, Int
from placeopt.model.memory import per_device
from placeopt.model.objective import METRICS, moved_edges, task_energy, transfer_energy
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import Schedule

Values = Int | NDArray[np.float64]
"""Values of an objective: integers for a single metric of weight 1, such as ticks of the makespan; otherwise floats."""


class Valuation:
    """Computes values of executed placements.

    Parameters
    ----------
    problem
        The problem.
    objective
        A weighted sum of metrics other than `period`; None for the makespan.

    Attributes
    ----------
    whole
        Whether the values are integers, as for `Values`. Otherwise they are floats: the exact value, rounded once.
    weights
        The weight of each metric, as a float.

    Raises
    ------
    UsageError
        If the objective has several levels, or a metric does not apply to the execution of one placement.
    """

    def __init__(self, problem: Problem, objective: Objective | None) -> None:
        objective = _checked(problem, Objective() if objective is None else objective)
        self.problem = problem
        self.whole = objective.single is not None
        (terms,) = objective.levels
        self.weights = dict.fromkeys(objective.metrics, 0.0)
        for term in terms:
            self.weights[term.metric] += float(term.weight)
        self._denominator = lcm(*(term.weight.denominator for term in terms))
        self._terms = [(term.metric, int(term.weight * self._denominator)) for term in terms]
        self._is_makespan = objective.single == "makespan"
        self._shared = bool(problem.shared.any())
        self._energy = task_energy(problem) if "energy" in objective.metrics else None

    def __call__(self, device: Int, task_ticks: Int, edge_ticks: Int, makespan: int) -> float:
        """The value of a placement (n,) executed with the ticks of tasks (n,) and of transfers (e,)."""
        if self._is_makespan:
            return makespan
        total = 0
        for metric, weight in self._terms:
            if metric == "makespan":
                number = makespan
            elif metric == "total_cost":
                # Of transfers that serve several consumers, one counts; others take 0 ticks on the same device.
                transfers = edge_ticks[moved_edges(self.problem, device)] if self._shared else edge_ticks
                number = int(task_ticks.sum() + transfers.sum())
            elif metric == "max_load":
                number = int(per_device(self.problem, device, task_ticks).max(initial=0))
            else:
                number = METRICS[metric](self.problem, Schedule(device, np.zeros_like(device)))
            total += weight * number
        return total if self.whole else total / self._denominator

    def local(self, device: Int, tasks: Int, options: Int) -> Float:
        """(k,) the part of the value that depends on where a colocation group is, for each device of `options` (k,).

        This is the weighted sum of total cost, communication, energy and relocation of its `tasks` and of their
        transfers, without noise. A transfer with several consumers counts for each of them.
        """
        problem, weights = self.problem, self.weights
        total = np.zeros(len(options))
        for metric, amounts in (
            ("total_cost", problem.duration),
            ("energy", self._energy),
            ("relocation", problem.relocation),
        ):
            if metric in weights:
                assert amounts is not None
                total += weights[metric] * amounts[tasks[:, None], options].sum(axis=0)
        if weights.keys().isdisjoint(("total_cost", "energy", "communication")):
            return total
        starts, ends = (np.isin(side, tasks) for side in (problem.edge_source, problem.edge_target))
        leaving, entering = np.flatnonzero(starts & ~ends), np.flatnonzero(ends & ~starts)
        edges = np.concatenate((leaving, entering))
        there = np.concatenate((device[problem.edge_target[leaving]], device[problem.edge_source[entering]]))[:, None]
        outward = (np.arange(len(edges)) < len(leaving))[:, None]
        source, target = np.where(outward, options, there), np.where(outward, there, options)
        payload = problem.payload[edges, None]
        if "total_cost" in weights:
            total += weights["total_cost"] * problem.transfer(payload, source, target).sum(axis=0)
        if "energy" in weights:
            total += weights["energy"] * transfer_energy(problem, payload, source, target).sum(axis=0)
        if "communication" in weights:
            total += weights["communication"] * (payload * (source != target)).sum(axis=0)
        return total

    def array(self, values: Sequence[float]) -> Values:
        """The values as an array."""
        return np.array(values, dtype=np.int64) if self.whole else np.array(values, dtype=np.float64)


def _checked(problem: Problem, objective: Objective) -> Objective:
    if not isinstance(objective, Objective):
        raise UsageError(f"objective is a {type(objective).__name__}; expected an Objective")
    if len(objective.levels) > 1:
        raise UsageError(f"objective: {objective} has {len(objective.levels)} levels; expected one weighted sum")
    if "period" in objective.metrics:
        raise UsageError("objective: an episode executes one run of a placement, which has no period")
    if "memory_balance" in objective.metrics and problem.memory_model != "sum":
        raise UsageError("objective: memory_balance of an episode needs the memory model sum")
    return objective
