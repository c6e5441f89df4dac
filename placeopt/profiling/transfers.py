"""Fit the bandwidth and latency of a link to measured transfers by linear regression: t = k d + b.

Xu et al.: Celeritas: Fast Optimizer for Large Dataflow Graphs, 2022, section 4.2.1, after Hafeez et al., 2021: d is the
amount of data, k and b are constants "calculated in advance using off-line analysis"; 1 / k is the bandwidth and b the
latency of a link. The defaults of Baechi's code (Jeon et al., SoCC 2020) are k = 0.0001754 us per byte (5.7 GB/s) and
b = 134 us between two GPUs, fitted to transfers of 2^0 to 2^29 bytes.

Departure: neither constant may be negative. If one is, the best line without it is used: through the origin for a
negative latency, flat for a negative k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.errors import UsageError
from placeopt.profiling.measurements import TransferTimes

_DIGITS = 9
"""Digits written: more than measurements have, and fewer than doubles, whose noise would be rounded up to a tick."""


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

    def seconds(self, data: float) -> float:
        """Seconds to transfer `data` bytes."""
        return self.seconds_per_byte * data + self.latency

    def link(self) -> dict[str, str]:
        """The link as an entry of a spec, to nine digits."""
        found = {} if self.bandwidth is None else {"bandwidth": bandwidth_text(self.bandwidth)}
        return {**found, "latency": time_text(self.latency)}


def fit_transfers(times: TransferTimes) -> TransferModel:
    """The line through measured transfers with the least sum of squared deviations; O(r) for r transfers.

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


def time_text(seconds: float) -> str:
    """A duration for a spec: 12.5 ms."""
    return _scaled(seconds, (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)))


def bandwidth_text(rate: float) -> str:
    """A bandwidth for a spec, of bytes per second: 5.70125428 GB/s."""
    return _scaled(rate, (("GB/s", 1e-9), ("MB/s", 1e-6), ("kB/s", 1e-3), ("B/s", 1)))


def _scaled(amount: float, units: tuple[tuple[str, float], ...]) -> str:
    """The amount in the first unit in which it is at least 1, else in the last."""
    for unit, scale in units:
        if amount * scale >= 1 or unit == units[-1][0]:
            return f"{amount * scale:.{_DIGITS}g} {unit}"
    raise AssertionError("unreachable")
