"""Check a whole problem: times against deadlines, totals against 64 bits, colocation groups against memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from placeopt.errors import listing
from placeopt.io.compiler.durations import DurationTable
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import DeviceIndex, LinkArrays
from placeopt.io.compiler.relations import EdgeArrays
from placeopt.io.compiler.scales import LARGEST, Scales
from placeopt.io.compiler.tasks import Tasks
from placeopt.model.arrays import Int
from placeopt.model.pipeline import Pipeline
from placeopt.model.problem import COARSE, UNLIMITED, MemoryModel
from placeopt.model.units import size_text, time_text

RUNS = 1000
"""Number of runs of a pipeline whose times must fit into 64 bits."""


def check_windows(
    tasks: Tasks,
    release: Int,
    deadline: Int,
    table: DurationTable | None,
    index: DeviceIndex,
    scales: Scales,
    issues: Issues,
) -> None:
    """Report deadlines before the release time, and those that even the fastest device misses.

    Without a table, tasks are assumed to take no time.
    """
    if not scales.sound or (deadline == UNLIMITED).all():
        return
    fastest = np.zeros(len(tasks), dtype=np.int64)
    if table is not None:
        some = table.feasible.any(axis=1)
        fastest[some] = np.where(table.feasible, table.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)[some]
    names = list(tasks)
    # UNLIMITED exceeds every sum of two times in range.
    for row in np.flatnonzero(release + fastest > deadline).tolist():
        name, task = names[row], tasks[names[row]]
        path = ("tasks", name, "deadline")
        stated, released = issues.written(path), issues.written(("tasks", name, "release"))
        if issues.touch(*path) or issues.touch("tasks", name, "release"):
            continue
        if task.release is not None and task.deadline is not None and release[row] > deadline[row]:
            if scales.exact_ticks(task.release) > scales.exact_ticks(task.deadline):
                issues.add(f"{stated} is before the release time of the task, {released}", path)
            else:
                between = f"the release time {released} and the deadline {stated}"
                issues.add(f"no whole tick lies between {between}; use a finer resolution", path)
        elif table is not None and not issues.touch("tasks", name):
            device = index.devices[int(np.where(table.feasible[row], table.duration[row], UNLIMITED).argmin())].name
            takes = f"takes {time_text(int(fastest[row]), scales.resolution)} at its fastest (on {device})"
            excess = time_text(int(release[row] + fastest[row] - deadline[row]), scales.resolution)
            after = f", released at {released}," if release[row] else ""
            hint = ""
            if scales.rounding is not None and scales.rounding.share > COARSE:
                tick = time_text(1, scales.resolution)
                hint = f"; times are rounded to the {tick} tick, a finer resolution may help"
            issues.add(f"{stated} cannot be met: the task{after} {takes}, {excess} too long{hint}", path)


def check_ranges(
    duration: Int,
    release: Int,
    amounts: Int,
    edges: EdgeArrays,
    links: LinkArrays,
    power: Sequence[tuple[int, int]],
    swapping: float,
    issues: Issues,
) -> None:
    """Report the first total of times, memory, payloads or energy that is out of range.

    `duration` (n, m) ticks, 0 where not feasible; `release` (n,) ticks; `amounts` (n,) bytes of each task; `power`
    (num, den) of each device; `swapping` the longest swap time of a device.
    """

    def check(what: str, total: float, unit: str, hint: str, section: str) -> None:
        if total > LARGEST and not len(issues):
            issues.add(f"{what} to {total:.2g} {unit}, more than 2^60; {hint}", (section,))

    moved = _total(edges.payload)
    slowest = float((links.byte_ticks_num / links.byte_ticks_den).max(initial=0))
    transfers = moved * slowest + len(edges.payload) * float(1 + links.latency.max(initial=0))
    # All tasks and transfers one after another from the last release on: only unnecessary waiting takes longer.
    last = max(float(release.max(initial=0)), swapping)
    times = last + _total(duration.max(axis=1, initial=0)) + transfers
    first = f"the {'longest swap' if swapping == last else 'last release'} time, " if last else ""
    what = f"{first}all durations and transfers"
    check(f"{what} add up", times, "ticks", "use a coarser resolution", "resolution")
    check("the memory of all tasks adds up", _total(amounts), "bytes", "expected less", "tasks")
    check("all payloads add up", moved, "bytes", "expected less", "tasks")

    hungriest = max((num / den for num, den in power), default=0)
    dearest = float((links.byte_energy_num / links.byte_energy_den).max(initial=0))
    energy = _total(duration.max(axis=1, initial=0)) * hungriest + len(duration) + moved * dearest + len(edges.payload)
    check("the energy of all tasks and transfers adds up", energy, "nJ", "expected less", "devices")


def check_pipeline_ranges(
    pipeline: Pipeline, duration: Int, memory: TaskMemory, edges: EdgeArrays, links: LinkArrays, issues: Issues
) -> None:
    """Report the first total of a pipeline that is out of range; `check_ranges` reports those of all problems."""
    n, m = duration.shape
    slowest = float((links.byte_ticks_num / links.byte_ticks_den).max(initial=0))
    latency = float(1 + links.latency.max(initial=0))
    # Tasks are computed twice at most, and launch a stage each; transfers take the time of both devices.
    run = 2 * _total(duration.max(axis=1, initial=0)) + n * float(pipeline.launch.max(initial=0))
    run += 2 * (_total(edges.payload) * slowest + len(edges.payload) * latency)
    if pipeline.replicas > 1:
        run += m * latency + 2 * _total(pipeline.gradient) * slowest
    # On a path of a run, each task waits for a few turns of its device at most; simulations execute some hundred runs.
    times = run * max(n, RUNS)
    if times > LARGEST:
        message = f"the operations of a pipeline may take and wait for {times:.2g} ticks, more than 2^60"
        issues.add(f"{message}; use a coarser resolution", ("resolution",))
        return
    kept = {"none": 1, "inference": 2, "1f1b": m}.get(pipeline.in_flight, pipeline.microbatches)
    stored = _total(memory.output) + (_total(edges.payload) if pipeline.recompute else 0)
    need = _total(memory.total) + kept * stored
    if need > LARGEST:
        message = f"the memory for all runs under way adds up to {need:.2g} bytes, more than 2^60"
        issues.add(f"{message}; expected less", ("tasks",))


def _total(amounts: Int) -> float:
    return float(amounts.astype(np.float64).sum())


class TaskMemory(NamedTuple):
    """Bytes of each task, (n,) each: for the whole run, from start to consumption, and while the task runs."""

    resident: Int
    output: Int
    scratch: Int

    @property
    def total(self) -> Int:
        """(n,) all memory of each task."""
        return self.resident + self.output + self.scratch


def check_groups(
    tasks: Tasks,
    labels: Int,
    table: DurationTable,
    memory: TaskMemory,
    model: MemoryModel,
    hint: bool,
    capacity: Int,
    index: DeviceIndex,
    issues: Issues,
) -> None:
    """Report groups without a common device, groups too large for every device, and tasks too large in total.

    A single task is a group. Under `sum`, a group needs all memory of its tasks. Under `peak`, it needs at least its
    resident memory and the output and scratch of its largest task. With `hint`, a message says where `peak` helps.
    """
    names = list(tasks)
    if not names:
        return
    _, group = np.unique(labels, return_inverse=True)
    by_group = np.argsort(group, kind="stable")
    firsts = np.searchsorted(group[by_group], np.arange(group.max() + 1))
    single = len(firsts) == len(names)  # each task is a group, in order

    def combined(values: Any, combine: np.ufunc) -> Any:
        return values if single else combine.reduceat(values[by_group], firsts, axis=0)

    @cache
    def peaks() -> Int:
        """(g, m) fewest bytes live at one time for each group on each device; tasks of zero duration hold none."""
        running = np.where(table.duration > 0, (memory.output + memory.scratch)[:, None], 0)
        return np.asarray(combined(memory.resident, np.add)[:, None] + combined(running, np.maximum))

    common = combined(table.feasible, np.logical_and)
    needs = peaks() if model == "peak" else combined(memory.total, np.add)[:, None]
    for label in np.flatnonzero(~(common & (needs <= capacity)).any(axis=1)):
        rows = by_group[group[by_group] == label]
        members = listing([names[row] for row in rows])
        path = ("tasks", names[rows[0]], "colocate" if len(rows) > 1 else "memory")
        if not common[label].any():
            issues.add(f"no device can run every task of its colocation group ({members})", path)
            continue
        roomiest = int(np.argmax(np.where(common[label], capacity, -1)))
        what = f"its colocation group ({members}) needs" if len(rows) > 1 else "needs"
        need, room = _sizes(int(np.broadcast_to(needs, common.shape)[label, roomiest]), int(capacity[roomiest]))
        message = (
            f"{what} {need}{' at one time' if model == 'peak' else ''}, more than any device that may run it has "
            f"(the largest is {index.devices[roomiest].name} with {room})"
        )
        if hint and model == "sum" and (common[label] & (peaks()[label] <= capacity)).any():
            message += _freed(memory, rows)
        issues.add(message, path)
    if (capacity != UNLIMITED).all() and not len(issues):
        there, resident = sum(map(int, capacity)), int(memory.resident.sum())
        total = resident if model == "peak" else int(memory.total.sum())
        if total > there:
            need, room = _sizes(total, there)
            kind = "resident memory" if model == "peak" else "memory"
            helps = hint and model == "sum" and resident + int((memory.output + memory.scratch).max()) <= there
            freed = _freed(memory, np.arange(len(names))) if helps else ""
            issues.add(f"all tasks together need {need} of {kind}, and all devices have {room}{freed}", ("tasks",))


def _freed(memory: TaskMemory, rows: Int) -> str:
    """Return a hint on the memory that the memory model `peak` counts for a part of the time only."""
    resident, total = int(memory.resident[rows].sum()), int(memory.total[rows].sum())
    return (
        f"; {size_text(resident)} of it is resident, and memory_model: peak counts the other "
        f"{size_text(total - resident)} only while it is live"
    )


def _sizes(need: int, room: int) -> tuple[str, str]:
    """Return two amounts as text, in bytes if they would otherwise look equal."""
    texts = size_text(need), size_text(room)
    return texts if texts[0] != texts[1] else (f"{need} B", f"{room} B")
