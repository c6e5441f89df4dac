"""Problems and denominators of GiPH's evaluation, shared by the benchmarks of search policies.

The problems are drawn from the test sets of `placeopt.generate.giph` (docs/learned.md): those of GiPH's released
code, bit for bit, and the models of its deep learning graphs and of its case study. The temperatures of the annealing
policy were chosen on training sets.

The SLR of the paper (section 5) divides a makespan by the longest path through the graph at the least durations. The
released code divides by the shortest path instead, with which all SLRs are about six times as large.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

import placeopt as po
from placeopt.generate.giph.sets import case_set, sampled
from placeopt.model.metrics import critical_path
from placeopt.model.problem import Problem
from placeopt.passes import apply_passes

TITLES = {
    "giph-single": "single network",
    "giph-multiple": "10 networks, released split",
    "giph-unseen": "10 unseen networks",
    "giph-sizes": "15 to 24 devices",
    "enas": "deep learning graphs",
    "traffic": "sensor fusion",
}
"""The sets in titles of tables and figures."""

DENOMINATORS = ("longest", "shortest")

_SEED = 1
"""Seed of the draws from a set."""


@cache
def problems(name: str, count: int, split: str = "test") -> tuple[Problem, ...]:
    """Problems drawn from a set, after the passes of the experiment."""
    cases = case_set(name, split)
    found = []
    for pair in sampled(cases, min(count, len(cases.pairs())), _SEED):
        problem = po.compile(cases.document(*pair))
        found.append(apply_passes(problem, cases.passes).problem if cases.passes else problem)
    return tuple(found)


def denominator(problem: Problem, path: str = "longest") -> int:
    """Ticks of the longest or the shortest path from an entry to an exit at the least durations."""
    if path == "longest":
        return critical_path(problem)
    least = np.where(problem.feasible, problem.duration, problem.duration.max(initial=0)).min(axis=1)
    end = least.copy()
    for task in problem.order.tolist():
        edges = problem.in_edge[problem.in_start[task] : problem.in_start[task + 1]]
        if len(edges):
            end[task] += end[problem.edge_source[edges]].min()
    exits = np.diff(problem.out_start) == 0
    return int(end[exits].min())


def student(count: int) -> float:
    """The 0.975 quantile of Student's distribution for this number of values, at least two; 1.96 from 100 on."""
    if count <= 3:
        return {2: 12.706, 3: 4.303}[count]
    if count >= 100:
        return 1.96
    z, freedom = 1.96, count - 1  # Cornish and Fisher: the error is below 1 % from three degrees of freedom on
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis and the half width of its 95 % confidence interval."""
    return values.mean(axis=0), student(len(values)) * values.std(axis=0, ddof=1) / math.sqrt(len(values))
