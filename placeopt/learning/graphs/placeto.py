"""What Placeto observes, the rival of GiPH that places one task after the other.

R. Addanki, S. B. Venkatakrishnan, S. Gupta, H. Mao, M. Alizadeh: Placeto: Learning generalizable device placement
algorithms for distributed machine learning, 2019, arXiv:1906.08879; features as in Hu et al. 2023 (GiPH), appendix B.7.
An episode visits each task once, in random order, and chooses its device, which may be the current one. It has |V|
steps; a longer search then starts again from its first placement (section 5).

Where the paper of GiPH is not clear, as in its released code: the feature "average output data bytes" is the largest
output of a task.
"""

from __future__ import annotations

import numpy as np

from placeopt.errors import UsageError
from placeopt.learning.graphs.views import Observation, Relatives, View, scaled
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.policies.simulator import Run

FEATURES = 5
"""Mean duration, largest output, current device, whether the task is placed now, whether it was placed before."""


class PlacetoView(View):
    """Nodes are tasks, and a choice is a device for the next task of a random order."""

    def __init__(self, problem: Problem, device: Int, **rest: object) -> None:
        super().__init__(problem, device, **rest)  # type: ignore[arg-type]
        self.period = problem.n_tasks
        counts = np.maximum(problem.feasible.sum(axis=1), 1)
        output = np.zeros(problem.n_tasks)
        np.maximum.at(output, problem.edge_source, problem.payload.astype(np.float64))
        self._fixed = scaled(np.stack([problem.duration.sum(axis=1) / counts, output]))
        self._reachable = reachable(problem)
        self._order = np.empty(0, dtype=np.int64)
        self._none = np.zeros(problem.n_tasks, dtype=np.int64)

    def observe(self, run: Run) -> Observation:  # noqa: ARG002 - Placeto does not observe the execution
        problem, place = self.problem, self.moves % self.problem.n_tasks
        if place == 0 and len(self._order) != problem.n_tasks * (self.moves // problem.n_tasks + 1):
            self._order = np.concatenate((self._order, self.rng.permutation(problem.n_tasks)))
        task = int(self._order[self.moves])
        position = 2 * self.device / max(problem.n_devices - 1, 1) - 1
        now, done = np.zeros((2, problem.n_tasks))
        now[task] = 1.0
        done[self._order[self.moves - place : self.moves]] = 1.0
        nodes = np.stack([*self._fixed, position, now, done]).T.astype(np.float32)
        i, j = problem.edge_source, problem.edge_target
        before, after = self._reachable[:, task], self._reachable[task]
        beside = ~(before | after)
        beside[task] = False
        relatives = Relatives(*(np.flatnonzero(each) for each in (before, after, beside)))
        allowed = np.zeros(problem.n_devices, dtype=np.bool_)
        allowed[self.space.options(self.device, task)] = True
        edges = np.empty((len(i), 0), dtype=np.float32)
        return Observation(nodes, edges, i, j, self._none, self._none, allowed, task, relatives)

    def decode(self, choice: int) -> tuple[int, int]:
        return int(self._order[self.moves]), choice


def check_devices(trained: int, found: int) -> None:
    """Raise UsageError if a network for `trained` devices cannot place tasks on `found` devices."""
    if trained != found:
        raise UsageError(
            f"placeto was trained for {trained} devices, but the problem has {found}; train it on problems with {found}"
        )


def reachable(problem: Problem) -> Bool:
    """(n, n), whether a path leads from the task of the row to that of the column."""
    found = np.zeros((problem.n_tasks, problem.n_tasks), dtype=np.bool_)
    for i in problem.order[::-1].tolist():
        for j in problem.edge_target[problem.out_start[i] : problem.out_start[i + 1]].tolist():
            found[i] |= found[j]
            found[i, j] = True
    return found
