"""The devices for an imported model: from a file, or a default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from placeopt.errors import DocumentError, SpecError, in_file_order
from placeopt.io.document import read_document
from placeopt.io.spec import NetworkFile
from placeopt.io.validation import validate

DEFAULT_NETWORK: Mapping[str, Any] = {
    "devices": {"cpu": {"count": 2, "memory": "8 GiB", "speed": "50 GFLOP/s", "memory_bandwidth": "10 GB/s"}},
    "links": {"default": {"bandwidth": "5 GB/s", "latency": "10 us"}},
}
"""Two CPU cores that share memory."""

DEFAULT_NOTE = "without --devices, the problem has two CPU cores of 50 GFLOP/s; edit `devices`, or state --devices"


def read_network(path: Path) -> dict[str, Any]:
    """Read the sections `devices` and `links` of a problem or network file.

    Raises
    ------
    SpecError
        If the file is not valid; lists every issue.
    """
    try:
        document = read_document(path)
    except DocumentError as error:
        raise SpecError(error.issues) from None
    checked = validate(document, NetworkFile)
    if checked.issues or checked.model is None:
        raise SpecError(in_file_order(checked.issues))
    return {key: document.data[key] for key in ("devices", "links") if document.data.get(key) is not None}
