"""The largest amounts of a problem: all sums of its times, bytes and energies fit into 64 bits, with a margin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placeopt.errors import UsageError, visible
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.tiers import Tiers

LARGEST = 2**60
"""The largest amount, and the largest sum, of ticks, bytes or nanojoules."""

RUNS = 1000
"""Number of runs of a pipeline whose times must fit into 64 bits."""


class Excess(NamedTuple):
    """A total above `LARGEST`: a message, and the section of the problem file to change."""

    message: str
    section: str


def check_ranges(caller: str, problem: Problem) -> None:
    """Reject a problem with totals that are too large for 64-bit sums; problem files are checked when they are read.

    Raises a UsageError if there are any.
    """
    found = first_excess(problem)
    if found is not None:
        raise UsageError(f"{caller}: {found.message}")


def first_excess(problem: Problem) -> Excess | None:
    """The first total that is out of range, in double precision; None if there is none."""
    return next(_excesses(problem), None)


def _excesses(problem: Problem) -> Iterator[Excess]:
    moved = _total(problem.payload)
    longest = _total(problem.duration.max(axis=1, initial=0))
    slowest = _largest_ratio(problem.byte_ticks_num, problem.byte_ticks_den)
    transfers = moved * slowest + problem.n_edges * float(1 + problem.latency.max(initial=0))
    # All tasks and transfers one after another from the last release on: only unnecessary waiting takes longer.
    swapping = _slowest_swap(problem.tiers, problem.memory)
    firsts = {
        "last release time": float(problem.release.max(initial=0)),
        "longest swap time": swapping,
        "end of the last unavailable window": float(problem.latest_opening),
    }
    latest, last = max(firsts.items(), key=lambda item: item[1])
    first = f"the {latest}, " if last else ""
    setting_up = _total(problem.delays(problem.feasible))
    times = f"{first}all durations{', setups' * bool(setting_up)} and transfers add up"
    hungriest = _largest_ratio(problem.power_num, problem.power_den)
    dearest = _largest_ratio(problem.byte_energy_num, problem.byte_energy_den)
    energy = longest * hungriest + problem.n_tasks + moved * dearest + problem.n_edges
    # No task ends later than all of this takes.
    weight = _total(problem.due_weight[problem.due != UNLIMITED]) if "tardiness" in problem.objective.metrics else 0.0
    prices = _total(problem.price.max(axis=1, initial=0))
    for what, total, unit, hint, section in (
        (times, last + longest + setting_up + transfers, "ticks", "use a coarser resolution", "resolution"),
        ("the memory of all tasks adds up", _total(problem.memory), "bytes", "expected less", "tasks"),
        ("all payloads add up", moved, "bytes", "expected less", "tasks"),
        (
            "the weighted tardiness adds up",
            weight * (last + longest + setting_up + transfers),
            "ticks",
            "expected less",
            "tasks",
        ),
        ("the price of all tasks adds up", prices, "billionths", "expected less", "tasks"),
        ("the energy of all tasks and transfers adds up", energy, "nJ", "expected less", "devices"),
    ):
        if total > LARGEST:
            yield Excess(f"{what} to {total:.2g} {unit}, more than 2^60; {hint}", section)
    resources = problem.resources
    for r, name in enumerate([] if resources is None else resources.names):
        assert resources is not None
        most = _total(resources.amounts(r).max(axis=1, initial=0))
        if max(most, float(resources.capacity[r])) > LARGEST:
            yield Excess(f"{visible(name)}: all amounts add up to more than 2^60 units; expected fewer digits", "tasks")
    if problem.pipeline is not None:
        yield from _excesses_of_pipeline(problem, longest, moved, slowest)


def _excesses_of_pipeline(problem: Problem, longest: float, moved: float, slowest: float) -> Iterator[Excess]:
    pipeline, n, m = problem.pipeline, problem.n_tasks, problem.n_devices
    assert pipeline is not None
    latency = float(1 + problem.latency.max(initial=0))
    # Tasks are computed twice at most, and launch a stage each; transfers take the time of both devices.
    run = 2 * longest + n * float(pipeline.launch.max(initial=0)) + 2 * (moved * slowest + problem.n_edges * latency)
    if pipeline.replicas > 1:
        run += m * latency + 2 * _total(pipeline.gradient) * slowest
    # On a path of a run, each task waits for a few turns of its device at most; simulations execute some hundred runs.
    times = run * max(n, RUNS)
    if times > LARGEST:
        message = f"the operations of a pipeline may take and wait for {times:.2g} ticks, more than 2^60"
        yield Excess(f"{message}; use a coarser resolution", "resolution")
    kept = pipeline.runs_kept or m
    need = _total(problem.memory) + kept * (_total(problem.output) + (moved if pipeline.recompute else 0))
    if need > LARGEST:
        message = f"the memory for all runs under way adds up to {need:.2g} bytes, more than 2^60"
        yield Excess(f"{message}; expected less", "tasks")


def _slowest_swap(tiers: Tiers | None, memory: Int) -> float:
    """The ticks for which a device that holds all `memory` (n,) of tasks swaps, at most."""
    if tiers is None:
        return 0.0
    inside = np.diff(np.minimum(tiers.end, int(memory.sum())).astype(np.float64), axis=1)
    ticks = np.ceil(inside * tiers.byte_ticks_num[:, 1:] / tiers.byte_ticks_den[:, 1:])
    return float(ticks.sum(axis=1).max(initial=0))


def _largest_ratio(num: Int, den: Int) -> float:
    return float((num / den).max(initial=0))


def _total(amounts: Int) -> float:
    return float(amounts.astype(np.float64).sum())
