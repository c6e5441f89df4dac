"""Forks, joins and fork-joins in cp-sat: the oracle's optimum in each form of the model; problems of other forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from placeopt_solvers._runs.validity import valid
from placeopt_solvers.exact._cp_sat.run import CpSatSettings
from placeopt_solvers.exact._forks.model import Model
from placeopt_solvers.exact._forks.shape import fork_of, placed, placements
from placeopt_solvers.exact.cp_sat import CpSat

import placeopt as po
from placeopt.engine import StoppedError
from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.model.schedule import makespan
from placeopt.protocol import Answer, Options, Termination

KINDS = ("fork", "join", "fork-join", "independent")


def edges_of(kind: str, n: int) -> list[tuple[int, int]]:
    inner = range(kind in ("fork", "fork-join"), n - (kind in ("join", "fork-join")))
    fork = [(0, i) for i in inner] if inner.start else []
    join = [(i, n - 1) for i in inner] if inner.stop < n else []
    return fork + join


def small_fork(rng: np.random.Generator, kind: str) -> Problem:
    """Up to five tasks on up to three devices, alike or not, with and without release times and deadlines."""
    n, m = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    edges = edges_of(kind, n)
    if kind == "fork-join":
        edges += [(0, n - 1)] * int(rng.integers(0, 2))
    alike, kinds, least = rng.random() < 0.5, rng.integers(0, 2, m), int(rng.integers(0, 2))
    duration = rng.integers(least, 8, (n, 1)) if alike else rng.integers(least, 8, (n, 2))[:, kinds]
    longest = int(rng.choice([1, 5, 20]))  # transfers shorter than tasks, as long, and longer
    linked = rng.integers(0, 3, (2, 2))[np.ix_(kinds, kinds)]
    times = rng.random() < 0.5
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.broadcast_to(duration, (n, m)),
        edges=edges,
        payload=rng.integers(0, longest + 1, len(edges)),
        byte_ticks_num=np.ones((m, m), dtype=np.int64) if alike else linked,
        latency=None if rng.random() < 0.7 else np.where(np.eye(m), 0, rng.integers(0, 4)),
        feasible=None if rng.random() < 0.7 else rng.random((n, m)) < 0.8,
        release=np.where(rng.random(n) < 0.4, rng.integers(0, 9, n), 0) if times else None,
        deadline=np.where(rng.random(n) < 0.3, rng.integers(6, 30, n), UNLIMITED) if times else None,
    )


def answered(problem: Problem, **settings: Any) -> Answer:
    # Without a first schedule every makespan is decided, and infeasibility proved, by the model of forks.
    return CpSat().solve(problem, Options(time_limit=60), CpSatSettings(hint=False, **settings))


@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_that_of_the_oracle(kind: str) -> None:
    decided = infeasible = 0
    for seed in range(60):
        problem = small_fork(np.random.default_rng([seed, KINDS.index(kind)]), kind)
        assert fork_of(problem) is not None
        best, answer = optimum(problem), answered(problem)
        decided += answer.stats.get("decisions", 0)
        if best is None:
            assert answer.termination is Termination.INFEASIBLE, seed
            infeasible += 1
            continue
        assert answer.termination is Termination.OPTIMAL, seed
        assert answer.schedule is not None
        assert valid(problem, answer.schedule)
        assert (evaluate(problem, answer.schedule), answer.bound) == (best[0], best[0][0]), seed
    assert decided > 39
    assert infeasible > 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_makespan_is_decided_as_by_the_oracle(kind: str) -> None:
    for seed in range(20):
        problem = small_fork(np.random.default_rng([seed, 7, KINDS.index(kind)]), kind)
        best = optimum(problem)
        if best is None:
            continue
        fork, value = fork_of(problem), int(best[0][0])
        assert fork is not None
        cases = [case for ends in placements(fork) if (case := placed(fork, *ends)) is not None]
        assert min(case.least for case in cases) <= value
        for span in range(min(case.least for case in cases), value + 3):
            found = False
            for case in cases:
                if span < case.least:
                    continue
                question = Model(case, span, lambda: False)
                outcome = question.solve(seconds=60, work=None, seed=0, workers=1, should_stop=lambda: False)
                assert outcome.status in ("OPTIMAL", "INFEASIBLE")
                if outcome.solved:
                    schedule = question.schedule(outcome.solver.value)
                    assert valid(problem, schedule)
                    assert makespan(problem, schedule) <= span
                    found = True
            assert found == (span >= value), (seed, span)


def large_fork(kind: str, n: int, m: int, ccr: int) -> Problem:
    rng = np.random.default_rng([n, m, ccr])
    edges = edges_of(kind, n)
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.repeat(rng.integers(1, 11, (n, 1)), m, axis=1),
        edges=edges,
        payload=rng.integers(1, 11, len(edges)) * ccr,
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
    )


@pytest.mark.parametrize("kind", ["fork", "join", "fork-join"])
def test_graphs_that_the_general_model_leaves_open_are_proved(kind: str) -> None:
    for ccr in (1, 2):
        problem = large_fork(kind, 21, 4, ccr)
        result = po.solve(problem, "cp-sat", time_limit=60)
        assert result.termination is Termination.OPTIMAL
        assert result.objective == result.bound


def test_scaled_times_and_weights_keep_the_optimum() -> None:
    problem = large_fork("fork-join", 9, 3, 1)
    plain = answered(problem)
    # Times with the common divisor 6 are solved in ticks of 6, with the sixfold weight.
    long = replace(problem, duration=problem.duration * 6, payload=problem.payload * 6)
    scaled = answered(replace(long, objective=Objective(((Term("makespan", 0.5),),))))
    assert plain.bound is not None
    assert scaled.bound == 3 * plain.bound
    for answer in (plain, scaled):
        assert answer.termination is Termination.OPTIMAL
        assert answer.stats["decisions"] > 0
        assert "variables" not in answer.stats


def test_one_worker_gives_the_same_answer_twice() -> None:
    problem = large_fork("fork-join", 16, 4, 2)
    first, second = (po.solve(problem, "auto", time_limit=60, workers=1) for _ in range(2))
    assert first.schedule is not None
    assert second.schedule is not None
    assert first.termination is Termination.OPTIMAL
    assert first.schedule.start.tolist() == second.schedule.start.tolist()
    assert first.schedule.device.tolist() == second.schedule.device.tolist()


def test_the_ends_are_tried_once_for_each_class() -> None:
    fork = fork_of(large_fork("fork-join", 8, 4, 1))
    assert fork is not None
    assert list(placements(fork)) == [(0, 0), (0, 1)]
    for ends, machines in (((0, 0), [1, 3]), ((0, 1), [1, 1, 2])):
        case = placed(fork, *ends)
        assert case is not None
        assert [len(pool.devices) for pool in case.pools] == machines


def test_identical_windows_make_one_pool_of_all_devices() -> None:
    free = replace(large_fork("fork-join", 8, 4, 1), byte_ticks_num=np.zeros((4, 4), dtype=np.int64))
    fork = fork_of(free)
    assert fork is not None
    case = placed(fork, 0, 1)
    assert case is not None
    assert [pool.devices for pool in case.pools] == [[0, 1, 2, 3]]


def fork(**changes: Any) -> Problem:
    values: dict[str, Any] = {"duration": [[2, 2]] * 4, "edges": [(0, 1), (0, 2), (1, 3), (2, 3)]} | changes
    return build_problem(task_names="abcd", device_names="xy", **values)


@pytest.mark.parametrize(
    "changes",
    [
        {"edges": [(0, 1), (1, 2), (2, 3)]},
        {"edges": [(0, 1), (0, 2), (1, 2), (2, 3)]},
        {"edges": [(0, 1), (0, 2)]},
        {"edges": [(0, 2), (1, 2), (1, 3)]},
        {"group": [0, 1, 1, 2]},
        {"separation": [(1, 2)]},
        {"contention": "port"},
        {"resident": [1] * 4, "capacity": [3, 9]},
        {"objective": Objective(((Term("makespan"),), (Term("total_cost"),)))},
        {"objective": Objective(((Term("max_load"),),))},
        {"objective": Objective(((Term("makespan", 0),),))},
    ],
    ids=str,
)
def test_other_problems_are_left_to_the_general_model(changes: dict[str, Any]) -> None:
    assert fork_of(fork()) is not None
    assert fork_of(fork(**changes)) is None


def test_a_chain_of_two_has_no_inner_task() -> None:
    chain = build_problem(task_names="ab", device_names="x", duration=[[1], [1]], edges=[(0, 1)])
    assert fork_of(chain) is None


def test_a_limit_leaves_the_rest_to_the_general_model() -> None:
    problem = large_fork("fork-join", 30, 4, 2)
    answer = CpSat().solve(problem, Options(), CpSatSettings(work=1e-5))
    assert answer.stats["decisions"] > 0
    assert answer.stats["variables"] > 0  # of the general model
    assert answer.termination is Termination.COMPLETED
    assert answer.schedule is not None
    assert valid(problem, answer.schedule)


def test_building_the_model_can_be_stopped() -> None:
    fork = fork_of(large_fork("fork", 9, 2, 1))
    assert fork is not None
    case = placed(fork, 0, None)
    assert case is not None
    with pytest.raises(StoppedError, match=r"^$"):
        Model(case, 50, lambda: True)


def test_the_setting_turns_it_off() -> None:
    problem = large_fork("fork", 9, 2, 1)
    general, special = answered(problem, forks=False), answered(problem)
    assert "decisions" not in general.stats
    assert special.stats["decisions"] > 0
    assert (general.termination, general.bound) == (special.termination, special.bound)
