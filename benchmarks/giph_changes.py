"""Generate the changing networks of GiPH's adaptivity experiment.

Y. Hu et al.: GiPH, MLSys 2023, arXiv:2305.14562, section 5.1 and figure 6, and adaptivity.py of the released code
(https://github.com/uidmice/placement-rl, MIT licence).

`paper_changes` follows the paper: a network of 20 devices loses devices, which are later replaced by slower ones, and
has 16 to 20 devices.

`released_changes` is the released code, bit for bit, in its two versions. In both, a lost device keeps its links, and
the device that replaces it has other hardware types and another speed.

cycle    The last version: 5 cycles of -2, -4, +2 and +4 devices, hence 14 to 20. The speed of a new device is drawn
         from the range of the old ones, and is thus not lower on average. Heterogeneity is 0.2, support 0.3.
single   The first version: 10 times -1, then 10 times +1 device. The released code stores the time of a unit of work,
         1 / SP, but draws the speed, uniform in [4, 6], in its place. A new device therefore takes 4 to 6 s for a unit
         of work, and an old one about 0.2 s: new devices are 25 times slower. Heterogeneity is 0.8, support 0.2.

A device that is lost supports no hardware type, so that `DeviceNetwork.document` leaves it out. A device that replaces
another one has its name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.random import Generator, RandomState

from placeopt.errors import UsageError, alternatives
from placeopt.generate.arguments import Purpose, streams, whole
from placeopt.generate.giph.cases import Documents
from placeopt.generate.giph.released import DeviceNetwork, drawn_types, released_graph, released_network
from placeopt.generate.networks import Document

Version = Literal["cycle", "single"]

DEVICES, TYPES, SPEED = 20, 5, 5.0
SLOWER: dict[str, Any] = {"speed": 2.5, "bandwidth": 50.0, "delay": 20.0}
"""Means of the devices and links that `paper_changes` adds: half as fast as the first ones."""
CYCLE = (-2, -2, 2, 2)
"""Changes of the number of devices in `paper_changes`, repeated."""

_SETTINGS: dict[str, dict[str, Any]] = {
    "cycle": {"support": 0.3, "speed_heterogeneity": 0.2, "bandwidth_heterogeneity": 0.2},
    "single": {"support": 0.2, "speed_heterogeneity": 0.8, "bandwidth_heterogeneity": 0.8},
}
_COUNTS: dict[str, tuple[int, ...]] = {"cycle": (-2, -4, 2, 4) * 5, "single": (-1,) * 10 + (1,) * 10}


def adaptivity_graphs() -> Documents:
    """Return the ten graphs of the released experiment."""

    def graph(seed: int) -> Document:
        options: dict[str, Any] = {"compute_heterogeneity": 0.2, "data_heterogeneity": 0.2}
        return released_graph(seed, v=10, alpha=0.3, connection=0.1, **options).document()

    return Documents(graph, zip(range(10)))


def released_changes(version: Version = "cycle", seed: int = 1) -> list[DeviceNetwork]:
    """Return the first network and the network after each of 20 changes, as in the released code.

    Raises a UsageError if the version is unknown or the seed is not valid.
    """
    if version not in get_args(Version):
        raise UsageError(f'version: "{version}" is unknown{alternatives(str(version), get_args(Version))}')
    settings = _SETTINGS[version]
    drawn = RandomState(whole("seed", seed, 0))
    network = released_network(drawn, devices=DEVICES, types=TYPES, **settings)
    found = [network]
    # The released code draws from lists of sets; the order of small integers in a set is the same in every process.
    left, lost = set(range(DEVICES)), set[int]()
    for count in _COUNTS[version]:
        hardware, speed = list(network.hardware), network.speed.copy()
        if count < 0:
            chosen = _leavers(drawn, hardware, list(left), -count)
            lost.update(chosen)
            left.difference_update(chosen)
            for device in chosen:
                hardware[device] = ()
        else:
            chosen = _choice(drawn, list(lost), count)
            lost.difference_update(chosen)
            left.update(chosen)
            for device in chosen:
                if version == "cycle":
                    speed[device] = drawn.uniform(SPEED * (1 - 0.1), SPEED * (1 + 0.1))
                hardware[device] = tuple(drawn_types(drawn, TYPES, settings["support"]))
                if version == "single":
                    speed[device] = 1 / drawn.uniform(SPEED * 0.8, SPEED * 1.2)
        network = replace(network, hardware=tuple(hardware), speed=speed)
        found.append(network)
    return found


def paper_changes(seed: int = 0, changes: int = 20) -> tuple[list[DeviceNetwork], list[int]]:
    """Return the first network and the network after each change, and how many of its devices are new.

    New devices and their links are drawn with the means of SLOWER. Each hardware type is always supported.
    """
    (rng,) = streams(Purpose.ADAPTIVITY, seed, 1)
    network = released_network(seed)
    new = np.zeros(DEVICES, dtype=np.bool_)
    found, slower = [network], [0]
    for change in range(whole("changes", changes, 0)):
        count = CYCLE[change % len(CYCLE)]
        there = np.array([bool(kinds) for kinds in network.hardware])
        if count < 0:
            chosen = _leavers(rng, list(network.hardware), np.flatnonzero(there).tolist(), -count)
            hardware = tuple(() if d in chosen else kinds for d, kinds in enumerate(network.hardware))
            network = replace(network, hardware=hardware)
            new[chosen] = False
        else:
            chosen = _choice(rng, np.flatnonzero(~there).tolist(), count)
            network = _joined(network, released_network(seed + 10_000 * (change + 1), **SLOWER), chosen)
            new[chosen] = True
        found.append(network)
        slower.append(int(new.sum()))
    return found, slower


def _choice(drawn: RandomState | Generator, devices: list[int], count: int) -> list[int]:
    """Draw devices without repetition; one is drawn by another call in the released code."""
    if count == 1:
        return [int(drawn.choice(devices))]
    chosen: list[int] = drawn.choice(devices, count, replace=False).tolist()
    return chosen


def _leavers(drawn: RandomState | Generator, hardware: list[tuple[int, ...]], left: list[int], count: int) -> list[int]:
    """Draw devices until the others support all hardware types."""
    while True:
        chosen = _choice(drawn, left, count)
        if len({kind for device in left if device not in chosen for kind in hardware[device]}) == TYPES:
            return chosen


def _joined(network: DeviceNetwork, other: DeviceNetwork, devices: list[int]) -> DeviceNetwork:
    """Return the network with some devices and all their links from the other one."""
    taken = np.zeros(DEVICES, dtype=np.bool_)
    taken[devices] = True
    links = taken[:, None] | taken
    return DeviceNetwork(
        np.where(links, other.delay, network.delay),
        np.where(links, other.inverse_bandwidth, network.inverse_bandwidth),
        np.where(taken, other.speed, network.speed),
        tuple(other.hardware[d] if taken[d] else kinds for d, kinds in enumerate(network.hardware)),
    )
