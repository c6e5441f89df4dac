"""LC: linear clustering, with the clusters mapped to devices.

S. J. Kim, J. C. Browne, International Conference on Parallel Processing (ICPP) 1988, volume 3, pages 1-8; as described
by A. Gerasoulis and T. Yang, Journal of Parallel and Distributed Computing 1992, doi:10.1016/0743-7315(92)90012-C. The
tasks on the longest path, durations and transfers added up, become a cluster and are removed from the graph with their
edges. This is repeated until no task is left. `placeopt_solvers.clustering._clusters` maps the clusters to devices; its
departures hold here too.

Departures: the paper weighs durations and transfers by factors of its own, which are 1 here. A path begins at a task
that has no producers left. Of paths of equal length the one whose tasks have the smallest indices comes first.
"""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import heuristic_info
from ._clusters import Clustering, ClusterSolver, mean_weights


class Lc(ClusterSolver):
    name = "lc"
    info = heuristic_info(
        summary="each longest path a cluster, mapped to devices (Kim and Browne 1988)",
        family="clustering",
        clusters=True,
        complexity="about O((n + e) log n + n m); in the worst case O(c (n + e)) for c clusters",
        citation=bibtex("kim1988linear"),
    )

    def clusters(self, problem: Problem) -> Clustering:
        return linear_clusters(problem)


def linear_clusters(problem: Problem) -> Clustering:
    """Return the linear clusters for an unlimited number of identical devices, longer paths first."""
    work, transfer = mean_weights(problem)
    cluster = engine.linear_clusters(native(problem), work, transfer, engine.current_stop())
    across = np.where(cluster[problem.edge_source] == cluster[problem.edge_target], 0, transfer)
    start = engine.longest_paths(native(problem), work.astype(np.float64), across.astype(np.float64), False)
    return Clustering(cluster, start.astype(np.int64))
