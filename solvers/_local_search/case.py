"""A problem as the kernels of a search take it: arrays that stand still, and what the objective weighs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.graph import path_lengths
from placeopt.model.objective import task_energy
from placeopt.model.problem import PARTS, UNLIMITED, Metric, Problem, group_memory, group_separation, transfer_ticks

TABLE = 1 << 22
"""Entries of the table of transfer times, at most; without it they are worked out each time."""

MAKESPAN, LOAD, BALANCE, LATE, OVERFULL = range(5)
"""Places of `Case.weight`."""

TICKS, BYTES, JOULES = range(3)
"""Places of `Case.price`."""


class Case(NamedTuple):
    """What a search knows of a problem; n tasks, m devices, e edges, g groups, k device classes.

    Attributes
    ----------
    group, member_start, member
        (n,) the group of each task; the tasks of each group as CSR.
    duration, release, deadline, feasible, capacity, latency, ...
        As in `Problem`; `feasible` (g, m) is that of groups.
    tail
        (n,) ticks that follow each task at least.
    in_start, source, payload, shared
        The in-edges of each task: producer, bytes, whether it carries its producer's output.
    out_start, target, slot
        The out-edges: consumer, and the place of the edge among the in-edges.
    label, kind, table
        (m,) class of each device, (e,) number of each in-edge's payload among the different ones, and (p, k, k) ticks
        that each takes between two classes; `table` is empty where it would be too large.
    memory, apart_start, apart
        (g,) bytes of each group under the `sum` model; the groups that must be apart from each, as CSR.
    resident, output, scratch
        (n,) bytes, for the `peak` model.
    weight
        (5,) of the makespan, the largest load and the memory balance, of a tick of lateness and of a byte that does not
        fit; the last two grow and shrink with what a search meets.
    charge, price
        (n, m) what the objective asks for a task on a device apart from times; (3,) for a tick, a byte and a nanojoule
        of transfers.
    bound
        A lower bound of the makespan.
    port, due, peak, timed, priced
        Whether there are ports and deadlines; whether memory is counted as it is live; whether times matter at all;
        whether transfers have a price.
    """

    group: Int
    member_start: Int
    member: Int
    duration: Int
    release: Int
    deadline: Int
    tail: Int
    in_start: Int
    source: Int
    payload: Int
    shared: Bool
    out_start: Int
    target: Int
    slot: Int
    latency: Int
    byte_ticks_num: Int
    byte_ticks_den: Int
    byte_energy_num: Int
    byte_energy_den: Int
    label: Int
    kind: Int
    table: Int
    feasible: Bool
    memory: Int
    apart_start: Int
    apart: Int
    capacity: Int
    resident: Int
    output: Int
    scratch: Int
    weight: Float
    charge: Float
    price: Float
    bound: int
    port: bool
    due: bool
    peak: bool
    timed: bool
    priced: bool


def make_case(problem: Problem, bound: int = 0) -> Case:
    """The problem for a search; `bound` is a lower bound of its makespan in ticks.

    Levels of a lexicographic objective are added up, each a thousandth of the one before: searches compare incumbents
    exactly (`placeopt.model.objective.evaluate`), this only leads them. Memory O(n m + e).
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
    label = problem.device_class
    first = np.unique(label, return_index=True)[1]
    last = m - 1 - np.unique(label[::-1], return_index=True)[1]  # another than the first wherever there is another
    small = len(sizes) * len(first) ** 2 <= TABLE
    table = problem.transfer(sizes[:, None, None], first[:, None], last[None, :]) if small else np.zeros((0, 0, 0), int)
    least = np.where(problem.feasible, problem.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)
    backwards, producer = problem.order[::-1].copy(), problem.edge_source[edge]
    charge = np.zeros((n, m))
    for metric, amounts in _charges(problem).items():
        charge += weights.get(metric, 0.0) * amounts
    price = np.array([weights.get(metric, 0.0) for metric in ("total_cost", "communication", "energy")])
    weight = np.array([weights.get(metric, 0.0) for metric in ("makespan", "max_load", "memory_balance")] + [1.0, 1.0])
    due = bool((problem.deadline != UNLIMITED).any())
    peak = problem.memory_model == "peak"
    return Case(
        group=problem.group,
        member_start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        member=member.astype(np.int64),
        duration=problem.duration,
        release=problem.release,
        deadline=problem.deadline,
        tail=path_lengths(backwards, problem.in_start, producer, least),
        in_start=problem.in_start,
        source=producer,
        payload=payload,
        shared=problem.shared[edge],
        out_start=problem.out_start,
        target=problem.edge_target,
        slot=slot,
        latency=problem.latency,
        byte_ticks_num=problem.byte_ticks_num,
        byte_ticks_den=problem.byte_ticks_den,
        byte_energy_num=problem.byte_energy_num,
        byte_energy_den=problem.byte_energy_den,
        label=label,
        kind=kind.astype(np.int64),
        table=np.ascontiguousarray(table, dtype=np.int64),
        feasible=problem.group_feasible() & (peak | (group_memory(problem)[:, None] <= problem.capacity)),
        memory=group_memory(problem),
        apart_start=apart_start,
        apart=apart,
        capacity=problem.capacity,
        resident=problem.resident,
        output=problem.output,
        scratch=problem.scratch,
        weight=weight,
        charge=charge,
        price=price,
        bound=bound,
        port=problem.contention == "port",
        due=due,
        peak=peak,
        timed=bool(weight[MAKESPAN]) or due or peak,
        priced=bool(price.any()),
    )


def level_weights(problem: Problem) -> dict[Metric, float]:
    """What each metric weighs, all levels of the objective added up."""
    found: dict[Metric, float] = {}
    for depth, level in enumerate(problem.objective.levels):
        for term in level:
            share = float(term.weight) * 1e-3**depth
            if depth:  # in the units of the first level, as far as they can be told apart
                share *= _usual(problem, problem.objective.levels[0][0].metric) / _usual(problem, term.metric)
            found[term.metric] = found.get(term.metric, 0.0) + share
    return found


def _usual(problem: Problem, metric: Metric) -> float:
    """A value of the metric of the right order of magnitude."""
    work = float(problem.duration.max(axis=1, initial=0).sum())
    if metric == "communication":
        return max(float(problem.payload.sum()), 1.0)
    if metric == "energy":
        return max(float(task_energy(problem).max(axis=1, initial=0).sum()), 1.0)
    if metric == "memory_balance":
        return float(PARTS)
    if metric == "relocation":
        return max(float(problem.relocation.max(axis=1, initial=0).sum()), 1.0)
    return max(work if metric == "total_cost" else work / max(problem.n_devices, 1), 1.0)


def _charges(problem: Problem) -> dict[Metric, Float]:
    """(n, m) of every metric that is a sum over tasks."""
    found: dict[Metric, Int] = {
        "total_cost": problem.duration,
        "energy": task_energy(problem),
        "relocation": problem.relocation,
    }
    return {metric: amounts.astype(np.float64) for metric, amounts in found.items()}


@kernel(transfer_ticks, allocates=False)
def moving_ticks(case: Case, k: int, a: int, b: int) -> int:
    """Ticks that in-edge k takes from device a to another device b."""
    if len(case.table) > 0:
        return int(case.table[case.kind[k], case.label[a], case.label[b]])
    return int(
        transfer_ticks(case.payload[k], case.latency[a, b], case.byte_ticks_num[a, b], case.byte_ticks_den[a, b])
    )
