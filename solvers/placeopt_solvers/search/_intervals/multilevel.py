"""Multilevel search: coarsen the graph level by level, improve the coarsest schedule, and refine it level by level.

Pairs of tasks are fused along heavy edges, where a large transfer disappears if both ends share a device. A window of
the coarse graph then covers many tasks of the graph, and a pass moves whole clusters. The scheme is that of graph
partitioners (B. Hendrickson, R. Leland: A multilevel algorithm for partitioning graphs, Supercomputing 1995,
doi:10.1145/224170.224228); J. Herrmann et al. use it for acyclic partitions (SIAM J. Sci. Comput. 41, 2019,
doi:10.1137/18M1176865). Departures: what is improved at every level is the makespan of a schedule, not a cut. Under
port contention, levels are annealed; otherwise passes improve their windows.

A cycle that starts from a schedule fuses only tasks that share a device, so that the schedule exists on every level,
and the search goes on from it (V-cycles: C. Walshaw, Annals of Operations Research 131, 2004,
doi:10.1023/B:ANOR.0000039525.80601.15).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.building import by_first_appearance
from placeopt.model.levels import mean_durations, mean_transfers
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.passes.contraction import clusters, contraction, united
from placeopt.passes.protocol import Reduction

from ..._runs.validity import valid_forms
from ..._starts.warm_start import best_start, improved_start
from .sweep import Sweep

COARSEST = 200
"""Tasks at which coarsening ends."""

SHRINK = 0.9
"""Tasks of a level as a share of those of the level below, at most; otherwise coarsening ends."""

HEAVIEST = 8.0
"""Largest duration of a fused task, as a multiple of the mean over the tasks of the coarsest level."""

ROUND, LEAST = 0.25, 2.0
"""Share of the remaining work that a cycle takes, and its least seconds."""

ANNEALED = 2e-3
"""Maximum number of seconds of annealing per task of a level."""

LONGEST = 60.0
"""Seconds that a run without end plans at a time."""


def coarser(problem: Problem, device: Int | None, heaviest: float) -> Reduction | None:
    """Return the problem with pairs of tasks fused along heavy edges; None if few are left to fuse.

    An edge may be fused if its source has no other consumer or its target no other producer: no second path connects
    them then, and that remains so when other pairs are fused. With devices (n,), both ends must share one.
    """
    n = problem.n_tasks
    pairs = np.unique(problem.edge_source * n + problem.edge_target)
    lone = (np.bincount(pairs // n, minlength=n) == 1), (np.bincount(pairs % n, minlength=n) == 1)
    source, target = problem.edge_source, problem.edge_target
    work = mean_durations(problem)
    able = (lone[0][source] | lone[1][target]) & (work[source] + work[target] <= heaviest)
    if device is not None:
        able &= device[source] == device[target]
    edge = np.flatnonzero(able)
    edge = edge[np.lexsort((edge, -mean_transfers(problem)[edge]))]
    edge = edge[engine.greedy_matching(source[edge], target[edge], n)]
    source, target = source[edge], target[edge]
    groups = united(problem, problem.group[source], problem.group[target])
    group = groups.parent[problem.group]
    together = group[source] == group[target]
    label = np.arange(n)
    label[np.maximum(source, target)[together]] = np.minimum(source, target)[together]
    if n - int(together.sum()) > SHRINK * n:
        return None
    return contraction(problem, clusters(by_first_appearance(label), problem.order), group)


class Multilevel:
    """Improves a valid schedule by cycles of coarsening and refinement; `schedule` is the best one so far."""

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        seed: int,
        stopped: Callable[[], bool],
        on_better: Callable[[Schedule], object],
        workers: int = 1,
    ) -> None:
        self.problem, self.schedule, self.span = problem, schedule, makespan(problem, schedule)
        self.seed, self.workers = seed, workers
        self.stopped, self.on_better = stopped, on_better
        self.cycles = 0
        self._done = 0  # windows of earlier sweeps
        self._sweep: Sweep | None = None

    @property
    def tried(self) -> int:
        """Windows so far."""
        return self._done + (0 if self._sweep is None else self._sweep.tried)

    def run(self, seconds: float, bound: float) -> None:
        """Continue for about `seconds` of work. The first cycle fuses tasks of different devices, too."""
        left = min(seconds, LONGEST)
        while left > 0 and not self.stopped() and self.span > bound:
            share = max(ROUND * left, min(left, LEAST))
            self.cycle(share, bound)
            left -= share
            if seconds == float("inf"):
                left = LONGEST

    def cycle(self, seconds: float, bound: float) -> None:
        """Coarsen, and improve the schedule on every level."""
        device = None if self.cycles == 0 else self.schedule.device
        self.cycles += 1
        mean = float(mean_durations(self.problem).sum()) / COARSEST
        levels: list[Reduction] = []
        problem, schedule = self.problem, self.schedule
        while problem.n_tasks > COARSEST:
            level = coarser(problem, device, HEAVIEST * mean)
            if level is None:
                break
            levels.append(level)
            problem = level.problem
            if device is not None:
                projected = level.project(schedule)
                assert projected is not None, "clusters lie on one device"
                schedule, device = projected, projected.device
        if device is None:
            started = best_start(problem, None, True)
            if started is None:
                return
            schedule = started
        tasks = np.array([self.problem.n_tasks, *(level.problem.n_tasks for level in levels)], dtype=float)
        for depth in range(len(levels), -1, -1):
            problem = levels[depth - 1].problem if depth else self.problem
            schedule = self._improved(problem, schedule, seconds * tasks[depth] / tasks.sum(), bound)
            found = schedule if depth == 0 else levels[depth - 1].restore(schedule)
            below = self.problem if depth <= 1 else levels[depth - 2].problem
            forms = list(valid_forms(below, found))
            if not forms:
                return
            schedule = min(forms, key=lambda each: makespan(below, each))
        if makespan(self.problem, schedule) < self.span:
            self.schedule, self.span = schedule, makespan(self.problem, schedule)
            self.on_better(schedule)

    def _improved(self, problem: Problem, schedule: Schedule, seconds: float, bound: float) -> Schedule:
        """Return an improved schedule of a level. Windows ignore ports, so under contention the level is annealed."""
        seed = self.seed + 31 * self.cycles
        if problem.contends:
            seconds = min(seconds, ANNEALED * problem.n_tasks)
            better = improved_start(problem, schedule, seconds, seed, self.stopped, enough=bound)
            self._done += 1
            return schedule if better is None else better
        self._sweep = sweep = Sweep(problem, schedule, seed, self.stopped, lambda _: None, self.workers)
        sweep.run(seconds, bound)
        self._done, self._sweep = self.tried, None
        return sweep.state.schedule
