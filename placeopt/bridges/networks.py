"""The devices for an imported model: from a file, from names of the catalogue, or a default."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from placeopt.errors import Issue, SpecError, UsageError, in_file_order, listing
from placeopt.io.catalogue import UsualLinks, catalogue_devices, device_names, hint, link_info
from placeopt.io.compiler import begin_compilation, document_of
from placeopt.io.document import Document
from placeopt.io.files import StrPath, descriptor
from placeopt.io.spec import MOST_DEVICES, DeviceSpec, LinkSpec, NetworkFile
from placeopt.io.validation import validate
from placeopt.model.units import Quantity, is_whole, shown

DEFAULT_DEVICES = "xeon-core:2"
"""The devices of an imported model without stated ones."""

DEFAULT_NOTE = "without --devices, the problem has two CPU cores of the catalogue (xeon-core); state --devices"

NETWORK_LINK = "ethernet-10g"
"""The link between devices of the catalogue that have no usual link to each other."""

CORE_LINK = "shared-memory"
"""The link between processor cores of a host."""

_ENTRY = re.compile(r"([^:]+?)\s*(?::\s*(\d{1,9})\s*)?")
_ENDINGS = (".yaml", ".yml", ".json")


def network_of(given: Mapping[str, Any] | StrPath | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the sections `devices` and `links` of a document for an imported model, and notes about them.

    Parameters
    ----------
    given
        A mapping with `devices` and perhaps `links`; the path of a network file or of a problem file, whose other
        sections are ignored; devices of the catalogue with their numbers, such as `a100-40gb:2,xeon-core:8`; None for
        the default network. The notes state the default network, and the links between devices of the catalogue.

    Raises
    ------
    UsageError
        If a mapping has other keys, or a text is neither a file nor devices of the catalogue.
    SpecError
        If the file is not valid; lists every issue.
    """
    if given is None:
        network, notes = _of_catalogue(DEFAULT_DEVICES)
        return network, (DEFAULT_NOTE, *notes)
    if isinstance(given, Mapping):
        if "devices" not in given or set(given) - {"devices", "links"}:
            raise UsageError(f"the network has the keys {listing(list(map(str, given)))}; expected devices and links")
        return dict(given), ()
    if isinstance(given, str) and not names_file(given):
        return _of_catalogue(given)
    return _read(given), ()


def device_count(network: Mapping[str, Any]) -> int:
    """Return the number of devices in the section `devices`, which need not be valid; at least 1."""
    devices = network.get("devices")
    entries = devices.values() if isinstance(devices, Mapping) else ()
    counts = [entry.get("count", 1) if isinstance(entry, Mapping) else 1 for entry in entries]
    return min(max(sum(count for count in counts if is_whole(count)), 1), MOST_DEVICES)


def names_file(text: str) -> bool:
    """Whether a text is a file that exists, or has the form of a path."""
    return (
        (os.path.exists(text) and not os.path.isdir(text))
        or descriptor(text) is not None
        or text.lower().endswith(_ENDINGS)
        or any(separator in text for separator in (os.sep, os.altsep) if separator)
    )


def _of_catalogue(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the network of devices of the catalogue, and a note about its links."""
    counts: dict[str, int] = {}
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            raise UsageError(
                f"the devices {shown(text)} are neither a file nor devices of the catalogue; expected a file, or "
                f"devices such as h100-sxm:4 or a100-40gb:2,xeon-core:8"
            )
        name, count = match[1], 1 if match[2] is None else int(match[2])
        if name not in catalogue_devices():
            raise UsageError(
                f"no file and no device of the catalogue has the name {shown(name)}{hint(name, device_names())}"
            )
        if not 1 <= count <= MOST_DEVICES:
            raise UsageError(f"{name}:{count} is not a number of devices; expected 1 to {MOST_DEVICES:,}")
        if name in counts:
            raise UsageError(f"the device {name} is given twice; state the sum")
        counts[name] = count
    devices = {name: {"like": name} | ({"count": count} if count > 1 else {}) for name, count in counts.items()}
    pairs = [(name, name) for name, count in counts.items() if count > 1] + list(combinations(counts, 2))
    links = {pair: _link(*pair) for pair in pairs}
    if not links:
        return {"devices": devices}, ()
    kinds = list(dict.fromkeys(links.values()))
    if len(kinds) == 1:
        section: dict[str, Any] = {"default": {"like": kinds[0]}}
    else:
        section = {"overrides": [{"between": list(pair), "like": link} for pair, link in links.items()]}
    joined = {kind: [_pair_text(*pair) for pair, link in links.items() if link == kind] for kind in kinds}
    note = "; ".join(f"{kind} {listing(found)}" for kind, found in joined.items())
    return {"devices": devices, "links": section}, (f"the links are assumed: {note}",)


def _link(one: str, other: str) -> str:
    """The link between two devices of the catalogue.

    Devices of the same kind have their peer link, or else their host link. Other devices are connected through their
    host: by the slower one of their host links, or by the host link of a device to a processor core, which is a part of
    the host.
    """
    usual = [catalogue_devices()[name].link or UsualLinks() for name in (one, other)]
    if one == other:
        return usual[0].peer or usual[0].host or NETWORK_LINK
    hosts = [links.host for links in usual if links.peer != CORE_LINK]
    known = [host for host in hosts if host is not None]
    if not hosts or len(known) < len(hosts):
        return NETWORK_LINK
    return min(known, key=lambda name: link_info(name).bandwidth)


def _pair_text(one: str, other: str) -> str:
    return f"among {one}" if one == other else f"between {one} and {other}"


def _read(path: StrPath) -> dict[str, Any]:
    document = document_of(path)
    data = document.data
    problem = (
        isinstance(data, dict)
        and any(key in data for key in ("tasks", "graph", "serving"))
        and "placeopt_plan" not in data
    )
    if problem and "devices" not in data:
        message = "devices is missing: this looks like a graph file or a profile, expected a file with devices"
        raise SpecError([document.issue(message, ())])
    if problem:
        document.data = {key: data[key] for key in ("placeopt", "devices", "links") if key in data}
        document.faults = tuple(fault for fault in document.faults if fault.path and fault.path[0] in document.data)
    checked = validate(document, NetworkFile)
    issues = list(checked.issues)
    if problem and checked.model is not None:
        units = data.get("units")
        issues += _bare_amounts(
            document, checked.model, ("memory",) if isinstance(units, dict) and "memory" in units else ()
        )
    if issues or checked.model is None:
        raise SpecError(in_file_order(issues))
    # Names that are unknown to the catalogue or among the devices are found by the compiler, with their lines.
    whole = {"placeopt": 1, "devices": data["devices"], "tasks": {"any": {"time": "1 s"}}}
    whole |= {"links": data["links"]} if data.get("links") is not None else {}
    begin_compilation(replace(document, data=whole)).problem()
    return {key: document.data[key] for key in ("devices", "links") if document.data.get(key) is not None}


def _bare_amounts(document: Document, network: NetworkFile, also: tuple[str, ...]) -> list[Issue]:
    """Report times and rates without a unit in a problem file: they count the ticks or the units of that problem."""
    parts: list[tuple[tuple[str | int, ...], DeviceSpec | LinkSpec]] = [
        (("devices", key), device) for key, device in network.devices.items()
    ]
    if network.links is not None:
        parts.append((("links", "default"), network.links.default))
        parts += [(("links", "overrides", place), link) for place, link in enumerate(network.links.overrides)]
    found: dict[object, Issue] = {}
    for path, part in parts:
        for key in ("speed", "memory_bandwidth", "overhead", "bandwidth", "latency", *also):
            stated = getattr(part, key, None)
            for amount in stated.values() if isinstance(stated, dict) else [stated]:
                value = amount.value if isinstance(amount, Quantity) and amount.bare else amount
                if value and not isinstance(value, Quantity):
                    number = f"{float(value):.10g}"
                    message = f"{number} has no unit and depends on the units of this problem; state a unit"
                    issue = document.issue(message, (*path, key))
                    found[issue.path] = issue
    return list(found.values())
