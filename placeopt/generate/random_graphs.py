"""Generate random problems: the task graphs and device networks of GiPH.

All random numbers come from NumPy's seeded PCG64: the same arguments give the same document. Structure, work, data,
constraints and memory have separate streams, so that, for example, a heterogeneity does not change the graph's shape.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator

from placeopt.errors import UsageError, alternatives
from placeopt.generate.arguments import Purpose, around, device_count, keywords, number, streams, uniform, whole
from placeopt.generate.networks import Document, combine
from placeopt.model.arrays import Int

KILO = 1000
"""FLOP and bytes per unit of GiPH's compute and data: a document's amounts are whole numbers."""


def random_document(
    tasks: int = 20,
    devices: int = 8,
    *,
    hardware: int = 0,
    tightness: float | None = None,
    seed: int = 0,
    network_seed: int | None = None,
    **options: Any,
) -> Document:
    """Generate a random task graph on a random device network: GiPH (Hu et al. 2023, MLSys), appendix B.2.

    Execution and transfer times are the paper's equations 2 and 3, w = C / SP and c = DL + B / BW, in seconds. A tick
    is 1 ms, so that rounding up adds at most a thousandth of the paper's unit of time.

    Parameters
    ----------
    tasks, devices
        Number of tasks, and of devices.
    hardware
        Number of hardware features that tasks may require. Each is supported by at least one device.
    tightness
        Memory of all tasks over the capacity of all devices, in (0, 1]; None: no limit. The devices' equal capacity is
        raised if needed, so that a feasible placement exists.
    seed
        Seed of the random numbers.
    network_seed
        Seed of the device network; by default `seed`.
    options
        The other options of `random_tasks` and `random_network`.

    Raises
    ------
    UsageError
        If an option is unknown or a value is not valid.
    """
    for_graph, for_network = (keywords(each, "seed", "hardware") for each in (random_tasks, random_network))
    for option in options:
        if option not in for_graph + for_network:
            known = list(dict.fromkeys(["tasks", "devices", *for_graph, *for_network, "tightness", "network_seed"]))
            raise UsageError(f"random has no option {option}{alternatives(option, known, len(known))}")
    graph_options = {key: value for key, value in options.items() if key in for_graph}
    network_options = {key: value for key, value in options.items() if key in for_network}
    graph = random_tasks(tasks, hardware=hardware, seed=seed, **graph_options)
    apart = seed if network_seed is None else network_seed
    network = random_network(devices, hardware=hardware, seed=apart, **network_options)
    if tightness is not None:
        capacity = _capacity(graph["tasks"], network["devices"], number("tightness", tightness, most=1, above=True))
        for device in network["devices"].values():
            device["memory"] = capacity
    return combine(
        graph,
        network,
        name=f"random-{tasks}-{devices}-{seed}" + ("" if network_seed is None else f"-{network_seed}"),
        description=f"{tasks} random tasks on {devices} random devices.",
        source="Generated as in GiPH (Hu et al. 2023, MLSys), appendix B.2.",
        resolution="1 ms",
    )


def random_tasks(
    tasks: int = 20,
    *,
    alpha: float = 1.0,
    connection: float = 0.2,
    reach: int | None = None,
    compute: float = 100.0,
    compute_heterogeneity: float = 0.5,
    data: float = 100.0,
    data_heterogeneity: float = 0.5,
    hardware: int = 0,
    requirement: float = 0.5,
    memory: float = 0.0,
    memory_heterogeneity: float = 0.5,
    seed: int = 0,
) -> Document:
    """Generate the section `tasks` of a random single-entry, single-exit graph: GiPH, appendix B.2.

    Tasks t0, t1, ... are in topological order, level by level. Departures from the paper and choices:

    - Depth is the number of tasks on the longest path. It is uniform within half its mean on either side, or less if
      an entry, an exit and M tasks do not allow that range; an impossible mean is replaced by the nearest possible one.
      A wider range would change the mean width, because depth times width is M.
    - Widths are drawn uniformly and scaled to M tasks in total.
    - An edge may skip levels, which Topcuoglu et al. 2002 leave open too; `reach` limits that.
    - A task without a parent in the previous level gets a random one, which keeps the depth. Then a task without a
      child gets a random one in the next level.
    - A task requires at most one hardware feature.
    - Memory is an addition.

    Draws O(M²) random numbers, O(M reach alpha sqrt(M)) with a `reach`.

    Parameters
    ----------
    tasks
        Number of tasks M.
    alpha
        Shape α of the graph: a larger one is wider and shorter.
    connection
        Probability p_c of an edge between two tasks.
    reach
        Largest number of levels that an edge may lead down; None: no limit.
    compute, compute_heterogeneity
        Mean work C̄ of a task in kFLOP and ε_C: work is uniform in [C̄ (1 - ε_C), C̄ (1 + ε_C)].
    data, data_heterogeneity
        Mean payload B̄ of an edge in kB and ε_B, likewise.
    hardware
        Number of hardware features hw0, hw1, ...
    requirement
        Probability that a task requires a hardware feature.
    memory, memory_heterogeneity
        Mean resident memory of a task in kB and its heterogeneity, likewise; 0: none.
    seed
        Seed of the random numbers.

    Raises
    ------
    UsageError
        If a value is not valid.
    """
    n = whole("tasks", tasks, 1)
    kinds = whole("hardware", hardware, 0)
    ranges = (
        around("compute", compute, compute_heterogeneity),
        around("data", data, data_heterogeneity),
        around("memory", memory, memory_heterogeneity),
    )
    number("requirement", requirement, most=1)
    shape, work, amounts, needs, sizes = streams(Purpose.TASKS, seed, 5)
    source, target = _level_edges(
        shape,
        _level_sizes(shape, n, number("alpha", alpha, above=True)),
        number("connection", connection, most=1),
        n if reach is None else whole("reach", reach, 1),
    )
    flops = _whole_amounts(work, ranges[0], n).tolist()
    payload = _whole_amounts(amounts, ranges[1], len(source)).tolist()
    resident = _whole_amounts(sizes, ranges[2], n).tolist()
    requires = needs.random(n) < requirement
    kind = needs.integers(max(kinds, 1), size=n)

    documents: list[Document] = [{"flops": amount} for amount in flops]
    for u, v, size in zip(source.tolist(), target.tolist(), payload, strict=True):
        documents[v].setdefault("after", {})[f"t{u}"] = size
    for task in range(n):
        if memory:
            documents[task]["memory"] = resident[task]
        if kinds and requires[task]:
            documents[task]["requires"] = [f"hw{kind[task]}"]
    return {"tasks": {f"t{task}": document for task, document in enumerate(documents)}}


def random_network(
    devices: int = 8,
    *,
    speed: float = 10.0,
    speed_heterogeneity: float = 0.5,
    bandwidth: float = 10.0,
    bandwidth_heterogeneity: float = 0.5,
    delay: float = 1.0,
    symmetric: bool = True,
    hardware: int = 0,
    support: float = 0.5,
    seed: int = 0,
) -> Document:
    """Generate the sections `devices` and `links` of a random, fully connected network: GiPH, appendix B.2.

    Departures from the paper: a hardware feature without a device is given to a random one, so that every task has a
    device. Speeds and bandwidths have six digits and are at least a thousandth of their mean (with ε = 1 they could be
    zero).

    Parameters
    ----------
    devices
        Number of devices m.
    speed, speed_heterogeneity
        Mean speed SP̄ of a device in kFLOP/s and ε_SP: a speed is uniform in [SP̄ (1 - ε_SP), SP̄ (1 + ε_SP)].
    bandwidth, bandwidth_heterogeneity
        Mean bandwidth BW̄ of a link in kB/s and ε_BW, likewise.
    delay
        Mean delay DL̄ of a link in seconds: a delay is uniform in [0, 2 DL̄].
    symmetric
        Whether a link is equal in both directions (the paper: "between device k and l"); else each direction has its
        own bandwidth and delay.
    hardware
        Number of hardware features hw0, hw1, ...
    support
        Probability that a device supports a hardware feature.
    seed
        Seed of the random numbers.

    Raises
    ------
    UsageError
        If a value is not valid.
    """
    m = device_count(devices)
    kinds = whole("hardware", hardware, 0)
    speed_range = around("speed", number("speed", speed, above=True), speed_heterogeneity)
    band_range = around("bandwidth", number("bandwidth", bandwidth, above=True), bandwidth_heterogeneity)
    number("support", support, most=1)
    number("delay", delay)
    rates, bands, delays, supports = streams(Purpose.NETWORK, seed, 4)

    supported = supports.random((m, kinds)) < support
    rescuers = supports.integers(m, size=kinds)
    for kind in np.flatnonzero(~supported.any(axis=0)).tolist():
        supported[rescuers[kind], kind] = True
    sections: Document = {"devices": {}}
    for d, value in enumerate(uniform(rates, speed_range, m).tolist()):
        sections["devices"][f"d{d}"] = {"type": "device", "speed": f"{_digits(value, speed)} kFLOP/s"}
        if supported[d].any():
            sections["devices"][f"d{d}"]["features"] = [f"hw{kind}" for kind in np.flatnonzero(supported[d])]

    band, latency = uniform(bands, band_range, (m, m)), delays.uniform(0, 2 * delay, (m, m))
    overrides = []
    for a in range(m):
        for b in range(a + 1, m) if symmetric else [b for b in range(m) if b != a]:
            ends = {"between": [f"d{a}", f"d{b}"]} if symmetric else {"from": f"d{a}", "to": f"d{b}"}
            link = {"bandwidth": f"{_digits(band[a, b], bandwidth)} kB/s", "latency": f"{latency[a, b]:.6f} s"}
            overrides.append(ends | link)
    return sections | ({"links": {"overrides": overrides}} if overrides else {})


def _level_sizes(rng: Generator, n: int, alpha: float) -> Int:
    """Return the tasks per level: one in the first, one in the last, n in total."""
    if n <= 2:
        return np.ones(n, dtype=np.int64)
    mean = min(max(math.sqrt(n) / alpha, 3.0), float(n))
    depth = mean + min(mean / 2, mean - 3, n - mean) * rng.uniform(-1, 1)
    # Randomised rounding preserves the mean.
    levels = min(math.floor(depth + rng.random()), n)
    inner = levels - 2
    weights = np.cumsum(1 - rng.random(inner))
    extra = np.rint(weights / weights[-1] * (n - levels)).astype(np.int64)
    return np.concatenate(([1], 1 + np.diff(extra, prepend=0), [1]))


def _level_edges(rng: Generator, sizes: Int, probability: float, reach: int) -> tuple[Int, Int]:
    """Return (source, target) of all edges, sorted by target, then by source."""
    start = np.concatenate(([0], np.cumsum(sizes)))
    sources, targets = [], []
    for level in range(1, len(sizes)):
        first = start[max(level - reach, 0)]
        joined = rng.random((sizes[level], start[level] - first)) < probability
        parent = rng.integers(start[level - 1], start[level], size=sizes[level]) - first
        orphans = np.flatnonzero(~joined[:, start[level - 1] - first :].any(axis=1))
        joined[orphans, parent[orphans]] = True
        rows, columns = np.nonzero(joined)
        sources.append(first + columns)
        targets.append(start[level] + rows)
    none = [np.empty(0, dtype=np.int64)]
    source, target = np.concatenate(none + sources), np.concatenate(none + targets)
    level_of = np.repeat(np.arange(len(sizes)), sizes)
    childless = np.setdiff1d(np.arange(start[-1] - 1), source)
    after = level_of[childless] + 1
    child = rng.integers(start[after], start[after + 1])
    source, target = np.concatenate((source, childless)), np.concatenate((target, child))
    order = np.lexsort((source, target))
    return source[order], target[order]


def _capacity(tasks: Document, devices: Document, tightness: float) -> int:
    """Return bytes per device: the total over `tightness`, or more if a feasible placement needs it.

    The placement is greedy: the largest task first, each on its least loaded feasible device.
    """
    load = dict.fromkeys(devices, 0)
    for task in sorted(tasks.values(), key=lambda task: -task.get("memory", 0)):
        needs = set(task.get("requires", ()))
        allowed = [name for name in devices if needs.issubset(devices[name].get("features", ()))]
        load[min(allowed, key=load.__getitem__)] += task.get("memory", 0)
    total = sum(load.values())
    if total == 0:
        raise UsageError("tightness: the tasks need no memory; expected a positive memory as well")
    return max(math.ceil(total / (len(devices) * tightness)), *load.values())


def _whole_amounts(rng: Generator, bounds: tuple[float, float], size: int) -> Int:
    amounts: Int = np.rint(uniform(rng, bounds, size) * KILO).astype(np.int64)
    return amounts


def _digits(value: float, mean: float) -> str:
    """Return the value as a decimal with six digits of its mean's magnitude, at least a thousandth of the mean."""
    places = max(5 - math.floor(math.log10(mean)), 0)
    return f"{max(value, mean / 1000):.{places}f}"
