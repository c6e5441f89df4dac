"""The exact solver: everything in one CP-SAT model, level by level of the objective.

Starts are shared by one optional interval per feasible device; a literal per pair of groups says
whether they are on different devices, and pays for transfers between them (`_cp_placement`, `_cp_timing`,
`_cp_moves`); memory is a knapsack or a cumulative resource (`_cp_memory`). CP-SAT is that of OR-Tools (L. Perron, F.
Didier, S. Gay: The CP-SAT-LP solver, CP 2023, doi:10.4230/LIPIcs.CP.2023.3). What makes it fast here: complete
hints, symmetry breaking between interchangeable devices, and heads, tails and bounds from `placeopt.bounding.quick`.

The incumbent is kept here, not in CP-SAT: whatever happens, the best schedule ever seen is returned, that of
the heuristics it starts from included. A lexicographic objective is solved level by level, each with the values
of those before it as limits and hinted with the best schedule so far.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import ALL_METRICS, Answer, Info, Options, Settings

from .._runs.solve_run import nothing_to_place
from ._cp_sat.run import CpSatSettings, solved


class CpSat:
    """Proves optimality and infeasibility; anytime."""

    name: ClassVar[str] = "cp-sat"
    info: ClassVar[Info] = Info(
        summary="exact: constraint programming with OR-Tools' CP-SAT",
        family="exact",
        guarantee="optimal",
        complexity="exponential; a model of O((n + e) m) literals and rows",
        citation="""@inproceedings{perron2023cpsat,
  author    = {Laurent Perron and Fr{\\'e}d{\\'e}ric Didier and Steven Gay},
  title     = {The {CP-SAT-LP} Solver},
  booktitle = {29th International Conference on Principles and Practice of Constraint Programming (CP 2023)},
  series    = {LIPIcs},
  volume    = {280},
  pages     = {3:1--3:2},
  year      = {2023},
  doi       = {10.4230/LIPIcs.CP.2023.3}
}""",
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type: ClassVar[type[Settings]] = CpSatSettings

    def solve(self, problem: Problem, options: Options, settings: CpSatSettings) -> Answer:
        """The best schedule found and the bound proved within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        return solved(problem, options, settings)
