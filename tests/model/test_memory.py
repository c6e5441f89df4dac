"""Memory of schedules: worked by hand, and against counting tick by tick."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.memory import fits, freed_at, limited, memory_profile, peak_memory, sum_memory, used_memory
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, Transfers


def plan(device: list[int], start: list[int], transfers: list[tuple[int, int]] | None = None) -> Schedule:
    rows = None
    if transfers is not None:
        rows = Transfers(np.array([edge for edge, _ in transfers]), np.array([tick for _, tick in transfers]))
    return Schedule(np.array(device), np.array(start), rows)


def chain(**changes: Any) -> Problem:
    """a (2 ticks) sends 6 bytes to b (3) and c (1); on the other device they are there 1 + 6/2 ticks later.

    Memory: a 10 + 6 + 1, b 20 + 0 + 2, c 40 + 5 + 4 bytes resident, output, scratch.
    """
    arrays: dict[str, Any] = {
        "task_names": ("a", "b", "c"),
        "device_names": ("x", "y"),
        "duration": [[2, 2], [3, 3], [1, 1]],
        "edges": [(0, 1), (0, 2)],
        "payload": [6, 6],
        "shared": [True, True],
        "latency": [[0, 1], [1, 0]],
        "byte_ticks_num": [[1, 1], [1, 1]],
        "byte_ticks_den": [[2, 2], [2, 2]],
        "resident": [10, 20, 40],
        "output": [6, 0, 5],
        "scratch": [1, 2, 4],
        "memory_model": "peak",
    }
    return build_problem(**(arrays | changes))


class TestByHand:
    def test_sum_is_everything_ever_held(self) -> None:
        problem = chain(memory_model="sum")
        assert sum_memory(problem, np.array([0, 0, 1])).tolist() == [17 + 22, 49]
        assert sum_memory(problem, np.array([1, 1, 1])).tolist() == [0, 88]
        assert used_memory(problem, plan([0, 0, 1], [0, 2, 6])).tolist() == [39, 49]

    def test_outputs_stay_until_the_last_consumer_has_them(self) -> None:
        problem = chain()
        # b runs beside a and ends at 5; c's data arrives at 2 + 4; c itself has no consumer and ends at 7.
        assert freed_at(problem, plan([0, 0, 1], [0, 2, 6])).tolist() == [6, 5, 7]
        # Both on the same device: the later end counts, not the start.
        assert freed_at(problem, plan([0, 0, 0], [0, 2, 9])).tolist() == [10, 5, 10]
        # A consumer that starts late elsewhere has its data when it arrives.
        assert freed_at(problem, plan([0, 1, 1], [0, 50, 60])).tolist() == [6, 53, 61]

    def test_transfers_that_wait_for_a_port_keep_the_output_longer(self) -> None:
        problem = chain(contention="port")
        assert freed_at(problem, plan([0, 1, 0], [0, 9, 2], [(0, 5)])).tolist() == [9, 12, 3]
        own = chain(contention="port", shared=[False, False])
        assert freed_at(own, plan([0, 1, 1], [0, 9, 20], [(0, 5), (1, 9)])).tolist() == [13, 12, 21]

    def test_peak_is_what_is_live_at_one_time(self) -> None:
        problem = chain()
        # x: resident 30; a: output 6 over [0, 6), scratch 1 over [0, 2); b: scratch 2 over [2, 5). y: 40 + 5 + 4.
        schedule = plan([0, 0, 1], [0, 2, 6])
        assert peak_memory(problem, schedule).tolist() == [30 + 6 + 2, 49]
        assert used_memory(problem, schedule).tolist() == [38, 49]
        ticks, live = memory_profile(problem, schedule, 0)
        assert (ticks.tolist(), live.tolist()) == ([0, 2, 5, 6], [37, 38, 36, 30])
        ticks, live = memory_profile(problem, schedule, 1)
        assert (ticks.tolist(), live.tolist()) == ([0, 6, 7], [40, 49, 40])

    def test_what_ends_frees_before_what_starts_at_the_same_tick_takes(self) -> None:
        problem = build_problem(
            task_names=("a", "b"), device_names=("x",), duration=np.array([[5], [5]]),
            scratch=np.array([100, 100]), memory_model="peak",
        )  # fmt: skip
        assert peak_memory(problem, plan([0, 0], [0, 5])).tolist() == [100]
        assert peak_memory(problem, plan([0, 0], [0, 4])).tolist() == [200]
        assert peak_memory(problem, plan([0, 0], [5, 0])).tolist() == [100]

    def test_a_task_without_duration_and_consumers_is_never_live(self) -> None:
        problem = build_problem(
            task_names=("a", "b"), device_names=("x",), duration=np.array([[0], [3]]), resident=np.array([1, 0]),
            output=np.array([50, 0]), scratch=np.array([100, 0]), memory_model="peak",
        )  # fmt: skip
        assert peak_memory(problem, plan([0, 0], [1, 0])).tolist() == [1]
        consumed = replace(
            problem,
            edge_source=np.array([0]),
            edge_target=np.array([1]),
            payload=np.array([50]),
            shared=np.array([True]),
        )
        assert peak_memory(consumed, plan([0, 0], [0, 0])).tolist() == [51]  # but its output may be

    def test_no_tasks(self) -> None:
        problem = build_problem(
            task_names=[], device_names=("x", "y"), duration=np.zeros((0, 2), dtype=np.int64), memory_model="peak"
        )
        nothing = plan([], [])
        assert peak_memory(problem, nothing).tolist() == [0, 0]
        assert sum_memory(problem, nothing.device).tolist() == [0, 0]
        assert memory_profile(problem, nothing, 0)[1].tolist() == [0]

    def test_capacities(self) -> None:
        schedule = plan([0, 0, 1], [0, 2, 6])
        assert not limited(chain())
        assert limited(chain(capacity=[UNLIMITED, 5]))
        assert fits(chain(), schedule)
        assert fits(chain(capacity=[38, 49]), schedule)
        assert not fits(chain(capacity=[37, 49]), schedule)
        assert not fits(chain(capacity=[38, 48]), schedule)
        assert not fits(chain(capacity=[38, 49], memory_model="sum"), schedule)
        assert fits(chain(capacity=[39, 49], memory_model="sum"), schedule)


def live_at(problem: Problem, schedule: Schedule, device: int, tick: int) -> int:
    """Bytes live on a device at one tick, straight from the definition, for problems without contention."""
    total = 0
    for i in range(problem.n_tasks):
        d, start = int(schedule.device[i]), int(schedule.start[i])
        if d != device:
            continue
        end = start + int(problem.duration[i, d])
        total += int(problem.resident[i])
        if start <= tick < end:
            total += int(problem.scratch[i])
        last = end
        for edge in np.flatnonzero(problem.edge_source == i):
            j = int(problem.edge_target[edge])
            there = int(schedule.device[j])
            if there == d:
                last = max(last, int(schedule.start[j]) + int(problem.duration[j, there]))
            else:
                ticks = -(-int(problem.payload[edge]) // int(problem.byte_ticks_den[d, there]))
                last = max(last, end + int(problem.latency[d, there]) + ticks)
        if start <= tick < last:
            total += int(problem.output[i])
    return total


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, Schedule]:
    """A small problem and any placement and starts, feasible or not."""
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 3))

    def numbers(low: int, high: int, *shape: int) -> Int:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size))).reshape(shape)

    pairs = [(a, b) for a in range(n) for b in range(a + 1, n) if draw(st.booleans())]
    problem = build_problem(
        task_names=[str(i) for i in range(n)], device_names=[str(d) for d in range(m)], duration=numbers(0, 4, n, m),
        edges=pairs, payload=numbers(0, 9, len(pairs)), resident=numbers(0, 9, n), output=numbers(0, 9, n),
        scratch=numbers(0, 9, n), latency=numbers(0, 3, m, m), byte_ticks_num=np.ones((m, m)),
        byte_ticks_den=numbers(1, 3, m, m), memory_model="peak",
    )  # fmt: skip
    return problem, Schedule(numbers(0, m - 1, n), numbers(0, 12, n))


@settings(deadline=None, max_examples=200)
@given(cases())
def test_peaks_and_profiles_are_those_of_counting_tick_by_tick(case: tuple[Problem, Schedule]) -> None:
    problem, schedule = case
    horizon = range(45)
    for device, peak in enumerate(peak_memory(problem, schedule).tolist()):
        naive = [live_at(problem, schedule, device, tick) for tick in horizon]
        assert peak == max(naive)
        ticks, live = memory_profile(problem, schedule, device)
        assert ticks[0] == 0
        assert [int(live[np.searchsorted(ticks, tick, side="right") - 1]) for tick in horizon] == naive
        assert peak <= sum_memory(problem, schedule.device)[device]


@pytest.mark.parametrize("model", ["sum", "peak"])
def test_memory_of_large_amounts_does_not_overflow(model: Any) -> None:
    large = 2**58
    problem = chain(resident=[large] * 3, output=[large, 0, 0], scratch=[0, 0, large], memory_model=model)
    assert used_memory(problem, plan([0, 0, 0], [0, 2, 5])).tolist() == [5 * large, 0]
