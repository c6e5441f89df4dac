"""Amounts at the documented limits: faults that were found there, and a few problems of benchmarks/limits.py."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.bounding.quick import Bound, bounds
from placeopt.bounding.quick.jackson import _spread

ROOT = Path(__file__).parents[1]

PARTS = {"metrics": 60, "slow": 8, "exact": 10, "heuristics": 8, "pipelines": 16}
"""Problems of each part."""

FOUND = {
    # Heads of `intervals` were ends minus durations that the quick bounds had clipped.
    "slow": (2_000_036, 2_000_175, 2_000_682, 2_000_823, 2_001_138),
    # CP-SAT refuses a sum of costs over all devices. Without edges, a link may have a latency above 2^62 ticks. Rounded
    # bottom levels put a consumer before its producer. The linear relaxation of live memory overflowed in CP-SAT.
    "exact": (2_002_060, 20_012_681, 20_024_386, 20_021_532),
    # HiGHS cut off optima of pipelines with periods of 10^7 and 22 ticks; SCIP's bound was 1 too high at 10^8. A stage
    # of `ideals` was not extended because of what its backward tasks sent to the task that came next.
    "pipelines": (1_000_547, 6_009_206, 6_002_853, 8_002_454, 6_026_314),
}
"""Seeds of each part with which `benchmarks/limits.py` found a fault."""


@pytest.mark.parametrize("part", list(PARTS))
def test_nothing_is_wrong_at_the_limits(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    limits = import_module("limits")
    tried: Counter[str] = Counter()
    for seed in (*range(PARTS[part]), *FOUND.get(part, ())):
        for name, wrong in limits.PARTS[part](seed, lambda _: True):
            assert wrong is None, f"seed {seed}: {name}"
            tried[name] += 1
    assert len(tried) > 4


SWAPPING: dict[str, Any] = {"b": {"memory": 1, "tiers": [{"bandwidth": 1}]}}
SERVER = {"memory": "16 GiB", "tiers": [{"memory": "64 GiB", "bandwidth": "3 GB/s"}, {"bandwidth": "200 MB/s"}]}
BIG = {"time": "1 s", "memory": "10 GiB"}
E10 = 10**10

WRONG: dict[str, tuple[dict[str, Any], int, tuple[str, ...]]] = {
    "a device without memory after one with tiers": (
        {"devices": SWAPPING | {"a": {}}, "tasks": {"x": {"time": 1, "memory": 5}}},
        1,
        ("heft", "brute-force", "cp-sat", "auto"),
    ),
    "a device without memory before one with tiers": (
        {"devices": {"a": {}} | SWAPPING, "tasks": {"x": {"time": 1, "memory": 5}}},
        1,
        ("heft", "brute-force", "cp-sat", "auto"),
    ),
    "two devices without memory": (
        {"devices": {"a": {"count": 2}} | SWAPPING, "tasks": {"x": {"time": 1, "memory": 5}}},
        1,
        ("heft", "cp-sat"),
    ),
    "a server with a hard disk": (
        {"devices": {"cpu": {}, "server": SERVER}, "tasks": {"x": BIG, "y": BIG}},
        10**9,
        ("heft", "cp-sat", "auto"),
    ),
    "sct-lp beyond double precision": (
        {"devices": {"b": {}, "a": {}}, "tasks": {"x": {"time": {"b": 2**53 + 4, "a": 2**53 + 3}}}},
        2**53 + 3,
        ("cp-sat", "brute-force"),
    ),
    "a core of sct-lp with one edge": (
        {
            "devices": {"a": {}, "b": {}},
            "links": {"default": {"latency": 1}},
            "tasks": {
                "s": {"time": 2**52},
                "x": {"time": 2**52 + 1, "after": "s"},
                "y": {"time": 2**52 + 3, "after": "s"},
                "e": {"time": 1, "after": ["x", "y"]},
            },
        },
        2**53 + 4,
        ("cp-sat", "brute-force", "auto"),
    ),
    "cp-sat calls it infeasible": (
        {
            "devices": {"d0": {"memory": 12}, "d1": {"memory": 2}, "d2": {"memory": 16}},
            "links": {
                "overrides": [
                    {"from": "d0", "to": "d1", "latency": E10 + 2},
                    {"from": "d0", "to": "d2", "latency": 2 * E10 + 1, "bandwidth": 5e-11},
                    {"from": "d1", "to": "d0", "latency": 0, "bandwidth": 1.5e-10},
                    {"from": "d1", "to": "d2", "latency": E10 + 2},
                    {"from": "d2", "to": "d0", "latency": 4 * E10 + 2, "bandwidth": 1e-10},
                    {"from": "d2", "to": "d1", "latency": 2, "bandwidth": 5e-11},
                ]
            },
            "tasks": {
                "t0": {"time": {"d0": E10, "d1": E10 + 1, "d2": E10}, "memory": 5, "deadline": 3 * E10},
                "t1": {"time": 0, "memory": 2, "deadline": 0},
                "t2": {"time": {"d0": 4 * E10, "d1": E10 + 1, "d2": E10 + 1}, "memory": 7},
                "t3": {"time": 0, "memory": 8, "after": {"t1": 2, "t2": 4}},
                "t4": {"time": {"d0": 0, "d1": 1, "d2": 0}, "memory": 8, "after": {"t0": 3, "t1": 2, "t3": 5}},
            },
        },
        15 * E10 + 1,
        ("brute-force", "cp-sat"),
    ),
    "a payload times the numerator of a bandwidth": (
        {
            "objective": "period",
            "pipeline": {"stages": "contiguous"},
            "devices": {"a": {"count": 2}},
            "links": {"default": {"bandwidth": "1.23456789 GB/s"}},
            "tasks": {
                "x": {"time": "60 s", "output": "100 GB", "memory": {"output": 0}},
                "y": {"time": "40 s", "output": "1 B", "after": "x"},
                "z": {"time": "50 s", "after": "y"},
            },
        },
        10**11 + 1,
        ("brute-force", "chains", "ideals", "cp-sat"),
    ),
    "a gradient times the devices of a team": (
        {
            "resolution": "1 us",
            "objective": "period",
            "pipeline": {"stages": "contiguous", "replicas": 16},
            "devices": {"a": {"count": 16}},
            "links": {"default": {"bandwidth": "1000 TB/s"}},
            "tasks": {"x": {"time": "1000 s", "gradient": 2**60 - 1}},
        },
        197_607_989,
        ("chains", "ideals"),
    ),
}
"""Problems, their optima, and solvers that prove them."""


@pytest.mark.parametrize("what", list(WRONG))
def test_optima_are_proved(what: str) -> None:
    document, optimum, solvers = WRONG[what]
    problem = po.compile({"placeopt": 1, "name": what, **document})
    for solver in solvers:
        result = po.solve(problem, solver, workers=1, time_limit=20)
        assert (result.objective, result.feasible) == (optimum, True), solver
        assert result.bound is not None
        assert result.bound <= optimum
    assert result.bound == optimum, solvers[-1]
    for bound in po.bounds(problem, time_limit=1):
        assert bound.value <= optimum, bound


@pytest.mark.parametrize(
    ("solver", "what"),
    [
        ("simple-placer", "a device without memory after one with tiers"),
        ("sct-lp", "sct-lp beyond double precision"),
    ],
)
def test_no_schedule_is_wrongly_called_optimal(solver: str, what: str) -> None:
    document, optimum, _ = WRONG[what]
    result = po.solve(po.compile({"placeopt": 1, **document}), solver, workers=1)
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound <= optimum < result.objective
    assert result.gap != 0


def test_a_bound_is_an_exact_number() -> None:
    for value in (np.int64(5), 5.0, True):
        with pytest.raises(po.InternalError, match=r"load states the bound .*; expected a Python int, or a Fraction"):
            Bound("load", value, "")  # type: ignore[arg-type]


def test_late_tasks_on_many_devices() -> None:
    """The sum of the earliest starts on 16 devices exceeds 64 bits."""
    late = 2**60 - 200
    tasks = {f"t{i}": {"time": 3, "release": late + i} for i in range(20)}
    found = {each.name: each.value for each in bounds(po.compile(
        {"placeopt": 1, "devices": {"d": {"count": 16}}, "tasks": tasks}
    ))}  # fmt: skip
    assert late + 3 <= found["jackson"] <= late + 22
    ticks = np.full(40, 2**59)
    assert 2**59 <= _spread(ticks, ticks >> 40, ticks, 32) <= 2**60 + 2**20


@pytest.mark.parametrize("function", [po.solve, po.bounds])
def test_totals_beyond_the_limits_are_rejected(function: Any) -> None:
    problem = po.build_problem(task_names="abc", device_names="d", duration=[[2**62]] * 3)
    match = "all durations and transfers add up to 1.4e\\+19 ticks, more than 2\\^60; use a coarser resolution"
    with pytest.raises(po.UsageError, match=match):
        function(problem)
