"""Add the figures of the catalogue to devices and links that are `like` one of its entries."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeVar

from placeopt.errors import SHOWN
from placeopt.io.catalogue import (
    COMPUTE_EFFICIENCY,
    MEMORY_EFFICIENCY,
    CatalogueDevice,
    CatalogueLink,
    catalogue_devices,
    catalogue_links,
    device_names,
    hint,
    link_names,
)
from placeopt.io.compiler.issues import Issues
from placeopt.io.spec import DeviceSpec, EfficiencySpec, LinkSpec, LinksSpec
from placeopt.io.syntax import Path
from placeopt.model.units import shown

AnyLink = TypeVar("AnyLink", bound=LinkSpec)

_DEVICE_FIGURES = ("speed", "memory", "memory_bandwidth", "power")
_LINK_FIGURES = ("bandwidth", "latency")


def completed_devices(devices: Mapping[str, DeviceSpec], issues: Issues) -> dict[str, DeviceSpec]:
    """Return the devices with the figures of the catalogue that they do not state, and with both efficiencies.

    The efficiency of a rate is the stated one; otherwise 1 if the device states the rate itself, and the default of the
    catalogue if the rate comes from there.
    """
    return {key: _completed_device(device, ("devices", key), issues) for key, device in devices.items()}


def _completed_device(device: DeviceSpec, path: Path, issues: Issues) -> DeviceSpec:
    taken: dict[str, Any] = {}
    if device.like is not None:
        found = catalogue_devices().get(device.like)
        if found is None:
            _unknown("device", device.like, device_names(), path, issues)
        else:
            taken = _missing(device, found, _DEVICE_FIGURES)
    stated, one = device.efficiency or EfficiencySpec(), Fraction(1)
    compute = COMPUTE_EFFICIENCY if "speed" in taken else one
    memory = MEMORY_EFFICIENCY if "memory_bandwidth" in taken else one
    taken["efficiency"] = EfficiencySpec(compute=stated.compute or compute, memory=stated.memory or memory)
    return device.model_copy(update=taken)


def completed_links(links: LinksSpec, issues: Issues) -> LinksSpec:
    """Return the links with the figures of the catalogue that they do not state."""
    overrides = [
        _completed_link(override, ("links", "overrides", place), issues)
        for place, override in enumerate(links.overrides)
    ]
    default = _completed_link(links.default, ("links", "default"), issues)
    return links.model_copy(update={"default": default, "overrides": overrides})


def _completed_link(link: AnyLink, path: Path, issues: Issues) -> AnyLink:
    if link.like is None:
        return link
    found = catalogue_links().get(link.like)
    if found is None:
        _unknown("link", link.like, link_names(), path, issues)
        return link
    return link.model_copy(update=_missing(link, found, _LINK_FIGURES))


def _unknown(kind: str, name: str, known: list[str], path: Path, issues: Issues) -> None:
    near = hint(name, known) if len(issues) < SHOWN else ""
    issues.add(f"unknown {kind} of the catalogue {shown(name)}{near}", (*path, "like"))


def _missing(
    stated: DeviceSpec | LinkSpec, found: CatalogueDevice | CatalogueLink, keys: tuple[str, ...]
) -> dict[str, Any]:
    """Return the figures of an entry of the catalogue that are not stated."""
    return {key: figure for key in keys if getattr(stated, key) is None and (figure := getattr(found, key)) is not None}
