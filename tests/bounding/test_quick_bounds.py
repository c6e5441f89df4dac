"""Lower bounds and proofs of infeasibility: by hand, against brute force, and against linear programming."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import METRICS, optimum, small_problem
from ortools.linear_solver import pywraplp

from placeopt import engine
from placeopt.bounding.quick import NAMES, Bound, best_bound, bounds, prove_infeasible
from placeopt.bounding.quick.classes import classes_of, subsets
from placeopt.bounding.quick.deadlines import horizon, narrowed
from placeopt.bounding.quick.infeasibility import _bins
from placeopt.bounding.quick.interior import dual_prices
from placeopt.bounding.quick.jackson import nearest
from placeopt.bounding.quick.loads import (
    SAMPLE,
    Prices,
    Sharing,
    best_price_bound,
    busiest,
    candidate_prices,
    pigeonhole,
    weights,
)
from placeopt.bounding.quick.paths import NEVER, windows
from placeopt.model.building import build_problem
from placeopt.model.memory import fits
from placeopt.model.objective import evaluate
from placeopt.model.problem import PARTS, UNLIMITED, Metric, Objective, Problem, Term
from placeopt.model.schedule import Schedule, Transfers, durations, edge_ticks, edge_transfers
from placeopt.verifier import verify


def graph(durations: Sequence[Any], devices: int = 2, **changes: Any) -> Problem:
    """Tasks a, b, c, ... with a duration each, or one for each device; a byte takes a tick."""
    arrays: dict[str, Any] = {
        "task_names": [chr(ord("a") + i) for i in range(len(durations))],
        "device_names": [f"d{d}" for d in range(devices)],
        "duration": [row if isinstance(row, list) else [row] * devices for row in durations],
        "byte_ticks_num": np.ones((devices, devices)),
    }
    return build_problem(**(arrays | changes))


def objective(*metrics: Metric) -> Objective:
    return Objective(tuple((Term(metric),) for metric in metrics))


def named(problem: Problem) -> dict[str, Any]:
    return {bound.name: bound.value for bound in bounds(problem)}


def heft_10() -> Problem:
    """Topcuoglu et al. 2002, figure 2: the optimum is 73, HEFT finds 80."""
    rows = "14 16 9/13 19 18/11 13 19/13 8 17/12 13 10/13 16 9/7 15 11/5 11 14/18 12 20/21 7 16"
    edges = (
        "1-2 18, 1-3 12, 1-4 9, 1-5 11, 1-6 14, 2-8 19, 2-9 16, 3-7 23, 4-8 27, 4-9 23, 5-9 13, 6-8 15, "
        "7-10 17, 8-10 11, 9-10 13"
    )
    pairs = [edge.split()[0].split("-") for edge in edges.split(", ")]
    return graph(
        [[int(ticks) for ticks in row.split()] for row in rows.split("/")],
        devices=3,
        edges=[(int(i) - 1, int(j) - 1) for i, j in pairs],
        payload=[int(edge.split()[1]) for edge in edges.split(", ")],
    )


class TestAgainstBruteForce:
    @pytest.mark.parametrize("block", range(20))
    def test_bounds_and_proofs_hold(self, block: int) -> None:
        """50 problems each: no bound exceeds the optimum, and no feasible problem is proved infeasible."""
        for number in range(50):
            problem = small_problem(np.random.default_rng([block, number]), times=block % 2 == 1)
            best = optimum(problem)
            found, proof = bounds(problem), prove_infeasible(problem)
            assert found
            assert list(found) == sorted(found, key=lambda bound: -bound.value)
            if best is None:
                continue
            value, schedule = best
            assert proof is None, (number, proof)
            for bound in found:
                assert bound.value <= value[0], (number, bound, value)
                assert isinstance(bound.value, int) or bound.value.denominator > 1
            # Check the oracle: its schedule is feasible and has the reported value.
            assert verify(problem, schedule, value).feasible
            assert evaluate(problem, schedule) == value
            assert fits(problem, schedule)

    @pytest.mark.parametrize("times", [False, True])
    @pytest.mark.parametrize("metric", METRICS)
    def test_bounds_are_not_idle(self, metric: Metric, times: bool) -> None:
        """For at least two thirds of small problems the best bound equals the optimum."""
        hits = []
        for number in range(30):
            problem = small_problem(np.random.default_rng([100, number]), objective(metric), times=times)
            best = optimum(problem)
            if best is not None:
                hits.append(best_bound(problem).value == best[0][0])
        assert len(hits) >= 15
        assert sum(hits) >= 2 / 3 * len(hits)

    @pytest.mark.parametrize("times", [False, True])
    def test_most_infeasible_problems_are_proved(self, times: bool) -> None:
        """Quick proofs find most infeasible small problems."""
        drawn = (
            small_problem(np.random.default_rng([200, number]), objective("max_load"), times=times)
            for number in range(400)
        )
        infeasible = [problem for problem in drawn if optimum(problem) is None]
        assert len(infeasible) >= (100 if times else 40)
        assert sum(prove_infeasible(problem) is not None for problem in infeasible) >= 0.9 * len(infeasible)


class TestTheOracle:
    @pytest.mark.parametrize("times", [False, True])
    def test_it_agrees_with_every_start_on_a_grid(self, times: bool) -> None:
        """Tiny problems under ports or peak memory: all starts up to a horizon, checked by the verifier."""
        compared, late = 0, 0
        for number in range(30):
            problem = tiny_problem(np.random.default_rng([300, number]), times=times)
            untimed = tiny_problem(np.random.default_rng([300, number]))
            on_grid = grid_optimum(problem, limit=200)
            if on_grid is not None:
                best = optimum(problem)
                assert (None if best is None else best[0]) == (on_grid or None)
                late += not on_grid and optimum(untimed) is not None
                compared += 1
        assert compared >= 10
        assert (late >= 1) == times  # some depend on deadlines


def tiny_problem(rng: np.random.Generator, *, times: bool = False) -> Problem:
    n = int(rng.integers(2, 4))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6]
    output, scratch = rng.integers(0, 4, n), rng.integers(0, 4, n)
    total = int((output + scratch).sum())
    return graph(
        rng.integers(0, 3, (n, 2)).tolist(),
        edges=edges,
        payload=rng.integers(0, 2, len(edges)),
        output=output,
        scratch=scratch,
        capacity=rng.integers(total // 3, total + 1, 2),
        contention=("half_duplex", "port", "none", "none")[int(4 * rng.random())],
        memory_model="peak",
        objective=objective("makespan" if rng.random() < 0.7 else "memory_balance"),
        release=rng.integers(0, 3, n) if times else None,
        deadline=np.where(rng.random(n) < 0.5, rng.integers(2, 6, n), UNLIMITED) if times else None,
    )


def grid_optimum(problem: Problem, limit: int) -> tuple[Any, ...] | None:
    """The best value over all starts up to the last release plus all times; () if infeasible, None if too many."""
    best: tuple[Any, ...] = ()
    for device in product(range(problem.n_devices), repeat=problem.n_tasks):
        where = np.array(device)
        carriers = np.unique(edge_transfers(problem, where))
        carriers = carriers[carriers >= 0] if problem.contention != "none" else carriers[:0]
        work = int((durations(problem, where).sum()) + edge_ticks(problem, where).sum())
        horizon = int(problem.release.max()) + work
        if (horizon + 1) ** (problem.n_tasks + len(carriers)) > limit:
            return None
        for start in product(range(horizon + 1), repeat=problem.n_tasks + len(carriers)):
            moves = np.array(start[problem.n_tasks :], dtype=np.int64)
            transfers = Transfers(carriers, moves) if problem.contention != "none" else None
            report = verify(problem, Schedule(where, np.array(start[: problem.n_tasks]), transfers))
            if report.feasible and report.objective is not None and (not best or report.objective < best):
                best = report.objective
    return best


class TestCriticalPath:
    def test_one_task_takes_its_shortest_duration(self) -> None:
        assert named(graph([[5, 3]]))["critical-path"] == 3

    def test_a_chain_stays_on_the_device_that_is_best_for_all_of_it(self) -> None:
        # 2 + 9 on d0, 8 + 3 on d1, or 2 + 4 + 3 across.
        assert named(graph([[2, 8], [9, 3]], edges=[(0, 1)], payload=[4]))["critical-path"] == 9

    def test_disjoint_devices_force_the_transfer(self) -> None:
        problem = graph([3, 4], edges=[(0, 1)], payload=[5], feasible=[[1, 0], [0, 1]], latency=np.full((2, 2), 2))
        assert named(problem)["critical-path"] == 3 + 2 + 5 + 4

    def test_separation_forces_the_transfer(self) -> None:
        assert named(graph([3, 4], edges=[(0, 1)], payload=[5]))["critical-path"] == 7
        assert named(graph([3, 4], edges=[(0, 1)], payload=[5], separation=[(0, 1)]))["critical-path"] == 12

    def test_a_colocated_pair_pays_no_transfer_and_no_switch(self) -> None:
        problem = graph([[2, 8], [9, 3]], edges=[(0, 1)], payload=[0], group=[0, 0])
        assert named(problem)["critical-path"] == 11

    def test_groups_too_large_for_one_device_force_the_transfer(self) -> None:
        problem = graph([3, 4], edges=[(0, 1)], payload=[5], resident=[6, 5], capacity=[10, 10])
        assert named(problem)["critical-path"] == 12
        assert (
            named(graph([3, 4], edges=[(0, 1)], payload=[5], resident=[5, 5], capacity=[10, 10]))["critical-path"] == 7
        )

    def test_a_join_runs_its_producers_in_turn_or_waits(self) -> None:
        # c: a and b in turn on its device (8), or one of them elsewhere (4 + 10).
        join = [(0, 2), (1, 2)]
        assert named(graph([4, 4, 1], edges=join, payload=[10, 10]))["critical-path"] == 9
        assert named(graph([4, 4, 1], edges=join, payload=[3, 3]))["critical-path"] == 8

    def test_a_fork_runs_its_consumers_in_turn_or_waits(self) -> None:
        assert named(graph([1, 4, 4], edges=[(0, 1), (0, 2)], payload=[10, 10]))["critical-path"] == 9

    def test_a_fork_join_with_long_transfers_runs_in_turn(self) -> None:
        edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
        assert named(graph([1, 4, 4, 1], edges=edges, payload=[20] * 4))["critical-path"] == 10

    def test_fork_joins_in_a_row_run_in_turn(self) -> None:
        edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)]
        problem = graph([1, 2, 2, 1, 2, 2, 1], edges=edges, payload=[9] * 8)
        assert named(problem)["critical-path"] == optimum(problem)[0][0] == 11  # type: ignore[index]

    def test_a_tree_with_long_transfers_runs_on_one_device(self) -> None:
        # Seven tasks of 1, every transfer longer than all of them together.
        edges = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)]
        assert named(graph([1] * 7, edges=edges, payload=[9] * 6))["critical-path"] == 7

    def test_a_chain_is_cut_as_often_as_memory_demands(self) -> None:
        # Three devices hold two tasks each: two cuts, and those at the cheapest places that allow it.
        chain = [(i, i + 1) for i in range(5)]
        problem = graph([1] * 6, devices=3, edges=chain, payload=[9, 5, 9, 7, 9], resident=[1] * 6, capacity=[2, 2, 2])
        assert named(problem)["critical-path"] == 6 + 5 + 7
        assert optimum(problem)[0] == (18,)  # type: ignore[index]

    def test_peak_memory_counts_resident_bytes_only(self) -> None:
        shared = {"edges": [(0, 1)], "payload": [5], "output": [6, 6], "capacity": [10, 10]}
        assert named(graph([3, 4], **shared, memory_model="peak"))["critical-path"] == 7
        assert named(graph([3, 4], **shared, memory_model="sum"))["critical-path"] == 12

    def test_heft_10(self) -> None:
        assert named(heft_10()) == {"critical-path": 63, "jackson": 59, "load": 31, "packing": 27}
        assert best_bound(heft_10()).value <= 73

    def test_parallel_edges_count_their_producer_once(self) -> None:
        problem = graph([4, 1], edges=[(0, 1), (0, 1)], payload=[9, 8])
        assert named(problem)["critical-path"] == 5

    def test_ports_carry_the_unavoidable_transfers(self) -> None:
        """a and b exchange 3 and 5 bytes with d and c, between two devices that they are bound to."""
        pinned = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=np.bool_)
        each: dict[str, Any] = {
            "edges": [(0, 3), (1, 2)],
            "payload": [3, 5],
            "feasible": pinned,
            "release": [9, 0, 0, 0],
        }
        assert "ports" not in named(graph([2, 1, 4, 3], **each))
        # Two ports each: 1 + (3 + 5) / 2 + 3. One port each: 1 + (3 + 5) + 3.
        assert named(graph([2, 1, 4, 3], **each, contention="port"))["ports"] == 8
        assert named(graph([2, 1, 4, 3], **each, contention="half_duplex"))["ports"] == 12
        together = graph([2, 1, 4, 3], edges=[(0, 3)], payload=[3], contention="half_duplex")
        assert "ports" not in named(together)

    def test_heads_and_tails_are_kept_per_class(self) -> None:
        problem = graph([[2, 8], [9, 3]], edges=[(0, 1)], payload=[4])
        found = windows(classes_of(problem))
        assert found.head.tolist() == [[0, 0], [2, 6]]
        assert found.tail.tolist() == [[7, 3], [0, 0]]

    def test_a_task_that_fits_nowhere_beside_its_producer_is_never_there(self) -> None:
        problem = graph([1, 1], edges=[(0, 1)], payload=[1], feasible=[[1, 0], [1, 1]], separation=[(0, 1)])
        assert windows(classes_of(problem)).head[1].tolist() == [NEVER, 2]


class TestLoad:
    def test_equal_devices_share_the_work(self) -> None:
        assert named(graph([3, 2, 2], objective=objective("max_load"))) == {"load": 4, "packing": 4}

    def test_two_kinds_of_devices_share_a_task(self) -> None:
        # Two tasks of 2 on d0 and 4 on d1: 4/3 of them there, 2/3 here, 8/3 ticks.
        problem = graph([[2, 4], [2, 4]], objective=objective("max_load"))
        classes = classes_of(problem)
        sharing = Sharing(classes.duration, classes.memory, classes.allowed, classes.size, classes.capacity)
        assert best_price_bound(sharing) == Fraction(8, 3)
        assert named(problem) == {"load": 3, "packing": 2}

    def test_a_group_is_one_piece(self) -> None:
        problem = graph([3, 3, 3, 3], group=[0, 0, 0, 1], objective=objective("max_load"))
        assert named(problem)["packing"] == 9

    def test_memory_sends_work_to_the_slow_device(self) -> None:
        # The fast device has room for two of four tasks; without memory 40/11 ticks were enough.
        fast = {"resident": [1] * 4, "capacity": [2, UNLIMITED], "objective": objective("max_load")}
        assert named(graph([[1, 10]] * 4, **fast))["load"] == 20

    def test_some_device_has_more_than_its_share(self) -> None:
        assert pigeonhole(np.array([3, 3, 3, 3, 3]), 2) == 9
        assert pigeonhole(np.array([7, 1, 1]), 2) == 7
        assert pigeonhole(np.array([], dtype=np.int64), 2) == 0

    def test_pigeonhole_never_exceeds_the_best_partition(self) -> None:
        rng = np.random.default_rng(0)
        for _ in range(200):
            amounts, count = rng.integers(1, 9, rng.integers(1, 7)), int(rng.integers(1, 4))
            best = min(
                np.bincount(np.unravel_index(code, [count] * len(amounts)), amounts, count).max()
                for code in range(count ** len(amounts))
            )
            assert pigeonhole(amounts, count) <= best

    @pytest.mark.parametrize("n_classes", [1, 2, 3, 6])
    @pytest.mark.parametrize("memory", [False, True])
    def test_compared_with_the_linear_program(self, n_classes: int, memory: bool) -> None:
        """Never above its optimum; equal for one or two classes, else within a millionth (asked: a hundredth)."""
        rng = np.random.default_rng([n_classes, memory])
        compared = 0
        for _ in range(30):
            sharing = random_sharing(rng, int(rng.integers(1, 40)), n_classes, memory)
            optimal = linear_program(sharing)
            if optimal is None:
                continue
            compared += 1
            value = float(best_price_bound(sharing))
            # Bytes are integers, so the bound may slightly exceed the linear program's value.
            assert value <= optimal * (1 + 1e-9)
            assert value >= optimal * (1 - (1e-9 if n_classes <= 2 and not memory else 1e-6))
        assert compared >= 15

    @pytest.mark.parametrize("memory", [False, True])
    @pytest.mark.parametrize("n_classes", [1, 2, 4])
    def test_classes_without_work_change_nothing(self, n_classes: int, memory: bool) -> None:
        rng = np.random.default_rng(n_classes)
        for _ in range(10):
            busy = random_sharing(rng, 12, n_classes, memory)
            idle = replace(
                busy,
                amount=np.pad(busy.amount, ((0, 1), (1, 1))),
                memory=np.append(busy.memory, 0),
                allowed=np.pad(busy.allowed, ((0, 1), (1, 1))),
                size=np.pad(busy.size, 1, constant_values=3),
                capacity=np.pad(busy.capacity, 1, constant_values=UNLIMITED),
            )
            idle.allowed[-1, [0, -1]] = True
            assert best_price_bound(idle) == best_price_bound(busy) > 0
            assert all(prices.amount[[0, -1]].tolist() == [0, 0] for prices in candidate_prices(idle))
        nothing = replace(busy, amount=0 * busy.amount, memory=0 * busy.memory)
        assert candidate_prices(nothing) == []
        assert best_price_bound(nothing) == 0

    def test_a_sample_of_many_items_is_good_enough(self) -> None:
        rng = np.random.default_rng(1)
        sharing = random_sharing(rng, 3 * SAMPLE, 4, memory=False)
        use = sharing.amount / sharing.amount.min(axis=1).sum()
        size = sharing.size.astype(np.float64)
        prices = dual_prices(np.zeros(use.shape), use, np.arange(4), size, np.zeros(4), sharing.allowed, 1e-7)
        optimal = np.where(sharing.allowed, sharing.amount * prices, np.inf).min(axis=1).sum() / (prices @ size)
        assert 0.99 * optimal <= float(best_price_bound(sharing)) <= optimal * (1 + 1e-6)

    @pytest.mark.parametrize("magnitude", [10, 10**9, 10**17])
    def test_evaluation_is_exact_however_large_the_numbers(self, magnitude: int) -> None:
        rng = np.random.default_rng(2)
        for _ in range(20):
            sharing = random_sharing(rng, 6, 3, memory=True, largest=magnitude)
            for prices in (
                Prices(rng.integers(0, magnitude, 3) + 1, rng.integers(0, 50, 3)),
                *candidate_prices(sharing),
            ):
                total = sum(
                    min(
                        prices.amount.tolist()[c] * sharing.amount.tolist()[i][c]
                        + prices.memory.tolist()[c] * (sharing.memory.tolist()[i] >> prices.shift)
                        for c in range(3)
                        if sharing.allowed[i, c]
                    )
                    for i in range(6)
                )
                assert sum(weights(sharing, prices).tolist()) == total
                stock = sum(
                    prices.memory.tolist()[c]
                    * sharing.size.tolist()[c]
                    * (sharing.capacity.tolist()[c] >> prices.shift)
                    for c in range(3)
                )
                scale = sum(prices.amount.tolist()[c] * sharing.size.tolist()[c] for c in range(3))
                most = sum(max(row) for row in sharing.amount.tolist())
                assert best_price_bound(sharing, [prices]) == min(max(Fraction(total - stock, scale), 0), most)


def random_sharing(rng: np.random.Generator, n: int, k: int, memory: bool, largest: int = 100) -> Sharing:
    allowed = rng.random((n, k)) < 0.8
    allowed[~allowed.any(axis=1)] = True
    need = rng.integers(1, 50, n)
    room = rng.integers(50, 50 + 2 * int(need.sum()) // k, k)
    return Sharing(
        amount=np.where(allowed, rng.integers(1, largest, (n, k)), 0),
        memory=need,
        allowed=allowed,
        size=rng.integers(1, 4, k),
        capacity=np.where((rng.random(k) < 0.6) & memory, room, UNLIMITED),
    )


def linear_program(sharing: Sharing) -> float | None:
    """The optimum by GLOP, None if infeasible."""
    solver = pywraplp.Solver.CreateSolver("GLOP")
    n, k = sharing.amount.shape
    longest = solver.NumVar(0, solver.infinity(), "")
    share = {(i, c): solver.NumVar(0, 1, "") for i in range(n) for c in range(k) if sharing.allowed[i, c]}
    for i in range(n):
        solver.Add(sum(share[i, c] for c in range(k) if (i, c) in share) == 1)
    for c in range(k):
        inside = [i for i in range(n) if (i, c) in share]
        size, room = int(sharing.size[c]), int(sharing.capacity[c])
        solver.Add(sum(float(sharing.amount[i, c]) * share[i, c] for i in inside) <= size * longest)
        if room != UNLIMITED:
            solver.Add(sum(float(sharing.memory[i]) * share[i, c] for i in inside) <= size * room)
    solver.Minimize(longest)
    return float(solver.Objective().Value()) if solver.Solve() == pywraplp.Solver.OPTIMAL else None


class TestJackson:
    def test_work_confined_to_one_device_between_head_and_tail(self) -> None:
        # a feeds b, c, d, which only d1 may run, and e follows them all: 2 + 3 + (4 + 4 + 4) + 3 + 1.
        edges = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]
        feasible = [[1, 0], [0, 1], [0, 1], [0, 1], [1, 0]]
        problem = graph([2, 4, 4, 4, 1], edges=edges, payload=[3] * 6, feasible=feasible)
        assert named(problem)["jackson"] == 21
        assert optimum(problem)[0] == (21,)  # type: ignore[index]

    def test_two_devices_start_and_end_with_different_tasks(self) -> None:
        # Carlier: heads 0 and 6, tails 0 and 6, durations 2: (4 + 6 + 6) / 2, the window alone says 2.
        order = np.array([1, 0])
        head, duration, tail = np.array([0, 6]), np.array([2, 2]), np.array([6, 0])
        assert engine.best_spread(order, head, duration, tail, 0, 2) == 16

    def test_window_is_the_preemptive_schedule_of_one_machine(self) -> None:
        """The largest R + work + Q equals the makespan of Jackson's preemptive schedule (Carlier 1982)."""
        rng = np.random.default_rng(3)
        for _ in range(300):
            n = int(rng.integers(1, 9))
            head, work, tail = rng.integers(0, 20, n), rng.integers(1, 9, n), rng.integers(0, 20, n)
            by_tail = np.argsort(-tail, kind="stable")
            rank = np.argsort(np.argsort(head, kind="stable"), kind="stable")
            value, last = engine.best_window(by_tail, rank, head, tail, work, 1)
            assert value == preemptive(head, work, tail)
            near = nearest(head, tail, work, 1, int(tail[last]))
            assert value == near + work[(head >= near) & (tail >= tail[last])].sum() + tail[last]

    def test_spread_is_the_best_over_all_thresholds(self) -> None:
        rng = np.random.default_rng(4)
        for _ in range(300):
            n, m = int(rng.integers(1, 9)), int(rng.integers(1, 4))
            near, work, far = rng.integers(0, 20, n), rng.integers(0, 9, n), rng.integers(0, 20, n)
            order = np.argsort(-near, kind="stable")
            level = int(far[0])
            sets = [[i for i in order[: k + 1] if far[i] >= level] for k in range(n)]
            values = [
                work[chosen].sum() + np.sort(near[chosen])[:m].sum() + np.sort(far[chosen])[:m].sum()
                for chosen in sets
                if len(chosen) >= m
            ]
            assert engine.best_spread(order, near, work, far, level, m) == max(values, default=-(2**62))


def preemptive(head: np.ndarray, work: np.ndarray, tail: np.ndarray) -> int:
    """Tick by tick: of the tasks that may start, the one with the longest tail runs."""
    left, t, longest = work.copy(), 0, 0
    while left.any():
        ready = [i for i in range(len(left)) if left[i] and head[i] <= t]
        t += 1
        if ready:
            i = max(ready, key=lambda task: tail[task])
            left[i] -= 1
            if left[i] == 0:
                longest = max(longest, t + int(tail[i]))
    return longest


class TestOtherObjectives:
    def test_total_cost_adds_the_cheapest_durations_and_the_forced_transfers(self) -> None:
        problem = graph(
            [[2, 8], [9, 3], 1],
            edges=[(0, 1), (1, 2)],
            payload=[4, 4],
            separation=[(0, 1)],
            objective=objective("total_cost"),
        )
        assert bounds(problem) == [
            Bound("cheapest", 10, "every group on its fastest device takes 6 ns, unavoidable transfers take 4 ns")
        ]

    def test_total_cost_knows_that_the_fast_device_is_small(self) -> None:
        few = {"resident": [1] * 4, "capacity": [2, UNLIMITED], "objective": objective("total_cost")}
        assert best_bound(graph([[1, 10]] * 4, **few)).value == 22

    def test_forced_moves_of_a_shared_output_count_once(self) -> None:
        feasible = [[1, 0], [0, 1], [0, 1]]
        fork = {"edges": [(0, 1), (0, 2)], "payload": [7, 7], "feasible": feasible}
        assert best_bound(graph([1, 1, 1], **fork, objective=objective("communication"))).value == 14
        once = graph([1, 1, 1], **fork, shared=[True, True], objective=objective("communication"))
        assert best_bound(once).value == 7

    def test_a_component_too_large_for_one_device_is_split(self) -> None:
        # 6 bytes on devices of 2: three devices, so two cuts, the cheapest ones 5 and 7.
        chain = [(i, i + 1) for i in range(5)]
        memory = {"resident": [1] * 6, "capacity": [2, 2, 2]}
        problem = graph(
            [1] * 6, devices=3, edges=chain, payload=[9, 5, 9, 7, 9], **memory, objective=objective("communication")
        )
        assert best_bound(problem).value == 12
        assert optimum(problem)[0] == (12,)  # type: ignore[index]

    def test_a_component_without_a_common_device_is_split(self) -> None:
        # a and c have no common device, regardless of b.
        problem = graph(
            [1, 1, 1],
            edges=[(0, 1), (1, 2)],
            payload=[9, 4],
            feasible=[[1, 0], [1, 1], [0, 1]],
            objective=objective("communication"),
        )
        assert best_bound(problem).value == 4

    def test_energy_takes_the_cheapest_device_and_link(self) -> None:
        problem = graph(
            [[2, 8], [9, 3]],
            edges=[(0, 1)],
            payload=[4],
            separation=[(0, 1)],
            power_num=[5, 1],
            byte_energy_num=[[0, 3], [2, 0]],
            objective=objective("energy"),
        )
        # 8 on d1 and 3 on d1 are cheapest; a move costs 4 * 2 from d1 to d0 at least.
        assert best_bound(problem).value == 8 + 3 + 8

    def test_memory_balance_is_the_average_or_the_largest_group(self) -> None:
        even = graph([1] * 4, resident=[1] * 4, capacity=[4, 12], objective=objective("memory_balance"))
        assert best_bound(even).value == PARTS // 4
        lone = graph([1, 1], resident=[6, 1], capacity=[8, 12], objective=objective("memory_balance"))
        assert best_bound(lone).value == PARTS // 2
        free = graph([1], resident=[6], capacity=[8, UNLIMITED], objective=objective("memory_balance"))
        assert best_bound(free).value == 0

    def test_a_weighted_sum_adds_the_best_bounds(self) -> None:
        terms = (Term("makespan", Fraction(1, 2)), Term("communication", Fraction(3)))
        problem = graph([3, 4], edges=[(0, 1)], payload=[5], separation=[(0, 1)], objective=Objective((terms,)))
        assert bounds(problem) == [
            Bound("weighted-sum", 21, "makespan >= 12 (critical-path); communication >= 5 (transfers)")
        ]

    def test_a_weight_scales_every_bound(self) -> None:
        problem = graph([3, 2], objective=Objective(((Term("max_load", Fraction(1, 2)),),)))
        assert named(problem) == {"load": Fraction(3, 2), "packing": Fraction(3, 2)}

    def test_of_a_list_the_first_level_counts(self) -> None:
        assert best_bound(graph([3, 2], objective=objective("max_load", "makespan"))).value == 3


class TestEdges:
    @pytest.mark.parametrize("metric", METRICS)
    def test_nothing_to_place(self, metric: Metric) -> None:
        problem = graph([], objective=objective(metric))
        assert bounds(problem) == [Bound("trivial", 0, "there is nothing to place")]
        assert prove_infeasible(problem) is None

    @pytest.mark.parametrize("metric", METRICS)
    def test_an_infeasible_problem_has_finite_bounds(self, metric: Metric) -> None:
        nowhere = graph([3, 4], edges=[(0, 1)], feasible=[[0, 0], [1, 1]], objective=objective(metric))
        crowded = graph([3, 4], edges=[(0, 1)], resident=[9, 9], capacity=[5, 5], objective=objective(metric))
        apart = graph([3, 4], devices=1, edges=[(0, 1)], separation=[(0, 1)], objective=objective(metric))
        tight = graph([3, 4, 5], resident=[3, 3, 3], capacity=[4, 4], objective=objective(metric))
        for problem in (nowhere, crowded, apart, tight):
            assert prove_infeasible(problem) is not None
            assert 0 <= best_bound(problem).value < NEVER

    def test_equal_bounds_keep_the_order_of_the_table(self) -> None:
        assert [bound.name for bound in bounds(graph([5], devices=1))] == [
            "critical-path",
            "load",
            "jackson",
            "packing",
        ]

    def test_times_of_no_length(self) -> None:
        assert best_bound(graph([0, 0], edges=[(0, 1)])).value == 0

    def test_the_largest_amounts_do_not_overflow(self) -> None:
        large = 1 << 59
        late = graph([large, 1], devices=1, release=[large, 0], deadline=[2 * large - 1, UNLIMITED])
        assert best_bound(late).value == 2 * large
        assert prove_infeasible(graph([1 << 40, 1], release=[large, 0], deadline=[large + 1, 9])) is not None
        # Beyond 2^60 ticks nothing is proved, and nothing wrong is reported.
        assert prove_infeasible(late) is None
        never = graph([2 * large, 2 * large], release=[4 * large, 0])
        assert best_bound(never).value >= 2 * large
        problem = graph([large, large], devices=1, resident=[large, large], capacity=[UNLIMITED])
        assert best_bound(problem).value == 2 * large
        assert prove_infeasible(problem) is None
        full = graph([1, 1], devices=1, resident=[large, large], capacity=[2 * large - 1])
        assert prove_infeasible(full) is not None

    def test_nothing_heavy_is_imported(self) -> None:
        program = (
            "import sys, placeopt.bounding.quick, placeopt.model.metrics\n"
            "assert not {'ortools', 'scipy', 'networkx'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", program], check=True)


class TestTimes:
    def test_heads_start_at_release_times(self) -> None:
        problem = graph([3, 2, 4], edges=[(0, 1)], payload=[1], release=[5, 0, 7])
        found = windows(classes_of(problem))
        assert found.head.tolist() == [[5], [8], [7]]
        assert found.tail.tolist() == [[2], [0], [0]]
        assert named(problem)["critical-path"] == 11

    def test_a_late_producer_elsewhere_may_be_worth_its_transfer(self) -> None:
        # c: a and b in turn on one device from 5 on (9), or b elsewhere and its data moved (5 + 2 + 1).
        problem = graph([2, 2, 1], edges=[(0, 2), (1, 2)], payload=[1, 1], release=[5, 5, 0])
        assert named(problem)["critical-path"] == 9
        assert optimum(problem)[0] == (9,)  # type: ignore[index]

    def test_work_between_releases_and_the_end(self) -> None:
        # On one device: 3 ticks at once, then 2 + 2 + 2 from 5 on.
        problem = graph([3, 2, 2, 2], devices=1, release=[0, 5, 5, 6])
        assert named(problem) == {"critical-path": 8, "jackson": 11, "load": 9, "packing": 9}

    def test_deadlines_leave_fewer_devices(self) -> None:
        # By 6, b must run on the fast d1, so its load and, since a cannot wait for the transfer, that of a is there.
        rows = [[1, 2], [9, 3]]
        free = graph(rows, edges=[(0, 1)], payload=[4], objective=objective("total_cost"))
        assert best_bound(free).value == 4
        tight = graph(rows, edges=[(0, 1)], payload=[4], deadline=[UNLIMITED, 6], objective=objective("total_cost"))
        assert best_bound(tight).value == 5
        within = narrowed(classes_of(tight))
        assert within is not None
        assert within.classes.allowed.tolist() == [[False, True], [False, True]]
        assert (within.horizon, within.late) == (11 + 4, None)

    def test_without_deadlines_nothing_is_narrowed(self) -> None:
        assert narrowed(classes_of(graph([1], release=[4]))) is None

    def test_every_schedule_ends_by_the_last_deadline_if_all_tasks_have_one(self) -> None:
        assert horizon(classes_of(graph([3, 4], edges=[(0, 1)], payload=[5], release=[0, 6]))) == 6 + 7 + 5
        assert horizon(classes_of(graph([3, 4], release=[0, 6], deadline=[7, 12]))) == 12
        assert horizon(classes_of(graph([3, 4], release=[0, 6], deadline=[7, UNLIMITED]))) == 13

    def test_best_prices_do_not_ask_for_the_end_of_tasks_without_a_deadline(self) -> None:
        # a's deadline leaves b all the time it wants.
        assert prove_infeasible(graph([3, 40], devices=1, edges=[(0, 1)], deadline=[3, UNLIMITED])) is None


class TestInfeasibility:
    def reason(self, durations: Sequence[Any], devices: int = 2, **changes: Any) -> str:
        proof = prove_infeasible(graph(durations, devices, **changes))
        assert proof is not None
        assert str(proof) == proof.reason
        return proof.reason

    def test_a_task_without_a_device(self) -> None:
        assert self.reason([1, 1], feasible=[[1, 1], [0, 0]]) == "task b has no feasible device"

    def test_a_group_without_a_common_device(self) -> None:
        reason = self.reason([1, 1], feasible=[[1, 0], [0, 1]], group=[0, 0])
        assert reason == "the group of a, b has no device that is feasible for all of its tasks"

    def test_a_group_that_must_be_apart(self) -> None:
        reason = self.reason([1, 1], group=[0, 0], separation=[(0, 1)])
        assert reason == "tasks a and b must be on the same device and on different ones"

    def test_a_task_larger_than_its_devices(self) -> None:
        reason = self.reason([1], resident=[2048], capacity=[1024, 4096], feasible=[[1, 0]])
        assert reason == "task a needs 2 KiB of memory, more than the 1 KiB of the largest device that may run it (d0)"

    def test_a_task_whose_run_needs_more_than_any_device(self) -> None:
        peak = {"resident": [5], "output": [3], "scratch": [3], "capacity": [10, 10], "memory_model": "peak"}
        assert self.reason([1], **peak).startswith("task a needs 11 B")
        assert prove_infeasible(graph([0], **peak)) is None  # what takes no time is never live

    def test_three_tasks_apart_on_two_devices(self) -> None:
        reason = self.reason([1, 1, 1], separation=[(0, 1), (0, 2), (1, 2)])
        assert reason.startswith(
            "3 tasks (a, b, c) must be on different devices, but the devices that they fit on (d0, d1)"
        )

    def test_two_tasks_apart_on_the_same_single_device(self) -> None:
        reason = self.reason([1, 1], feasible=[[1, 0], [1, 0]], separation=[(0, 1)])
        assert reason.startswith("2 tasks (a, b) must be on different devices, but the devices that they fit on (d0)")

    def test_tasks_confined_to_some_devices_need_too_much_together(self) -> None:
        # c fits on d2 as well; a and b share d0 and d1 and are 5 bytes of 4.
        reason = self.reason(
            [1, 1, 1, 1],
            devices=3,
            feasible=[[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 0]],
            resident=[2, 2, 1, 1],
            capacity=[2, 2, 9],
        )
        assert reason == "the 3 tasks that only fit on d0, d1 need 5 B of memory together, more than the 4 B available"

    def test_unions_of_confinements_count(self) -> None:
        # a, b on d0 or d1; c on d1 or d2; d on d0 or d2: no pair of devices is too small, the three together are.
        feasible = [[1, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
        reason = self.reason([1] * 4, devices=3, feasible=feasible, resident=[2, 2, 3, 3], capacity=[3, 3, 3])
        assert reason == "all tasks together need 10 B of memory, and all devices have 9 B"

    def test_groups_of_more_than_half_a_device(self) -> None:
        reason = self.reason([1] * 3, resident=[6, 6, 6], capacity=[10, 11])
        assert reason == "3 groups of 6 B or more only fit on d0, d1, which have room for 2 of that size"

    def test_groups_of_more_than_a_third(self) -> None:
        assert self.reason([1] * 5, resident=[4] * 5, capacity=[11, 11]).startswith("5 groups of 4 B or more")

    def test_large_and_small_groups_do_not_pack(self) -> None:
        # 20 bytes on 20, but no device that has 7 already takes the 4.
        reason = self.reason([1] * 4, resident=[7, 7, 4, 2], capacity=[10, 10])
        assert reason == (
            "the groups that only fit on d0, d1 cannot be packed into 2 devices of 10 B: they need at least 3"
        )
        assert prove_infeasible(graph([1] * 4, resident=[7, 6, 4, 3], capacity=[10, 10])) is None

    def test_peak_memory_counts_resident_bytes_and_one_run(self) -> None:
        peak = {"resident": [4, 4], "scratch": [3, 1], "memory_model": "peak"}
        assert "need 11 B of memory together" in self.reason([1, 1], devices=1, capacity=[10], **peak)
        assert prove_infeasible(graph([1, 1], devices=1, capacity=[11], **peak)) is None

    def test_a_task_that_ends_after_its_deadline(self) -> None:
        assert self.reason([[5, 4]], deadline=[3]) == "task a ends at 4 ns at the earliest, after its deadline at 3 ns"
        assert prove_infeasible(graph([[5, 4]], deadline=[4])) is None
        assert self.reason([4], release=[2], deadline=[5]).startswith("task a ends at 6 ns at the earliest")

    def test_a_producer_and_an_unavoidable_transfer_before_a_deadline(self) -> None:
        apart = {"edges": [(0, 1)], "payload": [5], "separation": [(0, 1)]}
        reason = self.reason([3, 4], deadline=[UNLIMITED, 11], **apart)
        assert reason == (
            "task b ends at 12 ns at the earliest, after its deadline at 11 ns; the longest chain before it is a"
        )
        assert prove_infeasible(graph([3, 4], deadline=[UNLIMITED, 12], **apart)) is None

    def test_the_chain_before_a_deadline_begins_after_a_release_time(self) -> None:
        fork = {"edges": [(0, 1), (1, 3), (2, 3)], "release": [0, 4, 0, 0]}
        reason = self.reason([3, 2, 5, 4], deadline=[UNLIMITED, UNLIMITED, UNLIMITED, 9], **fork)
        assert reason.endswith(
            "ends at 10 ns at the earliest, after its deadline at 9 ns; the longest chain before it is b"
        )

    def test_a_task_too_late_for_what_follows(self) -> None:
        # a takes 2 on d0 and 6 on d1. b is to end by 6: not after a on d1; nor may it run on d0, and moving takes 9.
        rows, allowed = [[2, 6], [1, 1]], [[1, 1], [0, 1]]
        chain = {"edges": [(0, 1)], "payload": [9], "feasible": allowed}
        assert self.reason(rows, deadline=[UNLIMITED, 6], **chain).startswith("task b ends at 7 ns at the earliest")
        # a keeps its own deadline on d0 alone, b, in its group, on d1 alone.
        reason = self.reason([[2, 9], [9, 2]], deadline=[3, 3], group=[0, 0])
        assert reason == "wherever the group of a, b may run, one of them or of their successors misses a deadline"

    def test_a_task_with_a_device_in_time_for_itself_but_not_for_what_follows(self) -> None:
        # b may run on d1 only, where a would end too late at 7; from d0, where it ends at 2, its data arrives at 11.
        rows, allowed = [[2, 7], [1, 1]], [[1, 1], [0, 1]]
        problem = graph(rows, edges=[(0, 1)], payload=[9], feasible=allowed, deadline=[5, 9])
        assert optimum(problem) is None
        proof = prove_infeasible(problem)
        assert str(proof) == "wherever task a may run, it or one of its successors misses a deadline"

    def test_too_much_work_between_releases_and_deadlines(self) -> None:
        # From 4 to 9 one device is to do 6 ticks of work; a has time before and after.
        times = {"release": [0, 4, 4, 5], "deadline": [UNLIMITED, 9, 9, 8]}
        reason = self.reason([9, 2, 2, 2], devices=1, **times)
        assert reason == (
            "the 4 tasks that can only run on d0 have too little time between their release times and their deadlines, "
            "or those of their successors"
        )
        assert prove_infeasible(graph([9, 2, 2, 2], devices=1, **(times | {"deadline": [UNLIMITED, 10, 9, 8]}))) is None
        assert prove_infeasible(graph([9, 2, 2, 2], devices=2, **times)) is None

    def test_tasks_that_deadlines_confine_to_a_device(self) -> None:
        reason = self.reason([[2, 9], [2, 9]], deadline=[3, 3])
        assert reason.startswith("the 2 tasks that can only run on d0 if all deadlines are met have too little time")

    def test_deadlines_confine_tasks_to_devices_without_room(self) -> None:
        room = {"resident": [3, 3], "capacity": [9, 5]}
        rows = [[9, 2], [9, 2]]
        reason = self.reason(rows, deadline=[8, 8], **room)
        assert reason == (
            "if all deadlines are met, the 2 tasks that only fit on d1 need 6 B of memory together, "
            "more than the 5 B available"
        )
        assert prove_infeasible(graph(rows, deadline=[9, 8], **room)) is None

    def test_exactly_full_is_no_proof(self) -> None:
        assert prove_infeasible(graph([1] * 4, resident=[5] * 4, capacity=[10, 10])) is None
        assert prove_infeasible(graph([1] * 2, separation=[(0, 1)])) is None

    def test_bins_never_exceed_the_best_packing(self) -> None:
        """L2 against all partitions: 2 items of 6 and 3 of 4 into bins of 10, and random ones."""
        assert _bins(np.array([6, 6, 4, 4, 4]), 10) == 3
        rng = np.random.default_rng(5)
        for _ in range(300):
            capacity = int(rng.integers(3, 12))
            sizes = np.sort(rng.integers(1, capacity + 1, rng.integers(1, 7)))[::-1]
            assert _bins(sizes, capacity) <= fewest_bins(sizes.tolist(), capacity, [])

    def test_unlimited_devices_have_room(self) -> None:
        assert prove_infeasible(graph([1], resident=[9], capacity=[5, UNLIMITED])) is None


def fewest_bins(sizes: list[int], capacity: int, bins: list[int]) -> int:
    if not sizes:
        return len(bins)
    size, *rest = sizes
    choices = [fewest_bins(rest, capacity, [*bins, size])]
    for i, used in enumerate(bins):
        if used + size <= capacity:
            choices.append(fewest_bins(rest, capacity, [*bins[:i], used + size, *bins[i + 1 :]]))
    return min(choices)


class TestSubsets:
    def test_own_sets_then_unions_then_everything(self) -> None:
        feasible = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1]]
        found = subsets(classes_of(graph([[1, 2, 3]] * 4, devices=3, feasible=feasible)))
        assert [subset.members.astype(int).tolist() for subset in found] == [
            [1, 0, 0],
            [0, 1, 0],
            [0, 1, 1],
            [1, 1, 0],
            [1, 1, 1],
        ]
        assert [subset.groups.astype(int).tolist() for subset in found] == [
            [1, 0, 1, 0],
            [0, 1, 0, 0],
            [0, 1, 0, 1],
            [1, 1, 1, 0],
            [1, 1, 1, 1],
        ]

    def test_their_number_is_limited(self) -> None:
        feasible = np.eye(20, dtype=np.bool_)
        problem = graph([list(range(1, 21))] * 20, devices=20, feasible=feasible)
        found = subsets(classes_of(problem))
        assert len(found) == 64
        assert found[-1].members.all()
        assert found[-1].groups.all()

    def test_equal_work_counts_once(self) -> None:
        # c and d take no time; a runs only on the first device, b on the first two.
        feasible = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 0]]
        problem = graph([[5, 5, 5, 5], [3, 4, 3, 3], [0] * 4, [0] * 4], devices=4, feasible=feasible)
        found = busiest(classes_of(problem))
        assert [subset.members.astype(int).tolist() for subset in found] == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]]

    def test_without_any_work(self) -> None:
        problem = graph([0, 0])
        assert len(busiest(classes_of(problem))) == 1
        assert {bound.value for bound in bounds(problem)} == {0}


class TestNames:
    """Ledgers accept a bound only under a known name, and users look it up in the documentation."""

    def test_quick_bounds_have_the_listed_names(self) -> None:
        found = {bound.name for bound in bounds(heft_10())}
        for seed in range(100):
            problem = small_problem(np.random.default_rng(seed))
            for metric in METRICS:
                single = replace(problem, objective=objective(metric))
                found |= {bound.name for bound in bounds(single)}
        assert found <= set(NAMES)

    def test_the_page_on_bounds_explains_every_name(self) -> None:
        page = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text(encoding="utf-8")
        for name in set(NAMES) - {"weighted-sum", "trivial"}:
            assert f"`{name}`" in page, name
