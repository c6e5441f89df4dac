"""placeopt profile: estimate durations, memory and links of a problem from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from placeopt.cli.arguments import check_count
from placeopt.cli.files import check_targets, write_document
from placeopt.cli.options import AsJson, DocumentFile, input_argument, input_option, output_option
from placeopt.cli.output import print_json, print_notes, stderr_console, stdout_console
from placeopt.errors import UsageError

app = typer.Typer(
    help="Estimate durations, memory, link speeds and efficiencies from measurements and traces.", no_args_is_help=True
)


@app.command()
def fit(
    measurements: Annotated[
        list[Path] | None,
        input_argument(
            "FILE",
            "CSV with the columns operator, batch, milliseconds, bytes; or a trace of ONNX Runtime or torch.profiler.",
        ),
    ] = None,
    batch: Annotated[int | None, Option("--batch", "-b", help="Estimate for this batch size.")] = None,
    at: Annotated[
        list[int] | None,
        Option(
            metavar="BATCH",
            help="Batch size of the traces; for several traces, repeat it in their order. Default: --batch.",
        ),
    ] = None,
    device: Annotated[
        str | None, Option(help="The device of the traces, by name or type. Default: times apply to all devices.")
    ] = None,
    transfers: Annotated[
        Path | None, input_option("--transfers", help="CSV with the columns bytes, microseconds.")
    ] = None,
    against: Annotated[
        Path | None,
        input_option("--against", help="A file with measurements at that batch size, to compare with the estimates."),
    ] = None,
    discard: Annotated[
        int, Option(metavar="N", help="Discard the first N measurements of each operator and batch.")
    ] = 0,
    out: Annotated[
        Path | None,
        output_option("--out", "-o", help="Write the profile for `apply`: JSON if the file ends in .json, else YAML."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate time and memory of operators at a batch size, and of transfers, by linear regression."""
    from placeopt.bridges.profiling import (
        fit_profile,
        fit_transfers,
        profile_document,
        read_measurements,
        read_transfers,
    )
    from placeopt.cli.terminal import profile as report

    if not measurements and transfers is None:
        raise UsageError("nothing to fit; expected a file of measurements, or --transfers FILE")
    if not measurements and any(given is not None for given in (batch, at, device, against)):
        raise UsageError("--batch, --at, --device and --against need a file of measurements")
    if measurements and batch is None:
        raise UsageError("--batch is missing; expected the batch size to estimate for, such as --batch 512")
    for option, number in (("--batch", batch), *(("--at", each) for each in at or ())):
        check_count(option, number)
    check_targets(("--out", out))
    profile, model = None, None
    ignored: dict[str, tuple[str, ...]] = {}
    if measurements and batch is not None:
        found = read_measurements(*measurements, batch=at or batch, device=device)
        if device is not None and not any(own == device for _, own in found.series):
            raise UsageError(f"--device {device}: no file is a trace; a CSV file states devices in a column")
        ignored[found.file] = found.ignored
        compared = None if against is None else read_measurements(against, batch=batch, device=device)
        profile = fit_profile(found, batch, against=compared, discard=discard)
    if transfers is not None:
        times = read_transfers(transfers)
        ignored[str(transfers)] = times.ignored
        model = fit_transfers(times)
    if out is not None:
        write_document(profile_document(profile, model), out)
    print_notes(
        *(f"{path}: unknown columns are ignored: {', '.join(names)}" for path, names in ignored.items() if names)
    )
    if as_json:
        print_json({
            "profile": None if profile is None else report.profile_data(profile),
            "transfers": None if model is None else report.transfers_data(model),
        })  # fmt: skip
        return
    console = stdout_console()
    if profile is not None:
        report.print_profile(console, profile)
        report.print_notes(stderr_console(), profile)
    if model is not None:
        if profile is not None:
            console.print()
        report.print_transfers(console, model)


@app.command()
def apply(
    profile: Annotated[Path, input_argument("PROFILE", "A profile, as `fit --out` writes it.")],
    problem: Annotated[Path, input_argument("PROBLEM", "A problem file or a graph file.")],
    out: DocumentFile = None,
) -> None:
    """Insert a profile into a problem: durations, memory and outputs by task name or op, and links."""
    from placeopt.bridges.profiling import apply_profile, read_profile
    from placeopt.bridges.profiling.fragments import self_contained
    from placeopt.cli.terminal.profile import print_applied

    check_targets(("--out", out))
    measured = read_profile(profile)  # first: of swapped files, it says which is which
    applied = apply_profile(self_contained(problem, out), measured)
    write_document(applied.document, out)
    print_applied(stderr_console(), applied)


@app.command()
def efficiency(
    profile: Annotated[Path, input_argument("PROFILE", "A profile, as `fit --out` writes it.")],
    problem: Annotated[Path, input_argument("PROBLEM", "A problem file whose tasks state flops or bytes.")],
    as_json: AsJson = False,
) -> None:
    """Estimate the efficiency of devices from measured times: the fraction of their peak rates that they reach."""
    from placeopt.bridges.profiling import device_efficiency, read_profile
    from placeopt.bridges.profiling.fragments import self_contained
    from placeopt.cli.terminal.profile import efficiency_data, print_efficiency, print_low_rates

    measured = read_profile(profile)
    found = device_efficiency(self_contained(problem), measured)
    if as_json:
        print_json(efficiency_data(found))
    else:
        print_efficiency(stdout_console(), found)
    print_low_rates(stderr_console(), found)
