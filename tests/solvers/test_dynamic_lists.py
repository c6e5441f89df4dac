"""Heuristics that look at all ready tasks or groups of them: gdl, bil, hbmct, wba."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from placeopt_solvers._constructive.groups import grouped
from placeopt_solvers._constructive.priorities import longest_paths_after
from placeopt_solvers.list_scheduling.hbmct import independent_batches
from placeopt_solvers.ready_lists.gdl import adjusted_medians, heaviest_edges
from placeopt_solvers.ready_lists.wba import Wba, WbaSettings
from test_list_scheduling import HEFT_10, problem, scheduled

import placeopt as po
from placeopt import engine
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.model.schedule import makespan
from placeopt.protocol import Options, Termination


def random_problem(seed: int, n: int = 9, m: int = 3) -> Problem:
    rng = np.random.default_rng(seed)
    edges = [(a, b) for b in range(n) for a in range(b) if rng.random() < 0.3]
    return problem(
        rng.integers(0, 9, (n, m)).tolist(),
        edges,
        payload=rng.integers(0, 9, len(edges)),
        latency=rng.integers(0, 5, (m, m)),
        feasible=(rng.random((n, m)) < 0.8) | np.eye(n, m, dtype=np.bool_) | (np.arange(n) >= m)[:, None],
    )


def chain(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    return problem(
        rng.integers(1, 9, (5, 3)).tolist(),
        [(i, i + 1) for i in range(4)],
        payload=rng.integers(0, 9, 4),
        latency=rng.integers(0, 6, (3, 3)),
    )


@pytest.mark.parametrize("seed", range(20))
def test_bil_is_optimal_on_a_chain(seed: int) -> None:
    """Oh and Ha 1996: the schedule of a linear graph is optimal; here with links that are all unlike."""
    case = chain(seed)
    best = min(
        sum(int(case.duration[i, d]) for i, d in enumerate(device))
        + sum(int(case.transfer(case.payload[i], device[i], device[i + 1])) for i in range(4))
        for device in product(range(3), repeat=5)
    )
    assert po.solve(case, "bil").objective == best


@pytest.mark.parametrize("seed", range(10))
def test_imaginary_levels_are_those_of_the_definition(seed: int) -> None:
    case = random_problem(seed)
    level = [[0] * 3 for _ in range(case.n_tasks)]
    for i in case.order[::-1].tolist():
        for p in range(3):
            behind = [
                min(
                    level[int(case.edge_target[e])][q] + int(case.transfer(case.payload[e], p, q))
                    for q in range(3)
                    if case.feasible[case.edge_target[e], q]
                )
                for e in np.flatnonzero(case.edge_source == i)
            ]
            level[i][p] = int(case.duration[i, p]) + max(behind, default=0)
    timeline = engine.Timeline(native(case), grouped(case))
    assert engine.imaginary_levels(timeline, engine.Stop()).tolist() == level


def test_bil_takes_the_task_that_would_end_last_if_others_had_the_better_devices() -> None:
    # Two ready, two devices: the second smallest BIM of t0 is 4, of t1 9. t1 goes first, to d0 (BIM* 2 < 9);
    # then t0 has BIM 2 + 3 on d0, 4 on d1.
    assert scheduled("bil", problem([[3, 4], [2, 9]])) == ([1, 0], [0, 0])
    # Alone it counts with its smallest BIM: of t0 and t1 on three devices the second smallest, 5 against 6.
    assert scheduled("bil", problem([[3, 5, 9], [3, 6, 6]])) == ([1, 0], [0, 0])


def test_bil_looks_at_durations_where_more_tasks_are_ready_than_devices() -> None:
    # Three ready on one device and a slower one: k / P - 1 = 1/2 of a duration is added. t2 (BIM 9) goes first to d0;
    # then t1, k = 2: BIM 5 + 4 on d0 against 8: d1; then t0.
    assert scheduled("bil", problem([[3, 6], [4, 8], [5, 9]])) == ([0, 1, 0], [5, 0, 0])


@pytest.mark.parametrize("seed", range(10))
def test_fixed_levels_are_those_of_the_definition(seed: int) -> None:
    """Sih and Lee 1993: SL + Delta + DC, by their definitions over all pairs of processors."""
    case = random_problem(seed)
    groups = grouped(case)
    median, heir = adjusted_medians(case), heaviest_edges(case)
    ways = [sorted(case.duration[i, case.feasible[i]].tolist()) for i in range(case.n_tasks)]
    assert median.tolist() == [way[(len(way) - 1) // 2] for way in ways]
    static = median + longest_paths_after(case, median, np.zeros(case.n_edges, dtype=np.int64))
    worth = engine.fixed_levels(engine.Timeline(native(case), groups), median, static, heir, engine.Stop())
    level = [0] * case.n_tasks
    for i in case.order[::-1].tolist():
        out = np.flatnonzero(case.edge_source == i).tolist()
        level[i] = int(median[i]) + max((level[int(case.edge_target[e])] for e in out), default=0)
        for p in np.flatnonzero(case.feasible[i]).tolist():
            expected = level[i] + int(median[i]) - int(case.duration[i, p])
            if out:
                e = max(out, key=lambda k: (int(case.payload[k]), -k))
                j = int(case.edge_target[e])
                least = min(
                    int(case.duration[j, q]) + int(case.transfer(case.payload[e], p, q))
                    for q in range(3)
                    if case.feasible[j, q]
                )
                expected += int(median[j]) - least
            assert worth[i, p] == expected


def test_gdl_serves_first_who_would_lose_most() -> None:
    # Medians 2 and 2, DL2 (2, 1) of t0 with C = 1, (2, -6) of t1 with C = 8: t1 gets d0, and t0 goes to d1 (1 > 0).
    assert scheduled("gdl", problem([[2, 3], [2, 10]])) == ([1, 0], [0, 0])


def test_gdl_minds_where_its_largest_output_goes() -> None:
    # t0 is as fast on both; t1 can run on d1 only and is far from d0.
    case = problem([[2, 2], [9, 1]], [(0, 1)], payload=[5], feasible=np.array([[1, 1], [0, 1]], dtype=np.bool_))
    assert scheduled("gdl", case) == ([1, 1], [0, 2])


def test_groups_are_cut_where_a_task_needs_one_of_the_group() -> None:
    """Ranks of the example give n1 | n3 n4 n2 n5 n6 | n9 n8 n7 | n10 (Topcuoglu et al. 2002, table 3)."""
    case = po.load(HEFT_10)
    assert independent_batches(case, np.array([0, 2, 3, 1, 4, 5, 8, 6, 7, 9])).tolist() == [0, 1, 6, 9, 10]


def test_balancing_takes_from_who_is_done_last() -> None:
    # All three are fastest on d0, done at 6; its first, t0, would end on d1 at 3 (d0 then at 4); no move helps further:
    # d0 without t1 would be done at 2, but d1 with it at 6.
    assert scheduled("hbmct", problem([[2, 3], [2, 3], [2, 3]])) == ([1, 0, 0], [0, 0, 2])


def test_balancing_keeps_memory_and_colocation() -> None:
    # By rank t3 0-1, then as above, but t0 does not fit on d1 and t1 is bound to t3: t2 is what can be given up.
    case = problem(
        [[2, 3], [2, 3], [2, 3], [1, 9]],
        resident=[5, 1, 1, 1],
        capacity=[9, 4],
        group=[0, 1, 2, 1],
    )
    assert scheduled("hbmct", case) == ([0, 0, 1, 0], [1, 3, 0, 0])


def test_the_seed_decides_what_wba_draws_and_more_schedules_are_no_worse() -> None:
    case = po.load(HEFT_10)

    def run(seed: int, **settings: float) -> tuple[int, list[int]]:
        answer = Wba().solve(case, Options(seed=seed), WbaSettings.model_validate(settings))
        assert answer.schedule is not None
        return makespan(case, answer.schedule), answer.schedule.start.tolist()

    assert run(1) == run(1)
    assert len({tuple(run(seed, schedules=1)[1]) for seed in range(6)}) > 1
    assert run(3, schedules=20)[0] <= run(3, schedules=1)[0]
    # Nothing is left to chance where only the least increase counts and no two are alike.
    assert run(1, alpha=0, schedules=1)[0] == run(1, alpha=0, schedules=1)[0]


def test_wba_without_chance_takes_the_least_increase() -> None:
    # Increases of t0: 5, 6, of t1: 3, 4; then of t0 8 - 3 on d0 or 6 - 3 on d1.
    case = problem([[5, 6], [3, 4]])
    answer = Wba().solve(case, Options(), WbaSettings(alpha=0, schedules=1))
    assert answer.schedule is not None
    assert answer.schedule.device.tolist() == [1, 0]


def test_wba_tells_when_it_was_stopped() -> None:
    result = po.solve(po.load(HEFT_10), "wba", should_stop=lambda: True)
    assert result.termination is Termination.INTERRUPTED
    assert result.feasible
    assert result.stats == {"schedules": 1}
    result = po.solve(po.load(HEFT_10), "wba", time_limit=1e-9)
    assert (result.termination, result.varies_by) == (Termination.TIME_LIMIT, "clock")
    assert result.feasible
