"""Problems and hand-made models for tests of the bridges to ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import placeopt as po


def light_model(name: str) -> Path:
    """A model of the onnx package, whose weights are computed by nodes."""
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"


def inputs_of(model: Any) -> dict[str, Any]:
    """The inputs of a model by name."""
    return {name: model.tensors[name] for name in model.inputs}


def problem_of(model: Path, devices: int = 2, **dims: Any) -> po.Problem:
    """A problem with a task for each live node of a model; all tasks take 1 us."""
    from placeopt.bridges.onnx_models import read_model

    view = read_model(model, **dims)
    index = {node.task: i for i, node in enumerate(view.nodes)}
    edges = {
        (index[view.producers[name]], index[node.task]): view.tensors[name].bytes
        for node in view.nodes
        for name in node.reads
        if name in view.producers
    }
    return po.build_problem(
        name=view.name,
        task_names=list(index),
        device_names=[f"cpu{d}" for d in range(devices)],
        device_types=["cpu"] * devices,
        duration=np.full((len(index), devices), 1000),
        edges=list(edges),
        payload=list(edges.values()),
    )


def _value(name: str, kind: str, shape: Any) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.DataType.Value(kind), shape)


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: Any = (), **more: Any) -> Any:
    from onnx import helper

    functions = more.pop("functions", [])
    domains = {"": more.pop("opset", 17), **{function.domain: 1 for function in functions}}
    sparse = more.pop("sparse", [])
    graph = helper.make_graph(nodes, "hand-made", inputs, outputs, list(weights), sparse_initializer=sparse)
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=more.pop("ir_version", 9))


def _weight(name: str, values: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.asarray(values), name)


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def hand_made() -> dict[str, Any]:
    """Small models, each with a feature that is easily lost when a model is cut."""
    from onnx import TensorProto, helper

    node = helper.make_node
    x, y = _value("x", "FLOAT", [4, 8]), _value("y", "FLOAT", [4, 8])
    models = {}

    models["an output that is also read, and an input that is also an output"] = _model(
        [
            node("Relu", ["x"], ["a"]),
            node("Neg", ["a"], ["b"]),
            node("Exp", ["b"], ["y"]),
            node("Add", ["a", "y"], ["z"]),
        ],
        [x],
        [_value("a", "FLOAT", [4, 8]), y, x, _value("z", "FLOAT", [4, 8])],
    )
    models["an output that is a constant"] = _model(
        [
            node("Shape", ["w"], ["size"]),
            node("Identity", ["size"], ["same"]),
            node("MatMul", ["x", "w"], ["a"]),
            node("Sigmoid", ["a"], ["y"]),
        ],
        [x],
        [y, _value("same", "INT64", [2]), _value("w", "FLOAT", [8, 8])],
        [_weight("w", _random(8, 8))],
    )
    models["optional inputs"] = _model(
        [node("Clip", ["x", "", "high"], ["a"]), node("Dropout", ["a"], ["b", ""]), node("Clip", ["b", "low"], ["y"])],
        [x],
        [y],
        [_weight("high", np.float32(0.7)), _weight("low", np.float32(0.2))],
    )
    double = helper.make_function(
        "own", "Double", ["a"], ["c"], [node("Add", ["a", "a"], ["b"]), node("Relu", ["b"], ["c"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    models["functions of the model"] = _model(
        [node("Double", ["x"], ["a"], domain="own"), node("Double", ["a"], ["y"], domain="own", name="again")],
        [x],
        [y],
        functions=[double],
    )
    branches = {
        f"{which}_branch": helper.make_graph(
            [node(op, ["a", "w"], [f"{which}_out"])], which, [], [_value(f"{which}_out", "FLOAT", [4, 8])]
        )
        for which, op in (("then", "Add"), ("else", "Mul"))
    }
    models["control flow that reads tensors of the graph"] = _model(
        [
            node("Relu", ["x"], ["a"]),
            node("ReduceMax", ["a"], ["m"], keepdims=0),
            node("Greater", ["m", "half"], ["c"]),
            node("If", ["c"], ["b"], **branches),
            node("Add", ["a", "b"], ["y"]),
        ],
        [x],
        [y],
        [_weight("half", np.float32(0.5)), _weight("w", _random(4, 8))],
    )
    models["weights that several nodes read, one of them also an input"] = _model(
        [
            node("MatMul", ["x", "w"], ["a"]),
            node("Tanh", ["a"], ["b"]),
            node("MatMul", ["b", "w"], ["c"]),
            node("Add", ["c", "bias"], ["d"]),
            node("Add", ["d", "bias"], ["y"]),
        ],
        [x, _value("bias", "FLOAT", [8])],
        [y],
        [_weight("w", _random(8, 8)), _weight("bias", _random(8))],
    )
    models["several outputs of a node"] = _model(
        [
            node("Split", ["x"], ["a", "b"], axis=1),
            node("Neg", ["a"], ["c"]),
            node("Exp", ["b"], ["d"]),
            node("Concat", ["d", "c"], ["y"], axis=1),
        ],
        [x],
        [y],
        opset=13,
    )
    models["nodes without names"] = _model(
        [
            node("Relu", ["x"], ["a"], name="first"),
            node("Neg", ["a"], ["b"]),
            node("Abs", ["b"], ["c"]),
            node("Exp", ["c"], ["y"], name="Abs_c"),
        ],
        [x],
        [y],
    )
    models["an old version, where weights are inputs"] = _model(
        [node("Relu", ["x"], ["a"]), node("MatMul", ["a", "w"], ["b"]), node("Sigmoid", ["b"], ["y"])],
        [x, _value("w", "FLOAT", [8, 8])],
        [y],
        [_weight("w", _random(8, 8))],
        ir_version=3,
        opset=7,
    )
    models["folded chains that several nodes read"] = _model(
        [
            node("ConstantOfShape", ["shape"], ["ones"], value=_weight("one", np.float32([1]))),
            node("Mul", ["ones", "w"], ["scaled"]),
            node("MatMul", ["x", "scaled"], ["a"]),
            node("Relu", ["a"], ["b"]),
            node("MatMul", ["b", "scaled"], ["c"]),
            node("ReduceSum", ["ones", "axis"], ["ones_row"], keepdims=0),
            node("Add", ["c", "ones_row"], ["y"]),
        ],
        [x],
        [y],
        [_weight("shape", np.int64([8, 8])), _weight("w", _random(8, 8)), _weight("axis", np.int64([0]))],
    )
    models["integers, booleans and sizes that depend on data"] = _model(
        [
            node("Greater", ["x", "half"], ["big"]),
            node("NonZero", ["big"], ["places"]),
            node("Transpose", ["places"], ["rows"]),
            node("GatherND", ["x", "rows"], ["chosen"]),
            node("ReduceSum", ["chosen"], ["y"], keepdims=0),
        ],
        [x],
        [_value("y", "FLOAT", []), _value("big", "BOOL", [4, 8])],
        [_weight("half", np.float32(0.5))],
    )
    models["texts"] = _model(
        [
            node("Equal", ["x", "half"], ["same"]),
            node("Where", ["same", "left", "right"], ["word"]),
            node("Identity", ["word"], ["y"]),
        ],
        [x],
        [_value("y", "STRING", [4, 8])],
        [
            helper.make_tensor("left", TensorProto.STRING, [1], [b"equal"]),
            helper.make_tensor("right", TensorProto.STRING, [1], ["größer".encode()]),
            _weight("half", np.float32(0.5)),
        ],
        opset=16,
    )
    indices = np.int64([0, 9, 18, 27])
    models["sparse weights"] = _model(
        [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]), node("MatMul", ["b", "w"], ["y"])],
        [x],
        [y],
        sparse=[helper.make_sparse_tensor(_weight("w", np.float32([1, 2, 3, 4])), _weight("i", indices), [8, 8])],
    )
    return models
