"""Settings of milp."""

from __future__ import annotations

from typing import Literal

from ..._runs.exact_run import ExactSettings


class MilpSettings(ExactSettings):
    """Settings of milp."""

    engine: Literal["highs", "scip"] = "highs"
    """The solver of the program; both come with OR-Tools. Pipelines with long periods always use SCIP."""
    relaxation: bool = False
    """Solve only the linear relaxation, for a bound."""
    max_size: int = 200_000
    """Columns, rows and products above which no program is built."""
