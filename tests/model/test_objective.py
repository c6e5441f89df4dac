"""The metrics, each worked by hand, and the values of objectives made of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from placeopt.model.building import build_problem
from placeopt.model.objective import METRICS, evaluate, loads, moved_edges, simplified, task_energy, transfer_energy
from placeopt.model.problem import UNLIMITED, Metric, Objective, Problem, Term
from placeopt.model.schedule import Schedule, Transfers, arrivals, durations, edge_ticks, edge_transfers, makespan
from placeopt.protocol import ALL_METRICS


def example(**changes: Any) -> Problem:
    """a -> b, c, d on three devices.

    a's output of 6 bytes goes to b and c, 10 bytes of its own to d. From device s to t a byte takes 1/2 tick
    after a latency of s + t. Energy: devices take 3, 4 and 5 nJ a tick, links 1/4 nJ a byte. a and b are on x now, c
    is on y, d is new.
    """
    arrays: dict[str, Any] = {
        "task_names": ("a", "b", "c", "d"),
        "device_names": ("x", "y", "z"),
        "duration": [[2, 3, 4], [5, 6, 7], [1, 1, 1], [4, 2, 0]],
        "edges": [(0, 1), (0, 2), (0, 3)],
        "payload": [6, 6, 10],
        "shared": [True, True, False],
        "latency": [[0, 1, 2], [1, 0, 3], [2, 3, 0]],
        "byte_ticks_num": np.ones((3, 3)),
        "byte_ticks_den": np.full((3, 3), 2),
        "power_num": [3, 4, 5],
        "power_den": [1, 1, 1],
        "byte_energy_num": np.ones((3, 3)),
        "byte_energy_den": np.full((3, 3), 4),
        "resident": [100, 10, 10, 10],
        "output": [6, 0, 0, 0],
        "capacity": [150, UNLIMITED, 30],
        "relocation": [[0, 20, 30], [0, 8, 9], [5, 0, 6], [1, 2, 3]],
    }
    return build_problem(**(arrays | changes))


# Everything together on x; b and c on y with d on x; everything elsewhere.
TOGETHER = Schedule(np.array([0, 0, 0, 0]), np.array([0, 2, 7, 8]))
SPLIT = Schedule(np.array([0, 1, 1, 0]), np.array([0, 6, 12, 2]))
APART = Schedule(np.array([0, 1, 2, 2]), np.array([0, 6, 7, 9]))


@pytest.mark.parametrize(
    ("metric", "schedule", "value"),
    [
        ("makespan", TOGETHER, 12),
        ("makespan", SPLIT, 13),
        ("makespan", APART, 12),
        ("total_cost", TOGETHER, 2 + 5 + 1 + 4),
        ("total_cost", SPLIT, (2 + 6 + 1 + 4) + (1 + 3)),  # one transfer serves b and c
        ("total_cost", APART, (2 + 6 + 1 + 0) + (1 + 3) + (2 + 3) + (2 + 5)),
        ("max_load", TOGETHER, 12),
        ("max_load", SPLIT, 7),
        ("max_load", APART, 6),
        ("communication", TOGETHER, 0),
        ("communication", SPLIT, 6),
        ("communication", APART, 6 + 6 + 10),
        ("energy", TOGETHER, 12 * 3),
        ("energy", SPLIT, 6 * 3 + 7 * 4 + 2),  # 6 bytes at 1/4 nJ, rounded up
        ("energy", APART, 2 * 3 + 6 * 4 + 1 * 5 + 2 + 2 + 3),
        ("relocation", TOGETHER, 5 + 1),  # c moves to x, d starts there
        ("relocation", SPLIT, 8 + 1),
        ("relocation", APART, 8 + 6 + 3),
        ("memory_balance", TOGETHER, 906_667),  # 136 of 150, rounded up
        ("memory_balance", SPLIT, 773_334),  # 116 of 150; y is unlimited
        ("memory_balance", APART, 706_667),  # 106 of 150, and 20 of 30
    ],
)
def test_metrics(metric: Metric, schedule: Schedule, value: int) -> None:
    found = METRICS[metric](example(), schedule)
    assert (type(found), found) == (int, value)


def test_payloads_of_their_own_move_one_by_one() -> None:
    problem = example(shared=[False, False, False])
    assert METRICS["communication"](problem, SPLIT) == 12
    assert METRICS["total_cost"](problem, SPLIT) == (2 + 6 + 1 + 4) + 2 * (1 + 3)
    assert METRICS["energy"](problem, SPLIT) == 6 * 3 + 7 * 4 + 2 + 2


def test_which_edges_stand_for_transfers() -> None:
    problem = example()
    assert edge_transfers(problem, TOGETHER.device).tolist() == [-1, -1, -1]
    assert edge_transfers(problem, SPLIT.device).tolist() == [0, 0, -1]
    assert edge_transfers(problem, APART.device).tolist() == [0, 1, 2]
    assert edge_transfers(problem, np.array([0, 2, 2, 2])).tolist() == [0, 0, 2]
    assert moved_edges(problem, np.array([0, 2, 2, 2])).tolist() == [0, 2]
    assert edge_ticks(problem, APART.device).tolist() == [4, 5, 7]
    assert loads(problem, APART.device).tolist() == [2, 6, 1]
    assert durations(problem, APART.device).tolist() == [2, 6, 1, 0]


def test_arrivals_with_and_without_contention() -> None:
    problem = example()
    assert arrivals(problem, SPLIT).tolist() == [6, 6, 2]
    rows = Transfers(np.array([0]), np.array([5]))
    waited = Schedule(SPLIT.device, SPLIT.start, rows)
    assert arrivals(example(contention="port"), waited).tolist() == [9, 9, 2]


def test_energy_is_rounded_up_task_by_task_and_transfer_by_transfer() -> None:
    problem = example(power_num=[1, 1, 0], power_den=[4, 3, 1])
    assert task_energy(problem).tolist() == [[1, 1, 0], [2, 2, 0], [1, 1, 0], [1, 1, 0]]
    found = transfer_energy(problem, np.array([6, 6, 0, 8]), np.array([0, 1, 0, 2]), np.array([1, 1, 1, 0]))
    assert found.tolist() == [2, 0, 0, 2]


def test_memory_balance_follows_the_memory_model_and_bears_extreme_capacities() -> None:
    early = Schedule(TOGETHER.device, TOGETHER.start)
    scratch = {"scratch": [40, 40, 40, 40], "resident": [0] * 4, "output": [0] * 4}
    assert METRICS["memory_balance"](example(**scratch), early) == 1_066_667  # 160 of 150
    assert METRICS["memory_balance"](example(**scratch, memory_model="peak"), early) == 266_667
    assert METRICS["memory_balance"](example(capacity=[UNLIMITED] * 3), early) == 0
    assert METRICS["memory_balance"](example(capacity=[UNLIMITED, UNLIMITED, 0]), early) == 0  # nothing used
    huge = example(resident=[2**60, 0, 0, 0], output=[0] * 4, capacity=[2**60, 1, 1])
    assert METRICS["memory_balance"](huge, early) == 1_000_000


def test_no_tasks() -> None:
    problem = build_problem(
        task_names=[], device_names=("x",), duration=np.zeros((0, 1), dtype=np.int64), capacity=np.array([5])
    )
    nothing = Schedule(np.array([]), np.array([]))
    assert [METRICS[metric](problem, nothing) for metric in ALL_METRICS] == [0] * len(ALL_METRICS)
    assert makespan(problem, nothing) == 0


@pytest.mark.parametrize(
    ("levels", "values"),
    [
        ((("makespan", 1),), (13,)),
        ((("makespan", 2), ("communication", Fraction(1, 3))), (28,)),
        ((("makespan", Fraction(1, 2)),), (Fraction(13, 2),)),
        ((("makespan", 0), ("max_load", 1)), (7,)),
    ],
)
def test_weighted_sums_are_exact(levels: tuple[tuple[Metric, Any], ...], values: tuple[Any, ...]) -> None:
    objective = Objective((tuple(Term(metric, Fraction(weight)) for metric, weight in levels),))
    found = evaluate(example(objective=objective), SPLIT)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_levels_come_in_order() -> None:
    objective = Objective(((Term("communication"),), (Term("makespan"), Term("max_load")), (Term("energy"),)))
    assert evaluate(example(objective=objective), SPLIT) == (6, 20, 48)
    assert evaluate(example(objective=objective), TOGETHER) < evaluate(example(objective=objective), SPLIT)


def test_simplified() -> None:
    assert simplified(Fraction(6, 3)) == 2
    assert isinstance(simplified(Fraction(6, 3)), int)
    assert simplified(Fraction(1, 3)) == Fraction(1, 3)
