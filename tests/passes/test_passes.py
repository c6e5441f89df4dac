"""Passes: what each removes and keeps, the optimum under exact passes, and restored schedules."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import numpy as np
import pytest
from brute_force import optimum, small_problem
from commandline import run
from reducible_problems import reducible_problem

import placeopt as po
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.passes import EXACT_PASSES, PASSES, Chain, Pass, Reduction, apply_passes, catalog, find_pass, pass_names
from placeopt.passes.rebuilding import keeps_triangle_inequality
from placeopt.protocol import Termination
from placeopt.simulation import retime
from placeopt.verifier import verify


def ints(*values: int) -> Int:
    return np.array(values, dtype=np.int64)


def problem_of(durations: list[Any], edges: list[tuple[int, int]], devices: int = 2, **rest: Any) -> Problem:
    """Tasks t0, t1, ... with one duration everywhere, or one for each device; a tick per byte between devices."""
    values: dict[str, Any] = {"byte_ticks_num": np.ones((devices, devices), dtype=np.int64)}
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(devices)],
        duration=np.array([[each] * devices if isinstance(each, int) else each for each in durations]),
        edges=edges,
        **values | rest,
    )


def metric(*names: str) -> po.Objective:
    return po.Objective(tuple((po.Term(name),) for name in names))  # type: ignore[arg-type]


def applied(problem: Problem, name: str) -> Problem | None:
    reduction = find_pass(name).apply(problem)
    return None if reduction is None else reduction.problem


def pairs(problem: Problem) -> list[tuple[str, str]]:
    names = problem.task_names
    ends = zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)
    return [(names[a], names[b]) for a, b in ends]


def check_exact(problem: Problem, chain: Chain) -> None:
    """The optimum is the same, and schedules keep their value on the way back and forth."""
    best, reduced = optimum(problem), optimum(chain.problem)
    assert (best is None) == (reduced is None)
    if best is None or reduced is None:
        return
    assert best[0] == reduced[0]
    back = verify(problem, chain.restore(reduced[1]))
    assert back.violations == ()
    assert back.objective == reduced[0]
    there = chain.project(best[1])
    assert there is not None
    if problem.contention != "none" and there.transfers is None:
        there = retime(chain.problem, there)
    judged = verify(chain.problem, there)
    assert judged.violations == ()
    assert judged.objective == best[0]


@pytest.mark.parametrize("block", range(4))
def test_exact_passes_keep_the_optimum(block: int) -> None:
    changed = dict.fromkeys(EXACT_PASSES, 0)
    for seed in range(100 * block, 100 * block + 100):
        rng = np.random.default_rng(seed)
        problem = small_problem(rng, times=seed % 2 == 0) if seed % 5 == 0 else reducible_problem(rng)
        for names in (EXACT_PASSES, *([name] for name in EXACT_PASSES)):
            chain = apply_passes(problem, names)
            for name in chain.names:
                changed[name] += 1
            if chain.steps:
                check_exact(problem, chain)
    assert min(changed.values()) > 0, changed


def test_passes_run_until_nothing_is_left_to_do() -> None:
    # The zero-time chain t1, t2 goes only once t0 -> t2 is known to follow from t0 -> t1 -> t2.
    problem = problem_of([3, 0, 0, 2], [(0, 1), (1, 2), (0, 2), (2, 3)], group=ints(0, 0, 0, 1))
    chain = apply_passes(problem, EXACT_PASSES)
    assert chain.problem.task_names == ("t0", "t3")
    assert apply_passes(chain.problem, EXACT_PASSES).steps == ()
    assert chain.exact
    assert chain.applied.before.tasks == 4
    assert chain.applied.to_dict()["after"]["tasks"] == 2


@pytest.mark.parametrize(("tasks", "devices"), [(0, 0), (0, 2), (1, 0), (1, 1), (3, 0)])
def test_next_to_nothing(tasks: int, devices: int) -> None:
    values: dict[str, Any] = {"duration": np.ones((tasks, devices)), "edges": [(0, 1), (0, 2), (1, 2)] * (tasks == 3)}
    problem = build_problem(
        task_names=[f"t{i}" for i in range(tasks)], device_names=[f"d{d}" for d in range(devices)], **values
    )
    chain = apply_passes(problem, [name for name in EXACT_PASSES if name != "dominated-edges"])
    assert chain.steps == ()
    check_exact(problem, apply_passes(problem, EXACT_PASSES))


def test_no_pass_no_change() -> None:
    problem = problem_of([1, 1], [(0, 1)])
    chain = apply_passes(problem, ())
    schedule = Schedule(ints(0, 1), ints(0, 1))
    assert chain.problem is problem
    assert chain.project(schedule) is schedule
    assert chain.restore(schedule) is schedule


@pytest.mark.parametrize("device", [(0, 5), (-1, 0), (0, 1)])
def test_a_schedule_that_makes_no_sense_has_no_counterpart(device: tuple[int, int]) -> None:
    feasible = np.array([[True, True], [True, False]])
    problem = problem_of([1, 1], [(0, 1)], feasible=feasible, group=ints(0, 0))
    chain = apply_passes(problem, EXACT_PASSES)
    assert chain.names == ("forced-devices", "idle-devices")
    assert chain.project(Schedule(ints(*device), ints(0, 1))) is None


class TestForcedDevices:
    def test_memory_of_a_group(self) -> None:
        problem = problem_of([1, 1, 1], [], group=ints(0, 0, 1), resident=ints(3, 3, 1), capacity=ints(5, 9))
        reduced = applied(problem, "forced-devices")
        assert reduced is not None
        assert reduced.feasible.tolist() == [[False, True], [False, True], [True, True]]

    def test_memory_beside_what_must_be_there(self) -> None:
        feasible = np.array([[True, False], [True, True]])
        problem = problem_of([1, 1], [], feasible=feasible, resident=ints(3, 3), capacity=ints(5, 5))
        reduced = applied(problem, "forced-devices")
        assert reduced is not None
        assert reduced.feasible.tolist() == [[True, False], [False, True]]

    def test_separation_spreads(self) -> None:
        feasible = np.array([[True, False], [True, True], [True, True]])
        problem = problem_of([1, 1, 1], [], feasible=feasible, separation=[(0, 1), (1, 2)])
        reduced = applied(problem, "forced-devices")
        assert reduced is not None
        assert reduced.feasible.tolist() == [[True, False], [False, True], [True, False]]
        assert reduced.group.tolist() == [0, 1, 0]

    def test_deadlines_count_what_comes_before_and_after(self) -> None:
        late = ints(UNLIMITED, UNLIMITED, 9)
        problem = problem_of([2, [3, 5], 3], [(0, 1), (1, 2)], release=ints(1, 0, 0), deadline=late)
        reduced = applied(problem, "forced-devices")
        assert reduced is not None
        assert reduced.feasible[1].tolist() == [True, False]

    def test_nothing_to_do(self) -> None:
        assert applied(problem_of([1, 1], [(0, 1)]), "forced-devices") is None

    def test_what_is_infeasible_stays_so(self) -> None:
        feasible = np.array([[True, False], [True, False]])
        problem = problem_of([1, 1], [], feasible=feasible, separation=[(0, 1)])
        reduced = applied(problem, "forced-devices")
        assert reduced is not None
        assert not reduced.feasible.any(axis=1).all()


class TestIdleDevices:
    def test_as_many_as_there_are_groups(self) -> None:
        problem = problem_of([1, 1], [(0, 1)], devices=5, byte_ticks_num=np.ones((5, 5)))
        chain = apply_passes(problem, ["idle-devices"])
        assert chain.problem.device_names == ("d0", "d1")
        spread = chain.project(Schedule(ints(3, 1), ints(0, 9)))
        assert spread is not None
        assert spread.device.tolist() == [0, 1]
        assert chain.restore(spread).device.tolist() == [0, 1]

    def test_devices_that_nothing_may_run_on(self) -> None:
        problem = problem_of([1], [], devices=3, feasible=np.array([[False, True, False]]))
        reduced = applied(problem, "idle-devices")
        assert reduced is not None
        assert reduced.device_names == ("d1",)

    def test_different_devices_stay(self) -> None:
        assert applied(problem_of([[1, 2], [2, 1]], []), "idle-devices") is None


class TestZeroTime:
    def test_a_producer_stands_in(self) -> None:
        problem = problem_of(
            [3, 0, 2],
            [(0, 1), (1, 2)],
            payload=[9, 4],
            group=ints(0, 0, 1),
            resident=ints(1, 2, 3),
            capacity=ints(9, 9),
        )
        chain = apply_passes(problem, ["zero-time"])
        assert pairs(chain.problem) == [("t0", "t2")]
        assert chain.problem.payload.tolist() == [4]
        assert chain.problem.resident.tolist() == [3, 3]
        restored = chain.restore(Schedule(ints(0, 1), ints(5, 20)))
        assert restored.device.tolist() == [0, 0, 1]
        assert restored.start.tolist() == [5, 8, 20]

    def test_a_consumer_stands_in(self) -> None:
        problem = problem_of([3, 0, 2], [(0, 1), (1, 2)], payload=[9, 4], group=ints(0, 1, 1), release=ints(0, 7, 0))
        chain = apply_passes(problem, ["zero-time"])
        assert chain.problem.payload.tolist() == [9]
        assert chain.problem.release.tolist() == [0, 7]
        assert chain.restore(Schedule(ints(0, 1), ints(5, 20))).start.tolist() == [5, 20, 20]

    def test_a_deadline_moves_to_the_producer(self) -> None:
        late = ints(UNLIMITED, 6, UNLIMITED)
        problem = problem_of([3, 0, 2], [(0, 1), (1, 2)], group=ints(0, 0, 1), deadline=late)
        reduced = applied(problem, "zero-time")
        assert reduced is not None
        assert reduced.deadline.tolist() == [6, UNLIMITED]

    def test_a_deadline_moves_to_all_producers_of_a_last_task(self) -> None:
        late = ints(UNLIMITED, UNLIMITED, 6)
        problem = problem_of([3, 2, 0], [(0, 2), (1, 2)], group=ints(0, 0, 0), deadline=late)
        chain = apply_passes(problem, ["zero-time"])
        assert chain.problem.deadline.tolist() == [6, 6]
        assert chain.restore(Schedule(ints(0, 0), ints(0, 3))).start.tolist() == [0, 3, 5]

    def test_two_shared_outputs_of_one_task_do_not_go_together(self) -> None:
        edges, shared = [(0, 1), (0, 2), (1, 2)], [True, True, True]
        cost: dict[str, Any] = {"payload": [5, 5, 7], "shared": shared, "group": ints(0, 0, 1)}
        assert (
            applied(problem_of([3, 0, 2], edges, objective=metric("makespan", "communication"), **cost), "zero-time")
            is None
        )
        timing = applied(problem_of([3, 0, 2], edges, **cost), "zero-time")
        assert timing is not None
        assert sorted(timing.payload.tolist()) == [5, 7]

    @pytest.mark.parametrize(
        "changes",
        [
            {"group": ints(0, 1, 2)},
            {"release": ints(0, 4, 0), "deadline": ints(UNLIMITED, 7, UNLIMITED)},
            {"memory_model": "peak", "output": ints(0, 1, 0), "capacity": ints(9, 9)},
            {"memory_model": "peak", "output": ints(1, 0, 0), "capacity": ints(9, 9)},
        ],
    )
    def test_what_must_stay(self, changes: dict[str, Any]) -> None:
        edges = [(0, 1), (1, 2)]
        assert applied(problem_of([3, 0, 2], edges, **{"group": ints(0, 0, 1)} | changes), "zero-time") is None

    def test_time_on_some_device(self) -> None:
        edges, group = [(0, 1), (1, 2)], ints(0, 0, 1)
        assert applied(problem_of([3, [0, 1], 2], edges, group=group), "zero-time") is None
        kept = np.array([[True, False], [True, True], [True, True]])
        assert applied(problem_of([3, [0, 1], 2], edges, group=group, feasible=kept), "zero-time") is not None

    def test_long_chains_go_at_once(self) -> None:
        problem = problem_of([1, *[0] * 50], [(i, i + 1) for i in range(50)], group=np.zeros(51, dtype=np.int64))
        chain = apply_passes(problem, ["zero-time"])
        assert len(chain.steps) == 1
        assert chain.problem.task_names == ("t0",)

    def test_transfers_find_their_way_through_ports(self) -> None:
        edges = [(0, 1), (1, 2), (1, 3)]
        problem = problem_of([3, 0, 2, 1], edges, payload=[1, 4, 2], group=ints(0, 0, 1, 2), contention="port")
        chain = apply_passes(problem, ["zero-time"])
        schedule = retime(chain.problem, Schedule(ints(0, 1, 1), ints(0, 1, 2)))
        assert verify(problem, chain.restore(schedule)).violations == ()
        there = chain.project(chain.restore(schedule))
        assert there is not None
        assert there.transfers is not None
        assert schedule.transfers is not None
        assert there.transfers.start.tolist() == schedule.transfers.start.tolist()


class TestRelays:
    @pytest.mark.parametrize(
        ("inward", "outward", "group"),
        [(4, 4, [0, 0, 1]), (5, 4, [0, 0, 1]), (3, 4, [0, 1, 1])],
    )
    def test_the_side_with_the_larger_payload(self, inward: int, outward: int, group: list[int]) -> None:
        reduced = applied(problem_of([3, 0, 2], [(0, 1), (1, 2)], payload=[inward, outward]), "relays")
        assert reduced is not None
        assert reduced.group.tolist() == group

    def test_more_bytes_out_than_in_for_two_consumers(self) -> None:
        edges = [(0, 1), (1, 2), (1, 3)]
        assert applied(problem_of([3, 0, 2, 2], edges, payload=[3, 4, 4]), "relays") is None
        assert applied(problem_of([3, 0, 2, 2], edges, payload=[4, 4, 3]), "relays") is not None

    def test_a_way_over_a_third_device(self) -> None:
        # From d0 to d2 a relay on d1 takes 2 ticks, the direct way 9.
        feasible = np.array([[True, False, False], [True, True, True], [False, False, True]])
        far: dict[str, Any] = {"devices": 3, "feasible": feasible, "byte_ticks_num": np.zeros((3, 3))}
        problem = problem_of([1, 0, 1], [(0, 1), (1, 2)], latency=ints(0, 1, 9, 1, 0, 1, 9, 1, 0).reshape(3, 3), **far)
        assert not keeps_triangle_inequality(problem)
        assert applied(problem, "relays") is None
        near = problem_of([1, 0, 1], [(0, 1), (1, 2)], latency=ints(0, 5, 9, 5, 0, 5, 9, 5, 0).reshape(3, 3), **far)
        assert keeps_triangle_inequality(near)
        assert applied(near, "relays") is not None

    @pytest.mark.parametrize(
        "changes",
        [
            {"resident": ints(0, 1, 0), "capacity": ints(9, 9)},
            {"feasible": np.array([[True, True], [True, False], [True, True]])},
            {"separation": [(0, 1)]},
            {"contention": "port"},
            {"objective": metric("total_cost")},
            {"release": ints(0, 9, 0), "deadline": ints(UNLIMITED, 20, UNLIMITED)},
        ],
    )
    def test_what_must_stay(self, changes: dict[str, Any]) -> None:
        assert applied(problem_of([3, 0, 2], [(0, 1), (1, 2)], payload=[4, 4], **changes), "relays") is None

    def test_neighbours_in_one_group(self) -> None:
        cost: dict[str, Any] = {"contention": "port", "objective": metric("total_cost")}
        problem = problem_of([3, 0, 2], [(0, 1), (1, 2)], payload=[1, 4], group=ints(0, 1, 0), **cost)
        reduced = applied(problem, "relays")
        assert reduced is not None
        assert reduced.n_groups == 1


class TestDominatedEdges:
    def test_within_a_group_any_path_will_do(self) -> None:
        problem = problem_of([1, 1, 1], [(0, 1), (1, 2), (0, 2)], payload=[1, 1, 9], group=ints(0, 1, 0))
        reduced = applied(problem, "dominated-edges")
        assert reduced is not None
        assert pairs(reduced) == [("t0", "t1"), ("t1", "t2")]

    def test_a_skip_needs_its_payload_all_the_way(self) -> None:
        edges = [(0, 1), (1, 2), (0, 2)]
        assert applied(problem_of([1, 1, 1], edges, payload=[4, 4, 4]), "dominated-edges") is not None
        assert applied(problem_of([1, 1, 1], edges, payload=[4, 3, 4]), "dominated-edges") is None

    def test_one_of_equal_parallel_edges_stays(self) -> None:
        reduced = applied(problem_of([1, 1], [(0, 1), (0, 1)], payload=[4, 4]), "dominated-edges")
        assert reduced is not None
        assert reduced.n_edges == 1

    def test_a_way_over_a_third_device(self) -> None:
        feasible = np.array([[True, False, False], [False, True, False], [False, False, True]])
        far: dict[str, Any] = {"devices": 3, "feasible": feasible, "byte_ticks_num": np.zeros((3, 3))}
        edges = [(0, 1), (1, 2), (0, 2)]
        problem = problem_of([1, 1, 1], edges, latency=ints(0, 1, 9, 1, 0, 1, 9, 1, 0).reshape(3, 3), **far)
        assert applied(problem, "dominated-edges") is None
        near = problem_of([1, 1, 1], edges, latency=ints(0, 5, 9, 5, 0, 5, 9, 5, 0).reshape(3, 3), **far)
        assert applied(near, "dominated-edges") is not None

    def test_to_another_consumer_in_the_group(self) -> None:
        # t0 feeds t1 and t2, which share a device and run one after the other: one transfer's wait covers both.
        far = ints(0, 1, 9, 1, 0, 1, 9, 1, 0).reshape(3, 3)
        values: dict[str, Any] = {"devices": 3, "byte_ticks_num": np.ones((3, 3)), "latency": far}
        problem = problem_of([1, 1, 1], [(0, 1), (1, 2), (0, 2)], payload=[5, 0, 5], group=ints(0, 1, 1), **values)
        reduced = applied(problem, "dominated-edges")
        assert reduced is not None
        assert pairs(reduced) == [("t0", "t1"), ("t1", "t2")]

    @pytest.mark.parametrize(
        "changes",
        [
            {"contention": "port"},
            {"objective": metric("makespan", "communication")},
            {"memory_model": "peak", "output": ints(1, 0, 0), "capacity": ints(9, 9)},
        ],
    )
    def test_what_must_stay(self, changes: dict[str, Any]) -> None:
        edges = [(0, 1), (1, 2), (0, 2)]
        assert applied(problem_of([1, 1, 1], edges, payload=[4, 4, 4], **changes), "dominated-edges") is None


class TestContractGroups:
    def test_a_group_is_one_task(self) -> None:
        problem = problem_of(
            [1, 2, 3, 4], [(0, 2), (1, 3)], payload=[5, 6], group=ints(0, 0, 1, 1), resident=ints(1, 2, 3, 4),
            objective=metric("total_cost"), contention="port",
        )  # fmt: skip
        chain = apply_passes(problem, ["contract-groups"])
        assert chain.problem.n_tasks == 2
        assert chain.problem.duration[:, 0].tolist() == [3, 7]
        assert chain.problem.resident.tolist() == [3, 7]
        assert chain.problem.payload.tolist() == [11]
        assert chain.problem.contention == "none"
        check_exact(problem, chain)

    @pytest.mark.parametrize(
        ("links", "payload"),
        [
            ({}, [11]),
            ({"latency": np.ones((2, 2))}, [5, 6]),
            ({"byte_ticks_den": np.full((2, 2), 4)}, [5, 6]),
        ],
    )
    def test_transfers_add_up_only_without_rounding(self, links: dict[str, Any], payload: list[int]) -> None:
        cost: dict[str, Any] = {"payload": [5, 6], "group": ints(0, 0, 1, 1), "separation": [(0, 2)]}
        problem = problem_of([1, 2, 3, 4], [(0, 2), (1, 3)], objective=metric("total_cost"), **cost, **links)
        chain = apply_passes(problem, ["contract-groups"])
        assert chain.problem.payload.tolist() == payload
        check_exact(problem, chain)

    def test_groups_on_a_cycle(self) -> None:
        edges, group = [(0, 1), (2, 3), (3, 4), (4, 5)], ints(0, 1, 1, 0, 1, 0)
        problem = problem_of(
            [1, 2, 3, 1, 1, 1], edges, payload=[5, 6, 7, 8], group=group, objective=metric("total_cost"),
            resident=ints(3, 3, 3, 1, 1, 1), capacity=ints(9, 7),
        )  # fmt: skip
        chain = apply_passes(problem, ["contract-groups"])
        assert (chain.problem.n_tasks, chain.problem.n_edges) == (4, 2)
        best = optimum(chain.problem)
        assert best is not None
        assert best[0] == (9 + 26,)  # the groups do not fit together, and all four edges move
        assert verify(problem, chain.restore(best[1]), best[0]).violations == ()

    @pytest.mark.parametrize(
        "changes",
        [
            {"objective": po.Objective()},
            {"objective": metric("energy"), "power_num": ints(1, 1), "power_den": ints(2, 2)},
            {"deadline": ints(9, 9, 9)},
            {"memory_model": "peak"},
        ],
    )
    def test_what_must_stay(self, changes: dict[str, Any]) -> None:
        values: dict[str, Any] = {"objective": metric("total_cost"), "group": ints(0, 0, 1), "latency": np.ones((2, 2))}
        values |= {"payload": [4, 4], "byte_energy_num": np.ones((2, 2))} | changes
        reduced = applied(problem_of([1, 1, 1], [(0, 2), (1, 2)], **values), "contract-groups")
        assert reduced is None

    def test_release_times_do_not_matter(self) -> None:
        problem = problem_of([1, 1], [(0, 1)], payload=[3], release=ints(0, 5), objective=metric("communication"))
        chain = apply_passes(problem, ["contract-groups"])
        assert not chain.problem.release.any()
        assert chain.restore(Schedule(ints(0, 0), ints(0, 1))).start.tolist() == [0, 5]


class Halved:
    """A third party's pass that is not exact: it removes the second half of the devices."""

    name: ClassVar[str] = "halved"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "half the devices"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        from placeopt.passes.rebuilding import rebuilt

        if problem.n_devices < 2:
            return None
        reduced, _ = rebuilt(problem, devices=np.arange(problem.n_devices // 2))
        return Reduction(reduced, lambda schedule: schedule, lambda _: None, "half the devices taken away")


class Liar(Halved):
    """Claims to be exact but delays every task by a tick."""

    name: ClassVar[str] = "liar"
    exact: ClassVar[bool] = True

    def apply(self, problem: Problem) -> Reduction | None:
        def restore(schedule: Schedule) -> Schedule:
            return Schedule(schedule.device, schedule.start + 1)

        return Reduction(problem, restore, lambda schedule: schedule, "nothing") if problem.name != "done" else None


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, f"{__name__}:{value}", catalog.GROUP) for name, value in
              (("halved", "Halved"), ("broken", "Nowhere"), ("odd", "ints"))]  # fmt: skip
    monkeypatch.setattr(catalog, "entry_points", lambda group: points if group == catalog.GROUP else [])


class TestCatalog:
    def test_names(self) -> None:
        assert tuple(pass_names())[: len(PASSES)] == tuple(PASSES)
        assert all(isinstance(each, Pass) for each in PASSES.values())

    def test_unknown(self) -> None:
        with pytest.raises(po.UsageError, match='unknown pass "zero-tme"; did you mean zero-time'):
            find_pass("zero-tme")
        with pytest.raises(po.UsageError, match='unknown pass "xyz"; known are forced-devices, idle-devices'):
            apply_passes(problem_of([1], []), ["xyz"])

    @pytest.mark.usefixtures("others")
    def test_third_parties(self) -> None:
        assert pass_names()[-3:] == ["broken", "halved", "odd"]
        assert find_pass("halved").name == "halved"
        with pytest.raises(po.UsageError, match=r'pass "broken" \(.*Nowhere\) cannot be loaded'):
            find_pass("broken")
        with pytest.raises(po.InternalError, match=r'pass "odd" .* does not implement'):
            find_pass("odd")


class TestSolve:
    def test_exact_solvers_run_behind_exact_passes(self) -> None:
        problem = problem_of([3, 0, 2], [(0, 1), (1, 2)], payload=[4, 4])
        result = po.solve(problem, "cp-sat", workers=1)
        assert result.passes is not None
        assert result.passes.names == ("relays", "zero-time")
        assert (result.passes.before.tasks, result.passes.after.tasks) == (3, 2)
        assert (result.termination, result.objective, result.bound) == (Termination.OPTIMAL, 5, 5)
        assert result.to_dict()["passes"]["names"] == ["relays", "zero-time"]
        assert set(result.to_dict()["placement"]) == {"t0", "t1", "t2"}
        bare = po.solve(problem, "cp-sat", workers=1, passes=())
        assert bare.passes is not None
        assert bare.passes.names == ()
        assert bare.objective == 5

    def test_heuristics_do_not_unless_asked(self) -> None:
        problem = problem_of([3, 0, 2], [(0, 1), (1, 2)], payload=[4, 4])
        by_default = po.solve(problem, "heft").passes
        asked = po.solve(problem, "heft", passes=["relays", "zero-time"]).passes
        assert by_default is not None
        assert asked is not None
        assert by_default.names == ()
        assert asked.after.tasks == 2

    def test_an_unknown_pass(self) -> None:
        with pytest.raises(po.UsageError, match="did you mean relays"):
            po.solve(problem_of([1], []), "heft", passes=["relay"])

    @pytest.mark.usefixtures("others")
    def test_behind_other_passes_nothing_is_proved(self) -> None:
        problem = problem_of([2, 2], [])
        result = po.solve(problem, "cp-sat", workers=1, passes=["halved"])
        assert (result.objective, result.bound, result.termination) == (4, 2, Termination.COMPLETED)
        assert result.bound_source != "cp-sat"
        assert "halved may lose the optimum" in result.message

    @pytest.mark.usefixtures("others")
    def test_infeasible_behind_other_passes_is_no_proof(self) -> None:
        result = po.solve(problem_of([2, 2], [], separation=[(0, 1)]), "cp-sat", workers=1, passes=["halved"])
        assert result.termination is Termination.FAILED
        assert "halved may lose the optimum" in result.message

    def test_same_optimum_with_and_without(self) -> None:
        for seed in range(12):
            problem = reducible_problem(np.random.default_rng(seed))
            best = optimum(problem)
            initial = None if best is None else best[1]
            result = po.solve(problem, "cp-sat", workers=1, initial=initial)
            assert result.values == (None if best is None else best[0])

    def test_a_pass_that_lies_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(PASSES, "liar", Liar())
        monkeypatch.setattr("placeopt.passes.chain._exhausted", lambda p, passes, steps: _once(p, passes, steps))
        from placeopt.passes.chain import _once

        problem = problem_of([2, 2], [(0, 1)])
        with pytest.raises(po.InternalError, match="pass liar restores a schedule with 4 as one that has 5"):
            po.solve(problem, "heft", passes=["zero-time", "liar"])


class TestCommandLine:
    @pytest.fixture
    def chain_file(self, tmp_path: Any) -> Any:
        path = tmp_path / "chain.yaml"
        path.write_text(
            "placeopt: 1\ndevices: {d: {count: 2}}\nlinks: {default: {bandwidth: 1}}\n"
            "tasks:\n  a: {time: 3, output: 4}\n  z: {time: 0, output: 4, after: a}\n  b: {time: 2, after: z}\n"
        )
        return path

    def test_passes_are_listed(self) -> None:
        done = run("passes")
        assert done.code == 0
        assert all(name in done.out for name in EXACT_PASSES)
        cards = json.loads(run("passes", "--json").out)
        assert [card["name"] for card in cards] == pass_names()
        assert cards[0]["exact"] is True

    def test_solve(self, chain_file: Any) -> None:
        done = run("solve", chain_file, "--pass", "zero-time", "--pass", "relays", "--json")
        result = json.loads(done.out)
        assert result["passes"]["names"] == ["relays", "zero-time"]
        assert result["passes"]["before"]["tasks"] == 3
        text = run("solve", chain_file, "--solver", "cp-sat").out
        assert "relays, zero-time: 3 -> 2 tasks, 2 -> 1 edges" in text
        bare = json.loads(run("solve", chain_file, "--solver", "cp-sat", "--no-passes", "--json").out)
        assert bare["passes"]["names"] == []

    def test_wrong_usage(self, chain_file: Any) -> None:
        done = run("solve", chain_file, "--pass", "relys")
        assert (done.code, done.out) == (2, "")
        assert "did you mean relays" in done.err
        done = run("solve", chain_file, "--pass", "relays", "--no-passes")
        assert done.code == 2
        assert "--pass and --no-passes exclude each other" in done.err

    def test_inspect(self, chain_file: Any) -> None:
        text = run("inspect", chain_file).out
        assert "1 zero-time task moved into a neighbour's group" in text
        assert "3 -> 2 tasks" in text
        found = json.loads(run("inspect", chain_file, "--json").out)["exact_passes"]
        assert [step["pass"] for step in found["steps"]] == ["relays", "zero-time"]
        assert found["after"]["edges"] == 1


def test_weights_make_no_difference() -> None:
    weighted = po.Objective(((po.Term("makespan", Fraction(1, 3)), po.Term("max_load", Fraction(2))),))
    problem = problem_of([3, 0, 2], [(0, 1), (1, 2), (0, 2)], payload=[4, 4, 4], objective=weighted)
    chain = apply_passes(problem, EXACT_PASSES)
    assert chain.problem.n_tasks == 2
    check_exact(problem, chain)
