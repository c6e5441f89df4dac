"""The job completion time of Carbonari et al. 2017: the example of the paper, cases by hand, the definition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from brute_force import small_problem

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.graph import siblings
from placeopt.model.metrics import carbonari_jct, measure
from placeopt.model.problem import Problem

PROBLEMS = Path(__file__).parents[2] / "problems"


def graph(ticks: Sequence[int], edges: Sequence[tuple[int, int]] = (), devices: int = 3) -> Problem:
    """Tasks with equal durations on all devices, and transfers without time."""
    n = len(ticks)
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(devices)],
        duration=np.repeat(np.array(ticks, dtype=np.int64).reshape(n, 1), devices, axis=1),
        edges=edges,
    )


def producers(problem: Problem) -> list[set[int]]:
    sets: list[set[int]] = [set() for _ in range(problem.n_tasks)]
    for i, j in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        sets[j].add(i)
    return sets


def definition(problem: Problem, device: Sequence[int]) -> int:
    """Equation 4 as stated in `carbonari_jct`, task by task."""
    depends = producers(problem)
    counted: set[int] = set()
    total = 0
    for j in problem.order.tolist():
        if j in counted:
            continue
        parallel = [k for k in range(problem.n_tasks) if k != j and depends[k] == depends[j] and device[k] != device[j]]
        group = [j, *(k for k in parallel if k not in counted)]
        total += max(int(problem.duration[k, device[k]]) for k in group)
        counted.update(group)
    return total


def jct(problem: Problem, *device: int) -> int:
    found = carbonari_jct(problem, np.array(device, dtype=np.int64))
    assert found == definition(problem, device)
    return found


def test_example_of_the_paper() -> None:
    """Appendix 6.1: nodes 1 and 2 on core 2, 3 and 5 on core 1, 4 on the GPU: 4 + 6 + 2 + 5."""
    problem = po.load(PROBLEMS / "five-node.yaml")
    assert problem.device_names == ("core0", "core1", "gpu")
    assert jct(problem, 1, 1, 0, 2, 0) == 17
    # With nodes 3 and 4 on one device, as before round 2 of the paper: 4 + 6 + 1 + 4 + 5.
    assert jct(problem, 1, 1, 0, 0, 0) == 20


class TestByHand:
    FAN = ((0, 1), (0, 2), (0, 3), (0, 4))

    def test_longest_of_siblings_on_different_devices_counts(self) -> None:
        assert jct(graph([2, 5, 7, 4], self.FAN[:3]), 0, 0, 1, 2) == 2 + 7

    def test_all_siblings_on_one_device_count(self) -> None:
        assert jct(graph([2, 5, 7, 4], self.FAN[:3]), 0, 1, 1, 1) == 2 + 5 + 7 + 4

    def test_overlapping_sets(self) -> None:
        """t1 and t2 are both parallel to t3 and t4; t1 comes first and marks them, so t2 counts alone."""
        assert jct(graph([2, 5, 7, 4, 6], self.FAN), 0, 1, 1, 0, 2) == 2 + max(5, 4, 6) + 7

    def test_siblings_on_the_other_device_count_once(self) -> None:
        """t1 marks t2, t3 and t4, although these three run one after another."""
        assert jct(graph([2, 5, 7, 4, 6], self.FAN), 0, 0, 1, 1, 1) == 2 + 7

    def test_tasks_without_producers_are_siblings(self) -> None:
        assert jct(graph([5, 7, 4]), 0, 1, 2) == 7

    def test_tasks_with_different_producers_are_not_siblings(self) -> None:
        """t2 and t3 share the producer t0, but t3 also has the producer t1."""
        assert jct(graph([1, 2, 4, 8], [(0, 2), (0, 3), (1, 3)]), 0, 1, 1, 2) == 2 + 4 + 8

    def test_tasks_are_processed_in_topological_order(self) -> None:
        """The topological order is t1, t2, t3, t4, t0."""
        problem = graph([9, 1, 1, 3, 4], [(1, 3), (2, 4), (3, 0), (4, 0)])
        assert problem.order.tolist() == [1, 2, 3, 4, 0]
        assert jct(problem, 0, 0, 1, 0, 1) == 1 + 3 + 4 + 9

    def test_durations_depend_on_the_device(self) -> None:
        problem = build_problem(task_names=["a", "b"], device_names=["d0", "d1"], duration=np.array([[3, 30], [40, 4]]))
        assert [jct(problem, 0, 0), jct(problem, 0, 1), jct(problem, 1, 0), jct(problem, 1, 1)] == [43, 4, 40, 34]

    def test_no_tasks(self) -> None:
        assert carbonari_jct(graph([]), np.empty(0, dtype=np.int64)) == 0


class TestNotTheMakespan:
    def test_may_exceed_the_makespan(self) -> None:
        """Of two parallel chains, the second tasks have different producers and are added up."""
        problem = graph([3, 3, 3, 3], [(0, 2), (1, 3)])
        found = measure(problem, po.simulate(problem, np.array([0, 1, 0, 1])))
        assert (found.carbonari_jct, found.makespan) == (9, 6)

    def test_may_be_less_if_siblings_wait(self) -> None:
        problem = graph([1, 5, 5])
        found = measure(problem, po.simulate(problem, np.array([0, 1, 1])))
        assert (found.carbonari_jct, found.makespan) == (5, 10)

    def test_may_be_less_if_transfers_take_time(self) -> None:
        problem = build_problem(
            task_names=["a", "b"],
            device_names=["d0", "d1"],
            duration=np.full((2, 2), 3),
            edges=[(0, 1)],
            latency=np.full((2, 2), 4),
        )
        found = measure(problem, po.simulate(problem, np.array([0, 1])))
        assert (found.carbonari_jct, found.makespan) == (6, 10)


def test_random_problems_agree_with_the_definition() -> None:
    below = above = 0
    for number in range(300):
        rng = np.random.default_rng([600, number])
        problem = small_problem(rng)
        if not problem.feasible.any(axis=1).all():
            continue
        device = [int(rng.choice(np.flatnonzero(row))) for row in problem.feasible]
        found = jct(problem, *device)
        length = measure(problem, po.simulate(problem, np.array(device))).makespan
        below, above = below + (found < length), above + (found > length)
    assert below > 10
    assert above > 10


@pytest.mark.parametrize("seed", range(30))
def test_siblings_have_the_same_producers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    pairs = np.sort(rng.integers(0, n, (int(rng.integers(0, 2 * n)), 2)), axis=1)
    edges = [(int(i), int(j)) for i, j in rng.permutation(pairs) if i != j]  # some twice
    problem = graph([1] * n, edges)
    label = siblings(problem.out_start, problem.edge_target).tolist()
    sets = producers(problem)
    assert all((label[i] == label[j]) == (sets[i] == sets[j]) for i in range(n) for j in range(n))
