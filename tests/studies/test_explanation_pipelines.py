"""`placeopt explain` on pipelines: limits of stages and outputs in flight are lines that may conflict."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from pipelines import random_pipeline, unlike_pipeline

import placeopt as po
from placeopt.model.documents import problem_document
from placeopt.studies.explanation import Explanation, explain

HEAD = """\
placeopt: 1
resolution: 1 ms
objective: period
devices:
  gpu: {count: 2, memory: 10 GiB}
"""


def explained(folder: Path, tasks: str, pipeline: str, **options: Any) -> Explanation:
    path = folder / "p.yaml"
    path.write_text(f"{HEAD}pipeline: {pipeline}\ntasks:\n{tasks}")
    return explain(path, **{"time_limit": 30, "workers": 1, **options})


def lines(explanation: Explanation) -> dict[str, str]:
    """The path of each member, and its fix."""
    assert explanation.status == "infeasible"
    assert explanation.minimal
    return {
        member.to_dict()["path"]: "" if member.repair is None else member.repair.text for member in explanation.members
    }


def test_a_path_that_must_return(tmp_path: Path) -> None:
    tasks = """\
  a: {time: 1 ms, devices: gpu0}
  b: {time: 1 ms, devices: gpu1, after: a}
  c: {time: 1 ms, devices: gpu0, after: b}
"""
    found = lines(explained(tmp_path, tasks, "{stages: contiguous}"))
    assert found["pipeline.stages"] == "without this limit"
    assert set(found) == {"pipeline.stages", *(f"tasks.{name}.devices" for name in "abc")}


def test_outputs_of_two_runs(tmp_path: Path) -> None:
    """Two outputs of 6 GiB fit on two devices of 10 GiB once, not twice."""
    tasks = "".join(f"  {name}: {{time: 1 ms, memory: {{output: 6 GiB}}}}\n" for name in "ab")
    assert lines(explained(tmp_path, tasks, "{in_flight: inference}")) == {
        "devices.gpu.memory": "with 12 GiB, 2 GiB more (the minimum)",
        "pipeline.in_flight": "if it keeps those of one run",
    }


def test_too_much_memory_has_no_hint_to_another_memory_model(tmp_path: Path) -> None:
    found = explained(tmp_path, "".join(f"  {n}: {{time: 1 ms, memory: {{output: 7 GiB}}}}\n" for n in "abc"), "{}")
    assert found.reason == "all tasks together need 21 GiB of memory, and all devices have 20 GiB"
    assert lines(found) == {"devices.gpu.memory": "with 14 GiB, 4 GiB more (the minimum)"}


def test_a_feasible_pipeline_with_modes_has_a_schedule_and_a_bound() -> None:
    """Its schedule is one of the problem of the file, which has fewer devices than all tasks in all modes need."""
    modes = {"pair": {"team": {"d": 2}, "time": 1}, "one": {"time": 4}}
    tasks = {"a": {"time": 3}, "b": {"after": "a", "modes": modes}}
    document = {"placeopt": 1, "objective": "period", "devices": {"d": {"count": 2}}, "tasks": tasks}
    for stages in ("free", "contiguous"):
        found = explain({**document, "pipeline": {"stages": stages}}, time_limit=30, workers=1)
        assert (found.status, found.bound is not None) == ("feasible", True)
        assert found.schedule is not None
        assert po.verify(found.problem, found.schedule).feasible


def test_a_feasible_pipeline_states_its_period(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f"{HEAD}tasks:\n  a: {{time: 3 ms}}\n  b: {{time: 4 ms}}\n")
    done = run("explain", path)
    assert done.code == 0
    assert "the verifier accepts a schedule with a period of 4 ms" in done.out
    assert "no period is below 4 ms: all work, divided ideally over the devices, takes 4 ms (load)" in done.out


def test_a_feasible_pipeline_states_why_no_period_is_smaller(tmp_path: Path) -> None:
    """Three tasks of 2 ms on two devices: one of them runs two."""
    tasks = "".join(f"  {name}: {{time: 2 ms}}\n" for name in "abc")
    explanation = explained(tmp_path, tasks, "{}")
    assert explanation.status == "feasible"
    assert explanation.bound is not None
    assert explanation.bound.value == 4
    found = explanation.to_dict()["bound"]
    assert found == {"name": explanation.bound.name, "value": 4, "explanation": explanation.bound.explanation}


@pytest.mark.parametrize("seed", range(30))
def test_verdicts_equal_brute_force(seed: int) -> None:
    """Pipelines with little memory; each fix is a schedule, which the oracle has verified."""
    draw = random.Random(seed)
    problem = (random_pipeline, unlike_pipeline)[seed % 2](1000 + seed)
    document = problem_document(problem)
    for device in document["devices"].values():
        device["memory"] = f"{draw.randint(1, 25)} B"
    try:
        case = po.compile(document)
    except po.SpecError:
        return  # the compiler found the contradiction
    best = po.solve(case, "brute-force", workers=1)
    explanation = explain(document, time_limit=30, workers=1)
    assert explanation.status == ("infeasible" if best.objective is None else "feasible")
    if explanation.status == "infeasible":
        assert explanation.minimal
        assert all(member.repair is not None for member in explanation.members)
