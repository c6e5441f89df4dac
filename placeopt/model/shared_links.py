"""Shared links: what several pairs of devices transfer over, such as a switch, a PCIe root or a radio.

An uplink carries all transfers between a device of its group and a device outside; a medium carries all transfers
between two devices of its group, but not between modes of one device. A link carries one transfer at a time: an uplink
one in each direction, unless it is half duplex. Each of these is a channel. A transfer occupies all its channels from
its start to its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placeopt.errors import UsageError, listing, visible
from placeopt.model.arrays import Bool, Int, freeze, whole_numbers
from placeopt.model.members import Members
from placeopt.model.rules import Timeless


class SharedLink(NamedTuple):
    """One shared link: the devices of its group, whether it is a medium, and whether it is half duplex."""

    devices: Sequence[int]
    medium: bool = False
    half: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SharedLinks(Timeless):
    """k shared links of m devices, with c channels.

    Attributes
    ----------
    names
        The links.
    medium
        (k,), whether the link carries the transfers within its group; otherwise, those between it and other devices.
    half
        (k,), whether the link carries one transfer in all. A medium does.
    member
        (k, m), whether the device is in the group of the link.
    channels
        The channels, by link: its name, or `NAME out` and `NAME in` for the directions of an uplink.
    label
        (m,) number of the set of links whose groups contain the device, 0..s-1.
    home
        (m,) the device of the document that stands for each one: itself, or the first member of a mode or a team.
    row, channel
        Transfers from devices of label a to devices of label b occupy channel[row[a s + b]..row[a s + b + 1]].
    """

    names: tuple[str, ...]
    medium: Bool
    half: Bool
    member: Bool
    channels: tuple[str, ...]
    label: Int
    home: Int
    row: Int
    channel: Int

    def of(self, a: int, b: int) -> list[int]:
        """The channels that a transfer from device a to another device b occupies."""
        entry = int(self.label[a]) * (int(self.label.max()) + 1) + int(self.label[b])
        found: list[int] = self.channel[self.row[entry] : self.row[entry + 1]].tolist()
        return found

    def ways(self) -> list[list[tuple[Bool, Bool]]]:
        """For each channel, pairs of senders (m,) and receivers (m,) between which all transfers occupy it."""
        return _ways(self.medium, self.half, self.member, self.home)

    def hashed(self, field: str) -> dict[str, Any]:
        """What the fingerprint of a problem contains of them; homes follow from the rest of the problem."""
        return {name: value for name, value in Timeless.hashed(self, field).items() if name != f"{field}_home"}

    def joined(self, members: Members | None) -> SharedLinks:
        """The same, if each device occupies `members`."""
        if members is None:
            return self
        home = np.array([team[0] for team in members], dtype=np.int64)
        return _made(self.names, self.medium, self.half, self.member, home)

    def links(self) -> dict[str, SharedLink]:
        """The links by name."""
        rows = zip(self.member, self.medium.tolist(), self.half.tolist(), strict=True)
        links = [SharedLink(np.flatnonzero(of).tolist(), medium, half) for of, medium, half in rows]
        return dict(zip(self.names, links, strict=True))

    def texts(self, device_names: Sequence[str]) -> list[str]:
        """What the links are, for people: `root0: uplink of gpu0, gpu1`."""
        found = []
        for name, link in self.links().items():
            kind = "between" if link.medium else "half-duplex uplink of" if link.half else "uplink of"
            found.append(f"{visible(name)}: {kind} {listing([device_names[d] for d in link.devices], 6)}")
        return found

    def documents(self, device_names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The links in a document, by name."""
        found = {}
        for name, link in self.links().items():
            duplex = {"duplex": "half"} if link.half and not link.medium else {}
            found[name] = {"between" if link.medium else "uplink_of": [device_names[d] for d in link.devices], **duplex}
        return found

    def counts(self) -> dict[str, int]:
        """The number of devices."""
        return {"devices": self.member.shape[1]}

    def columns(self, d: int) -> tuple[Any, ...]:
        """The links of a device."""
        return (int(self.label[d]),)

    def part(self, tasks: Int, devices: Int) -> SharedLinks | None:
        """The links of some devices, by their indices, without those that none of them uses; None if none is left."""
        member = self.member[:, devices]
        inside = member.sum(axis=1)
        kept = np.where(self.medium, inside > 1, (inside > 0) & (inside < len(devices)))
        names = tuple(name for name, keep in zip(self.names, kept.tolist(), strict=True) if keep)
        home = np.arange(len(devices))
        return _made(names, self.medium[kept], self.half[kept], member[kept], home) if names else None


def build_shared_links(m: int, links: Mapping[str, SharedLink]) -> SharedLinks | None:
    """Build the shared links of m devices; the arrays are read-only. None if there are none.

    Raises
    ------
    UsageError
        If a device is not an index, or no two devices transfer over a link.
    """
    member = np.zeros((len(links), m), dtype=np.bool_)
    for row, (name, link) in zip(member, links.items(), strict=True):
        row[whole_numbers(f"shared_links[{visible(name)}]", link.devices, None, "devices", most=m - 1)] = True
        if row.sum() < (2 if link.medium else 1) or (not link.medium and row.all()):
            expected = "at least two devices" if link.medium else "some of the devices, and not all"
            raise UsageError(f"shared_links[{visible(name)}]: it joins {int(row.sum())} of {m}; expected {expected}")
    medium = np.array([link.medium for link in links.values()], dtype=np.bool_)
    half = medium | np.array([link.half for link in links.values()], dtype=np.bool_)
    return _made(tuple(links), medium, half, member, np.arange(m)) if links else None


def _ways(medium: Bool, half: Bool, member: Bool, home: Int) -> list[list[tuple[Bool, Bool]]]:
    found: list[list[tuple[Bool, Bool]]] = []
    several = _of_several(home)
    for between, one, inside in zip(medium.tolist(), half.tolist(), member, strict=True):
        out, into = (inside, ~inside), (~inside, inside)
        found += [[(inside & ~several, inside)]] if between else [[out, into]] if one else [[out], [into]]
        for h in np.unique(home[inside & several]).tolist() if between else ():
            found[-1].append((inside & (home == h), inside & (home != h)))
    return found


def _of_several(home: Int) -> Bool:
    """(m,), whether another device has the same home."""
    return np.asarray(np.bincount(home)[home] > 1)


def _made(names: tuple[str, ...], medium: Bool, half: Bool, member: Bool, home: Int) -> SharedLinks:
    alike = np.where(_of_several(home) & member[medium].any(axis=0), home, -1)
    _, first, label = np.unique(np.vstack((member, alike)), axis=1, return_index=True, return_inverse=True)
    ways = _ways(medium, half, member, home)
    # The pairs of labels between whose devices each channel carries transfers: one channel at a time, to save memory.
    pairs = [np.flatnonzero(np.any([np.outer(a[first], b[first]) for a, b in each], axis=0)) for each in ways]
    entry, channel = np.concatenate(pairs), np.repeat(np.arange(len(ways)), list(map(len, pairs)))
    order = np.argsort(entry, kind="stable")
    channel, row = channel[order], np.searchsorted(entry[order], np.arange(len(first) ** 2 + 1))
    channels = [f"{name} {way}".rstrip() for name, one in zip(names, half, strict=True) for way in _directions(one)]
    arrays = [np.ascontiguousarray(each, dtype=np.int64) for each in (label.reshape(-1), home, row, channel)]
    freeze(*arrays, medium, half, member)
    return SharedLinks(names, medium, half, member, tuple(channels), *arrays)


def _directions(half: bool) -> tuple[str, ...]:
    return ("",) if half else ("out", "in")
