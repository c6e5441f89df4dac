"""A path of the graph, placed exactly, where memory and budgets have prices: a Lagrangian relaxation.

**Definitions.** Let P = v_1, ..., v_l be a path, and let row r say that tasks on devices of class c use A_r[i, c] of at
most B_r: the memory of all devices of a class, or a budget. Let x be a placement, one class for each task, and

    T(x) = head of v_1 + sum_P p[v, x_v] + sum of the transfers between consecutive tasks of P + tail of v_l.

A transfer between different classes takes its time without contention, one within a class nothing.

**Claim.** For all prices y >= 0, the makespan of every schedule is at least

    min_x T(x) + sum_r y_r (sum_i A_r[i, x_i] - B_r).

The placement x of the schedule satisfies all rows, so that the sum over r is not positive, and T(x) is not above its
makespan. The minimum is found by dynamic programming over the path, and by the cheapest class of each other task.

It is concave in y (A. M. Geoffrion, Lagrangean relaxation for integer programming, Mathematical Programming Study 2,
1974). Its maximum is searched with cutting planes (J. E. Kelley, The cutting-plane method for solving convex programs,
J. SIAM 8, 1960), at points between the best prices and those of the planes, in floating point. The best prices are then
rounded, and their value is computed in integers. Devices of a class have the same price: by symmetry, this loses
nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt import engine
from placeopt.bounding.quick import Bound, narrowed_classes
from placeopt.bounding.quick.classes import Classes, clipped
from placeopt.bounding.quick.paths import Windows, windows
from placeopt.errors import counted
from placeopt.model.arrays import Float, Int
from placeopt.model.native import native
from placeopt.model.problem import UNLIMITED, Problem, transfer_ticks

NEVER = 1 << 60
"""Above every priced path in integers; the sum of a few does not overflow."""

LARGEST = 1 << 58
"""Bound of priced paths in integers."""

MOST = 20_000_000
"""Largest number of transfer times of a path, and of amounts in rows."""

PATHS, PLANES, CLOSE = 3, 100, 1e-5
"""Paths tried; placements computed for one path; the relative difference at which the search of prices ends."""

STEPS, WORK = 50_000, 200_000_000
"""Steps along paths, and transfer times read, in all for one path: one or two seconds. They replace a limit of time, so
that the bound does not depend on the clock."""

PIVOTS = 10_000
"""Limit of the simplex iterations of an LP of prices."""

TOWARDS = 0.5
"""How far the next prices are from the best ones, towards those that the planes suggest."""


@dataclass(frozen=True, slots=True, eq=False)
class PricedPath:
    """A bound of the makespan in ticks, with its path of tasks, and the prices in 1 / `scale` ticks.

    `memory` are prices of a byte by device, `budgets` those of a unit by name; all others are 0.
    """

    ticks: int
    tasks: Int
    scale: int
    memory: dict[int, int]
    budgets: dict[str, int]


def lagrangian_bound(problem: Problem, known: int | None, should_stop: Callable[[], bool]) -> Bound | None:
    """The best bound of the makespan from a path and prices; None where neither memory nor budgets are scarce.

    `known` is the makespan of a schedule: a bound that reaches it ends the search.
    """
    begun = time.perf_counter()
    best = best_priced_path(problem, known, should_stop)
    if best is None:
        return None
    length = counted(len(best.tasks), "task")
    reason = f"a path of {length}, placed at the least time and price of scarce memory and budgets"
    return Bound("lagrangian", best.ticks, reason, time.perf_counter() - begun)


def best_priced_path(problem: Problem, known: int | None, should_stop: Callable[[], bool]) -> PricedPath | None:
    """The path and the prices of the best bound; see `lagrangian_bound`."""
    classes = narrowed_classes(problem)
    rows = _scarce(classes)
    if rows is None:
        return None
    found = windows(classes)
    work = np.where(found.allowed, classes.duration, NEVER).min(axis=1)
    best: PricedPath | None = None
    tried = set[bytes]()
    for _ in range(PATHS):
        tasks = _longest(problem, work.astype(np.float64))
        if tasks.tobytes() in tried or len(tasks) * classes.n_classes**2 > MOST or should_stop():
            break
        tried.add(tasks.tobytes())
        path = _Path(classes, found, tasks, rows.amount, rows.capacity)
        prices, placed = path.search(known, should_stop)
        value, scale, price = path.proved(prices)
        if best is None or value > best.ticks:
            stated = list(zip(rows.names, price, strict=True))
            memory = {name: each for name, each in stated if isinstance(name, int) and each}
            budgets = {name: each for name, each in stated if isinstance(name, str) and each}
            best = PricedPath(value, tasks, scale, memory, budgets)
        work = classes.duration[np.arange(problem.n_tasks), placed]
    return best


class _Rows(NamedTuple):
    """Amounts (q, n, k) that tasks use, the capacities (q), and what of: a device of the class, or a budget."""

    amount: Int
    capacity: list[int]
    names: list[int | str]


def _scarce(classes: Classes) -> _Rows | None:
    """What tasks use of scarce memory of classes and scarce budgets; None if none."""
    rows: list[tuple[Int, int, int | str]] = []
    for c in np.flatnonzero(classes.capacity < UNLIMITED).tolist():
        amount = np.zeros_like(classes.duration)
        amount[:, c] = classes.memory
        rows.append((amount, int(classes.capacity[c]) * int(classes.size[c]), int(classes.leader[c])))
    if (resources := classes.problem.resources) is not None:
        used = ((clipped(resources.amounts(r)[:, classes.leader]), r) for r in resources.budgets)
        rows += [(amount, int(resources.capacity[r]), resources.names[r]) for amount, r in used]
    scarce = [row for row in rows if sum(row[0].max(axis=1).tolist()) > row[1]]
    if not scarce or len(scarce) * classes.duration.size > MOST:
        return None
    amounts, rooms, names = zip(*scarce, strict=True)
    return _Rows(np.stack(amounts), list(rooms), list(names))


def _longest(problem: Problem, work: Float) -> Int:
    """The tasks of a longest path, with these ticks (n,) for each task and none for transfers."""
    behind = work + engine.longest_paths(native(problem), work, np.zeros(problem.n_edges), backwards=True)
    tasks = [int(np.argmax(behind))]
    while len(after := problem.edge_target[problem.out_start[tasks[-1]] : problem.out_start[tasks[-1] + 1]]):
        tasks.append(int(after[np.argmax(behind[after])]))
    return np.array(tasks, dtype=np.int64)


class _Path:
    """A path of l tasks, with rows of amounts (q, n, k) and their capacities (q)."""

    def __init__(self, classes: Classes, found: Windows, tasks: Int, amount: Int, capacity: list[int]) -> None:
        self._tasks, self._amount, self._capacity = tasks, amount, capacity
        self._others = np.delete(np.arange(len(classes.duration)), tasks)
        self._ticks = np.where(found.allowed, classes.duration, NEVER)
        self._ticks[self._others] = 0
        self._ticks[tasks[0]] += found.head[tasks[0]]
        self._ticks[tasks[-1]] += found.tail[tasks[-1]]
        self._moves = _moves(classes, tasks)
        longest = np.where(self._ticks < NEVER, self._ticks, 0).max(axis=1).sum(dtype=object)
        between = np.where(self._moves < NEVER, self._moves, 0).max(axis=(1, 2), initial=0).sum(dtype=object)
        self._longest = float(longest + between)

    def search(self, known: int | None, should_stop: Callable[[], bool]) -> tuple[Float, Int]:
        """The best prices (q,) found, in ticks for a whole capacity, and the classes (n,) that they lead to."""
        room = np.maximum(np.array(self._capacity, dtype=np.float64), 1.0)
        share = self._amount / room[:, None, None]
        exceeded, every = np.array(self._capacity) / room, np.arange(self._amount.shape[1])
        best, most, prices = -math.inf, math.inf, np.zeros(len(room))
        kept, placed = prices, np.zeros(len(every), dtype=np.int64)
        planes: list[tuple[float, Float]] = []
        most_planes = max(min(PLANES, STEPS // len(self._tasks), WORK // max(self._moves.size, 1)), 3)
        while len(planes) < most_planes and not should_stop():
            value, at = self._cheapest(self._ticks + np.tensordot(prices, share, 1))
            value -= float(prices @ exceeded)
            slope = share[:, every, at].sum(axis=1) - exceeded
            planes.append((value - float(slope @ prices), slope))
            if value > best:
                best, kept, placed = value, prices, at
            if known is not None and best >= known:
                break
            most, highest = _highest(planes, self._longest)
            if most - best <= max(CLOSE * abs(best), 0.5):
                break
            prices = kept + TOWARDS * (highest - kept) if len(planes) > 1 else highest
        return kept, placed

    def proved(self, prices: Float) -> tuple[int, int, list[int]]:
        """The bound of these prices, in integers; the scale, and the prices in its units."""
        rooms = np.maximum(np.array(self._capacity, dtype=np.float64), 1.0)
        most = (self._amount.max(axis=2).sum(axis=1, dtype=np.float64) / rooms) @ prices
        scale = max(int(LARGEST / max(self._longest + float(most), 1.0)), 1)
        price = np.floor(scale * prices / rooms).astype(np.int64)
        ticks, moves = (np.where(each < NEVER, each, NEVER // scale) * scale for each in (self._ticks, self._moves))
        value, _ = self._cheapest(ticks + np.tensordot(price, self._amount, 1), moves)
        room: int = sum(each * limit for each, limit in zip(price.tolist(), self._capacity, strict=True))
        return -(-(int(value) - room) // scale), scale, price.tolist()

    def _cheapest(self, cost: NDArray[Any], moves: Int | None = None) -> tuple[Any, Int]:
        """The least cost of a placement, from the cost (n, k) of each task on each class; and the classes (n,)."""
        moves = self._moves if moves is None else moves
        placed = cost.argmin(axis=1)
        total = cost[self._others, placed[self._others]].sum(dtype=object)
        reached, chosen = cost[self._tasks[0]], []
        for task, ticks in zip(self._tasks[1:].tolist(), moves, strict=True):
            through = reached[:, None] + ticks
            chosen.append(through.argmin(axis=0))
            reached = np.minimum(through[chosen[-1], np.arange(len(reached))], NEVER) + cost[task]
        last = placed[self._tasks[-1]] = int(reached.argmin())
        total += reached[last].item()
        for task, before in zip(self._tasks[-2::-1].tolist(), reversed(chosen), strict=True):
            last = placed[task] = int(before[last])
        return total, placed


def _moves(classes: Classes, tasks: Int) -> Int:
    """(l - 1, k, k) ticks between consecutive tasks of a path that run on devices of two classes."""
    problem = classes.problem
    found = np.empty((len(tasks) - 1, classes.n_classes, classes.n_classes), dtype=np.int64)
    same = np.eye(classes.n_classes, dtype=np.bool_)
    for place, (i, j) in enumerate(zip(tasks[:-1].tolist(), tasks[1:].tolist(), strict=True)):
        edges = np.arange(problem.out_start[i], problem.out_start[i + 1])
        e = edges[problem.edge_target[edges] == j][0]
        ticks = transfer_ticks(problem.payload[e], classes.latency, classes.num, classes.den)
        apart = np.where(classes.linked, ticks, NEVER)
        found[place] = np.where(same, apart if classes.apart[e] else 0, NEVER if classes.together[e] else ticks)
    return np.minimum(found, NEVER)


def _highest(planes: list[tuple[float, Float]], longest: float) -> tuple[float, Float]:
    """The highest point below all planes (value at 0, slope (q,)); infinite at no prices if the LP solver fails.

    Prices are up to 4 times `longest`. It is the unit of the LP: with values of 10^17, GLOP does not end.
    """
    from ortools.math_opt.python import mathopt

    unit = max(longest, 1.0)
    model = mathopt.Model()
    height = model.add_variable(lb=-math.inf)
    prices = [model.add_variable(lb=0.0, ub=4.0) for _ in planes[0][1]]
    for value, slope in planes:
        rise = mathopt.fast_sum(each * price for each, price in zip(slope.tolist(), prices, strict=True))
        model.add_linear_constraint(height <= value / unit + rise)
    model.maximize(height)
    limits = mathopt.SolveParameters(iteration_limit=PIVOTS)
    result = mathopt.solve(model, mathopt.SolverType.GLOP, params=limits)
    if not result.has_primal_feasible_solution():
        return math.inf, np.zeros(len(prices))
    values = result.variable_values(prices)
    return unit * result.objective_value(), unit * np.array(values)
