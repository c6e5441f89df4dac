"""Times of the steps of a device by the layers that it holds, from its memory, speed and memory bandwidth.

A step makes one token for each of b requests. It reads the weights of the held layers once and what they keep for the
tokens of the requests, and takes at least the time of that at the memory bandwidth, and at least the time of the work
(roofline; S. Williams, A. Waterman, D. Patterson, Communications of the ACM 2009, doi:10.1145/1498765.1498785). The
memory next to the weights limits the requests. The time of a prompt is divided among the tokens of its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Int
from placeopt.serving.problem import SECOND, TOKEN, UNLIMITED

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
        Most requests of a step; None for as many as the memory of the node holds.
    """

    context: int
    prompt: int = 0
    batch: int | None = None


class Step(NamedTuple):
    """Rate of a node alone, requests that it holds, and the times of a step as in `Steps`; all 0 if it holds none."""

    rate: int = 0
    room: int = 0
    reading: int = 0
    token: int = 0
    overhead: int = 0
    work: int = 0


def interval_steps(layers: Sequence[LayerCosts], hardware: Hardware, requests: Requests) -> Int:
    """(6, 1, L) entries of `Step` by number of layers if all are alike, else (6, L, L) by first layer and number.

    The rate of a node alone, in millionths of a token per second, is that of a step for all requests that it can serve
    at a time.
    """
    size = len(layers)
    table = np.zeros((len(Step._fields), 1 if len(set(layers)) == 1 else size, size), dtype=np.int64)
    for first in range(table.shape[1]):
        held = LayerCosts(0, 0, 0)
        for count, layer in enumerate(layers[first:], 1):
            held = LayerCosts(*map(sum, zip(held, layer, strict=True)))
            step = _step(held, count, hardware, requests)
            if not step.rate:
                break
            table[:, first, count - 1] = step
    return table


def _step(held: LayerCosts, count: int, hardware: Hardware, requests: Requests) -> Step:
    """The steps with the summed costs of `count` layers."""
    free, kept = hardware.memory - held.weights, held.cache * requests.context
    if free < 0 or free < kept:
        return Step()
    room = min(free // kept, LARGEST_BATCH) if kept else LARGEST_BATCH
    read, cached = (
        (Fraction(0), Fraction(0))
        if hardware.bandwidth is None
        else (held.weights / hardware.bandwidth, kept / hardware.bandwidth)
    )
    overhead = count * hardware.overhead
    work = held.flops / hardware.speed
    prefill = Fraction(0)
    if requests.prompt:  # it takes a reading of the weights, or its work, once for all tokens of the answer
        prefill = max(read, requests.prompt * work) + overhead
        prefill /= requests.context - requests.prompt
    seconds = (read + overhead, cached + prefill, overhead, work + prefill)
    times = [min(ceil(each * SECOND), UNLIMITED) for each in seconds]
    most = room if requests.batch is None else min(room, requests.batch)
    longest = max(times[0] + most * times[1], times[2] + most * times[3])
    rate = min(TOKEN * SECOND * most // longest, UNLIMITED) if longest else UNLIMITED
    return Step(rate, room, *times)
