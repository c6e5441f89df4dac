"""Deletion: from constraints that cannot hold together to a part of them in which each one is needed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from placeopt.errors import InternalError
from placeopt.explanation.constraints import Kind, System
from placeopt.explanation.oracle import Oracle, Verdict

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
    feasible goes, and the rest is tried on. Halves, quarters and so on are tried before single constraints, so that a
    small core among many constraints takes few questions. A member that was needed in a larger set is needed
    in every part of it that is infeasible still.
    """
    members, reason = oracle.core(verdict.core, share=_SHARE), verdict.reason
    needed: dict[int, Verdict] = {}
    size = max(1, len(members) // 2)
    while True:
        waiting = sorted(members, key=lambda number: (_LAST.index(system.constraints[number].kind), number))
        while waiting:
            chunk, waiting = waiting[:size], waiting[size:]
            rest = _without(members, chunk)
            if len(chunk) == 1 and chunk[0] in needed:
                continue
            found = oracle.decide(rest, share=_SHARE)
            if found.feasible is False:
                members, reason = found.core, found.reason
                waiting = [number for number in waiting if number in set(members)]
                needed = {number: found for number, found in needed.items() if number in set(members)}
            elif found.feasible and len(chunk) == 1:
                needed[chunk[0]] = found
        if size == 1:
            break
        size = max(1, min(size, len(members)) // 2)
    proof = oracle.decide(members, share=_SHARE, modelled=False)
    if proof.feasible:
        raise InternalError(
            f"a model of {system.problem.name or 'a problem'} (fingerprint {system.problem.fingerprint()}) calls "
            f"constraints infeasible ({reason}) for which the verifier accepts a schedule; please report this"
        )
    return Core(members, needed, proof.reason or reason)


def _without(members: Collection[int], chunk: Collection[int]) -> tuple[int, ...]:
    gone = set(chunk)
    return tuple(number for number in members if number not in gone)
