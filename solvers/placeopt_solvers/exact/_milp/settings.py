"""Settings of milp."""

from __future__ import annotations

from typing import Literal

from placeopt.solver import Settings


class MilpSettings(Settings):
    """Settings of milp."""

    engine: Literal["highs", "scip"] = "highs"
    """The solver of the program; both come with OR-Tools."""
    relaxation: bool = False
    """Solve only the linear relaxation, for a bound."""
    hint: bool = True
    """Start from the best schedule of the heuristics."""
    symmetry: bool = True
    """Break the symmetry between interchangeable devices."""
    series: bool = True
    """Where single tasks cut the graph, solve the blocks between them first, each with the cuts on given devices."""
    max_size: int = 200_000
    """Columns, rows and products above which no program is built."""
