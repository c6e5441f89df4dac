"""Catalogue of devices and links: figures from data sheets, each with its source.

Each YAML file in this folder holds devices or links and their sources; see docs/devices.md. The files are read on first
use and checked by the types of the spec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from placeopt.errors import InternalError, UsageError, meaning, near_misses
from placeopt.io.document import parse_document
from placeopt.io.scalars import Bandwidth, Memory, Name, Power, Speed, Time, Whole
from placeopt.io.spec import NumberFormat
from placeopt.io.validation import validate
from placeopt.model.units import Amount, Quantity, exact, shown

COMPUTE_EFFICIENCY = Fraction(1, 2)
"""Fraction of a peak speed of the catalogue that tasks reach, unless a problem states another one."""

MEMORY_EFFICIENCY = Fraction(4, 5)
"""Fraction of a peak memory bandwidth of the catalogue that tasks reach, unless a problem states another one."""

FILES = ("datacentre", "desktop", "edge", "processors", "links")
"""Files of the catalogue, in the order in which devices are listed."""

MEANT = 6
"""Maximum number of names that the message about an unknown name suggests."""

LAPTOP = ("mobile", "notebook", "maxq")
"""Other words for `laptop` in names of devices."""

Figure = Literal["speed", "memory", "memory_bandwidth", "power", "bandwidth", "latency", "link"]

_FIGURES: tuple[Figure, ...] = get_args(Figure)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class UsualLinks(_Part):
    """The links that a device usually has, as links of the catalogue."""

    host: Name | None = None
    """The link to the processor of its host. A processor core has none, because it is a part of the host."""
    peer: Name | None = None
    """The link to a device of the same kind."""


class _Entry(_Part):
    title: Name
    year: Whole
    """Year of introduction."""
    note: str = ""
    source: Annotated[dict[Figure, Name], BeforeValidator(lambda value: _by_figure(value))]
    """Source of each figure, by key of `sources`; a single key is the source of all figures."""

    @model_validator(mode="after")
    def _complete(self) -> _Entry:
        missing = [key for key in _FIGURES if getattr(self, key, None) is not None and key not in self.source]
        if missing:
            raise ValueError(f"{', '.join(missing)}: no source")
        return self


class CatalogueDevice(_Entry):
    """A device with its peak figures."""

    speed: Annotated[dict[NumberFormat, Speed], Field(min_length=1)] | None = None
    memory: Memory | None = None
    memory_bandwidth: Bandwidth | None = None
    power: Power | None = None
    link: UsualLinks | None = None


class CatalogueLink(_Entry):
    """A link with its peak figures: of one device, in one direction."""

    bandwidth: Bandwidth
    latency: Time | None = None


class CatalogueFile(_Part):
    """A file of the catalogue: devices of one family, or links."""

    title: Name
    sources: dict[Name, Name]
    devices: dict[Name, CatalogueDevice] = Field(default_factory=dict)
    links: dict[Name, CatalogueLink] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _sourced(self) -> CatalogueFile:
        for name, entry in (*self.devices.items(), *self.links.items()):
            unknown = [key for key in entry.source.values() if key not in self.sources]
            if unknown:
                raise ValueError(f"{name}: unknown source {unknown[0]}")
        return self


def _by_figure(value: Any) -> Any:
    return value if isinstance(value, dict) else dict.fromkeys(_FIGURES, value)


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device of the catalogue: its peak figures with their sources. A figure that is not published is None."""

    name: str
    title: str
    family: str
    """Group of devices, such as `Edge`."""
    year: int
    """Year of introduction."""
    speed: Mapping[str, int]
    """FLOP/s by number format, without sparsity."""
    memory: int | None
    """Bytes."""
    memory_bandwidth: int | None
    """Bytes per second."""
    power: float | None
    """Watts."""
    host_link: str | None
    """The usual link to the host."""
    peer_link: str | None
    """The usual link to a device of the same kind."""
    note: str
    sources: Mapping[str, str]
    """The source of each figure."""

    def __repr__(self) -> str:
        return f"<DeviceInfo {self.name}: {self.title}>"

    def to_dict(self) -> dict[str, Any]:
        """The device as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """A link of the catalogue: its peak figures with their sources."""

    name: str
    title: str
    year: int
    """Year of introduction."""
    bandwidth: int
    """Bytes per second that one device can send."""
    latency: float | None
    """Seconds."""
    note: str
    sources: Mapping[str, str]
    """The source of each figure."""

    def to_dict(self) -> dict[str, Any]:
        """The link as plain data."""
        return asdict(self)


@cache
def _files() -> tuple[CatalogueFile, ...]:
    files = []
    for name in FILES:
        path = Path(__file__).with_name(f"{name}.yaml")
        document = parse_document(path.read_text(encoding="utf-8"), file=path.name)
        checked = validate(document, CatalogueFile)
        if checked.issues or checked.model is None:
            raise InternalError(f"the catalogue is not valid: {'; '.join(map(str, checked.issues))}")
        files.append(checked.model)
    return tuple(files)


@cache
def catalogue_devices() -> Mapping[str, CatalogueDevice]:
    """All devices of the catalogue by name, in the order of the files."""
    return {name: device for file in _files() for name, device in file.devices.items()}


@cache
def catalogue_links() -> Mapping[str, CatalogueLink]:
    """All links of the catalogue by name, in the order of the files."""
    return {name: link for file in _files() for name, link in file.links.items()}


def device_names() -> list[str]:
    """Names of all devices of the catalogue, by family and in the order of the table of `placeopt devices`."""
    return list(catalogue_devices())


def link_names() -> list[str]:
    """Names of all links of the catalogue."""
    return list(catalogue_links())


def device_info(name: str) -> DeviceInfo:
    """The figures of a device of the catalogue, with their sources.

    Raises
    ------
    UsageError
        If the catalogue has no such device.
    """
    device = catalogue_devices().get(name)
    if device is None:
        raise UsageError(f"unknown device of the catalogue {shown(name)}{hint(name, device_names())}")
    usual = device.link or UsualLinks()
    file = next(file for file in _files() if name in file.devices)
    return DeviceInfo(
        name=name,
        title=device.title,
        family=file.title,
        year=device.year,
        speed={key: _whole(amount) for key, amount in (device.speed or {}).items()},
        memory=None if device.memory is None else _whole(device.memory),
        memory_bandwidth=None if device.memory_bandwidth is None else _whole(device.memory_bandwidth),
        power=None if device.power is None else float(_value(device.power)),
        host_link=usual.host,
        peer_link=usual.peer,
        note=device.note,
        sources=_stated_sources(device, file),
    )


def link_info(name: str) -> LinkInfo:
    """The figures of a link of the catalogue, with their sources.

    Raises
    ------
    UsageError
        If the catalogue has no such link.
    """
    link = catalogue_links().get(name)
    if link is None:
        raise UsageError(f"unknown link of the catalogue {shown(name)}{hint(name, link_names())}")
    file = next(file for file in _files() if name in file.links)
    return LinkInfo(
        name=name,
        title=link.title,
        year=link.year,
        bandwidth=_whole(link.bandwidth),
        latency=None if link.latency is None else float(_value(link.latency)),
        note=link.note,
        sources=_stated_sources(link, file),
    )


def hint(name: str, known: Sequence[str]) -> str:
    """A clause for a message with the names that an unknown name probably means, and the command that lists all.

    These are the names that it begins, such as a100-40gb and a100-80gb for a100; else those that contain it, or whose
    titles do, such as rtx-4060-laptop and ryzen-7-core for laptop, or rtx-4070-laptop for rtx-4070-mobile; else the
    closest one.
    """
    entries: Mapping[str, _Entry] = {**catalogue_devices(), **catalogue_links()}
    name = str(name)
    wanted, folded = plain(name), name.casefold()
    for word in LAPTOP:
        wanted = wanted.replace(word, "laptop")
    titles = {other: plain(entries[other].title) if other in entries else "" for other in known}
    longer = [other for other in known if other.startswith(f"{folded}-")]
    holding = [other for other in known if wanted and (wanted in plain(other) or wanted in titles[other])]
    near = longer or holding or near_misses(name, known)
    return f"{meaning(near[:MEANT]) or ';'} `placeopt devices` lists all"


def plain(name: str) -> str:
    """The letters and digits of a name: rtx4070 for RTX 4070."""
    return "".join(filter(str.isalnum, name.casefold()))


def _stated_sources(entry: _Entry, file: CatalogueFile) -> dict[str, str]:
    return {key: file.sources[entry.source[key]] for key in _FIGURES if getattr(entry, key, None) is not None}


def _value(amount: Amount) -> Fraction:
    return amount.value if isinstance(amount, Quantity) else exact(amount)


def _whole(amount: Amount) -> int:
    return int(_value(amount))
