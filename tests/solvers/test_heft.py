"""HEFT: the paper's numbers, insertion, memory, groups, compiled code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers._constructive.construction import as_answer
from placeopt_solvers._constructive.groups import grouped, packings
from placeopt_solvers._constructive.priorities import priority_list, upward_ranks
from placeopt_solvers._constructive.sequences import heft, heft_on_homes

import placeopt as po
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.memory import sum_memory
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.model.schedule import lateness
from placeopt.protocol import Termination
from placeopt.verifier import verify

HEFT_10 = Path(__file__).parents[2] / "problems" / "heft-10.yaml"


def problem(durations: list[list[int]], edges: list[tuple[int, int]] | None = None, **rest: Any) -> Problem:
    m = len(durations[0])
    values: dict[str, Any] = {"byte_ticks_num": np.ones((m, m), dtype=np.int64)}
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.array(durations),
        edges=edges or [],
        **values | rest,
    )


def schedule_of(case: Problem) -> tuple[list[int], list[int]]:
    found = heft(case)
    assert found.schedule is not None, found.note
    return found.schedule.device.tolist(), found.schedule.start.tolist()


def test_upward_ranks_are_those_of_the_paper() -> None:
    """Topcuoglu, Hariri, Wu 2002, table 3."""
    published = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
    assert upward_ranks(po.load(HEFT_10)) == pytest.approx(published, abs=5e-4)


def test_the_paper_s_example_takes_80() -> None:
    """Topcuoglu, Hariri, Wu 2002, figure 3: the schedule itself, devices and starts."""
    case = po.load(HEFT_10)
    assert priority_list(case, upward_ranks(case)).tolist() == [0, 2, 3, 1, 4, 5, 8, 6, 7, 9]
    result = po.solve(case, "heft")
    assert result.objective == 80
    assert result.schedule is not None
    assert result.schedule.device.tolist() == [2, 0, 2, 1, 2, 1, 2, 0, 1, 1]
    assert result.schedule.start.tolist() == [0, 27, 9, 18, 28, 26, 38, 57, 56, 73]


def test_a_gap_that_fits_exactly_is_used() -> None:
    # t0 d0 0-2, its data reaches d1 at 3, t1 d1 3-7, back at 8: t3 of 6 ticks fits d0's gap [2, 8) to the tick.
    case = problem([[2, 90], [90, 4], [2, 110], [6, 90]], [(0, 1), (1, 2)], payload=[1, 1])
    assert schedule_of(case) == ([0, 1, 0, 0], [0, 3, 8, 2])


def test_a_gap_one_tick_short_is_not() -> None:
    case = problem([[2, 90], [90, 4], [2, 110], [7, 90]], [(0, 1), (1, 2)], payload=[1, 1])
    assert schedule_of(case) == ([0, 1, 0, 0], [0, 3, 8, 10])


def test_ties_go_by_task_then_device() -> None:
    assert schedule_of(problem([[2, 2, 2]] * 4)) == ([0, 1, 2, 0], [0, 0, 0, 2])


def test_equal_ranks_keep_the_topological_order() -> None:
    case = problem([[0, 0]] * 4, [(3, 1), (1, 0), (0, 2)])
    order = priority_list(case, upward_ranks(case)).tolist()
    assert order == [3, 1, 0, 2]


def test_memory_is_never_overfilled() -> None:
    case = problem([[1, 5]] * 4, resident=np.array([3, 3, 3, 3]), capacity=np.array([6, 6]))
    device, _ = schedule_of(case)
    assert sorted(device) == [0, 0, 1, 1]


def test_a_group_takes_its_whole_memory_with_its_first_member() -> None:
    # t0 and t3 share a device and need 4 + 4: only d1 has that, although d0 is faster for t0.
    case = problem(
        [[1, 9], [1, 9], [1, 9], [1, 9]],
        resident=np.array([4, 1, 1, 4]),
        capacity=np.array([6, 8]),
        group=np.array([0, 1, 2, 0]),
    )
    device, _ = schedule_of(case)
    assert device == [1, 0, 0, 1]


def test_a_dead_end_is_left_by_making_room() -> None:
    # By rank 2, 2, 2 would go one to each device, and the last task of 4 finds no room anywhere.
    case = problem(
        [[9, 9], [8, 8], [7, 7]],
        resident=np.array([2, 2, 4]),
        capacity=np.array([4, 4]),
    )
    result = po.solve(case, "heft")
    assert result.feasible
    assert result.schedule is not None
    assert result.schedule.device[0] == result.schedule.device[1] != result.schedule.device[2]
    assert "moved to make room" in result.message


def test_separated_tasks_are_apart() -> None:
    case = problem([[1, 9, 9]] * 3, separation=[(0, 1), (1, 2), (0, 2)])
    device, _ = schedule_of(case)
    assert sorted(device) == [0, 1, 2]


def test_no_placement_is_told_with_amounts() -> None:
    # Each device of 9 bytes has room for one task of 5 bytes, so the third task fits nowhere.
    case = problem([[1, 1]] * 3, resident=np.array([5, 5, 5]), capacity=np.array([9, 9]))
    answer = as_answer(case, heft(case))
    assert answer.schedule is None
    assert "which takes 5 B: it would need 1 B more on d0, 1 B more on d1" in answer.message
    assert "cp-sat" in answer.message


def test_transfers_wait_for_the_port_of_their_producer() -> None:
    # t0 ends at tick 1 and its two transfers take 3 ticks each: they leave d0 at 1 and at 4, and t2 starts at 7.
    case = problem([[1, 99, 99], [99, 1, 99], [99, 99, 1]], [(0, 1), (0, 2)], payload=[3, 3], contention="port")
    assert schedule_of(case) == ([0, 1, 2], [0, 4, 7])
    result = po.solve(case, "heft")
    assert (result.objective, result.feasible) == (8, True)


@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_never_better_than_the_optimum_and_always_feasible_but_for_deadlines(seed: int, times: bool) -> None:
    case = small_problem(np.random.default_rng(seed), Objective(), times=times)
    best = optimum(case)
    result = po.solve(case, "heft")
    if result.schedule is None:
        assert result.termination is (Termination.FAILED if best is not None else Termination.INFEASIBLE)
    elif result.feasible:
        assert best is not None
        assert result.objective is not None
        assert result.objective >= best[0][0]
    else:
        assert times
        assert {violation.rule for violation in result.violations} == {"deadline"}
        assert "misses its deadline by" in result.message


def test_no_task_starts_before_its_release() -> None:
    # t1 is released at 5 and could go to d0 in [5, 7); t2, ready at once, fits into the gap before it.
    case = problem([[2, 90], [2, 90], [1, 90]], release=[0, 5, 0])
    assert schedule_of(case) == ([0, 0, 0], [0, 5, 2])
    # A task of no duration is no exception, nor one that only waits for its data.
    assert schedule_of(problem([[0], [3]], release=[4, 0])) == ([0, 0], [4, 0])
    assert schedule_of(problem([[2], [1]], [(0, 1)], release=[1, 2])) == ([0, 0], [1, 3])


def test_the_order_by_rank_stays_where_it_keeps_the_deadlines() -> None:
    # By rank t1 before t0, although t0 is due first.
    case = problem([[2], [3]], deadline=[5, 20])
    assert schedule_of(case) == ([0, 0], [3, 0])
    assert heft(case).note == ""


def test_what_is_due_first_goes_first_where_the_order_by_rank_is_too_late() -> None:
    case = problem([[2], [3]], deadline=[4, 20])
    assert schedule_of(case) == ([0, 0], [0, 2])
    # t1 has no deadline, but t3 after it does: it goes before t0, whose rank is higher.
    chain = problem([[5], [1], [5], [2]], [(0, 2), (1, 3)], deadline=[UNLIMITED, UNLIMITED, UNLIMITED, 4])
    assert schedule_of(chain) == ([0] * 4, [3, 0, 8, 1])


def test_of_two_late_schedules_the_less_late_is_kept_and_the_message_says_so() -> None:
    case = problem([[2], [3]], deadline=[2, 4])
    answer = as_answer(case, heft(case))
    found, message = answer.schedule, answer.message
    assert found is not None
    assert found.start.tolist() == [0, 2]
    assert (
        message
        == "some task misses its deadline by 1 ns; the solver cp-sat can decide whether all deadlines can be met"
    )
    assert lateness(case, found) == 1


def test_what_is_due_first_is_sent_first() -> None:
    # Both consumers are elsewhere. By rank t1's data is sent first, and t2 would end at 8.
    ways = [[1, 99, 99], [99, 1, 99], [99, 99, 1]]
    case = problem(ways, [(0, 1), (0, 2)], payload=[3, 3], contention="port", deadline=[UNLIMITED, UNLIMITED, 7])
    found = heft(case).schedule
    assert found is not None
    assert found.start.tolist() == [0, 7, 4]
    late = replace(case, deadline=np.array([UNLIMITED, UNLIMITED, 4]))
    assert "misses its deadline by 1 ns" in as_answer(late, heft(late)).message


def test_the_device_is_chosen_with_the_ports_in_mind() -> None:
    # Four consumers of 4 ticks each, whose data takes 3 to reach d1: without ports two and two would be best (1 + 8,
    # 1 + 3 + 8), but the second transfer only arrives at 7.
    case = problem([[1, 99], *[[4, 4]] * 4], [(0, i) for i in range(1, 5)], payload=[3] * 4, contention="port")
    found = heft(case).schedule
    assert found is not None
    assert found.device.tolist() == [0, 0, 1, 0, 1]
    assert found.start.tolist() == [0, 1, 4, 5, 8]
    assert found.transfers is not None
    assert found.transfers.start.tolist() == [1, 4]


def test_a_given_placement_is_ordered_by_deadlines_too() -> None:
    case = problem([[2, 9], [3, 9]], deadline=[4, 20])
    assert heft_on_homes(case, np.array([0, 0])).start.tolist() == [0, 2]


def layered(n: int, m: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    targets = np.repeat(np.arange(1, n), 2)
    sources = np.maximum(targets - rng.integers(1, 8, len(targets)), 0)
    edges = np.unique(np.stack((sources, targets), axis=1), axis=0)
    return problem(
        rng.integers(0, 9, (n, m)).tolist(),
        [(int(a), int(b)) for a, b in edges],
        payload=rng.integers(0, 12, len(edges)),
        resident=rng.integers(0, 5, n),
        capacity=np.full(m, 3 * n // m + 5),
        group=np.arange(n) // 3 * 3 + np.arange(n) % 2,
        release=rng.integers(0, 90, n),
        deadline=np.where(rng.random(n) < 0.3, rng.integers(20, 200, n), UNLIMITED),
    )


def naive_starts(case: Problem, device: Int, order: list[int]) -> list[int]:
    """Insertion by the definition: the earliest start, after all inputs, with nothing on the device in the way."""
    start: dict[int, int] = {}
    for i in order:
        d = int(device[i])
        ready = int(case.release[i])
        for e in range(case.n_edges):
            if case.edge_target[e] == i:
                u = int(case.edge_source[e])
                end = start[u] + int(case.duration[u, device[u]])
                ready = max(ready, end + int(case.transfer(case.payload[e], device[u], d)))
        ticks = int(case.duration[i, d])
        busy = [(start[j], start[j] + int(case.duration[j, d])) for j in start if device[j] == d]
        spots = sorted({ready, *(end for _, end in busy if end >= ready)})
        start[i] = next(s for s in spots if all(s + ticks <= b or e <= s or b == e for b, e in busy))
    return [start[i] for i in range(case.n_tasks)]


@pytest.mark.parametrize("seed", range(20))
def test_starts_are_those_of_insertion_by_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    edges = [(a, b) for b in range(n) for a in range(b) if rng.random() < 0.2]
    release = rng.integers(0, int(rng.choice([1, 30])), n)
    case = problem(rng.integers(1, 9, (n, 3)).tolist(), edges, payload=rng.integers(0, 9, len(edges)), release=release)
    found = heft(case).schedule
    assert found is not None
    order = priority_list(case, upward_ranks(case)).tolist()
    assert found.start.tolist() == naive_starts(case, found.device, order)


def test_room_is_kept_for_what_can_go_nowhere_else() -> None:
    # t0 goes first and would like d0, but t2 must be there and needs all of it.
    case = problem(
        [[5, 6], [1, 1], [1, 1]],
        [(0, 1)],
        resident=np.array([2, 1, 4]),
        capacity=np.array([4, 4]),
        feasible=np.array([[1, 1], [1, 1], [1, 0]], dtype=np.bool_),
    )
    assert schedule_of(case)[0] == [1, 1, 0]


def test_what_must_be_apart_from_a_pinned_task_keeps_off_its_device() -> None:
    # t1 must run on d0, so t0, apart from it, cannot; t2, apart from t0, is then left with d0 or d2.
    case = problem(
        [[1, 5, 9], [1, 1, 1], [9, 1, 5]],
        separation=[(0, 1), (0, 2)],
        feasible=np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], dtype=np.bool_),
    )
    assert schedule_of(case)[0] == [1, 0, 2]


def test_a_perfect_packing_is_found_by_searching() -> None:
    """7 + 3, 6 + 4 and 5 + 5 fill three devices of 10; taking the largest first leads nowhere without going back."""
    sizes = np.array([7, 6, 5, 5, 4, 3])
    case = problem([[1, 1, 1]] * 6, resident=sizes, capacity=np.array([10, 10, 10]))
    device, _ = schedule_of(case)
    assert [int(sizes[np.array(device) == d].sum()) for d in range(3)] == [10, 10, 10]


@pytest.mark.parametrize("seed", range(30))
def test_packings_keep_memory_feasibility_and_separation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = 14, 4
    sizes = rng.integers(1, 9, n)
    case = problem(
        rng.integers(1, 5, (n, m)).tolist(),
        resident=sizes,
        capacity=np.full(m, int(sizes.sum() * 1.15) // m),
        feasible=rng.random((n, m)) < 0.8,
        separation=[(int(a), int(b)) for a, b in rng.integers(0, n, (4, 2)) if a != b],
        group=np.where(rng.random(n) < 0.2, 0, np.arange(n)),
    )
    groups = grouped(case)
    for home in [] if groups.stuck is not None else packings(case, groups):
        device = home[case.group]
        assert case.feasible[np.arange(n), device].all()
        assert (sum_memory(case, device) <= case.capacity).all()
        assert (device[case.separation[:, 0]] != device[case.separation[:, 1]]).all()


@pytest.mark.parametrize("seed", range(20))
def test_instantaneous_tasks_interrupt_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 25
    edges = [(a, b) for b in range(n) for a in range(max(0, b - 9), b) if rng.random() < 0.2]
    durations = np.where(rng.random((n, 1)) < 0.4, 0, rng.integers(1, 9, (n, 2)))
    release = rng.integers(0, int(rng.choice([1, 30])), n)
    case = problem(durations.tolist(), edges, payload=rng.integers(0, 9, len(edges)), release=release)
    assert po.solve(case, "heft").feasible
    found = heft(case).schedule
    assert found is not None
    assert verify(case, found).feasible
