"""Complete values of options in a shell; the lists are imported when a value is completed."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable


def solvers(incomplete: str) -> list[str]:
    """Return the names of solvers that begin so, after the last comma of a list."""
    from placeopt.protocol.registry import solver_names

    return _completed(incomplete, solver_names())


def runtimes(incomplete: str) -> list[str]:
    """Return the formats of `export --to` that begin so."""
    from placeopt.bridges.exporters.registry import EXPORTERS

    return _completed(incomplete, EXPORTERS)


def devices(incomplete: str) -> list[str]:
    """Return the devices of the catalogue, after the last comma of a list, and the problem files that begin so."""
    from placeopt.io.catalogue import device_names

    paths = sorted(glob.glob(f"{glob.escape(incomplete)}*"))
    files = [path for path in paths if path.endswith((".yaml", ".yml", ".json"))]
    folders = [path + os.sep for path in paths if os.path.isdir(path)]
    return _completed(incomplete, device_names()) + files + folders


def metrics(incomplete: str) -> list[str]:
    """Return the metrics of one run that begin so, after the last comma of a list."""
    from placeopt.protocol import ALL_METRICS

    return _completed(incomplete, ALL_METRICS)


def _completed(incomplete: str, known: Iterable[str]) -> list[str]:
    head, comma, last = incomplete.rpartition(",")
    return [head + comma + name for name in known if name.startswith(last)]
