"""Pipelines with modes and teams: the solvers against all placements, in plain Python."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import networkx as nx
import numpy as np
import pytest
from pipelines import teams_document

import placeopt as po
from placeopt.bounding import quick
from placeopt.bounding.borders.machines import machine_load
from placeopt.errors import UsageError
from placeopt.model.building import build_problem
from placeopt.model.pipeline import build_pipeline
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.model.stages import rules, trivial_stages
from placeopt.simulation.pipelines import periodic_schedule, run_pipeline
from placeopt.verifier import Rule, verify


def least_period(problem: Problem) -> int | None:
    """The least period over all placements."""
    best: int | None = None
    more = {"none": 0, "inference": 1, "gpipe": 2}[rules(problem).in_flight]
    pipeline, resources = rules(problem), problem.resources
    assert pipeline.machines is not None
    edges = list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
    for device in product(*(np.flatnonzero(row).tolist() for row in problem.feasible)):
        sets = {d: set(pipeline.machines[d]) for d in device}
        if any(a & b and not (a <= b or b <= a) for a in sets.values() for b in sets.values()):
            continue
        if resources is not None and any(
            sum(int(resources.amounts(r)[i, d]) for i, d in enumerate(device)) > resources.capacity[r]
            for r in resources.budgets
        ):
            continue
        if any(
            sum(int(problem.memory[i] + more * problem.output[i]) for i, d in enumerate(device) if d == each)
            > problem.capacity[each]
            for each in sets
        ):
            continue
        around = nx.DiGraph([(device[a], device[b]) for a, b in edges if device[a] != device[b]])
        cyclic = not nx.is_directed_acyclic_graph(around)
        if pipeline.contiguous and cyclic:
            continue
        if cyclic and pipeline.launch.any():  # the number of launches depends on the order of the stages
            raise pytest.skip.Exception
        tracks = {(d, k): 0 for d in sets for k in range(3)}  # computing, sending, receiving
        for i, d in enumerate(device):
            tracks[d, 0] += int(problem.duration[i, d])
        for d in sets:
            tracks[d, 0] += int(pipeline.launch[d])
        seen = set()
        for e, (a, b) in enumerate(edges):
            item = (a, device[b], e if not problem.shared[e] else -1)
            if device[a] == device[b] or item in seen:
                continue
            seen.add(item)
            link = device[a], device[b]
            way = Fraction(int(problem.byte_ticks_num[link]), int(problem.byte_ticks_den[link]))
            ticks = int(problem.latency[link]) + ceil(int(problem.payload[e]) * way)
            tracks[device[a], 1] += ticks
            tracks[device[b], 2] += ticks
        period = 0
        for machine in set().union(*sets.values()):
            computing, sent, received = (sum(tracks[d, k] for d in sets if machine in sets[d]) for k in range(3))
            if not pipeline.overlap.any():
                period = max(period, computing + sent + received)
            elif pipeline.full_duplex.any():
                period = max(period, computing, sent, received)
            else:
                period = max(period, computing, sent + received)
        best = period if best is None else min(best, period)
    return best


@pytest.mark.parametrize("seed", range(60))
def test_solvers_find_the_least_period(seed: int) -> None:
    problem = po.compile(teams_document(seed))
    if problem.pipeline is None or problem.pipeline.machines is None:
        pytest.skip("no modes drawn")
    best = least_period(problem)
    for name in ("cp-sat", "milp", "brute-force", "auto"):
        result = po.solve(problem, name, workers=1, time_limit=20)
        if best is None:
            assert result.termination is po.Termination.INFEASIBLE, name
            continue
        assert (result.termination, result.objective) == (po.Termination.OPTIMAL, best), name
        assert result.schedule is not None
        runs = run_pipeline(problem, result.schedule, 50)
        assert runs.mean <= best
    if best is not None:
        assert all(bound.value <= best for bound in quick.bounds(problem))
        found = machine_load(problem, None, lambda: False)
        assert found is not None
        assert found.value <= best


@pytest.mark.parametrize("name", ["cp-sat", "milp", "brute-force", "auto"])
def test_the_period_may_exceed_the_load_of_each_mode(name: str) -> None:
    """One device runs a in a mode and b without one: 2 + 6 ticks, and neither alone takes as many."""
    tasks = {"a": {"modes": {"m": {"time": 2}}}, "b": {"time": 6}}
    given = {"placeopt": 1, "objective": "period", "devices": {"d": {}}, "tasks": tasks}
    result = po.solve(po.compile(given), name, workers=1)
    assert (result.termination, result.objective) == (po.Termination.OPTIMAL, 8)


def test_unlike_machines_divide_work_at_prices_of_their_time_and_memory() -> None:
    """Ideally, the second device runs three quarters of all work. With room for one task, it runs half."""
    modes = {"one": {"time": {"d0": 6, "d1": 2}, "memory": 4}, "pair": {"team": ["d0", "d1"], "time": 5, "memory": 4}}
    given = teams_document(0) | {"tasks": {"a": {"modes": modes}, "b": {"modes": modes}}, "pipeline": {}, "budgets": {}}
    for memory, load in ((8, 3), (4, 6)):
        problem = po.compile(given | {"devices": {name: {"memory": memory} for name in ("d0", "d1")}})
        assert quick.best_bound(problem).value == 3
        found = machine_load(problem, None, lambda: False)
        assert found is not None
        assert found.value == load
        assert max(bound.value for bound in po.bounds(problem, time_limit=2) if bound.name == "load") >= load
        assert po.solve(problem, "brute-force").objective == (4 if memory == 8 else 6)


def shared(machines: list[tuple[int, ...]], **more: Any) -> Problem:
    """Two tasks on devices that share machines."""
    m = len(machines)
    return build_problem(
        task_names="ab", device_names=[f"d{k}" for k in range(m)], duration=[[2] * m, [3] * m],
        objective=Objective(((Term("period"),),)), pipeline=build_pipeline(2, m, machines=machines, **more),
    )  # fmt: skip


def test_outputs_kept_for_other_runs_count_on_each_member() -> None:
    tasks = {"a": {"output": 3, "modes": {"pair": {"team": {"d": 2}, "time": 1, "memory": 2}}}}
    given = teams_document(0) | {"devices": {"d": {"count": 2, "memory": 7}}, "tasks": tasks}
    assert po.compile(given | {"pipeline": {}}).n_tasks == 1
    with pytest.raises(po.SpecError, match="uses at least 8 B, and memory of d0 has 7 B"):
        po.compile(given | {"pipeline": {"in_flight": "inference"}})


def test_machines_of_a_file_need_not_be_devices() -> None:
    devices = {"a": {"count": 2, "pipeline": {"machines": [10**12]}}, "b": {"memory": 9, "pipeline": {"machines": [7]}}}
    tasks = {"x": {"time": 3, "output": 2}, "y": {"time": 4, "after": "x"}}
    pipeline = {"in_flight": "inference"}
    problem = po.compile(
        {"placeopt": 1, "objective": "period", "devices": devices, "tasks": tasks, "pipeline": pipeline}
    )
    assert rules(problem).machines == ((1,), (1,), (0,))
    assert not problem.has_modes
    schedule = periodic_schedule(problem, np.array([2, 0]))
    assert [(use.name, use.busy, use.memory) for use in po.device_uses(problem, schedule)] == [
        ("a0", 4, 0), ("a1", 0, 0), ("b", 3, 4),
    ]  # fmt: skip
    found = po.whatif(problem, time_limit=1)
    assert "one more a" in str(found)


class TestMachines:
    def test_devices_with_tasks_are_nested_or_apart(self) -> None:
        problem = shared([(0, 1), (1, 2), (0,)])
        crossing, nested = np.array([0, 1]), np.array([0, 2])
        assert rules(problem).conflicts.tolist() == [[0, 1]]
        report = verify(problem, periodic_schedule(problem, crossing, trivial_stages(problem, crossing)))
        assert Rule.STAGE in {each.rule for each in report.violations}
        found = verify(problem, periodic_schedule(problem, nested, trivial_stages(problem, nested)))
        assert (found.feasible, found.objective) == (True, (5,))

    def test_tasks_of_devices_that_share_a_machine_do_not_overlap(self) -> None:
        problem = shared([(0, 1), (0,)])
        report = verify(problem, Schedule([0, 1], [0, 0]))
        assert Rule.PERIOD in {each.rule for each in report.violations}

    def test_without_gaps_where_the_first_free_ticks_are_too_scattered(self) -> None:
        rng = np.random.default_rng(0)
        machines = [(0, 1, 2, 3), (0, 1), (2, 3), (0,), (1,), (2,), (3,)]
        for _ in range(100):
            n, m = 12, len(machines)
            duration = np.repeat(rng.integers(1, 9, (n, 1)), m, axis=1)
            edges = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.2]
            problem = build_problem(
                task_names=[f"t{i}" for i in range(n)], device_names=[f"d{k}" for k in range(m)], duration=duration,
                edges=np.array(edges, dtype=np.int64).reshape(-1, 2), payload=rng.integers(0, 4, len(edges)),
                latency=np.ones((m, m), dtype=np.int64), objective=Objective(((Term("period"),),)),
                pipeline=build_pipeline(n, m, machines=machines, overlap=bool(rng.random() < 0.5)),
            )  # fmt: skip
            device = rng.integers(0, m, n)
            schedule = periodic_schedule(problem, device, trivial_stages(problem, device))
            assert verify(problem, schedule).feasible

    @pytest.mark.parametrize(
        ("machines", "more", "message"),
        [
            ([(0,)], {}, "expected 2 collections"),
            ([(0,), ()], {}, "expected 2 collections"),
            ([(0,), (-1,)], {}, "expected 2 collections"),
            ([(0,), (0,)], {"replicas": 2}, "expected one replica"),
            ([(0,), (0,)], {"overlap": [True, False]}, "the same overlap"),
            ([(0,), (0,)], {"full_duplex": True}, "full_duplex needs overlap"),
        ],
    )
    def test_rejects(self, machines: list[tuple[int, ...]], more: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            build_pipeline(2, 2, machines=machines, **more)

    def test_parts_of_a_problem_keep_them(self) -> None:
        pipeline = rules(shared([(0, 1), (1,), (0,)])).part(np.array([1]), np.array([2, 0]))
        assert pipeline.machines == ((0,), (0, 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pipeline": {"replicas": 2}}, "replicas are not supported with modes or machines"),
        ({"pipeline": {"stages": "contiguous", "in_flight": "1f1b"}}, "1f1b is not supported with modes"),
        ({"pipeline": {"recompute": True}}, "recompute is not supported with modes"),
        ({"pipeline": {"duplex": "full"}}, "full duplex needs overlap"),
        ({"resources": {"license": 1}}, "budgets are"),
        ({"pipeline": {"machines": [0]}}, "machines are not supported with modes"),
    ],
)
def test_a_file_with_modes_states_what_pipelines_support(changes: dict[str, Any], message: str) -> None:
    given = teams_document(0) | {"tasks": {"a": {"modes": {"one": {"time": 1}}}}, **changes}
    with pytest.raises(po.SpecError, match=message):
        po.compile(given)
