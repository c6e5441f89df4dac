"""Labels of equals, numbered in order of first appearance: colocation groups and classes of interchangeable devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placeopt.model.arrays import Int


def by_first_appearance(labels: NDArray[np.integer]) -> Int:
    """Labels 0.. renumbered in order of first appearance."""
    if len(labels) == 0:
        return np.empty(0, dtype=np.int64)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def device_classes(columns: Sequence[tuple[object, ...]], links: Int) -> Int:
    """(m,) classes of interchangeable devices.

    Two devices are interchangeable when swapping them changes nothing: equal columns, equal links
    to and from every third device, and equal links to each other. That relation is transitive, so
    comparing with one member of each class is enough.
    """
    classes = np.empty(len(columns), dtype=np.int64)
    # Interchangeable devices have the same links as multisets too: few devices are left to compare with one another.
    mixed = (links * (2 * np.arange(links.shape[-1]) + 3) ** 13).sum(axis=-1)
    np.fill_diagonal(mixed, 0)
    sent, received = np.sort(mixed, axis=1), np.sort(mixed, axis=0)
    leaders: dict[object, list[int]] = {}
    count = 0
    for d, column in enumerate(columns):
        alike = leaders.setdefault((column, sent[d].tobytes(), received[:, d].tobytes()), [])
        leader = next((leader for leader in alike if _swappable(links, d, leader)), None)
        if leader is None:
            classes[d] = count
            count += 1
            alike.append(d)
        else:
            classes[d] = classes[leader]
    return classes


def _swappable(links: Int, a: int, b: int) -> bool:
    others = np.arange(len(links))
    others = others[(others != a) & (others != b)]
    return (
        np.array_equal(links[a, others], links[b, others])
        and np.array_equal(links[others, a], links[others, b])
        and np.array_equal(links[a, b], links[b, a])
    )
