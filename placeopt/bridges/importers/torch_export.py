"""Import PyTorch models: exported programs, saved ones, and modules with example inputs.

Costs need only shapes. Therefore modules may be on the meta device, without weights.
"""

from __future__ import annotations

import contextlib
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from placeopt.bridges.extras import require
from placeopt.bridges.hardware import devices_of, is_cpu
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample, check_precision
from placeopt.bridges.importers.operator_graph import OperatorGraph
from placeopt.bridges.networks import network_of
from placeopt.bridges.operators import pipeline_rules
from placeopt.bridges.pytorch.targets import SPLIT_SPEC, TARGETS, Requirements, require_parts
from placeopt.errors import DocumentError, UsageError, alternatives, counted, visible
from placeopt.io.compiler import compile_spec
from placeopt.io.document import collection_paused
from placeopt.io.files import StrPath
from placeopt.io.spec import NumberFormat
from placeopt.model.schedule import Schedule
from placeopt.model.units import is_whole, shown

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.nn import Module

    from placeopt.bridges.pytorch.kernels import Kernel
    from placeopt.bridges.pytorch.operators import Level

NAME = "torch-export"


def recognises(sample: Sample) -> bool:
    """Whether a file looks like a saved exported program: a zip archive with a member `archive_format`."""
    if not sample.start.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(sample.path) as archive:
            return any(name.rpartition("/")[2] == "archive_format" for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError):
        return sample.suffix == ".pt2"


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a saved exported program; see `from_torch`."""
    require("torch", "torch", "PyTorch models")
    from placeopt.bridges.pytorch.archives import read_program

    options = replace(options, name=options.name or Path(path).stem)
    with quiet():
        program = read_program(path)
        try:
            source = f"{Path(path).name}, a program of torch.export"
            return _imported(program, options, source, options.level or "op", file=str(path))
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None


def from_torch(
    model: ExportedProgram | Module,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    devices: Mapping[str, Any] | StrPath | None = None,
    level: str | int = "op",
    training: bool = False,
    name: str | None = None,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    dynamic_shapes: Any = None,
    precision: str | None = None,
    shared: str = "colocate",
    optimizer_bytes_per_parameter: int = 0,
    resolution: str | None = None,
    objective: str | None = None,
    target: str | None = None,
    addresses: str | None = None,
) -> Imported:
    """Convert a PyTorch model to a problem document.

    Parameters
    ----------
    model
        A program of `torch.export.export`, or a module. No weights are needed: the meta device is enough.
    args, kwargs
        Example inputs of a module, also on the meta device. A program takes none.
    devices
        The devices: a mapping with `devices` and perhaps `links`, the path of a network or problem file, or devices of
        the catalogue such as `"a100-40gb:4"`. Default: two CPU cores.
    level
        The tasks: `"op"` for each operator, `"module"` for each innermost module, or a depth of modules. The depth of
        `layers.0` is 2. `"auto"` is the coarsest level at which `target` can place as many parts apart as at any level.
    training
        Whether to add the backward pass. Gradients are resident memory. The gradients of all outputs are given, so that
        the model need not return a loss.
    name
        Name of the problem. Default: the class of the module.
    batch
        Size of the first dimension of every input in which it is symbolic.
    dims
        Other symbolic sizes, by symbol (`s77`) or by input and dimension (`ids.1` or `ids.shape[1]`).
    dynamic_shapes
        As in `torch.export.export`, for a module.
    precision
        Number format of computations in fp32, such as `tf32`. Sizes do not change.
    shared
        Tasks that read the same parameter are on one device with `"colocate"`, or each has a `"copy"` of it. Parameters
        in training and buffers that change are never copied.
    optimizer_bytes_per_parameter
        Bytes of the state of the optimiser for each trained parameter, such as 8 for Adam in fp32.
    resolution
        Length of a tick, such as `"10 ns"`.
    objective
        `"makespan"`, the default, or `"period"` for a pipeline with contiguous stages, the default for `split-spec`. In
        training, replicas synchronise the gradients of the parameters.
    target
        `"device-map"` or `"split-spec"`: colocate tasks so that every plan of the problem can be exported to this
        format. A module keeps its classes `_no_split_modules` whole, as accelerate does.
    addresses
        Alignment such as `"64 B"`: plans have offsets, and tasks state which outputs may share bytes.

    Returns
    -------
    The document, for `placeopt.compile`, and notes on guessed costs and shared weights. The section `x-torch` states
    what each task is in the model.

    Raises
    ------
    UsageError
        If an argument is wrong, a symbolic size has no value, or PyTorch cannot export the module.
    MissingExtraError
        If PyTorch is not installed.
    """
    require("torch", "torch", "PyTorch models")
    from torch.export import ExportedProgram
    from torch.nn import Module

    network, notes = network_of(devices)
    if not is_whole(optimizer_bytes_per_parameter) or not 0 <= optimizer_bytes_per_parameter <= 1024:
        given = optimizer_bytes_per_parameter
        raise UsageError(f"optimizer_bytes_per_parameter is {given!r}; expected a whole number from 0 to 1024")
    if shared not in ("colocate", "copy"):
        raise UsageError(f"shared is {shown(shared)}; expected colocate or copy")
    with quiet(), collection_paused():
        if isinstance(model, ExportedProgram):
            if args is not None or kwargs is not None or dynamic_shapes is not None:
                raise UsageError("an exported program takes no example inputs and no dynamic_shapes")
            program = model
            title = "exported program"
        elif isinstance(model, Module):
            program = _exported(model, args, kwargs, dynamic_shapes)
            title = type(model).__name__
        else:
            raise UsageError(f"model is of type {type(model).__name__}; expected a module or an exported program")
        options = ImportOptions(
            name=title if name is None else name,
            resolution=resolution,
            network=network,
            batch=batch,
            dims=dict(dims or {}),
            precision=precision,
            objective=objective,
            target=target,
            addresses=addresses,
        )
        imported = _imported(
            program,
            options,
            f"{title}, by torch.export",
            level,
            training=training,
            shared=shared,
            optimizer_bytes=optimizer_bytes_per_parameter,
            kept=() if program is model else _kept_whole(model),
        )
    return Imported(imported.document, (*notes, *imported.notes))


def _exported(model: Module, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, dynamic: Any) -> Any:
    import torch

    if args is None and kwargs is None:
        raise UsageError("a module needs example inputs: from_torch(module, args)")
    if isinstance(args, torch.Tensor):
        raise UsageError("args is a tensor; expected a tuple of the example inputs: (tensor,)")
    try:
        return torch.export.export(model, tuple(args or ()), dict(kwargs or {}), dynamic_shapes=dynamic, strict=False)
    except (
        RuntimeError, TypeError, ValueError, AssertionError, AttributeError, LookupError,
        torch._dynamo.exc.TorchDynamoException,
    ) as error:  # fmt: skip
        raise UsageError(f"torch.export cannot export {type(model).__name__}: {error}") from error


def _imported(
    program: ExportedProgram,
    options: ImportOptions,
    source: str,
    level: str | int,
    *,
    training: bool = False,
    shared: str = "colocate",
    optimizer_bytes: int = 0,
    file: str | None = None,
    kept: Sequence[str] = (),
) -> Imported:
    from placeopt.bridges.pytorch.graphs import forward_kernels
    from placeopt.bridges.pytorch.operators import at_level, level_of, operators_of, section, with_stacks
    from placeopt.bridges.pytorch.section import KEY, placed_model, tensor_calls
    from placeopt.bridges.pytorch.sizes import Sizes, symbol_values
    from placeopt.bridges.pytorch.training import training_kernels

    check_precision(options.precision, get_args(NumberFormat))
    target = options.target
    if target is not None and target not in TARGETS:
        raise UsageError(f"{visible(target)} is not a runtime of this import{alternatives(target, TARGETS)}")
    if target == SPLIT_SPEC and options.objective == "makespan":
        raise UsageError(f"{SPLIT_SPEC} needs the objective period: its stages form a pipeline")
    if target is None and level == "auto":
        raise UsageError(f"the level auto needs a runtime: --for {' or '.join(TARGETS)} (target=... in Python)")
    pipelined = options.pipelined or target == SPLIT_SPEC
    chosen = None if level == "auto" else level_of(level)
    sizes = Sizes(symbol_values(program, options.dims, options.batch))
    graph = training_kernels(program, sizes) if training else forward_kernels(program, sizes)
    if not graph.kernels:
        raise UsageError("the model computes nothing: its graph has no operator")
    for kernel in graph.kernels:
        if options.precision is not None and kernel.precision == "fp32":
            kernel.precision = options.precision
    with_stacks(graph)
    network, notes = network_of(options.network)
    rules = pipeline_rules(training=training) if pipelined else None
    name = options.name or "model"
    order = {node.name: place for place, node in enumerate(program.graph.nodes)}

    def at(chosen: Level) -> _AtLevel:
        """The model at a level, and what the runtime requires there."""
        coarse = at_level(graph, chosen)
        operators, shared_notes = operators_of(coarse, shared, optimizer_bytes, gradients=pipelined)
        result = OperatorGraph(name, source, operators).imported(
            network, options.resolution, file, pipeline=rules, addresses=options.addresses
        )
        result.document[KEY] = section(coarse, chosen, order, tensor_calls(program.graph))
        if target is None:
            return _AtLevel(result, shared_notes, None, "")
        problem = compile_spec(result.document)
        nowhere = np.zeros(problem.n_tasks, dtype=np.int64)
        model = placed_model(problem, Schedule(nowhere, nowhere), result.document)
        devices = devices_of(problem)
        main = next((device for device in devices if not is_cpu(device)), devices[0]).name
        return _AtLevel(result, shared_notes, TARGETS[target](model, kept), main)

    levels: list[Level] = ["op", "module", *range(max(map(_depth, graph.kernels)), 0, -1)]
    if chosen is None:
        level, model = _coarsest(levels, at, target)
    else:
        level, model = chosen, at(chosen)
        model.require(target)
    result, shared_notes, required, _ = model
    guesses = result.notes
    if guesses and result.document[KEY]["level"] != "op":  # the share of single operators, regardless of the level
        single = OperatorGraph(name, source, operators_of(graph, shared)[0])
        guesses = single.imported(network, options.resolution, file).notes
    if training:
        notes += ("the optimiser is not part of the graph; its state is optimizer_bytes_per_parameter",)
    if required is not None:
        shown_level = f"level {level}: " if chosen is None else ""
        notes += (f"{shown_level}{target} can place {counted(len(required.parts), 'part')} of the model apart",)
    return Imported(result.document, (*notes, *guesses, *shared_notes))


class _AtLevel(NamedTuple):
    """A model at a level."""

    result: Imported
    shared_notes: tuple[str, ...]
    required: Requirements | None
    """What the runtime requires; None without one."""
    main: str
    """The main device of the runtime."""

    @property
    def parts(self) -> int:
        """The number of parts that the runtime can place apart."""
        return 0 if self.required is None else len(self.required.parts)

    def require(self, target: str | None) -> None:
        """Add the requirements of the runtime to the document, and check it."""
        if target is not None and self.required is not None:
            require_parts(self.result.document["tasks"], self.required, target, self.main)
            compile_spec(self.result.document)


def _coarsest(levels: Iterable[Level], at: Callable[[Level], _AtLevel], target: str | None) -> tuple[Level, _AtLevel]:
    """Return the coarsest level with the most parts whose tasks fit on devices, and the model there.

    Raises a DocumentError if no level is possible: the issues of the finest one.
    """
    found: list[tuple[Level, _AtLevel]] = []
    finest: DocumentError | None = None
    for level in levels:
        try:
            found.append((level, at(level)))
        except DocumentError as error:
            finest = finest or error
    most = max((model.parts for _, model in found), default=0)
    for level, model in reversed(found):
        if model.parts == most:
            try:
                model.require(target)
            except DocumentError as error:
                finest = error
            else:
                return level, model
    assert finest is not None
    coarser = "; no coarser level is possible"
    raise DocumentError([
        replace(issue, message=f"{issue.message}{coarser}") if issue.path[:1] == ("tasks",) else issue
        for issue in finest.issues
    ])  # fmt: skip


def _depth(kernel: Kernel) -> int:
    """The depth of the innermost module of a kernel."""
    path = kernel.stack[-1] if kernel.stack else ""
    return path.count(".") + 1 if path else 0


def _kept_whole(model: Module) -> list[str]:
    """The modules that a model of transformers excludes from splits."""
    classes = {name for each in model.modules() for name in getattr(each, "_no_split_modules", None) or ()}
    return [path for path, each in model.named_modules() if path and type(each).__name__ in classes]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of PyTorch about its own use of deprecated and experimental functions."""
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning, DeprecationWarning):
            warnings.filterwarnings("ignore", category=category, module=r"torch($|\.)|copyreg|contextlib|typing")
        yield
