"""`m-sct` with `released` decides as the code that Baechi's authors released: by a clock, each rule of which is shown.

The rules are those of `m_etf.py` and `m_sct.py` in https://github.com/beomyeol/baechi. Each example
states the schedule that the rules give, computed by hand, and the one that `m-sct` gives by default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from equal_devices import equal_devices as problem
from placeopt_solvers._constructive.construction import PartialSchedule, filled
from placeopt_solvers._constructive.groups import Groups, grouped
from placeopt_solvers._constructive.sct import SctSettings, relaxed
from placeopt_solvers._constructive.timeline import schedule_of
from placeopt_solvers.ready_lists._pairs import StartSettings, detours
from placeopt_solvers.ready_lists.m_etf import MEtf, MEtfSettings
from placeopt_solvers.ready_lists.m_sct import favourites_first

import placeopt as po
from placeopt import engine
from placeopt.bounding.sct.favourites import Favourites
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.protocol import Options
from placeopt.verifier import verify

Placed = list[tuple[int, int]]
"""(device, start) of each task."""


def children(n: int, *pairs: tuple[int, int]) -> Favourites:
    child, parent = (np.full(n, -1, dtype=np.int64) for _ in range(2))
    for i, j in pairs:
        child[i], parent[j] = j, i
    return Favourites(child, parent, np.zeros(0))


def by_clock(given: Problem, child: Int, closing: bool = False) -> PartialSchedule:
    return filled(given, grouped(given), engine.place_by_clock, given.order, child, closing, insertion=False)


def released(given: Problem, favourites: Favourites) -> Placed | None:
    found = by_clock(given, favourites.child)
    if found.stuck is not None:
        return None
    return list(zip(found.line.device.tolist(), found.line.start.tolist(), strict=True))


def default(given: Problem, favourites: Favourites) -> Placed:
    work = detours(given, StartSettings())
    line = favourites_first(given, grouped(given), favourites, given.order, work).line
    return list(zip(line.device.tolist(), line.start.tolist(), strict=True))


def test_a_device_waits_only_for_a_child_whose_producers_have_ended() -> None:
    """t3, the favourite child of t0, is ready at 5, when t1 ends; its data could be on d0 at 6. At 4, d0 takes t2."""
    given = problem([4, 5, 6, 5], 2, [(0, 2), (0, 3), (1, 3)], [3, 4, 1])
    favourites = children(4, (0, 3))
    assert released(given, favourites) == [(0, 0), (1, 0), (0, 4), (1, 8)]
    assert default(given, favourites) == [(0, 0), (1, 0), (1, 7), (0, 6)]


def test_no_task_is_urgent_while_a_device_is_busy() -> None:
    """d0 waits for t3 until 6. t2 could be on any device from 4 on, but d1 is busy until 10."""
    given = problem([4, 10, 6, 5], 2, [(0, 3)], [3], release=[0, 0, 4, 6])
    favourites = children(4, (0, 3))
    assert released(given, favourites) == [(0, 0), (1, 0), (1, 10), (0, 6)]
    assert default(given, favourites) == [(0, 0), (1, 0), (0, 4), (0, 10)]


def test_an_urgent_task_comes_first_once_it_could_start_on_all_devices() -> None:
    """From 5 on t2 could start on both devices, and d0 waits for t3 until 6. It takes t2: no device is named first."""
    given = problem([4, 5, 6, 5], 2, [(0, 3), (1, 2)], [3, 0], release=[0, 0, 0, 6])
    assert released(given, children(4, (0, 3))) == [(0, 0), (1, 0), (0, 5), (1, 7)]


def test_a_favourite_child_goes_to_a_lower_device_that_could_start_it_as_early() -> None:
    given = problem([2, 4, 3], 2, [(1, 2)], [0])
    favourites = children(3, (1, 2))
    assert released(given, favourites) == [(0, 0), (1, 0), (0, 4)]
    assert default(given, favourites) == [(0, 0), (1, 0), (1, 4)]


def test_a_device_does_not_wait_for_a_child_whose_group_has_a_device() -> None:
    """At 4, d0 waits for t3, and t2 is not urgent while d1 is busy. In a group with t0, t3 is bound to d0 anyway."""
    apart, together = (
        problem([4, 20, 3, 3], 2, [(0, 3)], [9], group=group) for group in (None, np.array([0, 1, 2, 0]))
    )
    favourites = children(4, (0, 3))
    assert released(apart, favourites) == [(0, 0), (1, 0), (0, 7), (0, 4)]
    assert released(together, favourites) == [(0, 0), (1, 0), (0, 4), (0, 7)]


def test_durations_do_not_count() -> None:
    """The second task could start at once on the slower device, and does; by default it waits for the faster one."""
    given = build_problem(task_names=["t0", "t1"], device_names=["d0", "d1"], duration=np.array([[2, 9]] * 2), edges=[])
    assert [po.solve(given, "m-sct", released=each).makespan for each in (True, False)] == [9, 4]


def test_the_setting_is_that_of_the_loop() -> None:
    for seed in range(5):
        given = drawn(np.random.default_rng(seed))
        favourites = relaxed(given, Options(), SctSettings()).favourites
        found = po.solve(given, "m-sct", released=True, passes=[])
        assert found.feasible
        assert found.schedule is not None
        assert list(zip(found.schedule.device.tolist(), found.schedule.start.tolist(), strict=True)) == released(
            given, favourites
        )


def drawn(rng: np.random.Generator, **rest: Any) -> Problem:
    n, m = int(rng.integers(1, 30)), int(rng.integers(1, 5))
    share = rng.choice([0.1, 0.3])
    edges = [(i, j) for j in range(n) for i in range(max(j - 9, 0), j) if rng.random() < share]
    return problem(rng.integers(1, 9, n), m, edges, rng.integers(0, 12, len(edges)), **rest)


def tick_by_tick(given: Problem, groups: Groups, child: Int) -> Placed | None:
    """The rules, with a look at every device at every tick; None at a dead end."""
    n, m = given.n_tasks, given.n_devices
    home, room = groups.home.copy(), groups.room.copy()
    device, start, end = [-1] * n, [0] * n, [0] * n
    free, last = [0] * m, [-1] * m
    rank = {i: position for position, i in enumerate(given.order.tolist())}
    into: list[list[int]] = [np.flatnonzero(given.edge_target == j).tolist() for j in range(n)]
    latest = int(given.release.max(initial=0)) + int(given.duration.sum()) + 20 * (given.n_edges + 1)

    def may(i: int, d: int) -> bool:
        g = given.group[i]
        return bool(home[g] == d if home[g] >= 0 else groups.feasible[g, d] and groups.memory[g] <= room[d])

    def tick(i: int, d: int) -> int:
        times = [now, free[d], int(given.release[i])]
        for e in into[i]:
            u = int(given.edge_source[e])
            times.append(end[u] + int(given.transfer(int(given.payload[e]), device[u], d)))
        return max(times)

    for now in range(latest):
        while True:
            done = {i for i in range(n) if device[i] >= 0 and end[i] <= now}
            ready = [i for i in range(n) if device[i] < 0 and all(int(given.edge_source[e]) in done for e in into[i])]
            choices = []
            for d in range(m):
                if free[d] > now:
                    continue
                able = [i for i in ready if may(i, d)]
                j = int(child[last[d]]) if last[d] >= 0 else -1
                soonest = [tick(j, b) for b in range(m) if j in able and may(j, b)]
                if j in able and home[given.group[j]] < 0 and tick(j, d) == min(soonest):
                    fit = [i for i in able if max(tick(i, b) for b in range(m) if may(i, b)) == now]
                    fit = fit or [j] * (tick(j, d) == now)
                else:
                    fit = [i for i in able if tick(i, d) == now]
                choices += [(rank[i], d, i) for i in fit]
            if not choices:
                break
            _, d, i = min(choices)
            if home[given.group[i]] < 0:
                home[given.group[i]] = d
                room[d] -= groups.memory[given.group[i]]
            device[i], start[i], end[i] = d, now, now + int(given.duration[i, d])
            free[d], last[d] = end[i], i
    return None if min(device, default=0) < 0 else list(zip(device, start, strict=True))


@pytest.mark.parametrize("seed", range(30))
def test_every_choice_is_that_of_the_rules(seed: int) -> None:
    """In two thirds of the problems with release times and groups, in one third with little memory."""
    rng = np.random.default_rng(seed + 1000)
    plain = drawn(np.random.default_rng(seed))
    n, m = plain.n_tasks, plain.n_devices
    rest: dict[str, Any] = {}
    if seed % 3:
        rest = {
            "release": rng.integers(0, 12, n) * (rng.random(n) < 0.3),
            "group": np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), np.arange(n) + 3),
        }
    if seed % 3 == 2:
        sizes = rng.integers(0, 5, n)
        rest |= {"resident": sizes, "capacity": rng.integers(sizes.sum() // m + 3, sizes.sum() + 4, m)}
    given = drawn(np.random.default_rng(seed), **rest)
    favourites = relaxed(given, Options(), SctSettings(threshold=0.9)).favourites
    assert released(given, favourites) == tick_by_tick(given, grouped(given), favourites.child)


@pytest.mark.parametrize("closing", [False, True])
def test_without_favourites_the_loop_is_m_etf_with_topological_ties(closing: bool) -> None:
    """With memory enough for all tasks, and with little of it. At a dead end both leave the same group."""
    closed = 0
    for seed in range(40):
        given = drawn(np.random.default_rng(seed))
        if seed % 4:
            sizes = np.random.default_rng(seed).integers(0, 5, given.n_tasks)
            room = int(sizes.sum()) // given.n_devices + 4
            given = replace(given, resident=sizes, capacity=np.full(given.n_devices, room))
        settings = MEtfSettings(ties="topological", detour=False, closing=closing)
        pairs = MEtf().builder(given, settings)(grouped(given))
        clock = by_clock(given, np.full(given.n_tasks, -1), closing=closing)
        assert pairs.stuck == clock.stuck, seed
        if pairs.stuck is None:
            assert pairs.line.device.tolist() == clock.line.device.tolist(), seed
            assert pairs.line.start.tolist() == clock.line.start.tolist(), seed
        assert pairs.line.closed.tolist() == clock.line.closed.tolist(), seed
        closed += len(clock.line.closed)
    assert (closed > 5) == closing


@pytest.mark.parametrize("contention", ["port", "half_duplex"])
def test_transfers_wait_for_their_ports(contention: str) -> None:
    for seed in range(10):
        given = drawn(np.random.default_rng(seed), contention=contention)
        line = by_clock(given, np.full(given.n_tasks, -1)).line
        assert verify(given, schedule_of(given, line)).feasible, seed
