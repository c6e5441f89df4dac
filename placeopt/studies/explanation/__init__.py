"""Explain infeasible problems: find lines of a spec that conflict, and a change of each that resolves the conflict.

    explanation = po.explain("problems/mine.yaml", time_limit=60)
    for member in explanation.members:
        print(member.place, member.text, member.repair)

CP-SAT's assumption literals give a first core (`_model`). A deletion filter makes it minimal (`filter`); for each
member, a verified schedule without it shows that it is needed. Then the smallest change of each member that makes the
problem feasible is computed (`repairs`). A certificate of the problem with these lines alone is checked
(`placeopt.verifier.certificates`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from placeopt.bounding.quick import Bound
from placeopt.errors import InternalError, Issue, UsageError, counted, path_text, visible
from placeopt.io.compiler import begin_compilation, document_of
from placeopt.io.document import Files, collection_paused
from placeopt.io.files import StrPath
from placeopt.model.building import simplest
from placeopt.model.period import period
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.settings import make_options
from placeopt.protocol import Clock
from placeopt.protocol.registry import find_solver
from placeopt.proving.certificates import infeasibility
from placeopt.proving.portfolio import bounds
from placeopt.studies.explanation.constraints import Kind, System
from placeopt.studies.explanation.oracle import Oracle, Verdict
from placeopt.studies.explanation.repairs import Repair, repair_of
from placeopt.verifier.certificates import Checked, check_certificate

Status = Literal["feasible", "infeasible", "undecided"]

_BOUNDING = 0.2
"""Share of the time limit for the lower bound of a feasible pipeline."""

_FILTERING = 0.7
"""Share of the time limit for making the set smaller; the rest is for mending it."""

_CERTIFYING = 0.5
"""Share of the time that is left for a certificate of the conflict."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A constraint of a conflict.

    Attributes
    ----------
    place
        File, line, column and path of the constraint, as an issue without a message.
    text
        The constraint as a sentence.
    needed
        Whether the other members are known to be satisfiable without it.
    repair
        The smallest change of this line alone that makes the problem feasible; None if none was found in time.
    """

    kind: Kind
    place: Issue
    text: str
    needed: bool
    repair: Repair | None

    def to_dict(self) -> dict[str, Any]:
        """Return the member as plain data."""
        return {
            "kind": self.kind,
            "path": path_text(self.place.path),
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "text": self.text,
            "needed": self.needed,
            "repair": None if self.repair is None else self.repair.to_dict(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Whether a problem is feasible, and if not, which lines conflict.

    Attributes
    ----------
    members
        The conflicting lines in file order; empty unless infeasible.
    minimal
        Whether every member is needed; None unless infeasible.
    reason
        Why they conflict.
    schedule
        A verified schedule, if feasible.
    bound
        The best lower bound of the period found, if the problem is a feasible pipeline: why no smaller one is possible.
    checked
        What a certificate proves that the problem with these lines alone has no schedule; None unless infeasible.
    seconds
        Wall time without reading the problem.
    """

    problem: Problem
    status: Status
    members: tuple[Member, ...] = ()
    minimal: bool | None = None
    reason: str = ""
    schedule: Schedule | None = None
    bound: Bound | None = None
    checked: Checked | None = None
    seconds: float = 0.0

    def __repr__(self) -> str:
        lines = f", {counted(len(self.members), 'line')}" if self.members else ""
        return f"<Explanation of {visible(self.problem.name) or 'problem'}: {self.status}{lines}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data, ready for JSON."""
        return {
            "problem": self.problem.name,
            "fingerprint": self.problem.fingerprint(),
            "status": self.status,
            "minimal": self.minimal,
            "reason": self.reason,
            "members": [member.to_dict() for member in self.members],
            "bound": None
            if self.bound is None
            else {"name": self.bound.name, "value": int(self.bound.value), "explanation": self.bound.explanation},
            "certificate": None if self.checked is None else self.checked.to_dict(),
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
    """Find lines of an infeasible spec that conflict, and for each line a change that makes the problem feasible.

    Parameters
    ----------
    spec
        A problem file, or its document as plain data (which has no line numbers).
    time_limit
        Seconds after the problem is read. A set that is not minimal by then is reported as it is.
    solver
        The exact solver for questions that counting and small models cannot decide.
    files
        Which files the spec may name, as in `placeopt.load`. By default "any" if the spec is a file, "none" if it was
        made in code.
    on_progress
        Called with a line of text at the start of each stage.
    should_stop
        Called regularly; once it returns true, the results so far are returned.

    Raises
    ------
    SpecError
        If the spec is wrong, or contains a contradiction that the compiler finds; lists every issue.
    UsageError
        If an argument is invalid.
    """
    if time_limit is None:
        raise UsageError("time_limit is None; expected a positive number of seconds")
    make_options(time_limit=time_limit, seed=seed, workers=workers)
    find_solver(solver)
    report = on_progress or (lambda _line: None)
    with collection_paused():
        system = System(begin_compilation(document_of(spec), files=files))
    clock = Clock(time_limit)
    oracle = Oracle(
        system, clock, solver=solver, seed=seed, workers=workers, should_stop=should_stop or (lambda: False)
    )  # fmt: skip
    report("searching for a schedule, or a proof that none exists")
    first = oracle.decide(range(len(system.constraints)))
    if first.feasible is not False:
        status: Status = "feasible" if first.feasible else "undecided"
        schedule, bound = None if first.schedule is None else system.of_file(first.schedule), None
        if schedule is not None and system.stated.pipeline is not None:
            report("feasible; searching for the reason why the period cannot be smaller")
            bound = _least_period(system.stated, oracle, schedule, workers)
        return Explanation(system.stated, status, schedule=schedule, bound=bound, seconds=clock.elapsed)
    report("infeasible; searching for the lines that conflict")
    clock.limit = _FILTERING * time_limit
    core = shrink(system, oracle, first)
    clock.limit = time_limit
    members = []
    for done, number in enumerate(core.members):
        report(f"{len(core.members)} lines conflict; searching for changes that resolve it: {done} done")
        constraint, needed = system.constraints[number], core.needed.get(number)
        repair = None if needed is None else repair_of(system, oracle, number, core.members, needed)
        members.append(Member(constraint.kind, constraint.place, constraint.text, needed is not None, repair))
    return Explanation(
        system.stated,
        "infeasible",
        tuple(sorted(members, key=_file_order)),
        core.minimal,
        core.reason,
        checked=_checked(system.relaxed(core.members), oracle, solver),
        seconds=clock.elapsed,
    )


def _checked(problem: Problem, oracle: Oracle, solver: str) -> Checked:
    """Return what a certificate proves about the problem with the conflicting lines alone."""
    limit = oracle.seconds(_CERTIFYING)
    made = infeasibility(problem, solver, time_limit=limit, should_stop=lambda: oracle.over)
    return check_certificate(problem, made)


def _least_period(problem: Problem, oracle: Oracle, schedule: Schedule, workers: int | None) -> Bound:
    """Return the best lower bound of the period of a pipeline."""
    alone = simplest(problem)
    found = bounds(
        alone,
        time_limit=oracle.seconds(_BOUNDING),
        workers=workers,
        known=period(alone, schedule),
        should_stop=lambda: oracle.over,
    )
    return found[0]


def _file_order(member: Member) -> tuple[str, int, int]:
    place = member.place
    return place.file or "", place.line or 0, place.column or 0


# The order of deletion: capacities and deadlines come last, since they explain more than labels of single tasks.
# Addresses come first, so that a conflict of counted bytes is stated as one.
_LAST: tuple[Kind, ...] = (
    "addresses", "release", "unavailable", "separate", "colocate", "requires", "team", "devices", "pin", "placement",
    "in_flight", "stages", "deadline", "limit", "resource", "cores", "budget", "pool", "memory",
)  # fmt: skip
_SHARE = 0.25
"""Share of the remaining time that one question may use."""


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """Conflicting constraints.

    `needed` maps each member to the verdict that the others are satisfiable without it; a member without a verdict may
    be superfluous (the time limit was reached). `reason` says why they conflict.
    """

    members: tuple[int, ...]
    needed: dict[int, Verdict]
    reason: str

    @property
    def minimal(self) -> bool:
        """Whether every member is known to be needed."""
        return len(self.needed) == len(self.members)


def shrink(system: System, oracle: Oracle, verdict: Verdict) -> Core:
    """Return a minimal subset of the core of a verdict, as far as time allows.

    The deletion filter of J. W. Chinneck and E. W. Dravnieks, "Locating minimal infeasible constraint sets in linear
    programs", ORSA Journal on Computing 3 (1991), doi:10.1287/ijoc.3.2.157: constraints are deleted if the rest stays
    infeasible. All constraints of a kind are tried first, then halves, quarters and so on of each kind, so that a small
    core among many constraints needs few questions. A member needed in a set is needed in each infeasible subset of it.
    """
    members, reason = oracle.core(verdict.core, share=_SHARE), verdict.reason
    needed: dict[int, Verdict] = {}
    parts, pieces = 1, _pieces(system, members, 1)
    while pieces:
        for piece in pieces:
            alive = set(members)
            chunk = {number for number in piece if number in alive and number not in needed}
            if not chunk:
                continue
            found = oracle.decide([number for number in members if number not in chunk], share=_SHARE)
            if found.feasible is False:
                members, reason = found.core, found.reason
                needed = {number: needed[number] for number in members if number in needed}
            elif found.feasible and len(chunk) == 1:
                needed[chunk.pop()] = found
        parts *= 2
        pieces = _pieces(system, members, parts) if max(map(len, pieces)) > 1 else []
    proof = oracle.decide(members, share=_SHARE, modelled=False)
    if proof.feasible:
        raise InternalError(
            f"a model of {system.problem.name or 'a problem'} (fingerprint {system.problem.fingerprint()}) claims that "
            f"constraints are infeasible ({reason}), but the verifier accepts a schedule; please report this"
        )
    return Core(members, needed, proof.reason or reason)


def _pieces(system: System, members: Collection[int], parts: int) -> list[list[int]]:
    """Split the members of each kind into about `parts` parts."""
    pieces: list[list[int]] = []
    for kind in _LAST:
        crowd = [number for number in members if system.constraints[number].kind == kind]
        crowd.sort(key=lambda number: (_need(system, number), number))
        size = -(-len(crowd) // parts)
        pieces += [crowd[k : k + size] for k in range(0, len(crowd), max(1, size))]
    return pieces


def _need(system: System, number: int) -> int:
    """Return the memory of the task: small tasks are deleted first, so that few large ones remain."""
    task = system.constraints[number].task
    return 0 if task is None else int(system.problem.memory[task])
