"""Sites: nodes with fast links between them, and slow links to all others."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np

from placeopt.model.arrays import Int
from placeopt.serving.problem import Serving

FASTER = 4
"""Links in a site are at least this many times as fast as those between sites."""


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """A division of the nodes."""

    of_node: Int
    """(v,) site of each node, numbered 0, 1, ..."""
    slowest: Int
    fastest: Int
    """(s, s) least and largest rate of a link from one site to another; 0 on the diagonal."""

    @property
    def number(self) -> int:
        """Number of sites."""
        return len(self.slowest)


def find_sites(problem: Serving) -> Sites:
    """The sites of a problem: one, unless its links fall into fast and slow ones, and the slow ones join fast parts.

    The border is the widest gap between two successive rates of links, as a ratio. Links that are faster than any node
    are alike.
    """
    useful = np.minimum(problem.link, int(problem.rate.max()))
    useful = np.minimum(useful, useful.T)
    off = ~np.eye(problem.n_nodes, dtype=np.bool_)
    rates = np.unique(np.maximum(useful[off], 1))
    if len(rates) > 1:
        ratios = rates[1:] / rates[:-1]
        widest = int(ratios.argmax())
        if ratios[widest] >= FASTER:
            fast = nx.from_numpy_array(off & (useful > rates[widest]))
            of_node = np.zeros(problem.n_nodes, dtype=np.int64)
            for site, nodes in enumerate(sorted(map(sorted, nx.connected_components(fast)))):
                of_node[nodes] = site
            return _sites(problem, of_node)
    return one_site(problem)


def one_site(problem: Serving) -> Sites:
    """All nodes in one site, regardless of their links."""
    return Sites(np.zeros(problem.n_nodes, dtype=np.int64), *np.zeros((2, 1, 1), dtype=np.int64))


def _sites(problem: Serving, of_node: Int) -> Sites:
    number = int(of_node.max()) + 1
    slowest, fastest = (np.zeros((number, number), dtype=np.int64) for _ in range(2))
    for g in range(number):
        for h in range(number):
            if g != h:
                links = problem.link[np.ix_(of_node == g, of_node == h)]
                slowest[g, h], fastest[g, h] = links.min(), links.max()
    return Sites(of_node, slowest, fastest)
