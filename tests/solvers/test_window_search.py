"""Search in windows: repaired times equal recomputed ones, rules hold, and improvements are exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from placeopt_solvers._local_search.instance import make_instance
from placeopt_solvers._local_search.windows import Plan, Tuning, WindowSearch, searches_windows
from placeopt_solvers._starts.warm_start import best_start
from test_search import constrained, tiered

from placeopt import engine
from placeopt.generate.irregular_graphs import irregular_problem
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule, makespan, sequence
from placeopt.simulation import retime, simulate
from placeopt.verifier import verify

LINKS = ("order", "position", "device", "ticks", "delay", "before", "behind", "first", "room")


def entered(problem: Problem, start: Schedule, seed: int, low: int, high: int) -> engine.WindowMoves:
    """A schedule in a window."""
    state = engine.WindowMoves(make_instance(problem), seed)
    state.load(sequence(problem, start), start.device)
    state.enter(low, high)
    return state


def schedule_of(state: engine.WindowMoves) -> Schedule:
    return Schedule(state.device.copy(), state.end - state.ticks)


def recomputed(problem: Problem, state: engine.WindowMoves) -> engine.WindowMoves:
    """The same order and devices with all times recomputed."""
    other = engine.WindowMoves(make_instance(problem), 0)
    other.load(state.order.copy(), state.device.copy())
    return other


def improved(
    problem: Problem,
    start: Schedule,
    rounds: int,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
    better: Callable[[Schedule], object] = lambda schedule: None,  # noqa: ARG005
    enough: float = -math.inf,
) -> Schedule:
    """The best schedule after a number of moves."""
    search = WindowSearch(problem, start, seed, rounds)
    search.run(rounds, stopped, better, enough)
    return search.best()


def values(state: engine.WindowMoves, *names: str) -> list[Any]:
    return [getattr(state, name).tolist() for name in names]


@pytest.mark.parametrize("seed", range(3))
def test_times_after_accepted_and_rejected_moves_equal_recomputed_ones(seed: int) -> None:
    n = 80
    problem = constrained(seed, n=n, m=4, tight=0.4)
    start = best_start(problem, None, True)
    assert start is not None
    rng = np.random.default_rng(seed)
    low, high = ((0, n), (15, 70), (30, n))[seed]
    state = entered(problem, start, seed, low, high)
    accepted = rejected = 0
    kinds = [Tuning(100), Tuning(0, 100), Tuning(0, 0, 100), Tuning(0, 0, 0, 100), Tuning(0, 0, 0, 0), Tuning()]
    for step in range(300):
        tuning = kinds[step % 6]._replace(tries=4)
        limit = int(state.span + rng.choice([0, 0, 0, 1, 5, 40]))
        span, before = state.span, values(state, *LINKS, "end", "after", "reach")
        if not state.propose(tuning, math.inf):
            assert values(state, *LINKS, "end", "after", "reach") == before
            continue
        kept = state.evaluate(limit)
        assert not state.marked
        fresh = recomputed(problem, state)
        assert kept == (fresh.end.max() <= limit)
        if not kept:
            rejected += 1
            state.reject()
            assert state.span == span
            assert values(state, *LINKS, "end", "after", "reach") == before
            continue
        accepted += 1
        state.accept()
        assert not state.marked
        assert values(state, *LINKS) == values(fresh, *LINKS)
        assert (state.position[problem.edge_source] < state.position[problem.edge_target]).all()
        assert state.span == fresh.end.max() == (fresh.end + fresh.after).max()
        inside, ahead = state.order[:high], state.order[low:]
        assert (state.end[inside] == fresh.end[inside]).all()
        assert (state.after[ahead] == fresh.after[ahead]).all()
        assert (state.room >= 0).all()
    assert accepted > 20
    assert rejected > 20
    found = schedule_of(recomputed(problem, state))
    assert verify(problem, found).violations == ()
    assert makespan(problem, found) == state.span
    assert retime(problem, found).start.tolist() == found.start.tolist()


@pytest.mark.parametrize("seed", range(2))
def test_the_makespan_is_known_in_every_window(seed: int) -> None:
    problem = constrained(seed, n=60, m=4, tight=2.0)
    start = best_start(problem, None, True)
    assert start is not None
    for low in range(0, 60, 11):
        for high in range(low + 1, 61, 9):
            state = entered(problem, start, 0, low, high)
            assert state.span == state.end.max()
            state.enter((low + high) // 2, min(high + 5, 60))
            assert state.span == state.end.max()


def test_times_are_exact_after_thousands_of_moves() -> None:
    problem = constrained(7, n=90, m=4, tight=0.4)
    start = best_start(problem, None, True)
    assert start is not None
    state = entered(problem, start, 3, 10, 80)
    state.keep_best()
    assert state.walk(Tuning(), 0, 20_000, 20_000, 20.0, 0.1, engine.Stop()) == 20_000
    assert state.walk(Tuning(tries=4), 0, 600, 600, 0.0, 0.0, engine.Stop()) == 600
    assert state.evaluated > 2_000
    fresh = recomputed(problem, state)
    assert values(state, *LINKS) == values(fresh, *LINKS)
    assert state.held <= state.span == fresh.end.max()
    assert (state.end + state.after)[state.order[10:80]].max() == state.span


@pytest.mark.parametrize("seed", range(3))
def test_the_state_after_a_window_is_the_best_one(seed: int) -> None:
    problem = constrained(seed, n=90, m=4, tight=0.4)
    start = best_start(problem, None, True)
    assert start is not None
    state = engine.WindowMoves(make_instance(problem), seed)
    state.load(sequence(problem, start), start.device)
    state.keep_best()
    returned = 0
    for low, high in ((0, 50), (20, 70), (40, 90)) * 2:
        if low < state.low:
            state.load(state.order.copy(), state.device.copy())
            state.keep_best()
        state.enter(low, high)
        assert state.fresh
        state.walk(Tuning(), 0, 500, 500, 200.0, 100.0, engine.Stop())
        returned += state.span > state.held
        state.settle()
        fresh = recomputed(problem, state)
        assert values(state, *LINKS) == values(fresh, *LINKS)
        assert values(state, "order", "device") == values(state, "best_order", "best_device")
        assert state.span == state.held == fresh.end.max()
        assert (state.end[state.order[:high]] == fresh.end[state.order[:high]]).all()
        assert (state.after[state.order[low:]] == fresh.after[state.order[low:]]).all()
        assert (state.end + state.after)[state.order[low:high]].max() <= state.span
    assert returned > 2


@pytest.mark.parametrize("tight", [0.27, 2.0])
def test_schedules_improve_and_obey_all_rules(tight: float) -> None:
    problem = constrained(11, n=120, m=4, tight=tight)
    start = best_start(problem, None, True)
    assert start is not None
    better: list[Schedule] = []
    first, second = (improved(problem, start, 3_000, seed=5, better=better.append) for _ in range(2))
    assert first.device.tolist() == second.device.tolist()
    assert first.start.tolist() == second.start.tolist()
    assert verify(problem, first).violations == ()
    assert makespan(problem, first) < makespan(problem, start)
    assert makespan(problem, better[-1]) == makespan(problem, first)
    other = improved(problem, start, 3_000, seed=6)
    assert other.start.tolist() != first.start.tolist()


def test_windows_pass_over_the_whole_order() -> None:
    problem = irregular_problem(400, 6, seed=2)
    start = best_start(problem, None, True)
    assert start is not None
    search = WindowSearch(problem, start, 0, 10**9, Plan(size=100, advance=50, rounds=20, focus=0.0))
    seen = []
    for _ in range(16):
        search.step(lambda: False, 10**9)
        seen.append((search.state.low, search.state.high))
        if search.state.fresh:
            assert search.span == search.state.held <= search.state.span
        assert makespan(problem, search.best()) == search.span
        assert recomputed(problem, search.state).end.max() == search.state.span
    assert seen[:7] == [(low, low + 100) for low in range(0, 301, 50)]
    assert seen[7:15] == [(low, low + 100) for low in (0, 25, 75, 125, 175, 225, 275, 300)]
    assert search.tried == 16 * 20


@pytest.mark.parametrize("part", [(0, 150), (90, 260), (250, 400)])
def test_tasks_outside_a_part_keep_their_positions_and_devices(part: tuple[int, int]) -> None:
    problem = irregular_problem(400, 6, seed=2)
    start = best_start(problem, None, True)
    assert start is not None
    order = sequence(problem, start)
    search = WindowSearch(problem, start, 0, 10**9, Plan(size=60, advance=30, rounds=100), part)
    outside = np.concatenate((order[: part[0]], order[part[1] :]))
    for _ in range(25):
        search.step(lambda: False, 10**9)
        assert part[0] <= search.state.low
        assert search.state.high <= part[1]
        found = search.state.order
        assert np.concatenate((found[: part[0]], found[part[1] :])).tolist() == outside.tolist()
        assert (search.state.device[outside] == start.device[outside]).all()
    assert verify(problem, search.best()).feasible
    assert makespan(problem, search.best()) <= search.span <= makespan(problem, start)


@pytest.mark.parametrize("seed", range(6))
def test_the_gains_of_parts_nearly_add_up(seed: int) -> None:
    problem = irregular_problem(600, 6, seed=seed)
    start = best_start(problem, None, True)
    assert start is not None
    order, device = sequence(problem, start), start.device.copy()
    gains = []
    for part in ((0, 230), (230, 400), (400, 600)):
        search = WindowSearch(problem, start, seed, 10**9, Plan(size=100, advance=50, rounds=2000), part, seed)
        assert search.span == makespan(problem, start)
        search.run(60_000, lambda: False)
        gains.append(makespan(problem, start) - search.span)
        first, last = part
        order[first:last] = search.state.best_order[first:last]
        device[order[first:last]] = search.state.best_device[order[first:last]]
    whole = engine.WindowMoves(make_instance(problem), 0)
    whole.load(order, device)
    assert sum(gains) > 0
    # A path that lies in some of the parts only gets only what they gain.
    assert whole.span <= makespan(problem, start) - min(gains)
    assert whole.span <= makespan(problem, start) - 0.9 * sum(gains)


def test_windows_in_which_the_longest_path_loses_ticks_get_more_moves() -> None:
    # A chain, whose second half is on the slower device.
    n = 40
    duration = np.array([[1, 3]] * n)
    problem = build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=["x", "y"],
        duration=duration,
        edges=list(pairwise(range(n))),
    )
    device = (np.arange(n) >= n // 2).astype(np.int64)
    state = engine.WindowMoves(make_instance(problem), 0)
    state.load(np.arange(n), device)
    start = schedule_of(state)
    search = WindowSearch(problem, start, 0, 10**9, Plan(size=10, advance=10, rounds=100, focus=0.5))
    moves = []
    for _ in range(4):
        before = search.tried
        search.step(lambda: False, 10**9)
        moves.append(search.tried - before)
    # A window counts what is lost after its first task, up to the first one of the next window.
    assert moves == [50, 60, 150, 140]


def test_groups_that_lie_in_no_window_move_in_the_whole_graph() -> None:
    n, ends = 60, [0, 59]
    duration = np.full((n, 2), 5)
    duration[ends] = [100, 10]
    problem = build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=["x", "y"],
        duration=duration,
        edges=list(pairwise(range(n))),
        group=np.array([*range(n - 1), 0]),
    )
    start = simulate(problem, np.zeros(n, dtype=np.int64))
    search = WindowSearch(problem, start, 0, 10**9, Plan(size=20, advance=10, rounds=1000))
    for _ in range(6):
        search.step(lambda: False, 10**9)
    assert search.best().device[ends].tolist() == [1, 1]
    assert search.span == makespan(problem, search.best()) == 20 + 58 * 5


def test_a_stopped_or_satisfied_search_returns_its_best_schedule() -> None:
    problem = irregular_problem(200, 6, seed=3)
    start = best_start(problem, None, True)
    assert start is not None
    found = improved(problem, start, 10**9, stopped=lambda: True)
    assert makespan(problem, found) <= makespan(problem, start)
    found = improved(problem, start, 10**9, enough=makespan(problem, start))
    assert makespan(problem, found) <= makespan(problem, start)


def test_where_windows_apply() -> None:
    assert searches_windows(constrained(0))
    assert not searches_windows(constrained(0, contention="port"))
    assert not searches_windows(constrained(0, memory_model="peak"))
    assert not searches_windows(constrained(0, deadline=np.full(30, 90)))
    assert not searches_windows(constrained(0, objective=Objective(((Term("energy"),),))))
    assert not searches_windows(tiered(constrained(0)))
