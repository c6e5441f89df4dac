"""Problems to train and to evaluate on: data sets by name, and problem files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from placeopt.errors import DocumentError, Issue, UsageError, alternatives
from placeopt.generate.giph.cases import CaseSet
from placeopt.generate.giph.sets import SETS
from placeopt.io.compiler import compile_document, document_of, load
from placeopt.io.files import StrPath
from placeopt.model.problem import Problem
from placeopt.passes.catalog import find_pass

SUFFIXES = (".yaml", ".yml", ".json")
"""Suffixes of problem files in a folder."""


class Cases:
    """The problems of a set, compiled when they are first read, after the passes of the experiment."""

    def __init__(self, cases: CaseSet) -> None:
        self._cases, self._pairs = cases, cases.pairs()
        self._compiled: dict[int, Problem] = {}

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: int, /) -> Problem:
        if index not in self._compiled:
            problem = compile_document(document_of(self._cases.document(*self._pairs[index])))
            for name in self._cases.passes:
                reduction = find_pass(name).apply(problem)
                problem = problem if reduction is None else reduction.problem
            self._compiled[index] = problem
        return self._compiled[index]

    def numbers_of_devices(self) -> set[int]:
        """Return the numbers of devices of all problems, without compiling them."""
        return {len(self._cases.networks[network]["devices"]) for _, network in self._pairs}


def numbers_of_devices(problems: Cases | Sequence[Problem]) -> set[int]:
    """Return the numbers of devices of problems."""
    if isinstance(problems, Cases):
        return problems.numbers_of_devices()
    return {problem.n_devices for problem in problems}


def set_cases(name: str) -> tuple[Cases, Cases]:
    """Return the problems of a data set to train and to evaluate on; none of them is a test problem.

    Raises a UsageError if the set is unknown.
    """
    if name not in SETS:
        raise UsageError(f'unknown data set "{name}"{alternatives(name, SETS)}')
    found = SETS[name]()
    return Cases(found.train), Cases(found.validation)


def file_problems(paths: Sequence[StrPath]) -> list[Problem]:
    """Load problem files, and all problem files of folders, sorted by name.

    Raises a DocumentError if a file is not valid, or a problem is a pipeline, which has no placement of one run; it
    lists every issue. Raises a UsageError if a folder has no problem file.
    """
    issues: list[Issue] = []
    found = []
    for file in [file for path in paths for file in _files(Path(path))]:
        try:
            problem = load(file)
        except DocumentError as error:
            issues += error.issues
            continue
        if problem.pipeline is not None:
            issues.append(Issue("is a pipeline; a policy is trained on problems of one run", ("pipeline",), str(file)))
        elif not problem.n_tasks:
            issues.append(Issue("has no tasks; a policy cannot be trained on it", ("tasks",), str(file)))
        found.append(problem)
    if issues:
        raise DocumentError(issues)
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    if not found:
        raise UsageError(f"{path} has no problem files; expected files that end in {', '.join(SUFFIXES)}")
    return found


def digest(*sets: Sequence[Problem]) -> str:
    """Return a hash of problems."""
    text = "\n\n".join("\n".join(problem.fingerprint() for problem in problems) for problems in sets)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
