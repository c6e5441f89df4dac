"""placeopt import and export: models and graphs of other tools become problems, and plans become files for runtimes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from placeopt.cli import completion
from placeopt.cli.arguments import check_count, pairs, quantity, sizes
from placeopt.cli.commands.serving import export_serving_file, import_notes, refuse
from placeopt.cli.files import check_targets, new_folder, write_document, written
from placeopt.cli.options import (
    BatchSize,
    Dimensions,
    DocumentFile,
    FewSegments,
    Report,
    Trace,
    count_option,
    devices_option,
    input_argument,
    input_option,
    output_option,
    time_option,
)
from placeopt.cli.output import note_violations, noted_plan, print_notes
from placeopt.errors import UsageError, listing, visible


def import_file(
    file: Annotated[Path | None, input_argument("FILE", "The file to convert; without it, list the formats.")] = None,
    format: Annotated[
        str | None,
        Option("--format", "-f", help="Format of the file, such as `onnx`; detected from its content by default."),
    ] = None,
    devices: Annotated[
        list[str] | None,
        devices_option(
            "--devices",
            help="A problem or network file with the devices and links, or devices of the catalogue: `h100-sxm:4`.",
        ),
    ] = None,
    batch: BatchSize = None,
    dim: Dimensions = None,
    level: Annotated[
        str | None,
        Option(
            help="Tasks of a model: `op`, `module`, a depth or `auto` for torch-export; `layer`, `part` or `expert` "
            "for gguf and hf-config; also `tensor` for gguf."
        ),
    ] = None,
    target: Annotated[
        str | None,
        Option(
            "--for",
            metavar="FORMAT",
            help="Format of `export --to` that must be able to express every plan: `device-map` or `split-spec` for "
            "torch-export, `onnxruntime` for onnx.",
        ),
    ] = None,
    precision: Annotated[str | None, Option(help="Number format of the computation, such as `fp16`.")] = None,
    context: Annotated[int | None, count_option("--context", help="Tokens in the context of a language model.")] = None,
    phase: Annotated[str | None, Option(help="Phase of a language model: `prefill` or `decode`.")] = None,
    tensor_parallel: Annotated[
        str | None,
        Option(metavar="K,K,...", help="How many devices may run a layer of a language model together: `1,2,4`."),
    ] = None,
    objective: Annotated[
        str | None, Option(help="`period`: the throughput of a pipeline of runs, instead of the `makespan` of one run.")
    ] = None,
    serve: Annotated[
        bool,
        Option(
            "--serve", help="Divide the layers of a language model among the devices, for the most tokens per second."
        ),
    ] = False,
    addresses: Annotated[
        str | None,
        Option(
            metavar="SIZE",
            help="State addresses at multiples of this size, such as `64B`, and which outputs may share bytes.",
        ),
    ] = None,
    name: Annotated[str | None, Option(help="Name of the problem; by default taken from the file.")] = None,
    resolution: Annotated[str | None, time_option("--resolution", help="Length of a tick, such as `10 ns`.")] = None,
    out: DocumentFile = None,
    plan_out: Annotated[
        Path | None, output_option("--plan-out", help="Write the run that a workflow records to this file, as a plan.")
    ] = None,
) -> None:
    """Convert a model or a graph in the format of another tool to a problem file."""
    from placeopt.bridges.importers.imported import ImportOptions
    from placeopt.bridges.importers.registry import IMPORTERS
    from placeopt.bridges.importers.registry import import_file as read
    from placeopt.bridges.networks import network_of
    from placeopt.io.files import STDIN
    from placeopt.io.plan import write_plan
    from placeopt.model import units

    if file is None:
        if any(given is not None for given in (format, devices, out, plan_out)):
            raise UsageError("the file is missing; expected placeopt import FILE")
        for known, importer in IMPORTERS.items():
            typer.echo(f"{known:<18} {importer.description}")
        return
    if resolution is not None:
        tick = quantity(resolution, "--resolution", units.TIME)
        if tick.bare or not tick.value:
            text = units.shown(resolution)
            raise UsageError(f"--resolution: {text} is not a length of a tick; expected one such as 10 ns")
    check_count("--batch", batch)
    check_count("--context", context)
    check_targets(("--out", out), ("--plan-out", plan_out))
    network, notes = (None, ()) if not devices else network_of(STDIN if devices == ["-"] else ",".join(devices))
    options = ImportOptions(
        name=name,
        resolution=resolution,
        network=network,
        batch=batch,
        dims=sizes(dim),
        level=level,
        precision=precision,
        context=context,
        phase=phase,
        tensor_parallel=_degrees(tensor_parallel),
        objective=objective,
        serve=serve or None,
        target=target,
        addresses=addresses,
        plan=True if plan_out is not None else None,
    )
    imported = read(file, format, options)
    write_document(imported.document, out)
    plan = imported.plan
    done = plan_out is None or plan is None or written(plan_out, lambda path: write_plan(path, plan))
    lacking = import_notes(imported.document) if serve else ()
    print_notes(*notes, *imported.notes, *lacking)
    raise typer.Exit(0 if done else 2)


def _degrees(text: str | None) -> tuple[int, ...]:
    """The numbers of --tensor-parallel."""
    words = [] if text is None else text.split(",")
    if any(not re.fullmatch(r"\s*[0-9]{1,4}\s*", word) for word in words):
        wrong = visible(text or "")
        raise UsageError(f"--tensor-parallel: {wrong} is not a list of numbers; expected one such as 1,2,4")
    return tuple(dict.fromkeys(map(int, words)))


def export(
    problem: Annotated[
        Path | None, input_argument("PROBLEM", "A problem file, or - for standard input; without it, list the formats.")
    ] = None,
    plan: Annotated[Path | None, input_argument("PLAN", "A plan file, as `solve --out` writes it.")] = None,
    to: Annotated[
        str | None,
        Option(
            metavar="FORMAT", autocompletion=completion.runtimes, help="Format of a runtime, such as `onnxruntime`."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        input_option(
            "--model", help="The model from which the problem was imported; required for formats of ONNX models."
        ),
    ] = None,
    batch: BatchSize = None,
    dim: Dimensions = None,
    provider: Annotated[
        list[str] | None,
        Option(
            metavar="DEVICE=NAME",
            help="Execution provider of ONNX Runtime, or device of OpenVINO or PyTorch, for a device or its type; may "
            "be repeated.",
        ),
    ] = None,
    few_segments: FewSegments = False,
    out: Annotated[
        Path | None, output_option("--out", "-o", metavar="PATH", help="Write to this file, or into this new folder.")
    ] = None,
    trace: Trace = None,
    report: Report = None,
) -> None:
    """Write a saved plan for a runtime, or as a trace or a report."""
    from placeopt.bridges.exporters.exported import ExportRequest
    from placeopt.bridges.exporters.registry import EXPORTERS, OPTIONS, exporter
    from placeopt.io.compiler import compile_document, document_of
    from placeopt.io.document import is_serving
    from placeopt.io.files import write_whole
    from placeopt.verifier import verify

    if problem is None:
        if any(given is not None for given in (to, trace, report)):
            raise UsageError("the problem and the plan are missing; expected placeopt export PROBLEM PLAN")
        for known, listed in EXPORTERS.items():
            typer.echo(f"{known:<20} {listed.description}")
        return
    if plan is None:
        raise UsageError("the plan is missing; expected placeopt export PROBLEM PLAN")
    if to is None and trace is None and report is None:
        raise UsageError("nothing to export: expected --to FORMAT, --trace FILE.json, or --report FILE.html")
    as_folder = to in EXPORTERS and EXPORTERS[to].folder is not None
    check_targets(("--out", None if as_folder else out), ("--trace", trace), ("--report", report))
    document = document_of(problem)
    if is_serving(document):
        refuse({
            "--model": model, "--provider": provider, "--few-segments": few_segments, "--trace": trace,
            "--report": report,
        })  # fmt: skip
        export_serving_file(document, plan, to, out)
    given = {"model": model, "providers": provider, "few_segments": few_segments}
    chosen = None if to is None else exporter(to, given)
    unused = [OPTIONS[key] for key, value in given.items() if value] + (["--out"] if out is not None else [])
    if chosen is None and unused:
        raise UsageError(f"{listing(unused)}: only with --to FORMAT")
    if (batch is not None or dim) and model is None:
        raise UsageError("--batch and --dim need --model FILE")
    check_count("--batch", batch)
    example = "" if chosen is None else chosen.provider
    dims, providers = sizes(dim), pairs("--provider", provider, f"DEVICE=NAME, such as gpu0={example}")
    if as_folder and out is None:
        raise UsageError(f"--to {to} writes several files; state the folder with --out")
    compiled = compile_document(document)
    read = noted_plan(plan, compiled)
    found = verify(compiled, read.schedule, read.claim)
    note_violations(found.violations)
    done = True
    if chosen is not None:
        request = ExportRequest(
            compiled,
            read.schedule,
            model,
            batch=batch,
            dims=dims,
            providers=providers,
            few_segments=few_segments,
            document=document.data,
        )
        if chosen.folder is not None:
            assert out is not None
            with new_folder(out) as folder:
                exported = chosen.folder(request, folder)
            typer.echo(exported.text)
        else:
            assert chosen.text is not None
            exported = chosen.text(request)
            if out is None:
                typer.echo(exported.text, nl=False)
            else:
                done &= written(out, lambda path: write_whole(path, exported.text))
        print_notes(*exported.notes)
    if trace is not None:
        from placeopt.views.traces import write_trace

        done &= written(trace, lambda path: write_trace(path, compiled, read.schedule))
    if report is not None:
        from placeopt.views.page import plan_page

        done &= written(report, lambda path: write_whole(path, plan_page(compiled, read.schedule, found)))
    raise typer.Exit(0 if done else 2)
