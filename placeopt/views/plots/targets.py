"""Names of pictures' files: checked before anything is drawn, without a drawing library."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from placeopt.errors import MissingExtraError, UsageError, visible

SUFFIXES = ("png", "svg", "pdf")


def checked_file(path: str | PathLike[str]) -> tuple[Path, str]:
    """The path, and the format that its suffix asks for.

    Raises
    ------
    UsageError
        If it is none of SUFFIXES.
    """
    target = Path(path)
    suffix = target.suffix.lower().removeprefix(".")
    if suffix not in SUFFIXES:
        found = f'its name ends in ".{visible(suffix)}"' if suffix else "its name has no suffix"
        raise UsageError(f"cannot draw {visible(str(target))}: {found}; expected one of .png, .svg, .pdf")
    return target, suffix


def need_plots() -> None:
    """Nothing, if pictures can be drawn.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError("pictures need matplotlib: pip install 'placeopt[plots]'")
