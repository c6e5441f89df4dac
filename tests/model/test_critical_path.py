"""The critical path of schedules: by hand, and what must hold of every one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import placeopt as po
from placeopt.model.critical_path import Step, critical_path, critical_ticks
from placeopt.model.schedule import makespan


def problem(
    durations: Sequence[int], edges: Sequence[tuple[int, int, int]] = (), devices: int = 2, **more: object
) -> po.Problem:
    """Tasks t0, t1, ... of the same duration everywhere; a payload of k bytes takes k ticks."""
    return po.build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{i}" for i in range(devices)],
        duration=np.repeat(np.array(durations, dtype=np.int64)[:, None], devices, axis=1),
        edges=[(a, b) for a, b, _ in edges],
        payload=[size for _, _, size in edges],
        byte_ticks_num=np.ones((devices, devices), dtype=np.int64),
        **more,  # type: ignore[arg-type]
    )


def told(path: tuple[Step, ...]) -> list[tuple[str, int, int, int, str]]:
    return [(step.kind, step.task, step.start, step.end, step.cause) for step in path]


def test_no_tasks_no_path() -> None:
    assert critical_path(problem([]), po.Schedule(np.empty(0), np.empty(0))) == ()


def test_a_transfer_decides() -> None:
    # t0 runs on d0 in [0, 3), its 4 bytes move in [3, 7), t1 runs on d1 in [7, 9); t2 is done long before.
    case = problem([3, 2, 1], [(0, 1, 4)])
    path = critical_path(case, po.Schedule([0, 1, 1], [0, 7, 0]))
    assert told(path) == [("task", 0, 0, 3, "start"), ("transfer", 0, 3, 7, "data"), ("task", 1, 7, 9, "data")]
    assert [step.edge for step in path] == [None, 0, None]
    assert critical_ticks(path) == {"task": 5, "transfer": 4, "release": 0, "swap": 0, "wait": 0}


def test_the_order_on_a_device_decides() -> None:
    # t1's input is there at 3, but t2 holds d0 until 6.
    case = problem([3, 2, 3], [(0, 1, 4)])
    path = critical_path(case, po.Schedule([0, 0, 0], [0, 6, 3]))
    assert told(path) == [("task", 0, 0, 3, "start"), ("task", 2, 3, 6, "device"), ("task", 1, 6, 8, "device")]


def test_a_producer_on_the_same_device_counts_as_data() -> None:
    case = problem([3, 2], [(0, 1, 4)])
    assert told(critical_path(case, po.Schedule([0, 0], [0, 3]))) == [
        ("task", 0, 0, 3, "start"),
        ("task", 1, 3, 5, "data"),
    ]


def test_release_times_and_needless_waits_are_told() -> None:
    case = problem([3, 2], [(0, 1, 1)], release=np.array([5, 0]))
    path = critical_path(case, po.Schedule([0, 1], [6, 12]))
    assert told(path) == [
        ("release", 0, 0, 5, "start"),
        ("wait", 0, 5, 6, "release"),
        ("task", 0, 6, 9, "nothing"),
        ("transfer", 0, 9, 10, "data"),
        ("wait", 1, 10, 12, "data"),
        ("task", 1, 12, 14, "nothing"),
    ]
    assert critical_ticks(path) == {"task": 5, "transfer": 1, "release": 5, "swap": 0, "wait": 3}


def test_a_first_task_that_starts_late_for_no_reason() -> None:
    assert told(critical_path(problem([3]), po.Schedule([1], [4]))) == [
        ("wait", 0, 0, 4, "start"),
        ("task", 0, 4, 7, "nothing"),
    ]


def test_ports_decide() -> None:
    # d0 sends to d1 in [2, 7) and, the port being busy until then, to d2 in [7, 10): t2 waits for the port.
    case = problem([2, 1, 1], [(0, 1, 5), (0, 2, 3)], devices=3, contention="port")
    schedule = po.Schedule([0, 1, 2], [0, 7, 10], po.Transfers([0, 1], [2, 7]))
    assert told(critical_path(case, schedule)) == [
        ("task", 0, 0, 2, "start"),
        ("transfer", 0, 2, 7, "data"),
        ("transfer", 0, 7, 10, "port"),
        ("task", 2, 10, 11, "data"),
    ]


def test_the_receivers_port_decides_too() -> None:
    # d2 receives from d0 in [2, 7), so from d1 only in [7, 9).
    case = problem([2, 3, 1], [(0, 2, 5), (1, 2, 2)], devices=3, contention="port")
    schedule = po.Schedule([0, 1, 2], [0, 0, 9], po.Transfers([0, 1], [2, 7]))
    assert told(critical_path(case, schedule)) == [
        ("task", 0, 0, 2, "start"),
        ("transfer", 0, 2, 7, "data"),
        ("transfer", 1, 7, 9, "port"),
        ("task", 2, 9, 10, "data"),
    ]


def test_a_port_for_both_directions_decides() -> None:
    # d0 receives t3's data from d1 in [2, 7), so it sends t2's only in [7, 11).
    case = problem([3, 2, 2, 1], [(0, 2, 4), (1, 3, 5)], contention="half_duplex")
    schedule = po.Schedule([0, 1, 1, 0], [0, 0, 11, 7], po.Transfers([0, 1], [7, 2]))
    assert po.verify(case, schedule).feasible
    assert told(critical_path(case, schedule)) == [
        ("task", 1, 0, 2, "start"),
        ("transfer", 1, 2, 7, "data"),
        ("transfer", 0, 7, 11, "port"),
        ("task", 2, 11, 13, "data"),
    ]


def test_one_transfer_for_several_consumers() -> None:
    case = problem([2, 4, 1], [(0, 1, 3), (0, 2, 3)], shared=[True, True])
    path = critical_path(case, po.Schedule([0, 1, 1], [0, 6, 5]))
    assert told(path)[:2] == [("task", 0, 0, 2, "start"), ("transfer", 0, 2, 5, "data")]
    assert [step.edge for step in path] == [None, 0, None, None]
    assert told(path)[2:] == [("task", 2, 5, 6, "data"), ("task", 1, 6, 10, "device")]


def test_tasks_without_length_come_in_their_order() -> None:
    case = problem([0, 0, 2, 0], [(2, 1, 0), (1, 0, 0), (0, 3, 0)], devices=1)
    path = critical_path(case, po.Schedule([0, 0, 0, 0], [2, 2, 0, 2]))
    assert [step.task for step in path] == [2, 1, 0]  # of 0, 2 and 3, which end last, the lowest is the end
    path = critical_path(case, po.Schedule([0, 0, 0, 0], [2, 2, 0, 3]))
    assert told(path) == [
        ("task", 2, 0, 2, "start"),
        ("task", 1, 2, 2, "data"),
        ("task", 0, 2, 2, "data"),
        ("wait", 3, 2, 3, "data"),
        ("task", 3, 3, 3, "nothing"),
    ]


def test_a_broken_schedule_has_a_path_too() -> None:
    # t1 starts before t0's data is there, and overlaps t2.
    case = problem([3, 4, 3], [(0, 1, 4)])
    path = critical_path(case, po.Schedule([0, 1, 1], [0, 2, 1]))
    assert told(path) == [("wait", 1, 0, 2, "start"), ("task", 1, 2, 6, "nothing")]


@pytest.mark.parametrize("contention", ["none", "port", "half_duplex"])
@example(seed=951341)  # of two transfers of no length at one tick, that of the earlier producer goes first
@given(seed=st.integers(0, 10**6))
def test_steps_follow_each_other_from_zero_to_the_makespan(contention: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 14))
    pairs = [(a, b, int(random.integers(0, 5))) for b in range(n) for a in range(b) if random.random() < 0.3]
    case = problem(
        random.integers(0, 6, n).tolist(),
        pairs,
        devices=3,
        shared=np.zeros(len(pairs), np.bool_),
        release=random.integers(0, 2, n) * random.integers(0, 20, n),
        contention=contention,
    )
    schedule = po.simulate(case, random.integers(0, 3, n))
    path = critical_path(case, schedule)
    assert path[0].start == 0
    assert path[-1].end == makespan(case, schedule)
    assert all(before.end == after.start for before, after in pairwise(path))
    assert sum(critical_ticks(path).values()) == makespan(case, schedule)
    # Run first in, first out, nothing waits without a reason, and every reason is there.
    assert not [step for step in path if step.kind == "wait"]
    for before, after in pairwise(path):
        if after.cause == "device":
            assert schedule.device[before.task] == schedule.device[after.task]
        elif after.cause == "data" and after.kind == "task":
            assert any(
                case.edge_source[edge] == before.task
                for edge in case.in_edge[case.in_start[after.task] : case.in_start[after.task + 1]]
            )
        elif after.cause == "port":
            assert contention != "none"
            other_port = 0 if contention == "half_duplex" else 10
            mine, other = (
                {
                    int(schedule.device[case.edge_source[step.edge]]),
                    other_port + int(schedule.device[case.edge_target[step.edge]]),
                }
                for step in (after, before)
                if step.edge is not None
            )
            assert mine & other
