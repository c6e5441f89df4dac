"""Simulation, re-timing and noise: worked examples, then random graphs against a plain event simulator."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
import reference_simulation as reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from link_lanes import lanes, random_links

from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Contention, Objective, Problem, Term
from placeopt.model.schedule import Schedule, Transfers, arrivals, durations, edge_ticks, edge_transfers, makespan
from placeopt.simulation import make_evaluator, retime, simulate, simulate_noisy

SEEDS = st.integers(0, 2**32 - 1)
DISCIPLINES = ("fifo", "priority", "order")
CONTENTIONS = get_args(Contention)


def small(
    duration: Sequence[int] | Sequence[Sequence[int]],
    edges: Sequence[tuple[int, int]] = (),
    n_devices: int = 3,
    latency: int = 0,
    **fields: Any,
) -> Problem:
    """Tasks t0, t1, ... with one duration each or one per device, devices d0, d1, ... and equal links."""
    ticks = np.array([np.broadcast_to(row, n_devices) for row in duration], dtype=np.int64)
    return build_problem(
        task_names=[f"t{i}" for i in range(len(duration))],
        device_names=[f"d{d}" for d in range(n_devices)],
        duration=ticks,
        edges=edges,
        latency=np.full((n_devices, n_devices), latency),
        **fields,
    )


def random_problem(rng: np.random.Generator, contention: str, zeros: bool = True) -> Problem:
    """Up to 12 tasks on up to 4 devices, all links different, payloads shared and not, release times; ties abound."""
    n, m = int(rng.integers(0, 13)), int(rng.integers(1, 5))
    tasks = rng.permutation(n)
    density = rng.choice([0.1, 0.3, 0.6])
    edges = [(int(tasks[a]), int(tasks[b])) for b in range(n) for a in range(b) if rng.random() < density]
    least, least_bytes = (int(rng.integers(0, 2)), int(rng.integers(0, 2))) if zeros else (1, 1)
    most = int(rng.choice([1, 3, 20]))
    shared = rng.random(len(edges)) < rng.choice([0, 0.5, 1])
    output = rng.integers(least_bytes, 30, n)
    own = rng.integers(least_bytes, 30, len(edges))
    feasible = rng.random((n, m)) < 0.8
    feasible[np.arange(n), rng.integers(0, m, n)] = True
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(least, most + 1, (n, m)),
        feasible=feasible,
        edges=edges,
        payload=np.array([output[a] if s else b for (a, _), s, b in zip(edges, shared, own, strict=True)], np.int64),
        shared=shared,
        latency=rng.integers(0, 4, (m, m)),
        byte_ticks_num=rng.integers(least_bytes, 4, (m, m)),
        byte_ticks_den=rng.integers(1, 20, (m, m)),
        contention=contention,
        release=rng.integers(0, int(rng.choice([1, 5, 40])), n),
        shared_links=random_links(np.random.default_rng([n, m, len(edges)]), m) if rng.random() < 0.5 else None,
    )


def random_placement(rng: np.random.Generator, problem: Problem) -> Int:
    """A feasible device for every task."""
    return np.array([rng.choice(np.flatnonzero(row)) for row in problem.feasible], dtype=np.int64)


def ports(problem: Problem, sender: int, receiver: int) -> list[tuple[str, int]]:
    """What a transfer occupies."""
    found = [("link", lane) for lane in lanes(problem, sender, receiver)]
    if problem.contention == "half_duplex":
        return [*found, ("port", int(sender)), ("port", int(receiver))]
    return found if problem.contention == "none" else [*found, ("send", int(sender)), ("receive", int(receiver))]


def random_schedule(rng: np.random.Generator, problem: Problem) -> Schedule:
    """A valid schedule with idle time: tasks in a random topological order, each and its transfers delayed."""
    device = random_placement(rng, problem)
    representative = edge_transfers(problem, device)
    ticks, p = edge_ticks(problem, device), durations(problem, device)
    free, through = np.zeros(problem.n_devices, dtype=np.int64), dict[tuple[str, int], int]()
    start, ready = np.zeros_like(p), problem.release.copy()
    moves = np.full(problem.n_edges, -1, dtype=np.int64)
    missing = np.diff(problem.in_start)
    available = list(np.flatnonzero(missing == 0))
    while available:
        i = available.pop(int(rng.integers(len(available))))
        a = device[i]
        start[i] = max(ready[i], free[a]) + rng.choice([0, 0, 2, 9])
        free[a] = end = start[i] + p[i]
        edges = np.arange(problem.out_start[i], problem.out_start[i + 1])
        for k in rng.permutation(edges):
            move, b = representative[k], device[problem.edge_target[k]]
            if problem.contends and move >= 0 and moves[move] < 0:
                used = ports(problem, a, b)
                moves[move] = max([end, *(through.get(port, 0) for port in used)]) + rng.choice([0, 0, 3])
                through |= dict.fromkeys(used, moves[move] + ticks[move])
        for k in edges:
            j, move = problem.edge_target[k], representative[k]
            ready[j] = max(ready[j], (moves[move] if problem.contends and move >= 0 else end) + ticks[k])
            missing[j] -= 1
            if missing[j] == 0:
                available.append(j)
    if not problem.contends:
        return Schedule(device, start)
    sent = np.flatnonzero(moves >= 0)
    return Schedule(device, start, Transfers(sent, moves[sent]))


def assert_valid(problem: Problem, schedule: Schedule) -> None:
    """Precedence, release times, devices and ports, checked by pairs."""
    start, device = schedule.start, schedule.device
    end = start + durations(problem, device)
    assert (start >= problem.release).all()
    assert (arrivals(problem, schedule) <= start[problem.edge_target]).all()
    busy = [(("run", int(device[i])), int(start[i]), int(end[i])) for i in range(problem.n_tasks)]
    if problem.contends:
        assert schedule.transfers is not None
        edges, moves = schedule.transfers.edge, schedule.transfers.start
        representative = edge_transfers(problem, device)
        assert edges.tolist() == np.unique(representative[representative >= 0]).tolist()
        assert (moves >= end[problem.edge_source[edges]]).all()
        ticks = edge_ticks(problem, device)
        for k, move in zip(edges.tolist(), moves.tolist(), strict=True):
            source, target = problem.edge_source[k], problem.edge_target[k]
            busy += [(port, move, move + int(ticks[k])) for port in ports(problem, device[source], device[target])]
    else:
        assert schedule.transfers is None
    for (unit, _, before), (next_unit, after, _) in pairwise(sorted(busy)):
        assert unit != next_unit or before <= after


def arguments(rng: np.random.Generator, problem: Problem, discipline: str) -> tuple[Int, dict[str, Any]]:
    """A placement and the arguments of a discipline, ties likely; an order may well contradict the edges."""
    device = random_placement(rng, problem)
    if discipline == "fifo":
        return device, {}
    numbers = rng.integers(-3, 4, problem.n_tasks) / rng.choice([1, 2])
    if discipline == "order" and rng.random() < 0.8:
        numbers = 1.0 * random_schedule(rng, problem).start
    return device, {"discipline": discipline, discipline: numbers}


def outcome(problem: Problem, device: Int, settings: dict[str, Any]) -> tuple[Any, ...]:
    """Starts and transfers, or the deadlock, as one comparable value."""
    try:
        schedule = simulate(problem, device, **settings)
    except UsageError as error:
        return (str(error),)
    assert_valid(problem, schedule)
    return times(schedule)


def times(schedule: Schedule) -> tuple[list[int], list[tuple[int, int]]]:
    """Starts of the tasks, and (edge, start) of the transfers."""
    rows = schedule.transfers
    return schedule.start.tolist(), [] if rows is None else list(
        zip(rows.edge.tolist(), rows.start.tolist(), strict=True)
    )


# Worked examples


@pytest.mark.parametrize(("latency", "start", "span"), [(0, [0, 2, 7, 7, 9], 14), (1, [0, 2, 8, 7, 10], 15)])
def test_five_node_example(latency: int, start: list[int], span: int) -> None:
    # Carbonari et al. 2017, appendix 6.1: durations of its table; the starts are worked by hand.
    five = small(
        [[4, 2], [6, 5], [1, 3], [4, 2], [5, 7]], [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)], n_devices=2, latency=latency
    )
    schedule = simulate(five, [1, 1, 0, 1, 0])
    assert schedule.start.tolist() == start
    assert makespan(five, schedule) == span
    assert schedule.transfers is None


@pytest.mark.parametrize("contention", CONTENTIONS)
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_empty_graph_and_single_task(contention: str, discipline: str) -> None:
    for durations_ in ([], [7], [0]):
        problem = small(durations_, contention=contention)
        numbers = {} if discipline == "fifo" else {discipline: [0] * len(durations_)}
        schedule = simulate(problem, [2] * len(durations_), discipline=discipline, **numbers)
        assert schedule.start.tolist() == [0] * len(durations_)
        assert retime(problem, schedule).start.tolist() == [0] * len(durations_)
        assert (schedule.transfers is None) == (contention == "none")


def test_fifo_takes_the_order_of_becoming_ready_not_of_index() -> None:
    # d0 is busy until 10 with t4; t0 becomes ready at 6, t1 at 3, t2 at 6: they run t1, t0, t2.
    problem = small([1, 1, 1, 3, 10, 6], [(3, 1), (5, 0), (5, 2)])
    assert simulate(problem, [0, 0, 0, 1, 0, 2]).start.tolist() == [11, 10, 12, 0, 0, 0]


def test_fifo_leaves_no_gap_for_a_task_that_is_about_to_arrive() -> None:
    # t0 becomes ready at 3, just too late: t1 has started at 2 and runs for 10.
    problem = small([1, 10, 3, 2], [(2, 0), (3, 1)])
    assert simulate(problem, [0, 0, 1, 2]).start.tolist() == [12, 2, 0, 0]


def test_tasks_of_zero_ticks_pass_on_within_the_tick() -> None:
    # t2 ends at 0, so t1 is ready at 0 and, as the lower index, runs before t3.
    problem = small([5, 4, 0, 3], [(2, 1)])
    assert simulate(problem, [1, 0, 0, 0]).start.tolist() == [0, 0, 0, 4]


def test_sender_sends_one_at_a_time_in_the_order_of_its_edges() -> None:
    problem = small([2, 1, 1], [(0, 2), (0, 1)], latency=3, contention="port")
    schedule = simulate(problem, [0, 1, 2])
    assert schedule.transfers is not None
    assert schedule.transfers.edge.tolist() == [0, 1]
    assert schedule.transfers.start.tolist() == [2, 5]
    assert schedule.start.tolist() == [0, 5, 8]
    assert simulate(small([2, 1, 1], [(0, 2), (0, 1)], latency=3), [0, 1, 2]).start.tolist() == [0, 5, 5]


def test_receiver_receives_one_at_a_time_who_ends_first_goes_first() -> None:
    # t1 ends at 1, t0 at 2: d2 receives from t1 in [1, 5), from t0 in [5, 9).
    problem = small([2, 1, 1], [(0, 2), (1, 2)], latency=4, contention="port")
    schedule = simulate(problem, [0, 1, 2])
    assert schedule.transfers is not None
    assert schedule.transfers.start.tolist() == [5, 1]
    assert schedule.start.tolist() == [0, 0, 9]


def test_a_booked_transfer_holds_both_ports_and_none_overtakes_it() -> None:
    # t0 -> t3 on d1 in [1, 5); t0 -> t4 on d2 in [5, 9), for d0 sends. t1 ends at 2 on d1 and could
    # be received by d2 in [2, 6) were it not for the booking: it goes in [9, 13).
    problem = small([1, 2, 1, 1], [(0, 2), (0, 3), (1, 3)], latency=4, contention="port")
    schedule = simulate(problem, [0, 1, 1, 2])
    assert schedule.transfers is not None
    assert schedule.transfers.start.tolist() == [1, 5, 9]
    assert schedule.start.tolist() == [0, 0, 5, 13]


def test_a_device_with_one_port_sends_or_receives() -> None:
    # d1 receives from t0 in [2, 5). t1 ends at 3 on d1: its data leaves at once with two ports, at 5 with one. Then d2
    # receives in [5, 8), so that t2, which ends at 4 there, sends at 8.
    for contention, moves in (("port", [2, 3, 4]), ("half_duplex", [2, 5, 8])):
        problem = small([2, 3, 4, 1, 1, 1], [(0, 3), (1, 4), (2, 5)], latency=3, contention=contention)
        schedule = simulate(problem, [0, 1, 2, 1, 2, 0])
        assert schedule.transfers is not None
        assert schedule.transfers.start.tolist() == moves
        assert schedule.start.tolist() == [0, 0, 0, *(move + 3 for move in moves)]


def test_shared_output_moves_once_per_device_own_payloads_one_by_one() -> None:
    edges = [(0, 1), (0, 2), (0, 3)]
    device = [0, 1, 1, 2]
    once = simulate(small([1] * 4, edges, latency=3, contention="port", shared=[True] * 3), device)
    assert once.transfers is not None
    assert once.transfers.edge.tolist() == [0, 2]
    assert once.transfers.start.tolist() == [1, 4]
    assert once.start.tolist() == [0, 4, 5, 7]
    each = simulate(small([1] * 4, edges, latency=3, contention="port"), device)
    assert each.transfers is not None
    assert each.transfers.start.tolist() == [1, 4, 7]
    assert each.start.tolist() == [0, 4, 7, 10]


def test_a_transfer_of_zero_ticks_takes_its_turn() -> None:
    # t0 -> t1 takes [1, 6). The empty t0 -> t2 goes at 6, when d0 has sent; d2 receives in order, so
    # t3 -> t4, booked at 3, goes in [6, 11) and not around it.
    problem = small(
        [1, 1, 1, 3, 1],
        [(0, 1), (0, 2), (3, 4)],
        payload=[5, 0, 5],
        byte_ticks_num=np.ones((3, 3), dtype=np.int64),
        contention="port",
    )
    schedule = simulate(problem, [0, 1, 2, 1, 2])
    assert schedule.transfers is not None
    assert schedule.transfers.start.tolist() == [1, 6, 6]
    assert schedule.start.tolist() == [0, 6, 6, 0, 11]


@pytest.mark.parametrize("contention", CONTENTIONS)
def test_no_task_starts_before_its_release(contention: str) -> None:
    # t0 is released at 3 and t1 at 2; t2 has its data at 5 and is released at 4, t3 at 8 and 9.
    problem = small([2, 3, 1, 1], [(0, 2), (1, 3)], release=[3, 2, 4, 9], contention=contention)
    assert simulate(problem, [0, 1, 0, 1]).start.tolist() == [3, 2, 5, 9]
    # On one device t1 is ready first; at 5, when it ends, t0 is, and then t2.
    assert simulate(problem, [0, 0, 0, 0]).start.tolist() == [5, 2, 7, 9]
    assert make_evaluator(problem)([0, 0, 0, 0]) == 10


def test_a_transfer_waits_for_no_release() -> None:
    # The data of t0 arrives at 5 while t1 may only start at 9; t2's data goes right after it.
    problem = small([2, 1, 1], [(0, 1), (0, 2)], latency=3, contention="port", release=[0, 9, 0])
    schedule = simulate(problem, [0, 1, 2])
    assert schedule.transfers is not None
    assert schedule.transfers.start.tolist() == [2, 5]
    assert schedule.start.tolist() == [0, 9, 8]


def test_priority_and_order_know_release_times() -> None:
    # The most urgent t0 is released at 3: t1 goes first. In the order given, d0 waits for it.
    problem = small([2, 5], n_devices=1, release=[3, 0])
    assert simulate(problem, [0, 0], discipline="priority", priority=[9, 1]).start.tolist() == [5, 0]
    assert simulate(problem, [0, 0], discipline="order", order=[0, 1]).start.tolist() == [3, 5]


def test_retime_keeps_release_times_and_ignores_deadlines() -> None:
    problem = small([2, 5, 1], [(1, 2)], n_devices=1, release=[3, 0, 12], deadline=[4, 4, 4])
    late = Schedule(np.zeros(3), np.array([9, 20, 30]))
    assert retime(problem, late).start.tolist() == [3, 5, 12]
    # Starts before the release are an order like any other.
    assert retime(problem, Schedule(np.zeros(3), np.array([1, 0, 2]))).start.tolist() == [5, 0, 12]


def test_release_times_do_not_vary_under_noise() -> None:
    runs = simulate_noisy(small([0], release=[1000]), [0], noise=0.5, runs=20, seed=0)
    assert runs.makespans.tolist() == [1000] * 20


def test_priority_chooses_among_the_ready_and_never_waits() -> None:
    # t3 is the most urgent, but ready only at 2; at 0 d0 takes t1. Ties: the lower index.
    problem = small([4, 3, 4, 1, 2], [(4, 3)])
    schedule = simulate(problem, [0, 0, 0, 0, 1], discipline="priority", priority=[1, 5, 1, 9.5, 0])
    assert schedule.start.tolist() == [4, 0, 8, 3, 0]


def test_priority_decides_when_all_of_the_tick_is_known() -> None:
    # At tick 2 d0 falls free, t1 arrives from d1 and t2 from d2: t2 goes first though t1 is handled first.
    problem = small([2, 1, 1, 2, 2], [(3, 1), (4, 2)])
    schedule = simulate(problem, [0, 0, 0, 1, 2], discipline="priority", priority=[0, 1, 2, 0, 0])
    assert schedule.start.tolist() == [0, 3, 2, 0, 0]


def test_priorities_of_any_integer_type_and_size() -> None:
    problem = small([1, 1, 1], n_devices=1)
    extremes = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0])
    assert simulate(problem, [0] * 3, discipline="priority", priority=extremes).start.tolist() == [2, 0, 1]
    unsigned = np.array([0, 2, 2], dtype=np.uint8)
    assert simulate(problem, [0] * 3, discipline="priority", priority=unsigned).start.tolist() == [2, 0, 1]


def test_order_waits_for_the_next_of_the_sequence() -> None:
    # t0 is ready at once, but d0 is to run t1 first, which waits for t2 on d1.
    problem = small([4, 1, 3], [(2, 1)])
    schedule = simulate(problem, [0, 0, 1], discipline="order", order=[1, 0, 0])
    assert schedule.start.tolist() == [4, 3, 0]


def test_ties_of_an_order_put_producers_first_then_the_lower_index() -> None:
    problem = small([1, 1, 1, 1], [(3, 0)], n_devices=1)
    schedule = simulate(problem, [0] * 4, discipline="order", order=[0] * 4)
    assert schedule.start.tolist() == [3, 0, 1, 2]


def test_order_against_the_precedence_names_two_tasks() -> None:
    problem = small([1, 1, 1], [(0, 1), (1, 2)])
    with pytest.raises(
        UsageError,
        match=r"^order: d0 is to run t2 before t0, but t2 cannot start until t0 has ended; give t0 the smaller",
    ):
        simulate(problem, [0, 1, 0], discipline="order", order=[1, 0, 0])


@pytest.mark.parametrize("contention", CONTENTIONS)
def test_order_that_goes_round_a_circle_names_two_tasks_of_it(contention: str) -> None:
    # d0: t0 then t1; d1: t2 then t3; t3 -> t0 and t1 -> t2: every device waits for the other. t4 waits for both.
    problem = small([1] * 5, [(3, 0), (1, 2), (0, 4)], contention=contention)
    with pytest.raises(UsageError, match=r"order: d1 is to run t2 before t3, but t2 cannot start until t3 has ended"):
        simulate(problem, [0, 0, 1, 1, 2], discipline="order", order=[0, 1, 0, 1, 0])


def test_ticks_beyond_what_floats_hold() -> None:
    big = 2**60 + 1
    assert simulate(small([1], release=[big]), [0]).start.tolist() == [big]
    problem = small([big, big, 3], [(0, 1), (1, 2)], latency=big)
    schedule = simulate(problem, [0, 1, 1])
    assert schedule.start.tolist() == [0, 2 * big, 3 * big]
    assert makespan(problem, schedule) == 3 * big + 3
    assert simulate_noisy(problem, [0, 1, 1], noise=0, runs=1, seed=0).makespans.tolist() == [3 * big + 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": [0]}, r"device: has shape \(1,\); expected one device for each of 2 tasks"),
        ({"device": [[0, 0]]}, r"device: has shape \(1, 2\)"),
        ({"device": [0.0, 1.0]}, "device: holds float64; expected the indices of devices"),
        ({"device": [0, 3]}, "device: task t1 is on device 3; expected an index from 0 to 2"),
        ({"device": [-1, 0]}, "device: task t0 is on device -1;"),
        ({"device": [0, 2]}, "device: task t1 may not run on d2; expected one of d0, d1"),
        ({"discipline": "lifo"}, "discipline: unknown 'lifo'; expected fifo, priority, order; did you mean fifo?"),
        ({"discipline": "priority"}, "priority: missing; discipline 'priority' needs a number per task"),
        ({"discipline": "order"}, "order: missing"),
        ({"order": [0, 1]}, "order: discipline 'fifo' does not use it; leave it out"),
        ({"discipline": "order", "order": [0, 1], "priority": [0, 1]}, "priority: discipline 'order' does not use it"),
        ({"discipline": "order", "order": [0]}, r"order: has shape \(1,\); expected a number for each of 2 tasks"),
        ({"discipline": "priority", "priority": [0, np.nan]}, r"priority: holds .*, not numbers"),
        ({"discipline": "priority", "priority": ["a", "b"]}, r"priority: holds .*, not numbers"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    problem = small([1, 1], [(0, 1)], feasible=[[True, True, True], [True, True, False]])
    with pytest.raises(UsageError, match=message):
        simulate(problem, **({"device": [0, 1]} | arguments))
    with pytest.raises(UsageError, match=message):
        simulate_noisy(problem, **({"device": [0, 1], "noise": 0.1, "runs": 1, "seed": 0} | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": 1.0}, r"noise: 1.0 is out of range; expected a share from 0 to less than 1"),
        ({"noise": -0.1}, r"noise: -0.1 is out of range"),
        ({"noise": float("nan")}, r"noise: nan is out of range"),
        ({"runs": 10**11}, r"runs: 100000000000 is out of range; expected a whole number from 1 to 10,000,000"),
        ({"runs": 0}, r"runs: 0 is out of range; expected a whole number from 1 to 10,000,000"),
        ({"seed": -1}, r"seed: -1 is out of range"),
    ],
)
def test_wrong_arguments_of_noise(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate_noisy(small([1]), [0], **({"noise": 0.1, "runs": 1, "seed": 0} | arguments))


def test_wrong_arguments_of_retime() -> None:
    problem = small([1, 1], [(0, 1)], contention="port")
    with pytest.raises(UsageError, match=r"start: has shape \(1,\)"):
        retime(problem, Schedule(np.array([0, 0]), np.array([0])))
    with pytest.raises(UsageError, match="device: task t1 is on device 9"):
        retime(problem, Schedule(np.array([0, 9]), np.array([0, 0])))
    with pytest.raises(UsageError, match="transfers: edge 4 does not exist; expected an index from 0 to 0"):
        retime(problem, Schedule(np.array([0, 1]), np.array([0, 0]), Transfers(np.array([4]), np.array([0]))))


@pytest.mark.parametrize("contention", CONTENTIONS)
@pytest.mark.parametrize("discipline", DISCIPLINES)
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_agrees_with_the_reference(contention: str, discipline: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, contention)
    device, choice = arguments(rng, problem, discipline)
    expected = reference.simulate(problem, device.tolist(), discipline, choice.get(discipline))
    if expected is None:
        with pytest.raises(UsageError, match=r"^order: d\d is to run t\d+ before t\d+, but"):
            simulate(problem, device, **choice)
        return
    starts, moves = outcome(problem, device, choice)
    assert starts == [expected.start[i] for i in range(problem.n_tasks)]
    assert dict(moves) == expected.moves
    if discipline == "fifo":
        assert make_evaluator(problem)(device) == expected.makespan


@pytest.mark.parametrize("contention", CONTENTIONS)
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
@example(seed=11657)  # transfers of no length, which only move earlier when all tasks have settled
def test_a_schedule_is_executed_in_its_own_order(contention: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, contention)
    schedule = random_schedule(rng, problem)
    executed = simulate(problem, schedule)
    assert times(executed) == times(retime(problem, schedule))
    assert makespan(problem, executed) <= makespan(problem, schedule)
    exact = simulate_noisy(problem, schedule, noise=0, runs=2, seed=seed)
    assert exact.makespans.tolist() == [makespan(problem, executed)] * 2
    if not problem.contends and durations(problem, schedule.device).all():
        draws = {"noise": 0.4, "runs": 5, "seed": seed}
        numbered = simulate_noisy(problem, schedule.device, discipline="order", order=schedule.start, **draws)
        assert simulate_noisy(problem, schedule, **draws).makespans.tolist() == numbered.makespans.tolist()


def test_a_schedule_under_other_disciplines() -> None:
    problem = small([3, 1, 2], release=[0, 0, 2], n_devices=1)
    schedule = Schedule(np.array([0, 0, 0]), np.array([4, 0, 2]))
    found = {
        None: simulate(problem, schedule),
        "order": simulate(problem, schedule, discipline="order"),
        "own order": simulate(problem, schedule, discipline="order", order=[2, 1, 0]),
        "priority": simulate(problem, schedule, discipline="priority"),
        "own priority": simulate(problem, schedule, discipline="priority", priority=[2, 1, 0]),
        "fifo": simulate(problem, schedule, discipline="fifo"),
        "devices": simulate(problem, schedule.device),
    }
    assert {name: each.start.tolist() for name, each in found.items()} == {
        None: [4, 0, 2],
        "order": [4, 0, 2],
        "own order": [5, 4, 2],
        "priority": [1, 0, 4],
        "own priority": [0, 3, 4],
        "fifo": [0, 3, 4],
        "devices": [0, 3, 4],
    }


def test_ports_follow_the_order_of_a_schedule() -> None:
    """The transfer to the long task goes first in the schedule, although it was booked last."""
    problem = small([1, 1, 1, 9], [(0, 2), (1, 3)], latency=5, contention="port")
    device = np.array([0, 0, 1, 2])
    schedule = Schedule(device, np.array([0, 1, 12, 7]), Transfers(np.array([0, 1]), np.array([7, 2])))
    assert makespan(problem, simulate(problem, device)) == 20
    assert makespan(problem, simulate(problem, schedule)) == 16
    assert simulate_noisy(problem, schedule, noise=0, runs=1, seed=0).makespans.tolist() == [16]


def test_schedules_that_are_not_executed() -> None:
    problem = small([1, 1])
    other = Schedule(np.array([0]), np.array([0]))
    pipeline = small([1], objective=Objective(((Term("period"),),)))
    for run in (simulate, lambda *given: simulate_noisy(*given, noise=0.1, runs=1, seed=0)):
        with pytest.raises(UsageError, match=r"device: has shape \(1,\); expected one device for each of 2 tasks"):
            run(problem, other)
        with pytest.raises(UsageError, match="runs of a pipeline follow each other; run_pipeline executes them"):
            run(pipeline, other)


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_a_deadlock_is_named_truly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, "none")
    device = random_placement(rng, problem)
    order = rng.integers(0, 4, problem.n_tasks)
    try:
        simulate(problem, device, discipline="order", order=order)
    except UsageError as error:
        words = str(error).replace(",", "").split()
        first, second = int(words[5][1:]), int(words[7][1:])
        assert device[first] == device[second]
        waits = set(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
        rank = {int(i): position for position, i in enumerate(problem.order)}
        sequence = sorted(range(problem.n_tasks), key=lambda i: (order[i], rank[i]))
        assert sequence.index(first) < sequence.index(second)
        waits |= {(a, b) for at, b in enumerate(sequence) for a in sequence[:at] if device[a] == device[b]}
        behind, reached = [second], {second}  # everything that must wait for `second`
        for a in behind:
            more = [b for before, b in waits if before == a and b not in reached]
            behind += more
            reached |= set(more)
        assert first in reached


def longest_paths(problem: Problem, schedule: Schedule) -> list[int]:
    """Starts of tasks and transfers by relaxing every constraint of a valid schedule until none moves."""
    device, p, ticks = schedule.device, durations(problem, schedule.device), edge_ticks(problem, schedule.device)
    n = problem.n_tasks
    old = {i: int(schedule.start[i]) for i in range(n)}
    length = {i: int(p[i]) for i in range(n)}
    units: dict[int, list[Any]] = {i: [("run", device[i])] for i in range(n)}
    constraints = []
    representative = np.full(problem.n_edges, -1)
    if schedule.transfers is not None:
        representative = edge_transfers(problem, device)
        for k, start in zip(schedule.transfers.edge.tolist(), schedule.transfers.start.tolist(), strict=True):
            a, b = problem.edge_source[k], problem.edge_target[k]
            old[n + k], length[n + k] = start, int(ticks[k])
            units[n + k] = ports(problem, device[a], device[b])
            constraints.append((int(a), n + k, int(p[a])))
    for k, (a, b) in enumerate(reference.edges_of(problem)):
        move = int(representative[k])
        constraints.append((a, b, length[a] + int(ticks[k])) if move < 0 else (n + move, b, length[n + move]))
    rank = {int(i): position for position, i in enumerate(problem.order)}
    source = {v: v if v < n else int(problem.edge_source[v - n]) for v in old}
    by_start = sorted(old, key=lambda v: (old[v], old[v] + length[v], rank[source[v]], v))
    for at, after in enumerate(by_start):
        constraints += [(v, after, length[v]) for v in by_start[:at] if set(units[v]) & set(units[after])]
    new = {v: int(problem.release[v]) if v < n else 0 for v in old}
    while True:
        late = [(b, new[a] + gap) for a, b, gap in constraints if new[b] < new[a] + gap]
        if not late:
            return [new[i] for i in range(n)]
        for b, tick in late:
            new[b] = max(new[b], tick)


@pytest.mark.parametrize("contention", CONTENTIONS)
@pytest.mark.parametrize("zeros", [False, True])
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_retime_is_earliest_and_never_later(contention: str, zeros: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, contention, zeros)
    schedule = random_schedule(rng, problem)
    assert_valid(problem, schedule)
    earlier = retime(problem, schedule)
    assert_valid(problem, earlier)
    assert earlier.device.tolist() == schedule.device.tolist()
    assert (earlier.start <= schedule.start).all()
    if schedule.transfers is not None and earlier.transfers is not None:
        assert (earlier.transfers.start <= schedule.transfers.start).all()
    paths = longest_paths(problem, schedule)
    assert (earlier.start <= paths).all() if zeros else earlier.start.tolist() == paths
    again = retime(problem, earlier)
    assert again.start.tolist() == earlier.start.tolist()
    assert (again.transfers and again.transfers.start.tolist()) == (
        earlier.transfers and earlier.transfers.start.tolist()
    )


@pytest.mark.parametrize("contention", CONTENTIONS)
@pytest.mark.parametrize("discipline", DISCIPLINES)
@settings(max_examples=50, deadline=None)
@given(seed=SEEDS)
def test_simulated_schedules_are_as_early_as_can_be(contention: str, discipline: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, contention, zeros=False)
    numbers = {} if discipline == "fifo" else {discipline: random_schedule(rng, problem).start}
    schedule = simulate(problem, random_placement(rng, problem), discipline=discipline, **numbers)
    assert retime(problem, schedule).start.tolist() == schedule.start.tolist()
    if schedule.transfers is not None:
        edges, moves = schedule.transfers.edge, schedule.transfers.start
        again = retime(problem, schedule).transfers
        assert again is not None
        assert (again.edge.tolist(), again.start.tolist()) == (edges.tolist(), moves.tolist())


@pytest.mark.parametrize("contention", CONTENTIONS)
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_retime_takes_any_starts_and_transfers(contention: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, contention)
    device = random_placement(rng, problem)
    transfers = None
    if problem.n_edges and rng.random() < 0.7:
        rows = int(rng.integers(0, 2 * problem.n_edges))
        transfers = Transfers(rng.integers(0, problem.n_edges, rows), rng.integers(-5, 20, rows))
    result = retime(problem, Schedule(device, rng.integers(-3, 10, problem.n_tasks), transfers))
    assert_valid(problem, result)
    again = retime(problem, result)
    assert again.start.tolist() == result.start.tolist()


def test_retime_of_starts_that_ignore_durations_keeps_their_order() -> None:
    # All at 0: the order of the edges. t0 before t1 on d0 as asked, although t1 has the lower depth.
    chain = small([3, 2, 4], [(0, 1), (1, 2)])
    assert retime(chain, Schedule(np.zeros(3), np.zeros(3))).start.tolist() == [0, 3, 5]
    loose = small([3, 2])
    assert retime(loose, Schedule(np.zeros(2), np.array([1, 0]))).start.tolist() == [2, 0]
    # t1 is said to start before its producer: it comes right after it, before t2.
    late = small([3, 2, 4], [(0, 1)])
    assert retime(late, Schedule(np.zeros(3), np.array([5, 0, 6]))).start.tolist() == [0, 3, 5]


def test_retime_lets_a_task_of_zero_ticks_start_where_a_longer_one_does() -> None:
    problem = small([4, 0], n_devices=1)
    assert retime(problem, Schedule(np.zeros(2), np.array([6, 6]))).start.tolist() == [0, 0]


def test_retime_puts_a_transfer_of_zero_ticks_before_a_longer_one_at_the_same_start() -> None:
    problem = small(
        [1, 1, 1], [(0, 1), (0, 2)], payload=[5, 0], byte_ticks_num=np.ones((3, 3), dtype=np.int64), contention="port"
    )
    device, start = np.array([0, 1, 2]), np.array([0, 9, 9])
    result = retime(problem, Schedule(device, start, Transfers(np.array([0, 1]), np.array([4, 4]))))
    assert result.transfers is not None
    assert result.transfers.start.tolist() == [1, 1]
    assert result.start.tolist() == [0, 6, 1]
    assert retime(problem, Schedule(device, start)).start.tolist() == [0, 6, 6]


def test_retime_swaps_what_takes_zero_ticks_once_it_ends_up_at_one_tick() -> None:
    # t0 -> t2 is given after t1 -> t3, so at first both go at 2; then t0's goes first, at 1.
    problem = small([1, 1, 1, 1], [(0, 2), (1, 3)], contention="port")
    given = Schedule(np.array([0, 0, 1, 2]), np.array([0, 1, 5, 2]), Transfers(np.array([0, 1]), np.array([5, 2])))
    assert_valid(problem, given)
    result = retime(problem, given)
    assert result.start.tolist() == [0, 1, 1, 2]
    assert result.transfers is not None
    assert result.transfers.start.tolist() == [1, 2]
    assert retime(problem, result).start.tolist() == [0, 1, 1, 2]


def test_retime_keeps_the_order_of_the_transfers_it_is_given() -> None:
    problem = small([2, 1, 1], [(0, 1), (0, 2)], latency=3, contention="port")
    device, start = np.array([0, 1, 2]), np.array([0, 20, 30])
    second_first = Transfers(np.array([0, 1]), np.array([12, 7]))
    result = retime(problem, Schedule(device, start, second_first))
    assert result.transfers is not None
    assert result.transfers.start.tolist() == [5, 2]
    assert result.start.tolist() == [0, 8, 5]
    assert retime(problem, Schedule(device, start)).start.tolist() == [0, 5, 8]


@pytest.mark.parametrize("contention", CONTENTIONS)
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_no_noise_is_the_plain_simulation(contention: str, discipline: str) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, contention)
        device, choice = arguments(rng, problem, discipline)
        if len(outcome(problem, device, choice)) == 1:
            continue
        runs = simulate_noisy(problem, device, noise=0, runs=3, seed=1, **choice)
        assert runs.makespans.tolist() == [makespan(problem, simulate(problem, device, **choice))] * 3
        assert runs.deviation == 0


def test_noise_is_uniform_around_the_expected_ticks() -> None:
    # A task of 1000 and a transfer of 500: [1000 - 250, 1000 + 250] and [500 - 125, 500 + 125].
    alone = simulate_noisy(small([1000]), [0], noise=0.25, runs=4000, seed=3)
    assert alone.makespans.shape == (4000,)
    assert alone.makespans.dtype == np.int64
    assert 750 <= alone.makespans.min() < 752
    assert 1248 < alone.makespans.max() <= 1250
    assert abs(alone.mean - 1000) < 5
    assert abs(alone.deviation - 500 / 12**0.5) < 3
    assert abs(alone.quantile(0.25) - 875) < 10
    assert alone.quantile(1) == alone.makespans.max()
    moved = simulate_noisy(small([1000, 0], [(0, 1)], latency=500), [0, 1], noise=0.25, runs=4000, seed=3)
    assert abs(moved.mean - 1500) < 8
    assert moved.makespans.min() >= 1125
    assert moved.makespans.max() <= 1875
    with pytest.raises(UsageError, match=r"q: 1.5 is not a share; expected a number from 0 to 1"):
        alone.quantile(1.5)


def test_one_draw_per_transfer_not_per_edge() -> None:
    # The later of two independent arrivals is 1000 (1 + 0.3 / 3) on average, a common one 1000.
    def mean(**fields: Any) -> float:
        problem = small([0, 0, 0], [(0, 1), (0, 2)], latency=1000, **fields)
        return simulate_noisy(problem, [0, 1, 1], noise=0.3, runs=3000, seed=0).mean

    assert abs(mean(shared=[True, True]) - 1000) < 15
    assert abs(mean() - 1100) < 15


def test_noise_rounds_to_the_nearest_tick() -> None:
    # A task of 2 ticks varies in [1.2, 2.8]: 1 below 1.5, 3 from 2.5.
    counts = np.bincount(simulate_noisy(small([2]), [0], noise=0.4, runs=8000, seed=0).makespans, minlength=4)
    assert counts[0] == 0
    assert abs(counts[1] / 8000 - 0.3 / 1.6) < 0.02
    assert abs(counts[3] / 8000 - 0.3 / 1.6) < 0.02


def test_noise_is_reproducible() -> None:
    problem = small([30, 40, 50, 60], [(0, 1), (0, 2), (1, 3), (2, 3)], latency=20, contention="port")
    device = [0, 1, 2, 0]
    first = simulate_noisy(problem, device, noise=0.5, runs=20, seed=4).makespans.tolist()
    assert simulate_noisy(problem, device, noise=0.5, runs=20, seed=4).makespans.tolist() == first
    assert simulate_noisy(problem, device, noise=0.5, runs=30, seed=4).makespans[:20].tolist() == first
    assert simulate_noisy(problem, device, noise=0.5, runs=20, seed=5).makespans.tolist() != first
