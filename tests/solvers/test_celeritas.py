"""Order-Place and Celeritas: decisions worked by hand, best effort, and what is told of it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from placeopt_solvers.clustering._placers import adjusting_placer, order_placer
from trainable_problems import trainable_problem

import placeopt as po
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.levels import cpd_topo
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import lateness, makespan
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.protocol import Answer, Options, Termination
from placeopt.protocol.registry import find_solver
from placeopt.simulation import retime
from placeopt.verifier import verify

BOTH = ("order-place", "celeritas")


def ints(*values: int) -> Int:
    return np.array(values, dtype=np.int64)


def problem_of(
    durations: list[Any], edges: dict[tuple[int, int], int] | None = None, devices: int = 2, **rest: Any
) -> Problem:
    """Tasks t0, t1, ... with one duration everywhere, or one for each device; a tick per byte between devices."""
    edges = edges or {}
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(devices)],
        duration=np.array([[each] * devices if isinstance(each, int) else each for each in durations]),
        edges=list(edges),
        payload=list(edges.values()),
        byte_ticks_num=np.ones((devices, devices), dtype=np.int64),
        **rest,
    )


def answer(problem: Problem, solver: str, *, strict: bool = False, **settings: Any) -> Answer:
    """What the solver itself says; every task a cluster of its own unless the settings say otherwise."""
    found = find_solver(solver)
    return found.solve(problem, Options(strict=strict), found.settings_type(**{"range": 1} | settings))


def devices(problem: Problem, solver: str, **settings: Any) -> list[int]:
    schedule = answer(problem, solver, **settings).schedule
    assert schedule is not None
    return schedule.device.tolist()


class TestOrderPlace:
    def test_without_limits_everything_is_on_the_first_device(self) -> None:
        assert devices(problem_of([3, 3, 3], {(0, 1): 1}), "order-place") == [0, 0, 0]

    def test_one_device_until_it_is_full_then_the_next(self) -> None:
        # By falling path length: t3, t2, t1, t0. Two fit on each device; what fits on d0 later stays behind.
        problem = problem_of([1, 2, 3, 4], resident=ints(1, 2, 2, 3), capacity=ints(5, 9))
        assert devices(problem, "order-place") == [1, 1, 0, 0]

    def test_what_may_not_run_there_does_not_move_the_rest(self) -> None:
        feasible = np.array([[True, True], [True, True], [False, True]])
        problem = problem_of([1, 2, 3], feasible=feasible)
        assert devices(problem, "order-place") == [0, 0, 1]
        apart = problem_of([1, 2, 3], separation=[(1, 2)])
        assert devices(apart, "order-place") == [0, 1, 0]

    def test_after_the_last_device_comes_the_first(self) -> None:
        problem = problem_of([1, 2, 3], resident=ints(1, 3, 4), capacity=ints(5, 3))
        assert devices(problem, "order-place") == [0, 1, 0]

    def test_clusters(self) -> None:
        # The chain is cut at its lightest edge, where M = half of a device makes two clusters of it.
        problem = problem_of([1] * 4, {(0, 1): 9, (1, 2): 1, (2, 3): 9}, resident=ints(1, 1, 1, 1), capacity=ints(3, 4))
        found = answer(problem, "order-place", range=200, memory=0.7)
        assert found.schedule is not None
        assert found.schedule.device.tolist() == [0, 0, 1, 1]
        assert found.schedule.start.tolist() == [0, 1, 3, 4]
        clusters = {"clusters": 2, "cluster_edges": 1, "cluster_ccr": 1 / 4}
        assert found.stats == {"ccr": 19 / 4, **clusters, "placement": "order"}


class TestAdjusting:
    @pytest.mark.parametrize(("back", "device"), [(1, 1), (2, 1), (3, 0)])
    def test_equation_9(self, back: int, device: int) -> None:
        # t0 (4 ticks) and t1 (3) are sources; t1 can start 4 ticks later beside t0, or at 0 elsewhere. Its output takes
        # `back` + 1 ticks back to d0: it moves only if that is less than the 4 ticks gained.
        problem = problem_of([4, 3, 1], {(0, 2): 9, (1, 2): back + 1})
        assert devices(problem, "celeritas")[:2] == [0, device]

    def test_the_device_of_the_one_before_not_of_the_producer(self) -> None:
        # In CPD-TOPO order t0, t2, t1: t2 goes elsewhere to start at 0, and t1 is tried there first.
        problem = problem_of([6, 1, 5], {})
        assert cpd_topo(problem).tolist() == [0, 2, 1]
        assert devices(problem, "celeritas") == [0, 1, 1]

    def test_slots_between_tasks_are_used(self) -> None:
        # t0 on d0; t1 waits for its data from d1 until 9 and leaves a gap that t3 fills.
        feasible = np.array([[True, False], [False, True], [True, False], [True, False]])
        problem = problem_of([2, 5, 2, 3], {(1, 2): 4, (0, 2): 0}, feasible=feasible)
        found = answer(problem, "celeritas").schedule
        assert found is not None
        assert found.start.tolist() == [0, 0, 9, 2]

    def test_unlike_devices_are_compared_by_ends(self) -> None:
        assert devices(problem_of([[9, 2]]), "celeritas") == [1]

    def test_a_group_stays_together(self) -> None:
        assert devices(problem_of([5, 5, 5], group=ints(0, 0, 0)), "celeritas") == [0, 0, 0]


class TestPlacement:
    # On the coarse graph Adjusting Placement ends at 10, Order-Place at 11. On the original graph, where the data of t1
    # leaves its cluster before t4 ends, they end at 10 and 9.
    DURATIONS: ClassVar[list[int]] = [4, 2, 1, 5, 3]
    EDGES: ClassVar[dict[tuple[int, int], int]] = {(0, 2): 1, (0, 3): 1, (1, 2): 3, (1, 4): 4}

    def case(self) -> Problem:
        return problem_of(self.DURATIONS, self.EDGES, resident=ints(1, 1, 1, 1, 1), capacity=ints(3, 3))

    def ends(self, solver: str, **settings: Any) -> Any:
        return po.solve(self.case(), solver, range=2, memory=1.0, **settings).objective

    def test_the_default_is_algorithm_2_alone(self) -> None:
        assert self.ends("celeritas") == self.ends("celeritas", placement="adjusting") == 10
        assert answer(self.case(), "celeritas", range=2, memory=1.0).stats["placement"] == "adjusting"

    def test_order_is_order_place(self) -> None:
        assert self.ends("celeritas", placement="order") == self.ends("order-place") == 9

    def test_best_compares_times_of_the_original_graph(self) -> None:
        fusion = CeleritasFusion(range=2, memory=1.0)
        reduction = fusion.apply(self.case())
        assert reduction is not None
        placers = adjusting_placer("cpd-topo"), order_placer("cpd-topo")
        coarse = [placer.repaired(reduction.problem).schedule for placer in placers]
        assert [makespan(reduction.problem, each) for each in coarse if each is not None] == [10, 11]
        found = answer(self.case(), "celeritas", range=2, memory=1.0, placement="best")
        assert found.schedule is not None
        assert makespan(self.case(), found.schedule) == 9
        assert found.stats["placement"] == "order"

    def test_best_is_never_worse_than_either(self) -> None:
        seen = set()
        for seed in range(60):
            problem = trainable_problem(np.random.default_rng(seed))
            badness = {}
            for name in ("adjusting", "order", "best"):
                found = answer(problem, "celeritas", range=4, placement=name)
                if found.schedule is not None and not found.message:
                    schedule = retime(problem, found.schedule)
                    badness[name] = lateness(problem, schedule), makespan(problem, schedule)
            if len(badness) == 3:
                assert badness["best"] == min(badness["adjusting"], badness["order"])
                seen.add(badness["adjusting"] < badness["order"])
        assert seen == {False, True}

    def test_best_effort_tries_both(self) -> None:
        # 13 bytes on devices of 5 and 9: Adjusting Placement overfills d0 by 2 B, Order-Place by 1 B.
        problem = problem_of([4, 5, 3], resident=ints(1, 6, 6), capacity=ints(5, 9))
        over = {name: answer(problem, "celeritas", placement=name).message[-22:] for name in ("adjusting", "best")}
        assert over == {"adjusting": "d0 by 2 B over capacity"[-22:], "best": "d0 by 1 B over capacity"[-22:]}
        strict = answer(problem, "celeritas", placement="best", strict=True)
        assert (strict.termination, strict.schedule) == (Termination.FAILED, None)

    def test_an_unknown_placement(self) -> None:
        with pytest.raises(po.UsageError, match="celeritas: setting placement = worst: input should be 'adjusting'"):
            po.solve(self.case(), "celeritas", placement="worst")


class TestBestEffort:
    FULL: ClassVar[dict[str, Int]] = {"resident": ints(4, 4, 4), "capacity": ints(7, 6)}

    @pytest.mark.parametrize("solver", BOTH)
    def test_overfilled_devices_are_told(self, solver: str) -> None:
        problem = problem_of([3, 2, 1], **self.FULL)
        found = answer(problem, solver)
        assert found.termination is Termination.COMPLETED
        assert found.schedule is not None
        assert found.schedule.device.tolist() == [0, 1, 0]
        assert found.message == "best effort, because no device had room for some tasks: d0 by 1 B over capacity"
        assert not verify(problem, found.schedule).feasible

    @pytest.mark.parametrize("solver", BOTH)
    def test_strict(self, solver: str) -> None:
        found = answer(problem_of([3, 2, 1], **self.FULL), solver, strict=True)
        assert (found.termination, found.schedule) == (Termination.FAILED, None)
        assert "no device left for t2, which takes 4 B: it would need 1 B more on d0, 2 B more on d1" in found.message

    @pytest.mark.parametrize("solver", BOTH)
    def test_others_are_moved_first(self, solver: str) -> None:
        # t0 and t1 on d0, t2 on d1 leave no room for t3: with t0 or t1 on d1 all fit, to the byte.
        problem = problem_of([9, 8, 7, 6], {(0, 1): 50}, resident=ints(2, 2, 5, 5), capacity=ints(7, 7))
        found = answer(problem, solver, strict=True)
        assert found.schedule is not None
        assert verify(problem, found.schedule).feasible
        assert "some were moved to make room" in found.message

    @pytest.mark.parametrize("solver", BOTH)
    def test_tasks_are_placed_where_clusters_do_not_fit(self, solver: str) -> None:
        # Three clusters of two, of 4 bytes each, on devices of 6: three tasks each.
        edges = {(0, 1): 9, (2, 3): 9, (4, 5): 9}
        problem = problem_of([1] * 6, edges, resident=ints(2, 2, 2, 2, 2, 2), capacity=ints(6, 6))
        found = answer(problem, solver, range=2, memory=1.0, strict=True)
        assert found.schedule is not None
        assert verify(problem, found.schedule).feasible
        assert "too full for clusters: tasks were placed one by one" in found.message
        assert found.clusters is not None
        assert found.clusters.tolist() == [0, 1, 2, 3, 4, 5]

    @pytest.mark.parametrize("solver", BOTH)
    def test_separation_is_kept_all_the_same(self, solver: str) -> None:
        problem = problem_of([3, 2, 1], separation=[(0, 1), (1, 2), (0, 2)], **self.FULL)
        found = answer(problem, solver)
        assert found.termination is Termination.FAILED
        assert "no device left" in found.message

    @pytest.mark.parametrize("solver", BOTH)
    def test_under_peak_it_may_fit_after_all(self, solver: str) -> None:
        rest: dict[str, Any] = {"scratch": ints(4, 4, 4), "capacity": ints(4, 4), "memory_model": "peak"}
        found = answer(problem_of([3, 2, 1], **rest), solver, strict=True)
        assert found.schedule is not None
        assert found.message == ""

    @pytest.mark.parametrize("solver", BOTH)
    @pytest.mark.parametrize("peak", [False, True])
    def test_no_device_is_overfilled_without_saying_so(self, solver: str, peak: bool) -> None:
        told = 0
        for seed in range(80):
            problem = trainable_problem(np.random.default_rng(seed), peak=peak)
            found = answer(problem, solver, range=4)
            if found.schedule is None:
                assert found.message
                continue
            schedule = retime(problem, found.schedule) if problem.contention != "none" else found.schedule
            rules = {violation.rule.value for violation in verify(problem, schedule).violations}
            assert rules <= {"memory"}
            assert bool(rules) == ("over capacity" in found.message)
            told += bool(rules)
        assert told > 0

    def test_through_the_pipeline(self) -> None:
        """What the quick proofs do not see: even sizes on two devices with room for 17 bytes each, 34 in all."""
        problem = problem_of([1] * 6, resident=ints(8, 8, 4, 2, 6, 6), capacity=ints(17, 17))
        result = po.solve(problem, "celeritas")
        assert (result.termination, result.feasible) == (Termination.COMPLETED, False)
        assert "d1 by 1 B over capacity" in result.message
        assert [violation.rule.value for violation in result.violations] == ["memory"]
        strict = po.solve(problem, "celeritas", strict=True)
        assert (strict.termination, strict.schedule) == (Termination.FAILED, None)
        assert "no device left for" in strict.message


def test_settings_are_those_of_the_pass() -> None:
    problem = problem_of([1] * 4, {(0, 1): 9, (1, 2): 1, (2, 3): 9})
    assert po.solve(problem, "celeritas", range=2).stats["clusters"] == 2
    with pytest.raises(po.UsageError, match='celeritas has no setting "rnge"; did you mean range'):
        po.solve(problem, "celeritas", rnge=2)


def test_unlimited_devices_take_what_is_left() -> None:
    problem = problem_of([3, 2, 1], resident=ints(4, 4, 4), capacity=ints(4, UNLIMITED))
    assert devices(problem, "order-place") == [0, 1, 1]


@pytest.mark.parametrize("solver", BOTH)
def test_another_order_fuses_and_places_in_that_order(solver: str) -> None:
    # Two chains side by side: breadth first they alternate, and pairs of neighbours join them crosswise.
    chains = {(0, 2): 9, (1, 3): 9, (2, 4): 9, (3, 5): 9}
    case = problem_of([1] * 6, chains, capacity=ints(3, 3), resident=ints(1, 1, 1, 1, 1, 1))
    depth, breadth = (po.solve(case, solver, range=3, memory=1.0, order=order) for order in ("dfs-topo", "m-topo"))
    assert depth.stats["cluster_edges"] == 0
    assert breadth.stats["cluster_edges"] == 1
    assert depth.objective == 3
    with pytest.raises(po.UsageError, match="setting order = breadth"):
        po.solve(case, solver, order="breadth")
