"""Dynamic lists choose what their definitions say, and keep memory, groups, separation and release times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers._constructive.construction import PartialSchedule, filled
from placeopt_solvers._constructive.groups import Groups, grouped
from placeopt_solvers._constructive.priorities import ready_order
from placeopt_solvers._constructive.timeline import schedule_of
from placeopt_solvers.ready_lists._pairs import (
    ReadySettings,
    StartSettings,
    detours,
    schedule_neediest,
    schedule_pairs,
)
from plain_lists import Reference, by_end, by_gap, by_latest_end, problem, random_problem

import placeopt as po
from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.levels import bottom_levels, static_levels
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import makespan
from placeopt.protocol import Answer, Options, Termination
from placeopt.protocol.registry import find_solver
from placeopt.verifier import verify

Key = tuple[int, ...]


def answer(case: Problem, name: str, **settings: Any) -> Answer:
    solver = find_solver(name)
    return solver.solve(case, Options(), solver.settings_type(**settings))


def solved(case: Problem, name: str, **settings: Any) -> tuple[list[int], list[int]]:
    found = answer(case, name, **settings)
    assert found.schedule is not None, found.message
    return found.schedule.device.tolist(), found.schedule.start.tolist()


def by_start(state: Reference) -> tuple[int, int]:
    return min(state.pairs(), key=lambda pair: (state.effective(*pair), *pair))


def by_start_and_level(state: Reference) -> tuple[int, int]:
    level = np.rint(static_levels(state.case) * 1000).astype(int).tolist()
    return min(state.pairs(), key=lambda pair: (state.effective(*pair), -level[pair[0]], *pair))


def levels(case: Problem) -> list[int]:
    return [int(level) for level in np.rint(bottom_levels(case) * 1000)]


def by_level_on_two_devices(state: Reference) -> tuple[int, int]:
    level = levels(state.case)
    i = min((i for i in state.ready() if state.devices(i)), key=lambda i: (-level[i], i))
    devices = state.devices(i)
    idle = min(devices, key=lambda d: (state.free[d] + int(state.duration[i][d]), d))
    _, enabling = state.last_message(i)
    if enabling in devices and state.finish(i, enabling) <= state.finish(i, idle):
        return i, enabling
    return i, idle


def by_type(state: Reference) -> tuple[int, int]:
    """FLB on like devices without limits; and its theorem 3: no ready task could start earlier."""
    level = levels(state.case)
    last = {i: state.last_message(i) for i in state.ready()}
    typed = [(i, d) for i, (tick, d) in last.items() if d >= 0 and tick >= state.free[d]]
    idle = min(range(state.case.n_devices), key=lambda d: (state.free[d], d))
    others = [i for i in last if i not in dict(typed)]
    first = min(typed, key=lambda pair: (state.begin(*pair), -level[pair[0]], *pair), default=None)
    second = min(((i, idle) for i in others), key=lambda pair: (last[pair[0]][0], -level[pair[0]], *pair), default=None)
    ways = [pair for pair in (second, first) if pair is not None]
    choice = min(ways, key=lambda pair: state.begin(*pair))
    assert state.begin(*choice) == min(state.begin(*pair) for pair in state.pairs())
    return choice


def by_index(case: Problem) -> Int:
    return np.arange(case.n_tasks)


def earliest_start(case: Problem, groups: Groups) -> PartialSchedule:
    return schedule_pairs(case, groups, by_index(case), detours(case, StartSettings()))


def earliest_end(case: Problem, groups: Groups) -> PartialSchedule:
    return schedule_pairs(case, groups, by_index(case), case.duration, batches=True, insertion=True)


def latest(case: Problem, groups: Groups) -> PartialSchedule:
    return schedule_neediest(case, groups, ReadySettings(), by_gap=False)


def widest_gap(case: Problem, groups: Groups) -> PartialSchedule:
    return schedule_neediest(case, groups, ReadySettings(), by_gap=True)


def fcp(case: Problem, groups: Groups) -> PartialSchedule:
    sequence = ready_order(case, -by_index(case).astype(np.float64))
    return filled(case, groups, engine.place_on_two, sequence, detours(case, StartSettings()), insertion=False)


def flb(case: Problem, groups: Groups) -> PartialSchedule:
    return filled(case, groups, engine.place_by_type, by_index(case), detours(case, StartSettings()), insertion=False)


RULES: dict[str, Callable[[Reference], tuple[int, int]]] = {
    "etf": by_start_and_level,
    "m-etf": by_start,
    "min-min": by_end,
    "max-min": by_latest_end,
    "sufferage": by_gap,
    "fcp": by_level_on_two_devices,
}
NAMES = (*RULES, "flb", "duplex")
FOR_INDEPENDENT = ("min-min", "max-min", "sufferage")


def variants(name: str) -> list[dict[str, bool]]:
    """The settings of a heuristic that choose whether gaps are used, and whether ready tasks come in batches."""
    if name not in FOR_INDEPENDENT:
        return [{}]
    return [{"insertion": gaps, "batches": batches} for gaps in (False, True) for batches in (False, True)]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("like", [True, False])
def test_the_choices_are_those_of_the_definition(name: str, like: bool) -> None:
    for seed in range(30):
        case = random_problem(seed, like=like)
        for settings in variants(name):
            assert solved(case, name, **settings) == Reference(case, **settings).run(RULES[name]), (seed, settings)


@pytest.mark.parametrize("name", RULES)
def test_the_choices_are_those_of_the_definition_beside_memory_groups_and_release_times(name: str) -> None:
    compared = 0
    for seed in range(45):
        case = random_problem(seed, like=False, tight=True)
        if (case.group_feasible().sum(axis=1) < 2).any():
            continue  # what can go to one device only has its memory reserved; the definition knows nothing of that
        for settings in variants(name):
            expected = Reference(case, **settings).run(RULES[name])
            if expected is not None:
                compared += 1
                assert solved(case, name, **settings) == expected, (seed, settings)
    assert compared > 15 * len(variants(name))


def test_flb_chooses_by_definition_and_as_early_as_etf_on_like_devices() -> None:
    for seed in range(50):
        case = random_problem(seed, like=True)
        assert solved(case, "flb") == Reference(case).run(by_type), seed


def test_duplex_is_the_better_of_two() -> None:
    won = set()
    for seed in range(40):
        case = random_problem(seed, like=False)
        ends = [makespan(case, answer(case, name).schedule) for name in ("min-min", "max-min", "duplex")]  # type: ignore[arg-type]
        assert ends[2] == min(ends)
        won.add(ends.index(ends[2]))
    assert won == {0, 1}


@pytest.mark.parametrize("name", NAMES)
def test_never_better_than_the_optimum_and_always_feasible_but_for_deadlines(name: str) -> None:
    for seed in range(16):
        for times in (False, True):
            case = small_problem(np.random.default_rng(seed), Objective(), times=times)
            best = optimum(case)
            result = po.solve(case, name)
            if result.schedule is None:
                assert result.termination is (Termination.FAILED if best is not None else Termination.INFEASIBLE)
            elif result.feasible:
                assert best is not None
                assert result.objective is not None
                assert result.objective >= best[0][0]
            else:
                assert times
                assert {violation.rule for violation in result.violations} == {"deadline"}


def small_like(seed: int) -> Problem:
    """Up to five tasks on two or three devices all alike, with one kind of link: of what ETF's theorem tells."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    edges = [(a, b) for b in range(n) for a in range(b) if rng.random() < 0.4]
    ticks = np.repeat(rng.integers(1, 6, (n, 1)), m, axis=1)
    return problem(ticks.tolist(), edges, payload=rng.integers(0, 6, len(edges)))


@pytest.mark.parametrize("name", ["etf", "m-etf"])
def test_the_theorem_of_etf_holds(name: str) -> None:
    """Hwang et al. 1989: makespan <= (2 - 1/m) optimum without transfers + C; C is at most the dearest chain's."""
    for seed in range(25):
        case = small_like(seed)
        free = replace(case, byte_ticks_num=np.zeros_like(case.byte_ticks_num))
        best = optimum(free)
        assert best is not None
        dearest = [0] * case.n_tasks
        for i in reversed(range(case.n_tasks)):
            for e in np.flatnonzero(case.edge_source == i).tolist():
                dearest[i] = max(dearest[i], int(case.payload[e]) + dearest[case.edge_target[e]])
        found = po.solve(case, name)
        assert found.objective is not None
        m = case.n_devices
        assert found.objective * m <= (2 * m - 1) * best[0][0] + m * max(dearest), seed


def test_baechi_s_ratio_holds() -> None:
    """Jeon et al. 2020, section 2.3: 2 + rho - 1/m times the optimum, rho the longest transfer by the shortest task."""
    for seed in range(25):
        case = small_like(seed)
        best = optimum(case)
        found = po.solve(case, "m-etf")
        assert best is not None
        assert found.objective is not None
        rho = Fraction(int(case.payload.max(initial=0)), int(case.duration.min()))
        assert found.objective <= (2 + rho - Fraction(1, case.n_devices)) * best[0][0], seed


@pytest.mark.parametrize(
    ("case", "longest", "least"),
    [
        # Both long tasks could start at 2 where the short one ran: the one bound to that device loses the tie.
        (problem([[2] * 3, [16] * 3, [16] * 3], [(0, 1)], group=np.array([0, 1, 0])), 34, 18),
        # The last task must not be where the short one ran, and so waits for the first.
        (problem([[8] * 2, [1] * 2, [8] * 2], [(1, 2)], separation=[(1, 2)]), 16, 9),
    ],
    ids=["groups", "separation"],
)
@pytest.mark.parametrize("name", ["etf", "m-etf", "flb"])
def test_the_ratio_is_not_for_groups_and_separation(name: str, case: Problem, longest: int, least: int) -> None:
    """Without transfers it is 2 - 1/m; the guarantees leave out what breaks it."""
    best, m = optimum(case), case.n_devices
    assert best is not None
    assert (po.solve(case, name).objective, best[0][0]) == (longest, least)
    assert longest * m > (2 * m - 1) * least


def test_ties_of_etf_go_by_static_level_and_those_of_m_etf_by_index() -> None:
    # All three can start at 0; t1 has the longest way to the exit: 2 + 3 against 4 and 1.
    case = problem([[4], [2], [1], [3]], [(1, 3)])
    assert solved(case, "etf") == ([0] * 4, [2, 0, 9, 6])
    assert solved(case, "m-etf") == ([0] * 4, [0, 4, 6, 7])


def test_three_orders_of_three_independent_tasks() -> None:
    durations = [[2, 4], [3, 9], [8, 9]]
    # Least earliest end first: t0 ends at 2 on d0, then t1 at 5 on d0, then t2 at 9 on d1.
    assert solved(problem(durations), "min-min") == ([0, 0, 1], [0, 2, 0])
    # Greatest earliest end first: t2 at 8 on d0; then t1 at 9 on d1 before t0, which ended at 4 there; t0 at 10 on d0.
    assert solved(problem(durations), "max-min") == ([0, 1, 0], [8, 0, 0])
    # Most to lose first: t1 has 9 - 3; then t2 with 11 - 9 goes to d1 before t0 with 5 - 4; t0 is left with d0.
    assert solved(problem(durations), "sufferage") == ([0, 0, 1], [3, 0, 0])
    # Min-min ends at 9, max-min at 10.
    assert solved(problem(durations), "duplex") == ([0, 0, 1], [0, 2, 0])


@pytest.mark.parametrize("name", ["fcp", "flb"])
def test_two_candidates_are_enough(name: str) -> None:
    # By level t0 goes first, to d0 in [0, 2). t3 takes d1, idle at 0; t1 stays on d0, its enabling device, [2, 5).
    # The data of t2 can be anywhere by 3, before d0 is free, so it goes to the device idle first: d1 at 3.
    case = problem([[2, 2], [3, 3], [2, 2], [3, 3]], [(0, 1), (0, 2)], payload=[1, 1])
    assert solved(case, name) == ([0, 0, 1, 1], [0, 2, 3, 0])


def test_fcp_goes_by_level_where_flb_goes_by_start() -> None:
    # Levels: t0 16, t1 9, t2 4, t3 3. The data of t1 would be on d1 only at 7.
    case = problem([[2, 2], [9, 9], [4, 4], [3, 3]], [(0, 1)], payload=[5])
    # FCP: t0 d0 [0, 2), t1 d0 [2, 11), t2 d1 [0, 4), t3 d1 [4, 7).
    assert solved(case, "fcp") == ([0, 0, 1, 1], [0, 2, 0, 4])
    # FLB: t0 d0 [0, 2), t2 d1 [0, 4); then both t1, of EP type, and t3, which is not, could start on d0 at 2: t3 does.
    assert solved(case, "flb") == ([0, 0, 1, 0], [0, 5, 0, 2])


@pytest.mark.parametrize("name", ["fcp", "flb"])
def test_a_full_enabling_device_is_passed_over(name: str) -> None:
    # t1 would stay on d0 with t0, which leaves it 1 of the 2 bytes that it needs.
    case = problem([[2, 2], [3, 3]], [(0, 1)], payload=[4], resident=[3, 2], capacity=[4, 4])
    assert solved(case, name) == ([0, 1], [0, 6])


@pytest.mark.parametrize("name", ["fcp", "flb"])
def test_a_task_whose_group_has_its_home_waits_for_it(name: str) -> None:
    # t0 puts its group on d0; t2 needs data from d1, where it would start at 3, and may not stay there.
    feasible = np.array([[1, 1], [0, 1], [1, 1]], dtype=np.bool_)
    case = problem([[5, 5], [3, 3], [1, 1]], [(1, 2)], payload=[1], group=[0, 1, 0], feasible=feasible)
    assert solved(case, name) == ([0, 1, 0], [0, 0, 5])


def test_flb_sets_a_task_loose_whose_enabling_device_has_filled_up() -> None:
    # t1 and t2 could both start on d0 at 2, where t0 was, and only t1 fits; t2's data is on d1 at 6.
    case = problem([[2, 2], [3, 3], [3, 3]], [(0, 1), (0, 2)], payload=[4, 4], resident=[1, 2, 2], capacity=[3, 9])
    assert solved(case, "flb") == ([0, 0, 1], [0, 2, 6])
    assert answer(case, "flb").message == ""
    # t2 waits for t3's data, on d0 at 5, when t1 takes the room at 2; t0's data is on d1 at 11.
    case = problem(
        [[2, 2], [1, 1], [1, 1], [4, 4]],
        [(0, 1), (0, 2), (3, 2)],
        payload=[9, 9, 1],
        resident=[1, 2, 2, 0],
        capacity=[3, 9],
    )
    assert solved(case, "flb") == ([0, 0, 1, 1], [0, 2, 11, 0])
    assert answer(case, "flb").message == ""


def test_flb_queues_a_loose_task_for_the_home_that_its_group_gets() -> None:
    # Both are ready at 0 and bound to no device; t0 goes to d0 and takes t1 along.
    case = problem([[5, 5], [3, 3]], group=[0, 0])
    assert solved(case, "flb") == ([0, 0], [0, 5])
    assert answer(case, "flb").message == ""


@pytest.mark.parametrize("build", [earliest_start, earliest_end, latest, widest_gap, fcp, flb])
def test_what_is_built_under_port_contention_waits_for_its_ports(
    build: Callable[[Problem, Groups], PartialSchedule],
) -> None:
    for seed in range(15):
        case = replace(random_problem(seed, like=seed % 2 == 0), contention="port")
        line = build(case, grouped(case)).line
        assert verify(case, schedule_of(case, line)).feasible


@pytest.mark.parametrize("name", NAMES)
def test_schedules_keep_every_rule_where_memory_is_scarce(name: str) -> None:
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(6, 30)), int(rng.integers(2, 5))
        sizes = rng.integers(0, 9, n)
        edges = [(a, b) for b in range(n) for a in range(b) if rng.random() < 0.15]
        case = problem(
            rng.integers(0, 9, (n, m)).tolist(),
            edges,
            payload=rng.integers(0, 9, len(edges)),
            resident=sizes,
            capacity=np.full(m, int(sizes.sum() * 1.15) // m + 1),
            feasible=rng.random((n, m)) < 0.9,
            separation=[(int(a), int(b)) for a, b in rng.integers(0, n, (3, 2)) if a != b],
            group=np.where(rng.random(n) < 0.2, 0, np.arange(n)),
            release=rng.integers(0, 20, n),
            contention="port" if seed % 2 else "none",
        )
        result = po.solve(case, name)
        if result.schedule is not None:
            found += 1
            assert result.feasible, [violation.message for violation in result.violations]
        else:
            assert result.termination in (Termination.FAILED, Termination.INFEASIBLE)
            assert result.message
    assert found > 8


def test_a_device_without_room_leaves_the_queue() -> None:
    # t0 and t1 start at 0 on d0 and d1. t2 could start at 1 on d0, which is full; at 2 on d1 it fits.
    case = problem([[1, 1], [2, 2], [1, 1]], resident=[3, 1, 2], capacity=[4, 4])
    assert solved(case, "m-etf") == ([0, 1, 1], [0, 0, 2])


def test_the_first_of_a_group_decides_and_the_rest_queues_there_alone() -> None:
    # t0 goes to d0 and with it t2, which would have found d1 idle at 1.
    case = problem([[3, 3], [1, 1], [1, 1]], group=[0, 1, 0])
    assert solved(case, "m-etf") == ([0, 1, 0], [0, 0, 3])


def test_a_dead_end_is_left_by_making_room() -> None:
    # One task of 2 bytes starts on each device at 0, and then none has 4 left for the third.
    case = problem([[1, 1]] * 3, resident=[2, 2, 4], capacity=[4, 4])
    found = answer(case, "m-etf")
    assert found.schedule is not None
    assert found.schedule.device.tolist() in ([0, 0, 1], [1, 1, 0])
    assert "moved to make room" in found.message


def test_ports_hold_up_what_is_in_the_queue() -> None:
    # t0's data leaves for d1 in [1, 4) and for d2 in [4, 7). That t2 could have started at 4 is what the queue knows at
    # first; as it cannot before 7, t3, released at 5, goes first.
    only = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=np.bool_)
    release = [0, 0, 0, 5]
    ticks = [[1] * 3, [1] * 3, [1] * 3, [2] * 3]
    case = problem(ticks, [(0, 1), (0, 2)], payload=[3, 3], contention="port", feasible=only, release=release)
    assert solved(case, "m-etf") == ([0, 1, 2, 2], [0, 4, 7, 5])
    result = po.solve(case, "m-etf")
    assert (result.objective, result.feasible) == (8, True)


@pytest.mark.parametrize("name", ["etf", "m-etf", "m-sct", "fcp", "flb"])
def test_a_slower_device_counts_as_one_that_starts_that_much_later(name: str) -> None:
    # d1 is free at once, but takes 7 ticks longer: worth it for the fifth task only, which d0 could not start before 8.
    assert solved(problem([[2, 9]] * 4), name) == ([0, 0, 0, 0], [0, 2, 4, 6])
    devices, starts = solved(problem([[2, 9]] * 5), name)
    assert sorted(zip(devices, starts, strict=True)) == [(0, 0), (0, 2), (0, 4), (0, 6), (1, 0)]
    published = po.solve(problem([[2, 9]] * 2), name, detour=False)
    assert published.objective == 9


def test_flb_queues_a_task_twice_for_one_device() -> None:
    # The five inner tasks are of EP type on device 0, lose that type, and then get device 0 as the home of their group.
    inner = range(1, 6)
    case = build_problem(
        task_names="abcdefg", device_names="xy", duration=np.repeat([[6], [4], [5], [7], [4], [4], [1]], 2, axis=1),
        edges=[(0, i) for i in inner] + [(i, 6) for i in inner], payload=[0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        byte_ticks_num=np.ones((2, 2)), group=[0, 1, 1, 1, 1, 1, 1],
    )  # fmt: skip
    device, start = solved(case, "flb")
    assert (device, start) == ([0] * 7, [0, 18, 13, 6, 22, 26, 30])
