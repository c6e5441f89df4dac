"""Broken ONNX models: errors with the file, the node and the reason, never a traceback."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from commandline import run
from onnx import ModelProto, TensorProto, helper
from onnx_graphs import constant, light, model, node, weight

import placeopt as po
from placeopt.bridges.importers.registry import import_file


def small() -> ModelProto:
    """A valid model to break: conv, relu, reshape, dense."""
    return model(
        [
            node("Conv", ["x", "k"], ["c"], name="conv", pads=[1, 1, 1, 1]),
            node("Relu", ["c"], ["r"], name="relu"),
            node("Reshape", ["r", "shape"], ["f"], name="flat"),
            node("Gemm", ["f", "w", "b"], ["y"], name="dense"),
        ],
        {"x": [1, 3, 4, 4]},
        {"y": [1, 10]},
        [weight("k", 8, 3, 3, 3), constant("shape", [1, -1]), weight("w", 128, 10), weight("b", 10)],
    )


def test_the_model_is_valid_before_it_is_broken() -> None:
    onnx.checker.check_model(small())
    assert len(po.from_onnx(small()).document["tasks"]) == 4


def renamed(node_index: int, place: int, name: str) -> Callable[[ModelProto], None]:
    def change(made: ModelProto) -> None:
        made.graph.node[node_index].input[place] = name

    return change


def attribute(node_index: int, name: str, value: object) -> Callable[[ModelProto], None]:
    def change(made: ModelProto) -> None:
        target = made.graph.node[node_index]
        kept = [each for each in target.attribute if each.name != name]
        del target.attribute[:]
        target.attribute.extend([*kept, helper.make_attribute(name, value)])

    return change


def weights(position: int, tensor: TensorProto) -> Callable[[ModelProto], None]:
    def change(made: ModelProto) -> None:
        made.graph.initializer[position].CopyFrom(tensor)

    return change


def shape_of_input(*sizes: int) -> Callable[[ModelProto], None]:
    def change(made: ModelProto) -> None:
        made.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes))

    return change


def opset(version: int, domain: str = "") -> Callable[[ModelProto], None]:
    def change(made: ModelProto) -> None:
        made.opset_import[0].version = version
        made.opset_import[0].domain = domain

    return change


def format_version(made: ModelProto) -> None:
    made.ir_version = 2**40


def other_opset(made: ModelProto) -> None:
    made.opset_import.add(domain="other", version=2**40)


def huge_input(made: ModelProto) -> None:
    shape_of_input(2**57, 3, 4, 4)(made)
    del made.graph.node[2:]
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("r", TensorProto.FLOAT, [2**57, 8, 4, 4]))


def output(name: str, *sizes: int) -> Callable[[ModelProto], None]:
    def change(made: ModelProto) -> None:
        made.graph.output[0].CopyFrom(helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes))

    return change


def duplicate(made: ModelProto) -> None:
    made.graph.node[1].output[0] = "c"


def overwrite_input(made: ModelProto) -> None:
    made.graph.node[1].output[0] = "x"


def overwrite_weight(made: ModelProto) -> None:
    made.graph.node[1].output[0] = "w"


def no_operator(made: ModelProto) -> None:
    made.graph.node[1].op_type = ""


def no_nodes(made: ModelProto) -> None:
    del made.graph.node[:]
    made.graph.output[0].name = "x"


def only_constants(made: ModelProto) -> None:
    del made.graph.node[1:]
    made.graph.node[0].CopyFrom(node("Shape", ["w"], ["y"], name="copy"))
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.INT64, [2]))


def loop_of_two(made: ModelProto) -> None:
    made.graph.node[0].input[0] = "r"


def loop_of_one(made: ModelProto) -> None:
    made.graph.node[1].input[0] = "r"


def missing_argument(made: ModelProto) -> None:
    del made.graph.node[0].input[1:]


def additional_argument(made: ModelProto) -> None:
    made.graph.node[1].input.append("x")


def wrong_operator(made: ModelProto) -> None:
    made.graph.node[1].op_type = "MatMul"


def integer_input(made: ModelProto) -> None:
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64


def no_element_type(made: ModelProto) -> None:
    made.graph.input[0].type.tensor_type.elem_type = 0


def short_data(made: ModelProto) -> None:
    made.graph.initializer[3].raw_data = b"\0" * 7


def unknown_element(made: ModelProto) -> None:
    made.graph.initializer[3].data_type = 99


def function_without_body(made: ModelProto) -> None:
    made.opset_import.append(helper.make_opsetid("my", 1))
    made.functions.append(
        helper.make_function("my", "F", ["a"], ["b"], [node("Relu", ["z"], ["b"])], [helper.make_opsetid("", 17)])
    )
    made.graph.node[1].CopyFrom(node("F", ["c"], ["r"], name="call", domain="my"))


def body_without_result(made: ModelProto) -> None:
    body = helper.make_graph([], "empty", [], [helper.make_tensor_value_info("q", TensorProto.FLOAT, None)])
    made.graph.initializer.append(constant("yes", True, np.bool_))
    made.graph.node[1].CopyFrom(node("If", ["yes"], ["r"], name="if", then_branch=body, else_branch=body))


def body_out_of_order(made: ModelProto) -> None:
    body = helper.make_graph(
        [node("Relu", ["p"], ["q"]), node("Exp", ["c"], ["p"])],
        "turned",
        [],
        [helper.make_tensor_value_info("q", TensorProto.FLOAT, None)],
    )
    made.graph.initializer.append(constant("yes", True, np.bool_))
    made.graph.node[1].CopyFrom(node("If", ["yes"], ["r"], name="if", then_branch=body, else_branch=body))


BROKEN: dict[str, tuple[Callable[[ModelProto], None], str]] = {
    "missing input": (renamed(1, 0, "nowhere"), r"nodes\.relu: reads nowhere, which no node writes"),
    "missing weight": (renamed(3, 1, "nowhere"), r"nodes\.dense: reads nowhere, which no node writes"),
    "missing output": (output("nowhere", 1), r"output\.nowhere: no node writes this output"),
    "two writers": (duplicate, r"nodes\.relu: writes c, which conv writes too"),
    "an input is written": (overwrite_input, r"nodes\.relu: writes x, which is an input or initializer"),
    "a weight is written": (overwrite_weight, r"nodes\.relu: writes w, which is an input or initializer"),
    "no operator": (no_operator, r"nodes\.relu: the node has no operator"),
    "no nodes": (no_nodes, "no node of the model depends on an input: it has nothing to place"),
    "only constants": (only_constants, "no node of the model depends on an input: it has nothing to place"),
    "a cycle": (loop_of_two, r"nodes\.conv: closes a cycle of 2 nodes: conv, relu"),
    "a node reads itself": (loop_of_one, r"nodes\.relu: closes a cycle of 1 node: relu"),
    "too few arguments": (missing_argument, r"nodes\.conv: Conv: .*input size 1 not in range"),
    "too many arguments": (additional_argument, r"nodes\.relu: Relu: .*input size 2 not in range"),
    "another operator": (wrong_operator, r"nodes\.relu: MatMul: .*input size 1 not in range"),
    "integers": (integer_input, r"nodes\.conv: Conv: .*unsupported type: tensor\(int64\)"),
    "no element type": (no_element_type, r"nodes\.conv: Conv: "),
    "short data": (short_data, r"initializer\.b: the values do not fit the type and shape"),
    "an unknown element type": (unknown_element, r"initializer\.b: the values do not fit the type and shape"),
    "a future version": (opset(999), r"opset_import: operator set 999 is not supported; onnx .* supports 1 to"),
    "version 0": (opset(0), "opset_import: operator set 0 is not supported"),
    "a negative version": (opset(-5), "opset_import: operator set -5 is not supported"),
    "a huge version of the format": (format_version, "ir_version: 1099511627776 is not a version of the format"),
    "a huge version of other operators": (other_opset, "opset_import.other: 1099511627776 is not the version of an"),
    "sizes out of range": (huge_input, r"tasks\.conv\.output: \d+ is more than 2\^60 bytes, out of range"),
    "no standard operators": (opset(1, "other"), "opset_import: the version of the standard operators is missing"),
    "a negative size": (shape_of_input(1, 3, -4, 4), r"dimensions are unknown: x\[2\]; state --dim x\[2\]=SIZE"),
    "another rank": (shape_of_input(1, 3, 4), r"nodes\.conv: Conv: "),
    "an input that is too small": (shape_of_input(1, 3, 2, 2), r"nodes\.dense: Gemm: "),
    "weights without channels": (
        weights(0, weight("k", 8)),
        r"nodes\.conv: Conv: .* dimensions",
    ),
    "channels that do not match": (
        shape_of_input(1, 4, 4, 4),
        r"nodes\.conv: Conv: the input has 4 channels, and the weights are for 3",
    ),
    "a negative weight": (
        weights(2, TensorProto(name="w", data_type=1, dims=[128, -10])),
        r"initializer\.w: .*size -10",
    ),
    "a weight of another size": (weights(2, weight("w", 127, 10)), r"nodes\.dense: Gemm: "),
    "a weight of another rank": (weights(2, weight("w", 128)), r"nodes\.dense: Gemm: "),
    "a wrong Reshape": (
        weights(1, constant("shape", [1, 100])),
        r"Reshape: the shapes \[1, 8, 4, 4\] and \[1, 100\] differ",
    ),
    "two unknown sizes": (weights(1, constant("shape", [-1, -1])), r"nodes\.flat: Reshape: .*-1"),
    "a size below -1": (weights(1, constant("shape", [-2, 5])), r"nodes\.flat: Reshape: "),
    "a size that does not divide": (weights(1, constant("shape", [-1, 7])), r"nodes\.flat: Reshape: "),
    "a text as size": (
        weights(1, helper.make_tensor("shape", TensorProto.STRING, [1], [b"a"])),
        r"nodes\.flat: Reshape: ",
    ),
    "pads of another rank": (attribute(0, "pads", [1, 1]), r"nodes\.conv: Conv: .*pads"),
    "an attribute of another type": (attribute(0, "pads", "many"), r"nodes\.conv: Conv: "),
    "an unknown attribute": (attribute(1, "speed", 3), r"nodes\.relu: Relu: Unrecognized attribute: speed"),
    "strides of zero": (attribute(0, "strides", [0, 0]), r"nodes\.conv: Conv: "),
    "groups that do not match": (
        attribute(0, "group", 2),
        r"nodes\.conv: Conv: the input has 3 channels, .* are for 6",
    ),
    "a function with a free name": (function_without_body, "reads .*z.*, which no node writes"),
    "a body without its result": (body_without_result, r"nodes\.if: reads q, which no node writes"),
    "a body out of order": (body_out_of_order, r"nodes\.if: reads p, which no node before it writes"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_model(case: str, tmp_path: Path) -> None:
    change, message = BROKEN[case]
    made = small()
    change(made)
    path = tmp_path / "broken.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(po.DocumentError, match=message) as caught:
        import_file(path, "onnx")
    assert all(issue.file == str(path) for issue in caught.value.issues)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            node("LayerNormalization", ["x", "w"], ["y"], name="norm", axis=2**31),
            r"nodes\.norm: LayerNormalization: axis is 2147483648, and the input has 2 dimensions",
        ),
        (
            node("LayerNormalization", ["x", "w"], ["y"], name="norm", axis=-3),
            r"nodes\.norm: LayerNormalization: axis is -3, and the input has 2 dimensions",
        ),
        (
            node("GatherND", ["x", "i"], ["y"], name="rows", batch_dims=-2),
            r"nodes\.rows: GatherND: batch_dims is -2, and the data has 2 dimensions",
        ),
        (
            node("Scan", ["x"], ["y"], name="scan", num_scan_inputs=2**40, body=helper.make_graph([], "b", [], [])),
            r"nodes\.scan: Scan: num_scan_inputs is 1099511627776, and the node has 1 input",
        ),
    ],
)
def test_attributes_that_onnx_does_not_check(made: onnx.NodeProto, message: str) -> None:
    """Shape inference of onnx would read beyond an array, or need all memory."""
    with pytest.raises(po.DocumentError, match=message):
        po.from_onnx(model([made], {"x": [4, 6]}, ["y"], [weight("w", 6), constant("i", [[0], [1]])]))


def test_sizes_beyond_every_limit() -> None:
    made = model([node("Size", ["x"], ["n"]), node("NonZero", ["x"], ["y"])], {"x": [2**62, 2**62]}, ["n", "y"])
    with pytest.raises(po.DocumentError, match="out of range"):
        po.compile(po.from_onnx(made).document)


def test_all_issues_at_once(tmp_path: Path) -> None:
    made = small()
    made.graph.node[0].input[1] = "lost"
    made.graph.node[3].input[2] = "gone"
    path = tmp_path / "broken.onnx"
    path.write_bytes(made.SerializeToString())
    found = run("import", path, "--format", "onnx")
    assert found.code == 2
    assert f"{path}: nodes.conv: reads lost" in found.err
    assert f"{path}: nodes.dense: reads gone" in found.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an ONNX model: it has no graph"),
        (b"\x08\x07", "is not an ONNX model: it has no graph"),
        (b"not a model", "is not an ONNX model, or is truncated"),
        (b"\x3a\xff\xff\xff\xff\x0f", "is not an ONNX model, or is truncated"),
        (small().SerializeToString()[:-30], "is not an ONNX model, or is truncated"),
        (small().SerializeToString()[:40], "is not an ONNX model, or is truncated"),
        (small().SerializeToString().replace(b"relu", b"r\xfflu"), r"nodes: a name is not UTF-8 text: 'r\\xfflu'"),
    ],
)
def test_other_content(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(po.DocumentError, match=rf"broken\.onnx: .*{message}|broken\.onnx: {message}"):
        import_file(path, "onnx")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(po.DocumentError, match=r"missing\.onnx: no such file"):
        po.from_onnx(tmp_path / "missing.onnx")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(po.DocumentError, match="is a folder, expected a file"):
        po.from_onnx(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_of_bytes(seed: int, tmp_path: Path) -> None:
    """A change of a few bytes gives a problem that compiles, or a located error."""
    rng = random.Random(seed)
    sources = [small().SerializeToString(), light("squeezenet").read_bytes(), light("bvlc_alexnet").read_bytes()]
    path = tmp_path / "broken.onnx"
    refused: list[po.Issue] = []
    for _ in range(60):
        content = bytearray(rng.choice(sources))
        place = rng.randrange(len(content))
        kind = rng.randrange(4)
        if kind == 0:
            content[place] = rng.randrange(256)
        elif kind == 1:
            del content[place:]
        elif kind == 2:
            del content[place : place + rng.randrange(1, 20)]
        else:
            content[place:place] = rng.randbytes(rng.randrange(1, 5))
        path.write_bytes(content)
        try:
            po.compile(import_file(path, "onnx").document)
        except po.DocumentError as error:
            refused.append(error.issues[0])
    assert len(refused) > 20
    assert all(issue.file == str(path) or issue.path[0] == "tasks" for issue in refused)


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_of_fields(seed: int) -> None:
    """The same with changes of operators, inputs, attributes, sizes and element types."""
    rng = random.Random(seed)
    wild = [-1, 0, 1, 2, 7, 2**31, 2**40, 2**62, -(2**62)]
    operators = sorted({schema.name for schema in onnx.defs.get_all_schemas()})
    refused: list[po.Issue] = []
    for _ in range(100):
        made = small()
        graph = made.graph
        target = rng.choice(graph.node)
        kind = rng.randrange(8)
        if kind == 0:
            target.op_type = rng.choice(operators)
        elif kind == 1:
            target.input[rng.randrange(len(target.input))] = rng.choice(["", "x", "c", "w", "y", "shape"])
        elif kind == 2:
            del target.input[rng.randrange(len(target.input))]
        elif kind == 3:
            graph.input[0].type.tensor_type.shape.dim[rng.randrange(4)].dim_value = rng.choice(wild)
        elif kind == 4:
            graph.input[0].type.tensor_type.elem_type = rng.randrange(32)
        elif kind == 5:
            tensor = rng.choice(graph.initializer)
            tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(wild)
        elif kind == 6:
            rng.choice(graph.initializer).data_type = rng.randrange(32)
        else:
            graph.initializer[1].CopyFrom(constant("shape", [rng.choice(wild), rng.choice(wild)]))
        try:
            po.compile(po.from_onnx(made).document)
        except po.DocumentError as error:
            refused.append(error.issues[0])
    assert len(refused) > 40
    assert all(issue.path or "unknown" in issue.message for issue in refused)


def nested_functions(depth: int, *, cycle: bool = False) -> ModelProto:
    """Each function calls the next one twice."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    made = model([node("F0", ["x"], ["y"], domain="my")], {"x": [4]}, {"y": [4]}, domains={"my": 1})
    for k in range(depth):
        last = k == depth - 1
        called = {"op": "F0" if cycle else "Relu", "domain": "my" if cycle else ""} if last else {"op": f"F{k + 1}"}
        calls = [
            node(called["op"], ["a"], ["b"], domain=called.get("domain", "my")),
            node(called["op"], ["b"], ["c"], domain=called.get("domain", "my")),
        ]
        made.functions.append(helper.make_function("my", f"F{k}", ["a"], ["c"], calls, imports))
    return made


def test_functions_that_would_fill_the_memory() -> None:
    assert len(po.from_onnx(nested_functions(5)).document["tasks"]) == 2**5
    with pytest.raises(
        po.DocumentError, match=r"has 1\.1e\+12 nodes once its functions are inlined; the limit is 1,000"
    ):
        po.from_onnx(nested_functions(40))
    with pytest.raises(po.DocumentError, match="cannot be inlined: they call each other: F"):
        po.from_onnx(nested_functions(3, cycle=True))
