"""The formats of other tools that `placeopt import` reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeopt.errors import UsageError, listing, suggestion
from placeopt.io.files import StrPath, descriptor
from placeopt.io.formats import dnn_partitioning


@dataclass(frozen=True, slots=True)
class Importer:
    """How to read one format.

    `recognises` says whether a file looks like one. `read` makes a spec document of it, given the path and, as
    keywords, `name` (None: the name of the file) and `resolution`. Both raise DocumentError, `read` with every issue.
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
    """The spec document of a file in another tool's format, which it is recognised by unless given.

    Raises
    ------
    UsageError
        If there is no such format, or the file looks like none or like several.
    DocumentError
        If the file cannot be read or is not sound; lists every issue with its place.
    """
    if format is not None and format not in IMPORTERS:
        hint = suggestion(format, IMPORTERS) or f"; known are {listing(list(IMPORTERS))}"
        raise UsageError(f"there is no format {format}{hint}")
    if format is None:
        if descriptor(path) is not None:
            raise UsageError(f"{path} is read once only; say --format, one of {listing(list(IMPORTERS))}")
        found = [known for known, importer in IMPORTERS.items() if importer.recognises(Path(path))]
        if len(found) != 1:
            what = f"like {' and '.join(found)}" if found else "like no known format"
            raise UsageError(f"{path} looks {what}; say --format, one of {listing(list(IMPORTERS))}")
        (format,) = found
    return IMPORTERS[format].read(path, name=name, resolution=resolution)
