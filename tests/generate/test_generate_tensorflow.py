"""Graphs as TensorFlow 1.12 builds them.

The numbers of TENSORFLOW were counted in graphs that TensorFlow 1.12.0 built from Python code of the same models:
slim's Inception-v3, an unrolled translator of BasicLSTMCell, github.com/Kyubyong/transformer, and the network of Tensor
Holography.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import placeopt as po
from placeopt.errors import UsageError
from placeopt.generate.convnets import HolographyOptions
from placeopt.generate.layers import ModelOptions
from placeopt.generate.models import MODELS, model_document, model_graph
from placeopt.generate.networks import network_document
from placeopt.generate.tensorflow.documents import tensorflow_graph
from placeopt.generate.tensorflow.graph import Graph, Unknown
from placeopt.generate.tensorflow.operations import placeholder, pointwise, reduce, strided_slice
from placeopt.generate.tensorflow.variables import dense, minimize
from placeopt.passes import apply_passes

SMALL: dict[str, dict[str, Any]] = {
    "transformer": {"layers": 1, "heads": 2, "width": 32, "ff_width": 64, "vocabulary": 20, "source_length": 7}
    | {"target_length": 7},
    "lstm_nmt": {"layers": 2, "width": 8, "vocabulary": 20, "source_length": 3, "target_length": 2},
    "tensor_holography": {"layers": 5, "image_size": 16},
}
DEEP = {"layers": 12, "heads": 16, "width": 2048, "ff_width": 8192, "vocabulary": 32_000}

CELERITAS = {6329: 6332, 36_044: 36_352, 3754: 3810}
"""Operations of graphs with the settings of Xu et al. 2022, and those of table 2. The translator's lengths are not in
the paper."""
TENSORFLOW: list[tuple[str, dict[str, Any], tuple[int, int, int]]] = [
    ("inception_v3", {"auxiliary": True, "optimiser": "sgd"}, (6329, 1858, 2526)),
    ("transformer", SMALL["transformer"], (2775, 906, 2235)),
    ("transformer", DEEP, (36_044, 11_885, 28_421)),
    ("transformer", DEEP | {"layers": 2, "dynamic_shapes": True, "optimiser": "momentum"}, (6303, 1461, 5343)),
    ("lstm_nmt", SMALL["lstm_nmt"], (1342, 314, 1136)),
    (
        "lstm_nmt",
        SMALL["lstm_nmt"] | {"target_length": 4, "bidirectional": True, "optimiser": "momentum"},
        (1918, 391, 1718),
    ),
    (
        "lstm_nmt",
        SMALL["lstm_nmt"] | {"source_length": 20, "target_length": 18, "optimiser": "sgd"},
        (6836, 1007, 6582),
    ),
    ("tensor_holography", {"image_size": 64}, (3754, 1239, 1571)),
    ("tensor_holography", {"image_size": 64, "optimiser": "sgd"}, (2663, 694, 1320)),
]
"""Operations, operations without inputs, and operations of a step."""


def checked(name: str, options: dict[str, Any]) -> ModelOptions:
    return MODELS[name].options(**options)


def tasks_of(name: str, style: str = "tensorflow", **options: Any) -> dict[str, dict[str, Any]]:
    tasks: dict[str, dict[str, Any]] = model_document(name, style=style, **SMALL.get(name, {}) | options)["tasks"]
    return tasks


def one_layer() -> tuple[Graph, Any]:
    """A dense layer of 4 units on 8 samples of 16 values, its mean, and a step of gradient descent."""
    graph = Graph()
    loss = reduce("Mean", dense(placeholder(graph, (8, 16), "float"), 4), None)
    return graph, minimize(graph, loss, "sgd")


def test_one_dense_layer_by_hand() -> None:
    graph, _ = one_layer()
    variables = {"VariableV2": 2, "Assign": 2, "Identity": 2}
    # Uniform values: shape, minimum and maximum; (maximum - minimum) x numbers + minimum. Zeros are a constant.
    initial = {"Const": 3 + 1, "RandomUniform": 1, "Sub": 1, "Mul": 1, "Add": 1}
    forward = {"Placeholder": 1, "MatMul": 1, "BiasAdd": 1, "Const": 1, "Mean": 1}
    # Ones; the mean: reshape and tile with their sizes, divided by the number of elements.
    start = {"Const": 2, "Fill": 1}
    mean = {"Const": 3, "Reshape": 1, "Tile": 1, "RealDiv": 1}
    # A gate with two results for the bias and for the product.
    backward = {"BiasAddGrad": 1, "MatMul": 2, "NoOp": 2, "Identity": 4}
    update = {"Const": 1, "ApplyGradientDescent": 2, "NoOp": 1}
    expected: Counter[str] = Counter()
    for part in (variables, initial, forward, start, mean, backward, update):
        expected.update(part)
    assert Counter(node.op for node in graph.nodes) == expected
    assert sum(expected.values()) == 41


def test_a_step_of_one_dense_layer_runs_what_the_update_needs() -> None:
    graph, update = one_layer()
    runs = graph.needed(update)
    left = [node.name for node in graph.nodes if not runs[node.number]]
    assert [name for name in left if "Initializer" not in name] == [
        "dense/kernel/Assign",
        "dense/bias/Assign",
        "dense/bias/read",
        # The gradient of a mean needs only its size, and nothing reads that of the image.
        "dense/MatMul",
        "dense/BiasAdd",
        "Const",
        "Mean",
        "gradients/dense/MatMul_grad/tuple/control_dependency",
    ]


def test_gradients_wait_for_each_other() -> None:
    graph, _ = one_layer()
    node = {node.name: node for node in graph.nodes}
    gate = node["gradients/dense/BiasAdd_grad/tuple/group_deps"]
    assert [each.name for each in gate.controls] == [
        "gradients/Mean_grad/truediv",
        "gradients/dense/BiasAdd_grad/BiasAddGrad",
    ]
    passed = node["gradients/dense/BiasAdd_grad/tuple/control_dependency_1"]
    assert passed.controls == (gate,)
    assert passed.inputs[0].node.name == "gradients/dense/BiasAdd_grad/BiasAddGrad"


RANDOM = ("/shape", "/min", "/max", "/RandomUniform", "/sub", "/mul", "")


def test_colocation_of_one_dense_layer() -> None:
    graph, _ = one_layer()
    groups = graph.groups()
    names: dict[int, list[str]] = {}
    for node in graph.nodes:
        names.setdefault(groups[node.number], []).append(node.name)
    by_name = {name: group for group in names.values() for name in group}
    initial = [f"dense/kernel/Initializer/random_uniform{tail}" for tail in RANDOM]
    update = "GradientDescent/update_dense/kernel/ApplyGradientDescent"
    assert by_name["dense/kernel"] == [*initial, "dense/kernel", "dense/kernel/Assign", "dense/kernel/read", update]
    assert by_name["dense/MatMul"] == [
        "dense/MatMul",
        "gradients/dense/MatMul_grad/MatMul",
        "gradients/dense/MatMul_grad/MatMul_1",
        "gradients/dense/MatMul_grad/tuple/control_dependency",
        "gradients/dense/MatMul_grad/tuple/control_dependency_1",
    ]
    assert by_name["gradients/dense/MatMul_grad/tuple/group_deps"] == ["gradients/dense/MatMul_grad/tuple/group_deps"]


def test_equal_shapes_need_no_sums() -> None:
    """A sum passes its gradient on if all sizes are known and equal; otherwise it sums over repeated axes."""
    for size, expected in ((int, 0), (Unknown, 2)):
        graph = Graph()
        x = placeholder(graph, (size(4), size(3)), "float")
        y = pointwise("Add", dense_of(x), dense_of(x))
        minimize(graph, reduce("Sum", y, None), "sgd")
        found = [node for node in graph.nodes if node.name.startswith("gradients/Add_grad/Sum")]
        assert len(found) == expected


def dense_of(x: Any) -> Any:
    return dense(x, 3, f"dense{len(x.graph.nodes)}", bias=False)


def test_gradients_of_several_readers_are_added() -> None:
    graph = Graph()
    y = dense(placeholder(graph, (4, 3), "float"), 2)
    z = pointwise("Mul", pointwise("Tanh", y), pointwise("Sigmoid", y))
    minimize(graph, reduce("Sum", z, None), "sgd")
    (added,) = [node for node in graph.nodes if node.op == "AddN"]
    assert {tensor.node.op for tensor in added.inputs} == {"TanhGrad", "SigmoidGrad"}
    assert added.forward is not None
    assert added.forward.name == "dense/BiasAdd"


def test_an_integer_is_not_differentiated() -> None:
    graph = Graph()
    y = dense(placeholder(graph, (Unknown(4), 3), "float"), 2)
    size = strided_slice(graph.add("Shape", (y,), (2,), type="int").outputs[0], ())
    scaled = pointwise("Mul", y, pointwise("Cast", size, type="float"), name="scaled")
    minimize(graph, reduce("Sum", scaled, None), "sgd")
    assert not any(node.name.startswith("gradients/Cast") for node in graph.nodes)


@pytest.mark.parametrize(("name", "options", "counts"), TENSORFLOW)
def test_counts_are_those_of_tensorflow(name: str, options: dict[str, Any], counts: tuple[int, int, int]) -> None:
    graph, (_, update) = tensorflow_graph(name, checked(name, {"training": True, "batch": 2, **options}))
    sources = sum(not node.inputs and not node.controls for node in graph.nodes)
    assert (len(graph.nodes), sources, sum(graph.needed(update))) == counts
    assert abs(len(graph.nodes) / CELERITAS.get(counts[0], counts[0]) - 1) < 0.05


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["vgg19", "resnet50", *SMALL])
def test_tasks_are_a_graph_in_topological_order(name: str, training: bool) -> None:
    whole, step = (tasks_of(name, style, training=training) for style in ("tensorflow", "tensorflow_step"))
    for tasks in (whole, step):
        seen = {""}
        for task, entry in tasks.items():
            assert {*entry.get("after", ()), entry.get("backward_of", "")} <= seen
            seen.add(task)
    labels = Counter(entry["colocate"] for entry in whole.values() if "colocate" in entry)
    assert all(count > 1 and label in whole for label, count in labels.items())
    assert [task for task, entry in whole.items() if entry.get("time") != 0] == list(step)
    assert not any(size for entry in whole.values() if entry.get("time") == 0 for size in payloads(entry))
    assert step == tasks_of(name, "tensorflow_step", training=training)
    sources = sum("after" not in entry for entry in whole.values())
    assert 0.2 < sources / len(whole) < 0.55


def payloads(entry: dict[str, Any]) -> list[int | None]:
    after = entry.get("after", [])
    return list(after.values()) if isinstance(after, dict) else [None] * len(after)


@pytest.mark.parametrize("name", ["lstm_nmt", "resnet50"])
def test_every_gradient_is_beside_its_forward_operation(name: str) -> None:
    tasks = tasks_of(name, training=True)
    pairs = [(task, entry["backward_of"]) for task, entry in tasks.items() if "backward_of" in entry]
    assert len(pairs) > 100
    for task, forward in pairs:
        assert "backward_of" not in tasks[forward]
        # A gate runs anywhere, and the results that it passes on run with what they pass on.
        if "/tuple/" not in task and not task.startswith("gradients/AddN"):
            assert tasks[task]["colocate"] == tasks[forward].get("colocate"), (task, forward)


def test_memory_of_variables_and_aliases() -> None:
    options: dict[str, Any] = {"layers": 5, "image_size": 16}
    kernels = model_graph("tensor_holography", **options)
    tasks = tasks_of("tensor_holography", training=True)
    held = {name: entry["memory"]["resident"] for name, entry in tasks.items() if entry["op"] == "VariableV2"}
    weights = sum(4 * (each.parameters + each.buffers) for each in kernels.users)
    slots = sum(2 * 4 * each.parameters for each in kernels.users)
    # Adam's two powers and the number of steps.
    assert sum(held.values()) == weights + slots + 3 * 4
    read = tasks["layer1/norm/gamma/read"]
    assert read["output"] == 4 * 24
    assert (read["memory"], read["time"]) == ({"output": 0}, "1 us")
    assert tasks["Adam/update_Variable/ApplyAdam"]["memory"] == {"output": 0}
    assert HolographyOptions().layers == 30


def test_a_reader_of_a_part_gets_the_part() -> None:
    tasks = tasks_of("lstm_nmt", batch=2)
    cell = "encoder/rnn/cell_0/basic_lstm_cell"
    assert tasks[f"{cell}/split"]["output"] == 4 * (2 * 8) * 4
    assert tasks[f"{cell}/Tanh"]["after"] == {f"{cell}/split": 4 * 2 * 8}


@pytest.mark.parametrize("name", ["coplace", "fuse", "celeritas-fusion", "forward"])
def test_passes_accept_the_graphs(name: str) -> None:
    problem = po.compile(model_document("tensor_holography", training=True, style="tensorflow", **SMALL[
        "tensor_holography"]) | network_document("v100x4"))  # fmt: skip
    assert apply_passes(problem, [name]).problem.n_tasks <= problem.n_tasks


def test_the_header_names_tensorflow() -> None:
    document = model_document("tensor_holography", style="tensorflow", **SMALL["tensor_holography"])
    assert document["source"].endswith("s41586-020-03152-0; operations of TensorFlow 1.12 (Abadi et al., OSDI 2016)")
    assert 'style="tensorflow"' in document["description"]


def test_no_pipelines() -> None:
    with pytest.raises(UsageError, match="the style tensorflow has no pipelines; use the style kernels for period"):
        model_document("vgg19", style="tensorflow", objective="period")


@pytest.mark.parametrize("options", [{"split_heads": True}, {"shared_embedding": False}])
def test_the_transformer_has_one_structure(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="tensorflow_step joins the heads and shares the embedding"):
        model_document("transformer", style="tensorflow_step", **options)
