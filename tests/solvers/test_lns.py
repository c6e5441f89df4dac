"""Large neighbourhood search: exact subproblems, valid schedules, never worse, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from constrained_problems import constrained, ignored, never, started
from placeopt_solvers._runs.validity import valid
from placeopt_solvers._starts.warm_start import best_start
from placeopt_solvers.search._intervals.state import State
from placeopt_solvers.search._intervals.subproblem import Neighbourhood, changed, subproblem_of
from placeopt_solvers.search._lns.search import TUNING, Chooser, Search, solved

import placeopt as po
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.model.schedule import Schedule, arrivals, makespan
from placeopt.protocol import Termination


def improve(
    problem: Problem,
    start: Schedule,
    seconds: float,
    seed: int,
    better: Callable[[Schedule], None] = ignored,
    workers: int = 1,
) -> Schedule:
    """The schedule after some seconds of work."""
    search = Search(problem, start, seed, never, better, workers)
    search.run(seconds, 0.0)
    return search.state.schedule


def passing(state: State, area: Neighbourhood, device: Int) -> int:
    """The makespan of the tasks outside a neighbourhood on new devices, by its definition."""
    problem, position = state.problem, state.position
    before, behind = position < area.first, position >= area.last
    inside = ~before & ~behind
    ticks = problem.duration[np.arange(problem.n_tasks), device]
    spans = [
        int((state.start + ticks)[before].max(initial=0)),
        int((problem.release + state.tail)[behind].max(initial=0)),
    ]
    for u, v, b in zip(problem.edge_source, problem.edge_target, problem.payload, strict=True):
        if before[u] and behind[v]:
            spans.append(int(state.end[u] + problem.transfer(b, device[u], device[v]) + state.tail[v]))
    for d in range(problem.n_devices):
        if not (device[inside] == d).any():
            free = state.end[before & (device == d)].max(initial=0)
            spans.append(int(free + state.tail[behind & (device == d)].max(initial=0)))
    return max(spans)


def test_tails_are_the_longest_chains() -> None:
    for seed in range(5):
        problem = constrained(seed)
        state = State(problem, started(problem))
        order = state.sequence.tolist()
        for i in reversed(order):
            later = [j for j in order[order.index(i) + 1 :] if state.device[j] == state.device[i]]
            follow = [int(state.tail[j]) for j in later[:1]]
            for e in np.flatnonzero(problem.edge_source == i).tolist():
                j = int(problem.edge_target[e])
                follow.append(
                    int(problem.transfer(problem.payload[e], state.device[i], state.device[j]) + state.tail[j])
                )
            assert state.tail[i] == problem.duration[i, state.device[i]] + max(follow, default=0)
        assert state.span == int((state.start + state.tail).max())
        assert len(state.critical)


def test_a_subproblem_has_the_makespan_of_the_whole() -> None:
    """The makespan of a subproblem is that of the whole schedule, for every kind of neighbourhood."""
    rng, shorter = np.random.default_rng(5), 0
    for seed in range(12):
        problem = constrained(seed)
        state = State(problem, started(problem))
        chooser = Chooser(problem, seed)
        for kind in chooser.kinds:
            kind.size = float(rng.integers(3, 12))
            area = chooser.draw(state, kind)
            sub = subproblem_of(state, area)
            found = solved(sub, state, 0.2, seed, never)
            assert found.device is not None
            after = changed(state, sub, area, found.device, found.start)
            device = after.device
            assert valid(problem, after), (seed, kind.name)
            own = device[sub.tasks]
            end = after.start[sub.tasks] + problem.duration[sub.tasks, own]
            promised = int((end + sub.tail[np.arange(len(own)), own]).max()) + sub.rest
            assert makespan(problem, after) == max(promised, passing(state, area, device)), (seed, kind.name)
            assert makespan(problem, after) <= state.span
            shorter += makespan(problem, after) < state.span
            fixed = [int(i) for i in sub.tasks[~area.free]]
            assert all(device[i] == state.device[i] for i in fixed)
    assert shorter > 5


def test_critical_paths_become_fewer_at_the_same_makespan() -> None:
    """Of two late devices, a neighbourhood on one of them cannot shorten the schedule, and yet makes it less late."""
    document = {
        "placeopt": 1,
        "devices": {name: {} for name in ("a", "b", "c", "d")},
        "tasks": {
            **{f"one{k}": {"time": {"a": 100, "b": 100}} for k in range(4)},
            **{f"two{k}": {"time": {"c": 100, "d": 100}} for k in range(4)},
        },
    }
    problem = po.compile(document)
    device = np.array([0, 0, 0, 1, 2, 2, 2, 3])
    start = np.array([0, 100, 200, 0, 0, 100, 200, 0])
    state = State(problem, Schedule(device, start * (makespan(problem, Schedule(device, start)) // 300)))
    for first in ("one", "two"):
        own = [k for k, i in enumerate(state.sequence) if problem.task_names[i].startswith(first)]
        area = Neighbourhood(0, 8, np.isin(np.arange(8), own))
        sub = subproblem_of(state, area)
        found = solved(sub, state, 1.0, 0, never)
        assert found.proved
        assert found.device is not None
        late = len(state.critical)
        before, state = state.span, State(problem, changed(state, sub, area, found.device, found.start))
        assert (state.span, len(state.critical)) < (before, late)
    assert state.span < before


def test_sums_beyond_64_bits_leave_the_makespan_alone() -> None:
    problem = constrained(2)
    problem = replace(
        problem, duration=problem.duration << 40, payload=problem.payload * 0, release=problem.release * 0
    )
    state = State(problem, started(problem))
    area = Neighbourhood(0, problem.n_tasks, np.ones(problem.n_tasks, dtype=np.bool_))
    found = solved(subproblem_of(state, area), state, 0.2, 0, never)
    assert found.device is not None


def test_the_whole_as_one_neighbourhood_is_optimal() -> None:
    compared = 0
    for seed in range(40):
        problem = small_problem(np.random.default_rng(seed), Objective())
        start = best_start(problem, None, True)
        best = optimum(problem)
        if start is None or best is None:
            continue
        found = improve(problem, start, 5.0, 0)
        assert valid(problem, found)
        if problem.memory_model == "sum" and problem.contention == "none":
            assert makespan(problem, found) == makespan(problem, best[1]), seed
            compared += 1
        assert makespan(problem, found) >= makespan(problem, best[1])
    assert compared > 8


@pytest.mark.parametrize(
    "rest",
    [{}, {"contention": "port"}, {"memory_model": "peak"}, {"contention": "port", "memory_model": "peak"}],
    ids=["none", "port", "peak", "port and peak"],
)
def test_schedules_are_valid_and_never_worse(rest: dict[str, Any]) -> None:
    better = 0
    for seed in range(3):
        problem = constrained(seed, n=36, **rest)
        start = started(problem)
        seen: list[Schedule] = []
        found = improve(problem, start, 0.3, seed, seen.append)
        assert all(valid(problem, schedule) for schedule in (found, *seen))
        spans = [makespan(problem, schedule) for schedule in (start, *seen)]
        assert spans == sorted(spans, reverse=True)
        assert len(set(spans)) == len(spans)
        assert makespan(problem, found) == spans[-1]
        better += len(seen) > 0
    assert better


def test_deadlines_are_met() -> None:
    for seed in range(4):
        free = constrained(seed)
        good = improve(free, started(free), 1.0, seed)
        deadline = good.start + free.duration[np.arange(free.n_tasks), good.device] + 3
        problem = replace(free, deadline=np.where(np.arange(free.n_tasks) % 2, deadline, UNLIMITED))
        given = po.solve(problem, "lns", initial=good, time_limit=2, strict=True)
        assert given.feasible
        alone = po.solve(problem, "lns", time_limit=2, strict=True)
        assert alone.schedule is not None
        assert alone.feasible or "deadline" in alone.message


def test_same_seed_same_schedule() -> None:
    problem = constrained(3, n=60)
    found = [improve(problem, started(problem), 1.0, seed) for seed in (4, 4)]
    assert np.array_equal(found[0].device, found[1].device)
    assert np.array_equal(found[0].start, found[1].start)


def test_any_seed_is_allowed() -> None:
    """OR-Tools accepts no larger seed."""
    problem = constrained(3)
    found = po.solve(problem, "lns", seed=2**31 - 1, time_limit=1.0, workers=1)
    assert found.feasible


def test_workers_share_the_neighbourhoods() -> None:
    problem = constrained(1, n=120)
    start = started(problem)
    found = improve(problem, start, 1.0, 0, workers=2)
    assert valid(problem, found)
    assert makespan(problem, found) < makespan(problem, start)


def test_stops_when_asked() -> None:
    problem = constrained(2, n=80)
    calls = iter([False] * 30)
    result = po.solve(problem, "lns", should_stop=lambda: next(calls, True))
    assert result.termination is Termination.INTERRUPTED
    assert result.feasible
    over = po.solve(problem, "lns", time_limit=1e-6)
    assert over.termination is Termination.TIME_LIMIT
    assert over.feasible


def test_never_longer_than_the_initial_schedule() -> None:
    problem = constrained(6)
    good = improve(problem, started(problem), 1.0, 0)
    result = po.solve(problem, "lns", initial=good, time_limit=0.5)
    assert result.objective is not None
    assert result.objective <= makespan(problem, good)


def test_unnecessarily_short_ticks_are_scaled() -> None:
    """The same problem in ticks a thousand times shorter has the same schedule, and reports values in its own ticks."""
    problem = constrained(5)
    finer = replace(
        problem,
        duration=problem.duration * 1000,
        latency=problem.latency * 1000,
        byte_ticks_num=problem.byte_ticks_num * 1000,
        release=problem.release * 1000,
    )
    seen: list[Any] = []
    plain, fine = (
        po.solve(each, "lns", patience=1, workers=1, on_progress=lambda report: seen.append(report.objective))
        for each in (problem, finer)
    )
    assert plain.objective is not None
    assert plain.stats["neighbourhoods"] > 0
    assert fine.objective == plain.objective * 1000
    assert seen[-1] == fine.objective


def test_work_is_counted() -> None:
    problem = constrained(2, n=40)
    search = Search(problem, started(problem), 0, never, ignored)
    search.run(0.3, 0)
    assert search.tried == sum(kind.tried for kind in search.chooser.kinds)
    assert search.spent == pytest.approx(sum(kind.seconds for kind in search.chooser.kinds))
    assert search.complete or search.spent >= 0.3
    assert TUNING.limit > 0
    assert (arrivals(problem, search.state.schedule) <= search.state.start[problem.edge_target]).all()
