"""dpl and stage-search: valid schedules, states of the search that agree with the model, and repeatable runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import pytest
from pipelines import random_pipeline, unlike_pipeline
from placeopt_solvers.pipelines._search.division import INFINITE, divide, ends, lines
from placeopt_solvers.pipelines._search.levels import coarser, graph_of
from placeopt_solvers.pipelines._search.orders import division_points, orders
from placeopt_solvers.pipelines._search.placements import View, divided_point, new_state, staged, state_point, view_of
from placeopt_solvers.pipelines._search.walks import Search, grouped
from placeopt_solvers.pipelines._shared.assessment import permitted
from placeopt_solvers.pipelines._shared.enumeration import best_pipeline

import placeopt as po
from placeopt import engine
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import with_changes
from placeopt.model.memory import pipeline_memory
from placeopt.model.period import loads
from placeopt.model.pipeline import UNBOUNDED
from placeopt.model.schedule import Stages
from placeopt.model.stages import backward, rules
from placeopt.protocol import Termination

CASES = [*(random_pipeline(seed) for seed in range(60)), *(unlike_pipeline(seed) for seed in range(90))]
MOVES = 1_500
PERIOD_ONLY = po.Objective(((po.Term("period"),),))


def least_period(problem: po.Problem) -> int | None:
    return best_pipeline(problem, lambda: None, lambda *_: None)


def never(*_: object) -> bool:
    return False


def arrays(state: engine.StageSearch) -> list[list[int]]:
    """All that a move changes, apart from random numbers and what the last assessment says."""
    return [
        each.ravel().tolist() for each in (state.place, state.home, state.leader, state.again, state.sums, state.load)
    ]


def fan(seed: int) -> po.Problem:
    """Outputs with several consumers, which are sent once or several times over unlike links."""
    rng = np.random.default_rng(seed)
    n, m = 12, 5
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.3]
    output = rng.integers(1, 9, n)
    kinds = rng.integers(0, 2, m)
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(1, 9, (n, 1)) * (1 + kinds),
        edges=edges,
        payload=[int(output[a]) for a, _ in edges],
        shared=[True] * len(edges),
        latency=[[0 if a == b else int(kinds[a] + 2 * kinds[b]) for b in range(m)] for a in range(m)],
        byte_ticks_num=[[int(1 + kinds[a] + kinds[b]) for b in range(m)] for a in range(m)],
        output=output,
        objective=PERIOD_ONLY,
        pipeline={
            "segments": [1, 2, None][seed % 3],
            "multicast": seed % 2 == 0,
            "full_duplex": (rng.random(m) < 0.5).tolist(),
            "overlap": (rng.random(m) < 0.5).tolist(),
        },
    )


def states() -> Iterator[tuple[int, View, engine.StageSearch]]:
    """States of searches, each from the first division of a case."""
    for case, problem in enumerate([*CASES, *(fan(seed) for seed in range(24))]):
        view = view_of(problem)
        start = next(division_points(view, never, strict=False), None)
        if start is not None:
            yield case, view, new_state(view, start, case, 4, engine.Stop())


def current(view: View, state: engine.StageSearch) -> tuple[np.ndarray, Stages] | None:
    """The placement of a state, memory aside."""
    home = state.home[state.place]
    used = np.bincount(home, minlength=len(state.leader)) > 0
    return staged(view, home, state.place, len(state.home), state.leader, state.again * used)


def check_state(view: View, state: engine.StageSearch) -> None:
    """Sums are those of a new state, and period and memory those of the model."""
    parts = state.place, state.home, state.leader, state.again
    fresh = engine.StageSearch(view.units, *parts, 0, 4, 1, engine.Stop())
    assert arrays(fresh) == arrays(state)
    state.assess()
    assert (state.period, state.over) == (fresh.period, fresh.over)
    found = current(view, state)
    assert found is not None
    problem, (device, stages) = view.problem, found
    assert permitted(problem, device, stages)
    model, moving = loads(problem, device, stages), ~rules(problem).free_transfers
    busy, sent, received = state.load.T
    assert state.period == model.periods.max(initial=0)
    assert busy.tolist() == model.computing.tolist()
    assert (sent * moving).tolist() == model.sent.tolist()
    assert (received * moving).tolist() == model.received.tolist()
    over = np.maximum(pipeline_memory(problem, device, stages) - problem.capacity, 0)
    assert state.over == over[stages.leader == np.arange(len(over))].sum()


@cache
def least_of(case: int) -> Any:
    """The least period of a case by brute force; None if it is infeasible."""
    return least_period(CASES[case])


class TestAnswers:
    @pytest.mark.parametrize(("solver", "equal"), [("dpl", 0.9), ("stage-search", 0.95)])
    def test_schedules_are_valid_and_seldom_worse_than_brute_force(self, solver: str, equal: float) -> None:
        settings: dict[str, Any] = {"moves": MOVES} if solver == "stage-search" else {}
        same = solved = 0
        for seed, problem in enumerate(CASES):
            least = least_of(seed)
            result = po.solve(problem, solver, workers=1, seed=seed, **settings)
            if least is None:
                assert result.schedule is None
                assert result.termination in (Termination.FAILED, Termination.INFEASIBLE)
                assert result.message
                continue
            solved += 1
            if result.values is not None:
                assert result.feasible
                assert result.values[0] >= least
                assert result.bound is None or result.bound <= least
                same += result.values[0] == least
        assert same >= equal * solved

    def test_all_rules_occur(self) -> None:
        found: set[str] = set()
        searched = {"infeasible", "binding memory"}  # by brute force, until both are found
        for case, problem in enumerate(CASES):
            pipeline = rules(problem)
            if not searched <= found:
                least = least_of(case)
                free = with_changes(problem, capacity=[10**9] * problem.n_devices)
                if least is None:
                    found.add("infeasible")
                    continue
                if least_period(free) != least:
                    found.add("binding memory")
            found |= {
                name
                for name, holds in {
                    "replicas": pipeline.replicas > 1,
                    "recompute": pipeline.recompute,
                    "free transfers": bool(pipeline.free_transfers.any()),
                    "multicast": pipeline.multicast,
                    "separation": len(problem.separation) > 0,
                    "colocation": problem.n_groups < problem.n_tasks,
                    "backward": bool(backward(problem).any()),
                    "segments": bool(((pipeline.segments > 1) & (pipeline.segments < UNBOUNDED)).any()),
                    "launch": bool(pipeline.launch.any()),
                    "contiguous": pipeline.contiguous,
                    "free": not pipeline.numbered,
                    "mixed": len(set(pipeline.segments.tolist())) > 1,
                    "1f1b": pipeline.in_flight == "1f1b",
                }.items()
                if holds
            }
        assert len(found) == 15

    def test_the_search_is_never_worse_than_the_division(self) -> None:
        for problem in CASES[::5]:
            division = po.solve(problem, "dpl", workers=1)
            search = po.solve(problem, "stage-search", workers=1, moves=MOVES)
            if division.values is not None:
                assert search.values is not None
                assert search.values <= division.values

    @pytest.mark.parametrize("solver", ["dpl", "stage-search"])
    def test_nothing_fits(self, solver: str) -> None:
        problem = with_changes(random_pipeline(3), capacity=[0] * random_pipeline(3).n_devices, resident=None)
        result = po.solve(with_changes(problem, resident=[1] * problem.n_tasks), solver, workers=1)
        assert result.schedule is None
        assert result.termination in (Termination.FAILED, Termination.INFEASIBLE)
        assert result.message

    @pytest.mark.parametrize("solver", ["dpl", "stage-search"])
    def test_time_limits(self, solver: str) -> None:
        for problem in CASES[::10]:
            result = po.solve(problem, solver, workers=1, time_limit=0.01)
            assert result.schedule is None or result.feasible

    @pytest.mark.parametrize("solver", ["dpl", "stage-search"])
    def test_no_tasks(self, solver: str) -> None:
        problem = po.build_problem(
            task_names=[], device_names=["d"], duration=np.zeros((0, 1)),
            objective=PERIOD_ONLY, pipeline={"segments": 1},
        )  # fmt: skip
        result = po.solve(problem, solver, workers=1)
        assert result.values == (0,)
        assert result.feasible

    def test_same_seed_same_answer(self) -> None:
        for problem in CASES[::12]:
            one, other = (po.solve(problem, "stage-search", workers=1, seed=7, moves=MOVES) for _ in range(2))
            assert (one.schedule is None) == (other.schedule is None)
            if one.schedule is not None and other.schedule is not None:
                assert one.schedule.device.tolist() == other.schedule.device.tolist()
                assert one.schedule.start.tolist() == other.schedule.start.tolist()
                assert one.stats == other.stats


class TestStates:
    def test_sums_after_moves_are_those_of_a_new_state(self) -> None:
        moved = rearranged = 0
        for _, view, state in states():
            check_state(view, state)
            for step in range(120):
                if step % 4 == 0:
                    rearranged += state.rearrange()
                else:
                    valid = state.propose()
                    if not valid:
                        state.undo()
                    moved += valid
                if step % 5 == 0:
                    check_state(view, state)
            check_state(view, state)
        assert moved > 2_000
        assert rearranged > 100

    def test_restore_undoes_rearrange(self) -> None:
        kinds = set()
        for _, _, state in states():
            for step in range(60):
                before = arrays(state)
                if state.rearrange():
                    after = arrays(state)
                    kinds.add(tuple(part for part in (1, 2, 3) if before[part] != after[part]))  # homes, leaders, again
                    if step % 3:
                        state.restore()
                        assert arrays(state) == before
                else:
                    assert arrays(state) == before
        assert kinds >= {(1,), (2,), (3,)}

    def test_moves_are_undone_backwards(self) -> None:
        for _, _, state in states():
            for _ in range(60):
                before = arrays(state)
                state.propose()
                state.undo()
                assert arrays(state) == before

    def test_annealing_keeps_the_best_state(self) -> None:
        for case, view, state in states():
            state.anneal(0, 400, 400, 0.5, 1e-3, engine.Stop())
            check_state(view, state)
            if not state.known:
                continue
            found = state_point(view, state)
            assert found is not None, case
            assert found.period == state.best_period
            assert state.over > 0 or state.period >= state.best_period

    def test_places_respect_rules(self) -> None:
        for _, _, state in states():
            for _ in range(30):
                if not state.propose():
                    state.undo()
            assert all(state.valid(unit) for unit in range(len(state.place)))

    def test_annealing_stops(self) -> None:
        """The best placement stays valid; the search before it was stopped had found one."""
        view = view_of(layered(400, segments=1))
        start = list(division_points(view, never))[-1]
        state = new_state(view, start, 0, 4, engine.Stop())
        state.anneal(0, 400, 10**9, 0.5, 1e-3, engine.Stop())
        best = state_point(view, state)
        with pytest.raises(engine.StoppedError, match="stopped"):
            state.anneal(400, 10**9, 10**9, 0.5, 1e-3, engine.Stop(seconds=0.01))
        found = state_point(view, state)
        assert best is not None
        assert found is not None
        assert found.period == state.best_period <= best.period


class TestDivisions:
    def test_orders_are_topological(self) -> None:
        for problem in CASES:
            units = view_of(problem).units
            pairs = np.repeat(np.arange(len(units.fixed)), np.diff(units.after_start)), units.after
            for _, order in orders(units):
                rank = np.empty(len(order), dtype=np.int64)
                rank[order] = np.arange(len(order))
                assert sorted(order.tolist()) == list(range(len(order)))
                assert (rank[pairs[0]] < rank[pairs[1]]).all()

    def test_the_period_of_a_division_is_that_of_its_placement(self) -> None:
        """Where links are alike and each output has one consumer or is sent once."""
        compared = 0
        for problem in CASES:
            view = view_of(problem)
            units = view.units
            single = (np.diff(units.consumer_start) <= 1).all() or units.multicast
            links = np.stack((problem.latency, problem.byte_ticks_num))
            alike = len(np.unique(links[:, ~np.eye(problem.n_devices, dtype=np.bool_)], axis=1).T) <= 1
            if not (single and alike and units.ordered):
                continue
            for _, order in orders(units):
                for line, devices in lines(problem):
                    found = divide(units, order, line, devices, INFINITE, 100)
                    point = None if found is None else divided_point(view, found)
                    if found is not None and point is not None:
                        compared += 1
                        assert point.period <= found.period
        assert compared > 100

    def test_few_positions(self) -> None:
        """Both ends, and at most about as many as allowed."""
        problem = chain(200)
        units = view_of(problem).units
        order = next(orders(units))[1]
        found = ends(units, order, 20)
        assert found[0] == 0
        assert found[-1] == 200
        assert len(found) <= 22
        assert (np.diff(found) > 0).all()

    @pytest.mark.parametrize("change", [lambda problem: problem, lambda problem: with_speeds(problem)])
    def test_a_chain_is_divided_at_best(self, change: Callable[[po.Problem], po.Problem]) -> None:
        problem = change(chain(40))
        best = po.solve(problem, "chains", workers=1)
        found = po.solve(problem, "dpl", workers=1)
        assert best.termination is Termination.OPTIMAL
        assert found.values == best.values


def layered(n: int, *, segments: int | None, seed: int = 0) -> po.Problem:
    """A random layered graph on four devices."""
    plain = layered_problem(n, 4, ccr=0.3, device_types=1, seed=seed)
    return with_changes(plain, objective=PERIOD_ONLY, pipeline={"segments": segments})


class TestLevels:
    @pytest.mark.parametrize("segments", [1, None])
    @pytest.mark.parametrize("seed", range(6))
    def test_merged_units_keep_places_and_order(self, segments: int | None, seed: int) -> None:
        problem = layered(300, segments=segments, seed=seed)
        view = view_of(problem)
        start = list(division_points(view, never))[-1]
        heaviest = view.units.computing[:, 0].sum() / 20
        found = coarser(view, start.place, 40, heaviest)
        assert found is not None
        coarse, label = found
        k = len(coarse.units.fixed)
        assert k < 200
        assert (coarse.unit == label[view.unit]).all()
        assert (grouped(label, start.place)[label] == start.place).all()
        sizes = np.bincount(label)
        assert (coarse.units.computing[sizes > 1, 0] <= heaviest).all()
        assert coarse.units.computing[:, 0].sum() == view.units.computing[:, 0].sum()
        if segments == 1:
            pairs = zip(np.repeat(np.arange(k), np.diff(coarse.units.after_start)), coarse.units.after, strict=True)
            assert nx.is_directed_acyclic_graph(nx.DiGraph(list(pairs)))

    @pytest.mark.parametrize("seed", range(30))
    def test_any_order_stays_acyclic(self, seed: int) -> None:
        """All units in one place, so that nothing but the order limits what is merged."""
        problem = layered(60, segments=1, seed=seed)
        view = view_of(problem)
        found = coarser(view, np.zeros(len(view.units.fixed), dtype=np.int64), 6, 1e18)
        assert found is not None
        graph = graph_of(found[0].units, np.zeros(len(found[0].units.fixed), dtype=np.int64))
        assert nx.is_directed_acyclic_graph(nx.DiGraph(list(zip(graph.first, graph.second, strict=True))))

    def test_separated_units_stay_alone(self) -> None:
        problem = with_changes(layered(60, segments=None), separation=[(0, 1), (2, 9)])
        view = view_of(problem)
        found = coarser(view, np.zeros(60, dtype=np.int64), 4, 1e18)
        assert found is not None
        sizes = np.bincount(found[1])
        assert (sizes[found[1][[0, 1, 2, 9]]] == 1).all()

    @pytest.mark.parametrize("segments", [1, None])
    def test_a_search_over_levels(self, segments: int | None) -> None:
        """Each placement is better than those before, agrees with the model, and is one of the finest units."""
        problem = layered(400, segments=segments)
        view = view_of(problem)
        start = list(division_points(view, never))[-1]
        search, last = Search(view, start, 0), start
        for point in search.run(0.05, never):
            assert point.better(last)
            assert len(point.place) == len(view.units.fixed)
            assert permitted(problem, point.device, point.stages)
            assert point.period == loads(problem, point.device, point.stages).periods.max()
            last = point
        assert last.period < start.period


def tight() -> po.Problem:
    """Memory that no division of an order suits: devices with one heavy task each, which are next to each other."""
    return po.build_problem(
        task_names=[f"t{i}" for i in range(6)],
        device_names=["x", "y"],
        duration=[[3, 3]] * 6,
        edges=[(i, i + 1) for i in range(5)],
        payload=[1] * 5,
        resident=[5, 5, 5, 1, 1, 1],
        capacity=[11, 7],
        byte_ticks_num=[[1, 1]] * 2,
        objective=PERIOD_ONLY,
        pipeline={"segments": None},
    )


def test_a_start_with_too_little_memory() -> None:
    assert list(division_points(view_of(tight()), never)) == []
    assert po.solve(tight(), "dpl", workers=1).termination is Termination.FAILED
    result = po.solve(tight(), "stage-search", workers=1, moves=MOVES)
    assert result.feasible
    assert result.values == (least_period(tight()),)


def chain(n: int) -> po.Problem:
    rng = np.random.default_rng(n)
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(4)],
        duration=np.tile(rng.integers(5, 20, n)[:, None], 4),
        edges=[(i, i + 1) for i in range(n - 1)],
        payload=rng.integers(1, 9, n - 1),
        byte_ticks_num=np.ones((4, 4)),
        objective=PERIOD_ONLY,
        pipeline={"segments": 1},
    )


def with_speeds(problem: po.Problem) -> po.Problem:
    return with_changes(problem, duration=problem.duration * np.array([1, 1, 2, 3]))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("make", [random_pipeline, unlike_pipeline])
def test_it_starts_from_a_given_schedule(make: Callable[[int], po.Problem], seed: int) -> None:
    problem = make(seed)
    best = po.solve(problem, "brute-force", workers=1)
    if best.schedule is not None:
        result = po.solve(problem, "stage-search", workers=1, initial=best.schedule, moves=100)
        assert (result.objective, result.feasible) == (best.objective, True)
