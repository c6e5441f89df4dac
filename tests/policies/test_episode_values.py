"""Objectives of episodes: values agree with the model's, with and without noise; policies minimise them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placeopt as po
from placeopt.errors import UsageError
from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import Metric, Objective, Problem, Term
from placeopt.model.schedule import edge_transfers
from placeopt.policies import (
    POLICIES,
    RandomMove,
    Simulator,
    State,
    random_placement,
    run_episode,
    sample_placements,
)
from placeopt.simulation import simulate

METRICS: tuple[Metric, ...] = (
    "makespan", "total_cost", "max_load", "communication", "energy", "memory_balance", "relocation",
)  # fmt: skip


def random_problem(seed: int, size: tuple[int, int] | None = None) -> Problem:
    """A problem that uses everything that a value depends on; `size` is the number of tasks and of devices."""
    rng = np.random.default_rng(seed)
    n, m = size or (int(rng.integers(1, 9)), int(rng.integers(1, 5)))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5]
    output, shared = rng.integers(0, 50, n), rng.random(len(edges)) < 0.5
    payload = [output[i] if together else rng.integers(0, 50) for (i, _), together in zip(edges, shared, strict=True)]
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(0, 30, (n, m)),
        edges=edges,
        payload=payload,
        shared=shared,
        release=rng.integers(0, 20, n) * rng.integers(2),
        resident=rng.integers(0, 9, n),
        capacity=rng.integers(80, 200, m),
        latency=rng.integers(0, 5, (m, m)),
        byte_ticks_num=rng.integers(0, 4, (m, m)),
        byte_ticks_den=rng.integers(1, 4, (m, m)),
        power_num=rng.integers(0, 9, m),
        power_den=rng.integers(1, 4, m),
        byte_energy_num=rng.integers(0, 9, (m, m)),
        byte_energy_den=rng.integers(1, 4, (m, m)),
        relocation=rng.integers(0, 99, (n, m)),
        contention="port" if rng.random() < 0.5 else "none",
    )


def executed(problem: Problem, objective: Objective | None, noise: float = 0.0) -> Simulator:
    return Simulator(problem, noise, np.random.default_rng(5), objective)


class TestValuation:
    @settings(max_examples=60, deadline=None)
    @given(
        seed=st.integers(0, 2**32 - 1), weights=st.lists(st.fractions(0, 9, max_denominator=99), min_size=7, max_size=7)
    )
    def test_agrees_with_evaluate_without_noise(self, seed: int, weights: list[Fraction]) -> None:
        problem = random_problem(seed)
        device = random_placement(problem, np.random.default_rng(seed))
        schedule = simulate(problem, device)
        for metric in METRICS:
            objective = Objective(((Term(metric),),))
            found = executed(problem, objective).run(device).value
            assert isinstance(found, int)
            assert (found,) == evaluate(replace(problem, objective=objective), schedule)
        total = Objective((tuple(Term(metric, weight) for metric, weight in zip(METRICS, weights, strict=True)),))
        run = executed(problem, total).run(device)
        (exact,) = evaluate(replace(problem, objective=total), schedule)
        assert run.value == float(exact)
        assert executed(problem, None).run(device).value == run.makespan

    def test_executed_times_count(self) -> None:
        problem = random_problem(3, (9, 4))
        device = random_placement(problem, np.random.default_rng(1))
        transfers = np.flatnonzero(edge_transfers(problem, device) == np.arange(problem.n_edges))
        seen: dict[Metric, list[float]] = {}
        for metric in METRICS:
            simulator = executed(problem, Objective(((Term(metric),),)), noise=0.5)
            runs = [simulator.run(device) for _ in range(9)]
            seen[metric] = [run.value for run in runs]
            for run in runs:
                ticks = run.end - run.start
                if metric == "makespan":
                    assert run.value == run.makespan == run.end.max()
                if metric == "total_cost":
                    assert run.value == ticks.sum() + run.edge_ticks[transfers].sum()
                if metric == "max_load":
                    assert run.value == max(ticks[device == d].sum() for d in range(problem.n_devices))
        varying = {metric for metric, values in seen.items() if len(set(values)) > 1}
        assert varying == {"makespan", "total_cost", "max_load"}

    def test_invalid_objectives(self) -> None:
        problem = random_problem(0)
        first = random_placement(problem, np.random.default_rng(0))
        levels = Objective(((Term("makespan"),), (Term("energy"),)))
        for objective, message in (
            (levels, "objective: makespan, then energy has 2 levels; expected one weighted sum"),
            (Objective(((Term("period"),),)), "one run of a placement, which has no period"),
            ("energy", "objective is a str; expected an Objective"),
        ):
            for run in (run_episode, sample_placements):
                policy = (POLICIES["random-move"](),) if run is run_episode else ()
                with pytest.raises(UsageError, match=message):
                    run(problem, *policy, first, steps=1, objective=objective)  # type: ignore[operator]
        balance = Objective(((Term("memory_balance"),),))
        with pytest.raises(UsageError, match="needs the memory model sum"):
            executed(replace(problem, memory_model="peak"), balance)


class TestGains:
    @settings(max_examples=40, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), grouped=st.booleans())
    def test_exact_for_sums_over_tasks_and_transfers(self, seed: int, grouped: bool) -> None:
        problem = random_problem(seed)
        problem = replace(problem, shared=np.zeros(problem.n_edges, dtype=np.bool_))
        if grouped:
            rng = np.random.default_rng(seed)
            group = np.unique(rng.integers(0, problem.n_tasks, problem.n_tasks), return_inverse=True)[1]
            problem = replace(problem, group=group, capacity=problem.capacity * 9)
        terms = Term("total_cost", 0.5), Term("communication", 2), Term("energy", 0.25), Term("relocation", 0.125)
        state = first_state(problem, Objective((terms,)), seed)
        for task in range(problem.n_tasks):
            gains = [state.value - state.evaluate(task, device) for device in state.options(task).tolist()]
            np.testing.assert_allclose(state.gains(task), gains, rtol=1e-12, atol=1e-9)

    def test_makespan_by_finish_times(self) -> None:
        problem = random_problem(8, (9, 3))
        alone = first_state(problem, None, 0)
        mixed = first_state(problem, Objective(((Term("makespan", 2), Term("relocation")),)), 0)
        path = alone.critical_path()
        assert 0 < len(path) < problem.n_tasks
        for task in range(problem.n_tasks):
            finish = alone.run.end[task] - alone.finish_times(task)
            np.testing.assert_array_equal(alone.gains(task), finish)
            moving = problem.relocation[task, alone.device[task]] - problem.relocation[task, alone.options(task)]
            np.testing.assert_array_equal(mixed.gains(task), 2 * finish * (task in path) + moving)


def first_state(problem: Problem, objective: Objective | None, seed: int) -> State:
    class Watching(RandomMove):
        def move(self, state: State) -> tuple[int, int]:
            seen.append(state)
            return super().move(state)

    seen: list[State] = []
    device = random_placement(problem, np.random.default_rng(seed))
    run_episode(problem, Watching(), device, steps=1, objective=objective)
    return seen[0]


class TestEpisodes:
    @pytest.mark.parametrize("name", sorted(POLICIES))
    @pytest.mark.parametrize(
        "objective",
        [
            Objective(((Term("energy"),),)),
            Objective(((Term("makespan"), Term("total_cost", 0.25), Term("communication", 0.1)),)),
        ],
        ids=str,
    )
    def test_records_hold_values(self, name: str, objective: Objective) -> None:
        problem = random_problem(7, (10, 4))
        stated = replace(problem, objective=objective)
        first = random_placement(problem, np.random.default_rng(2))
        found = run_episode(problem, POLICIES[name](), first, steps=20, seed=3, objective=objective)
        assert found.current.dtype == (np.int64 if objective.single else np.float64)
        for record, device in ((found.current[0], first), (found.best[-1], found.device)):
            assert float(record) == float(evaluate(stated, simulate(problem, device))[0])
        values = [found.current[0], *(made.value for made in found.history)]
        np.testing.assert_array_equal(found.best, np.minimum.accumulate(values))
        np.testing.assert_array_equal(found.best, found.expected)
        with_noise = run_episode(problem, POLICIES[name](), first, steps=20, seed=3, noise=0.5, objective=objective)
        expected = float(evaluate(stated, simulate(problem, with_noise.device))[0])
        assert float(with_noise.expected[-1]) == expected

    @pytest.mark.parametrize("metric", METRICS)
    def test_policies_minimise_the_objective(self, metric: Metric) -> None:
        problem = random_problem(23, (12, 4))
        first = random_placement(problem, np.random.default_rng(4))
        objective = Objective(((Term(metric),),))
        for name in ("random-task-greedy", "annealing"):
            found = run_episode(problem, POLICIES[name](), first, steps=60, seed=1, objective=objective)
            sampled = sample_placements(problem, first, steps=60, seed=1, objective=objective)
            assert found.best[-1] < found.best[0]
            if name == "random-task-greedy":
                assert found.best[-1] <= sampled.best[-1]
                assert (np.diff(found.current) <= 0).all()

    def test_relocation_divided_by_the_frequency(self) -> None:
        """GiPH, figure 11, left: at a higher frequency of runs, a search moves tasks at a higher cost."""
        problem = po.compile(
            {
                "placeopt": 1,
                "tasks": {
                    "a": {"time": {"old": "10 ms", "new": "6 ms"}, "migration": {"bytes": "20 MB", "startup": "2 ms"}}
                },
                "devices": {"old": {}, "new": {}},
                "links": {"default": {"bandwidth": "1 GB/s"}},
                "current": {"placement": {"a": "old"}},
            }
        )
        moved = []
        for frequency in (1, 10):
            objective = Objective(((Term("makespan"), Term("relocation", Fraction(1, frequency))),))
            found = run_episode(problem, POLICIES["random-task-greedy"](), [0], steps=3, objective=objective)
            moved.append(problem.device_names[found.device[0]])
        assert moved == ["old", "new"]  # 10 < 6 + 22, but 10 > 6 + 22 / 10
