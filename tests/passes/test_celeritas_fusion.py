"""Celeritas's operation fusion: breakpoints against brute force, windows, groups, and the way back."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from trainable_problems import trainable_problem

import placeopt as po
from placeopt import engine
from placeopt.generate.models import model_document
from placeopt.io.compiler import compile_spec
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.levels import cpd_topo, mean_durations, mean_transfers
from placeopt.model.metrics import Grain, ccr, grain
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.passes import apply_passes, find_pass
from placeopt.passes.celeritas_fusion import (
    CeleritasFusion,
    fusion,
    memory_limit,
    optimal_breakpoints,
)
from placeopt.passes.contraction import initial_unions
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver
from placeopt.simulation import retime
from placeopt.verifier import verify


def ints(*values: int) -> Int:
    return np.array(values, dtype=np.int64)


def chain(payloads: list[int], devices: int = 2, **rest: Any) -> Problem:
    """Tasks of a tick in a row; a tick per byte between devices."""
    n = len(payloads) + 1
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(devices)],
        edges=[(i, i + 1) for i in range(n - 1)],
        payload=payloads,
        byte_ticks_num=np.ones((devices, devices), dtype=np.int64),
        **{"duration": np.ones((n, devices), dtype=np.int64)} | rest,
    )


def clusters(problem: Problem, longest: int = 200, share: float = 0.25) -> list[list[int]]:
    made = fusion(problem, longest, share).clusters
    return [made.sequence[a:b].tolist() for a, b in zip(made.start[:-1], made.start[1:], strict=True)]


def model(**rest: Any) -> Problem:
    """A small translator in training, on four devices."""
    document = model_document("transformer", layers=2, width=64, ff_width=128, heads=2, vocabulary=99, training=True)
    device = {"count": 4, "speed": "1 TFLOP/s", "memory_bandwidth": "100 GB/s"} | rest
    return compile_spec({**document, "devices": {"gpu": device}, "links": {"default": {"bandwidth": "10 GB/s"}}})


class TestBreakpoints:
    @pytest.mark.parametrize("n", range(1, 13))
    def test_against_brute_force(self, n: int) -> None:
        """The least weight between clusters over all sets of breakpoints, and of those the stated one."""
        for seed in range(4 if n > 9 else 12):
            rng = np.random.default_rng(100 * n + seed)
            pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.4]
            pairs += [pairs[k] for k in rng.integers(0, len(pairs), 2)] if pairs else []
            weight = rng.integers(0, 6, len(pairs))
            source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
            low = np.maximum.accumulate([int(rng.integers(max(0, j - 6), j)) if j else 0 for j in range(n + 1)])
            best = None
            for size in range(n):
                for cuts in combinations(range(1, n), size):
                    starts = [0, *cuts]
                    if any(low[j] > i for i, j in zip(starts, [*cuts, n], strict=True)):
                        continue
                    label = np.searchsorted(starts, np.arange(n), side="right")
                    cost = int(weight[label[source] != label[target]].sum())
                    best = min(best or (cost, starts[::-1]), (cost, starts[::-1]))
            found = np.flatnonzero(optimal_breakpoints(source, target, weight, low)).tolist()
            label = np.searchsorted(found, np.arange(n), side="right")
            assert best is not None
            assert int(weight[label[source] != label[target]].sum()) == best[0]
            assert found[::-1] == best[1]

    @pytest.mark.parametrize("seed", range(30))
    def test_windows_against_brute_force(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n, m, g = 14, 3, 8
        order, group, memory = rng.permutation(n), rng.integers(0, g, n), rng.integers(0, 5, n)
        feasible = rng.random((g, m)) < 0.8
        feasible[~feasible.any(axis=1)] = True
        ends = np.array([pair for pair in combinations(range(g), 2) if rng.random() < 0.1]).reshape(-1, 2)
        apart = np.unique(np.concatenate((ends, ends[:, ::-1])), axis=0)
        start = np.searchsorted(apart[:, 0], np.arange(g + 1)).astype(np.int64)
        longest, most = int(rng.integers(1, 9)), int(rng.choice([7, 12, UNLIMITED]))
        none = np.zeros(0, dtype=np.int64)
        unions = engine.Unions(feasible, np.zeros(g, dtype=np.int64), np.zeros(m, dtype=np.int64), none, none)
        low = unions.first_positions(order, group, memory, start, apart[:, 1].astype(np.int64), longest, most)

        def sound(i: int, j: int) -> bool:
            inside = order[i:j]
            if j - i == 1:
                return True
            fits = j - i <= longest and memory[inside].sum() <= most and feasible[group[inside]].all(axis=0).any()
            return bool(fits) and not any({a, b} <= set(group[inside].tolist()) for a, b in ends.tolist())

        for j in range(1, n + 1):
            assert low[j] == min(i for i in range(j) if sound(i, j))


class TestFusion:
    def test_the_cheapest_edges_are_cut(self) -> None:
        assert clusters(chain([5, 1, 5, 5, 2]), longest=3) == [[0, 1], [2, 3, 4], [5]]
        assert clusters(chain([5, 5, 5])) == [[0, 1, 2, 3]]

    def test_every_edge_weighs_its_mean_transfer(self) -> None:
        # Equal payloads, but t1's output is shared: still, both of its edges count.
        problem = chain([1, 1], latency=np.array([[0, 3], [5, 0]]))
        assert mean_transfers(problem).tolist() == [5, 5]

    def test_memory_is_a_share_of_the_smallest_capacity(self) -> None:
        given: dict[str, Any] = {"resident": ints(2, 2, 2, 2), "capacity": ints(16, UNLIMITED)}
        assert memory_limit(chain([1], capacity=ints(16, 40)), 0.25) == 4
        assert memory_limit(chain([1], resident=ints(1, 17), capacity=ints(16, 40)), 0.25) == 10
        assert memory_limit(chain([1], resident=ints(1, 41), capacity=ints(16, 40)), 0.25) == 4
        assert memory_limit(chain([1]), 0.25) == UNLIMITED
        assert clusters(chain([1, 9, 1], **given)) == [[0], [1, 2], [3]]
        assert clusters(chain([1, 9, 1], **given), share=0.5) == [[0, 1, 2, 3]]

    def test_a_task_that_is_too_large_stays_alone(self) -> None:
        problem = chain([9, 1, 9], resident=ints(1, 9, 1, 1), capacity=ints(16, 16))
        assert clusters(problem) == [[0], [1], [2, 3]]

    def test_devices_and_separation(self) -> None:
        feasible = np.array([[True, False], [True, True], [False, True], [True, True]])
        assert clusters(chain([1, 2, 1], feasible=feasible)) == [[0], [1, 2, 3]]
        assert clusters(chain([2, 1, 2], separation=[(0, 3)])) == [[0, 1], [2, 3]]

    def test_groups_that_meet_become_one(self) -> None:
        # 0 and 3 are a group, 1 and 2 do not meet anything but their neighbours.
        problem = chain([9, 1, 9], group=ints(0, 1, 2, 0))
        made = fusion(problem, 2, 1.0)
        assert clusters(problem, longest=2, share=1.0) == [[0, 1], [2, 3]]
        assert len(np.unique(made.group)) == 1

    def test_groups_do_not_meet_beyond_their_share_of_a_device(self) -> None:
        # Two groups of two tasks, a quarter of all work each; a device's share of the work is half of it.
        problem = chain([9, 1, 9, 1, 9, 1, 9], group=ints(0, 1, 2, 3, 1, 0, 4, 5))
        assert clusters(problem, longest=2, share=1.0) == [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert len(np.unique(fusion(problem, 2, 1.0).group)) == 3
        # With half of that they may not meet: breakpoints are recomputed with both separated.
        assert clusters(problem, longest=2, share=0.5) == [[0], [1], [2, 3], [4], [5], [6, 7]]
        assert len(np.unique(fusion(problem, 2, 0.5).group)) == 4

    def test_a_large_group_may_still_take_in_small_ones(self) -> None:
        # 20 of 22 ticks are one group: more than a share of a device, but with the other one little more than before.
        ticks = np.array([[10, 10], [1, 1], [10, 10], [1, 1]])
        problem = chain([9, 1, 9], group=ints(0, 1, 0, 1), duration=ticks)
        assert clusters(problem, longest=2) == [[0, 1], [2, 3]]
        assert len(np.unique(fusion(problem, 2, 0.25).group)) == 1
        assert len(np.unique(fusion(problem, 2, 0.09).group)) == 2

    def test_a_cluster_is_cut_where_no_device_has_room_for_all_that_must_stand_there(self) -> None:
        # Each pair may share a device, all three may not: the last cluster must not tie 2 to the group of 0 and 1.
        problem = chain([9, 0, 9], group=ints(0, 1, 2, 0), resident=ints(2, 2, 2, 2), capacity=ints(7, 7))
        first = np.array([True, False, True, False])
        groups = initial_unions(problem)
        first = groups.unite_clusters(problem.order, problem.group, first)
        assert first.tolist() == [True, False, True, True]
        assert groups.parent.tolist() == [0, 0, 2]

    def test_nothing_to_fuse(self) -> None:
        assert find_pass("celeritas-fusion:range=1").apply(chain([1, 2])) is None
        assert find_pass("celeritas-fusion").apply(build_problem(task_names=[], device_names=[], duration=[])) is None  # type: ignore[arg-type]
        with pytest.raises(po.UsageError, match="setting memory = 2: input should be less than or equal to 1"):
            find_pass("celeritas-fusion:memory=2")

    def test_a_model_in_training_does_not_become_one_group(self) -> None:
        problem = model(memory="1 GB")
        reduced = CeleritasFusion(colocation="unite").apply(problem)
        assert reduced is not None
        before, after = grain(problem), grain(reduced.problem)
        assert after.tasks < before.tasks / 3
        assert after.ccr is not None
        assert before.ccr is not None
        assert after.ccr < before.ccr
        assert before == Grain(problem.n_tasks, problem.n_edges, ccr(problem))
        work = mean_durations(problem)
        largest = np.bincount(problem.group, weights=work).max() / work.sum()
        share = np.bincount(reduced.problem.group, weights=mean_durations(reduced.problem)) / work.sum()
        assert share.max() < max(0.15, 1.2 * largest)
        assert reduced.problem.n_groups > 16

    @pytest.mark.parametrize("block", range(3))
    def test_restored_schedules_are_valid(self, block: int) -> None:
        """Under `sum` without deadlines, restored schedules are valid, and the reduced graph has no cycle."""
        heft, seen = find_solver("heft"), 0
        for seed in range(60 * block, 60 * block + 60):
            problem = trainable_problem(np.random.default_rng(seed))
            for wanted in ("range=200", "range=3", "range=5,memory=1"):
                how = ("first", "keep", "unite")[(seed + len(wanted)) % 3]
                fused = apply_passes(problem, [f"celeritas-fusion:{wanted},colocation={how}"])
                schedule = heft.solve(fused.problem, Options(), heft.settings_type()).schedule
                if schedule is None or not fused.steps:
                    continue
                schedule = retime(fused.problem, schedule)
                assert verify(fused.problem, schedule).feasible
                restored = retime(problem, fused.restore(schedule))
                assert verify(problem, restored).violations == ()
                there = fused.project(restored)
                assert there is not None, how
                assert verify(fused.problem, retime(fused.problem, there)).feasible
                seen += 1
        assert seen > 60

    def test_a_group_follows_its_first_task(self) -> None:
        # Two clusters of two. The group of t0 and t3 belongs to the first one, which takes all of its memory.
        problem = chain([9, 1, 9], group=ints(0, 1, 2, 0), resident=ints(1, 2, 3, 4), capacity=ints(7, 7))
        reduction = CeleritasFusion(range=2, memory=1.0).apply(problem)
        assert reduction is not None
        coarse = reduction.problem
        assert (coarse.n_tasks, coarse.n_groups) == (2, 2)
        assert coarse.memory.tolist() == [7, 3]
        assert coarse.duration[:, 0].tolist() == [2, 2]
        restored = reduction.restore(Schedule(ints(0, 1), ints(0, 3)))
        assert restored.device.tolist() == [0, 0, 1, 0]
        assert restored.start.tolist() == [0, 1, 3, 13]
        assert verify(problem, restored).feasible
        there = reduction.project(restored)
        assert there is not None
        assert there.device.tolist() == [0, 1]
        # Clusters of tasks that are led by others have no memory, and take the device of their first task.
        apart = reduction.project(Schedule(ints(1, 1, 0, 1), restored.start))
        assert apart is not None
        assert apart.device.tolist() == [1, 0]
        assert reduction.project(Schedule(ints(0, 1, 1, 0), restored.start)) is None

    def test_the_leader_has_the_devices_and_the_separations_of_its_group(self) -> None:
        feasible = np.array([[True, True], [True, True], [True, True], [False, True]])
        problem = chain([9, 1, 9], group=ints(0, 1, 2, 0), feasible=feasible, separation=[(2, 3)])
        reduction = CeleritasFusion(range=2).apply(problem)
        assert reduction is not None
        coarse = reduction.problem
        # t3 shares a cluster with t2, but not the device: it follows t0 to d1, and t2 must be on d0.
        assert coarse.task_names == ("t0 +1", "t2 +1")
        assert coarse.feasible.tolist() == [[False, True], [True, True]]
        assert coarse.duration.tolist() == [[0, 2], [2, 2]]
        assert coarse.separation.tolist() == [[0, 1]]
        restored = reduction.restore(Schedule(ints(1, 0), ints(0, 3)))
        assert restored.device.tolist() == [1, 1, 0, 1]
        assert verify(problem, restored).feasible

    def test_keep_leaves_the_groups_as_they_are(self) -> None:
        problem = chain([9, 1, 9, 1, 9], group=ints(0, 1, 2, 0, 1, 3))
        kept, united = (
            CeleritasFusion(range=3, memory=1.0, colocation=how).apply(problem)  # type: ignore[arg-type]
            for how in ("keep", "unite")
        )
        assert kept is not None
        assert united is not None
        assert kept.problem.task_names == ("t0", "t1", "t2 +1", "t4 +1")
        assert kept.problem.group.tolist() == [0, 1, 0, 1]
        assert united.problem.n_groups == 1

    def test_groups_of_a_model_in_training_do_not_cut_its_clusters(self) -> None:
        """As in table 2 of the paper: nearly R tasks in a cluster on average."""
        tasks = {}
        for how in ("first", "keep", "unite"):
            reduced = find_pass(f"celeritas-fusion:range=20,colocation={how}").apply(model())
            assert reduced is not None
            tasks[how] = reduced.problem.n_tasks
        n = model().n_tasks
        assert n / 20 <= tasks["first"] < 1.5 * n / 20 < tasks["unite"] < tasks["keep"]

    def test_clusters_are_stretches_of_the_order(self) -> None:
        for seed in range(40):
            problem = trainable_problem(np.random.default_rng(seed), most=30)
            made = fusion(problem, 4, 0.5).clusters
            assert (made.sequence == cpd_topo(problem)).all()
            assert np.diff(made.start).max() <= 4
            assert (made.label[made.sequence] == np.repeat(np.arange(len(made.start) - 1), np.diff(made.start))).all()
