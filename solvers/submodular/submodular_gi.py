"""Submodular-GI: the improved model, with the parallelism factor outside the sum.

A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function maximization, 2017,
section 2.3, equation 5. As `submodular-g`, but each round places the pair for which the value itself is largest,

    f(S) = (sum over devices i of g(sum over tasks j on i of b_ij)) * pf_ij
    b_ij = 2 - (c_ij + placed_i) / cap_i

pf_ij being that of the pair placed last. As the sum grows with every task, the factor soon outweighs the rest: tasks
with many parallel ones elsewhere come first, and the sum decides between pairs with the same factor.

Departures: those of `placeopt_solvers.submodular.submodular_g`; and equation 5 has "- placed_i", with which a device
would be more attractive the more stands there: read as in equation 3.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import CARBONARI

from ._submodular import SubmodularSettings, answered


class SubmodularGi:
    """Greedy on the function with the parallelism factor outside the sum."""

    name: ClassVar[str] = "submodular-gi"
    info: ClassVar[Info] = Info(
        summary="greedy maximisation, parallelism factor outside the sum (Carbonari et al. 2017, section 2.3)",
        family="submodular",
        guarantee="none: the function is not submodular, and depends on the order of placement",
        complexity="O(n² m), lazily",
        citation=CARBONARI,
    )
    settings_type: ClassVar[type[Settings]] = SubmodularSettings

    def solve(self, problem: Problem, options: Options, settings: SubmodularSettings) -> Answer:
        """The schedule, or FAILED where it finds no placement that fits into memory."""
        return answered(problem, options, "outside", settings)
