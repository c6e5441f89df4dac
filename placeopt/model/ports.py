"""Ports: what carries one transfer at a time, and which of them a transfer occupies.

With m devices, ports 0..m-1 are the senders' and ports m..2m-1 the receivers'; under `half_duplex` a device has one
port, d. Without port contention, transfers do not occupy them. Port 2m + c is channel c of the shared links.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem

Ways = list[tuple[Bool, Bool]]
"""Pairs of senders (m,) and receivers (m,)."""

FIELDS = ("contention", "shared_links")
"""The fields of a problem that decide which ports there are."""

PORTLESS: dict[str, Any] = {"contention": "none", "shared_links": None}
"""Their values without ports."""


def channels(problem: Problem) -> list[tuple[str, Ways]]:
    """The channels of shared links: names, and the pairs between which all transfers occupy them."""
    links = problem.shared_links
    return [] if links is None else list(zip(links.channels, links.ways(), strict=True))


def n_ports(problem: Problem) -> int:
    """Number of ports, those that no transfer occupies included."""
    links = problem.shared_links
    return 2 * problem.n_devices + (0 if links is None else len(links.channels))


def ports_of(problem: Problem, a: int, b: int) -> list[int]:
    """The ports that a transfer from device a to another device b occupies."""
    m, links = problem.n_devices, problem.shared_links
    found = [] if problem.contention == "none" else [a, b if problem.contention == "half_duplex" else m + b]
    return found if links is None else found + [2 * m + channel for channel in links.of(a, b)]


def port_uses(problem: Problem, sender: Int, receiver: Int) -> tuple[Int, Int]:
    """The ports of transfers between two devices each, (t,) senders and receivers: (u,) transfers, (u,) their ports."""
    m, each = problem.n_devices, np.arange(len(sender))
    uses = [(each[:0], each[:0])]
    if problem.contention != "none":
        uses += [(each, sender), (each, receiver if problem.contention == "half_duplex" else m + receiver)]
    for c, (_, ways) in enumerate(channels(problem)):
        on = np.flatnonzero(np.any([a[sender] & b[receiver] for a, b in ways], axis=0))
        uses.append((on, np.full(len(on), 2 * m + c)))
    transfers, ports = (np.concatenate(column).astype(np.int64) for column in zip(*uses, strict=True))
    return transfers, ports
