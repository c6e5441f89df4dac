"""`backward_of`: from a document to the compiled problem and back, in generated models, and behind other passes."""

from __future__ import annotations

import numpy as np
import pytest

import placeopt as po
from placeopt.generate.models import model_document
from placeopt.model.building import build_problem
from placeopt.model.documents import problem_document
from placeopt.model.pipeline import UNBOUNDED
from placeopt.passes.rebuilding import edges_of, rebuilt

STEP = {
    "placeopt": 1,
    "devices": {"d": {"count": 2}},
    "tasks": {
        "gradient": {"time": 2, "after": "f", "backward_of": "f"},
        "f": {"time": 1},
        "g": {"time": 1, "after": "f"},
        "weights": {"time": 2, "after": "f", "backward_of": "f"},
    },
}


def test_a_forward_task_may_have_several_backward_ones() -> None:
    assert po.compile(STEP).forward.tolist() == [1, 1, 2, 1]
    plain = {**STEP, "tasks": {"f": {"time": 1}}}
    assert po.compile(plain).forward.tolist() == [0]


def test_it_forces_nothing_and_is_not_in_the_fingerprint() -> None:
    bare = {name: {k: v for k, v in task.items() if k != "backward_of"} for name, task in STEP["tasks"].items()}  # type: ignore[attr-defined]
    assert po.compile({**STEP, "tasks": bare}).fingerprint() == po.compile(STEP).fingerprint()
    report = po.verify(po.compile(STEP), po.Schedule(np.array([1, 0, 0, 1]), np.array([1, 0, 1, 3])))
    assert report.feasible


def test_round_trips() -> None:
    problem = po.compile(STEP)
    assert po.compile(problem_document(problem)).forward.tolist() == [1, 1, 2, 1]
    graph = po.to_networkx(problem)
    assert graph.nodes["gradient"]["backward_of"] == "f"
    assert "backward_of" not in graph.nodes["g"]
    assert po.from_networkx(graph, {"d0": {}, "d1": {}}).forward.tolist() == problem.forward.tolist()


def test_tasks_left_out() -> None:
    problem = po.compile(STEP)
    none = edges_of(problem).kept(np.zeros(3, dtype=np.bool_))
    assert rebuilt(problem, tasks=np.array([1, 2, 3]), edges=none)[0].forward.tolist() == [0, 1, 0]
    assert rebuilt(problem, tasks=np.array([0, 2]), edges=none)[0].forward.tolist() == [0, 1]


@pytest.mark.parametrize("forward", [[0, 2], [0, -1], [1, 0]])
def test_what_is_no_forward_task(forward: list[int]) -> None:
    with pytest.raises(
        po.UsageError,
        match=r"forward\[[01]\] is (2|-1); expected 0 to 1|has the forward task 0; expected one that is its own",
    ):
        build_problem(task_names=["a", "b"], device_names=["d"], duration=np.ones((2, 1)), forward=np.array(forward))


def test_generated_models_in_training_have_them() -> None:
    document = model_document("vgg19", training=True)
    pairs = {name: task["backward_of"] for name, task in document["tasks"].items() if "backward_of" in task}
    assert pairs
    assert all(name == f"backward/{forward}" for name, forward in pairs.items())
    assert len(pairs) == sum(name.startswith("backward/") for name in document["tasks"])
    assert not any("backward_of" in task for task in model_document("vgg19")["tasks"].values())


@pytest.mark.parametrize("section", [{"stages": "contiguous"}, {"segments": 2}])
def test_devices_with_free_stages_are_free_of_the_limit_of_the_pipeline(section: dict[str, object]) -> None:
    """A device's own `stages: free` counts, whichever key limits the pipeline; then backward tasks are free, too."""
    document = {**STEP, "objective": "period", "pipeline": section}
    assert np.unique(po.compile(document).group[[0, 1, 3]]).size == 1
    free = {"d": {"count": 2, "pipeline": {"stages": "free"}}}
    problem = po.compile({**document, "devices": free})
    assert problem.pipeline is not None
    assert problem.pipeline.segments.tolist() == [UNBOUNDED] * 2
    assert np.unique(problem.group).size == 4
    limited = {**free, "e": {"pipeline": {"segments": 3}}}
    problem = po.compile({**document, "devices": limited})
    assert problem.pipeline is not None
    assert problem.pipeline.segments.tolist() == [UNBOUNDED, UNBOUNDED, 3]
    assert np.unique(problem.group[[0, 1, 3]]).size == 1
