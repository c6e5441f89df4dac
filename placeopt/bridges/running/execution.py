"""Run a plan of an ONNX model with ONNX Runtime on this machine, and compare predicted with measured times.

ONNX Runtime folds constants when it optimizes a model, and otherwise executes their nodes in every run. Tasks do not
include these nodes. Therefore a model is folded before it is run, split or profiled without optimization: its constants
are computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.bridges.extras import require
from placeopt.bridges.onnx_models.dims import sizes_of
from placeopt.bridges.onnx_models.external_data import Store, refer
from placeopt.bridges.onnx_models.submodels import Split, Submodel, Writer, notes_on_sizes, split_model, whole_submodel
from placeopt.bridges.running.measurement import Executable, Options, check_arguments, check_optimization, measure
from placeopt.bridges.running.pool import Segment, Settings
from placeopt.bridges.running.report import RunReport
from placeopt.bridges.running.tensors import TYPES, model_inputs
from placeopt.bridges.running.worker import write_array
from placeopt.errors import ExecutionError, UsageError
from placeopt.io.files import StrPath, temporary_folder
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_schedule

if TYPE_CHECKING:
    from onnx import ModelProto

FOLDED = "folded.onnx"
"""The model with computed constants."""
WHOLE = "whole.onnx"
"""The unsplit model with computed constants and with the names of tasks."""
RESIZED = "resized.onnx"
"""The unsplit model with other sizes of its inputs than the file, whose fixed sizes a run would reject."""


def run_onnx(
    problem: Problem,
    schedule: Schedule,
    model: StrPath,
    *,
    runs: int = 5,
    warmup: int = 1,
    fit: bool = False,
    in_plan: bool = False,
    inputs: Mapping[str, Any] | StrPath | None = None,
    seed: int = 0,
    threads: int = 1,
    optimization: str = "none",
    few_segments: bool = False,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    tolerance: float | None = None,
    timeout: float = 600.0,
) -> RunReport:
    """Run a plan of an ONNX model on the cores of this machine, and return its outputs' differences and its times.

    Each device of the plan is a process, pinned to a core where that is possible. It runs its segments in the order of
    the plan, each as soon as its inputs are available. The unsplit model runs in one process of the same kind.

    Parameters
    ----------
    problem, schedule
        The problem that was imported from the model, and a plan of it.
    model
        The model file.
    runs, warmup
        Measured runs, and runs before them.
    fit
        Whether to measure each node of the unsplit model and transfers between processes, and predict times from that.
    in_plan
        Whether a fit measures the nodes while all processes run the plan, and not in the unsplit model.
    inputs
        An array for each input of the model, or an .npz file of them; by default, random ones.
    seed
        Seed of random inputs: floats are uniform in [0, 1), integers 0, booleans true.
    threads
        Threads of each process.
    optimization
        Graph optimizations of ONNX Runtime: "none", "basic", "extended" or "all". Constants are always computed before.
    few_segments
        Whether segments are not cut at transfers, so that there are fewer of them, which wait for all their inputs.
    batch, dims
        Sizes of the dimensions of the model. Default: as at the import, which the source of the problem states.
    tolerance
        Largest relative difference of outputs that counts as equal; by default 1e-4, for models with numbers in fp16
        or 8-bit integers 0.01, in bf16 0.05.
    timeout
        Seconds within which processes must load their models, and then finish each run.

    Raises
    ------
    UsageError
        If an argument is wrong, the model is not that of the problem, or a tensor cannot pass between processes.
    DocumentError
        If the model or the inputs cannot be read or are not valid.
    ExecutionError
        If ONNX Runtime fails, a process ends, or the time limit passes.
    MissingExtraError
        If onnxruntime is not installed.
    """
    check_schedule("run_onnx", problem, schedule)
    options = Options(runs, warmup, fit, in_plan, tolerance)
    check_arguments(options, threads, seed, timeout)
    check_optimization(optimization)
    require("onnxruntime", "onnxruntime", "runs of ONNX models")
    settings = Settings(threads, optimization, float(timeout))
    source = Path(model)
    writer = Writer(source, *sizes_of(problem, batch, dims))
    split = split_model(problem, schedule, writer.model, few_segments=few_segments)
    view = writer.model
    given = model_inputs(inputs, {name: view.tensors[name] for name in view.inputs}, seed)
    _check_types(split, writer)
    with temporary_folder("placeopt-run-") as folder:
        files = {name: f"input-{k}.npy" for k, name in enumerate(given)}
        for name, value in given.items():
            write_array(folder / files[name], value)
        original = _whole(writer, str(source.resolve()))
        if _is_resized(writer):
            writer.write(folder / RESIZED, whole_submodel(writer.model))
            original = _whole(writer, RESIZED)
        computed = folded(writer, folder)
        named = _whole(computed, WHOLE)
        timed = original if computed is writer else named  # times without those of the constants
        if fit or timed is named:
            computed.write(folder / WHOLE, whole_submodel(computed.model))
        if computed is not writer:
            split = split_model(problem, schedule, computed.model, few_segments=few_segments)
        executable = Executable(split, computed.write_segments(split, folder), original, timed, named, files)
        elements = {view.tensors[name].element for node in view.nodes for name in node.writes}
        notes = notes_on_sizes(problem, computed.model)
        return measure(problem, schedule, executable, folder, settings, options, elements, notes)


def _check_types(split: Split, writer: Writer) -> None:
    """Reject tensors that processes cannot exchange."""
    model = split.model
    for name in dict.fromkeys((*split.crossing, *model.outputs)):
        kind = writer.value(name).type.WhichOneof("value")
        if kind in ("sequence_type", "map_type") and name not in split.crossing:
            continue
        element = model.tensors[name].element if kind == "tensor_type" else kind
        if element not in TYPES:
            raise UsageError(
                f"processes cannot exchange {name}, because NumPy has no arrays of type {element or 'unknown'}"
            )


def _is_resized(writer: Writer) -> bool:
    """Whether the sizes of the import differ from sizes that the file fixes."""
    tensors = writer.model.tensors
    return any(
        dim.HasField("dim_value") and dim.dim_value != length
        for value in writer.proto.graph.input
        if value.name in writer.model.inputs
        for dim, length in zip(value.type.tensor_type.shape.dim, tensors[value.name].shape or (), strict=False)
    )


def _whole(writer: Writer, file: str) -> Segment:
    """Return a model file as one segment."""
    model = writer.model
    outputs = tuple(name for name in model.outputs if name not in model.inputs)
    return Segment(file, model.inputs, outputs, results=outputs)


def folded(writer: Writer, folder: Path) -> Writer:
    """Return a writer of the model with computed constants; the same writer if there are none.

    Raises an ExecutionError if ONNX Runtime cannot compute the constants.
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
