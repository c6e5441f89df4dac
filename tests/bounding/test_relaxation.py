"""The relaxation: its rows hold for every schedule, its bounds for every problem, its cuts are effective."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import networkx as nx
import numpy as np
import pytest
from brute_force import METRICS, optimum, small_problem

from placeopt import engine
from placeopt.bounding.engines.linear_program import LinearProgram
from placeopt.bounding.quick import Bound
from placeopt.bounding.quick.classes import classes_of
from placeopt.bounding.relaxation import relaxed_bounds
from placeopt.bounding.relaxation.covers import ChainCuts, CoverCuts, _leaves
from placeopt.bounding.relaxation.cycles import CycleCuts
from placeopt.bounding.relaxation.forks import ForkCuts, blocks
from placeopt.bounding.relaxation.integer import GRID, coarse
from placeopt.bounding.relaxation.kinds import MOST, kinds_of
from placeopt.bounding.relaxation.model import GroupGraph, Relaxation
from placeopt.model import objective
from placeopt.model.building import build_problem
from placeopt.model.objective import Value
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.protocol import PLACED
from placeopt.simulation import simulate
from placeopt.verifier import verify


def relaxation_of(problem: Problem, known: Value | None = None) -> Relaxation:
    return Relaxation(kinds_of(classes_of(problem)), known)


def cut_at_random(relaxation: Relaxation, rng: np.random.Generator, rounds: int) -> list[int]:
    """Add the windows and all cuts that random points violate; return the number of each family."""
    network = GroupGraph.of(relaxation)
    covers = CoverCuts(relaxation, network)
    families = covers, ChainCuts(relaxation, covers), CycleCuts(relaxation, network), ForkCuts(relaxation, network)
    if relaxation.timed:
        relaxation.add_windows()
    upper = np.minimum(np.array(relaxation.program.upper, dtype=np.float64), 1.0)
    found = [0, 0, 0, 0]
    for _ in range(rounds):
        x = rng.random(len(upper)) * upper * rng.choice([0.05, 0.3, 1.0])
        x[relaxation.w] *= rng.choice([0.05, 1.0])
        x[relaxation.s] = rng.random(len(relaxation.s)) * rng.choice([0.0, 1.0, 5.0])
        for place, family in enumerate(families):
            cuts = family.violated(x)
            assert all(excess > 0 for excess, _ in cuts)
            found[place] += len(cuts)
            relaxation.program.rows.extend(row for _, row in cuts)
    return found


def point_of(relaxation: Relaxation, schedule: Schedule) -> np.ndarray:
    """(columns,) the point of a schedule.

    Columns of metrics are capped at their upper bounds, since the relaxation may count less than the schedule does.
    """
    problem, kinds = relaxation.problem, relaxation.kinds
    kind_of_class = np.empty(kinds.classes.n_classes, dtype=np.int64)
    for k, members in enumerate(kinds.members):
        kind_of_class[list(members)] = k
    home = np.empty(problem.n_groups, dtype=np.int64)
    home[problem.group] = schedule.device
    kind = kind_of_class[problem.device_class[home]]
    x = np.zeros(relaxation.program.n_columns, dtype=np.int64)
    x[relaxation.y[np.arange(len(home)), kind]] = 1
    index = {(a, b): v for v, (a, b) in enumerate(kinds.moves.tolist())}
    for q, (g, h) in enumerate(zip(relaxation.low.tolist(), relaxation.high.tolist(), strict=True)):
        a, b = int(kind[g]), int(kind[h])
        if home[g] == home[h] or (a == b and kinds.pool[a]):
            x[relaxation.t[q, a]] = 1
        else:
            x[relaxation.w[q, index[a, b]]] = 1
    if relaxation.timed:
        x[relaxation.s] = schedule.start
    for metric, column in relaxation.metric.items():
        x[column] = min(objective.METRICS[metric](problem, schedule), relaxation.program.upper[column])
    if relaxation._outputs is not None:
        producers, z = relaxation._outputs
        for place, producer in enumerate(producers.tolist()):
            for e in range(int(problem.out_start[producer]), int(problem.out_start[producer + 1])):
                if problem.shared[e] and relaxation.pair[e] >= 0:
                    there = x[relaxation.w[relaxation.pair[e]]]
                    x[z[place]] |= there if relaxation.forward[e] else there[relaxation._back]
    return x


def broken(relaxation: Relaxation, schedule: Schedule) -> list[str]:
    """The constraints that the point of a schedule violates, as text."""
    return unkept(relaxation.program, point_of(relaxation, schedule).tolist())


def unkept(program: LinearProgram, x: list[int]) -> list[str]:
    """The rows and bounds that a point violates, as text."""
    found = []
    for place, row in enumerate(program.rows):
        value = sum(c * x[j] for j, c in zip(row.columns.tolist(), row.coefficients.tolist(), strict=True))
        if value < row.low or (row.equation and value > row.low):
            found.append(f"row {place}: {value} for {row.low}")
    for column, (low, value, high) in enumerate(zip(program.lower, x, program.upper, strict=True)):
        if not low <= value <= high:
            found.append(f"column {column}: {value} not within {low}..{high}")
    return found


def large_problem(rng: np.random.Generator) -> Problem:
    """A random problem too large for brute force, mostly chains with side branches."""
    n, m = int(rng.integers(4, 40)), int(rng.integers(2, 9))
    chain = rng.random() < 0.6
    pairs = set()
    for j in range(1, n):
        pairs.add((j - 1, j) if chain and rng.random() < 0.9 else (int(rng.integers(0, j)), j))
        while rng.random() < 0.3:
            pairs.add((int(rng.integers(max(0, j - 5), j)), j))
    edges = sorted(pairs)
    label = rng.integers(0, int(rng.integers(1, m + 1)), m)
    alike = np.ix_(label, label)
    same = label[:, None] == label[None, :] if rng.random() < 0.5 else np.zeros((m, m), dtype=np.bool_)
    output, shared = rng.integers(0, 20, n), rng.random(len(edges)) < 0.5
    resident = rng.integers(0, 10, n)
    room = rng.integers(10, 10 + int(resident.sum()), m)
    feasible = (rng.random((n, m)) < (0.8 if rng.random() < 0.3 else 1.0))[:, label]
    feasible[~feasible.any(axis=1)] = True
    terms = [
        Term(METRICS[int(metric)], Fraction(int(rng.integers(1, 4)), int(rng.integers(1, 3))))
        for metric in rng.choice(len(METRICS), int(rng.integers(1, 4)), replace=False)
    ]
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(0, 12, (n, m))[:, label],
        feasible=feasible,
        edges=edges,
        payload=np.where(shared, output[[i for i, _ in edges]], rng.integers(0, 20, len(edges))),
        shared=shared,
        resident=resident,
        capacity=np.where(rng.random(m) < 0.3, UNLIMITED, room)[label],
        latency=np.where(same, 0, rng.integers(0, 5, (m, m))[alike]),
        byte_ticks_num=np.where(same, 0, rng.integers(0, 4, (m, m))[alike]),
        power_num=rng.integers(0, 4, m)[label],
        byte_energy_num=rng.integers(0, 3, (m, m))[alike],
        group=rng.integers(0, n, n) if rng.random() < 0.3 else None,
        release=rng.integers(0, 20, n) * (rng.random() < 0.2),
        objective=Objective((tuple(terms),)) if rng.random() < 0.5 else None,
        contention="port" if rng.random() < 0.2 else "none",
        memory_model="peak" if rng.random() < 0.2 else "sum",
    )


def some_placement(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """(n,) a random device for each group that may run there."""
    return np.array([rng.choice(np.flatnonzero(row)) for row in problem.group_feasible()])[problem.group]


def chain(
    payload: list[int], capacity: list[int], *, duration: int = 10, link: int = 1, memory: int = 1, **rest: object
) -> Problem:
    """Tasks one after the other, each with as many bytes of memory, on equal devices."""
    n, m = len(payload) + 1, len(capacity)
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.full((n, m), duration),
        edges=[(i, i + 1) for i in range(n - 1)],
        payload=payload,
        resident=np.full(n, memory),
        capacity=np.array(capacity),
        byte_ticks_num=np.full((m, m), link),
        **rest,  # type: ignore[arg-type]
    )


class TestRows:
    @pytest.mark.parametrize("seed", range(60))
    def test_hold_at_an_optimum(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        problem = small_problem(rng, times=bool(seed % 2))
        best = optimum(problem)
        if best is not None:
            relaxation = relaxation_of(problem, best[0][0] if seed % 3 else None)
            cut_at_random(relaxation, rng, 4)
            assert broken(relaxation, best[1]) == []

    def test_hold_at_random_schedules(self) -> None:
        schedules, found = 0, np.zeros(4, dtype=np.int64)
        for seed in range(40):
            rng = np.random.default_rng(seed)
            problem = large_problem(rng)
            allowed = problem.group_feasible()
            if not allowed.any(axis=1).all():
                continue
            relaxation = relaxation_of(problem)
            found += cut_at_random(relaxation, rng, 4)
            for trial in range(12):
                home = np.array([rng.choice(np.flatnonzero(row)) for row in allowed])
                last = int(rng.integers(problem.n_devices))
                for g in dict.fromkeys(problem.group[problem.order].tolist()) if trial % 2 else ():
                    if rng.random() < 0.2 or not allowed[g, last]:
                        last = int(rng.choice(np.flatnonzero(allowed[g])))
                    home[g] = last
                schedule = simulate(problem, home[problem.group])
                if verify(problem, schedule).feasible:
                    schedules += 1
                    assert broken(relaxation, schedule) == [], f"seed {seed}"
        assert schedules > 200
        assert (found > 20).all()

    @pytest.mark.parametrize("common", [False, True])
    def test_hold_in_coarse_units(self, common: bool) -> None:
        schedules, coarser = 0, 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            problem = large_problem(rng)
            if not problem.group_feasible().any(axis=1).all():
                continue
            extra = 0 if common else rng.integers(0, 10**9, (problem.n_tasks, 1))
            ticks = np.where(problem.feasible, problem.duration * 10**9 + extra, 0)
            problem = replace(
                problem, duration=ticks, latency=problem.latency * 10**9, byte_ticks_num=problem.byte_ticks_num * 10**9,
                release=problem.release * 10**9,
            )  # fmt: skip
            relaxation = relaxation_of(problem)
            cut_at_random(relaxation, rng, 3)
            handed = coarse(relaxation.program, in_ticks=relaxation.in_ticks)
            largest = max(int(np.abs(row.coefficients).max()) for row in handed.program.rows if len(row.columns))
            assert max(largest, *handed.program.upper) <= GRID
            for _ in range(4):
                schedule = simulate(problem, some_placement(problem, rng))
                if verify(problem, schedule).feasible:
                    schedules += 1
                    coarser += int(handed.unit.max()) > 1
                    point = point_of(relaxation, schedule) // handed.unit
                    assert unkept(handed.program, point.tolist()) == [], f"seed {seed}"
        assert schedules > 50
        assert coarser > 30

    def test_an_overfull_placement_breaks_one(self) -> None:
        problem = chain([5, 3, 7], [2, 2])
        relaxation = relaxation_of(problem)
        network = GroupGraph.of(relaxation)
        cuts = CoverCuts(relaxation, network).violated(np.zeros(relaxation.program.n_columns))
        relaxation.program.rows.extend(row for _, row in cuts)
        three_and_one = np.array([0, 0, 0, 1])
        assert len(broken(relaxation, simulate(problem, three_and_one))) == 1
        assert broken(relaxation, simulate(problem, np.array([0, 0, 1, 1]))) == []

    def test_a_chain_over_too_few_devices_breaks_one(self) -> None:
        # Six tasks of five bytes each, ten bytes a device: three devices, and the chain as a whole says so.
        problem = chain([1] * 5, [10, 10, 10], memory=5)
        relaxation = relaxation_of(problem)
        chains = ChainCuts(relaxation, CoverCuts(relaxation, GroupGraph.of(relaxation)))
        x = np.zeros(relaxation.program.n_columns)
        x[relaxation.y] = 1.0  # nothing moves
        cuts = chains.violated(x)
        assert max(excess for excess, _ in cuts) == 2
        relaxation.program.rows.extend(row for _, row in cuts)
        assert broken(relaxation, simulate(problem, np.array([0, 0, 1, 1, 2, 2]))) == []
        assert broken(relaxation, simulate(problem, np.array([0, 0, 0, 1, 1, 1]))) != []


class TestBounds:
    @pytest.mark.parametrize("seed", range(100, 140))
    def test_are_not_above_the_optimum(self, seed: int) -> None:
        problem = small_problem(np.random.default_rng(seed), times=bool(seed % 2))
        best = optimum(problem)
        if best is not None:
            for known in (None, best[0][0]):
                found = relaxed_bounds(problem, workers=1 + seed % 2, known=known)
                assert found or problem.n_tasks == 0
                assert all(bound.value <= best[0][0] for bound in found), found

    def test_of_a_chain_that_memory_cuts_is_the_optimum(self) -> None:
        # Two of the four tasks fit on a device: the second edge must be cut, or two others.
        lp, *_ = relaxed_bounds(chain([5, 3, 7], [2, 2]), time_limit=60)
        assert lp.value == 43
        assert optimum(chain([5, 3, 7], [2, 2]))[0] == (43,)  # type: ignore[index]

    def test_of_branches_that_stay_together_is_their_sum(self) -> None:
        # A fork of two, links so slow that all stays on one device.
        problem = build_problem(
            task_names="uabv", device_names="de", duration=np.full((4, 2), 10),
            edges=[(0, 1), (0, 2), (1, 3), (2, 3)], payload=[1] * 4, byte_ticks_num=np.full((2, 2), 100),
        )  # fmt: skip
        assert {bound.value for bound in relaxed_bounds(problem)} == {40}

    @pytest.mark.parametrize("metric", PLACED)
    def test_of_every_metric_where_memory_parts_a_chain(self, metric: str) -> None:
        objective = Objective(((Term(metric),),))  # type: ignore[arg-type]
        rest: dict[str, Any] = {"objective": objective, "byte_energy_num": np.full((2, 2), 2), "power_num": [1, 1]}
        if metric == "relocation":  # three would stay on the first device, where two fit: the second one goes
            rest["relocation"] = [[0, 9], [0, 2], [0, 5], [3, 0]]
        if metric == "price":  # likewise
            rest["price"] = [[1, 9], [1, 2], [1, 5], [9, 1]]
        problem = chain([5, 3, 7], [2, 2], **rest)
        expected = {
            "makespan": 43, "total_cost": 43, "max_load": 20, "communication": 3, "energy": 46,
            "memory_balance": 1_000_000, "relocation": 2, "price": 5,
        }  # fmt: skip
        assert relaxed_bounds(problem)[0].value == expected[metric] == optimum(problem)[0][0]  # type: ignore[index]

    def test_of_metrics_that_it_does_not_know_is_that_of_the_others(self) -> None:
        objective = Objective(((Term("makespan"), Term("tardiness"), Term("devices")),))
        assert relaxed_bounds(chain([5, 3, 7], [2, 2], objective=objective))[0].value == 43

    def test_of_a_weighted_sum_is_exact(self) -> None:
        objective = Objective(((Term("makespan", Fraction(1, 2)), Term("communication", Fraction(5, 3))),))
        problem = chain([5, 3, 7], [2, 2], objective=objective)
        assert relaxed_bounds(problem)[0].value == Fraction(43, 2) + 5

    @pytest.mark.parametrize("known", [43, 44, 60])
    def test_is_the_same_with_a_known_schedule(self, known: int) -> None:
        assert relaxed_bounds(chain([5, 3, 7], [2, 2]), known=known)[0].value == 43

    def test_streams_what_it_returns(self) -> None:
        streamed: list[Bound] = []
        found = relaxed_bounds(chain([5, 3, 7], [2, 2]), on_bound=streamed.append)
        assert {bound.name: bound for bound in streamed} == {bound.name: bound for bound in found}
        assert {bound.name for bound in found} == {"relaxation-lp", "relaxation-mip"}

    def test_stops_when_told(self) -> None:
        assert relaxed_bounds(chain([5, 3, 7], [2, 2]), should_stop=lambda: True) == []

    def test_nothing_to_place(self) -> None:
        empty = build_problem(task_names=[], device_names=["d"], duration=np.empty((0, 1)))
        assert relaxed_bounds(empty) == []

    def test_equal_ends_however_many_workers(self) -> None:
        problem = chain([9, 4, 8, 3, 7, 2, 6], [3, 3, 3], duration=3)
        alone, racing = (relaxed_bounds(problem, workers=workers)[0].value for workers in (1, 2))
        assert alone == racing

    def test_times_that_all_share_a_divisor(self) -> None:
        # CP-SAT counts in millions here; ticks of this size would exceed its limit.
        million = 10**6
        problem = chain([5 * million, 3 * million, 7 * million], [2, 2], duration=10 * million)
        assert {bound.value for bound in relaxed_bounds(problem, workers=2)} == {43 * million}


class TestKinds:
    def test_are_few(self) -> None:
        problem = chain([5, 3, 7], [2, 3, 4, 5, 6, 7, 8])
        kinds = kinds_of(classes_of(problem))
        assert kinds.count == MOST < kinds.classes.n_classes
        assert sorted(c for members in kinds.members for c in members) == list(range(kinds.classes.n_classes))
        assert kinds.size.sum() == problem.n_devices

    def test_a_pool_has_free_links_and_no_limit(self) -> None:
        free = chain([5, 3], [UNLIMITED, UNLIMITED], link=0)
        assert kinds_of(classes_of(free)).pool.tolist() == [True]
        assert kinds_of(classes_of(chain([5, 3], [UNLIMITED, UNLIMITED]))).pool.tolist() == [False]
        assert kinds_of(classes_of(chain([5, 3], [9, 9], link=0))).pool.tolist() == [False]
        counted = replace(free, objective=Objective(((Term("communication"),),)))
        assert kinds_of(classes_of(counted)).pool.tolist() == [False]


class TestProgram:
    def test_any_multipliers_prove_something_true(self) -> None:
        # minimise 3 x + 2 y, x + y >= 4, x - y = 1, 0 <= x, y <= 10: x = 2.5, y = 1.5 has 10.5.
        program = LinearProgram()
        x, y = program.add_columns([10, 10], integral=False).tolist()
        program.objective = {x: 3, y: 2}
        program.add_row([x, y], [1, 1], 4)
        program.add_row([x, y], [1, -1], 1, equation=True)
        rng = np.random.default_rng(0)
        assert max(ceil(program.safe_dual_bound(rng.normal(size=2) * 3)) for _ in range(200)) <= 11
        assert ceil(program.safe_dual_bound([2.5, 0.5])) == 11  # 10.5, rounded up: the objective is whole
        assert ceil(program.safe_dual_bound([-5.0, 0.0])) == 0  # an inequality has no negative multiplier

    def test_a_column_named_twice_counts_twice(self) -> None:
        program = LinearProgram()
        (x,) = program.add_columns([10], integral=True).tolist()
        program.add_row([x, x], [1, 2], 4)
        assert program.rows[0].coefficients.tolist() == [3]


class TestCuts:
    def test_blocks_are_where_branches_meet(self) -> None:
        # 0 forks into 1, 2 and 3; 1 and 2 meet in 4, which meets 3 in 5.
        problem = build_problem(
            task_names="abcdef", device_names="d", duration=np.ones((6, 1)),
            edges=[(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 5)],
        )  # fmt: skip
        found = [(b.fork, b.join, b.between) for b in blocks(problem.out_start, problem.edge_target, problem.order)]
        assert found == [(0, 4, (1, 2)), (0, 5, (1, 2, 3, 4))]

    def test_trees_are_too_large_for_a_device_and_no_larger_than_needed(self) -> None:
        rng, found = np.random.default_rng(5), 0
        for _ in range(20):
            relaxation = relaxation_of(large_problem(rng))
            network, memory = GroupGraph.of(relaxation), relaxation.kinds.classes.group_memory
            ends, outside = rng.random(len(relaxation.low)) * 0.3, rng.random(len(memory))
            limit = int(memory.sum()) // 3
            start, member, parent, pair, value = engine.grow_trees(
                network.start, network.neighbour, network.pair, ends, network.appeal, outside, memory, limit, 256,
                engine.Stop(),
            )  # fmt: skip
            for seed in np.flatnonzero(np.diff(start)).tolist():
                tree = slice(start[seed], start[seed + 1])
                groups, above, via = member[tree], parent[tree], pair[tree]
                joined = set(zip(groups[1:].tolist(), groups[above[1:]].tolist(), strict=True))
                pairs = zip(relaxation.low[via[1:]].tolist(), relaxation.high[via[1:]].tolist(), strict=True)
                assert {frozenset(each) for each in joined} == {frozenset(each) for each in pairs}
                assert len(set(groups.tolist())) == len(groups)
                leaves = _leaves(groups, above)
                assert memory[groups].sum() > limit
                assert len(groups) == 1 or all(memory[groups].sum() - memory[leaf] <= limit for leaf in leaves.tolist())
                assert value[seed] == pytest.approx(ends[via[1:]].sum() + outside[leaves].sum())
                found += len(groups)
        assert found > 100

    def test_detours_are_the_shortest(self) -> None:
        rng, found = np.random.default_rng(6), 0
        for _ in range(20):
            relaxation = relaxation_of(large_problem(rng))
            network, low, high = GroupGraph.of(relaxation), relaxation.low, relaxation.high
            moved = rng.random(len(low))
            start, around, length = engine.shortest_detours(
                network.start, network.neighbour, network.pair, low, high, moved, np.arange(len(low)), moved, 256,
                engine.Stop(),
            )  # fmt: skip
            for q, ends in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
                graph = nx.Graph()
                graph.add_nodes_from(ends)
                graph.add_weighted_edges_from((low[r], high[r], moved[r]) for r in range(len(low)) if r != q)
                way = around[start[q] : start[q + 1]].tolist()
                if way:
                    assert length[q] == pytest.approx(nx.dijkstra_path_length(graph, *ends)) == sum(moved[way])
                    found += 1
                elif nx.has_path(graph, *ends):
                    assert nx.dijkstra_path_length(graph, *ends) >= moved[q]
        assert found > 30

    def test_stop_when_told(self) -> None:
        relaxation = relaxation_of(chain([1] * 3000, [10, 10], memory=5))
        network, q = GroupGraph.of(relaxation), np.arange(len(relaxation.low))
        stopped = engine.Stop(seconds=0.0)
        none, ones = np.zeros(len(q)), np.ones(len(q))
        graph = network.start, network.neighbour, network.pair
        with pytest.raises(engine.StoppedError, match="stopped"):
            engine.shortest_detours(*graph, relaxation.low, relaxation.high, none, q, ones, 256, stopped)
        memory = relaxation.kinds.classes.group_memory
        with pytest.raises(engine.StoppedError, match="stopped"):
            engine.grow_trees(*graph, none, none, np.zeros(len(memory)), memory, 1000, 256, engine.Stop(seconds=0.0))
