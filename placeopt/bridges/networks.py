"""The devices for an imported model: from a file, or a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placeopt.errors import DocumentError, SpecError, UsageError, in_file_order, listing
from placeopt.io.document import read_document
from placeopt.io.files import StrPath
from placeopt.io.spec import NetworkFile
from placeopt.io.validation import validate

DEFAULT_NETWORK: Mapping[str, Any] = {
    "devices": {"cpu": {"count": 2, "memory": "8 GiB", "speed": "50 GFLOP/s", "memory_bandwidth": "10 GB/s"}},
    "links": {"default": {"bandwidth": "5 GB/s", "latency": "10 us"}},
}
"""Two CPU cores that share memory."""

DEFAULT_NOTE = "without --devices, the problem has two CPU cores of 50 GFLOP/s; edit `devices`, or state --devices"


def network_of(given: Mapping[str, Any] | StrPath | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the sections `devices` and `links` of a document for an imported model, and notes about them.

    Parameters
    ----------
    given
        A mapping with `devices` and perhaps `links`; the path of a network file; None for the default network, which a
        note states.

    Raises
    ------
    UsageError
        If a mapping has other keys.
    SpecError
        If the file is not valid; lists every issue.
    """
    if given is None:
        return dict(DEFAULT_NETWORK), (DEFAULT_NOTE,)
    if isinstance(given, Mapping):
        if "devices" not in given or set(given) - {"devices", "links"}:
            raise UsageError(f"the network has the keys {listing(list(map(str, given)))}; expected devices and links")
        return dict(given), ()
    return _read(given), ()


def _read(path: StrPath) -> dict[str, Any]:
    try:
        document = read_document(path)
    except DocumentError as error:
        raise SpecError(error.issues) from None
    checked = validate(document, NetworkFile)
    if checked.issues or checked.model is None:
        raise SpecError(in_file_order(checked.issues))
    return {key: document.data[key] for key in ("devices", "links") if document.data.get(key) is not None}
