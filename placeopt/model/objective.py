"""Exact values of a schedule under every metric that an objective can name.

    makespan         ticks until the last task ends
    total_cost       total ticks of all tasks and all transfers
    max_load         ticks of computing on the busiest device
    communication    bytes that move between devices
    energy           nanojoules of computing and of moving data
    memory_balance   largest used fraction of a capacity, in parts per million, rounded up
    relocation       total ticks of moving tasks from their current devices and starting them up (`relocation_ticks`)
    tardiness        total ticks by which tasks end after their due dates, each times its weight
    price            total price of all tasks on their devices, in billionths
    devices          number of devices that run a task
    period           ticks between two results, if runs follow each other without end (`placeopt.model.period`)

A transfer that serves several consumers on one device counts once.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeGuard

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.memory import per_device, used_memory
from placeopt.model.period import period
from placeopt.model.problem import NANO, PARTS, UNLIMITED, Metric, Objective, Problem, Term, ratio_ceil, transfer_ticks
from placeopt.model.schedule import Schedule, check_schedule, durations, edge_ticks, edge_transfers, makespan

Value = int | Fraction

EXACT = "expected a Python int, or a Fraction for a weighted sum"
"""What `is_exact` requires, for messages."""

UNITS: dict[str, int] = {"energy": NANO, "price": NANO, "memory_balance": PARTS}
"""What problem files state as 1, for metrics that count smaller units."""

IN_TICKS: tuple[Metric, ...] = ("makespan", "total_cost", "max_load", "relocation", "tardiness", "period")
"""Metrics that are counted in ticks."""

GONE = -1
"""Stands for the device of a task that is new, or whose device is gone."""


def loads(problem: Problem, device: Int) -> Int:
    """(m,) ticks of computing on each device."""
    return per_device(problem, device, durations(problem, device))


def moved_edges(problem: Problem, device: Int) -> Int:
    """(t,) one edge for each transfer that a placement requires."""
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
    energy = ratio_ceil(payload, problem.byte_energy_num[source, target], problem.byte_energy_den[source, target])
    return np.where(source == target, 0, energy)


def _energy(problem: Problem, schedule: Schedule) -> int:
    device = schedule.device
    moved = moved_edges(problem, device)
    source, target = device[problem.edge_source[moved]], device[problem.edge_target[moved]]
    computing = ratio_ceil(durations(problem, device), problem.power_num[device], problem.power_den[device])
    return int(computing.sum() + transfer_energy(problem, problem.payload[moved], source, target).sum())


def _memory_balance(problem: Problem, schedule: Schedule) -> int:
    used = used_memory(problem, schedule)
    # Python integers: bytes times a million may exceed 64 bits.
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


def _tardiness(problem: Problem, schedule: Schedule) -> int:
    late = np.maximum(schedule.start + durations(problem, schedule.device) - problem.due, 0)
    return int((late * problem.due_weight).sum())


def _price(problem: Problem, schedule: Schedule) -> int:
    return int(problem.price[np.arange(problem.n_tasks), schedule.device].sum())


def _devices(problem: Problem, schedule: Schedule) -> int:  # noqa: ARG001 - as all metrics
    return len(np.unique(schedule.device))


METRICS: dict[Metric, Callable[[Problem, Schedule], int]] = {
    "makespan": makespan,
    "total_cost": _total_cost,
    "max_load": _max_load,
    "communication": _communication,
    "energy": _energy,
    "memory_balance": _memory_balance,
    "relocation": _relocation,
    "tardiness": _tardiness,
    "price": _price,
    "devices": _devices,
    "period": period,
}


def evaluate(problem: Problem, schedule: Schedule) -> tuple[Value, ...]:
    """The objective's value: one number per level, compared lexicographically; smaller is better."""
    check_schedule("evaluate", problem, schedule)
    metrics = {metric: METRICS[metric](problem, schedule) for metric in problem.objective.metrics}
    return tuple(
        simplified(sum((term.weight * metrics[term.metric] for term in level), Fraction(0)))
        for level in problem.objective.levels
    )


def is_exact(value: object) -> TypeGuard[Value]:
    """Whether a number is a Python int or a Fraction: NumPy integers overflow, and floats round."""
    return type(value) in (int, Fraction)


def simplified(value: Fraction) -> Value:
    """The value as an int if it is whole."""
    return value.numerator if value.denominator == 1 else value


def relocation_ticks(
    current: Int, moved: Int, startup: Int, latency: Int, byte_ticks_num: Int, byte_ticks_den: Int
) -> Int:
    """(n, m) ticks to move each task from its current device to another and to start it there.

    Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH:
    Generalizable placement learning for adaptive heterogeneous computing, MLSys 2023, arXiv:2305.14562, section 5.3:
    "The relocation cost is defined to be the sum of the data migration time and startup time", divided "by the
    frequency of pipeline runs", as a "single relocation may benefit future runs of the application".

        relocation[i, d] = 0                                         if task i is on device d now
                         = transfer(bytes_i, c, d) + startup[i, d]   if it is on another device c now
                         = startup[i, d]                             if it is new, or its device is gone

    Choices where the paper leaves one:

    - A migration takes as long as a transfer of these bytes on the current network, latency included; 0 without bytes.
    - Relocation times are added up, as if tasks moved one after the other.
    - As in the paper, the static data of a task (table 2) is not counted: loading it is part of the start-up.
    - A task whose device is gone starts up like a new one.
    - The paper divides by a frequency without a unit. Here it is the number of runs until the next change.

    Parameters
    ----------
    current
        (n,) the device of each task, or GONE.
    moved
        (n,) bytes that move with each task.
    startup
        (n, m) ticks to start each task on each device.
    latency, byte_ticks_num, byte_ticks_den
        (m, m), the links as in `Problem`.
    """
    ticks = np.array(startup, dtype=np.int64)
    here = np.flatnonzero(current != GONE)
    moving = here[moved[here] > 0]
    source = current[moving]
    ticks[moving] += transfer_ticks(
        moved[moving, None], latency[source], byte_ticks_num[source], byte_ticks_den[source]
    )
    ticks[here, current[here]] = 0
    return ticks


def shared_out(objective: Objective, runs: Fraction) -> Objective:
    """The objective with the weight of relocation divided by the number of runs that a placement serves."""
    return Objective(
        tuple(
            tuple(Term(t.metric, t.weight / runs) if t.metric == "relocation" else t for t in level)
            for level in objective.levels
        )
    )
