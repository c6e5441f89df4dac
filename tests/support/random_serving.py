"""Small random serving problems: kinds of nodes, layers that are alike or not, fast and slow links."""

from __future__ import annotations

import random

import numpy as np

from placeopt.serving.problem import TOKEN, UNLIMITED, Serving, build_serving


def random_serving(seed: int, *, most_nodes: int = 5, most_layers: int = 6) -> Serving:
    """One to five nodes in one to three sites; in half of the problems, rates are such that few nodes suffice."""
    rng = random.Random(seed)
    layers, v, t = rng.randint(1, most_layers), rng.randint(1, most_nodes), rng.randint(1, 3)
    most = rng.randint(max(1, layers // 3), min(layers, 4))
    alike = rng.random() < 0.6
    rate = np.zeros((t, 1 if alike else layers, most), dtype=np.int64)
    for kind in range(t):
        for first in range(rate.shape[1]):
            top, power = rng.randint(5, 40), rng.choice([0.3, 1.0, 1.5])
            for k in range(most):
                if rng.random() < 0.9:
                    rate[kind, first, k] = int(top * TOKEN / (k + 1) ** power) + rng.randrange(TOKEN)
    sites = rng.choice([1, 2, 2, 3])
    site = [rng.randrange(sites) for _ in range(v)]
    slow, spread = rng.randint(1, 20), rng.choice([0.0, 0.2])
    link = np.array([
        [
            rng.choice([1_000, UNLIMITED // TOKEN]) * TOKEN
            if site[a] == site[b]
            else int(slow * TOKEN * rng.uniform(1 - spread, 1 + spread))
            for b in range(v)
        ]
        for a in range(v)
    ])  # fmt: skip
    limited = rng.random() < 0.15
    return build_serving(
        layers=layers, node_names=[f"n{k}" for k in range(v)], kind=[rng.randrange(t) for _ in range(v)], rate=rate,
        link=link, entry=[rng.randint(1, 30) * TOKEN for _ in range(v)] if limited else None,
        partial=rng.random() < 0.7, name=f"random-{seed}",
    )  # fmt: skip
