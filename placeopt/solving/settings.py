"""Check options and settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from placeopt.errors import UsageError
from placeopt.solver import Options, Settings, Solver, checked_settings

LONGEST = 10**9
"""The largest time limit; engines count nanoseconds in 64 bits."""


def make_options(
    *,
    time_limit: float | None = None,
    gap_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    names: Mapping[str, str] | None = None,
    **rest: Any,
) -> Options:
    """Check the numbers of `solve` and return its options; `names` has other names of arguments for messages.

    Raises
    ------
    UsageError
        If a number is wrong.
    """

    def name(argument: str) -> str:
        return (names or {}).get(argument, argument)

    threads = workers if workers is not None else os.cpu_count() or 1
    return Options(
        time_limit=checked(name("time_limit"), time_limit, positive=True),
        gap_limit=checked(name("gap_limit"), gap_limit),
        seed=_whole(name("seed"), seed, 0),
        workers=_whole(name("workers"), threads, 1, most=1000),
        **rest,
    )


def read_settings(solver: Solver, values: Mapping[str, Any], keywords: Sequence[str] = ()) -> Settings:
    """Check the settings of a solver; values may be text, as on the command line. See `checked_settings`.

    Raises
    ------
    UsageError
        For an unknown setting or a value of the wrong kind; lists every one.
    """
    return checked_settings(solver.name, solver.settings_type, values, keywords)


def checked(name: str, value: float | None, *, positive: bool = False) -> float | None:
    if value is None:
        return None
    wanted = "positive" if positive else "not negative"
    sound = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if not sound or not (value > 0 if positive else value >= 0) or value == float("inf"):
        raise UsageError(f"{name} is {value}; expected a finite number that is {wanted}")
    if value > LONGEST:
        raise UsageError(f"{name} is {value}; expected at most {LONGEST:,} (seconds of thirty years), or none")
    return float(value)


def _whole(name: str, value: int, least: int, most: int = 2**31 - 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"{name} is {value}; expected a whole number from {least} to {most}")
    return value
