"""Heuristics under the memory model `peak`: live memory along sequences, waits, evictions and packings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from placeopt_solvers._constructive.construction import construct_by_sum, run_heuristic, scarce_live_memory
from placeopt_solvers._constructive.groups import Groups, grouped, with_homes, without_memory
from placeopt_solvers._constructive.live_memory import missing_bytes, own_tasks, packed, room_made, with_waits
from placeopt_solvers._constructive.profiles import WORDS, Live, make_live, reserved, total_peak
from placeopt_solvers._constructive.sequences import insert_tasks

import placeopt as po
from placeopt import engine
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.memory import peak_memory
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, arrivals, durations, makespan
from placeopt.protocol import Options, Termination
from placeopt.protocol.registry import find_solver
from placeopt.verifier import verify

LISTS = (
    "bil", "cpop", "dsc", "duplex", "etf", "fcp", "flb", "gdl", "hbmct", "heft", "heuristic-g", "lc", "lookahead-heft",
    "m-etf", "m-sct", "m-topo", "max-min", "mct", "met", "min-min", "olb", "peft", "simple-placer", "sufferage",
    "topo-fill", "wba",
)  # fmt: skip
FUSION = ("celeritas", "order-place")


def problem(durations: list[list[int]], edges: Sequence[tuple[int, int]] = (), **rest: Any) -> Problem:
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(len(durations[0]))],
        duration=np.array(durations),
        edges=edges,
        memory_model="peak",
        **rest,
    )


def drawn(seed: int, most: int = 12) -> Problem:
    """A random problem with little memory."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, most)), int(rng.integers(1, 4))
    edges = [(a, b) for b in range(n) for a in range(b) if rng.random() < 2 / n]
    feasible = rng.random((n, m)) < 0.9
    feasible[np.arange(n), rng.integers(0, m, n)] = True
    held = {name: rng.integers(0, rng.choice([1, 4, 7]), n) for name in ("resident", "output", "scratch")}
    together = rng.random() < 0.4
    share = rng.uniform(0.3, 1.1) / m
    return problem(
        np.where(feasible, rng.integers(rng.integers(0, 2), 6, (n, m)), 0).tolist(),
        edges,
        feasible=feasible,
        payload=rng.integers(0, 9, len(edges)),
        latency=rng.integers(0, 4, (m, m)) * (1 - np.eye(m, dtype=np.int64)),
        byte_ticks_num=1 - np.eye(m, dtype=np.int64),
        byte_ticks_den=np.full((m, m), 2),
        capacity=np.maximum((sum(held.values()).sum() * rng.uniform(0.7, 1.3, m) * share).astype(np.int64), 1),
        release=rng.integers(0, rng.choice([1, 9]), n),
        contention=str(rng.choice(["none", "port"])),
        group=np.minimum(np.arange(n), rng.integers(0, n, n)) if together else None,
        separation=[] if together or rng.random() < 0.7 else [(0, n - 1)],
        **held,
    )


def lists_and_fits(case: Problem, found: Schedule, placed: list[int], i: int, start: int) -> bool:
    """Whether task i can start on its device after the placed ones, by bytes at each tick.

    Outputs with consumers that are not placed are never freed, unless these are on other devices and there are no
    ports.
    """
    device = found.device
    begin, ticks, there = found.start.copy(), durations(case, device), arrivals(case, found)
    begin[i] = start
    end = begin + ticks
    used: dict[int, int] = {}
    known = {*placed, i}
    for u in known:
        if device[u] != device[i]:
            continue
        freed: float = end[u]
        for e in np.flatnonzero(case.edge_source == u).tolist():
            j = int(case.edge_target[e])
            if device[j] != device[u] and (j in placed or case.contention == "none"):
                own = end[u] + case.transfer(case.payload, device[u], device[j])[e]
                freed = max(freed, there[e] if case.contention == "port" else own)
            else:
                freed = max(freed, end[j]) if j in known else np.inf
        if begin[u] <= start < end[u]:
            used[u] = used.get(u, 0) + int(case.scratch[u])
        if begin[u] <= start < freed:
            used[u] = used.get(u, 0) + int(case.output[u])
    # A task of no duration still needs its memory at its start.
    own_bytes = int(case.output[i] + case.scratch[i])
    others = sum(bytes_ for u, bytes_ in used.items() if u != i)
    return others + own_bytes + int(case.resident[device == device[i]].sum()) <= case.capacity[device[i]]


@pytest.mark.parametrize("seed", range(40))
def test_waits_are_as_short_as_memory_allows(seed: int) -> None:
    case = drawn(seed)
    rng = np.random.default_rng(seed)
    home = np.array([rng.choice(np.flatnonzero(each)) for each in case.group_feasible()] or [0])
    device = home[case.group]
    if (case.group_feasible().sum(axis=1) == 0).any():
        return
    found = with_waits(case, device, case.order)
    if found is None:
        return
    schedule = found.schedule
    assert (peak_memory(case, schedule) <= case.capacity).all()
    assert {violation.rule.value for violation in verify(case, schedule).violations} <= {"separation", "deadline"}
    placed: list[int] = []
    waits = 0
    for i in case.order.tolist():
        same = [u for u in placed if device[u] == device[i]]
        ends = schedule.start + durations(case, device)
        inputs = np.flatnonzero(case.edge_target == i)
        ready = max([int(case.release[i]), *ends[same].tolist(), *arrivals(case, schedule)[inputs].tolist()])
        starts = [t for t in range(ready, int(schedule.start[i]) + 1) if lists_and_fits(case, schedule, placed, i, t)]
        assert starts[:1] == [schedule.start[i]]
        waits += int(schedule.start[i] > ready)
        placed.append(i)
    assert found.waits == waits


def test_a_task_waits_until_memory_is_free() -> None:
    # d0 holds 4: t0's output until it has arrived on d1 at 1 + 3. t1 has room only then.
    case = problem(
        [[1, 9], [1, 9], [9, 1]], [(0, 2)], payload=[3], output=[3, 2, 0], capacity=[4, 9],
        byte_ticks_num=[[0, 1], [1, 0]], byte_ticks_den=[[1, 1], [1, 1]],
    )  # fmt: skip
    found = with_waits(case, np.array([0, 0, 1]), case.order)
    assert found is not None
    assert (found.schedule.start.tolist(), found.waits) == ([0, 4, 4], 1)


def test_no_schedule_if_nothing_is_freed() -> None:
    # t1 holds what t2 needs, and t0's output is needed by t2: in this sequence nothing is ever freed.
    case = problem([[1], [1], [1]], [(0, 2), (1, 2)], output=[2, 2, 2], capacity=[5])
    assert with_waits(case, np.zeros(3, dtype=np.int64), case.order) is None


def line_of(case: Problem, live: Live, home: Int, room: int) -> engine.Timeline:
    """A timeline with these homes (g,), and this many bytes on each device."""
    free = without_memory(case)
    return engine.Timeline(native(case), replace(free, home=home, room=np.full(case.n_devices, room), live=live))


def peaks_on(case: Problem, live: Live, home: Int) -> Int:
    """The most bytes that the groups with these homes (g,) hold on each device at one position."""
    return line_of(case, live, home, 0).trees[:, 1]


def bytes_at(live: Live, g: int, leaf: int) -> int:
    """What a group holds at a leaf, without its resident bytes."""
    rows = range(live.row[g], live.row[g + 1])
    held = sum(live.output[row] for row in rows if live.first[row] <= leaf <= live.last[row])
    return int(held + sum(live.scratch[row] for row in rows if live.first[row] == leaf))


def plain_peak(live: Live, home: Int) -> int:
    """The most bytes on the first device, position by position."""
    groups = np.flatnonzero(home == 0).tolist()
    return max(sum(bytes_at(live, g, leaf) for g in groups) for leaf in range(live.leaves))


@pytest.mark.parametrize("seed", range(30))
def test_a_profile_that_fits_always_has_a_schedule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = drawn(seed, 20)
    if (case.group_feasible().sum(axis=1) == 0).any():
        return
    home = np.array([rng.choice(np.flatnonzero(each)) for each in case.group_feasible()])
    live = own_tasks(case).live(case.n_groups, case.order)
    peaks = peaks_on(case, live, home)
    room = case.capacity.copy()
    np.subtract.at(room, home[case.group], case.resident)
    if (peaks <= room).all():
        assert with_waits(case, home[case.group], case.order) is not None


@pytest.mark.parametrize("seed", range(20))
def test_room_for_a_group_is_room_at_every_position(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = drawn(seed, 16)
    live = own_tasks(case).live(case.n_groups, case.order)
    home = np.where(rng.random(case.n_groups) < 0.5, 0, -1)
    for g in np.flatnonzero(home < 0).tolist():
        task = int(np.flatnonzero(case.group == g)[0])
        alone, both = (np.where(np.arange(case.n_groups) == g, 0, each) for each in (-1, home))
        least, most = int(peaks_on(case, live, home)[0]), int(peaks_on(case, live, both)[0])
        assert most == plain_peak(live, both)
        for room in range(least, most + 2):
            assert line_of(case, live, home, room).can_run(task, 0) == (most <= room)
        assert live.peak[g] == peaks_on(case, live, alone)[0]


def test_neighbouring_positions_share_a_leaf_where_there_are_too_many() -> None:
    n = 16
    nothing = np.zeros(0, dtype=np.int64)
    given = np.arange(n), n, np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64), nothing, nothing, np.arange(n)
    assert make_live(*given, m=1).leaves == n
    coarse = make_live(*given, m=WORDS // 8)
    assert coarse.leaves == 4
    assert total_peak(coarse) == 4  # counted as held at once


@pytest.mark.parametrize("seed", [1, 2, 3, 6, 7, 9])
def test_all_heuristics_keep_live_memory_and_gain_from_it(seed: int) -> None:
    case = drawn(seed)
    for name in LISTS:
        solver = find_solver(name)
        answer = solver.solve(case, Options(), solver.settings_type())
        as_sum = solver.solve(replace(case, memory_model="sum"), Options(), solver.settings_type())
        if answer.schedule is None:
            assert answer.termination is Termination.FAILED
            assert as_sum.schedule is None
            assert answer.message
            continue
        assert verify(case, answer.schedule).feasible, name
        if as_sum.schedule is not None:
            assert makespan(case, answer.schedule) <= makespan(case, as_sum.schedule), name
    for name in FUSION:
        solver = find_solver(name)
        answer = solver.solve(case, Options(), solver.settings_type())
        assert answer.schedule is None or verify(case, answer.schedule).feasible or "best effort" in answer.message


def in_order(case: Problem) -> Any:
    return lambda groups: insert_tasks(case, groups, case.order)


def test_memory_that_is_free_again_is_used() -> None:
    # A chain of outputs of 2 on one device of 4: at most two are live, six at once would need 12.
    case = problem([[1]] * 6, [(i, i + 1) for i in range(5)], output=[2] * 6, capacity=[4])
    answer = run_heuristic(case, in_order(case))
    assert answer.schedule is not None
    assert answer.schedule.start.tolist() == list(range(6))
    assert answer.message == ""
    assert construct_by_sum(case, in_order(case)).schedule is None


def test_the_shorter_schedule_of_both_ways_is_returned() -> None:
    # m-topo fills d0 with all by live memory, but only with half under `sum`: in parallel, which is shorter.
    case = problem([[4, 4]] * 4, output=[1, 1, 1, 1], capacity=[2, 2])
    assert makespan(case, fill_alone(case)) == 16
    result = po.solve(case, "topo-fill")
    assert result.objective == 8


def fill_alone(case: Problem) -> Schedule:
    found = with_waits(case, np.zeros(case.n_tasks, dtype=np.int64), case.order)
    assert found is not None
    return found.schedule


def test_without_scarce_memory_nothing_changes() -> None:
    roomy = problem([[1, 1]] * 2, output=[1, 1], capacity=[2, 2])
    assert not scarce_live_memory(roomy)
    assert scarce_live_memory(problem([[1, 1]] * 2, output=[1, 1], capacity=[2, 1]))


def live_groups(case: Problem, sequence: Int) -> Groups:
    tasks = own_tasks(case)
    bare = grouped(case, tasks.resident(case.n_groups))
    return Groups(
        bare.memory, bare.feasible, bare.apart_start, bare.apart, bare.home, bare.room, bare.stuck,
        tasks.live(case.n_groups, sequence),
    )  # fmt: skip


def test_groups_leave_where_too_much_is_live() -> None:
    # t0 and t1 are live together and fill d0; t2 is live with t1 only. So t2 finds room if t1 leaves, not if t0 does.
    case = problem(
        [[1, 9], [1, 9], [1, 9], [1, 9]], [(0, 1), (1, 2), (2, 3)], output=[1, 3, 2, 1], capacity=[4, 3],
        feasible=np.array([[1, 1], [1, 1], [1, 0], [1, 1]], dtype=np.bool_),
    )  # fmt: skip
    groups = live_groups(case, case.order)
    free = Groups(**{name: getattr(groups, name) for name in Groups.__slots__} | {"home": np.full(4, -1)})
    line = engine.Timeline(native(case), with_homes(free, np.array([0, 0, -1, -1])))
    assert missing_bytes(case, free, line, 2).tolist() == [1, 0]
    home = room_made(case, free, line, 2)
    assert home is not None
    assert home.tolist() == [0, 1, 0, -1]
    assert line.home.tolist() == [0, 0, -1, -1]


@pytest.mark.parametrize("seed", range(25))
def test_packings_and_evictions_keep_all_rules(seed: int) -> None:
    case = drawn(seed, 16)
    groups = live_groups(case, case.order)
    if groups.stuck is not None:
        return
    for home in packed(case, groups, case.order, groups.home):
        assert groups.feasible[np.arange(case.n_groups), home].all()
        assert (home[case.group][case.separation[:, 0]] != home[case.group][case.separation[:, 1]]).all()
        if (groups.room >= peaks_on(case, groups.live, groups.home)).all():
            found = with_waits(case, home[case.group], case.order)
            assert found is not None
            assert verify(case, found.schedule).feasible


LIVE = (
    "(counted as live memory in the order of the schedule); the solver cp-sat can decide whether there is a placement"
)


def test_the_message_names_what_is_missing() -> None:
    case = problem([[1], [1], [1]], [(0, 2), (1, 2)], output=[2, 2, 2], capacity=[5])
    assert run_heuristic(case, in_order(case)).message == f"d0 lacks 1 B for tasks that can run only there {LIVE}"
    case = problem([[1, 1]] * 3, [(0, 2), (1, 2)], output=[2, 2, 3], capacity=[3, 3])
    needs = "which takes 3 B: it would need 2 B more on d0, 2 B more on d1"
    assert run_heuristic(case, in_order(case)).message == f"no device left for t2, {needs} {LIVE}"
    case = problem([[1, 1]] * 2, resident=[2, 3], capacity=[2, 2])
    needs = "which takes 3 B: it would need 1 B more on d0, 1 B more on d1"
    assert run_heuristic(case, in_order(case)).message == f"no device left for t1, {needs} {LIVE}"


def test_the_batch_of_celeritas_fits() -> None:
    document = model_document("inception_v3", training=True, batch=512) | network_document("v100x4")
    case = po.compile(document | {"memory_model": "peak"})
    assert case.memory.sum() > case.capacity.sum()
    for name in ("m-topo", "m-etf", "celeritas"):
        solver = find_solver(name)
        schedule = solver.solve(case, Options(), solver.settings_type()).schedule
        assert schedule is not None
        assert verify(case, schedule).feasible


def test_a_group_that_reserves_memory_holds_its_largest_output_and_scratch_between_its_tasks() -> None:
    for seed in range(30):
        case = drawn(seed)
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 3, case.n_tasks)
        given = (group, 3, case.output, case.scratch, case.edge_source, case.edge_target, case.order)
        live = make_live(*given, m=1)
        wider = reserved(live, group, case.order)
        position = np.argsort(case.order)
        for k in range(3):
            own = group == k
            held = [bytes_at(live, k, leaf) for leaf in range(case.n_tasks)]
            if own.any():
                amount = int(case.output[own].max() + case.scratch[own].max())
                low, high = int(position[own].min()), int(position[own].max())
                held = [max(each, amount) if low <= p <= high else each for p, each in enumerate(held)]
            assert [bytes_at(wider, k, leaf) for leaf in range(case.n_tasks)] == held, (seed, k)
            assert wider.peak[k] == max(held)


@pytest.mark.parametrize(("reserve", "device", "end"), [(False, [0, 0, 0, 0], 4), (True, [0, 0, 1, 0], 22)])
@pytest.mark.parametrize("name", ["m-etf", "m-sct"])
def test_reserved_memory_is_not_for_other_groups(name: str, reserve: bool, device: list[int], end: int) -> None:
    """t0 and t3 are one group. t0's output is freed before t2 runs, unless it stays reserved until t3 has run."""
    case = problem(
        [[1, 1]] * 4,
        [(0, 1), (1, 2), (2, 3)],
        payload=[9] * 3,
        byte_ticks_num=1 - np.eye(2, dtype=np.int64),
        group=[0, 1, 2, 0],
        output=[4, 0, 0, 1],
        scratch=[0, 0, 5, 0],
        capacity=[6, 6],
    )
    found = po.solve(case, name, reserve=reserve, passes=[])
    assert found.feasible
    assert found.schedule is not None
    assert (found.schedule.device.tolist(), found.makespan) == (device, end)
