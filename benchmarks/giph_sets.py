"""Problem sets of GiPH's evaluation, shared by the benchmarks of search policies.

Parameters: Y. Hu et al., MLSys 2023, arXiv:2305.14562, appendix B.2, and the released configuration
(github.com/uidmice/placement-rl, parameters/multiple_networks.txt and single_network.txt): 20 devices, speed 5,
bandwidth 100, delay 10, five hardware features, of which a device has each with probability 0.2 and each task
requires one, compute 100, data 100, alpha 0.1, 0.2, 0.3, connection 0.1, 0.2, v = 10, 15. As in
multiple_networks.txt, speeds and bandwidths vary by 80 %, compute and data by 40 %.

The meaning of v differs. In the paper, it is the number of tasks M. The released generator draws sqrt(v) / alpha
levels on average (within 20 %) and, for each level, a width up to 2 alpha sqrt(v), rounded up. With v = 10 and alpha =
0.1, this results in 32 levels of one task each. Therefore graphs of "10 to 15 tasks" have 12 to 50 tasks. The sets:

released    tasks and levels as in the released generator
named       10 and 15 tasks, as in the configuration
larger      40 and 60 tasks
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

import placeopt as po
from placeopt.generate.random_graphs import random_document
from placeopt.model.problem import Problem

DEVICES = 20
NETWORK = {
    "speed": 5.0,
    "speed_heterogeneity": 0.8,
    "bandwidth": 100.0,
    "bandwidth_heterogeneity": 0.8,
    "delay": 10.0,
    "support": 0.2,
}
GRAPH = {
    "compute": 100.0,
    "compute_heterogeneity": 0.4,
    "data": 100.0,
    "data_heterogeneity": 0.4,
    "requirement": 1.0,
}
HARDWARE = 5
TASKS = {"released": (10, 15), "named": (10, 15), "larger": (40, 60)}
SHAPES = tuple(product((0.1, 0.2, 0.3), (0.1, 0.2)))
"""alpha and connection."""

FIRST_SEED = 1000
"""First seed of the sets. The temperatures of the annealing policy were chosen on smaller seeds."""


def graph_size(v: int, alpha: float, seed: int) -> tuple[int, float]:
    """Number of tasks of a graph of the released generator, and the alpha that results in its number of levels."""
    rng = np.random.default_rng(seed)
    levels = math.ceil(math.sqrt(v) / alpha * rng.uniform(0.8, 1.2))
    tasks = int(np.ceil(rng.uniform(0, 2 * alpha * math.sqrt(v), levels)).sum()) + 2
    return tasks, math.sqrt(tasks) / (levels + 2)


def case(kind: str, index: int, networks: int) -> Problem:
    """Problem `index` of the set `kind`: graphs of all shapes in turn, on one of `networks` networks."""
    shapes = [(v, *shape) for v, shape in product(TASKS[kind], SHAPES)]
    tasks, alpha, connection = shapes[index % len(shapes)]
    seed = FIRST_SEED + index
    if kind == "released":
        tasks, alpha = graph_size(tasks, alpha, seed)
    network = FIRST_SEED + (index // len(shapes)) % networks
    document = random_document(
        tasks,
        DEVICES,
        alpha=alpha,
        connection=connection,
        hardware=HARDWARE,
        seed=seed,
        network_seed=network,
        **GRAPH,
        **NETWORK,
    )
    return po.compile(document)


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis and the half width of its 95 % confidence interval."""
    return values.mean(axis=0), 1.96 * values.std(axis=0, ddof=1) / math.sqrt(len(values))
