"""Shared links in plain Python: which of them a transfer takes; and random ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.model.problem import Problem
from placeopt.model.shared_links import SharedLink, SharedLinks, build_shared_links


def lanes(problem: Problem, a: int, b: int) -> list[int]:
    """Numbers of the links that a transfer from device a to device b takes, negative for one that comes in."""
    links, found = problem.shared_links, []
    for k in range(0 if links is None else len(links.names)):
        assert links is not None
        sends, receives = bool(links.member[k, a]), bool(links.member[k, b])
        same = problem.members is not None and problem.members[a][0] == problem.members[b][0]
        if (sends and receives and not same) if links.medium[k] else sends != receives:
            found.append(k + 1 if sends or links.half[k] else -k - 1)
    return found


def linked(seed: int, m: int, rest: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `build_problem`, where the contention `links` stands for random shared links without ports."""
    if rest.get("contention") != "links":
        return rest
    return rest | {"contention": "none", "shared_links": random_links(np.random.default_rng([seed, m]), m, least=2)}


def random_links(rng: np.random.Generator, m: int, least: int = 0) -> SharedLinks | None:
    """Up to three links of all kinds, or none; none for a single device."""
    found: dict[str, SharedLink] = {}
    for k in range(int(rng.integers(least, 4)) if m > 1 else 0):
        medium, count = bool(rng.random() < 0.4), int(rng.integers(1, m))
        group = rng.permutation(m)[: count + medium].tolist()
        found[f"l{k}"] = SharedLink(group, medium, bool(rng.random() < 0.5))
    return build_shared_links(m, found)
