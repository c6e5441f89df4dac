"""Submodular-GI: the improved model, with the parallelism factor outside the sum.

A. Carbonari, N. Kodirov, M. Golub, 2017, section 2.3, equation 5. As `submodular-g`, but each round places the pair
with the largest value itself,

    f(S) = (sum over devices i of g(sum over tasks j on i of b_ij)) * pf_ij
    b_ij = 2 - (c_ij + placed_i) / cap_i

where pf_ij is that of the pair placed last. The sum grows with every task, so the factor soon dominates: tasks with
many parallel tasks on other devices come first, and the sum decides between pairs with the same factor.

Departures: those of `placeopt_solvers.submodular.submodular_g`. Equation 5 has "- placed_i", which would make a device
more attractive the more tasks it has; it is read as in equation 3.
"""

from __future__ import annotations

from placeopt.protocol import RETIMED, Info
from placeopt.protocol.citations import bibtex

from ._submodular import SubmodularSolver


class SubmodularGi(SubmodularSolver):
    name = "submodular-gi"
    form = "outside"
    info = Info(
        summary="greedy maximisation, parallelism factor outside the sum (Carbonari et al. 2017, section 2.3)",
        family="submodular",
        rules=RETIMED,
        guarantee="none: the function is not submodular, and its value depends on the order",
        complexity="O(n² m), lazily",
        citation=bibtex("carbonari2017submodular"),
    )
