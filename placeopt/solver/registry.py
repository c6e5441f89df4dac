"""Find installed solvers, built-in and third-party, by the entry point group `placeopt.solvers`.

A package adds a solver with

    [project.entry-points."placeopt.solvers"]
    my-solver = "my_package.my_module:MySolver"
"""

from __future__ import annotations

import tomllib
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path

from placeopt.errors import InternalError, UsageError, alternatives, listing
from placeopt.model.problem import Problem
from placeopt.solver import Solver, unsupported

GROUP = "placeopt.solvers"


@cache
def _entry_points() -> dict[str, EntryPoint]:
    points = {point.name: point for point in entry_points(group=GROUP)}
    try:
        distribution("placeopt")
    except PackageNotFoundError:  # a checkout that is not installed: pyproject.toml names the built-in solvers
        project = Path(__file__).parents[2] / "pyproject.toml"
        if project.is_file():
            ours = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"][GROUP]
            points = {name: EntryPoint(name, value, GROUP) for name, value in ours.items()} | points
    return dict(sorted(points.items()))


def solver_names() -> list[str]:
    """Sorted names of all installed solvers."""
    return list(_entry_points())


def find_solver(name: str) -> Solver:
    """Load the solver of a name; only its own module is imported.

    Raises
    ------
    UsageError
        If the name is unknown, or the solver's package cannot be imported.
    """
    if not isinstance(name, str):
        raise UsageError(
            f"expected the name of a solver, got {type(name).__name__}; known are {listing(solver_names(), 40)}"
        )
    point = _entry_points().get(name)
    if point is None:
        raise UsageError(f'unknown solver "{name}"{alternatives(name, solver_names(), 40)}')
    try:
        solver = point.load()()
    except (ImportError, AttributeError) as error:
        raise UsageError(f'solver "{name}" ({point.value}) cannot be loaded: {error}') from error
    if not isinstance(solver, Solver):
        raise InternalError(f'solver "{name}" ({point.value}) does not implement placeopt.solver.Solver')
    return solver


def solvers_for(problem: Problem) -> list[str]:
    """Names of the installed solvers that support this problem; packages that cannot be imported are skipped."""
    found = []
    for name in solver_names():
        with suppress(UsageError):
            if unsupported(find_solver(name).info, problem) is None:
                found.append(name)
    return found
