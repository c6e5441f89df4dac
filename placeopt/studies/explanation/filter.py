"""Deletion: from constraints that cannot hold together to a part of them in which each one is needed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from placeopt.errors import InternalError
from placeopt.studies.explanation.constraints import Kind, System
from placeopt.studies.explanation.oracle import Oracle, Verdict

# What is tried first is gone first: a reader learns more from capacities and deadlines than from the label of one task.
_LAST: tuple[Kind, ...] = (
    "release", "separate", "colocate", "requires", "devices", "pin", "placement", "deadline", "memory",
)  # fmt: skip
_SHARE = 0.25
"""Part of the time left that one question may take."""


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """Constraints that cannot hold together.

    `needed` maps each member to what shows that the others can hold without it; a member that is missing there may be
    superfluous (the time was over). `reason` says why they cannot hold together.
    """

    members: tuple[int, ...]
    needed: dict[int, Verdict]
    reason: str

    @property
    def minimal(self) -> bool:
        """Whether every member is known to be needed."""
        return len(self.needed) == len(self.members)


def shrink(system: System, oracle: Oracle, verdict: Verdict) -> Core:
    """A minimal part of the core of a verdict, as far as the time allows.

    The deletion filter of J. W. Chinneck and E. W. Dravnieks, "Locating minimal infeasible constraint sets in linear
    programs", ORSA Journal on Computing 3 (1991), doi:10.1287/ijoc.3.2.157: what can go without making the rest
    feasible goes, and the rest is tried on. All constraints of a kind are tried first, then halves, quarters and so on
    of each kind, so that a small core among many constraints takes few questions. A member that was needed in a
    larger set is needed in every part of it that is infeasible still.
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
            f"a model of {system.problem.name or 'a problem'} (fingerprint {system.problem.fingerprint()}) calls "
            f"constraints infeasible ({reason}) for which the verifier accepts a schedule; please report this"
        )
    return Core(members, needed, proof.reason or reason)


def _pieces(system: System, members: Collection[int], parts: int) -> list[list[int]]:
    """The members of each kind in about so many parts."""
    pieces: list[list[int]] = []
    for kind in _LAST:
        crowd = [number for number in members if system.constraints[number].kind == kind]
        crowd.sort(key=lambda number: (_need(system, number), number))
        size = -(-len(crowd) // parts)
        pieces += [crowd[k : k + size] for k in range(0, len(crowd), max(1, size))]
    return pieces


def _need(system: System, number: int) -> int:
    """Memory of the task: those that need little are tried, and gone, first, so that few large ones remain."""
    task = system.constraints[number].task
    return 0 if task is None else int(system.problem.memory[task])
