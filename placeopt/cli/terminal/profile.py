"""What a profile found, as data and for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.errors import listing, visible
from placeopt.model.units import size_text
from placeopt.profiling import Applied, Deviations, Estimate, Line, Profile, TransferModel
from placeopt.profiling.estimates import relative_deviation
from placeopt.profiling.transfers import time_text

_SHOWN = 20


def profile_data(profile: Profile) -> dict[str, Any]:
    """A profile as plain data: seconds and bytes, lines per sample of the batch."""
    return {
        "batch": profile.batch,
        "operators": [asdict(estimate) for estimate in profile.estimates],
        "deviations": {
            "time": None if profile.time is None else asdict(profile.time),
            "memory": None if profile.memory is None else asdict(profile.memory),
        },
        "total": {
            "estimated": {
                "seconds": sum(e.estimated.seconds for e in profile.estimates),
                "bytes": sum(e.estimated.bytes for e in profile.estimates),
            },
            "best": {
                "seconds": sum(e.best.seconds for e in profile.estimates),
                "bytes": sum(e.best.bytes for e in profile.estimates),
            },
        },
        "constant": [_name(estimate) for estimate in profile.constant],
        "falling": [_name(estimate) for estimate in profile.falling],
    }


def transfers_data(model: TransferModel) -> dict[str, Any]:
    """A transfer model as plain data: seconds and bytes."""
    return {**asdict(model), "bandwidth": model.bandwidth, "link": model.link()}


def print_profile(console: Console, profile: Profile) -> None:
    """The operators that need most memory, the totals, and how far the estimates are from what was measured."""
    estimates = sorted(profile.estimates, key=lambda e: -e.best.bytes)
    compared = profile.memory is not None or profile.time is not None
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("operator", overflow="fold")
    headers = ["batches", "memory", "/sample", "fit", "time", "/sample", "fit"]
    if compared:  # at the wanted batch size itself: how good the fit was elsewhere no longer matters
        headers = ["batches", "memory", "/sample", "off", "time", "/sample", "off"]
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for estimate in estimates[:_SHOWN]:
        table.add_row(*_row(estimate, compared))
    console.print(f"[bold]at batch size {profile.batch:,}[/bold]")
    console.print(table)
    if len(estimates) > _SHOWN:
        console.print(f"  and {len(estimates) - _SHOWN:,} with less memory; --json lists them all")
    memory = sum(e.best.bytes for e in estimates)
    seconds = sum(e.best.seconds for e in estimates)
    console.print(f"together {_size(memory)} and {_time(seconds)}")
    if compared:
        console.print(f"\n[bold]estimated and measured at batch size {profile.batch:,}[/bold]")
        console.print(_deviation_table({"memory": profile.memory, "time": profile.time}))


def print_notes(console: Console, profile: Profile) -> None:
    """What is doubtful about estimates."""
    several = any(e.device is not None for e in profile.estimates)

    def counted(number: int) -> str:
        where = f" on {'a device' if number == 1 else 'devices'}" if several else ""
        return f"{number:,} operator{'' if number == 1 else 's'}{where}"

    for found, message in (
        (profile.constant, "measured at one batch size alone, taken as constant"),
        (profile.falling, "memory or time falls with the batch size, doubtful"),
    ):
        if found:
            names = listing([_name(estimate) for estimate in found], 5)
            console.print(Text(f"note: {counted(len(found))}: {message}: {names}"))
    if profile.unmatched:
        console.print(f"note: {counted(profile.unmatched)} to compare with, not measured at other batch sizes")


def print_transfers(console: Console, model: TransferModel) -> None:
    """The linear transfer model and the lines for a spec."""
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
    """What a profile did to a problem."""
    names = list(applied.document["tasks"])
    console.print(
        f"{len(names):,} tasks: {applied.by_name:,} measured by name, {applied.by_op:,} by op, "
        f"{len(applied.left):,} left as they were"
    )
    for found, message in (
        (applied.left, "of these tasks nothing was measured"),
        (applied.unused, "no task is called by these operators, by name or op"),
        (applied.restricted, "given by flops or bytes before, these tasks now run only where they were measured"),
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
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("")
    for header in ("mean", "90 % within", "most", "of the sum", "compared"):
        table.add_column(header, justify="right", no_wrap=True)
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
