"""The value of a schedule: every metric an objective can name, exact.

    makespan         ticks until the last task ends
    total_cost       ticks of all tasks and all transfers, added up
    max_load         ticks of computing on the busiest device
    communication    bytes that move between devices
    energy           nanojoules of computing and of moving data
    memory_balance   largest used fraction of a capacity, in parts per million, rounded up
    relocation       ticks of moving tasks from where they are now and starting them up, added up

A transfer that serves several consumers on one device counts once.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.memory import used_memory
from placeopt.model.problem import PARTS, UNLIMITED, Metric, Problem, ratio_ceil
from placeopt.model.schedule import Schedule, check_schedule, durations, edge_ticks, edge_transfers, makespan

Value = int | Fraction


def loads(problem: Problem, device: Int) -> Int:
    """(m,) ticks of computing on each device."""
    load = np.zeros(problem.n_devices, dtype=np.int64)
    np.add.at(load, device, durations(problem, device))
    return load


def moved_edges(problem: Problem, device: Int) -> Int:
    """(t,) one edge for every transfer that a placement causes."""
    representative = edge_transfers(problem, device)
    return np.flatnonzero(representative == np.arange(problem.n_edges))


def _total_cost(problem: Problem, schedule: Schedule) -> int:
    device = schedule.device
    return int(durations(problem, device).sum() + edge_ticks(problem, device)[moved_edges(problem, device)].sum())


def _max_load(problem: Problem, schedule: Schedule) -> int:
    return int(loads(problem, schedule.device).max(initial=0))


def _communication(problem: Problem, schedule: Schedule) -> int:
    return int(problem.payload[moved_edges(problem, schedule.device)].sum())


def task_energy(problem: Problem) -> Int:
    """(n, m) nanojoules of each task on each device, rounded up."""
    return np.asarray(ratio_ceil(problem.duration, problem.power_num, problem.power_den))


def transfer_energy(problem: Problem, payload: Int, source: Int, target: Int) -> Int:
    """Nanojoules of transfers between devices, elementwise, rounded up; zero on the same device."""
    energy = ratio_ceil(
        payload,
        problem.byte_energy_num[source, target],
        problem.byte_energy_den[source, target],
    )
    return np.where(source == target, 0, energy)


def _energy(problem: Problem, schedule: Schedule) -> int:
    device = schedule.device
    moved = moved_edges(problem, device)
    source, target = device[problem.edge_source[moved]], device[problem.edge_target[moved]]
    computing = task_energy(problem)[np.arange(problem.n_tasks), device].sum()
    return int(computing + transfer_energy(problem, problem.payload[moved], source, target).sum())


def _memory_balance(problem: Problem, schedule: Schedule) -> int:
    used = used_memory(problem, schedule)
    # Python integers: bytes times a million do not always fit into 64 bits.
    return max(
        (
            -(-int(used[d]) * PARTS // max(int(problem.capacity[d]), 1))
            for d in range(problem.n_devices)
            if problem.capacity[d] != UNLIMITED
        ),
        default=0,
    )


def _relocation(problem: Problem, schedule: Schedule) -> int:
    return int(problem.relocation[np.arange(problem.n_tasks), schedule.device].sum())


METRICS: dict[Metric, Callable[[Problem, Schedule], int]] = {
    "makespan": makespan,
    "total_cost": _total_cost,
    "max_load": _max_load,
    "communication": _communication,
    "energy": _energy,
    "memory_balance": _memory_balance,
    "relocation": _relocation,
}


def evaluate(problem: Problem, schedule: Schedule) -> tuple[Value, ...]:
    """The objective's value, one number a level; smaller is better, levels compare in order."""
    check_schedule("evaluate", problem, schedule)
    metrics = {metric: METRICS[metric](problem, schedule) for metric in problem.objective.metrics}
    return tuple(
        simplified(sum((term.weight * metrics[term.metric] for term in level), Fraction(0)))
        for level in problem.objective.levels
    )


def simplified(value: Fraction) -> Value:
    """An int where the fraction is one."""
    return value.numerator if value.denominator == 1 else value
