"""Destructive bounds: refuted makespans against optima, each rule by hand, and plain against compiled kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem

import placeopt as po
from placeopt.bounding.destructive import destructive_bound
from placeopt.bounding.destructive.propagation import NEVER, refute
from placeopt.bounding.destructive.search import Search
from placeopt.bounding.quick import best_bound, narrowed_classes
from placeopt.bounding.quick.paths import windows
from placeopt.generate.irregular_graphs import irregular_problem
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem

PROBLEMS = Path(__file__).parents[2] / "problems"


def search(problem: Problem) -> Search:
    classes = narrowed_classes(problem)
    return Search(classes, windows(classes), lambda: False)


def graph(edges: list[tuple[int, int, int]], ticks: Any, devices: int = 3, **facts: Any) -> Problem:
    """A problem with these edges (source, target, payload), durations, and links of a byte per tick."""
    n = len(ticks)
    return build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names=[f"d{d}" for d in range(devices)],
        duration=np.repeat(np.array(ticks)[:, None], devices, axis=1) if np.ndim(ticks) == 1 else ticks,
        edges=[edge[:2] for edge in edges], payload=[edge[2] for edge in edges],
        byte_ticks_num=np.ones((devices, devices), dtype=np.int64), **facts,
    )  # fmt: skip


class TestBound:
    def test_is_not_above_the_optimum_and_windows_hold_it(self) -> None:
        compared = better = 0
        for seed in (*range(60), 81, 128, 146, 210, 243, 244):
            problem = small_problem(np.random.default_rng(seed), Objective(), times=bool(seed % 2))
            best = optimum(problem) if problem.n_tasks else None
            if best is None:
                continue
            makespan, schedule = int(best[0][0]), best[1]
            quick = int(best_bound(problem).value)
            assert destructive_bound(problem, 0).value <= makespan, f"seed {seed}"
            better += int(destructive_bound(problem, quick).value) > quick
            compared += 1
            if problem.n_devices == 1:
                continue
            found = search(problem)
            assert not found.refutes(makespan, probing=True), f"seed {seed}"
            state, tasks = found.state, np.arange(problem.n_tasks)
            kind = problem.device_class[schedule.device]
            assert (state.start[tasks, kind] <= schedule.start).all(), f"seed {seed}"
            assert (schedule.start <= state.latest[tasks, kind]).all(), f"seed {seed}"
            assert (schedule.device == schedule.device[state.cluster]).all(), f"seed {seed}"
            ends = schedule.device[problem.edge_source], schedule.device[problem.edge_target]
            assert (ends[0] != ends[1])[state.pays == 1].all(), f"seed {seed}"
        assert compared > 40
        assert better == 6

    def test_of_a_published_example_is_its_optimum(self) -> None:
        # The example of HEFT; cp-sat proves 73.
        problem = po.load(PROBLEMS / "heft-10.yaml")
        assert best_bound(problem).value == 63
        assert destructive_bound(problem, 63).value == 73
        assert destructive_bound(problem, 63, known=71).value == 71

    def test_is_that_of_the_critical_path_on_one_device_or_when_stopped(self) -> None:
        joined = graph([(0, 2, 100), (1, 2, 100)], [4, 5, 1])
        path = int(best_bound(joined).value)
        assert destructive_bound(joined, 0, should_stop=lambda: True).value == path
        alone = graph([(0, 2, 100), (1, 2, 100)], [4, 5, 1], devices=1)
        assert destructive_bound(alone, 10).value == 10

    def test_too_many_classes_count_as_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = po.load(PROBLEMS / "heft-10.yaml")
        monkeypatch.setattr("placeopt.bounding.destructive.search.TABLE", 0)
        assert destructive_bound(problem, 60).value == 64
        found = search(problem)
        assert found.state.start.shape == (10, 1)
        assert not found.refutes(73, probing=True)


class TestRules:
    def test_merged_tasks_follow_each_other(self) -> None:
        # Task 2 cannot wait for data from another device, so that both producers run on its device.
        found = search(graph([(0, 2, 100), (1, 2, 100)], [4, 5, 1]))
        assert not found.refutes(10, probing=False)
        assert found.state.cluster.tolist() == [found.state.cluster[0]] * 3
        assert found.state.start[:, 0].tolist() == [0, 0, 9]
        assert found.state.latest[:, 0].tolist() == [5, 4, 9]
        assert found.refutes(9, probing=False)

    def test_tasks_that_must_overlap_part(self) -> None:
        # Within 15 ticks, 0 and 1 run side by side, and 2 on the device of one of them: the other's 3 bytes move.
        problem = graph([(0, 2, 3), (1, 2, 3), (1, 3, 100)], [10, 10, 1, 4])
        found = search(problem)
        assert not found.refutes(14, probing=False)
        assert found.state.cluster[1] == found.state.cluster[3]
        assert found.state.pays.tolist() == [0, 1, 0]  # 1 and 3 occupy their device when 2 must start
        assert found.refutes(13, probing=False)

    def test_separated_tasks_do_not_join_their_producer(self) -> None:
        problem = graph([(0, 1, 100), (0, 2, 100)], [1, 1, 1], separation=[(1, 2)])
        assert best_bound(problem).value == 3
        assert destructive_bound(problem, 3).value == 102

    def test_memory_bounds_clusters(self) -> None:
        edges = [(0, 1, 100), (0, 2, 100)]
        full = graph(edges, [1, 1, 1], resident=np.ones(3, np.int64), capacity=np.full(3, 2))
        assert destructive_bound(full, 0).value == 102
        enough = graph(edges, [1, 1, 1], resident=np.ones(3, np.int64), capacity=np.full(3, 3))
        assert destructive_bound(enough, 0).value == 3

    def test_colocation_groups_are_clusters(self) -> None:
        # The group takes 8 ticks of one device; the task between its members moves data there and back, or joins.
        grouped = graph([(0, 1, 2), (1, 2, 2)], [4, 3, 4], group=[0, 1, 0])
        found = search(grouped)
        assert not found.refutes(11, probing=False)
        assert found.state.cluster.tolist() == [0, 0, 0]

    def test_probing_finds_what_the_rules_alone_do_not(self) -> None:
        found = search(po.load(PROBLEMS / "peft-10.yaml"))  # the example of PEFT; its optimum is 113
        assert [found.refutes(112, probing=probing) for probing in (False, True)] == [False, True]


def test_compiled_and_plain_kernels_agree() -> None:
    problem = irregular_problem(24, 4, seed=1, ccr=2.0)
    plain, compiled = search(problem), search(problem)
    ticks = int(best_bound(problem).value) * 101 // 100
    edges = np.arange(problem.n_edges)
    for found in (plain, compiled):
        found.refutes(ticks, probing=False)
        found.state.queued[:] = 1
        found.state.queue[:] = problem.order
        found.state.counts[:2] = 0, problem.n_tasks
    assert (plain.state.start < NEVER).any(axis=1).all()
    for limit in (40, 1 << 20):  # probes that end early, and whole ones
        values = [
            run(found.facts, found.state, edges, limit, 1 << 20)
            for run, found in ((refute.plain, plain), (refute.compiled(), compiled))
        ]
        assert values[0] == values[1]
        for name in ("start", "latest", "pays", "cluster", "next", "size", "held"):
            np.testing.assert_array_equal(getattr(plain.state, name), getattr(compiled.state, name), name)
    assert (plain.state.pays.any(), len(np.unique(plain.state.cluster)) < problem.n_tasks) == (True, True)
