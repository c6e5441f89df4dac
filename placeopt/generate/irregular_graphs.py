"""Generate irregular layered graphs: work and data over decades, layers of random width, on devices of four speeds.

All random numbers come from NumPy's seeded PCG64: the same arguments give the same problem.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from placeopt.errors import UsageError
from placeopt.generate.arguments import Purpose, called, device_count, number, streams, whole
from placeopt.generate.layered_graphs import LARGEST, Layered, layer_edges, scaled_payloads
from placeopt.generate.networks import Document
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, ratio_ceil

SPEEDS = (1000, 1250, 1500, 1750)
"""Speeds of the devices in turn, in MFLOP/s, that is FLOP per tick."""

SHORTEST = 10
"""Ticks of the shortest task on the slowest device."""


def irregular_document(tasks: int = 1000, devices: int = 8, **options: Any) -> Document:
    """Return the spec of an irregular problem; see `irregular` for the options and the structure."""
    return called(irregular, "irregular", {"tasks": tasks, "devices": devices, **options}).document()


def irregular_problem(tasks: int = 1000, devices: int = 8, **options: Any) -> Problem:
    """Return the problem that `irregular_document` compiles to, built without the document for speed."""
    return called(irregular, "irregular", {"tasks": tasks, "devices": devices, **options}).problem()


def irregular(
    tasks: int = 1000,
    devices: int = 8,
    *,
    width: float | None = None,
    in_degree: float = 1.8,
    reach: int = 3,
    decades: float = 3.0,
    ccr: float | None = 1.0,
    bandwidth: int = 1,
    latency: int = 10,
    seed: int = 0,
) -> Layered:
    """Generate an irregular layered problem: tasks t0, t1, ... layer by layer, with edges from earlier layers.

    Work and data are log-uniform: few tasks have most of the work, and few edges most of the data. Devices have the
    speeds 1, 1.25, 1.5, 1.75 GFLOP/s in turn. One tick is 1 us.

    O(n k²) vectorised steps for n tasks of largest in-degree k.

    Parameters
    ----------
    tasks
        Number of tasks, at most 10,000,000.
    devices
        Number of devices.
    width
        Mean tasks per layer; the width of each layer is uniform between half and three halves of it. By default
        sqrt(n) / 2.
    in_degree
        Mean number of producers: one in the layer just above, and a Poisson number of others; fewer if the layers above
        have fewer tasks.
    reach
        Number of layers above from which producers are drawn.
    decades
        Work and data are log-uniform over this many powers of ten. The shortest task takes 10 us on the slowest device.
    ccr
        Communication-to-computation ratio: payloads are scaled so that the mean transfer, latency included, takes this
        many mean durations; None: not scaled.
    bandwidth, latency
        Of every link, in MB/s and us.
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
    mean_width = math.sqrt(n) / 2 if width is None else number("width", width, least=1, most=n)
    extra = number("in_degree", in_degree, least=1, most=64) - 1
    spread = number("decades", decades, most=9)
    shape, work, data = streams(Purpose.IRREGULAR, seed, 3)
    kind = np.arange(m) % len(SPEEDS)
    speed = np.array(SPEEDS)[kind]
    flops = np.rint(_log_uniform(work, spread, n) * SHORTEST * SPEEDS[0]).astype(np.int64)
    in_start, source = layer_edges(
        shape, _widths(shape, n, mean_width), lambda count: 1 + shape.poisson(extra, count), whole("reach", reach, 1)
    )
    rate, delay = whole("bandwidth", bandwidth, 1), whole("latency", latency, 0)
    payload = np.rint(_log_uniform(data, spread, len(source)) * SHORTEST).astype(np.int64)
    if ccr is not None:
        payload = scaled_payloads(payload, ccr, int(ratio_ceil(flops[:, None], 1, speed).sum()) / (n * m), rate, delay)
    return Layered(n, m, seed, kind, flops, in_start, source, payload, speed, rate, delay, family="irregular")


def _log_uniform(rng: Generator, decades: float, count: int) -> NDArray[np.float64]:
    """Return numbers in [1, 10^decades) whose logarithms are uniform."""
    found: NDArray[np.float64] = 10.0 ** (decades * rng.random(count))
    return found


def _widths(rng: Generator, n: int, mean: float) -> Int:
    """Return random widths of layers with a total of n tasks."""
    drawn = np.rint(mean * rng.uniform(0.5, 1.5, int(2 * n / mean) + 2)).astype(np.int64)
    ends = np.minimum(np.cumsum(np.maximum(drawn, 1)), n)
    sizes: Int = np.diff(ends, prepend=0)
    return sizes[sizes > 0]
