"""Measures of schedules and graphs: worked by hand, and against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import optimum, small_problem

from placeopt.model.building import build_problem
from placeopt.model.metrics import Shape, ccr, critical_path, measure, shape, single_device
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule, makespan
from placeopt.simulation import simulate
from placeopt.verifier import verify


def fork() -> Problem:
    """a sends its 6 bytes to b and c, in 1 + 6/2 ticks from d0 to d1, 1 + 6 back; d1 takes twice as long for all."""
    return build_problem(
        task_names=["a", "b", "c"],
        device_names=["d0", "d1"],
        duration=np.array([[2, 4], [3, 6], [5, 10]]),
        edges=[(0, 1), (0, 2)],
        payload=[6, 6],
        shared=[True, True],
        latency=np.array([[0, 1], [1, 0]]),
        byte_ticks_num=np.array([[0, 1], [1, 0]]),
        byte_ticks_den=np.array([[1, 2], [1, 1]]),
        resident=np.array([1, 2, 3]),
        output=np.array([6, 0, 0]),
        scratch=np.array([0, 4, 5]),
    )


def heft_10() -> Problem:
    """Topcuoglu et al. 2002, figure 2."""
    rows = "14 16 9/13 19 18/11 13 19/13 8 17/12 13 10/13 16 9/7 15 11/5 11 14/18 12 20/21 7 16"
    edges = "1-2 1-3 1-4 1-5 1-6 2-8 2-9 3-7 4-8 4-9 5-9 6-8 7-10 8-10 9-10"
    return build_problem(
        task_names=[f"n{i}" for i in range(1, 11)],
        device_names=["p1", "p2", "p3"],
        duration=np.array([[int(ticks) for ticks in row.split()] for row in rows.split("/")]),
        edges=[(int(i) - 1, int(j) - 1) for i, j in (edge.split("-") for edge in edges.split())],
        payload=[18, 12, 9, 11, 14, 19, 16, 23, 27, 23, 13, 15, 17, 11, 13],
        byte_ticks_num=np.ones((3, 3)),
    )


class TestMeasure:
    def test_by_hand(self) -> None:
        # a on d0 [0, 2), b there [2, 5), c on d1: the data is there at 2 + 1 + 3 = 6, [6, 16).
        found = measure(fork(), Schedule(np.array([0, 0, 1]), np.array([0, 2, 6])))
        assert found.makespan == 16
        assert found.slr == 16 / (2 + 5)
        assert found.speedup == 10 / 16
        assert found.efficiency == 10 / 32
        assert found.busy.tolist() == [5, 10]
        assert found.utilisation is not None
        assert found.utilisation.tolist() == [5 / 16, 10 / 16]
        assert (found.transfers, found.bytes_moved) == (1, 6)
        # d0: 1 + 2 resident, a's output until c has it, b's scratch in [2, 5).
        assert found.peak_memory.tolist() == [3 + 6 + 4, 3 + 5]
        assert found.sum_memory.tolist() == [7 + 6, 8]

    def test_a_shared_output_moves_once_to_each_device(self) -> None:
        found = measure(fork(), Schedule(np.array([0, 1, 1]), np.array([0, 6, 12])))
        assert (found.transfers, found.bytes_moved) == (1, 6)

    def test_heft_10(self) -> None:
        """The shortest durations along n1, n2, n9, n10 are 9 + 13 + 12 + 7; n1, n5, n9, n10 have 38."""
        problem = heft_10()
        assert critical_path(problem) == 41
        assert single_device(problem) == 127
        # HEFT's schedule, figure 4 (a) of the paper: makespan 80.
        device = [2, 0, 2, 1, 2, 1, 2, 0, 1, 1]
        start = [0, 27, 9, 18, 28, 26, 38, 57, 56, 73]
        schedule = Schedule(np.array(device), np.array(start))
        assert verify(problem, schedule).feasible
        found = measure(problem, schedule)
        assert found.makespan == 80
        assert found.slr == pytest.approx(80 / 41)
        assert found.speedup == pytest.approx(127 / 80)

    def test_what_means_nothing_is_none(self) -> None:
        problem = build_problem(
            task_names=["a", "b"],
            device_names=["d0", "d1"],
            duration=np.zeros((2, 2)),
            feasible=np.array([[True, False], [False, True]]),
        )
        found = measure(problem, Schedule(np.array([0, 1]), np.array([0, 0])))
        assert found.makespan == 0
        assert found.slr is found.speedup is found.efficiency is found.utilisation is None
        assert single_device(problem) is None

    def test_no_tasks(self) -> None:
        problem = build_problem(task_names=[], device_names=["d0"], duration=np.empty((0, 1)))
        found = measure(problem, Schedule(np.empty(0), np.empty(0)))
        assert (found.makespan, found.transfers, found.bytes_moved) == (0, 0, 0)
        assert found.slr is None
        assert found.busy.tolist() == found.peak_memory.tolist() == [0]

    def test_slr_is_at_least_one(self) -> None:
        for number in range(100):
            shortest = Objective(((Term("makespan"),),))
            problem = small_problem(np.random.default_rng([400, number]), shortest, times=number % 2 == 1)
            best = optimum(problem)
            if best is not None:
                found = measure(problem, best[1])
                assert found.makespan == best[0][0]
                assert found.slr is None or found.slr >= 1
                assert int(found.busy.sum()) <= found.makespan * problem.n_devices


class TestReleaseTimes:
    def test_a_path_starts_at_a_release_time(self) -> None:
        problem = build_problem(
            task_names=["a", "b", "c"],
            device_names=["d0", "d1"],
            duration=np.array([[3, 2], [4, 4], [1, 1]]),
            edges=[(0, 1)],
            release=np.array([5, 6, 10]),
        )
        assert critical_path(problem) == 11
        # d0: a 5-8, b 8-12, c 12-13; d1: a 5-7, b 7-11, c 11-12.
        assert single_device(problem) == 12

    def test_one_device_is_as_fast_as_its_best_order(self) -> None:
        for number in range(200):
            problem = small_problem(np.random.default_rng([500, number]), Objective(), times=True)
            alone = np.zeros(problem.n_tasks, dtype=np.int64)
            simplest = build_problem(
                task_names=problem.task_names,
                device_names=["d0"],
                duration=problem.duration[:, :1],
                edges=list(zip(problem.edge_source, problem.edge_target, strict=True)),
                release=problem.release,
            )
            best = optimum(simplest)
            assert best is not None
            assert single_device(simplest) == best[0][0] == makespan(simplest, simulate(simplest, alone))


class TestCcr:
    def test_by_hand(self) -> None:
        # A transfer takes 1 + 6 * (1/2 + 1) / 2 on average, a task its mean over two devices.
        assert ccr(fork()) == pytest.approx(2 * (1 + 4.5) / (3 + 4.5 + 7.5))

    def test_heft_10(self) -> None:
        means = (39 + 50 + 43 + 38 + 35 + 38 + 33 + 30 + 50 + 44) / 3
        assert ccr(heft_10()) == pytest.approx(241 / means)

    def test_only_feasible_devices_count(self) -> None:
        problem = build_problem(
            task_names=["a", "b"],
            device_names=["d0", "d1"],
            duration=np.array([[2, 100], [4, 6]]),
            feasible=np.array([[True, False], [True, True]]),
            edges=[(0, 1)],
            latency=np.array([[0, 3], [5, 0]]),
        )
        assert ccr(problem) == pytest.approx(4 / (2 + 5))

    def test_one_device_has_nothing_to_move(self) -> None:
        assert ccr(build_problem(task_names=["a"], device_names=["d0"], duration=np.array([[3]]))) == 0.0

    def test_no_computing_has_no_ratio(self) -> None:
        assert ccr(build_problem(task_names=["a"], device_names=["d0", "d1"], duration=np.zeros((1, 2)))) is None
        assert ccr(build_problem(task_names=[], device_names=["d0"], duration=np.empty((0, 1)))) is None


class TestShape:
    def test_heft_10(self) -> None:
        assert shape(heft_10()) == Shape(
            depth=4, width=5, components=1, sources=1, sinks=1, largest_in_degree=3, largest_out_degree=5
        )

    def test_loose_parts(self) -> None:
        problem = build_problem(
            task_names=list("abcde"), device_names=["d0"], duration=np.ones((5, 1)), edges=[(4, 1), (2, 1), (0, 3)]
        )
        assert shape(problem) == Shape(
            depth=2, width=3, components=2, sources=3, sinks=2, largest_in_degree=2, largest_out_degree=1
        )

    def test_no_tasks(self) -> None:
        problem = build_problem(task_names=[], device_names=["d0"], duration=np.empty((0, 1)))
        assert shape(problem) == Shape(0, 0, 0, 0, 0, 0, 0)

    def test_large_graphs_agree_with_a_plain_walk(self) -> None:
        rng = np.random.default_rng(0)
        n = 500
        edges = sorted({(int(rng.integers(0, v)), v) for v in range(1, n) for _ in range(2) if rng.random() < 0.6})
        problem = build_problem(
            task_names=[str(i) for i in range(n)], device_names=["d0"], duration=np.ones((n, 1)), edges=edges
        )
        level, part = [0] * n, list(range(n))
        for i, j in sorted(edges, key=lambda edge: edge[1]):
            level[j] = max(level[j], level[i] + 1)
            part = [part[i] if label == part[j] else label for label in part]
        found = shape(problem)
        assert found.depth == max(level) + 1
        assert found.width == max(level.count(value) for value in set(level))
        assert found.components == len(set(part))
