"""Registry of the formats of other tools that `placeopt import` reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeopt.errors import UsageError, alternatives, listing
from placeopt.io.files import StrPath, descriptor
from placeopt.io.formats import dnn_partitioning


@dataclass(frozen=True, slots=True)
class Importer:
    """An importer of one format.

    `recognises` is whether a file looks like this format. `read` converts it to a spec document, given the path and, as
    keywords, `name` (None: the file name) and `resolution`. Both raise a DocumentError, `read` with every issue.
    """

    description: str
    recognises: Callable[[Path], bool]
    read: Callable[..., dict[str, Any]]


IMPORTERS: dict[str, Importer] = {
    dnn_partitioning.NAME: Importer(
        "graphs of Tarnawski et al. 2020 (Efficient Algorithms for Device Placement of DNN Graph Operators), JSON",
        dnn_partitioning.recognises_dnn_partitioning,
        dnn_partitioning.read_dnn_partitioning,
    ),
}


def import_document(
    path: StrPath, format: str | None = None, *, name: str | None = None, resolution: str = "1 ns"
) -> dict[str, Any]:
    """Read a file in another tool's format as a spec document; the format is recognised unless given.

    Raises
    ------
    UsageError
        If the format is unknown, or the file matches no format or several.
    DocumentError
        If the file cannot be read or is not valid; lists every issue with its position.
    """
    if format is not None and format not in IMPORTERS:
        raise UsageError(f"unknown format {format}{alternatives(format, IMPORTERS)}")
    if format is None:
        if descriptor(path) is not None:
            raise UsageError(f"{path} can be read only once; state --format, one of {listing(list(IMPORTERS))}")
        found = [known for known, importer in IMPORTERS.items() if importer.recognises(Path(path))]
        if len(found) != 1:
            what = f"like {' and '.join(found)}" if found else "like no known format"
            raise UsageError(f"{path} looks {what}; state --format, one of {listing(list(IMPORTERS))}")
        (format,) = found
    return IMPORTERS[format].read(path, name=name, resolution=resolution)
