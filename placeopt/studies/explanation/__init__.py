"""Infeasibility that explains itself: which lines of a spec cannot hold together, and what would mend that.

    explanation = po.explain("problems/mine.yaml", time_limit=60)
    for member in explanation.members:
        print(member.place, member.text, member.mend)

A first core comes from CP-SAT's assumption literals (`_model`), a deletion filter makes it minimal (`filter`), with
schedules that the verifier accepts as witnesses that each member is needed; then each member is changed as little as
makes the rest feasible (`mending`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from placeopt.errors import DocumentError, Issue, SpecError, UsageError, counted, path_text, visible
from placeopt.io.compiler import begin_compilation, document_of
from placeopt.io.document import Document, Files, collection_paused, read_document
from placeopt.io.files import StrPath
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Clock
from placeopt.solver.registry import find_solver
from placeopt.solving.settings import make_options
from placeopt.studies.explanation.constraints import Kind, System
from placeopt.studies.explanation.filter import shrink
from placeopt.studies.explanation.mending import Mend, mend
from placeopt.studies.explanation.oracle import Oracle

Status = Literal["feasible", "infeasible", "undecided"]

_FILTERING = 0.7
"""Part of the time limit after which the set is no longer made smaller, so that there is time to mend it."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A constraint of an infeasible set.

    Attributes
    ----------
    place
        File, line, column and path of the line, as an issue without a message.
    text
        What it demands, as a sentence.
    needed
        Whether the others of the set are known to hold together without it.
    mend
        The least change of this line alone that mends the problem; None if none was found in time.
    """

    kind: Kind
    place: Issue
    text: str
    needed: bool
    mend: Mend | None

    def to_dict(self) -> dict[str, Any]:
        """The member as plain data."""
        mending = self.mend
        return {
            "kind": self.kind,
            "path": path_text(self.place.path),
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "text": self.text,
            "needed": self.needed,
            "mend": None
            if mending is None
            else {
                "text": mending.text,
                "amount": mending.amount,
                "least": mending.least,
                "devices": list(mending.devices),
                "whole": mending.whole,
            },
        }


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Whether a problem is feasible, and if it is not, which lines cannot hold together.

    Attributes
    ----------
    members
        The lines, in file order; empty unless infeasible.
    minimal
        Whether every one of them is needed; None unless infeasible.
    reason
        Why they cannot hold together.
    schedule
        A verified schedule, if feasible.
    seconds
        Wall time, without that of reading the problem.
    """

    problem: Problem
    status: Status
    members: tuple[Member, ...] = ()
    minimal: bool | None = None
    reason: str = ""
    schedule: Schedule | None = None
    seconds: float = 0.0

    def __repr__(self) -> str:
        lines = f", {counted(len(self.members), 'line')}" if self.members else ""
        return f"<Explanation of {visible(self.problem.name) or 'problem'}: {self.status}{lines}>"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        return {
            "problem": self.problem.name,
            "fingerprint": self.problem.fingerprint(),
            "status": self.status,
            "minimal": self.minimal,
            "reason": self.reason,
            "members": [member.to_dict() for member in self.members],
            "resolution": float(self.problem.resolution),
            "wall_time": self.seconds,
        }


def explain(
    spec: StrPath | Mapping[str, Any],
    *,
    time_limit: float = 60.0,
    solver: str = "cp-sat",
    seed: int = 0,
    workers: int | None = None,
    files: Files | None = None,
    on_progress: Callable[[str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Explanation:
    """Why a problem has no schedule: lines of its spec that cannot hold together, and what would mend each.

    Parameters
    ----------
    spec
        A problem file, or its document as plain data (which has no lines).
    time_limit
        Seconds once the problem is read. A set that could not be made minimal by then is reported as it is.
    solver
        The exact solver that decides what counting and small models cannot.
    files
        Which files the spec may name, as in `placeopt.load`. By default "any" if the spec is a file, "none" if it was
        made in code.
    on_progress
        Called with a line for people whenever another stage begins.
    should_stop
        Asked now and then; once true, what is known by then is returned.

    Raises
    ------
    SpecError
        If the spec is wrong, or contradicts itself in a way that the compiler sees; lists every issue.
    UsageError
        If an argument makes no sense.
    """
    if time_limit is None:
        raise UsageError("time_limit is None; expected a positive number of seconds")
    make_options(time_limit=time_limit, seed=seed, workers=workers)
    find_solver(solver)
    tell = on_progress or (lambda _line: None)
    with collection_paused():
        system = System(begin_compilation(_document(spec), files=files))
    clock = Clock(time_limit)
    oracle = Oracle(
        system, clock, solver=solver, seed=seed, workers=workers, should_stop=should_stop or (lambda: False)
    )  # fmt: skip
    tell("looking for a schedule, or a proof that there is none")
    first = oracle.decide(range(len(system.constraints)))
    if first.feasible is not False:
        status: Status = "feasible" if first.feasible else "undecided"
        return Explanation(system.problem, status, schedule=first.schedule, seconds=clock.elapsed)
    tell("infeasible; looking for the lines that cannot hold together")
    clock.limit = _FILTERING * time_limit
    core = shrink(system, oracle, first)
    clock.limit = time_limit
    members = []
    for done, number in enumerate(core.members):
        tell(f"{len(core.members)} lines cannot hold together; looking for what would mend them: {done} done")
        constraint, needed = system.constraints[number], core.needed.get(number)
        mending = None if needed is None else mend(system, oracle, number, core.members, needed)
        members.append(Member(constraint.kind, constraint.place, constraint.text, needed is not None, mending))
    return Explanation(
        system.problem,
        "infeasible",
        tuple(sorted(members, key=_file_order)),
        core.minimal,
        core.reason,
        seconds=clock.elapsed,
    )


def _document(spec: StrPath | Mapping[str, Any]) -> Document:
    if isinstance(spec, Mapping):
        return document_of(spec)
    if not isinstance(spec, str | os.PathLike):
        raise UsageError(f"explain takes the path of a problem file or its document, got {type(spec).__name__}")
    try:
        return read_document(spec)
    except DocumentError as error:
        raise SpecError(error.issues) from None


def _file_order(member: Member) -> tuple[str, int, int]:
    place = member.place
    return place.file or "", place.line or 0, place.column or 0
