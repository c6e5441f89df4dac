"""Format measured amounts for a spec."""

from __future__ import annotations

import math

_DIGITS = 9
"""Digits written: more than measurements have, and fewer than doubles, whose noise would be rounded up to a tick."""


def time_text(seconds: float) -> str:
    """A duration for a spec: 12.5 ms."""
    return _scaled(seconds, (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)))


def bandwidth_text(rate: float) -> str:
    """A bandwidth for a spec, of bytes per second: 5.70125428 GB/s."""
    return _scaled(rate, (("GB/s", 1e-9), ("MB/s", 1e-6), ("kB/s", 1e-3), ("B/s", 1)))


def whole_bytes(amount: float) -> int:
    """Bytes rounded up, except for the noise of doubles."""
    near = round(amount)
    return near if abs(amount - near) <= 1e-12 * max(1.0, amount) else math.ceil(amount)


def _scaled(amount: float, units: tuple[tuple[str, float], ...]) -> str:
    """The amount in the first unit in which it is at least 1, else in the last."""
    for unit, scale in units:
        if amount * scale >= 1 or unit == units[-1][0]:
            return f"{amount * scale:.{_DIGITS}g} {unit}"
    raise AssertionError("unreachable")
