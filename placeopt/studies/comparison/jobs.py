"""Read problems and solvers of a comparison, and define the jobs: one per problem, solver and seed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from placeopt.errors import UsageError, listing, suggestion
from placeopt.io.document import collection_paused
from placeopt.io.files import StrPath
from placeopt.model.problem import Problem
from placeopt.orchestration.settings import read_settings
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.studies.comparison.records import Run

Choice = str | tuple[str, Mapping[str, Any]]
"""A solver: "name", "name:key=value,key=value", or a pair of name and settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Run):
    """A run with all data that another process needs for it.

    `packed` holds the problem (`placeopt.protocol.remote`). The process is killed `grace` seconds after `time_limit`,
    or after the `certify` seconds for a certificate; None if the run has none.
    `tag` marks the processes of a comparison (`placeopt.studies.comparison.supervisor`). Only the same `version` of
    placeopt runs it.
    """

    grace: float
    certify: float | None = None
    tag: str
    version: str
    packed: bytes = field(repr=False)


class Given(NamedTuple):
    """A problem of a comparison, with its path and the `best_known` of its file."""

    problem: Problem
    file: str | None
    best_known: Mapping[str, Any] | None


def read_problems(wanted: Problem | StrPath | Sequence[Problem | StrPath]) -> list[Given]:
    """Return every problem with its path; no problem, or the same problem twice, is a UsageError."""
    from placeopt.io.compiler import compile_document, document_of

    if isinstance(wanted, Problem | str | os.PathLike):
        wanted = [wanted]
    if not isinstance(wanted, Iterable):
        raise UsageError(f"compare takes problems or paths of problem files, got {type(wanted).__name__}")
    found: list[Given] = []
    places: dict[str, str] = {}
    for each in wanted:
        if isinstance(each, Problem):
            problem, file, known_best = each, "", None
        elif isinstance(each, str | os.PathLike):
            file = os.fspath(each)
            with collection_paused():
                document = document_of(file)
                problem = compile_document(document)
            known_best = document.data.get("best_known")
            del document  # larger than the problem
        else:
            raise UsageError(f"compare expects problems or paths of problem files, got {type(each).__name__}")
        place, known = file or problem.name or "a problem without a name", places.get(problem.fingerprint())
        if known is not None:
            raise UsageError(f"{known} and {place} are the same problem; expected different problems")
        places[problem.fingerprint()] = place
        found.append(Given(problem, file or None, known_best))
    if not found:
        raise UsageError("compare needs at least one problem")
    return found


def read_choices(wanted: str | Sequence[Choice]) -> list[tuple[str, dict[str, Any]]]:
    """Return solvers with their checked settings; "all" means all installed solvers.

    A text may name several: "heft,celeritas:range=100,strict_order=true,m-etf". Only solvers with settings are imported
    here; the others, which may be third-party code, only in the processes that run them. An unknown solver or setting,
    or the same solver twice, is a UsageError.
    """
    choices: list[tuple[str, Mapping[str, Any]]] = []
    if not isinstance(wanted, Iterable):
        raise UsageError(f"solvers is {wanted!r}; expected names, or pairs of a name and settings")
    for each in [wanted] if isinstance(wanted, str) else wanted:
        if not isinstance(each, str) and not (isinstance(each, tuple) and len(each) == 2):
            raise UsageError(f"solvers: {each!r} is not a solver; expected a name, or a name and settings")
        choices += _parsed(each) if isinstance(each, str) else [each]
    known = solver_names()
    found: list[tuple[str, dict[str, Any]]] = []
    for name, given in choices:
        if name not in known:
            near = suggestion(name, [*known, "all"]) or f"; known are {listing(known, 50)}"
            raise UsageError(f'unknown solver "{name}"{near}')
        settings: dict[str, Any] = {}
        if given:
            settings = read_settings(find_solver(name), given).model_dump(mode="json", exclude_unset=True)
        if (name, settings) not in found:
            found.append((name, settings))
        elif not given or "all" not in str(wanted):
            raise UsageError(f"solver {name} is listed twice with the same settings")
    if not found:
        raise UsageError("compare needs at least one solver; `all` means every installed one")
    return found


def _parsed(text: str) -> list[tuple[str, Mapping[str, str]]]:
    """Return the solvers that a text names; a piece with an equals sign but no colon is a further setting."""
    found: list[tuple[str, dict[str, str]]] = []
    for piece in (part.strip() for part in text.split(",")):
        name, colon, assignment = piece.partition(":")
        if piece == "all":
            found += [(each, {}) for each in solver_names()]
            continue
        if not colon and "=" in piece and found and found[-1][1]:
            assignment = piece
        elif name and "=" not in name:
            found.append((name, {}))
        else:
            raise UsageError(f'"{piece}" in --solvers "{text}" is not a solver; expected NAME or NAME:KEY=VALUE')
        if colon or assignment:
            key, equals, value = (part.strip() for part in assignment.partition("="))
            key = key.replace("-", "_")
            if not (key and equals):
                raise UsageError(f'"{piece}" in --solvers "{text}" is not a setting; expected NAME:KEY=VALUE,KEY=VALUE')
            if key in found[-1][1]:
                raise UsageError(f'--solvers "{text}": {key} of {found[-1][0]} is set twice')
            found[-1][1][key] = value
    return list(found)
