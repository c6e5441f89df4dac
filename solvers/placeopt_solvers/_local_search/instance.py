"""The arrays of a problem for a search, with the weights of the objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.graph import path_lengths
from placeopt.model.objective import task_energy
from placeopt.model.problem import PARTS, UNLIMITED, Metric, Problem, group_memory, group_separation

from .._constructive.groups import Budgets, budgets_of
from .._runs.device_classes import class_ends

TABLE = 1 << 22
"""Largest table of transfer times, in entries; larger ones are not stored, and times are computed when needed."""

COPIED = (
    "group", "duration", "release", "deadline", "in_start", "out_start", "capacity", "resident", "output", "scratch",
    "latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den",
)  # fmt: skip
"""Arrays that are those of the problem."""

MAKESPAN = 0
"""Index of `Instance.weight`."""


class Instance(NamedTuple):
    """A problem for a search; n tasks, m devices, e edges, g groups, k device classes, p different payloads."""

    group: Int  # (n,) the group of each task
    member_start: Int  # (g + 1,) the tasks of each group, as CSR
    member: Int  # (n,)
    duration: Int  # as in `Problem`, up to `deadline`
    release: Int
    deadline: Int
    tail: Int  # (n,) lower bounds of the ticks after each task's end
    in_start: Int  # (n + 1,) the in-edges of each task, as CSR
    source: Int  # (e,) producer of each in-edge
    payload: Int  # (e,) bytes of each in-edge
    shared: Bool  # (e,) whether an in-edge carries its producer's output
    out_start: Int  # (n + 1,) the out-edges of each task, as CSR
    target: Int  # (e,) consumer of each out-edge
    slot: Int  # (e,) index of each out-edge among the in-edges
    latency: Int  # as in `Problem`, up to `byte_energy_den`
    byte_ticks_num: Int
    byte_ticks_den: Int
    byte_energy_num: Int
    byte_energy_den: Int
    label: Int  # (m,) class of each device
    kind: Int  # (e,) index of each in-edge's payload among the different ones
    table: Int  # (p, k, k) ticks of each payload between two classes; empty if it would be too large
    feasible: Bool  # (g, m) the devices of each group
    memory: Int  # (g,) bytes of each group under the `sum` model
    apart_start: Int  # (g + 1,) the groups that are separated from each, as CSR
    apart: Int
    capacity: Int  # (m,) bytes
    problem: Problem  # for its rules of execution, which delay tasks and transfers
    budgets: Budgets | None  # what groups use of budgets; None without any
    budget_bytes: Float  # (b,) the bytes above a capacity that a unit above a budget counts as
    resident: Int  # (n,) bytes for the `peak` model, likewise `output` and `scratch`
    output: Int
    scratch: Int
    # (5,) weights of the makespan, the largest load, the memory balance, a tick of lateness, and a byte above the
    # capacity; the search adapts the last two
    weight: Float
    charge: Float  # (n, m) cost in the objective of a task on a device, apart from times
    price: Float  # (3,) cost of a tick, a byte and a nanojoule of transfers
    bound: int  # a lower bound of the makespan
    due: bool  # whether there are deadlines
    peak: bool  # whether the memory model is `peak`
    timed: bool  # whether times matter
    priced: bool  # whether transfers have a price


def make_instance(problem: Problem, bound: int = 0) -> Instance:
    """Return the arrays of a problem; `bound` is a lower bound of its makespan in ticks. Memory O(n m + e).

    The levels of a lexicographic objective are added up, each with a thousandth of the weight of the one before. That
    only guides a search; incumbents are compared exactly (`placeopt.model.objective.evaluate`).
    """
    n, m = problem.duration.shape
    weights = level_weights(problem)
    member = np.argsort(problem.group, kind="stable")
    counts = np.bincount(problem.group, minlength=problem.n_groups)
    apart_start, apart = group_separation(problem)
    edge = problem.in_edge
    slot = np.empty(problem.n_edges, dtype=np.int64)
    slot[edge] = np.arange(problem.n_edges)
    payload = problem.payload[edge]
    sizes, kind = np.unique(payload, return_inverse=True)
    first, last = class_ends(problem)
    small = len(sizes) * len(first) ** 2 <= TABLE
    table = problem.transfer(sizes[:, None, None], first[:, None], last[None, :]) if small else np.zeros((0, 0, 0), int)
    least = np.where(problem.feasible, problem.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)
    backwards, producer = problem.order[::-1].copy(), problem.edge_source[edge]
    charge = np.zeros((n, m))
    for metric, amounts in CHARGES.items():
        if weights.get(metric):
            charge += weights[metric] * amounts(problem)
    price = np.array([weights.get(metric, 0.0) for metric in ("total_cost", "communication", "energy")])
    weight = np.array([weights.get(metric, 0.0) for metric in ("makespan", "max_load", "memory_balance")] + [1.0, 1.0])
    peak = problem.memory_model == "peak"
    feasible = problem.group_feasible() & (peak | (group_memory(problem)[:, None] <= problem.capacity))
    budgets = budgets_of(problem, problem.group_feasible())
    held = max(float(problem.memory.sum()), 1.0)
    budget_bytes = np.zeros(0)
    if budgets is not None:
        budget_bytes = held / np.maximum(budgets.used.max(axis=1).astype(np.float64).sum(axis=0), 1.0)
    due = bool((problem.deadline != UNLIMITED).any())
    return Instance(
        **{name: getattr(problem, name) for name in COPIED},
        member_start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        member=member.astype(np.int64),
        tail=path_lengths(backwards, problem.in_start, producer, least),
        source=producer,
        payload=payload,
        shared=problem.shared[edge],
        target=problem.edge_target,
        slot=slot,
        label=problem.device_class,
        kind=kind.astype(np.int64),
        table=np.ascontiguousarray(table, dtype=np.int64),
        feasible=feasible,
        memory=group_memory(problem),
        apart_start=apart_start,
        apart=apart,
        problem=problem,
        budgets=budgets,
        budget_bytes=budget_bytes,
        weight=weight,
        charge=charge,
        price=price,
        bound=bound,
        due=due,
        peak=peak,
        timed=bool(weight[MAKESPAN]) or due or peak,
        priced=bool(price.any()),
    )


def level_weights(problem: Problem) -> dict[Metric, float]:
    """Return the weight of each metric, all levels of the objective added up."""
    found: dict[Metric, float] = {}
    for depth, level in enumerate(problem.objective.levels):
        for term in level:
            share = float(term.weight) * 1e-3**depth
            if depth:  # roughly in the units of the first level
                share *= _usual(problem, problem.objective.levels[0][0].metric) / _usual(problem, term.metric)
            found[term.metric] = found.get(term.metric, 0.0) + share
    return found


def _usual(problem: Problem, metric: Metric) -> float:
    """Return a typical value of the metric."""
    work = float(problem.duration.max(axis=1, initial=0).sum())
    if metric == "communication":
        return max(float(problem.payload.sum()), 1.0)
    if metric == "energy":
        return max(float(task_energy(problem).max(axis=1, initial=0).sum()), 1.0)
    if metric == "memory_balance":
        return float(PARTS)
    if metric in ("relocation", "price"):
        return max(float(getattr(problem, metric).max(axis=1, initial=0).sum()), 1.0)
    return max(work if metric == "total_cost" else work / max(problem.n_devices, 1), 1.0)


CHARGES: dict[Metric, Callable[[Problem], Int]] = {
    "total_cost": lambda problem: problem.duration,
    "energy": task_energy,
    "relocation": lambda problem: problem.relocation,
    "price": lambda problem: problem.price,
}
"""The costs (n, m) of every metric that is a sum over tasks."""
