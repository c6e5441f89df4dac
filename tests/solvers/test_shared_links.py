"""Shared links: exact solvers and bounds against the oracle, heuristics against the verifier, and cases by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem, with_shared_links
from constrained_problems import constrained
from link_lanes import random_links
from placeopt_solvers._runs.validity import valid

import placeopt as po
from placeopt import engine
from placeopt.bounding.quick import bounds, prove_infeasible
from placeopt.errors import UnsupportedError
from placeopt.model.building import build_problem, with_changes
from placeopt.model.critical_path import critical_path
from placeopt.model.problem import Objective, Problem
from placeopt.model.shared_links import SharedLink, build_shared_links
from placeopt.protocol import Options, Termination, unsupported
from placeopt.protocol.registry import find_solver
from placeopt.verifier import Rule, verify

SOLVERS = ("cp-sat", "milp", "brute-force")


def drawn(seed: int) -> Problem:
    """Up to two producers and two consumers, mostly pinned, with links: few schedules avoid transfers."""
    rng = np.random.default_rng([77, seed])
    if seed % 6 == 0:
        return with_shared_links(small_problem(rng, Objective(), times=True, contention="port"), rng)
    m, n = int(rng.integers(2, 5)), 4
    home = np.concatenate((rng.permutation(m)[:2], rng.integers(0, m, 2)))
    feasible = np.eye(m, dtype=np.bool_)[home] | (rng.random((n, m)) < 0.2)
    edges = [(a, b) for a in (0, 1) for b in (2, 3) if rng.random() < 0.85]
    shared, output = rng.random(len(edges)) < 0.4, rng.integers(0, 9, n)
    own = rng.integers(0, 9, len(edges))
    contention: Any = ("none", "none", "port", "half_duplex")[seed % 4]
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(0, 4, (n, m)),
        latency=rng.integers(0, 2, (m, m)),
        edges=edges,
        payload=[int(output[a] if s else size) for (a, _), s, size in zip(edges, shared, own, strict=True)],
        shared=shared,
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
        feasible=feasible,
        output=output,
        release=rng.integers(0, 3, n),
        memory_model="peak" if seed % 5 == 0 else "sum",
        capacity=rng.integers(5, 30, m),
        contention=contention,
        shared_links=random_links(rng, m, least=1),
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_they_prove_what_the_oracle_finds(name: str) -> None:
    solver, tighter = find_solver(name), 0
    proved = infeasible = 0
    for seed in range(72):
        case = drawn(seed)
        if unsupported(solver.info, case) is not None:
            continue
        best = optimum(case)
        answer = solver.solve(case, Options(seed=seed), solver.settings_type())
        if best is None:
            assert answer.termination is Termination.INFEASIBLE, seed
            infeasible += 1
            continue
        assert answer.termination is Termination.OPTIMAL, seed
        assert answer.schedule is not None
        report = verify(case, answer.schedule)
        assert report.feasible, (seed, report.violations)
        assert (report.objective, answer.bound) == (best[0], best[0][0]), seed
        free = optimum(with_changes(case, shared_links=None))
        assert free is not None
        assert free[0] <= best[0]
        tighter += free[0] < best[0]
        proved += 1
    assert proved >= 30
    assert tighter >= 8


def test_no_bound_exceeds_the_optimum() -> None:
    tight = 0
    for seed in range(72):
        case = drawn(seed)
        best = optimum(case)
        if best is None:
            continue
        assert prove_infeasible(case) is None, seed
        found = bounds(case) if seed % 6 else po.bounds(case, time_limit=0.3)
        assert all(bound.value <= best[0][0] for bound in found), seed
        values = {bound.name: bound.value for bound in found}
        tight += values.pop("links", 0) > max(values.values(), default=0)
    assert tight >= 5


def test_all_solvers_support_shared_links_or_name_those_that_do() -> None:
    """Plans of 24 tasks are valid, which `po.solve` verifies."""
    case, refused = constrained(3, m=4, shared_links=random_links(np.random.default_rng(5), 4, least=2)), []
    small = uplink(feasible=None)
    for name in po.solvers():
        info = find_solver(name).info
        if "period" in info.metrics and "makespan" not in info.metrics:
            continue
        if unsupported(info, case) is not None:
            with pytest.raises(UnsupportedError, match=r"does not support shared links; .*cp-sat"):
                po.solve(case, name)
            refused.append(name)
            continue
        tried = small if info.exact or name == "single" else case
        result = po.solve(tried, name, workers=1, seed=1, strict=False, time_limit=1 if info.anytime else None)
        assert result.schedule is not None, name
        report = verify(tried, result.schedule)
        assert {violation.rule for violation in report.violations} <= {Rule.MEMORY, Rule.SEPARATION}, name
    assert "auto" not in refused
    assert refused == ["forward-backward", "giph", "lns", "memetic", "multilevel", "sct-lp", "series", "windows"]


def uplink(**rest: Any) -> Problem:
    """Two producers on the GPUs behind a root send 4 bytes each to one of the hosts."""
    values: dict[str, Any] = {
        "task_names": list("abcd"),
        "device_names": ["gpu0", "gpu1", "host0", "host1"],
        "duration": [[2, 2, 9, 9], [2, 2, 9, 9], [9, 9, 1, 1], [9, 9, 1, 1]],
        "feasible": [[True, True, False, False]] * 2 + [[False, False, True, True]] * 2,
        "edges": [(0, 2), (1, 3)],
        "payload": [4, 4],
        "byte_ticks_num": np.ones((4, 4), dtype=np.int64),
        "shared_links": build_shared_links(4, {"root": SharedLink([0, 1])}),
    }
    return build_problem(**values | rest)


def test_an_uplink_worked_by_hand() -> None:
    """Both end at 2. One transfer arrives at 6, the other at 10; if a GPU runs both, they end at 2 and 4."""
    assert uplink().device_class.tolist() == [0, 0, 1, 1]
    found = po.solve(uplink(), "cp-sat")
    assert (found.objective, found.bound) == (11, 11)
    assert po.solve(uplink(shared_links=None), "cp-sat").objective == 7
    assert {bound.name: bound.value for bound in bounds(uplink())}["links"] == 11
    assert found.schedule is not None
    path = critical_path(uplink(), found.schedule)
    assert [step.cause for step in path if step.kind == "transfer"] == ["data", "port"]
    inside = build_shared_links(4, {"m": SharedLink([0, 1], medium=True)})
    assert po.solve(uplink(shared_links=inside), "cp-sat").objective == 7


def test_a_link_of_two_directions() -> None:
    """a on gpu0 sends out while c on host0 sends in, unless the uplink is half duplex."""
    pins = np.eye(4, dtype=np.bool_)[[0, 2, 3, 1]]
    both = uplink(feasible=pins, duration=np.where(pins, 1, 0))
    assert po.solve(both, "milp").objective == 6
    half = uplink(feasible=pins, duration=np.where(pins, 1, 0), shared_links=halved())
    assert po.solve(half, "milp").objective == 10


def halved() -> Any:
    return build_shared_links(4, {"root": SharedLink([0, 1], half=True)})


def test_retimed_and_valid_schedules_agree_with_the_verifier() -> None:
    """`valid` of solvers accepts what the verifier accepts, also after a transfer moves by a tick."""
    verdicts = {True: 0, False: 0}
    for seed in range(60):
        case = drawn(seed)
        found = po.solve(case, "heft", strict=False).schedule
        if found is None or found.transfers is None:
            continue
        for k in range(found.transfers.edge.size):
            start = found.transfers.start.copy()
            start[k] -= 1
            moved = po.Schedule(found.device, found.start, po.Transfers(found.transfers.edge, start))
            verdict = verify(case, moved).feasible
            assert valid(case, moved) == verdict, seed
            verdicts[verdict] += 1
    assert verdicts[False] >= 10


def test_arguments_are_checked() -> None:
    for link, message in (
        (SharedLink([0, 1, 2, 3]), r"shared_links\[x\]: it joins 4 of 4; expected some of the devices, and not all"),
        (SharedLink([2], medium=True), r"shared_links\[x\]: it joins 1 of 4; expected at least two devices"),
        (SharedLink([4]), r"shared_links\[x\]"),
    ):
        with pytest.raises(po.UsageError, match=message):
            build_shared_links(4, {"x": link})
    with pytest.raises(po.UsageError, match="shared_links: they are for 3 devices; expected 4"):
        uplink(shared_links=build_shared_links(3, {"x": SharedLink([0])}))
    with pytest.raises(po.UsageError, match="shared_links is a dict; expected SharedLinks"):
        uplink(shared_links={})
    with pytest.raises(po.UsageError, match="shared_links: the objective period contains period"):
        uplink(objective=Objective(((po.Term("period"),),)))


def test_parts_keep_the_links_that_are_used() -> None:
    links = uplink().shared_links
    assert links is not None
    tasks = np.arange(2)
    assert links.part(tasks, np.array([0, 1])) is None
    part = links.part(tasks, np.array([1, 3]))
    assert part is not None
    assert part.links() == {"root": SharedLink([0], False, False)}


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("label", [0, 0, 1, -1], r"shared_links\.label: entry 3 is -1; expected at least 0 and at most 1"),
        ("label", [0, 0, 2, 1], r"shared_links\.row"),
        ("row", [0, 0, 2, 1, 2], r"shared_links\.row: entry 3 is 1; expected at least the entry before"),
        ("channel", [0, 2], r"shared_links\.channel: entry 1 is 2; expected at least 0 and at most 1"),
    ],
)
def test_the_engine_rejects_wrong_arrays(part: str, values: list[int], message: str) -> None:
    links = uplink().shared_links
    assert links is not None
    wrong = replace(links, **{part: np.array(values, dtype=np.int64)})
    with pytest.raises(po.UsageError, match=message):
        engine.Problem(replace(uplink(), shared_links=wrong))
