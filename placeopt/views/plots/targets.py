"""Check plot files and the plotting extra before anything is drawn, without importing matplotlib."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from placeopt.errors import MissingExtraError, UsageError, visible

SUFFIXES = ("png", "svg", "pdf")


def checked_file(path: str | PathLike[str]) -> tuple[Path, str]:
    """Return the path and the format of its suffix; a suffix not in SUFFIXES is a UsageError."""
    target = Path(path)
    suffix = target.suffix.lower().removeprefix(".")
    if suffix not in SUFFIXES:
        found = f'its name ends in ".{visible(suffix)}"' if suffix else "its name has no suffix"
        raise UsageError(f"cannot draw {visible(str(target))}: {found}; expected one of .png, .svg, .pdf")
    return target, suffix


def need_plots() -> None:
    """Raise a MissingExtraError if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("plots need matplotlib: pip install 'placeopt[plots]'")
