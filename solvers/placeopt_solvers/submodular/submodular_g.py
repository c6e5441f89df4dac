"""Submodular-G: placement by maximising a function with diminishing returns, one pair of task and device at a time.

A. Carbonari, N. Kodirov, M. Golub, 2017, section 2.2, equations 1 to 3. Each round of standard greedy places the pair
of task and device that increases

    f(S) = sum over devices i of g(sum over tasks j on i of b_ij),    g(x) = sqrt(x)
    b_ij = (2 - (c_ij + placed_i) / cap_i) * pf_ij

most, where c_ij is the task's duration there, placed_i the total duration of tasks placed there before, and pf_ij one
more than the number of tasks parallel to j on other devices. The settings add what section 5 leaves for future work.
docs/submodular.md discusses whether f is submodular.

Departures from the paper:

- Where the paper is silent or contradicts itself, `placeopt.submodular.placement.model` lists seven readings.
- The paper judges a placement by its job completion time (equation 4; `carbonari_jct` in the statistics), in which no
  task waits for a transfer or a busy device. Here tasks are scheduled as by HEFT on the chosen devices (upward ranks,
  with insertion), and the schedule counts.
- Memory is kept by default (memory = step), and so are groups, separation and feasible devices. memory = unlimited is
  the paper's assumption.
- Ties go to the task, then to the device of the lowest index, as in the paper's example.
"""

from __future__ import annotations

from placeopt.protocol import RETIMED, Info
from placeopt.protocol.citations import bibtex

from ._submodular import SubmodularSolver


class SubmodularG(SubmodularSolver):
    name = "submodular-g"
    form = "inside"
    info = Info(
        summary="greedy maximisation, parallelism factor inside the sum (Carbonari et al. 2017, section 2.2)",
        family="submodular",
        rules=RETIMED,
        guarantee="none: the function is not submodular; 1/2 of its best value with parallelism=false load=false",
        complexity="O(n² m), lazily",
        citation=bibtex("carbonari2017submodular"),
    )
