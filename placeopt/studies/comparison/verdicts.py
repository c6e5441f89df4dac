"""What the runs of one problem say together: the best schedule, the best bound that holds, and who claims too much."""

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
"""What came of a run.

feasible       the verifier accepts the schedule
infeasible     the schedule breaks a rule
no schedule    the solver ended without one
no solution    the solver proved that the problem has none
refuted        it proved a bound, or that there is no solution, which a schedule of another run disproves
contradicted   its claims do not fit its own schedule
refused, crashed, killed, lost   the statuses of records
"""

FAILED: tuple[Verdict, ...] = ("no schedule", "refuted", "contradicted", "crashed", "killed", "lost")
"""Verdicts that count as failures."""

Value = float | int


def feasible_value(record: Record) -> Value | None:
    """The objective's first level, of a schedule that the verifier accepts; None without one."""
    levels = feasible_levels(record)
    return levels[0] if levels else None


def feasible_levels(record: Record) -> tuple[Value, ...] | None:
    """The objective, one value a level, of a schedule that the verifier accepts; None without one."""
    result = record.result
    if result is None or not result["feasible"] or result["objective_levels"] is None:
        return None
    return tuple(result["objective_levels"])


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one problem, of all its runs.

    Attributes
    ----------
    best
        The least value of a feasible schedule, None if there is none; `best_solver` was the first to have it.
    bound
        The largest bound that no feasible schedule disproves, None if there is none; `bound_source` proved it.
    """

    best: Value | None
    best_solver: str | None
    bound: Value | None
    bound_source: str | None

    @classmethod
    def of(cls, records: Sequence[Record]) -> Standing:
        """The standing of a problem; the records are all of the same."""
        best, solver = None, None
        for record in records:
            value = feasible_value(record)
            if value is not None and (best is None or value < best):
                best, solver = value, record.solver
        bound, source = None, None
        for record in records:
            claimed = None if record.result is None else record.result["bound"]
            if claimed is None or (best is not None and claimed > best):
                continue
            if bound is None or claimed > bound:
                assert record.result is not None
                bound, source = claimed, record.result["bound_source"]
        return cls(best, solver, bound, source)

    def gap(self, value: Value | None) -> float | None:
        """(value - bound) / value: how much of the value may be saved at most; None where that means nothing."""
        if value is None or self.bound is None:
            return None
        return 0.0 if value == self.bound else (value - self.bound) / value if value else None

    def ratio(self, value: Value | None) -> float | None:
        """Value / best: 1 for the best; None where that means nothing."""
        if value is None or self.best is None:
            return None
        return 1.0 if value == self.best else value / self.best if self.best else None

    def judge(self, record: Record) -> tuple[Verdict, str]:
        """What came of a run of this problem, and why it is not feasible, or claims too much.

        Of an infeasible schedule the first violation, after its rule and a colon.
        """
        if record.status == "crashed" and record.message.startswith(CONTRADICTED):
            return "contradicted", record.message.removeprefix(CONTRADICTED)
        if record.status != "done" or record.result is None:
            return ("crashed" if record.status == "done" else record.status), record.message
        result = record.result
        if self.best is not None:
            if result["termination"] == "infeasible":
                return "refuted", f"claims that there is no schedule; {self.best_solver} has one"
            if result["bound"] is not None and result["bound"] > self.best:
                return "refuted", (
                    f"claims the bound {result['bound']:,}, proved by {result['bound_source']}; "
                    f"{self.best_solver} has {self.best:,}"
                )
        if result["feasible"]:
            return "feasible", ""
        if result["feasible"] is None:
            return ("no solution" if result["termination"] == "infeasible" else "no schedule"), _reason(result)
        broken = result["violations"]
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        return "infeasible", f"{broken[0]['rule']}: {broken[0]['message']}{more}" if broken else result["message"]


def _reason(result: Mapping[str, Any]) -> str:
    return str(result["message"] or f"ended with {result['termination'].replace('_', ' ')}")
