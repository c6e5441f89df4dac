"""Combine the runs of one problem: best schedule, best valid bound, and the verdict on each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from placeopt.studies.comparison.child import CONTRADICTED
from placeopt.studies.comparison.records import Record

Verdict = Literal[
    "feasible", "infeasible", "no schedule", "no solution", "refuted", "contradicted", "refused", "crashed", "killed",
    "lost",
]  # fmt: skip
"""The outcome of a run.

feasible       the verifier accepts the schedule
infeasible     the schedule breaks a rule
no schedule    the solver ended without a schedule
no solution    the solver proved that no schedule exists
refuted        a schedule of another run disproves its bound or its proof of infeasibility
contradicted   its claims contradict its own schedule, or that of a heuristic
refused, crashed, killed, lost   the statuses of records
"""

FAILED: tuple[Verdict, ...] = ("no schedule", "refuted", "contradicted", "crashed", "killed", "lost")
"""Verdicts that count as failures."""

Value = float | int


def feasible_value(record: Record) -> Value | None:
    """Return the first objective level of a schedule that the verifier accepts; None without one."""
    levels = feasible_levels(record)
    return levels[0] if levels else None


def feasible_levels(record: Record) -> tuple[Value, ...] | None:
    """Return the objective, one value per level, of a schedule that the verifier accepts; None without one."""
    result = record.result
    if result is None or not result["feasible"] or result["objective_levels"] is None:
        return None
    return tuple(result["objective_levels"])


@dataclass(frozen=True, slots=True)
class Standing:
    """Best value and best bound of all runs of one problem."""

    best: Value | None
    best_solver: str | None
    """The first level of the best feasible schedule, and the first solver that found it; None without one."""
    levels: tuple[Value, ...] | None
    """All levels of that schedule. Schedules are compared by all levels, in their order."""
    bound: Value | None
    bound_source: str | None
    """The largest bound of the first level that no feasible schedule disproves, and its origin; None without one."""
    optimal: bool
    """Whether the best schedule is proved optimal: on all levels, which a bound of the first one does not prove."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> Standing:
        """Combine the records of one problem."""
        found = [(levels, record) for record in records if (levels := feasible_levels(record)) is not None]
        levels, first = min(found, key=lambda pair: pair[0], default=(None, None))
        best = levels[0] if levels else None
        results = [record.result for record in records if record.result is not None]
        claims = [(result["bound"], result["bound_source"]) for result in results if result["bound"] is not None]
        valid = [claim for claim in claims if best is None or claim[0] <= best]
        bound, source = max(valid, key=lambda claim: claim[0], default=(None, None))
        if levels is not None and len(levels) > 1:
            optimal = any(each == levels and _ended(record) == "optimal" for each, record in found)
        else:
            optimal = best is not None and bound is not None and best <= bound
        return cls(best, None if first is None else first.solver, levels, bound, source, optimal)

    def gap(self, value: Value | None) -> float | None:
        """Return (value - bound) / value, the largest possible improvement as a share; None if undefined."""
        if value is None or self.bound is None:
            return None
        return 0.0 if value == self.bound else (value - self.bound) / value if value else None

    def ratio(self, value: Value | None) -> float | None:
        """Return value / best, which is 1 for the best value; None if undefined."""
        if value is None or self.best is None:
            return None
        return 1.0 if value == self.best else value / self.best if self.best else None

    def judge(self, record: Record) -> tuple[Verdict, str]:
        """Return the verdict on a run and its reason; for an infeasible schedule "RULE: first violation"."""
        if record.status == "crashed" and record.message.startswith(CONTRADICTED):
            return "contradicted", record.message.removeprefix(CONTRADICTED)
        if record.status != "done" or record.result is None:
            return ("crashed" if record.status == "done" else record.status), record.message
        result = record.result
        if self.best is not None:
            if result["termination"] == "infeasible":
                return "refuted", f"claims that no schedule exists; {self.best_solver} found one"
            if result["bound"] is not None and result["bound"] > self.best:
                return "refuted", (
                    f"claims the bound {result['bound']:,}, proved by {result['bound_source']}; "
                    f"{self.best_solver} found {self.best:,}"
                )
        if result["feasible"]:
            return "feasible", ""
        if result["feasible"] is None:
            return ("no solution" if result["termination"] == "infeasible" else "no schedule"), _reason(result)
        broken = result["violations"]
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        return "infeasible", f"{broken[0]['rule']}: {broken[0]['message']}{more}" if broken else result["message"]


def _ended(record: Record) -> str | None:
    return None if record.result is None else record.result["termination"]


def _reason(result: Mapping[str, Any]) -> str:
    return str(result["message"] or f"ended with {result['termination'].replace('_', ' ')}")
