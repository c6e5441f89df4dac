"""Format profiles as data, and print them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.bridges.profiling import Applied, Deviations, Estimate, Line, Profile, TransferModel
from placeopt.bridges.profiling.estimates import relative_deviation, time_text
from placeopt.cli.terminal.console import new_table
from placeopt.errors import counted, listing, visible
from placeopt.model.units import size_text

_SHOWN = 20


def profile_data(profile: Profile) -> dict[str, Any]:
    """Return a profile as plain data in seconds and bytes; slopes are per sample of the batch."""
    return {
        "batch": profile.batch,
        "operators": [asdict(estimate) for estimate in profile.estimates],
        "deviations": {
            "time": None if profile.time is None else asdict(profile.time),
            "memory": None if profile.memory is None else asdict(profile.memory),
        },
        "total": {
            which: {
                unit: sum(getattr(getattr(each, which), unit) for each in profile.estimates)
                for unit in ("seconds", "bytes")
            }
            for which in ("estimated", "best")
        },
        "constant": [_name(estimate) for estimate in profile.constant],
        "falling": [_name(estimate) for estimate in profile.falling],
    }


def transfers_data(model: TransferModel) -> dict[str, Any]:
    """Return a transfer model as plain data in seconds and bytes."""
    return {**asdict(model), "bandwidth": model.bandwidth, "link": model.link()}


def print_profile(console: Console, profile: Profile) -> None:
    """Print the operators with the largest memory, the totals, and deviations from measurements."""
    estimates = sorted(profile.estimates, key=lambda e: -e.best.bytes)
    compared = profile.memory is not None or profile.time is not None
    quality = "off" if compared else "fit"  # measurements at the requested batch size replace the quality of the fit
    table = new_table(
        "operator", "batches", "memory", "/sample", quality, "time", "/sample", quality, wrap=["operator"]
    )
    for estimate in estimates[:_SHOWN]:
        table.add_row(*_row(estimate, compared))
    console.print(f"[bold]at batch size {profile.batch:,}[/bold]")
    console.print(table)
    if len(estimates) > _SHOWN:
        console.print(f"  and {len(estimates) - _SHOWN:,} with less memory; --json lists all of them")
    memory = sum(e.best.bytes for e in estimates)
    seconds = sum(e.best.seconds for e in estimates)
    console.print(f"together {_size(memory)} and {_time(seconds)}")
    if compared:
        console.print(f"\n[bold]deviation of estimates from measurements at batch size {profile.batch:,}[/bold]")
        console.print(_deviation_table({"memory": profile.memory, "time": profile.time}))


def print_notes(console: Console, profile: Profile) -> None:
    """Print notes on doubtful estimates."""
    several = any(e.device is not None for e in profile.estimates)

    def operators(number: int) -> str:
        where = f" on {'a device' if number == 1 else 'devices'}" if several else ""
        return counted(number, "operator") + where

    for found, message in (
        (profile.constant, "measured at only one batch size, assumed to be constant"),
        (profile.falling, "memory or time decreases with the batch size, which is doubtful"),
    ):
        if found:
            names = listing([_name(estimate) for estimate in found], 5)
            console.print(Text(f"note: {operators(len(found))}: {message}: {names}"))
    if profile.unmatched:
        console.print(f"note: {operators(profile.unmatched)} not compared: not measured at other batch sizes")


def print_transfers(console: Console, model: TransferModel) -> None:
    """Print the linear transfer model and the lines for a spec."""
    slope = model.seconds_per_byte * 1e6
    console.print("[bold]transfers[/bold]")
    console.print(
        f"t = {slope:.9g} us/B d + {model.latency * 1e6:.9g} us, fitted to {model.points:,} transfers, "
        f"largest deviation {_percent(model.residual)}"
    )
    if model.bent:
        console.print(f"note: {model.bent}")
    link = ", ".join(f"{key}: {value}" for key, value in model.link().items())
    console.print(f"\nlinks:\n  default: {{{link}}}", soft_wrap=True)


def print_applied(console: Console, applied: Applied) -> None:
    """Print what a profile changed in a problem."""
    console.print(
        f"{counted(len(applied.document['tasks']), 'task')}: {applied.by_name:,} measured by name, {applied.by_op:,} "
        f"by op, {len(applied.left):,} unchanged"
    )
    for found, message in (
        (applied.left, "no measurements for these tasks"),
        (applied.unused, "no task has the name or op of these operators"),
        (applied.restricted, "stated by flops or bytes before, these tasks now run only where they were measured"),
    ):
        if found:
            console.print(Text(f"note: {message}: {listing(found, 5)}"))


def _row(estimate: Estimate, compared: bool) -> tuple[str | Text, ...]:
    low, high = estimate.batches[0], estimate.batches[-1]
    sizes = str(low) if low == high else f"{low}-{high}"
    best, reference = estimate.best, estimate.reference
    memory, time = estimate.memory.residual, estimate.time.residual
    off = [_percent(memory), _percent(time)]
    if compared and reference is not None:
        off = [
            _percent(relative_deviation(estimate.estimated.bytes, reference.bytes)),
            _percent(relative_deviation(estimate.estimated.seconds, reference.seconds)),
        ]
    elif compared:
        off = ["-", "-"]
    return (
        Text(visible(_name(estimate), 40)),
        sizes,
        _size(best.bytes),
        _per_sample(estimate.memory, _size),
        off[0],
        _time(best.seconds),
        _per_sample(estimate.time, _time),
        off[1],
    )


def _per_sample(line: Line, shown: Any) -> str:
    return f"{'-' if line.slope < 0 else ''}{shown(abs(line.slope))}"


def _deviation_table(found: dict[str, Deviations | None]) -> Table:
    table = new_table("", "mean", "90 % within", "most", "of the sum", "compared")
    for name, deviations in found.items():
        if deviations is not None:
            d = deviations
            left = f" ({d.left_out:,} zero)" if d.left_out else ""
            amounts = [_percent(amount) for amount in (d.mean, d.within_90, d.most, d.total)]
            table.add_row(name, *amounts, f"{d.compared:,}{left}")
    return table


def _name(estimate: Estimate) -> str:
    return estimate.operator if estimate.device is None else f"{estimate.operator} on {estimate.device}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def _size(amount: float) -> str:
    return size_text(round(amount)) if amount >= 1 else f"{amount:.2g} B"


def _time(seconds: float) -> str:
    number, unit = time_text(seconds).split(" ")
    return f"{float(number):.4g} {unit}"
