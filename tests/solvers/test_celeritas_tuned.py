"""Tuned Celeritas: what it tries, what it chooses, and where it stops."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from placeopt_solvers.clustering.celeritas_tuned import (
    COLOCATIONS,
    EXECUTIONS,
    RANGES,
    SHARES,
    CeleritasTuned,
    combinations,
)
from trainable_problems import trainable_problem

import placeopt as po
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.building import build_problem
from placeopt.model.levels import bottom_levels
from placeopt.model.memory import fits
from placeopt.model.problem import Problem
from placeopt.model.schedule import lateness, makespan
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.protocol import Options, Progress, Termination
from placeopt.protocol.registry import find_solver
from placeopt.simulation import retime, simulate
from placeopt.verifier import verify


@cache
def translator() -> Problem:
    """A small LSTM translator in training: a pipeline over time steps, which large clusters hide."""
    sizes = {"batch": 64, "layers": 2, "width": 512, "source_length": 4, "target_length": 4, "granular": True}
    document = model_document("lstm_nmt", training=True, **sizes)
    problem = po.compile(document | network_document("v100x4", bandwidth="5.701 GB/s", latency="134 us"))
    return replace(problem, contention="port")


def solved(problem: Problem, **options: Any) -> Any:
    solver = CeleritasTuned()
    chosen = {key: options.pop(key) for key in list(options) if key in solver.settings_type.model_fields}
    return solver.solve(problem, Options(**options), solver.settings_type(**chosen))


def test_the_values_of_the_paper_come_first() -> None:
    first = next(combinations(translator()))
    assert first == CeleritasFusion() == CeleritasFusion(range=200, memory=0.25, order="cpd-topo", colocation="first")
    assert (RANGES[0], SHARES[0], COLOCATIONS[0]) == (200, 0.25, "first")


def test_a_search_beats_fixed_values() -> None:
    problem = translator()
    fixed = {how: po.solve(problem, "celeritas", placement=how).objective for how in ("adjusting", "order", "best")}
    result = po.solve(problem, "celeritas-tuned", workers=1, combinations=16)
    assert result.feasible
    assert result.objective is not None
    assert all(value is not None and result.objective < value for value in fixed.values())
    chosen = {key: result.stats[key] for key in ("range", "memory", "order", "colocation", "placement")}
    assert result.stats["combinations"] == 16
    words = ", ".join(f"{key}={value}" for key, value in chosen.items())
    executed = EXECUTIONS[result.stats["execution"]]
    assert result.message == f"celeritas with {words}, executed {executed}: the best of 16 combinations"
    # The message names the settings that give this placement.
    again = po.solve(problem, "celeritas", **chosen)
    assert again.schedule is not None
    assert result.schedule is not None
    assert (again.schedule.device == result.schedule.device).all()
    assert again.objective is not None
    assert result.objective <= again.objective


def test_executions_of_a_placement_are_compared() -> None:
    seen = set()
    for seed in range(40):
        problem = trainable_problem(np.random.default_rng(seed))
        found = solved(problem, combinations=3)
        if found.schedule is None:
            continue
        device, priority = found.schedule.device, bottom_levels(problem)
        least = makespan(problem, retime(problem, found.schedule))
        for way in (simulate(problem, device), simulate(problem, device, discipline="priority", priority=priority)):
            if lateness(problem, way) == 0 and fits(problem, way):
                assert least <= makespan(problem, way)
        seen.add(found.stats["execution"])
    assert seen == {"clusters", "fifo", "priority"}


def test_a_single_execution() -> None:
    problem = translator()
    found = po.solve(problem, "celeritas-tuned", workers=1, combinations=16, execution="fifo")
    assert found.schedule is not None
    assert found.stats["execution"] == "fifo"
    assert found.objective == makespan(problem, simulate(problem, found.schedule.device))
    best = po.solve(problem, "celeritas-tuned", workers=1, combinations=16)
    assert best.schedule is not None
    assert best.objective is not None
    assert best.objective <= found.objective <= makespan(problem, simulate(problem, best.schedule.device))


def test_it_is_never_worse_than_celeritas() -> None:
    seen = 0
    for seed in range(8):
        problem = trainable_problem(np.random.default_rng(seed))
        found = po.solve(problem, "celeritas-tuned", workers=1, combinations=10)
        for how in ("adjusting", "order"):
            other = po.solve(problem, "celeritas", placement=how)
            if other.feasible:
                assert found.feasible
                assert found.objective is not None
                assert found.objective <= other.objective
                seen += 1
    assert seen > 6


def test_equal_fusions_are_tried_once() -> None:
    """Without capacities M does not matter, without groups their treatment; R at least n is one cluster."""
    tasks: dict[str, Any] = {"task_names": list("abc"), "device_names": ["d", "e"], "duration": np.ones((3, 2), int)}
    bare = build_problem(**tasks, edges=[(0, 1), (1, 2)])
    assert [(each.range, each.memory, each.order) for each in combinations(bare)] == [
        (each, 0.25, "cpd-topo") for each in (200, 2, 1)
    ]
    grouped = build_problem(**tasks, edges=[(0, 1), (1, 2)], group=[0, 1, 0], capacity=np.array([9, 9]))
    tried = [(each.range, each.memory, each.colocation) for each in combinations(grouped)]
    assert len(tried) == 2 * 2 * 3 + 1  # two values of R, two treatments of groups, M of 2, 4 and 0 bytes; R = 1
    assert len(set(tried)) == len(tried)


def test_it_stops_when_it_must() -> None:
    problem = translator()
    reports: list[Progress] = []
    stopped = solved(problem, should_stop=lambda: True, on_progress=reports.append)
    assert (stopped.termination, stopped.stats["combinations"]) == (Termination.INTERRUPTED, 1)
    late = solved(problem, time_limit=1e-9)
    assert (late.termination, late.stats["combinations"]) == (Termination.TIME_LIMIT, 1)
    for each in (stopped, late):
        assert each.schedule is not None
        assert verify(problem, each.schedule).feasible
    assert len(reports) == 1
    assert reports[0].objective == verify(problem, stopped.schedule).objective[0]


def test_best_effort_loses_against_a_placement_that_fits() -> None:
    # In clusters of three tasks nothing fits; 18 bytes fill both devices to the last one.
    full: dict[str, Any] = {"resident": np.array([4, 5, 6, 3]), "capacity": np.array([9, 9])}
    problem = build_problem(
        task_names=list("abcd"), device_names=["d", "e"], duration=np.ones((4, 2), int), edges=[(0, 1)], **full
    )
    found = solved(problem)
    assert found.schedule is not None
    assert verify(problem, found.schedule).feasible
    tighter = replace(problem, capacity=np.array([10, 7]))
    over = solved(tighter)
    assert "best effort, because no device had room for some tasks" in over.message
    assert "by 1 B over capacity" in over.message
    strict = solved(tighter, strict=True)
    assert (strict.termination, strict.schedule) == (Termination.FAILED, None)
    assert "no device left for" in strict.message


def test_settings() -> None:
    with pytest.raises(po.UsageError, match="celeritas-tuned: setting combinations = 0: input should be greater"):
        po.solve(translator(), "celeritas-tuned", combinations=0)
    assert find_solver("celeritas-tuned").info.anytime
