"""Times of the steps of a device by the layers that it holds, from its memory, speed and memory bandwidth.

A step makes one token for each of b requests. It reads the weights of the held layers once and what they keep for the
tokens of the requests, and takes at least the time of that at the memory bandwidth, and at least the time of the work
(roofline; S. Williams, A. Waterman, D. Patterson, Communications of the ACM 2009, doi:10.1145/1498765.1498785). The
memory next to the weights limits the requests. The time of a prompt is divided among the tokens of its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import ceil
from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Int
from placeopt.serving.problem import LONGEST, SECOND, TOKEN, UNLIMITED

LARGEST_BATCH = 100_000
"""Requests at a time of a device whose memory does not limit them."""


class LayerCosts(NamedTuple):
    """Bytes of weights, bytes kept for each token of a request, FLOP for a token, and bytes of tables of which a token
    needs one row, of one layer."""

    weights: int
    cache: int
    flops: int
    tables: int = 0


@dataclass(frozen=True, slots=True)
class Hardware:
    """Bytes for weights and requests, FLOP/s, bytes/s (None if nothing is read), and seconds added for each layer, and
    for each of its tokens."""

    memory: int
    speed: Fraction
    bandwidth: Fraction | None
    overhead: Fraction
    exchange: Fraction = Fraction(0)

    def shared(self, degree: int, activation: int, bandwidth: Fraction, latency: Fraction) -> Hardware:
        """What as many GPUs are together that share each layer, with links of bytes/s and seconds between them.

        They add up what they have computed twice a layer, after the attention and after the feed-forward part (M.
        Shoeybi et al., Megatron-LM, 2019, arXiv:1909.08053), in rings: in each of 2 (k - 1) steps, a k-th of the bytes
        passes a link (P. Patarasuk, X. Yuan, Journal of Parallel and Distributed Computing 2009,
        doi:10.1016/j.jpdc.2008.09.002). That keys and values may not be divisible by k is left out.
        """
        steps = 4 * (degree - 1)
        return Hardware(
            self.memory * degree, self.speed * degree, None if self.bandwidth is None else self.bandwidth * degree,
            self.overhead + steps * latency, steps * activation / (degree * bandwidth),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Requests:
    """What the tokens per second are for."""

    context: int
    prompt: int = 0
    """Tokens of a request that are kept, and how many of them are its prompt. The others are its answer."""
    batch: int | None = None
    """Most requests of a step; None for as many as the memory of the node holds."""
    separate: bool = False
    """Whether other nodes process the prompts."""


class Step(NamedTuple):
    """Rate of a node alone, requests that it holds, and the times of a step as in `Steps`; all 0 if it holds none."""

    rate: int = 0
    room: int = 0
    reading: int = 0
    token: int = 0
    overhead: int = 0
    work: int = 0


def with_phases(table: Int, answer: int) -> Int:
    """(7, 2 L, L) entries of `Step`, and times of a prompt, by first layer and number of layers: for prefill, and then
    for decoding.

    `table` has (7, 1 or L, L) entries for decoding, and times of a prompt. A node processes one prompt at a time; its
    rate is in tokens of answers, which have `answer` tokens.
    """
    size = table.shape[2]
    fits = np.arange(size)[:, None] + np.arange(size) < size
    table = np.where(fits, np.broadcast_to(table, (len(table), size, size)), 0)
    found = np.concatenate([np.zeros_like(table), table], axis=1)
    found[-1] = np.roll(found[-1], size, axis=0)  # prompts belong to prefill
    time = found[-1, :size]
    found[0, :size][time > 0] = [min(TOKEN * SECOND * answer // each, UNLIMITED) for each in time[time > 0].tolist()]
    found[1, :size][time > 0] = UNLIMITED
    return found


def prompt_times(layers: Sequence[LayerCosts], hardware: Hardware, requests: Requests) -> Int:
    """(1, L) picoseconds of a prompt by number of layers if all are alike, else (L, L) by first layer and number.

    They are 0 where the weights do not fit, or no KV cache of one prompt next to them, or it takes too long.
    """
    size = len(layers)
    table = np.zeros((1 if len(set(layers)) == 1 else size, size), dtype=np.int64)
    for first, intervals in _intervals(layers):
        for count, held in intervals:
            if held.weights + held.tables + held.cache * requests.prompt > hardware.memory:
                break
            time = ceil(_prompt_seconds(held, count, hardware, requests) * SECOND)
            if time > LONGEST:
                break
            table[first, count - 1] = max(time, 1)
    return table


def interval_steps(layers: Sequence[LayerCosts], hardware: Hardware, requests: Requests) -> Int:
    """(6, 1, L) entries of `Step` by number of layers if all are alike, else (6, L, L) by first layer and number.

    The rate of a node alone, in millionths of a token per second, is that of a step for all requests that it can serve
    at a time.
    """
    size = len(layers)
    table = np.zeros((len(Step._fields), 1 if len(set(layers)) == 1 else size, size), dtype=np.int64)
    for first, intervals in _intervals(layers):
        for count, held in intervals:
            step = _step(held, count, hardware, requests)
            if not step.rate:
                break
            table[:, first, count - 1] = step
    return table


def _intervals(layers: Sequence[LayerCosts]) -> Iterator[tuple[int, Iterator[tuple[int, LayerCosts]]]]:
    """The first layers of intervals, one if all layers are alike, and for each of them the numbers of layers and their
    summed costs."""
    for first in range(1 if len(set(layers)) == 1 else len(layers)):
        sums = accumulate(layers[first:], lambda one, other: LayerCosts(*map(sum, zip(one, other, strict=True))))
        yield first, enumerate(sums, 1)


def _step(held: LayerCosts, count: int, hardware: Hardware, requests: Requests) -> Step:
    """The steps with the summed costs of `count` layers."""
    free, kept = hardware.memory - held.weights - held.tables, held.cache * requests.context
    if free < 0 or free < kept:
        return Step()
    room = min(free // kept, LARGEST_BATCH) if kept else LARGEST_BATCH
    read, cached = (
        (Fraction(0), Fraction(0))
        if hardware.bandwidth is None
        else (held.weights / hardware.bandwidth, kept / hardware.bandwidth)
    )
    overhead, exchange = count * hardware.overhead, count * hardware.exchange
    work = held.flops / hardware.speed
    prompt = Fraction(0)
    if requests.prompt and not requests.separate:  # once for all tokens of the answer
        prompt = _prompt_seconds(held, count, hardware, requests)
    prefill = prompt / max(requests.context - requests.prompt, 1)
    seconds = (read + overhead, cached + prefill + exchange, overhead, work + prefill + exchange)
    times = [ceil(each * SECOND) for each in seconds]
    if max(*times, ceil(prompt * SECOND)) > LONGEST:  # no node holds such layers
        return Step()
    most = room if requests.batch is None else min(room, requests.batch)
    longest = max(times[0] + most * times[1], times[2] + most * times[3])
    rate = min(TOKEN * SECOND * most // longest, UNLIMITED) if longest else UNLIMITED
    return Step(rate, room, *times)


def _prompt_seconds(held: LayerCosts, count: int, hardware: Hardware, requests: Requests) -> Fraction:
    """Seconds of a prompt on `count` layers: a reading of the weights or the work, whichever takes longer."""
    read = Fraction(0) if hardware.bandwidth is None else held.weights / hardware.bandwidth
    added = count * (hardware.overhead + requests.prompt * hardware.exchange)
    return max(read, requests.prompt * held.flops / hardware.speed) + added
