"""Repeated runs of one placement with random durations and transfer times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from placeopt.errors import UsageError, counted
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, edge_transfers
from placeopt.model.units import is_number, is_whole
from placeopt.simulation.run import Discipline, prepared_run

MOST_RUNS = 10_000_000
"""Maximum number of runs: their makespans take 80 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyRuns:
    """Repeated runs of one placement.

    Attributes
    ----------
    makespans
        (runs,) int64 ticks, in the order of the runs.
    late
        Number of runs in which a task misses its deadline.
    """

    makespans: Int
    late: int = 0

    def __post_init__(self) -> None:
        self.makespans.flags.writeable = False

    def __repr__(self) -> str:
        text = counted(len(self.makespans), "run")
        if len(self.makespans):
            text += f", makespan {self.mean:.1f} ticks on average, at most {self.makespans.max()}"
        return f"<NoisyRuns: {text}>"

    @property
    def mean(self) -> float:
        """Mean makespan in ticks."""
        return float(self.makespans.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the makespan in ticks (population: divided by the number of runs)."""
        return float(self.makespans.std())

    def quantile(self, q: float) -> float:
        """Makespan in ticks that a share `q` of the runs does not exceed, interpolated between runs."""
        if not is_number(q) or not 0 <= q <= 1:
            raise UsageError(f"q: {q} is not a share; expected a number from 0 to 1")
        return float(np.quantile(self.makespans, q))


def simulate_noisy(
    problem: Problem,
    device: Schedule | Sequence[int] | Int,
    *,
    noise: float,
    runs: int,
    seed: int,
    discipline: Discipline | None = None,
    priority: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> NoisyRuns:
    """Return the makespans of `runs` executions with random durations and transfer times.

    A task or transfer of w ticks takes a time uniform in [w (1 - noise), w (1 + noise)], drawn independently and
    rounded to the nearest tick (GiPH, Hu et al. 2023, appendix B.5). Release times do not vary. Draws come from NumPy's
    default generator, run after run, tasks first, then transfers by edge: a seed gives the same numbers on every
    machine. Other arguments as for `simulate`.

    Raises
    ------
    UsageError
        As in `simulate`; also if `noise` is not in [0, 1), `runs` is not in [1, MOST_RUNS], or `seed` is negative.
    """
    if not is_number(noise) or not 0 <= noise < 1:
        raise UsageError(f"noise: {noise} is out of range; expected a share from 0 to less than 1")
    if not is_whole(runs) or not 1 <= runs <= MOST_RUNS:
        raise UsageError(f"runs: {runs} is out of range; expected a whole number from 1 to {MOST_RUNS:,}")
    if not is_whole(seed) or seed < 0:
        raise UsageError(f"seed: {seed} is out of range; expected a whole number, 0 or more")
    run = prepared_run("simulate_noisy", problem, device, discipline, priority, order)
    representative = edge_transfers(problem, run.device)
    remote = np.flatnonzero(representative >= 0)
    drawn, draw = np.unique(representative[remote], return_inverse=True)
    n = problem.n_tasks
    task_mean, edge_ticks = run.simulation.task_ticks.copy(), run.simulation.edge_ticks.copy()
    edge_mean = edge_ticks[remote]
    generator = np.random.default_rng(seed)
    makespans, late = np.empty(runs, dtype=np.int64), 0
    due = np.flatnonzero(problem.deadline != UNLIMITED)
    for index in range(runs):
        share = noise * (2 * generator.random(n + len(drawn)) - 1)
        # Round the difference, not the sum: floats cannot represent every number of ticks.
        task_ticks = task_mean + np.rint(task_mean * share[:n]).astype(np.int64)
        edge_ticks[remote] = edge_mean + np.rint(edge_mean * share[n:][draw]).astype(np.int64)
        run.simulation.set_ticks(task_ticks, edge_ticks)
        makespans[index] = run.execute()
        late += bool((run.simulation.start[due] + task_ticks[due] > problem.deadline[due]).any())
    return NoisyRuns(makespans, late)
