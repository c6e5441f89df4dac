"""METIS: the graph cut into as many parts as there are devices, with little data between them.

G. Karypis, V. Kumar: Multilevel k-way partitioning scheme for irregular graphs. Journal of Parallel and Distributed
Computing 48(1):96-129, 1998, doi:10.1006/jpdc.1997.1404; by way of PyMetis, an optional dependency. The way that
Celeritas compares with (H. Xu et al., 2022, section 6): edges lose their direction, so that the parts of a graph may
depend on each other both ways, which the model allows.

- A vertex is a colocation group. It weighs what is to be balanced: its duration in means over feasible devices, its
  memory, or the sum of its shares in both. An edge weighs its transfer in means over pairs of distinct devices.
- Part d is meant for the d-th device that may run anything, and gets its share: in proportion to the device's speed on
  what it may run, to its memory, or to the mean of both shares. METIS counts in whole numbers: weights are scaled to 30
  bits in all, and every edge weighs at least 1.
- METIS knows nothing of feasibility, separation and capacities, and keeps balance to a few per cent only. Groups that
  their device cannot take, the larger ones first to stay, go to the device that can to which most of their transfers
  lead; of equals to the one with the least load, then the lowest index.
- The tasks on each device are ordered as those of clusters are, see `placeopt_solvers.clustering._clusters`.

Up to eight parts are cut by recursive bisection, more by the k-way scheme, as METIS's manual advises; and by bisection
too where a group or a device's share is too large or small against the rest for METIS (see `_partition.parts`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int
from placeopt.model.levels import mean_durations, mean_transfers
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.construction import Built, answered
from .._constructive.groups import Groups
from .._constructive.placement_ops import may_take
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline
from ._clusters import cluster_steps, group_work, on_homes
from ._partition import Graph, make_graph, parts, shares

Balance = Literal["duration", "memory", "both"]


class MetisSettings(Settings):
    """Settings of metis."""

    balance: Balance = "duration"
    """What the parts have their shares of: duration, memory, or both added up."""


class Metis:
    """A k-way partition made by METIS; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "metis"
    info: ClassVar[Info] = Info(
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
    settings_type: ClassVar[type[MetisSettings]] = MetisSettings

    def solve(self, problem: Problem, options: Options, settings: MetisSettings) -> Answer:
        """METIS's partition on the problem's devices, or FAILED where repair finds no room.

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

        def build(groups: Groups) -> Built:
            nonlocal moved
            line = make_timeline(problem, groups)
            load = np.zeros(problem.n_devices, dtype=np.int64)
            scratch = np.empty(problem.n_devices, dtype=np.int64)
            run = keep_parts.select(cluster_steps(problem))
            stuck = run(
                make_case(problem, groups), line, sequence, wanted, graph.starts, graph.neighbours, graph.weight,
                work, load, scratch,
            )  # fmt: skip
            moved = int(np.count_nonzero(line.home != wanted))
            return Built(line, stuck) if stuck >= 0 else on_homes(problem, groups, line.home)

        return replace(answered(problem, build), stats={"moved": moved})


def group_graph(problem: Problem, balance: Balance) -> Graph:
    """The colocation groups as METIS sees them."""
    duration = group_sums(problem, mean_durations(problem))
    memory = group_sums(problem, problem.memory.astype(np.float64))
    size = {"duration": duration, "memory": memory, "both": shares(duration) + shares(memory)}[balance]
    low, high = problem.group[problem.edge_source], problem.group[problem.edge_target]
    return make_graph(low, high, mean_transfers(problem), size)


def meant_devices(problem: Problem, graph: Graph, balance: Balance, seed: int) -> Int:
    """(g,) the device that each group is meant for.

    Raises
    ------
    MissingExtraError
        If PyMetis is not installed.
    """
    share = _device_shares(problem, balance)
    devices = np.flatnonzero(problem.feasible.any(axis=0))
    if len(devices) == 0:  # nothing to run, or nothing that may run it
        devices = np.zeros(1, dtype=np.int64)
    return devices[parts(graph, share[devices], seed)]


def _device_shares(problem: Problem, balance: Balance) -> Float:
    """(m,) the share of everything that each device is to have; 0 for one that may run nothing."""
    allowed = problem.feasible
    usable: Float = np.asarray(allowed.any(axis=0), dtype=np.float64)
    work = mean_durations(problem)[:, None] * allowed
    # How much faster than the mean a device is on what it may run.
    took = problem.duration.sum(axis=0)
    speed = np.where(took > 0, work.sum(axis=0) / np.maximum(took, 1), 1.0) * usable
    asked = float(problem.memory.sum())
    room = np.where(problem.capacity == UNLIMITED, asked, np.minimum(problem.capacity, asked)) * usable
    if not room.any():
        room = usable
    return {"duration": shares(speed), "memory": shares(room), "both": (shares(speed) + shares(room)) / 2}[balance]


def group_sums(problem: Problem, amount: NDArray[np.generic]) -> Float:
    """(g,) what the tasks of each group come to."""
    return np.bincount(problem.group, weights=amount, minlength=problem.n_groups).astype(np.float64)


@kernel(may_take, allocates=False)
def keep_parts(
    case: Case,
    line: Timeline,
    sequence: Int,
    wanted: Int,
    starts: Int,
    neighbours: Int,
    weight: Int,
    work: Int,
    load: Int,
    pull: Int,
) -> int:
    """Give every group the home `wanted` (g,) where that can take it; -1, or the group that no device can take.

    The others follow, in the same sequence, to where the weight of their edges to groups placed pulls them most. `load`
    (m,) is zero and `pull` (m,) to scribble on.
    """
    m = len(load)
    for g in sequence:
        d = line.home[g]
        if d < 0 and may_take(case, line, g, wanted[g]):
            d = line.home[g] = wanted[g]
            line.room[d] -= case.memory[g]
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
            if (pull[d] > most or (pull[d] == most and load[d] + work[g, d] < least)) and may_take(case, line, g, d):
                best, most, least = d, pull[d], load[d] + work[g, d]
        if best < 0:
            stuck: int = g
            return stuck
        line.home[g] = best
        line.room[best] -= case.memory[g]
        load[best] += work[g, best]
    return -1
