"""The verifier: a hand-made violation of each rule, exact fits, and a naive checker that counts tick by tick."""

from __future__ import annotations

import ast
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from link_lanes import lanes, random_links

import placeopt.verifier
from placeopt.errors import UsageError
from placeopt.model.building import build_problem
from placeopt.model.objective import METRICS as METRIC_VALUES
from placeopt.model.objective import evaluate
from placeopt.model.problem import UNLIMITED, Contention, MemoryModel, Metric, Objective, Problem, Term
from placeopt.model.resources import Resources, build_resources
from placeopt.model.schedule import Schedule, Transfers, durations
from placeopt.model.setups import Setups, build_setups
from placeopt.model.shared_links import SharedLink, build_shared_links
from placeopt.model.tiers import Tiers, build_tiers
from placeopt.model.unavailability import Unavailability, build_unavailability
from placeopt.verifier import Report, Rule, Violation, verify
from placeopt.verifier.rules import RULES

METRICS: tuple[Metric, ...] = (
    "makespan", "total_cost", "max_load", "communication", "energy", "memory_balance", "relocation", "tardiness",
    "price", "devices",
)  # fmt: skip


PIPELINES = {Rule.STAGE, Rule.PERIOD}
"""Rules of pipelines, which test_pipeline_rules.py tests."""
TIERED = {Rule.SWAP}
"""Rules of memory tiers."""
ADDRESSED = {Rule.ADDRESS}
"""Rules of addresses, which test_address_rule.py tests."""


def small(**changes: Any) -> Problem:
    """a sends 6 bytes to each of b and c, on a cpu and a gpu; between the two that takes 1 + 6/2 ticks."""
    arrays: dict[str, Any] = {
        "task_names": ("a", "b", "c"),
        "device_names": ("cpu", "gpu"),
        "duration": [[2, 3], [2, 2], [4, 1]],
        "edges": [(0, 1), (0, 2)],
        "payload": [6, 6],
        "latency": [[0, 1], [1, 0]],
        "byte_ticks_num": [[1, 1], [1, 1]],
        "byte_ticks_den": [[2, 2], [2, 2]],
    }
    return build_problem(**(arrays | changes))


def free(n: int, *, durations: Sequence[int], **changes: Any) -> Problem:
    """n tasks without edges, t0, t1, ..., each with one duration, on one device unless changed."""
    names = changes.pop("device_names", ("cpu",))
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=names,
        duration=np.tile(np.array(durations).reshape(n, 1), len(names)),
        **changes,
    )


def schedule(
    device: Sequence[int], start: Sequence[int], transfers: Sequence[tuple[int, int]] | None = None
) -> Schedule:
    rows = None
    if transfers is not None:
        rows = Transfers(np.array([edge for edge, _ in transfers]), np.array([start for _, start in transfers]))
    return Schedule(np.array(device), np.array(start), rows)


def check(problem: Problem, plan: Schedule, *expected: Violation) -> Report:
    """The report, once its violations are exactly those expected."""
    report = verify(problem, plan)
    assert report.violations == expected
    assert report.feasible == (not expected)
    return report


# One wrong schedule for each rule


def test_good_schedules_pass_and_are_measured() -> None:
    assert check(small(), schedule([0, 1, 1], [0, 6, 8])) == Report((), (9,), 9)
    own = schedule([0, 1, 1], [0, 6, 10], [(0, 2), (1, 6)])
    assert check(small(contention="port"), own) == Report((), (11,), 11)
    together = small(contention="port", shared=[True, True])
    assert check(together, schedule([0, 1, 1], [0, 6, 8], [(0, 2)])) == Report((), (9,), 9)


@pytest.mark.parametrize("device", [-1, 2, -(2**63), 2**63 - 1])
def test_placement_wants_a_device_that_exists(device: int) -> None:
    # c would start too early, too, but without b's device nothing can be said about b alone.
    report = check(
        small(),
        schedule([0, device, 1], [0, -5, 5]),
        Violation(Rule.PLACEMENT, f"b has device {device}; expected 0 to 1", task=1),
        Violation(
            Rule.PRECEDENCE,
            "c starts at tick 5 on gpu, where the data of a, sent from cpu at tick 2, arrives at tick 6: "
            "1 tick too early",
            task=2,
            other_task=0,
            device=1,
            edge=1,
            amount=1,
        ),
    )
    assert report.objective is None
    assert report.makespan is None


def test_feasibility_wants_a_device_that_may_run_the_task() -> None:
    problem = small(feasible=[[True, True], [True, False], [True, True]])
    report = check(
        problem, schedule([0, 1, 1], [0, 6, 8]), Violation(Rule.FEASIBILITY, "b may not run on gpu", task=1, device=1)
    )
    assert report.objective is None
    assert report.makespan is None


def test_start_wants_no_time_before_zero() -> None:
    check(
        small(),
        schedule([0, 1, 1], [-3, 6, 8]),
        Violation(Rule.START, "a starts at tick -3, before tick 0", task=0, device=0, amount=3),
    )


def early(task: int, start: int, release: int, amount: int, device: int = 0) -> Violation:
    ticks = "1 tick" if amount == 1 else f"{amount} ticks"
    message = f"t{task} starts at tick {start}, before its release time, tick {release}: {ticks} too early"
    return Violation(Rule.RELEASE, message, task=task, device=device, amount=amount)


def late(task: int, end: int, deadline: int, amount: int, device: int = 0) -> Violation:
    ticks = "1 tick" if amount == 1 else f"{amount} ticks"
    message = f"t{task} ends at tick {end}, after its deadline, tick {deadline}: {ticks} too late"
    return Violation(Rule.DEADLINE, message, task=task, device=device, amount=amount)


def test_release_wants_no_start_before_it() -> None:
    problem = free(3, durations=[2, 2, 2], release=[0, 5, 9])
    check(problem, schedule([0] * 3, [0, 5, 9]))  # exactly then is early enough
    check(problem, schedule([0] * 3, [7, 4, 2]), early(1, 4, 5, 1), early(2, 2, 9, 7))


def test_release_and_start_are_two_rules() -> None:
    before_zero = Violation(Rule.START, "t0 starts at tick -3, before tick 0", task=0, device=0, amount=3)
    check(free(1, durations=[2], release=[4]), schedule([0], [-3]), before_zero, early(0, -3, 4, 7))
    check(free(1, durations=[2]), schedule([0], [-3]), before_zero)


def swapping(task: int, start: int, swapped: int, amount: int) -> Violation:
    ticks = "1 tick" if amount == 1 else f"{amount} ticks"
    message = f"t{task} starts at tick {start} on cpu, which swaps until tick {swapped}: {ticks} too early"
    return Violation(Rule.SWAP, message, task=task, device=0, amount=amount)


def test_swap_wants_no_start_before_the_bytes_beyond_the_first_tier_are_moved() -> None:
    # Of 13 bytes 4 lie in the first tier, 5 in the second, which takes ceil(5 / 2) ticks, and 4 in the third: 4 * 3.
    tiers = build_tiers([4], [[(5, 1, 2), (9, 3, 1)]])
    problem = free(3, durations=[2, 2, 0], resident=[6, 5, 0], scratch=[0, 1, 1], tiers=tiers)
    check(problem, schedule([0] * 3, [15, 17, 15]))
    check(problem, schedule([0] * 3, [14, 16, 0]), swapping(0, 14, 15, 1), swapping(2, 0, 15, 15))
    # Tasks elsewhere do not count, and neither do bytes beyond all tiers.
    check(free(1, durations=[2], resident=[4], tiers=tiers), schedule([0], [0]))
    full = Violation(Rule.MEMORY, "cpu needs 20 bytes but has 18: 2 too many", device=0, amount=2)
    check(free(1, durations=[2], resident=[20], tiers=tiers), schedule([0], [30]), full)


def test_deadline_wants_the_end_by_then() -> None:
    problem = free(3, durations=[2, 3, 4], deadline=[2, 5, UNLIMITED])
    check(problem, schedule([0] * 3, [0, 2, 5]))  # exactly then is not late
    check(problem, schedule([0] * 3, [7, 3, 9]), late(0, 9, 2, 7), late(1, 6, 5, 1))


def test_deadline_is_that_of_the_end_on_the_device_chosen() -> None:
    problem = small(deadline=[3, 9, 9])  # a takes 2 ticks on the cpu, 3 on the gpu
    check(problem, schedule([0, 1, 1], [0, 6, 8]))
    check(
        problem,
        schedule([1, 1, 1], [1, 4, 6]),
        Violation(
            Rule.DEADLINE,
            "a ends at tick 4, after its deadline, tick 3: 1 tick too late",
            task=0,
            device=1,
            amount=1,
        ),
    )


def test_times_of_tasks_of_no_duration() -> None:
    # Each may run at one instant alone: at tick 5, and there it may.
    problem = free(2, durations=[0, 0], release=[5, 5], deadline=[5, 5])
    check(problem, schedule([0, 0], [5, 5]))
    check(problem, schedule([0, 0], [4, 6]), early(0, 4, 5, 1), late(1, 6, 5, 1))


def test_a_deadline_of_tick_0_keeps_a_task_from_taking_time() -> None:
    problem = free(2, durations=[0, 1], deadline=[0, 0])
    check(problem, schedule([0, 0], [0, 0]), late(1, 1, 0, 1))


def test_an_unlimited_deadline_is_none() -> None:
    # Ends at 2**63 + 4, which is later than the number that stands for no deadline.
    problem = free(1, durations=[5])
    assert problem.deadline.tolist() == [UNLIMITED]
    check(problem, schedule([0], [2**63 - 1]))


def test_times_are_not_judged_without_a_device_and_a_forbidden_one_takes_no_time() -> None:
    problem = free(
        2,
        durations=[3, 3],
        device_names=("cpu", "gpu"),
        feasible=[[True, True], [True, False]],
        release=[5, 5],
        deadline=[9, 9],
    )
    check(
        problem,
        schedule([7, 1], [0, 9]),
        Violation(Rule.PLACEMENT, "t0 has device 7; expected 0 to 1", task=0),
        Violation(Rule.FEASIBILITY, "t1 may not run on gpu", task=1, device=1),
    )
    check(
        problem,
        schedule([0, 1], [5, 10]),
        Violation(Rule.FEASIBILITY, "t1 may not run on gpu", task=1, device=1),
        late(1, 10, 9, 1, device=1),
    )


def test_overlap_names_the_task_that_ends_last() -> None:
    problem = free(4, durations=[9, 2, 3, 1])
    check(
        problem,
        schedule([0, 0, 0, 0], [0, 1, 7, 10]),
        Violation(
            Rule.OVERLAP,
            "t1 starts at tick 1 on cpu, where t0 runs until tick 9: 8 ticks too early",
            task=1,
            other_task=0,
            device=0,
            amount=8,
        ),
        Violation(
            Rule.OVERLAP,
            "t2 starts at tick 7 on cpu, where t0 runs until tick 9: 2 ticks too early",
            task=2,
            other_task=0,
            device=0,
            amount=2,
        ),
    )


def test_overlap_looks_at_each_device_alone() -> None:
    problem = free(2, durations=[3, 3], device_names=("cpu", "gpu"))
    check(problem, schedule([0, 1], [0, 1]))
    assert [v.task for v in verify(problem, schedule([1, 1], [0, 1])).violations] == [1]


def test_precedence_on_one_device() -> None:
    problem = small(duration=[[0, 3], [2, 2], [4, 1]])  # a takes no time on the cpu, so b does not overlap it
    check(
        problem,
        schedule([0, 0, 1], [3, 1, 7]),
        Violation(
            Rule.PRECEDENCE,
            "b starts at tick 1 on cpu, where its producer a ends at tick 3: 2 ticks too early",
            task=1,
            other_task=0,
            device=0,
            edge=0,
            amount=2,
        ),
    )


@pytest.mark.parametrize("payload", [5, 6])  # 5 bytes take 2.5 ticks: rounded up
def test_precedence_between_devices(payload: int) -> None:
    check(
        small(payload=[payload, 0]),
        schedule([0, 1, 1], [0, 5, 8]),
        Violation(
            Rule.PRECEDENCE,
            "b starts at tick 5 on gpu, where the data of a, sent from cpu at tick 2, arrives at tick 6: "
            "1 tick too early",
            task=1,
            other_task=0,
            device=1,
            edge=0,
            amount=1,
        ),
    )


def test_precedence_follows_the_table_of_transfers() -> None:
    check(
        small(contention="port", shared=[True, True]),
        schedule([0, 1, 1], [0, 6, 8], [(0, 5)]),
        Violation(
            Rule.PRECEDENCE,
            "b starts at tick 6 on gpu, where the data of a, sent from cpu at tick 5, arrives at tick 9: "
            "3 ticks too early",
            task=1,
            other_task=0,
            device=1,
            edge=0,
            amount=3,
        ),
        Violation(
            Rule.PRECEDENCE,
            "c starts at tick 8 on gpu, where the data of a, sent from cpu at tick 5, arrives at tick 9: "
            "1 tick too early",
            task=2,
            other_task=0,
            device=1,
            edge=1,
            amount=1,
        ),
    )


def of_edge(message: str, edge: int, amount: int | None = None) -> Violation:
    return Violation(Rule.TRANSFER, message, task=0, other_task=edge + 1, edge=edge, amount=amount)


EARLY = "the transfer of edge 0 (a -> b) starts at tick"


@pytest.mark.parametrize(
    ("shared", "rows", "expected"),
    [
        (False, [(0, 2)], of_edge("edge 1 (a -> c) needs a transfer from cpu to gpu and has none", 1)),
        (
            False,
            [(0, 1), (1, 6)],
            of_edge(f"{EARLY} 1, before its producer ends at tick 2: 1 tick too early", 0, 1),
        ),
        (False, [(0, 2), (1, 6), (1, 16)], of_edge("edge 1 (a -> c) has 2 transfers; expected 1", 1)),
        (
            True,
            [(0, 0)],
            of_edge(f"{EARLY} 0, before its producer ends at tick 2: 2 ticks too early", 0, 2),
        ),
        (
            True,
            [(0, 2), (1, 6)],
            of_edge("edge 1 (a -> c) is served by the transfer of edge 0 (a -> b) and also has a separate one", 1),
        ),
        (True, [(0, 2), (2, 7)], Violation(Rule.TRANSFER, "a transfer names edge 2; the problem has 2 edges", edge=2)),
        (
            True,
            [(-1, 7), (0, 2)],
            Violation(Rule.TRANSFER, "a transfer names edge -1; the problem has 2 edges", edge=-1),
        ),
        (
            True,
            None,
            Violation(Rule.TRANSFER, "the schedule has no table of transfers; port contention requires one with 1 row"),
        ),
    ],
)
def test_transfer_wants_each_needed_row_once(
    shared: bool, rows: list[tuple[int, int]] | None, expected: Violation
) -> None:
    problem = small(contention="port", shared=[shared, shared])
    check(problem, schedule([0, 1, 1], [0, 20, 22], rows), expected)


def test_transfer_wants_no_row_for_an_edge_that_stays() -> None:
    check(
        small(contention="port"),
        schedule([0, 0, 1], [0, 2, 7], [(0, 2), (1, 2)]),
        of_edge("edge 0 (a -> b) stays on cpu but has a transfer", 0),
    )


def test_transfer_wants_both_rows_named_after_the_lowest_edge() -> None:
    # The right number of rows, in the name of the wrong edge.
    check(
        small(contention="port", shared=[True, True]),
        schedule([0, 1, 1], [0, 6, 8], [(1, 2)]),
        of_edge("edge 0 (a -> b) needs a transfer from cpu to gpu and has none", 0),
        of_edge("edge 1 (a -> c) is served by the transfer of edge 0 (a -> b) and also has a separate one", 1),
    )


def test_transfer_wants_no_table_without_contention() -> None:
    # The table is ignored: the data still leaves when a ends, at 2.
    check(
        small(),
        schedule([0, 1, 1], [0, 6, 8], [(0, 40), (7, 1)]),
        Violation(Rule.TRANSFER, "the schedule has a table of transfers, but the problem has no contention"),
    )


@pytest.mark.parametrize(
    ("edge", "start", "shapes"),
    [([0, 1], [2], "(2,) for edge and (1,)"), ([[0, 1]], [[2, 6]], "(1, 2) for edge and (1, 2)")],
)
def test_transfer_wants_a_table_of_equal_lengths(edge: list[Any], start: list[Any], shapes: str) -> None:
    plan = Schedule(np.array([0, 1, 1]), np.array([0, 6, 8]), Transfers(np.array(edge), np.array(start)))
    expected = f"the table of transfers has shapes {shapes} for start; expected two arrays of equal length"
    check(small(contention="port"), plan, Violation(Rule.TRANSFER, expected))


def test_an_uplink_carries_one_transfer_each_way() -> None:
    """t0 on a and t1 on b send 4 bytes each to t2 on x and t3 on y; root is the uplink of a and b."""
    problem = free(
        4, durations=[0, 0, 0, 0], device_names=("a", "b", "x", "y"), edges=[(0, 2), (1, 3)], payload=[4, 4],
        byte_ticks_num=np.ones((4, 4)), shared_links=build_shared_links(4, {"root": SharedLink([0, 1])}),
    )  # fmt: skip
    early = "the transfer of edge 1 (t1 -> t3) starts at tick 3, but root carries the transfer of edge 0 (t0 -> t2)"
    broken = Violation(Rule.LINK, f"{early} until tick 4: 1 tick too early", 1, 0, None, 1, 1)
    check(problem, schedule([0, 1, 2, 3], [0, 0, 4, 8], [(0, 0), (1, 4)]))
    check(problem, schedule([0, 1, 2, 3], [0, 0, 4, 7], [(0, 0), (1, 3)]), broken)
    check(problem, schedule([2, 3, 0, 1], [0, 0, 4, 7], [(0, 0), (1, 3)]), broken)  # both come in
    check(problem, schedule([0, 2, 3, 1], [0, 0, 4, 7], [(0, 0), (1, 3)]))  # one goes out, one comes in
    check(problem, schedule([0, 0, 1, 2], [0, 0, 4, 7], [(0, 0), (1, 3)]))  # one stays inside
    half = replace(problem, shared_links=build_shared_links(4, {"root": SharedLink([0, 1], half=True)}))
    check(half, schedule([0, 2, 3, 1], [0, 0, 4, 7], [(0, 0), (1, 3)]), broken)
    medium = replace(problem, shared_links=build_shared_links(4, {"root": SharedLink([0, 1, 2], medium=True)}))
    check(medium, schedule([0, 1, 2, 0], [0, 0, 4, 7], [(0, 0), (1, 3)]), broken)
    check(medium, schedule([0, 1, 2, 3], [0, 0, 4, 7], [(0, 0), (1, 3)]))  # t3 is not in the group
    missing = "the schedule has no table of transfers; shared links require one with 2 rows"
    check(medium, schedule([0, 1, 2, 3], [0, 0, 4, 7]), Violation(Rule.TRANSFER, missing))


def test_port_sends_and_receives_one_at_a_time() -> None:
    early = "the transfer of edge 1 (a -> c) starts at tick 5, but"
    check(
        small(contention="port"),
        schedule([0, 1, 1], [0, 6, 9], [(0, 2), (1, 5)]),
        *(
            Violation(
                Rule.PORT,
                f"{early} {port} the transfer of edge 0 (a -> b) until tick 6: 1 tick too early",
                task=0,
                other_task=0,
                device=device,
                edge=1,
                amount=1,
            )
            for device, port in enumerate(("cpu sends", "gpu receives"))
        ),
    )


@pytest.mark.parametrize(
    ("edges", "device", "ports"),
    [
        ([(0, 2), (1, 3)], [0, 0, 1, 2], ["d0 sends"]),  # one sender, two receivers
        ([(0, 2), (1, 3)], [0, 1, 2, 2], ["d2 receives"]),  # two senders, one receiver
        ([(0, 2), (1, 3)], [0, 1, 1, 2], []),  # d1 sends while it receives
    ],
)
def test_port_is_one_way_each(edges: list[tuple[int, int]], device: list[int], ports: list[str]) -> None:
    problem = free(
        4,
        durations=[0] * 4,
        device_names=("d0", "d1", "d2"),
        edges=edges,
        latency=np.full((3, 3), 4),
        contention="port",
    )
    report = verify(problem, schedule(device, [0, 0, 9, 9], [(0, 0), (1, 3)]))
    assert [(v.rule, v.edge, v.amount) for v in report.violations] == [(Rule.PORT, 1, 1)] * len(ports)
    assert all(port in v.message for v, port in zip(report.violations, ports, strict=True))


@pytest.mark.parametrize(
    ("device", "second", "ports"),
    [
        ([0, 1, 1, 2], 3, ["d1 receives"]),  # d1 sends while it receives
        ([1, 0, 2, 1], 3, ["d1 sends"]),  # d1 receives while it sends
        ([0, 1, 1, 0], 3, ["d0 sends", "d1 receives"]),  # both, in opposite directions
        ([0, 1, 1, 2], 4, []),  # d1 sends when it has received
        ([0, 1, 2, 3], 3, []),  # different devices
    ],
)
def test_a_port_for_both_directions(device: list[int], second: int, ports: list[str]) -> None:
    problem = free(
        4,
        durations=[0] * 4,
        device_names=("d0", "d1", "d2", "d3"),
        edges=[(0, 2), (1, 3)],
        latency=np.full((4, 4), 4),
        contention="half_duplex",
    )
    plan = schedule(device, [0, 0, 9, 9], [(0, 0), (1, second)])
    expected = [
        f"the transfer of edge 1 (t1 -> t3) starts at tick 3, but {port} the transfer of edge 0 (t0 -> t2) until tick "
        "4: 1 tick too early"
        for port in ports
    ]
    report = verify(problem, plan)
    assert [(v.rule, v.message) for v in report.violations] == [(Rule.PORT, message) for message in expected]
    assert verify(replace(problem, contention="port"), plan).feasible


def test_memory_sum_counts_everything_a_device_ever_holds() -> None:
    problem = small(resident=[1, 2, 3], output=[10, 20, 30], scratch=[100, 200, 300], capacity=[110, 554])
    check(
        problem,
        schedule([0, 1, 1], [0, 6, 8]),
        Violation(Rule.MEMORY, "cpu needs 111 bytes but has 110: 1 too many", device=0, amount=1),
        Violation(Rule.MEMORY, "gpu needs 555 bytes but has 554: 1 too many", device=1, amount=1),
    )


def test_memory_peak_counts_what_is_live_at_one_tick() -> None:
    # a: [0, 2), its output until c has it at 6; b: [6, 8) on the gpu, c: [8, 9); their outputs have no consumers.
    # cpu: 1 + 10 + 100 in [0, 2). gpu: 5 + 220 in [6, 8), 5 + 330 in [8, 9).
    arrays = {"resident": [1, 2, 3], "output": [10, 20, 30], "scratch": [100, 200, 300]}
    plan = schedule([0, 1, 1], [0, 6, 8])
    check(small(**arrays, capacity=[111, 335], memory_model="peak"), plan)
    check(
        small(**arrays, capacity=[110, 300], memory_model="peak"),
        plan,
        Violation(Rule.MEMORY, "cpu needs 111 bytes at tick 0 but has 110: 1 too many", device=0, amount=1),
        Violation(Rule.MEMORY, "gpu needs 335 bytes at tick 8 but has 300: 35 too many", device=1, amount=35),
    )


def test_memory_peak_holds_an_output_until_the_last_consumer_has_it() -> None:
    # a's 10 bytes: until b ends on the cpu at 5, until c's copy arrives on the gpu at 2 + 4 = 6 or,
    # under contention, when its transfer is over at 3 + 4 = 7. d takes 1 byte in [5, 8).
    arrays: dict[str, Any] = {
        "task_names": ("a", "b", "c", "d"),
        "duration": [[2, 2], [3, 3], [1, 1], [1, 1]],
        "output": [10, 0, 0, 0],
        "scratch": [0, 0, 0, 1],
        "capacity": [10, UNLIMITED],
        "memory_model": "peak",
    }
    crowded = Violation(Rule.MEMORY, "cpu needs 11 bytes at tick 5 but has 10: 1 too many", device=0, amount=1)
    check(small(**arrays), schedule([0, 0, 1, 0], [0, 2, 6, 5]), crowded)
    check(small(**arrays), schedule([0, 0, 1, 0], [0, 2, 6, 6]))
    port = small(**arrays, contention="port")
    crowded = Violation(Rule.MEMORY, "cpu needs 11 bytes at tick 6 but has 10: 1 too many", device=0, amount=1)
    check(port, schedule([0, 0, 1, 0], [0, 2, 7, 6], [(1, 3)]), crowded)
    check(port, schedule([0, 0, 1, 0], [0, 2, 7, 7], [(1, 3)]))


def test_memory_peak_names_the_first_tick_of_the_worst_excess() -> None:
    arrays: dict[str, Any] = {"durations": [1, 1, 1], "memory_model": "peak"}
    problem = free(3, scratch=[4, 5, 5], resident=[1, 0, 0], capacity=[4], **arrays)
    expected = "cpu needs 6 bytes at tick 3 but has 4: 2 too many"
    check(problem, schedule([0] * 3, [0, 3, 8]), Violation(Rule.MEMORY, expected, device=0, amount=2))
    problem = free(3, resident=[1, 2, 3], capacity=[4], **arrays)
    expected = "cpu needs 6 bytes at tick 0 but has 4: 2 too many"
    check(problem, schedule([0] * 3, [2, 3, 8]), Violation(Rule.MEMORY, expected, device=0, amount=2))


def test_colocation_wants_the_device_of_the_first_of_the_group() -> None:
    problem = free(4, durations=[1] * 4, device_names=("cpu", "gpu"), group=[7, 3, 7, 7])
    check(problem, schedule([1, 0, 1, 1], [0, 0, 1, 2]))
    check(
        problem,
        schedule([1, 0, 0, 1], [0, 0, 1, 2]),
        Violation(
            Rule.COLOCATION,
            "t2 is on cpu; it must share a device with t0, which is on gpu",
            task=2,
            other_task=0,
            device=0,
        ),
    )


def test_separation_wants_different_devices() -> None:
    problem = free(3, durations=[1] * 3, device_names=("cpu", "gpu"), separation=[(2, 0), (0, 1)])
    check(problem, schedule([0, 1, 1], [0, 0, 1]))
    check(
        problem,
        schedule([0, 1, 0], [0, 0, 1]),
        Violation(
            Rule.SEPARATION,
            "t0 and t2 are both on cpu; they must be on different devices",
            task=0,
            other_task=2,
            device=0,
        ),
    )


# The objective and claims


def measured(metrics: Sequence[Metric]) -> Problem:
    objective = Objective(tuple((Term(metric),) for metric in metrics))
    return small(
        objective=objective,
        shared=[True, True],
        resident=[1, 2, 3],
        output=[6, 0, 0],
        capacity=[9, UNLIMITED],
        power_num=[3, 5],
        power_den=[2, 1],
        byte_energy_num=[[0, 1], [1, 0]],
        byte_energy_den=[[1, 4], [4, 1]],
        relocation=[[0, 50], [3, 20], [100, 4]],
        due=[UNLIMITED, 6, 6],
        due_weight=[1, 1, 2],
        price=[[1, 1], [9, 5], [9, 6]],
    )


def test_every_metric_by_hand() -> None:
    # a on the cpu, b and c on the gpu: 2 + 2 + 1 ticks of computing, one transfer of 6 bytes in 4 ticks,
    # ceil(2 * 3/2) + 2 * 5 + 1 * 5 + ceil(6/4) nanojoules, 7 of 9 bytes used; a stays, b and c move for 20 + 4 ticks;
    # b and c end at 8 and 9, 2 and 3 ticks late; 1 + 5 + 6 billionths; two devices.
    report = verify(measured(METRICS), schedule([0, 1, 1], [0, 6, 8]))
    assert report.objective == (9, 5 + 4, 3, 6, 3 + 10 + 5 + 2, 777_778, 24, 2 + 2 * 3, 12, 2)
    # Everything on the cpu: nothing moves; 12 of 9 bytes is reported unchanged.
    report = verify(measured(METRICS), schedule([0, 0, 0], [0, 2, 4]))
    assert report.objective == (8, 8, 8, 0, 3 + 3 + 6, 1_333_334, 103, 4, 19, 1)
    assert [v.rule for v in report.violations] == [Rule.MEMORY]


def test_a_right_claim_passes() -> None:
    plan = schedule([0, 1, 1], [0, 6, 8])
    assert verify(small(), plan, [9]).feasible
    assert verify(small(), plan, (Fraction(9),)).feasible
    thirds = small(objective=Objective(((Term("makespan", Fraction(1, 3)), Term("max_load", Fraction(2))),)))
    assert verify(thirds, plan, [9]).objective == (9,)  # 9/3 + 2 * 3, an int
    assert isinstance(verify(thirds, plan).objective[0], int)  # type: ignore[index]
    halves = small(objective=Objective(((Term("makespan", Fraction(1, 2)),),)))
    assert verify(halves, plan, [Fraction(9, 2)]) == Report((), (Fraction(9, 2),), 9)


def test_a_wrong_claim_is_a_violation() -> None:
    plan = schedule([0, 1, 1], [0, 6, 8])
    report = verify(small(), plan, [7])
    assert report.violations == (
        Violation(Rule.OBJECTIVE, "level 1 of the objective (makespan) is 9; the claim states 7", amount=2),
    )
    assert not report.feasible
    assert report.objective == (9,)
    levels = measured(("communication", "makespan", "max_load"))
    text = "the objective (communication, then makespan, then max_load)"
    assert verify(levels, plan, [6, 10, Fraction(5, 2)]).violations == (
        Violation(Rule.OBJECTIVE, f"level 2 of {text} is 9; the claim states 10", amount=1),
        Violation(Rule.OBJECTIVE, f"level 3 of {text} is 3; the claim states 5/2"),
    )
    for claim in ([], [6], [6, 9, 3, 0]):
        expected = f"the claim has length {len(claim)}; expected 3, one number for each level of {text}"
        assert verify(levels, plan, claim).violations == (Violation(Rule.OBJECTIVE, expected),)


@pytest.mark.parametrize("claim", [float("nan"), float("inf"), 9.5])
def test_a_claim_that_is_no_number_of_ticks_is_wrong(claim: Any) -> None:
    report = verify(small(), schedule([0, 1, 1], [0, 6, 8]), [claim])
    assert [(v.rule, v.amount) for v in report.violations] == [(Rule.OBJECTIVE, None)]


def test_a_claim_may_be_one_number_and_nothing_but_numbers() -> None:
    plan = schedule([0, 1, 1], [0, 6, 8])
    assert verify(small(), plan, 9).feasible
    assert not verify(small(), plan, Fraction(19, 2)).feasible
    wrong: Any
    for wrong in (["9"], "9", [None], object()):
        with pytest.raises(UsageError, match=r"^claim is .*; expected a number for each level of the objective$"):
            verify(small(), plan, wrong)


def test_no_claim_is_judged_where_there_is_no_objective() -> None:
    report = verify(small(), schedule([0, 1, 5], [0, 6, 8]), [1])
    assert [v.rule for v in report.violations] == [Rule.PLACEMENT]


# Exact fits


def test_a_gap_that_fits_exactly_is_no_overlap() -> None:
    check(free(3, durations=[3, 2, 4]), schedule([0, 0, 0], [0, 3, 5]))
    assert not verify(free(3, durations=[3, 3, 4]), schedule([0, 0, 0], [0, 3, 5])).feasible


def test_memory_exactly_full_passes() -> None:
    arrays: dict[str, Any] = {"resident": [1, 2, 3], "output": [10, 20, 30], "scratch": [100, 200, 300]}
    check(small(**arrays, capacity=[111, 555]), schedule([0, 1, 1], [0, 6, 8]))


def test_what_ends_frees_before_what_starts_takes() -> None:
    problem = free(2, durations=[2, 2], output=[3, 4], scratch=[3, 2], capacity=[6], memory_model="peak")
    check(problem, schedule([0, 0], [0, 2]))


def test_a_task_of_no_duration_at_a_boundary_passes() -> None:
    # t0 [0, 5), t1 [5, 9); the others take no time: at both ends, twice in the middle.
    problem = free(6, durations=[5, 4, 0, 0, 0, 0])
    check(problem, schedule([0] * 6, [0, 5, 0, 5, 5, 9]))


def test_a_task_of_no_duration_does_not_interrupt() -> None:
    check(
        free(3, durations=[5, 0, 0]),
        schedule([0] * 3, [0, 3, 3]),
        *(
            Violation(
                Rule.OVERLAP,
                f"t{task} starts at tick 3 on cpu, where t0 runs until tick 5: 2 ticks too early",
                task=task,
                other_task=0,
                device=0,
                amount=2,
            )
            for task in (1, 2)
        ),
    )


def test_a_task_of_no_duration_needs_memory_only_for_an_output_that_stays() -> None:
    arrays: dict[str, Any] = {"durations": [0, 2], "memory_model": "peak", "edges": [(0, 1)]}
    check(free(2, scratch=[9, 0], output=[4, 0], capacity=[4], **arrays), schedule([0, 0], [0, 0]))
    check(
        free(2, scratch=[9, 0], output=[5, 0], capacity=[4], **arrays),
        schedule([0, 0], [0, 0]),
        Violation(Rule.MEMORY, "cpu needs 5 bytes at tick 0 but has 4: 1 too many", device=0, amount=1),
    )


def test_a_transfer_of_no_ticks_at_a_boundary_passes_and_does_not_interrupt() -> None:
    problem = free(
        6,
        durations=[0] * 6,
        device_names=("cpu", "gpu"),
        edges=[(0, 1), (2, 3), (4, 5)],
        payload=[4, 0, 0],
        byte_ticks_num=[[1, 1], [1, 1]],
        contention="port",
    )
    device, start = [0, 1, 0, 1, 0, 1], [0, 9, 0, 9, 0, 9]
    for at in ([0, 0], [0, 4], [4, 4], [6, 6]):
        check(problem, schedule(device, start, [(0, 0), (1, at[0]), (2, at[1])]))
    report = verify(problem, schedule(device, start, [(0, 0), (1, 1), (2, 4)]))
    assert [(v.rule, v.device, v.edge, v.amount) for v in report.violations] == [
        (Rule.PORT, 0, 1, 3),
        (Rule.PORT, 1, 1, 3),
    ]


def test_overlap_means_what_cp_sat_means_by_it() -> None:
    from ortools.sat.python import cp_model

    intervals = list(itertools.product(range(4), range(3)))  # start, duration
    cases: list[tuple[tuple[int, int], ...]] = list(itertools.combinations_with_replacement(intervals, 2))
    cases += random.Random(0).sample(list(itertools.combinations_with_replacement(intervals, 3)), 150)
    verdicts = Counter[bool]()
    for case in cases:
        model = cp_model.CpModel()
        model.add_no_overlap([model.new_fixed_size_interval_var(*interval, "") for interval in case])
        allowed = cp_model.CpSolver().solve(model) == cp_model.OPTIMAL
        problem = free(len(case), durations=[duration for _, duration in case])
        plan = schedule([0] * len(case), [start for start, _ in case])
        assert verify(problem, plan).feasible == allowed, case
        verdicts[allowed] += 1
    assert min(verdicts[True], verdicts[False]) > 50


# Several violations at once, and malformed schedules


def test_all_violations_are_reported_at_once_in_order() -> None:
    arrays: dict[str, Any] = {
        "contention": "port",
        "capacity": [5, UNLIMITED],
        "resident": [6, 0, 0],
        "group": [0, 1, 0],
        "separation": [(1, 2)],
        "release": [0, 3, 0],
        "deadline": [UNLIMITED, UNLIMITED, -1],
        "unavailable": build_unavailability([[(0, 1)], []]),
        "setups": build_setups([None, None, "x"], [{}, {"x": 1}]),
        "shared_links": build_shared_links(2, {"bus": SharedLink([0, 1], medium=True)}),
        "limits": [("makespan", 0)],
        "resources": build_resources(
            3, 2, renewable={"r": 1}, budgets={"b": 1}, uses={0: {"r": 1, "b": 1}, 2: {"r": 1, "b": 1}}
        ),
    }
    problem = small(**arrays, feasible=[[True, True], [True, False], [True, True]])
    plan = schedule([0, 1, 1], [-1, -1, -1], [(0, -1), (1, -1)])
    report = verify(problem, plan)
    # b counts as taking no time on the gpu, so it does not overlap c there.
    assert [(v.rule, v.task, v.amount) for v in report.violations] == [
        (Rule.FEASIBILITY, 1, None),
        (Rule.START, 0, 1),
        (Rule.START, 1, 1),
        (Rule.START, 2, 1),
        (Rule.RELEASE, 1, 4),
        (Rule.UNAVAILABLE, 0, 2),
        (Rule.RESOURCE, 2, 1),
        (Rule.BUDGET, None, 1),
        (Rule.DEADLINE, 2, 1),
        (Rule.SETUP, 2, 2),
        (Rule.PRECEDENCE, 1, 4),
        (Rule.PRECEDENCE, 2, 4),
        (Rule.TRANSFER, 0, 2),
        (Rule.TRANSFER, 0, 2),
        (Rule.PORT, 0, 4),
        (Rule.PORT, 0, 4),
        (Rule.LINK, 0, 4),
        (Rule.MEMORY, None, 1),
        (Rule.COLOCATION, 2, None),
        (Rule.SEPARATION, 1, None),
    ]
    assert verify(problem, plan) == report
    rules = {v.rule for v in verify(small(**arrays), plan, [7]).violations}
    assert rules == set(Rule) - {Rule.PLACEMENT, Rule.FEASIBILITY} - PIPELINES - TIERED - ADDRESSED
    nowhere = schedule([0, 1, 2], [-1, -1, -1], [(0, -1), (1, -1)])
    rules = {v.rule for v in verify(problem, nowhere).violations}
    assert rules == {
        Rule.PLACEMENT, Rule.FEASIBILITY, Rule.START, Rule.RELEASE, Rule.UNAVAILABLE, Rule.PRECEDENCE, Rule.TRANSFER,
        Rule.MEMORY,
    }  # fmt: skip


def test_a_pile_of_tasks_gives_one_violation_for_each_too_many() -> None:
    report = verify(free(200, durations=[3] * 200), schedule([0] * 200, [0] * 200))
    assert [(v.task, v.other_task) for v in report.violations] == [(task, 0) for task in range(1, 200)]


@pytest.mark.parametrize(
    ("device", "start", "wrong"),
    [
        ([0, 1], [0, 6, 8], ["device array has shape (2,)"]),
        ([0, 1, 1], [0, 6, 8, 9], ["start array has shape (4,)"]),
        ([], [], ["device array has shape (0,)", "start array has shape (0,)"]),
        ([[0, 1, 1]], [[0, 6, 8]], ["device array has shape (1, 3)", "start array has shape (1, 3)"]),
    ],
)
def test_arrays_of_the_wrong_shape_end_it(device: list[Any], start: list[Any], wrong: list[str]) -> None:
    report = verify(small(), Schedule(np.array(device), np.array(start)), [9])
    assert [v.message for v in report.violations] == [
        f"the schedule's {text}; expected (3,), one entry per task" for text in wrong
    ]
    assert {v.rule for v in report.violations} == {Rule.PLACEMENT}
    assert report.objective is None
    assert report.makespan is None


@pytest.mark.parametrize("n_devices", [0, 1, 2])
@pytest.mark.parametrize("memory_model", ["sum", "peak"])
def test_a_problem_without_tasks(n_devices: int, memory_model: MemoryModel) -> None:
    names = [f"d{d}" for d in range(n_devices)]
    objective = Objective((tuple(Term(metric) for metric in METRICS),))
    problem = build_problem(
        task_names=[],
        device_names=names,
        duration=np.empty((0, n_devices), dtype=np.int64),
        capacity=np.zeros(n_devices, dtype=np.int64),
        memory_model=memory_model,
        objective=objective,
    )
    assert check(problem, schedule([], [])) == Report((), (0,), 0)
    assert verify(problem, schedule([], []), [0]).feasible
    port = replace(problem, contention="port")
    assert check(port, schedule([], [], [])) == Report((), (0,), 0)
    assert [v.rule for v in verify(port, schedule([], [])).violations] == [Rule.TRANSFER]
    assert [v.rule for v in verify(port, schedule([], [], [(0, 0)])).violations] == [Rule.TRANSFER]


def test_a_problem_without_devices() -> None:
    problem = build_problem(task_names=["t"], device_names=[], duration=np.empty((1, 0), dtype=np.int64))
    check(problem, schedule([0], [0]), Violation(Rule.PLACEMENT, "t has device 0; the problem has no devices", task=0))


def test_reports_cannot_be_changed() -> None:
    report = verify(small(), schedule([0, 1, 1], [0, 5, 8]))
    with pytest.raises(FrozenInstanceError, match="violations"):
        report.violations = ()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="amount"):
        report.violations[0].amount = 0  # type: ignore[misc]


# Numbers beyond 64 bits


def test_times_beyond_64_bits_do_not_wrap() -> None:
    problem = small(duration=[[2**62, 3], [2**62 - 1, 2], [2**62, 1]])
    # a ends at 2**63: in 64 bits that is negative, and b would seem to wait for it.
    report = verify(problem, schedule([0, 1, 1], [2**62, 2**63 - 3, 2**63 - 1]))
    assert [(v.rule, v.task, v.amount) for v in report.violations] == [
        (Rule.PRECEDENCE, 1, 2**63 + 4 - (2**63 - 3)),
        (Rule.PRECEDENCE, 2, 2**63 + 4 - (2**63 - 1)),
    ]
    assert check(problem, schedule([0, 0, 0], [0, 2**62, 2**63 - 1])).makespan == 2**63 - 1 + 2**62
    report = verify(problem, schedule([0, 0, 0], [0, 2**62, 2**63 - 2]))
    assert [(v.rule, v.task, v.amount) for v in report.violations] == [(Rule.OVERLAP, 2, 1)]
    report = verify(problem, schedule([0, 0, 0], [-(2**63), 0, 2**62]))
    assert [(v.rule, v.amount) for v in report.violations] == [(Rule.START, 2**63)]


def test_release_times_and_deadlines_beyond_64_bits_do_not_wrap() -> None:
    problem = free(1, durations=[2**62], release=[2**62], deadline=[2**62 + 1])
    report = verify(problem, schedule([0], [-(2**63)]))
    assert [(v.rule, v.amount) for v in report.violations] == [(Rule.START, 2**63), (Rule.RELEASE, 2**63 + 2**62)]
    report = verify(problem, schedule([0], [2**63 - 1]))
    assert [(v.rule, v.amount) for v in report.violations] == [(Rule.DEADLINE, 2**63 - 2)]
    assert report.makespan == 2**63 - 1 + 2**62


def test_transfers_beyond_64_bits_do_not_wrap() -> None:
    # The product of payload and num needs 93 bits, the quotient 62.
    many = {"byte_ticks_num": [[1, 2**31 - 1]] * 2, "byte_ticks_den": [[1, 2**31 - 2]] * 2}
    problem = small(payload=[2**62 - 2**31, 0], **many)
    arrival = 2 + 1 + -(-(2**62 - 2**31) * (2**31 - 1) // (2**31 - 2))
    check(problem, schedule([0, 1, 1], [0, arrival, 3]))
    report = verify(problem, schedule([0, 1, 1], [0, arrival - 1, 3]))
    assert [(v.rule, v.task, v.amount) for v in report.violations] == [(Rule.PRECEDENCE, 1, 1)]
    # A transfer that ends after the last 64-bit tick.
    report = verify(small(contention="port"), schedule([0, 1, 0], [0, 9, 2], [(0, 2**63 - 4)]))
    assert [(v.rule, v.task, v.amount) for v in report.violations] == [(Rule.PRECEDENCE, 1, 2**63 - 9)]
    # A latency that, with a producer's end or a byte's ticks added, does not fit into 64 bits.
    for payload in ([0, 0], [1, 0]):
        problem = small(payload=payload, latency=[[0, 2**63 - 1], [0, 0]])
        report = verify(problem, schedule([0, 1, 0], [0, 9, 2]))
        assert [(v.rule, v.task, v.amount) for v in report.violations] == [
            (Rule.PRECEDENCE, 1, 2 + 2**63 - 1 + payload[0] - 9)
        ]
    # A quotient of 92 bits: no 64-bit start is late enough.
    problem = small(payload=[2**62, 0], byte_ticks_num=[[1, 2**30]] * 2, byte_ticks_den=[[1, 1]] * 2)
    report = verify(problem, schedule([0, 1, 1], [0, 2**63 - 1, 3]))
    assert [(v.rule, v.task, v.amount) for v in report.violations] == [(Rule.PRECEDENCE, 1, 2**92 + 3 - (2**63 - 1))]


@pytest.mark.parametrize("memory_model", ["sum", "peak"])
def test_amounts_beyond_64_bits_do_not_wrap(memory_model: MemoryModel) -> None:
    big = 2**62
    metrics: tuple[Metric, ...] = ("memory_balance", "energy", "communication", "relocation")
    objective = Objective(tuple((Term(metric),) for metric in metrics))
    problem = small(
        resident=[big, big, big],
        scratch=[big, big, big],
        payload=[big, big],
        capacity=[big, UNLIMITED],
        power_num=[2**31 - 1] * 2,
        byte_energy_num=[[0, 1], [1, 0]],
        relocation=[[big, 0], [big, big], [big, big]],
        memory_model=memory_model,
        objective=objective,
    )
    used = 6 * big if memory_model == "sum" else 4 * big
    report = verify(problem, schedule([0, 0, 0], [0, 2, 4]))
    assert [(v.rule, v.amount) for v in report.violations] == [(Rule.MEMORY, used - big)]
    assert report.objective == (used // big * 10**6, 8 * (2**31 - 1), 0, 3 * big)
    # The gpu needs up to 2**64 bytes and has no limit.
    far = verify(problem, schedule([0, 1, 1], [0, big, big + 9]))
    assert [(v.rule, v.device, v.amount) for v in far.violations] == [(Rule.MEMORY, 0, big)]
    assert far.objective == (2 * 10**6, 5 * (2**31 - 1) + 2 * big, 2 * big, 3 * big)


@pytest.mark.parametrize("kind", ["scratch", "output"])
def test_live_memory_beyond_64_bits_does_not_wrap(kind: str) -> None:
    problem = free(3, durations=[2, 2, 2], capacity=[2**62], memory_model="peak", **{kind: [2**62] * 3})
    report = verify(problem, schedule([0, 0, 0], [0, 0, 1]))
    assert [v.amount for v in report.violations if v.rule is Rule.MEMORY] == [2**63]


# Against a naive checker, on random problems and mutants of good schedules


class Naive:
    """The rules once more, counted tick by tick in dictionaries; times and amounts must be small."""

    def __init__(self, problem: Problem, plan: Schedule) -> None:
        self.problem = problem
        self.broken: set[Rule] = set()
        self.m = problem.n_devices
        devices = dict(enumerate(plan.device.tolist()))
        self.device = {task: d for task, d in devices.items() if 0 <= d < self.m}
        if len(self.device) < problem.n_tasks:
            self.broken.add(Rule.PLACEMENT)
        self.time = {}
        for task, d in self.device.items():
            self.time[task] = int(problem.duration[task, d]) if problem.feasible[task, d] else 0
            if not problem.feasible[task, d]:
                self.broken.add(Rule.FEASIBILITY)
        self.start = {task: int(plan.start[task]) for task in self.device}
        self.end = {task: self.start[task] + self.time[task] for task in self.device}
        if any(start < 0 for start in self.start.values()):
            self.broken.add(Rule.START)
        self.windows()
        given = problem.resources
        alone = [task for task in self.device if given is None or not given.parallel[self.device[task]]]
        if self.crowded([(self.device[task], self.start[task], self.end[task]) for task in alone]):
            self.broken.add(Rule.OVERLAP)
        self.changes()
        self.served = self.services()
        self.moves(plan)
        self.waits()
        self.stores()
        self.shares()
        self.groups()
        known = not self.broken & {Rule.PLACEMENT, Rule.FEASIBILITY}
        if known and any(getattr(self, metric)() > most for metric, most in problem.limits):
            self.broken.add(Rule.LIMIT)

    def crowded(self, intervals: list[tuple[int, int, int]]) -> bool:
        """Whether two (resource, start, end) run in one tick, or one of no length starts in the midst of one."""
        running = Counter((resource, tick) for resource, start, end in intervals for tick in range(start, end))
        midst = {(resource, tick) for resource, start, end in intervals for tick in range(start + 1, end)}
        instants = {(resource, start) for resource, start, end in intervals if start == end}
        return any(count > 1 for count in running.values()) or bool(midst & instants)

    def changes(self) -> None:
        """Between a task that lasts and the last such task before it on the device, all ticks of a setup are free."""
        setups = self.problem.setups
        lasting = [task for task in self.device if self.time[task]]
        for task in lasting if setups is not None else ():
            d = self.device[task]
            before = [
                other
                for other in lasting
                if self.device[other] == d and (self.start[other], other) < (self.start[task], task)
            ]
            last = max(before, key=lambda other: (self.start[other], other), default=None)
            names = {name: k for k, name in enumerate([*setups.names, None])}
            first = setups.label(int(setups.initial[d])) if last is None else setups.label(int(setups.family[last]))
            own = setups.label(int(setups.family[task]))
            idle = self.start[task] - (0 if last is None else self.end[last])
            ticks = int(setups.ticks[setups.kind[d]][names[first]][names[own]])
            if ticks and idle < ticks:
                self.broken.add(Rule.SETUP)

    def windows(self) -> None:
        """Every instant of a task, from its start to its end, is its release time or later, its deadline or earlier."""
        for task in self.device:
            instants = range(self.start[task], self.end[task] + 1)
            stated = self.problem.release[task] > 0
            if stated and any(instant < self.problem.release[task] for instant in instants):
                self.broken.add(Rule.RELEASE)
            stated = self.problem.deadline[task] != UNLIMITED
            if stated and any(instant > self.problem.deadline[task] for instant in instants):
                self.broken.add(Rule.DEADLINE)

    def services(self) -> dict[tuple[int, ...], list[int]]:
        """The edges that each needed transfer serves."""
        served: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for edge in range(self.problem.n_edges):
            a, b = self.ends(edge)
            if a in self.device and b in self.device and self.device[a] != self.device[b]:
                served[(a, self.device[b]) if self.problem.shared[edge] else (a, self.device[b], edge)].append(edge)
        return served

    def ends(self, edge: int) -> tuple[int, int]:
        return int(self.problem.edge_source[edge]), int(self.problem.edge_target[edge])

    def ticks(self, edge: int) -> int:
        a, b = (self.device[task] for task in self.ends(edge))
        num, den = int(self.problem.byte_ticks_num[a, b]), int(self.problem.byte_ticks_den[a, b])
        return int(self.problem.latency[a, b]) + ceil(int(self.problem.payload[edge]) * Fraction(num, den))

    def moves(self, plan: Schedule) -> None:
        """Fill `arrival` of every edge with both tasks placed; check the table of transfers."""
        self.arrival = {}
        rows: dict[int, list[int]] = defaultdict(list)
        port = self.problem.contention != "none" or self.problem.shared_links is not None
        if port != (plan.transfers is not None):
            self.broken.add(Rule.TRANSFER)
        if port and plan.transfers is not None:
            for edge, start in zip(plan.transfers.edge.tolist(), plan.transfers.start.tolist(), strict=True):
                rows[edge].append(start)
        needed = {min(edges) for edges in self.served.values()}
        for edge, starts in rows.items():
            judged = not 0 <= edge < self.problem.n_edges or all(task in self.device for task in self.ends(edge))
            if judged and (edge not in needed or len(starts) > 1):
                self.broken.add(Rule.TRANSFER)
        for edge in range(self.problem.n_edges):
            if all(task in self.device for task in self.ends(edge)):
                self.arrival[edge] = self.end[self.ends(edge)[0]]
        sending, receiving, carried = [], [], []
        for edges in self.served.values():
            carrier = min(edges)
            a, b = self.ends(carrier)
            sent = self.end[a]
            if carrier in rows:
                sent = rows[carrier][0]
                sending.append((self.device[a], sent, sent + self.ticks(carrier)))
                receiving.append((self.device[b], sent, sent + self.ticks(carrier)))
                ways = lanes(self.problem, self.device[a], self.device[b])
                carried += [(way, sent, sent + self.ticks(carrier)) for way in ways]
            elif port:
                self.broken.add(Rule.TRANSFER)
            if sent < self.end[a]:
                self.broken.add(Rule.TRANSFER)
            for edge in edges:
                self.arrival[edge] = sent + self.ticks(edge)
        if self.problem.contention == "half_duplex":
            sending, receiving = [*sending, *receiving], []
        one_each = self.problem.contention != "none"
        if one_each and (self.crowded(sending) or self.crowded(receiving)):
            self.broken.add(Rule.PORT)
        if self.crowded(carried):
            self.broken.add(Rule.LINK)

    def waits(self) -> None:
        if any(self.start[self.ends(edge)[1]] < arrival for edge, arrival in self.arrival.items()):
            self.broken.add(Rule.PRECEDENCE)

    def stores(self) -> None:
        """Fill `needs`, the bytes that each device needs."""
        resident, output, scratch = self.problem.resident, self.problem.output, self.problem.scratch
        freed = dict(self.end)
        for edge, arrival in self.arrival.items():
            a, b = self.ends(edge)
            freed[a] = max(freed[a], self.end[b] if self.device[a] == self.device[b] else arrival)
        self.needs = {}
        for d in range(self.m):
            tasks = [task for task in self.device if self.device[task] == d]
            always = sum(int(resident[task]) for task in tasks)
            if self.problem.memory_model == "sum":
                self.needs[d] = always + sum(int(output[task] + scratch[task]) for task in tasks)
            else:
                live = Counter[int]()
                for task in tasks:
                    live.update({tick: int(scratch[task]) for tick in range(self.start[task], self.end[task])})
                    live.update({tick: int(output[task]) for tick in range(self.start[task], freed[task])})
                self.needs[d] = always + max(live.values(), default=0)
            if self.problem.capacity[d] != UNLIMITED and self.needs[d] > self.problem.capacity[d]:
                self.broken.add(Rule.MEMORY)
            if any(0 < self.swap(d) > self.start[task] for task in tasks):
                self.broken.add(Rule.SWAP)
            windows = [] if self.problem.unavailable is None else self.problem.unavailable.of(d)
            runs = [(d, self.start[task], self.end[task]) for task in tasks]
            if any(self.crowded([run, (d, *window)]) for run, window in itertools.product(runs, windows)):
                self.broken.add(Rule.UNAVAILABLE)

    def shares(self) -> None:
        """Resources tick by tick, and budgets."""
        given = self.problem.resources
        if given is None:
            return
        now, ever = Counter[tuple[int, int]](), Counter[int]()
        for task in self.time:
            for r, amount in given.used(task, self.device[task]):
                ever[r] += amount
                now.update({(r, tick): amount for tick in range(self.start[task], self.end[task])})
        if any(used > given.capacity[r] for (r, _), used in now.items() if given.renewable[r]):
            self.broken.add(Rule.RESOURCE)
        if any(used > given.capacity[r] for r, used in ever.items() if not given.renewable[r]):
            self.broken.add(Rule.BUDGET)

    def swap(self, d: int) -> int:
        """Ticks of swapping, byte by byte."""
        if self.problem.tiers is None:
            return 0
        tier = Counter(sum(byte >= end for end in self.problem.tiers.end[d].tolist()) for byte in range(self.needs[d]))
        rates = zip(self.problem.tiers.byte_ticks_num[d], self.problem.tiers.byte_ticks_den[d], strict=True)
        return sum(ceil(tier[k] * Fraction(int(num), int(den))) for k, (num, den) in enumerate(rates))

    def groups(self) -> None:
        for a, b in itertools.combinations(self.device, 2):
            if self.problem.group[a] == self.problem.group[b] and self.device[a] != self.device[b]:
                self.broken.add(Rule.COLOCATION)
        for a, b in self.problem.separation.tolist():
            if a in self.device and b in self.device and self.device[a] == self.device[b]:
                self.broken.add(Rule.SEPARATION)

    def objective(self) -> tuple[Fraction, ...] | None:
        if self.broken & {Rule.PLACEMENT, Rule.FEASIBILITY}:
            return None
        values = {metric: getattr(self, metric)() for metric in METRICS}
        levels = self.problem.objective.levels
        return tuple(sum((t.weight * values[t.metric] for t in level), Fraction(0)) for level in levels)

    def makespan(self) -> int:
        return max(self.end.values())

    def total_cost(self) -> int:
        return sum(self.time.values()) + sum(self.ticks(min(edges)) for edges in self.served.values())

    def max_load(self) -> int:
        load = Counter({self.device[task]: 0 for task in self.device})
        for task, time in self.time.items():
            load[self.device[task]] += time
        return max(load.values())

    def communication(self) -> int:
        return sum(int(self.problem.payload[min(edges)]) for edges in self.served.values())

    def energy(self) -> int:
        p = self.problem
        computing = sum(
            ceil(time * Fraction(int(p.power_num[self.device[task]]), int(p.power_den[self.device[task]])))
            for task, time in self.time.items()
        )
        moving = 0
        for edges in self.served.values():
            a, b = (self.device[task] for task in self.ends(min(edges)))
            rate = Fraction(int(p.byte_energy_num[a, b]), int(p.byte_energy_den[a, b]))
            moving += ceil(int(p.payload[min(edges)]) * rate)
        return computing + moving

    def memory_balance(self) -> int:
        stated = {d: int(c) for d, c in enumerate(self.problem.capacity.tolist()) if c != UNLIMITED}
        return max((ceil(Fraction(self.needs[d] * 10**6, c or 1)) for d, c in stated.items()), default=0)

    def tardiness(self) -> int:
        due = {task: int(self.problem.due[task]) for task in self.end if self.problem.due[task] != UNLIMITED}
        ticks = Counter(task for task, tick in due.items() for _ in range(tick, self.end[task]))
        return sum(int(self.problem.due_weight[task]) * count for task, count in ticks.items())

    def price(self) -> int:
        return sum(int(self.problem.price[task, d]) for task, d in self.device.items())

    def devices(self) -> int:
        return sum(d in self.device.values() for d in range(self.m))

    def relocation(self) -> int:
        return sum(int(self.problem.relocation[task, d]) for task, d in self.device.items())


def random_case(rng: random.Random, contention: Contention, memory_model: MemoryModel) -> tuple[Problem, Schedule]:
    """A problem made around a good schedule: what that needs is allowed, often not one byte more."""
    n, m = rng.randint(1, 9), rng.randint(1, 4)
    device = [rng.randrange(m) for _ in range(n)]
    rank = rng.sample(range(n), n)
    edges = [(a, b) for a in range(n) for b in range(n) if rank[a] < rank[b] and rng.random() < 0.35]
    outputs = [rng.randint(0, 6) for _ in range(n)]
    shared = [rng.random() < 0.5 for _ in edges]
    group = list(range(n))
    for a, b in itertools.combinations(range(n), 2):
        if device[a] == device[b] and rng.random() < 0.15:
            group = [group[a] if label == group[b] else label for label in group]
    apart = [(a, b) for a, b in itertools.combinations(range(n), 2) if device[a] != device[b]]

    def square(low: int, high: int) -> list[list[int]]:
        return [[rng.randint(low, high) for _ in range(m)] for _ in range(m)]

    levels = tuple(
        tuple(
            Term(metric, Fraction(rng.randint(1, 4), rng.choice((1, 1, 3))))
            for metric in rng.sample(METRICS, rng.randint(1, 3))
        )
        for _ in range(rng.randint(1, 3))
    )
    problem = build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.array([[rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(m)] for _ in range(n)]),
        edges=edges,
        payload=[outputs[a] if own else rng.randint(0, 6) for (a, _), own in zip(edges, shared, strict=True)],
        shared=shared,
        feasible=np.array([[d == device[i] or rng.random() < 0.8 for d in range(m)] for i in range(n)]),
        resident=np.array([rng.randint(0, 3) for _ in range(n)]),
        output=np.array(outputs),
        scratch=np.array([rng.randint(0, 4) for _ in range(n)]),
        latency=np.array(square(0, 2)),
        byte_ticks_num=np.array(square(0, 3)),
        byte_ticks_den=np.array(square(1, 3)),
        power_num=np.array([rng.randint(0, 5) for _ in range(m)]),
        power_den=np.array([rng.randint(1, 3) for _ in range(m)]),
        byte_energy_num=np.array(square(0, 3)),
        byte_energy_den=np.array(square(1, 3)),
        relocation=np.array([[rng.choice((0, 1, 5)) for _ in range(m)] for _ in range(n)]),
        due=[rng.choice((UNLIMITED, rng.randint(0, 12))) for _ in range(n)],
        due_weight=[rng.randint(0, 3) for _ in range(n)],
        price=[[rng.randint(0, 5) for _ in range(m)] for _ in range(n)],
        group=np.array(group),
        separation=[pair for pair in apart if rng.random() < 0.2],
        objective=Objective(levels),
        contention=contention,
        memory_model=memory_model,
        shared_links=random_links(np.random.default_rng(rank), m),
    )
    plan = serial(rng, problem, device, sorted(range(n), key=rank.__getitem__))
    good = Naive(problem, plan)
    tiers = None
    if memory_model == "sum" and rng.random() < 0.5:
        wait = rng.randint(0, 4)
        rows = None
        if plan.transfers is not None:
            moved = plan.transfers
            rows = list(zip(moved.edge.tolist(), (moved.start + wait).tolist(), strict=True))
        plan = schedule(device, (plan.start + wait).tolist(), rows)
        tiers = swapped_before(rng, problem, plan)
        good = Naive(problem, plan)
    capacity = [rng.choice((good.needs[d], good.needs[d], good.needs[d] + 1, UNLIMITED)) for d in range(m)]
    if tiers is not None:
        capacity = tiers.capacity.tolist()
    release = [rng.choice((0, rng.randint(0, good.start[i]), good.start[i])) for i in range(n)]
    deadline = [rng.choice((UNLIMITED, good.end[i], good.end[i] + rng.randint(0, 3))) for i in range(n)]
    arrays = {"capacity": capacity, "release": release, "deadline": deadline}
    changes = {name: np.array(values) for name, values in arrays.items()}
    shared = just_enough(problem, plan)
    problem = replace(problem, **changes, tiers=tiers, unavailable=closed(problem, plan), resources=shared)
    problem = replace(problem, setups=fitting(problem, plan))
    limited = random.Random(str(plan.start) + "limits").sample(METRICS, 2)
    return replace(problem, limits=tuple((metric, METRIC_VALUES[metric](problem, plan)) for metric in limited)), plan


def just_enough(problem: Problem, plan: Schedule) -> Resources | None:
    """Resources of which the plan needs all, or all but one; some devices run several tasks at once."""
    rng = random.Random(str(plan.start) + "shared")
    n, m, kinds = problem.n_tasks, problem.n_devices, rng.randint(0, 5)
    if kinds == 0:
        return None
    uses = {
        i: {f"r{k}": [rng.randint(0, 3) for _ in range(m)] for k in range(kinds) if rng.random() < 0.6}
        for i in range(n)
    }
    device, end = plan.device.tolist(), (plan.start + durations(problem, plan.device)).tolist()
    limits: tuple[dict[str, int], dict[str, int]] = {}, {}
    for k in range(kinds):
        mine = {i: uses[i][f"r{k}"][device[i]] for i in range(n) if f"r{k}" in uses[i]}
        budget, live = rng.random() < 0.7, Counter[int]()
        for i, amount in mine.items():
            live.update({0: amount} if budget else dict.fromkeys(range(plan.start[i], end[i]), amount))
        limits[budget][f"r{k}"] = max(live.values(), default=0) + rng.choice((0, 0, 0, 1))
    parallel = [rng.random() < 0.3 for _ in range(m)]
    return build_resources(
        n, m, renewable=limits[0], budgets=limits[1], uses=uses, parallel=parallel, feasible=problem.feasible
    )


def fitting(problem: Problem, plan: Schedule) -> Setups | None:
    """Setup times of which the plan leaves just enough, or one tick more, between some families."""
    rng = random.Random(str(plan.start) + "setups")
    names = ["x", "y", "z"]
    family = [rng.choice([*names, None]) for _ in range(problem.n_tasks)]
    initial = [rng.choice([*names, None]) for _ in range(problem.n_devices)]
    ticks, several = durations(problem, plan.device), problem.resources and problem.resources.parallel
    changes: list[dict[str, dict[str, int]]] = []
    for d in range(problem.n_devices):
        least: dict[tuple[str | None, str | None], int] = {}
        last, end = initial[d], 0
        for i in sorted(np.flatnonzero((plan.device == d) & (ticks > 0)).tolist(), key=plan.start.__getitem__):
            pair = last or "*", family[i]
            least[pair] = min(least.get(pair, 99), int(plan.start[i]) - end)
            last, end = family[i], int(plan.start[i] + ticks[i])
        if several is not None and several[d]:
            changes.append({})
            continue
        by = itertools.product(names, [*names, "*"])
        times = {
            (before, after): max(least.get((before, after), rng.randint(0, 4)) - rng.choice((0, 0, 1)), 0)
            for after, before in by
        }
        changes.append({name: {before: times[before, name] for before in [*names, "*"]} for name in names})
    return build_setups(family, changes, initial)


def closed(problem: Problem, plan: Schedule) -> Unavailability | None:
    """Windows in which no task of the plan runs, often just before or after one."""
    rng = random.Random(str(plan.start))
    windows: list[list[tuple[int, int]]] = []
    for _ in range(problem.n_devices):
        tried = [(begin, begin + rng.randint(1, 4)) for begin in rng.sample(range(12), rng.randint(0, 6))]
        windows.append([])
        for window in tried:
            windows[-1].append(window)
            more = build_unavailability([*windows, *([()] * (problem.n_devices - len(windows)))])
            if Rule.UNAVAILABLE in Naive(replace(problem, unavailable=more), plan).broken:
                windows[-1].pop()
    return build_unavailability(windows)


def swapped_before(rng: random.Random, problem: Problem, plan: Schedule) -> Tiers:
    """Tiers such that each device has swapped when its first task starts, often just so."""
    first, further = [], []
    needs = Naive(problem, plan).needs
    for d in range(problem.n_devices):
        begin = min(plan.start[plan.device == d], default=0)
        while True:
            near = rng.randint(0, needs[d])
            rates = sorted(((1, rng.randint(1, 4)), (rng.randint(1, 2), 1)), key=lambda rate: Fraction(*rate))
            last = rng.choice((needs[d] + 1, UNLIMITED))
            tiers = [(rng.randint(0, 5), *rates[0]), (last, *rates[1])][rng.randint(0, 1) :]
            alike = build_tiers([near] * problem.n_devices, [tiers] * problem.n_devices)
            if Naive(replace(problem, tiers=alike), plan).swap(d) <= begin and alike.capacity[d] >= needs[d]:
                break
        first.append(near)
        further.append(tiers)
    return build_tiers(first, further)


def serial(rng: random.Random, problem: Problem, device: list[int], order: list[int]) -> Schedule:
    """One task after another, each as early as its device, its data and the ports allow, some a little later."""
    table = problem.contention != "none" or problem.shared_links is not None
    plan = schedule(device, [0] * len(device), [] if table else None)
    naive = Naive(problem, plan)
    free, sends, receives, links = (defaultdict[int, int](int) for _ in range(4))
    if problem.contention == "half_duplex":
        receives = sends
    start = [0] * len(device)
    arrival: dict[int, int] = {}
    rows = []
    for task in order:
        d = device[task]
        incoming = [arrival[edge] for edge in range(problem.n_edges) if naive.ends(edge)[1] == task]
        start[task] = max([free[d], *incoming]) + rng.choice((0, 0, 0, 1, 2))
        end = free[d] = start[task] + naive.time[task]
        arrival |= {edge: end for edge in range(problem.n_edges) if naive.ends(edge)[0] == task}
        for key, edges in naive.served.items():
            if key[0] != task:
                continue
            sent, ticks = end, naive.ticks(edges[0])
            if table:
                ways = lanes(problem, d, key[1])
                ports = [] if problem.contention == "none" else [sends[d], receives[key[1]]]
                sent = max([end, *ports, *(links[way] for way in ways)]) + rng.choice((0, 0, 0, 1))
                sends[d] = receives[key[1]] = sent + ticks
                links |= dict.fromkeys(ways, sent + ticks)
                rows.append((edges[0], sent))
            arrival |= dict.fromkeys(edges, sent + ticks)
    rng.shuffle(rows)
    return schedule(device, start, rows if table else None)


def mutants(rng: random.Random, problem: Problem, plan: Schedule) -> list[Schedule]:
    """The schedule with one thing changed, in every way a solver is likely to be wrong."""
    n, m = problem.n_tasks, problem.n_devices
    device, start = plan.device.tolist(), plan.start.tolist()
    rows = None
    if plan.transfers is not None:
        rows = list(zip(plan.transfers.edge.tolist(), plan.transfers.start.tolist(), strict=True))

    def with_(values: list[int], task: int, value: int) -> list[int]:
        return [*values[:task], value, *values[task + 1 :]]

    def shifted(task: int, by: int) -> Schedule:
        return schedule(device, with_(start, task, start[task] + by), rows)

    task, other = rng.randrange(n), rng.randrange(n)
    changed = [
        schedule(with_(device, task, rng.randrange(m)), start, rows),
        schedule(with_(device, task, rng.choice((-1, m))), start, rows),
        schedule(device, [s - 1 for s in start], rows and [(edge, s - 1) for edge, s in rows]),
        schedule(device, [s + 1 for s in start], rows and [(edge, s + 1) for edge, s in rows]),
        schedule(device, with_(with_(start, task, start[other]), other, start[task]), rows),
        schedule(with_(with_(device, task, device[other]), other, device[task]), start, rows),
        schedule(device, start, None if rows is not None else []),
    ]
    changed += [shifted(each, -1) for each in range(n)]
    changed += [shifted(task, rng.choice((-3, -2, 1, 2, 5)))]
    if rows:
        row = rng.randrange(len(rows))
        edge, sent = rows[row]
        others = rows[:row] + rows[row + 1 :]
        changed += [
            schedule(device, start, others),
            schedule(device, start, [*rows, (edge, sent + rng.randint(0, 9))]),
            schedule(device, start, [*others, (rng.randint(-1, problem.n_edges), sent)]),
            schedule(device, start, [*rows, (rng.randint(-1, problem.n_edges), 50)]),
            schedule(device, start, [*others, (edge, sent + rng.choice((-2, 1, 2, 4)))]),
        ]
        changed += [schedule(device, start, [(e, s - (e == each)) for e, s in rows]) for each, _ in rows]
    return changed


def place(violation: Violation) -> tuple[int, ...]:
    where = (violation.task, violation.device, violation.edge)
    return (list(Rule).index(violation.rule), *(-1 if index is None else index for index in where))


@pytest.mark.parametrize("contention", get_args(Contention))
@pytest.mark.parametrize("memory_model", ["sum", "peak"])
def test_agrees_with_the_naive_checker(contention: Contention, memory_model: MemoryModel) -> None:
    rng = random.Random(f"{contention} {memory_model}")
    seen, verdicts = Counter[Rule](), Counter[bool]()
    for case in range(60):
        problem, plan = random_case(rng, contention, memory_model)
        good = verify(problem, plan)
        assert good.feasible, (case, good.violations)
        assert good.objective == Naive(problem, plan).objective() == evaluate(problem, plan)
        for mutant in mutants(rng, problem, plan):
            report, naive = verify(problem, mutant), Naive(problem, mutant)
            assert {v.rule for v in report.violations} == naive.broken, case
            assert report.objective == naive.objective(), case
            assert all(v.amount is None or v.amount > 0 for v in report.violations)
            assert list(report.violations) == sorted(report.violations, key=place), case
            seen.update(naive.broken)
            verdicts[report.feasible] += 1
    # The mutants cover all rules: some are still valid, many are not.
    assert min(verdicts.values()) > 50
    expected = set(Rule) - {Rule.OBJECTIVE} - PIPELINES - ADDRESSED - ({Rule.PORT} if contention == "none" else set())
    assert seen[Rule.LINK] >= 20
    expected -= TIERED if memory_model == "peak" else set()
    assert {rule for rule, count in seen.items() if count >= 5} == expected


@pytest.mark.parametrize("memory_model", ["sum", "peak"])
def test_one_byte_less_than_needed_is_too_little(memory_model: MemoryModel) -> None:
    rng = random.Random(memory_model)
    contentions: tuple[Contention, ...] = get_args(Contention)
    tried = 0
    for case in range(60):
        problem, plan = random_case(rng, contentions[case % 3], memory_model)
        for d, need in Naive(problem, plan).needs.items():
            if need:
                capacity = np.where(np.arange(problem.n_devices) == d, need - 1, UNLIMITED)
                report = verify(replace(problem, capacity=capacity, limits=()), plan)
                assert [(v.rule, v.device, v.amount) for v in report.violations] == [(Rule.MEMORY, d, 1)]
                tried += 1
    assert tried > 60


# The structure of the verifier


def test_the_verifier_imports_only_data_classes_types_and_their_check() -> None:
    imported: dict[str, set[str]] = {}
    trees = [ast.parse(path.read_text()) for path in Path(placeopt.verifier.__file__).parent.glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            imported.setdefault(str(node.module), set()).update(alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            imported |= {alias.name: set() for alias in node.names}
    own = {module: names for module, names in imported.items() if module.startswith("placeopt")}
    assert {module for module in own if not module.startswith("placeopt.verifier.")} == {
        "placeopt.errors",
        "placeopt.model.arrays",
        "placeopt.model.pipeline",
        "placeopt.model.problem",
        "placeopt.model.schedule",
    }
    assert own["placeopt.errors"] == {"UsageError"}
    assert own["placeopt.model.arrays"] == {"Bool", "Int"}
    assert own["placeopt.model.pipeline"] == {"Pipeline", "UNBOUNDED"}
    assert own["placeopt.model.problem"] <= {"Metric", "PARTS", "Problem", "UNLIMITED"}
    assert own["placeopt.model.schedule"] == {"Schedule", "Stages", "Transfers", "check_types"}
    derived = {"transfer", "memory", "order", "out_start", "in_start", "in_edge", "device_class", "group_feasible"}
    derived |= {"numbered", "contiguous"}
    read = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).rpartition(".")[2] in ("problem", "pipeline")
    }
    assert "edge_source" in read
    assert not read & derived


def test_the_table_of_rules_is_the_enum() -> None:
    lines = str(placeopt.verifier.__doc__).splitlines()
    table = [line.split()[0] for line in lines if line.startswith("    ")]
    assert table == [str(rule) for rule in Rule]
    functions: tuple[Callable[..., Any], ...] = RULES
    named = [str(function.__doc__).split(":")[0] for function in functions]
    assert named == [str(rule) for rule in Rule if rule not in (Rule.LIMIT, Rule.OBJECTIVE)]
