"""A lower bound of a problem that follows from one of the problem before it was changed.

If amounts only became harder (longer durations and transfers, later releases, earlier deadlines, more bytes, less
memory, fewer devices that may run a task), every schedule of the changed problem is one of the problem before, with the
same starts and no larger metrics. So the problem before is a relaxation, and its bound holds.

Tasks that became faster, by f ticks in all, lower a bound of the makespan by at most f: where a task takes k ticks
more, let every task that starts after its end start k ticks later. The order of starts, arrivals and memory intervals
stays. Deadlines, windows and limits forbid later starts; with ports and with rules of `Problem.rules` this is not used.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.bounding.quick import Bound
from placeopt.model.objective import Value
from placeopt.model.problem import UNLIMITED, Problem

HARDER = {
    "release": 1, "deadline": -1, "due": -1, "due_weight": 1, "payload": 1, "latency": 1, "duration": 1, "price": 1,
    "feasible": -1, "resident": 1, "output": 1, "scratch": 1, "capacity": -1,
}  # fmt: skip
"""Whether a larger amount makes a problem harder (1), or a smaller one (-1)."""

MEMORY = ("resident", "output", "scratch", "capacity")
"""Amounts that must stay where memory has tiers, or outputs share bytes."""

SPEED = ("byte_ticks_num", "byte_ticks_den")

CHANGED = " before the change"
"""Follows the name of a bound."""


def earlier_bound(before: Problem, bound: Value, source: str, problem: Problem) -> Bound | None:
    """Return the lower bound that follows from one of the problem before it was changed; None if none does.

    Both problems must have the same tasks, devices and edges, in the same order. `source` names the bound.
    """
    known = before.fingerprint()
    if problem.fingerprint() == known:
        return Bound(source, bound, "the bound of an earlier result")
    fixed = MEMORY if problem.tiers is not None or problem.layout is not None else ()
    changing = [name for name in HARDER if name not in fixed]
    given = {name: getattr(before, name) for name in (*changing, *SPEED, "device_class")}
    if any(value.shape != getattr(problem, name).shape for name, value in given.items()):
        return None
    if replace(problem, **given).fingerprint() != known:
        return None
    faster = 0
    for name in changing:
        easier = HARDER[name] * (given[name].astype(np.int64) - getattr(problem, name))
        if name in ("duration", "price"):  # 0 where not feasible
            easier = np.where(problem.feasible, easier, 0)
        if (easier <= 0).all():
            continue
        if name != "duration" or not _may_wait(problem):
            return None
        faster = int(easier.max(axis=1).clip(0).sum())
    # Python integers, as the products have up to 124 bits.
    (num, den), (new_num, new_den) = (
        [getattr(each, name).astype(object) for name in SPEED] for each in (before, problem)
    )
    if (num * new_den > new_num * den).any():
        return None
    less = f", less {faster} ticks by which tasks became faster" if faster else ""
    name = source if source.endswith(CHANGED) else source + CHANGED
    return Bound(name, max(bound - faster, 0), f"the bound of the problem before it was changed{less}")


def _may_wait(problem: Problem) -> bool:
    """Whether all that starts after a task may start later, which delays the makespan by as much and nothing else."""
    simple = problem.objective.single == "makespan" and not problem.rules and problem.contention == "none"
    return simple and bool((problem.deadline == UNLIMITED).all())
