"""Run a plan of a PyTorch model on this machine, and compare predicted with measured times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.bridges.exporters.exported import document_of
from placeopt.bridges.exporters.pytorch import torch_devices
from placeopt.bridges.extras import require
from placeopt.bridges.hardware import devices_of, stated_name
from placeopt.bridges.importers.imported import Imported
from placeopt.bridges.importers.torch_export import quiet
from placeopt.bridges.running.measurement import Executable, Options, check_arguments, measure
from placeopt.bridges.running.pool import HOST, Segment, Settings
from placeopt.bridges.running.report import RunReport
from placeopt.bridges.running.tensors import model_inputs
from placeopt.errors import DocumentError, Issue, UsageError, listing, visible
from placeopt.io.files import StrPath, temporary_folder
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_schedule
from placeopt.model.segments import cut_segments

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def run_torch(
    problem: Problem,
    schedule: Schedule,
    imported: Imported,
    model: StrPath,
    *,
    runs: int = 5,
    warmup: int = 1,
    fit: bool = False,
    in_plan: bool = False,
    inputs: Mapping[str, Any] | StrPath | None = None,
    seed: int = 0,
    threads: int = 1,
    few_segments: bool = False,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    tolerance: float | None = None,
    timeout: float = 600.0,
    devices: Mapping[str, str] | None = None,
) -> RunReport:
    """Run a plan of a PyTorch model on this machine, and return its outputs' differences and its times.

    Each device of the plan is a process, pinned to a core where that is possible. It runs its segments in the order of
    the plan, each as soon as its inputs are available; gloo carries tensors between processes. The unsplit program runs
    in one process of the same kind. GPUs run their segments where PyTorch has CUDA.

    Parameters
    ----------
    problem, schedule
        The problem that was imported from the model, and a plan of it.
    imported
        The result of `from_torch` for the program, at any level, without `training`.
    model
        The program, as `torch.export.save` writes it. Loading it can execute code: the file must be trusted.
    runs, warmup, inputs, threads, few_segments, batch, dims, tolerance, timeout
        As in `run_onnx`.
    fit, in_plan
        As in `run_onnx`. The nodes of the graph are run and measured one by one.
    devices
        Devices of PyTorch, `cpu` or `cuda:K`, by the name or type of a device of the problem. By default, CPUs are
        `cpu`, and the others `cuda:0`, `cuda:1`, ...; a core stands for each one that this machine lacks.
    seed
        Seed of random inputs: floats are uniform in [0, 1), integers 0, booleans true.

    Raises
    ------
    UsageError
        If an argument is wrong, or the model is not that of the problem.
    DocumentError
        If the model or the inputs cannot be read or are not valid.
    ExecutionError
        If PyTorch fails, a process ends, or the time limit passes.
    MissingExtraError
        If PyTorch is not installed.
    """
    check_schedule("run_torch", problem, schedule)
    options = Options(runs, warmup, fit, in_plan, tolerance)
    check_arguments(options, threads, seed, timeout)
    require("torch", "torch", "runs of PyTorch models")
    import torch

    from placeopt.bridges.pytorch.section import placed_model
    from placeopt.bridges.pytorch.sizes import Sizes, symbol_values
    from placeopt.bridges.running import torch_files

    placed = placed_model(problem, schedule, document_of(imported))
    places = _places(problem, devices or {})
    settings = Settings(threads, timeout=float(timeout), runtime="torch")
    segments = cut_segments(problem, schedule, keep_order=True, at_transfers=not few_segments)
    source = Path(model)
    with quiet(), temporary_folder("placeopt-run-") as folder:
        program = _loaded(source)
        sizes = Sizes(symbol_values(program, dims or {}, batch))
        split = torch_files.TorchSplit(program, placed, segments, sizes)
        values = dict(split.inputs)
        for name, array in model_inputs(inputs, split.tensors(), seed).items():
            values[name] = torch.from_numpy(array).to(split.inputs[name].dtype)
        whole = Segment(
            str(source.resolve()),
            tuple(split.inputs),
            split.outputs,
            results=tuple(name for name in split.outputs if name in split.results),
        )
        files = torch_files.write_split(split, source, placed, folder)
        given = torch_files.write_values(values, folder)
        tasks = {node: name for name, task in placed.tasks.items() for node in task.nodes}
        executable = Executable(split, files, whole, whole, whole, given, tasks)
        elements = torch_files.elements_of(program)
        del program
        split.drop_weights()
        return measure(problem, schedule, executable, folder, settings, options, elements, (), places)


def _places(problem: Problem, stated: Mapping[str, str]) -> list[str]:
    """The device of PyTorch for each device; the CPU for a GPU that this machine lacks, if it is not stated."""
    import torch

    names = torch_devices(problem, stated, "devices")
    count = torch.cuda.device_count()
    known = [HOST, *(f"cuda:{number}" for number in range(count))]
    found = []
    for device, place in zip(devices_of(problem), names, strict=True):
        place = "cuda:0" if place == "cuda" else place
        if place in known:
            found.append(place)
        elif stated_name(device, stated) is None:
            found.append(HOST)
        else:
            raise UsageError(f"devices {visible(device.name)}={place}: this machine runs plans on {listing(known)}")
    return found


def _loaded(source: Path) -> ExportedProgram:
    """Read a program with its weights; its graph is checked first."""
    import torch

    from placeopt.bridges.pytorch.archives import read_program

    read_program(source)
    try:
        program = torch.export.load(source)
    except Exception as error:  # noqa: BLE001 - PyTorch has no common class for its errors
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DocumentError([Issue(f"PyTorch {torch.__version__} cannot load it: {reason}", (), str(source))]) from None
    elsewhere = {str(value.device) for value in program.state_dict.values()} - {"cpu"}
    if elsewhere:
        raise UsageError(f"{source}: its weights are on {listing(sorted(elsewhere))}; expected a program on the CPU")
    return program
