"""Jackson's bound of each device, minimised over the placements of the largest colocation groups.

**Claim.** Let y[g, d] = 1 if a schedule places group g on device d of class c, and 0 otherwise. For a head R and a
tail Q, let w_g be the total duration on c of the tasks of g with a head of at least R and a tail of at least Q on c. If
d has one of these tasks, it runs them within [R, C - Q), one at a time. Hence

    C >= R + Q + sum over g of w_g y[g, d].

The least C that satisfies such rows for some placement of the groups is a lower bound of the makespan. Rows are added
for the placement of the last optimum, on its devices and all others of their classes, as in J. N. Hooker, "Planning and
scheduling by logic-based Benders decomposition", Operations Research 55 (2007), doi:10.1287/opre.1060.0371. All rows of
a device together are Jackson's preemptive bound (`placeopt.bounding.quick.jackson`). Small groups and memory are left
out; separations of the groups are kept.

LSTM layers need this: all steps of a layer share its weights and thus its device. Seven layers on four devices leave
two on some device, where their steps alternate; dividing the work ideally misses that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from placeopt.bounding.quick.classes import Classes, by_group
from placeopt.bounding.quick.paths import Windows
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

LARGEST = 24
"""Maximum number of groups that are placed: those with the most work."""

ROUNDS = 40
"""Maximum number of optima."""

WORK = 4.0
"""CP-SAT's deterministic time for each optimum."""


def grouped(classes: Classes) -> bool:
    """Whether groups of several tasks may make this bound better than the quick ones."""
    return classes.problem.n_groups < classes.problem.n_tasks


def packed_bound(classes: Classes, found: Windows, should_stop: Callable[[], bool] = lambda: False) -> int:
    """A lower bound of the makespan; 0 if none is proved."""
    from ortools.sat.python import cp_model

    from placeopt.bounding.engines.cp_sat import run

    problem = classes.problem
    work = by_group(problem, np.where(found.allowed, classes.duration, UNLIMITED).min(axis=1), np.add)
    heavy = np.sort(np.argsort(-work, kind="stable")[:LARGEST])
    heavy = heavy[work[heavy] > 0]
    open_ = by_group(problem, found.allowed, np.logical_and)
    tasks = [np.flatnonzero(problem.group == g) for g in heavy.tolist()]
    horizon = int(found.head[found.allowed].max() + found.tail[found.allowed].max()) + sum(
        int(classes.duration[each].max(axis=1).sum()) for each in tasks
    )
    model = cp_model.CpModel()
    makespan = model.new_int_var(0, horizon, "")
    at = {
        (i, d): model.new_bool_var("")
        for i, g in enumerate(heavy.tolist())
        for d, c in enumerate(problem.device_class.tolist())
        if open_[g, c]
    }
    for i in range(len(heavy)):
        own = [at[i, d] for d in range(problem.n_devices) if (i, d) in at]
        if not own:
            return 0  # narrowed to nothing: another bound proves that
        model.add_exactly_one(own)
    _separate(classes, heavy, at, model)
    model.minimize(makespan)
    best, known = 0, set[tuple[int, int, int]]()
    for _ in range(ROUNDS):
        outcome = run(
            model, largest=horizon, seconds=None, seed=0, workers=1, should_stop=should_stop,
            parameters={"max_deterministic_time": WORK},
        )  # fmt: skip
        best = max(best, outcome.bound or 0)
        if outcome.status != "OPTIMAL":
            break
        added = False
        for d, c in enumerate(problem.device_class.tolist()):
            placed = [i for i in range(len(heavy)) if (i, d) in at and outcome.solver.boolean_value(at[i, d])]
            if not placed:
                continue
            value, near, far = _jackson(classes, found, np.concatenate([tasks[i] for i in placed]), c)
            if value <= best or (c, near, far) in known:
                continue
            known.add((c, near, far))
            added = True
            amounts = [_work(classes, found, each, c, near, far) for each in tasks]
            for other in np.flatnonzero(problem.device_class == c).tolist():
                held = [(at[i, other], amount) for i, amount in enumerate(amounts) if amount and (i, other) in at]
                some = model.new_bool_var("")
                for literal, _ in held:
                    model.add_implication(literal, some)
                model.add(makespan >= (near + far) * some + sum(amount * literal for literal, amount in held))
        if not added:
            break
    return best


def _separate(
    classes: Classes, heavy: Int, at: Mapping[tuple[int, int], cp_model.IntVar], model: cp_model.CpModel
) -> None:
    """Keep separated groups on different devices."""
    problem = classes.problem
    place = {g: i for i, g in enumerate(heavy.tolist())}
    pairs = {tuple(sorted(pair)) for pair in problem.group[problem.separation].tolist()}
    for a, b in sorted(pairs):
        if a != b and a in place and b in place:
            for d in range(problem.n_devices):
                if (place[a], d) in at and (place[b], d) in at:
                    model.add_bool_or(at[place[a], d].negated(), at[place[b], d].negated())


def _work(classes: Classes, found: Windows, tasks: Int, c: int, near: int, far: int) -> int:
    """The duration on class c of the tasks with heads and tails of at least `near` and `far` there."""
    counted = (found.head[tasks, c] >= near) & (found.tail[tasks, c] >= far)
    return int(classes.duration[tasks[counted], c].sum())


def _jackson(classes: Classes, found: Windows, tasks: Int, c: int) -> tuple[int, int, int]:
    """The largest R + Q + work of tasks that share a device of class c, with its R and Q."""
    head, tail, ticks = found.head[tasks, c], found.tail[tasks, c], classes.duration[tasks, c]
    order = np.argsort(-tail, kind="stable")
    best = (-1, 0, 0)
    for near in np.unique(head).tolist():
        inside = order[head[order] >= near]
        totals = near + np.cumsum(ticks[inside]) + tail[inside]
        last = int(totals.argmax())
        best = max(best, (int(totals[last]), near, int(tail[inside[last]])))
    return best
