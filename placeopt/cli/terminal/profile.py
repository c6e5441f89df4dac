"""Format profiles as data, and print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.bridges.profiling import (
    Applied,
    Deviations,
    DeviceEfficiency,
    Estimate,
    Line,
    Measured,
    Profile,
    TransferModel,
)
from placeopt.bridges.profiling.estimates import relative_deviation
from placeopt.cli.terminal.console import new_table
from placeopt.errors import counted, listing, visible
from placeopt.model.units import seconds_text, size_text

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
                "seconds": _seconds([getattr(each, which) for each in profile.estimates]),
                "bytes": _memory([getattr(each, which) for each in profile.estimates]),
            }
            for which in ("estimated", "best")
        },
        "runs": [{**asdict(runs), "outside": runs.outside} for runs in profile.runs],
        "constant": [_name(estimate) for estimate in profile.constant],
        "falling": [_name(estimate) for estimate in profile.falling],
    }


def transfers_data(model: TransferModel) -> dict[str, Any]:
    """Return a transfer model as plain data in seconds and bytes."""
    return {**asdict(model), "bandwidth": model.bandwidth, "link": model.link()}


def print_profile(console: Console, profile: Profile) -> None:
    """Print the operators with the largest memory or time, the totals, and deviations from measurements."""
    memory = _memory([estimate.best for estimate in profile.estimates])
    largest = "time" if memory is None else "memory"
    estimates = sorted(profile.estimates, key=lambda e: -(e.best.seconds if e.best.bytes is None else e.best.bytes))
    compared = profile.memory is not None or profile.time is not None
    quality = "off" if compared else "fit"  # measurements at the requested batch size replace the quality of the fit
    columns = [] if memory is None else ["memory", "/sample", quality]
    table = new_table("operator", "batches", *columns, "time", "/sample", quality, wrap=["operator"])
    for estimate in estimates[:_SHOWN]:
        table.add_row(*_row(estimate, compared))
    console.print(f"[bold]at batch size {profile.batch:,}[/bold]")
    console.print(table)
    if len(estimates) > _SHOWN:
        console.print(f"  and {len(estimates) - _SHOWN:,} with less {largest}; --json lists all of them")
    seconds = _seconds([estimate.best for estimate in estimates])
    console.print(f"together {'' if memory is None else f'{_size(memory)} and '}{_time(seconds)}")
    for runs in profile.runs:
        outside = "" if runs.outside < 0 else f", {_percent(runs.outside / runs.seconds)} outside of operators"
        console.print(
            f"{counted(runs.count, 'run')} at batch size {runs.batch:,}: {_time(runs.seconds)} on average, operators "
            f"{_time(runs.operators)}{outside}",
            soft_wrap=True,
        )
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
    for note in profile.notes:
        console.print(Text(f"note: {note}"))
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
        (applied.unused, f"no task has the name or op of these operators{_share(applied)}"),
        (applied.restricted, "stated by flops or bytes before, these tasks now run only where they were measured"),
        (applied.estimated, "on devices without measurements, these tasks keep the times from flops and bytes"),
        (applied.uniform, "the profile states no device, so that times are the same on devices of these types"),
    ):
        if found:
            console.print(Text(f"note: {message}: {listing(found, 5)}"))


def efficiency_data(found: Sequence[DeviceEfficiency]) -> dict[str, Any]:
    """Return efficiencies by the key of the devices as plain data."""
    return {each.devices: {**asdict(each), "efficiency": each.spec()} for each in found}


def print_efficiency(console: Console, found: Sequence[DeviceEfficiency]) -> None:
    """Print the efficiencies and the lines for a problem."""
    table = new_table("devices", "bound by", "tasks", "at full rate", "measured", "efficiency", "off", wrap=["devices"])
    for each in found:
        for rate, reached in (("speed", each.compute), ("memory bandwidth", each.memory)):
            if reached is not None:
                table.add_row(
                    Text(visible(each.devices, 40)),
                    rate,
                    f"{reached.tasks:,}",
                    _time(reached.at_peak),
                    _time(reached.measured),
                    f"{reached.efficiency:.4g}",
                    _percent(reached.deviation),
                )
    console.print(table)
    console.print("off: median deviation of estimated from measured times, with these efficiencies")
    console.print("\ndevices:")
    for each in found:
        shares = ", ".join(f"{rate}: {share}" for rate, share in each.spec().items())
        console.print(Text(f"  {each.devices}: {{efficiency: {{{shares}}}}}"), soft_wrap=True)


def print_low_rates(console: Console, found: Sequence[DeviceEfficiency]) -> None:
    """Print a note for each rate that tasks exceed."""
    for each in found:
        for rate, reached in (("speed", each.compute), ("memory bandwidth", each.memory)):
            if reached is not None and reached.efficiency > 1:
                factor = f"{reached.efficiency:.4g}"
                console.print(Text(f"note: {each.devices}: tasks reach {factor} times the stated {rate}; state more"))


def _share(applied: Applied) -> str:
    return "" if applied.unused_share is None else f", {_percent(applied.unused_share)} of the measured time"


def _row(estimate: Estimate, compared: bool) -> tuple[str | Text, ...]:
    low, high = estimate.batches[0], estimate.batches[-1]
    sizes = str(low) if low == high else f"{low}-{high}"
    quantities = (("bytes", estimate.memory, _size), ("seconds", estimate.time, _time))
    cells: list[str | Text] = [Text(visible(_name(estimate), 40)), sizes]
    for unit, line, shown in quantities:
        best, estimated = getattr(estimate.best, unit), getattr(estimate.estimated, unit)
        if line is None or best is None:
            continue
        measured = None if estimate.reference is None else getattr(estimate.reference, unit)
        off = line.residual if low < high else None
        if compared:
            off = None if measured is None else relative_deviation(estimated, measured)
        cells += [shown(best), "-" if low == high else _per_sample(line, shown), _percent(off)]
    return tuple(cells)


def _memory(measured: Sequence[Measured]) -> float | None:
    """Return the sum of the measured bytes; None if memory was not measured."""
    amounts = [each.bytes for each in measured if each.bytes is not None]
    return sum(amounts) if amounts or not measured else None


def _seconds(measured: Sequence[Measured]) -> float:
    return sum(each.seconds for each in measured)


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
    return seconds_text(seconds, 4)
