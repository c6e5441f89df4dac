"""Small random serving problems: kinds of nodes, layers that are alike or not, fast and slow links."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np

from placeopt.serving.problem import TOKEN, UNLIMITED, Prompts, Serving, Steps, build_serving
from placeopt.serving.rates import Hardware, LayerCosts, Requests, interval_steps, prompt_times, with_phases


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


def random_requests(seed: int, *, most_nodes: int = 3, most_layers: int = 4, links: bool = True) -> Serving:
    """Nodes that share requests in flight: each holds a few, and steps take some seconds."""
    rng = random.Random(seed)
    layers, v, t = rng.randint(1, most_layers), rng.randint(1, most_nodes), rng.randint(1, 2)
    cost = [LayerCosts(rng.randint(1, 20), rng.randint(1, 4), rng.randint(1, 10)) for _ in range(2)]
    costs = [cost[0]] * layers if rng.random() < 0.5 else [rng.choice(cost) for _ in range(layers)]
    requests = Requests(rng.randint(2, 5), rng.choice([0, 1]), rng.choice([None, None, 2]))
    tables = []
    for _ in range(t):
        bandwidth = Fraction(rng.randint(5, 50)) if rng.random() < 0.9 else None
        overhead = rng.choice([Fraction(0), Fraction(1, rng.randint(1, 20))])
        hardware = Hardware(rng.randint(20, 90), Fraction(rng.randint(2, 50)), bandwidth, overhead)
        tables.append(interval_steps(costs, hardware, requests))
    table = np.stack(tables)
    limited = links and rng.random() < 0.3
    link = np.array([[int(rng.uniform(0.1, 3) * TOKEN) if limited else UNLIMITED for _ in range(v)] for _ in range(v)])
    delays = np.array([[rng.choice([0, 10**11, 10**12]) for _ in range(v)] for _ in range(v)])
    ends = np.array([rng.choice([0, 10**11]) for _ in range(v)])
    steps = Steps(
        *table[:, 1:].transpose(1, 0, 2, 3), delays, ends, ends,
        token_time=int(rng.uniform(1, 20) * 10**12) if rng.random() < 0.3 else None,
        requests=rng.randint(1, 8) if rng.random() < 0.3 else None, batch=requests.batch,
    )  # fmt: skip
    return build_serving(
        layers=layers, node_names=[f"n{k}" for k in range(v)], kind=[rng.randrange(t) for _ in range(v)],
        rate=table[:, 0], link=link, steps=steps, partial=rng.random() < 0.7, name=f"requests-{seed}",
    )  # fmt: skip


def random_prefill(seed: int, *, most_nodes: int = 4, most_layers: int = 3) -> Serving:
    """Separate prefill: prompts and answers have a few tokens, and in half of the problems, links are slow for them."""
    rng = random.Random(seed)
    layers, v, t = rng.randint(1, most_layers), rng.randint(2, most_nodes), rng.randint(1, 2)
    cost = [LayerCosts(rng.randint(1, 20), rng.randint(1, 4), rng.randint(1, 10)) for _ in range(2)]
    costs = [cost[0]] * layers if rng.random() < 0.5 else [rng.choice(cost) for _ in range(layers)]
    requests = Requests(rng.randint(3, 6), rng.choice([1, 2]), rng.choice([None, None, 2]), separate=True)
    answer, tables = requests.context - requests.prompt, []
    for _ in range(t):
        bandwidth = Fraction(rng.randint(5, 50)) if rng.random() < 0.9 else None
        overhead = rng.choice([Fraction(0), Fraction(1, rng.randint(1, 20))])
        hardware = Hardware(rng.randint(20, 120), Fraction(rng.randint(2, 50)), bandwidth, overhead)
        steps = interval_steps(costs, hardware, requests)
        tables.append(with_phases(np.concatenate([steps, prompt_times(costs, hardware, requests)[None]]), answer))
    table = np.stack(tables)
    slow, narrow = rng.random() < 0.3, rng.random() < 0.5
    link = np.array([[int(rng.uniform(0.1, 3) * TOKEN) if slow else UNLIMITED for _ in range(v)] for _ in range(v)])
    transfer = np.array([[rng.randint(1, 12) if narrow else UNLIMITED for _ in range(v)] for _ in range(v)])
    delays = np.array([[rng.choice([0, 10**11, 10**12]) for _ in range(v)] for _ in range(v)])
    ends = np.array([rng.choice([0, 10**11]) for _ in range(v)])
    limited = rng.random() < 0.2
    steps = Steps(
        *table[:, 1:6].transpose(1, 0, 2, 3), delays, ends, ends,
        token_time=int(rng.uniform(1, 20) * 10**12) if rng.random() < 0.3 else None,
        requests=rng.randint(1, 8) if rng.random() < 0.3 else None, batch=requests.batch,
    )  # fmt: skip
    prompts = Prompts(
        requests.prompt, answer, table[:, 6, :layers],
        int(rng.uniform(1, 20) * 10**12) if rng.random() < 0.3 else None, separate=True,
        cache=requests.prompt * np.array([layer.cache for layer in costs]), transfer=transfer,
    )  # fmt: skip
    return build_serving(
        layers=2 * layers, node_names=[f"n{k}" for k in range(v)], kind=[rng.randrange(t) for _ in range(v)],
        rate=table[:, 0], link=link, entry=[rng.randint(1, 30) * TOKEN for _ in range(v)] if limited else None,
        steps=steps, prompts=prompts, partial=rng.random() < 0.7, name=f"prefill-{seed}",
    )  # fmt: skip
