"""Every registered solver on every case of the suite that third parties run too."""

from __future__ import annotations

import pytest

from placeopt.registry import solver_names
from placeopt.solver import Termination
from placeopt.testing import CASES, Case, check_solver


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
@pytest.mark.parametrize("solver", solver_names())
def test_solver_keeps_its_promises(solver: str, case: Case) -> None:
    check_solver(solver, case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_some_solver_proves_every_case(case: Case) -> None:
    result = check_solver("cp-sat", case)
    assert result is not None, "cp-sat refuses the case"
    assert result.termination in (Termination.OPTIMAL, Termination.INFEASIBLE)
    assert result.objective == case.optimum
