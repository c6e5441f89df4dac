"""Fit operators and links to measurements by linear regression, as in Celeritas.

H. Xu et al.: Celeritas: Fast Optimizer for Large Dataflow Graphs, 2022, section 4.2.1. All lines are ordinary least
squares in closed form with centred sums of doubles, exact to about 15 digits.

Operators ("Rough Estimation"): the time and memory of each operator are lines over small batch sizes, evaluated at a
larger one. The paper finds such lines good for memory, and only a rough estimate of time. Section 6.3 defines the
relative deviation |d_e - d_a| / d_a of an estimate d_e from the measured d_a; Table 5 states its mean. Repeated
measurements of one batch size are averaged, as in the paper after the first 5 steps (section 6.3): averages of
operators add up to the average of a step, medians do not. Each batch size counts once in the regression. Choices where
the paper leaves one: an estimate is at least zero; an operator measured at only one batch size needs the same at any
other; the deviation from a measured zero is left out (and counted), unless the estimate is zero too.

Links: a transfer of d bytes takes k d + b (after Hafeez et al., 2021), so 1 / k is the bandwidth and b the latency.
The defaults of Baechi's code (Jeon et al., SoCC 2020) are k = 0.0001754 us per byte (5.7 GB/s) and b = 134 us between
two GPUs, fitted to transfers of 2^0 to 2^29 bytes. Departure: neither constant may be negative. If one is, the best
line without it is used: through the origin for a negative latency, flat for a negative k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from placeopt.bridges.profiling.measurements import Measurements, Runs, TransferTimes
from placeopt.errors import UsageError, counted, listing, visible
from placeopt.model.arrays import Float, Int
from placeopt.model.units import seconds_text

Amount = TypeVar("Amount", float, Float)

DIGITS = 9
"""Digits written: more than measurements have, and fewer than doubles, whose noise would be rounded up to a tick."""


@dataclass(frozen=True, slots=True)
class Line:
    """An amount as a linear function of the batch size: seconds or bytes."""

    slope: float
    """Per sample of the batch."""
    intercept: float
    """Part independent of the batch; may be negative if growth is not linear."""
    residual: float | None
    """Largest relative deviation at the fitted batch sizes; None if the line misses a measured zero."""

    def at(self, batch: int) -> float:
        """Return the amount at a batch size, never below zero."""
        return max(0.0, self.intercept + self.slope * batch)


@dataclass(frozen=True, slots=True)
class Measured:
    """Average measurements at one batch size."""

    seconds: float
    bytes: float | None
    """None if memory was not measured."""
    output_bytes: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of an operator on a device at the target batch size."""

    operator: str
    device: str | None
    """Its name in the measurements, or None."""
    batches: tuple[int, ...]
    """The fitted batch sizes, ascending."""
    time: Line
    memory: Line | None
    """None if memory was not measured."""
    output: Line | None
    estimated: Measured
    """Values of the lines at the target batch size."""
    measured: Measured | None
    """Measurements at the target batch size, which are not fitted, or None."""
    reference: Measured | None
    """Measurements to compare the estimate with: `measured`, or those of another file, or None."""

    @property
    def best(self) -> Measured:
        """The measured values if there are any, else the estimated ones."""
        return self.measured or self.estimated


@dataclass(frozen=True, slots=True)
class Deviations:
    """Relative deviations |estimated - measured| / measured over the operators of a profile, as in Table 5."""

    mean: float
    within_90: float
    """90th percentile."""
    most: float
    total: float | None
    """Deviation of the sums over all compared operators; None if only zeros were measured."""
    compared: int
    left_out: int
    """Operators measured as zero and estimated as more, whose relative deviation is undefined."""


@dataclass(frozen=True, slots=True)
class WholeRuns:
    """Averages of the whole runs of a model in one trace."""

    batch: int
    count: int
    """Number of runs."""
    seconds: float
    """Duration of a run."""
    operators: float
    """Sum of the durations of its operators, in seconds."""

    @property
    def outside(self) -> float:
        """Seconds outside of the operators; negative if operators run at the same time."""
        return self.seconds - self.operators


@dataclass(frozen=True, slots=True)
class Profile:
    """All operators at one batch size, in the order of their first measurements."""

    batch: int
    estimates: tuple[Estimate, ...]
    time: Deviations | None
    """Deviations of the estimated times from measured ones; None without measurements."""
    memory: Deviations | None
    file: str = ""
    unmatched: int = 0
    """Operators of the compared file that are not in the fitted file."""
    runs: tuple[WholeRuns, ...] = ()
    """Whole runs of each trace that contains them."""
    notes: tuple[str, ...] = ()
    """What the traces cannot state: one sentence each."""

    @property
    def constant(self) -> tuple[Estimate, ...]:
        """Operators measured at only one batch size, which is not the target."""
        return tuple(e for e in self.estimates if len(e.batches) == 1 and e.batches[0] != self.batch)

    @property
    def falling(self) -> tuple[Estimate, ...]:
        """Operators whose memory or time falls with the batch size: noise, or not linear."""
        return tuple(e for e in self.estimates if e.time.slope < 0 or (e.memory is not None and e.memory.slope < 0))


@dataclass(frozen=True, slots=True)
class _Means:
    """Averages of each series at each batch size, sorted by series, then batch, in k rows."""

    series: Int
    batch: Int
    columns: tuple[Float | None, ...]
    """Seconds, bytes and output bytes; None for what was not measured."""


def fit_profile(
    measurements: Measurements, batch: int, *, against: Measurements | None = None, discard: int = 0
) -> Profile:
    """Estimate the time and memory of every measured operator at the batch size `batch`.

    Measurements at `batch` are not fitted, but compared with the estimates and used instead of them. An operator that
    was measured only there needs that. O(r log r) for r measurements.

    Parameters
    ----------
    measurements
        Measurements at small batch sizes.
    batch
        The target batch size.
    against
        Measurements to compare with the estimates, at `batch`.
    discard
        Number of first measurements to leave out for each operator and batch size, as warm-up; 5 in Celeritas.

    Raises
    ------
    UsageError
        If `batch` is below 1, `discard` is below 0 or leaves no measurements, or `against` has no matching ones.
    """
    if batch < 1:
        raise UsageError(f"batch: {batch} is not a batch size; expected a whole number of at least 1")
    means = _averaged(measurements, discard)
    count = len(measurements.series)
    at_target = means.batch == batch
    others = np.bincount(means.series[~at_target], minlength=count)
    fitted = ~at_target | (others == 0)[means.series]
    lines: list[list[Line | None]] = [
        [None] * count
        if column is None
        else [*_lines(means.series[fitted], means.batch[fitted], column[fitted], count)]
        for column in means.columns
    ]
    batches = np.split(means.batch[fitted], np.cumsum(np.bincount(means.series[fitted], minlength=count))[:-1])
    measured: list[Measured | None] = [None] * count
    for row in np.flatnonzero(at_target & ~fitted).tolist():
        measured[int(means.series[row])] = _measured(means, row)
    reference, unmatched = measured, 0
    if against is not None:
        reference, unmatched = _references(measurements, against, batch, discard)
    estimates = []
    for s, (operator, device) in enumerate(measurements.series):
        time, memory, output = (column[s] for column in lines)
        assert time is not None
        estimated = Measured(time.at(batch), *(None if line is None else line.at(batch) for line in (memory, output)))
        sizes = tuple(batches[s].tolist())
        estimates.append(Estimate(operator, device, sizes, time, memory, output, estimated, measured[s], reference[s]))
    compared = [(e.estimated, e.reference) for e in estimates if e.reference is not None]
    return Profile(
        batch,
        tuple(estimates),
        _deviations([(ours.seconds, theirs.seconds) for ours, theirs in compared]),
        _deviations([
            (ours.bytes, theirs.bytes)
            for ours, theirs in compared
            if ours.bytes is not None and theirs.bytes is not None
        ]),
        measurements.file,
        unmatched,
        tuple(_whole(runs, discard) for runs in measurements.runs if len(runs.seconds) > discard),
        measurements.notes,
    )  # fmt: skip


def _whole(runs: Runs, discard: int) -> WholeRuns:
    seconds, operators = runs.seconds[discard:], runs.operators[discard:]
    return WholeRuns(runs.batch, len(seconds), float(seconds.mean()), float(operators.mean()))


def relative_deviation(estimated: float, measured: float) -> float | None:
    """|estimated - measured| / measured; None if undefined, 0 if both are zero."""
    if measured == 0:
        return 0.0 if estimated == 0 else None
    return abs(estimated - measured) / measured


def _averaged(measurements: Measurements, discard: int) -> _Means:
    """Return the averages, without the first `discard` measurements of each series and batch size."""
    if discard < 0:
        raise UsageError(f"discard: {discard} is not valid; expected a whole number of at least 0")
    # lexsort is stable, so that measurements stay in order.
    order = np.lexsort((measurements.batch, measurements.member))
    series, batch = measurements.member[order], measurements.batch[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (series[1:] != series[:-1]) | (batch[1:] != batch[:-1])
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, len(order)))
    if len(sizes) and discard >= sizes.min():
        short = np.flatnonzero(sizes <= discard)
        names = [f"{visible(measurements.series[series[starts[g]]][0])} at {batch[starts[g]]}" for g in short]
        raise UsageError(
            f"discard: {discard} leaves nothing of {listing(names)}; expected less than the "
            f"{counted(int(sizes.min()), 'measurement')} there"
        )
    group = np.repeat(np.arange(len(starts)), sizes)
    kept = np.arange(len(order)) - starts[group] >= discard
    averages = tuple(
        None
        if column is None
        else np.bincount(group[kept], weights=column[order][kept], minlength=len(starts)) / (sizes - discard)
        for column in (measurements.seconds, measurements.bytes, measurements.output_bytes)
    )
    return _Means(series[starts], batch[starts], averages)


def _lines(series: Int, batch: Int, amount: Float, count: int) -> list[Line]:
    """Return the least-squares line of each of `count` series, which have at least one row each."""
    size = np.bincount(series, minlength=count)
    x = batch.astype(np.float64)
    middle_x = np.bincount(series, weights=x, minlength=count) / size
    middle_y = np.bincount(series, weights=amount, minlength=count) / size
    dx, dy = x - middle_x[series], amount - middle_y[series]
    spread = np.bincount(series, weights=dx * dx, minlength=count)
    together = np.bincount(series, weights=dx * dy, minlength=count)
    slope = np.divide(together, spread, out=np.zeros(count), where=spread > 0)
    intercept = middle_y - slope * middle_x
    fitted = np.maximum(0.0, intercept[series] + slope[series] * x)
    off = np.abs(fitted - amount)
    undefined = np.bincount(series, weights=(amount == 0) & (off > 0), minlength=count) > 0
    relative = np.divide(off, amount, out=np.zeros(len(off)), where=amount > 0)
    worst = np.zeros(count)
    np.maximum.at(worst, series, relative)
    return [
        Line(k, b, None if unknown else residual)
        for k, b, residual, unknown in zip(
            slope.tolist(), intercept.tolist(), worst.tolist(), undefined.tolist(), strict=True
        )
    ]


def _measured(means: _Means, row: int) -> Measured:
    seconds, memory, output = (None if column is None else float(column[row]) for column in means.columns)
    assert seconds is not None
    return Measured(seconds, memory, output)


def _references(
    measurements: Measurements, against: Measurements, batch: int, discard: int
) -> tuple[list[Measured | None], int]:
    """Return measurements of `against` at the batch size for each series, and the number of other series there."""
    means = _averaged(against, discard)
    rows = np.flatnonzero(means.batch == batch).tolist()
    there = {against.series[int(means.series[row])]: _measured(means, row) for row in rows}
    found = [there.get(series) for series in measurements.series]
    matched = sum(each is not None for each in found)
    if not matched:
        sizes = [str(size) for size in np.unique(means.batch).tolist()]
        why = f"has batch sizes {listing(sizes)}" if not rows else f"has none of the operators of {measurements.file}"
        raise UsageError(f"{against.file or 'against'}: {why}; expected measurements of these operators at {batch}")
    return found, len(there) - matched


def _deviations(pairs: Sequence[tuple[float, float]]) -> Deviations | None:
    """Return deviations of (estimated, measured) pairs; None if no pair can be compared."""
    relative = [relative_deviation(estimated, measured) for estimated, measured in pairs]
    known = sorted(deviation for deviation in relative if deviation is not None)
    if not known:
        return None
    total = relative_deviation(sum(ours for ours, _ in pairs), sum(theirs for _, theirs in pairs))
    return Deviations(
        mean=sum(known) / len(known),
        within_90=known[-(-9 * len(known) // 10) - 1],
        most=known[-1],
        total=total,
        compared=len(known),
        left_out=len(relative) - len(known),
    )


@dataclass(frozen=True, slots=True)
class TransferModel:
    """Seconds to transfer d bytes: seconds_per_byte * d + latency, both terms at least zero."""

    seconds_per_byte: float
    latency: float
    residual: float | None
    """Largest relative deviation from the measured times; None if the line misses a measured zero."""
    points: int
    """Number of measured transfers."""
    bent: str = ""
    """How a negative constant was avoided; empty if there was none."""

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second; None if the time does not depend on the amount."""
        return 1 / self.seconds_per_byte if self.seconds_per_byte else None

    def seconds(self, data: Amount) -> Amount:
        """Return seconds to transfer `data` bytes: a number or an array."""
        return self.seconds_per_byte * data + self.latency

    def link(self) -> dict[str, str]:
        """Return the link as an entry of a spec, to nine digits."""
        found = {} if self.bandwidth is None else {"bandwidth": bandwidth_text(self.bandwidth)}
        return {**found, "latency": seconds_text(self.latency, DIGITS)}


def fit_transfers(times: TransferTimes) -> TransferModel:
    """Return the line through measured transfers with the least sum of squared deviations; O(r) for r transfers.

    Raises
    ------
    UsageError
        If all transfers moved the same amount, which does not determine a bandwidth.
    """
    data, seconds = times.bytes, times.seconds
    if len(data) == 0 or data.min() == data.max():
        raise UsageError(f"{times.file or 'transfers'}: all transfers move the same amount; expected several amounts")
    dx, dy = data - data.mean(), seconds - seconds.mean()
    slope, bent = float(dx @ dy / (dx @ dx)), ""
    latency = float(seconds.mean() - slope * data.mean())
    # A latency that is only rounding noise becomes zero.
    if abs(latency) < 1e-12 * seconds.max():
        latency = 0.0
    if slope < 0:
        slope, latency, bent = 0.0, float(seconds.mean()), "times fall with the amount; a constant time is used"
    elif latency < 0:
        slope, latency, bent = float(data @ seconds / (data @ data)), 0.0, "a negative latency is replaced by zero"
    off = np.abs(slope * data + latency - seconds)
    zero = seconds == 0
    residual = None if (off[zero] > 0).any() else float((off[~zero] / seconds[~zero]).max(initial=0.0))
    return TransferModel(slope, latency, residual, len(data), bent)


def bandwidth_text(rate: float) -> str:
    """Return a bandwidth for a spec, of bytes per second: 5.70125428 GB/s."""
    units = (("GB/s", 1e-9), ("MB/s", 1e-6), ("kB/s", 1e-3))
    unit, scale = next((each for each in units if rate * each[1] >= 1), ("B/s", 1))
    return f"{rate * scale:.{DIGITS}g} {unit}"
