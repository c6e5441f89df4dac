"""Find installed solvers, built-in and third-party, by the entry point group `placeopt.solvers`.

A package adds a solver with

    [project.entry-points."placeopt.solvers"]
    my-solver = "my_package.my_module:MySolver"
"""

from __future__ import annotations

import tomllib
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from placeopt.errors import PlaceoptError, UnsupportedError, UsageError, alternatives, error_text, listing
from placeopt.model.problem import Problem
from placeopt.protocol import Info, Settings, Solver, unsupported

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


def solver_modules() -> list[str]:
    """Names of the modules of all installed solvers, sorted and each once."""
    return sorted({point.module for point in _entry_points().values()})


def default_solver(problem: Problem) -> str:
    """Name of the solver that runs where none is named: a fast heuristic for the problem."""
    if problem.pipeline is None:
        return "heft"
    return "auto" if problem.rules else "dpl"


def find_solver(name: str | Solver) -> Solver:
    """Load the solver of a name; only its own module is imported. A solver object is returned as it is.

    Raises a UsageError if the name is unknown, or its entry point cannot be loaded or names no solver.
    """
    if isinstance(name, type):
        raise UsageError(f"the solver is the class {name.__name__}; expected an object of it: {name.__name__}()")
    if not isinstance(name, str):
        missing = _missing(name)
        if not missing:
            return name
        raise UsageError(
            f"the solver is a {type(name).__name__} without {listing(missing)}; expected the name of a solver, or an "
            f"object with {listing(_PARTS)}"
        )
    point = _entry_points().get(name)
    if point is None:
        raise UsageError(f'unknown solver "{name}"{alternatives(name, solver_names(), 40)}')
    try:
        solver = point.load()()
    except (PlaceoptError, MemoryError):
        raise
    except Exception as error:  # the package belongs to a third party
        plain = isinstance(error, (ImportError, AttributeError))
        why = error if plain else error_text(error)
        raise UsageError(f'solver "{name}" ({point.value}) cannot be loaded: {why}') from error
    missing = _missing(solver)
    if missing:
        raise UsageError(f'solver "{name}" ({point.value}) has no {listing(missing)}; a solver has {listing(_PARTS)}')
    return cast(Solver, solver)


def origin_of(solver: Solver) -> str | None:
    """The package that a solver comes from, or its class if it has none; None for the solvers of placeopt."""
    kind = type(solver)
    top = kind.__module__.partition(".")[0]
    if top in ("placeopt", "placeopt_solvers"):
        return None
    point = _entry_points().get(solver.name)
    if point is None or point.dist is None or point.module.partition(".")[0] != top:
        return f"the class {kind.__module__}.{kind.__qualname__}"
    return f"the package {point.dist.name}"


_PARTS = ("name", "info", "settings_type", "solve")
"""What an object has that is a solver."""


def _missing(found: object) -> list[str]:
    """The parts that an object lacks to be a solver."""
    return [part for part in _PARTS if not hasattr(found, part)]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a solver or of a pass."""

    name: str
    type: str
    default: Any
    choices: list[Any]
    """The values that it may have; empty if any value of its type is allowed."""
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverInfo(Info):
    """What a solver is and can do, with its name and its settings."""

    name: str
    settings: tuple[Setting, ...]

    def __repr__(self) -> str:
        return f"<SolverInfo {self.name}: {self.summary}>"


def solver_info(name: str | Solver) -> SolverInfo:
    """What a solver is and can do: its guarantee, complexity, paper, settings, and what it supports.

    Raises
    ------
    UsageError
        If there is no such solver.
    """
    solver = find_solver(name)
    facts = {field.name: getattr(solver.info, field.name) for field in fields(Info)}
    return SolverInfo(**facts, name=solver.name, settings=settings_of(solver.settings_type))


def settings_of(kind: type[Settings]) -> tuple[Setting, ...]:
    """The settings of a solver or of a pass."""
    return tuple(
        Setting(
            name=key,
            type=getattr(field.annotation, "__name__", str(field.annotation)),
            default=field.default,
            choices=list(get_args(field.annotation)) if get_origin(field.annotation) is Literal else [],
            description=field.description or "",
        )
        for key, field in kind.model_fields.items()
    )


def solvers_for(problem: Problem) -> list[str]:
    """Names of the installed solvers that support this problem; packages that cannot be imported are skipped."""
    found = []
    for name in solver_names():
        with suppress(UsageError):
            if unsupported(find_solver(name).info, problem) is None:
                found.append(name)
    return found


def check_supported(solver: Solver, problem: Problem) -> None:
    """Raise an UnsupportedError, which names other solvers, if a solver does not support this problem."""
    missing = unsupported(solver.info, problem)
    if missing is not None:
        able = listing(solvers_for(problem), 20)
        raise UnsupportedError(f"{solver.name} does not support {missing}; solvers that support this problem: {able}")
