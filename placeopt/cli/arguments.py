"""Convert texts of the command line to values; a text that is not valid is a UsageError."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from placeopt.errors import UsageError, visible
from placeopt.io.files import STDIN

if TYPE_CHECKING:
    from placeopt.model.units import Dimension, Quantity
    from placeopt.protocol import Options

DEFAULT_LIMIT = 60.0
"""Default time limit, in seconds, of solvers that run until they are stopped."""

LARGEST_COUNT = 2**31
"""Largest batch size, context, or size of a dimension."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_NAMES = {"time_limit": "--time-limit", "gap_limit": "--gap", "seed": "--seed", "workers": "--workers"}
"""Options that correspond to arguments of the library."""


def local_file(text: str) -> Path:
    """Convert an argument to a path; no text, an address such as https://..., and `-` are UsageErrors."""
    if not text:
        raise UsageError("the name of a file is empty; expected a file on this machine")
    if _ADDRESS.match(text):
        raise UsageError(f"{visible(text, 1000)} is an address on a network; expected a file on this machine")
    if text == "-":
        raise UsageError("- is not the name of a file; expected a file to write (./- has this name)")
    return Path(text)


def input_path(text: str) -> Path:
    """Return the path of a file to read; `-` is standard input. A path that the system rejects is a UsageError."""
    path = Path(STDIN) if text == "-" else local_file(text)
    try:
        path.exists()
    except OSError as error:
        raise UsageError(f"{text}: cannot be read: {error.strerror or error}") from None
    return path


def assignments(pairs: Sequence[str] | None) -> dict[str, str]:
    """Parse `--set key=value` options; a missing `=`, or a repeated key, is a UsageError."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise UsageError(f'--set "{pair}": expected key=value')
        if key in found:
            raise UsageError(f'--set "{pair}": {key} is set twice')
        found[key] = value.strip()
    return found


def solver_settings(solver: str, pairs: Sequence[str] | None) -> dict[str, str]:
    """Parse `--set key=value` options of a solver, and check them before a large file is read."""
    from placeopt.orchestration.settings import read_settings
    from placeopt.protocol.registry import find_solver

    settings = assignments(pairs)
    read_settings(find_solver(solver), settings)
    return settings


def pairs(option: str, given: Sequence[str] | None, expected: str) -> dict[str, str]:
    """Parse a repeated option NAME=VALUE; the last equals sign separates them."""
    found: dict[str, str] = {}
    for text in given or ():
        name, sign, value = (part.strip() for part in text.rpartition("="))
        if not (sign and name and value):
            raise UsageError(f"{option} {visible(text)}: expected {expected}")
        if name in found:
            raise UsageError(f"{option} {visible(name)} is given twice")
        found[name] = value
    return found


def sizes(given: Sequence[str] | None) -> dict[str, int]:
    """Parse the sizes of `--dim NAME=SIZE` by name."""
    found: dict[str, int] = {}
    for name, size in pairs("--dim", given, "NAME=SIZE, such as seq=128").items():
        shown = f"--dim {visible(f'{name}={size}')}"
        if not (size.isascii() and size.isdigit()):
            raise UsageError(f"{shown} is not a size; expected NAME=SIZE, such as seq=128")
        if len(size) > len(str(LARGEST_COUNT)) or not 1 <= int(size) <= LARGEST_COUNT:
            raise UsageError(f"{shown}: the size is out of range; expected 1 to {LARGEST_COUNT:,}")
        found[name] = int(size)
    return found


def whole_number(text: str, option: str) -> int:
    """Convert a number such as 8192; anything else is a UsageError."""
    if not re.fullmatch("-?[0-9]{1,18}", text):
        raise UsageError(f"{option} is {visible(text)}; expected a whole number, such as 8192")
    return int(text)


def check_count(option: str, number: int | None) -> None:
    """Reject a number that is below 1 or very large."""
    if number is not None and not 1 <= number <= LARGEST_COUNT:
        raise UsageError(f"{option} is {number}; expected a whole number from 1 to {LARGEST_COUNT:,}")


def checked_options(
    *, time_limit: float | None = None, gap: float | None = None, seed: int = 0, workers: int | None = None
) -> Options:
    """Check numbers that many commands share, before a large file is read."""
    from placeopt.orchestration.settings import make_options

    return make_options(time_limit=time_limit, gap_limit=gap, seed=seed, workers=workers, names=_NAMES)


def quantity(text: str, option: str, dimension: Dimension) -> Quantity:
    """Parse a number with a unit."""
    from placeopt.model.units import QuantityError, parse

    try:
        return parse(text, dimension)
    except QuantityError as error:
        raise UsageError(f"{option}: {error}") from None


def size_bytes(text: str, option: str) -> int:
    """Convert a size such as 2GB to bytes; anything else is a UsageError."""
    from placeopt.model import units

    size = int(quantity(text, option, units.MEMORY).value)
    if not size:
        raise UsageError(f"{option}: {units.shown(text)} is less than a byte; expected a size, such as 2 GB")
    return size


def seconds(text: str | None, option: str) -> float | None:
    """Convert a time such as 30, 30s or 5min to seconds."""
    if text is None:
        return None
    from placeopt.model.arrays import LONGEST
    from placeopt.model.units import TIME

    value = quantity(text, option, TIME).value
    if value == 0:
        raise UsageError(f'{option}: "{text}" is zero; expected a positive time, such as 30s')
    if value > LONGEST:
        raise UsageError(f'{option}: "{text}" is too long; expected at most {LONGEST:,} s (thirty years)')
    return float(value)


def share(text: str, option: str) -> float:
    """Convert a share such as 0.05 or 5% to a number between 0 and 1."""
    from placeopt.model import units

    found = units.share(text)
    if found is None:
        raise UsageError(f"{option} is {visible(text)}; expected a share between 0 and 1, such as 0.05 or 5%")
    return float(found)


def share_text(value: float) -> str:
    """A share in percent; one below 0.1% has three significant digits, so that it is not shown as 0."""
    return f"{100 * value:.3g}%" if 0 < value < 0.001 else f"{value:.2%}"


def limit_seconds(text: str | None, default: float | None = None) -> float | None:
    """Convert a `--time-limit` to seconds: a time, `none`, or without one the default."""
    return default if text is None else None if text == "none" else seconds(text, "--time-limit")
