"""Generate random layered graphs, as a document or directly as a problem.

All random numbers come from NumPy's seeded PCG64: the same arguments give the same problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator

from placeopt.errors import UsageError
from placeopt.generate.arguments import (
    Purpose,
    around,
    called,
    device_count,
    number,
    streams,
    uniform,
    whole,
    whole_range,
)
from placeopt.generate.networks import Document
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem, ratio_ceil

LARGEST = 10_000_000
"""Tasks of the largest graph: about 10 GB as a problem."""


def layered_document(tasks: int = 1000, devices: int = 8, **options: Any) -> Document:
    """Return the spec of a layered problem; see `layered` for the options and the structure."""
    return called(layered, "layered", {"tasks": tasks, "devices": devices, **options}).document()


def layered_problem(tasks: int = 1000, devices: int = 8, **options: Any) -> Problem:
    """Return the problem that `layered_document` compiles to, built without the document for speed."""
    return called(layered, "layered", {"tasks": tasks, "devices": devices, **options}).problem()


def layered(
    tasks: int = 1000,
    devices: int = 8,
    *,
    layers: int | None = None,
    width: int | None = None,
    in_degree: int | tuple[int, int] = (1, 3),
    reach: int = 1,
    duration: tuple[int, int] = (100, 1000),
    payload: tuple[int, int] = (10_000, 100_000),
    ccr: float | None = None,
    speed_heterogeneity: float = 0.5,
    device_types: int | None = None,
    bandwidth: int = 1000,
    latency: int = 10,
    memory: tuple[int, int] = (1 << 20, 16 << 20),
    tightness: float | None = None,
    seed: int = 0,
) -> Layered:
    """Generate a random layered problem: tasks t0, t1, ... layer by layer, with edges from earlier layers.

    Every task below the first layer has a producer in the layer just above, so that the longest path has as many tasks
    as there are layers. Ranges are uniform and include both ends. One tick is 1 us.

    O(n k²) vectorised steps for n tasks of in-degree k.

    Parameters
    ----------
    tasks
        Number of tasks, at most 10,000,000.
    devices
        Number of devices.
    layers, width
        Number of layers of equal size, or tasks per layer; at most one of them. By default sqrt(n) layers.
    in_degree
        Number of producers, or its range; fewer if the layers above have fewer tasks.
    reach
        Number of layers above from which producers are drawn.
    duration
        Range in us, on a device of mean speed (1 GFLOP/s).
    payload
        Range in bytes of each edge.
    ccr
        Communication-to-computation ratio: payloads are scaled so that the mean transfer, latency included, takes this
        many mean durations; None: not scaled.
    speed_heterogeneity, device_types
        Speeds are uniform in [1 - ε, 1 + ε] GFLOP/s, one per device type. Each type is an equal block of devices; by
        default every device has a type of its own.
    bandwidth, latency
        Of every link, in MB/s and us.
    memory, tightness
        Range in bytes of the tasks' resident memory, and their total over the capacity of all devices, in (0, 1]; None:
        no memory. Capacity is raised if needed, so that placing each task on the least loaded device fits.
    seed
        Seed of the random numbers.

    Raises
    ------
    UsageError
        If a value is not valid.
    """
    n, m = whole("tasks", tasks, 1), device_count(devices)
    if n > LARGEST:
        raise UsageError(f"tasks: {n} is out of range; expected at most {LARGEST}")
    types = m if device_types is None else whole("device_types", device_types, 1)
    if types > m:
        raise UsageError(f"device_types: {types} is more than the {m} devices; expected at most that")
    degrees = whole_range("in_degree", (in_degree, in_degree) if isinstance(in_degree, int) else in_degree, 1)
    low, high = whole_range("duration", duration, 0)
    shape, work, data, speeds, sizes = streams(Purpose.LAYERED, seed, 5)

    mean_speed = 1000  # MFLOP/s, that is FLOP per tick
    drawn = uniform(speeds, around("speed", mean_speed, speed_heterogeneity), types)
    kind = np.arange(m) * types // m
    speed = np.maximum(np.rint(drawn), 1).astype(np.int64)[kind]
    flops = work.integers(low, high, size=n, endpoint=True) * mean_speed
    in_start, source = layer_edges(
        shape,
        _layer_sizes(n, layers, width),
        lambda count: shape.integers(degrees[0], degrees[1], size=count, endpoint=True),
        whole("reach", reach, 1),
    )
    smallest, largest = whole_range("payload", payload, 0)
    amounts = data.integers(smallest, largest, size=len(source), endpoint=True)
    rate, delay = whole("bandwidth", bandwidth, 1), whole("latency", latency, 0)
    if ccr is not None:
        mean_duration = int(ratio_ceil(flops[:, None], 1, speed).sum()) / (n * m)
        amounts = scaled_payloads(amounts, ccr, mean_duration, rate, delay)
    resident, capacity = None, None
    if tightness is not None:
        lightest, heaviest = whole_range("memory", memory, 1)
        resident = sizes.integers(lightest, heaviest, size=n, endpoint=True)
        total, share = int(resident.sum()), number("tightness", tightness, most=1, above=True)
        # A least loaded device holds at most total / m before the task that fills it.
        capacity = max(math.ceil(total / (m * share)), total // m + int(resident.max()))
    return Layered(n, m, seed, kind, flops, in_start, source, amounts, speed, rate, delay, resident, capacity)


@dataclass(frozen=True, slots=True, eq=False)
class Layered:
    """The arrays of a layered problem, for its document and its compiled form."""

    n: int
    m: int
    seed: int
    kind: Int
    """(m,) the type of each device."""
    flops: Int
    """(n,) FLOP."""
    in_start: Int
    source: Int
    payload: Int
    """Edges sorted by consumer, with payloads in bytes: task i has the producers source[in_start[i]:in_start[i + 1]],
    ascending."""
    speed: Int
    """(m,) FLOP per tick, that is MFLOP/s."""
    bandwidth: int
    latency: int
    """Ticks of every link; its bandwidth in bytes per tick, that is MB/s."""
    resident: Int | None = None
    capacity: int | None = None
    """Bytes of each device, and (n,) resident bytes of the tasks; None: no memory."""
    family: str = "layered"

    @property
    def name(self) -> str:
        """The problem's name."""
        return f"{self.family}-{self.n}-{self.m}-{self.seed}"

    @property
    def description(self) -> str:
        """The problem's description."""
        return f"{self.n} random tasks in layers, {len(self.source)} edges, {self.m} devices."

    def document(self) -> Document:
        """Return the spec."""
        names = [f"t{task}" for task in range(self.n)]
        producers = [names[task] for task in self.source.tolist()]
        payload, bounds = self.payload.tolist(), self.in_start.tolist()
        tasks: Document = {name: {"flops": work} for name, work in zip(names, self.flops.tolist(), strict=True)}
        for task, first, last in zip(tasks.values(), bounds, bounds[1:], strict=False):
            if first < last:
                task["after"] = dict(zip(producers[first:last], payload[first:last], strict=True))
        if self.resident is not None:
            for task, amount in zip(tasks.values(), self.resident.tolist(), strict=True):
                task["memory"] = amount
        memory = {} if self.capacity is None else {"memory": self.capacity}
        return {
            "placeopt": 1,
            "name": self.name,
            "description": self.description,
            "resolution": "1 us",
            "devices": {
                name: {"type": kind, "speed": f"{speed} MFLOP/s"} | memory
                for (name, kind), speed in zip(self._devices(), self.speed.tolist(), strict=True)
            },
            "links": {"default": {"bandwidth": f"{self.bandwidth} MB/s", "latency": f"{self.latency} us"}},
            "tasks": tasks,
        }

    def problem(self) -> Problem:
        """Return the compiled problem."""
        target = np.repeat(np.arange(self.n), np.diff(self.in_start))
        apart = 1 - np.eye(self.m, dtype=np.int64)
        return build_problem(
            name=self.name,
            description=self.description,
            resolution=Fraction(1, 10**6),
            task_names=[f"t{task}" for task in range(self.n)],
            device_names=[name for name, _ in self._devices()],
            device_types=[kind for _, kind in self._devices()],
            duration=ratio_ceil(self.flops[:, None], 1, self.speed),
            edges=np.stack((self.source, target), axis=1),
            payload=self.payload,
            resident=self.resident,
            capacity=None if self.capacity is None else np.full(self.m, self.capacity),
            latency=self.latency * apart,
            byte_ticks_num=apart,
            byte_ticks_den=np.where(apart, self.bandwidth, 1),
        )

    def _devices(self) -> list[tuple[str, str]]:
        return [(f"d{d}", f"type{kind}") for d, kind in enumerate(self.kind.tolist())]


def _layer_sizes(n: int, layers: int | None, width: int | None) -> Int:
    if layers is not None and width is not None:
        raise UsageError(f"layers, width: {layers} and {width} are both given; expected at most one of them")
    if width is not None:
        each = min(whole("width", width, 1), n)
        return np.array([each] * (n // each) + [n % each] * (n % each > 0), dtype=np.int64)
    count = round(math.sqrt(n)) if layers is None else whole("layers", layers, 1)
    if count > n:
        raise UsageError(f"layers: {count} is more than the {n} tasks; expected at most that")
    return np.diff(np.arange(count + 1) * n // count)


def layer_edges(rng: Generator, sizes: Int, degrees: Callable[[int], Int], reach: int) -> tuple[Int, Int]:
    """Return (in_start, source): producers of each task in CSR form, ascending.

    `degrees` draws the in-degrees of a number of tasks; they are cut to the tasks of the layers above.

    One producer is drawn from the layer just above, the others without repetition from the `reach` layers above by
    Floyd's method (Bentley and Floyd 1987, CACM, doi:10.1145/30401.315746), vectorised over all tasks.
    """
    start = np.concatenate(([0], np.cumsum(sizes)))
    layer = np.repeat(np.arange(len(sizes)), sizes)[sizes[0] :]
    pool_start = start[np.maximum(layer - reach, 0)]
    pool = start[layer] - pool_start
    degree = np.minimum(degrees(len(layer)), pool)
    # A uniform number in [0, 1) times a pool below 2**53 never rounds up to the pool.
    first = start[layer - 1] - pool_start + (rng.random(len(layer)) * sizes[layer - 1]).astype(np.int64)
    chosen: list[Int] = []
    for k in range(int(degree.max(initial=1)) - 1):
        bound = pool - degree + k
        pick = (rng.random(len(layer)) * (bound + 1)).astype(np.int64)
        for earlier in chosen:
            pick = np.where(earlier == pick, -1, pick)
        chosen.append(np.where(pick < 0, bound, pick))
    # The others were drawn from a pool without `first`, so skip its index.
    places = [first] + [np.where(k < degree - 1, pick + (pick >= first), pool) for k, pick in enumerate(chosen)]
    rows = np.sort(np.stack(places, axis=1), axis=1)
    in_start = np.concatenate((np.zeros(sizes[0] + 1, dtype=np.int64), np.cumsum(degree)))
    return in_start, (rows + pool_start[:, None])[rows < pool[:, None]]


def scaled_payloads(payload: Int, ccr: float, mean_duration: float, bandwidth: int, latency: int) -> Int:
    """Return payloads scaled so that a mean transfer takes `ccr` mean durations."""
    # A transfer cannot take less than the latency.
    target = number("ccr", ccr, least=latency / mean_duration if mean_duration else 0) * mean_duration
    if payload.sum() == 0:
        return payload
    factor = (target - latency) * bandwidth / (int(payload.sum()) / len(payload))
    scaled: Int = np.rint(payload * factor).astype(np.int64)
    return scaled
