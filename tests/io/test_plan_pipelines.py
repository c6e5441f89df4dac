"""Plan files of pipelines: stages, replicas, recomputation and both sides of each transfer, and mistakes in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pipelines import PERIOD, random_case

import placeopt as po
from placeopt.errors import PlanError
from placeopt.io.plan import plan_document, read_plan, write_plan
from placeopt.model.schedule import Stages
from placeopt.simulation.pipelines import periodic_schedule


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_keeps_the_whole_schedule(seed: int, tmp_path: Path) -> None:
    problem, device, stages = random_case(seed)
    schedule = periodic_schedule(problem, device, stages)
    write_plan(tmp_path / "plan.json", plan_document(problem, schedule))
    again = read_plan(tmp_path / "plan.json", problem).schedule
    assert schedule.transfers is not None
    assert again.transfers is not None
    assert again.stages is not None
    assert schedule.stages is not None
    for mine, read in ((schedule, again), (schedule.transfers, again.transfers), (schedule.stages, again.stages)):
        for name in ("device", "start", "edge", "sent", "number", "leader", "recompute"):
            if name != "sent" or len(schedule.transfers.edge):  # nothing moves
                assert np.array_equal(getattr(mine, name, 0), getattr(read, name, 0)), name
    assert po.verify(problem, again).objective == po.verify(problem, schedule).objective
    assert [str(each) for each in po.verify(problem, again).violations] == [
        str(each) for each in po.verify(problem, schedule).violations
    ]


def case() -> tuple[po.Problem, dict[str, Any]]:
    """A trained layer on x and y, which take turns, and one on z, which computes its output again."""
    problem = po.build_problem(
        task_names=["f", "g", "gb", "fb"],
        device_names=["x", "y", "z"],
        device_types=["big", "big", "small"],
        duration=[[3, 3, 9], [4, 4, 4], [4, 4, 4], [3, 3, 9]],
        edges=[(0, 1), (1, 2), (2, 3)],
        payload=[10, 0, 10],
        byte_ticks_num=np.ones((3, 3), dtype=int),
        forward=[0, 1, 1, 0],
        group=[0, 1, 1, 0],
        objective=PERIOD,
        pipeline={"segments": 1, "replicas": 2, "recompute": True, "gradient": [4, 0, 0, 0]},
    )
    stages = Stages(np.array([0, 1, 2, 3]), np.array([0, 0, 2]), np.array([0, 0, 1]), np.zeros(3))
    return problem, plan_document(problem, periodic_schedule(problem, [0, 2, 2, 0], stages))


def test_the_keys_of_a_plan() -> None:
    _, document = case()
    assert document["replicas"] == {"x": ["y"]}
    assert document["recompute"] == ["z"]
    assert list(document["synchronise"]) == ["x"]
    assert [task["stage"] for task in document["tasks"].values()] == [0, 1, 2, 3]
    assert all(row["sent"] <= row["start"] for row in document["transfers"])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda plan: plan["tasks"]["g"].pop("stage"), r"tasks\.g: the task has no stage, which other tasks have"),
        (lambda plan: plan["tasks"]["g"].update(stage="first"), r"tasks\.g\.stage: "),
        (lambda plan: plan.update(replicas={"w": ["y"]}), r'replicas\.w: .*"w"'),
        (lambda plan: plan.update(replicas={"x": ["w"]}), r'replicas\.x\[0\]: .*"w"'),
        (lambda plan: plan.update(replicas=["y"]), r"replicas: "),
        (lambda plan: plan.update(recompute=["w"]), r'recompute\[0\]: .*"w"'),
        (lambda plan: plan.update(synchronise={"x": "soon"}), r"synchronise\.x: "),
        (lambda plan: plan["transfers"][0].update(sent=0.5), r"transfers\[0\]\.sent: "),
        (lambda plan: plan.update(stages=1), r"stages: unknown key"),
    ],
)
def test_mistakes(edit: Callable[[dict[str, Any]], object], message: str, tmp_path: Path) -> None:
    problem, document = case()
    edit(document)
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(PlanError, match=message):
        read_plan(tmp_path / "plan.json", problem)
