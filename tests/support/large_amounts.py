"""Random problems with amounts up to the documented limits, for comparisons with exact arithmetic.

They are the small problems of `brute_force.py` and `pipelines.py`, with every amount multiplied by a large number, and
noise. All sums of docs/spec.md, "Limits", stay at most 2^60.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from brute_force import rounded_up, small_problem, swap_ticks
from pipelines import random_pipeline, unlike_pipeline

from placeopt.errors import UsageError
from placeopt.model.building import with_changes
from placeopt.model.problem import UNLIMITED, Contention, MemoryModel, Objective, Problem
from placeopt.model.ranges import LARGEST, RUNS, first_excess
from placeopt.model.tiers import ENDLESS, Tiers, build_tiers

CHANCE_OF_TIERS = 0.3


def large_problem(
    seed: int, objective: Objective | None = None, *, bound: bool = False, scarce: bool = False
) -> Problem:
    """A problem of one to five tasks for `brute_force.optimum`; the objective is drawn unless it is given.

    `bound` asks for port contention and memory tiers, which have bounds of their own, `scarce` for devices that do not
    hold all tasks.
    """
    rng = np.random.default_rng(seed)
    contention: Contention | None = None
    model: MemoryModel | None = None
    if bound:
        contention, model = "half_duplex" if seed % 2 else "port", "sum"
    small = small_problem(rng, objective, times=seed % 3 > 0, contention=contention, memory_model=model)
    if small.memory_model == "sum" and not scarce and (bound or rng.random() < CHANCE_OF_TIERS):
        small = with_changes(small, **_tiers(small, rng))
    if scarce:
        drawn = rng.integers(0, max(int(small.memory.sum()), 1), small.n_devices)
        small = with_changes(small, capacity=np.maximum(drawn, small.memory.max(initial=0)))
    return _large(small, rng, seed)


def _large(small: Problem, rng: np.random.Generator, noise: int, ticks: int = 60) -> Problem:
    """The problem with as many additional bits as drawn, if its sums have room; that of ticks has `ticks` bits."""
    room = [most - total.bit_length() for most, total in zip((ticks, 60, 60), _totals(small), strict=True)]
    bits = [min(int(rng.choice([0, 20, 47, 51, 53, 60])), max(most, 0)) for most in room]
    while True:
        with suppress(UsageError):  # a ratio beyond 62 bits
            large = _enlarged(small, *bits, np.random.default_rng(noise))
            if max(_totals(large)) <= LARGEST and first_excess(large) is None:
                return large
        bits = [max(each - 1, 0) for each in bits]


def _enlarged(small: Problem, time: int, size: int, power: int, rng: np.random.Generator) -> Problem:
    """The problem with these numbers of additional bits in its ticks, bytes and nanojoules."""
    ticks, sizes = _Scale(time, rng), _Scale(size, rng)
    rate = Fraction(2) ** (time - size)
    changes: dict[str, Any] = {
        name: ticks(getattr(small, name)) for name in ("duration", "release", "deadline", "latency", "relocation")
    }
    changes |= {name: sizes(getattr(small, name)) for name in ("resident", "output", "scratch", "capacity", "payload")}
    changes["byte_ticks_num"], changes["byte_ticks_den"] = _ratios(small.byte_ticks_num, small.byte_ticks_den, rate)
    joules = Fraction(2) ** (power - time)
    changes["power_num"], changes["power_den"] = _ratios(small.power_num, small.power_den, joules)
    joules = Fraction(2) ** (power - size)
    found = _ratios(small.byte_energy_num, small.byte_energy_den, joules)
    changes["byte_energy_num"], changes["byte_energy_den"] = found
    if small.pipeline is not None:
        launch, gradient = ticks(small.pipeline.launch), sizes(small.pipeline.gradient)
        changes["pipeline"] = replace(small.pipeline, launch=launch, gradient=gradient)
    if small.tiers is not None:
        changes["tiers"] = _large_tiers(small.tiers, changes["capacity"], sizes, rate)
        changes["capacity"] = changes["tiers"].capacity
    return with_changes(small, **changes)


class _Scale:
    """Multiplies small amounts by a large number and adds noise; equal amounts stay equal, and 0 stays 0."""

    def __init__(self, bits: int, rng: np.random.Generator) -> None:
        self.bits, self.rng, self.known = bits, rng, {0: 0, UNLIMITED: UNLIMITED}

    def __call__(self, amounts: np.ndarray) -> np.ndarray:
        return np.array([self.one(each) for each in amounts.ravel().tolist()], dtype=np.int64).reshape(amounts.shape)

    def one(self, amount: int) -> int:
        """The large amount."""
        if amount not in self.known:
            top = amount << self.bits
            noise = int(self.rng.integers(-3, 4)) if self.rng.random() < 0.5 else int(self.rng.integers(-1, 2) * 1000)
            self.known[amount] = min(max(top + (noise if self.bits > 12 else 0), 0), UNLIMITED - 1)
        return self.known[amount]


def _ratios(num: np.ndarray, den: np.ndarray, factor: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Ratios times a factor, with a product of numerator and denominator below 2^62."""
    nums, dens = np.zeros_like(num), np.ones_like(den)
    for place in np.ndindex(num.shape):
        ratio = Fraction(int(num[place]), int(den[place])) * factor
        nums[place], dens[place] = ratio.numerator, ratio.denominator
    return nums, dens


def _tiers(problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
    """Tiers of slower memory after the first one of some devices."""
    total = int(problem.memory.sum())
    first = np.where(problem.capacity == UNLIMITED, ENDLESS, problem.capacity)
    further: list[list[tuple[int, int, int]]] = []
    for d, size in enumerate(first.tolist()):
        count = int(rng.integers(0, 3)) if size != ENDLESS or rng.random() < 0.7 else 0
        if count and size == ENDLESS:
            first[d] = int(rng.integers(0, total + 2))
        rates = sorted(Fraction(int(rng.integers(1, 4)), int(rng.integers(1, 4))) for _ in range(count))
        sizes = [int(rng.integers(1, total + 2)) for _ in rates]
        if count and rng.random() < 0.5:
            sizes[-1] = ENDLESS
        further.append([(size, rate.numerator, rate.denominator) for size, rate in zip(sizes, rates, strict=True)])
    tiers = build_tiers(first, further)
    return {"tiers": tiers, "capacity": tiers.capacity} if any(further) else {}


def _large_tiers(tiers: Tiers, capacity: np.ndarray, sizes: _Scale, rate: Fraction) -> Tiers:
    first = [ENDLESS if each == ENDLESS else sizes.one(each) for each in tiers.end[:, 0].tolist()]
    further = []
    for d in range(len(capacity)):
        rows = []
        for size, num, den in tiers.further(d):
            ratio = Fraction(num, den) * rate
            rows.append((ENDLESS if size == ENDLESS else sizes.one(size), ratio.numerator, ratio.denominator))
        further.append(rows)
    return build_tiers(first, further)


def _totals(problem: Problem) -> tuple[int, int, int]:
    """The largest sums of ticks, bytes and nanojoules that docs/spec.md limits to 2^60, in Python integers."""
    m = range(problem.n_devices)
    pairs = [(a, b) for a in m for b in m if a != b]
    payload = problem.payload.tolist()
    durations = problem.duration.max(axis=1, initial=0).tolist()

    def slowest(amount: int, num: np.ndarray, den: np.ndarray) -> int:
        return max((rounded_up(amount, num[pair], den[pair]) for pair in pairs), default=0)

    moving = sum(slowest(each, problem.byte_ticks_num, problem.byte_ticks_den) for each in payload)
    moving += len(payload) * int(problem.latency.max(initial=0))
    held = sum(problem.memory.tolist())
    last = max([*problem.release.tolist(), *(swap_ticks(problem, d, held) for d in m)], default=0)
    joules = sum(max(rounded_up(ticks, problem.power_num[d], problem.power_den[d]) for d in m) for ticks in durations)
    joules += sum(slowest(each, problem.byte_energy_num, problem.byte_energy_den) for each in payload)
    amounts = sum(sum(getattr(problem, name).tolist()) for name in ("resident", "output", "scratch"))
    due, room = (
        max((each for each in limits.tolist() if each != UNLIMITED), default=0)
        for limits in (problem.deadline, problem.capacity)
    )
    relocation = sum(problem.relocation.max(axis=1, initial=0).tolist())
    times, sizes = [last + sum(durations) + moving, relocation, due], [amounts, sum(payload), room]
    if problem.pipeline is not None:
        rules = problem.pipeline
        ring = slowest(2 * sum(rules.gradient.tolist()), problem.byte_ticks_num, problem.byte_ticks_den)
        launches = problem.n_tasks * int(rules.launch.max(initial=0))
        times.append((2 * (sum(durations) + moving) + launches + ring) * RUNS)
        kept = max(problem.n_devices, rules.microbatches, 2)
        sizes.append(amounts + kept * (sum(problem.output.tolist()) + sum(payload)))
    return max(times), max(sizes), joules


PLACEMENTS = 100
"""Maximum number of placements of a large pipeline."""

BORDERS = 47
"""Bits of all ticks of `RUNS` runs up to which `borders` counts transfers."""


def large_pipeline(seed: int, bound: str | None = None) -> Problem:
    """A pipeline for `least_period`, of a kind that often has the given bound.

    `borders` and `configurations` need ticks of fewer bits and several devices, the latter and `division` no replicas,
    `division` many groups of unlike durations, and `ideals` contiguous stages. Without these, `cp-sat` proves more than
    the bounds before it.
    """
    rng = np.random.default_rng(seed)
    contiguous = {"ideals": True, "cp-sat": False}
    groups, devices = {"borders": (2, 2), "configurations": (2, 2), "division": (5, 2)}.get(bound or "", (1, 1))
    while True:
        small = (random_pipeline if rng.random() < 0.5 else unlike_pipeline)(int(rng.integers(2**32)))
        assert small.pipeline is not None
        if (
            small.n_groups >= groups
            and small.n_devices >= devices
            and small.n_devices**small.n_groups <= PLACEMENTS
            and small.pipeline.contiguous is contiguous.get(bound or "", small.pipeline.contiguous)
        ):
            break
    if bound == "division":
        duration = rng.integers(0, 100, small.duration.shape)[:, small.device_class]
        small = with_changes(small, pipeline=replace(small.pipeline, replicas=1), duration=duration)
    if bound == "configurations":
        small = with_changes(small, pipeline=replace(small.pipeline, replicas=1))
    return _large(small, rng, seed, BORDERS if bound in ("borders", "configurations") else 60)
