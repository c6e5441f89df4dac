"""Metrics of schedules and of task graphs, for reports.

Ticks and bytes are exact integers; ratios are floats, None if undefined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import counted
from placeopt.model.arrays import Int, by_index
from placeopt.model.buffers import memory_heights
from placeopt.model.graph import components, path_lengths, siblings
from placeopt.model.levels import mean_durations, mean_transfers
from placeopt.model.memory import (
    device_memory,
    peak_memory,
    sum_memory,
    swap_times,
    tier_bytes,
    used_memory,
)
from placeopt.model.modes import memory_capacity, own_devices
from placeopt.model.objective import loads, moved_edges
from placeopt.model.period import loads as pipeline_loads
from placeopt.model.problem import UNLIMITED, Problem, check_problem
from placeopt.model.resource_use import occupied_devices
from placeopt.model.schedule import Schedule, check_schedule, durations, makespan


@dataclass(frozen=True, slots=True, eq=False)
class Metrics:
    """Metrics of a schedule.

    Attributes
    ----------
    makespan
        Ticks until the last task ends.
    slr
        Schedule length ratio: makespan / sum of min_j w_ij over the tasks i of CP_MIN, the `critical_path`; at least 1.
        H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
        computing", IEEE TPDS 13 (2002), doi:10.1109/71.993206, section 5.1. Departure: release times count as well.
        None if that path takes no time.
    speedup
        Ticks of all tasks on the fastest single device, `single_device`, over the makespan (section 5.1 there). None
        if no device may run all tasks, or the makespan is 0. Memory is ignored.
    efficiency
        The speedup per device.
    busy
        (m,) ticks of computing on each device.
    utilisation
        (m,) busy ticks over the makespan; None if the makespan is 0.
    transfers
        Transfers between devices; one that serves several consumers on a device counts once.
    bytes_moved
        Bytes that these transfers move.
    peak_memory
        (m,) most bytes live at one time on each device.
    sum_memory
        (m,) total bytes of the tasks on each device.
    tier_memory
        (m, k) bytes in each memory tier of each device; None without memory tiers.
    swap
        (m,) ticks for which each device swaps before its first task (`placeopt.model.tiers`).
    carbonari_jct
        Ticks of the job completion time of Carbonari et al. 2017, for comparison with that paper's tables only. It is
        neither a bound nor an estimate of the makespan; see `carbonari_jct`.
    """

    makespan: int
    slr: float | None
    speedup: float | None
    efficiency: float | None
    busy: Int
    utilisation: NDArray[np.float64] | None
    transfers: int
    bytes_moved: int
    peak_memory: Int
    sum_memory: Int
    tier_memory: Int | None
    swap: Int
    carbonari_jct: int

    def __repr__(self) -> str:
        ratios = (("SLR", self.slr), ("speedup", self.speedup))
        known = "".join(f", {name} {ratio:.4g}" for name, ratio in ratios if ratio is not None)
        return f"<Metrics: makespan {self.makespan} ticks{known}, {counted(self.transfers, 'transfer')}>"


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a task graph."""

    depth: int
    """Tasks on the longest path."""
    width: int
    """Most tasks in one level; the level of a task is the number of tasks on the longest path before it."""
    components: int
    """Connected components."""
    sources: int
    sinks: int
    """Tasks without producers, and without consumers."""
    largest_in_degree: int
    largest_out_degree: int
    """Most producers, and most consumers, of a task."""


def measure(problem: Problem, schedule: Schedule) -> Metrics:
    """Compute the metrics of a schedule, feasible or not. Every task must be on a device that may run it."""
    check_schedule("measure", problem, schedule)
    length = makespan(problem, schedule)
    shortest = critical_path(problem)
    alone = single_device(problem)
    speedup = alone / length if alone is not None and length else None
    busy = loads(problem, schedule.device)
    moved = moved_edges(problem, schedule.device)
    return Metrics(
        makespan=length,
        slr=length / shortest if shortest else None,
        speedup=speedup,
        efficiency=None if speedup is None else speedup / problem.n_devices,
        busy=busy,
        utilisation=busy / length if length else None,
        transfers=len(moved),
        bytes_moved=int(problem.payload[moved].sum()),
        peak_memory=peak_memory(problem, schedule),
        sum_memory=sum_memory(problem, schedule.device),
        tier_memory=None if problem.tiers is None else tier_bytes(problem, schedule.device),
        swap=swap_times(problem, schedule.device),
        carbonari_jct=carbonari_jct(problem, schedule.device),
    )


def carbonari_jct(problem: Problem, device: Int) -> int:
    """Ticks of the job completion time (JCT) of Carbonari et al. 2017, of a placement (n,): not the makespan.

    A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function maximization,
    2017, section 2.2 and equation 4: "sum all values, if node j and node j' are parallel, only add the max(j, j')".
    Two tasks are parallel if they have the same producers, D[j] = D[j'], and run on different devices. Only the longest
    of parallel tasks counts. Transfers, queues, release times and memory are ignored, so that the value may be above
    the makespan (simultaneous tasks that are not siblings are added up) or below it (siblings on one device may count
    once; transfers take time). O(n log n + e).

    The paper's symbols: E the placement, D[j] the set of direct predecessors of node j, PC_j the parallel candidates of
    j, P_E^j those of them on other devices. Departures and choices:

    - PC_j has D_S[j] != D_S[j'] in the formula. The prose ("both nodes depend on the same thing") and the worked
      example (appendix 6.1: nodes 3 and 4) say that they are equal, as here. Nodes without predecessors are parallel.
    - Equation 4 takes the maximum over P_E^j without j; the prose and the example's sum include j.
    - The paper leaves open how overlapping sets of parallel tasks count, which occur if some siblings share a device.
      Here tasks are processed in topological order (`Problem.order`). A task adds the longest duration of itself and
      its uncounted parallel tasks, which are then counted; a counted task adds nothing.

    Every task is on a device that may run it.
    """
    if problem.n_tasks == 0:
        return 0
    ticks = problem.duration[np.arange(problem.n_tasks), device]
    _, first, label = np.unique(
        siblings(problem.out_start, problem.edge_target)[problem.order], return_index=True, return_inverse=True
    )
    # In topological order, the first task of each set of siblings counts together with those on other devices. The
    # remaining siblings are on its device, and each counts alone.
    ticks, device = ticks[problem.order], device[problem.order]
    beside = device == device[first][label]
    longest = ticks[first]
    np.maximum.at(longest, label[~beside], ticks[~beside])
    return int(longest.sum() + ticks[beside].sum() - ticks[first].sum())


def critical_path(problem: Problem) -> int:
    """Ticks along the longest path with the shortest feasible duration of each task and without transfers.

    The denominator of the SLR: the sum over CP_MIN of min_j w_ij (Topcuoglu et al. 2002, section 5.1). A path starts
    at the release time of its first task.
    """
    check_problem("critical_path", problem)
    if problem.n_tasks == 0:
        return 0
    shortest = np.where(problem.feasible, problem.duration, problem.duration.max(axis=1, keepdims=True)).min(axis=1)
    return int((_earliest(problem, shortest) + shortest).max())


def single_device(problem: Problem) -> int | None:
    """Shortest makespan of all tasks on one device, in ticks; None if no device may run all tasks.

    Running tasks as they become ready is optimal (1 | r_j | Cmax). Let r_j be the earliest start of task j by release
    times and paths. The makespan is the largest r_j plus the durations of all tasks with r_k >= r_j.
    """
    able = np.flatnonzero(problem.feasible.all(axis=0))
    ends = []
    for d in able.tolist():
        ticks = problem.duration[:, d]
        earliest = _earliest(problem, ticks)
        falling = np.argsort(-earliest, kind="stable")
        ends.append(int((earliest[falling] + np.cumsum(ticks[falling])).max(initial=0)))
    return min(ends, default=None)


def _earliest(problem: Problem, ticks: Int) -> Int:
    """(n,) earliest starts by release times and paths, if the tasks take `ticks` (n,)."""
    return path_lengths(problem.order, problem.out_start, problem.edge_target, ticks, problem.release)


def ccr(problem: Problem) -> float | None:
    """The communication-to-computation ratio of a problem, regardless of the placement.

    The sum of the edges' transfer times over the sum of the tasks' durations: equation 1 of H. Xu et al., "Celeritas:
    Fast optimizer for large dataflow graphs", 2022, arXiv:2208.00184. Times are averaged over devices as in
    `placeopt.model.levels`. Every edge counts, even if one transfer may serve several. 0.0 with a single device; None
    if no task takes time.
    """
    computing = float(mean_durations(problem).sum())
    return float(mean_transfers(problem).sum()) / computing if computing else None


class Grain(NamedTuple):
    """Granularity of a task graph: its tasks, its edges and its `ccr`."""

    tasks: int
    edges: int
    ccr: float | None


def grain(problem: Problem) -> Grain:
    """The granularity of the task graph, to compare before and after fusion (Celeritas, table 2)."""
    return Grain(problem.n_tasks, problem.n_edges, ccr(problem))


def shape(problem: Problem) -> Shape:
    """Compute the shape of the problem's task graph."""
    n = problem.n_tasks
    if n == 0:
        return Shape(0, 0, 0, 0, 0, 0, 0)
    ones = np.ones(n, dtype=np.int64)
    level = path_lengths(problem.order, problem.out_start, problem.edge_target, ones)
    fan_in, fan_out = np.diff(problem.in_start), np.diff(problem.out_start)
    return Shape(
        depth=int(level.max()) + 1,
        width=int(np.bincount(level).max()),
        components=components(n, problem.edge_source, problem.edge_target)[1],
        sources=int((fan_in == 0).sum()),
        sinks=int((fan_out == 0).sum()),
        largest_in_degree=int(fan_in.max()),
        largest_out_degree=int(fan_out.max()),
    )


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """Use of one device by a schedule."""

    name: str
    type: str
    tasks: int
    busy: int
    """Ticks of computing; in a pipeline, of everything that the device does in a period."""
    memory: int
    """Bytes, under the problem's memory model."""
    capacity: int | None
    """Bytes; None if unlimited."""
    tiers: tuple[int, ...] = ()
    """Bytes in each memory tier; empty without memory tiers."""
    swap: int = 0
    """Ticks of swapping before the first task."""
    height: int | None = None
    """Bytes up to the end of the topmost buffer; None without addresses."""


def device_uses(problem: Problem, schedule: Schedule) -> tuple[DeviceUse, ...]:
    """Compute the use of each device by a schedule.

    A device of a pipeline is busy with its load, a replica with that of its leader; both divided by the devices of the
    team, as each serves a part of the runs. A device with modes and teams is busy with the tasks of all of them. Modes
    and teams are not listed.
    """
    check_schedule("device_uses", problem, schedule)
    members, uses = problem.members, compiled_uses(problem, schedule)
    if members is None:
        return uses
    used = np.array([use.memory for use in uses], dtype=np.int64)
    tasks, devices = occupied_devices(problem, schedule)
    count = np.bincount(devices, minlength=problem.n_devices)
    busy = by_index(np.add, devices, durations(problem, schedule.device)[tasks], problem.n_devices)
    if problem.pipeline is not None:
        busy = pipeline_loads(problem, schedule.device, schedule.stages).busiest
    found = []
    for d in own_devices(problem):
        changes: dict[str, Any] = {"tasks": int(count[d]), "busy": int(busy[d])}
        changes["memory"] = device_memory(problem, schedule, used, d)
        changes["capacity"] = memory_capacity(problem, d)
        found.append(replace(uses[d], **changes))
    return tuple(found)


def compiled_uses(problem: Problem, schedule: Schedule) -> tuple[DeviceUse, ...]:
    """Compute the use of each device of the compiled problem, modes and teams included; see `device_uses`."""
    tasks, ticks = np.bincount(schedule.device, minlength=problem.n_devices), loads(problem, schedule.device)
    used = used_memory(problem, schedule)
    if problem.pipeline is not None:
        load = pipeline_loads(problem, schedule.device, schedule.stages)
        ticks = -(-load.total // np.maximum(load.team, 1))
        if schedule.stages is not None:
            tasks, ticks, used = (each[schedule.stages.leader] for each in (tasks, ticks, used))
    tasks, busy, memory = tasks.tolist(), ticks.tolist(), used.tolist()
    swap = swap_times(problem, schedule.device).tolist()
    heights = memory_heights(problem, schedule)
    tiers = [[]] * problem.n_devices if problem.tiers is None else tier_bytes(problem, schedule.device).tolist()
    return tuple(
        DeviceUse(
            name=problem.device_names[d],
            type=problem.device_types[d],
            tasks=tasks[d],
            busy=busy[d],
            memory=memory[d],
            capacity=None if problem.capacity[d] == UNLIMITED else int(problem.capacity[d]),
            tiers=tuple(tiers[d]),
            swap=swap[d],
            height=None if heights is None else int(heights[d]),
        )
        for d in range(problem.n_devices)
    )
