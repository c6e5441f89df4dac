"""GiPH's grouping: the order of merges, where it ends, what must stay apart, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from trainable_problems import trainable_problem

import placeopt as po
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.levels import mean_durations
from placeopt.model.problem import Problem
from placeopt.passes import apply_passes, find_pass
from placeopt.passes.giph_groups import GiphGroups, merged
from placeopt.simulation import retime
from placeopt.verifier import verify


def problem_of(durations: list[Any], edges: list[tuple[int, int]], devices: int = 2, **rest: Any) -> Problem:
    rows = [row if isinstance(row, list) else [row] * devices for row in durations]
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(devices)],
        duration=rows,
        edges=edges,
        payload=[1] * len(edges),
        byte_ticks_num=np.ones((devices, devices), dtype=np.int64),
        **rest,
    )


def groups(problem: Problem, most: int) -> list[list[int]]:
    label, _ = merged(problem, most)
    return [np.flatnonzero(label == k).tolist() for k in range(int(label.max()) + 1)]


def quotient(problem: Problem, label: Int) -> list[set[int]]:
    """The other clusters that produce for each cluster."""
    found: list[set[int]] = [set() for _ in range(int(label.max()) + 1)]
    for source, target in zip(label[problem.edge_source].tolist(), label[problem.edge_target].tolist(), strict=True):
        if source != target:
            found[target].add(source)
    return found


def stepwise(problem: Problem, most: int) -> Int:
    """The paper's rule, one merge at a time on the quotient graph, for problems in which all merges are allowed."""
    label, cost = np.arange(problem.n_tasks), mean_durations(problem)
    while len(set(label.tolist())) > most:
        into: dict[int, set[int]] = {k: set() for k in set(label.tolist())}
        for source, target in zip(problem.edge_source, problem.edge_target, strict=True):
            if label[source] != label[target]:
                into[int(label[target])].add(int(label[source]))
        single = [(cost[label == k].sum(), k) for k, producers in into.items() if len(producers) == 1]
        if not single:
            break
        chosen = min(single)[1]
        label[label == chosen] = into[chosen].pop()
    return label


TREE = [(0, 1), (0, 2), (1, 3), (1, 4)]


class TestMerged:
    def test_the_cheapest_goes_first(self) -> None:
        problem = problem_of([9, 8, 7, 2, 1], TREE)
        assert groups(problem, 5) == [[0], [1], [2], [3], [4]]
        assert groups(problem, 4) == [[0], [1, 4], [2], [3]]
        assert groups(problem, 3) == [[0], [1, 3, 4], [2]]
        assert groups(problem, 2) == [[0, 2], [1, 3, 4]]  # 7 is less than 8 + 1 + 2
        assert groups(problem, 1) == [[0, 1, 2, 3, 4]]

    def test_of_equal_costs_the_first(self) -> None:
        assert groups(problem_of([1] * 5, TREE), 4) == [[0, 1], [2], [3], [4]]

    def test_the_cost_is_the_mean_over_feasible_devices(self) -> None:
        problem = problem_of([1, [6, 6], [9, 1]], [(0, 1), (0, 2)], feasible=[[True, True]] * 2 + [[True, False]])
        assert groups(problem, 2) == [[0, 1], [2]]
        assert groups(problem_of([1, [6, 6], [9, 1]], [(0, 1), (0, 2)]), 2) == [[0, 2], [1]]

    def test_several_edges_from_one_group_count_once(self) -> None:
        diamond = problem_of([1, 1, 1, 1], [(0, 1), (0, 2), (1, 3), (2, 3)])
        assert groups(diamond, 1) == [[0, 1, 2, 3]]
        assert groups(problem_of([1, 1], [(0, 1), (0, 1)]), 1) == [[0, 1]]

    def test_without_a_single_producer_nothing_is_left_to_merge(self) -> None:
        problem = problem_of([1, 1, 1, 1], [(0, 2), (1, 2), (2, 3)])
        assert groups(problem, 1) == [[0], [1], [2, 3]]

    @pytest.mark.parametrize("seed", range(25))
    def test_against_the_rule_applied_step_by_step(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 14))
        edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 2.5 / n]
        problem = problem_of(rng.integers(0, 6, n).tolist(), edges)
        for most in range(1, n + 1):
            label, _ = merged(problem, most)
            expected = stepwise(problem, most)
            assert len(set(label.tolist())) == len(set(expected.tolist()))
            assert len(set(zip(label.tolist(), expected.tolist(), strict=True))) == len(set(label.tolist()))


class TestLimits:
    def test_no_device_for_both(self) -> None:
        problem = problem_of([3, 1, 2], [(0, 1), (0, 2)], feasible=[[True, True], [True, False], [False, True]])
        assert groups(problem, 1) == [[0, 1], [2]]

    def test_memory(self) -> None:
        problem = problem_of([3, 1, 2], [(0, 1), (0, 2)], resident=[4, 4, 2], capacity=[6, 6])
        assert groups(problem, 1) == [[0, 2], [1]]

    def test_separation(self) -> None:
        problem = problem_of([3, 1, 2], [(0, 1), (0, 2)], separation=[(1, 2)])
        assert groups(problem, 1) == [[0, 1], [2]]

    def test_colocation_groups_are_united(self) -> None:
        problem = problem_of([3, 1, 2, 1], [(0, 1), (2, 3)], group=[0, 1, 1, 2])
        label, group = merged(problem, 2)
        assert label.tolist() == [0, 0, 1, 1]
        assert len(set(group.tolist())) == 1


class TestPass:
    def test_settings_and_text(self) -> None:
        chosen = find_pass("giph-groups:tasks=3")
        assert isinstance(chosen, GiphGroups)
        assert chosen.tasks == 3
        with pytest.raises(po.UsageError, match="pass giph-groups"):
            find_pass("giph-groups:tasks=0")

    def test_small_problems_are_left_alone(self) -> None:
        assert GiphGroups().apply(problem_of([1] * 5, TREE)) is None
        assert GiphGroups(tasks=1).apply(problem_of([1, 1], [])) is None
        assert GiphGroups(tasks=1).apply(problem_of([], [])) is None

    def test_the_explanation_says_if_more_tasks_are_left(self) -> None:
        reduction = GiphGroups(tasks=1).apply(problem_of([1, 1, 1, 1], [(0, 2), (1, 2), (2, 3)]))
        assert reduction is not None
        assert reduction.explanation == ("4 -> 3 tasks, 3 -> 2 edges; no other task can join a single producer")

    @pytest.mark.parametrize("seed", range(30))
    def test_restored_schedules_are_valid(self, seed: int) -> None:
        problem = trainable_problem(np.random.default_rng(seed))
        chain = apply_passes(problem, [f"giph-groups:tasks={max(1, problem.n_tasks // 3)}"])
        result = po.solve(chain.problem, "heft")
        if result.schedule is None:
            return
        schedule = chain.restore(result.schedule)
        assert problem.contention != "none" or verify(problem, schedule).feasible
        assert verify(problem, retime(problem, schedule)).feasible
        projected = chain.project(schedule)
        assert projected is not None
        assert (projected.device == result.schedule.device).all()

    def test_clusters_have_no_cycle(self) -> None:
        for seed in range(20):
            problem = trainable_problem(np.random.default_rng(seed))
            label, _ = merged(problem, 2)
            producers, done = quotient(problem, label), set[int]()
            while len(done) < len(producers):
                ready = {k for k, found in enumerate(producers) if k not in done and found <= done}
                assert ready
                done |= ready

    def test_solve_with_the_pass(self) -> None:
        problem = problem_of([9, 8, 7, 2, 1], TREE)
        result = po.solve(problem, "heft", passes=["giph-groups:tasks=2"])
        assert result.feasible
        assert result.schedule is not None
        assert len({int(result.schedule.device[i]) for i in (1, 3, 4)}) == 1
