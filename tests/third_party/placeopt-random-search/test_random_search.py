"""The conformance suite of placeopt on the solver of this package, as it is installed."""

import pytest

from placeopt.testing import CASES, check_solver


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_conformance(case):
    check_solver("random-search", case, samples=50)
