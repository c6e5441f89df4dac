"""The use of devices by the stages of a pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from pipelines import random_case, training_pipeline, training_schedule

import placeopt as po
from placeopt.model.period import loads
from placeopt.model.stage_use import idle_devices, stage_names, stage_ranks, stage_uses, teams
from placeopt.simulation.pipelines import periodic_schedule


def test_forward_and_backward_tasks_of_a_stage_are_one_row() -> None:
    problem = training_pipeline()
    first, second = stage_uses(problem, training_schedule(problem))
    assert (first.stages, first.devices, first.tasks, first.kept) == ((1,), ("gpu0",), 4, 2)
    assert (first.computing, first.sent, first.received, first.load) == (18_000, 1000, 1000, 20_000)
    assert (first.idle, first.memory, first.capacity) == (0.0, 16_000_000, 64_000_000)
    assert (second.stages, second.load, second.idle, second.kept) == ((2,), 11_000, pytest.approx(0.45), 1)
    assert idle_devices(problem, training_schedule(problem)) == [2, 3]


def test_replicas_share_a_row_and_the_load() -> None:
    problem = training_pipeline(replicas=2, recompute=True, launch="10us")
    schedule = training_schedule(problem, replicas=True, recompute=True)
    first, second = stage_uses(problem, schedule)
    assert first.devices == ("gpu0", "gpu2")
    assert (first.launching, first.recomputing, first.synchronised) == (20, 6000, 2000)
    assert first.load == 18_000 + 20 + 6000 + 2000 + 2000
    assert first.idle == 0.0
    assert second.idle == pytest.approx(1 - 11_020 / 14_010)
    assert first.to_dict()["devices"] == ["gpu0", "gpu2"]


def test_devices_without_numbered_stages_have_names_instead() -> None:
    problem = po.build_problem(
        task_names=["a", "b"], device_names=["x", "y"], duration=[[3, 3], [2, 2]],
        objective=po.Objective(((po.Term("period"),),)), pipeline={},
    )  # fmt: skip
    schedule = po.retime(problem, po.Schedule([1, 0], [0, 0]))
    assert [use.stages for use in stage_uses(problem, schedule)] == [(), ()]
    assert stage_names(problem, schedule) == ["x", "y"]
    assert stage_ranks(problem, schedule).tolist() == [1, 0]


def test_other_problems_have_no_stages() -> None:
    problem = po.build_problem(task_names=["a"], device_names=["x"], duration=[[3]])
    with pytest.raises(po.UsageError, match="stage_uses takes a pipeline; the objective makespan"):
        po.stage_uses(problem, po.Schedule([0], [0]))


@pytest.mark.parametrize("seed", range(40))
def test_the_rows_cover_the_loads_of_random_pipelines(seed: int) -> None:
    problem, device, stages = random_case(seed)
    schedule = periodic_schedule(problem, device, stages)
    uses, load = stage_uses(problem, schedule), loads(problem, device, stages)
    assert sum(use.tasks for use in uses) == problem.n_tasks
    assert sum(use.load for use in uses) == load.total.sum()
    assert sorted(d for team in teams(problem, schedule) for d in team) == sorted(
        d for d in range(problem.n_devices) if d not in idle_devices(problem, schedule)
    )
    assert all(0 <= use.idle <= 1 for use in uses)
    if length := int(load.periods.max(initial=0)):  # the busiest team has less idle time than one tick for each device
        assert min(use.idle for use in uses) * length < 1
    rank = stage_ranks(problem, schedule)
    assert np.array_equal(rank, rank[problem.forward])
