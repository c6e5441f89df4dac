"""GDL: generalized dynamic level, list scheduling by levels that change as the devices fill.

G. C. Sih, E. A. Lee, IEEE TPDS 1993, doi:10.1109/71.207593. The paper's symbols: E(i, p) the duration of node i on
processor p, E*(i) its adjusted median over processors; SL(i) the static level, the longest path to an exit in E* alone;
DA and TF the arrival of data and the time at which the processor is free; D(i) the descendant to which i sends most
data.

    DL1(i, p) = SL(i) - max(DA(i, p), TF(p)) + Delta(i, p),    Delta(i, p) = E*(i) - E(i, p)
    DL2(i, p) = DL1(i, p) + DC(i, p),    DC(i, p) = E*(D(i)) - min(E(D(i), p), F(i, p))
    F(i, p)   = min over q other than p of (transfer from p to q + E(D(i), q))
    C(i)      = DL2 of its preferred processor, where it is greatest, less the greatest DL2 of the others
    GDL(i)    = DL2(i, preferred) + C(i)

The node with the greatest GDL goes to its preferred processor, after all tasks there. A level changes only when its
device takes a task. So each node's best two devices are stored, and recomputed only when one of them took a task.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- The paper schedules transfers on the links of an interconnection network. Here transfers take time, and ports if there
  is port contention.
- E* is the lower median over the devices that may run the task, such that all levels are whole ticks.
- A node that only one device can take has C = 0, an exit node DC = 0. If several descendants receive most data, D is
  the one with the lowest index.
"""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, filled, heuristic_info
from .._constructive.priorities import longest_paths_after


class Gdl(Constructive):
    name = "gdl"
    info = heuristic_info(
        summary="list scheduling by generalized dynamic levels (Sih and Lee 1993)",
        family="ready lists",
        complexity="O(n m² + e m + n w) for w tasks ready at once, and the levels that change",
        citation=bibtex("sih1993dynamic"),
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        median = adjusted_medians(problem)
        level = median + longest_paths_after(problem, median, np.zeros(problem.n_edges, dtype=np.int64))
        heaviest = heaviest_edges(problem)

        return lambda groups: filled(problem, groups, engine.place_by_level, median, level, heaviest, insertion=False)


def adjusted_medians(problem: Problem) -> Int:
    """Return E* (n,): the lower median of each task's durations over feasible devices; 0 for a task without any."""
    count = problem.feasible.sum(axis=1)
    ticks = np.sort(np.where(problem.feasible, problem.duration, UNLIMITED), axis=1)
    middle = ticks[np.arange(problem.n_tasks), np.maximum(count - 1, 0) // 2] if problem.n_devices else count
    return np.where(count == 0, 0, middle)


def heaviest_edges(problem: Problem) -> Int:
    """Return each task's out-edge (n,) with the largest payload, the first of equals; -1 for exits."""
    heaviest = np.full(problem.n_tasks, -1, dtype=np.int64)
    # The last edge written for a task stays: edges are sorted by payload, equal ones by falling index.
    by_size = np.lexsort((-np.arange(problem.n_edges), problem.payload))
    heaviest[problem.edge_source[by_size]] = by_size
    return heaviest
