"""What the verifier reports."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction


class Rule(enum.StrEnum):
    """What a schedule must keep; defined in the table at the top of the module, in its order."""

    PLACEMENT = "placement"
    FEASIBILITY = "feasibility"
    START = "start"
    RELEASE = "release"
    DEADLINE = "deadline"
    OVERLAP = "overlap"
    PRECEDENCE = "precedence"
    TRANSFER = "transfer"
    PORT = "port"
    MEMORY = "memory"
    COLOCATION = "colocation"
    SEPARATION = "separation"
    OBJECTIVE = "objective"


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken at one place.

    `task` is the one at fault (for a transfer, its producer), `other_task` the one it is at odds
    with, `edge` the edge whose data comes too late or moves wrongly. `amount` says by how much: the
    ticks something is too early or too late, the bytes too many, how far a claim is off. None where it
    does not apply.
    """

    rule: Rule
    message: str
    task: int | None = None
    other_task: int | None = None
    device: int | None = None
    edge: int | None = None
    amount: int | None = None

    def __str__(self) -> str:
        return f"{self.rule.value}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """What the verifier found.

    Attributes
    ----------
    violations
        All of them, in the order of the rules, then by task, device and edge.
    objective
        The objective recomputed, one number a level; None where a task has no device, or one
        that may not run it.
    makespan
        Ticks until the last task ends, 0 without tasks; None where `objective` is.
    """

    violations: tuple[Violation, ...]
    objective: tuple[int | Fraction, ...] | None
    makespan: int | None

    def __repr__(self) -> str:
        rules = ", ".join(dict.fromkeys(violation.rule.value for violation in self.violations))
        verdict = (
            f"{len(self.violations):,} violation{'s' * (len(self.violations) > 1)} ({rules})"
            if self.violations
            else "feasible"
        )
        values = "unknown" if self.objective is None else ", then ".join(map(str, self.objective))
        return f"<Report: {verdict}, objective {values}, makespan {self.makespan}>"

    @property
    def feasible(self) -> bool:
        """Whether the schedule keeps every rule."""
        return not self.violations
