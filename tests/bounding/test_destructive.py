"""Destructive bounds: refuted makespans against optima, and each rule by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem

import placeopt as po
from placeopt import engine
from placeopt.bounding.destructive import LIMITS, destructive_bound, propagation
from placeopt.bounding.quick import best_bound, narrowed_classes
from placeopt.bounding.quick.paths import windows
from placeopt.generate.irregular_graphs import irregular_problem
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem

PROBLEMS = Path(__file__).parents[2] / "problems"


def rules(problem: Problem) -> engine.Propagation:
    classes = narrowed_classes(problem)
    return propagation(classes, windows(classes))


def refutes(found: engine.Propagation, makespan: int, most: int, limits: tuple[int, int, int] = LIMITS) -> bool:
    return found.refutes(makespan, most, *limits, engine.Stop())


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
            found, tasks = rules(problem), np.arange(problem.n_tasks)
            kind = problem.device_class[schedule.device]
            ends = schedule.device[problem.edge_source], schedule.device[problem.edge_target]
            for limits in (LIMITS, (9, 99, 4), (0, 0, 0)):  # all of the rules, and some of them
                assert not refutes(found, makespan, 64, limits), f"seed {seed}"
                assert (found.start[tasks, kind] <= schedule.start).all(), f"seed {seed}"
                assert (schedule.start <= found.latest[tasks, kind]).all(), f"seed {seed}"
                assert (schedule.device == schedule.device[found.cluster]).all(), f"seed {seed}"
                assert (ends[0] != ends[1])[found.cut == 1].all(), f"seed {seed}"
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

    def test_a_stop_during_propagation_keeps_the_bound_so_far(self) -> None:
        problem = irregular_problem(100, 4, seed=1, ccr=10.0)
        path = int(destructive_bound(problem, 0, should_stop=lambda: True).value)
        stopped = int(destructive_bound(problem, 0, seconds=0.0).value)
        assert path <= stopped < destructive_bound(problem, 0).value
        found, fresh = rules(problem), rules(problem)
        with pytest.raises(engine.StoppedError):
            found.refutes(2 * path, 1, *LIMITS, engine.Stop(seconds=0.0))
        for each in (found, fresh):
            assert not refutes(each, 2 * path, 0)
        for name in ("start", "latest", "cut", "cluster"):
            np.testing.assert_array_equal(getattr(found, name), getattr(fresh, name), name)

    def test_too_many_classes_count_as_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = po.load(PROBLEMS / "heft-10.yaml")
        monkeypatch.setattr("placeopt.bounding.destructive.TABLE", 0)
        assert destructive_bound(problem, 60).value == 64
        found = rules(problem)
        assert found.start.shape == (10, 1)
        assert not refutes(found, 73, 1)


class TestRules:
    def test_merged_tasks_follow_each_other(self) -> None:
        # Task 2 cannot wait for data from another device, so that both producers run on its device.
        found = rules(graph([(0, 2, 100), (1, 2, 100)], [4, 5, 1]))
        assert not refutes(found, 10, 0)
        assert found.cluster.tolist() == [found.cluster[0]] * 3
        assert found.start[:, 0].tolist() == [0, 0, 9]
        assert found.latest[:, 0].tolist() == [5, 4, 9]
        assert refutes(found, 9, 0)

    def test_tasks_that_must_overlap_part(self) -> None:
        # Within 15 ticks, 0 and 1 run side by side, and 2 on the device of one of them: the other's 3 bytes move.
        problem = graph([(0, 2, 3), (1, 2, 3), (1, 3, 100)], [10, 10, 1, 4])
        found = rules(problem)
        assert not refutes(found, 14, 0)
        assert found.cluster[1] == found.cluster[3]
        assert found.cut.tolist() == [0, 1, 0]  # 1 and 3 occupy their device when 2 must start
        assert refutes(found, 13, 0)

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
        found = rules(grouped)
        assert not refutes(found, 11, 0)
        assert found.cluster.tolist() == [0, 0, 0]

    def test_probing_finds_what_the_rules_alone_do_not(self) -> None:
        found = rules(po.load(PROBLEMS / "peft-10.yaml"))  # the example of PEFT; its optimum is 113
        assert [refutes(found, 112, most) for most in (0, 1)] == [False, True]

    def test_tasks_that_precede_another_delay_it_together(self) -> None:
        # Two producers and their consumer share a device, since data moves too late; the times of both add up.
        found = rules(graph([(0, 3, 100), (1, 3, 100), (2, 3, 100)], [4, 5, 6, 1]))
        assert not refutes(found, 60, 0)
        assert found.start[3].tolist() == [15]

    def test_cases_prove_more_than_probing_and_the_stated_number_is_an_upper_limit(self) -> None:
        problem = layered_problem(40, 3, seed=1, ccr=5.0)
        found = rules(problem)
        probed = destructive_bound(problem, 0).value
        makespan = next(tried for tried in range(probed, 2 * probed) if not refutes(found, tried, 1))
        assert found.cases == 1
        assert refutes(found, makespan, 64)
        assert 1 < found.cases <= 65
        windows = found.start.copy(), found.latest.copy(), found.cluster.copy()
        assert not refutes(found, 2 * probed, 8)
        assert found.cases <= 9
        assert not refutes(found, makespan, 1)
        for name, before in zip(("start", "latest", "cluster"), windows, strict=True):
            assert getattr(found, name).shape == before.shape, name

    def test_cases_prove_optima(self) -> None:
        problem = layered_problem(12, 3, seed=3, ccr=5.0)
        optimal = po.solve(problem, "cp-sat", time_limit=60, workers=1)
        assert optimal.termination is po.Termination.OPTIMAL
        assert destructive_bound(problem, 0, seconds=60).value == optimal.objective
