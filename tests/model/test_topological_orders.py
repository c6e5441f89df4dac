"""Levels of tasks and topological orders: definitions by hand, and the paper's point about chains."""

from __future__ import annotations

import numpy as np
import pytest

from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.levels import (
    ORDERS,
    bottom_levels,
    cpd_topo,
    critical_paths,
    dfs_topo,
    m_topo,
    mean_durations,
    mean_transfers,
    top_levels,
)
from placeopt.model.problem import Problem


def graph(durations: list[int], edges: dict[tuple[int, int], int], devices: int = 2) -> Problem:
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(devices)],
        duration=np.repeat(np.array(durations, dtype=np.int64).reshape(-1, 1), devices, axis=1),
        edges=list(edges),
        payload=list(edges.values()),
        byte_ticks_num=np.ones((devices, devices), dtype=np.int64),
    )


def random_graph(rng: np.random.Generator, n: int) -> Problem:
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 3 / n]
    label = rng.permutation(n)  # indices are in no topological order
    edges = {(int(label[i]), int(label[j])): int(rng.integers(0, 9)) for i, j in pairs}
    return graph(rng.integers(0, 9, n).tolist(), edges)


def cuts(problem: Problem, order: Int) -> int:
    """Edges cut when the first half of an order goes to one device and the rest to another."""
    second = np.zeros(problem.n_tasks, dtype=np.bool_)
    second[order[problem.n_tasks // 2 :]] = True
    return int((second[problem.edge_source] != second[problem.edge_target]).sum())


class TestLevels:
    def test_means_are_over_feasible_devices_and_distinct_pairs(self) -> None:
        problem = build_problem(
            task_names=["a", "b"],
            device_names=["x", "y"],
            duration=np.array([[2, 9], [3, 4]]),
            feasible=np.array([[True, False], [True, True]]),
            edges=[(0, 1)],
            payload=[6],
            latency=np.array([[0, 1], [4, 0]]),
            byte_ticks_num=np.array([[7, 1], [2, 7]]),
            byte_ticks_den=np.array([[1, 1], [1, 1]]),
        )
        assert mean_durations(problem).tolist() == [2.0, 3.5]
        assert mean_transfers(problem).tolist() == [2.5 + 6 * 1.5]

    def test_equations_2_and_3(self) -> None:
        # A diamond with a short cut; w = 1 2 3 4.
        problem = graph([1, 2, 3, 4], {(0, 1): 5, (0, 2): 1, (1, 3): 1, (2, 3): 2, (0, 3): 9})
        assert top_levels(problem).tolist() == [0, 6, 2, 10]
        assert bottom_levels(problem).tolist() == [14, 7, 9, 4]
        assert critical_paths(problem).tolist() == [14, 13, 11, 14]

    def test_nothing_moves_with_a_single_device(self) -> None:
        assert top_levels(graph([1, 2], {(0, 1): 5}, devices=1)).tolist() == [0, 1]

    def test_what_follows_anyway(self) -> None:
        problem = graph([1, 2], {(0, 1): 5})
        assert bottom_levels(problem, np.array([20.0, 0.0])).tolist() == [21, 2]
        assert bottom_levels(problem, np.array([0.0, 3.0])).tolist() == [11, 5]


class TestOrders:
    def test_chains_as_in_figure_3_of_celeritas(self) -> None:
        # Section 4.2.2: independent chains on two devices, "cutting 4 edges, while DFS-TOPO requires none".
        problem = graph([1] * 8, {(i, i + 4): 1 for i in range(4)})
        assert cuts(problem, m_topo(problem)) == 4
        assert cuts(problem, dfs_topo(problem)) == 0
        assert cuts(problem, cpd_topo(problem)) == 0

    def test_by_hand(self) -> None:
        # Sources 0 and 4; 0 feeds 1, 2, 3, of which 2 is on the longest path; 5 waits for 1 and 4.
        edges = {(0, 1): 0, (0, 2): 0, (0, 3): 0, (1, 5): 0, (4, 5): 0, (2, 6): 0}
        problem = graph([1, 2, 5, 3, 1, 1, 1], edges)
        assert m_topo(problem).tolist() == [0, 4, 1, 2, 3, 5, 6]
        assert dfs_topo(problem).tolist() == [0, 1, 2, 6, 3, 4, 5]
        # cpath: 7 4 7 4 2 4 7; ties go by index.
        assert cpd_topo(problem).tolist() == [0, 2, 6, 1, 3, 4, 5]

    def test_the_longest_path_comes_first_among_sources(self) -> None:
        problem = graph([1, 5, 3], {})
        assert cpd_topo(problem).tolist() == [1, 2, 0]
        assert dfs_topo(problem).tolist() == [0, 1, 2]

    def test_parallel_edges_and_nothing_at_all(self) -> None:
        problem = build_problem(
            task_names=["a", "b"], device_names=["x"], duration=np.ones((2, 1)), edges=[(1, 0), (1, 0)]
        )
        assert [order(problem).tolist() for order in ORDERS.values()] == [[1, 0]] * 3
        assert [order(graph([], {})).tolist() for order in ORDERS.values()] == [[]] * 3

    @pytest.mark.parametrize("seed", range(20))
    def test_they_are_topological(self, seed: int) -> None:
        problem = random_graph(np.random.default_rng(seed), 40)
        for order in ORDERS.values():
            position = np.argsort(order(problem))
            assert sorted(order(problem).tolist()) == list(range(40))
            assert (position[problem.edge_source] < position[problem.edge_target]).all()

    @pytest.mark.parametrize("seed", range(20))
    def test_the_algorithm_of_the_paper(self, seed: int) -> None:
        """CPD_Topo of Algorithm 1, word for word."""
        problem = random_graph(np.random.default_rng(seed), 30)
        path = critical_paths(problem)
        successors: list[list[int]] = [[] for _ in range(30)]
        in_degree = np.diff(problem.in_start)
        for i, j in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
            successors[i].append(j)
        queue = sorted((i for i in range(30) if in_degree[i] == 0), key=lambda i: (-path[i], i))
        order = []
        while queue:
            node = queue.pop(0)
            order.append(node)
            for child in sorted(successors[node], key=lambda i: (path[i], -i)):
                in_degree[child] -= 1
                if in_degree[child] == 0:
                    queue.insert(0, child)
        assert cpd_topo(problem).tolist() == order
