"""The rule `address` for outputs that share bytes and for reserved bytes: by hand, and what bytes hold in mutants."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.errors import UsageError
from placeopt.model.layout import Layout, build_layout
from placeopt.model.schedule import BUFFERS, Offsets, Schedule
from placeopt.verifier import Rule, verify
from tests.support.sharing import corrupted, sharing_problem


def diamond(shares: Any, reserved: Any = ((),), **changes: Any) -> po.Problem:
    """a passes 64 bytes to b, which passes 64 to c and d; c passes 32 to d. Offsets are multiples of 16."""
    arrays: dict[str, Any] = {
        "task_names": "abcd", "device_names": ["mcu"], "duration": [[1]] * 4, "capacity": [256],
        "edges": [(0, 1), (1, 2), (1, 3), (2, 3)], "memory_model": "peak", "alignment": 16,
        "layout": build_layout([64, 64, 32, 64], shares, reserved),
    }  # fmt: skip
    return po.build_problem(**(arrays | changes))


def plan(*output: int) -> Schedule:
    none = np.zeros(4)
    return Schedule([0] * 4, [0, 1, 2, 3], offsets=Offsets(none, output, none))  # type: ignore[arg-type]


def messages(problem: po.Problem, schedule: Schedule) -> list[str]:
    """The messages of violations, which all are of the rule `address`."""
    violations = verify(problem, schedule).violations
    assert {violation.rule for violation in violations} <= {Rule.ADDRESS}
    return [violation.message for violation in violations]


def test_an_output_in_place_of_the_last_use() -> None:
    problem = diamond([(1, 0, 0, False)])
    assert messages(problem, plan(0, 0, 64, 96)) == []
    # At another byte, or if the problem does not allow it, the two overlap.
    overlap = (
        "the output of b at [16, 80) and the output of a at [0, 64) of mcu are both live at tick 1: 48 bytes overlap"
    )
    assert messages(problem, plan(0, 16, 96, 128)) == [overlap]
    assert messages(diamond([(2, 1, 0, True)]), plan(0, 0, 64, 96)) == [
        overlap.replace("16, 80", "0, 64").replace("48", "64")
    ]


def test_an_output_may_not_overwrite_what_another_task_needs() -> None:
    problem = diamond([(2, 1, 0, False), (3, 1, 0, False)])
    assert messages(problem, plan(64, 0, 64, 0)) == []  # d is the last task that needs b
    assert messages(problem, plan(64, 0, 0, 128)) == [
        "the output of c overwrites at tick 2 that of b, which is needed until tick 4"
    ]


def test_a_view_keeps_the_bytes_of_its_base() -> None:
    problem = diamond([(2, 1, 32, True)], edges=[(0, 1), (1, 2), (2, 3)])
    assert messages(problem, plan(64, 0, 32, 64)) == []
    # b is freed when c ends, but c is a part of it until d ends.
    assert messages(problem, plan(64, 0, 32, 0)) == [
        "the output of d at [0, 64) and the output of b at [0, 64) of mcu are both live at tick 3: 64 bytes overlap"
    ]
    assert messages(problem, plan(64, 0, 64, 0)) == []  # c may also lie elsewhere


def test_what_overwrites_a_view_overwrites_its_base() -> None:
    shares = [(2, 1, 0, True), (3, 2, 0, False)]
    layout = build_layout([64, 64, 32, 32], shares, [()])
    assert messages(diamond([], layout=layout), plan(64, 0, 0, 0)) == []
    assert "the output of d overwrites at tick 3 that of b, which is needed until tick 5" in messages(
        po.build_problem(
            task_names="abcde", device_names=["mcu"], duration=[[1]] * 5, capacity=[256], memory_model="peak",
            edges=[(0, 1), (1, 2), (2, 3), (1, 4)], alignment=16,
            layout=build_layout([64, 64, 32, 32, 16], shares, [()]),
        ),
        Schedule([0] * 5, range(5), offsets=Offsets(np.zeros(5), np.array([64, 0, 0, 0, 128]), np.zeros(5))),  # type: ignore[arg-type]
    )  # fmt: skip


def test_two_inputs_at_one_place_are_not_hidden_by_an_output_that_may_share_either() -> None:
    problem = po.build_problem(
        task_names="abc", device_names=["mcu"], duration=[[1]] * 3, edges=[(0, 2), (1, 2)], memory_model="peak",
        alignment=1, layout=build_layout([8, 8, 8], [(2, 0, 0, False), (2, 1, 0, False)], [()]),
    )  # fmt: skip
    schedule = Schedule([0] * 3, [0, 1, 2], offsets=Offsets(np.zeros(3), np.zeros(3), np.zeros(3)))  # type: ignore[arg-type]
    assert any("8 bytes overlap" in message for message in messages(problem, schedule))
    apart = replace(schedule, offsets=Offsets(np.zeros(3), np.array([0, 8, 8]), np.zeros(3)))  # type: ignore[arg-type]
    assert messages(problem, apart) == []


def test_reserved_bytes() -> None:
    problem = diamond([], [[(0, 8), (100, 112)]])
    assert messages(problem, plan(16, 112, 16, 176)) == []
    assert messages(problem, plan(0, 112, 16, 176)) == [
        "the output of a at [0, 64) of mcu contains 8 bytes of [0, 8), which are reserved"
    ]
    assert "the output of b at [96, 160) of mcu contains 12 bytes of [100, 112), which are reserved" in messages(
        problem, plan(16, 96, 16, 176)
    )


def test_no_bytes_are_wrong_where_the_verifier_finds_nothing() -> None:
    seen = Counter[tuple[bool, bool]]()
    for seed in range(120):
        problem, rng = sharing_problem(seed, most=6, devices=2, tight=False), random.Random(seed)
        good = po.solve(problem, "heft", workers=1, time_limit=5).schedule
        if good is None or good.offsets is None or problem.layout is None:
            continue
        rows = problem.layout.rows()
        for _ in range(20):
            arrays = {kind: getattr(good.offsets, kind).copy() for kind in BUFFERS}
            for _ in range(rng.choice([1, 1, 2, 3])):
                kind, i = rng.choice([*BUFFERS, "output"]), rng.randrange(problem.n_tasks)
                arrays[kind][i] = max(0, arrays[kind][i] + (problem.alignment or 1) * rng.randint(-5, 5))
                if rows and rng.random() < 0.5:
                    task, base, at, _ = rng.choice(rows)
                    arrays["output"][task] = arrays["output"][base] + at
            mutant = replace(good, offsets=Offsets(**arrays))
            accepted, wrong = verify(problem, mutant).feasible, bool(corrupted(problem, mutant))
            assert not (accepted and wrong), seed
            seen[accepted, wrong] += 1
    assert min(seen[True, False], seen[False, True]) > 300, seen


@pytest.mark.parametrize(
    ("shares", "reserved", "message"),
    [
        ([(1, 0, 0, False), (1, 0, 0, True)], [()], "output 1 has two rows with output 0"),
        ([(3, 1, 0, True), (3, 2, 0, True)], [()], "output 3 with 64 B does not lie within the 32 B of output 2"),
        ([(2, 1, 16, False)], [()], "output 2 overwrites from byte 16 on; expected 0, or a view"),
        ([(2, 1, 8, True)], [()], "view c begins at byte 8; expected a multiple of 16"),
        ([(1, 0, 0, True), (3, 0, 0, True)], [()], "a is not a producer of d"),
        ([(4, 0, 0, True)], [()], r"shares\[0\] is 4; expected 0 to 3"),
        ([], [[(8, 8)]], r"reserved\[0\]\[0\] is \(8, 8\); expected an end after the begin"),
        ([], [[(0, 300)]], r"region \(0, 300\) of device 0 ends above its 256 B"),
        ([], [[(0, 8)], []], "layout is not one of 4 tasks and 1 devices"),
    ],
)
def test_wrong_layouts(shares: Any, reserved: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        diamond(shares, reserved)


def test_a_layout_needs_addresses_and_joins_regions() -> None:
    with pytest.raises(UsageError, match="layout: expected an alignment"):
        diamond([(1, 0, 0, True)], alignment=None)
    layout = build_layout([1], (), [[(4, 8), (0, 4), (16, 20), (17, 18)]])
    assert isinstance(layout, Layout)
    assert (layout.reserved(0), layout.total.tolist(), layout.top(0, 16)) == ([(0, 8), (16, 20)], [12], 32)
    assert build_layout([1, 2]) is None
