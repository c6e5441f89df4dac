"""Check options and settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from placeopt.errors import UsageError
from placeopt.model.arrays import checked_number, checked_whole
from placeopt.protocol import Options, Settings, Solver, checked_settings


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

    Raises a UsageError if a number is wrong.
    """

    def name(argument: str) -> str:
        return (names or {}).get(argument, argument)

    gap = checked_number(name("gap_limit"), gap_limit)
    if gap is not None and gap > 1:
        raise UsageError(f"{name('gap_limit')} is {gap_limit}; expected a share between 0 and 1, 0.05 for 5%")
    threads = workers if workers is not None else os.cpu_count() or 1
    return Options(
        time_limit=checked_number(name("time_limit"), time_limit, positive=True),
        gap_limit=gap,
        seed=checked_whole(name("seed"), seed, 0),
        workers=checked_whole(name("workers"), threads, 1, most=1000),
        **rest,
    )


def read_settings(solver: Solver, values: Mapping[str, Any], keywords: Mapping[str, str] | None = None) -> Settings:
    """Check the settings of a solver; values may be text, as on the command line. See `checked_settings`.

    Raises
    ------
    UsageError
        For an unknown setting or a value of the wrong kind; lists every one.
    """
    return checked_settings(solver.name, solver.settings_type, values, keywords)
