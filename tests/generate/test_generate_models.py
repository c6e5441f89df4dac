"""The generated models against published sizes, hand-worked layers and the rules of a task graph."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from typing import Any, NamedTuple

import pytest

from placeopt.errors import UsageError
from placeopt.generate.convnets import ConvnetOptions, conv2d, pool
from placeopt.generate.layers import Graph, ModelOptions, Tensor, tasks
from placeopt.generate.models import MODELS, model_document, model_graph
from placeopt.io.spec import GraphFile

SMALL_TRANSFORMER = {"layers": 2, "heads": 4, "width": 16, "ff_width": 32, "vocabulary": 50, "source_length": 5}
SMALL_LSTM = {"layers": 2, "width": 8, "vocabulary": 20, "source_length": 4, "target_length": 3}
# The presets of the modules' docstrings, of the size of Celeritas's Transformer (36,352 nodes; 2022, table 2).
LARGE_TRANSFORMER = {
    "layers": 12,
    "heads": 64,
    "width": 4096,
    "ff_width": 16384,
    "split_heads": True,
    "training": True,
}
LARGE_LSTM = {"layers": 8, "source_length": 90, "target_length": 90, "granular": True, "training": True}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("vgg19", {}),
    ("vgg19", {"training": True, "optimiser": "sgd"}),
    ("resnet50", {}),
    ("resnet50", {"training": True}),
    ("inception_v3", {}),
    ("inception_v3", {"auxiliary": True, "training": True}),
    ("transformer", SMALL_TRANSFORMER),
    ("transformer", {**SMALL_TRANSFORMER, "split_heads": True, "training": True}),
    ("transformer", {**SMALL_TRANSFORMER, "shared_embedding": False}),
    ("transformer", LARGE_TRANSFORMER),
    ("lstm_nmt", SMALL_LSTM),
    ("lstm_nmt", {**SMALL_LSTM, "attention": False}),
    ("lstm_nmt", {**SMALL_LSTM, "bidirectional": True, "training": True}),
    ("lstm_nmt", {**SMALL_LSTM, "bidirectional": True, "granular": True, "training": True}),
    ("lstm_nmt", LARGE_LSTM),
    ("tensor_holography", {}),
    ("tensor_holography", {"training": True}),
]


class Totals(NamedTuple):
    """Sums over a graph, for comparison with published numbers."""

    tasks: int
    edges: int
    parameters: int
    macs: int
    flops: int
    activation_bytes: int
    resident_bytes: int


def totals(graph: Graph) -> Totals:
    operations = graph.operations.values()
    return Totals(
        tasks=len(operations),
        edges=sum(len(operation.producers) for operation in operations),
        parameters=sum(weights.parameters for weights in graph.users),
        macs=sum(operation.macs for operation in operations),
        flops=sum(operation.flops for operation in operations),
        activation_bytes=graph.options.bytes_per_element * sum(operation.output for operation in operations),
        resident_bytes=sum(task.get("memory", {}).get("resident", 0) for task in tasks(graph).values()),
    )


def tasks_of(name: str, **options: Any) -> dict[str, dict[str, Any]]:
    tasks: dict[str, dict[str, Any]] = model_document(name, **options)["tasks"]
    return tasks


def payloads(tasks: dict[str, dict[str, Any]], name: str) -> dict[str, int]:
    """Bytes that a task takes from each of its producers."""
    after = tasks[name].get("after", [])
    own = after if isinstance(after, dict) else dict.fromkeys(after)
    return {producer: tasks[producer]["output"] if size is None else size for producer, size in own.items()}


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_document_is_one_connected_graph_in_topological_order(name: str, options: dict[str, Any]) -> None:
    tasks = tasks_of(name, **options)
    root = {task: task for task in tasks}

    def find(task: str) -> str:
        while root[task] != task:
            root[task] = root[root[task]]
            task = root[task]
        return task

    seen: set[str] = set()
    for task in tasks:
        for producer, size in payloads(tasks, task).items():
            assert producer in seen, f"{task} comes before its producer {producer}"
            assert 0 < size <= tasks[producer]["output"] or task.startswith("update/")
            root[find(task)] = find(producer)
        seen.add(task)
    assert len({find(task) for task in tasks}) == 1


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_document_is_plain_json_that_the_spec_accepts(name: str, options: dict[str, Any]) -> None:
    document = model_document(name, **options)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    for task in document["tasks"].values():
        assert set(task) <= {"op", "flops", "bytes", "output", "memory", "after", "colocate", "backward_of"}
        assert all(type(task[key]) is int and task[key] >= 0 for key in ("flops", "bytes", "output"))
        assert task["bytes"] >= task["output"]
        assert all(type(amount) is int and amount > 0 for amount in task.get("memory", {"": 1}).values())
    assert len(GraphFile.model_validate(document).tasks) == len(document["tasks"])


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        # Carbonari, Kodirov, Golub 2017, section 4.
        ("vgg19", {}, 24),
        ("resnet50", {}, 176),
        ("inception_v3", {}, 311),
        # The auxiliary classifier: pool, 2 x (convolution, normalisation, ReLU), classifier.
        ("inception_v3", {"auxiliary": True}, 311 + 8),
        ("transformer", LARGE_TRANSFORMER, 41_515),
        ("lstm_nmt", LARGE_LSTM, 39_463),
        # 30 x (convolution, normalisation, activation), the shift, skips before layers 4, 6, ..., 30, a concatenation.
        ("tensor_holography", {}, 30 * 3 + 1 + 14 + 1),
    ],
)
def test_task_counts(name: str, options: dict[str, Any], count: int) -> None:
    assert len(tasks_of(name, **options)) == count


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("vgg19", {"conv2d": 16, "max_pool": 5, "dense": 3}),
        (
            "resnet50",
            # 1 + 16 x 3 + 4 shortcuts = 53 convolutions; no ReLU after a block's third or a shortcut's convolution,
            # but one after each of the 16 sums: 1 + 16 x 2 + 16 = 49.
            {"conv2d": 53, "batch_norm": 53, "relu": 49, "add": 16}
            | {"pad": 2, "max_pool": 1, "global_avg_pool": 1, "dense": 1},
        ),
        (
            "inception_v3",
            # Convolutions: 5 + 3 x 7 + 4 + 4 x 10 + 6 + 2 x 9 = 94. Concatenations: 11 modules, 2 x 2 inside.
            {"conv2d": 94, "batch_norm": 94, "relu": 94, "max_pool": 4, "avg_pool": 9, "concat": 15, "classifier": 1},
        ),
    ],
)
def test_what_the_tasks_of_the_convnets_are(name: str, operations: dict[str, int]) -> None:
    assert Counter(task["op"] for task in tasks_of(name).values()) == operations


@pytest.mark.parametrize(
    ("name", "options", "parameters", "gmacs"),
    [
        # Parameters and GMAC (called GFLOPS there) of torchvision's model table.
        ("vgg19", {}, 143_667_240, 19.63),
        ("resnet50", {}, 25_557_032, 4.09),
        ("inception_v3", {}, 23_834_568, 5.71),
        ("inception_v3", {"auxiliary": True}, 27_161_264, 5.71),
    ],
)
def test_parameters_and_macs_agree_with_published_ones(
    name: str, options: dict[str, Any], parameters: int, gmacs: float
) -> None:
    found = totals(model_graph(name, **options))
    assert found.parameters == parameters
    assert found.macs == pytest.approx(gmacs * 1e9, rel=0.01)


def test_totals_are_the_sums_of_the_document() -> None:
    graph, tasks = model_graph("resnet50"), tasks_of("resnet50")
    found = totals(graph)
    assert found.tasks == len(tasks)
    assert found.edges == sum(len(task.get("after", [])) for task in tasks.values())
    assert found.flops == sum(task["flops"] for task in tasks.values())
    assert found.activation_bytes == sum(task["output"] for task in tasks.values())
    assert found.resident_bytes == sum(task.get("memory", {}).get("resident", 0) for task in tasks.values())
    # 26,560 channels are normalised, each with a running mean and variance besides its two parameters.
    assert found.resident_bytes == 4 * (found.parameters + 2 * 26_560)


def test_the_first_convolution_worked_by_hand() -> None:
    # Inception-v3: 3x3x3 windows, stride 2, no padding: (299 - 3) / 2 + 1 = 149; 32 channels.
    first = tasks_of("inception_v3")["conv1/conv"]
    outputs, weights, image = 32 * 149 * 149, 32 * 27, 3 * 299 * 299
    assert first["flops"] == 2 * outputs * 27 == 38_363_328
    assert first["output"] == 4 * outputs
    assert first["bytes"] == 4 * (image + weights + outputs)
    assert first["memory"] == {"resident": 4 * weights}
    assert "after" not in first
    # VGG-19: 3x3x3 windows, padded: 224; 64 channels; a bias and a ReLU are fused.
    first = tasks_of("vgg19")["block1/conv1"]
    assert first["flops"] == 64 * 224 * 224 * (2 * 27 + 2)
    assert first["memory"] == {"resident": 4 * 64 * (27 + 1)}


@pytest.mark.parametrize(
    ("name", "task", "elements"),
    [
        ("vgg19", "block5/pool", 512 * 7 * 7),
        ("resnet50", "conv1/conv", 64 * 112 * 112),
        ("resnet50", "pool1/pool", 64 * 56 * 56),
        ("resnet50", "conv3/block4/relu", 512 * 28 * 28),
        ("resnet50", "conv5/block3/relu", 2048 * 7 * 7),
        # Szegedy et al. 2016, table 1.
        ("inception_v3", "pool2", 192 * 35 * 35),
        ("inception_v3", "mixed0/concat", 256 * 35 * 35),
        ("inception_v3", "mixed2/concat", 288 * 35 * 35),
        ("inception_v3", "mixed3/concat", 768 * 17 * 17),
        ("inception_v3", "mixed7/concat", 768 * 17 * 17),
        ("inception_v3", "mixed8/concat", 1280 * 8 * 8),
        ("inception_v3", "mixed10/concat", 2048 * 8 * 8),
        ("inception_v3", "predictions", 1000),
    ],
)
def test_feature_maps(name: str, task: str, elements: int) -> None:
    assert tasks_of(name)[task]["output"] == 4 * elements


def test_how_branches_join() -> None:
    inception, resnet = tasks_of("inception_v3"), tasks_of("resnet50")
    assert inception["mixed5/concat"]["after"] == [
        "mixed5/branch1x1/relu",
        "mixed5/branch7x7_3/relu",
        "mixed5/branch7x7dbl_5/relu",
        "mixed5/branch_pool/relu",
    ]
    assert inception["mixed9/branch3x3_2/concat"]["after"] == [
        "mixed9/branch3x3_2a/relu",
        "mixed9/branch3x3_2b/relu",
    ]
    assert resnet["conv3/block1/add"]["after"] == ["conv3/block1/3/norm", "conv3/block1/shortcut/norm"]
    assert resnet["conv3/block2/add"]["after"] == ["conv3/block2/3/norm", "conv3/block1/relu"]


def test_shapes_of_windows() -> None:
    graph = Graph(ModelOptions(batch=2))
    image = Tensor(None, (2, 3, 17, 12))
    assert conv2d(graph, "same", image, 8, 3, stride=2).shape == (2, 8, 9, 6)
    assert conv2d(graph, "valid", image, 8, (1, 7), padding="valid").shape == (2, 8, 17, 6)
    assert pool(graph, "pool", "max_pool", image, 3, stride=2).shape == (2, 3, 8, 5)


@pytest.mark.parametrize("name", MODELS)
def test_work_and_activations_grow_with_the_batch_and_weights_do_not(name: str) -> None:
    options: dict[str, Any] = {"transformer": SMALL_TRANSFORMER, "lstm_nmt": SMALL_LSTM}.get(name, {})
    one, eight = tasks_of(name, **options), tasks_of(name, **options, batch=8)
    assert list(one) == list(eight)
    for task, other in zip(one.values(), eight.values(), strict=True):
        assert (other["flops"], other["output"]) == (8 * task["flops"], 8 * task["output"])
        assert other.get("memory", {}).get("resident") == task.get("memory", {}).get("resident")
    half = tasks_of(name, **options, bytes_per_element=2)
    assert [2 * task["bytes"] for task in half.values()] == [task["bytes"] for task in one.values()]


def test_transformer_parameters() -> None:
    d, ff, vocabulary, layers = 512, 2048, 37_000, 6
    attention, norm, feed_forward = 4 * d * d, 2 * d, 2 * d * ff + ff + d
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    parameters = totals(model_graph("transformer")).parameters
    assert parameters == vocabulary * d + layers * (encoder + decoder)
    # "65" million in table 3 of the paper.
    assert parameters == pytest.approx(65e6, rel=0.05)
    separate = totals(model_graph("transformer", shared_embedding=False)).parameters
    assert separate == parameters + 2 * vocabulary * d


def test_splitting_heads_moves_work_but_adds_none() -> None:
    whole, split = (totals(model_graph("transformer", split_heads=split)) for split in (False, True))
    # 18 attention blocks: 8 chains instead of 1, of 7 tasks (8 where masked), and a concatenation.
    assert split.tasks - whole.tasks == 7 * (12 * 7 + 6 * 8) + 18
    assert (split.parameters, split.macs, split.flops) == (whole.parameters, whole.macs, whole.flops)


def test_a_transformer_attention_head_worked_by_hand() -> None:
    tasks = tasks_of("transformer", **SMALL_TRANSFORMER, target_length=3, split_heads=True)
    head = "decoder1/cross_attention/head2"
    # Width 16, 4 heads of width 4; 3 positions attend to 5.
    assert tasks[f"{head}/query"]["flops"] == 2 * 3 * 16 * 4
    assert tasks[f"{head}/key"]["flops"] == 2 * 5 * 16 * 4
    assert tasks[f"{head}/scores"]["flops"] == 2 * 3 * 5 * 4
    assert tasks[f"{head}/softmax"]["flops"] == 5 * 3 * 5
    assert tasks[f"{head}/context"]["flops"] == 2 * 3 * 4 * 5
    assert tasks[f"{head}/query"]["after"] == ["decoder1/self_attention/norm"]
    assert tasks[f"{head}/value"]["after"] == ["encoder2/feed_forward/norm"]
    masked = [name for name in tasks if name.endswith("/mask")]
    assert len(masked) == 8
    assert all("decoder" in name and "self_attention" in name for name in masked)


def test_a_tied_embedding_is_resident_once_and_shares_a_device() -> None:
    tasks = tasks_of("transformer", **SMALL_TRANSFORMER)
    tied = [name for name, task in tasks.items() if task.get("colocate") == "embedding"]
    assert tied == ["encoder/embedding", "decoder/embedding", "logits"]
    assert tasks["encoder/embedding"]["memory"] == {"resident": 4 * 50 * 16}
    assert not any("memory" in tasks[name] for name in tied[1:])
    # A lookup reads 5 ids and 5 rows, not the table, and writes 5 rows.
    assert tasks["encoder/embedding"]["bytes"] == 4 * (5 + 5 * 16 + 5 * 16)
    apart = tasks_of("transformer", **SMALL_TRANSFORMER, shared_embedding=False)
    assert not any("colocate" in task for task in apart.values())


def test_lstm_parameters() -> None:
    width, vocabulary, layers = 512, 30_000, 4
    cell = 4 * width * (2 * width + 1)
    attention, output = width * width + 2 * width * width, (width + 1) * vocabulary
    embeddings = 2 * vocabulary * width
    assert totals(model_graph("lstm_nmt")).parameters == embeddings + 2 * layers * cell + attention + output
    both_ways = totals(model_graph("lstm_nmt", bidirectional=True)).parameters
    # A second cell in layer 1; layer 2 reads twice the width.
    assert both_ways == embeddings + (2 * layers + 1) * cell + 4 * width * width + attention + output


def test_a_granular_lstm_does_the_work_of_a_fused_one() -> None:
    fused, granular = (totals(model_graph("lstm_nmt", **SMALL_LSTM, granular=granular)) for granular in (False, True))
    assert (granular.macs, granular.flops, granular.parameters) == (fused.macs, fused.flops, fused.parameters)
    # Two layers of 4 + 3 time steps: 13 tasks instead of one.
    assert granular.tasks - fused.tasks == 2 * 7 * 12


def test_all_time_steps_of_a_layer_share_weights_and_a_device() -> None:
    tasks = tasks_of("lstm_nmt", **SMALL_LSTM)
    steps = [f"encoder2/step{step}" for step in range(1, 5)]
    assert [name for name, task in tasks.items() if task.get("colocate") == "encoder2"] == steps
    assert tasks[steps[0]]["memory"] == {"resident": 4 * 4 * 8 * 17, "scratch": 4 * 4 * 8}
    assert all(tasks[name]["memory"] == {"scratch": 4 * 4 * 8} for name in steps[1:])
    # A cell makes h and c, 8 values each: the layer above takes h, the next step both.
    assert tasks["encoder2/step3"]["after"] == {"encoder1/step3": 4 * 8, "encoder2/step2": None}
    assert tasks["decoder2/step1"]["after"] == {"decoder1/step1": 4 * 8, "encoder2/step4": None}


def test_only_operators_with_weights_tie_a_granular_layer() -> None:
    tasks = tasks_of("lstm_nmt", **SMALL_LSTM, granular=True)
    labels = {name: task.get("colocate") for name, task in tasks.items() if name.startswith("decoder1/step2/")}
    tied = {"decoder1/step2/matmul": "decoder1/kernel", "decoder1/step2/bias": "decoder1/bias"}
    assert {name: label for name, label in labels.items() if label} == tied
    assert tasks["decoder1/step2/forget_gate"]["after"] == {"decoder1/step2/split": 4 * 8}


def test_a_reverse_direction_reads_the_sentence_from_its_end() -> None:
    tasks = tasks_of("lstm_nmt", **SMALL_LSTM, bidirectional=True)
    assert list(tasks["encoder1/reverse/step1"]["after"]) == ["source_embedding/step4"]
    assert tasks["encoder1/step1/concat"]["after"] == {"encoder1/forward/step1": 32, "encoder1/reverse/step4": 32}


@pytest.mark.parametrize(("name", "options"), [case for case in CASES if case[1].get("training")])
def test_training_matches_every_operator_with_a_backward_one(name: str, options: dict[str, Any]) -> None:
    tasks = tasks_of(name, **options)
    forward = [task for task in tasks if not task.startswith(("backward/", "update/"))]
    assert [task for task in tasks if task.startswith("backward/")] == [f"backward/{task}" for task in forward[::-1]]
    for task in forward:
        assert tasks[f"backward/{task}"]["colocate"] == tasks[task]["colocate"]
        for producer in payloads(tasks, task):
            assert f"backward/{task}" in payloads(tasks, f"backward/{producer}")
    graph = model_graph(name, **options)
    assert [task for task in tasks if task.startswith("update/")] == [f"update/{w.name}" for w in graph.users]


def test_backward_operators_of_a_convnet_worked_by_hand() -> None:
    tasks = tasks_of("resnet50", training=True)
    block = "conv3/block2"
    # The gradient of a convolution needs its input, which stays in memory for it; it costs two convolutions.
    assert tasks[f"backward/{block}/2/conv"]["after"] == [f"backward/{block}/2/norm", f"{block}/1/relu"]
    assert tasks[f"backward/{block}/2/conv"]["flops"] == 2 * tasks[f"{block}/2/conv"]["flops"]
    # That of a ReLU needs its output.
    assert tasks[f"backward/{block}/1/relu"]["after"] == [f"backward/{block}/2/conv", f"{block}/1/relu"]
    # The sum hands the same gradient to both branches; where they began, the two gradients are added.
    assert tasks[f"backward/{block}/add"]["output"] == tasks[f"{block}/add"]["output"]
    assert tasks["backward/conv3/block1/relu"]["after"] == [
        f"backward/{block}/add",
        f"backward/{block}/1/conv",
        "conv3/block1/relu",
    ]
    elements = 512 * 28 * 28
    assert tasks["backward/conv3/block1/relu"]["flops"] == elements + elements
    # A concatenation hands each branch its own part.
    inception = tasks_of("inception_v3", training=True)
    parts = payloads(inception, "backward/mixed5/branch1x1/relu")
    assert parts["backward/mixed5/concat"] == 4 * 192 * 17 * 17
    # Nothing wants the gradient of the image.
    assert tasks_of("vgg19", training=True)["backward/block1/conv1"]["output"] == 0


def test_the_first_convolution_has_one_gradient() -> None:
    tasks = tasks_of("inception_v3", training=True)
    assert tasks["backward/conv1/conv"]["flops"] == tasks["conv1/conv"]["flops"]
    assert tasks["backward/conv2/conv"]["flops"] == 2 * tasks["conv2/conv"]["flops"]


@pytest.mark.parametrize(("optimiser", "copies", "flops"), [("sgd", 2, 2), ("momentum", 3, 4), ("adam", 4, 12)])
def test_training_keeps_gradients_and_the_state_of_the_optimiser(optimiser: str, copies: int, flops: int) -> None:
    tasks = tasks_of("vgg19", training=True, optimiser=optimiser)
    parameters = 4096 * 1000 + 1000
    assert tasks["predictions"]["memory"] == {"resident": 4 * copies * parameters}
    update = tasks["update/predictions"]
    assert update["after"] == {"backward/predictions": 4 * parameters}
    assert (update["op"], update["flops"], update["output"]) == (optimiser, flops * parameters, 0)
    # Weights, gradient and state are read, weights and state written.
    assert update["bytes"] == 4 * parameters * (3 + 2 * (copies - 2))


def test_a_shared_weight_has_one_update_fed_by_every_time_step() -> None:
    tasks = tasks_of("lstm_nmt", **SMALL_LSTM, training=True)
    update = tasks["update/decoder1"]
    gradient = 4 * 4 * 8 * 17
    assert update["after"] == {f"backward/decoder1/step{step}": gradient for step in (1, 2, 3)}
    assert update["colocate"] == "decoder1"
    # The gates stay for the backward cell: h, c and four gates.
    assert tasks["decoder1/step1"]["output"] == 4 * 6 * 8
    assert payloads(tasks, "decoder1/step2")["decoder1/step1"] == 4 * 2 * 8
    assert [name for name in tasks if name.startswith("loss")] == [
        *(f"loss/output/step{step}/softmax" for step in (1, 2, 3)),
        "loss",
    ]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("inception-v3", {}, "unknown model inception-v3; did you mean inception_v3"),
        ("gpt", {}, "unknown model gpt; known are vgg19, resnet50, inception_v3"),
        ("vgg19", {"batch": 0}, "vgg19: option batch: 0: input should be greater than or equal to 1"),
        ("vgg19", {"batchsize": 2}, "vgg19 has no option batchsize; it has batch, "),
        ("vgg19", {"batch": "many"}, 'option batch: "many": input should be a valid integer'),
        ("vgg19", {"optimiser": "lion"}, "option optimiser: \"lion\": input should be 'sgd', 'momentum' or 'adam'"),
        ("vgg19", {"image_size": 16}, "block5/pool: a window 2 wide does not fit an image 1 wide"),
        ("transformer", {"heads": 7}, "transformer: width 512 is not a multiple of heads 7"),
        ("lstm_nmt", {"layers": 1, "bidirectional": True, "attention": False}, "of 1 layer needs attention"),
    ],
)
def test_wrong_usage_is_explained(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        model_document(name, **options)


def test_all_wrong_options_are_reported_at_once() -> None:
    with pytest.raises(UsageError, match=r"(?s)option batch: .*option classes: ") as caught:
        model_graph("resnet50", batch=-1, classes=0)
    assert len(str(caught.value).splitlines()) == 2


def test_the_description_tells_the_options_chosen() -> None:
    document = model_document("vgg19", batch=8, training=True)
    assert document["description"].endswith("Options: batch=8, training=true.")
    assert (document["placeopt"], document["name"]) == (1, "vgg19")
    assert "1409.1556" in document["source"]


def test_every_option_has_a_description() -> None:
    for model in MODELS.values():
        assert all(field.description for field in model.options.model_fields.values())
    assert ConvnetOptions().image_size == 224


def test_documents_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "import json, hashlib\n"
        "from placeopt.generate.models import MODELS, model_document\n"
        "texts = [json.dumps(model_document(name, training=True)) for name in MODELS]\n"
        "print(hashlib.sha256(''.join(texts).encode()).hexdigest())\n"
    )
    digests = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    here = "".join(json.dumps(model_document(name, training=True)) for name in MODELS)
    assert digests == [hashlib.sha256(here.encode()).hexdigest()] * 2
