"""placeopt run: a plan of an ONNX or PyTorch model, executed on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from placeopt.cli.arguments import check_count, pairs, seconds, sizes
from placeopt.cli.files import check_targets, write_document, written
from placeopt.cli.options import (
    AsJson,
    BatchSize,
    Dimensions,
    FewSegments,
    PlanPath,
    ProblemFile,
    input_option,
    output_option,
    time_option,
)
from placeopt.cli.output import note_violations, noted_plan, print_json, print_notes, stdout_console
from placeopt.errors import UsageError, listing


def run(
    problem: ProblemFile,
    plan: PlanPath,
    model: Annotated[Path, input_option("--model", help="The ONNX or PyTorch model of the problem.")],
    runs: Annotated[int, Option("--runs", "-n", help="Number of measured runs; times are medians.")] = 5,
    warmup: Annotated[int, Option(help="Number of runs before the measured ones.")] = 1,
    fit: Annotated[
        bool, Option("--fit", help="First measure nodes and transfers, and predict times from them, too.")
    ] = False,
    in_plan: Annotated[
        bool,
        Option("--in-plan", help="With --fit, measure the nodes while the plan runs, and not in the unsplit model."),
    ] = False,
    profile: Annotated[
        Path | None,
        output_option("--profile", help="With --fit, write the measured times for `placeopt profile apply`."),
    ] = None,
    inputs: Annotated[
        Path | None, input_option("--inputs", help="An .npz file with an array for each input; random by default.")
    ] = None,
    seed: Annotated[int, Option(help="Seed of random inputs.")] = 0,
    threads: Annotated[int, Option(help="Threads of each process.")] = 1,
    provider: Annotated[
        list[str] | None,
        Option(
            metavar="DEVICE=NAME",
            help="Device of PyTorch for a device or its type, such as gpu0=cuda:1; may be repeated.",
        ),
    ] = None,
    optimization: Annotated[str, Option(help="Graph optimizations: `none`, `basic`, `extended` or `all`.")] = "none",
    few_segments: FewSegments = False,
    batch: BatchSize = None,
    dim: Dimensions = None,
    tolerance: Annotated[
        float | None,
        Option(
            help="Largest relative difference of outputs that counts as equal; by default 1e-4, in fp16 and int8 0.01, "
            "in bf16 0.05.",
        ),
    ] = None,
    timeout: Annotated[
        str, time_option("--timeout", help="Longest time to load the models, and longest time of a run.")
    ] = "10min",
    as_json: AsJson = False,
    trace: Annotated[
        Path | None,
        output_option("--trace", metavar="FILE.json", help="Write predicted and measured times for ui.perfetto.dev."),
    ] = None,
) -> None:
    """Execute a saved plan of an ONNX or PyTorch model on this machine, and compare outputs and times.

    Each device of the plan is a process with ONNX Runtime or PyTorch. The exit code is 1 if an output differs from that
    of the unsplit model.
    """
    from placeopt.bridges.importers import torch_export
    from placeopt.bridges.importers.imported import Imported, Sample
    from placeopt.bridges.running.execution import run_onnx
    from placeopt.bridges.running.measurement import Options, check_arguments, check_optimization
    from placeopt.bridges.running.torch_execution import run_torch
    from placeopt.cli.terminal.running import print_run
    from placeopt.io.compiler import compile_document, document_of
    from placeopt.verifier import verify
    from placeopt.views.traces import write_spans

    if profile is not None and not fit:
        raise UsageError("--profile needs --fit, which measures the times")
    limit = seconds(timeout, "--timeout")
    assert limit is not None
    check_arguments(Options(runs, warmup, fit, in_plan, tolerance), threads, seed, limit, prefix="--")
    check_optimization(optimization, prefix="--")
    check_count("--batch", batch)
    check_targets(("--profile", profile), ("--trace", trace))
    document = document_of(problem)
    compiled = compile_document(document)
    read = noted_plan(plan, compiled)
    note_violations(verify(compiled, read.schedule, read.claim).violations)
    given: dict[str, Any] = {
        "runs": runs,
        "warmup": warmup,
        "fit": fit,
        "in_plan": in_plan,
        "inputs": inputs,
        "seed": seed,
        "threads": threads,
        "few_segments": few_segments,
        "batch": batch,
        "dims": sizes(dim),
        "tolerance": tolerance,
        "timeout": limit,
    }
    if torch_export.recognises(Sample(model)):
        if optimization != "none":
            raise UsageError(f"--optimization {optimization}: only for ONNX models; {model} is a PyTorch program")
        devices = pairs("--provider", provider, "DEVICE=NAME, such as gpu0=cuda:1")
        report = run_torch(compiled, read.schedule, Imported(document.data), model, devices=devices, **given)
    else:
        if provider:
            raise UsageError("--provider: only for PyTorch programs; plans of ONNX models run on CPU cores")
        report = run_onnx(compiled, read.schedule, model, optimization=optimization, **given)
    print_notes(*report.notes)
    if as_json:
        print_json(report.to_dict())
    else:
        print_run(stdout_console(), report)
    done = written(trace, lambda path: write_spans(path, report.spans(), {"problem": report.problem}))
    if report.fit is not None and profile is not None:
        write_document(report.fit.profile(), profile)
        if absent := report.fit.stand_ins:
            print_notes(
                f"the profile has no times of {listing(absent)} and no link, since a CPU core stands for it here"
            )
    if not report.equal:
        print_notes(f"an output differs from that of the unsplit model by more than {report.tolerance:g}")
    raise typer.Exit(2 if not done else 0 if report.equal else 1)
