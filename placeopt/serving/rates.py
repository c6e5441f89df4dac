"""Rates of a device by the layers that it holds, from its memory, speed and memory bandwidth.

A step makes one token for each of b requests. It reads the weights of the held layers once and what they keep for the
tokens of the requests, and takes at least the time of that at the memory bandwidth, and at least the time of the work
(roofline; S. Williams, A. Waterman, D. Patterson, Communications of the ACM 2009, doi:10.1145/1498765.1498785). As many
requests are served as the memory holds next to the weights: more layers leave less memory to requests, so that the
tokens per second fall faster than the number of layers grows. The time of a prompt is divided among the tokens of its
answer.

Each node is alone here. In a chain of m nodes, a request keeps memory on all of them, and one of them computes its next
token, so that a step is for about 1 / m of these requests. The rates of a long chain are therefore optimistic.
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


@dataclass(frozen=True, slots=True)
class Requests:
    """What the tokens per second are for.

    Attributes
    ----------
    context, prompt
        Tokens of a request that are kept, and how many of them are its prompt. The others are its answer.
    batch
        Most requests that a node serves at a time; None for as many as its memory holds.
    """

    context: int
    prompt: int = 0
    batch: int | None = None


def interval_rates(layers: list[LayerCosts], hardware: Hardware, requests: Requests) -> Int:
    """(1, L) rates by number of layers if all are alike, else (L, L) by first layer and number.

    Rates are millionths of a token per second; 0 where the memory does not hold the layers and one request.
    """
    alike = len(set(layers)) == 1
    size = len(layers)
    table = np.zeros((1 if alike else size, size), dtype=np.int64)
    for first in range(len(table)):
        held = LayerCosts(0, 0, 0)
        for count, layer in enumerate(layers[first:], 1):
            held = LayerCosts(*map(sum, zip(held, layer, strict=True)))
            rate = _rate(held, count, hardware, requests)
            if not rate:
                break
            table[first, count - 1] = rate
    return table


def _rate(held: LayerCosts, count: int, hardware: Hardware, requests: Requests) -> int:
    """The rate with the summed costs of `count` layers."""
    free, kept = hardware.memory - held.weights, held.cache * requests.context
    if free < 0 or free < kept:
        return 0
    room = free // kept if kept else LARGEST_BATCH
    # Each answer takes a reading of the weights, or the work, of its prompt; steps share this time.
    reading = Fraction(0) if hardware.bandwidth is None else held.weights / hardware.bandwidth
    overhead = count * hardware.overhead
    prefill = Fraction(0)
    if requests.prompt:
        prefill = max(reading, requests.prompt * held.flops / hardware.speed) + overhead
        prefill /= requests.context - requests.prompt

    most = min(room, LARGEST_BATCH if requests.batch is None else requests.batch)
    cache = Fraction(0) if hardware.bandwidth is None else most * kept / hardware.bandwidth
    seconds = max(reading + cache, most * held.flops / hardware.speed) + overhead + most * prefill
    return UNLIMITED if not seconds else min(int(TOKEN * most / seconds), UNLIMITED)
