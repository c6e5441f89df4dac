"""Reduce conflicting constraints to a minimal conflict by deletion."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from placeopt.errors import InternalError
from placeopt.studies.explanation.constraints import Kind, System
from placeopt.studies.explanation.oracle import Oracle, Verdict

# The order of deletion: capacities and deadlines come last, since they explain more than labels of single tasks.
_LAST: tuple[Kind, ...] = (
    "release", "separate", "colocate", "requires", "devices", "pin", "placement", "in_flight", "stages", "deadline",
    "memory",
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
