"""Compute the constants of a model once, so that no run computes them and no time includes them.

ONNX Runtime folds constants when it optimizes a model, and otherwise executes their nodes in every run. Tasks do not
include these nodes. Therefore a model is folded before it is run, split or profiled without optimization.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.bridges.onnx_models.external_data import Store, refer
from placeopt.bridges.onnx_models.submodels import Submodel, Writer, whole_submodel
from placeopt.errors import ExecutionError, UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

FOLDED = "folded.onnx"


def folded(writer: Writer, folder: Path) -> Writer:
    """Return a writer of the model with computed constants; the same writer if there are none.

    Raises
    ------
    ExecutionError
        If ONNX Runtime cannot compute the constants.
    """
    model, proto = writer.model, writer.proto
    whole = whole_submodel(model)
    tasks = {node.index for node in model.nodes}
    constants = [index for index in whole.nodes if index not in tasks]
    if all(proto.graph.node[index].op_type == "Constant" for index in constants):
        return writer
    results = {name for index in constants for name in proto.graph.node[index].output}
    needed = tuple(name for name in whole.constants if name in results)
    values = _computed(writer, Submodel((), tuple(constants), whole.weights, (), (), needed), folder)
    live = tuple(index for index in whole.nodes if index in tasks)
    kept = tuple(name for name in whole.constants if name not in results)
    path = folder / FOLDED

    def add(made: ModelProto) -> None:
        with Store(folder, path.with_name(f"{FOLDED}.constants")) as store:
            for name, value in values:
                _add(made, name, value, store)

    writer.write(path, Submodel(whole.tasks, live, kept, whole.constants, whole.inputs, whole.outputs), add)
    return Writer(path)


def _computed(writer: Writer, submodel: Submodel, folder: Path) -> Iterable[tuple[str, Any]]:
    """Return the outputs of a submodel without inputs."""
    import onnxruntime

    path = folder / "constants.onnx"
    writer.write(path, submodel)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        values = session.run(list(submodel.outputs), {})
    except Exception as error:  # noqa: BLE001 - ONNX Runtime has no common class for its errors
        raise ExecutionError(f"the constants of the model cannot be computed: {error}") from None
    return zip(submodel.outputs, values, strict=True)


def _add(made: ModelProto, name: str, value: Any, store: Store) -> None:
    from onnx import TensorProto, helper, numpy_helper

    array = np.asarray(value)
    if array.dtype.kind in "OU":
        made.graph.initializer.append(numpy_helper.from_array(array.astype(object), name))
        return
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    if kind == TensorProto.UNDEFINED:
        raise UsageError(f"the constant {name} has the type {array.dtype}, which NumPy cannot hold")
    tensor = TensorProto(name=name, data_type=kind, dims=array.shape)
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    if array.nbytes <= 1024:  # shapes, which shape inference reads
        tensor.raw_data = data.tobytes()
    else:
        refer(tensor, f"{FOLDED}.constants", store.append(BytesIO(data), array.nbytes), array.nbytes)
    made.graph.initializer.append(tensor)
