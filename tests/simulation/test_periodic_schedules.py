"""Periodic schedules: the verifier accepts them, and an execution of many runs reaches their period."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pipelines import random_pipeline

import placeopt as po
from placeopt.model.memory import used_memory
from placeopt.model.period import period
from placeopt.model.schedule import Schedule, Stages, Transfers, makespan
from placeopt.model.stages import rules, trivial_stages
from placeopt.simulation.pipelines import (
    _Compact,
    _scheduled,
    _topological,
    holds,
    operations,
    periodic_schedule,
    run_pipeline,
    stage_numbers,
)
from placeopt.verifier import Rule

TIMES = {Rule.PERIOD, Rule.PRECEDENCE, Rule.TRANSFER, Rule.START, Rule.OVERLAP}


def random_case(seed: int) -> tuple[po.Problem, np.ndarray, Stages]:
    """A pipeline, a placement that may overfill memory, and stages with replicas."""
    problem, draw = random_pipeline(seed), random.Random(seed)
    m, home = problem.n_devices, {}
    device = np.array([home.setdefault(g, draw.randrange(m)) for g in problem.group.tolist()], dtype=np.int64)
    leader = np.arange(m)
    used = sorted(set(device.tolist()))
    for d in set(range(m)) - set(used):
        alike = [
            other
            for other in used
            if problem.device_class[d] == problem.device_class[other]
            and (leader == other).sum() < rules(problem).replicas
        ]
        if alike:
            leader[d] = draw.choice(alike)
    trivial, number = trivial_stages(problem, device), stage_numbers(problem, device)
    again = np.array([int(rules(problem).recompute and draw.random() < 0.5) for _ in range(m)])
    return problem, device, Stages(trivial.number if number is None else number, leader, again, np.zeros(m))


@pytest.mark.parametrize("seed", range(60))
class TestRandomPipelines:
    def test_the_verifier_accepts_it(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        report = po.verify(problem, periodic_schedule(problem, device, stages))
        assert not [each for each in report.violations if each.rule in TIMES]
        assert report.objective == (period(problem, Schedule(device, device, None, stages)),)

    def test_without_gaps_too(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        ops = operations(problem, device, stages)
        start = _scheduled(problem, ops, _topological(problem, None), _Compact(ops, problem))
        synchronise = np.where(ops.synchronise >= 0, start[ops.synchronise], 0)
        transfers = Transfers(ops.carrier, start[ops.receive[ops.carrier]], start[ops.send[ops.carrier]])
        stages = Stages(stages.number, stages.leader, stages.recompute, synchronise)
        schedule = Schedule(device, start[: problem.n_tasks], transfers, stages)
        assert holds(problem, schedule)
        assert not [each for each in po.verify(problem, schedule).violations if each.rule in TIMES]

    def test_runs_reach_the_period(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        schedule = periodic_schedule(problem, device, stages)
        ticks = period(problem, schedule)
        assert ticks - 1 < run_pipeline(problem, schedule, 1000).mean <= ticks or ticks == 0

    def test_the_verifier_agrees_on_other_times(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        schedule, draw = periodic_schedule(problem, device, stages), random.Random(seed)
        for _ in range(20):
            start = schedule.start.copy()
            received, sent = schedule.transfers.start.copy(), schedule.transfers.sent.copy()
            for array in (start, received, sent):
                if array.size and draw.random() < 0.6:
                    array[draw.randrange(array.size)] += draw.choice([-3, -1, 1, 2, 5])
            moved = Schedule(device, start, Transfers(schedule.transfers.edge, received, sent), schedule.stages)
            broken = [each for each in po.verify(problem, moved).violations if each.rule in TIMES]
            assert holds(problem, moved) == (not broken)

    def test_the_verifier_agrees_on_memory(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        schedule = periodic_schedule(problem, device, stages)
        over = {d for d in range(problem.n_devices) if used_memory(problem, schedule)[d] > problem.capacity[d]}
        broken = {each.device for each in po.verify(problem, schedule).violations if each.rule is Rule.MEMORY}
        assert {stages.leader[d] for d in broken} == over

    def test_retiming_is_idempotent(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        once = po.retime(problem, Schedule(device, np.zeros(problem.n_tasks), None, stages))
        again = po.retime(problem, once)
        assert holds(problem, once)
        assert makespan(problem, again) == makespan(problem, once)
        assert np.array_equal(again.start, once.start)
