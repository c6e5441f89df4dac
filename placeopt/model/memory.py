"""Memory that a schedule needs on each device, under both memory models.

`sum` counts everything that a device ever holds: resident + output + scratch of all its tasks.
`peak` counts what is live at one time: `resident` for the whole run, `scratch` while the task runs, and `output` from
the task's start until its last consumer has it. That is the end of a consumer on the same device, the arrival of the
transfer on another device, and the task's own end without consumers. The consumer's copy of a payload is not counted
on its device; include it in the consumer's `scratch` if it matters.

A pipeline counts as `sum`, and the outputs that it keeps for other runs (`pipeline_memory`). Memory tiers require
`sum`; the bytes beyond the first one cost the swap time of `placeopt.model.tiers`.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.modes import memory_budget
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, Stages, arrivals, check_schedule, durations, edge_transfers
from placeopt.model.stages import backward, forward_in_training, kept_runs
from placeopt.model.units import size_text, two_sizes


def sum_memory(problem: Problem, device: Int) -> Int:
    """(m,) total bytes of the tasks on each device, under the `sum` memory model."""
    return per_device(problem, device, problem.memory)


def pipeline_memory(problem: Problem, device: Int, stages: Stages | None = None) -> Int:
    """(m,) bytes of each device: everything that one run holds, and the outputs kept for other runs under way.

    A device that computes the outputs of forward tasks again for their backward tasks keeps the inputs of these tasks
    instead: what it receives for them, and the outputs of those without producers.
    """
    kept = kept_runs(problem, device, stages)
    ahead = ~backward(problem)
    fixed = per_device(problem, device, problem.memory)
    outputs = per_device(problem, device, problem.output * ahead)
    if stages is not None and stages.recompute.any():
        trained = forward_in_training(problem)
        stored = ahead & (~trained | (np.diff(problem.in_start) == 0))
        sources = per_device(problem, device, problem.output * stored)
        carrier = edge_transfers(problem, device)
        entering = np.unique(carrier[(carrier >= 0) & trained[problem.edge_target]])
        received = by_index(np.add, device[problem.edge_target[entering]], problem.payload[entering], problem.n_devices)
        again = stages.recompute != 0
        return np.asarray(fixed + np.where(again, kept * received + (kept - 1) * sources, (kept - 1) * outputs))
    return np.asarray(fixed + (kept - 1) * outputs)


def freed_at(problem: Problem, schedule: Schedule) -> Int:
    """(n,) tick at which each task's output is freed on its device."""
    ends = schedule.start + durations(problem, schedule.device)
    freed = ends.copy()
    source, target = problem.edge_source, problem.edge_target
    same = schedule.device[source] == schedule.device[target]
    np.maximum.at(freed, source, np.where(same, ends[target], arrivals(problem, schedule)))
    return freed


def memory_profile(problem: Problem, schedule: Schedule, device: int, freed: Int | None = None) -> tuple[Int, Int]:
    """Live memory of one device over time: ticks of change (k,), and the bytes live from each of them on (k,).

    The first tick is 0, when the resident bytes are already allocated. `freed` is the result of `freed_at`, if known.
    A device includes what its modes and teams hold on it. If a mode holds other amounts than its task, the difference
    is resident.
    """
    freed = freed_at(problem, schedule) if freed is None else freed
    tasks = np.flatnonzero(_occupies(problem, device)[schedule.device])
    start = schedule.start[tasks]
    end = start + durations(problem, schedule.device)[tasks]
    resident, output, scratch = problem.resident[tasks], problem.output[tasks], problem.scratch[tasks]
    if (budget := memory_budget(problem, device)) is not None and problem.resources is not None:
        held = problem.resources.placed(budget, schedule.device)[tasks]
        output = np.minimum(output, held)
        scratch = np.minimum(scratch, held - output)
        resident = held - output - scratch
    times = np.concatenate(([0], start, start, end, freed[tasks]))
    changes = np.concatenate(([resident.sum()], scratch, output, -scratch, -output))
    ticks, position = np.unique(times, return_inverse=True)
    steps = by_index(np.add, position, changes, len(ticks))
    return ticks, np.cumsum(steps)


def peak_memory(problem: Problem, schedule: Schedule) -> Int:
    """(m,) most bytes live at one time on each device. Intervals are half-open: memory is freed before it is reused."""
    freed = freed_at(problem, schedule)
    end = schedule.start + durations(problem, schedule.device)
    resident = per_device(problem, schedule.device, problem.resident)
    device = np.concatenate([schedule.device] * 4)
    ticks = np.concatenate((schedule.start, schedule.start, end, freed))
    changes = np.concatenate((problem.scratch, problem.output, -problem.scratch, -problem.output))
    by_time = np.lexsort((ticks, device))
    device, ticks, changes = device[by_time], ticks[by_time], changes[by_time]
    level = np.cumsum(changes)  # each device's changes sum to zero, so its level starts at zero
    last = np.ones(len(ticks), dtype=np.bool_)
    last[:-1] = (ticks[1:] != ticks[:-1]) | (device[1:] != device[:-1])
    peak = by_index(np.maximum, device[last], level[last], problem.n_devices)
    return resident + peak


def used_memory(problem: Problem, schedule: Schedule) -> Int:
    """(m,) bytes to compare with the capacities, under the problem's own memory model.

    Of a mode or a team, those on the member that needs most: its capacity is a budget.
    """
    if problem.pipeline is not None:
        used = pipeline_memory(problem, schedule.device, schedule.stages)
    elif problem.memory_model == "sum":
        used = sum_memory(problem, schedule.device)
    else:
        used = peak_memory(problem, schedule)
    members = problem.members
    if members is not None:
        budgets = [member_memory(problem, schedule.device, d) for d in range(problem.n_devices)]
        for d, occupied in enumerate(members):
            used[d] = max((int(need[d]) for each in occupied if (need := budgets[each]) is not None), default=used[d])
    return used


def _occupies(problem: Problem, d: int) -> Bool:
    """(m,) whether each device is device d, or a mode or a team of it."""
    if problem.members is None:
        return np.asarray(np.arange(problem.n_devices) == d)
    return np.array([d == c or d in team for c, team in enumerate(problem.members)], dtype=np.bool_)


def device_memory(problem: Problem, schedule: Schedule, used: Int, d: int) -> int:
    """Bytes of all tasks of a device, in all modes and teams; `used` (m,) is the result of `used_memory`."""
    held = member_memory(problem, schedule.device, d)
    if held is not None:
        return int(held.sum())
    if problem.memory_model == "peak" and problem.has_modes:
        return int(memory_profile(problem, schedule, d)[1].max())
    return int(used[_occupies(problem, d)].sum())


def member_memory(problem: Problem, device: Int, d: int) -> Int | None:
    """(m,) bytes that each device, mode or team holds on device d; None if its memory is not a budget."""
    budget = memory_budget(problem, d)
    if budget is None or problem.resources is None:
        return None
    return per_device(problem, device, problem.resources.placed(budget, device))


def fits(problem: Problem, schedule: Schedule) -> bool:
    """Whether every device has enough memory."""
    check_schedule("fits", problem, schedule)
    return bool((used_memory(problem, schedule) <= problem.capacity).all())


def shortage(problem: Problem) -> str | None:
    """State that all tasks together need more memory than all devices have; None if they do not."""
    if problem.n_tasks == 0 or (problem.capacity == UNLIMITED).any():
        return None
    room, resident, total = (
        int(sum(amounts.tolist())) for amounts in (problem.capacity, problem.resident, problem.memory)
    )
    peak = problem.memory_model == "peak"
    need = resident if peak else total
    if need <= room:
        return None
    stated, there = two_sizes(need, room)
    text = (
        f"all tasks together need {stated} of {'resident memory' if peak else 'memory'}, and all devices have {there}"
    )
    # Pipelines and memory tiers support no other memory model.
    other = not peak and problem.pipeline is None and problem.tiers is None
    helps = other and resident + int((problem.output + problem.scratch).max()) <= room
    return text + (freed_text(resident, total) if helps else "")


def freed_text(resident: int, total: int) -> str:
    """Return a hint on the memory that the memory model `peak` counts for a part of the time only."""
    return (
        f"; {size_text(resident)} of it is resident, and memory_model: peak counts the other "
        f"{size_text(total - resident)} only while it is live"
    )


def limited(problem: Problem) -> bool:
    """Whether memory matters: any device has a limited capacity, or memory tiers."""
    return problem.tiers is not None or bool((problem.capacity != UNLIMITED).any())


def swap_times(problem: Problem, device: Int) -> Int:
    """(m,) ticks for which each device swaps before its first task; all 0 without memory tiers."""
    swaps = np.zeros(problem.n_devices, dtype=np.int64)
    if problem.tiers is not None:
        used = sum_memory(problem, device).tolist()
        swaps[:] = [problem.tiers.swap_time(d, bytes_) for d, bytes_ in enumerate(used)]
    return swaps


def most_swapping(problem: Problem) -> list[int]:
    """Ticks for which each device swaps at most, in any placement, as Python integers."""
    if problem.tiers is None:
        return [0] * problem.n_devices
    return [int(problem.tiers.swap_time(d, int(problem.memory.sum()))) for d in range(problem.n_devices)]


def tier_bytes(problem: Problem, device: Int) -> Int:
    """(m, k) bytes in each memory tier of each device; bytes beyond the capacity are in none."""
    assert problem.tiers is not None
    end = problem.tiers.end
    held = np.minimum(sum_memory(problem, device)[:, None], end)
    return np.diff(held, axis=1, prepend=0)


def earliest_starts(problem: Problem, device: Int) -> Int:
    """(n,) ticks before which no task of a placement may start: its release time, and the swap time of its device.

    Other rules may forbid earlier starts, too (`Rule.first_starts`).
    """
    found = (
        problem.release if problem.tiers is None else np.maximum(problem.release, swap_times(problem, device)[device])
    )
    for rule in problem.stated.values():
        found = np.maximum(found, rule.first_starts(device, problem.duration[np.arange(problem.n_tasks), device]))
    return found


def per_device(problem: Problem, device: Int, amounts: Int) -> Int:
    """(m,) sums of the amounts (n,) of the tasks on each device; `device` (n,) is a placement."""
    return by_index(np.add, device, amounts, problem.n_devices)
