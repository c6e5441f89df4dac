"""Scale a problem to longer ticks without loss: exact solvers work better with small numbers.

Let g divide every duration, every possible transfer, every release time and, if the objective counts it, all
relocation. Take a schedule and round each start, of tasks and transfers, down to a multiple of g. Rounding down keeps
order and commutes with adding multiples of g. So precedence, the exclusive use of devices and ports, and release times
still hold. Nothing ends later: deadlines hold, even rounded down, and no metric grows. Memory live and resources in use
at tick k g were so at tick k g + g - 1. So some optimal schedule has multiples of g only, and ticks of g suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.model.arrays import Int, freeze
from placeopt.model.objective import IN_TICKS
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.model.schedule import Schedule, Transfers
from placeopt.protocol import Answer, Options

from .device_classes import class_ends


@dataclass(frozen=True, slots=True)
class Coarse:
    """A problem in ticks of `unit` original ones; its objective has the original values."""

    problem: Problem
    unit: int

    def fine(self, schedule: Schedule) -> Schedule:
        """Return a schedule of it in original ticks."""
        return _scaled(schedule, lambda ticks: ticks * self.unit)

    def coarse(self, schedule: Schedule) -> Schedule:
        """Return a schedule in original ticks as one of it."""
        return _scaled(schedule, lambda ticks: ticks // self.unit)


def coarsened(problem: Problem) -> Coarse:
    """Return the problem in the longest ticks without loss, often its own. O(p k^2) for p different payloads.

    It is the problem's own with limits of metrics, or if times do not scale under a rule: those of windows in which
    devices are unavailable do not, and swap times of memory tiers depend on the placement.
    """
    unit = 1 if problem.limits else _common(problem)
    rules = {name: rule.divided(unit) for name, rule in problem.stated.items()} if unit > 1 else {}
    if unit <= 1 or any(rule is None for rule in rules.values()):
        return Coarse(problem, 1)
    bandwidth = _divided(problem.byte_ticks_num, problem.byte_ticks_den, 1, unit)
    power = _divided(problem.power_num, problem.power_den, unit, 1)
    if bandwidth is None or power is None:
        return Coarse(problem, 1)
    arrays: dict[str, Any] = {
        "duration": problem.duration // unit,
        "latency": problem.latency // unit,
        "relocation": problem.relocation // unit,
        "release": problem.release // unit,
        "deadline": np.where(problem.deadline == UNLIMITED, UNLIMITED, problem.deadline // unit),
        "due": np.where(problem.due == UNLIMITED, UNLIMITED, problem.due // unit),
        "byte_ticks_num": bandwidth[0],
        "byte_ticks_den": bandwidth[1],
        "power_num": power[0],
        "power_den": power[1],
    }
    freeze(*arrays.values())
    levels = tuple(
        tuple(Term(term.metric, term.weight * (unit if term.metric in IN_TICKS else 1)) for term in level)
        for level in problem.objective.levels
    )
    resolution = problem.resolution * unit
    return Coarse(replace(problem, resolution=resolution, objective=Objective(levels), **arrays, **rules), unit)


def solve_coarsened(problem: Problem, options: Options, solve: Callable[[Problem, Options], Answer]) -> Answer:
    """Solve the coarsened problem, and return the answer with its schedule in original ticks."""
    found = coarsened(problem)
    if found.unit == 1:
        return solve(problem, options)
    initial = None if options.initial is None else found.coarse(options.initial)
    answer = solve(found.problem, replace(options, initial=initial))
    return answer if answer.schedule is None else replace(answer, schedule=found.fine(answer.schedule))


def makespan_weight(objective: Objective) -> Fraction | None:
    """Return the weight of the makespan if it is the whole objective and counts, else None; scaled times have one."""
    if objective.metrics != ("makespan",) or len(objective.levels) > 1 or len(objective.levels[0]) > 1:
        return None
    return objective.levels[0][0].weight or None


def _common(problem: Problem) -> int:
    """Return the greatest common divisor of all ticks, 0 if there are none."""
    times = [problem.duration, problem.release, problem.latency]
    times += [ticks for rule in problem.stated.values() for ticks in rule.times()]
    if "relocation" in problem.objective.metrics:
        times.append(problem.relocation)
    if "tardiness" in problem.objective.metrics:
        times.append(problem.due[problem.due != UNLIMITED])
    unit = int(np.gcd.reduce([np.gcd.reduce(ticks, axis=None) for ticks in times]))
    if unit == 1:  # without the many transfers
        return unit
    first, last = class_ends(problem)
    payload = np.unique(problem.payload)[:, None, None]
    return math.gcd(unit, int(np.gcd.reduce(problem.transfer(payload, first[:, None], last[None, :]), axis=None)))


def _divided(num: Int, den: Int, by_num: int, by_den: int) -> tuple[Int, Int] | None:
    """Return num * by_num / (den * by_den) in lowest terms; None if it exceeds the integers of a `Problem`."""
    ratios = [Fraction(int(a) * by_num, int(b) * by_den) for a, b in zip(num.flat, den.flat, strict=True)]
    if any(ratio.numerator * ratio.denominator >= 2**62 for ratio in ratios):
        return None
    parts = ([r.numerator for r in ratios], [r.denominator for r in ratios])
    top, bottom = (np.array(part, dtype=np.int64).reshape(num.shape) for part in parts)
    return top, bottom


def _scaled(schedule: Schedule, change: Callable[[Int], Int]) -> Schedule:
    moved = schedule.transfers
    transfers = None if moved is None else Transfers(moved.edge, change(moved.start))
    return replace(schedule, start=change(schedule.start), transfers=transfers)
