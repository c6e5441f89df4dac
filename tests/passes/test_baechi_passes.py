"""Baechi's passes: co-placement, fusion, and placing forward tasks only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from trainable_problems import trainable_problem

import placeopt as po
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.passes import apply_passes, find_pass
from placeopt.passes.rebuilding import contradictory
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver
from placeopt.simulation import retime
from placeopt.verifier import verify

INEXACT = ("forward", "coplace", "fuse")


def ints(*values: int) -> Int:
    return np.array(values, dtype=np.int64)


def problem_of(tasks: int, edges: list[tuple[int, int]], devices: int = 2, **rest: Any) -> Problem:
    """Tasks of 1, 2, ... ticks; a tick per byte between devices, and a byte on every edge."""
    values: dict[str, Any] = {"payload": [1] * len(edges), "byte_ticks_num": np.ones((devices, devices))}
    duration = np.repeat(np.arange(1, tasks + 1).reshape(-1, 1), devices, axis=1)
    return build_problem(
        device_names=[f"d{d}" for d in range(devices)],
        edges=edges,
        **{"duration": duration, "task_names": [f"t{i}" for i in range(tasks)]} | values | rest,
    )


def reduced(problem: Problem, name: str) -> Problem:
    reduction = find_pass(name).apply(problem)
    assert reduction is not None
    return reduction.problem


def groups(problem: Problem) -> list[list[int]]:
    return [np.flatnonzero(problem.group == k).tolist() for k in range(problem.n_groups)]


@pytest.mark.parametrize("block", range(3))
def test_restored_schedules_are_valid(block: int) -> None:
    """Under `sum` without deadlines, schedules of the reduced problem are valid once restored; and the way back."""
    heft, seen = find_solver("heft"), dict.fromkeys(INEXACT, 0)
    for seed in range(60 * block, 60 * block + 60):
        problem = trainable_problem(np.random.default_rng(seed))
        for names in (INEXACT, *([name] for name in INEXACT)):
            chain = apply_passes(problem, names)
            schedule = heft.solve(chain.problem, Options(), heft.settings_type()).schedule
            if schedule is None or not chain.steps:
                continue
            schedule = retime(chain.problem, schedule)
            assert verify(chain.problem, schedule).feasible
            restored = retime(problem, chain.restore(schedule))
            assert verify(problem, restored).violations == ()
            there = chain.project(restored)
            assert there is not None
            assert verify(chain.problem, retime(chain.problem, there)).feasible
            for name in chain.names:
                seen[name] += 1
    assert min(seen.values()) > 10, seen


@pytest.mark.parametrize("block", range(2))
def test_fused_tasks_hold_enough_under_peak(block: int) -> None:
    """A restored schedule is valid before re-timing."""
    heft, seen = find_solver("heft"), 0
    for seed in range(60 * block, 60 * block + 60):
        problem = trainable_problem(np.random.default_rng(seed), peak=True)
        chain = apply_passes(problem, ["coplace", "fuse"])
        if problem.contention != "none" or "fuse" not in chain.names:
            continue
        schedule = heft.solve(chain.problem, Options(), heft.settings_type()).schedule
        if schedule is not None and verify(chain.problem, schedule).feasible:
            assert verify(problem, chain.restore(schedule)).violations == ()
            seen += 1
    assert seen > 10


@pytest.mark.parametrize("name", INEXACT)
@pytest.mark.parametrize(("tasks", "devices"), [(0, 0), (0, 2), (1, 0), (1, 1)])
def test_next_to_nothing(name: str, tasks: int, devices: int) -> None:
    problem = build_problem(
        task_names=["t"][:tasks], device_names=["a", "b"][:devices], duration=np.ones((tasks, devices))
    )
    assert find_pass(name).apply(problem) is None


class TestCoplace:
    def test_figure_3(self) -> None:
        # opin, perm and Shape feed Transpose and Reshape; each has one consumer.
        problem = problem_of(6, [(0, 2), (1, 2), (2, 4), (3, 4), (4, 5), (5, 5)][:5])
        assert groups(reduced(problem, "coplace")) == [[0, 1, 2, 3, 4, 5]]

    def test_an_output_that_two_use_stays(self) -> None:
        problem = problem_of(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
        assert groups(reduced(problem, "coplace")) == [[0], [1, 2, 3]]

    def test_two_edges_to_one_consumer(self) -> None:
        assert groups(reduced(problem_of(2, [(0, 1), (0, 1)]), "coplace")) == [[0, 1]]

    def test_a_chain_is_cut_where_the_device_is_full(self) -> None:
        problem = problem_of(5, [(0, 1), (1, 2), (2, 3), (3, 4)], resident=ints(2, 2, 2, 2, 2), capacity=ints(4, 5))
        assert groups(reduced(problem, "coplace")) == [[0, 1], [2, 3], [4]]

    def test_only_devices_that_may_run_all_have_room(self) -> None:
        feasible = np.array([[True, False], [True, True]])
        given: dict[str, Any] = {"feasible": feasible, "resident": ints(3, 3), "capacity": ints(5, UNLIMITED)}
        assert find_pass("coplace").apply(problem_of(2, [(0, 1)], **given)) is None
        given["capacity"] = ints(6, 0)
        assert groups(reduced(problem_of(2, [(0, 1)], **given), "coplace")) == [[0, 1]]

    def test_no_common_device(self) -> None:
        feasible = np.array([[True, False], [True, True], [False, True]])
        problem = problem_of(3, [(0, 1), (1, 2)], feasible=feasible)
        assert groups(reduced(problem, "coplace")) == [[0, 1], [2]]

    def test_separation_also_of_what_was_united_before(self) -> None:
        problem = problem_of(4, [(0, 1), (1, 2), (2, 3)], separation=[(0, 3)])
        assert groups(reduced(problem, "coplace")) == [[0, 1, 2], [3]]

    def test_backward_tasks_come_first(self) -> None:
        # 2 is backward of 0: with it, consumer 1 does not fit any more.
        given: dict[str, Any] = {"resident": ints(2, 2, 2), "capacity": ints(4, 4), "forward": ints(0, 1, 0)}
        problem = problem_of(3, [(0, 1), (1, 2)], **given)
        assert groups(reduced(problem, "coplace")) == [[0, 2], [1]]

    def test_a_start_that_parts_them_has_no_counterpart(self) -> None:
        problem = problem_of(2, [(0, 1)])
        reduction = find_pass("coplace").apply(problem)
        assert reduction is not None
        assert reduction.project(Schedule(ints(0, 1), ints(0, 2))) is None
        together = Schedule(ints(1, 1), ints(0, 1))
        assert reduction.project(together) is together
        assert reduction.explanation == "2 -> 1 groups"


class TestFuse:
    ONE: Int = np.zeros(8, dtype=np.int64)

    @pytest.mark.parametrize(
        ("edges", "left"),
        [
            ([(0, 1), (0, 2), (2, 1), (3, 1), (0, 3)], 1),  # 2 and 3 go first, then it is one edge: one group
            ([(0, 1), (0, 2), (3, 1)], 1),
        ],
    )
    def test_all_of_one_group(self, edges: list[tuple[int, int]], left: int) -> None:
        assert reduced(problem_of(4, edges, group=self.ONE[:4]), "fuse").n_tasks == left

    @pytest.mark.parametrize(
        ("edges", "pairs"),
        [
            ([(0, 1), (0, 2), (2, 1)], 3),  # figure 5a: a second path
            ([(0, 1), (0, 2), (2, 3), (3, 1)], 4),  # 5a, a longer one
            ([(0, 1), (0, 2), (3, 1)], 4),  # 5b, 5c: no second path, but both degrees are 2
            ([(0, 1), (2, 1)], 2),  # 5d: the source has no other consumer
            ([(0, 1), (0, 2)], 2),  # 5e: the destination has no other producer
        ],
    )
    def test_figure_5(self, edges: list[tuple[int, int]], pairs: int) -> None:
        """Only 0 and 1 are in one group."""
        tasks = max(max(edge) for edge in edges) + 1
        problem = problem_of(tasks, edges, group=np.array([0, 0, 2, 3][:tasks]))
        assert len(problem.order) == tasks
        reduction = find_pass("fuse").apply(problem)
        assert (tasks if reduction is None else reduction.problem.n_tasks) == pairs

    def test_repeated_until_nothing_is_left(self) -> None:
        for seed in range(60):
            after = apply_passes(trainable_problem(np.random.default_rng(seed), most=25), ["fuse"]).problem
            if contradictory(after):
                continue
            ends = np.unique(np.column_stack((after.edge_source, after.edge_target)), axis=0)
            outs, ins = (np.bincount(column, minlength=after.n_tasks) for column in ends.T)
            for i, j in ends.tolist():
                assert after.group[i] != after.group[j] or (outs[i] > 1 and ins[j] > 1)
            assert apply_passes(after, ["fuse"]).steps == ()

    def test_what_a_fused_task_is(self) -> None:
        # 0 -> 1 -> 2 -> 3 and 0 -> 3, where 1 and 2 are one group.
        problem = problem_of(
            4, [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3)], payload=[3, 9, 4, 5, 7],
            duration=np.array([[1, 1], [2, 20], [3, 30], [4, 4]]),
            feasible=np.array([[True, True], [True, True], [True, False], [True, True]]),
            resident=ints(0, 1, 2, 0), output=ints(0, 4, 8, 0), scratch=ints(0, 16, 32, 0),
            group=ints(0, 1, 1, 2), release=ints(0, 4, 7, 0), deadline=np.array([UNLIMITED, 9, 13, UNLIMITED]),
        )  # fmt: skip
        fused = reduced(problem, "fuse")
        assert fused.task_names == ("t0", "t1 +1", "t3")
        assert fused.duration.tolist() == [[1, 1], [5, 0], [4, 4]]
        assert fused.feasible.tolist() == [[True, True], [True, False], [True, True]]
        assert [fused.resident[1], fused.output[1], fused.scratch[1]] == [3, 12, 48]
        assert list(zip(fused.edge_source, fused.edge_target, fused.payload, strict=True)) == [
            (0, 1, 8), (0, 2, 7), (1, 2, 4)
        ]  # fmt: skip
        # t2 starts 2 ticks after t1: released at 5. t1 ends 3 ticks before t2: due by 12.
        assert fused.release.tolist() == [0, 5, 0]
        assert fused.deadline.tolist() == [UNLIMITED, 12, UNLIMITED]

    def test_under_peak_the_largest_scratch_counts(self) -> None:
        given: dict[str, Any] = {"group": ints(0, 0), "scratch": ints(5, 3), "memory_model": "peak"}
        assert reduced(problem_of(2, [(0, 1)], **given), "fuse").scratch.tolist() == [5]

    def test_one_shared_output_is_kept(self) -> None:
        # t0 and t1 are fused; both outputs are shared by t2 and t3, that of t1 saves more.
        edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
        problem = problem_of(
            4, edges, payload=[2, 2, 2, 9, 9], shared=[True] * 5, group=ints(0, 0, 2, 3)
        )  # fmt: skip
        fused = reduced(problem, "fuse")
        found = zip(*(array.tolist() for array in (fused.edge_source, fused.edge_target, fused.payload, fused.shared)))  # noqa: B905
        assert sorted(found) == [(0, 1, 2, False), (0, 1, 9, True), (0, 2, 2, False), (0, 2, 9, True)]

    def test_a_shared_output_goes_to_a_cluster_once(self) -> None:
        problem = problem_of(
            3, [(0, 1), (0, 2), (1, 2)], payload=[4, 4, 1], shared=[True, True, False], group=ints(0, 1, 1)
        )  # fmt: skip
        fused = reduced(problem, "fuse")
        assert (fused.payload.tolist(), fused.shared.tolist()) == ([4], [True])

    def test_restored_tasks_run_one_after_another(self) -> None:
        problem = problem_of(3, [(2, 0), (0, 1)], group=ints(0, 0, 0))
        reduction = find_pass("fuse").apply(problem)
        assert reduction is not None
        restored = reduction.restore(Schedule(ints(1), ints(10)))
        assert (restored.device.tolist(), restored.start.tolist()) == ([1, 1, 1], [13, 14, 10])
        there = reduction.project(restored)
        assert there is not None
        assert (there.device.tolist(), there.start.tolist()) == ([1], [0])
        assert reduction.explanation == "3 -> 1 tasks, 2 -> 0 edges"

    def test_names_are_unique(self) -> None:
        problem = problem_of(4, [(0, 1), (2, 3)], group=ints(0, 0, 1, 1), task_names=["t", "x", "t +1", "y"])
        assert reduced(problem, "fuse").task_names == ("t +1", "t +1 +1")
        lone = problem_of(3, [(0, 1)], group=ints(0, 0, 1), task_names=["t", "x", "t +1"])
        assert reduced(lone, "fuse").task_names == ("t +1'", "t +1")

    def test_backward_of_what_was_fused_alike(self) -> None:
        # Forward 0 -> 1, backward 2 -> 3 of 1 and 0; each pair in a group, with no edge between the pairs.
        given: dict[str, Any] = {"group": ints(0, 0, 1, 1), "forward": ints(0, 1, 1, 0)}
        assert reduced(problem_of(4, [(0, 1), (2, 3)], **given), "fuse").forward.tolist() == [0, 0]
        given["forward"] = ints(0, 1, 1, 3)
        assert reduced(problem_of(4, [(0, 1), (2, 3)], **given), "fuse").forward.tolist() == [0, 1]


class TestForward:
    # f0 -> f1 -> b1 -> b0, b1 -> u: b1 and b0 backward of f1 and f0, u the update of f1's weights.
    EDGES = ((0, 1), (1, 2), (2, 3), (2, 4))
    PAIRS = np.array([0, 1, 1, 0, 4])

    def step(self, **rest: Any) -> Problem:
        return problem_of(5, list(self.EDGES), **{"forward": self.PAIRS, "group": ints(0, 1, 1, 3, 1)} | rest)

    def test_backward_tasks_and_updates_follow(self) -> None:
        problem = self.step(resident=ints(1, 2, 4, 8, 16))
        left = reduced(problem, "forward")
        assert left.task_names == ("t0", "t1")
        assert left.resident.tolist() == [9, 22]
        assert left.n_edges == 1

    def test_they_run_behind(self) -> None:
        reduction = find_pass("forward").apply(self.step())
        assert reduction is not None
        assert reduction.explanation == "3 tasks follow their forward tasks"
        schedule = reduction.restore(Schedule(ints(0, 1), ints(0, 2)))
        assert schedule.device.tolist() == [0, 1, 1, 0, 1]
        # t1 on [2, 4), t2 on [4, 7), t4 right behind, t3 once the byte has come.
        assert schedule.start.tolist() == [0, 2, 4, 8, 7]

    def test_where_no_device_has_room_for_all_nothing_is_left_out(self) -> None:
        given: dict[str, Any] = {"resident": ints(1, 1, 1, 1, 1), "group": None, "separation": [(1, 2)]}
        regrouped = reduced(self.step(capacity=ints(4, 4), **given), "forward")
        assert regrouped.n_tasks == 5
        assert groups(regrouped) == [[0, 3], [1], [2], [4]]
        # All fit, but t1 and t2 must be on different devices: both stay, with all tasks outside their groups.
        left = reduced(self.step(capacity=ints(5, 4), **given), "forward")
        assert left.task_names == ("t0", "t1", "t2", "t4")

    def test_an_output_that_a_backward_task_needs_is_held(self) -> None:
        left = reduced(self.step(output=ints(3, 5, 7, 0, 0), memory_model="peak"), "forward")
        assert (left.resident.tolist(), left.output.tolist()) == ([0, 12], [3, 0])

    def test_devices_and_separation_of_those_that_follow(self) -> None:
        feasible = np.ones((5, 2), dtype=np.bool_)
        feasible[3, 0] = False
        left = reduced(self.step(feasible=feasible, separation=[(3, 4)]), "forward")
        assert left.feasible.tolist() == [[False, True], [True, True]]
        assert left.separation.tolist() == [[0, 1]]

    def test_nothing_backward(self) -> None:
        assert find_pass("forward").apply(problem_of(2, [(0, 1)])) is None


def test_solving_behind_all_of_them() -> None:
    problem = problem_of(5, list(TestForward.EDGES), forward=TestForward.PAIRS, group=ints(0, 1, 1, 3, 1))
    result = po.solve(problem, "heft", passes=INEXACT)
    assert result.feasible
    assert result.passes is not None
    assert result.passes.names == ("forward", "coplace", "fuse")
    # A single task is left. Bounds of the reduced problem are not bounds of the original.
    assert result.passes.after.tasks == 1
    assert not result.passes.exact
    assert result.makespan == 15
