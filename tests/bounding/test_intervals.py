"""Interval bounds: never above the optimum, stronger than critical paths at joins, and equal parts solved once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from brute_force import optimum, small_problem

import placeopt as po
from placeopt.bounding.quick import best_bound, narrowed_classes
from placeopt.bounding.quick.classes import classes_of
from placeopt.bounding.quick.paths import windows
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem, Term
from placeopt.proving.intervals import Search
from placeopt.proving.intervals import search as searching
from placeopt.proving.intervals.packing import packed_bound
from placeopt.proving.intervals.passes import FAR, Heads, Parts, mirror, reachability
from placeopt.proving.portfolio import bounds

PROBLEMS = Path(__file__).parents[2] / "problems"


def diamonds(number: int) -> Problem:
    """A series of joins of three tasks of 4 ticks, on two devices with transfers of 1 tick.

    Each fork is a task of 1 tick. Two of the three tasks share a device, and all but those on the fork's or the join's
    device pay a transfer: 8 ticks on one device, 4 on the other. So each diamond takes 1 + 8 ticks, plus the last join.
    """
    edges, ticks = [], []
    for k in range(number):
        edges += [(4 * k, 4 * k + j) for j in (1, 2, 3)] + [(4 * k + j, 4 * k + 4) for j in (1, 2, 3)]
        ticks += [1, 4, 4, 4]
    return build_problem(
        task_names=[f"t{i}" for i in range(4 * number + 1)], device_names="ab",
        duration=np.array([[t, t] for t in [*ticks, 1]]), edges=edges, payload=np.ones(len(edges), np.int64),
        byte_ticks_num=np.ones((2, 2), np.int64),
    )  # fmt: skip


def replace_duration(problem: Problem, duration: Int) -> Problem:
    """The problem on other devices with the same links."""
    m = duration.shape[1]
    return build_problem(
        task_names=problem.task_names, device_names=[f"d{d}" for d in range(m)], duration=duration,
        edges=np.column_stack((problem.edge_source, problem.edge_target)), payload=problem.payload,
        byte_ticks_num=np.ones((m, m), np.int64),
    )  # fmt: skip


def layers(number: int, steps: int, devices: int) -> Problem:
    """LSTM layers of tasks of 10 ticks: each follows its layer's last step and the layer below; a layer is a group."""
    tasks = [(k, t) for k in range(number) for t in range(steps)]
    place = {task: i for i, task in enumerate(tasks)}
    edges = [(place[k, t], place[k, t + 1]) for k, t in tasks if t + 1 < steps]
    edges += [(place[k, t], place[k + 1, t]) for k, t in tasks if k + 1 < number]
    return build_problem(
        task_names=[f"{k}-{t}" for k, t in tasks], device_names=[f"d{d}" for d in range(devices)],
        duration=np.full((len(tasks), devices), 10), edges=edges, group=[k for k, _ in tasks],
    )  # fmt: skip


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """The parts that CP-SAT solves."""
    parts: list[Problem] = []
    original = Heads._solved

    def noted(self: Heads, part: Problem) -> int | None:
        parts.append(part)
        return original(self, part)

    monkeypatch.setattr(Heads, "_solved", noted)
    return parts


class TestAgainstTheOptimum:
    @pytest.mark.parametrize("sizes", [(3,), (4,), (3, 5)])
    def test_no_bound_exceeds_it(self, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "SIZES", sizes)
        compared = met = 0
        for seed in range(1000 * sizes[0], 1000 * sizes[0] + 50):
            problem = small_problem(np.random.default_rng(seed), Objective(), times=bool(seed % 2))
            best = optimum(problem) if problem.n_tasks else None
            if best is None:
                continue
            compared += 1
            value = int(best[0][0])  # type: ignore[call-overload]
            known = (None, value, value + 1, value + 4)[seed // 2 % 4]
            bound = Search(problem, known=known).run(1 + seed // 8 % 2)
            assert bound <= value, f"seed {seed}"
            met += bound == value
        assert compared > 33
        assert met > 0.8 * compared

    def test_no_anchor_or_packing_exceeds_it(self) -> None:
        compared = stronger = 0
        for seed in range(5000, 5300):
            problem = small_problem(np.random.default_rng(seed), Objective(), times=bool(seed % 2))
            if problem.n_groups == problem.n_tasks:
                continue
            best = optimum(problem)
            if best is None:
                continue
            compared += 1
            for each in (problem, mirror(problem)):
                classes = narrowed_classes(each)
                found = windows(classes)
                bound = packed_bound(classes, found)
                assert bound <= best[0][0], f"seed {seed}"
                stronger += bound > best_bound(each).value
        assert compared > 30
        assert stronger > 0

    def test_larger_problems_by_small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "SIZES", (8,))
        stronger = 0
        for seed in range(6):
            types = None if seed % 2 else 1
            problem = layered_problem(
                16, 3, width=4, ccr=0.8, device_types=types, duration=(1, 9), latency=1, seed=seed
            )
            result = po.solve(problem, "cp-sat", time_limit=60, workers=1)
            assert result.termination == "optimal"
            assert result.objective is not None
            bound = Search(problem, known=int(result.objective) + 1 if seed % 3 else None).run()
            assert bound <= result.objective
            stronger += bound > best_bound(problem).value
        assert stronger > 0


class TestMirror:
    def test_keeps_the_optimum_without_times_and_ports(self) -> None:
        compared = 0
        for seed in range(150):
            problem = small_problem(np.random.default_rng(seed), Objective())
            if problem.contention != "none" or problem.memory_model == "peak" or not problem.n_tasks:
                continue
            forwards, backwards = optimum(problem), optimum(mirror(problem))
            assert (forwards is None) == (backwards is None)
            if forwards is not None and backwards is not None:
                compared += 1
                assert forwards[0] == backwards[0], f"seed {seed}"
        assert compared > 50

    def test_holds_permanent_memory_only(self) -> None:
        problem = build_problem(
            task_names="ab", device_names="d", duration=[[1], [2]], edges=[(0, 1)], resident=[1, 2], output=[4, 8],
            scratch=[16, 32], release=[5, 0], memory_model="peak", contention="port",
        )  # fmt: skip
        found = mirror(problem)
        assert found.memory.tolist() == [1, 2]
        assert (found.edge_source.tolist(), found.edge_target.tolist()) == ([1], [0])
        assert (found.contention, found.memory_model, found.release.tolist()) == ("none", "sum", [0, 0])


class TestParts:
    def problem(self) -> Problem:
        """The tasks a and b before c, all on two different devices; a transfer takes 2 ticks."""
        return build_problem(
            task_names="abc", device_names="xy", duration=[[3, 9], [3, 9], [1, 1]], edges=[(0, 2), (1, 2)],
            latency=[[0, 2], [2, 0]],
        )  # fmt: skip

    def test_start_at_the_heads_by_class(self) -> None:
        problem = self.problem()
        head = np.array([[7, 5], [5, 6], [20, 20]])
        part, origin = Parts(problem, head).before(np.array([1, 2]), 2, None)
        assert origin == 5
        assert part.release.tolist() == [0, 15]  # b has no producer; c waits for a, equally long on both devices
        entered, _ = Parts(problem, np.array([[0, 0], [0, 0], [7, 12]])).before(np.array([2]), 2, None)
        assert entered.release.tolist() == [0, 0]
        assert entered.latency[2, :2].tolist() == [0, 5]
        assert optimum(entered)[0] == (1,)  # type: ignore[index]
        pinned, _ = Parts(problem, np.array([[0, 0], [0, 0], [7, 12]])).before(np.array([2]), 2, 1)
        assert pinned.feasible.tolist() == [[False, True]]
        assert optimum(pinned)[0] == (6,)  # type: ignore[index]  # 5 ticks later than on x

    def test_leave_out_closed_classes(self) -> None:
        part, origin = Parts(self.problem(), np.array([[0, FAR], [FAR, 2], [9, 9]])).before(np.arange(3), 2, 0)
        assert origin == 0
        assert part.feasible.tolist() == [[True, False], [False, True], [True, False]]
        assert optimum(part)[0] == (14,)  # type: ignore[index]

    def test_hold_the_ancestors_with_the_latest_heads(self) -> None:
        parts = Parts(diamonds(2), windows(classes_of(diamonds(2))).head)
        assert parts.nearest(8, 5).tolist() == [4, 5, 6, 7, 8]
        assert parts.nearest(8, 6).tolist() == [1, 4, 5, 6, 7, 8]
        assert parts.nearest(8, 100).tolist() == list(range(9))
        assert reachability(diamonds(2))[8].all()


class TestSearch:
    def test_adds_up_the_delays_of_joins(self) -> None:
        problem = diamonds(6)
        assert best_bound(problem).value < 55
        assert Search(problem).run() == 55  # 6 x 9 + 1
        assert po.solve(problem, "heft").objective == 55

    def test_solves_equal_parts_once(self, solved: list[Problem], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "SIZES", (5,))
        numbers = []
        for number in (4, 8):
            solved.clear()
            assert Search(diamonds(number)).run() == 9 * number + 1
            numbers.append(len(solved))
        assert numbers[0] == numbers[1] > 0

    def test_leaves_out_classes_whose_ends_do_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # A third device takes 50 times as long: data from there is always late. Only at the last task it may matter.
        raised: list[tuple[int, int]] = []
        original = Heads._raise

        def noted(self: Heads, v: int, c: int, tasks: Int) -> bool:
            raised.append((v, c))
            return original(self, v, c, tasks)

        monkeypatch.setattr(Heads, "_raise", noted)
        monkeypatch.setattr(searching, "SIZES", (5,))
        equal = diamonds(3)
        problem = replace_duration(equal, np.column_stack((equal.duration, 50 * equal.duration[:, 0])))
        assert Search(problem).run() == 28
        assert raised == [(4, 0), (8, 0), (12, 0), (12, 1), (8, 0), (4, 0), (0, 0), (0, 1)]

    def test_repeats_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "SIZES", (8,))
        problem = layered_problem(24, 3, width=4, ccr=1.0, device_types=2, seed=4)
        runs = []
        for _ in range(2):
            heard: list[int] = []
            assert Search(problem, on_bound=heard.append).run() == heard[-1]
            runs.append(heard)
        assert runs[0] == runs[1] == sorted(set(runs[0]))
        assert len(runs[0]) > 1

    def test_continues_after_a_stop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "SIZES", (8,))
        problem = layered_problem(24, 3, width=4, ccr=1.0, device_types=1, seed=2)
        whole = Search(problem).run()
        calls = count()
        search = Search(problem, should_stop=lambda: next(calls) % 7 == 6)
        parts = [search.run() for _ in range(1000)]
        assert parts[0] < parts[-1] == whole

    def test_ends_at_a_known_optimum(self, solved: list[Problem]) -> None:
        assert Search(diamonds(1), known=10).run() == 10
        number = len(solved)
        assert Search(diamonds(1), known=5).run() == 5
        assert len(solved) == number

    def test_with_layers_on_too_few_devices(self) -> None:
        # Seven layers on four devices: three pairs share devices for 2 x 120 ticks. The best pairs are layers 0 and 4,
        # 1 and 5, 2 and 6: two layers before or after each pair, at 10 ticks.
        problem = layers(7, 12, 4)
        classes = classes_of(problem)
        assert best_bound(problem).value == 240
        assert packed_bound(classes, windows(classes)) == 260

    def test_large_groups_decide_the_translator(self) -> None:
        heard: list[int] = []
        Search(
            po.load(PROBLEMS / "gnmt.yaml"),
            known=29_468_851,
            on_bound=heard.append,
            should_stop=lambda: max(heard, default=0) > 28_000_000,
        ).run()
        assert 28_000_000 < heard[-1] <= 29_212_033  # of a verified schedule


class TestPortfolio:
    def test_intervals_are_among_the_bounds(self) -> None:
        for workers in (1, 2, 4):
            found = {bound.name: bound.value for bound in bounds(diamonds(6), time_limit=60, workers=workers)}
            assert found["intervals"] == 55 > found["critical-path"]

    def test_relaxations_without_a_gain_stop_and_run_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        turns: list[bool] = []

        def relaxed(*_: object, should_stop: Callable[[], bool], **__: object) -> None:
            turns.append(should_stop())

        monkeypatch.setattr("placeopt.proving.portfolio.relaxed_bounds", relaxed)
        assert bounds(diamonds(6), time_limit=60)[0].value == 55
        assert turns == [False]
        turns.clear()
        monkeypatch.setattr("placeopt.proving.portfolio.RELAXING", 0.0)
        assert bounds(diamonds(6), time_limit=60)[0].value == 55
        assert turns == [True, False]

    def test_a_weight_scales_them(self) -> None:
        level = (Term("makespan", 0.5),)
        problem = replace(diamonds(6), objective=Objective((level, (Term("energy"),))))
        assert bounds(problem, time_limit=60, known=27.5)[0].value == 27.5
        assert bounds(problem, time_limit=60)[0].name == "intervals"

    def test_only_the_makespan_has_them(self) -> None:
        problem = build_problem(
            task_names="ab", device_names="d", duration=[[1], [1]], objective=Objective(((Term("energy"),),))
        )
        assert "intervals" not in {bound.name for bound in bounds(problem, time_limit=60)}
