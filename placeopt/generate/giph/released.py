"""Generate the task graphs and device networks of GiPH's released code, bit for bit.

The recipe is that of https://github.com/uidmice/placement-rl (env/utils.py, MIT licence) for the experiments of Y. Hu
et al.: GiPH, MLSys 2023, arXiv:2305.14562, appendix B.2. The same seed and parameters give the same numbers: both
NumPy's legacy generator and Python's `random` are seeded. The code differs from the appendix:

- A heterogeneity ε is halved: amounts are uniform in [mean (1 - ε / 2), mean (1 + ε / 2)].
- The inverse bandwidth is drawn, uniform around 1 / bandwidth. The mean bandwidth is therefore larger than stated.
- `v` is not the number of tasks. A graph has about sqrt(v) / α levels (within 20 %, rounded up) between its entry and
  its exit, and each level has up to 2 α sqrt(v) tasks, rounded up. With v = 10 and α = 0.1, this results in 26 to 38
  levels of one task each.
- Each task requires one hardware type. Each device supports each type with the same probability, and at least one.
  A type that no device supports is given to int(devices * support) devices. With more than eight types, the released
  code assigns such types in another order.

The paper states no units. In documents, a unit of time is a second, a unit of work a GFLOP and a unit of data a GB, so
that rounding changes a time by less than 1e-7 s. The tick is 1 ns, the default.

`random_graphs` contains another generator, which follows the appendix with an exact number of tasks.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from placeopt.errors import UsageError, alternatives
from placeopt.generate.arguments import device_count, keywords, number, whole
from placeopt.generate.networks import Document, combine

SOURCE = "Generated as by the released code of GiPH (Hu et al. 2023, MLSys), github.com/uidmice/placement-rl."

GIGA = 10**9
"""FLOP and bytes per unit of GiPH's compute and data."""

_LARGEST_SEED = 2**32 - 1

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TaskGraph:
    """A task graph in the units of the paper."""

    work: Floats
    """(n,) compute requirement C of each task; tasks are in topological order."""
    hardware: tuple[int, ...]
    """(n,) the hardware type that each task requires."""
    edges: tuple[tuple[int, int], ...]
    """(producer, consumer) of each edge, sorted by producer; the edges of a producer are in the order of the released
    code."""
    data: Floats
    """(len(edges),) amount of data B of each edge."""

    def document(self) -> Document:
        """Return the section `tasks`: t0, t1, ... with features hw0, hw1, ... as requirements."""
        flops = np.rint(self.work * GIGA).astype(np.int64).tolist()
        tasks: list[Document] = [{"flops": amount} for amount in flops]
        payload = np.rint(self.data * GIGA).astype(np.int64).tolist()
        for (producer, consumer), amount in sorted(zip(self.edges, payload, strict=True)):
            tasks[consumer].setdefault("after", {})[f"t{producer}"] = amount
        for task, kind in zip(tasks, self.hardware, strict=True):
            task["requires"] = [f"hw{kind}"]
        return {"tasks": {f"t{index}": task for index, task in enumerate(tasks)}}


@dataclass(frozen=True, slots=True, eq=False)
class DeviceNetwork:
    """A fully connected device network in the units of the paper."""

    delay: Floats
    inverse_bandwidth: Floats
    """(m, m) symmetric, with zeros on the diagonal: data B takes delay + B * inverse_bandwidth."""
    speed: Floats
    """(m,) SP of each device: work C takes C / SP."""
    hardware: tuple[tuple[int, ...], ...]
    """For each device, the hardware types that it supports, in the order of the released code."""

    def document(self, *, idle: bool = False) -> Document:
        """Return the sections `devices` and `links`: d0, d1, ... with features hw0, hw1, ...

        A device without hardware types can run nothing and is left out, unless `idle` is true.
        """
        devices: Document = {
            f"d{index}": {
                "type": "device",
                "speed": f"{_decimal(speed)} GFLOP/s",
                "features": [f"hw{kind}" for kind in sorted(kinds)],
            }
            for index, (speed, kinds) in enumerate(zip(self.speed.tolist(), self.hardware, strict=True))
            if kinds or idle
        }
        delay, inverse = self.delay.tolist(), self.inverse_bandwidth.tolist()
        overrides = [
            {
                "between": [f"d{a}", f"d{b}"],
                "bandwidth": f"{_decimal(1 / inverse[a][b])} GB/s",
                "latency": f"{delay[a][b]:.9f} s",
            }
            for a, b in combinations(range(len(self.speed)), 2)
            if idle or (self.hardware[a] and self.hardware[b])
        ]
        return {"devices": devices} | ({"links": {"overrides": overrides}} if overrides else {})


def released_graph(
    seed: int = 0,
    *,
    v: int = 10,
    alpha: float = 0.2,
    connection: float = 0.1,
    types: int = 5,
    compute: float = 100.0,
    data: float = 100.0,
    compute_heterogeneity: float = 0.4,
    data_heterogeneity: float = 0.4,
) -> TaskGraph:
    """Generate a task graph of the released code; the defaults are values of its `multiple_networks.txt`.

    Every task of an earlier level is a producer with the same probability. A random path through all levels is added,
    and random edges for tasks without a producer or a consumer. Every graph has one entry and one exit.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    v
        Size: a graph has about sqrt(v) / α levels of up to 2 α sqrt(v) tasks.
    alpha
        Shape α of the graph: a larger one is wider and shorter.
    connection
        Probability of an edge between two tasks.
    types
        Number of hardware types.
    compute, data
        Mean work of a task in GFLOP, and mean payload of an edge in GB.
    compute_heterogeneity, data_heterogeneity
        Heterogeneity ε of the work and of the data, below 2.

    Raises
    ------
    UsageError
        If a value is not valid.
    """
    root = math.sqrt(whole("v", v, 1))
    levels, width = root / number("alpha", alpha, above=True), 2 * (alpha * root)
    work_range = _halved("compute", compute, compute_heterogeneity)
    data_range = _halved("data", data, data_heterogeneity)
    drawn, picked = RandomState(_seed("seed", seed)), random.Random(seed)
    probability, kinds = number("connection", connection, most=1), whole("types", types, 1)

    height = math.ceil(drawn.uniform(levels * 0.8, levels * 1.2))
    widths = [math.ceil(drawn.uniform(0, width)) for _ in range(height)]
    ends = np.cumsum([0, 1, *widths, 1]).tolist()
    layers = [range(first, end) for first, end in pairwise(ends)]
    n = ends[-1]
    # The order of the consumers of a task matters below, because edges draw their data in this order.
    consumers: list[dict[int, None]] = [{} for _ in range(n)]
    producers = [0] * n

    def connect(producer: int, consumer: int) -> None:
        if consumer not in consumers[producer]:
            consumers[producer][consumer] = None
            producers[consumer] += 1

    for layer in layers[1:-1]:
        for task in layer:
            for producer in np.flatnonzero(drawn.random_sample(layer.start) < probability).tolist():
                connect(producer, task)
    for producer, consumer in pairwise([picked.choice(layer) for layer in layers]):
        connect(producer, consumer)
    for layer in layers[1:-1]:
        for task in layer:
            if not consumers[task]:
                connect(task, picked.choice(range(layer.stop, n)))
            if not producers[task]:
                connect(picked.choice(range(layer.start)), task)

    drawn.seed(seed)
    work, hardware = [], []
    for _ in range(n):
        work.append(drawn.uniform(*work_range))
        hardware.append(int(drawn.randint(kinds)))
    edges = tuple((task, consumer) for task in range(n) for consumer in consumers[task])
    return TaskGraph(np.array(work), tuple(hardware), edges, drawn.uniform(*data_range, len(edges)))


def released_network(
    seed: int | RandomState = 0,
    *,
    devices: int = 20,
    types: int = 5,
    support: float = 0.2,
    speed: float = 5.0,
    bandwidth: float = 100.0,
    delay: float = 10.0,
    speed_heterogeneity: float = 0.8,
    bandwidth_heterogeneity: float = 0.8,
) -> DeviceNetwork:
    """Generate a device network of the released code; the defaults are the values of its `multiple_networks.txt`.

    Parameters
    ----------
    seed
        Seed of the random numbers, or a random generator, which can be used further.
    devices
        Number of devices m.
    types
        Number of hardware types.
    support
        Probability that a device supports a hardware type.
    speed
        Mean speed of a device in GFLOP/s.
    bandwidth
        Inverse of the mean inverse bandwidth of a link, in GB/s.
    delay
        Mean delay of a link in seconds: a delay is uniform in [0, 2 delay].
    speed_heterogeneity, bandwidth_heterogeneity
        Heterogeneity ε of the speeds and of the inverse bandwidths, below 2.

    Raises
    ------
    UsageError
        If a value is not valid, or no device supports some type because devices * support is less than 1.
    """
    drawn = seed if isinstance(seed, RandomState) else RandomState(_seed("seed", seed))
    m, kinds = device_count(devices), whole("types", types, 1)
    speed_range = _halved("speed", number("speed", speed, above=True), speed_heterogeneity)
    inverse = 1 / number("bandwidth", bandwidth, above=True)
    inverse_range = _halved("bandwidth", inverse, bandwidth_heterogeneity)
    probability, most_delay = number("support", support, most=1), 2 * number("delay", delay)

    latency = _symmetric(drawn.uniform(0, most_delay, (m, m)))
    inverse_bandwidth = _symmetric(drawn.uniform(*inverse_range, (m, m)))
    speeds = drawn.uniform(*speed_range, m)
    hardware = [drawn_types(drawn, kinds, probability) for _ in range(m)]
    for kind in range(kinds):
        if not any(kind in supported for supported in hardware):
            chosen = drawn.choice(m, int(m * probability), replace=False).tolist()
            if not chosen:
                raise UsageError(
                    f"support: {support:g} leaves hardware type {kind} without a device, because {m} devices times "
                    "the probability is less than 1; expected a larger probability, more devices or fewer types"
                )
            for device in chosen:
                hardware[device].append(kind)
    return DeviceNetwork(latency, inverse_bandwidth, speeds, tuple(map(tuple, hardware)))


def drawn_types(drawn: RandomState, kinds: int, probability: float) -> list[int]:
    """Draw the hardware types of a device, at least one."""
    found = np.flatnonzero(drawn.random_sample(kinds) < probability).tolist()
    return found or [int(drawn.randint(kinds))]


def released_document(seed: int = 0, *, network_seed: int | None = None, **options: Any) -> Document:
    """Generate a problem of the released code: a task graph on a device network.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    network_seed
        Seed of the device network; by default `seed`.
    options
        The other options of `released_graph` and `released_network`; `types` is shared.

    Raises
    ------
    UsageError
        If an option is unknown or a value is not valid.
    """
    for_graph, for_network = keywords(released_graph), keywords(released_network)
    for option in options:
        if option not in for_graph + for_network:
            known = list(dict.fromkeys((*for_graph, *for_network, "seed", "network_seed")))
            raise UsageError(f"giph has no option {option}{alternatives(option, known, len(known))}")
    apart = seed if network_seed is None else network_seed
    graph = released_graph(seed, **{key: value for key, value in options.items() if key in for_graph})
    network = released_network(
        _seed("network_seed", apart), **{key: value for key, value in options.items() if key in for_network}
    )
    return problem_document(f"giph-{seed}-{apart}", graph.document(), network.document())


def problem_document(name: str, graph: Document, network: Document) -> Document:
    """Combine the documents of a task graph and a device network into a problem."""
    counts = f"{len(graph['tasks'])} tasks on {len(network['devices'])} devices."
    return combine(graph, network, name=name, description=f"A random graph of {counts}", source=SOURCE)


def _symmetric(values: Floats) -> Floats:
    """Return the lower triangle on both sides of a diagonal of zeros."""
    lower = np.tril(values, -1)
    return lower + lower.T


def _halved(name: str, mean: float, heterogeneity: float) -> tuple[float, float]:
    """Return [mean (1 - ε / 2), mean (1 + ε / 2)]."""
    middle, spread = number(name, mean), number(f"{name}_heterogeneity", heterogeneity, most=2)
    if spread == 2:
        raise UsageError(f"{name}_heterogeneity: 2 is not valid; expected less than 2, so that no amount is 0")
    return middle * (1 - spread / 2), middle * (1 + spread / 2)


def _seed(name: str, seed: object) -> int:
    found = whole(name, seed, 0)
    if found > _LARGEST_SEED:
        raise UsageError(f"{name}: {found} is too large; expected at most {_LARGEST_SEED}")
    return found


def _decimal(value: float) -> str:
    """Return a positive number as a decimal with ten significant digits."""
    return f"{value:.{max(9 - math.floor(math.log10(value)), 0)}f}"
