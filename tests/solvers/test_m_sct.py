"""m-SCT places as its definition says and within its theorem; sct-lp reports the solution of the program."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from equal_devices import equal_devices as problem
from placeopt_solvers._constructive.groups import Groups, grouped
from placeopt_solvers._constructive.sct import SctSettings, relaxed
from placeopt_solvers.exact.sct_lp import SctLp, SctLpSettings
from placeopt_solvers.ready_lists._pairs import StartSettings, detours
from placeopt_solvers.ready_lists.m_sct import favourites_first

import placeopt as po
from placeopt import engine
from placeopt.bounding.sct.favourites import Favourites
from placeopt.bounding.sct.ratios import ratios_of
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import makespan
from placeopt.protocol import Options, Termination


def assumed(rng: np.random.Generator, n: int, m: int, **rest: Any) -> Problem:
    """A random problem that satisfies the SCT assumption."""
    share = float(rng.choice([0.15, 0.3, 0.5]))
    edges = [(i, j) for i in range(n) for j in range(i + 1, min(n, i + 8)) if rng.random() < share]
    least = int(rng.integers(3, 9))
    ticks = rng.integers(least, int(rng.choice([1, 2, 3])) * least + 1, n)
    return problem(ticks, m, edges, rng.integers(0, least + 1, len(edges)), **rest)


def pairs(n: int, *chosen: tuple[int, int]) -> Favourites:
    child, parent = (np.full(n, -1, dtype=np.int64) for _ in range(2))
    for i, j in chosen:
        child[i], parent[j] = j, i
    return Favourites(child, parent, np.zeros(0))


def timeline(given: Problem, favourites: Favourites, urgent_first: bool = True) -> engine.Timeline:
    work = detours(given, StartSettings())
    return favourites_first(
        given, grouped(given), favourites, np.arange(given.n_tasks), work, urgent_first=urgent_first
    ).line


def placed(given: Problem, favourites: Favourites, urgent_first: bool = True) -> list[tuple[int, int]]:
    """(device, start) of each task."""
    line = timeline(given, favourites, urgent_first)
    return list(zip(line.device.tolist(), line.start.tolist(), strict=True))


def test_a_device_waits_for_the_favourite_child() -> None:
    """d0 ends t0 at 4 and waits for t3 until 5, when t1's data comes; t2, ready at once but released at 4, is not
    urgent: its data could not be on d1 before 7. ETF starts it on d0 at 4."""
    given = problem([4, 4, 6, 5], 2, [(0, 2), (0, 3), (1, 3)], [3, 1, 1])
    assert placed(given, pairs(4, (0, 3)))[3] == (0, 5)
    assert placed(given, pairs(4, (0, 3)))[2] == (1, 7)
    assert placed(given, pairs(4))[2] == (0, 4)


def test_an_urgent_task_comes_first() -> None:
    """t2 has no data to wait for: it may start anywhere at 4, and takes the device that waits for t3."""
    given = problem([4, 4, 6, 5], 2, [(0, 3), (1, 3)], [3, 1], release=[0, 0, 4, 0])
    found = placed(given, pairs(4, (0, 3)))
    assert found[2] == (1, 4)  # the other device is idle, and goes first
    both = problem([4, 4, 6, 6, 5], 2, [(0, 4), (1, 4)], [3, 1], release=[0, 0, 4, 4, 0])
    found = placed(both, pairs(5, (0, 4)))
    assert found[2:4] == [(1, 4), (0, 4)]


def test_an_urgent_task_comes_before_a_favourite_child_that_could_start_at_once() -> None:
    """d0 ends t0 at 4; t2 is its favourite child, t1 needs no data and may run on d0 only. Both could start at 4."""
    given = problem([4, 3, 5], 2, [(0, 2)], [4], feasible=np.array([[True, True], [True, False], [True, True]]))
    assert placed(given, pairs(3, (0, 2))) == [(0, 0), (0, 4), (0, 7)]
    assert placed(given, pairs(3, (0, 2)), urgent_first=False) == [(0, 0), (0, 9), (0, 4)]
    found = [po.solve(given, "m-sct", urgent_first=first).makespan for first in (True, False)]
    assert found == [12, 12]


def test_ties_by_index_or_in_topological_order() -> None:
    """The data of t0 is there at 3, when t2 is released."""
    given = problem([2, 3, 1], 1, [(1, 0)], [0], release=[0, 0, 3])
    for name in ("m-sct", "m-etf"):
        starts = [po.solve(given, name, ties=ties).schedule.start.tolist() for ties in ("index", "topological")]  # type: ignore[union-attr]
        assert starts == [[3, 0, 5], [4, 0, 3]], name


@pytest.mark.parametrize(("closing", "device"), [(False, [0, 1, 0]), (True, [0, 1, 1])])
@pytest.mark.parametrize(("name", "settings"), [("m-sct", {}), ("m-sct", {"released": True}), ("m-etf", {})], ids=str)
def test_a_full_device_stays_open_or_closes(
    name: str, settings: dict[str, bool], closing: bool, device: list[int]
) -> None:
    """t1 would follow t0 on d0, but has no room there; t2 has. Section 2.4 of Baechi excludes d0 afterwards."""
    limits = {"resident": np.array([3, 2, 1]), "capacity": np.array([4, 10])}
    given = problem([1, 1, 1], 2, [(0, 1)], [1], release=[0, 0, 10], **limits)
    found = po.solve(given, name, closing=closing, **settings)
    assert found.schedule is not None
    assert found.schedule.device.tolist() == device


def test_a_closed_device_still_runs_the_groups_that_it_has() -> None:
    """d0 closes at 1, when t1 does not fit. t2 is in t0's group."""
    limits = {"resident": np.array([3, 2, 0]), "capacity": np.array([4, 10])}
    given = problem([1, 1, 1], 2, [(0, 1)], [1], release=[0, 0, 10], group=[0, 1, 0], **limits)
    for name in ("m-sct", "m-etf"):
        found = po.solve(given, name, closing=True)
        assert found.schedule is not None
        assert found.schedule.device.tolist() == [0, 1, 0], name


def test_of_several_urgent_tasks_the_first_that_could_start_is_taken() -> None:
    """t1 and t2 may run on d0 only, as soon as t0 ends there; t1 was ready later, but has the lower index."""
    only = np.array([[True, True], [True, False], [True, False], [True, True]])
    given = problem([4, 3, 3, 5], 2, [(0, 3)], [4], feasible=only, release=[0, 2, 1, 0])
    assert placed(given, pairs(4, (0, 3)))[1:3] == [(0, 4), (0, 7)]


def test_no_device_waits_where_another_could_start_sooner() -> None:
    """t3's data is on d1 at 5, on d0 at 8 only: it goes to d1, and d0 takes t2 at once."""
    given = problem([4, 4, 6, 5], 2, [(0, 2), (0, 3), (1, 3)], [3, 1, 4])
    assert placed(given, pairs(4, (0, 3)))[2:] == [(0, 4), (1, 5)]


def reference(given: Problem, groups: Groups, favourites: Favourites, urgent_first: bool) -> list[tuple[int, int]]:
    """The definition, with a look at every pair in every step."""
    n, m = given.n_tasks, given.n_devices
    home, room = groups.home.copy(), groups.room.copy()
    device, start, end = [-1] * n, [0] * n, [0] * n
    free, last = [0] * m, [-1] * m
    everywhere: dict[int, int] = {}
    into: list[list[int]] = [np.flatnonzero(given.edge_target == j).tolist() for j in range(n)]

    def may(i: int, d: int) -> bool:
        g = given.group[i]
        if home[g] >= 0:
            return bool(home[g] == d)
        apart = groups.apart[groups.apart_start[g] : groups.apart_start[g + 1]]
        return bool(groups.feasible[g, d] and groups.memory[g] <= room[d] and not (home[apart] == d).any())

    def arrival(i: int, d: int) -> int:
        times = [int(given.release[i])]
        for e in into[i]:
            u = int(given.edge_source[e])
            times.append(end[u] + int(given.transfer(int(given.payload[e]), device[u], d)))
        return max(times)

    while min(device, default=0) < 0:
        ready = [i for i in range(n) if device[i] < 0 and all(device[given.edge_source[e]] >= 0 for e in into[i])]
        for i in ready:  # as the devices stand when it becomes ready
            everywhere.setdefault(i, max(arrival(i, b) for b in range(m) if may(i, b)))
        options = []
        for d in range(m):
            able = [i for i in ready if may(i, d)]
            j = int(favourites.child[last[d]]) if last[d] >= 0 else -1
            soonest = {i: max(free[d], arrival(i, d)) for i in able}
            others = [max(free[b], arrival(j, b)) for b in range(m) if j in able and may(j, b)]
            if j in able and soonest[j] <= min(others):
                options.append((soonest[j], 0, j, d))
                _, i = min((max(free[d], everywhere[i]), i) for i in able)
                sooner = max(free[d], everywhere[i]) - soonest[j]
                if sooner == 0 and urgent_first and i != j:
                    options.pop()
                if sooner < 0 or (sooner == 0 and urgent_first and i != j):
                    options.append((max(free[d], everywhere[i]), 2, i, d))
            else:
                options += [(soonest[i], 1, i, d) for i in able]
        begin, _, i, d = min(options)
        if home[given.group[i]] < 0:
            home[given.group[i]] = d
            room[d] -= groups.memory[given.group[i]]
        device[i], start[i], end[i] = d, begin, begin + int(given.duration[i, d])
        free[d], last[d] = end[i], i
    return list(zip(device, start, strict=True))


@pytest.mark.parametrize("urgent_first", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_every_choice_is_that_of_the_definition(seed: int, urgent_first: bool) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 25)), int(rng.integers(1, 5))
    edges = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.2]
    rest: dict[str, Any] = {}
    if seed % 2:
        rest = {
            "latency": rng.integers(0, 5, (m, m)),
            "byte_ticks_num": rng.integers(0, 3, (m, m)),
            "release": rng.integers(0, 12, n) * (rng.random(n) < 0.3),
            "group": np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), np.arange(n) + 3),
        }
    given = problem(rng.integers(0, 9, n), m, edges, rng.integers(0, 9, len(edges)), **rest)
    chosen = relaxed(given, Options(), SctSettings(threshold=0.9)).favourites
    assert placed(given, chosen, urgent_first) == reference(given, grouped(given), chosen, urgent_first)


def without_number(given: Problem, favourites: Favourites) -> int:
    """The makespan of SCT where each chain of favourites has a device of its own."""
    start = np.zeros(given.n_tasks, dtype=np.int64)
    for i in given.order.tolist():
        for e in range(given.out_start[i], given.out_start[i + 1]):
            j = given.edge_target[e]
            way = 0 if favourites.child[i] == j else given.payload[e]
            start[j] = max(start[j], start[i] + given.duration[i, 0] + way)
    return int((start + given.duration[:, 0]).max())


@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_the_theorem_of_hanen_and_munier(threshold: float) -> None:
    """Makespan <= (sum of durations) / m + (1 - 1/m) w, and w <= beta times the program's value."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(2, 6))
        given = assumed(rng, int(rng.integers(4, 30)), m)
        found = relaxed(given, Options(), SctSettings(threshold=threshold))
        line = timeline(given, found.favourites)
        w = without_number(given, found.favourites)
        assert line.end.max() * m <= given.duration[:, 0].sum() + (m - 1) * w, seed
        beta = ratios_of(given, threshold).sct_infinite
        assert beta is not None
        assert w <= float(beta) * found.solution.value * (1 + 1e-6), seed


def test_m_sct_stays_within_its_ratio_of_the_optimum() -> None:
    applied = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        given = assumed(rng, 5, int(rng.integers(2, 4)))
        best, ratio = optimum(given), ratios_of(given).m_sct
        if best is None or ratio is None:
            continue
        applied += 1
        found = po.solve(given, "m-sct", threshold=0.5)
        assert found.makespan is not None
        assert found.makespan <= ratio * best[0][0], seed
    assert applied > 20


def test_theorem_1_with_little_memory() -> None:
    """K / (K - 1) + (1 - K / ((K - 1) m)) beta times the optimum with the same memory, K from 1.5 to 2.8.

    K is the memory of all devices over that of all tasks. The optima are by brute force.
    """
    binding = 0
    for seed in range(14):
        rng = np.random.default_rng(seed)
        n, m = 5, 3
        sizes = rng.integers(1, int(rng.choice([3, 6])), n)
        room = -int(-sizes.sum() * int(rng.choice([15, 18, 28])) // (10 * m))
        given = assumed(rng, n, m, resident=sizes, capacity=np.full(m, max(room, int(sizes.max()))))
        best, ratio = optimum(given), ratios_of(given).m_sct
        assert best is not None
        assert ratio is not None
        free = po.solve(replace(given, capacity=np.full(m, int(sizes.sum()))), "m-sct", threshold=0.5).makespan
        for settings in ({}, {"closing": True}, {"released": True}):
            found = po.solve(given, "m-sct", threshold=0.5, **settings)
            assert found.feasible
            assert found.makespan is not None
            assert found.makespan <= ratio * best[0][0], (seed, settings)
            binding += found.makespan != free
    assert binding > 5


def test_theorem_1_fails_where_a_device_closes_before_it_is_full() -> None:
    """K = 30 / 18: d0 closes when t1 does not fit, d1 when t2 does not. All else runs on d2, although it needs nothing.

    The proof takes only devices without any byte left for full, at most 1.8 of these 3, and so at least 1.2 remain.
    """
    n = 200
    edges = [(0, 1), (1, 2), *((2, 3 + k) for k in range(n))]
    memory = {"resident": np.array([6] * 3 + [0] * n), "capacity": np.full(3, 10)}
    given = problem([1] * (3 + n), 3, edges, [1] * len(edges), **memory)
    closed, default = (po.solve(given, "m-sct", threshold=0.5, closing=each) for each in (True, False))
    assert (closed.makespan, default.makespan) == (205, 73)
    assert closed.stats["ratio_m_sct"] == pytest.approx(49 / 18)
    assert 205 / 73 > 49 / 18
    assert "makespan at most" not in closed.message


def test_no_ratio_is_claimed_where_memory_is_limited() -> None:
    """Ten tasks of 68 bytes find 33 taken on every device. After eight repairs all tasks are packed by memory: the 400
    others, which need none, go to one device. Theorem 1 states 4.2 times the optimum, which is at most 205."""
    m, small, big, other = 20, 20, 10, 400
    edges = [(i, small + i) for i in range(big)] + [(small + i % big, small + big + i) for i in range(other)]
    memory = {"resident": np.array([33] * small + [68] * big + [0] * other), "capacity": np.full(m, 100)}
    given = problem([1] * small + [2] * big + [10] * other, m, edges, [1] * len(edges), **memory)
    found = po.solve(given, "m-sct", threshold=0.5)
    assert found.makespan == 4004
    assert found.stats["ratio_m_sct"] < 4.2
    assert "makespan at most this multiple of the optimum" not in found.message
    assert "theorem 1 of Baechi 4.162 with threshold=0.5, if only full devices close" in found.message


@pytest.mark.parametrize("seed", range(4))
def test_m_sct_stays_within_its_ratio_of_proven_optima(seed: int) -> None:
    given = assumed(np.random.default_rng(1000 + seed), 9, 3)
    exact = po.solve(given, "cp-sat", time_limit=20)
    ratio = ratios_of(given).m_sct
    assert exact.termination is Termination.OPTIMAL
    assert ratio is not None
    assert exact.makespan is not None
    found = po.solve(given, "m-sct", threshold=0.5)
    assert found.makespan is not None
    assert exact.makespan <= found.makespan <= ratio * exact.makespan


@pytest.mark.parametrize("part", range(2))
def test_rules_are_kept_whatever_comes_together(part: int) -> None:
    for seed in range(40 * part, 40 * part + 40):
        given = small_problem(np.random.default_rng(seed), Objective(), times=seed % 2 == 1)
        found = po.solve(given, "m-sct")
        if found.schedule is None:
            assert found.message
        else:
            assert [broken for broken in found.violations if broken.rule != "deadline"] == []


def test_the_same_whatever_the_names_hash_to() -> None:
    import subprocess
    import sys

    program = (
        "import placeopt as po; from placeopt.generate.layered_graphs import layered_problem;"
        "p = layered_problem(60, 4, ccr=1.0); r = po.solve(p, 'm-sct');"
        "print(r.makespan, r.stats['favourite_pairs'], r.schedule.start.tolist())"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1] != ""


def test_numbers_of_m_sct() -> None:
    given = problem([5, 5, 5], 2, [(0, 1), (1, 2)], [5, 5])
    found = po.solve(given, "m-sct")
    assert found.makespan == 15
    assert found.stats["rho"] == 1
    assert found.stats["sct_assumption"] is True
    assert found.stats["lp_value"] == 15
    assert found.stats["favourite_pairs"] == [["t0", "t1"], ["t1", "t2"]]
    assert found.stats["ratio_sct"] == pytest.approx(float(Fraction(7, 3) - Fraction(2, 3)))
    assert found.stats["ratio_sct_at_threshold"] == pytest.approx(1 + 10 / 11)
    json.dumps(found.to_dict())
    assert "makespan at most this multiple of the optimum: ETF 2.5, SCT 1.909, m-SCT 1.909" in found.message
    assert "m-SCT 1.667 with threshold=0.5" in found.message


def test_sct_lp_places_chains_where_devices_are_enough() -> None:
    """A fork of two: one child stays, the other waits for its transfer on a device of its own."""
    given = problem([5, 9, 5], 2, [(0, 1), (0, 2)], [4, 4])
    found = po.solve(given, "sct-lp")
    assert found.termination is Termination.COMPLETED
    assert found.feasible
    assert found.makespan == 14
    assert found.bound == 14
    assert found.stats["chains"] == 2
    assert found.schedule is not None
    assert found.schedule.device.tolist() == [0, 0, 1]


def test_the_papers_ratio_needs_the_papers_threshold() -> None:
    """Forks whose long branch has x = 0.2 in the program: below 1/2, but not below Baechi's 0.1.

    Rounded at 0.1 nothing is a favourite, and the schedule is longer than 4/3 of the optimum, which SCT for an
    unlimited number of devices keeps to for rho = 1.
    """
    edges = [(0, 1), (0, 6), (1, 2), (1, 5), (2, 3), (2, 4)]
    given = problem([10, 10, 10, 10, 10, 19, 31], 7, edges, [10] * 6)
    proved, baechi = po.solve(given, "sct-lp", threshold=0.5), po.solve(given, "sct-lp")
    assert (proved.makespan, baechi.makespan) == (51, 70)
    assert baechi.stats["ratio_sct_infinite"] < 70 / 51
    assert baechi.stats["ratio_sct_infinite_at_threshold"] >= 70 / 51


def test_sct_lp_without_a_schedule_says_why() -> None:
    given = problem([5, 9, 5, 5], 2, [(0, 1), (0, 2), (0, 3)], [4, 4, 4])
    found = po.solve(given, "sct-lp")
    assert found.schedule is None
    assert found.termination is Termination.COMPLETED
    assert "favourites form 3 chains, which need a device each, and there are 2; m-sct makes one" in found.message
    assert SctLp().solve(given, Options(), SctLpSettings()).bound == 14
    unbound = SctLp().solve(given, Options(), SctLpSettings(certify=False))
    assert unbound.bound is None
    assert "bound_gap" not in unbound.stats


def test_whole_favourites_by_settings() -> None:
    given = problem([5, 9, 9], 3, [(0, 1), (0, 2)], [4, 4])
    relaxed_value = po.solve(given, "sct-lp").stats["lp_value"]
    whole = po.solve(given, "sct-lp", integral=True, time_limit=20)
    assert (relaxed_value, whole.stats["lp_value"]) == (pytest.approx(16), 18)
    assert whole.stats["lp_method"] == "cp-sat"
    assert whole.stats["favourites"] == 1
    assert makespan(given, whole.schedule) == 18 if whole.schedule is not None else False


def test_sct_lp_tells_deadlines_that_its_schedule_misses_and_why_it_has_none() -> None:
    case = small_problem(np.random.default_rng(57), Objective(), times=True)
    found = po.solve(case, "sct-lp")
    assert {violation.rule for violation in found.violations} == {"deadline"}
    assert "misses its deadline by" in found.message
    apart = problem([2, 3], 2, [(0, 1)], [1], separation=[(0, 1)])
    assert "no schedule: feasibility, memory, groups or separation prevent" in po.solve(apart, "sct-lp").message


def test_a_star_under_ports_is_placed_without_looking_at_every_pair_again_and_again() -> None:
    # One producer, and consumers whose data all leaves through its port: every placement holds up all that wait.
    n = 200
    case = problem([1] * n, 3, [(0, i) for i in range(1, n)], [5] * (n - 1), contention="port")
    for name in ("m-sct", "etf", "m-etf", "min-min", "flb"):
        found = po.solve(case, name)
        assert found.feasible
        assert found.objective is not None
        assert found.objective <= n
