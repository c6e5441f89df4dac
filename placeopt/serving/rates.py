"""Rates of a device by the layers that it holds, from its memory, speed and memory bandwidth.

A step makes one token for each of b requests. It reads the weights of the held layers once and what they keep for the
tokens of the requests, and takes at least the time of that at the memory bandwidth, and at least the time of the work
(roofline; S. Williams, A. Waterman, D. Patterson, Communications of the ACM 2009, doi:10.1145/1498765.1498785). As many
requests are served as the memory holds next to the weights: more layers leave less memory to requests, so that the
tokens per second fall faster than the number of layers grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Int
from placeopt.serving.problem import TOKEN, UNLIMITED

LARGEST_BATCH = 100_000
"""Requests at a time of a device whose memory does not limit them."""


class LayerCosts(NamedTuple):
    """Bytes of weights, bytes kept for each token of a request, and FLOP for a token, of one layer."""

    weights: int
    cache: int
    flops: int


@dataclass(frozen=True, slots=True)
class Hardware:
    """Bytes for weights and requests, FLOP/s, bytes/s (None if nothing is read), and seconds added for each layer."""

    memory: int
    speed: Fraction
    bandwidth: Fraction | None
    overhead: Fraction


def interval_rates(layers: list[LayerCosts], hardware: Hardware, context: int, batch: int | None) -> Int:
    """(1, L) rates by number of layers if all are alike, else (L, L) by first layer and number.

    Rates are millionths of a token per second; 0 where the memory does not hold the layers and one request.
    """
    alike = len(set(layers)) == 1
    size = len(layers)
    table = np.zeros((1 if alike else size, size), dtype=np.int64)
    for first in range(len(table)):
        weights = cache = flops = 0
        for count, layer in enumerate(layers[first:], 1):
            weights, cache, flops = weights + layer.weights, cache + layer.cache, flops + layer.flops
            rate = _rate(weights, cache * context, flops, count, hardware, batch)
            if not rate:
                break
            table[first, count - 1] = rate
    return table


def _rate(weights: int, kept: int, flops: int, count: int, hardware: Hardware, batch: int | None) -> int:
    """The rate with weights, bytes kept for a request, and FLOP for a token, of `count` layers."""
    free = hardware.memory - weights
    requests = LARGEST_BATCH if not kept else free // kept
    if free < 0 or requests < 1:
        return 0
    requests = min(requests, LARGEST_BATCH if batch is None else batch)
    reading = Fraction(0) if hardware.bandwidth is None else (weights + requests * kept) / hardware.bandwidth
    seconds = max(reading, requests * flops / hardware.speed) + count * hardware.overhead
    return UNLIMITED if not seconds else min(int(TOKEN * requests / seconds), UNLIMITED)
