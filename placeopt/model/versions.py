"""Versions of installed packages."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache  # reading metadata takes milliseconds
def version_of(package: str = "placeopt") -> str:
    """Return the version of a package; empty if it is not installed, as in a checkout of placeopt."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
