"""The verifier's report."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction


class Rule(enum.StrEnum):
    """The rules for schedules, in the order of the table in `placeopt.verifier`."""

    PLACEMENT = "placement"
    FEASIBILITY = "feasibility"
    START = "start"
    RELEASE = "release"
    SWAP = "swap"
    UNAVAILABLE = "unavailable"
    RESOURCE = "resource"
    BUDGET = "budget"
    DEADLINE = "deadline"
    OVERLAP = "overlap"
    SETUP = "setup"
    PRECEDENCE = "precedence"
    TRANSFER = "transfer"
    PORT = "port"
    LINK = "link"
    MEMORY = "memory"
    ADDRESS = "address"
    COLOCATION = "colocation"
    SEPARATION = "separation"
    STAGE = "stage"
    PERIOD = "period"
    LIMIT = "limit"
    OBJECTIVE = "objective"


@dataclass(frozen=True, slots=True)
class Violation:
    """One violated rule at one place.

    `task` is the task at fault (for a transfer, its producer), `other_task` the task that it conflicts with, `edge` the
    edge whose data is late or moves wrongly. `amount` is the size of the violation: ticks too early or too late, bytes
    too many, error of a claim. Fields that do not apply are None.
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
    """The result of a verification.

    `violations` are in the order of the rules, then by task, device and edge. `objective` is recomputed, one number per
    level; `makespan` is the number of ticks until the last task ends, 0 without tasks. Both are None if a task has no
    device or one that may not run it.
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
        """Whether the schedule satisfies every rule."""
        return not self.violations
