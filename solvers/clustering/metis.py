"""METIS: a partition of the graph into as many parts as there are devices, with little data between them.

G. Karypis, V. Kumar: Multilevel k-way partitioning scheme for irregular graphs. Journal of Parallel and Distributed
Computing 48(1):96-129, 1998, doi:10.1006/jpdc.1997.1404; through PyMetis, an optional dependency. Celeritas compares
with this approach (H. Xu et al., 2022, section 6). Edges lose their direction, so the parts may depend on each other
both ways, which the model allows.

- A vertex is a colocation group. Its weight is the quantity to be balanced: its mean duration, its memory, or the sum
  of its shares in both. The weight of an edge is its mean transfer time.
- Part d is meant for the d-th device that may run any task. Its share is in proportion to the device's speed on the
  tasks that it may run, to its memory, or to the mean of both shares. METIS uses integers: weights are scaled to 30
  bits in total, and every edge weighs at least 1.
- METIS ignores feasibility, separation and capacities, and balances to a few per cent only. Groups stay in their part
  if its device can take them, larger groups first. The others go to the device to which most of their transfers lead,
  of those that can take them; ties go to the least load, then to the lowest index.
- The tasks are ordered as those of clusters are, see `placeopt_solvers.clustering._clusters`.

Up to eight parts are cut by recursive bisection, more by the k-way scheme, as METIS's manual advises. Bisection is also
used if a group is too large, or a device's share too small, for METIS (see `_partition.parts`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int
from placeopt.model.levels import mean_durations, mean_transfers
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.construction import Constructive, PartialSchedule, run_heuristic
from .._constructive.groups import Groups
from .._constructive.placement_ops import assign_group, can_host
from .._constructive.timeline import DONE, NEVER, Instance, Timeline
from ._clusters import group_work, schedule_by_homes
from ._partition import Graph, make_graph, parts, shares

Balance = Literal["duration", "memory", "both"]


class MetisSettings(Settings):
    """Settings of metis."""

    balance: Balance = "duration"
    """The quantity that is balanced between parts: duration, memory, or the sum of both shares."""


class Metis(Constructive):
    name = "metis"
    info = Info(
        summary="k-way partition with little data between parts (Karypis and Kumar 1998); needs placeopt[metis]",
        family="clustering",
        guarantee="none",
        complexity="O(n + e) for the partition, O(n m + e) in all",
        citation="""@article{karypis1998multilevel,
  author  = {George Karypis and Vipin Kumar},
  title   = {Multilevel k-way Partitioning Scheme for Irregular Graphs},
  journal = {Journal of Parallel and Distributed Computing},
  volume  = {48},
  number  = {1},
  pages   = {96--129},
  year    = {1998},
  doi     = {10.1006/jpdc.1997.1404}
}""",
    )
    settings_type = MetisSettings

    def solve(self, problem: Problem, options: Options, settings: MetisSettings) -> Answer:
        """Return METIS's partition on the problem's devices, or FAILED if repair finds no room.

        Raises
        ------
        MissingExtraError
            If PyMetis is not installed.
        """
        graph = group_graph(problem, settings.balance)
        wanted = meant_devices(problem, graph, settings.balance, options.seed)
        work = group_work(problem)
        sequence = np.argsort(-group_sums(problem, problem.memory), kind="stable")
        moved = 0

        def build(groups: Groups) -> PartialSchedule:
            nonlocal moved
            load, pull = (np.zeros(problem.n_devices, dtype=np.int64) for _ in range(2))
            edges = graph.starts, graph.neighbours, graph.weight
            found = schedule_by_homes(problem, groups, keep_parts, sequence, wanted, *edges, work, load, pull)
            moved = int(np.count_nonzero(found.line.home != wanted))
            return found

        return replace(run_heuristic(problem, build), stats={"moved": moved})


def group_graph(problem: Problem, balance: Balance) -> Graph:
    """Return the undirected graph of colocation groups."""
    duration = group_sums(problem, mean_durations(problem))
    memory = group_sums(problem, problem.memory.astype(np.float64))
    size = {"duration": duration, "memory": memory, "both": shares(duration) + shares(memory)}[balance]
    low, high = problem.group[problem.edge_source], problem.group[problem.edge_target]
    return make_graph(low, high, mean_transfers(problem), size)


def meant_devices(problem: Problem, graph: Graph, balance: Balance, seed: int) -> Int:
    """Return the device (g,) of each group's part.

    Raises MissingExtraError if PyMetis is not installed.
    """
    share = _device_shares(problem, balance)
    devices = np.flatnonzero(problem.feasible.any(axis=0))
    if len(devices) == 0:  # no tasks, or no device that may run any
        devices = np.zeros(1, dtype=np.int64)
    return devices[parts(graph, share[devices], seed)]


def _device_shares(problem: Problem, balance: Balance) -> Float:
    """Return the share (m,) of each device in the total; 0 for a device that may run no task."""
    allowed = problem.feasible
    usable: Float = np.asarray(allowed.any(axis=0), dtype=np.float64)
    work = mean_durations(problem)[:, None] * allowed
    # Speed relative to the mean, on the tasks that the device may run.
    took = problem.duration.sum(axis=0)
    speed = np.where(took > 0, work.sum(axis=0) / np.maximum(took, 1), 1.0) * usable
    asked = float(problem.memory.sum())
    room = np.where(problem.capacity == UNLIMITED, asked, np.minimum(problem.capacity, asked)) * usable
    if not room.any():
        room = usable
    return {"duration": shares(speed), "memory": shares(room), "both": (shares(speed) + shares(room)) / 2}[balance]


def group_sums(problem: Problem, amount: NDArray[np.generic]) -> Float:
    """Return the sum (g,) of an amount over the tasks of each group."""
    return np.bincount(problem.group, weights=amount, minlength=problem.n_groups).astype(np.float64)


@kernel(assign_group, can_host, allocates=False)
def keep_parts(
    instance: Instance, line: Timeline, sequence: Int, wanted: Int, starts: Int, neighbours: Int, weight: Int,
    work: Int, load: Int, pull: Int,
) -> int:  # fmt: skip
    """Assign each group to the device `wanted` (g,) if that can take it; return DONE or the group that no device takes.

    The others follow in the same sequence: each to the device with the largest weight of its edges to placed groups.
    `load` (m,) is zero at first, `pull` (m,) is scratch.
    """
    m = len(load)
    for g in sequence:
        d = line.home[g]
        if d < 0 and can_host(instance, line, g, wanted[g]):
            d = wanted[g]
            assign_group(instance, line, g, d)
        if d >= 0:
            load[d] += work[g, d]
    for g in sequence:
        if line.home[g] >= 0:
            continue
        pull[:] = 0
        for k in range(starts[g], starts[g + 1]):
            home = line.home[neighbours[k]]
            if home >= 0:
                pull[home] += weight[k]
        best, most, least = -1, -1, NEVER
        for d in range(m):
            if (pull[d] > most or (pull[d] == most and load[d] + work[g, d] < least)) and can_host(
                instance, line, g, d
            ):
                best, most, least = d, pull[d], load[d] + work[g, d]
        if best < 0:
            return int(g)
        assign_group(instance, line, g, best)
        load[best] += work[g, best]
    return DONE
