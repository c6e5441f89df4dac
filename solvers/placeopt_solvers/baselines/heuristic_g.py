"""Heuristic-G: the greedy placement of the TensorFlow white paper, each task on the device where it completes earliest.

M. Abadi et al., 2015, doi:10.48550/arXiv.1603.04467, section 3.2.1. This is the form that A. Carbonari, N. Kodirov,
M. Golub (2017, sections 1 and 3) evaluate as Heuristic-G: nodes in topological order, each on the device where it
completes first, transfers of its inputs included. On a graph it is the same as `mct` with `insertion=false`,
which comes from another field.

Departure from the papers: the white paper simulates the run and takes nodes as the simulation reaches them. Here the
order is `Problem.order`, breadth first.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, heuristic_info
from .._constructive.sequences import END, list_tasks


class HeuristicG(Constructive):
    name = "heuristic-g"
    info = heuristic_info(
        summary="topological order, each task where it completes earliest (TensorFlow white paper, 2015)",
        family="baselines",
        complexity="O((n + e) m)",
        citation=bibtex("abadi2016tensorflow"),
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        return lambda groups: list_tasks(problem, groups, problem.order, END)
