"""DSC: dominant sequence clustering, with the clusters mapped to devices.

T. Yang, A. Gerasoulis, IEEE TPDS 1994, doi:10.1109/71.308533, sections 3 and 4. The paper's symbols: tlevel and blevel,
the longest path to a task and from it to the end, its own duration included; a task is free once all its producers are
examined, partially free once some are; its priority is tlevel + blevel (for a partially free task over the producers
examined). `placeopt_solvers.clustering._clusters` maps the clusters to devices; its departures hold here too.

Tasks are examined one by one, each time the free task with the highest priority:

- CT1: it joins the cluster of a producer if it then starts earlier than on a device of its own, after the last task of
  the cluster (the minimisation procedure).
- DSRW (dominant sequence reduction warranty), CT2: if a partially free task has a higher priority, and its tlevel
  could be reduced by joining the cluster of one of its producers now, then no task may join that cluster.

Departures:

- Only the cluster of the producer whose data arrives last can make a task start earlier, so only that is tried.
- The minimisation procedure also moves other producers there before the task, by decreasing arrival of their data,
  while that ends before their data would arrive. Only producers that are alone in their cluster and have no other
  consumer are moved, so that no other task is delayed. The paper orders them by tlevel and finds their number by binary
  search.
- Ties, which the paper leaves open, go by index; of producers whose data arrives together the first noted counts.
"""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import heuristic_info
from .._constructive.priorities import longest_paths_after
from ._clusters import Clustering, ClusterSolver, mean_weights


class Dsc(ClusterSolver):
    name = "dsc"
    info = heuristic_info(
        summary="clusters that shorten the dominant sequence, mapped to devices (Yang and Gerasoulis 1994)",
        family="clustering",
        clusters=True,
        complexity="O((n + e) log n + n m)",
        citation=bibtex("yang1994dsc"),
    )

    def clusters(self, problem: Problem) -> Clustering:
        return dominant_sequence_clusters(problem)


def dominant_sequence_clusters(problem: Problem) -> Clustering:
    """Return the clusters of DSC for an unlimited number of identical devices."""
    work, transfer = mean_weights(problem)
    blevel = work + longest_paths_after(problem, work, transfer)
    made, start = engine.dominant_sequence_clusters(native(problem), work, transfer, blevel, engine.current_stop())
    # Clusters that lost their only task are removed; the others keep their order.
    cluster = np.unique(made, return_inverse=True)[1].reshape(problem.n_tasks).astype(np.int64)
    return Clustering(cluster, start)
