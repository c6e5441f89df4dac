"""Generated models as pipelines: microbatches without updates, gradients of replicas, contiguous stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commandline import run

from placeopt.generate.models import model_document, model_graph, pipeline_sections
from placeopt.generate.networks import combine, network_document
from placeopt.io.compiler import compile_spec, load
from placeopt.io.spec import GraphFile
from placeopt.orchestration.pipeline import solve

SMALL_TRANSFORMER = {"layers": 2, "heads": 4, "width": 16, "ff_width": 32, "vocabulary": 50, "source_length": 5}
SMALL_LSTM = {"layers": 2, "width": 8, "vocabulary": 20, "source_length": 4, "target_length": 3}
NETWORK = network_document(
    "custom", devices=2, speed="1 GFLOP/s", memory_bandwidth="1 GB/s", bandwidth="1 TB/s", latency="0 s"
)

PIPELINES: list[tuple[str, dict[str, Any]]] = [
    ("vgg19", {}),
    ("resnet50", {}),
    ("inception_v3", {}),
    ("transformer", SMALL_TRANSFORMER),
    ("lstm_nmt", SMALL_LSTM),
]


@pytest.mark.parametrize(("name", "options"), PIPELINES)
def test_pipelines_train_microbatches_without_updates(name: str, options: dict[str, Any]) -> None:
    document = model_document(name, **options, training=True, objective="period")
    graph = model_graph(name, **options, training=True, objective="period")
    assert "the state of the optimiser (adam), which updates the weights after several runs" in document["description"]
    assert GraphFile.model_validate(document).tasks
    tasks = document["tasks"]
    assert not any(task.startswith("update/") for task in tasks)
    ahead = [task for task in tasks if not task.startswith("backward/")]
    assert {task: tasks[task].get("backward_of") for task in tasks} == {
        **dict.fromkeys(ahead), **{f"backward/{task}": task for task in ahead},
    }  # fmt: skip
    for task in ahead:
        for producer in tasks[task].get("after", ()):
            assert f"backward/{task}" in tasks[f"backward/{producer}"]["after"]
    gradients = {task: tasks[task]["gradient"] for task in tasks if "gradient" in tasks[task]}
    assert gradients == {users[0]: 4 * weights.parameters for weights, users in graph.users.items()}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("name", "options"), PIPELINES)
def test_pipelines_have_contiguous_stages_on_several_devices(
    name: str, options: dict[str, Any], training: bool
) -> None:
    """Colocation and forward tasks do not force all tasks onto one device."""
    document = model_document(name, **options, training=training, objective="period")
    problem = compile_spec(combine(document, NETWORK, **pipeline_sections(training=training)))
    result = solve(problem, "ideals", sets=100, workers=1)
    assert result.feasible
    assert result.schedule is not None
    assert len(set(result.schedule.device.tolist())) == 2


def test_a_shared_embedding_of_a_pipeline_is_a_choice() -> None:
    options = {**SMALL_TRANSFORMER, "objective": "period"}
    separate, shared = (
        model_document("transformer", **options, **more)["tasks"]["logits"] for more in ({}, {"shared_embedding": True})
    )
    assert "colocate" not in separate
    assert shared["colocate"] == "embedding"


def test_the_command_states_training_and_the_objective(tmp_path: Path) -> None:
    out = tmp_path / "p.yaml"
    done = run("generate", "model", "vgg19", "--training", "--objective", "period", "--network", "v100x4", "--out", out)
    assert (done.code, done.out, done.err) == (0, "", "")
    problem = load(out)
    assert problem.pipeline is not None
    assert problem.pipeline.in_flight == "1f1b"
    assert problem.pipeline.gradient.sum() == 4 * 143_667_240
    for arguments, message in (
        (("--objective", "perod"), 'option objective: "perod": input should be'),
        (("--training", "--set", "training=true"), "--training and --set training=true both state training"),
        (("--objective", "period", "--set", "objective=period"), "both state objective; expected one of them"),
    ):
        done = run("generate", "model", "vgg19", *arguments)
        assert done.code == 2
        assert message in done.err
